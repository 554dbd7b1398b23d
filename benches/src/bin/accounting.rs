//! The accountant's answers and their computation time.
//!
//! ```text
//! cargo run --release -p benches --bin accounting             # tables: cost and certified width
//! cargo run --release -p benches --bin accounting -- --jobs   # one JSON object a job, for peers/accounting.py
//! ```
//!
//! Times are the minimum processor time of one thread over several runs. Every answer is recomputed each time: nothing is
//! cached between questions.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;

use benches::cpu_time::now;
use dp_accountant::rdp::RdpAccountant;
use dp_accountant::{Accountant, AddRemoveOne, Delta, DpEvent, Epsilon, bound, calibrate, exact, gaussian};

fn dpsgd(sampling_rate: f64, noise_multiplier: f64, steps: u64) -> DpEvent {
    let event = Box::new(DpEvent::Gaussian { std_dev: noise_multiplier, sensitivity: 1.0 });
    repeated(DpEvent::PoissonSampled { sampling_rate, event }, steps)
}

fn repeated(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(event), count }
}

/// Returns the answer and the minimum seconds over enough runs to fill about a fifth of a second.
fn timed<T>(mut job: impl FnMut() -> T) -> (T, f64) {
    let mut answer = job();
    let (mut least, mut spent, mut runs) = (f64::INFINITY, 0.0, 0);
    while runs < 3 || (spent < 0.2 && runs < 10_000) {
        let start = now();
        answer = black_box(job());
        let seconds = (now() - start).as_secs_f64();
        least = least.min(seconds);
        spent += seconds;
        runs += 1;
    }
    (answer, least)
}

fn rdp_epsilon(event: &DpEvent, delta: Delta) -> Result<f64, dp_accountant::Error> {
    let mut accountant = RdpAccountant::<AddRemoveOne>::new();
    accountant.compose(event, 1)?;
    Ok(accountant.epsilon(delta))
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("--jobs") { jobs() } else { tables() }
}

/// Answers the questions that `peers/accounting.py` puts to the other accountants.
fn jobs() -> Result<(), Box<dyn Error>> {
    let print = |job: &str, answer: &str, seconds: f64| {
        println!(r#"{{"job":"{job}","answer":{answer},"seconds":{seconds:e}}}"#);
    };
    let (event, delta, target) = (dpsgd(0.01, 1.0, 10_000), Delta::new(1e-5)?, Epsilon::new(1.0)?);
    let (answer, seconds) = timed(|| exact::epsilon(&event, delta));
    let answer = answer?;
    print("exact epsilon, both ends", &format!("[{:?},{:?}]", answer.lower, answer.upper), seconds);
    let (answer, seconds) = timed(|| rdp_epsilon(&event, delta));
    print("Renyi epsilon", &format!("{:?}", answer?), seconds);
    let (answer, seconds) = timed(|| calibrate::least_scale(target, delta, |sigma| dpsgd(0.01, sigma, 10_000)));
    print("noise multiplier, exact", &format!("{:?}", answer?), seconds);
    let (answer, seconds) = timed(|| gaussian::noise_multiplier(black_box(target), delta));
    print("analytic Gaussian", &format!("{:?}", answer?.get()), seconds);
    let laplace = repeated(DpEvent::Laplace { scale: 20.0, sensitivity: 1.0 }, 1000);
    let delta = Delta::new(1e-6)?;
    let (answer, seconds) = timed(|| exact::epsilon(&laplace, delta));
    let answer = answer?;
    print("1000 Laplace releases", &format!("[{:?},{:?}]", answer.lower, answer.upper), seconds);
    Ok(())
}

fn tables() -> Result<(), Box<dyn Error>> {
    println!("| q | sigma | steps | delta | lower | upper | width | ms | Renyi | Renyi ms |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (q, sigma, steps, delta) in [
        (0.01, 1.0, 10_000, 1e-5),
        (0.01, 1.0, 100, 1e-6),
        (0.01, 1.0, 1_000_000, 1e-5),
        (0.01, 4.0, 10_000, 1e-10),
        (256.0 / 60_000.0, 1.1, 14_062, 1e-5),
        (0.001, 0.6, 20_000, 1e-7),
        (1e-4, 0.8, 1_000_000, 1e-8),
        (100.0 / 450_000.0, 0.95, 90_000, 1e-8),
        (10.0 / 450_000.0, 0.65, 900_000, 1e-8),
        (0.001, 100.0, 1_000, 1e-12),
        (0.2, 1.5, 1_000, 1e-8),
        (0.01, 1.0, 1_000, 1e-15),
        (0.01, 1.0, 20_000, 1e-30),
        (0.5, 20.0, 10, 1e-6),
        (1e-6, 1.0, 1_000_000_000, 1e-9),
        (1e-6, 0.7, 10_000_000, 1e-12),
        (0.02, 0.3, 1_000, 1e-6),
    ] {
        let (event, delta) = (dpsgd(q, sigma, steps), Delta::new(delta)?);
        let (renyi, renyi_seconds) = timed(|| rdp_epsilon(&event, delta));
        let (answer, seconds) = timed(|| exact::epsilon(&event, delta));
        row(&format!("{q:.3e} | {sigma} | {steps} | {:.0e}", delta.get()), answer, seconds, renyi?, renyi_seconds);
    }
    println!("\n| releases | delta | lower | upper | width | ms | Renyi | Renyi ms |");
    println!("|---|---|---|---|---|---|---|---|");
    for (name, event) in other_trees() {
        let delta = Delta::new(1e-6)?;
        let (renyi, renyi_seconds) = timed(|| RdpAccountant::<AddRemoveOne>::new().compose(&event, 1).is_ok());
        let (bound, _) = timed(|| bound::epsilon(&event, delta));
        let (answer, seconds) = timed(|| exact::epsilon(&event, delta));
        let renyi = if renyi { rdp_epsilon(&event, delta)? } else { bound?.value };
        row(&format!("{name} | {:.0e}", delta.get()), answer, seconds, renyi, renyi_seconds);
    }
    Ok(())
}

fn row(name: &str, answer: Result<exact::Bracket, dp_accountant::Error>, ms: f64, renyi: f64, renyi_ms: f64) {
    let (ms, renyi_ms) = (1e3 * ms, 1e3 * renyi_ms);
    match answer {
        Ok(exact::Bracket { lower, upper, .. }) => {
            let width = (upper - lower) / upper;
            println!("| {name} | {lower:.8} | {upper:.8} | {width:.0e} | {ms:.3} | {renyi:.5} | {renyi_ms:.3} |");
        }
        Err(error) => println!("| {name} | {error} | | | {ms:.3} | {renyi:.5} | {renyi_ms:.3} |"),
    }
}

fn other_trees() -> Vec<(&'static str, DpEvent)> {
    let gaussian = |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 1.0 };
    vec![
        ("10,000 Laplace, scale 50", repeated(DpEvent::Laplace { scale: 50.0, sensitivity: 1.0 }, 10_000)),
        (
            "1000 DP-SGD phases of 10 steps, sigma 1 to 2",
            DpEvent::Composed { events: (0..1000).map(|i| dpsgd(0.01, 1.0 + 1e-3 * f64::from(i), 10)).collect() },
        ),
        (
            "500 steps of DP-SGD, 20 Laplace, 3 Gaussians",
            DpEvent::Composed {
                events: vec![
                    dpsgd(0.02, 1.2, 500),
                    repeated(DpEvent::Laplace { scale: 30.0, sensitivity: 1.0 }, 20),
                    repeated(gaussian(8.0), 3),
                ],
            },
        ),
        ("100 pure releases of 0.01 to 0.1", {
            DpEvent::Composed { events: (1..=100).map(|i| DpEvent::PureDp { epsilon: 1e-3 * f64::from(i) }).collect() }
        }),
        ("100 L2 Laplace balls, d = 100, ratio 0.5", {
            repeated(DpEvent::LaplaceBall { scale: 2.0, sensitivity: 1.0, dim: 100 }, 100)
        }),
        ("200 discrete Gaussians, scale 20", {
            repeated(DpEvent::DiscreteGaussian { scale: 20.0, sensitivity: 1.0, dim: 1 }, 200)
        }),
    ]
}
