//! The serialised form of the staircase mechanism.

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

#[cfg(test)]
mod tests {
    use super::*;
    use dp_accountant::{ReplaceOne, ZeroOut};

    #[test]
    fn round_trip_and_checks() {
        let sensitivity = L1Sensitivity::new(0.1).unwrap();
        let staircase = Staircase::<ReplaceOne>::new(sensitivity, Epsilon::new(5.0).unwrap()).unwrap();
        let staircase = staircase.with_grid_bits(24).unwrap();
        let text = serde_json::to_string(&staircase).unwrap();
        assert_eq!(
            text,
            r#"{"epsilon":5.0,"sensitivity":0.1,"grid_bits":24,"relation":{"adjacency":"replace-one","n_public":true}}"#
        );
        let read = |text: &str| serde_json::from_str::<Staircase<ReplaceOne>>(text);
        assert_eq!(read(&text).unwrap(), staircase);
        assert!(serde_json::from_str::<Staircase<ZeroOut>>(&text).is_err());
        for (from, to) in
            [("24", "41"), ("5.0", "31"), ("5.0", "0"), ("0.1", "-1"), ("\"epsilon\"", "\"x\":1,\"epsilon\"")]
        {
            assert!(read(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
    }
}
