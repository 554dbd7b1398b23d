//! A lower bound on a composition by its largest loss.
//!
//! The test that rejects if any release's loss exceeds a threshold t is one event: with `p_i` and `q_i` the probabilities of
//! `L_i > t` under both laws,
//!
//! ```text
//! delta(epsilon) >= P - e^epsilon Q,    P = 1 - prod_i (1 - p_i),    Q = 1 - prod_i (1 - q_i).
//! ```
//!
//! If the record is in few samples and each of them shows it, as at low sampling rates with little noise, a total loss above
//! epsilon is due to one release, so that the bound is close; on a grid, the many small losses hide it.

use super::tilt::Question;
use crate::gaussian::exp_up;
use crate::loss_law::{Law, LossLaw};
use crate::work;

/// Thresholds of the scan: the largest, the ratio of two neighbours, and their number.
const LARGEST: f64 = 64.0;
const RATIO: f64 = 0.5;
const COUNT: i32 = 36;

/// Number of times that the neighbourhood of the best threshold is searched with half the ratio's exponent.
const REFINEMENTS: u32 = 8;

/// Margin for the rounding of logarithms, exponentials and sums, relative to P or Q.
const MARGIN: f64 = 16.0 * f64::EPSILON;

/// Returns a lower bound on the result of `question`: the largest over the thresholds tried.
pub(super) fn lower_end(parts: &[(Law, u64)], question: Question) -> f64 {
    let laws: Vec<(&dyn LossLaw, f64)> = parts
        .iter()
        .filter_map(|(law, count)| match law {
            Law::Known(law) | Law::Between { below: law, .. } => Some((law.as_ref(), *count as f64)),
            Law::Bounded(_) => None,
        })
        .collect();
    let trivial = question.trivial().0;
    let at = |log_ratio: f64| {
        let (p, q) = rejections(&laws, LARGEST * RATIO.powf(log_ratio));
        answer(question, p, q).max(trivial)
    };
    let larger = |best: (f64, f64), point: f64| {
        let found = at(point);
        if found > best.1 { (point, found) } else { best }
    };
    let mut best = (0..COUNT).map(f64::from).fold((0.0, trivial), larger);
    if best.1 == trivial {
        return trivial;
    }
    for halving in 1..=REFINEMENTS {
        let distance = 0.5f64.powi(halving as i32);
        best = [best.0 - distance, best.0 + distance].into_iter().fold(best, larger);
    }
    best.1
}

/// Returns the probabilities that any loss exceeds `threshold`: under P rounded down, under Q rounded up.
fn rejections(laws: &[(&dyn LossLaw, f64)], threshold: f64) -> (f64, f64) {
    let (mut none_p, mut none_q) = (0.0, 0.0);
    for (law, count) in laws {
        work::charge(law.steps());
        // A threshold error is the same for all tails, and any threshold gives a bound.
        let (tails, error, _) = law.threshold(threshold);
        let p = tails.p_above * (1.0 - error) - law.beyond_doubles().0 - 1e-300;
        none_p += count * (-p.clamp(0.0, 1.0)).ln_1p();
        none_q += count * (-(tails.q_above * (1.0 + error) + 1e-300).clamp(0.0, 1.0)).ln_1p();
    }
    (-none_p.exp_m1() * (1.0 - MARGIN), -none_q.exp_m1() * (1.0 + MARGIN))
}

/// Returns the bound that an event of these probabilities gives, rounded down; NaN if it gives none.
fn answer(question: Question, p: f64, q: f64) -> f64 {
    let log = match question {
        Question::DeltaAt(epsilon, _) => (p - epsilon.exp() * q * (1.0 + MARGIN) - MARGIN * p).ln(),
        Question::EpsilonAt(_, log_delta) => ((p - exp_up(log_delta) - MARGIN * p) / q).ln(),
    };
    log - MARGIN * (1.0 + log.abs())
}
