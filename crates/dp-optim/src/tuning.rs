//! Selection among candidates: hyper-parameters, algorithms, encodings.
//!
//! | way | data for each candidate | cost | theorem |
//! |---|---|---|---|
//! | [`public`] | public records | nothing | post-processing of public data |
//! | [`portions`] | a separate portion of the records | the budget of one training | parallel composition, exponential mechanism |
//! | [`composition`] | nine tenths of the records | that of all trainings together | composition; parallel composition |
//! | [`random_stopping`] | all records | two to three times a candidate's | Liu and Talwar 2019; Papernot and Steinke 2022 |
//!
//! If candidates are tried on the private records and the best one is kept, every trial is a release: with `l` candidates of
//! `epsilon` each, basic composition gives `l epsilon`, and tight composition about `√l epsilon`. [`Portions`] and
//! [`RandomStopping`] do not cost more for more candidates. All three are [recipes](crate::recipes::Recipe) themselves: they are
//! planned, trained, certified and verified like any other. None reveals the quality of a candidate.
//!
//! # Benefit
//! There is hardly any for linear models with the [recommended settings](crate::defaults), which are functions of public
//! numbers. Test accuracy on Adult (39,074 training records), strongly convex bolt-on under replace-one, `δ = 1/n²`, with a
//! choice among `λ` of 1e-4, 1e-3, 1e-2 or 1e-1 and 5 or 20 passes, means of five folds (standard errors up to .01, of random
//! stopping up to .08, of the public choice .10 at 0.4; `cargo run --release -p benches --bin tuning -- TABLE LABEL POSITIVE
//! --repeats 1`):
//!
//! | ε | recommended | portions | composition | random stopping | public (a tenth of the records) | best candidate in hindsight |
//! |---|---|---|---|---|---|---|
//! | 0.1 | .791 | .761 | .775 | .697 | .787 | .791 |
//! | 0.4 | .817 | .801 | .797 | .744 | .644 | .825 |
//! | 1.6 | .831 | .800 | .828 | .788 | .810 | .833 |
//!
//! A portion is a ninth of the records, and a repetition has less than half of the budget; no candidate is good enough to
//! make up for this. On Covertype (74,370) at ε of 0.1 and 0.4: recommended .668 and .705, portions .582 and .642, composition
//! .620 and .672, random stopping .650 and .691, public .661 and .687, in hindsight .671 and .703. Tune only if there is no
//! reliable recommendation.
//!
//! # Scores
//! A candidate's score is the number of records that it classifies correctly, so its loss must be a classification loss.

pub(crate) mod agreement;
pub(crate) mod calibration;
pub mod composition;
mod portion;
pub mod portions;
pub mod public;
pub mod random_stopping;
pub(crate) mod repetitions;

#[cfg(test)]
mod tests;

pub use composition::Composition;
pub use portions::Portions;
pub use random_stopping::RandomStopping;

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::{Assumption, Derivation as Derives};

use crate::derivation::{DerivesModel, ModelTerms};
use crate::error::Error;
use crate::recipes::recipe::Nesting;

/// Maximum number of candidates: each takes planning time and space in a certificate.
pub const MOST_CANDIDATES: usize = 1000;

/// Rejects candidates that cannot be tuned, whatever the number of records.
fn check_candidates(recipe: &'static str, candidates: usize, copies: u64) -> Result<(), Error> {
    check_number(candidates)?;
    if copies != 1 {
        return Err(Error::NotProved {
            recipe,
            why: "a choice is released once: put one-vs-all inside the candidates, not around them",
        });
    }
    Ok(())
}

fn check_number(candidates: usize) -> Result<(), Error> {
    if (1..=MOST_CANDIDATES).contains(&candidates) {
        Ok(())
    } else {
        Err(Error::Count { name: "candidates", value: candidates as u64, range: "between 1 and 1000" })
    }
}

/// Returns the terms common to the candidates, which the released model must meet.
///
/// # Errors
/// No candidate or too many, one without privacy or planned for a number of records other than `records`, and candidates with
/// different kinds of models.
fn common_terms<D: DerivesModel>(recipe: &'static str, each: &[D], records: u64) -> Result<ModelTerms, Error> {
    common_terms_of(recipe, each, records, |terms| terms)
}

/// As [`common_terms`], as far as `compared` keeps the terms.
fn common_terms_of<D: DerivesModel>(
    recipe: &'static str,
    each: &[D],
    records: u64,
    compared: impl Fn(ModelTerms) -> ModelTerms,
) -> Result<ModelTerms, Error> {
    check_number(each.len())?;
    let mut common: Option<(ModelTerms, AdjacencyKind)> = None;
    for candidate in each {
        let refuse = |why| Err(Error::NotProved { recipe, why });
        match candidate.nesting() {
            Nesting::Single | Nesting::Classes => {}
            Nesting::Threshold => {
                return refuse("candidates are compared by their errors at the threshold 0");
            }
            Nesting::Choice => return refuse("a candidate is an algorithm, not a choice of candidates itself"),
            Nesting::Unit => return refuse("a candidate is an algorithm for single records"),
            Nesting::NonPrivate => return refuse("a candidate has no privacy"),
        }
        if candidate.records() != records {
            return refuse("a candidate is planned for another number of records");
        }
        let terms = (compared(candidate.model_terms()), candidate.adjacency());
        if *common.get_or_insert(terms) != terms {
            return Err(Error::NotProved {
                recipe,
                why: "candidates differ in loss, bounds, kind of noise or neighbouring relation: tune each kind by itself",
            });
        }
    }
    let Some((terms, _)) = common else {
        return Err(Error::Count { name: "candidates", value: 0, range: "1 or more" });
    };
    if terms.loss.classes().is_none() {
        return Err(Error::NotProved {
            recipe,
            why: "candidates are judged by their mistakes: choose a classification loss",
        });
    }
    Ok(terms)
}

/// Returns the assumptions of all candidates together, in order of first occurrence.
fn common_assumptions<D: DerivesModel>(each: &[D]) -> Vec<Assumption> {
    let mut all = Vec::new();
    for assumption in each.iter().flat_map(Derives::assumptions) {
        if !all.contains(&assumption) {
            all.push(assumption);
        }
    }
    all
}

fn check_chosen(chosen: Option<u32>, candidates: usize) -> Result<(), Error> {
    match chosen {
        Some(chosen) if chosen as usize >= candidates => Err(Error::Count {
            name: "chosen candidate",
            value: chosen.into(),
            range: "below the number of candidates",
        }),
        _ => Ok(()),
    }
}
