//! A recipe with everything derived that does not need data, and what a certificate keeps of it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::last_iterate::LastIterate;
use dp_mechanisms::{PrivacyEvent, ReleaseRng};

use super::{RECIPE, Snowball, SnowballSgd};
use crate::derivation::{DerivesModel, ModelTerms, RELEASE};
use crate::engine::Control;
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::AnyDerivation;
use crate::recipes::last_iterate::{Descent, Updates};
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Planned, RecordAdjacency, Summary, least_scale};
use crate::trained::Trained;

/// How a Snowball-SGD release follows from public parameters.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SnowballSgdDerivation {
    /// The recipe.
    pub recipe: SnowballSgd,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// T: number of updates.
    pub updates: u64,
    /// ρ that the batches were made for: what they would cost under noise of exactly `L/√d`.
    pub rho: f64,
    /// σ: standard deviation of the noise on each batch's mean gradient; about `L/√d`.
    pub std_dev: f64,
}

impl Derives for SnowballSgdDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        let (descent, _) = self.recipe.descent(self.n, self.dim, self.relation, self.rho, Some(self.updates))?;
        descent.event(self.std_dev)
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.recipe.inputs().assumptions()
    }
}

impl DerivesModel for SnowballSgdDerivation {
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
        let (descent, _) = self.recipe.descent(self.n, self.dim, self.relation, self.rho, Some(self.updates))?;
        descent.lattice(self.std_dev)
    }

    fn work(&self) -> u64 {
        RELEASE.saturating_add(self.updates.saturating_mul(32))
    }
}

/// A Snowball-SGD release, planned: steps, noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: SnowballSgdDerivation,
    descent: Descent,
    snowball: Snowball,
    mechanism: LastIterate<A>,
    promise: Promise,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &SnowballSgd, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        if !(budget.delta.get() > 0.0) {
            return Err(Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        // The batches are made for the largest mu that the budget allows, then the noise for the batches.
        let rho = 1.0 / least_scale(budget, copies, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 1.0 })?;
        let (descent, snowball) = recipe.descent(n, dim, A::KIND, rho, None)?;
        let std_dev = descent.least_noise(budget, copies)?;
        let mechanism = descent.mechanism(std_dev)?;
        let promise = Promise::new(mechanism.event(), budget, copies)?;
        let derivation = SnowballSgdDerivation {
            recipe: recipe.clone(),
            relation: A::KIND,
            n,
            dim,
            updates: snowball.updates(),
            rho,
            std_dev,
        };
        Ok(Self { derivation, descent, snowball, mechanism, promise })
    }

    /// The schedule.
    pub fn snowball(&self) -> &Snowball {
        &self.snowball
    }

    /// The updates, runs of equal ones together.
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
    pub fn derivation(&self) -> &SnowballSgdDerivation {
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
        self.promise.kept(
            weights,
            log,
            AnyDerivation::SnowballSgd(self.derivation.clone()),
            self.mechanism.noise_mode(),
        )
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::SnowballSgd(self.derivation.clone())
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
