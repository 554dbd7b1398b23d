//! Rational noise scales on the lattice: exact coins and exact Laplace noise.
//!
//! # Formula
//! ```text
//! b = n / d  steps, the least double that is at least  shift / epsilon
//! coin(x)        true with probability exp(-x / b) = exp(-x d / n)
//! floor_laplace  floor(b X),  X with density exp(-|x|) / 2
//! ```
//! `floor(b X)` is a function of ideal Laplace noise and moves by `j` when `b X` moves by an integer `j`. So whatever is
//! proved of Laplace noise under integer shifts, such as the ratio bound `exp(j / b)` or a Renyi divergence, is true of
//! it: it is post-processing. (The two-sided geometric law, the other discrete Laplace, is not: its Renyi divergences
//! are larger.) It is drawn as a fair sign and `floor(b E)`, `E` exponential, which becomes `-1 - floor(b E)` below 0. As
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

/// Scales below this many steps are raised to it: more noise than asked for, which nobody notices, since one step is 2^30
/// times smaller than the sensitivity.
const LEAST: f64 = 1.0 / 4096.0;

/// Scales beyond this many steps do not fit the integers.
const LARGEST: f64 = (1u128 << 90) as f64;

/// Exponents are capped at `2^CAP_BITS` by [`RationalScale::gap_cap`].
const CAP_BITS: u32 = 12;

/// Draws before a generator is declared stuck; each succeeds with probability at least 1/4.
const MOST_DRAWS: u32 = 1 << 16;

/// A scale `numerator / denominator` in steps: numerator at most 2^91, denominator at most 2^64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RationalScale {
    numerator: u128,
    denominator: u128,
    value: f64,
}

impl RationalScale {
    /// At least `shift / epsilon`: a shift by that many steps costs at most epsilon.
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

    /// The scale in steps, exactly.
    pub(crate) fn steps(self) -> f64 {
        self.value
    }

    /// The least number of steps whose exponent is at least 2^12: a coin with a larger exponent never shows.
    pub(crate) fn gap_cap(self) -> u128 {
        (self.numerator << CAP_BITS).div_ceil(self.denominator)
    }

    /// True with probability `exp(-gap / scale)`, exactly, for a gap of at most [`gap_cap`](Self::gap_cap).
    pub(crate) fn coin<R: CryptoRng + ?Sized>(self, gap: u128, rng: &mut R) -> Result<bool, Error> {
        exact::bernoulli_exp(gap * self.denominator, self.numerator, rng)
    }

    /// `floor(scale · X)` for `X` standard (two-sided) Laplace, exactly.
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
