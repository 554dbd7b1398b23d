use std::collections::HashSet;
use std::sync::Mutex;

use dp_accountant::DpEvent;
use rand::Rng as _;

use super::*;
use crate::audit::Verdict;
use crate::subject::{Claim, FromFn, from_fn};
use crate::testing::laplace;

/// Pairs with given shifts, under Laplace noise of scale 1 and a claim of epsilon 1.
struct Shifts<F>(usize, F);

impl<F: Fn(usize) -> f64 + Send + Sync> Lineup for Shifts<F> {
    fn pairs(&self) -> usize {
        self.0
    }

    fn leading(&self) -> usize {
        2
    }

    fn subject(&self, pair: usize) -> Result<Box<dyn Subject>, Error> {
        let (shift, noise) = ((self.1)(pair), laplace(1.0, 1.0));
        let claim = Claim { event: DpEvent::PureDp { epsilon: 1.0 }, delta: 0.0 };
        let name = format!("shift/{pair}");
        // Of two features only the second is informative.
        Ok(Box::new(from_fn(name, "two numbers", claim, Statistic::Learned, move |side, rng, features| {
            noise.observe(Side::Base, rng, features)?;
            noise.observe(Side::Base, rng, features)?;
            features[1] += if side == Side::Neighbour { shift } else { 0.0 };
            Ok(())
        })))
    }
}

#[test]
fn rounds_stay_within_the_runs_and_give_every_pair_its_least() {
    for pairs in [1, 2, 3, 6, 100, 4097] {
        for trials in [16, 63, 64, 127, 128, 1000, 50_000, 10_000_000] {
            let tried = affordable(pairs, trials);
            let schedule = schedule(tried, trials);
            assert!((1..=pairs).contains(&tried), "{pairs} {trials}");
            assert!(schedule.iter().map(|&(left, runs)| left as u64 * runs).sum::<u64>() <= trials);
            assert!(schedule.iter().all(|&(_, runs)| runs >= FEWEST_RUNS), "{pairs} {trials}: {schedule:?}");
            assert_eq!(schedule.last().map_or(1, |&(left, _)| left.div_ceil(KEPT)), 1);
            assert!((tried + 1..=pairs).all(|more| super::schedule(more, trials).iter().any(|&(_, runs)| runs < 64)));
        }
    }
}

/// Selecting the wrong pair, or a bound that is too low, has probability far below 1e-3.
#[test]
fn the_one_pair_that_breaks_the_claim_is_found_and_convicts() {
    let one_of_many = Shifts(200, |pair| if pair == 137 { 3.0 } else { 0.1 });
    let auditor = Auditor::exactly(150_000).unwrap().with_seed(3);
    let (audit, pilot) = auditor.audit_among(&one_of_many, &Unwatched).unwrap();
    assert_eq!((pilot.tried, pilot.of, pilot.chosen), (200, 200, 137));
    assert!(pilot.trials <= 150_000 && pilot.trials > 148_000, "{pilot:?}");
    assert_eq!(auditor.trials_among(&one_of_many).unwrap(), 150_000 + pilot.trials);
    assert_eq!((audit.verdict, audit.subject.as_str()), (Verdict::Refuted, "shift/137"));
    assert!(audit.epsilon_lower > 2.5 && audit.epsilon_lower < 3.0, "{}", audit.epsilon_lower);
    // The audit is that of the pair alone, without the pilot's runs.
    assert_eq!(audit, auditor.audit(&one_of_many.subject(137).unwrap()).unwrap());
    // Results do not depend on threads.
    let alone = auditor.with_threads(1).unwrap().audit_among(&one_of_many, &Unwatched).unwrap();
    assert_eq!(alone, (audit, pilot));
}

#[test]
fn few_runs_are_for_the_leading_pairs_and_a_sample() {
    let many = Shifts(1000, |_| 0.0);
    let tried = |trials, seed| {
        let auditor = Auditor::exactly(trials).unwrap().with_seed(seed);
        auditor.tried(&many, &many.subject(0).unwrap(), trials)
    };
    assert_eq!(tried(100, 1), [0]);
    assert_eq!(tried(128, 1), [0, 1]);
    let (one, other) = (tried(10_000, 1), tried(10_000, 2));
    assert_eq!((&one[..2], &other[..2]), (&[0, 1][..], &[0, 1][..]));
    assert!(one.len() > 20 && one.len() == other.len() && one != other);
    assert_eq!(one.iter().collect::<HashSet<_>>().len(), one.len());
    let mut all = tried(10_000_000, 1);
    all.sort_unstable();
    assert_eq!(all, (0..1000).collect::<Vec<_>>());
}

/// No run that selected the pair is counted, and none is counted twice.
#[test]
fn every_run_has_a_generator_of_its_own() {
    struct Recorded(Mutex<Vec<u64>>);
    impl Lineup for &'static Recorded {
        fn pairs(&self) -> usize {
            5
        }
        fn leading(&self) -> usize {
            0
        }
        fn subject(&self, pair: usize) -> Result<Box<dyn Subject>, Error> {
            let claim = Claim { event: DpEvent::PureDp { epsilon: 1.0 }, delta: 0.0 };
            let seen = &self.0;
            let subject: FromFn<_> =
                from_fn(format!("seen/{pair}"), "-", claim, Statistic::Score, move |_, rng, features| {
                    let word = rng.next_u64();
                    seen.lock().unwrap().push(word);
                    features.push(word as f64);
                    Ok(())
                });
            Ok(Box::new(subject))
        }
    }
    let recorded: &'static Recorded = Box::leak(Box::new(Recorded(Mutex::new(Vec::new()))));
    let (_, pilot) = Auditor::exactly(2000).unwrap().audit_among(&recorded, &Unwatched).unwrap();
    let seen = recorded.0.lock().unwrap();
    assert_eq!(seen.len() as u64, 2 * (2000 + pilot.trials));
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len());
}

/// True and tight claims, of which the pilot selects the most promising: alarms at 0.05 are no more frequent. Of 100 audits
/// more than 16 alarm with probability 1e-5.
#[test]
fn choosing_a_pair_raises_no_alarms() {
    let tight = Shifts(8, |_| 1.0);
    let alarms = (0..100)
        .filter(|&seed| {
            let auditor = Auditor::exactly(1600).unwrap().with_failure_probability(0.05).unwrap().with_seed(seed);
            let (audit, pilot) = auditor.audit_among(&tight, &Unwatched).unwrap();
            assert_eq!(pilot.tried, 8);
            audit.verdict == Verdict::Refuted
        })
        .count();
    assert!(alarms <= 16, "{alarms}");
}

#[test]
fn a_pilot_that_is_stopped_says_so() {
    struct Stop;
    impl Monitor for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let stopped = Auditor::exactly(1000).unwrap().audit_among(&Shifts(3, |_| 1.0), &Stop);
    assert_eq!(stopped.unwrap_err(), Error::Cancelled);
}
