//! The derivation of the best of a random number of repetitions, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent, Repetitions};

use super::{RECIPE, ScoreNoise};
use crate::derivation::{Choice, DerivesModel, ModelTerms, RELEASE};
use crate::error::Error;
use crate::lattice::{self, ReleaseLattice};
use crate::recipes::AnyDerivation;
use crate::recipes::recipe::Nesting;
use crate::tuning::agreement::sensitivity;
use crate::tuning::{check_chosen, common_assumptions, common_terms, repetitions};

/// The derivation of the release of the best of a random number of repetitions.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RandomStoppingDerivation<D = AnyDerivation> {
    /// Number of records, public.
    pub n: u64,
    /// The law of the number of repetitions.
    pub repetitions: Repetitions,
    /// The noise on each score.
    pub score: ScoreNoise,
    /// The derivation of each candidate.
    pub each: Vec<D>,
    /// The position of the best candidate, from 0, which is released with the model; `None` before training, and without a
    /// repetition.
    pub chosen: Option<u32>,
}

impl<D: DerivesModel> RandomStoppingDerivation<D> {
    pub(super) fn terms(&self) -> Result<ModelTerms, Error> {
        check_chosen(self.chosen, self.each.len())?;
        common_terms(RECIPE, &self.each, self.n)
    }
}

impl<D: DerivesModel> Derives for RandomStoppingDerivation<D> {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.terms()?;
        repetitions::check(self.repetitions)?;
        let mut events = Vec::with_capacity(self.each.len());
        for candidate in &self.each {
            let event = candidate.event()?;
            if !events.contains(&event) {
                events.push(event);
            }
        }
        let score = self.score.event(sensitivity(RECIPE, self.adjacency())?)?;
        let repetition = DpEvent::Composed { events: vec![DpEvent::OneOf { events }, score] };
        Ok(DpEvent::RandomStopping { repetitions: self.repetitions, event: Box::new(repetition) })
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.each.first().map_or(AdjacencyKind::ReplaceOne, Derives::adjacency)
    }

    fn assumptions(&self) -> Vec<Assumption> {
        common_assumptions(&self.each)
    }
}

impl<D: DerivesModel> DerivesModel for RandomStoppingDerivation<D> {
    fn records(&self) -> u64 {
        self.n
    }

    fn model_terms(&self) -> ModelTerms {
        self.terms().unwrap_or(ModelTerms::NONE)
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        // Without a repetition the model is zero.
        lattice::of_chosen(&self.each, self.chosen).unwrap_or(Ok(ReleaseLattice::ORIGIN))
    }

    fn nesting(&self) -> Nesting {
        Nesting::Choice
    }

    fn choice(&self) -> Option<Choice> {
        Some(Choice { chosen: self.chosen.map(|chosen| chosen as usize), candidates: self.each.len() })
    }

    fn work(&self) -> u64 {
        self.each.iter().fold(RELEASE, |work, candidate| work.saturating_add(candidate.work()))
    }
}
