//! The privacy curve of one Gaussian release from a Poisson sample, in closed form.
//!
//! With sampling rate `q`, `mu` = sensitivity / standard deviation and `delta_G(s)` the curve of the unsampled Gaussian
//! ([`gaussian::log_delta`](crate::gaussian::log_delta)), the hockey-stick divergences of the two directions are
//!
//! ```text
//! remove:  q delta_G(s),                      s = ln(1 + (e^epsilon - 1)/q),
//! add:     (1 - e^epsilon (1 - q)) delta_G(s),    s = -ln(1 - (1 - e^-epsilon)/q),   0 where e^-epsilon <= 1 - q.
//! ```
//!
//! *Proof.* With the record the output has density `(1 - q) f + q g`, without it `f`. Then
//! `((1 - q) f + q g - e^epsilon f)_+ = q (g - e^s f)_+` and
//! `(f - e^epsilon ((1 - q) f + q g))_+ = (1 - e^epsilon (1 - q)) (f - e^s g)_+`, with the `s` above; and the pairs `(g, f)` and
//! `(f, g)` of two normal laws have the same curve.
//!
//! *Removing is the worse direction of a single step:* with `E = e^epsilon >= 1` the factor `1 - E (1 - q)` is at most `q`, and
//! the `s` of adding is at least that of removing, since `q^2 - (q + E - 1)(q - 1 + 1/E) = (1 - q)(E - 1)^2/E >= 0`. For several
//! steps neither direction need be the worse one.
//!
//! # References
//! The removal formula is amplification by subsampling of the hockey-stick divergence: Balle, Barthe and Gaboardi 2018,
//! "Privacy amplification by subsampling", Theorem 8, arXiv:1807.01647.

use crate::error::{Error, non_negative, positive};
use crate::gaussian::{curve_point, epsilon_at};
use crate::logspace::log_mixed;

use super::ends::{Ends, largest_shown};

/// Epsilon from which on `e^epsilon` is factored out of the logarithm.
const LARGE: f64 = 600.0;

/// Returns the natural logarithm of the least delta at `epsilon` when a record is removed, rounded up.
///
/// It is also that of the mechanism, since the other direction's delta is never larger.
///
/// # Errors
/// `sampling_rate` outside (0, 1]; `mu` not positive, `epsilon` negative, or one of them NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::exact::single_step;
/// let log_delta = single_step::log_delta_remove(0.7, 0.5, 0.3)?;
/// assert!((log_delta + 3.003012164624111).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn log_delta_remove(sampling_rate: f64, mu: f64, epsilon: f64) -> Result<f64, Error> {
    check(sampling_rate, mu, epsilon)?;
    Ok(log_delta(sampling_rate, mu, epsilon).upper)
}

/// Returns the natural logarithm of the least delta at `epsilon` when a record is added, rounded up; negative infinity from
/// `epsilon = -ln(1 - sampling_rate)` on.
///
/// # Errors
/// Those of [`log_delta_remove`].
///
/// # Examples
/// ```
/// use dp_accountant::exact::single_step;
/// let log_delta = single_step::log_delta_add(0.7, 0.5, 0.3)?;
/// assert!((log_delta + 3.344482137215876).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn log_delta_add(sampling_rate: f64, mu: f64, epsilon: f64) -> Result<f64, Error> {
    check(sampling_rate, mu, epsilon)?;
    let ratio = -(-epsilon).exp_m1() / sampling_rate;
    let left = 1.0 - ratio;
    // This is a difference; if it cancels, its true value may be larger by the rounding.
    let left = left + 4.0 * f64::EPSILON;
    if !(ratio < 1.0 + 4.0 * f64::EPSILON) {
        return Ok(f64::NEG_INFINITY);
    }
    let shift = (-left.ln()).max(0.0);
    // 1 - e^epsilon (1 - q) = e^epsilon q (1 - ratio)
    let factor = (epsilon + sampling_rate.ln() + left.ln()).min(0.0);
    let rounding = 8.0 * f64::EPSILON * (1.0 + epsilon + sampling_rate.ln().abs() + left.ln().abs());
    Ok((curve_point(mu, shift).log_delta + factor + rounding).min(0.0))
}

fn check(sampling_rate: f64, mu: f64, epsilon: f64) -> Result<(), Error> {
    if !(sampling_rate > 0.0 && sampling_rate <= 1.0) {
        return Err(Error::OutOfRange { name: "sampling_rate", value: sampling_rate, range: "(0, 1]" });
    }
    positive("mu", mu)?;
    non_negative("epsilon", epsilon)?;
    Ok(())
}

/// Returns `ln(1 + (e^epsilon - 1)/q)`, to a few units in the last place.
fn unsampled(rate: f64, epsilon: f64) -> f64 {
    if epsilon < LARGE {
        (epsilon.exp_m1() / rate).ln_1p()
    } else {
        epsilon - rate.ln() + (-(1.0 - rate) * (-epsilon).exp()).ln_1p()
    }
}

/// Inverts [`unsampled`].
fn sampled(rate: f64, shift: f64) -> f64 {
    if shift < LARGE { (rate * shift.exp_m1()).ln_1p() } else { log_mixed(rate, shift) }
}

/// Returns a bound on the relative effect of rounding near `shift`: of a relative argument error `e^(4u)` and of the rate's
/// logarithm.
fn relative_rounding(rate: f64, shift: f64) -> f64 {
    8.0 * f64::EPSILON * (1.0 + shift.abs() + rate.ln().abs())
}

/// Returns the logarithm of delta at `epsilon`.
pub(crate) fn log_delta(rate: f64, mu: f64, epsilon: f64) -> Ends {
    let shift = unsampled(rate, epsilon);
    let relative = 8.0 * f64::EPSILON;
    let (early, late) = (curve_point(mu, shift * (1.0 - relative)), curve_point(mu, shift * (1.0 + relative)));
    let log_rate = rate.ln();
    let rounding = 2.0 * f64::EPSILON * (log_rate.abs() + early.log_delta.abs());
    Ends {
        lower: (late.log_delta_down + log_rate - rounding).min(0.0),
        upper: (early.log_delta + log_rate + rounding).min(0.0),
    }
}

/// Returns epsilon for a delta between `e^low` and `e^high`: the upper end for `low`, the lower end for `high`.
pub(crate) fn epsilon(rate: f64, mu: f64, low: f64, high: f64) -> Ends {
    let log_rate = rate.ln();
    let target = |log_delta: f64, sign: f64| {
        let difference = log_delta - log_rate;
        difference + sign * 4.0 * f64::EPSILON * (log_delta.abs() + log_rate.abs())
    };
    let (low, high) = (target(low, -1.0), target(high, 1.0));
    let upper = if low >= 0.0 { 0.0 } else { epsilon_at(mu, low) };
    let lower = gaussian_epsilon_down(mu, high);
    Ends {
        lower: sampled(rate, lower) * (1.0 - relative_rounding(rate, lower)).max(0.0),
        upper: sampled(rate, upper) * (1.0 + relative_rounding(rate, upper)),
    }
}

/// Returns the Gaussian's epsilon at `e^log_delta`, rounded down.
pub(super) fn gaussian_epsilon_down(mu: f64, log_delta: f64) -> f64 {
    if !(log_delta < 0.0) {
        return 0.0;
    }
    largest_shown(epsilon_at(mu, log_delta), |epsilon| {
        let point = curve_point(mu, epsilon);
        (point.log_delta_down - log_delta, point.by_epsilon)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::upper_tail;

    /// The formula by distribution functions, where it does not cancel.
    #[test]
    fn by_distribution_functions() {
        for (rate, sigma, epsilon) in [(0.7f64, 2.0f64, 0.3f64), (0.9, 0.7, 1.0), (0.3, 3.0, 0.2), (0.5, 1.0, 0.0)] {
            let x = 0.5 + sigma * sigma * ((epsilon.exp() - 1.0 + rate) / rate).ln();
            let tail = |x: f64| upper_tail(x / sigma);
            let remove = (1.0 - rate) * tail(x) + rate * tail(x - 1.0) - epsilon.exp() * tail(x);
            let got = log_delta_remove(rate, 1.0 / sigma, epsilon).unwrap();
            assert!((got - remove.ln()).abs() < 1e-11, "{got} {}", remove.ln());
            let inside = ((-epsilon).exp() - 1.0 + rate) / rate;
            if inside > 0.0 {
                let y = 0.5 + sigma * sigma * inside.ln();
                let head = |y: f64| tail(-y);
                let add = head(y) - epsilon.exp() * ((1.0 - rate) * head(y) + rate * head(y - 1.0));
                let got = log_delta_add(rate, 1.0 / sigma, epsilon).unwrap();
                assert!((got - add.ln()).abs() < 1e-10, "{got} {}", add.ln());
            } else {
                assert_eq!(log_delta_add(rate, 1.0 / sigma, epsilon).unwrap(), f64::NEG_INFINITY);
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for (rate, mu, epsilon) in [
            (0.0, 1.0, 1.0),
            (1.1, 1.0, 1.0),
            (f64::NAN, 1.0, 1.0),
            (0.5, 0.0, 1.0),
            (0.5, 1.0, -1.0),
            (0.5, 1.0, f64::NAN),
        ] {
            assert!(log_delta_remove(rate, mu, epsilon).is_err() && log_delta_add(rate, mu, epsilon).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn epsilon_inverts_delta_and_removing_is_worse(
            log_rate in -20.0f64..0.0, log_mu in -4.0f64..4.0, log_delta in -690.0f64..-0.01,
        ) {
            let (rate, mu) = (log_rate.exp(), log_mu.exp());
            let ends = epsilon(rate, mu, log_delta, log_delta);
            proptest::prop_assert!(ends.lower <= ends.upper && ends.upper.is_finite());
            if ends.lower > 0.0 {
                proptest::prop_assert!((ends.upper - ends.lower) <= 1e-9 * ends.upper, "{:?}", ends);
                let back = super::log_delta(rate, mu, ends.upper);
                proptest::prop_assert!(back.upper <= log_delta + 1e-9 * log_delta.abs().max(1.0));
                proptest::prop_assert!(back.lower <= back.upper);
            }
            let add = log_delta_add(rate, mu, ends.upper).unwrap();
            proptest::prop_assert!(add <= log_delta + 1e-9 * log_delta.abs().max(1.0));
        }
    }
}
