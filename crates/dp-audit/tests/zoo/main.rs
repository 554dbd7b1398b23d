//! The zoo: mechanisms and training loops with faults that were published, shipped or are easy to make.
//!
//! Each member claims the guarantee of its sound form. The auditor must refute the claim, and must not refute the sound twin
//! on the same pair of inputs with the same statistic. A fault that is not detected fails the build. Nothing here is public.
//!
//! The seed is fixed, so that the outcome is the same on every machine; `DP_AUDIT_SEED` sets another, and `DP_AUDIT=long`
//! runs a hundred times the trials.
//! `cargo test -p dp-audit --release --test zoo -- --nocapture` prints the table.
#![allow(clippy::print_stdout, reason = "the table is what people run this test for")]

mod ball;
mod clipping;
mod discrete;
mod floating_point;
mod reuse;
mod sampling;
mod scale;
mod selection;
mod sparse_vector;
mod specimen;
mod textbook;

use std::collections::HashSet;
use std::time::Instant;

use dp_audit::{Audit, Auditor, Verdict};
use rayon::prelude::*;

use specimen::Specimen;

/// Upper bound on the probability that the refutation of a mutant is wrong. For all twins together it is [`SUITE`].
const CONVICTION: f64 = 1e-6;
const SUITE: f64 = 1e-3;

/// The seed, unless `DP_AUDIT_SEED` is set.
const SEED: u64 = 20_117;

fn zoo() -> Vec<Specimen> {
    [
        scale::specimens(),
        ball::specimens(),
        discrete::specimens(),
        sparse_vector::specimens(),
        selection::specimens(),
        reuse::specimens(),
        clipping::specimens(),
        sampling::specimens(),
        floating_point::specimens(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Formats the lower bounds: epsilon, and mu for a Gaussian claim.
fn found(audit: &Audit) -> String {
    let epsilon = format!("epsilon >= {:.3}", audit.epsilon_lower);
    match &audit.gaussian {
        Some(gaussian) => format!("{epsilon}, mu >= {:.3}", gaussian.mu_lower),
        None => epsilon,
    }
}

#[test]
fn every_mutant_is_caught_and_no_twin_is_accused() {
    let start = Instant::now();
    let zoo = zoo();
    let names: HashSet<_> = zoo.iter().map(|specimen| specimen.name).collect();
    assert_eq!(names.len(), zoo.len(), "two specimens share a name");

    let long = std::env::var("DP_AUDIT").is_ok_and(|length| length == "long");
    let multiplier = if long { 100 } else { 1 };
    let seed = std::env::var("DP_AUDIT_SEED").map_or(SEED, |seed| seed.parse().expect("DP_AUDIT_SEED is a number"));
    let audit = |failure: f64, subject: specimen::Cage<'_>| {
        let auditor = Auditor::new(20_000)?.with_multiplier(multiplier).with_failure_probability(failure)?;
        auditor.with_seed(seed).audit(&subject)
    };
    let audits: Vec<(Audit, Audit, f64)> = zoo
        .par_iter()
        .map(|specimen| {
            let start = Instant::now();
            let mutant = audit(CONVICTION, specimen.mutant()).unwrap_or_else(|e| panic!("{}: {e}", specimen.name));
            let twin =
                audit(SUITE / zoo.len() as f64, specimen.twin()).unwrap_or_else(|e| panic!("{}: {e}", specimen.name));
            (mutant, twin, start.elapsed().as_secs_f64())
        })
        .collect();

    println!(
        "{:58} {:>7} {:34} {:>9} {:11} {:34}",
        "mutant", "claim", "found at 1 - 1e-6", "trials", "convicted by", "sound twin"
    );
    let mut wrong = Vec::new();
    for (mutant, twin, seconds) in &audits {
        let by = mutant.conviction.map_or("ESCAPED".to_owned(), |conviction| format!("{:?}", conviction.bound));
        println!(
            "{:58} {:7.3} {:34} {:9} {by:11} {:34} {seconds:5.1} s{}",
            mutant.subject,
            mutant.claimed_epsilon,
            found(mutant),
            mutant.trials,
            found(twin),
            if twin.verdict == Verdict::Refuted { " ACCUSED" } else { "" }
        );
        if mutant.verdict != Verdict::Refuted || twin.verdict != Verdict::NotRefuted {
            wrong.push(&mutant.subject);
        }
    }
    println!("{} mutants in {:.1} s, seed {seed}", zoo.len(), start.elapsed().as_secs_f64());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
