//! The noise that meets a target: three mechanisms for the same budget, and a whole plan calibrated at once.
//!
//! `cargo run -p dp-accountant --example calibrate`

use std::error::Error;
use std::io::Write;

use dp_accountant::{Delta, DpEvent, Epsilon, bound, calibrate, gaussian};

fn main() -> Result<(), Box<dyn Error>> {
    let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
    let mut out = std::io::stdout().lock();

    // One number of sensitivity 1. The analytic Gaussian compared with the textbook's formula (which needs epsilon < 1).
    let analytic = gaussian::noise_multiplier(epsilon, delta)?;
    let almost_one = Epsilon::new(1.0f64.next_down())?;
    let classical = gaussian::classical_noise_multiplier(almost_one, delta)?;
    writeln!(out, "Gaussian: std {analytic:.4}, classical formula {classical:.4}")?;

    let laplace = calibrate::least_scale(epsilon, Delta::ZERO, |scale| DpEvent::Laplace { scale, sensitivity: 1.0 })?;
    writeln!(out, "Laplace, delta = 0: scale {laplace:.4}")?;

    // A hundred Gaussian releases, of which a tenth is ten times as sensitive, and a fixed pure part.
    let plan = |noise: f64| DpEvent::Composed {
        events: vec![
            DpEvent::PureDp { epsilon: 0.1 },
            DpEvent::SelfComposed {
                event: Box::new(DpEvent::Gaussian { std_dev: noise, sensitivity: 1.0 }),
                count: 90,
            },
            DpEvent::SelfComposed {
                event: Box::new(DpEvent::Gaussian { std_dev: noise, sensitivity: 10.0 }),
                count: 10,
            },
        ],
    };
    let noise = calibrate::least_scale(epsilon, delta, plan)?;
    let reached = bound::epsilon(&plan(noise), delta)?;
    writeln!(out, "the plan: std {noise:.3} for epsilon = {:.9} by {}", reached.value, reached.theorem)?;
    assert!(reached.value <= epsilon.get());

    // A hidden random sensitivity (the position of one's record in a shuffled pass) needs less noise than its maximum.
    let hidden = |std_dev: f64| DpEvent::GaussianMixture {
        std_dev,
        sensitivities: (1..=100).map(|position| f64::from(position) / 100.0).collect(),
        weights: vec![0.01; 100],
    };
    let averaged = calibrate::least_scale(epsilon, delta, hidden)?;
    writeln!(out, "hidden position: std {averaged:.4} against {analytic:.4} for the worst position")?;
    assert!(averaged < analytic.get());

    // A target that no noise meets is an error that states the reason.
    match calibrate::least_scale(Epsilon::new(0.05)?, delta, plan) {
        Err(error) => writeln!(out, "epsilon = 0.05: {error}")?,
        Ok(noise) => writeln!(out, "epsilon = 0.05: std {noise}")?,
    }
    Ok(())
}
