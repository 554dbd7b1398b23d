//! A user-defined mechanism: a count with noise on the integers whose tails are truncated, claimed by a dominating pair, composed
//! with a Gaussian release of the library.
//!
//! `cargo run -p dp-mechanisms --example own_mechanism`

use std::io::Write;

use dp_accountant::{Delta, EventLog, ZeroOut, bound};
use dp_mechanisms::custom::{Claim, CryptoRng, CustomMechanism, FinitePair};
use dp_mechanisms::{Bounded, Error, Gaussian, L1Sensitivity, L2Sensitivity, Mechanism, OsSeeded, exact};

/// Scale of the noise: a sensitivity of 1 costs epsilon = 1/2 with untruncated tails.
const SCALE: u64 = 2;
/// Largest absolute value of the noise: the two extreme values take the mass beyond.
const MOST: i64 = 41;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sensitivity = L1Sensitivity::<ZeroOut>::new(1.0)?;
    // The mechanism: a name, its claimed cost, its accepted sensitivity, and its draw.
    let count = CustomMechanism::new("bounded count", claim()?, sensitivity, |value: i64, rng: &mut dyn CryptoRng| {
        let noise = exact::discrete_laplace(SCALE, 1, rng)?.clamp(-i128::from(MOST), i128::from(MOST));
        Ok(value.saturating_add(noise as i64))
    })?;

    let mut out = std::io::stdout().lock();
    // It is released, logged and composed like any other.
    let mut log = EventLog::new();
    let mut rng = OsSeeded::new()?;
    let visits = Bounded::with_proven_sensitivity(1_234, sensitivity);
    writeln!(out, "count: {}", count.release(visits, &mut log, &mut rng)?.get())?;
    let l2 = L2Sensitivity::<ZeroOut>::new(1.0)?;
    let means = Bounded::with_proven_sensitivity(vec![310.5, -12.25], l2);
    let gaussian = Gaussian::from_std_dev(l2, 4.0)?;
    writeln!(out, "sums:  {:?}", gaussian.release(means, &mut log, &mut rng)?.get())?;

    for assumption in log.assumptions() {
        writeln!(out, "on trust: {}", assumption.name())?;
    }
    let delta = Delta::new(1e-6)?;
    let together = bound::epsilon(&log.to_event(), delta)?;
    writeln!(out, "epsilon = {:.4} at delta = 1e-6, by {}", together.value, together.theorem)?;
    Ok(())
}

/// Returns the law of the released count against its law for a true count one higher.
///
/// This is the worst case: the noise's law is symmetric, so a count one lower is the mirror image, and the sensitivity allows
/// nothing else. Outcomes are the released values minus the true count, from `-MOST` to `MOST + 1`.
fn claim() -> Result<Claim, Error> {
    let ratio = (-1.0 / SCALE as f64).exp();
    let mass = |noise: i64| match noise.abs() {
        distance if distance < MOST => (1.0 - ratio) / (1.0 + ratio) * ratio.powi(distance as i32),
        MOST => ratio.powi(MOST as i32) / (1.0 + ratio),
        _ => 0.0,
    };
    let outcomes = -MOST..=MOST + 1;
    let p = outcomes.clone().map(mass).collect();
    let q = outcomes.map(|outcome| mass(outcome - 1)).collect();
    Ok(FinitePair::new(p, q)?.into())
}
