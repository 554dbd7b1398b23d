//! Randomised response.

use crate::RandomizedResponse;
use crate::error::Error;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RandomizedResponseRecord {
    buckets: u64,
    noise: f64,
}

impl From<RandomizedResponse> for RandomizedResponseRecord {
    fn from(response: RandomizedResponse) -> Self {
        Self { buckets: response.buckets(), noise: response.noise() }
    }
}

impl TryFrom<RandomizedResponseRecord> for RandomizedResponse {
    type Error = Error;
    fn try_from(record: RandomizedResponseRecord) -> Result<Self, Error> {
        Self::from_noise(record.buckets, record.noise)
    }
}
