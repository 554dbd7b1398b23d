use dp_accountant::{DpEvent, ReplaceOne};
use dp_mechanisms::{Gaussian, L2Sensitivity, LaplaceBall};

use super::*;
use crate::audit::Verdict;

#[test]
fn a_sound_mechanism_is_not_refuted_and_nearly_reaches_its_claim() {
    let sensitivity = L2Sensitivity::<ReplaceOne>::new(2.0).unwrap();
    let ball = LaplaceBall::from_scale(sensitivity, 2.0, 1).unwrap();
    let auditor = Auditor::exactly(200_000).unwrap();
    let audit = check(&ball, sensitivity, vec![0.0], vec![2.0], |output: &Vec<f64>| output[0], &auditor).unwrap();
    assert_eq!((audit.verdict, audit.claimed_epsilon, audit.delta), (Verdict::NotRefuted, 1.0, 0.0));
    assert!(audit.ratio() > 0.9, "{}", audit.ratio());
}

#[test]
fn too_large_a_pair_is_refused_by_the_mechanism_and_reported() {
    let built_for = L2Sensitivity::<ReplaceOne>::new(1.0).unwrap();
    let gaussian = Gaussian::from_std_dev(built_for, 1.0).unwrap();
    let larger = L2Sensitivity::new(3.0).unwrap();
    let auditor = Auditor::new(100).unwrap();
    let error = check(&gaussian, larger, vec![0.0], vec![3.0], |output: &Vec<f64>| output[0], &auditor).unwrap_err();
    assert!(matches!(error, Error::Mechanism(dp_mechanisms::Error::SensitivityExceeded { .. })), "{error}");
}

#[test]
fn a_lower_claim_is_refuted() {
    let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0).unwrap();
    let gaussian = Gaussian::from_std_dev(sensitivity, 1.0).unwrap();
    let look = |output: &Vec<f64>, features: &mut Vec<f64>| features.push(output[0]);
    let subject =
        MechanismSubject::new("gaussian", &gaussian, sensitivity, vec![0.0], vec![1.0], Statistic::Score, look)
            .unwrap()
            .with_claim(Claim { event: DpEvent::Gaussian { std_dev: 2.0, sensitivity: 1.0 }, delta: 1e-5 })
            .with_relative_cost(2.0);
    let audit = Auditor::new(20_000).unwrap().audit(&subject).unwrap();
    assert_eq!((audit.verdict, audit.trials), (Verdict::Refuted, 10_000));
}
