//! Adam: step sizes that adapt to each weight.

use nalgebra::{RealField, convert};

use super::update::{Step, UpdateRule, project};

/// Adam on estimated gradients: each coordinate's step is divided by the root mean square of its gradients.
///
/// # Formula
/// With `g` the batch's sum of gradients over the divisor, plus λ w:
/// ```text
/// m <- β₁ m + (1 - β₁) g                    m̂ = m / (1 - β₁^t)
/// v <- β₂ v + (1 - β₂) g²                   v̂ = v / (1 - β₂^t)
/// w <- Π_R( w - η m̂ / (√v̂ + ε) )            Denominator::Plus
/// w <- Π_R( w - η m̂ / √max(v̂ - Φ, φΦ) )     Denominator::WithoutNoise,   Φ = (σ / divisor)²
/// ```
///
/// # Examples
/// ```
/// use dp_optim::engine::{Adam, Denominator, Step, UpdateRule};
/// let mut rule = Adam::new(0.9, 0.999, Denominator::Plus { epsilon: 1e-8 }, &[0.0; 2]);
/// let mut w = [0.0_f64, 0.0];
/// rule.apply(&mut w, &[6.0, -0.002], &Step { update: 1, step_size: 0.3, divisor: 2.0, weight: 1.0 });
/// // The first step has the same length in each coordinate, for any gradient.
/// assert!((w[0] + 0.3).abs() < 1e-5 && (w[1] - 0.3).abs() < 1e-5);
/// ```
///
/// # References
/// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1; Tang, Shpilevskiy, Lécuyer,
/// "DP-AdamBC: your DP-Adam is actually DP-SGD (unless you apply bias correction)", AAAI 2024, arXiv 2312.14334, Algorithm 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam<F> {
    lambda: f64,
    radius: Option<f64>,
    first_decay: f64,
    second_decay: f64,
    denominator: Denominator,
    first: Vec<F>,
    second: Vec<F>,
}

/// The denominator of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Denominator {
    /// `√v̂ + ε`. Where the noise outweighs the gradient, v̂ is close to the noise's variance, the same for all coordinates.
    Plus {
        /// ε > 0.
        epsilon: f64,
    },
    /// `√max(v̂ - Φ, φΦ)`: the gradient's mean square with the noise's variance subtracted.
    WithoutNoise {
        /// σ: standard deviation of the noise on each coordinate of a sum.
        std_dev: f64,
        /// φ > 0: lower bound on the difference, as a fraction of Φ.
        floor: f64,
    },
}

impl<F: RealField + Copy> Adam<F> {
    /// Starts with β₁ and β₂ in [0, 1), in the dimension of `start`.
    pub fn new(first_decay: f64, second_decay: f64, denominator: Denominator, start: &[F]) -> Self {
        let zeros = || vec![F::zero(); start.len()];
        Self { lambda: 0.0, radius: None, first_decay, second_decay, denominator, first: zeros(), second: zeros() }
    }

    /// Adds an L2 regulariser, and a ball onto which iterates are projected.
    pub fn with_ball(self, lambda: f64, radius: Option<f64>) -> Self {
        Self { lambda, radius, ..self }
    }
}

impl<F: RealField + Copy> UpdateRule<F> for Adam<F> {
    fn kept(&self) -> Option<Vec<&[F]>> {
        Some(vec![&self.first, &self.second])
    }

    fn set_kept(&mut self, kept: Vec<Vec<F>>) {
        if let Ok([first, second]) = <[Vec<F>; 2]>::try_from(kept) {
            (self.first, self.second) = (first, second);
        }
    }

    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        let count = step.update as f64;
        // The bias correction 1 - decay^count, for a decay in [0, 1).
        let forgotten = |decay: f64| -(count * decay.ln()).exp_m1();
        let (lambda, inverse): (F, F) = (convert(self.lambda), convert(1.0 / step.divisor));
        let (keep, take): (F, F) = (convert(self.first_decay), convert(1.0 - self.first_decay));
        let (keep_square, take_square): (F, F) = (convert(self.second_decay), convert(1.0 - self.second_decay));
        let scale: F = convert(step.step_size / forgotten(self.first_decay));
        let unbiased: F = convert(1.0 / forgotten(self.second_decay));
        let (added, variance, least): (F, F, F) = match self.denominator {
            Denominator::Plus { epsilon } => (convert(epsilon), F::zero(), F::zero()),
            Denominator::WithoutNoise { std_dev, floor } => {
                let variance = (std_dev / step.divisor).powi(2);
                (F::zero(), convert(variance), convert(floor * variance))
            }
        };
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((weight, &sum), (first, second)) in parameters.iter_mut().zip(gradient_sum).zip(moments) {
            let gradient = inverse * sum + lambda * *weight;
            *first = keep * *first + take * gradient;
            *second = keep_square * *second + take_square * gradient * gradient;
            let square = (unbiased * *second - variance).max(least);
            *weight -= scale * *first / (square.sqrt() + added);
        }
        if let Some(radius) = self.radius {
            project(parameters, radius);
        }
    }

    /// Keeps the moments, which are of gradients and not of points.
    fn restart(&mut self, parameters: &mut [F]) {
        if let Some(radius) = self.radius {
            project(parameters, radius);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step(update: u64, step_size: f64) -> Step {
        Step { update, step_size, divisor: 2.0, weight: 1.0 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn it_is_the_formula(
            sums in prop::collection::vec(-9.0..9.0f64, 1..30), beta1 in 0.0..0.99f64, beta2 in 0.0..0.999f64,
            lambda in 0.0..0.5f64, corrected: bool, floor in 0.01..1.0f64,
        ) {
            let denominator = if corrected {
                Denominator::WithoutNoise { std_dev: 1.6, floor }
            } else {
                Denominator::Plus { epsilon: 1e-8 }
            };
            let mut w = [0.5];
            let mut rule = Adam::new(beta1, beta2, denominator, &w).with_ball(lambda, Some(3.0));
            let (mut here, mut history) = (0.5f64, Vec::new());
            for (t, sum) in (1..).zip(&sums) {
                history.push(sum / 2.0 + lambda * here);
                // Weighted means of all gradients so far.
                let mean = |beta: f64, power: i32| {
                    let weight = |k: usize| beta.powi(k as i32);
                    let total: f64 = (0..t).map(weight).sum();
                    history.iter().rev().enumerate().map(|(k, g)| weight(k) * g.powi(power)).sum::<f64>() / total
                };
                let (first, second) = (mean(beta1, 1), mean(beta2, 2));
                let noise = 0.8f64 * 0.8;
                let below = if corrected { (second - noise).max(floor * noise).sqrt() } else { second.sqrt() + 1e-8 };
                here = (here - 0.1 * first / below).clamp(-3.0, 3.0);
                rule.apply(&mut w, &[*sum], &step(t as u64, 0.1));
                prop_assert!((w[0] - here).abs() < 1e-6, "{} {}", w[0], here);
                here = w[0];
            }
        }

        /// The bound on which the range of the iterates rests.
        #[test]
        fn no_step_is_longer_than_its_bound(
            sums in prop::collection::vec(prop_oneof![Just(0.0), -1.0..1.0f64, -1e9..1e9f64], 1..60),
            beta1 in 0.0..0.99f64, above in 0.01..1.0f64,
        ) {
            let square = beta1 * beta1;
            let beta2 = square + above * (0.9999 - square);
            let bound = 1.0 / ((1.0 - beta2) * (1.0 - square / beta2)).sqrt();
            let mut w = [0.0];
            let mut rule = Adam::new(beta1, beta2, Denominator::Plus { epsilon: 1e-8 }, &w);
            for (t, sum) in (1..).zip(&sums) {
                let before = w[0];
                rule.apply(&mut w, &[*sum], &step(t, 1.0));
                prop_assert!((w[0] - before).abs() <= bound * (1.0 + 1e-9));
            }
        }
    }
}
