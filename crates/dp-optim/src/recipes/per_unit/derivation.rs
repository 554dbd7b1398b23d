//! The derivation of a model that protects all rows of a unit, as a certificate states it.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, DpEvent};

use super::{RECIPE, check_rows, of_unit};
use crate::derivation::{Choice, DerivesModel, ModelTerms, WeightNoise};
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::AnyDerivation;
use crate::recipes::recipe::Nesting;

/// The derivation of a model that protects all rows of a unit.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PerUnitDerivation {
    /// The derivation for one record.
    pub of_record: Box<AnyDerivation>,
    /// Largest number of rows of a unit.
    pub rows: u64,
    /// The column that names the unit.
    pub column: String,
}

impl PerUnitDerivation {
    fn check(&self) -> Result<(), Error> {
        check_rows(self.rows)?;
        let refused = |why| Err(Error::NotProved { recipe: RECIPE, why });
        if matches!(self.of_record.nesting(), Nesting::Unit | Nesting::NonPrivate) {
            return refused("a private recipe for single records trains the model");
        }
        if !self.of_record.records().is_multiple_of(self.rows) {
            return refused("every unit has the same number of records, null records included");
        }
        Ok(())
    }
}

impl Derives for PerUnitDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        self.check()?;
        Ok(of_unit(self.of_record.event()?, self.rows))
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.of_record.adjacency()
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let of_unit = || Assumption::BoundedRows { column: self.column.clone(), most: self.rows };
        let replaced = |assumption| if assumption == Assumption::OneRowPerUnit { of_unit() } else { assumption };
        self.of_record.assumptions().into_iter().map(replaced).collect()
    }
}

impl DerivesModel for PerUnitDerivation {
    fn records(&self) -> u64 {
        self.of_record.records()
    }

    fn units(&self) -> u64 {
        self.of_record.records() / self.rows.max(1)
    }

    fn unit(&self) -> Unit {
        Unit::Column(self.column.clone())
    }

    fn model_terms(&self) -> ModelTerms {
        if self.check().is_ok() { self.of_record.model_terms() } else { ModelTerms::NONE }
    }

    fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
        self.check()?;
        self.of_record.release_lattice()
    }

    fn work(&self) -> u64 {
        // A divergence of a group is a sum of at most this many divergences of single records.
        self.of_record.work().saturating_mul(self.rows.min(64))
    }

    fn nesting(&self) -> Nesting {
        Nesting::Unit
    }

    fn weight_noise(&self) -> Option<WeightNoise> {
        self.of_record.weight_noise()
    }

    fn choice(&self) -> Option<Choice> {
        self.of_record.choice()
    }
}
