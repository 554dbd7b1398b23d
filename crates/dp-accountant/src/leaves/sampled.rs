//! Events on a random sample of the records.

use super::failures::{fails_with, take_failures};
use super::single::LARGEST_RATIO;
use super::{Leaf, Leaves, read_inner, unit_interval};
use crate::error::Error;
use crate::event::DpEvent;
use crate::relations::Narrowed;
use crate::rounding::{add_up, count_up, mul_up};

/// Reads a sampled event by `amplify`, unless the rate is 0 or 1.
pub(super) fn sampled(
    sampling_rate: f64,
    inner: &DpEvent,
    depth: usize,
    mut narrowed: Narrowed,
    amplify: impl Fn(f64, Leaves) -> Result<Leaves, Error>,
) -> Result<(Leaves, Narrowed), Error> {
    let rate = unit_interval("sampling_rate", sampling_rate)?;
    let reading = read_inner(inner, depth)?;
    narrowed.join(reading.narrowed)?;
    let leaves = match (rate, reading.leaves) {
        (0.0, _) => Vec::new(),
        (1.0, base) => base,
        (_, base) if base.is_empty() => base,
        (rate, base) => amplify(rate, base)?,
    };
    Ok((leaves, narrowed))
}

/// Reads any release from a Poisson sample.
///
/// A base that fails with probability `d` fails on the sample with probability `rate d`. With `(P, Q)` the pair without failure
/// and `M = (1 - rate) Q + rate P`, the sampled pair has, under removal, masses `rate d` against 0 on one outcome, `(1 - rate) d`
/// against `d` on a second, and `(1 - d) M` against `(1 - d) Q` on the rest; so its hockey-stick divergence at `g` is
///
/// ```text
/// rate d + d (1 - rate - g)_+ + (1 - d) H_g(M, Q)  <=  rate d + (1 - rate d) H_g(M, Q),
/// ```
///
/// because `H_g >= (1 - g)_+` and `(1 - rate)(1 - g)_+ >= (1 - rate - g)_+`. Under addition the outcomes change roles, `d (1 - g
/// (1 - rate))_+` replaces the first two terms, and the same bound holds: at `g <= 1` with equality in `H_g >= 1 - g`, above
/// because `rate - (1 - g (1 - rate)) = (1 - rate)(g - 1) >= 0`.
pub(super) fn poisson(rate: f64, base: Leaves) -> Leaves {
    let (failure, base) = take_failures(base);
    let mut found = if base.is_empty() { base } else { poisson_that_does_not_fail(rate, base) };
    found.extend(fails_with(mul_up(rate, failure)));
    found
}

/// Reads any release from a sample of fixed size.
///
/// If the whole base is one approximate guarantee `(epsilon, delta)`, the sample's is `(ln(1 + rate (e^epsilon - 1)), rate
/// delta)` (Balle, Barthe and Gaboardi 2018, "Privacy amplification by subsampling", Theorem 9). No bound is known here for an
/// approximate guarantee together with releases that are not pure.
pub(super) fn without_replacement(rate: f64, base: Leaves) -> Result<Leaves, Error> {
    let (failure, base) = take_failures(base);
    if failure == 0.0 {
        return Ok(vec![(Leaf::WithoutReplacement { rate, base }, 1)]);
    }
    let mut total = 0.0;
    for (leaf, count) in &base {
        let Leaf::Pure { epsilon } = leaf else {
            return Err(Error::Unsupported { accountant: "sampling without replacement", event: "approximate-dp" });
        };
        total = add_up(total, mul_up(count_up(*count), *epsilon));
    }
    let epsilon = (rate * total.exp_m1()).ln_1p() * (1.0 + 8.0 * f64::EPSILON);
    let epsilon = if epsilon.is_finite() { epsilon.min(total) } else { total };
    let delta = mul_up(rate, failure);
    Ok(vec![(if delta < 1.0 { Leaf::Approximate { epsilon, delta } } else { Leaf::NonPrivate }, 1)])
}

/// Several Gaussians on the same Poisson sample are one Gaussian; for a sample of a sample the rates are multiplied.
fn poisson_that_does_not_fail(rate: f64, base: Leaves) -> Leaves {
    if let [(inner @ (Leaf::PoissonGaussian { .. } | Leaf::Poisson { .. }), 1)] = base.as_slice() {
        let both = |inner: f64| mul_up(rate, inner).min(1.0 - f64::EPSILON);
        return match inner.clone() {
            Leaf::PoissonGaussian { rate: inner, mu } => vec![(Leaf::PoissonGaussian { rate: both(inner), mu }, 1)],
            Leaf::Poisson { rate: inner, base } => vec![(Leaf::Poisson { rate: both(inner), base }, 1)],
            other => vec![(other, 1)],
        };
    }
    let mut square = 0.0;
    for (leaf, count) in &base {
        match leaf {
            Leaf::Gaussian { mu } => square = add_up(square, mul_up(count_up(*count), mul_up(*mu, *mu))),
            _ => return vec![(Leaf::Poisson { rate, base }, 1)],
        }
    }
    let mu = match base.as_slice() {
        [(Leaf::Gaussian { mu }, 1)] => *mu,
        _ => square.sqrt() * (1.0 + 2.0 * f64::EPSILON),
    };
    let leaf = if mu > LARGEST_RATIO { Leaf::Poisson { rate, base } } else { Leaf::PoissonGaussian { rate, mu } };
    vec![(leaf, 1)]
}
