//! The serialised form of the sparse vector mechanisms: their public parameters, checked again when read.

use dp_accountant::{Adjacency, AdjacencyKind, Epsilon};

use super::{AboveThreshold, GaussianAboveThreshold, Parameters, Split};
use crate::error::Error;
use crate::selection::relation;
use crate::sensitivity::LInfSensitivity;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AboveThresholdRecord {
    sensitivity: f64,
    split: Split,
    answers: u64,
    monotonic: bool,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    range_bounded: bool,
    value_epsilon: Option<Epsilon>,
    relation: AdjacencyKind,
}

impl<A: Adjacency> From<AboveThreshold<A>> for AboveThresholdRecord {
    fn from(mechanism: AboveThreshold<A>) -> Self {
        let Parameters { sensitivity, split, answers, monotonic, range_bounded, value_epsilon } = mechanism.parameters;
        Self {
            sensitivity: sensitivity.get(),
            split,
            answers,
            monotonic,
            range_bounded,
            value_epsilon,
            relation: A::KIND,
        }
    }
}

impl<A: Adjacency> TryFrom<AboveThresholdRecord> for AboveThreshold<A> {
    type Error = Error;
    fn try_from(record: AboveThresholdRecord) -> Result<Self, Error> {
        let AboveThresholdRecord {
            sensitivity,
            split,
            answers,
            monotonic,
            range_bounded,
            value_epsilon,
            relation: found,
        } = record;
        relation::<A>(found)?;
        let sensitivity = LInfSensitivity::new(sensitivity)?;
        Self::build(Parameters { sensitivity, split, answers, monotonic, range_bounded, value_epsilon })
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GaussianAboveThresholdRecord {
    sensitivity: f64,
    threshold_std_dev: f64,
    query_std_dev: f64,
    max_queries: u64,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    range_bounded: bool,
    relation: AdjacencyKind,
}

impl<A: Adjacency> From<GaussianAboveThreshold<A>> for GaussianAboveThresholdRecord {
    fn from(mechanism: GaussianAboveThreshold<A>) -> Self {
        Self {
            sensitivity: mechanism.sensitivity().get(),
            threshold_std_dev: mechanism.threshold_std_dev(),
            query_std_dev: mechanism.query_std_dev(),
            max_queries: mechanism.max_queries(),
            range_bounded: mechanism.is_range_bounded(),
            relation: A::KIND,
        }
    }
}

impl<A: Adjacency> TryFrom<GaussianAboveThresholdRecord> for GaussianAboveThreshold<A> {
    type Error = Error;
    fn try_from(record: GaussianAboveThresholdRecord) -> Result<Self, Error> {
        relation::<A>(record.relation)?;
        let sensitivity = LInfSensitivity::new(record.sensitivity)?;
        let any = Self::new(sensitivity, record.threshold_std_dev, record.query_std_dev, record.max_queries)?;
        Ok(if record.range_bounded { any.range_bounded() } else { any })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_accountant::{ReplaceOne, ZeroOut};

    const GOOD: &str = r#"{"sensitivity":0.1,"split":{"least-variance":{"epsilon":0.5}},"answers":3,"monotonic":true,"value_epsilon":0.25,"relation":{"adjacency":"add-remove","n_public":true}}"#;
    const GAUSSIAN: &str = r#"{"sensitivity":0.1,"threshold_std_dev":1.0,"query_std_dev":2.0,"max_queries":20,"relation":{"adjacency":"add-remove","n_public":true}}"#;

    #[test]
    fn round_trips() {
        let epsilon = |value| Epsilon::new(value).unwrap();
        let sensitivity = LInfSensitivity::<ZeroOut>::new(0.1).unwrap();
        let mechanism = AboveThreshold::new(sensitivity, epsilon(0.5), 3).unwrap();
        let mechanism = mechanism.monotonic().unwrap().with_values(epsilon(0.25)).unwrap();
        assert_eq!(serde_json::to_string(&mechanism).unwrap(), GOOD);
        assert_eq!(serde_json::from_str::<AboveThreshold<ZeroOut>>(GOOD).unwrap(), mechanism);
        let stated = AboveThreshold::from_split(sensitivity, epsilon(0.1), epsilon(0.3), 1).unwrap();
        let text = serde_json::to_string(&stated).unwrap();
        assert_eq!(serde_json::from_str::<AboveThreshold<ZeroOut>>(&text).unwrap(), stated);
        let bounded = stated.range_bounded().unwrap();
        let text = serde_json::to_string(&bounded).unwrap();
        assert!(text.contains("\"range_bounded\":true"));
        assert_eq!(serde_json::from_str::<AboveThreshold<ZeroOut>>(&text).unwrap(), bounded);
        let gaussian = GaussianAboveThreshold::new(sensitivity, 1.0, 2.0, 20).unwrap();
        assert_eq!(serde_json::to_string(&gaussian).unwrap(), GAUSSIAN);
        assert_eq!(serde_json::from_str::<GaussianAboveThreshold<ZeroOut>>(GAUSSIAN).unwrap(), gaussian);
        let text = serde_json::to_string(&gaussian.range_bounded()).unwrap();
        assert!(text.contains("\"range_bounded\":true"));
        assert_eq!(serde_json::from_str::<GaussianAboveThreshold<ZeroOut>>(&text).unwrap(), gaussian.range_bounded());
    }

    #[test]
    fn what_is_read_is_checked() {
        assert!(serde_json::from_str::<AboveThreshold<ReplaceOne>>(GOOD).is_err());
        assert!(serde_json::from_str::<GaussianAboveThreshold<ReplaceOne>>(GAUSSIAN).is_err());
        for (from, to) in [
            ("0.5", "0"),
            ("0.5", "1e-16"),
            ("0.5", "null"),
            ("0.1", "0"),
            ("0.1", "1e999"),
            ("3", "0"),
            ("3", "-1"),
            ("3", "4294967297"),
            ("least-variance", "most-variance"),
            ("true", "1"),
            ("0.25", "0"),
            ("\"answers\"", "\"extra\":1,\"answers\""),
            ("\"epsilon\"", "\"extra\":1,\"epsilon\""),
        ] {
            let bad = GOOD.replacen(from, to, 1);
            assert_ne!(bad, GOOD);
            assert!(serde_json::from_str::<AboveThreshold<ZeroOut>>(&bad).is_err(), "{bad}");
        }
        for (from, to) in [("1.0", "0"), ("2.0", "-2"), ("2.0", "1e300"), ("20", "0"), ("0.1", "null")] {
            let bad = GAUSSIAN.replacen(from, to, 1);
            assert_ne!(bad, GAUSSIAN);
            assert!(serde_json::from_str::<GaussianAboveThreshold<ZeroOut>>(&bad).is_err(), "{bad}");
        }
    }
}
