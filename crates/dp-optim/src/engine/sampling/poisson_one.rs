//! Exact samples of the Poisson distribution with mean 1.

use chacha20::rand_core::Rng;

use crate::error::Error;

/// Outcomes with an explicit threshold; all larger ones together have probability below `2^-113`.
const OUTCOMES: usize = 31;

/// Bound on the error of a threshold. The series for `1/e` has 40 terms, each rounded by less than 1; a mass inherits that
/// error over `k!` and adds its own roundings, less than 2 altogether; sums of 31 masses are off by less than `40 e + 62`.
const UNCERTAIN: u128 = 256;

/// `2^128 P(N <= k)`, rounded.
const THRESHOLDS: [u128; OUTCOMES] = thresholds();

const fn thresholds() -> [u128; OUTCOMES] {
    // 1/e = 1/2! - 1/3! + 1/4! - ..., in units of 2^-128.
    let (mut inverse_e, mut term, mut i) = (0u128, 1 << 127, 2u128);
    while term > 0 {
        inverse_e = if i.is_multiple_of(2) { inverse_e + term } else { inverse_e - term };
        i += 1;
        term /= i;
    }
    let (mut values, mut mass, mut sum, mut k) = ([0; OUTCOMES], inverse_e, 0u128, 0);
    while k < OUTCOMES {
        if k > 0 {
            mass /= k as u128;
        }
        sum += mass;
        values[k] = sum;
        k += 1;
    }
    values
}

/// Draws a number with law `P(N = k) = e^(-1) / k!`.
///
/// A uniform number in [0, 1) is compared with the cumulative probabilities, digit by digit: 64 binary digits decide unless
/// they equal those of a threshold, in which case 128 do. If these do not decide either (probability below `2^-112`, treated
/// as impossible elsewhere too), the generator counts as stuck: no outcome is ever rounded.
///
/// # Errors
/// [`StuckGenerator`](dp_mechanisms::Error::StuckGenerator).
#[inline]
pub(crate) fn poisson_one<R: Rng + ?Sized>(rng: &mut R) -> Result<u32, Error> {
    let high = rng.next_u64();
    for (k, &threshold) in THRESHOLDS.iter().enumerate() {
        let digits = (threshold >> 64) as u64;
        if high < digits {
            return Ok(k as u32);
        }
        if high == digits {
            return undecided(high, rng.next_u64());
        }
    }
    Err(dp_mechanisms::Error::StuckGenerator.into())
}

/// Decides where the first 64 digits equal those of a threshold.
#[cold]
fn undecided(high: u64, low: u64) -> Result<u32, Error> {
    let drawn = u128::from(high) << 64 | u128::from(low);
    for (k, &threshold) in THRESHOLDS.iter().enumerate() {
        if drawn.abs_diff(threshold) <= UNCERTAIN {
            break;
        }
        if drawn < threshold {
            return Ok(k as u32);
        }
    }
    Err(dp_mechanisms::Error::StuckGenerator.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_certified() {
        // 1/e to 128 digits, computed with fractions of integers.
        let inverse_e = 0x5e2d_58d8_b3bc_df1a_bade_c782_9054_f90d_u128;
        assert!(THRESHOLDS[0].abs_diff(inverse_e) <= 40);
        // P(N <= 30) likewise: 1 minus the tail.
        assert!(THRESHOLDS[30].abs_diff(0xffff_ffff_ffff_ffff_ffff_ffff_ffff_c29d) < UNCERTAIN);
        let mut factorial = 1.0;
        for k in 1..OUTCOMES {
            factorial *= k as f64;
            let mass = (THRESHOLDS[k] - THRESHOLDS[k - 1]) as f64 / 2f64.powi(128);
            let expected = (-1f64).exp() / factorial;
            assert!((mass / expected - 1.0).abs() < 1e-14 + 300.0 / 2f64.powi(128) / expected, "{k}");
        }
        // Comparing 64 digits is safe if a threshold's uncertainty does not change them. The last thresholds are too near 1
        // for that, but a word of only ones in these digits goes on to the second word.
        for threshold in THRESHOLDS {
            let low = threshold as u64;
            let safe = (1000..=u64::MAX - 1000).contains(&low);
            assert!(safe || (threshold >> 64) as u64 == u64::MAX, "{threshold:x}");
        }
    }

    struct Listed(Vec<u64>);

    impl chacha20::rand_core::TryRng for Listed {
        type Error = core::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            self.try_next_u64().map(|word| (word >> 32) as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(self.0.remove(0))
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
            unreachable!("words only")
        }
    }

    #[test]
    fn words_beside_a_threshold_fall_on_its_sides() {
        for (k, &threshold) in THRESHOLDS.iter().enumerate().take(20) {
            let (high, low) = ((threshold >> 64) as u64, threshold as u64);
            let drawn = |words: &[u64]| poisson_one(&mut Listed(words.to_vec())).ok();
            let k = k as u32;
            assert_eq!(drawn(&[high - 1]), Some(k));
            assert_eq!(drawn(&[high + 1]), Some(k + 1));
            assert_eq!(drawn(&[high, low - 300]), Some(k));
            assert_eq!(drawn(&[high, low + 300]), Some(k + 1));
            assert_eq!(drawn(&[high, low]), None, "nobody knows");
        }
        assert!(poisson_one(&mut Listed(vec![u64::MAX, u64::MAX])).is_err());
        assert_eq!(poisson_one(&mut Listed(vec![0])).ok(), Some(0));
    }
}
