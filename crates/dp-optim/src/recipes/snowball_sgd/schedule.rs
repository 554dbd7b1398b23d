//! Steps and batch sizes of Snowball-SGD, and the bounds on the excess loss: functions of public numbers.

use crate::error::{Error, positive};
use crate::recipes::last_iterate::Updates;

/// Maximum number of updates of a schedule: each needs eight bytes.
const MOST_UPDATES: u64 = 1 << 25;

/// Relative accuracy at which equalities of the schedule's real numbers count: a ρ of 0.1 is not exactly a double, and
/// `B ρ √j = 2√d` should hold with it if it holds with one tenth. Privacy does not depend on it: the noise is calibrated for
/// the resulting batches.
const TIE: f64 = 1e-14;

/// The step sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum SnowballSteps {
    /// `η = D/(L√(2T))` throughout (Theorem 3.5). Its bound is the smaller one for fewer than about 10^12 updates.
    #[default]
    Constant,
    /// Halved from phase to phase, each phase half as long (Theorem 3.6, after Jain, Nagaraj and Netrapalli 2019): no
    /// logarithm in the bound.
    Halving,
}

/// A schedule of `updates` steps.
///
/// # Formula
/// ```text
/// Constant   η_t = D/(L√(2T))
/// Halving    η_t = D/(L√(2T)) 2^-i  for T_i < t <= T_{i+1},   T_i = T - ⌈T 2^-i⌉ (i = 0..l),  T_{l+1} = T,  l = ⌈log₂ T⌉
/// B_t = ⌈√κ η_t / (ρ √(Σ_{s >= t} η_s²))⌉,   κ = d (G/L)²
/// ```
/// With noise of standard deviation `σ = L/√d` on each mean gradient, batches of these sizes cost the last iterate `ρ`:
/// `η_t G/B_t <= ρ σ √(Σ_{s >= t} η_s²)`. `κ = 4d` corresponds to the papers' `G = 2L`. The batches grow towards the end; for
/// halving steps they drop at the end of a phase.
///
/// # Examples
/// ```
/// use dp_optim::recipes::snowball_sgd::{Snowball, SnowballSteps};
/// let snowball = Snowball::new(SnowballSteps::Constant, 50)?;
/// let batches = snowball.batch_sizes(4.0 * 784.0, 1.0)?;
/// assert_eq!((batches[0], batches[49], batches.iter().sum::<u64>()), (8, 56, 736));
/// # Ok::<(), dp_optim::Error>(())
/// ```
///
/// # References
/// Feldman, Koren, Talwar 2020, Theorems 3.5 and 3.6, arXiv 2005.04763; Jain, Nagaraj, Netrapalli, "Making the last
/// iterate of SGD information theoretically optimal", COLT 2019.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snowball {
    steps: SnowballSteps,
    updates: u64,
}

impl Snowball {
    /// Creates a schedule of `updates` steps.
    ///
    /// # Errors
    /// No updates, or more than 2^25.
    pub fn new(steps: SnowballSteps, updates: u64) -> Result<Self, Error> {
        if !(1..=MOST_UPDATES).contains(&updates) {
            return Err(Error::Count { name: "updates", value: updates, range: "1 or more, and at most 2^25" });
        }
        Ok(Self { steps, updates })
    }

    /// Returns T, the number of updates.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns `T_0 = 0, T_1, ..`, the numbers of updates after which the phases end.
    pub fn boundaries(&self) -> Vec<u64> {
        match self.steps {
            SnowballSteps::Constant => vec![0, self.updates],
            SnowballSteps::Halving => {
                let last = self.updates.next_power_of_two().trailing_zeros();
                let end = |i: u32| self.updates - self.updates.div_ceil(1 << i);
                (0..=last).map(end).chain([self.updates]).collect()
            }
        }
    }

    /// Returns `D/(L√(2T))`, the step size of the first update.
    pub fn first_step(&self, lipschitz: f64, distance: f64) -> f64 {
        distance / (lipschitz * (2.0 * self.updates as f64).sqrt())
    }

    /// Returns the smallest batches, one for each update, at which noise of `L/√d` costs `rho`; `weight` is `κ`.
    ///
    /// # Errors
    /// Parameters that are not positive and finite; batches beyond 2^53.
    pub fn batch_sizes(&self, weight: f64, rho: f64) -> Result<Vec<u64>, Error> {
        positive("weight of the batches", weight)?;
        positive("rho", rho)?;
        let mut batches = vec![0; self.updates as usize];
        let boundaries = self.boundaries();
        // Σ_{s >= t} η_s² in units of η_t².
        let mut ahead = 0.0;
        for phase in boundaries.windows(2).rev() {
            for t in (phase[0]..phase[1]).rev() {
                ahead += 1.0;
                batches[t as usize] = least_batch(weight, rho, ahead)?;
            }
            // The previous phase has steps of twice the length.
            ahead /= 4.0;
        }
        Ok(batches)
    }

    /// Returns the updates with their step sizes, with consecutive equal ones combined.
    pub(super) fn runs(&self, batches: &[u64], first_step: f64) -> Vec<Updates> {
        let mut step = first_step;
        let mut runs: Vec<Updates> = Vec::new();
        for phase in self.boundaries().windows(2) {
            for &batch_size in batches.get(phase[0] as usize..phase[1] as usize).unwrap_or_default() {
                match runs.last_mut() {
                    Some(last) if last.batch_size == batch_size && last.step == step => last.count += 1,
                    _ => runs.push(Updates { count: 1, batch_size, step }),
                }
            }
            step /= 2.0;
        }
        runs
    }

    /// Returns the longest schedule whose batches fit into `n` records, and the number of records that it uses.
    ///
    /// For halving steps, whose totals need not grow with every update, it is the longest one that bisection finds.
    ///
    /// # Errors
    /// As [`batch_sizes`](Self::batch_sizes), and fewer records than a single update takes.
    ///
    /// # Examples
    /// ```
    /// use dp_optim::recipes::snowball_sgd::{Snowball, SnowballSteps};
    /// let (snowball, used) = Snowball::longest(SnowballSteps::Constant, 10_000, 4.0 * 50.0, 0.1)?;
    /// assert_eq!((snowball.updates(), used), (1156, 9999));
    /// # Ok::<(), dp_optim::Error>(())
    /// ```
    pub fn longest(steps: SnowballSteps, n: u64, weight: f64, rho: f64) -> Result<(Self, u64), Error> {
        positive("weight of the batches", weight)?;
        positive("rho", rho)?;
        let most = n.min(MOST_UPDATES);
        let (updates, used) = match steps {
            // The batch of the j-th last update depends on j alone.
            SnowballSteps::Constant => {
                let (mut updates, mut used) = (0, 0u64);
                while updates < most {
                    let batch = least_batch(weight, rho, (updates + 1) as f64)?;
                    if used.saturating_add(batch) > n {
                        break;
                    }
                    (updates, used) = (updates + 1, used + batch);
                }
                (updates, used)
            }
            SnowballSteps::Halving => {
                let total = |updates: u64| -> Result<u64, Error> {
                    let batches = Self { steps, updates }.batch_sizes(weight, rho)?;
                    Ok(batches.iter().fold(0, |sum, &batch| sum.saturating_add(batch)))
                };
                let (mut low, mut high) = (0, most + 1);
                let mut used = 0;
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    match total(middle)? {
                        all if all <= n => (low, used) = (middle, all),
                        _ => high = middle,
                    }
                }
                (low, used)
            }
        };
        if updates == 0 {
            return Err(Error::Count {
                name: "number of records",
                value: n,
                range: "at least the size of one batch: a larger budget or fewer features need fewer",
            });
        }
        Ok((Self { steps, updates }, used))
    }

    /// Bounds the expected excess of the population loss, `E F(w_T) - min F`, for L-Lipschitz convex losses with smoothness at
    /// most `2/η_1`, with `D` a bound on the distance from the start to the minimiser.
    ///
    /// # Formula
    /// ```text
    /// Constant   (√2 D L/(2√T)) (T/(T+1) + 1 + H_T),   H_T = 1 + 1/2 + .. + 1/T
    /// Halving    15 √2 D L/√T
    /// ```
    ///
    /// # References
    /// The first from Shamir and Zhang 2013, Theorem 2, with gradients of second moment `2L²` (half of it the noise's); the
    /// second is Feldman, Koren, Talwar 2020, Theorem 3.6.
    pub fn excess_loss(&self, lipschitz: f64, distance: f64) -> f64 {
        let t = self.updates as f64;
        let unit = 2f64.sqrt() * distance * lipschitz / t.sqrt();
        match self.steps {
            SnowballSteps::Constant => unit / 2.0 * (t / (t + 1.0) + 1.0 + harmonic(self.updates)),
            SnowballSteps::Halving => 15.0 * unit,
        }
    }

    /// Returns the bound as the paper states it: `√2 D L (2 + ln T)/√T` for constant steps.
    pub fn excess_loss_of_the_paper(&self, lipschitz: f64, distance: f64) -> f64 {
        match self.steps {
            SnowballSteps::Constant => {
                let t = self.updates as f64;
                2f64.sqrt() * distance * lipschitz * (2.0 + t.ln()) / t.sqrt()
            }
            SnowballSteps::Halving => self.excess_loss(lipschitz, distance),
        }
    }
}

/// Returns `H_T`, summed from the smallest term.
fn harmonic(terms: u64) -> f64 {
    (1..=terms).rev().map(|i| 1.0 / i as f64).sum()
}

/// Returns the least `B` with `B² ρ² ahead >= weight`.
fn least_batch(weight: f64, rho: f64, ahead: f64) -> Result<u64, Error> {
    let guess = (weight / ahead).sqrt() / rho;
    if !(guess < 9e15) {
        return Err(Error::OutOfRange {
            name: "rho",
            value: rho,
            range: "the range in which batches have fewer than 2^53 records",
        });
    }
    let enough = |batch: f64| batch * batch * (rho * rho) * ahead >= weight * (1.0 - TIE);
    let mut batch = guess.ceil().max(1.0);
    while batch > 1.0 && enough(batch - 1.0) {
        batch -= 1.0;
    }
    // The tolerance of the comparison exceeds the rounding of the estimate.
    debug_assert!(enough(batch));
    Ok(batch as u64)
}
