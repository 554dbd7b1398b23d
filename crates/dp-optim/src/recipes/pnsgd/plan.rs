//! A recipe with everything derived that does not need data, and what a certificate keeps of it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::last_iterate::LastIterate;
use dp_mechanisms::{PrivacyEvent, ReleaseRng};

use super::{Pnsgd, Updates};
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::engine::Control;
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::AnyDerivation;
use crate::recipes::last_iterate::Descent;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary};
use crate::trained::Trained;

/// How a PNSGD release follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PnsgdDerivation {
    /// The recipe.
    pub recipe: Pnsgd,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// σ: standard deviation of the noise on each batch's mean gradient.
    pub std_dev: f64,
}

impl Derives for PnsgdDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.recipe.descent(self.n, self.dim, self.relation)?.event(self.std_dev)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.recipe.inputs().assumptions()
    }
}

impl DerivesModel for PnsgdDerivation {
    fn records(&self) -> u64 {
        self.n
    }

    fn model_terms(&self) -> ModelTerms {
        ModelTerms {
            models: 1,
            weights: self.recipe.loss.parameters(self.dim),
            loss: self.recipe.loss,
            row_norm: self.recipe.row_norm,
            target_bound: self.recipe.target_bound,
            noise_mode: self.recipe.noise_mode,
        }
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        let descent = self.recipe.descent(self.n, self.dim, self.relation)?;
        descent.lattice(self.std_dev)
    }

    fn work(&self) -> u64 {
        // Each update of a pass may be a stage of its own.
        RELEASE.saturating_add(self.n.saturating_mul(8))
    }
}

/// A PNSGD release, planned: steps, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: PnsgdDerivation,
    descent: Descent,
    mechanism: LastIterate<A>,
    promise: Promise,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &Pnsgd, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        let descent = recipe.descent(n, dim, A::KIND)?;
        let std_dev = descent.least_noise(budget, copies)?;
        let mechanism = descent.mechanism(std_dev)?;
        let promise = Promise::new(mechanism.event(), budget, copies)?;
        let derivation = PnsgdDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, std_dev };
        Ok(Self { derivation, descent, mechanism, promise })
    }

    /// The updates of a pass, runs of equal ones together.
    pub fn updates(&self) -> &[Updates] {
        &self.descent.updates
    }

    /// σ: standard deviation of the noise on each batch's mean gradient.
    pub fn std_dev(&self) -> f64 {
        self.derivation.std_dev
    }

    /// Root of the expected squared norm of all noise together, as the last iterate holds it where nothing contracts.
    pub fn noise_norm(&self) -> f64 {
        self.descent.noise_norm(self.derivation.std_dev)
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &PnsgdDerivation {
        &self.derivation
    }

    /// Trains on `source` and releases the last iterate.
    ///
    /// The order of the rows and the noise are drawn from `rng`. A generator that is not secret marks the result as not
    /// private.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`], single
    /// precision. Nothing has been released then.
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        let (descent, std_dev) = (&self.descent, self.derivation.std_dev);
        let (weights, log) = descent.train(&self.mechanism, std_dev, source, &mut rng.lend(), control)?;
        self.promise.kept(weights, log, AnyDerivation::Pnsgd(self.derivation.clone()), self.mechanism.noise_mode())
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::Pnsgd(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        self.descent.summary(self.derivation.std_dev)
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train(source, rng, control)
    }
}
