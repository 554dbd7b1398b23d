//! Mechanisms for whole numbers.

use dp_accountant::{Adjacency, AdjacencyKind};

use super::check_relation;
use crate::error::Error;
use crate::{DiscreteGaussian, DiscreteLaplace, L1Sensitivity, L2Sensitivity};

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiscreteLaplaceRecord {
    scale_numerator: u64,
    scale_denominator: u64,
    sensitivity: f64,
    relation: AdjacencyKind,
}

impl<A: Adjacency> From<DiscreteLaplace<A>> for DiscreteLaplaceRecord {
    fn from(noise: DiscreteLaplace<A>) -> Self {
        let (scale_numerator, scale_denominator) = noise.scale_ratio();
        Self { scale_numerator, scale_denominator, sensitivity: noise.sensitivity().get(), relation: A::KIND }
    }
}

impl<A: Adjacency> TryFrom<DiscreteLaplaceRecord> for DiscreteLaplace<A> {
    type Error = Error;
    fn try_from(record: DiscreteLaplaceRecord) -> Result<Self, Error> {
        check_relation::<A>(record.relation)?;
        let sensitivity = L1Sensitivity::new(record.sensitivity)?;
        Self::from_ratio(sensitivity, record.scale_numerator, record.scale_denominator)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiscreteGaussianRecord {
    scale: f64,
    sensitivity: f64,
    dim: u64,
    relation: AdjacencyKind,
}

impl<A: Adjacency> From<DiscreteGaussian<A>> for DiscreteGaussianRecord {
    fn from(noise: DiscreteGaussian<A>) -> Self {
        let (scale, sensitivity) = (noise.scale(), noise.sensitivity().get());
        Self { scale, sensitivity, dim: noise.dim(), relation: A::KIND }
    }
}

impl<A: Adjacency> TryFrom<DiscreteGaussianRecord> for DiscreteGaussian<A> {
    type Error = Error;
    fn try_from(record: DiscreteGaussianRecord) -> Result<Self, Error> {
        check_relation::<A>(record.relation)?;
        Self::from_scale(L2Sensitivity::new(record.sensitivity)?, record.scale, record.dim)
    }
}
