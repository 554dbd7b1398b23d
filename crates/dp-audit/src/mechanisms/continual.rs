//! Continual release: a record in the first step of eight, or not, and everything released about it.

use dp_accountant::{EventLog, NoiseMultiplier, ZeroOut};
use dp_mechanisms::continual::{Factor, MatrixFactorisation, Participation, TreeAggregation};
use dp_mechanisms::{Bounded, L2Sensitivity, PrivacyEvent, SeededRng};

use super::{Entry, SENSITIVITY, pick, scored};
use crate::error::Error;
use crate::subject::{Claim, Side, Statistic, from_fn};

const STEPS: usize = 8;

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    Ok(vec![
        tree()?,
        tree_reduced()?,
        factorisation("matrix-factorisation/once", Participation::once())?,
        factorisation("matrix-factorisation/twice", Participation::repeated(2, 4)?)?,
    ])
}

fn each() -> Result<L2Sensitivity<ZeroOut>, Error> {
    Ok(L2Sensitivity::new(SENSITIVITY)?)
}

/// Returns the record's contribution to a step of the stream.
fn contribution(side: Side, takes_part: bool) -> Result<Bounded<Vec<f64>, ZeroOut>, Error> {
    let sum = if takes_part { pick(side, 0.0, SENSITIVITY) } else { 0.0 };
    Ok(Bounded::with_proven_sensitivity(vec![sum], each()?))
}

fn noise() -> Result<NoiseMultiplier, Error> {
    Ok(NoiseMultiplier::new(1.0)?)
}

/// The prefixes at 1, 2, 4 and 8 are the noisy nodes that contain the first step.
fn tree() -> Result<Entry, Error> {
    let tree = TreeAggregation::from_noise_multiplier(each()?, 1, STEPS as u64, Participation::once(), noise()?)?;
    let words = "a record in the first of eight steps, or not";
    observe_tree("tree/once", words, tree, Statistic::Score, |prefixes, features| {
        features.push([0, 1, 3, 7].iter().filter_map(|&t| prefixes.get(t)).sum());
    })
}

/// The estimates from below mix the nodes; their best combination is learned from all prefixes.
fn tree_reduced() -> Result<Entry, Error> {
    let tree = TreeAggregation::from_noise_multiplier(each()?, 1, STEPS as u64, Participation::once(), noise()?)?;
    let words = "a record in the first of eight steps, or not; estimates from below";
    let tree = tree.with_variance_reduction();
    observe_tree("tree/reduced", words, tree, Statistic::Learned, |prefixes, features| features.extend(prefixes))
}

fn observe_tree(
    name: &str,
    words: &str,
    tree: TreeAggregation<ZeroOut>,
    statistic: Statistic,
    look: impl Fn(&[f64], &mut Vec<f64>) + Send + Sync + 'static,
) -> Result<Entry, Error> {
    let claim = Claim::new(tree.event())?;
    let subject = from_fn(name, words, claim, statistic, move |side, rng: &mut SeededRng, features: &mut Vec<f64>| {
        let mut log = EventLog::new();
        let mut session = tree.start(&mut log, rng);
        let mut prefixes = Vec::with_capacity(STEPS);
        for step in 0..STEPS {
            let prefix = session.step(contribution(side, step == 0)?, &mut log, rng)?;
            prefixes.extend(prefix.get());
        }
        look(&prefixes, features);
        Ok(())
    });
    Ok(Box::new(subject.with_relative_cost(4.0)))
}

/// Increments `w` are a bijection of the noisy rows `y = C w`, which the record moves by the sum of the factor's columns for
/// its steps.
fn factorisation(name: &str, participation: Participation) -> Result<Entry, Error> {
    let factor = Factor::square_root(STEPS)?;
    let takes_part = move |step: usize| step == 0 || (step == 4 && participation.most() > 1);
    let row =
        |t: usize| -> Vec<f64> { (0..STEPS).map(|j| if j <= t { factor.coefficient(t, j) } else { 0.0 }).collect() };
    let rows: Vec<Vec<f64>> = (0..STEPS).map(row).collect();
    let shifts: Vec<f64> =
        rows.iter().map(|row| row.iter().enumerate().filter(|(j, _)| takes_part(*j)).map(|(_, c)| c).sum()).collect();
    let mechanism = MatrixFactorisation::from_noise_multiplier(factor, participation, each()?, 1, noise()?)?;
    let claim = Claim::new(mechanism.event())?;
    let words =
        format!("a record in {} of eight steps, or not", if participation.most() > 1 { "two" } else { "the first" });
    let subject = scored(name.to_owned(), words, claim, Statistic::Score, move |side, rng| {
        let mut log = EventLog::new();
        let mut session = mechanism.start(&mut log, rng);
        let mut increments: Vec<f64> = Vec::with_capacity(STEPS);
        let mut score = 0.0;
        for (step, (row, shift)) in rows.iter().zip(&shifts).enumerate() {
            let released = session.step(contribution(side, takes_part(step))?, &mut log, rng)?;
            increments.extend(&released.get().increment);
            let noisy_row: f64 = row.iter().zip(&increments).map(|(c, w)| c * w).sum();
            score += shift * noisy_row;
        }
        Ok(score)
    });
    Ok(Box::new(subject.with_relative_cost(4.0)))
}
