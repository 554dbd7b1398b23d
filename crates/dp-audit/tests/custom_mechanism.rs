//! A user-defined mechanism is audited in one call: a sound claim is not refuted, an excessive one is.

use dp_accountant::{Epsilon, ZeroOut};
use dp_audit::{Audit, Auditor, Error, Verdict, check};
use dp_mechanisms::custom::{Claim, CryptoRng, CustomMechanism};
use dp_mechanisms::{L1Sensitivity, exact};

/// Audits a count with two-sided geometric noise of this integer scale, for which this epsilon is claimed.
fn audited(scale: u64, claimed: f64) -> Result<Audit, Error> {
    let sensitivity = L1Sensitivity::<ZeroOut>::new(1.0)?;
    let claim = Claim::PureEps(Epsilon::new(claimed)?);
    let count = CustomMechanism::new("count", claim, sensitivity, |value: i64, rng: &mut dyn CryptoRng| {
        let noise = exact::discrete_laplace(scale, 1, rng)?;
        Ok(value.saturating_add(i64::try_from(noise).unwrap_or(i64::MAX)))
    })?;
    check(&count, sensitivity, 0, 1, |output: &i64| *output as f64, &Auditor::new(100_000)?.with_seed(1))
}

/// At 99.9 % confidence, with a fixed seed: scale 1 costs exactly epsilon = 1.
#[test]
fn a_claim_stands_or_falls() {
    let sound = audited(1, 1.0).unwrap();
    assert_eq!(sound.verdict, Verdict::NotRefuted);
    assert!(sound.epsilon_lower > 0.85, "{}", sound.epsilon_lower);
    let boastful = audited(1, 0.7).unwrap();
    assert!(boastful.verdict != Verdict::NotRefuted && boastful.epsilon_lower > 0.7, "{}", boastful.epsilon_lower);
}
