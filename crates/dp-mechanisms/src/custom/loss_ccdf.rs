//! A privacy loss given by the tails of its law, on a grid of losses.

use super::FinitePair;
use crate::error::Error;

/// Maximum number of losses of a table.
const MOST_LOSSES: usize = 1 << 20;

/// Upper bounds on the tails of the privacy loss at some losses, in both orders of a pair of neighbours.
///
/// # Formula
/// ```text
/// L(y) = ln( P(y) / Q(y) ),  P and Q the output's laws with the record and without
/// above[i]          >=  P( L > losses[i] )
/// above_reversed[i] >=  Q( -L > losses[i] )       0 = losses[0] < losses[1] < ...
/// ```
/// Under the symmetric relations every pair of neighbours occurs in both orders: each list then bounds both tails.
///
/// # Privacy
/// It is converted to a [dominating pair](Self::dominating_pair) by rounding upwards: a loss between two of the table counts as
/// the upper one, and beyond the last as infinite. So composing `k` releases adds at most `k` steps of the table to epsilon, and
/// `k` times the last tail to delta.
///
/// # Examples
/// A Gaussian by its loss, `N(mu²/2, mu²)` in both orders:
/// ```
/// use dp_accountant::{Delta, bound};
/// use dp_mechanisms::custom::{Claim, LossCcdf};
/// # use statrs::distribution::{ContinuousCDF, Normal};
/// # let standard = Normal::standard();
/// let mu = 0.5;
/// let tail = |t: f64| standard.sf(t / mu - mu / 2.0);
/// let claim = Claim::from(LossCcdf::tabulate(0.002, 5.0, tail, tail)?);
/// let delta = Delta::new(1e-5)?;
/// let epsilon = bound::epsilon(&claim.event()?, delta)?.value;
/// let exact = bound::epsilon(&Claim::Gdp(mu).event()?, delta)?.value;
/// assert!(epsilon >= exact && epsilon < exact + 0.002);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// S. Meiser, E. Mohammadi, "Tight on budget? Tight bounds for r-fold approximate differential privacy", 2018.
/// A. Koskela, J. Jälkö, A. Honkela, "Computing tight differential privacy guarantees using FFT", 2020, arXiv 1906.03049.
#[derive(Debug, Clone, PartialEq)]
pub struct LossCcdf {
    losses: Vec<f64>,
    above: Vec<f64>,
    above_reversed: Vec<f64>,
}

impl LossCcdf {
    /// Checks a table. A tail that is larger than an earlier one is replaced by the earlier one, which bounds it.
    ///
    /// # Errors
    /// [`Error::Length`] unless the lists are of equal length, from 1 to 2^20; [`Error::OutOfRange`] unless losses are
    /// finite, increase and start at 0, and tails lie in `[0, 1]`.
    pub fn new(losses: Vec<f64>, above: Vec<f64>, above_reversed: Vec<f64>) -> Result<Self, Error> {
        if !(1..=MOST_LOSSES).contains(&losses.len()) {
            return Err(Error::Length { name: "losses", found: losses.len(), expected: "1..=2^20" });
        }
        for (name, tails) in [("above", &above), ("above_reversed", &above_reversed)] {
            if tails.len() != losses.len() {
                return Err(Error::Length { name, found: tails.len(), expected: "as many as losses" });
            }
            if let Some(&value) = tails.iter().find(|tail| !(0.0..=1.0).contains(*tail)) {
                return Err(Error::OutOfRange { name: "tail of the privacy loss", value, range: "[0, 1]" });
            }
        }
        let range = "0 first, then increasing and finite";
        let increases = |pair: &&[f64]| !(pair[0] < pair[1] && pair[1].is_finite());
        if losses[0] != 0.0 {
            return Err(Error::OutOfRange { name: "loss", value: losses[0], range });
        }
        if let Some(pair) = losses.windows(2).find(increases) {
            return Err(Error::OutOfRange { name: "loss", value: pair[1], range });
        }
        Ok(Self { losses, above: falling(above), above_reversed: falling(above_reversed) })
    }

    /// Creates the table of two functions at the multiples of `step` up to the first that is at least `largest`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `step` and `largest` are positive with at most 2^20 - 1 steps, and those of
    /// [`new`](Self::new).
    pub fn tabulate(
        step: f64,
        largest: f64,
        above: impl Fn(f64) -> f64,
        above_reversed: impl Fn(f64) -> f64,
    ) -> Result<Self, Error> {
        if !(step > 0.0 && step.is_normal()) {
            return Err(Error::OutOfRange { name: "step", value: step, range: "(0, inf), normal" });
        }
        let steps = (largest / step).ceil();
        if !(largest > 0.0 && steps < MOST_LOSSES as f64) {
            let range = "(0, 2^20 - 1] times the step";
            return Err(Error::OutOfRange { name: "largest loss", value: largest, range });
        }
        let losses: Vec<f64> = (0..=steps as u32).map(|i| f64::from(i) * step).collect();
        let above = losses.iter().map(|&loss| above(loss)).collect();
        let above_reversed = losses.iter().map(|&loss| above_reversed(loss)).collect();
        Self::new(losses, above, above_reversed)
    }

    /// Returns the losses of the table.
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// Returns a pair that dominates every pair of laws with at most these tails.
    ///
    /// # Formula
    /// ```text
    /// outcome                   p                                q
    /// infinite loss             above[n]                         0
    /// loss losses[i], i >= 1    above[i-1] - above[i]            p exp(-losses[i])
    /// loss -losses[i], i >= 1   q exp(-losses[i])                above_reversed[i-1] - above_reversed[i]
    /// infinite negative loss    0                                above_reversed[n]
    /// the rest                  what is left of 1                what is left of 1
    /// ```
    ///
    /// # Privacy
    /// For `t >= 0` the hockey-stick divergence `E_P[ max(0, 1 - e^(t - L)) ]` is the mean of a function that grows with `L` and
    /// is 0 for `L <= t`, so it depends on positive losses only. The table's law of positive losses is larger than that of `L` in
    /// the stochastic order, so its divergence is no smaller, and further outcomes only increase it. The same holds for the
    /// reversed order, whose positive losses are the negative ones here. Divergences of both orders at `t >= 0` are the
    /// divergences of one order at every real `t`. If the bounds are so loose that the remaining probability is negative, the
    /// probability that the *other* law gives an outcome is reduced, which makes its loss worse.
    pub fn dominating_pair(&self) -> FinitePair {
        let forward = Tails::new(&self.losses, &self.above);
        let reversed = Tails::new(&self.losses, &self.above_reversed);
        let outcomes = 2 * self.losses.len() + 1;
        let (mut p, mut q) = (Vec::with_capacity(outcomes), Vec::with_capacity(outcomes));
        forward.write(1.0 - self.above_reversed[0], &mut p, &mut q);
        reversed.write(1.0 - self.above[0], &mut q, &mut p);
        // The rest: an outcome of nearly equal probabilities, if the previous outcomes leave some.
        let left = |masses: &[f64]| (1.0 - masses.iter().sum::<f64>()).max(0.0);
        let (left_p, left_q) = (left(&p), left(&q));
        p.push(left_p);
        q.push(left_q);
        FinitePair::unchecked(p, q)
    }
}

/// Returns the running minimum: a tail does not increase.
pub(super) fn falling(mut tails: Vec<f64>) -> Vec<f64> {
    let mut least = 1.0;
    for tail in &mut tails {
        *tail = tail.min(least) + 0.0; // -0.0 becomes 0.0
        least = *tail;
    }
    tails
}

/// The positive losses of one order: masses under the law that gives them, and at most as much under the other.
struct Tails {
    infinite: f64,
    masses: Vec<(f64, f64)>,
    total_of_other: f64,
}

impl Tails {
    fn new(losses: &[f64], tails: &[f64]) -> Self {
        let mut masses = Vec::with_capacity(losses.len());
        let mut total_of_other = 0.0;
        for (i, &loss) in losses.iter().enumerate().skip(1) {
            let mass = difference_up(tails[i - 1], tails[i]);
            if mass > 0.0 {
                // Rounded down twice, by more than the errors of product and exponential.
                let other = mass * (-loss).exp() * (1.0 - 8.0 * f64::EPSILON);
                total_of_other += other;
                masses.push((mass, other));
            }
        }
        Self { infinite: tails.last().copied().unwrap_or(1.0), masses, total_of_other }
    }

    /// Appends the outcomes; the other law has at most the mass `room` for them.
    fn write(&self, room: f64, own: &mut Vec<f64>, other: &mut Vec<f64>) {
        let fits = if self.total_of_other > room { room / self.total_of_other } else { 1.0 };
        own.push(self.infinite);
        other.push(0.0);
        for &(mass, other_mass) in &self.masses {
            own.push(mass);
            other.push(other_mass * fits);
        }
    }
}

/// Returns `larger - smaller`, rounded up; both in `[0, 1]`.
fn difference_up(larger: f64, smaller: f64) -> f64 {
    let difference = larger - smaller;
    // Exact error of the difference (Dekker): larger >= smaller >= 0.
    let error = (larger - difference) - smaller;
    if error > 0.0 { difference.next_up() } else { difference }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with exact differences, in whole numbers of `2^-(53 + shift)`.
        #[test]
        fn differences_are_rounded_up(larger in 0u64..=1 << 53, smaller in 0u64..=1 << 53, shift in 0u32..60) {
            let unit = 2f64.powi(-53 - shift as i32);
            let exact = (u128::from(larger) << shift).checked_sub(smaller.into());
            prop_assume!(exact.is_some());
            let found = difference_up(larger as f64 * 2f64.powi(-53), smaller as f64 * unit);
            // Below 2^113 of these units; a double that is a whole number of them.
            prop_assert!((found / unit) as u128 >= exact.unwrap());
            prop_assert!(((found.next_down() / unit) as u128) < exact.unwrap().max(1));
        }
    }
}
