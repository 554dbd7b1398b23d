//! Certificates made from the log of a run's releases.

use std::collections::BTreeMap;

use super::{Assumption, Certificate, Derivation, EpsilonDelta, NoiseMode, SCHEMA};
use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::event::DpEvent;
use crate::event_log::EventLog;
use crate::guarantee::Unit;

/// The requested and the achieved guarantee.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The requested guarantee.
    pub requested: EpsilonDelta,
    /// The achieved guarantee, at most the requested one.
    pub reached: EpsilonDelta,
}

impl<D: Derivation> Certificate<D> {
    /// Creates the certificate of everything in `log`, released by a recipe.
    ///
    /// It lists the recipe's assumptions, then those of the releases (an idealisation of the noise, a sum in floating point),
    /// then that earlier runs on the same people are not accounted for. A log with reproducible noise is certified as not
    /// private, without numbers. [`assuming`](Self::assuming), [`of_model`](Self::of_model) and [`made_by`](Self::made_by) add
    /// further assumptions, the model and the crates.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::certificate::{Assumption, Certificate, Derivation, EpsilonDelta, Figures, NoiseMode};
    /// use dp_accountant::{AdjacencyKind, DpEvent, Error, EventLog, ReplaceOne, guarantee::Unit};
    ///
    /// /// The mean of n values in [0, 1], with Laplace noise.
    /// struct NoisyMean { n: u64, scale: f64 }
    ///
    /// impl Derivation for NoisyMean {
    ///     type Error = Error;
    ///     fn event(&self) -> Result<DpEvent, Error> {
    ///         Ok(DpEvent::Laplace { scale: self.scale, sensitivity: 1.0 / self.n as f64 })
    ///     }
    ///     fn adjacency(&self) -> AdjacencyKind { AdjacencyKind::ReplaceOne }
    ///     fn assumptions(&self) -> Vec<Assumption> { vec![Assumption::PublicN] }
    /// }
    ///
    /// let mean = NoisyMean { n: 1000, scale: 0.01 };
    /// let mut log = EventLog::<ReplaceOne>::new();
    /// log.record(mean.event()?, 1); // mechanisms of dp-mechanisms do this themselves
    /// let epsilon = EpsilonDelta { epsilon: 0.1, delta: 0.0 };
    /// let figures = Figures { requested: epsilon, reached: epsilon };
    /// let certificate = Certificate::of_log(&log, Unit::Record, mean, NoiseMode::Exact, figures)
    ///     .of_model("an SHA-256 hash".to_owned(), Default::default())
    ///     .made_by("my-crate", "1.0.0");
    /// assert!(certificate.private && certificate.verify().is_ok());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn of_log<A: Adjacency>(
        log: &EventLog<A>,
        unit: Unit,
        derivation: D,
        noise: NoiseMode,
        figures: Figures,
    ) -> Self {
        let private = log.is_private();
        let certificate = Self {
            schema: SCHEMA.to_owned(),
            adjacency: A::KIND,
            unit,
            private,
            requested: Some(figures.requested),
            reached: private.then_some(figures.reached),
            event: log.to_event(),
            noise,
            assumptions: derivation.assumptions(),
            derivation,
            model_sha256: String::new(),
            versions: BTreeMap::new(),
        };
        certificate.assuming(log.assumptions().iter().cloned().chain([Assumption::EarlierRunsNotAccounted]))
    }
}

impl<D> Certificate<D> {
    /// Creates the certificate of a model trained without privacy: it claims no guarantee.
    pub fn without_guarantee(adjacency: AdjacencyKind, unit: Unit, derivation: D) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            adjacency,
            unit,
            private: false,
            requested: None,
            reached: None,
            event: DpEvent::NonPrivate,
            noise: NoiseMode::None,
            derivation,
            assumptions: vec![Assumption::EarlierRunsNotAccounted],
            model_sha256: String::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Adds further assumptions, each listed once.
    #[must_use]
    pub fn assuming(mut self, further: impl IntoIterator<Item = Assumption>) -> Self {
        for assumption in further {
            if !self.assumptions.contains(&assumption) {
                self.assumptions.push(assumption);
            }
        }
        self
    }

    /// Sets the hash of the published model and the versions of the crates that made it.
    #[must_use]
    pub fn of_model(mut self, sha256: String, versions: BTreeMap<String, String>) -> Self {
        self.model_sha256 = sha256;
        self.versions = versions;
        self
    }

    /// Adds the version of a crate that made the model, unless one is already given.
    #[must_use]
    pub fn made_by(mut self, name: &str, version: &str) -> Self {
        self.versions.entry(name.to_owned()).or_insert_with(|| version.to_owned());
        self
    }

    /// Converts the derivation, for example into one of several recipes that a program knows.
    #[must_use]
    pub fn map_derivation<E>(self, map: impl FnOnce(D) -> E) -> Certificate<E> {
        let Self {
            schema,
            adjacency,
            unit,
            private,
            requested,
            reached,
            event,
            noise,
            derivation,
            assumptions,
            model_sha256,
            versions,
        } = self;
        Certificate {
            schema,
            adjacency,
            unit,
            private,
            requested,
            reached,
            event,
            noise,
            derivation: map(derivation),
            assumptions,
            model_sha256,
            versions,
        }
    }
}
