//! Gradient descent with heavy-ball momentum.

use nalgebra::{RealField, convert};

use super::update::{GradientDescent, Step, UpdateRule, project};

/// Polyak's heavy ball: each step continues the last move.
///
/// # Formula
/// ```text
/// x_{t+1} = Π_R( (1 - ηλ) x_t - (η / divisor) Σ_i ∇ℓ_i(x_t) + m (x_t - x_{t-1}) ),   x_{-1} = x_0
/// ```
/// For a constant step and λ = 0 it is the momentum of neural networks, `v <- m v + g; x <- x - η v`.
///
/// # Examples
/// ```
/// use dp_optim::engine::{GradientDescent, HeavyBall, Step, UpdateRule};
/// let plain = GradientDescent { lambda: 0.0, radius: None };
/// let mut x = [0.0];
/// let mut rule = HeavyBall::new(plain, 0.5, &x);
/// let step = Step { update: 1, step_size: 1.0, divisor: 1.0, weight: 1.0 };
/// for expected in [1.0, 2.5, 4.25] {
///     rule.apply(&mut x, &[-1.0], &step);
///     assert_eq!(x, [expected]);
/// }
/// ```
///
/// # References
/// Polyak, "Some methods of speeding up the convergence of iteration methods", 1964.
#[derive(Debug, Clone, PartialEq)]
pub struct HeavyBall<F> {
    descent: GradientDescent,
    momentum: f64,
    /// The iterate before the current one.
    last: Vec<F>,
}

impl<F: RealField + Copy> HeavyBall<F> {
    /// Starts at `start`, with momentum in [0, 1).
    pub fn new(descent: GradientDescent, momentum: f64, start: &[F]) -> Self {
        Self { descent, momentum, last: start.to_vec() }
    }
}

impl<F: RealField + Copy> UpdateRule<F> for HeavyBall<F> {
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        let shrink: F = convert(1.0 - step.step_size * self.descent.lambda);
        let (scale, momentum): (F, F) = (convert(-step.step_size / step.divisor), convert(self.momentum));
        for ((weight, last), &gradient) in parameters.iter_mut().zip(&mut self.last).zip(gradient_sum) {
            let next = shrink * *weight + scale * gradient + momentum * (*weight - *last);
            *last = *weight;
            *weight = next;
        }
        if let Some(radius) = self.descent.radius {
            project(parameters, radius);
        }
    }

    fn kept(&self) -> Option<Vec<&[F]>> {
        Some(vec![&self.last])
    }

    fn set_kept(&mut self, kept: Vec<Vec<F>>) {
        if let Ok([last]) = <[Vec<F>; 1]>::try_from(kept) {
            self.last = last;
        }
    }

    fn restart(&mut self, parameters: &mut [F]) {
        self.descent.restart(parameters);
        self.last.copy_from_slice(parameters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without momentum it is gradient descent, with its regulariser and ball; after a restart it moves as from the start.
    #[test]
    fn it_contains_gradient_descent_and_restarts_without_a_move() {
        let mut plain = GradientDescent { lambda: 0.3, radius: Some(1.5) };
        let (mut x, mut y) = ([1.0, -1.0], [1.0, -1.0]);
        let mut ball = HeavyBall::new(plain, 0.0, &x);
        for update in 1..20 {
            let step = Step { update, step_size: 0.7, divisor: 2.0, weight: 0.0 };
            plain.apply(&mut y, &[1.0, -3.0], &step);
            ball.apply(&mut x, &[1.0, -3.0], &step);
            assert_eq!(x, y);
        }
        let step = Step { update: 1, step_size: 0.1, divisor: 1.0, weight: 0.0 };
        let moved = |restart: bool| {
            let mut x = [0.0];
            let mut ball = HeavyBall::new(GradientDescent { lambda: 0.0, radius: None }, 0.9, &x);
            ball.apply(&mut x, &[1.0], &step);
            if restart {
                ball.restart(&mut x);
            }
            let before = x[0];
            ball.apply(&mut x, &[1.0], &step);
            x[0] - before
        };
        assert!((moved(false) + 0.19f64).abs() < 1e-15 && (moved(true) + 0.1f64).abs() < 1e-15);
    }
}
