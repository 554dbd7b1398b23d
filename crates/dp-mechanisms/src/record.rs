//! The serialised form of mechanisms: their public parameters, checked again when read.

pub(crate) mod clip;
pub(crate) mod continual;
pub(crate) mod integer;
pub(crate) mod laplace;
pub(crate) mod randomized_response;
pub(crate) mod staircase;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, AdjacencyKind};

use crate::error::Error;
use crate::{Gaussian, GaussianMixture, L2Sensitivity, LaplaceBall};

/// The fields common to additive mechanisms.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    relation: AdjacencyKind,
    grid_bits: u32,
    noise: NoiseMode,
}

impl Frame {
    fn new<A: Adjacency>(grid_bits: u32, noise: NoiseMode) -> Self {
        Self { relation: A::KIND, grid_bits, noise }
    }

    /// Checks that the relation is that of the type.
    fn check<A: Adjacency>(&self) -> Result<(), Error> {
        check_relation::<A>(self.relation)?;
        Ok(())
    }
}

/// Checks that the relation is that of the type.
fn check_relation<A: Adjacency>(found: AdjacencyKind) -> Result<(), Error> {
    let expected = A::KIND;
    if found == expected { Ok(()) } else { Err(dp_accountant::Error::AdjacencyMismatch { expected, found }.into()) }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GaussianRecord {
    std_dev: f64,
    sensitivity: f64,
    on: Frame,
}

impl<A: Adjacency> From<Gaussian<A>> for GaussianRecord {
    fn from(gaussian: Gaussian<A>) -> Self {
        Self {
            std_dev: gaussian.std_dev(),
            sensitivity: gaussian.sensitivity().get(),
            on: Frame::new::<A>(gaussian.grid().bits(), gaussian.noise_mode()),
        }
    }
}

impl<A: Adjacency> TryFrom<GaussianRecord> for Gaussian<A> {
    type Error = Error;
    fn try_from(record: GaussianRecord) -> Result<Self, Error> {
        record.on.check::<A>()?;
        let sensitivity = L2Sensitivity::new(record.sensitivity)?;
        Self::from_std_dev(sensitivity, record.std_dev)?
            .with_grid_bits(record.on.grid_bits)?
            .with_noise_mode(record.on.noise)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaplaceBallRecord {
    scale: f64,
    sensitivity: f64,
    dim: u64,
    on: Frame,
}

impl<A: Adjacency> From<LaplaceBall<A>> for LaplaceBallRecord {
    fn from(ball: LaplaceBall<A>) -> Self {
        Self {
            scale: ball.scale(),
            sensitivity: ball.sensitivity().get(),
            dim: ball.dim(),
            on: Frame::new::<A>(ball.grid().bits(), ball.noise_mode()),
        }
    }
}

impl<A: Adjacency> TryFrom<LaplaceBallRecord> for LaplaceBall<A> {
    type Error = Error;
    fn try_from(record: LaplaceBallRecord) -> Result<Self, Error> {
        record.on.check::<A>()?;
        let sensitivity = L2Sensitivity::new(record.sensitivity)?;
        Self::from_scale(sensitivity, record.scale, record.dim)?
            .with_grid_bits(record.on.grid_bits)?
            .with_noise_mode(record.on.noise)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GaussianMixtureRecord {
    std_dev: f64,
    sensitivities: Vec<f64>,
    weights: Vec<f64>,
    on: Frame,
}

impl<A: Adjacency> From<GaussianMixture<A>> for GaussianMixtureRecord {
    fn from(mixture: GaussianMixture<A>) -> Self {
        Self {
            std_dev: mixture.std_dev(),
            sensitivities: mixture.sensitivities().to_vec(),
            weights: mixture.weights().to_vec(),
            on: Frame::new::<A>(mixture.grid().bits(), mixture.noise_mode()),
        }
    }
}

impl<A: Adjacency> TryFrom<GaussianMixtureRecord> for GaussianMixture<A> {
    type Error = Error;
    fn try_from(record: GaussianMixtureRecord) -> Result<Self, Error> {
        record.on.check::<A>()?;
        Self::new(record.std_dev, record.sensitivities, record.weights)?
            .with_grid_bits(record.on.grid_bits)?
            .with_noise_mode(record.on.noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clip::ClippingNorm;
    use dp_accountant::{Epsilon, ReplaceOne, ZeroOut};

    fn sensitivity() -> L2Sensitivity<ZeroOut> {
        L2Sensitivity::new(0.1).unwrap()
    }

    #[test]
    fn round_trips() {
        let gaussian = Gaussian::from_std_dev(sensitivity(), 1.0 / 3.0).unwrap().with_grid_bits(24).unwrap();
        let text = serde_json::to_string(&gaussian).unwrap();
        assert_eq!(
            text,
            r#"{"std_dev":0.3333333333333333,"sensitivity":0.1,"on":{"relation":{"adjacency":"add-remove","n_public":true},"grid_bits":24,"noise":"exact"}}"#
        );
        assert_eq!(serde_json::from_str::<Gaussian<ZeroOut>>(&text).unwrap(), gaussian);
        let rounded = gaussian.with_noise_mode(NoiseMode::Rounded).unwrap();
        let text = serde_json::to_string(&rounded).unwrap();
        assert!(text.contains(r#""noise":"rounded""#));
        assert_eq!(serde_json::from_str::<Gaussian<ZeroOut>>(&text).unwrap(), rounded);
        let ball = LaplaceBall::new(sensitivity(), Epsilon::new(0.3).unwrap(), 17).unwrap();
        let text = serde_json::to_string(&ball).unwrap();
        assert_eq!(serde_json::from_str::<LaplaceBall<ZeroOut>>(&text).unwrap(), ball);
        let mixture = GaussianMixture::<ZeroOut>::new(0.3, vec![0.1, 0.2], vec![0.5, 0.5]).unwrap();
        let text = serde_json::to_string(&mixture).unwrap();
        assert_eq!(serde_json::from_str::<GaussianMixture<ZeroOut>>(&text).unwrap(), mixture);
    }

    #[test]
    fn what_is_read_is_checked() {
        let good = r#"{"std_dev":1.0,"sensitivity":0.1,"on":{"relation":{"adjacency":"add-remove","n_public":true},"grid_bits":24,"noise":"rounded"}}"#;
        let read = |text: &str| serde_json::from_str::<Gaussian<ZeroOut>>(text);
        assert!(read(good).is_ok());
        assert!(read(&good.replacen("rounded", "exact", 1)).is_ok());
        assert!(serde_json::from_str::<Gaussian<ReplaceOne>>(good).is_err());
        for (from, to) in [
            ("1.0", "0.0"),
            ("1.0", "-1.0"),
            ("1.0", "1e999"),
            ("1.0", "null"),
            ("1.0", "\"1\""),
            ("0.1", "0"),
            ("24", "41"),
            ("24", "-1"),
            ("rounded", "none"),
            ("rounded", "plain"),
            ("\"std_dev\"", "\"extra\":1,\"std_dev\""),
            ("\"std_dev\"", "\"sensitivity\":1,\"std_dev\""),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert!(read(&bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<ClippingNorm>("1.5").is_ok());
        for bad in ["0", "-1", "1e-300", "null", "1e999"] {
            assert!(serde_json::from_str::<ClippingNorm>(bad).is_err(), "{bad}");
            assert!(serde_json::from_str::<L2Sensitivity<ZeroOut>>(bad).is_err() || bad == "1e-300", "{bad}");
        }
        assert_eq!(serde_json::to_string(&sensitivity()).unwrap(), "0.1");
    }
}
