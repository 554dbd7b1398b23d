//! Discrete Laplace and discrete Gaussian noise.

use crate::error::Error;
use crate::exact::integer::{bernoulli_exp, positive, uniform_below};
use crate::exact::source::Source;

const TRIES: u32 = 512;

/// An integer `k` with probability proportional to `exp(-|k| / scale)`.
pub(crate) fn discrete_laplace<S: Source>(numerator: u64, denominator: u64, source: &mut S) -> Result<i128, Error> {
    let scale = positive("scale", u128::from(numerator))?;
    let denominator = positive("denominator", u128::from(denominator))?;
    for _ in 0..TRIES {
        let remainder = uniform_below(scale, source)?;
        if !bernoulli_exp(remainder, scale, source)? {
            continue;
        }
        let mut quotient = 0u128;
        while bernoulli_exp(1, 1, source)? {
            quotient += 1;
            if quotient >= u128::from(TRIES) {
                return Err(Error::StuckGenerator);
            }
        }
        let magnitude = ((remainder + quotient * scale) / denominator) as i128;
        let negative = source.bits(1)? == 1;
        // Zero has one sign: it would otherwise be drawn twice as often.
        if !(negative && magnitude == 0) {
            return Ok(if negative { -magnitude } else { magnitude });
        }
    }
    Err(Error::StuckGenerator)
}
