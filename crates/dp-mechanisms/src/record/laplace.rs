//! The Laplace mechanism.

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
