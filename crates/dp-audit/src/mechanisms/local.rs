//! Randomised response: two labels, and the answer that one of them makes likely.

use dp_accountant::EventLog;
use dp_mechanisms::{PrivacyEvent, RandomizedResponse, Secret};

use super::{Entry, epsilon, pick, scored};
use crate::error::Error;
use crate::subject::{Claim, Statistic};

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    let usual =
        |buckets| response(format!("randomized-response/{buckets}"), RandomizedResponse::new(buckets, epsilon()?)?);
    [2, 10].into_iter().map(usual).collect()
}

pub(super) fn response(name: String, mechanism: RandomizedResponse) -> Result<Entry, Error> {
    let claim = Claim::new(mechanism.event())?;
    let words = format!("labels 0 and 1 of {}", mechanism.buckets());
    let subject = scored(name, words, claim, Statistic::Event, move |side, rng| {
        let answer = mechanism.release(Secret::new(pick(side, 0, 1)), &mut EventLog::new(), rng)?;
        Ok(if *answer.get() == 1 { 1.0 } else { 0.0 })
    });
    Ok(Box::new(subject))
}
