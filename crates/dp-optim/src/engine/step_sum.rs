//! The sensitivity of the sum of a batch's gradients, as computed in floating point.

use dp_accountant::{Adjacency, AdjacencyKind};
use dp_losses::{Domain, L2, LossKind, Model};
use dp_mechanisms::clip::{ClippedSum, GradientClipping, sensitivity_of_sum, sensitivity_of_sum_in_float};
use nalgebra::RealField;

use crate::error::{Error, positive};
use crate::float::FloatKind;

/// Examples that are summed at a time: few enough for small rounding errors, enough for fast kernels.
pub(crate) const MICROBATCH: u64 = 1024;

/// Bounds on one record's contribution to a sum of gradients.
///
/// Unenforced bounds cannot be stated by other crates.
/// ```compile_fail,E0639
/// use dp_optim::engine::Contributions;
/// let small = Contributions::Bounded { lipschitz: 1e-9, difference: 1e-9 };
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Contributions {
    /// The gradient as the loss gives it, with the loss's bounds. Only recipes state this, of the model that they train.
    #[non_exhaustive]
    Bounded {
        /// Bound on the norm of one record's computed gradient.
        lipschitz: f64,
        /// Bound on the distance of two records' computed gradients at common parameters.
        difference: f64,
    },
    /// The gradient, clipped by this rule.
    Clipped(GradientClipping),
}

impl Contributions {
    /// Returns the bounds for a loss without its regulariser, for rows of `features` numbers in `domain`, computed in `float`.
    ///
    /// # Formula
    /// The derivatives of a linear model are taken at rounded predictions, with a separate error for each record. With `υ` the
    /// unit roundoff and `R` the radius, widened by `(d + 16) υ` for a projection's own rounding, a prediction is off by at
    /// most `(d + 2) υ R ‖x‖`, which moves a gradient by at most `s = β (d + 2) υ R`. So the distance is at most `G(R) + 2s`
    /// and the norm at most `L(R) + s`. Without a radius or smoothness, the bounds are `2L` and `L`, which hold at any
    /// prediction. The derivative itself costs another `16 υ L` per gradient. For softmax with `C` classes, subtracting the
    /// largest score adds `4 υ R` to the error of a score, and so to `s`, and the residuals cost `2C υ L` more: see
    /// [`Rounding`](crate::growth::Rounding).
    ///
    /// # Errors
    /// [`Error::NotProved`] if the gradients are bounded only within a radius and none is given.
    pub(crate) fn of_loss(loss: &LossKind, domain: &Domain, features: u64, float: FloatKind) -> Result<Self, Error> {
        let roundoff = float.unit_roundoff();
        let (of_classes, of_scores) =
            if loss.outputs() > 1 { (2.0 * f64::from(loss.outputs()), 4.0) } else { (0.0, 0.0) };
        let everywhere =
            Domain::unit_rows().with_row_norm(domain.row_norm())?.with_target_bound(domain.target_bound())?;
        let constants = loss.constants(L2::NONE, &everywhere);
        let mut lipschitz = constants.data_lipschitz;
        let mut difference = 2.0 * lipschitz;
        if let Some(radius) = domain.radius() {
            let radius = radius * (1.0 + (loss.parameters(features) as f64 + 16.0) * roundoff);
            let within = loss.constants(L2::NONE, &everywhere.with_radius(radius)?);
            let slip = within.smoothness * (features as f64 + 2.0 + of_scores) * roundoff * radius;
            if slip.is_finite() {
                lipschitz = lipschitz.min(within.data_lipschitz + slip);
                difference = difference.min(within.gradient_difference.max(within.data_lipschitz) + 2.0 * slip);
            }
        }
        if !lipschitz.is_finite() {
            return Err(Error::NotProved {
                recipe: "noise in every step",
                why: "this loss has bounded gradients only within a radius: set one",
            });
        }
        let of_derivatives = (of_classes + 16.0) * roundoff * lipschitz;
        Ok(Self::Bounded {
            lipschitz: up(lipschitz + of_derivatives),
            difference: up(difference + 2.0 * of_derivatives),
        })
    }

    /// Returns the bound on the norm of one contribution.
    pub fn bound(&self) -> f64 {
        match self {
            Self::Bounded { lipschitz, .. } => *lipschitz,
            Self::Clipped(rule) => rule.norm().get(),
        }
    }
}

/// The summation of gradients that a recipe states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Summation {
    /// Plain summation in the training's floating-point type: the default of a serialised recipe without this field. Its
    /// sensitivity is the larger one, so that old certificates are recomputed as they were made; the training is compensated
    /// all the same.
    #[default]
    Plain,
    /// In double precision, microbatches of up to 1024 examples compensated.
    Compensated,
}

#[cfg(feature = "serde")]
impl Summation {
    /// Returns whether a serialised recipe may omit this field.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

/// The parameters of one step's sum of gradients that determine its sensitivity; all public.
///
/// # Formula
/// ```text
/// sensitivity = difference + 2 γ b C            difference: under replace-one G or 2C, under zero-out L or C
/// ```
/// for at most `b` examples of a step, in microbatches: the bound that [`sensitivity_of_sum`] proves for sums in double
/// precision, which is used for every float type. At b = 50 the second term is 6e-13 C, at 1e9 it is 2e-4 C. Sums
/// [`in_float`](Self::in_float) have the bound of [`sensitivity_of_sum_in_float`].
///
/// All other records contribute the same bits to both sums, since a record's contribution depends on the parameters and on the
/// record only.
///
/// # Examples
/// ```
/// use dp_accountant::AdjacencyKind;
/// use dp_mechanisms::clip::ClippingNorm;
/// use dp_optim::FloatKind;
/// use dp_optim::engine::{Contributions, StepSum};
///
/// let clipped = Contributions::Clipped(ClippingNorm::new(1.0)?.into());
/// let sum = StepSum { contributions: clipped, examples: 50, microbatch: 50, float: FloatKind::F64, plain_microbatch: None, in_float: false };
/// let sensitivity = sum.sensitivity(AdjacencyKind::ReplaceOne)?;
/// assert!(sensitivity > 2.0 && sensitivity < 2.0 + 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepSum {
    /// The bounds on a record's contribution.
    pub contributions: Contributions,
    /// Maximum number of examples in one step.
    pub examples: u64,
    /// Maximum number of examples added at a time; each microbatch's sum is then added to the step's.
    pub microbatch: u64,
    /// The floating-point type of the gradients.
    pub float: FloatKind,
    /// Microbatch size of a [plain](Summation::Plain) sum, whose sensitivity is then stated; `None` states that of the sum as
    /// computed.
    pub plain_microbatch: Option<u64>,
    /// True if microbatches are summed in `float` instead of double precision: for samples of any kind, whose microbatches begin at
    /// fixed positions. Rows are summed in double precision.
    pub in_float: bool,
}

impl StepSum {
    /// Creates a sum for steps of at most `examples` examples, in microbatches of up to 1024.
    pub fn whole(contributions: Contributions, examples: u64, float: FloatKind) -> Self {
        let microbatch = examples.clamp(1, MICROBATCH);
        Self { contributions, examples, microbatch, float, plain_microbatch: None, in_float: false }
    }

    /// Creates a sum for steps of at most `examples` samples of any kind, clipped by `rule`, in microbatches of at most `microbatch`
    /// that are summed in `float`.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::AdjacencyKind::ZeroOut;
    /// use dp_mechanisms::clip::ClippingNorm;
    /// use dp_optim::FloatKind;
    /// use dp_optim::engine::StepSum;
    ///
    /// let norm = ClippingNorm::new(1.0)?;
    /// let sensitivity = |microbatch| StepSum::in_float(norm, 60_000, microbatch, FloatKind::F32).sensitivity(ZeroOut);
    /// assert!(sensitivity(128)? < 1.0021 && sensitivity(2048).is_err());
    /// # Ok::<(), dp_optim::Error>(())
    /// ```
    pub fn in_float(rule: impl Into<GradientClipping>, examples: u64, microbatch: u64, float: FloatKind) -> Self {
        let contributions = Contributions::Clipped(rule.into());
        Self { microbatch: microbatch.max(1), in_float: true, ..Self::whole(contributions, examples, float) }
    }

    /// Sets the summation that a recipe states: plain, in microbatches of this size, or as computed.
    pub(crate) fn added_up(self, summation: Summation, plain_microbatch: u64) -> Self {
        let plain_microbatch = (summation == Summation::Plain).then_some(plain_microbatch);
        Self { plain_microbatch, ..self }
    }

    /// Returns the L2 sensitivity of a step's sum, rounding included.
    ///
    /// # Errors
    /// [`Error::Adjacency`] unless the number of records is public under the relation; [`Error::NotProved`] for gradients without
    /// clipping in microbatches of `float`; [`Error::OutOfRange`] for a bound
    /// that the float type cannot sum; [`Error::Mechanism`] for more examples than [`sensitivity_of_sum`] allows.
    pub fn sensitivity(&self, relation: AdjacencyKind) -> Result<f64, Error> {
        let (most, least) = match self.float {
            FloatKind::F64 => (1e200, 1e-100),
            FloatKind::F32 => (1e30, 1e-15),
        };
        let bound = positive("bound on gradients", self.contributions.bound())?;
        let count = self.examples as f64;
        if !(bound >= least && bound * count <= most) {
            return Err(Error::OutOfRange {
                name: "bound on gradients",
                value: bound,
                range: "the range of a sum in this floating-point type: [1e-100, 1e200], or [1e-15, 1e30] in single precision",
            });
        }
        let (difference, bound) = self.difference(relation)?;
        if self.in_float {
            if !matches!(self.contributions, Contributions::Clipped(_)) {
                let why = "sums in single precision are proved for clipped gradients";
                return Err(Error::NotProved { recipe: "noise in every step", why });
            }
            let (moved, microbatch) = (difference / bound, self.microbatch);
            return Ok(match self.float {
                FloatKind::F64 => sensitivity_of_sum_in_float::<f64>(moved, bound, self.examples, microbatch)?,
                FloatKind::F32 => sensitivity_of_sum_in_float::<f32>(moved, bound, self.examples, microbatch)?,
            });
        }
        if let Some(microbatch) = self.plain_microbatch {
            return self.plain_sensitivity(microbatch.max(1), difference, bound);
        }
        Ok(sensitivity_of_sum(difference, bound, self.examples, self.microbatch)?)
    }

    /// Returns the sensitivity of a plain sum in the float type, of unit roundoff `υ`: with `k = ⌈b/m⌉` microbatches of `m` a
    /// coordinate is off by at most `γ Σ_i |v_ij|`, `γ = r/(1 - r)`, `r = (m + k + 2) υ`.
    fn plain_sensitivity(&self, microbatch: u64, difference: f64, bound: f64) -> Result<f64, Error> {
        let roundings = (microbatch.min(self.examples) + self.examples.div_ceil(microbatch) + 2) as f64;
        let share = roundings * self.float.unit_roundoff();
        if !(share < 0.01) {
            return Err(Error::Count {
                name: "examples added up at a time",
                value: microbatch,
                range: "at most a hundredth of the inverse of the unit roundoff",
            });
        }
        let rounding = 2.0 * (share / (1.0 - share)) * self.examples as f64 * bound;
        Ok((difference + rounding) * (1.0 + 1e-15))
    }

    /// Returns the sensitivity of the exact sum, and the bound on a contribution.
    fn difference(&self, relation: AdjacencyKind) -> Result<(f64, f64), Error> {
        let difference = match (self.contributions, relation) {
            (Contributions::Bounded { difference, .. }, AdjacencyKind::ReplaceOne) => difference,
            (Contributions::Bounded { lipschitz, .. }, AdjacencyKind::ZeroOut) => lipschitz,
            (Contributions::Clipped(rule), AdjacencyKind::ReplaceOne) => 2.0 * rule.norm().get(),
            (Contributions::Clipped(rule), AdjacencyKind::ZeroOut) => rule.norm().get(),
            (_, adjacency) => return Err(Error::Adjacency { recipe: "noise in every step", adjacency }),
        };
        Ok((difference, self.contributions.bound()))
    }

    /// Creates an empty sum for gradients of `model`, whose squared norms have so many more roundings than those of the model.
    pub(crate) fn start<F: RealField + Copy, M: Model<F>, A: Adjacency>(
        &self,
        model: &M,
        roundings: f64,
    ) -> Result<ClippedSum<F, A>, Error> {
        let (dim, blocks, microbatch) = (model.parameters(), model.blocks().len(), self.microbatch());
        Ok(match self.contributions {
            Contributions::Clipped(rule) => {
                let sum =
                    ClippedSum::new(dim, blocks, rule, model.norm_roundings() + roundings, microbatch, self.examples)?;
                if self.in_float { sum.in_float()? } else { sum }
            }
            Contributions::Bounded { .. } => {
                let bounds = self.difference(A::KIND)?;
                ClippedSum::of_bounded(dim, blocks, bounds, microbatch, self.examples)?
            }
        })
    }

    /// Returns the maximum number of examples of a microbatch.
    pub(super) fn microbatch(&self) -> usize {
        usize::try_from(self.microbatch.min(self.examples).max(1)).unwrap_or(usize::MAX)
    }
}

/// Rounds up by more than a few roundings and underflows of the surrounding arithmetic could have subtracted.
fn up(value: f64) -> f64 {
    value * (1.0 + 1e-15)
}

#[cfg(test)]
mod tests;
