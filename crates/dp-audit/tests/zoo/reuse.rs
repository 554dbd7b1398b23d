//! Noise that is reused, or missing where it is needed.

use dp_accountant::DpEvent;
use dp_audit::{Claim, Side};
use dp_mechanisms::rng::{Purpose, ReleaseRng, SeededRng};
use rand::Rng;

use crate::specimen::{Specimen, gaussian, pick};
use crate::textbook::{normal, release_gaussian};

pub(crate) fn specimens() -> Vec<Specimen> {
    let mut zoo = used_twice();
    zoo.extend(missing());
    zoo
}

/// Two releases with noise of standard deviation 1.
fn two_releases() -> Claim {
    let one = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
    Claim { event: DpEvent::SelfComposed { event: Box::new(one), count: 2 }, delta: 1e-5 }
}

/// The record counts only in the second release; with shared noise, the difference of both has none.
fn used_twice() -> Vec<Specimen> {
    const PAIR: &str = "releases of (0, 0) and of (0, 1/100)";
    let inputs = |side: Side| [0.0, pick(side, 0.0, 0.01)];
    let independent = move |side: Side, rng: &mut SeededRng| {
        let released = release_gaussian(inputs(side).to_vec(), 1.0, rng);
        released[1] - released[0]
    };
    let difference = |[first, second]: [f64; 2], [noise, other]: [f64; 2]| (second + other) - (first + noise);
    vec![
        Specimen::score(
            "one noise vector for two releases",
            PAIR,
            two_releases(),
            move |side, rng| {
                let noise = normal(rng);
                difference(inputs(side), [noise, noise])
            },
            independent,
        ),
        Specimen::score(
            "one noise vector for all steps",
            "ten steps, 1/100 more in the last, or not",
            two_releases(),
            move |side, rng| {
                let noise = normal(rng);
                let steps: [f64; 10] = core::array::from_fn(|i| if i == 9 { inputs(side)[1] + noise } else { noise });
                steps[9] - steps[0]
            },
            independent,
        ),
        // Folds, classes, threads or forked processes that start from a copy of the same state.
        Specimen::score(
            "one seed for two streams",
            PAIR,
            two_releases(),
            move |side, rng| {
                let seed = rng.next_u64();
                let noise = [0, 1].map(|_| normal(&mut SeededRng::new(seed)));
                difference(inputs(side), noise)
            },
            move |side, rng| {
                let run = SeededRng::new(rng.next_u64());
                let noise = [0, 1].map(|fold| normal(&mut run.stream(Purpose::Noise, 0, fold)));
                difference(inputs(side), noise)
            },
        ),
    ]
}

fn missing() -> Vec<Specimen> {
    vec![
        Specimen::score(
            "noise on only one class's model",
            "a record of the second class, or not",
            gaussian(1.0),
            |side, rng| {
                let models = [normal(rng), pick(side, 0.0, 1.0)];
                models[1]
            },
            |side, rng| release_gaussian(vec![0.0, pick(side, 0.0, 1.0)], 1.0, rng)[1],
        ),
        // A record's noisy gradient is clipped and summed; without a record there is no noise.
        Specimen::event(
            "noise before clipping, none after",
            "no record, and one with gradient 0",
            gaussian(1.0),
            |side, rng| pick(side, 0.0, normal(rng).clamp(-1.0, 1.0)) == 0.0,
            |_, rng| release_gaussian(vec![0.0], 1.0, rng)[0] == 0.0,
        ),
        Specimen::event(
            "zero gradient skipped without noise",
            "a sum of 0, and of 1",
            gaussian(1.0),
            |side, rng| {
                let sum = pick(side, 0.0, 1.0);
                if sum == 0.0 { true } else { sum + normal(rng) == 0.0 }
            },
            |side, rng| release_gaussian(vec![pick(side, 0.0, 1.0)], 1.0, rng)[0] == 0.0,
        ),
    ]
}
