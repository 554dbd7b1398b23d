//! Conversion of a Renyi divergence at one order to (epsilon, delta).
//!
//! Four theorems, each sound at every order; [`RdpCurve`](super::RdpCurve) takes the best over all orders.
//! Results are rounded up and clamped: epsilon at 0, delta at 1.
//!
//! | function | source | best for |
//! |---|---|---|
//! | [`epsilon_mironov`] | Mironov 2017, Proposition 3 | never; kept for comparison with papers |
//! | [`epsilon_improved`], [`log_delta_improved`] | Canonne, Kamath and Steinke 2020, Proposition 12 | large total loss |
//! | [`epsilon_centred`], [`log_delta_centred`] | this crate | small `(order - 1) rdp` |
//! | [`delta_suffices_for_zero`] | Bretagnolle and Huber 1979 | delta near the total variation |

use crate::error::{Error, non_negative};
use crate::logspace::{log_add, log_exp_m1, log_one_minus_exp, log_one_plus_exp};
use crate::params::{Delta, RdpOrder};

/// Relative margin for the rounding of a divergence (at most 4e-15, for a pure guarantee) and of the sums here.
const ROUNDING: f64 = 20.0 * f64::EPSILON;

/// Maximum number of steps to the centred conversion's inner root; about eight are needed.
const ROOT_STEPS: u32 = 48;

/// Returns epsilon by the first published conversion; [`epsilon_improved`] is never larger.
///
/// # Formula
/// ```text
/// epsilon = rdp + ln(1/delta) / (order - 1)
/// ```
///
/// # Errors
/// `rdp` negative or NaN.
///
/// # References
/// Mironov 2017, "Renyi differential privacy", Proposition 3, arXiv:1702.07476.
pub fn epsilon_mironov(order: RdpOrder, rdp: f64, delta: Delta) -> Result<f64, Error> {
    let rdp = divergence(rdp)?;
    if delta.get() == 0.0 || order.get() == 1.0 {
        return Ok(f64::INFINITY);
    }
    Ok((rdp - delta.get().ln() / (order.get() - 1.0)) * (1.0 + f64::EPSILON))
}

/// Returns epsilon by the improved conversion.
///
/// # Formula
/// ```text
/// epsilon = rdp + ln((order - 1)/order) - (ln delta + ln order) / (order - 1)
/// ```
///
/// # Errors
/// `rdp` negative or NaN.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, RdpOrder, rdp::conversion};
/// let (order, delta) = (RdpOrder::new(2.0)?, Delta::new(1e-5)?);
/// assert!((conversion::epsilon_mironov(order, 0.1, delta)? - 11.612925464970).abs() < 1e-9);
/// assert!((conversion::epsilon_improved(order, 0.1, delta)? - 10.226631103850).abs() < 1e-9);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", Proposition 12,
/// arXiv:2004.00010; the same in Balle et al. 2020, Theorem 21, arXiv:1905.09982.
pub fn epsilon_improved(order: RdpOrder, rdp: f64, delta: Delta) -> Result<f64, Error> {
    Ok(improved_epsilon(order.get(), divergence(rdp)?, delta.get().ln()))
}

/// Returns the natural logarithm of delta by the improved conversion; see [`epsilon_improved`].
///
/// # Formula
/// ```text
/// ln delta = (order - 1)(rdp - epsilon) - ln(order - 1) + order ln(1 - 1/order)
/// ```
///
/// # Errors
/// `rdp` or `epsilon` negative or NaN.
///
/// # References
/// Canonne, Kamath and Steinke 2020, Proposition 12, arXiv:2004.00010.
pub fn log_delta_improved(order: RdpOrder, rdp: f64, epsilon: f64) -> Result<f64, Error> {
    Ok(improved_log_delta(order.get(), divergence(rdp)?, non_negative("epsilon", epsilon)?).min(0.0))
}

/// Returns epsilon by the centred conversion, the exact inverse of [`log_delta_centred`].
///
/// # Formula
/// ```text
/// x = (1 + V/(a delta))^(1/(a-1)),   V = e^((a-1) rdp) - 1,   a = order,
/// e^epsilon = (a - 1) (x/a + (x - 1) delta/V).
/// ```
///
/// At the maximiser `x` of `(x - E)/D(x)`, `D(x) = x^a - 1 - a(x - 1)`, the maximum is `1/D'(x)` and
/// `E = x - D(x)/D'(x)`; the first equation is `1/D'(x) = delta/V`.
///
/// # Errors
/// `rdp` negative or NaN.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, RdpOrder, rdp::conversion};
/// let epsilon = conversion::epsilon_centred(RdpOrder::new(2.0)?, 0.1, Delta::new(1e-5)?)?;
/// // At order 2: e^epsilon = 1 + (e^0.1 - 1)/(4 delta).
/// assert!((epsilon - (1.0 + 0.1f64.exp_m1() / 4e-5).ln()).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn epsilon_centred(order: RdpOrder, rdp: f64, delta: Delta) -> Result<f64, Error> {
    Ok(centred_epsilon(order.get(), divergence(rdp)?, delta.get().ln()))
}

/// Returns the natural logarithm of delta by the centred conversion. It is not always below the improved one: take the smaller.
///
/// # Formula
/// ```text
/// delta <= (e^((a-1) rdp) - 1) sup_(x > e^epsilon) (x - e^epsilon) / (x^a - 1 - a(x - 1)),   a = order, epsilon > 0.
/// ```
///
/// Proof: the denominator `D(x)` is non-negative, and because the likelihood ratio `P/Q` has mean 1 under `Q`, the mean of
/// `D(P/Q)` is `E[(P/Q)^a] - 1 <= e^((a-1) rdp) - 1`. Moreover `delta = E[(P/Q - e^epsilon)_+]`, and the supremum bounds this
/// integrand by `D`.
///
/// # Errors
/// `rdp` or `epsilon` negative or NaN.
pub fn log_delta_centred(order: RdpOrder, rdp: f64, epsilon: f64) -> Result<f64, Error> {
    Ok(centred_log_delta(order.get(), divergence(rdp)?, non_negative("epsilon", epsilon)?).min(0.0))
}

/// Returns whether `delta`, with epsilon 0, covers a divergence `rdp` of any order at least 1: the total variation distance is at
/// most `sqrt(1 - e^-KL)`, and KL is at most `rdp`.
///
/// # Errors
/// `rdp` negative or NaN.
///
/// # References
/// Bretagnolle and Huber 1979; Canonne 2022, "A short note on an inequality between KL and TV", arXiv:2202.07198.
pub fn delta_suffices_for_zero(rdp: f64, delta: Delta) -> Result<bool, Error> {
    Ok(delta.get().ln() > log_total_variation(divergence(rdp)?))
}

/// Returns the smaller epsilon of the improved and the centred conversion at this order.
pub(super) fn best_epsilon(order: f64, rdp: f64, log_delta: f64) -> f64 {
    improved_epsilon(order, rdp, log_delta).min(centred_epsilon(order, rdp, log_delta))
}

/// Returns the smaller logarithm of delta of the improved and the centred conversion at this order; not clamped, because a
/// plateau at 0 would mislead a search over orders.
pub(super) fn best_log_delta(order: f64, rdp: f64, epsilon: f64) -> f64 {
    improved_log_delta(order, rdp, epsilon).min(centred_log_delta(order, rdp, epsilon))
}

/// Returns the logarithm of a bound on the total variation distance, from the divergence of order 1.
pub(super) fn log_total_variation(kullback_leibler: f64) -> f64 {
    (0.5 * log_one_minus_exp(-kullback_leibler * (1.0 + ROUNDING))) * (1.0 - ROUNDING)
}

fn divergence(rdp: f64) -> Result<f64, Error> {
    if rdp == f64::INFINITY { Ok(rdp) } else { non_negative("rdp", rdp) }
}

fn improved_epsilon(order: f64, rdp: f64, log_delta: f64) -> f64 {
    let excess = order - 1.0;
    if excess == 0.0 || rdp == f64::INFINITY || log_delta == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    let gain = (-order.recip()).ln_1p();
    let cost = (log_delta + order.ln()) / excess;
    let size = rdp + gain.abs() + (log_delta.abs() + order.ln()) / excess;
    (rdp + gain - cost + ROUNDING * size).max(0.0)
}

fn improved_log_delta(order: f64, rdp: f64, epsilon: f64) -> f64 {
    let excess = order - 1.0;
    if excess == 0.0 || rdp == f64::INFINITY {
        return f64::INFINITY;
    }
    let gain = order * (-order.recip()).ln_1p();
    let size = excess * (rdp + epsilon) + excess.ln().abs() + gain.abs();
    let log = excess * (rdp - epsilon) - excess.ln() + gain + ROUNDING * size;
    if log.is_nan() { f64::INFINITY } else { log }
}

fn centred_epsilon(order: f64, rdp: f64, log_delta: f64) -> f64 {
    let excess = order - 1.0;
    if excess == 0.0 || rdp == f64::INFINITY || log_delta == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    if rdp == 0.0 {
        return 0.0;
    }
    let log_supremum = log_delta - log_exp_m1(excess * rdp);
    let log_x = log_one_plus_exp(-log_supremum - order.ln()) / excess;
    let size = 1.0 + log_x * (1.0 + order.ln()) + excess.ln().abs() + (log_delta.abs() + excess * rdp) / excess;
    let log = excess.ln() + log_add(log_x - order.ln(), log_supremum + log_exp_m1(log_x));
    if log.is_nan() { f64::INFINITY } else { (log + ROUNDING * size).max(0.0) }
}

/// Solves the relation documented at [`epsilon_centred`] for `ln x` in the bracket `[epsilon, epsilon + ln(a/(a-1))]` by false
/// position (Illinois); the lower end is kept, at which the supremum is overestimated.
fn centred_log_delta(order: f64, rdp: f64, epsilon: f64) -> f64 {
    let excess = order - 1.0;
    if excess == 0.0 || rdp == f64::INFINITY || !(epsilon > 0.0) {
        return f64::INFINITY;
    }
    if rdp == 0.0 {
        return f64::NEG_INFINITY;
    }
    let log_supremum = |log_x: f64| -order.ln() - log_exp_m1(excess * log_x);
    let distance =
        |log_x: f64| excess.ln() + log_add(log_x - order.ln(), log_supremum(log_x) + log_exp_m1(log_x)) - epsilon;
    let (mut low, mut high) = (epsilon, epsilon - (-order.recip()).ln_1p());
    let (mut at_low, mut at_high) = (distance(low), distance(high));
    let mut low_was_moved = false;
    // A point this little below the root is close enough.
    let short = 1e-14 * high;
    let noise = 8.0 * f64::EPSILON * (1.0 + epsilon + order.ln());
    for _ in 0..ROOT_STEPS {
        if !(high - low > short) {
            break;
        }
        let between = (low * at_high - high * at_low) / (at_high - at_low);
        let next = if between > low && between < high { between } else { 0.5 * (low + high) };
        let at_next = distance(next);
        if at_next < 0.0 {
            if low_was_moved {
                at_high *= 0.5;
            }
            (low, at_low, low_was_moved) = (next, at_next, true);
            if at_next > -noise {
                break;
            }
        } else {
            if !low_was_moved {
                at_low *= 0.5;
            }
            (high, at_high, low_was_moved) = (next, at_next, false);
            // At the end false position approaches from above in small steps: try a little below.
            let below = high - 0.5 * short;
            if below > low && distance(below) < 0.0 {
                low = below;
                break;
            }
        }
    }
    let log = log_exp_m1(excess * rdp) + log_supremum(low);
    let size = 1.0 + log.abs() + excess * (1.0 + rdp + low) + low.recip();
    if log.is_nan() { f64::INFINITY } else { log + 2.0 * ROUNDING * size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centred_is_its_own_inverse_and_matches_the_closed_form_at_order_two() {
        for rdp in [1e-8, 1e-3, 0.1, 1.0, 20.0] {
            for epsilon in [1e-3f64, 0.3, 2.0, 15.0] {
                let log_delta = centred_log_delta(2.0, rdp, epsilon).min(0.0);
                let expected = (rdp.exp_m1() / (4.0 * epsilon.exp_m1())).ln().min(0.0);
                assert!((log_delta - expected).abs() < 1e-9, "{rdp} {epsilon}: {log_delta} {expected}");
                for order in [1.01, 1.7, 2.0, 30.0, 4000.0] {
                    let log_delta = centred_log_delta(order, rdp, epsilon);
                    if log_delta < -1e-6 {
                        let back = centred_epsilon(order, rdp, log_delta);
                        assert!((back / epsilon - 1.0).abs() < 1e-8, "{order} {rdp} {epsilon} {back}");
                    }
                }
            }
        }
    }

    /// Every conversion must lie above the exact delta of pairs whose divergences are exact.
    #[test]
    fn none_is_below_the_truth_for_randomised_response_and_gaussians() {
        for order in [1.05, 1.5, 2.0, 5.0, 40.0] {
            for pure in [0.1f64, 1.0, 4.0] {
                let rdp = crate::rdp::pure::rdp(order, pure);
                for fraction in [0.05, 0.4, 0.95] {
                    let epsilon = fraction * pure;
                    let truth = crate::pure::optimal_delta(pure, 1, epsilon) * (1.0 - 1e-9);
                    assert!(best_log_delta(order, rdp, epsilon) >= truth.ln(), "{order} {pure} {epsilon}");
                    assert!(best_epsilon(order, rdp, truth.ln()) >= epsilon * (1.0 - 1e-7), "{order} {pure} {epsilon}");
                }
            }
            for mu in [0.05, 1.0, 6.0] {
                for epsilon in [0.01, 0.5, 3.0] {
                    let truth = crate::gaussian::log_delta(mu, epsilon).unwrap() - 1e-9;
                    assert!(best_log_delta(order, 0.5 * order * mu * mu, epsilon) >= truth, "{order} {mu} {epsilon}");
                }
            }
        }
    }

    #[test]
    fn ends_of_the_ranges() {
        let zero = Delta::ZERO;
        let two = RdpOrder::new(2.0).unwrap();
        assert_eq!(epsilon_mironov(two, 1.0, zero).unwrap(), f64::INFINITY);
        assert_eq!(epsilon_improved(two, 1.0, zero).unwrap(), f64::INFINITY);
        assert_eq!(epsilon_centred(two, 1.0, zero).unwrap(), f64::INFINITY);
        assert_eq!(epsilon_improved(two, f64::INFINITY, Delta::new(0.1).unwrap()).unwrap(), f64::INFINITY);
        assert_eq!(log_delta_centred(two, 0.0, 1.0).unwrap(), f64::NEG_INFINITY);
        assert!(epsilon_improved(two, f64::NAN, zero).is_err() && epsilon_improved(two, -1.0, zero).is_err());
        assert!(delta_suffices_for_zero(0.01, Delta::new(0.2).unwrap()).unwrap());
        assert!(!delta_suffices_for_zero(0.01, Delta::new(0.05).unwrap()).unwrap());
        for order in [1.0, 1.0 + 1e-12, 1e15] {
            for rdp in [0.0, 1e-300, 1.0, 1e300, f64::INFINITY] {
                for log_delta in [f64::NEG_INFINITY, -690.0, -1e-16] {
                    assert!(best_epsilon(order, rdp, log_delta) >= 0.0, "{order} {rdp} {log_delta}");
                }
                for epsilon in [0.0, 1e-300, 1.0, 1e300] {
                    assert!(!best_log_delta(order, rdp, epsilon).is_nan(), "{order} {rdp} {epsilon}");
                }
            }
        }
    }
}
