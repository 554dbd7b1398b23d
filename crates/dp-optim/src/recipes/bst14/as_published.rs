//! The constants as published, for tables, comparisons, and noise whose guarantee is the accountant's.
//!
//! The papers prove `(ε, δ)` from the classical Gaussian mechanism for a step, amplification by subsampling, and advanced
//! composition over the steps. With `ι = 1` the proof is wrong under replace-one: two records' gradients differ by `G`, which
//! is 2 for the logistic loss in a large ball, so that the variance would have to be multiplied by `ι = G²`. With the true
//! sensitivity the same chain of theorems gives [`Bst14Constants::composed_epsilon`] of the
//! [step's](Bst14Constants::classical_epsilon_of_step). The noise itself is still large enough, by a wide margin, as a tighter
//! accountant shows. Nothing here returns a guarantee.
//!
//! # References
//! Wu et al. 2017, Algorithms 4 and 5 (those for batches of several records are a reconstruction: the paper says
//! "straightforward"); Bassily, Smith, Thakurta 2014, Algorithm 1 and Theorem 2.1; Dwork, Rothblum, Vadhan, "Boosting and
//! differential privacy", FOCS 2010, Theorem III.3.

use dp_accountant::{Delta, Epsilon};

use crate::error::{Error, positive};

/// The conversion of the epsilon of a sampled step to that of the step itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inversion {
    /// `min(1, n ε₁ / (2b))`, by `e^x - 1 <= 2x` on [0, 1], as published.
    #[default]
    Linear,
    /// `min(1, ln(1 + (n/b)(e^ε₁ - 1)))`: the same theorem, inverted exactly.
    Exact,
}

/// The inputs of the constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bst14Input {
    /// Number of records.
    pub n: u64,
    /// Passes.
    pub passes: u64,
    /// Records in a batch.
    pub batch_size: u64,
    /// Dimension of the noise.
    pub dim: u64,
    /// The claimed epsilon.
    pub epsilon: Epsilon,
    /// The claimed delta.
    pub delta: Delta,
    /// L: bound on the norm of a gradient.
    pub lipschitz: f64,
    /// ι: factor on the variance.
    pub iota: f64,
}

/// The constants of Algorithms 4 and 5.
///
/// # Formula
/// ```text
/// T = ⌊kn/b⌋,  δ₁ = δ/(kn),  T ε₁ (e^ε₁ - 1) + √(2T ln(1/δ₁)) ε₁ = ε,  ε₂ = min(1, n ε₁/(2b)),
/// σ² = 2 ln(1.25/δ₁) / ε₂²,   noise N(0, ι σ² I) on each sum,   Γ = √(d ι σ² + b² L²)
/// ```
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon};
/// use dp_optim::recipes::bst14::as_published::{Bst14Constants, Bst14Input, Inversion};
/// let input = Bst14Input {
///     n: 1000, passes: 1, batch_size: 1, dim: 5, epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-6)?,
///     lipschitz: 1.0, iota: 1.0,
/// };
/// let constants = Bst14Constants::new(&input, Inversion::Linear)?;
/// assert_eq!((constants.steps, constants.epsilon_of_step), (1000, 1.0));
/// assert!((constants.variance - 41.89281877652124).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bst14Constants {
    /// T.
    pub steps: u64,
    /// δ₁.
    pub delta_of_step: f64,
    /// ε₁: epsilon of a step, amplified by sampling.
    pub epsilon_of_sampled_step: f64,
    /// ε₂: epsilon of a step for a record that takes part.
    pub epsilon_of_step: f64,
    /// σ².
    pub variance: f64,
    /// Γ: bound on the root mean square norm of a noisy sum.
    pub gradient_bound: f64,
    input: Bst14Input,
}

impl Bst14Constants {
    /// Computes the constants.
    ///
    /// # Errors
    /// Counts of 0, no step at all, delta = 0, an L or ι that is not positive.
    pub fn new(input: &Bst14Input, inversion: Inversion) -> Result<Self, Error> {
        let &Bst14Input { n, passes, batch_size, dim, epsilon, delta, lipschitz, iota } = input;
        for (name, value) in [("number of records", n), ("passes", passes), ("batch size", batch_size)] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        let steps = passes.saturating_mul(n) / batch_size;
        if steps == 0 {
            return Err(Error::Count { name: "steps", value: 0, range: "1 or more: shrink the batches" });
        }
        positive("delta", delta.get())?;
        positive("Lipschitz constant", lipschitz)?;
        positive("iota", iota)?;
        let delta_of_step = delta.get() / (passes as f64 * n as f64);
        let epsilon_of_sampled_step = solve(steps as f64, delta_of_step, epsilon.get());
        let inverse_rate = n as f64 / batch_size as f64;
        let inverted = match inversion {
            Inversion::Linear => inverse_rate * epsilon_of_sampled_step / 2.0,
            Inversion::Exact => (inverse_rate * epsilon_of_sampled_step.exp_m1()).ln_1p(),
        };
        let epsilon_of_step = inverted.min(1.0);
        let variance = 2.0 * (1.25 / delta_of_step).ln() / (epsilon_of_step * epsilon_of_step);
        let size = batch_size as f64 * lipschitz;
        let gradient_bound = (dim as f64 * iota * variance + size * size).sqrt();
        let input = *input;
        Ok(Self { steps, delta_of_step, epsilon_of_sampled_step, epsilon_of_step, variance, gradient_bound, input })
    }

    /// Standard deviation of the noise on each coordinate of a sum, `√ι σ`.
    pub fn std_dev(&self) -> f64 {
        (self.input.iota * self.variance).sqrt()
    }

    /// `2R / (Γ√t)`, on the noisy *sum*.
    pub fn convex_step(&self, radius: f64, t: u64) -> f64 {
        2.0 * radius / (self.gradient_bound * (t as f64).sqrt())
    }

    /// `1 / (γt)`, on the noisy *mean*.
    pub fn strongly_convex_step(&self, strong_convexity: f64, t: u64) -> f64 {
        1.0 / (strong_convexity * t as f64)
    }

    /// Returns the epsilon at `δ₁` that the classical Gaussian mechanism gives for a step with this sensitivity.
    pub fn classical_epsilon_of_step(&self, sensitivity: f64) -> f64 {
        sensitivity * (2.0 * (1.25 / self.delta_of_step).ln()).sqrt() / self.std_dev()
    }

    /// Returns the epsilon of the whole run, from that of a step, by the papers' chain of theorems: amplification by sampling
    /// and advanced composition. For `ε₂` it is the claimed epsilon if the inversion is exact.
    pub fn composed_epsilon(&self, epsilon_of_step: f64) -> f64 {
        let rate = self.input.batch_size as f64 / self.input.n as f64;
        let sampled = (rate * epsilon_of_step.exp_m1()).ln_1p();
        composed(self.steps as f64, self.delta_of_step, sampled)
    }
}

/// Advanced composition of `steps` steps.
fn composed(steps: f64, delta: f64, epsilon: f64) -> f64 {
    steps * epsilon * epsilon.exp_m1() + (2.0 * steps * (1.0 / delta).ln()).sqrt() * epsilon
}

/// Solves for the epsilon of a step whose composition is `target`: the function increases from 0 and exceeds its last term.
fn solve(steps: f64, delta: f64, target: f64) -> f64 {
    let (mut low, mut high) = (0.0, target / (2.0 * steps * (1.0 / delta).ln()).sqrt().max(1e-300));
    // Enough bisections to exhaust a double's precision.
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if composed(steps, delta, middle) <= target {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
