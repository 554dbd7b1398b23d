//! Step-size schedules: a step size for each update, counted from 1 over all passes.

use crate::error::{Error, non_negative, positive};

/// The step size of each update. Public: it must not depend on the data.
///
/// # Formula
/// With `t = 1, 2, ...` the number of the update (not of the example), over all passes:
/// ```text
/// Constant        η_t = step
/// InverseSqrt     η_t = step / √t
/// Decreasing      η_t = 2 / (β (t + m^c))
/// SquareRoot      η_t = 2 / (β (√t + m^c))
/// StronglyConvex  η_t = min(1/β, 1/(γ t))
/// Steps           η_t = values[t - 1]
/// PerPass         η_t = step / ⌈t/u⌉
/// PerDrawnPass    η_t = step / (1 + ⌊(t - 1) b/n⌋)
/// Restarted       η_t as `schedule` has it for t = ((t - 1) mod every) + 1
/// ```
/// with `β = smoothness`, `γ = strong_convexity`, `m = examples`, `c = power` in [0, 1), `u = updates_per_pass`,
/// `b = batch_size`, `n = examples`. `Restarted` is used with [`Averaging::Restarts`](crate::Averaging::Restarts), which
/// restarts the iterate.
///
/// # Examples
/// ```
/// use dp_optim::Schedule;
/// let schedule = Schedule::StronglyConvex { smoothness: 0.5, strong_convexity: 0.1 };
/// let steps = schedule.prepare(30)?;
/// assert_eq!(steps.at(1), 2.0); // 1/β: 1/(γ t) would be 10
/// assert_eq!(steps.at(20), 0.5); // 1/(γ t)
/// # Ok::<(), dp_optim::Error>(())
/// ```
///
/// # References
/// Wu, Li, Kumar, Chaudhuri, Jha, Naughton, "Bolt-on differential privacy for scalable stochastic gradient descent-based
/// analytics", SIGMOD 2017, section 3.2 (here `t` counts updates also if batches hold several examples: see
/// [`as_published`](crate::growth::as_published)).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Schedule {
    /// The same step at every update.
    Constant {
        /// The step size.
        step: f64,
    },
    /// `step / √t`.
    InverseSqrt {
        /// The first step size.
        step: f64,
    },
    /// `2 / (β (t + m^c))`.
    Decreasing {
        /// Smoothness β.
        smoothness: f64,
        /// Number of examples m.
        examples: f64,
        /// Exponent c in [0, 1).
        power: f64,
    },
    /// `2 / (β (√t + m^c))`.
    SquareRoot {
        /// Smoothness β.
        smoothness: f64,
        /// Number of examples m.
        examples: f64,
        /// Exponent c in [0, 1).
        power: f64,
    },
    /// `min(1/β, 1/(γ t))`.
    StronglyConvex {
        /// Smoothness β.
        smoothness: f64,
        /// Strong convexity γ.
        strong_convexity: f64,
    },
    /// An explicit list, one step size per update.
    Steps {
        /// The step sizes.
        values: Vec<f64>,
    },
    /// `step / h` in pass h, counted from 1.
    PerPass {
        /// The step size of the first pass.
        step: f64,
        /// Updates per pass u.
        updates_per_pass: u64,
    },
    /// Another schedule, restarted at regular intervals.
    Restarted {
        /// Number of updates between restarts.
        every: u64,
        /// The schedule of each stretch.
        schedule: Box<Schedule>,
    },
    /// `step` divided by the number of the pass, for drawn batches: constant over the updates that process as many examples as
    /// there are.
    PerDrawnPass {
        /// The step size of the first pass.
        step: f64,
        /// Examples of an update, at least 1.
        batch_size: u64,
        /// Number of examples, at least 1.
        examples: u64,
    },
}

impl Schedule {
    /// Returns the constant `1/√T` for `T` updates, the default of recipes with noise in every step.
    pub fn usual(updates: u64) -> Self {
        Self::Constant { step: 1.0 / (updates as f64).sqrt() }
    }

    /// Checks the parameters and precomputes values that are constant over the run.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a parameter outside its range, [`Error::Length`] for a list shorter or longer than
    /// `updates`.
    pub fn prepare(&self, updates: u64) -> Result<StepSizes, Error> {
        let offset = |examples: f64, power: f64| -> Result<f64, Error> {
            positive("schedule examples", examples)?;
            if !(0.0..1.0).contains(&power) {
                return Err(Error::OutOfRange { name: "schedule power", value: power, range: "[0, 1)" });
            }
            Ok(examples.powf(power))
        };
        let rule = match self {
            Self::Constant { step } => Rule::Constant(positive("step size", *step)?),
            Self::InverseSqrt { step } => Rule::InverseSqrt(positive("step size", *step)?),
            Self::Decreasing { smoothness, examples, power } => Rule::Decreasing {
                twice_over_smoothness: 2.0 / positive("schedule smoothness", *smoothness)?,
                offset: offset(*examples, *power)?,
            },
            Self::SquareRoot { smoothness, examples, power } => Rule::SquareRoot {
                twice_over_smoothness: 2.0 / positive("schedule smoothness", *smoothness)?,
                offset: offset(*examples, *power)?,
            },
            Self::StronglyConvex { smoothness, strong_convexity } => Rule::StronglyConvex {
                cap: 1.0 / positive("schedule smoothness", *smoothness)?,
                inverse: 1.0 / positive("schedule strong convexity", *strong_convexity)?,
            },
            Self::Steps { values } => {
                if values.len() as u64 != updates {
                    return Err(Error::Length { name: "the list of steps", found: values.len() as u64, updates });
                }
                for &value in values {
                    non_negative("step size", value)?;
                }
                Rule::Steps(values.clone())
            }
            Self::PerDrawnPass { step, batch_size, examples } => {
                for (name, value) in [("batch size", *batch_size), ("schedule examples", *examples)] {
                    if value == 0 {
                        return Err(Error::Count { name, value, range: "1 or more" });
                    }
                }
                Rule::PerDrawnPass { step: positive("step size", *step)?, batch_size: *batch_size, examples: *examples }
            }
            Self::PerPass { updates_per_pass: 0, .. } => {
                return Err(Error::Count { name: "updates per pass", value: 0, range: "1 or more" });
            }
            Self::PerPass { step, updates_per_pass } => {
                Rule::PerPass { step: positive("step size", *step)?, updates_per_pass: *updates_per_pass }
            }
            Self::Restarted { every: 0, .. } => {
                return Err(Error::Count { name: "updates between restarts", value: 0, range: "1 or more" });
            }
            Self::Restarted { every, schedule } => {
                let stretch = schedule.prepare((*every).min(updates))?;
                // A run within one stretch never restarts.
                if *every >= updates {
                    stretch.rule
                } else {
                    Rule::Restarted { every: *every, rule: stretch.rule.into() }
                }
            }
        };
        let steps = StepSizes { rule };
        // All rules except lists are largest at t = 1; a quotient may still have overflowed there.
        if !matches!(steps.rule, Rule::Steps(_) | Rule::Restarted { .. }) {
            positive("step size", steps.at(1))?;
        }
        Ok(steps)
    }
}

/// A checked [`Schedule`]: the step size of each update as a pure function of its number.
///
/// The training engine and the sensitivity read step sizes from here, so that they agree bit for bit.
#[derive(Debug, Clone, PartialEq)]
pub struct StepSizes {
    rule: Rule,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Constant(f64),
    InverseSqrt(f64),
    Decreasing { twice_over_smoothness: f64, offset: f64 },
    SquareRoot { twice_over_smoothness: f64, offset: f64 },
    StronglyConvex { cap: f64, inverse: f64 },
    Steps(Vec<f64>),
    PerPass { step: f64, updates_per_pass: u64 },
    Restarted { every: u64, rule: Box<Rule> },
    PerDrawnPass { step: f64, batch_size: u64, examples: u64 },
}

impl StepSizes {
    /// Returns the step size of update `t`, counted from 1. Beyond the end of a list it is 0.
    #[inline]
    pub fn at(&self, t: u64) -> f64 {
        self.rule.at(t)
    }

    /// Returns the step size if it is constant.
    pub(crate) fn constant(&self) -> Option<f64> {
        match self.rule {
            Rule::Constant(step) => Some(step),
            _ => None,
        }
    }

    pub(crate) fn largest(&self) -> f64 {
        self.rule.largest()
    }
}

impl Rule {
    #[inline]
    fn at(&self, t: u64) -> f64 {
        let count = t as f64;
        match self {
            Rule::Constant(step) => *step,
            Rule::InverseSqrt(step) => step / count.sqrt(),
            Rule::Decreasing { twice_over_smoothness, offset } => twice_over_smoothness / (count + offset),
            Rule::SquareRoot { twice_over_smoothness, offset } => twice_over_smoothness / (count.sqrt() + offset),
            Rule::StronglyConvex { cap, inverse } => cap.min(inverse / count),
            Rule::Steps(values) => {
                t.checked_sub(1).and_then(|i| values.get(usize::try_from(i).ok()?)).copied().unwrap_or(0.0)
            }
            Rule::PerPass { step, updates_per_pass } => step / t.div_ceil(*updates_per_pass).max(1) as f64,
            Rule::PerDrawnPass { step, batch_size, examples } => {
                let before = u128::from(t.saturating_sub(1)) * u128::from(*batch_size);
                step / (1 + before / u128::from(*examples)) as f64
            }
            Rule::Restarted { every, rule } => rule.at(t.saturating_sub(1) % every + 1),
        }
    }

    fn largest(&self) -> f64 {
        match self {
            Rule::Steps(values) => values.iter().copied().fold(0.0, f64::max),
            Rule::Restarted { rule, .. } => rule.largest(),
            _ => self.at(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_step_is_the_first() {
        for schedule in [
            Schedule::Constant { step: 0.3 },
            Schedule::InverseSqrt { step: 2.0 },
            Schedule::Decreasing { smoothness: 0.25, examples: 100.0, power: 0.5 },
            Schedule::SquareRoot { smoothness: 0.25, examples: 100.0, power: 0.5 },
            Schedule::StronglyConvex { smoothness: 0.35, strong_convexity: 0.1 },
            Schedule::PerDrawnPass { step: 0.7, batch_size: 3, examples: 20 },
        ] {
            let steps = schedule.prepare(100).unwrap();
            let largest = (1..=100).map(|t| steps.at(t)).fold(0.0, f64::max);
            assert_eq!(largest, steps.largest(), "{schedule:?}");
        }
        let steps = Schedule::Steps { values: vec![0.1, 0.4, 0.2] }.prepare(3).unwrap();
        assert_eq!(steps.largest(), 0.4);
        assert_eq!(steps.at(3), 0.2);
        let list = Schedule::Steps { values: vec![0.1, 0.4] };
        assert_eq!(Schedule::Restarted { every: 2, schedule: list.into() }.prepare(7).unwrap().largest(), 0.4);
    }

    #[test]
    fn restarts_begin_anew() {
        let per_pass = Schedule::PerPass { step: 6.0, updates_per_pass: 2 };
        let steps = |schedule: &Schedule, updates| {
            let steps = schedule.prepare(updates).unwrap();
            (1..=updates).map(|t| steps.at(t)).collect::<Vec<_>>()
        };
        assert_eq!(steps(&per_pass, 7), [6.0, 6.0, 3.0, 3.0, 2.0, 2.0, 1.5]);
        let restarted = Schedule::Restarted { every: 4, schedule: per_pass.clone().into() };
        assert_eq!(steps(&restarted, 9), [6.0, 6.0, 3.0, 3.0, 6.0, 6.0, 3.0, 3.0, 6.0]);
        // A run within one stretch has no restart.
        assert_eq!(restarted.prepare(4).unwrap(), per_pass.prepare(4).unwrap());
        let constant = Schedule::Restarted { every: 4, schedule: Schedule::Constant { step: 0.5 }.into() };
        assert_eq!(steps(&constant, 6), [0.5; 6]);
        let list = Schedule::Restarted { every: 2, schedule: Schedule::Steps { values: vec![1.0, 0.5] }.into() };
        assert_eq!(steps(&list, 5), [1.0, 0.5, 1.0, 0.5, 1.0]);
    }

    #[test]
    fn steps_per_pass_change_where_a_pass_ends() {
        let steps = Schedule::PerDrawnPass { step: 6.0, batch_size: 3, examples: 8 }.prepare(9).unwrap();
        // ⌊3k/8⌋ for k = 0, 1, ...: 0 0 0 1 1 1 2 2 3
        let expected = [6.0, 6.0, 6.0, 3.0, 3.0, 3.0, 2.0, 2.0, 1.5];
        assert_eq!((1..=9).map(|t| steps.at(t)).collect::<Vec<_>>(), expected);
        for (batch_size, examples) in [(0, 5), (5, 0)] {
            assert!(Schedule::PerDrawnPass { step: 1.0, batch_size, examples }.prepare(9).is_err());
        }
    }

    #[test]
    fn refuses_what_is_not_a_step_size() {
        for bad in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert!(Schedule::Constant { step: bad }.prepare(1).is_err(), "{bad}");
            assert!(Schedule::StronglyConvex { smoothness: bad, strong_convexity: 1.0 }.prepare(1).is_err());
        }
        let inner = Schedule::Constant { step: 1.0 };
        assert!(Schedule::Restarted { every: 0, schedule: inner.into() }.prepare(3).is_err());
        let inner = Schedule::PerPass { step: f64::NAN, updates_per_pass: 1 };
        assert!(Schedule::Restarted { every: 2, schedule: inner.into() }.prepare(3).is_err());
        assert!(Schedule::PerPass { step: 1.0, updates_per_pass: 0 }.prepare(3).is_err());
        assert!(Schedule::Steps { values: vec![0.1, f64::NAN] }.prepare(2).is_err());
        assert!(matches!(Schedule::Steps { values: vec![0.1] }.prepare(2), Err(Error::Length { .. })));
        assert!(Schedule::Decreasing { smoothness: 1.0, examples: 10.0, power: 1.0 }.prepare(1).is_err());
        assert!(Schedule::StronglyConvex { smoothness: 1e-310, strong_convexity: 1e-310 }.prepare(1).is_err());
    }
}
