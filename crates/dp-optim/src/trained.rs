//! A released model with everything that its certificate needs.

use std::collections::BTreeMap;

use dp_accountant::certificate::{Assumption, Certificate, Derivation as Derives, EpsilonDelta, NoiseMode, SCHEMA};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, EventLog};
use dp_mechanisms::Released;

use crate::derivation::Derivation;

/// What a private training returns: released weights, the log of what was released, and how it was derived.
///
/// It holds nothing that depends on the data but the released weights: no training loss, no number of steps where that
/// was data-dependent, no time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained<F, A: Adjacency> {
    /// The model's parameters.
    pub weights: Released<Vec<F>>,
    /// Everything that was released.
    pub log: EventLog<A>,
    /// The recipe and its public parameters.
    pub derivation: Derivation,
    /// How the noise was drawn.
    pub noise: NoiseMode,
    /// What was asked for.
    pub requested: EpsilonDelta,
    /// What was reached.
    pub reached: EpsilonDelta,
}

impl<F, A: Adjacency> Trained<F, A> {
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
        mut versions: BTreeMap<String, String>,
    ) -> Certificate<Derivation> {
        let private = self.log.is_private();
        let mut assumptions = self.derivation.assumptions();
        let of_releases = self.log.assumptions().iter().cloned();
        for assumption in of_releases.chain([Assumption::EarlierRunsNotAccounted]).chain(further) {
            if !assumptions.contains(&assumption) {
                assumptions.push(assumption);
            }
        }
        versions.entry(env!("CARGO_PKG_NAME").to_owned()).or_insert_with(|| env!("CARGO_PKG_VERSION").to_owned());
        Certificate {
            schema: SCHEMA.to_owned(),
            adjacency: A::KIND,
            unit,
            private,
            requested: Some(self.requested),
            reached: private.then_some(self.reached),
            event: self.log.to_event(),
            noise: self.noise,
            derivation: self.derivation.clone(),
            assumptions,
            model_sha256,
            versions,
        }
    }
}
