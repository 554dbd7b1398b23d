//! The alternating direction method of multipliers with a linearised first step.

use dp_losses::ProximalMap;
use nalgebra::{RealField, convert};

use super::update::{Step, UpdateRule, project};

/// Linearised ADMM: the loss is a function of `x`, the penalty of `z`, and the dual `y` enforces `x = z`. Gradients are taken
/// at `x`.
///
/// # Formula
/// With `g` the batch's sum of gradients over the divisor, plus λ x; all three variables are zero at the start:
/// ```text
/// x <- ( x/η + ρ z - y - g ) / ( 1/η + ρ )         argmin_x <g, x> + <y, x - z> + ρ/2 ‖x - z‖² + ‖x - x_before‖²/(2η)
/// z <- prox_{P/ρ}( x + y/ρ )
/// y <- y + ρ (x - z)
/// ```
/// and `x` is projected onto the ball, if there is one.
///
/// # Examples
/// ```
/// use dp_losses::penalty::Layout;
/// use dp_losses::{Penalty, ProximalMap};
/// use dp_optim::engine::{AdmmOutput, LinearisedAdmm, Step, UpdateRule};
/// let layout = Layout { features: 1, outputs: 1, intercept: false };
/// let map = ProximalMap::new(Penalty::L1 { lambda: 0.25 }, layout, 2.0)?; // steps of 1/ρ
/// let mut x = [0.0];
/// let mut rule = LinearisedAdmm::new(0.5, map, AdmmOutput::Sparse, &x);
/// rule.apply(&mut x, &[-1.5], &Step { update: 1, step_size: 1.0, divisor: 1.0, weight: 1.0 });
/// // x = 1.5/(1 + 0.5), z = S(1, 0.25/0.5)
/// assert_eq!((x, rule.point(&x)), ([1.0], &[0.5][..]));
/// # Ok::<(), dp_losses::Error>(())
/// ```
///
/// # References
/// Ouyang, He, Tran, Gray, "Stochastic alternating direction method of multipliers", ICML 2013, Algorithm 1 (with the
/// gradient's proximal term in place of its exact minimisation).
#[derive(Debug, Clone, PartialEq)]
pub struct LinearisedAdmm<F> {
    /// λ of the L2 regulariser, which belongs to the loss.
    lambda: f64,
    radius: Option<f64>,
    rho: f64,
    map: ProximalMap,
    output: AdmmOutput,
    sparse: Vec<F>,
    dual: Vec<F>,
}

/// The copy of the model that is output; both agree in the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum AdmmOutput {
    /// `z`, the output of the penalty's proximal map.
    #[default]
    Sparse,
    /// `x`, where gradients are taken.
    Smooth,
}

impl<F: RealField + Copy> LinearisedAdmm<F> {
    /// Starts at zero in the dimension of `start`, with `rho > 0` and a map checked for the step `1/rho`.
    pub fn new(rho: f64, map: ProximalMap, output: AdmmOutput, start: &[F]) -> Self {
        let zeros = || vec![F::zero(); start.len()];
        Self { lambda: 0.0, radius: None, rho, map, output, sparse: zeros(), dual: zeros() }
    }

    /// Adds an L2 regulariser, and a ball onto which iterates are projected.
    pub fn with_ball(self, lambda: f64, radius: Option<f64>) -> Self {
        Self { lambda, radius, ..self }
    }

    /// Returns the dual variable `y`.
    pub fn dual(&self) -> &[F] {
        &self.dual
    }

    /// Returns the sparse copy `z`.
    pub fn sparse(&self) -> &[F] {
        &self.sparse
    }
}

impl<F: RealField + Copy> UpdateRule<F> for LinearisedAdmm<F> {
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        let (eta, rho) = (step.step_size, self.rho);
        // Numerator and denominator are multiplied by η, which may be 0.
        let whole = 1.0 + eta * rho;
        let keep: F = convert((1.0 - eta * self.lambda) / whole);
        let (draw, pull): (F, F) = (convert(eta * rho / whole), convert(-eta / whole));
        let scale: F = convert(-eta / (whole * step.divisor));
        for (((x, &z), &y), &sum) in parameters.iter_mut().zip(&self.sparse).zip(&self.dual).zip(gradient_sum) {
            *x = keep * *x + draw * z + pull * y + scale * sum;
        }
        if let Some(radius) = self.radius {
            project(parameters, radius);
        }
        self.split(parameters);
    }

    fn restart(&mut self, parameters: &mut [F]) {
        if let Some(radius) = self.radius {
            project(parameters, radius);
        }
        self.sparse.copy_from_slice(parameters);
        self.dual.fill(F::zero());
    }

    fn point<'p>(&'p self, parameters: &'p [F]) -> &'p [F] {
        match self.output {
            AdmmOutput::Sparse => &self.sparse,
            AdmmOutput::Smooth => parameters,
        }
    }
}

impl<F: RealField + Copy> LinearisedAdmm<F> {
    /// Updates z and y after x has been updated, by whatever method.
    pub fn split(&mut self, parameters: &[F]) {
        let rho = self.rho;
        let inverse: F = convert(1.0 / rho);
        for ((z, &y), &x) in self.sparse.iter_mut().zip(&self.dual).zip(parameters.iter()) {
            *z = x + inverse * y;
        }
        self.map.apply(1.0 / rho, &mut self.sparse);
        let rho: F = convert(rho);
        for ((y, &z), &x) in self.dual.iter_mut().zip(&self.sparse).zip(parameters.iter()) {
            *y += rho * (x - z);
        }
    }
}

#[cfg(test)]
mod tests {
    use dp_losses::Penalty;
    use dp_losses::penalty::Layout;
    use proptest::prelude::*;

    use super::*;

    fn map(penalty: Penalty, rho: f64) -> ProximalMap {
        let layout = Layout { features: 4, outputs: 1, intercept: false };
        ProximalMap::new(penalty, layout, 1.0 / rho).unwrap()
    }

    fn step(step_size: f64) -> Step {
        Step { update: 1, step_size, divisor: 2.0, weight: 1.0 }
    }

    fn norm(v: &[f64]) -> f64 {
        v.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// On `½‖x - c‖² + λ‖x‖₁` both copies converge to `S(c, λ)`.
    #[test]
    fn it_minimises() {
        let c = [2.0, -1.0, 0.3, -0.1];
        let mut x = [0.0; 4];
        let mut rule = LinearisedAdmm::new(0.7, map(Penalty::L1 { lambda: 0.5 }, 0.7), AdmmOutput::Sparse, &x);
        for _ in 0..400 {
            let gradient = [0, 1, 2, 3].map(|j| 2.0 * (x[j] - c[j]));
            rule.apply(&mut x, &gradient, &step(0.8));
        }
        for (j, expected) in [1.5, -0.5, 0.0, 0.0].into_iter().enumerate() {
            assert!(f64::abs(x[j] - expected) < 1e-9 && f64::abs(rule.point(&x)[j] - expected) < 1e-9, "{x:?}");
        }
        assert_eq!(&rule.point(&x)[2..], [0.0, 0.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// The bound on which the range of the iterates rests: each step adds at most `η (2Y + G)/(1 + ηρ)` to the largest
        /// `‖x‖` so far, and `z` is at most `Y/ρ` farther, with Y the bound on the penalty's subgradients and G the gradient's
        /// bound; for λ at most 2ρ.
        #[test]
        fn a_step_adds_a_bounded_amount(
            kind in 0..6, lambda in 0.0..2.0f64, share in 0.0..2.0f64, rho in 0.1..3.0f64, decay in 0.0..1.0f64,
            sums in prop::collection::vec(prop::array::uniform4(-4.0..4.0f64), 1..60), eta in 0.01..5.0f64, push: bool,
        ) {
            let penalty = match kind {
                0 => Penalty::L1 { lambda },
                1 => Penalty::ElasticNet { lambda, ridge: share * rho },
                2 => Penalty::Group { lambda, sizes: vec![3] },
                3 => Penalty::Nuclear { lambda },
                4 => Penalty::Scad { lambda, a: 2.1 + 1.0 / rho },
                _ => Penalty::Mcp { lambda, gamma: 0.1 + 1.0 / rho },
            };
            let pull = penalty.pull(4);
            let mut x = [0.0; 4];
            let mut rule = LinearisedAdmm::new(rho, map(penalty, rho), AdmmOutput::Smooth, &x).with_ball(decay / eta, None);
            let (mut farthest, mut total) = (0.0f64, 0.0);
            for (t, sum) in sums.iter().enumerate() {
                // Either away from the origin or arbitrary.
                let sum = if push { sum.map(|entry| -entry.abs()) } else { *sum };
                let eta = eta / (1 + t / 7) as f64;
                rule.apply(&mut x, &sum, &step(eta));
                total += eta * (2.0 * pull + norm(&sum) / 2.0) / (1.0 + eta * rho);
                farthest = farthest.max(norm(&x));
                prop_assert!(farthest <= total * (1.0 + 1e-9), "{} {}", farthest, total);
                prop_assert!(norm(rule.sparse()) <= farthest + pull / rho + 1e-9);
            }
        }
    }
}
