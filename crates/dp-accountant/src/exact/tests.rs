//! The curve as a whole.

use super::*;

#[test]
fn dp_sgd() {
    let gaussian = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
    let step = DpEvent::PoissonSampled { sampling_rate: 0.01, event: Box::new(gaussian) };
    let curve = PrivacyCurve::new(&DpEvent::SelfComposed { event: Box::new(step), count: 10_000 }).unwrap();
    let bracket = curve.epsilon(Delta::new(1e-5).unwrap()).unwrap();
    assert!((bracket.upper - 6.187_712_389_97).abs() < 1e-10 && bracket.upper - bracket.lower < 1e-10, "{bracket:?}");
    assert_eq!(bracket.engine, Engine::Contour);
}
