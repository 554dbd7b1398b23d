//! A released model with all data for its certificate.

use std::collections::BTreeMap;

use dp_accountant::certificate::{Assumption, Certificate, Derivation as Derives, EpsilonDelta, Figures, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, EventLog};
use dp_mechanisms::Released;

/// The result of a private training: released weights, the log of the releases, and their derivation.
///
/// Only the released weights depend on the data: there is no training loss, no data-dependent number of steps, no time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained<F, A: Adjacency, D> {
    /// The model's parameters.
    pub weights: Released<Vec<F>>,
    /// The log of all releases.
    pub log: EventLog<A>,
    /// The recipe and its public parameters.
    pub derivation: D,
    /// The noise mode.
    pub noise: NoiseMode,
    /// The requested guarantee.
    pub requested: EpsilonDelta,
    /// The reached guarantee.
    pub reached: EpsilonDelta,
}

impl<F, A: Adjacency, D: Derives + Clone> Trained<F, A, D> {
    /// Converts the derivation to another type.
    pub fn map_derivation<E: Derives>(self, into: impl FnOnce(D) -> E) -> Trained<F, A, E> {
        let Self { weights, log, derivation, noise, requested, reached } = self;
        Trained { weights, log, derivation: into(derivation), noise, requested, reached }
    }

    /// Returns the certificate of this release.
    ///
    /// It lists the assumptions of the recipe, then those of the releases (an idealisation of the noise, a sum in floating
    /// point), that earlier runs on the same people are not accounted for, and `further` assumptions (for example, a schema
    /// taken from the data). A run with reproducible noise is certified as not private, without a guarantee.
    ///
    /// `model_sha256` is the hash of the model as published, and `versions` lists the crates that made it; this crate adds
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
