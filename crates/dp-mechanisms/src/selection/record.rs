//! The serialised form of a selection mechanism: its public parameters, checked again when read.

use dp_accountant::{Adjacency, AdjacencyKind, Epsilon};

use super::Selection;
use crate::error::Error;
use crate::sensitivity::LInfSensitivity;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SelectionRecord {
    epsilon: Epsilon,
    sensitivity: f64,
    monotonic: bool,
    relation: AdjacencyKind,
}

impl<A: Adjacency> From<Selection<A>> for SelectionRecord {
    fn from(selection: Selection<A>) -> Self {
        Self {
            epsilon: selection.epsilon,
            sensitivity: selection.sensitivity.get(),
            monotonic: selection.monotonic,
            relation: A::KIND,
        }
    }
}

impl<A: Adjacency> TryFrom<SelectionRecord> for Selection<A> {
    type Error = Error;
    fn try_from(record: SelectionRecord) -> Result<Self, Error> {
        relation::<A>(record.relation)?;
        Self::new(LInfSensitivity::new(record.sensitivity)?, record.epsilon, record.monotonic)
    }
}

/// Refuses a record of a relation other than the type's.
pub(crate) fn relation<A: Adjacency>(found: AdjacencyKind) -> Result<(), Error> {
    let expected = A::KIND;
    if found == expected { Ok(()) } else { Err(dp_accountant::Error::AdjacencyMismatch { expected, found }.into()) }
}

#[cfg(test)]
mod tests {
    use crate::{Exponential, LInfSensitivity, NoisyMax, PermuteAndFlip};
    use dp_accountant::{Epsilon, ReplaceOne, ZeroOut};

    const GOOD: &str =
        r#"{"epsilon":0.5,"sensitivity":0.1,"monotonic":true,"relation":{"adjacency":"add-remove","n_public":true}}"#;

    #[test]
    fn round_trips() {
        let (sensitivity, epsilon) = (LInfSensitivity::<ZeroOut>::new(0.1).unwrap(), Epsilon::new(0.5).unwrap());
        let exponential = Exponential::new(sensitivity, epsilon).unwrap().monotonic().unwrap();
        assert_eq!(serde_json::to_string(&exponential).unwrap(), GOOD);
        assert_eq!(serde_json::from_str::<Exponential<ZeroOut>>(GOOD).unwrap(), exponential);
        let flip = PermuteAndFlip::new(sensitivity, epsilon).unwrap().monotonic().unwrap();
        assert_eq!(serde_json::to_string(&flip).unwrap(), GOOD);
        assert_eq!(serde_json::from_str::<PermuteAndFlip<ZeroOut>>(GOOD).unwrap(), flip);
        let max = NoisyMax::new(sensitivity, epsilon).unwrap().monotonic().unwrap();
        assert_eq!(serde_json::to_string(&max).unwrap(), GOOD);
        assert_eq!(serde_json::from_str::<NoisyMax<ZeroOut>>(GOOD).unwrap(), max);
    }

    #[test]
    fn what_is_read_is_checked() {
        assert!(serde_json::from_str::<Exponential<ReplaceOne>>(GOOD).is_err());
        for (from, to) in [
            ("0.5", "0"),
            ("0.5", "-1"),
            ("0.5", "1e-16"),
            ("0.5", "1e999"),
            ("0.5", "null"),
            ("0.1", "0"),
            ("0.1", "1e999"),
            ("true", "1"),
            ("\"monotonic\":true,", ""),
            ("\"epsilon\"", "\"extra\":1,\"epsilon\""),
        ] {
            let bad = GOOD.replacen(from, to, 1);
            assert_ne!(bad, GOOD);
            assert!(serde_json::from_str::<PermuteAndFlip<ZeroOut>>(&bad).is_err(), "{bad}");
        }
    }
}
