//! Recipes that work without tuning, from public numbers alone.
//!
//! # Formula
//! The noise on the mean gradient for the given budget, in one coordinate, determines the parameters:
//! ```text
//! q = G s / n,    s = noise per unit of sensitivity and coordinate:
//!                 (√(d (d+1)) / ε) / √d   for the Laplace ball,   z(ε, δ)   for the Gaussian, whichever is smaller
//! ```
//! A convex run of total step `S = Σ η_t` has sensitivity `G S/n`, for any number of passes and batch size, and stops within
//! about `W²/(2S)` of the least risk, `W` the norm of the best model. A strongly convex one has sensitivity `G/(λn)` and a
//! bias of about `λW²/2`. In a prediction the noise of one coordinate, `q S` or `q/λ`, is multiplied by the loss's curvature
//! `c`, and costs `(c/2)(q S)²`. Balancing the two gives
//! ```text
//! S = (W²/2c)^{1/3} q^{-2/3},     λ = (2c/W²)^{1/3} q^{2/3},
//! ```
//! in which only the constants depend on the data, and weakly. [`TOTAL_STEP`] and [`LAMBDA`] gave the best results on tables
//! of very different sizes (1,400 to 93,000 rows, 5 to 109 features), at every budget between 0.05 and 1.
//!
//! For regression losses the constants gave the best results on synthetic tables of 2,000 to 40,000 rows, 4 to 13 features and
//! labels that spread over a quarter to a half of their range, at budgets from 0.1 to 4; Huber's loss was the better one at
//! every budget.
//!
//! The balance assumes small noise. If the budget is so small that the noise in a prediction would exceed [`LARGEST_NOISE`],
//! the expansion no longer holds and the sign of the prediction is lost. The run is then shortened, or the regularisation
//! raised, to that noise: `S <= t/q`, `λ >= q/t`.
//!
//! # Privacy
//! The recommendation depends on no record: it is as public as `n`, `dim` and the budget.

use dp_accountant::{AdjacencyKind, gaussian};
use dp_losses::{Domain, L2, LossKind};

use crate::error::Error;
use crate::recipes::{BoltOn, Budget, Convexity};
use crate::schedule::Schedule;

/// `(W²/2c)^{1/3}` for the logistic loss on unit rows: total step of a convex run, times `q^{2/3}`.
pub const TOTAL_STEP: f64 = 4.0;
/// Fraction of [`TOTAL_STEP`] for losses with a margin of 1 or a real target, whose best models have a smaller norm.
pub const SHORT_MODEL: f64 = 0.5;
/// `(W²/2c)^{1/3}` for the squared loss and targets in `[-1, 1]`.
pub const SQUARED_TOTAL_STEP: f64 = 0.6;
/// `(W²/2)^{1/3}` for Huber's regression loss of half width `h` and targets in `[-1, 1]`, times `h^{1/3}` for `c = 1/h`.
pub const HUBER_TOTAL_STEP: f64 = 0.4;
/// t for targets in `[-1, 1]`; [`LARGEST_NOISE`] is for log-odds.
pub const LARGEST_NOISE_OF_NUMBERS: f64 = 0.15;
/// `(2c/W²)^{1/3}` on unit rows: regularisation of a strongly convex run, over `q^{2/3}`. One constant serves the logistic loss
/// and the Huber SVM.
pub const LAMBDA: f64 = 0.25;
/// t: maximum standard deviation of the noise on a unit row's prediction (in log-odds).
pub const LARGEST_NOISE: f64 = 0.5;
/// Minimum and maximum of the recommended λ.
const LAMBDA_RANGE: (f64, f64) = (1e-6, 1.0);
/// Maximum total step: beyond it the model has practically converged.
const LARGEST_TOTAL_STEP: f64 = 1e7;

/// Radius of the ball for the weights under the squared loss, whose gradients are unbounded without it: on unit rows it allows
/// predictions twice as large as targets of size 1.
pub const SQUARED_RADIUS: f64 = 2.0;

/// Returns λ of the non-private baseline, `1/(10 n)`. Rows have norm 1 here: for `d` standardised columns, whose rows have norm
/// `√d`, it corresponds to `C = 10/d` in the notation of other libraries. On five tables of 1,400 to 93,000 rows its accuracy is
/// within 0.01 of the best of all λ; `10⁻³` loses up to 0.06.
pub fn baseline_lambda(n: u64) -> f64 {
    0.1 / n.max(1) as f64
}

/// Updates of Algorithm 2 for each unit of the condition number κ = β/λ. After about κ steps of `1/β` the steps become
/// `1/(λt)` and the distance to the minimiser falls like `κ/t`.
const UPDATES_PER_CONDITION: f64 = 16.0;
/// Minimum and maximum of the recommended number of passes.
const PASSES_RANGE: (u64, u64) = (10, 1000);

/// Returns the number of passes over `n` records after which SGD of step `min(1/β, 1/(λt))` has practically converged: ten,
/// and for small tables enough for sixteen updates per unit of the condition number, at most a thousand.
///
/// # Errors
/// A λ that is negative or not finite.
///
/// # Examples
/// ```
/// use dp_losses::LossKind;
/// use dp_optim::defaults::passes_to_converge;
/// assert_eq!(passes_to_converge(LossKind::Logistic, 1e-3, 100_000, 50)?, 10);
/// assert_eq!(passes_to_converge(LossKind::Logistic, 1e-3, 1_000, 50)?, 201); // κ = 251, 20 updates a pass
/// # Ok::<(), dp_optim::Error>(())
/// ```
pub fn passes_to_converge(loss: LossKind, lambda: f64, n: u64, batch_size: u64) -> Result<u64, Error> {
    let smoothness = loss.constants(L2::new(lambda)?, &Domain::unit_rows()).smoothness;
    let updates = UPDATES_PER_CONDITION * smoothness / lambda;
    let per_pass = n.max(1).div_ceil(batch_size.clamp(1, n.max(1))) as f64;
    // Saturates for λ = 0, which has no strong convexity.
    Ok(((updates / per_pass).ceil() as u64).clamp(PASSES_RANGE.0, PASSES_RANGE.1))
}

/// The public numbers from which step and regularisation are recommended.
///
/// # Examples
/// ```
/// use dp_accountant::{AdjacencyKind, Delta, Epsilon};
/// use dp_losses::LossKind;
/// use dp_optim::defaults::Defaults;
/// use dp_optim::recipes::{Convexity, Budget};
///
/// let budget = |epsilon| -> Result<Budget, dp_accountant::Error> {
///     Ok(Budget { epsilon: Epsilon::new(epsilon)?, delta: Delta::ZERO })
/// };
/// let at = |epsilon| Defaults::new(LossKind::Logistic, 40_000, 100, budget(epsilon)?, AdjacencyKind::ZeroOut);
/// // A larger budget allows longer runs and less regularisation.
/// assert!(at(1.0)?.total_step() > at(0.1)?.total_step());
/// assert!(at(1.0)?.lambda() < at(0.1)?.lambda());
/// let recipe = at(1.0)?.recipe(Convexity::Convex)?;
/// assert_eq!((recipe.passes, recipe.batch_size), (10, 50));
/// # Ok::<(), dp_optim::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defaults {
    loss: LossKind,
    n: u64,
    parameters: u64,
    /// q of the module's formula.
    noise: f64,
}

impl Defaults {
    /// Computes the numbers for `n` records of `dim` features, a budget and a relation.
    ///
    /// # Errors
    /// No records, no features, or a relation without a public number of records.
    pub fn new(loss: LossKind, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Self, Error> {
        for (name, value) in [("number of records", n), ("dimension", dim)] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        let mut constants = loss.constants(L2::NONE, &Domain::unit_rows());
        if !constants.gradient_difference.is_finite() {
            constants = loss.constants(L2::NONE, &Domain::unit_rows().with_radius(SQUARED_RADIUS)?);
        }
        let gradient_difference = match relation {
            AdjacencyKind::ReplaceOne => constants.gradient_difference,
            AdjacencyKind::ZeroOut => constants.data_lipschitz,
            adjacency => return Err(Error::Adjacency { recipe: "bolt-on", adjacency }),
        };
        let mut spread = (loss.parameters(dim) as f64 + 1.0).sqrt() / budget.epsilon.get();
        if budget.delta.get() > 0.0 {
            spread = spread.min(gaussian::noise_multiplier(budget.epsilon, budget.delta)?.get());
        }
        Ok(Self { loss, n, parameters: loss.parameters(dim), noise: gradient_difference * spread / n as f64 })
    }

    /// Returns `(W²/2c)^{1/3}` and t for this loss.
    fn balance(&self) -> (f64, f64) {
        match self.loss {
            LossKind::Logistic => (TOTAL_STEP, LARGEST_NOISE),
            LossKind::Squared => (SQUARED_TOTAL_STEP, LARGEST_NOISE_OF_NUMBERS),
            // Its curvature is 1/h; beyond the range of targets a larger h only changes the scale.
            LossKind::HuberRegression(loss) => (HUBER_TOTAL_STEP * loss.h().min(1.0).cbrt(), LARGEST_NOISE_OF_NUMBERS),
            LossKind::LogCosh(loss) => (HUBER_TOTAL_STEP * loss.h().min(1.0).cbrt(), LARGEST_NOISE_OF_NUMBERS),
            _ => (SHORT_MODEL * TOTAL_STEP, SHORT_MODEL * LARGEST_NOISE),
        }
    }

    /// Returns S, the sum of the step sizes of a convex run.
    pub fn total_step(&self) -> f64 {
        let (balance, largest_noise) = self.balance();
        (balance * self.noise.powf(-2.0 / 3.0)).min(largest_noise / self.noise).min(LARGEST_TOTAL_STEP)
    }

    /// Returns λ of a strongly convex run.
    pub fn lambda(&self) -> f64 {
        let (balance, largest_noise) = self.balance();
        let (balance, largest_noise) = match self.loss {
            // The reciprocal, as in the balance, and measured in the same way.
            LossKind::Squared | LossKind::HuberRegression(_) | LossKind::LogCosh(_) => (1.0 / balance, largest_noise),
            _ => (LAMBDA, LARGEST_NOISE),
        };
        let balanced = balance * self.noise.powf(2.0 / 3.0);
        balanced.max(self.noise / largest_noise).clamp(LAMBDA_RANGE.0, LAMBDA_RANGE.1)
    }

    /// Returns the constant step with which `passes` passes in batches of `batch_size` add up to the total step, at most
    /// `1/β`.
    ///
    /// # Errors
    /// A loss that refuses `lambda`.
    pub fn schedule(&self, passes: u64, batch_size: u64, lambda: f64) -> Result<Schedule, Error> {
        let updates = self.n.div_ceil(batch_size.clamp(1, self.n)).saturating_mul(passes.max(1));
        let smoothness = self.loss.constants(L2::new(lambda)?, &Domain::unit_rows()).smoothness;
        Ok(Schedule::Constant { step: (self.total_step() / updates as f64).min(1.0 / smoothness) })
    }

    /// Returns the recommended recipe.
    ///
    /// # Errors
    /// As [`schedule`](Self::schedule).
    pub fn recipe(&self, algorithm: Convexity) -> Result<BoltOn, Error> {
        let recipe = match algorithm {
            Convexity::Convex => {
                let recipe = BoltOn::convex(self.loss);
                let schedule = self.schedule(recipe.passes, recipe.batch_size, recipe.lambda)?;
                BoltOn { schedule: Some(schedule), ..recipe }
            }
            Convexity::StronglyConvex => {
                let recipe = BoltOn::strongly_convex(self.loss, self.lambda());
                BoltOn { passes: passes_to_converge(self.loss, recipe.lambda, self.n, recipe.batch_size)?, ..recipe }
            }
        };
        let radius = matches!(self.loss, LossKind::Squared).then_some(SQUARED_RADIUS);
        let projected = radius.map(|_| self.parameters);
        let arithmetic = recipe.arithmetic.for_records(self.n, recipe.passes, recipe.batch_size, projected);
        Ok(BoltOn { radius, arithmetic, ..recipe })
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::{ReplaceOne, ZeroOut};
    use proptest::prelude::*;

    use super::*;
    use crate::recipes::{Recipe, budget};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn recommended_recipes_can_be_planned(
            n in 1u64..2_000_000, dim in 1u64..2000, epsilon in 0.001f64..20.0,
            delta in prop_oneof![Just(0.0), 1e-14f64..1e-3],
            loss in proptest::sample::select(vec!["logistic", "huber-svm", "squared", "huber-regression", "softmax:7"]),
        ) {
            let loss: LossKind = loss.parse().unwrap();
            let budget = budget(epsilon, delta);
            for algorithm in [Convexity::Convex, Convexity::StronglyConvex] {
                let recipe = |relation| Defaults::new(loss, n, dim, budget, relation)?.recipe(algorithm);
                let replace = recipe(AdjacencyKind::ReplaceOne).unwrap().plan::<ReplaceOne>(n, dim, budget);
                prop_assert!(replace.is_ok(), "{:?}", replace);
                let null = recipe(AdjacencyKind::ZeroOut).unwrap().plan::<ZeroOut>(n, dim, budget);
                prop_assert!(null.is_ok(), "{:?}", null);
            }
        }
    }

    #[test]
    fn more_records_or_budget_mean_longer_runs() {
        let at = |n, epsilon| {
            let defaults = Defaults::new(LossKind::Logistic, n, 50, budget(epsilon, 0.0), AdjacencyKind::ZeroOut);
            let defaults = defaults.unwrap();
            (defaults.total_step(), defaults.lambda())
        };
        let (base, more, richer) = (at(1000, 0.1), at(10_000, 0.1), at(1000, 1.0));
        assert!(more.0 > base.0 && richer.0 > base.0 && more.1 < base.1 && richer.1 < base.1);
        // The step that adds up to S.
        let defaults = Defaults::new(LossKind::Logistic, 1000, 50, budget(0.1, 0.0), AdjacencyKind::ZeroOut).unwrap();
        let Ok(Schedule::Constant { step }) = defaults.schedule(4, 10, 0.0) else { panic!("not constant") };
        assert!((step * 400.0 - defaults.total_step()).abs() < 1e-9);
    }

    #[test]
    fn little_budget_does_not_drown_predictions_in_noise() {
        for n in [100, 1000, 10_000] {
            let defaults = Defaults::new(LossKind::Logistic, n, 20, budget(0.05, 0.0), AdjacencyKind::ReplaceOne);
            let defaults = defaults.unwrap();
            assert!(defaults.noise * defaults.total_step() <= LARGEST_NOISE * (1.0 + 1e-12), "{n}");
            assert!(defaults.lambda() == 1.0 || defaults.noise / defaults.lambda() <= LARGEST_NOISE * (1.0 + 1e-12));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let new = |n, dim, relation| Defaults::new(LossKind::Logistic, n, dim, budget(1.0, 0.0), relation);
        assert!(new(0, 1, AdjacencyKind::ZeroOut).is_err());
        assert!(new(1, 0, AdjacencyKind::ZeroOut).is_err());
        assert!(matches!(new(1, 1, AdjacencyKind::AddRemoveOne), Err(Error::Adjacency { .. })));
    }
}
