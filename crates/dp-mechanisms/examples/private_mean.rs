//! A private mean of vectors, with the Gaussian mechanism, from outside the crate.
//!
//! Each person contributes one vector. Its L2 norm is clipped to 1, so that setting any one person's vector to zero changes the
//! sum by at most 1 and the mean, with the number of people public, by at most 1/n.
//!
//! Run it with `cargo run -p dp-mechanisms --example private_mean`.

use std::error::Error;
use std::io::Write;

use dp_accountant::{EventLog, NoiseMultiplier, ZeroOut};
use dp_mechanisms::clip::{ClippingNorm, clip_l2};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism, OsSeeded, Released};

/// Returns the mean of the clipped rows, released once. `noise_multiplier` is the noise in units of one person's influence.
fn private_mean(
    rows: &[[f64; 3]],
    noise_multiplier: NoiseMultiplier,
    log: &mut EventLog<ZeroOut>,
) -> Result<Released<Vec<f64>>, Box<dyn Error>> {
    let bound = ClippingNorm::new(1.0)?;
    let mut sum = vec![0.0; 3];
    for row in rows {
        let mut row = *row;
        clip_l2(&mut row, bound);
        for (sum, entry) in sum.iter_mut().zip(row) {
            *sum += entry;
        }
    }
    // The sum of n vectors of norm at most 1, in doubles, has an error of at most n² 2^-53 for either data set: 2^-20 covers this
    // for up to 60,000 rows.
    assert!(rows.len() <= 60_000);
    let sensitivity = L2Sensitivity::new(1.0 + 2f64.powi(-20))?;
    let sum = Bounded::with_proven_sensitivity(sum, sensitivity);

    let gaussian = Gaussian::from_noise_multiplier(sensitivity, noise_multiplier)?;
    let noisy = gaussian.release(sum, log, &mut OsSeeded::new()?)?;
    // Dividing by a public number is post-processing.
    let n = rows.len() as f64;
    Ok(noisy.map(|sum| sum.into_iter().map(|entry| entry / n).collect()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows: Vec<[f64; 3]> = (0..10_000).map(f64::from).map(|i| [0.5 + 0.1 * i.sin(), 0.2 * i.cos(), -0.3]).collect();
    let mut log = EventLog::new();
    let mean = private_mean(&rows, NoiseMultiplier::new(4.0)?, &mut log)?;

    let mut out = std::io::stdout().lock();
    writeln!(out, "private mean: {:.4?}   (about 0.5, 0, -0.3)", mean.get())?;
    writeln!(out, "released:     {:?} under {}", log.to_event(), log.adjacency())?;
    // Noise of 4/n on each coordinate; 20 standard deviations practically never occur.
    assert!(mean.get().iter().zip([0.5, 0.0, -0.3]).all(|(found, expected)| (found - expected).abs() < 0.01));
    Ok(())
}
