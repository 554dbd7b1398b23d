//! The least noise that meets a target.

use crate::bound;
use crate::error::Error;
use crate::event::DpEvent;
use crate::params::{Delta, Epsilon};

/// The answer is within this of the least scale, relatively.
const RELATIVE_WIDTH: f64 = 1e-11;

/// Scales are looked for between the inverse of this and this.
const FARTHEST: f64 = 1e120;

/// Far above what the bracketing and the secant steps need.
const MAX_STEPS: u32 = 400;

/// The least noise scale for which `event_at(scale)` costs at most `target` at `delta`, by [`bound::epsilon`].
///
/// `event_at` builds, for a noise scale (a standard deviation, a Laplace scale, a noise multiplier: whatever unit the
/// caller likes), everything that would be released with it. Epsilon must not grow with the scale; the answer always
/// meets the target, being re-evaluated before it is returned, and is within 1e-9 of the least one that does.
///
/// # Errors
/// [`Error::Unreachable`] where no scale up to 1e120 meets the target (noise cannot help: a part of the event does not
/// depend on the scale) or every scale down to 1e-120 does; and what `event_at`'s events give [`bound::epsilon`].
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, Epsilon, bound, calibrate};
///
/// let ten_releases = |std_dev: f64| DpEvent::SelfComposed {
///     event: Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 }),
///     count: 10,
/// };
/// let (target, delta) = (Epsilon::new(1.0)?, Delta::new(1e-5)?);
/// let std_dev = calibrate::least_scale(target, delta, ten_releases)?;
/// assert!((std_dev - 3.730631634815942 * 10f64.sqrt()).abs() < 1e-8);
/// assert!(bound::epsilon(&ten_releases(std_dev), delta)?.value <= 1.0);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn least_scale(target: Epsilon, delta: Delta, event_at: impl Fn(f64) -> DpEvent) -> Result<f64, Error> {
    let target = target.get();
    // Positive where the scale is too small. Infinite ends are cut so that secant steps stay finite.
    let excess = |scale: f64| -> Result<f64, Error> {
        let epsilon = bound::epsilon(&event_at(scale), delta)?.value;
        if epsilon <= target {
            return Ok((epsilon / target).ln().max(-1e3));
        }
        let excess = (epsilon / target).ln();
        Ok(if excess < 1e3 { excess.max(f64::MIN_POSITIVE) } else { 1e3 })
    };
    let (mut low, mut high) = bracket(&excess)?;
    // Illinois' variant of the secant method on the logarithm of the scale: epsilon is close to a power of it.
    let mut side = 0i8;
    for _ in 0..MAX_STEPS {
        if high.scale <= low.scale * (1.0 + RELATIVE_WIDTH) {
            break;
        }
        let (left, right) = (low.scale.ln(), high.scale.ln());
        let secant = left + (right - left) * low.excess / (low.excess - high.excess);
        // Away from the ends by at least a tenth of what is still to be gained, so that both ends move.
        let edge = (0.1 * RELATIVE_WIDTH).max(1e-3 * (right - left).min(1e-6));
        let next = if secant.is_finite() { secant.clamp(left + edge, right - edge) } else { 0.5 * (left + right) };
        let scale = next.exp();
        if !(scale > low.scale && scale < high.scale) {
            break;
        }
        let value = excess(scale)?;
        if value > 0.0 {
            low = Trial { scale, excess: value };
            if side == 1 {
                high.excess *= 0.5;
            }
            side = 1;
        } else {
            high = Trial { scale, excess: value };
            if side == -1 {
                low.excess *= 0.5;
            }
            side = -1;
        }
    }
    Ok(high.scale)
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    scale: f64,
    excess: f64,
}

/// A scale that is too small and one that is enough, from 1 outwards by growing steps.
fn bracket(excess: &impl Fn(f64) -> Result<f64, Error>) -> Result<(Trial, Trial), Error> {
    let unreachable = |why| Error::Unreachable { what: "noise scale", why };
    let trial = |scale: f64| excess(scale).map(|excess| Trial { scale, excess });
    let mut current = trial(1.0)?;
    let upwards = current.excess > 0.0;
    let mut factor: f64 = 4.0;
    loop {
        let scale = if upwards { current.scale * factor } else { current.scale / factor };
        if !(FARTHEST.recip()..=FARTHEST).contains(&scale) {
            return Err(unreachable(if upwards {
                "a part of what is released does not depend on it"
            } else {
                "what is released costs less than the target without noise"
            }));
        }
        let next = trial(scale)?;
        if upwards != (next.excess > 0.0) {
            return Ok(if upwards { (current, next) } else { (next, current) });
        }
        current = next;
        factor = (factor * factor).min(1e15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian;

    fn target(epsilon: f64, delta: f64) -> (Epsilon, Delta) {
        (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap())
    }

    #[test]
    fn agrees_with_the_closed_forms() {
        for epsilon in [0.01, 0.1, 1.0, 10.0] {
            for delta in [1e-3, 1e-6, 1e-12] {
                let (epsilon, delta) = target(epsilon, delta);
                let scale =
                    least_scale(epsilon, delta, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 3.0 }).unwrap();
                let expected = 3.0 * gaussian::noise_multiplier(epsilon, delta).unwrap().get();
                assert!((scale / expected - 1.0).abs() < 1e-9, "{epsilon} {delta}: {scale} {expected}");
            }
            let (epsilon, delta) = target(epsilon, 0.0);
            let ball = |scale| DpEvent::LaplaceBall { scale, sensitivity: 0.07, dim: 9 };
            let scale = least_scale(epsilon, delta, ball).unwrap();
            assert!((scale * epsilon.get() / 0.07 - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_answer_meets_the_target_and_less_noise_does_not() {
        let sensitivities: Vec<f64> = (1..=200).map(|i| f64::from(i) / 200.0).collect();
        let events: [&dyn Fn(f64) -> DpEvent; 4] = [
            &|scale| DpEvent::Laplace { scale, sensitivity: 1.0 },
            &|scale| DpEvent::SelfComposed {
                event: Box::new(DpEvent::LaplaceBall { scale, sensitivity: 0.5, dim: 10 }),
                count: 300,
            },
            &|std_dev| DpEvent::GaussianMixture {
                std_dev,
                sensitivities: sensitivities.clone(),
                weights: vec![1.0 / 200.0; 200],
            },
            &|scale| DpEvent::Composed {
                events: vec![
                    DpEvent::PureDp { epsilon: 0.001 },
                    DpEvent::Zcdp { rho: 1e-6 },
                    DpEvent::Gaussian { std_dev: scale, sensitivity: 1e4 },
                ],
            },
        ];
        for event in events {
            for epsilon in [0.05, 1.0] {
                let (epsilon, delta) = target(epsilon, 1e-7);
                let scale = least_scale(epsilon, delta, event).unwrap();
                assert!(bound::epsilon(&event(scale), delta).unwrap().value <= epsilon.get());
                assert!(bound::epsilon(&event(scale * (1.0 - 1e-9)), delta).unwrap().value > epsilon.get());
            }
        }
    }

    #[test]
    fn unreachable_targets_and_bad_events_are_typed_errors() {
        let (epsilon, delta) = target(1.0, 1e-6);
        let fixed = least_scale(epsilon, delta, |_| DpEvent::PureDp { epsilon: 2.0 });
        assert!(matches!(fixed, Err(Error::Unreachable { .. })), "{fixed:?}");
        let free = least_scale(epsilon, delta, |_| DpEvent::NoOp);
        assert!(matches!(free, Err(Error::Unreachable { .. })), "{free:?}");
        let no_pure = least_scale(epsilon, Delta::ZERO, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 1.0 });
        assert!(matches!(no_pure, Err(Error::Unreachable { .. })), "{no_pure:?}");
        let bad = least_scale(epsilon, delta, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: f64::NAN });
        assert!(matches!(bad, Err(Error::NotFinite { .. })), "{bad:?}");
    }
}
