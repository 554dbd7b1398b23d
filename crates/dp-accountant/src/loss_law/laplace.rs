//! Coordinate-wise Laplace noise.

use super::{LossLaw, Tails};

/// `Laplace(0, 1)` against `Laplace(x, 1)`; it also dominates a shift split over several coordinates.
///
/// # Formula
/// The loss at z is `|z - x| - |z|`: atoms at -x and x, and in between the loss is above l if `z < (x - l)/2`.
#[derive(Debug, Clone)]
pub(crate) struct Laplace {
    x: f64,
}

impl Laplace {
    /// Returns the law for `x` = sensitivity / scale.
    pub(crate) fn new(x: f64) -> Self {
        Self { x }
    }
}

impl LossLaw for Laplace {
    fn tails(&self, loss: f64) -> Tails {
        if loss >= self.x {
            return Tails { p_above: 0.0, p_below: 1.0, q_above: 0.0, q_below: 1.0 };
        }
        if loss < -self.x {
            return Tails { p_above: 1.0, p_below: 0.0, q_above: 1.0, q_below: 0.0 };
        }
        let p_below = 0.5 * (0.5 * (loss - self.x)).exp();
        let q_above = 0.5 * (-0.5 * (loss + self.x)).exp();
        Tails { p_above: 1.0 - p_below, p_below, q_above, q_below: 1.0 - q_above }
    }

    fn support(&self) -> (f64, f64) {
        (-self.x, self.x)
    }

    fn relative_error(&self) -> f64 {
        (4.0 + self.x) * f64::EPSILON
    }

    fn atoms(&self) -> (Vec<f64>, bool) {
        (vec![-self.x, self.x], false)
    }

    fn is_symmetric(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_give_the_closed_form_of_the_curve() {
        let law = Laplace::new(1.5);
        for epsilon in [0.0f64, 0.4, 1.2, 1.499] {
            let tails = law.tails(epsilon);
            let delta = tails.p_above - epsilon.exp() * tails.q_above;
            assert!((delta - (1.0 - (0.5 * (epsilon - 1.5)).exp())).abs() < 1e-15);
        }
        assert_eq!(law.tails(1.5).p_above, 0.0);
    }
}
