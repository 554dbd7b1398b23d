//! The derivation of a release of one model for each class, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::Softmax;

use super::{RECIPE, Share};
use crate::derivation::{DerivesModel, ModelTerms, WeightNoise};
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::AnyDerivation;
use crate::recipes::recipe::{Nesting, repeated};

/// The derivation of a release of one model for each class.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct OneVsAllDerivation<D = AnyDerivation> {
    /// Number of classes, public.
    pub classes: u32,
    /// The division of the budget.
    pub share: Share,
    /// The derivation of one model; for a joint release with the noise of all of them.
    pub each: Box<D>,
}

impl<D: DerivesModel> OneVsAllDerivation<D> {
    /// Returns the terms of one model, which must be that of a private binary recipe.
    pub(super) fn terms_of_each(&self) -> Result<ModelTerms, Error> {
        Softmax::new(self.classes)?;
        let of_two = || Error::NotProved {
            recipe: RECIPE,
            why: "each class is trained by a private algorithm with a loss of two classes: logistic, huber-svm or hinge",
        };
        // A choice among candidates is refused too: nested derivations would take too long to verify.
        if self.each.nesting() != Nesting::Single {
            return Err(of_two());
        }
        let terms = self.each.model_terms();
        if !terms.loss.is_classification() {
            return Err(of_two());
        }
        if !(terms.target_bound >= 1.0) {
            return Err(Error::OutOfRange {
                name: "target bound",
                value: terms.target_bound,
                range: "[1, 1], for classes -1 and +1",
            });
        }
        Ok(terms)
    }
}

impl<D: DerivesModel> Derives for OneVsAllDerivation<D> {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.terms_of_each()?;
        match self.share {
            Share::Joint => self.each.joint_event(self.classes),
            Share::Split | Share::Composed => Ok(repeated(self.each.event()?, u64::from(self.classes))),
        }
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.each.adjacency()
    }

    fn assumptions(&self) -> Vec<Assumption> {
        self.each.assumptions()
    }
}

impl<D: DerivesModel> DerivesModel for OneVsAllDerivation<D> {
    fn records(&self) -> u64 {
        self.each.records()
    }

    fn model_terms(&self) -> ModelTerms {
        let classes = u64::from(self.classes);
        match self.terms_of_each() {
            Ok(each) => ModelTerms {
                models: classes,
                weights: each.weights.saturating_mul(classes),
                target_bound: classes.saturating_sub(1) as f64,
                ..each
            },
            // Not a private recipe: its event is refused, and so is every model.
            Err(_) => ModelTerms::NONE,
        }
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        Ok(self.each.release_lattice()?.stacked(self.classes.into()))
    }

    fn work(&self) -> u64 {
        self.each.work()
    }

    fn weight_noise(&self) -> Option<WeightNoise> {
        let each = self.each.weight_noise()?;
        let models = if self.share == Share::Joint { u64::from(self.classes) } else { 1 };
        Some(WeightNoise { dim: each.dim.saturating_mul(models), ..each })
    }

    fn nesting(&self) -> Nesting {
        Nesting::Classes
    }
}
