//! Gradient descent with momentum.

use dp_losses::ProximalMap;
use nalgebra::{RealField, convert};

use super::update::{GradientDescent, Step, UpdateRule, project};

/// Nesterov's accelerated gradient descent: gradients are taken at an extrapolated point. Without momentum and penalty it
/// equals [`GradientDescent`], bit for bit.
///
/// # Formula
/// ```text
/// x_t = Π_R( prox_{ηP}( (1 - ηλ) y_{t-1} - (η / divisor) Σ_i ∇ℓ_i(y_{t-1}) ) ),   y_t = Π_R( x_t + m (x_t - x_{t-1}) )
/// ```
/// with P the [penalty](Self::with_penalty); without a penalty, prox is the identity. The projection only scales, so that
/// coordinates that the proximal map set to zero stay zero.
///
/// The parameters are `y`, where the next gradient is taken; the [point](UpdateRule::point) is `x`. See
/// [`Descent`](crate::Descent) for its benefit and for why it costs no privacy.
///
/// # Examples
/// ```
/// use dp_optim::engine::{AcceleratedDescent, GradientDescent, Step, UpdateRule};
/// let plain = GradientDescent { lambda: 0.0, radius: None };
/// let mut y = [0.0];
/// let mut rule = AcceleratedDescent::new(plain, 0.5, &y);
/// let step = Step { update: 1, step_size: 1.0, divisor: 1.0, weight: 1.0 };
/// rule.apply(&mut y, &[-1.0], &step);
/// assert_eq!((rule.point(&y), y), (&[1.0][..], [1.5]));
/// rule.apply(&mut y, &[-1.0], &step);
/// assert_eq!((rule.point(&y), y), (&[2.5][..], [3.25]));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AcceleratedDescent<F> {
    descent: GradientDescent,
    momentum: f64,
    /// `x_t`; empty without momentum, where `x_t` equals the parameters.
    point: Vec<F>,
    penalty: Option<ProximalMap>,
}

impl<F: RealField + Copy> AcceleratedDescent<F> {
    /// Starts at `start`, where the first gradient is taken, with momentum in [0, 1).
    pub fn new(descent: GradientDescent, momentum: f64, start: &[F]) -> Self {
        let point = if momentum == 0.0 { Vec::new() } else { start.to_vec() };
        Self { descent, momentum, point, penalty: None }
    }

    /// Adds a penalty to the loss; `map` must have been checked for the longest step.
    pub fn with_penalty(self, map: ProximalMap) -> Self {
        Self { penalty: Some(map), ..self }
    }
}

impl<F: RealField + Copy> UpdateRule<F> for AcceleratedDescent<F> {
    fn kept(&self) -> Option<Vec<&[F]>> {
        Some(if self.point.is_empty() { Vec::new() } else { vec![&self.point] })
    }

    fn set_kept(&mut self, kept: Vec<Vec<F>>) {
        if let Ok([point]) = <[Vec<F>; 1]>::try_from(kept) {
            self.point = point;
        }
    }

    #[inline]
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        match &mut self.penalty {
            None => self.descent.apply(parameters, gradient_sum, step),
            Some(map) => {
                GradientDescent { radius: None, ..self.descent }.apply(parameters, gradient_sum, step);
                map.apply(step.step_size, parameters);
                if let Some(radius) = self.descent.radius {
                    project(parameters, radius);
                }
            }
        }
        if self.point.is_empty() {
            return;
        }
        let momentum: F = convert(self.momentum);
        for (ahead, point) in parameters.iter_mut().zip(&mut self.point) {
            let here = *ahead;
            *ahead = here + momentum * (here - *point);
            *point = here;
        }
        if let Some(radius) = self.descent.radius {
            project(parameters, radius);
        }
    }

    fn restart(&mut self, parameters: &mut [F]) {
        self.descent.restart(parameters);
        if !self.point.is_empty() {
            self.point.copy_from_slice(parameters);
        }
    }

    fn point<'p>(&'p self, parameters: &'p [F]) -> &'p [F] {
        if self.point.is_empty() { parameters } else { &self.point }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step(update: u64, step_size: f64) -> Step {
        Step { update, step_size, divisor: 4.0, weight: 1.0 }
    }

    /// Iterates the formula as written on `h/2 (w - 1)²` with λ, in one dimension.
    fn by_hand(h: f64, lambda: f64, eta: f64, momentum: f64, radius: f64, steps: u64) -> f64 {
        let (mut x, mut y) = (0.0f64, 0.0f64);
        for _ in 0..steps {
            let next = (y - eta * (h * (y - 1.0) + lambda * y)).clamp(-radius, radius);
            y = (next + momentum * (next - x)).clamp(-radius, radius);
            x = next;
        }
        x
    }

    proptest! {
        #[test]
        fn it_is_the_formula(
            h in 0.0..1.0f64, lambda in 0.0..0.5f64, eta in 0.01..1.0f64, momentum in 0.0..0.99f64,
            radius in prop_oneof![Just(1e9), 0.1..2.0f64], steps in 1u64..40,
        ) {
            let mut rule = AcceleratedDescent::new(GradientDescent { lambda, radius: Some(radius) }, momentum, &[0.0]);
            let mut y = [0.0];
            for t in 1..=steps {
                let gradient = 4.0 * h * (y[0] - 1.0);
                rule.apply(&mut y, &[gradient], &step(t, eta));
                prop_assert!(y[0].abs() <= radius * (1.0 + 1e-15));
            }
            let expected = by_hand(h, lambda, eta, momentum, radius, steps);
            prop_assert!((rule.point(&y)[0] - expected).abs() <= 1e-9 * (1.0 + expected.abs()));
        }

        #[test]
        fn without_momentum_it_is_plain_descent(
            gradients in prop::collection::vec(prop::array::uniform3(-9.0..9.0f64), 1..20), lambda in 0.0..0.5f64,
            radius in prop::option::of(0.1..5.0f64),
        ) {
            let mut plain = GradientDescent { lambda, radius };
            let mut rule = AcceleratedDescent::new(plain, 0.0, &[0.0; 3]);
            let (mut w, mut y) = ([0.0; 3], [0.0; 3]);
            for (t, gradient) in (1..).zip(&gradients) {
                plain.apply(&mut w, gradient, &step(t, 0.7));
                rule.apply(&mut y, gradient, &step(t, 0.7));
                prop_assert_eq!(w, y);
                prop_assert_eq!(rule.point(&y), &w[..]);
            }
        }
    }

    /// Applies `x -> prox(y - η g)` as in the formula, with and without momentum; zeros stay zero under projection.
    #[test]
    fn a_penalty_is_its_map_after_each_step() {
        let layout = dp_losses::penalty::Layout { features: 3, outputs: 1, intercept: true };
        let map = ProximalMap::new(dp_losses::Penalty::L1 { lambda: 0.5 }, layout, 1.0).unwrap();
        for (momentum, radius) in [(0.0, None), (0.5, None), (0.5, Some(0.3))] {
            let start = [0.0; 3];
            let descent = GradientDescent { lambda: 0.1, radius };
            let mut rule = AcceleratedDescent::new(descent, momentum, &start).with_penalty(map.clone());
            let (mut y, mut x, mut before) = (start, start, start);
            for t in 1..5 {
                let gradient = [4.0 * (y[0] - 2.0), 0.8, -4.0];
                for j in 0..3 {
                    let moved = 0.9 * y[j] - gradient[j] / 4.0;
                    x[j] = if j == 2 { moved } else { f64::signum(moved) * (moved.abs() - 0.5).max(0.0) };
                }
                let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
                let scaled = |v: [f64; 3]| v.map(|x| x * radius.map_or(1.0, |r: f64| (r / norm(v)).min(1.0)));
                x = scaled(x);
                rule.apply(&mut y, &gradient, &step(t, 1.0));
                let point = rule.point(&y);
                assert!(point.iter().zip(&x).all(|(found, x)| (found - x).abs() < 1e-14), "{point:?} {x:?}");
                assert_eq!(point[1], 0.0);
                let ahead = scaled([0, 1, 2].map(|j| x[j] + momentum * (x[j] - before[j])));
                assert!(y.iter().zip(&ahead).all(|(found, y)| (found - y).abs() < 1e-14), "{y:?} {ahead:?}");
                before = x;
            }
        }
    }

    #[test]
    fn an_ill_conditioned_parabola_takes_a_tenth_of_the_steps() {
        let (h, slow, eta) = ([1.0, 1e-3], 1e-3f64, 1.0);
        let distance = |momentum: f64, steps: u64| {
            let descent = GradientDescent { lambda: 0.0, radius: None };
            let mut y = [0.0f64; 2];
            let mut rule = AcceleratedDescent::new(descent, momentum, &y);
            for t in 1..=steps {
                let gradient = [0, 1].map(|j| 4.0 * h[j] * (y[j] - 1.0));
                rule.apply(&mut y, &gradient, &step(t, eta));
            }
            rule.point(&y).iter().map(|x| (x - 1.0).powi(2)).sum::<f64>().sqrt()
        };
        let momentum = crate::Descent::suited_to(eta * slow).momentum();
        assert!(distance(momentum, 300) < distance(0.0, 3000));
    }
}
