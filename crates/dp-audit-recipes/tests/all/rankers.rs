//! Audits of the private training of rankers with its noise, in every mode.
#![allow(clippy::print_stdout)] // // prints the table

use std::collections::BTreeSet;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Delta, bound};
use dp_audit::{Auditor, Claim, Claimed, Side, Subject, Unwatched, Verdict, audit_all};
use dp_audit_recipes::rank::{RECIPES, recipe, subjects};
use dp_audit_recipes::{Audited, Parameters};
use dp_mechanisms::SeededRng;
use dp_mechanisms::rng::{Purpose, ReleaseRng};

fn boxed(audited: Vec<Audited>) -> Vec<Box<dyn Subject>> {
    audited.into_iter().map(|audited| audited.subject).collect()
}

#[test]
fn every_mode_is_within_its_sensitivity_and_reaches_it() {
    for dim in [1, 3] {
        let all = subjects(&Parameters { dim, ..Parameters::default() }).unwrap();
        let names: BTreeSet<&str> = all.iter().map(|audited| audited.subject.name()).collect();
        assert_eq!((names.len(), all.len()), (10, 10));
        for recipe in RECIPES {
            assert!(names.iter().any(|name| name.starts_with(recipe.name)), "{}", recipe.name);
        }
        for Audited { subject, distance } in all {
            assert!(distance.holds() && distance.ratio() > 0.999, "{}: {distance:?}", subject.name());
            let claim = subject.claim();
            let bound = bound::epsilon(&claim.event, Delta::new(claim.delta).unwrap()).unwrap();
            assert!(bound.value <= 1.0 && bound.value > 0.98, "{}: {bound:?}", subject.name());
            assert!(subject.pair().contains("against"));
        }
    }
}

#[test]
fn scores_are_log_likelihood_ratios() {
    // E e^score = 1 under the first data set, and E e^-score = 1 under the second. Each mean of thousands lies within 6 standard
    // errors of it except with probability 2e-9.
    let generator = SeededRng::new(11);
    for Audited { subject, .. } in subjects(&Parameters::default()).unwrap() {
        for (side, sign) in [(Side::Base, 1.0), (Side::Neighbour, -1.0)] {
            let mut scores = Vec::new();
            for trial in 0..20_000 {
                let mut rng = generator.stream(Purpose::Custom(side as u32), trial, 0);
                subject.observe(side, &mut rng, &mut scores).unwrap();
            }
            let ratios: Vec<f64> = scores.iter().map(|score| (sign * score).exp()).collect();
            let count = ratios.len() as f64;
            let mean = ratios.iter().sum::<f64>() / count;
            let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count;
            let error = (variance / count).sqrt();
            assert!((mean - 1.0).abs() < 6.0 * error, "{}: {mean} within {error}", subject.name());
            assert!(variance > 0.01, "{}: the score says something", subject.name());
        }
    }
}

/// No mode is refuted. At a large delta few runs attain most of a claim.
#[test]
fn no_mode_is_refuted_and_each_comes_near_its_claim() {
    let noise_mode = Some(NoiseMode::Exact);
    let parameters = Parameters { delta: 1e-2, batch_size: 20, passes: 2, noise_mode, ..Parameters::default() };
    let auditor = Auditor::exactly(60_000).unwrap().with_seed(1);
    let suite = audit_all(&boxed(subjects(&parameters).unwrap()), &auditor, &Unwatched).unwrap();
    println!("{}", dp_audit::report::plain(&suite.audits));
    assert_eq!(suite.refuted().count(), 0);
    for audit in &suite.audits {
        assert!(audit.best_ratio() > 0.7 && audit.best_ratio() <= 1.0, "{}: {}", audit.subject, audit.best_ratio());
    }
}

/// Noise for half the distance, as if lists were removed rather than replaced, is detected.
#[test]
fn noise_for_another_relation_is_caught() {
    let sound = Parameters {
        delta: 1e-2,
        batch_size: 20,
        passes: 2,
        noise_mode: Some(NoiseMode::Exact),
        ..Parameters::default()
    };
    let broken = Parameters { epsilon: 2.0, ..sound.clone() };
    let auditor = Auditor::exactly(20_000).unwrap().with_seed(7);
    for (sound, broken) in subjects(&sound).unwrap().into_iter().zip(subjects(&broken).unwrap()) {
        let claim: Claim = sound.subject.claim().clone();
        let audit = auditor.audit(&Claimed::new(broken.subject, claim)).unwrap();
        assert_eq!(audit.verdict, Verdict::Refuted, "{} {}", audit.subject, audit.best_ratio());
    }
}

#[test]
fn refused_parameters_are_errors() {
    let refused = |change: fn(&mut Parameters)| {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        subjects(&parameters).is_err()
    };
    assert!(refused(|p| p.n = 0) && refused(|p| p.dim = 0) && refused(|p| p.passes = 0));
    assert!(refused(|p| p.batch_size = 0) && refused(|p| p.epsilon = f64::NAN) && refused(|p| p.delta = 1.0));
    assert!(subjects(&Parameters { delta: 0.0, ..Parameters::default() }).unwrap().is_empty());
    assert!(recipe("rank-lists").is_some() && recipe("rank").is_none());
    let few = subjects(&Parameters { pairs: 0, noise_mode: Some(NoiseMode::Exact), ..Parameters::default() }).unwrap();
    assert!(few.iter().all(|audited| audited.distance.pairs == 1 && audited.distance.ratio() > 0.999));
}
