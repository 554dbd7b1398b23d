use super::single::SMALLEST_RATIO;
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
