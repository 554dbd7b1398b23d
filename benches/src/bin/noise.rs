//! Noise of each mechanism in nanoseconds per coordinate.
//!
//! ```text
//! cargo run --release -p benches --bin noise             # a table
//! cargo run --release -p benches --bin noise -- --jobs   # one JSON object a job, for peers/noise.py
//! ```
//!
//! Minimum processor time of one thread over several turns; releases of 1000 coordinates for mechanisms on vectors, including
//! the log entry. `raw` is the baseline cost of noise from this generator: ChaCha20 and the ziggurat of `rand_distr`, as
//! plain floats.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;

use benches::cpu_time::now;
use chacha20::ChaCha20Rng;
use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::{
    Bounded, DiscreteGaussian, DiscreteLaplace, Gaussian, L1Sensitivity, L2Sensitivity, Laplace, LaplaceBall,
    Mechanism, Norm, OsSeeded, Sensitivity,
};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

const DIM: usize = 1000;
type Answer<T> = Result<T, Box<dyn Error>>;

/// Returns the minimum nanoseconds per coordinate over enough turns to fill about a fifth of a second.
fn nanoseconds(mut release: impl FnMut() -> Answer<()>) -> Answer<f64> {
    release()?;
    let (mut least, mut spent, mut turns) = (f64::INFINITY, 0.0, 0);
    while turns < 5 || (spent < 0.2 && turns < 20_000) {
        let start = now();
        release()?;
        let seconds = (now() - start).as_secs_f64();
        least = least.min(seconds);
        spent += seconds;
        turns += 1;
    }
    Ok(least * 1e9 / DIM as f64)
}

/// Returns the cost of releasing one vector.
fn of_release<T, N, M>(mechanism: &M, sensitivity: Sensitivity<N, ReplaceOne>, value: T) -> Answer<f64>
where
    T: Clone,
    N: Norm,
    M: Mechanism<Vec<T>, ReplaceOne, Norm = N>,
{
    let mut rng = OsSeeded::new()?;
    nanoseconds(|| {
        let value = Bounded::with_proven_sensitivity(vec![value.clone(); DIM], sensitivity);
        black_box(mechanism.release(value, &mut EventLog::new(), &mut rng)?.get());
        Ok(())
    })
}

fn jobs() -> Answer<Vec<(String, f64)>> {
    let (l1, l2) = (L1Sensitivity::new(1.0)?, L2Sensitivity::new(1.0)?);
    let mut raw = ChaCha20Rng::from_seed([7; 32]);
    let mut jobs = vec![(
        "Gaussian, raw".to_owned(),
        nanoseconds(|| {
            let noisy: Vec<f64> =
                StandardNormal.sample_iter(&mut raw).take(DIM).map(|normal: f64| 0.5 + 3.0 * normal).collect();
            black_box(noisy);
            Ok(())
        })?,
    )];
    for (name, mode) in [("exact", NoiseMode::Exact), ("rounded", NoiseMode::Rounded)] {
        let gaussian = Gaussian::from_std_dev(l2, 3.0)?.with_noise_mode(mode)?;
        jobs.push((format!("Gaussian, {name}"), of_release(&gaussian, l2, 0.5f64)?));
        let laplace = Laplace::from_scale(l1, 3.0)?.with_noise_mode(mode)?;
        jobs.push((format!("Laplace, {name}"), of_release(&laplace, l1, 0.5f64)?));
        let ball = LaplaceBall::from_scale(l2, 3.0, DIM as u64)?.with_noise_mode(mode)?;
        jobs.push((format!("Laplace ball, {name}"), of_release(&ball, l2, 0.5f64)?));
    }
    let discrete = DiscreteGaussian::from_scale(l2, 1000.0, DIM as u64)?;
    jobs.push(("discrete Gaussian, exact".to_owned(), of_release(&discrete, l2, 5i64)?));
    let discrete = DiscreteLaplace::new(l1, Epsilon::new(0.001)?)?;
    jobs.push(("discrete Laplace, exact".to_owned(), of_release(&discrete, l1, 5i64)?));
    Ok(jobs)
}

fn main() -> Answer<()> {
    let as_json = std::env::args().nth(1).as_deref() == Some("--jobs");
    if !as_json {
        println!("| noise | ns per coordinate |\n|---|---|");
    }
    for (job, nanoseconds) in jobs()? {
        if as_json {
            println!(r#"{{"job":"{job}","nanoseconds":{nanoseconds}}}"#);
        } else {
            println!("| {job} | {nanoseconds:.3} |");
        }
    }
    Ok(())
}
