//! The staircase mechanism.

use dp_accountant::{Adjacency, AdjacencyKind, Epsilon};

use super::check_relation;
use crate::error::Error;
use crate::{L1Sensitivity, Staircase};

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StaircaseRecord {
    epsilon: f64,
    sensitivity: f64,
    grid_bits: u32,
    relation: AdjacencyKind,
}

impl<A: Adjacency> From<Staircase<A>> for StaircaseRecord {
    fn from(staircase: Staircase<A>) -> Self {
        Self {
            epsilon: staircase.epsilon().get(),
            sensitivity: staircase.sensitivity().get(),
            grid_bits: staircase.grid().bits(),
            relation: A::KIND,
        }
    }
}

impl<A: Adjacency> TryFrom<StaircaseRecord> for Staircase<A> {
    type Error = Error;
    fn try_from(record: StaircaseRecord) -> Result<Self, Error> {
        check_relation::<A>(record.relation)?;
        let sensitivity = L1Sensitivity::new(record.sensitivity)?;
        Self::new(sensitivity, Epsilon::new(record.epsilon)?)?.with_grid_bits(record.grid_bits)
    }
}
