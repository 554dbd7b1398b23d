//! The common part of the releases of both integer mechanisms: noise drawn before the value is read, and sums that saturate at
//! the ends of 64-bit integers.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog};

use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::{Norm, Sensitivity};

/// One integer, or a vector of them.
pub(crate) trait Integers: Sized {
    /// Returns the number of integers.
    fn count(&self) -> usize;

    /// Adds the noise to each integer; see [`saturating_sum`].
    fn add(self, noise: Vec<i128>) -> Self;
}

impl Integers for i64 {
    fn count(&self) -> usize {
        1
    }

    fn add(self, noise: Vec<i128>) -> Self {
        noise.into_iter().fold(self, saturating_sum)
    }
}

impl Integers for Vec<i64> {
    fn count(&self) -> usize {
        self.len()
    }

    fn add(mut self, noise: Vec<i128>) -> Self {
        for (value, noise) in self.iter_mut().zip(noise) {
            *value = saturating_sum(*value, noise);
        }
        self
    }
}

/// Returns the sum, or the end of the range of `i64` beyond which it lies.
///
/// It depends on value and noise only through their exact sum, so it is post-processing of the ideal release.
fn saturating_sum(value: i64, noise: i128) -> i64 {
    // Noise near the ends of `i128` saturates here first, which gives the same final result as the exact sum.
    let sum = i128::from(value).saturating_add(noise);
    sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// Opens bounded integers, adds noise and logs the cost. All noise is drawn before the first integer is read, and none outlives
/// the call.
///
/// # Errors
/// Those of [`Mechanism::release`](crate::Mechanism::release), and [`Error::DimensionMismatch`] if `dim` is given and is not the
/// number of integers; in these cases nothing is logged.
pub(crate) fn release<V: Integers, N: Norm, A: Adjacency, R: ReleaseRng + ?Sized>(
    input: Bounded<V, A, N>,
    built_for: Sensitivity<N, A>,
    dim: Option<u64>,
    event: DpEvent,
    log: &mut EventLog<A>,
    rng: &mut R,
    mut draw: impl FnMut(&mut R) -> Result<i128, Error>,
) -> Result<Released<V>, Error> {
    let cost = Cost { event, noise: NoiseMode::Exact, assumptions: Vec::new() };
    release::bounded(input, built_for, cost, log, rng, |value, rng| {
        let count = value.count();
        let found = dimension(count as u64)?;
        match dim {
            Some(expected) if expected != found => return Err(Error::DimensionMismatch { expected, found }),
            _ => {}
        }
        let noise = (0..count).map(|_| draw(rng)).collect::<Result<Vec<_>, _>>()?;
        Ok(value.add(noise))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_ends() {
        assert_eq!(saturating_sum(i64::MAX, 1), i64::MAX);
        assert_eq!(saturating_sum(i64::MIN, -1), i64::MIN);
        assert_eq!(saturating_sum(i64::MIN, i128::MIN), i64::MIN);
        assert_eq!(saturating_sum(i64::MAX, i128::MAX), i64::MAX);
        assert_eq!(saturating_sum(i64::MIN, i128::MAX), i64::MAX);
        assert_eq!(saturating_sum(i64::MAX, i128::from(i64::MIN) * 2), i64::MIN);
        assert_eq!(saturating_sum(i64::MIN, i128::from(i64::MAX)), -1);
        assert_eq!(saturating_sum(5, -7), -2);
    }

    #[test]
    fn vectors_add_by_coordinate() {
        assert_eq!(vec![1i64, 2, 3].add(vec![10, -20, 0]), [11, -18, 3]);
        assert_eq!(7i64.add(vec![-3]), 4);
    }
}
