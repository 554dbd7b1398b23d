//! Directions of the limited-memory quasi-Newton method (L-BFGS).
//!
//! # Formula
//! The direction is `d = -H g`. `H` is computed from the last `m` steps `s` and the differences `y` of their gradients: it
//! starts as `(⟨s, y⟩/⟨y, P y⟩) P` of the newest pair, with `P` an approximate inverse of the Hessian or the identity, and
//! each pair in turn updates it: `H ← (I - ρ s yᵀ) H (I - ρ y sᵀ) + ρ s sᵀ`, `ρ = 1/⟨s, y⟩`, computed by two loops over the
//! pairs.
//!
//! # References
//! Nocedal 1980, "Updating quasi-Newton matrices with limited storage"; Nocedal, Wright, Numerical Optimization, 2006,
//! Algorithm 7.4.

use std::collections::VecDeque;

use nalgebra::RealField;

use super::preconditioner::Preconditioner;

/// Maximum number of pairs, kept for few parameters. A regulariser of a few units under a sum over records makes condition
/// numbers of 10⁵, where twelve pairs take ten times as many gradients; with 100 pairs hardly any pair is dropped before the
/// method ends.
const MOST_PAIRS: usize = 100;

/// Minimum number of pairs, kept for any number of parameters.
const LEAST_PAIRS: usize = 12;

/// Numbers in the kept steps, where there are more than the minimum: 16 MiB in double precision, and as much for the gradient
/// changes.
const NUMBERS: usize = 1 << 21;

fn pairs(parameters: usize) -> usize {
    (NUMBERS / parameters.max(1)).clamp(LEAST_PAIRS, MOST_PAIRS)
}

/// The current approximation of the inverse Hessian.
pub(super) struct Curvature<F> {
    pairs: VecDeque<Pair<F>>,
    alphas: Vec<F>,
}

struct Pair<F> {
    step: Vec<F>,
    change: Vec<F>,
    rho: F,
}

impl<F: RealField + Copy> Curvature<F> {
    pub(super) fn new() -> Self {
        Self { pairs: VecDeque::new(), alphas: Vec::new() }
    }

    /// Adds a step and the change of the gradient along it, unless the pair has no positive curvature.
    pub(super) fn learn(&mut self, step: Vec<F>, change: Vec<F>) {
        let curvature = dot(&step, &change);
        if !(curvature > F::zero() && curvature.is_finite()) {
            return;
        }
        if self.pairs.len() == pairs(step.len()) {
            self.pairs.pop_front();
        }
        self.pairs.push_back(Pair { step, change, rho: F::one() / curvature });
    }

    pub(super) fn forget(&mut self) {
        self.pairs.clear();
    }

    /// Returns minus the approximate inverse Hessian times the gradient. Without pairs the approximation is `inverse` if
    /// given, otherwise `initial` times the identity.
    pub(super) fn direction(&mut self, gradient: &[F], initial: F, inverse: Option<&Preconditioner<F>>) -> Vec<F> {
        let mut direction: Vec<F> = gradient.iter().map(|&g| -g).collect();
        self.alphas.clear();
        for pair in self.pairs.iter().rev() {
            let alpha = pair.rho * dot(&pair.step, &direction);
            add(&mut direction, -alpha, &pair.change);
            self.alphas.push(alpha);
        }
        let scale = match (self.pairs.back(), inverse) {
            (Some(pair), Some(inverse)) => {
                let mut step = pair.change.clone();
                inverse.solve(&mut step);
                F::one() / (pair.rho * dot(&pair.change, &step))
            }
            (Some(pair), None) => F::one() / (pair.rho * dot(&pair.change, &pair.change)),
            (None, Some(_)) => F::one(),
            (None, None) => initial,
        };
        if let Some(inverse) = inverse {
            inverse.solve(&mut direction);
        }
        direction.iter_mut().for_each(|d| *d *= scale);
        for (pair, &alpha) in self.pairs.iter().zip(self.alphas.iter().rev()) {
            let beta = pair.rho * dot(&pair.change, &direction);
            add(&mut direction, alpha - beta, &pair.step);
        }
        direction
    }
}

pub(super) fn dot<F: RealField + Copy>(a: &[F], b: &[F]) -> F {
    a.iter().zip(b).fold(F::zero(), |sum, (&a, &b)| sum + a * b)
}

fn add<F: RealField + Copy>(to: &mut [F], times: F, what: &[F]) {
    to.iter_mut().zip(what).for_each(|(to, &what)| *to += times * what);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a quadratic in three dimensions, exact line searches along these directions end after three steps.
    #[test]
    fn three_dimensions_take_three_steps() {
        let curvature = |x: &[f64]| vec![4.0 * x[0] + x[1], x[0] + 3.0 * x[1] - 0.5 * x[2], 2.0 * x[2] - 0.5 * x[1]];
        let minimiser = [1.0, -2.0, 0.5];
        let gradient = |x: &[f64]| {
            let from: Vec<f64> = x.iter().zip(minimiser).map(|(x, m)| x - m).collect();
            curvature(&from)
        };
        let (mut known, mut x) = (Curvature::new(), vec![0.0; 3]);
        for _ in 0..3 {
            let g = gradient(&x);
            let d = known.direction(&g, 1.0, None);
            assert!(dot(&d, &g) < 0.0, "a direction of descent");
            let length = -dot(&d, &g) / dot(&d, &curvature(&d));
            let step: Vec<f64> = d.iter().map(|d| length * d).collect();
            x.iter_mut().zip(&step).for_each(|(x, s)| *x += s);
            let change = gradient(&x).iter().zip(&g).map(|(after, before)| after - before).collect();
            known.learn(step, change);
        }
        assert!(gradient(&x).iter().all(|g| g.abs() < 1e-12), "{x:?}");
        // A pair with an unchanged gradient is ignored, and after forgetting the direction is the gradient's.
        known.learn(vec![1.0; 3], vec![0.0; 3]);
        assert_eq!(known.pairs.len(), 3);
        known.forget();
        assert!(known.pairs.is_empty());
        assert_eq!(known.direction(&[2.0, 0.0, -4.0], 0.5, None), [-1.0, 0.0, 2.0]);
    }

    #[test]
    fn the_newest_pairs_are_kept_as_many_as_there_is_room_for() {
        assert_eq!([1, 20_000, 30_000, 1 << 30].map(pairs), [100, 100, 69, 12]);
        let mut known = Curvature::new();
        for i in 1..=150 {
            known.learn(vec![f64::from(i)], vec![1.0]);
        }
        assert_eq!((known.pairs.len(), known.pairs[0].step[0], known.pairs[99].step[0]), (100, 51.0, 150.0));
    }
}
