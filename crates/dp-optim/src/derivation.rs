//! The derivation of a release from public parameters, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::LossKind;

use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::NoiseScale;
use crate::recipes::algorithm::{Algorithm, Run as _};
use crate::recipes::problem::Problem;
use crate::recipes::recipe::{NOT_JOINT, Nesting};

/// The requirements of a private recipe's derivation on the model it belongs to.
///
/// A certificate is about one model: the two must agree on these terms, otherwise the guarantee is that of another training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelTerms {
    /// Number of weights of all models together, the threshold included.
    pub weights: u64,
    /// True if the last weight is the threshold of two classes.
    pub has_threshold: bool,
    /// Number of models stacked in the weights: one, or one for each class against the rest.
    pub models: u64,
    /// The loss of the training.
    pub loss: LossKind,
    /// Bound on the rows' L2 norm that training assumed.
    pub row_norm: f64,
    /// Bound on the targets' absolute value that training assumed.
    pub target_bound: f64,
    /// The noise mode.
    pub noise_mode: NoiseMode,
}

impl ModelTerms {
    /// Returns the number of features of each model, intercept included.
    pub fn dim(&self) -> u64 {
        let outputs = self.models.max(self.loss.outputs().into());
        self.weights.saturating_sub(self.has_threshold.into()) / outputs
    }

    /// Terms that no model meets, for a derivation whose event is refused.
    pub(crate) const NONE: Self = Self {
        models: 0,
        weights: 0,
        has_threshold: false,
        loss: LossKind::Logistic,
        row_norm: 0.0,
        target_bound: 0.0,
        noise_mode: NoiseMode::Exact,
    };
}

/// The noise on the released weights.
///
/// Its coordinates have mean 0 and are uncorrelated, so that a linear combination `⟨a, weights⟩` has the standard error `‖a‖` times
/// that of a weight.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_losses::LossKind;
/// use dp_optim::DerivesModel;
/// use dp_optim::recipes::{BoltOn, Budget, Planned, Recipe};
///
/// let budget = Budget::new(1.0, 1e-6)?;
/// let plan = BoltOn::strongly_convex(LossKind::Logistic, 0.01).plan::<ReplaceOne>(10_000, 50, budget)?;
/// let noise = plan.derivation().weight_noise().ok_or("noise elsewhere")?;
/// assert!(noise.std_dev() > 0.05 && noise.std_dev() < 0.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightNoise {
    /// Its law.
    pub law: NoiseScale,
    /// Number of coordinates of one draw.
    pub dim: u64,
}

impl WeightNoise {
    /// Returns the standard deviation of the noise on one weight.
    pub fn std_dev(&self) -> f64 {
        self.law.coordinate_std_dev(self.dim)
    }
}

/// A private choice among candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Position of the chosen candidate; `None` if none was released.
    pub chosen: Option<usize>,
    /// Number of candidates.
    pub candidates: usize,
}

/// Rough maximum of the steps that the accounting of one release takes; see [`DerivesModel::work`].
pub(crate) const RELEASE: u64 = 1 << 24;

/// A private recipe's derivation, with its requirements on the model.
pub trait DerivesModel: Derives<Error = Error> {
    /// Returns the number of records that the release is planned for, public.
    fn records(&self) -> u64;

    /// Returns the number of units that the release protects, public.
    fn units(&self) -> u64 {
        self.records()
    }

    /// Returns the unit that the release protects.
    fn unit(&self) -> Unit {
        Unit::Record
    }

    /// Returns the terms that the model must meet.
    fn model_terms(&self) -> ModelTerms;

    /// Returns the set of weights that can be released. [`lattice`](crate::lattice) lists the checks of each recipe.
    ///
    /// # Errors
    /// Those of [`event`](Derives::event), and a derivation that is not of a released model.
    fn release_lattice(&self) -> Result<ReleaseLattice, Error>;

    /// Returns roughly the number of steps, of about five nanoseconds each, that recomputing the event and its cost takes. It
    /// is computed at once and from the derivation alone, so that a verifier can refuse a derivation that would take days.
    fn work(&self) -> u64 {
        RELEASE
    }

    /// Returns the noise that was added to the weights at the end; `None` if noise was added elsewhere, so that its effect on the
    /// weights depends on the records, or if the weights are a choice among several.
    fn weight_noise(&self) -> Option<WeightNoise> {
        None
    }

    /// Returns the nesting that it allows.
    fn nesting(&self) -> Nesting {
        Nesting::Single
    }

    /// Returns the outcome of a private choice among candidates; `None` for a recipe without one.
    fn choice(&self) -> Option<Choice> {
        None
    }

    /// Returns the event of one release of `classes` models together, each as derived here.
    ///
    /// # Errors
    /// [`Error::NotProved`] for an algorithm that does not release once, at its end.
    fn joint_event(&self, _classes: u32) -> Result<DpEvent, Error> {
        Err(NOT_JOINT)
    }
}
/// The derivation of a release by one algorithm from public parameters: the recipe, the public shape of the data, the
/// relation, and the result of calibration.
///
/// Sensitivity, sampling rate and number of steps are not included: [`event`](Derives::event) recomputes them by the function
/// that the plan used.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        deny_unknown_fields,
        bound(
            serialize = "R: serde::Serialize, R::Calibrated: serde::Serialize",
            deserialize = "R: serde::de::DeserializeOwned, R::Calibrated: serde::de::DeserializeOwned"
        )
    )
)]
pub struct Derivation<R: Algorithm> {
    /// The recipe.
    pub recipe: R,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// The result of calibration: the noise, and other values that the recipe leaves open.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub calibrated: R::Calibrated,
}

impl<R: Algorithm> Derivation<R> {
    /// Returns the public parameters of the release.
    ///
    /// # Errors
    /// Those of [`Problem::new`].
    pub fn problem(&self) -> Result<Problem, Error> {
        Problem::new(&self.recipe, self.n, self.dim, self.relation)
    }
}

impl<R: Algorithm> Derives for Derivation<R> {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.resolve(&self.problem()?, &self.calibrated)?.event()
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.problem().map(|problem| self.recipe.assumptions(&problem)).unwrap_or_default()
    }
}

impl<R: Algorithm> DerivesModel for Derivation<R> {
    fn records(&self) -> u64 {
        self.n
    }

    fn model_terms(&self) -> ModelTerms {
        self.problem().map_or(ModelTerms::NONE, |problem| problem.model_terms())
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        self.recipe.lattice(&self.problem()?, &self.calibrated)
    }

    fn work(&self) -> u64 {
        // Invalid derivations are refused at once.
        self.problem().map_or(RELEASE, |problem| self.recipe.work(&problem, &self.calibrated))
    }

    fn weight_noise(&self) -> Option<WeightNoise> {
        let law = self.recipe.weight_noise(&self.calibrated)?;
        Some(WeightNoise { law, dim: self.recipe.setting().loss.parameters(self.dim) })
    }

    fn joint_event(&self, classes: u32) -> Result<DpEvent, Error> {
        self.recipe.joint_event(&self.problem()?, &self.calibrated, classes)
    }
}

#[cfg(test)]
mod tests;
