//! A Renyi curve given by points.

use crate::error::{Error, non_negative};

/// Upper bounds on a Renyi curve at some orders, interpolated conservatively.
///
/// # Formula
/// `(a - 1) D_a` is convex in the order `a` (a supremum of cumulant functions) and 0 at `a = 1`. So between two points the chord
/// of that product is a bound, as is the chord from order 1 to the first point. `D_a` does not decrease with the order, so any
/// later point bounds an earlier order. Beyond the last order there is no bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RenyiPoints {
    /// Orders, increasing, with the least divergence given at this order or a later one.
    points: Vec<(f64, f64)>,
}

impl RenyiPoints {
    pub(crate) fn new(orders: &[f64], divergences: &[f64]) -> Result<Self, Error> {
        if orders.len() != divergences.len() || orders.is_empty() {
            return Err(Error::LengthMismatch {
                left: "orders",
                left_length: orders.len(),
                right: "divergences",
                right_length: divergences.len(),
            });
        }
        let mut points = Vec::with_capacity(orders.len());
        let mut before = 1.0;
        for (&order, &divergence) in orders.iter().zip(divergences) {
            if !(order > before && order.is_finite()) {
                return Err(Error::OutOfRange { name: "order", value: order, range: "(previous order, inf), from 1" });
            }
            before = order;
            points.push((order, non_negative("divergence", divergence)?));
        }
        let mut least = f64::INFINITY;
        for point in points.iter_mut().rev() {
            least = least.min(point.1);
            point.1 = least;
        }
        Ok(Self { points })
    }

    /// Returns the bound at `order >= 1`; infinite beyond the last point.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 < order);
        let Some(&(right, at_right)) = self.points.get(next) else {
            return f64::INFINITY;
        };
        let (left, at_left) = if next == 0 { (1.0, 0.0) } else { self.points[next - 1] };
        if right == order || order == 1.0 {
            return at_right;
        }
        let (low, high) = ((left - 1.0) * at_left, (right - 1.0) * at_right);
        let chord = low + (high - low) * ((order - left) / (right - left));
        at_right.min(chord / (order - 1.0) * (1.0 + 8.0 * f64::EPSILON))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_exact_at_the_points_and_above_a_true_curve_between_them() {
        let orders: Vec<f64> = (2..60).map(f64::from).collect();
        let curve = |order: f64| super::super::laplace::rdp(order, 0.7);
        let divergences: Vec<f64> = orders.iter().map(|&order| curve(order)).collect();
        let points = RenyiPoints::new(&orders, &divergences).unwrap();
        for i in 0..1000 {
            let order = 1.0 + 58.0 * f64::from(i) / 1000.0;
            assert!(points.rdp(order) >= curve(order) * (1.0 - 1e-14), "{order}");
        }
        assert_eq!(points.rdp(7.0), curve(7.0));
        assert_eq!(points.rdp(59.5), f64::INFINITY);
    }

    #[test]
    fn a_later_point_bounds_an_earlier_order() {
        let points = RenyiPoints::new(&[2.0, 3.0], &[5.0, 1.0]).unwrap();
        assert_eq!(points.rdp(2.0), 1.0);
        assert!(points.rdp(1.0) <= 1.0);
    }

    #[test]
    fn bad_points_are_typed_errors() {
        for (orders, divergences) in [
            (vec![], vec![]),
            (vec![2.0], vec![]),
            (vec![1.0], vec![0.1]),
            (vec![2.0, 2.0], vec![0.1, 0.1]),
            (vec![3.0, 2.0], vec![0.1, 0.1]),
            (vec![f64::NAN], vec![0.1]),
            (vec![2.0], vec![-0.1]),
            (vec![2.0], vec![f64::INFINITY]),
        ] {
            assert!(RenyiPoints::new(&orders, &divergences).is_err(), "{orders:?} {divergences:?}");
        }
    }
}
