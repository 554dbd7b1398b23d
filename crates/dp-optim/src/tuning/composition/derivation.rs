//! The derivation of the best of several trainings on the same records, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent, EventLog, ReplaceOne};

use super::{Composition, RECIPE};
use crate::derivation::{Choice, DerivesModel, ModelTerms, RELEASE};
use crate::error::{Error, positive};
use crate::lattice::{self, ReleaseLattice};
use crate::recipes::AnyDerivation;
use crate::recipes::recipe::Nesting;
use crate::tuning::agreement::sensitivity;
use crate::tuning::{check_chosen, common_assumptions, common_terms_of};

/// The derivation of the release of the best of several trainings on the same records.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct CompositionDerivation<D = AnyDerivation> {
    /// Number of records, public.
    pub n: u64,
    /// Epsilon of the exponential mechanism that chooses.
    pub choice_epsilon: f64,
    /// The derivation of each candidate.
    pub each: Vec<D>,
    /// The encoding of each candidate: 0 for that of the source itself, `k` for its alternative number `k - 1`.
    pub encodings: Vec<u32>,
    /// The position of the best candidate, from 0, which is released with the model; `None` before training.
    pub chosen: Option<u32>,
}

impl<D: DerivesModel> CompositionDerivation<D> {
    /// Returns the terms of the chosen candidate, or of the first one. All agree but for the number of weights, which is the
    /// same within an encoding.
    pub(super) fn terms(&self) -> Result<ModelTerms, Error> {
        check_chosen(self.chosen, self.each.len())?;
        let refuse = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if self.encodings.len() != self.each.len() {
            return refuse("each candidate has one encoding");
        }
        let of_training = self.n.saturating_sub(Composition::records_of_choice(self.n));
        let common = common_terms_of(RECIPE, &self.each, of_training, |terms| ModelTerms { weights: 0, ..terms })?;
        let mut known: Vec<(u32, u64)> = Vec::new();
        for (&encoding, candidate) in self.encodings.iter().zip(&self.each) {
            let weights = candidate.model_terms().weights;
            match known.iter().find(|(other, _)| *other == encoding) {
                Some((_, others)) if *others != weights => {
                    return refuse("candidates in one encoding have the same number of features");
                }
                Some(_) => {}
                None => known.push((encoding, weights)),
            }
        }
        let released = self.each.get(self.chosen.unwrap_or(0) as usize);
        Ok(ModelTerms { weights: released.map_or(0, |candidate| candidate.model_terms().weights), ..common })
    }

    /// Returns the event of all trainings, one after the other.
    pub(super) fn event_of_trainings(&self) -> Result<DpEvent, Error> {
        // Equal events are logged as one; the relation of the log does not matter.
        let mut log = EventLog::<ReplaceOne>::new();
        for candidate in &self.each {
            log.record(candidate.event()?, 1);
        }
        Ok(log.to_event())
    }
}

impl<D: DerivesModel> Derives for CompositionDerivation<D> {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.terms()?;
        sensitivity(RECIPE, self.adjacency())?;
        let choice = DpEvent::BoundedRange { epsilon: positive("epsilon of the choice", self.choice_epsilon)? };
        Ok(DpEvent::Parallel { events: vec![self.event_of_trainings()?, choice] })
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.each.first().map_or(AdjacencyKind::ReplaceOne, Derives::adjacency)
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let mut assumptions = common_assumptions(&self.each);
        if self.encodings.iter().any(|encoding| *encoding != 0) {
            assumptions.push(Assumption::PublicEncodings);
        }
        assumptions
    }
}

impl<D: DerivesModel> DerivesModel for CompositionDerivation<D> {
    fn records(&self) -> u64 {
        self.n
    }

    fn model_terms(&self) -> ModelTerms {
        self.terms().unwrap_or(ModelTerms::NONE)
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        lattice::of_chosen(&self.each, self.chosen).unwrap_or(Err(Error::NotProved {
            recipe: RECIPE,
            why: "the released model must be a candidate's, but no chosen candidate is named",
        }))
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
