//! The serialised form of mechanisms for integers.

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

#[cfg(test)]
mod tests {
    use super::*;
    use dp_accountant::{ReplaceOne, ZeroOut};

    #[test]
    fn discrete_laplace_round_trip_and_checks() {
        let noise = DiscreteLaplace::<ReplaceOne>::from_ratio(L1Sensitivity::new(2.0).unwrap(), 7, 3).unwrap();
        let text = serde_json::to_string(&noise).unwrap();
        let relation = r#""relation":{"adjacency":"replace-one","n_public":true}"#;
        assert_eq!(text, format!(r#"{{"scale_numerator":7,"scale_denominator":3,"sensitivity":2.0,{relation}}}"#));
        let read = |text: &str| serde_json::from_str::<DiscreteLaplace<ReplaceOne>>(text);
        assert_eq!(read(&text).unwrap(), noise);
        assert!(serde_json::from_str::<DiscreteLaplace<ZeroOut>>(&text).is_err());
        for (from, to) in
            [("7", "0"), ("7", "-7"), ("3", "0"), ("2.0", "2.5"), ("7", "7.5"), ("\"sens", "\"x\":1,\"sens")]
        {
            assert!(read(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn discrete_gaussian_round_trip_and_checks() {
        let noise = DiscreteGaussian::<ReplaceOne>::from_scale(L2Sensitivity::new(1.5).unwrap(), 0.1, 4).unwrap();
        let text = serde_json::to_string(&noise).unwrap();
        let relation = r#""relation":{"adjacency":"replace-one","n_public":true}"#;
        assert_eq!(text, format!(r#"{{"scale":0.1,"sensitivity":1.5,"dim":4,{relation}}}"#));
        let read = |text: &str| serde_json::from_str::<DiscreteGaussian<ReplaceOne>>(text);
        assert_eq!(read(&text).unwrap(), noise);
        assert!(serde_json::from_str::<DiscreteGaussian<ZeroOut>>(&text).is_err());
        for (from, to) in [("0.1", "0"), ("0.1", "1e-4"), ("1.5", "0"), ("4", "0"), ("\"dim", "\"x\":1,\"dim")] {
            assert!(read(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
    }
}
