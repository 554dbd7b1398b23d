//! What the release of every additive mechanism has in common: the checks before it, the log entry with it.

use dp_accountant::{Adjacency, DpEvent, EventLog};
use nalgebra::RealField;

use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::L2Sensitivity;

/// Opens a bounded vector, adds noise and logs the event.
///
/// `spread` is a typical size of one coordinate's noise: the float type must be able to hold it.
///
/// # Errors
/// Those of [`Mechanism::release`](crate::Mechanism::release); nothing is drawn or logged then.
pub(crate) fn release<F: RealField + Copy, A: Adjacency, R: ReleaseRng + ?Sized>(
    input: Bounded<Vec<F>, A>,
    built_for: L2Sensitivity<A>,
    spread: f64,
    event: DpEvent,
    log: &mut EventLog<A>,
    rng: &mut R,
    add_noise: impl FnOnce(Vec<F>, &mut R) -> Result<Vec<F>, Error>,
) -> Result<Released<Vec<F>>, Error> {
    let found = input.sensitivity().get();
    if !(found <= built_for.get()) {
        return Err(Error::SensitivityExceeded { found, built_for: built_for.get() });
    }
    if !holds::<F>(spread) {
        return Err(Error::ScaleOverflow { scale: spread });
    }
    let value = input.into_inner();
    dimension(value.len() as u64)?;
    if !value.iter().all(|coordinate| coordinate.is_finite()) {
        return Err(Error::NonFiniteInput);
    }
    let noisy = add_noise(value, rng)?;
    log.record(event, 1);
    if !R::SECRET {
        log.mark_not_private();
    }
    Ok(Released::new(noisy))
}

/// Whether `F` has noise of this size well inside its range: at least 2^24 times below its largest number, and not
/// among its subnormal ones, where it would come out as no noise at all.
fn holds<F: RealField + Copy>(spread: f64) -> bool {
    let largest: f64 = F::max_value().map_or(f64::MAX, |largest| largest.to_subset_unchecked());
    let converted: F = nalgebra::convert(spread);
    let back: f64 = converted.to_subset_unchecked();
    spread <= largest * 2f64.powi(-24) && (back - spread).abs() <= spread * 2f64.powi(-20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_float_type_has_its_range() {
        assert!(holds::<f64>(1e-290) && holds::<f64>(1e300));
        assert!(holds::<f32>(1e-37) && holds::<f32>(1e31));
        assert!(!holds::<f32>(1e-45) && !holds::<f32>(1e-60) && !holds::<f32>(1e35) && !holds::<f32>(1e300));
        assert!(!holds::<f32>(f64::NAN) && !holds::<f64>(f64::INFINITY));
    }
}
