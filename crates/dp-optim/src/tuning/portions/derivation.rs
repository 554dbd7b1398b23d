//! The derivation of a choice on portions, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};

use super::{Portions, RECIPE};
use crate::derivation::{Choice, DerivesModel, ModelTerms, RELEASE};
use crate::error::{Error, positive};
use crate::lattice::{self, ReleaseLattice};
use crate::recipes::AnyDerivation;
use crate::recipes::recipe::Nesting;
use crate::tuning::agreement::sensitivity;
use crate::tuning::{check_chosen, common_assumptions, common_terms};

/// The derivation of a release that was chosen on portions of the records.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PortionsDerivation<D = AnyDerivation> {
    /// Number of records, public.
    pub n: u64,
    /// Epsilon of the exponential mechanism that chooses.
    pub choice_epsilon: f64,
    /// The derivation of each candidate on its portion.
    pub each: Vec<D>,
    /// The position of the chosen candidate, from 0, which is released with the model; `None` before training.
    pub chosen: Option<u32>,
}

impl<D: DerivesModel> PortionsDerivation<D> {
    pub(super) fn terms(&self) -> Result<ModelTerms, Error> {
        check_chosen(self.chosen, self.each.len())?;
        common_terms(RECIPE, &self.each, Portions::records_of_portion(self.n, self.each.len()))
    }
}

impl<D: DerivesModel> Derives for PortionsDerivation<D> {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.terms()?;
        sensitivity(RECIPE, self.adjacency())?;
        let choice = DpEvent::BoundedRange { epsilon: positive("epsilon of the choice", self.choice_epsilon)? };
        let mut events = self.each.iter().map(Derives::event).collect::<Result<Vec<_>, _>>()?;
        events.push(choice);
        Ok(DpEvent::Parallel { events })
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.each.first().map_or(AdjacencyKind::ReplaceOne, Derives::adjacency)
    }

    fn assumptions(&self) -> Vec<Assumption> {
        common_assumptions(&self.each)
    }
}

impl<D: DerivesModel> DerivesModel for PortionsDerivation<D> {
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
