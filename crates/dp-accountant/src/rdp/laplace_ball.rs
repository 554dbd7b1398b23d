//! The L2 Laplace ball.

use super::laplace;

/// A bound on the Renyi divergence of the L2 Laplace ball in any dimension, `x` = L2 sensitivity / scale: the curve
/// of one-dimensional Laplace noise, which dominates it (proof at [`crate::laplace`]).
///
/// Exact in one dimension. In many dimensions the loss is nearly Gaussian with a far smaller divergence, which a
/// quadrature over the norm would give; the event carries the dimension for it.
pub(crate) fn rdp(order: f64, x: f64) -> f64 {
    laplace::rdp(order, x)
}

#[cfg(test)]
mod tests {
    use super::super::pure;

    #[test]
    fn is_below_the_bound_for_an_arbitrary_pure_mechanism() {
        for x in [1e-3, 0.1, 1.0, 5.0, 30.0] {
            for order in [1.0001, 1.5, 2.0, 10.0, 1000.0] {
                assert!(super::rdp(order, x) <= pure::rdp(order, x), "{order} {x}");
            }
        }
    }
}
