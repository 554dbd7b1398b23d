#![allow(clippy::print_stdout, reason = "the table is what people run this test for")]

use std::collections::HashSet;
use std::time::Instant;

use super::*;
use crate::{Auditor, Verdict};
use rayon::prelude::*;

const SUITE: f64 = 1e-3;
const TRIALS: u64 = 200_000;

/// Subjects whose score is the exact likelihood ratio and whose worst outcome is frequent: the bound is close to the claim;
/// noise that is a fifth too large would be detected.
const TIGHT: [&str; 11] = [
    "gaussian/1",
    "gaussian/1/far",
    "laplace/1",
    "laplace-ball/1",
    "staircase/1",
    "discrete-laplace/1",
    "randomized-response/2",
    "exact-sum/at",
    "rank-one-sum/at",
    "rank-one-sum/huge",
    "layers/2",
];

/// False refutations of all claims together have probability at most 1e-3, split evenly. `DP_AUDIT=long` runs a hundred times
/// the trials, `DP_AUDIT_SEED` sets another seed; with `--nocapture` the table is printed.
#[test]
fn no_claim_is_refuted() {
    let start = Instant::now();
    let subjects = subjects().unwrap();
    let names: HashSet<_> = subjects.iter().map(|subject| subject.name()).collect();
    assert_eq!(names.len(), subjects.len(), "two subjects share a name");
    let long = std::env::var("DP_AUDIT").is_ok_and(|length| length == "long");
    let seed = std::env::var("DP_AUDIT_SEED").map_or(0, |seed| seed.parse().unwrap());
    let auditor = Auditor::new(TRIALS)
        .unwrap()
        .with_seed(seed)
        .with_multiplier(if long { 100 } else { 1 })
        .with_failure_probability(SUITE / subjects.len() as f64)
        .unwrap();
    let audits: Vec<_> = subjects
        .par_iter()
        .map(|subject| {
            let start = Instant::now();
            let audit = auditor.audit(subject).unwrap_or_else(|error| panic!("{}: {error}", subject.name()));
            (audit, start.elapsed().as_secs_f64())
        })
        .collect();
    println!("{:32} {:>7} {:>8} {:>9} {:>6} {:>9}", "subject", "delta", "claim", "bound", "ratio", "trials");
    for (audit, seconds) in &audits {
        println!(
            "{:32} {:7.0e} {:8.4} {:9.4} {:6.3} {:9} {seconds:5.1} s",
            audit.subject,
            audit.delta,
            audit.claimed_epsilon,
            audit.epsilon_lower,
            audit.best_ratio(),
            audit.trials
        );
    }
    println!("{} subjects in {:.1} s", subjects.len(), start.elapsed().as_secs_f64());
    for (audit, _) in &audits {
        assert_eq!(audit.verdict, Verdict::NotRefuted, "{}", audit.subject);
    }
    for name in TIGHT {
        let (audit, _) = audits.iter().find(|(audit, _)| audit.subject == name).unwrap_or_else(|| panic!("no {name}"));
        assert!(audit.best_ratio() > 0.9, "{name}: {}", audit.best_ratio());
    }
}
