//! How a release followed from public parameters: what a certificate carries.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::LossKind;

use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::{Algorithm, Run as _};
use crate::recipes::problem::Problem;

/// What a private recipe's derivation demands of the model that it belongs to.
///
/// A certificate speaks of a model: the two must agree on these, or the guarantee is that of another training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelTerms {
    /// Number of weights, of all models together.
    pub weights: u64,
    /// Number of models that lie side by side in the weights: one, or one for each class against the rest.
    pub models: u64,
    /// The loss that it was trained with.
    pub loss: LossKind,
    /// Bound on the rows' L2 norm that training relied on.
    pub row_norm: f64,
    /// Bound on the targets' size that training relied on.
    pub target_bound: f64,
    /// How noise was drawn.
    pub noise_mode: NoiseMode,
}

impl ModelTerms {
    /// What no model meets, for a derivation whose event is refused.
    pub(crate) const NONE: Self = Self {
        models: 0,
        weights: 0,
        loss: LossKind::Logistic,
        row_norm: 0.0,
        target_bound: 0.0,
        noise_mode: NoiseMode::Exact,
    };
}

/// Steps that the accounting of one release takes, at most about; see [`DerivesModel::work`].
pub(crate) const RELEASE: u64 = 1 << 24;

/// A private recipe's derivation, which also says what it demands of its model.
pub trait DerivesModel: Derives<Error = Error> {
    /// Number of records that the release is planned for, public.
    fn records(&self) -> u64;

    /// What the model has to be.
    fn model_terms(&self) -> ModelTerms;

    /// What the released weights can be. See [`lattice`](crate::lattice) for which recipe is held to what.
    ///
    /// # Errors
    /// Those of [`event`](Derives::event), and a derivation that is not of a released model.
    fn release_lattice(&self) -> Result<ReleaseLattice, Error>;

    /// About how many steps it takes to recompute the event and its cost, in the order of five nanoseconds each; known at
    /// once and from the derivation alone, so that nobody has to recompute a stranger's to learn that it takes days.
    fn work(&self) -> u64 {
        RELEASE
    }
}
/// How a release by one algorithm follows from public parameters: the recipe, the public shape of the data, the relation,
/// and the result of calibration.
///
/// Sensitivity, rate and number of steps are not among them: [`event`](Derives::event) recomputes them by the function
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
    /// The result of calibration: the noise, and what else the recipe leaves open.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub calibrated: R::Calibrated,
}

impl<R: Algorithm> Derivation<R> {
    /// The public parameters that it was made for.
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
        // What is refused is refused at once.
        self.problem().map_or(RELEASE, |problem| self.recipe.work(&problem, &self.calibrated))
    }
}
