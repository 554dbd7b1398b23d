//! Refuting a whole claimed trade-off curve.
//!
//! A claim with trade-off function `f` says that an attack which hits the other input at rate `alpha` misses the accused
//! one at rate `f(alpha)` at least. Rates are known between limits only: with probability `1 - a` the true rates are
//! `alpha <= q` and `beta <= 1 - p`. As `f` falls, `beta >= f(alpha) >= f(q)`; so `1 - p < f(q)` refutes the claim. For
//! that, `f` may be replaced by anything below it: it comes from the certified *upper* ends of delta, and the larger
//! of both directions at that.

use dp_accountant::{DpEvent, bound, trade_off};

use super::clopper_pearson::Limits;
use crate::error::Error;

/// By how much the missed share must be below the claimed curve to count: what rounding could explain.
pub const TOLERANCE: f64 = 1e-12;

/// The least type II error that `event` leaves an attack of this type I error, rounded down.
///
/// # Errors
/// A number in the event that is out of range, or `type_one` outside `[0, 1]`.
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// let gaussian = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
/// assert!((dp_audit::bounds::trade_off::least_type_two(&gaussian, 0.05)? - 0.74048897).abs() < 1e-8);
/// # Ok::<(), dp_audit::Error>(())
/// ```
///
/// # References
/// J. Dong, A. Roth, W. J. Su, 2019, Proposition 2.12.
pub fn least_type_two(event: &DpEvent, type_one: f64) -> Result<f64, Error> {
    Ok(trade_off::type_two_error(type_one, |epsilon| Ok(bound::delta(event, epsilon)?.value))?)
}

/// Whether the limits refute a curve whose value at the upper limit of the false-positive rate is `least_type_two`.
pub fn refutes(limits: &Limits, least_type_two: f64) -> bool {
    limits.type_two_upper() < least_type_two - TOLERANCE
}
