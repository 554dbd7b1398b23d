//! Rational noise scales on the lattice: exact coins and exact Laplace noise.
//!
//! # Formula
//! ```text
//! b = n / d  steps, the least double that is at least  shift / epsilon
//! coin(x)        true with probability exp(-x / b) = exp(-x d / n)
//! floor_laplace  floor(b X),  X with density exp(-|x|) / 2
//! ```
//! `floor(b X)` is a function of ideal Laplace noise and changes by `j` when `b X` changes by an integer `j`. So everything
//! proved for Laplace noise under integer shifts, such as the ratio bound `exp(j / b)` or a Renyi divergence, holds for it, by
//! post-processing. (This does not hold for the two-sided geometric law, the other discrete Laplace, whose Renyi divergences are
//! larger.) It is drawn as a fair sign and `floor(b E)`, `E` exponential, which becomes `-1 - floor(b E)` below 0. As
//! `floor(n E / d)` is `floor(floor(n E) / d)`, and `n E = U + n V + F` with `V = floor(E)` geometric, `U` in `0..n` with
//! probability proportional to `exp(-U / n)`, `F` in `[0, 1)`, three integer draws suffice.
//!
//! # References
//! C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", 2020, Algorithms 1 and 2, arXiv
//! 2004.00010.

use rand::CryptoRng;

use crate::error::Error;
use crate::exact;
use crate::rounding::quotient_up;

/// Least scale in steps; smaller ones are raised to it. The additional noise is negligible, since one step is 2^30 times smaller
/// than the sensitivity.
const LEAST: f64 = 1.0 / 4096.0;

/// Largest scale in steps; larger ones do not fit the integers.
const LARGEST: f64 = (1u128 << 90) as f64;

/// Exponents are capped at `2^CAP_BITS` by [`RationalScale::gap_cap`].
const CAP_BITS: u32 = 12;

/// Number of draws before a generator counts as stuck; each succeeds with probability at least 1/4.
const MOST_DRAWS: u32 = 1 << 16;

/// A scale `numerator / denominator` in steps: numerator at most 2^91, denominator at most 2^64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RationalScale {
    numerator: u128,
    denominator: u128,
    value: f64,
}

impl RationalScale {
    /// Creates a scale of at least `shift / epsilon`: a shift by that many steps costs at most epsilon.
    ///
    /// # Errors
    /// [`Error::ScaleOverflow`] beyond 2^90 steps.
    pub(crate) fn for_shift(shift: f64, epsilon: f64) -> Result<Self, Error> {
        let value = quotient_up(shift, epsilon).max(LEAST);
        if !(value <= LARGEST) {
            return Err(Error::ScaleOverflow { scale: value });
        }
        // value = mantissa · 2^power, exactly, in lowest terms.
        let bits = value.to_bits();
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let zeros = mantissa.trailing_zeros();
        let power = ((bits >> 52) & 0x7ff) as i32 - 1075 + zeros as i32;
        let mantissa = u128::from(mantissa >> zeros);
        let (numerator, denominator) =
            if power >= 0 { (mantissa << power, 1) } else { (mantissa, 1u128 << power.unsigned_abs()) };
        Ok(Self { numerator, denominator, value })
    }

    /// Returns the scale in steps, exactly.
    pub(crate) fn steps(self) -> f64 {
        self.value
    }

    /// Returns the least number of steps whose exponent is at least 2^12: a coin with a larger exponent practically never
    /// succeeds.
    pub(crate) fn gap_cap(self) -> u128 {
        (self.numerator << CAP_BITS).div_ceil(self.denominator)
    }

    /// Returns true with probability `exp(-gap / scale)`, exactly, for a gap of at most [`gap_cap`](Self::gap_cap).
    pub(crate) fn coin<R: CryptoRng + ?Sized>(self, gap: u128, rng: &mut R) -> Result<bool, Error> {
        exact::bernoulli_exp(gap * self.denominator, self.numerator, rng)
    }

    /// Samples `floor(scale · X)` for `X` standard (two-sided) Laplace, exactly.
    pub(crate) fn floor_laplace<R: CryptoRng + ?Sized>(self, rng: &mut R) -> Result<i128, Error> {
        let negative = exact::bernoulli(1, 2, rng)?;
        let mut remainder = None;
        for _ in 0..MOST_DRAWS {
            let proposal = exact::uniform_below(self.numerator, rng)?;
            if exact::bernoulli_exp(proposal, self.numerator, rng)? {
                remainder = Some(proposal);
                break;
            }
        }
        let remainder = remainder.ok_or(Error::StuckGenerator)?;
        let mut whole = 0u32;
        while exact::bernoulli_exp(1, 1, rng)? {
            whole += 1;
            if whole == MOST_DRAWS {
                return Err(Error::StuckGenerator);
            }
        }
        let magnitude = ((remainder + self.numerator * u128::from(whole)) / self.denominator) as i128;
        Ok(if negative { -1 - magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededRng;
    use crate::rng::Stuck;
    use crate::testing::check_law;

    /// `floor(b X)` in 41 classes, for scales below, at and between whole steps: false-alarm rate 1e-9 each.
    #[test]
    fn noise_is_the_floor_of_laplace_noise() {
        for (shift, epsilon) in [(1.0, 1.0), (1.0, 3.0), (7.0, 2.0), (1.0, 0.1), (5.0, 0.7)] {
            let scale = RationalScale::for_shift(shift, epsilon).unwrap();
            let b = shift / epsilon;
            let mut rng = SeededRng::new(17);
            let mut counts = vec![0u64; 42];
            for _ in 0..300_000 {
                let class = scale.floor_laplace(&mut rng).unwrap().clamp(-21, 20) + 21;
                counts[class as usize] += 1;
            }
            let cdf = |k: i32| {
                let x = f64::from(k) / b;
                if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() }
            };
            // Class k is [k, k + 1).
            let law: Vec<f64> = (-21..=20)
                .map(|k| match k {
                    -21 => cdf(-20),
                    20 => 1.0 - cdf(20),
                    _ => cdf(k + 1) - cdf(k),
                })
                .collect();
            check_law(&counts, &law, &format!("scale {b}"));
        }
    }

    /// Coins compared with `exp(-gap / b)`, within 6.2 standard deviations: false-alarm rate 1e-9 each.
    #[test]
    fn coins() {
        let mut rng = SeededRng::new(18);
        for (shift, epsilon) in [(1.0, 3.0), (2f64.powi(31), 0.3), (2f64.powi(31) - 1.0, 1.0 / 1024.0)] {
            let scale = RationalScale::for_shift(shift, epsilon).unwrap();
            for share in [0.0, 0.3, 1.0, 2.5] {
                let gap = (share * scale.steps()) as u128;
                let p = (-(gap as f64) / scale.steps()).exp();
                let n = 100_000;
                let heads = (0..n).filter(|_| scale.coin(gap, &mut rng).unwrap()).count() as f64;
                let n = f64::from(n);
                assert!((heads - n * p).abs() <= 6.2 * (n * p * (1.0 - p)).sqrt(), "{share}: {heads}");
            }
            assert!(!scale.coin(scale.gap_cap(), &mut rng).unwrap());
        }
    }

    #[test]
    fn scales_are_rational_and_limited() {
        let scale = RationalScale::for_shift(1.0, 8.0).unwrap();
        assert_eq!((scale.numerator, scale.denominator, scale.gap_cap()), (1, 8, 512));
        let scale = RationalScale::for_shift(2f64.powi(31), 2.0).unwrap();
        assert_eq!((scale.numerator, scale.denominator), (1 << 30, 1));
        assert_eq!(RationalScale::for_shift(1.0, 1e300).unwrap().steps(), LEAST);
        let scale = RationalScale::for_shift(2f64.powi(80), 2f64.powi(-10)).unwrap();
        assert_eq!((scale.numerator, scale.denominator), (1 << 90, 1));
        for (shift, epsilon) in [(2f64.powi(90), 0.99), (1e300, 1e-15), (f64::MAX, 1e-300)] {
            assert!(matches!(RationalScale::for_shift(shift, epsilon), Err(Error::ScaleOverflow { .. })));
        }
    }

    #[test]
    fn a_stuck_generator_is_an_error() {
        let scale = RationalScale::for_shift(1000.0, 1.0).unwrap();
        // All ones gives numbers beyond the scale again and again; all zeros makes every coin succeed.
        assert_eq!(scale.floor_laplace(&mut Stuck(u64::MAX)), Err(Error::StuckGenerator));
        assert_eq!(scale.floor_laplace(&mut Stuck(0)), Err(Error::StuckGenerator));
    }
}
