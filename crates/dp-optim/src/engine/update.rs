//! Update rules: the motion of the iterate, given an estimate of the gradient. Public arithmetic on the rule's inputs.

use nalgebra::{RealField, convert};

/// The public numbers of one update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Number of the update, from 1.
    pub update: u64,
    /// η: step size of this update.
    pub step_size: f64,
    /// The divisor of the batch's gradient sum.
    pub divisor: f64,
    /// α: weight of the iterate after this update in the released average.
    pub weight: f64,
}

/// A rule that moves the iterate.
///
/// # Privacy
/// Between private estimates a rule is post-processing: it sees released sums and public numbers only, and may do anything with
/// them. In a run on plain sums whose result gets the noise, the rule enters the proof of the sensitivity: that of bolt-on SGD, for
/// example, needs steps that do not expand distances.
pub trait UpdateRule<F> {
    /// Moves `parameters`, given the estimated sum of the batch's data gradients.
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step);

    /// Resets the rule's state: the run goes on at `parameters`, which the rule first moves to where it may take gradients. A mean of
    /// its [points](Self::point) need not lie in its ball: rounding adds up, and the map of a penalty that is not convex leads out.
    #[inline]
    fn restart(&mut self, _parameters: &mut [F]) {}

    /// Returns what the rule keeps between two updates, as vectors of as many numbers as there are parameters; `None` if it keeps
    /// anything else, so that a run cannot go on in another process.
    fn kept(&self) -> Option<Vec<&[F]>> {
        None
    }

    /// Sets what the rule keeps, to vectors of the number and lengths of [`kept`](Self::kept).
    fn set_kept(&mut self, _kept: Vec<Vec<F>>) {}

    /// Returns the point that enters the average and is the output: `parameters` themselves, unless the rule takes gradients
    /// elsewhere.
    #[inline]
    fn point<'p>(&'p self, parameters: &'p [F]) -> &'p [F] {
        parameters
    }
}

/// Gradient descent on a loss with an L2 regulariser, projected onto a ball around the origin.
///
/// # Formula
/// ```text
/// w <- Π_R( (1 - ηλ) w - (η / divisor) Σ_i ∇ℓ_i(w) ),   Π_R(w) = w min(1, R/‖w‖)
/// ```
///
/// # Examples
/// ```
/// use dp_optim::engine::{GradientDescent, Step, UpdateRule};
/// let mut rule = GradientDescent { lambda: 0.1, radius: Some(2.0) };
/// let mut w = [3.0, 0.0];
/// rule.apply(&mut w, &[0.0, -20.0], &Step { update: 1, step_size: 1.0, divisor: 10.0, weight: 1.0 });
/// // (2.7, 2.0) has norm 3.36 and is projected onto the ball.
/// assert!((f64::hypot(w[0], w[1]) - 2.0).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradientDescent {
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`.
    pub lambda: f64,
    /// R: radius of the ball, if any.
    pub radius: Option<f64>,
}

impl<F: RealField + Copy> UpdateRule<F> for GradientDescent {
    #[inline]
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        let shrink: F = convert(1.0 - step.step_size * self.lambda);
        let scale: F = convert(-step.step_size / step.divisor);
        for (weight, &gradient) in parameters.iter_mut().zip(gradient_sum) {
            *weight = shrink * *weight + scale * gradient;
        }
        if let Some(radius) = self.radius {
            project(parameters, radius);
        }
    }

    fn restart(&mut self, parameters: &mut [F]) {
        if let Some(radius) = self.radius {
            project(parameters, radius);
        }
    }

    fn kept(&self) -> Option<Vec<&[F]>> {
        Some(Vec::new())
    }
}

/// Applies `Π_R`: projects onto the ball of radius `radius` around the origin.
pub fn project<F: RealField + Copy>(parameters: &mut [F], radius: f64) {
    let radius: F = convert(radius);
    let norm = squared_norm(parameters).sqrt();
    if norm > radius {
        let scale = radius / norm;
        parameters.iter_mut().for_each(|weight| *weight *= scale);
    }
}

/// Returns `‖v‖²`, with eight accumulators, since with one every addition would wait for the previous one.
pub(super) fn squared_norm<F: RealField + Copy>(vector: &[F]) -> F {
    let (blocks, left) = vector.as_chunks::<8>();
    let mut sums = [F::zero(); 8];
    for block in blocks {
        for (sum, &entry) in sums.iter_mut().zip(block) {
            *sum += entry * entry;
        }
    }
    let left = left.iter().fold(F::zero(), |sum, &entry| sum + entry * entry);
    sums.iter().fold(left, |sum, &part| sum + part)
}
