//! The serialised form of continual release: a stream's public parameters. The sums within a session are private and have none.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, AdjacencyKind};

use super::check_relation;
use crate::L2Sensitivity;
use crate::continual::{Factor, MatrixFactorisation, Participation, TreeAggregation};
use crate::error::Error;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParticipationRecord {
    most: u64,
    separation: u64,
}

impl From<Participation> for ParticipationRecord {
    fn from(participation: Participation) -> Self {
        Self { most: participation.most(), separation: participation.separation() }
    }
}

impl TryFrom<ParticipationRecord> for Participation {
    type Error = Error;
    fn try_from(record: ParticipationRecord) -> Result<Self, Error> {
        Self::repeated(record.most, record.separation)
    }
}

/// The arguments of a factor's constructors.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum FactorRecord {
    Toeplitz { steps: usize, coefficients: Vec<f64> },
    Rows(Vec<Vec<f64>>),
}

impl From<Factor> for FactorRecord {
    fn from(factor: Factor) -> Self {
        factor.record()
    }
}

impl TryFrom<FactorRecord> for Factor {
    type Error = Error;
    fn try_from(record: FactorRecord) -> Result<Self, Error> {
        match record {
            FactorRecord::Toeplitz { steps, coefficients } => Self::toeplitz(steps, &coefficients),
            FactorRecord::Rows(rows) => Self::lower_triangular(&rows),
        }
    }
}

/// The fields common to both mechanisms.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    each: f64,
    dim: usize,
    participation: Participation,
    std_dev: f64,
    noise: NoiseMode,
    relation: AdjacencyKind,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TreeAggregationRecord {
    steps: u64,
    variance_reduction: bool,
    on: Stream,
}

impl<A: Adjacency> From<TreeAggregation<A>> for TreeAggregationRecord {
    fn from(tree: TreeAggregation<A>) -> Self {
        Self {
            steps: tree.steps(),
            variance_reduction: tree.is_variance_reduced(),
            on: Stream {
                each: tree.each().get(),
                dim: tree.dim(),
                participation: tree.participation(),
                std_dev: tree.std_dev(),
                noise: tree.noise_mode(),
                relation: A::KIND,
            },
        }
    }
}

impl<A: Adjacency> TryFrom<TreeAggregationRecord> for TreeAggregation<A> {
    type Error = Error;
    fn try_from(record: TreeAggregationRecord) -> Result<Self, Error> {
        let TreeAggregationRecord { steps, variance_reduction, on } = record;
        check_relation::<A>(on.relation)?;
        let each = L2Sensitivity::new(on.each)?;
        let tree = Self::from_std_dev(each, on.dim, steps, on.participation, on.std_dev)?.with_noise_mode(on.noise)?;
        Ok(if variance_reduction { tree.with_variance_reduction() } else { tree })
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatrixFactorisationRecord {
    factor: Factor,
    on: Stream,
}

impl<A: Adjacency> From<MatrixFactorisation<A>> for MatrixFactorisationRecord {
    fn from(stream: MatrixFactorisation<A>) -> Self {
        Self {
            factor: stream.factor().clone(),
            on: Stream {
                each: stream.each().get(),
                dim: stream.dim(),
                participation: stream.participation(),
                std_dev: stream.std_dev(),
                noise: stream.noise_mode(),
                relation: A::KIND,
            },
        }
    }
}

impl<A: Adjacency> TryFrom<MatrixFactorisationRecord> for MatrixFactorisation<A> {
    type Error = Error;
    fn try_from(record: MatrixFactorisationRecord) -> Result<Self, Error> {
        let MatrixFactorisationRecord { factor, on } = record;
        check_relation::<A>(on.relation)?;
        let each = L2Sensitivity::new(on.each)?;
        Self::from_std_dev(factor, on.participation, each, on.dim, on.std_dev)?.with_noise_mode(on.noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_accountant::{NoiseMultiplier, ReplaceOne, ZeroOut};

    fn each() -> L2Sensitivity<ZeroOut> {
        L2Sensitivity::new(0.1).unwrap()
    }

    #[test]
    fn factors_round_trip_and_are_checked() {
        let rows = [vec![1.0], vec![0.3, 1.0], vec![0.1, 0.2, 1.0 / 3.0]];
        for factor in [
            Factor::square_root(100).unwrap(),
            Factor::banded_square_root(100, 7).unwrap(),
            Factor::toeplitz(5, &[1.0, -0.7]).unwrap(),
            Factor::lower_triangular(&rows).unwrap(),
        ] {
            let text = serde_json::to_string(&factor).unwrap();
            assert_eq!(serde_json::from_str::<Factor>(&text).unwrap(), factor);
        }
        for bad in [
            r#"{"toeplitz":{"steps":0,"coefficients":[1]}}"#,
            r#"{"toeplitz":{"steps":1,"coefficients":[1,1]}}"#,
            r#"{"toeplitz":{"steps":1,"coefficients":[0]}}"#,
            r#"{"toeplitz":{"steps":1,"coefficients":[1],"x":1}}"#,
            r#"{"rows":[[1],[1]]}"#,
            r#"{"rows":[]}"#,
            r#"{"columns":[[1]]}"#,
        ] {
            assert!(serde_json::from_str::<Factor>(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Participation>(r#"{"most":0,"separation":1}"#).is_err());
    }

    #[test]
    fn streams_round_trip_and_are_checked() {
        let participation = Participation::repeated(3, 10).unwrap();
        let multiplier = NoiseMultiplier::new(1.3).unwrap();
        let tree = TreeAggregation::from_noise_multiplier(each(), 3, 30, participation, multiplier).unwrap();
        for tree in [tree.clone(), tree.with_variance_reduction().with_noise_mode(NoiseMode::Rounded).unwrap()] {
            let text = serde_json::to_string(&tree).unwrap();
            let read = |text: &str| serde_json::from_str::<TreeAggregation<ZeroOut>>(text);
            assert_eq!(read(&text).unwrap(), tree);
            assert!(serde_json::from_str::<TreeAggregation<ReplaceOne>>(&text).is_err());
            for (from, to) in [
                ("\"steps\":30", "\"steps\":0"),
                ("\"dim\":3", "\"dim\":0"),
                ("\"most\":3", "\"most\":0"),
                ("\"each\":0.1", "\"each\":0"),
                ("\"std_dev\":", "\"std_dev\":-"),
                ("\"noise\":\"", "\"noise\":\"un"),
                ("\"on\"", "\"x\":1,\"on\""),
            ] {
                assert!(text.contains(from) && read(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
            }
        }
        let factor = Factor::banded_square_root(30, 10).unwrap();
        let stream = MatrixFactorisation::from_noise_multiplier(factor, participation, each(), 3, multiplier).unwrap();
        let text = serde_json::to_string(&stream).unwrap();
        assert_eq!(serde_json::from_str::<MatrixFactorisation<ZeroOut>>(&text).unwrap(), stream);
        assert!(serde_json::from_str::<MatrixFactorisation<ReplaceOne>>(&text).is_err());
        assert!(
            serde_json::from_str::<MatrixFactorisation<ZeroOut>>(&text.replacen("\"steps\":30", "\"steps\":5", 1))
                .is_err()
        );
    }
}
