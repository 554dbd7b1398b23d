//! What an event tree amounts to: its releases, checked, each with the number of times it happened.
//!
//! Composition of releases whose parameters are fixed in advance does not depend on their order, so every accountant
//! reads this flat list. The walk keeps its own stack: a tree of any depth is refused or read, never a stack overflow.

use crate::error::{Error, non_negative, positive};
use crate::event::DpEvent;
use crate::gaussian_mixture::GaussianMixture;
use crate::rounding::div_up;

/// Trees nested deeper than this are refused.
pub const MAX_DEPTH: usize = 256;

/// A ratio of sensitivity to noise beyond this protects nothing, and is treated so.
const LARGEST_RATIO: f64 = 1e100;

/// Ratios are rounded up to this, so that their squares do not underflow to a cost of zero.
const SMALLEST_RATIO: f64 = 1e-150;

/// One release, with its numbers checked and reduced to what matters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Leaf {
    /// No guarantee at all.
    NonPrivate,
    /// Gaussian noise, `mu` = sensitivity / standard deviation.
    Gaussian { mu: f64 },
    /// Coordinate-wise Laplace noise, `x` = L1 sensitivity / scale.
    Laplace { x: f64 },
    /// The L2 Laplace ball, `x` = L2 sensitivity / scale. Every dimension is read as one: see [`crate::laplace`].
    LaplaceBall { x: f64 },
    /// A pure guarantee.
    Pure { epsilon: f64 },
    /// An approximate guarantee.
    Approximate { epsilon: f64, delta: f64 },
    /// A zCDP guarantee.
    Zcdp { rho: f64 },
    /// A Gaussian with a hidden random sensitivity.
    Mixture(GaussianMixture),
}

/// The releases of `event` that happened `count` times, or the first number that is out of range.
pub(crate) fn leaves(event: &DpEvent, count: u64) -> Result<Vec<(Leaf, u64)>, Error> {
    let mut found: Vec<(Leaf, u64)> = Vec::new();
    let mut open = vec![(event, count, 0)];
    while let Some((event, count, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep { limit: MAX_DEPTH });
        }
        let leaf = match event {
            DpEvent::Composed { events } => {
                open.extend(events.iter().rev().map(|event| (event, count, depth + 1)));
                continue;
            }
            DpEvent::SelfComposed { event, count: times } => {
                let count = count.checked_mul(*times).ok_or(Error::OutOfRange {
                    name: "number of repetitions",
                    value: count as f64 * *times as f64,
                    range: "[0, 2^64)",
                })?;
                open.push((event, count, depth + 1));
                continue;
            }
            DpEvent::NoOp => continue,
            DpEvent::NonPrivate => Leaf::NonPrivate,
            DpEvent::Gaussian { std_dev, sensitivity } => {
                ratio(*sensitivity, "std_dev", *std_dev)?.map_or(Leaf::NonPrivate, |mu| Leaf::Gaussian { mu })
            }
            DpEvent::Laplace { scale, sensitivity } => {
                ratio(*sensitivity, "scale", *scale)?.map_or(Leaf::NonPrivate, |x| Leaf::Laplace { x })
            }
            DpEvent::LaplaceBall { scale, sensitivity, dim } => {
                if *dim == 0 {
                    return Err(Error::NotPositive { name: "dim", value: 0.0 });
                }
                ratio(*sensitivity, "scale", *scale)?.map_or(Leaf::NonPrivate, |x| Leaf::LaplaceBall { x })
            }
            DpEvent::PureDp { epsilon } => Leaf::Pure { epsilon: non_negative("epsilon", *epsilon)? },
            DpEvent::ApproximateDp { epsilon, delta } => {
                let epsilon = non_negative("epsilon", *epsilon)?;
                match delta {
                    0.0 => Leaf::Pure { epsilon },
                    delta if (0.0..1.0).contains(delta) => Leaf::Approximate { epsilon, delta: *delta },
                    &value => return Err(Error::OutOfRange { name: "delta", value, range: "[0, 1)" }),
                }
            }
            DpEvent::Zcdp { rho } => Leaf::Zcdp { rho: non_negative("rho", *rho)? },
            DpEvent::GaussianMixture { std_dev, sensitivities, weights } => {
                let mixture = GaussianMixture::new(*std_dev, sensitivities, weights)?;
                if mixture.largest_mu() > LARGEST_RATIO { Leaf::NonPrivate } else { Leaf::Mixture(mixture) }
            }
        };
        if count == 0 {
            continue;
        }
        match found.last_mut() {
            Some((last, times)) if *last == leaf && times.checked_add(count).is_some() => *times += count,
            _ => found.push((leaf, count)),
        }
    }
    Ok(found)
}

/// Sensitivity over noise, rounded up; `None` where it is so large that nothing is protected.
fn ratio(sensitivity: f64, noise_name: &'static str, noise: f64) -> Result<Option<f64>, Error> {
    let ratio = div_up(positive("sensitivity", sensitivity)?, positive(noise_name, noise)?);
    Ok((ratio <= LARGEST_RATIO).then_some(ratio.max(SMALLEST_RATIO)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaussian(std_dev: f64) -> DpEvent {
        DpEvent::Gaussian { std_dev, sensitivity: 1.0 }
    }

    #[test]
    fn counts_multiply_and_equal_neighbours_merge() {
        let event = DpEvent::SelfComposed {
            event: Box::new(DpEvent::Composed {
                events: vec![gaussian(2.0), DpEvent::NoOp, gaussian(2.0), DpEvent::PureDp { epsilon: 0.5 }],
            }),
            count: 3,
        };
        assert_eq!(leaves(&event, 2).unwrap(), [(Leaf::Gaussian { mu: 0.5 }, 12), (Leaf::Pure { epsilon: 0.5 }, 6)]);
        assert_eq!(leaves(&event, 0).unwrap(), []);
    }

    #[test]
    fn what_never_happened_is_still_checked() {
        let event = DpEvent::SelfComposed { event: Box::new(gaussian(f64::NAN)), count: 0 };
        assert!(matches!(leaves(&event, 1), Err(Error::NotFinite { name: "std_dev", .. })));
    }

    #[test]
    fn too_many_repetitions_and_too_much_depth_are_typed_errors() {
        let mut event = gaussian(1.0);
        for _ in 0..2 {
            event = DpEvent::SelfComposed { event: Box::new(event), count: 1 << 40 };
        }
        assert!(matches!(leaves(&event, 1), Err(Error::OutOfRange { name: "number of repetitions", .. })));
        let mut event = gaussian(1.0);
        for _ in 0..2 * MAX_DEPTH {
            event = DpEvent::Composed { events: vec![event] };
        }
        assert_eq!(leaves(&event, 1), Err(Error::TooDeep { limit: MAX_DEPTH }));
    }

    #[test]
    fn extreme_ratios_are_on_the_safe_side() {
        let huge = DpEvent::Gaussian { std_dev: 1e-300, sensitivity: 1e300 };
        assert_eq!(leaves(&huge, 1).unwrap(), [(Leaf::NonPrivate, 1)]);
        let tiny = DpEvent::Laplace { scale: 1e300, sensitivity: 1e-300 };
        assert_eq!(leaves(&tiny, 1).unwrap(), [(Leaf::Laplace { x: SMALLEST_RATIO }, 1)]);
    }
}
