//! The search for the best Renyi order.

/// Distance of the coarse scan's points in `ln(order - 1)`.
const STEP: f64 = 0.25;
/// The scan starts from `order - 1` between about 1e-3 and 1e6 ...
const FIRST: f64 = -7.0;
const LAST: f64 = 14.0;
/// ... and goes on in either direction, to about 1e-15 and 1e15, while that still helps.
const FARTHEST: f64 = 34.5;
const GOLDEN_STEPS: u32 = 30;
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// The least value of `bound` over orders above 1.
///
/// A coarse scan on `ln(order - 1)`, extended until its minimum is interior, then golden-section search around it.
/// Every order gives a sound bound, so an error of the search costs tightness only: the bound is flat at its minimum,
/// and the last bracket, 3e-7 wide, leaves a relative excess far below 1e-12. NaN counts as infinity.
pub(super) fn minimise(bound: impl Fn(f64) -> f64) -> f64 {
    let at = |y: f64| {
        let value = bound(1.0 + y.exp());
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let (mut best_y, mut best) = (FIRST, at(FIRST));
    let points = ((LAST - FIRST) / STEP) as u32;
    for i in 1..=points {
        let y = FIRST + STEP * f64::from(i);
        let value = at(y);
        if value < best {
            (best_y, best) = (y, value);
        }
    }
    for direction in [-STEP, STEP] {
        let end = if direction < 0.0 { FIRST } else { LAST };
        while (best_y - end) * direction >= 0.0 && best_y.abs() < FARTHEST {
            let value = at(best_y + direction);
            if !(value < best) {
                break;
            }
            (best_y, best) = (best_y + direction, value);
        }
    }
    let (mut low, mut high) = (best_y - STEP, best_y + STEP);
    let (mut left, mut right) = (high - GOLDEN_RATIO * (high - low), low + GOLDEN_RATIO * (high - low));
    let (mut at_left, mut at_right) = (at(left), at(right));
    for _ in 0..GOLDEN_STEPS {
        best = best.min(at_left).min(at_right);
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - GOLDEN_RATIO * (high - low);
            at_left = at(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + GOLDEN_RATIO * (high - low);
            at_right = at(right);
        }
    }
    best.min(at_left).min(at_right)
}

#[cfg(test)]
mod tests {
    use super::minimise;

    #[test]
    fn finds_interior_minima_near_and_far() {
        for minimum in [1.0 + 1e-10, 1.0 + 1e-4, 1.5, 8.12, 19_000.0, 1e9, 1e13] {
            let bound = |order: f64| {
                let distance = ((order - 1.0) / (minimum - 1.0)).ln();
                1.0 + distance * distance
            };
            assert!(minimise(bound) < 1.0 + 1e-12, "{minimum}");
        }
    }

    #[test]
    fn monotone_and_undefined_bounds_terminate() {
        assert!(minimise(|order| 1.0 / order) < 1e-14);
        assert!(minimise(|order| order) < 1.0 + 1e-13);
        assert_eq!(minimise(|_| f64::NAN), f64::INFINITY);
        assert_eq!(minimise(|_| f64::INFINITY), f64::INFINITY);
    }
}
