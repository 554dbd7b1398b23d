//! Clipped sums: no record, or one whose norm is far below, at, one ulp off or far above the clipping norm, or not finite.

use dp_accountant::{EventLog, NoiseMultiplier, ZeroOut};
use dp_mechanisms::clip::{
    AdaptiveClipping, AutomaticClipping, ClippedSum, ClippingNorm, ClippingRule, ExactSum, GradientClipping,
    LayeredGaussian, RankOneSum, RowGrid,
};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism, PrivacyEvent};

use super::{Entry, pick, scored};
use crate::error::Error;
use crate::subject::{Claim, Side, Statistic};

/// The clipping norm of every subject.
const CLIPPING_NORM: f64 = 1.0;

/// Entries of the record, along the attacker's direction and orthogonal to it.
const RECORDS: [(&str, &str, [f64; 2]); 8] = [
    ("tiny", "of norm 10^-300", [1e-300, 0.0]),
    ("half", "of half the clipping norm C", [0.5, 0.0]),
    ("below", "of norm C (1 - ulp)", [1.0 - 0.5 * f64::EPSILON, 0.0]),
    ("at", "of norm C", [1.0, 0.0]),
    ("above", "of norm C (1 + ulp)", [1.0 + f64::EPSILON, 0.0]),
    ("huge", "of norm 10^300", [1e300, 0.0]),
    ("infinite", "with an infinite entry", [f64::INFINITY, 0.0]),
    ("nan", "with an entry that is not a number", [1.0, f64::NAN]),
];

/// Multiples of rows: the scalar and the row.
const MULTIPLES: [(&str, &str, f64, [f64; 2]); 9] = [
    ("tiny", "10^-300 times a row of norm R", 1e-300, [1.0, 0.0]),
    ("half", "C / 2R times a row of norm R", 0.5, [1.0, 0.0]),
    ("at", "C/R times a row of norm R", 1.0, [1.0, 0.0]),
    ("above", "C/R (1 + ulp) times a row of norm R", 1.0 + f64::EPSILON, [1.0, 0.0]),
    ("huge", "10^300 times a short row that is on no axis", 1e300, [0.003, 0.004]),
    ("long", "C/R times a row longer than R", 1.0, [30.0, 40.0]),
    ("infinite", "an infinite multiple of a row", f64::INFINITY, [1.0, 0.0]),
    ("nan", "a row with an entry that is not a number", 1.0, [1.0, f64::NAN]),
    ("zero", "10^300 times a row of zeros", 1e300, [0.0, 0.0]),
];

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    let norm = ClippingNorm::new(CLIPPING_NORM)?;
    let automatic = AutomaticClipping::new(norm, 0.01)?;
    let mut subjects = Vec::new();
    for record in RECORDS {
        subjects.push(clipped_sum("clipped-sum", norm.into(), record)?);
        subjects.push(exact_sum("exact-sum", norm.into(), record)?);
        subjects.push(exact_sum("automatic-clipping", automatic.into(), record)?);
    }
    for record in RECORDS.into_iter().filter(|record| ["at", "huge", "nan"].contains(&record.0)) {
        subjects.push(clipped_sum("clipped-sum-per-block", GradientClipping::PerBlock(norm), record)?);
        subjects.push(clipped_sum("clipped-sum-automatic", automatic.into(), record)?);
    }
    for multiple in MULTIPLES {
        subjects.push(rank_one_sum(multiple)?);
    }
    subjects.push(layers()?);
    subjects.push(adaptive("below", 1.0)?);
    subjects.push(adaptive("above", 1.5)?);
    Ok(subjects)
}

/// Noise with mu = 1 on the sum of gradients of one block, clipped by `rule`; the score is the projection on the record's direction.
fn clipped_sum(
    mechanism: &str,
    rule: GradientClipping,
    (name, words, record): (&str, &str, [f64; 2]),
) -> Result<Entry, Error> {
    let empty = move || ClippedSum::<f64, ZeroOut>::new(2, 1, rule, 2.0, 8, 100);
    let gaussian = Gaussian::<ZeroOut>::from_std_dev(empty()?.sensitivity(), CLIPPING_NORM)?;
    let claim = Claim::new(gaussian.event())?;
    let pair = format!("no record, and one {words}");
    let subject = scored(format!("{mechanism}/{name}"), pair, claim, Statistic::Score, move |side, rng| {
        let mut sum = empty()?;
        let records = pick(side, 0, 1);
        let squared_norm = [record[0] * record[0] + record[1] * record[1]];
        sum.add(&squared_norm[..records], |coefficients, sum| {
            // A record with coefficient 0 contributes nothing, whatever its content.
            for &coefficient in coefficients.iter().filter(|&&coefficient| coefficient != 0.0) {
                for (sum, entry) in sum.iter_mut().zip(record) {
                    *sum += coefficient * entry;
                }
            }
        })?;
        let released = gaussian.release(sum.finish(), &mut EventLog::new(), rng)?;
        Ok(released.get().first().copied().unwrap_or(f64::NAN))
    });
    Ok(Box::new(subject.with_relative_cost(1.5)))
}

/// The same on the grid of the release, clipped by `rule`.
fn exact_sum(
    mechanism: &str,
    rule: ClippingRule,
    (name, words, record): (&str, &str, [f64; 2]),
) -> Result<Entry, Error> {
    let gaussian = Gaussian::<ZeroOut>::from_std_dev(L2Sensitivity::new(CLIPPING_NORM)?, CLIPPING_NORM)?;
    let empty = ExactSum::for_release(2, rule, &gaussian, 100)?;
    let claim = Claim::new(gaussian.event())?;
    let pair = format!("no record, and one {words}");
    let subject = scored(format!("{mechanism}/{name}"), pair, claim, Statistic::Score, move |side, rng| {
        let mut sum = empty.like();
        if side == Side::Neighbour {
            sum.add(&record)?;
        }
        let released = gaussian.release(sum.finish(), &mut EventLog::new(), rng)?;
        Ok(released.get().first().copied().unwrap_or(f64::NAN))
    });
    Ok(Box::new(subject.with_relative_cost(1.5)))
}

/// A multiple of a row, both on their own grids; the score is the projection on the row's direction.
fn rank_one_sum((name, words, scalar, row): (&str, &str, f64, [f64; 2])) -> Result<Entry, Error> {
    let norm = ClippingNorm::new(CLIPPING_NORM)?;
    let grid = RowGrid::new(norm, 16)?;
    let empty = RankOneSum::<ZeroOut>::finest(2, grid, norm, 100)?;
    let gaussian = Gaussian::<ZeroOut>::from_std_dev(empty.sensitivity(), CLIPPING_NORM)?;
    let claim = Claim::new(gaussian.event())?;
    let pair = format!("no record, and {words}");
    // A row without a direction uses the first axis.
    let length = row[0].hypot(row[1]);
    let direction = if length > 0.0 { row.map(|entry| entry / length) } else { [1.0, 0.0] };
    let subject = scored(format!("rank-one-sum/{name}"), pair, claim, Statistic::Score, move |side, rng| {
        let mut sum = empty.like();
        if side == Side::Neighbour {
            let mut row = row;
            sum.add(scalar, grid.truncate(&mut row)?)?;
        }
        let released = gaussian.release(sum.finish(), &mut EventLog::new(), rng)?;
        Ok(released.get().iter().zip(direction).map(|(sum, direction)| sum * direction).sum())
    });
    Ok(Box::new(subject.with_relative_cost(1.5)))
}

/// Two layers with separate noise: 1/3 and 2/3 of the squared mu.
fn layers() -> Result<Entry, Error> {
    let std_devs = [3f64.sqrt(), 1.5f64.sqrt()];
    let each = L2Sensitivity::<ZeroOut>::new(CLIPPING_NORM)?;
    let parts = std_devs.map(|std_dev| Gaussian::from_std_dev(each, std_dev)).into_iter().collect::<Result<_, _>>()?;
    let mechanism = LayeredGaussian::new(parts)?;
    let claim = Claim::new(mechanism.event())?;
    let words = "no record, and one of norm C in both layers".to_owned();
    let subject = scored("layers/2".to_owned(), words, claim, Statistic::Score, move |side, rng| {
        let moved = pick(side, 0.0, CLIPPING_NORM);
        let sums = std_devs.iter().map(|_| Bounded::with_proven_sensitivity(vec![moved], each)).collect();
        let released = mechanism.release::<f64, _>(sums, &mut EventLog::new(), rng)?;
        let weigh = |(layer, std_dev): (&Vec<f64>, &f64)| layer.iter().sum::<f64>() / (std_dev * std_dev);
        Ok(released.get().iter().zip(&std_devs).map(weigh).sum())
    });
    Ok(Box::new(subject))
}

/// A step of adaptive clipping: the record moves the noisy sum and, through the count of norms below, the next norm.
fn adaptive(name: &str, length: f64) -> Result<Entry, Error> {
    const QUANTILE: f64 = 0.5;
    const RATE: f64 = 0.2;
    const EXPECTED: f64 = 10.0;
    const COUNT_STD_DEV: f64 = 1.0;
    let clipping =
        AdaptiveClipping::<ZeroOut>::new(QUANTILE, RATE, EXPECTED, NoiseMultiplier::new(1.0)?, COUNT_STD_DEV)?;
    let norm = ClippingNorm::new(CLIPPING_NORM)?;
    let sum_std_dev = clipping.gradient_multiplier() * CLIPPING_NORM;
    let claim = Claim::new(clipping.event())?;
    let counted = if length <= CLIPPING_NORM { 0.5 } else { -0.5 };
    let words = format!("no record, and one of {length} times the clipping norm");
    let subject = scored(format!("adaptive-clipping/{name}"), words, claim, Statistic::Score, move |side, rng| {
        let mut state = clipping.start(norm)?;
        let mut sum = ExactSum::new(1, state.norm().into(), 2f64.powi(-30), 100)?;
        let mut count = state.count();
        if side == Side::Neighbour {
            sum.add(&[length])?;
            count.add(length * length);
        }
        let released = state.release(sum.finish(), count, &mut EventLog::new(), rng)?;
        let step = released.get();
        let projection = step.sum.iter().sum::<f64>() * CLIPPING_NORM / (sum_std_dev * sum_std_dev);
        // The noisy count, computed from the next norm.
        let fraction = QUANTILE - (step.next_norm.get() / CLIPPING_NORM).ln() / RATE;
        let count = (fraction - 0.5) * EXPECTED;
        Ok(projection + count * counted / (COUNT_STD_DEV * COUNT_STD_DEV))
    });
    Ok(Box::new(subject.with_relative_cost(1.5)))
}
