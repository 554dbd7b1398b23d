use std::sync::atomic::{AtomicU64, Ordering};

use dp_accountant::{EventLog, ZeroOut};
use dp_mechanisms::clip::{ClippingNorm, ExactSum};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism, PrivacyEvent};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

/// Noise for a clipping norm of 1 on a sum of orthogonal canaries of length 12.
struct NoisySum {
    dim: usize,
    gaussian: Gaussian<ZeroOut>,
    claim: Claim,
    clips: bool,
}

const LENGTH: f64 = 12.0;

impl NoisySum {
    fn new(dim: usize, std_dev: f64, clips: bool) -> Self {
        let gaussian = Gaussian::from_std_dev(L2Sensitivity::new(1.0).unwrap(), std_dev).unwrap();
        Self { dim, gaussian, claim: Claim::new(gaussian.event()).unwrap(), clips }
    }
}

impl Canaries for NoisySum {
    type Output = Vec<f64>;
    fn name(&self) -> &str {
        "noisy sum"
    }
    fn count(&self) -> usize {
        self.dim
    }
    fn claim(&self) -> &Claim {
        &self.claim
    }
    fn relation(&self) -> AdjacencyKind {
        AdjacencyKind::ZeroOut
    }
    fn release(&self, included: &[bool], rng: &mut SeededRng) -> Result<Vec<f64>, Error> {
        let mut exact =
            ExactSum::for_release(self.dim, ClippingNorm::new(1.0)?.into(), &self.gaussian, self.dim as u64)?;
        let mut forgetful = vec![0.0; self.dim];
        let mut record = vec![0.0; self.dim];
        for canary in (0..self.dim).filter(|&canary| included[canary]) {
            record[canary] = LENGTH;
            exact.add(&record)?;
            forgetful[canary] += LENGTH;
            record[canary] = 0.0;
        }
        let unclipped = Bounded::with_proven_sensitivity(forgetful, exact.sensitivity());
        let bounded = if self.clips { exact.finish() } else { unclipped };
        Ok(self.gaussian.release(bounded, &mut EventLog::new(), rng)?.into_inner())
    }
    fn scores(&self, output: &Vec<f64>) -> Vec<f64> {
        output.clone()
    }
}

/// Canaries whose scores are drawn independently, given whether they are in.
struct Each<F> {
    count: usize,
    claim: Claim,
    relation: AdjacencyKind,
    draw: F,
}

impl<F: Fn(bool, &mut SeededRng) -> f64> Canaries for Each<F> {
    type Output = Vec<f64>;
    fn name(&self) -> &str {
        "each"
    }
    fn count(&self) -> usize {
        self.count
    }
    fn claim(&self) -> &Claim {
        &self.claim
    }
    fn relation(&self) -> AdjacencyKind {
        self.relation
    }
    fn release(&self, included: &[bool], rng: &mut SeededRng) -> Result<Vec<f64>, Error> {
        Ok(included.iter().map(|&included| (self.draw)(included, rng)).collect())
    }
    fn scores(&self, output: &Vec<f64>) -> Vec<f64> {
        output.clone()
    }
}

fn each<F: Fn(bool, &mut SeededRng) -> f64>(count: usize, claim: Claim, draw: F) -> Each<F> {
    Each { count, claim, relation: AdjacencyKind::AddRemoveOne, draw }
}

fn pure(epsilon: f64) -> Claim {
    Claim { event: DpEvent::PureDp { epsilon }, delta: 0.0 }
}

/// Randomised response of this epsilon.
fn answer(epsilon: f64) -> impl Fn(bool, &mut SeededRng) -> f64 {
    let honest = 1.0 / (1.0 + (-epsilon).exp());
    move |included, rng| f64::from(included == (rng.random::<f64>() < honest))
}

#[test]
fn a_clipped_sum_stands_and_one_that_forgets_to_clip_falls() {
    let auditor = OneRun::new(200).unwrap();
    let sound = auditor.audit(&NoisySum::new(1000, 1.0, true)).unwrap();
    assert_eq!(sound.verdict, Verdict::NotRefuted);
    assert!(sound.epsilon_lower > 0.5 && sound.ratio() < 0.6, "{sound:?}");
    let broken = OneRun::new(800).unwrap().audit(&NoisySum::new(1000, 2.0, false)).unwrap();
    assert_eq!(broken.verdict, Verdict::Refuted);
    assert!(broken.guesses.correct > 795 && broken.ratio() > 1.5, "{broken:?}");
}

#[test]
fn sound_subjects_are_refuted_as_seldom_as_promised() {
    // P(Binomial(2000, 0.05) > 168) < 1e-9 if the bound were exact.
    let shift: f64 = 1.0;
    let revealing = answer(1.0);
    let approximate = DpEvent::ApproximateDp { epsilon: 1.0, delta: 0.01 };
    let subjects: [(&str, &dyn Canaries<Output = Vec<f64>>, u64); 4] = [
        ("pure, all guessed", &each(100, pure(1.0), answer(1.0)), 100),
        ("pure, some guessed", &each(100, pure(1.0), answer(1.0)), 41),
        // The worst case: each coin is revealed with probability delta.
        (
            "approximate",
            &each(60, Claim { event: approximate, delta: 0.01 }, |included, rng| {
                if rng.random::<f64>() < 0.01 { f64::from(included) * 4.0 - 2.0 } else { revealing(included, rng) }
            }),
            20,
        ),
        (
            "gaussian",
            &each(
                200,
                Claim { event: DpEvent::Gaussian { std_dev: 1.0, sensitivity: shift }, delta: 1e-3 },
                |included, rng| {
                    shift * f64::from(included) + <StandardNormal as Distribution<f64>>::sample(&StandardNormal, rng)
                },
            ),
            20,
        ),
    ];
    for (name, subject, guesses) in subjects {
        let auditor = OneRun::new(guesses).unwrap().with_failure_probability(0.05).unwrap();
        let alarms = (0..2000)
            .filter(|&seed| auditor.with_seed(seed).audit(subject).unwrap().verdict == Verdict::Refuted)
            .count();
        assert!(alarms <= 168, "{name}: {alarms} of 2000");
    }
}

#[test]
fn a_pure_claim_is_nearly_reached_and_half_of_it_refuted() {
    let auditor = OneRun::new(20_000).unwrap();
    let sound = auditor.audit(&each(20_000, pure(2.0), answer(2.0))).unwrap();
    assert_eq!(sound.verdict, Verdict::NotRefuted);
    assert!(sound.ratio() > 0.92 && sound.ratio() < 1.0, "{}", sound.ratio());
    // A score with the wrong sign shows nothing.
    let wrong = auditor.audit(&each(20_000, pure(2.0), |included, rng| answer(2.0)(!included, rng))).unwrap();
    assert_eq!((wrong.epsilon_lower, wrong.ratio()), (0.0, 0.0));
    assert_eq!(auditor.audit(&each(20_000, pure(1.8), answer(2.0))).unwrap().verdict, Verdict::Refuted);
}

#[test]
fn the_ends_are_guessed_and_the_middle_is_left_open() {
    let (scores, included) = ([0.0, 5.0, -3.0, 1.0, f64::NAN], [true, true, false, false, true]);
    for (guesses, correct) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3)] {
        assert_eq!(correct_guesses(&scores, &included, guesses), correct, "{guesses}");
    }
    // One is guessed to be in, two to be out: ties by order, ignoring the signs of zero and NaN.
    assert_eq!(correct_guesses(&[0.0, -0.0, 0.0], &[false, true, true], 3), 3);
    assert_eq!(correct_guesses(&[-f64::NAN, 1.0], &[true, false], 2), 2);
}

#[test]
fn coins_are_fair_independent_of_the_run_and_a_function_of_seed_and_name() {
    let seen = AtomicU64::new(0);
    let first = AtomicU64::new(0);
    let subject = each(10_000, pure(1.0), |included, rng| {
        let number = rng.next_u64();
        first.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).ok();
        // The run's own numbers agree with the coins half of the time.
        seen.fetch_add(u64::from((number >> 63 == 1) == included), Ordering::Relaxed);
        f64::from(included)
    });
    let auditor = OneRun::new(10_000).unwrap();
    let one = auditor.audit(&subject).unwrap();
    // 6.2 standard deviations of Binomial(10000, 1/2): 1e-9 on each side.
    assert!(seen.load(Ordering::Relaxed).abs_diff(5000) < 310, "{seen:?}");
    // A score equal to the coin is wrong only if more than half of the coins fell on one side.
    assert!((9690..10_000).contains(&one.guesses.correct), "{one:?}");
    let drawn = first.swap(0, Ordering::Relaxed);
    assert_eq!(one, auditor.audit(&subject).unwrap());
    assert_eq!(drawn, first.swap(0, Ordering::Relaxed));
    assert_ne!(one.guesses, auditor.with_seed(1).audit(&subject).unwrap().guesses);
    assert_ne!(drawn, first.swap(0, Ordering::Relaxed));
}

#[test]
fn what_one_run_cannot_audit_is_refused() {
    for relation in [AdjacencyKind::ReplaceOne, AdjacencyKind::ChangeListLabels] {
        let subject = Each { relation, ..each(10, pure(1.0), answer(1.0)) };
        let error = OneRun::new(10).unwrap().audit(&subject).unwrap_err();
        assert_eq!(error, Error::Relation { subject: "each".to_owned(), relation });
    }
    assert!(OneRun::new(0).is_err());
    for failure in [0.0, 1.0, f64::NAN] {
        assert!(OneRun::new(1).unwrap().with_failure_probability(failure).is_err());
    }
    let subject = each(10, pure(1.0), answer(1.0));
    assert!(matches!(OneRun::new(11).unwrap().audit(&subject), Err(Error::OutOfRange { name: "guesses", .. })));
    for delta in [-1.0, 1.0, f64::NAN] {
        let subject = each(10, Claim { event: DpEvent::PureDp { epsilon: 1.0 }, delta }, answer(1.0));
        assert!(matches!(OneRun::new(5).unwrap().audit(&subject), Err(Error::OutOfRange { name: "delta", .. })));
    }
    assert!(OneRun::new(5).unwrap().audit(&each(10, pure(-1.0), answer(1.0))).is_err());
}

/// A release with fewer scores than canaries.
struct Short;

impl Canaries for Short {
    type Output = ();
    fn name(&self) -> &str {
        "short"
    }
    fn count(&self) -> usize {
        3
    }
    fn claim(&self) -> &Claim {
        const CLAIM: &Claim = &Claim { event: DpEvent::NoOp, delta: 0.0 };
        CLAIM
    }
    fn relation(&self) -> AdjacencyKind {
        AdjacencyKind::AddRemoveOne
    }
    fn release(&self, _: &[bool], _: &mut SeededRng) -> Result<(), Error> {
        Ok(())
    }
    fn scores(&self, (): &()) -> Vec<f64> {
        vec![0.0; 2]
    }
}

#[test]
fn a_score_for_each_canary_is_asked_for() {
    assert!(matches!(OneRun::new(1).unwrap().audit(&Short), Err(Error::Trial { .. })));
}
