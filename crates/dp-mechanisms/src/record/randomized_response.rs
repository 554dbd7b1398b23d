//! The serialised form of randomised response.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_checks() {
        let response = RandomizedResponse::from_noise(5, 0.3).unwrap();
        let text = serde_json::to_string(&response).unwrap();
        assert_eq!(text, r#"{"buckets":5,"noise":0.3}"#);
        assert_eq!(serde_json::from_str::<RandomizedResponse>(&text).unwrap(), response);
        for (from, to) in [("5", "1"), ("0.3", "0"), ("0.3", "1"), ("0.3", "null"), ("5", "5,\"x\":1")] {
            assert!(serde_json::from_str::<RandomizedResponse>(&text.replacen(from, to, 1)).is_err(), "{from} {to}");
        }
    }
}
