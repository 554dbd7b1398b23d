//! Every mechanism of [`dp_mechanisms`] on its worst-case pairs of inputs.
//!
//! | mechanism | neighbours | what the attacker computes |
//! |---|---|---|
//! | noise on a vector | at distance D along one axis and along the diagonal, at the origin and far from it, 1 to 1000 coordinates | the log-likelihood ratio |
//! | noise on integers | 0 and D, at the origin and far from it | the log-likelihood ratio |
//! | randomised response | two labels | the answer |
//! | selection | all scores equal, or one up by D and all others down; two that change places; one up by D | the log-likelihood ratio of the chosen index |
//! | sparse vector | queries at the threshold that move towards the observed pattern | the pattern of answers |
//! | clipped sum, then noise | no record, and a record of norm far below, at, an ulp off and far above the clipping norm, or not finite | the projection on the record |
//! | sum of multiples of rows, then noise | no record, and a tiny, a just clipped, a huge or an infinite multiple of a row that is short, long, zero or not finite | the projection on the row |
//! | adaptive clipping | no record, and a record just below or above the clipping norm | the log-likelihood ratio of the noisy sum and the next norm |
//! | continual release | a record in one step or two of a stream, or not | the log-likelihood ratio of all that is released, or a score learned from it |
//!
//! [`deployed`] covers the first three groups with custom parameters.
//!
//! A bound far below a claim indicates a weak attack or a loose analysis. Scores are exact likelihood ratios where known; the
//! remaining gap is due to chance, confidence, and, for vectors and selection, the rarity of the worst outcome.
//!
//! # Examples
//! ```
//! use dp_audit::{Auditor, Verdict, mechanisms};
//! let subjects = mechanisms::subjects()?;
//! let gaussian = subjects.iter().find(|subject| subject.name() == "gaussian/1").ok_or("no such subject")?;
//! let audit = Auditor::new(50_000)?.audit(gaussian)?;
//! assert_eq!(audit.verdict, Verdict::NotRefuted);
//! assert!(audit.best_ratio() > 0.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod additive;
mod clipped_sum;
mod continual;
pub mod deployed;
mod integer;
mod local;
mod selection;
mod sparse_vector;

use dp_accountant::{Epsilon, ReplaceOne};
use dp_mechanisms::{Norm, SeededRng, Sensitivity};

use crate::error::Error;
use crate::subject::{Claim, FromFn, Side, Statistic, Subject, from_fn};

/// A subject of the registry.
type Entry = Box<dyn Subject>;

/// The sensitivity of every subject of the registry.
const SENSITIVITY: f64 = 1.0;

/// Returns every pair of inputs of every mechanism. Names are unique and begin with that of the mechanism, then a slash.
///
/// # Errors
/// A mechanism that rejects its parameters; none does.
pub fn subjects() -> Result<Vec<Box<dyn Subject>>, Error> {
    let parts = [
        additive::subjects()?,
        integer::subjects()?,
        local::subjects()?,
        selection::subjects()?,
        sparse_vector::subjects()?,
        clipped_sum::subjects()?,
        continual::subjects()?,
    ];
    Ok(parts.into_iter().flatten().collect())
}

fn sensitivity<N: Norm>() -> Result<Sensitivity<N, ReplaceOne>, Error> {
    Ok(Sensitivity::new(SENSITIVITY)?)
}

fn epsilon() -> Result<Epsilon, Error> {
    Ok(Epsilon::new(1.0)?)
}

/// Creates a subject with one score or the indicator of one event.
fn scored<F>(name: String, pair: String, claim: Claim, statistic: Statistic, observe: F) -> FromFn<impl Observe>
where
    F: Fn(Side, &mut SeededRng) -> Result<f64, Error> + Send + Sync,
{
    from_fn(name, pair, claim, statistic, move |side, rng: &mut SeededRng, features: &mut Vec<f64>| {
        features.push(observe(side, rng)?);
        Ok(())
    })
}

/// The observation of a trial.
trait Observe: Fn(Side, &mut SeededRng, &mut Vec<f64>) -> Result<(), Error> + Send + Sync {}
impl<F: Fn(Side, &mut SeededRng, &mut Vec<f64>) -> Result<(), Error> + Send + Sync> Observe for F {}

/// Returns `base` or `neighbour`.
fn pick<T>(side: Side, base: T, neighbour: T) -> T {
    match side {
        Side::Base => base,
        Side::Neighbour => neighbour,
    }
}

#[cfg(test)]
mod tests;
