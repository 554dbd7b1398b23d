//! The event language: what was done to the data, as a small tree that every accountant reads.
//!
//! Mechanisms and optimisers emit events; they never compute an epsilon of their own. The meaning of a variant never
//! changes once released; a new meaning is a new variant. Events say nothing of the neighbouring relation: the
//! sensitivity inside an event holds under the relation of the [`EventLog`](crate::EventLog) or certificate that
//! carries it.
//!
//! With the `serde` feature a tree reads and writes as JSON objects tagged by `type`; unknown types and unknown fields
//! are refused. Numbers are checked where events are used ([`bound`](crate::bound), accountants), because an event
//! from a file is only a claim until then: a bad number is a typed error there, and trees nested deeper than
//! [`MAX_DEPTH`] are refused without recursion.
//!
//! ```
//! use dp_accountant::DpEvent;
//! let event = DpEvent::SelfComposed {
//!     event: Box::new(DpEvent::Gaussian { std_dev: 2.0, sensitivity: 1.0 }),
//!     count: 10,
//! };
//! assert_eq!(event.name(), "self-composed");
//! ```

pub use crate::leaves::MAX_DEPTH;

/// One node of the tree of what was released.
///
/// Noise scale and sensitivity are kept apart, in the units of the query, because a bare "noise multiplier" means
/// different things under different neighbouring relations.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum DpEvent {
    /// Nothing that depends on the data was released.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "no_fields"))]
    NoOp,
    /// Something was released without any guarantee.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "no_fields"))]
    NonPrivate,
    /// `value + N(0, std_dev² I)`, where `value` has L2 sensitivity `sensitivity`.
    Gaussian {
        /// Standard deviation of each coordinate's noise.
        std_dev: f64,
        /// L2 sensitivity of the released value.
        sensitivity: f64,
    },
    /// `value + Laplace(scale)` in each coordinate, where `value` has L1 sensitivity `sensitivity`.
    Laplace {
        /// Scale b of the density `exp(-|z|/b)/(2b)`.
        scale: f64,
        /// L1 sensitivity of the released value.
        sensitivity: f64,
    },
    /// `value + Z` with density of `Z` proportional to `exp(-‖z‖₂/scale)` on R^dim, where `value` has L2 sensitivity
    /// `sensitivity`.
    LaplaceBall {
        /// Scale of the norm's exponential decay.
        scale: f64,
        /// L2 sensitivity of the released value.
        sensitivity: f64,
        /// Dimension d of the released value.
        dim: u64,
    },
    /// Anything that is `epsilon`-DP.
    PureDp {
        /// The pure guarantee.
        epsilon: f64,
    },
    /// Anything that is `(epsilon, delta)`-DP and of which no more is known.
    ApproximateDp {
        /// Epsilon of the guarantee.
        epsilon: f64,
        /// Delta of the guarantee.
        delta: f64,
    },
    /// Anything that is `rho`-zCDP.
    Zcdp {
        /// The zCDP parameter.
        rho: f64,
    },
    /// A Gaussian release whose sensitivity depends on a secret, data-independent random index: with probability
    /// `weights[j]`, the same for both neighbours, it is `sensitivities[j]`. Nothing else that depends on the index is
    /// released. (The hidden position of a record in a permutation.)
    GaussianMixture {
        /// Standard deviation of each coordinate's noise.
        std_dev: f64,
        /// L2 sensitivity given the index.
        sensitivities: Vec<f64>,
        /// Probability of each index; non-negative, with sum 1.
        weights: Vec<f64>,
    },
    /// All of `events` happened; later ones may depend on the outcomes of earlier ones, their parameters may not.
    Composed {
        /// The parts.
        events: Vec<DpEvent>,
    },
    /// `event` happened `count` times, each on the same data.
    SelfComposed {
        /// What was repeated.
        event: Box<DpEvent>,
        /// How often.
        count: u64,
    },
}

/// Reads a variant without fields; serde would let any field pass there.
#[cfg(feature = "serde")]
pub(crate) fn no_fields<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoFields {}
    <NoFields as serde::Deserialize>::deserialize(deserializer).map(|NoFields {}| ())
}

impl DpEvent {
    /// The variant's name, as in the serialised form.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoOp => "no-op",
            Self::NonPrivate => "non-private",
            Self::Gaussian { .. } => "gaussian",
            Self::Laplace { .. } => "laplace",
            Self::LaplaceBall { .. } => "laplace-ball",
            Self::PureDp { .. } => "pure-dp",
            Self::ApproximateDp { .. } => "approximate-dp",
            Self::Zcdp { .. } => "zcdp",
            Self::GaussianMixture { .. } => "gaussian-mixture",
            Self::Composed { .. } => "composed",
            Self::SelfComposed { .. } => "self-composed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_variant() -> Vec<DpEvent> {
        vec![
            DpEvent::NoOp,
            DpEvent::NonPrivate,
            DpEvent::Gaussian { std_dev: 0.1, sensitivity: 1e-300 },
            DpEvent::Laplace { scale: 1.5, sensitivity: 0.1 + 0.2 },
            DpEvent::LaplaceBall { scale: 1.5, sensitivity: 1.0, dim: u64::MAX },
            DpEvent::PureDp { epsilon: 1.0 },
            DpEvent::ApproximateDp { epsilon: 1.0, delta: 1e-6 },
            DpEvent::Zcdp { rho: 0.5 },
            DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![1.0, 2.0], weights: vec![0.5, 0.5] },
            DpEvent::Composed { events: vec![DpEvent::NoOp, DpEvent::PureDp { epsilon: 0.25 }] },
            DpEvent::SelfComposed { event: Box::new(DpEvent::Zcdp { rho: 0.125 }), count: 3 },
        ]
    }

    #[test]
    fn json_round_trips_bit_for_bit_under_the_variants_own_name() {
        for event in every_variant() {
            let json = serde_json::to_value(&event).unwrap();
            assert_eq!(json["type"], event.name());
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<DpEvent>(&text).unwrap(), event);
        }
    }

    #[test]
    fn unknown_types_and_fields_are_refused() {
        for event in every_variant() {
            let mut json = serde_json::to_value(&event).unwrap();
            json["extra"] = 1.into();
            assert!(serde_json::from_value::<DpEvent>(json).is_err(), "{event:?} was read with an extra field");
        }
        for text in [
            r#"{"type":"magic"}"#,
            r#"{"epsilon":1.0}"#,
            r#"{"type":"pure-dp"}"#,
            r#"{"type":"pure-dp","epsilon":null}"#,
        ] {
            assert!(serde_json::from_str::<DpEvent>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_stack_overflow() {
        let deep = r#"{"type":"self-composed","count":1,"event":"#.repeat(100_000);
        assert!(serde_json::from_str::<DpEvent>(&deep).is_err());
        let levels = 50;
        let readable = r#"{"type":"composed","events":["#.repeat(levels) + r#"{"type":"no-op"}"# + &"]}".repeat(levels);
        let event: DpEvent = serde_json::from_str(&readable).unwrap();
        assert!(crate::bound::epsilon(&event, crate::Delta::ZERO).is_ok());
    }
}
