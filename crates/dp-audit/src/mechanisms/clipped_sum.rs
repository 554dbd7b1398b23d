//! Clipped sums: no record, or one whose norm is far below, at, an ulp off or far above the clipping norm, or not finite.

use dp_accountant::{EventLog, ZeroOut};
use dp_mechanisms::clip::{ClippedSum, ClippingNorm};
use dp_mechanisms::{Gaussian, Mechanism, PrivacyEvent};

use super::{Entry, pick, scored};
use crate::error::Error;
use crate::subject::{Claim, Statistic};

/// The clipping norm of every subject.
const CLIPPING_NORM: f64 = 1.0;

/// Entries of the record, along the attacker's direction and across it.
const RECORDS: [(&str, &str, [f64; 2]); 8] = [
    ("tiny", "of norm 10^-300", [1e-300, 0.0]),
    ("half", "of half the clipping norm C", [0.5, 0.0]),
    ("below", "of norm C (1 - ulp)", [1.0 - 0.5 * f64::EPSILON, 0.0]),
    ("at", "of norm C", [1.0, 0.0]),
    ("above", "of norm C (1 + ulp)", [1.0 + f64::EPSILON, 0.0]),
    ("huge", "of norm 10^300", [1e300, 0.0]),
    ("infinite", "with an infinite entry", [f64::INFINITY, 0.0]),
    ("nan", "with an entry that is not a number", [1.0, f64::NAN]),
];

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    RECORDS.into_iter().map(clipped_sum).collect()
}

/// Noise with mu = 1 on the sum; the projection on the record's direction.
fn clipped_sum((name, words, record): (&str, &str, [f64; 2])) -> Result<Entry, Error> {
    let norm = ClippingNorm::new(CLIPPING_NORM)?;
    let empty = move || ClippedSum::<f64, ZeroOut>::new(2, 1, norm, 8, 100);
    let mechanism = Gaussian::<ZeroOut>::from_std_dev(empty()?.sensitivity(), CLIPPING_NORM)?;
    let claim = Claim::new(mechanism.event())?;
    let pair = format!("no record, and one {words}");
    let subject = scored(format!("clipped-sum/{name}"), pair, claim, Statistic::Score, move |side, rng| {
        let mut sum = empty()?;
        let records = pick(side, 0, 1);
        let squared_norm = [record[0] * record[0] + record[1] * record[1]];
        sum.add(&squared_norm[..records], |coefficients, sum| {
            // A record of coefficient 0 contributes nothing, whatever it holds.
            for &coefficient in coefficients.iter().filter(|&&coefficient| coefficient != 0.0) {
                for (sum, entry) in sum.iter_mut().zip(record) {
                    *sum += coefficient * entry;
                }
            }
        })?;
        let released = mechanism.release(sum.finish(), &mut EventLog::new(), rng)?;
        Ok(released.get().first().copied().unwrap_or(f64::NAN))
    });
    Ok(Box::new(subject.with_relative_cost(1.5)))
}
