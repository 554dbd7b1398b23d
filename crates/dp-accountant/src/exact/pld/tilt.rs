//! Exponential tilts of laws on a grid, and the tilt at which a composition's delta is best computed.

use super::lattice::Masses;
use crate::work;

/// The tilted masses `m_k e^(tilt (k - reference)) / total`, with the values for undoing the tilt.
#[derive(Debug, Clone)]
pub(super) struct Tilted {
    /// The loss, in steps, at which the tilt factor is 1.
    pub(super) reference: i64,
    /// `ln total`.
    pub(super) log_total: f64,
    /// Tilted masses, of sum 1, from the law's first loss on.
    pub(super) masses: Vec<f64>,
    /// Bound on the sum of the masses' rounding errors, and on the error of `log_total`.
    pub(super) error: f64,
}

/// Least exponent: smaller exponentials are 0, and slow to compute.
const LEAST_EXPONENT: f64 = -746.0;

/// Largest safe exponent: larger ones could overflow and are taken relative to the largest term.
const SAFE_EXPONENT: f64 = 300.0;

impl Tilted {
    /// Tilts the finite masses by `e^(tilt k)`; `None` if there are none.
    pub(super) fn new(law: &Masses, tilt: f64) -> Option<Self> {
        let reference = reference(law, tilt)?;
        let mut total = crate::logspace::CompensatedSum::default();
        let mut error = 0.0;
        let mut masses: Vec<f64> = (law.first..)
            .zip(&law.finite)
            .map(|(k, mass)| {
                let exponent = tilt * (k - reference) as f64;
                let tilted = if *mass > 0.0 && !(exponent < LEAST_EXPONENT) { mass * exponent.exp() } else { 0.0 };
                total.add(tilted);
                // The product's rounding in the exponent, the exponential's and the product's.
                error += tilted * (2.0 + exponent.abs());
                tilted
            })
            .collect();
        let total = total.value();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        masses.iter_mut().for_each(|mass| *mass /= total);
        // Underflow loses at most 1e-300 for each of the masses.
        let error = f64::EPSILON * (error / total + 4.0) + 1e-300 * masses.len() as f64 / total;
        Some(Self { reference, log_total: total.ln(), masses, error })
    }
}

/// Returns the loss at which the tilt factor is 1: zero, or, if that overflows, the loss of the largest tilted mass.
fn reference(law: &Masses, tilt: f64) -> Option<i64> {
    let last = law.first + law.finite.len() as i64;
    if tilt * law.first.unsigned_abs().max(last.unsigned_abs()) as f64 <= SAFE_EXPONENT {
        return Some(0);
    }
    let weight = |(k, mass): (i64, &f64)| (k, mass.ln() + tilt * k as f64);
    (law.first..)
        .zip(&law.finite)
        .filter(|(_, mass)| **mass > 0.0)
        .map(weight)
        .max_by(|left, right| left.1.total_cmp(&right.1))
        .map(|(k, _)| k)
}

/// `ln E e^(tilt K)`, and the tilted mean and variance of `K`, over the finite masses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cumulants {
    pub(super) log_moment: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// Charges the work of the cumulants of one law.
pub(super) fn charge(law: &Masses) {
    work::charge(15.0 * law.finite.len() as f64);
}

impl Cumulants {
    /// Returns the cumulants of all parts together, each with its count.
    pub(super) fn of<'a>(parts: impl Iterator<Item = (&'a Masses, f64)>, tilt: f64) -> Option<Self> {
        let mut sum = Self::default();
        for (law, count) in parts {
            charge(law);
            let reference = reference(law, tilt)?;
            let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
            for (k, mass) in (law.first..).zip(&law.finite).filter(|(_, mass)| **mass > 0.0) {
                let distance = (k - reference) as f64;
                let exponent = tilt * distance;
                if exponent < LEAST_EXPONENT {
                    continue;
                }
                let tilted = mass * exponent.exp();
                total += tilted;
                first += tilted * distance;
                second += tilted * distance * distance;
            }
            let mean = first / total;
            sum.log_moment += count * (total.ln() + tilt * reference as f64);
            sum.mean += count * (mean + reference as f64);
            sum.variance += count * (second / total - mean * mean).max(0.0);
        }
        (sum.log_moment.is_finite() && sum.mean.is_finite()).then_some(sum)
    }
}

impl Cumulants {
    /// Returns the cumulants of a loss larger by `offset` steps, at `tilt`.
    pub(super) fn moved(self, offset: f64, tilt: f64) -> Self {
        Self { log_moment: self.log_moment + tilt * offset, mean: self.mean + offset, ..self }
    }
}

/// The quantity computed from a composition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::exact) enum Question {
    /// Delta at this epsilon; its logarithm is at most the second number.
    DeltaAt(f64, f64),
    /// Epsilon for a logarithm of delta between these two: the upper end for the first, the lower end for the second.
    EpsilonAt(f64, f64),
}

impl Question {
    /// Returns the ends of a result of which nothing is known.
    pub(in crate::exact) const fn trivial(self) -> (f64, f64) {
        match self {
            Self::DeltaAt(..) => (f64::NEG_INFINITY, 0.0),
            Self::EpsilonAt(..) => (0.0, f64::INFINITY),
        }
    }
}

/// A tilt, per unit of loss, with the estimated point of the curve that it suits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Saddle {
    /// The exponent c of `e^(c L)`.
    pub(super) tilt: f64,
    /// Epsilon, estimated.
    pub(super) epsilon: f64,
    /// The logarithm of delta, estimated.
    pub(super) log_delta: f64,
    /// Variance of the tilted total loss.
    pub(super) variance: f64,
}

/// Number of bisections of the search for a tilt, which need not be exact.
const BISECTIONS: u32 = 36;

impl Saddle {
    /// Returns the tilt at which the integrand of the inverse Laplace transform is least, and the saddle-point estimate there.
    ///
    /// With `K(c)` the total's cumulant function, the minimum of `K(c) - c epsilon - ln c(c + 1)` is at `epsilon = K'(c) - 1/c -
    /// 1/(c + 1)`, which grows with c; the estimate of delta is the integrand there over `sqrt(2 pi K'')`.
    pub(super) fn find(cumulants: impl Fn(f64) -> Option<Cumulants>, step: f64, question: Question) -> Option<Self> {
        let at = |log_tilt: f64| -> Option<Self> {
            let tilt = log_tilt.exp();
            let Cumulants { log_moment, mean, variance } = cumulants(tilt * step)?;
            let poles = 1.0 / tilt + 1.0 / (tilt + 1.0);
            let epsilon = mean * step - poles;
            let variance = variance * step * step;
            let curvature = variance + 1.0 / (tilt * tilt) + 1.0 / ((tilt + 1.0) * (tilt + 1.0));
            let log_delta = log_moment
                - tilt * epsilon
                - (tilt * (tilt + 1.0)).ln()
                - 0.5 * (2.0 * core::f64::consts::PI * curvature).ln();
            Some(Self { tilt, epsilon, log_delta, variance })
        };
        let too_small = |saddle: &Self| match question {
            Question::DeltaAt(epsilon, _) => saddle.epsilon < epsilon,
            // Epsilon is never negative.
            Question::EpsilonAt(log_delta, _) => saddle.epsilon < 0.0 || saddle.log_delta > log_delta,
        };
        // About one over the standard deviation is right for a delta that is not small.
        let untilted = cumulants(0.0)?;
        let is_constant = untilted.variance == 0.0;
        let start = if is_constant { 0.0 } else { -0.5 * (untilted.variance * step * step + 1e-300).ln() };
        // No tilt moves the mean of a single loss.
        let (mut low, mut high) = if is_constant { (start, start) } else { (start - 12.0, start + 1.0) };
        while !is_constant && high < start + 40.0 && at(high).is_some_and(|saddle| too_small(&saddle)) {
            low = high;
            high += 2.0;
        }
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if at(middle).is_some_and(|saddle| too_small(&saddle)) {
                low = middle;
            } else {
                high = middle;
            }
            if high - low < 1e-3 {
                break;
            }
        }
        at(low).map(|saddle| match question {
            Question::DeltaAt(epsilon, most) => Self { epsilon, log_delta: saddle.log_delta.min(most), ..saddle },
            Question::EpsilonAt(log_delta, _) => Self { epsilon: saddle.epsilon.max(0.0), log_delta, ..saddle },
        })
    }

    /// Returns the saddle at a smaller tilt, which is sound and loses precision instead of needing a longer window.
    pub(super) fn eased(self, cumulants: impl Fn(f64) -> Option<Cumulants>, step: f64) -> Option<Self> {
        self.at_tilt(self.tilt * 0.8, cumulants, step)
    }

    /// Returns the saddle at another tilt.
    pub(super) fn at_tilt(self, tilt: f64, cumulants: impl Fn(f64) -> Option<Cumulants>, step: f64) -> Option<Self> {
        let Cumulants { variance, .. } = cumulants(tilt * step)?;
        Some(Self { tilt, variance: variance * step * step, ..self })
    }

    /// Returns the logarithm of the ratio of the Chernoff bound at this tilt to delta.
    pub(super) fn log_loss(&self, cumulants: impl Fn(f64) -> Option<Cumulants>, step: f64) -> f64 {
        cumulants(self.tilt * step)
            .map_or(f64::INFINITY, |found| found.log_moment - self.tilt * self.epsilon - self.log_delta)
    }
}
