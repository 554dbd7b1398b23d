//! Losses through their conjugates: proximal steps on one example's slope, and certified duality gaps.
//!
//! A regularised risk over `n` examples has a dual with one variable per example, its slope `u`. Solvers that change one slope at
//! a time need no smoothness, and the dual point certifies the primal one.
//!
//! # Formula
//! With `ℓ*` the conjugate of the loss in the prediction,
//! ```text
//! P(w) = (1/n) Σ ℓ(⟨w, x_i⟩, y_i) + (λ/2) ‖w - v‖²,     w(u) = v - (1/(λn)) Σ u_i x_i
//! D(u) = -(1/n) Σ [ℓ*(u_i) - ⟨v, x_i⟩ u_i] - (1/(2λ)) ‖(1/n) Σ u_i x_i‖²   <=   min P
//! P(w) - D(u) = (1/n) Σ [ℓ(p_i) + ℓ*(u_i) - u_i p_i] + (λ/2) ‖w - w(u)‖²,   p_i = ⟨w, x_i⟩
//! ```
//! Every term is non-negative (Fenchel-Young), so that the gap is accurate even if `P` and `D` agree in most digits. It bounds
//! the distance from the minimiser `w*` by `(λ/2) ‖w - w*‖² <= P(w) - D(u)`.
//!
//! # References
//! Shalev-Shwartz, Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization", JMLR 14, 2013.

use nalgebra::convert;

use crate::absolute::Absolute;
use crate::hinge::Hinge;
use crate::huber_regression::HuberRegression;
use crate::huber_svm::HuberSvm;
use crate::logistic::Logistic;
use crate::loss::Loss;
use crate::loss_kind::LossKind;
use crate::real::Real;

/// A loss with bounded slopes, and its conjugate.
///
/// The dual variable `a` of an example is its slope in the loss's own units: `u = slope(a, y)`. Losses of two classes have
/// `u = -y a` with `a` in [0, 1], losses of numbers `u = a` in [-1, 1]. Any rounded `a` in [`dual_range`](Self::dual_range) is
/// exactly feasible.
///
/// # Examples
/// ```
/// use dp_losses::{Hinge, ProximalLoss};
/// // A margin of 0.5 under the hinge: the best slope is -1, which the first step reaches.
/// let dual = Hinge.dual_step(0.0, 0.5, 1.0, 0.25);
/// assert_eq!((dual, Hinge.slope(dual, 1.0)), (1.0, -1.0));
/// assert_eq!(Hinge.gap(dual, 0.5, 1.0), 0.0); // optimal
/// assert_eq!(Hinge.gap(0.5, 0.5, 1.0), 0.25);
/// ```
pub trait ProximalLoss<F>: Loss<F> {
    /// Returns the least and the largest dual variable.
    fn dual_range(&self) -> (f64, f64);

    /// Returns the slope `∂ℓ/∂p` of a dual variable.
    fn slope(&self, dual: F, target: F) -> F;

    /// Returns the dual variable `a'` that minimises `ℓ*(u') - u' p + (q/2) (u' - u)²`, `u = slope(dual)`, `q = curvature >= 0`:
    /// the best value for this example if its prediction `p` changes by `q` for each unit of slope. Always in the dual range.
    fn dual_step(&self, dual: F, prediction: F, target: F, curvature: F) -> F;

    /// Returns an upper bound on the gap `ℓ(p) + ℓ*(u) - u p >= 0` at `u = slope(dual)`, up to a few relative roundings: 0 if `u`
    /// is a slope of the loss at `p`. As a function of `p` it decreases and then increases, so that the larger of its values at
    /// the ends of an interval is a bound inside it.
    fn gap(&self, dual: F, prediction: F, target: F) -> F;
}

/// An operation on a loss with a conjugate once its type is known.
pub trait ProximalVisitor<F> {
    /// The result.
    type Output;
    /// Called once with the loss.
    fn visit<L: ProximalLoss<F>>(self, loss: L) -> Self::Output;
}

impl LossKind {
    /// Calls the visitor with the loss as its own type; `None` for a loss without bounded slopes or of several outputs.
    pub fn visit_proximal<F: Real, V: ProximalVisitor<F>>(self, visitor: V) -> Option<V::Output> {
        match self {
            Self::Logistic => Some(visitor.visit(Logistic)),
            Self::HuberSvm(loss) => Some(visitor.visit(loss)),
            Self::Hinge => Some(visitor.visit(Hinge)),
            Self::Absolute => Some(visitor.visit(Absolute)),
            Self::HuberRegression(loss) => Some(visitor.visit(loss)),
            _ => None,
        }
    }
}

/// Clamps `value` to `[low, high]`; `low` for NaN.
fn clamp<F: Real>(value: F, low: F, high: F) -> F {
    if value > low { if value < high { value } else { high } } else { low }
}

/// Returns `numerator / denominator`; a zero denominator gives the limit: an infinity, or 0 for 0/0.
fn quotient<F: Real>(numerator: F, denominator: F) -> F {
    if denominator > F::zero() {
        numerator / denominator
    } else if numerator == F::zero() {
        F::zero()
    } else {
        numerator.signum() * convert(f64::INFINITY)
    }
}

/// # Formula
/// With `s = y p`: `ℓ*(-y a) = -a`, `a' = clamp(a + (1 - s) / (q y²))`, gap `(1 - a) max(0, 1 - s) + a max(0, s - 1)`.
impl<F: Real> ProximalLoss<F> for Hinge {
    fn dual_range(&self) -> (f64, f64) {
        (0.0, 1.0)
    }

    #[inline(always)]
    fn slope(&self, dual: F, target: F) -> F {
        -target * dual
    }

    #[inline(always)]
    fn dual_step(&self, dual: F, prediction: F, target: F, curvature: F) -> F {
        let shortfall = F::one() - prediction * target;
        clamp(dual + quotient(shortfall, curvature * target * target), F::zero(), F::one())
    }

    #[inline(always)]
    fn gap(&self, dual: F, prediction: F, target: F) -> F {
        let shortfall = F::one() - prediction * target;
        if shortfall > F::zero() { (F::one() - dual) * shortfall } else { dual * -shortfall }
    }
}

/// # Formula
/// With `s = y p`, `t = 1 + h - s`: `ℓ*(-y a) = h a² - (1 + h) a` for `a` in [0, 1],
/// `a' = clamp((t + q y² a) / (2h + q y²))`, and the gap is
/// ```text
/// a (h a - t) for t <= 0;    (t - 2h a)² / (4h) for 0 <= t <= 2h;    (1 - a) (t - h (1 + a)) for t >= 2h
/// ```
impl<F: Real> ProximalLoss<F> for HuberSvm {
    fn dual_range(&self) -> (f64, f64) {
        (0.0, 1.0)
    }

    #[inline(always)]
    fn slope(&self, dual: F, target: F) -> F {
        -target * dual
    }

    #[inline(always)]
    fn dual_step(&self, dual: F, prediction: F, target: F, curvature: F) -> F {
        let h = convert::<f64, F>(self.h());
        let moved = curvature * target * target;
        let above = h + (F::one() - prediction * target);
        clamp((above + moved * dual) / (h + h + moved), F::zero(), F::one())
    }

    #[inline(always)]
    fn gap(&self, dual: F, prediction: F, target: F) -> F {
        let h = convert::<f64, F>(self.h());
        let above = h + (F::one() - prediction * target);
        let width = h + h;
        if above <= F::zero() {
            dual * (h * dual - above)
        } else if above >= width {
            // `t - h (1 + a)` as a sum of two non-negative numbers.
            (F::one() - dual) * ((above - width) + h * (F::one() - dual))
        } else {
            let off = above - width * dual;
            off * (off / (width + width))
        }
    }
}

/// # Formula
/// With `r = p - y`: `ℓ*(u) = y u` for `|u| <= 1`, `u' = clamp(u + r/q)`, gap `|r| - u r`.
impl<F: Real> ProximalLoss<F> for Absolute {
    fn dual_range(&self) -> (f64, f64) {
        (-1.0, 1.0)
    }

    #[inline(always)]
    fn slope(&self, dual: F, _target: F) -> F {
        dual
    }

    #[inline(always)]
    fn dual_step(&self, dual: F, prediction: F, target: F, curvature: F) -> F {
        clamp(dual + quotient(prediction - target, curvature), -F::one(), F::one())
    }

    #[inline(always)]
    fn gap(&self, dual: F, prediction: F, target: F) -> F {
        let residual = prediction - target;
        if residual > F::zero() { (F::one() - dual) * residual } else { (F::one() + dual) * -residual }
    }
}

/// # Formula
/// With `r = p - y`: `ℓ*(u) = y u + h u²/2` for `|u| <= 1`, `u' = clamp((r + q u) / (h + q))`, gap
/// `(r - h u)² / (2h)` for `|r| <= h`, else `(1 - |u| s) (|r| - h) + h (1 - |u| s)²/2`, `s = sign(r u)`.
impl<F: Real> ProximalLoss<F> for HuberRegression {
    fn dual_range(&self) -> (f64, f64) {
        (-1.0, 1.0)
    }

    #[inline(always)]
    fn slope(&self, dual: F, _target: F) -> F {
        dual
    }

    #[inline(always)]
    fn dual_step(&self, dual: F, prediction: F, target: F, curvature: F) -> F {
        let h = convert::<f64, F>(self.h());
        clamp(((prediction - target) + curvature * dual) / (h + curvature), -F::one(), F::one())
    }

    #[inline(always)]
    fn gap(&self, dual: F, prediction: F, target: F) -> F {
        let h = convert::<f64, F>(self.h());
        let residual = prediction - target;
        let size = residual.abs();
        if size <= h {
            let off = residual - h * dual;
            off * (off / (h + h))
        } else {
            let off = if residual > F::zero() { F::one() - dual } else { F::one() + dual };
            off * ((size - h) + convert::<f64, F>(0.5) * h * off)
        }
    }
}

/// Maximum number of bisections and Newton steps for the logistic slope: at least every third step halves the range or the step.
const LOGISTIC_STEPS: u32 = 120;

/// # Formula
/// With `s = y p`, `σ` the slope's size `1/(1 + e^s)`: `ℓ*(-y a) = a ln a + (1 - a) ln(1 - a)`; `a'` solves `ln(a'/(1 - a')) +
/// s + q y² (a' - a) = 0`. The gap is the Kullback-Leibler divergence of two coins with probabilities `a` and `σ`, for which
/// `(a - σ)² / (σ (1 - σ))` is a bound (at most twice the gap if they are close).
impl<F: Real> ProximalLoss<F> for Logistic {
    fn dual_range(&self) -> (f64, f64) {
        (0.0, 1.0)
    }

    #[inline(always)]
    fn slope(&self, dual: F, target: F) -> F {
        -target * dual
    }

    /// Uses Newton's method on the margin `s' = s + q y² (a' - a)`, kept between the ends `s' = s + q y² (0 - a)` and
    /// `s + q y² (1 - a)`; `a' = 1/(1 + e^{s'})` is then a slope of the loss for any remaining error.
    fn dual_step(&self, dual: F, prediction: F, target: F, curvature: F) -> F {
        let moved = curvature * target * target;
        let margin = prediction * target;
        let (mut low, mut high) = (margin - moved * dual, margin + moved * (F::one() - dual));
        let (start, half) = (low, convert::<f64, F>(0.5));
        let slope = |s: F| (F::one() + s.exponential()).recip();
        let mut s = clamp(margin, low, high);
        // The sizes of the last step and of the one before: Newton's method alone can cycle where the slope is steep, so a step
        // must be half of the last but one; otherwise the range is halved.
        let mut steps = [high - low; 2];
        for _ in 0..LOGISTIC_STEPS {
            let at = slope(s);
            // Increasing in s: s - (start + moved · slope(s)).
            let excess = s - (start + moved * at);
            if excess > F::zero() {
                high = s;
            } else {
                low = s;
            }
            let newton = s - excess / (F::one() + moved * at * (F::one() - at));
            let falls = (newton - s).abs() <= half * steps[0];
            let next = if falls && newton > low && newton < high { newton } else { low + half * (high - low) };
            if next == s {
                break;
            }
            steps = [steps[1], (next - s).abs()];
            s = next;
        }
        clamp(slope(s), F::zero(), F::one())
    }

    #[inline(always)]
    fn gap(&self, dual: F, prediction: F, target: F) -> F {
        let margin = prediction * target;
        // Each is computed from the exponential that does not overflow, so that neither is a difference of close numbers.
        let (falls, stays) = {
            let e = (-margin.abs()).exponential();
            let (small, large) = (e / (F::one() + e), (F::one() + e).recip());
            if margin > F::zero() { (small, large) } else { (large, small) }
        };
        // The distance from the nearer end.
        let off = dual - falls;
        let spread = falls * stays;
        if off == F::zero() { F::zero() } else { quotient(off * off, spread) }
    }
}

#[cfg(test)]
mod tests;
