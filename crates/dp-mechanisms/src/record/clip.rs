//! The serialised form of clipping rules.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, AdjacencyKind, NoiseMultiplier};

use super::check_relation;
use crate::Gaussian;
use crate::clip::{AdaptiveClipping, AutomaticClipping, ClippingNorm, LayeredClipping, LayeredGaussian};
use crate::error::Error;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AutomaticClippingRecord {
    norm: ClippingNorm,
    gamma: f64,
}

impl From<AutomaticClipping> for AutomaticClippingRecord {
    fn from(rule: AutomaticClipping) -> Self {
        Self { norm: rule.norm(), gamma: rule.gamma() }
    }
}

impl TryFrom<AutomaticClippingRecord> for AutomaticClipping {
    type Error = Error;
    fn try_from(record: AutomaticClippingRecord) -> Result<Self, Error> {
        Self::new(record.norm, record.gamma)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerRecord {
    len: usize,
    norm: ClippingNorm,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct LayeredClippingRecord {
    layers: Vec<LayerRecord>,
}

impl From<LayeredClipping> for LayeredClippingRecord {
    fn from(rule: LayeredClipping) -> Self {
        Self { layers: rule.layers().iter().map(|&(len, norm)| LayerRecord { len, norm }).collect() }
    }
}

impl TryFrom<LayeredClippingRecord> for LayeredClipping {
    type Error = Error;
    fn try_from(record: LayeredClippingRecord) -> Result<Self, Error> {
        Self::new(record.layers.into_iter().map(|layer| (layer.len, layer.norm)).collect())
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(transparent, bound = "")]
pub(crate) struct LayeredGaussianRecord<A: Adjacency> {
    parts: Vec<Gaussian<A>>,
}

impl<A: Adjacency> From<LayeredGaussian<A>> for LayeredGaussianRecord<A> {
    fn from(noise: LayeredGaussian<A>) -> Self {
        Self { parts: noise.parts().to_vec() }
    }
}

impl<A: Adjacency> TryFrom<LayeredGaussianRecord<A>> for LayeredGaussian<A> {
    type Error = Error;
    fn try_from(record: LayeredGaussianRecord<A>) -> Result<Self, Error> {
        Self::new(record.parts)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdaptiveClippingRecord {
    quantile: f64,
    rate: f64,
    expected_records: f64,
    noise_multiplier: f64,
    count_std_dev: f64,
    noise: NoiseMode,
    relation: AdjacencyKind,
}

impl<A: Adjacency> From<AdaptiveClipping<A>> for AdaptiveClippingRecord {
    fn from(clipping: AdaptiveClipping<A>) -> Self {
        Self {
            quantile: clipping.quantile(),
            rate: clipping.rate(),
            expected_records: clipping.expected_records(),
            noise_multiplier: clipping.noise_multiplier(),
            count_std_dev: clipping.count_std_dev(),
            noise: clipping.noise_mode(),
            relation: A::KIND,
        }
    }
}

impl<A: Adjacency> TryFrom<AdaptiveClippingRecord> for AdaptiveClipping<A> {
    type Error = Error;
    fn try_from(record: AdaptiveClippingRecord) -> Result<Self, Error> {
        check_relation::<A>(record.relation)?;
        let noise_multiplier = NoiseMultiplier::new(record.noise_multiplier)?;
        Self::new(record.quantile, record.rate, record.expected_records, noise_multiplier, record.count_std_dev)?
            .with_noise_mode(record.noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::L2Sensitivity;
    use crate::clip::ClippingRule;
    use dp_accountant::{ReplaceOne, ZeroOut};

    fn norm(value: f64) -> ClippingNorm {
        ClippingNorm::new(value).unwrap()
    }

    #[test]
    fn rules_round_trip_and_are_checked() {
        let automatic = AutomaticClipping::new(norm(1.5), 0.01).unwrap();
        let text = serde_json::to_string(&automatic).unwrap();
        assert_eq!(text, r#"{"norm":1.5,"gamma":0.01}"#);
        assert_eq!(serde_json::from_str::<AutomaticClipping>(&text).unwrap(), automatic);
        for (from, to) in [("1.5", "0"), ("0.01", "-1"), ("0.01", "1e-200"), ("\"norm", "\"x\":1,\"norm")] {
            assert!(serde_json::from_str::<AutomaticClipping>(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
        for (rule, expected) in [
            (ClippingRule::Flat(norm(2.0)), r#"{"flat":2.0}"#),
            (ClippingRule::Automatic(automatic), r#"{"automatic":{"norm":1.5,"gamma":0.01}}"#),
        ] {
            let text = serde_json::to_string(&rule).unwrap();
            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<ClippingRule>(&text).unwrap(), rule);
        }
        assert!(serde_json::from_str::<ClippingRule>(r#"{"flat":0}"#).is_err());
        let layers = LayeredClipping::new(vec![(2, norm(3.0)), (1, norm(4.0))]).unwrap();
        let text = serde_json::to_string(&layers).unwrap();
        assert_eq!(text, r#"[{"len":2,"norm":3.0},{"len":1,"norm":4.0}]"#);
        assert_eq!(serde_json::from_str::<LayeredClipping>(&text).unwrap(), layers);
        for (from, to) in [("2", "0"), ("3.0", "-3"), ("\"norm", "\"x\":1,\"norm")] {
            assert!(serde_json::from_str::<LayeredClipping>(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
        assert!(serde_json::from_str::<LayeredClipping>("[]").is_err());
    }

    #[test]
    fn layered_noise_round_trips_and_is_checked() {
        let part = Gaussian::<ZeroOut>::from_std_dev(L2Sensitivity::new(3.0).unwrap(), 1.0).unwrap();
        let noise = LayeredGaussian::new(vec![part, part.with_grid_bits(24).unwrap()]).unwrap();
        let text = serde_json::to_string(&noise).unwrap();
        assert_eq!(serde_json::from_str::<LayeredGaussian<ZeroOut>>(&text).unwrap(), noise);
        assert!(serde_json::from_str::<LayeredGaussian<ReplaceOne>>(&text).is_err());
        // Modes may not be mixed.
        assert!(serde_json::from_str::<LayeredGaussian<ZeroOut>>(&text.replacen("exact", "rounded", 1)).is_err());
        assert!(serde_json::from_str::<LayeredGaussian<ZeroOut>>("[]").is_err());
    }

    #[test]
    fn adaptive_clipping_round_trips_and_is_checked() {
        let clipping =
            AdaptiveClipping::<ZeroOut>::new(0.5, 0.2, 100.0, NoiseMultiplier::new(1.0).unwrap(), 5.0).unwrap();
        let text = serde_json::to_string(&clipping).unwrap();
        let read = |text: &str| serde_json::from_str::<AdaptiveClipping<ZeroOut>>(text);
        assert_eq!(read(&text).unwrap(), clipping);
        let rounded = clipping.with_noise_mode(NoiseMode::Rounded).unwrap();
        assert_eq!(read(&text.replace("exact", "rounded")).unwrap(), rounded);
        assert!(serde_json::from_str::<AdaptiveClipping<ReplaceOne>>(&text).is_err());
        for (from, to) in [
            ("0.5", "1"),
            ("0.2", "0"),
            ("100.0", "-1"),
            ("\"noise_multiplier\":1.0", "\"noise_multiplier\":10"),
            ("exact", "none"),
            ("\"rate", "\"x\":1,\"rate"),
        ] {
            assert!(text.contains(from) && read(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
    }
}
