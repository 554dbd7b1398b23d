//! How the iterate follows the gradients: straight, or with momentum.

use crate::error::Error;
use crate::float::FloatKind;
use crate::schedule::StepSizes;

/// The update of a run, given the gradients; public.
///
/// # Formula
/// With `g` the batch's sum of gradients, taken at `y_{t-1}`, over the divisor, and `x_0 = y_0` the start:
/// ```text
/// x_t = Π_R( (1 - η_t λ) y_{t-1} - η_t g )
/// Plain         y_t = x_t
/// Accelerated   y_t = Π_R( x_t + m (x_t - x_{t-1}) )
/// ```
/// The output is `Σ_t α_t x_t`. Without noise, for a constant step `η <= 1/β` and a strongly convex objective of modulus
/// `γ`, momentum `m = (1 - √(ηγ)) / (1 + √(ηγ))` brings `x_t` within a factor `(1 - √(ηγ))^t` of the minimum: `√κ` steps
/// do what takes plain descent `κ`. Where each step is paid for by noise, fewer steps are less noise.
///
/// # Privacy
/// Where the gradients are noisy sums that were paid for, everything here is arithmetic on what is released and on public
/// numbers: `y_t` is a function of `x_0` and of the noisy sums `1..t`, as it is in plain descent, so that the next sum is
/// chosen from released values alone (adaptive composition) and the event is the same for every momentum. Gradients that
/// are bounded within a ball only are bounded here too, since `y_t` is projected.
///
/// # Examples
/// ```
/// use dp_optim::Descent;
/// assert!((Descent::suited_to(0.04).momentum() - 2.0 / 3.0).abs() < 1e-15); // (1 - 0.2)/(1 + 0.2)
/// assert_eq!(Descent::suited_to(1.0), Descent::Plain); // one step is enough
/// ```
///
/// # References
/// Nesterov, "Introductory lectures on convex optimization", 2004, scheme (2.2.11) with constant momentum, Theorem 2.2.3.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Descent {
    /// Each gradient is taken at the last iterate.
    #[default]
    Plain,
    /// Nesterov's accelerated descent: each gradient is taken ahead of the last iterate, in the direction of the last move.
    Accelerated {
        /// m in [0, 1): how far ahead, in moves.
        momentum: f64,
    },
}

impl Descent {
    /// Accelerated descent with the momentum that suits a constant step `η` and strong convexity `γ`, of which it takes the
    /// product `ηγ`, clamped to [0, 1]. A product of 0 gives the largest momentum below 1.
    pub fn suited_to(step_times_convexity: f64) -> Self {
        let root = step_times_convexity.clamp(0.0, 1.0).sqrt();
        let momentum = ((1.0 - root) / (1.0 + root)).min(1.0 - f64::EPSILON);
        if momentum > 0.0 { Self::Accelerated { momentum } } else { Self::Plain }
    }

    /// m: 0 for plain descent.
    pub fn momentum(&self) -> f64 {
        match self {
            Self::Plain => 0.0,
            Self::Accelerated { momentum } => *momentum,
        }
    }

    /// What a summary adds to the batches: nothing for plain descent.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Accelerated { momentum } => format!(", momentum {momentum:.3}"),
        }
    }

    /// Refuses a momentum outside [0, 1), with which the iterate may run away.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let value = self.momentum();
        if !(0.0..1.0).contains(&value) {
            return Err(Error::OutOfRange { name: "momentum", value, range: "[0, 1)" });
        }
        Ok(())
    }

    /// Refuses runs whose iterates could leave the range of the float type, where something might fail for some data and
    /// not for other.
    ///
    /// # Formula
    /// A step moves the iterate by at most `D = η_t sum / divisor`; the regulariser alone moves it towards the origin where
    /// `ηλ <= 2`. With a radius one step counts, else all `T`: `‖x_T‖ <= D T`.
    ///
    /// With momentum `m` and no radius, `x_{t+1} = a (x_t + m (x_t - x_{t-1})) - d_t` with `‖d_t‖ <= D` and `a = 1 - ηλ`. For
    /// a constant `a` in [0, 1] what is left of `d_t` after k steps has the coefficient `Σ_i r^i s^(k-i)`, with r and s the
    /// roots of `z² - a (1 + m) z + am`, which lie in the closed unit disc; it is at most `k + 1`. So `‖x_T‖ <= D T²`, and
    /// the point ahead is at most three times as far. Steps that change are refused where λ > 0: there `a` may change in
    /// such a way that the moves add up.
    pub(crate) fn check_range(&self, run: &Range<'_>) -> Result<(), Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: run.recipe, why });
        let farthest = match run.float {
            FloatKind::F64 => 1e140,
            FloatKind::F32 => 1e15,
        };
        let longest = run.steps.largest();
        let (accelerated, total) = (self.momentum() > 0.0, run.updates as f64);
        let reach = match run.radius {
            // The point ahead is within three radii before it is projected.
            Some(radius) => 3.0 * ((longest * run.lambda + 1.0) * radius + longest * run.sum / run.divisor),
            None if accelerated && run.lambda > 0.0 && run.steps.constant().is_none() => {
                return not_proved("momentum with a regulariser needs a constant step, or a radius");
            }
            None if accelerated && !(longest * run.lambda <= 1.0) => {
                return not_proved("momentum needs steps of at most 1/lambda, or a radius");
            }
            None if !(longest * run.lambda <= 2.0) => f64::INFINITY,
            None if accelerated => 3.0 * total * total * longest * run.sum / run.divisor,
            None => total * longest * run.sum / run.divisor,
        };
        if !(reach <= farthest) || !(run.sum <= farthest) {
            return not_proved("steps so long could overflow: shorten them, or set a radius");
        }
        Ok(())
    }

    /// Whether this is plain descent: what a serialised recipe that does not say means.
    #[cfg(feature = "serde")]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

/// What bounds how far a run with bounded sums can stray; public.
pub(crate) struct Range<'r> {
    pub(crate) recipe: &'static str,
    pub(crate) steps: &'r StepSizes,
    pub(crate) updates: u64,
    /// Bound on the norm of a step's sum, its noise included.
    pub(crate) sum: f64,
    /// The least that it is divided by.
    pub(crate) divisor: f64,
    pub(crate) lambda: f64,
    pub(crate) radius: Option<f64>,
    pub(crate) float: FloatKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn momentum_lies_below_one() {
        for product in [0.0, 1e-300, 1e-6, 0.3, 1.0, 2.0, f64::INFINITY] {
            let descent = Descent::suited_to(product);
            assert!(descent.check().is_ok() && (0.0..1.0).contains(&descent.momentum()), "{product}: {descent:?}");
        }
        for momentum in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Descent::Accelerated { momentum }.check(), Err(Error::OutOfRange { .. })), "{momentum}");
        }
        // A product that is no number.
        assert!(Descent::suited_to(f64::NAN).check().is_ok());
    }
}
