//! Uniform integers and coins.

use crate::error::Error;
use crate::exact::source::Source;

/// Number of rejections in a row, each of probability at most 1/2, after which a generator counts as stuck.
const REJECTIONS: u32 = 256;
/// Number of successes in a row, of coins with success probability at most `1/e`, after which a generator counts as stuck.
const SUCCESSES: u32 = 512;

/// Refuses a zero denominator or bound.
pub(crate) fn positive(name: &'static str, value: u128) -> Result<u128, Error> {
    if value > 0 { Ok(value) } else { Err(Error::OutOfRange { name, value: 0.0, range: "1.." }) }
}

/// Samples a uniform integer in `0..n`: as many bits as `n - 1` has, drawn again while too large.
pub(crate) fn uniform_below<S: Source>(n: u128, source: &mut S) -> Result<u128, Error> {
    let largest = positive("number of outcomes", n)? - 1;
    let bits = u128::BITS - largest.leading_zeros();
    for _ in 0..REJECTIONS {
        let high = if bits > 64 { source.bits(bits - 64)? } else { 0 };
        let drawn = u128::from(high) << 64 | u128::from(source.bits(bits.min(64))?);
        if drawn <= largest {
            return Ok(drawn);
        }
    }
    Err(Error::StuckGenerator)
}

/// Returns true with probability `numerator / denominator`.
pub(crate) fn bernoulli<S: Source>(numerator: u128, denominator: u128, source: &mut S) -> Result<bool, Error> {
    positive("denominator", denominator)?;
    if numerator > denominator {
        return Err(Error::OutOfRange {
            name: "probability",
            value: numerator as f64 / denominator as f64,
            range: "[0, 1]",
        });
    }
    Ok(uniform_below(denominator, source)? < numerator)
}

/// Returns true with probability `exp(-numerator / denominator)`.
pub(crate) fn bernoulli_exp<S: Source>(numerator: u128, denominator: u128, source: &mut S) -> Result<bool, Error> {
    positive("denominator", denominator)?;
    // exp(-n - x) = exp(-1)^n exp(-x): one coin after another, until one fails.
    for successes in 0..numerator / denominator {
        if successes >= u128::from(SUCCESSES) {
            return Err(Error::StuckGenerator);
        }
        if !bernoulli_exp_below_one(1, 1, source)? {
            return Ok(false);
        }
    }
    bernoulli_exp_below_one(numerator % denominator, denominator, source)
}

/// Returns true with probability `exp(-numerator / denominator)`, for `numerator <= denominator`. With `x` the quotient, draws
/// coins of probability `x/1`, `x/2`, `x/3`, ... until one fails. The first `k - 1` succeed with probability `x^(k-1) / (k-1)!`,
/// so the first failure is at an odd `k` with probability `1 - x + x²/2! - x³/3! + ... = exp(-x)`.
fn bernoulli_exp_below_one<S: Source>(numerator: u128, denominator: u128, source: &mut S) -> Result<bool, Error> {
    for failing in 1..=u128::from(SUCCESSES) {
        // A coin of probability x/k is the conjunction of one of probability x and one of probability 1/k: no product could
        // overflow.
        if !(bernoulli(numerator, denominator, source)? && bernoulli(1, failing, source)?) {
            return Ok(failing % 2 == 1);
        }
    }
    Err(Error::StuckGenerator)
}

/// Returns true with exactly this probability, for any double in `[0, 1]`.
pub(crate) fn bernoulli_f64<S: Source>(probability: f64, source: &mut S) -> Result<bool, Error> {
    if !(0.0..=1.0).contains(&probability) {
        return Err(Error::OutOfRange { name: "probability", value: probability, range: "[0, 1]" });
    }
    if probability >= 1.0 {
        return Ok(true);
    }
    // The digits of the probability, 64 at a time, compared with those of a uniform number: the first difference decides.
    let mut rest = probability;
    while rest > 0.0 {
        // Below 1 a double has at most 53 digits among 64 adjacent ones, so that product, integer part and remainder are exact.
        let shifted = rest * TWO_TO_64;
        let digits = shifted as u64;
        let drawn = source.bits(64)?;
        if drawn != digits {
            return Ok(drawn < digits);
        }
        rest = shifted - digits as f64;
    }
    Ok(false)
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests;
