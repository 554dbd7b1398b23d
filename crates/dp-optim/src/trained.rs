//! A released model with everything that its certificate needs.

use std::collections::BTreeMap;

use dp_accountant::certificate::{Assumption, Certificate, Derivation as Derives, EpsilonDelta, Figures, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, EventLog};
use dp_mechanisms::Released;

/// What a private training returns: released weights, the log of what was released, and how it was derived.
///
/// It holds nothing that depends on the data but the released weights: no training loss, no number of steps where that
/// was data-dependent, no time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained<F, A: Adjacency, D> {
    /// The model's parameters.
    pub weights: Released<Vec<F>>,
    /// Everything that was released.
    pub log: EventLog<A>,
    /// The recipe and its public parameters.
    pub derivation: D,
    /// How the noise was drawn.
    pub noise: NoiseMode,
    /// What was asked for.
    pub requested: EpsilonDelta,
    /// What was reached.
    pub reached: EpsilonDelta,
}

impl<F, A: Adjacency, D: Derives + Clone> Trained<F, A, D> {
    /// The same release, its derivation as another type states it.
    pub fn map_derivation<E: Derives>(self, into: impl FnOnce(D) -> E) -> Trained<F, A, E> {
        let Self { weights, log, derivation, noise, requested, reached } = self;
        Trained { weights, log, derivation: into(derivation), noise, requested, reached }
    }

    /// The certificate of this release.
    ///
    /// It lists what the recipe takes on trust, then what the releases do (an idealisation of the noise, a sum in floating
    /// point), that earlier runs on the same people are not accounted for, and `further` assumptions (a schema taken from the data, say). A run
    /// with reproducible noise is certified as not private, without a figure.
    ///
    /// `model_sha256` is the hash of the model as published, and `versions` the crates that made it; this crate adds
    /// itself.
    pub fn certificate(
        &self,
        unit: Unit,
        further: Vec<Assumption>,
        model_sha256: String,
        versions: BTreeMap<String, String>,
    ) -> Certificate<D> {
        let figures = Figures { requested: self.requested, reached: self.reached };
        Certificate::of_log(&self.log, unit, self.derivation.clone(), self.noise, figures)
            .assuming(further)
            .of_model(model_sha256, versions)
            .made_by(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }
}
