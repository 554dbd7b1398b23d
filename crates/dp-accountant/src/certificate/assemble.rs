//! Certificates made from the log of what was released.

use std::collections::BTreeMap;

use super::{Assumption, Certificate, Derivation, EpsilonDelta, NoiseMode, SCHEMA};
use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::event::DpEvent;
use crate::event_log::EventLog;
use crate::guarantee::Unit;

/// What was asked for and what was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// What was asked for.
    pub requested: EpsilonDelta,
    /// What was reached: at most that.
    pub reached: EpsilonDelta,
}

impl<D: Derivation> Certificate<D> {
    /// The certificate of all that `log` holds, by a recipe.
    ///
    /// It lists what the recipe takes on trust, then what the releases do (an idealisation of the noise, a sum in floating
    /// point), and that earlier runs on the same people are not accounted for. A log with reproducible noise is certified as
    /// not private, without a figure. What else is taken on trust, the model and the crates are added by
    /// [`assuming`](Self::assuming), [`of_model`](Self::of_model) and [`made_by`](Self::made_by).
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
    /// The certificate of what was trained without any privacy: it promises nothing.
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

    /// With further assumptions, each listed once.
    #[must_use]
    pub fn assuming(mut self, further: impl IntoIterator<Item = Assumption>) -> Self {
        for assumption in further {
            if !self.assumptions.contains(&assumption) {
                self.assumptions.push(assumption);
            }
        }
        self
    }

    /// Of the model with this hash, as published, and made by these crates.
    #[must_use]
    pub fn of_model(mut self, sha256: String, versions: BTreeMap<String, String>) -> Self {
        self.model_sha256 = sha256;
        self.versions = versions;
        self
    }

    /// Made by this crate too, unless another version of it is named already.
    #[must_use]
    pub fn made_by(mut self, name: &str, version: &str) -> Self {
        self.versions.entry(name.to_owned()).or_insert_with(|| version.to_owned());
        self
    }

    /// The same statement about a recipe in another form: one of several that a program knows, say.
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
