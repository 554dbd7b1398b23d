//! Gaussian noise on a Poisson sample.

mod nodes;

use super::convexity;
use super::gaussian::rdp_per_order;
use crate::params::{NoiseMultiplier, RdpOrder, SamplingRate};
use crate::rounding::mul_up;
use nodes::Integrand;

/// Returns the Renyi divergence of one step of noisy gradient descent on a Poisson sample: an upper bound within 1e-12 of the
/// true value for noise multipliers above 0.01.
///
/// # Formula
/// ```text
/// rdp(a) = ln(1 + E[w^a - 1 - a (w - 1)]) / (a - 1),    w = 1 - q + q e^(mu y - mu^2/2),    y ~ N(0, 1),
/// ```
///
/// with `a` = order, `q` = sampling rate, `mu` = 1 / noise multiplier. The bracket has the mean of `w^a - 1`, because `E[w] = 1`,
/// but is non-negative, so that nothing cancels however small `q` is. Its mean is computed by the trapezoid rule: the integrand
/// is analytic for `|Im y| < pi/mu`, so the rule converges exponentially and its error has a proven bound (see the source). The
/// result is rounded up by this bound and by that of all rounding errors.
///
/// # Privacy
/// One record added or removed. The computed direction, the mixture against its base, has the larger divergence.
///
/// # Examples
/// ```
/// use dp_accountant::{NoiseMultiplier, RdpOrder, SamplingRate, rdp};
/// let (rate, noise) = (SamplingRate::new(0.01)?, NoiseMultiplier::new(2.0)?);
/// // At order 2 it is ln(1 + q^2 (e^(mu^2) - 1)).
/// let at_two = rdp::poisson_sampled_gaussian(RdpOrder::new(2.0)?, rate, noise);
/// assert!((at_two / (1e-4 * 0.25f64.exp_m1()).ln_1p() - 1.0).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Mironov, Talwar and Zhang 2019, "Renyi differential privacy of the sampled Gaussian mechanism", Theorem 4 (the
/// pair), Theorem 5 (the direction) and Section 3.3, arXiv:1908.10530.
pub fn poisson_sampled_gaussian(
    order: RdpOrder,
    sampling_rate: SamplingRate,
    noise_multiplier: NoiseMultiplier,
) -> f64 {
    let (rate, mu) = (sampling_rate.get(), noise_multiplier.get().recip().next_up());
    match rate {
        0.0 => 0.0,
        1.0 => mul_up(order.get(), rdp_per_order(mu).next_up()),
        _ => rdp(order.get(), rate, mu),
    }
}

/// Least rate and `mu`: the divergence grows with both, so smaller ones are raised to these, and squares do not underflow.
const LEAST_RATE: f64 = 1e-60;
const LEAST_MU: f64 = 1e-75;

/// Returns an upper bound on the Renyi divergence of order `order >= 1`, for `0 < rate < 1`.
pub(crate) fn rdp(order: f64, rate: f64, mu: f64) -> f64 {
    let unsampled = mul_up(order, rdp_per_order(mu).next_up());
    let cap = convexity::mixed_with_nothing(order, rate, unsampled);
    let integrand = Integrand::new(order, rate.max(LEAST_RATE), mu.max(LEAST_MU));
    integrand.mean().map_or(cap, |mean| mean.divergence(order - 1.0).min(cap))
}

#[cfg(test)]
mod tests;
