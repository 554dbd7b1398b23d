//! Noise of the wrong scale, or of a scale that depends on the data.

use dp_accountant::{EventLog, ZeroOut};
use dp_audit::Side;
use dp_mechanisms::continual::{Participation, TreeAggregation};
use dp_mechanisms::{Bounded, L2Sensitivity, SeededRng};

use crate::specimen::{Specimen, gaussian, pick, pure};
use crate::textbook::{laplace, norm, normal, release_ball, release_gaussian};

pub(crate) fn specimens() -> Vec<Specimen> {
    let mut zoo = wrong_constant();
    zoo.extend(wrong_sensitivity());
    zoo.extend(depends_on_data());
    zoo
}

fn wrong_constant() -> Vec<Specimen> {
    vec![
        Specimen::score(
            "half the Laplace scale",
            "0 and 1",
            pure(1.0),
            |side, rng| pick(side, 0.0, 1.0) + laplace(0.5, rng),
            |side, rng| release_ball(vec![pick(side, 0.0, 1.0)], 1.0, rng)[0],
        ),
        Specimen::score(
            "half the Gaussian's standard deviation",
            "0 and 1",
            gaussian(1.0),
            |side, rng| pick(side, 0.0, 1.0) + 0.5 * normal(rng),
            |side, rng| release_gaussian(vec![pick(side, 0.0, 1.0)], 1.0, rng)[0],
        ),
        // Standard deviation 1/2, whose square was passed on.
        Specimen::score(
            "variance taken for standard deviation",
            "0 and 1",
            gaussian(2.0),
            |side, rng| pick(side, 0.0, 1.0) + 0.25 * normal(rng),
            |side, rng| release_gaussian(vec![pick(side, 0.0, 1.0)], 0.5, rng)[0],
        ),
        // A value that only one of the inputs can produce identifies the input.
        Specimen::event(
            "noise cut off at three scales",
            "0 and 1",
            pure(1.0),
            |side, rng| pick(side, 0.0, 1.0) + laplace(1.0, rng).clamp(-3.0, 3.0) > 3.0,
            // Truncating the output is post-processing.
            |side, rng| release_ball(vec![pick(side, 0.0, 1.0)], 1.0, rng)[0].clamp(-3.0, 3.0) > 3.0,
        ),
    ]
}

fn wrong_sensitivity() -> Vec<Specimen> {
    const DIM: usize = 16;
    vec![
        // L2 distance 1 in 16 coordinates is L1 distance 4.
        Specimen::score(
            "coordinate Laplace on an L2 sensitivity (√d missing)",
            "0 and (1, .., 1)/4 in 16 coordinates",
            pure(1.0),
            |side, rng| (0..DIM).map(|_| (pick(side, 0.0, 0.25) + laplace(1.0, rng)).clamp(0.0, 0.25)).sum(),
            |side, rng| {
                let ball = release_ball(vec![pick(side, 0.0, 0.25); DIM], 1.0, rng);
                norm(&ball) - norm(&ball.iter().map(|y| y - 0.25).collect::<Vec<_>>())
            },
        ),
        Specimen::score(
            "Gaussian on a maximum-norm sensitivity (√d missing)",
            "0 and (1, .., 1) in 16 coordinates",
            gaussian(1.0),
            |side, rng| (0..DIM).map(|_| pick(side, 0.0, 1.0) + normal(rng)).sum(),
            |side, rng| release_gaussian(vec![pick(side, 0.0, 1.0); DIM], 4.0, rng).iter().sum(),
        ),
        Specimen::score(
            "add/remove sensitivity for replacing a record",
            "a gradient at the clipping norm 1 and its opposite",
            gaussian(1.0),
            |side, rng| pick(side, -1.0, 1.0) + normal(rng),
            |side, rng| release_gaussian(vec![pick(side, -1.0, 1.0)], 2.0, rng)[0],
        ),
        Specimen::score(
            "sensitivity of a mean for a sum over 10 records",
            "one gradient of norm 1 more",
            gaussian(1.0),
            |side, rng| pick(side, 0.0, 1.0) + normal(rng) / 10.0,
            |side, rng| release_gaussian(vec![pick(side, 0.0, 1.0) / 10.0], 0.1, rng)[0],
        ),
        // The record's gradient is in the sums of both epochs.
        Specimen::score(
            "two participations charged as one",
            "a record with gradient 1 in both epochs, or not there",
            gaussian(1.0),
            |side, rng| 2.0 * pick(side, 0.0, 1.0) + normal(rng) + normal(rng),
            |side, rng| {
                let released = release_gaussian(vec![pick(side, 0.0, 1.0); 2], 2f64.sqrt(), rng);
                released.iter().sum()
            },
        ),
        // Eight steps have four levels; the record of the first step is in one node of each.
        Specimen::score(
            "tree aggregation with the sensitivity of one node",
            "the first of eight steps with a record of norm 1, or without",
            gaussian(1.0),
            |side, rng| (0..4).map(|_| pick(side, 0.0, 1.0) + normal(rng)).sum(),
            tree,
        ),
    ]
}

/// The sound release by this workspace's mechanism: the prefixes at 1, 2, 4 and 8 are the four nodes.
fn tree(side: Side, rng: &mut SeededRng) -> f64 {
    let each = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
    let tree = TreeAggregation::from_std_dev(each, 1, 8, Participation::once(), 2.0).unwrap();
    let mut log = EventLog::new();
    let mut session = tree.start(&mut log, rng);
    let mut prefix = |step: usize| {
        let value = if step == 1 { pick(side, 0.0, 1.0) } else { 0.0 };
        let sum = Bounded::with_proven_sensitivity(vec![value], each);
        session.step(sum, &mut log, rng).unwrap().get()[0]
    };
    (1..=8).map(|step| (step, prefix(step))).filter(|(step, _)| step.is_power_of_two()).map(|(_, prefix)| prefix).sum()
}

fn depends_on_data() -> Vec<Specimen> {
    vec![
        Specimen::score(
            "noise scaled by the largest observed norm",
            "gradients of norm 0.1, with one of norm 1 across the projection, or without",
            gaussian(1.0),
            |side, rng| (pick(side, 0.1, 1.0) * normal(rng)).abs(),
            |_, rng| release_gaussian(vec![0.0], 1.0, rng)[0].abs(),
        ),
        Specimen::score(
            "noisy sum divided by the realised batch size",
            "one record with gradient 0, and two",
            gaussian(1.0),
            |side, rng| -(normal(rng) / pick(side, 1.0, 2.0)).abs(),
            |_, rng| -release_gaussian(vec![0.0], 1.0, rng)[0].abs() / 1.5,
        ),
        Specimen::score(
            "noise for a mean scaled by a secret number of records",
            "one record with gradient 0, and two",
            gaussian(1.0),
            |side, rng| {
                let records = pick(side, 1.0, 2.0);
                -(0.0 / records + normal(rng) / records).abs()
            },
            |_, rng| -release_gaussian(vec![0.0], 1.0, rng)[0].abs(),
        ),
    ]
}
