//! Selection of the cut of a score, on runs that are not counted.

use dp_accountant::trade_off::TradeOff;
use statrs::function::erf::erfc_inv;

use crate::attack::{Rule, Scored};
use crate::bounds::likely_lower;
use crate::subject::Side;

/// The objective for selecting a cut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal<'a> {
    /// The largest bound on epsilon at this delta.
    Epsilon {
        /// The accused input.
        accused: Side,
        delta: f64,
    },
    /// The largest separation of both error rates, accusing either input: as a normal shift, in units of the shift that the
    /// claimed curve allows at that type I error. Without a curve, the claim's shift is constant.
    Separation(Option<&'a TradeOff>),
}

/// Scores of both sides, each sorted.
pub(crate) struct Scores {
    pub(crate) base: Vec<Scored>,
    pub(crate) neighbour: Vec<Scored>,
}

/// Largest number of distinct scores for which all are used as cuts.
const FEW_VALUES: usize = 256;

/// Number of equally spaced ranks that are tried as cuts.
const EVEN_RANKS: usize = 64;

impl Scores {
    pub(crate) fn new(mut base: Vec<Scored>, mut neighbour: Vec<Scored>) -> Self {
        base.sort_unstable_by(Scored::compare);
        neighbour.sort_unstable_by(Scored::compare);
        Self { base, neighbour }
    }

    /// Returns the cuts to try: ranks of either side, dense at both ends; all values if there are few.
    fn cuts(&self) -> Vec<Scored> {
        let mut cuts = Vec::new();
        let mut values: Vec<f64> = Vec::new();
        for side in [&self.base, &self.neighbour] {
            for rank in ranks(side.len()) {
                cuts.push(side[rank]);
            }
            let mut last = None;
            for scored in side {
                if values.len() > 2 * FEW_VALUES {
                    break;
                }
                if last.is_none_or(|last: f64| last.total_cmp(&scored.score).is_ne()) {
                    values.push(scored.score);
                    last = Some(scored.score);
                }
            }
        }
        if values.len() <= 2 * FEW_VALUES {
            cuts.extend(values.into_iter().map(|score| Scored { score, tie: 0.0 }));
        }
        cuts.sort_unstable_by(Scored::compare);
        cuts.dedup_by(|a, b| a.compare(b).is_eq());
        cuts
    }

    /// Returns about `count` cuts, evenly spaced in rank, at which the observed trade-off curve is drawn.
    pub(crate) fn spread(&self, count: usize) -> Vec<Scored> {
        let mut cuts = Vec::with_capacity(2 * count + 2);
        for side in [&self.base, &self.neighbour] {
            cuts.extend((1..=count / 2).filter_map(|i| side.get(side.len() * i / (count / 2 + 1)).copied()));
        }
        cuts
    }

    /// Returns the largest estimate for an objective, and its rule. `nats` is minus the logarithm of a limit's failure
    /// probability: the estimate is the bound that the same rates would give, which avoids cuts with few lucky hits.
    pub(crate) fn choose(&self, goal: Goal<'_>, nats: f64) -> (f64, Rule) {
        let (n0, n1) = (self.base.len() as u64, self.neighbour.len() as u64);
        let accused = match goal {
            Goal::Epsilon { accused, .. } => accused,
            Goal::Separation(_) => Side::Neighbour,
        };
        let middle = self.base.get(self.base.len() / 2).copied().unwrap_or(Scored { score: 0.0, tie: 0.0 });
        let mut best = (f64::NEG_INFINITY, Rule { accused, cut: middle, above: true });
        for cut in self.cuts() {
            let reached = |side: &[Scored]| (side.len() - side.partition_point(|scored| !scored.reaches(&cut))) as u64;
            let (above0, above1) = (reached(&self.base), reached(&self.neighbour));
            for above in [true, false] {
                let (hits0, hits1) = if above { (above0, above1) } else { (n0 - above0, n1 - above1) };
                let mut improve = |accused: Side, estimate: f64| {
                    if estimate > best.0 {
                        best = (estimate, Rule { accused, cut, above });
                    }
                };
                for accused in [Side::Neighbour, Side::Base] {
                    let (hits, runs, false_hits, false_runs) = match accused {
                        Side::Neighbour => (hits1, n1, hits0, n0),
                        Side::Base => (hits0, n0, hits1, n1),
                    };
                    // Log-odds of both limits; a cut without limits is ranked below.
                    let low = || likely_lower(hits, runs, nats);
                    let high = || -likely_lower(false_runs - false_hits, false_runs, nats);
                    match goal {
                        Goal::Epsilon { accused: asked, delta } if asked == accused => {
                            improve(accused, ((rate(low()) - delta) / rate(high())).ln());
                        }
                        Goal::Separation(curve) => {
                            let (low, high) = (low(), high());
                            improve(accused, (quantile(low) - quantile(high)) / allowed_shift(curve, high));
                        }
                        Goal::Epsilon { .. } => {}
                    }
                }
            }
        }
        best
    }
}

/// Returns the normal shift with the curve's type II error at this type I error.
fn allowed_shift(curve: Option<&TradeOff>, type_one: f64) -> f64 {
    let Some(curve) = curve else { return 1.0 };
    let type_two = curve.type_two_error(rate(type_one)).unwrap_or(0.0);
    let shift = quantile((1.0 - type_two).ln() - type_two.ln()) - quantile(type_one);
    // If the claim allows nothing, anything exceeds it; if it allows everything, nothing does.
    if shift.is_nan() { f64::INFINITY } else { shift.max(1e-6) }
}

fn rate(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Returns the normal quantile of a rate.
fn quantile(log_odds: f64) -> f64 {
    core::f64::consts::SQRT_2
        * if log_odds < 0.0 { -erfc_inv(2.0 * rate(log_odds)) } else { erfc_inv(2.0 * rate(-log_odds)) }
}

/// Returns ranks below `count`: evenly spaced ones, and from both ends in increasing steps.
fn ranks(count: usize) -> Vec<usize> {
    let mut ranks: Vec<usize> = (0..EVEN_RANKS).map(|i| count * i / EVEN_RANKS).collect();
    let mut from_end = 0;
    while from_end < count {
        ranks.extend([from_end, count - 1 - from_end]);
        from_end += 1 + from_end / 8;
    }
    ranks.retain(|&rank| rank < count);
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests;
