//! The serialised form of the Laplace mechanism.

use dp_accountant::Adjacency;

use super::Frame;
use crate::error::Error;
use crate::{L1Sensitivity, Laplace};

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaplaceRecord {
    scale: f64,
    sensitivity: f64,
    on: Frame,
}

impl<A: Adjacency> From<Laplace<A>> for LaplaceRecord {
    fn from(laplace: Laplace<A>) -> Self {
        let on = Frame::new::<A>(laplace.grid().bits(), laplace.noise_mode());
        Self { scale: laplace.scale(), sensitivity: laplace.sensitivity().get(), on }
    }
}

impl<A: Adjacency> TryFrom<LaplaceRecord> for Laplace<A> {
    type Error = Error;
    fn try_from(record: LaplaceRecord) -> Result<Self, Error> {
        record.on.check::<A>()?;
        let sensitivity = L1Sensitivity::new(record.sensitivity)?;
        Self::from_scale(sensitivity, record.scale)?
            .with_grid_bits(record.on.grid_bits)?
            .with_noise_mode(record.on.noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_accountant::certificate::NoiseMode;
    use dp_accountant::{ReplaceOne, ZeroOut};

    #[test]
    fn round_trip_and_checks() {
        let laplace = Laplace::<ZeroOut>::from_scale(L1Sensitivity::new(0.1).unwrap(), 1.0 / 3.0).unwrap();
        let laplace = laplace.with_grid_bits(24).unwrap();
        let text = serde_json::to_string(&laplace).unwrap();
        assert_eq!(
            text,
            r#"{"scale":0.3333333333333333,"sensitivity":0.1,"on":{"relation":{"adjacency":"add-remove","n_public":true},"grid_bits":24,"noise":"exact"}}"#
        );
        let read = |text: &str| serde_json::from_str::<Laplace<ZeroOut>>(text);
        assert_eq!(read(&text).unwrap(), laplace);
        let rounded = laplace.with_noise_mode(NoiseMode::Rounded).unwrap();
        assert_eq!(read(&text.replace("exact", "rounded")).unwrap(), rounded);
        assert!(serde_json::from_str::<Laplace<ReplaceOne>>(&text).is_err());
        for (from, to) in
            [("24", "41"), ("exact", "none"), ("0.1", "0"), ("0.3333333333333333", "-1"), ("\"on\"", "\"x\":1,\"on\"")]
        {
            assert!(read(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
    }
}
