//! Iterative localisation: phases on fresh records, each closer to the previous result than the one before.
//!
//! Phase `i` of `k = ⌊log₂ n⌋` reads `n_i = ⌊n/2^i⌋` records that no other phase reads, in steps of `η_i = η/4^i`, and starts
//! at the release of phase `i - 1`. Later phases correct early noise; the noise of the last phase, which remains, is small.
//! One record takes part in one phase, so the run costs as much as one phase.
//!
//! # References
//! Feldman, Koren, Talwar, "Private stochastic convex optimization: optimal rates in linear time", STOC 2020, arXiv
//! 2005.04763: sections 4 and 5. `k` and `n_i` are rounded down here: with `⌈log₂ n⌉` the last phase is empty if `n` is not a
//! power of two. Remaining records are not used.

mod descent;
mod minimisation;
mod release;
mod run;
mod terms;

#[cfg(test)]
pub(super) mod tests;

pub use release::NoiseMultiplier;
pub use run::PhasedRun;

pub(super) use minimisation::Objective;
pub(super) use release::noise_multiplier;
pub(super) use run::Method;
pub(super) use terms::{Inputs, Reach};

use crate::error::{Error, positive};

/// The number of records and the step size of one phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Number of records.
    pub records: u64,
    /// Step size η_i.
    pub step: f64,
}

/// Returns the phases for `n` records and step size `step`.
///
/// # Formula
/// ```text
/// k = ⌊log₂ n⌋,    n_i = ⌊n / 2^i⌋,    η_i = η / 4^i,    i = 1..k
/// ```
///
/// # Examples
/// ```
/// let phases = dp_optim::recipes::phases::localising(7, 1.0);
/// assert_eq!(phases.iter().map(|phase| phase.records).collect::<Vec<_>>(), [3, 1]);
/// assert_eq!(phases[1].step, 1.0 / 16.0);
/// ```
pub fn localising(n: u64, step: f64) -> Vec<Phase> {
    let mut phases = Vec::new();
    let (mut records, mut step) = (n / 2, step / 4.0);
    while records > 0 {
        phases.push(Phase { records, step });
        (records, step) = (records / 2, step / 4.0);
    }
    phases
}

/// The public numbers that determine the step size and the excess loss of the phases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhasedProblem {
    /// L: Lipschitz constant of the loss, regulariser included.
    pub lipschitz: f64,
    /// G: largest difference of two neighbouring records' gradients, at most 2L.
    pub gradient_difference: f64,
    /// D: bound on the distance from the start to the best point.
    pub distance: f64,
    /// d: number of parameters.
    pub dim: u64,
    /// ρ: ratio of sensitivity to standard deviation of each phase's noise, as in Gaussian differential privacy; the zCDP
    /// parameter is ρ²/2.
    pub rho: f64,
}

impl PhasedProblem {
    /// Returns the step size that balances optimisation and noise.
    ///
    /// # Formula
    /// ```text
    /// η = D min(4 / (L √n), ρ / (G √d))
    /// ```
    /// Feldman et al. have `G = 2L`.
    ///
    /// # Examples
    /// ```
    /// use dp_optim::recipes::phases::PhasedProblem;
    /// let problem = PhasedProblem { lipschitz: 1.0, gradient_difference: 2.0, distance: 1.0, dim: 4, rho: 1.0 };
    /// assert_eq!(problem.step(16), 0.25);
    /// ```
    pub fn step(&self, n: u64) -> f64 {
        let optimisation = 4.0 / (self.lipschitz * (n as f64).sqrt());
        let privacy = self.rho / (self.gradient_difference * (self.dim as f64).sqrt());
        self.distance * optimisation.min(privacy)
    }

    /// Bounds the expected excess population loss of stochastic gradient descent in `phases`, whose noise has standard
    /// deviation `G η_i / ρ`.
    ///
    /// # Formula
    /// ```text
    /// D²/(2η_1n_1) + η_1L²/2 + Σ_{i≥2} [ dσ_{i-1}²/(2η_in_i) + η_iL²/2 ] + L√d σ_k,    σ_i = Gη_i/ρ
    /// ```
    /// Each phase's average has regret `‖w_{i-1} - u‖²/(2η_in_i) + η_iL²/2` against any `u`; if `u` is the average of the
    /// phase before, without its noise, the distance is that noise. The last term is the remaining noise.
    pub fn excess_bound(&self, phases: &[Phase]) -> f64 {
        let dim = self.dim as f64;
        let mut distance_squared = self.distance * self.distance;
        let (mut bound, mut std_dev) = (0.0, 0.0);
        for phase in phases {
            bound += distance_squared / (2.0 * phase.step * phase.records as f64);
            bound += phase.step * self.lipschitz * self.lipschitz / 2.0;
            std_dev = self.gradient_difference * phase.step / self.rho;
            distance_squared = dim * std_dev * std_dev;
        }
        bound + self.lipschitz * dim.sqrt() * std_dev
    }

    /// Returns stages that use strong convexity; see [`Reduction`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a strong convexity or constant that is not positive and finite, [`Error::Count`] for
    /// fewer records than stages.
    pub fn reduction(&self, n: u64, strong_convexity: f64, constant: f64) -> Result<Reduction, Error> {
        positive("strong convexity", strong_convexity)?;
        positive("constant", constant)?;
        // ⌈log₂ log₂ n⌉ is the least k with 2^(2^k) >= n.
        let stages = (1..6).find(|&k| (n as f64) <= 2f64.powi(1 << k)).unwrap_or(6);
        let records = n / stages;
        if records == 0 {
            return Err(Error::Count { name: "number of records", value: n, range: "at least one for each stage" });
        }
        let size = records as f64;
        let rate = 1.0 / size.sqrt() + (self.dim as f64).sqrt() / (self.rho * size);
        let excess = |radius: f64| constant * self.lipschitz * radius * rate;
        let mut radii = vec![self.distance];
        for _ in 0..stages {
            let last = radii.last().copied().unwrap_or(self.distance);
            radii.push(last.min((2.0 * excess(last) / strong_convexity).sqrt()));
        }
        let last = radii.get(radii.len() - 2).copied().unwrap_or(self.distance);
        Ok(Reduction { stages, records, excess_bound: excess(last), radii })
    }
}

/// Stages, each on fresh records, that apply a method for convex losses to a strongly convex one: the distance assumed by the
/// step size shrinks from stage to stage.
///
/// # Formula
/// For a method with excess loss at most `C L D r`, `r = 1/√m + √d/(ρm)` on `m` records from distance `D`:
/// ```text
/// k = max(1, ⌈log₂ log₂ n⌉) stages of m = ⌊n/k⌋ records,    D_{i+1} = min(D_i, √(2 C L D_i r / λ))
/// ```
/// `D_i` bounds only the root of the mean squared distance, so the constraint set is not reduced; `D_i` enters through the
/// step size.
///
/// Output perturbation ([`BoltOn::strongly_convex`](crate::recipes::BoltOn::strongly_convex)) reaches the optimal rate up to
/// the condition number with smooth losses and is simpler; this needs no smoothness if the method needs none.
///
/// # Examples
/// ```
/// use dp_optim::recipes::phases::PhasedProblem;
/// let problem = PhasedProblem { lipschitz: 1.0, gradient_difference: 2.0, distance: 20.0, dim: 10, rho: 1.0 };
/// let reduction = problem.reduction(1000, 0.1, 10.0)?;
/// assert_eq!((reduction.stages, reduction.records), (4, 250));
/// assert!((reduction.radii[1] - 17.4235).abs() < 1e-4);
/// # Ok::<(), dp_optim::Error>(())
/// ```
///
/// # References
/// Feldman, Koren, Talwar 2020, section 5.1.
#[derive(Debug, Clone, PartialEq)]
pub struct Reduction {
    /// Number of stages.
    pub stages: u64,
    /// Records of each stage.
    pub records: u64,
    /// `D_0, ..., D_k`.
    pub radii: Vec<f64>,
    /// Bound on the expected excess loss, `C L D_{k-1} r`.
    pub excess_bound: f64,
}
