//! The derivation of a model that decides at the base rate, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::LossKind;

use super::RECIPE;
use crate::derivation::{Derivation, DerivesModel, ModelTerms, WeightNoise};
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::AnyDerivation;
use crate::recipes::majority::Majority;
use crate::recipes::recipe::{Nesting, repeated};

/// The derivation of a model that decides at the base rate.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AtBaseRateDerivation<D = AnyDerivation> {
    /// The derivation of the model.
    pub model: Box<D>,
    /// The derivation of the base rate.
    pub rate: Derivation<Majority>,
}

impl<D: DerivesModel> AtBaseRateDerivation<D> {
    /// Returns the terms of the model, which must be a private one of the same records with the logistic loss.
    fn terms(&self) -> Result<ModelTerms, Error> {
        let refused = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if self.model.nesting() != Nesting::Single {
            return refused(
                "one private algorithm trains the model; a choice, or models of several classes, have no base rate",
            );
        }
        let (model, rate) = (self.model.model_terms(), self.rate.model_terms());
        if model.loss != LossKind::Logistic || rate.loss != LossKind::Logistic {
            return refused("only the logistic loss has probabilities to compare with a base rate");
        }
        let same_records = self.model.records() == self.rate.n && self.model.adjacency() == self.rate.relation;
        if !same_records || rate.noise_mode != model.noise_mode || rate.weights != 1 {
            return refused("model and base rate are released from the same records, with noise of one kind");
        }
        if model.target_bound != 1.0 || rate.target_bound != 1.0 {
            return refused("the two classes are -1 and +1");
        }
        Ok(model)
    }
}

impl<D: DerivesModel> Derives for AtBaseRateDerivation<D> {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.terms()?;
        let (rate, model) = (self.rate.event()?, self.model.event()?);
        // Equal events are logged as one, twice.
        Ok(if rate == model { repeated(rate, 2) } else { DpEvent::Composed { events: vec![rate, model] } })
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.model.adjacency()
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let mut assumptions = self.model.assumptions();
        for assumption in self.rate.assumptions() {
            if !assumptions.contains(&assumption) {
                assumptions.push(assumption);
            }
        }
        assumptions
    }
}

impl<D: DerivesModel> DerivesModel for AtBaseRateDerivation<D> {
    fn records(&self) -> u64 {
        self.model.records()
    }

    fn model_terms(&self) -> ModelTerms {
        self.terms().map_or(ModelTerms::NONE, |terms| ModelTerms {
            weights: terms.weights.saturating_add(1),
            has_threshold: true,
            ..terms
        })
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        Ok(self.model.release_lattice()?.with_free_last())
    }

    fn work(&self) -> u64 {
        self.model.work().saturating_add(self.rate.work())
    }

    fn weight_noise(&self) -> Option<WeightNoise> {
        self.model.weight_noise()
    }

    fn nesting(&self) -> Nesting {
        Nesting::Threshold
    }
}
