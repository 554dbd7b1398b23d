//! The serialised form: one flat object; unknown fields are refused.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Assumption, Certificate, EpsilonDelta, NoiseMode, SCHEMA};
use crate::adjacency::AdjacencyKind;
use crate::event::DpEvent;
use crate::guarantee::Unit;

#[derive(Serialize)]
struct Written<'a, D> {
    schema: &'a str,
    adjacency: &'a str,
    n_public: bool,
    unit: &'a Unit,
    private: bool,
    requested: Option<EpsilonDelta>,
    reached: Option<EpsilonDelta>,
    event: &'a DpEvent,
    noise: NoiseMode,
    derivation: &'a D,
    assumptions: &'a [Assumption],
    model_sha256: &'a str,
    versions: &'a BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read<D> {
    schema: String,
    adjacency: String,
    n_public: bool,
    unit: Unit,
    private: bool,
    requested: Option<EpsilonDelta>,
    reached: Option<EpsilonDelta>,
    event: DpEvent,
    noise: NoiseMode,
    derivation: D,
    assumptions: Vec<Assumption>,
    model_sha256: String,
    versions: BTreeMap<String, String>,
}

impl<D: Serialize> Serialize for Certificate<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written {
            schema: &self.schema,
            adjacency: self.adjacency.as_str(),
            n_public: self.adjacency.n_public(),
            unit: &self.unit,
            private: self.private,
            requested: self.requested,
            reached: self.reached,
            event: &self.event,
            noise: self.noise,
            derivation: &self.derivation,
            assumptions: &self.assumptions,
            model_sha256: &self.model_sha256,
            versions: &self.versions,
        }
        .serialize(serializer)
    }
}

impl<'de, D: Deserialize<'de>> Deserialize<'de> for Certificate<D> {
    fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
        let read = Read::deserialize(deserializer)?;
        if read.schema != SCHEMA {
            return Err(T::Error::custom(format!("certificate schema {:?}, expected {SCHEMA:?}", read.schema)));
        }
        let adjacency = AdjacencyKind::from_words(&read.adjacency, read.n_public).ok_or_else(|| {
            T::Error::custom(format!(
                "unknown neighbouring relation {:?} with n_public = {}",
                read.adjacency, read.n_public
            ))
        })?;
        Ok(Self {
            schema: read.schema,
            adjacency,
            unit: read.unit,
            private: read.private,
            requested: read.requested,
            reached: read.reached,
            event: read.event,
            noise: read.noise,
            derivation: read.derivation,
            assumptions: read.assumptions,
            model_sha256: read.model_sha256,
            versions: read.versions,
        })
    }
}
