//! The scorer and cuts that the selection half passes to the evaluation half.

use dp_accountant::trade_off::TradeOff;
use dp_accountant::{Delta, bound, gdp};

use crate::attack::{Rule, Scored, Scorer};
use crate::error::Error;
use crate::logistic::Logistic;
use crate::selection::{Goal, Scores};
use crate::subject::{Claim, Side};
use crate::trials::{Half, Trials};

/// Largest number of runs per side for training a regression, and of features that they may hold together.
const MOST_TRAINED: u64 = 20_000;
const MOST_FEATURES: u64 = 1 << 23;

/// Number of points of the observed curve.
const CURVE_POINTS: usize = 48;

/// The scoring and counting of runs.
pub(crate) struct Plan {
    pub(crate) scorer: Scorer,
    pub(crate) rules: Vec<Rule>,
    /// Cuts at which runs are counted, ascending; they include those of the rules.
    pub(crate) cuts: Vec<Scored>,
    /// Number of runs per side for selection.
    pub(crate) selecting: u64,
    /// Number of runs per side that are counted.
    pub(crate) counting: u64,
}

impl Plan {
    /// Creates a plan with these runs per side for selection and for counting.
    pub(crate) fn new(selecting: u64, counting: u64) -> Self {
        Self { scorer: Scorer::First, rules: Vec::new(), cuts: Vec::new(), selecting, counting }
    }

    /// Uses an event fixed beforehand, which may accuse either input.
    pub(crate) fn fixed_event(mut self) -> Self {
        let cut = Scored { score: 0.5, tie: 0.0 };
        self.rules = [Side::Neighbour, Side::Base].map(|accused| Rule { accused, cut, above: true }).to_vec();
        self.cuts = vec![cut];
        self
    }

    /// Scores by a trained regression.
    pub(crate) fn with_model(mut self, model: Logistic) -> Self {
        self.scorer = Scorer::Learned(model);
        self
    }

    /// Selects one cut for each direction of the pair, and a third for claims with a delta: their curve is refuted at other
    /// cuts than their epsilon at one delta.
    pub(crate) fn with_cuts(mut self, trials: &Trials<'_>, from: u64, failure: f64) -> Result<Self, Error> {
        let claim = trials.subject.claim();
        let delta = claim.delta;
        let scores = |side| {
            let batches = trials.run(
                Half::Selection,
                side,
                from..self.selecting,
                Vec::new,
                |into: &mut Vec<Scored>, features, rng| into.push(self.scorer.score(features, rng)),
            )?;
            Ok::<_, Error>(batches.concat())
        };
        let scores = Scores::new(scores(Side::Base)?, scores(Side::Neighbour)?);
        let mut goals =
            vec![Goal::Epsilon { accused: Side::Neighbour, delta }, Goal::Epsilon { accused: Side::Base, delta }];
        let curve = coarse_curve(claim)?;
        if delta > 0.0 {
            goals.push(Goal::Separation(curve.as_ref()));
        }
        let nats = (2.0 * goals.len() as f64 / failure).ln();
        self.rules = goals.into_iter().map(|goal| scores.choose(goal, nats).1).collect();
        self.cuts = scores.spread(CURVE_POINTS);
        self.cuts.extend(self.rules.iter().map(|rule| rule.cut));
        self.cuts.sort_unstable_by(Scored::compare);
        self.cuts.dedup_by(|a, b| a.compare(b).is_eq());
        Ok(self)
    }

    /// Returns how many of `reached[i]` runs, those at or above the i-th cut, a rule hits.
    pub(crate) fn hits(&self, rule: &Rule, reached: &[u64]) -> u64 {
        let index = self.cuts.partition_point(|cut| cut.compare(&rule.cut).is_lt());
        let above = reached.get(index).copied().unwrap_or(0);
        if rule.above { above } else { self.counting - above }
    }
}

/// Number of epsilons of the curve on which a cut is selected.
const COARSE_POINTS: u32 = 24;

/// Returns an approximate claimed curve for selecting a cut; `None` for pure claims, which need none, and for Gaussian ones,
/// whose shift is constant.
fn coarse_curve(claim: &Claim) -> Result<Option<TradeOff>, Error> {
    if claim.delta == 0.0 || gdp::mu(&claim.event).is_ok() {
        return Ok(None);
    }
    let largest = bound::epsilon(&claim.event, Delta::new(claim.delta)?)?.value;
    if !largest.is_finite() {
        return Ok(None);
    }
    let pair = |i: u32| {
        let fraction = f64::from(i) / f64::from(COARSE_POINTS - 1);
        let epsilon = largest * fraction * fraction;
        Ok((epsilon, bound::delta(&claim.event, epsilon)?.value))
    };
    let pairs = (0..COARSE_POINTS).map(pair).collect::<Result<Vec<_>, Error>>()?;
    Ok(Some(TradeOff::from_pairs(&pairs)?))
}

/// Trains the regression on the first runs of the selection half; returns their number.
pub(crate) fn train(trials: &Trials<'_>, selecting: u64) -> Result<(Logistic, u64), Error> {
    let features = |side, range| {
        let batches = trials
            .run(Half::Selection, side, range, Vec::new, |into: &mut Vec<f64>, features, _| into.extend(features))?;
        Ok::<_, Error>(batches.concat())
    };
    // The first run gives the number of features.
    let mut base = features(Side::Base, 0..1)?;
    let width = trials.width.get().copied().unwrap_or(1);
    let most = (MOST_FEATURES / width as u64).clamp(2, MOST_TRAINED);
    let count = (selecting / 2).min(most).max(1);
    base.extend(features(Side::Base, 1..count)?);
    let neighbour = features(Side::Neighbour, 0..count)?;
    Ok((Logistic::fit(&base, &neighbour, width), count))
}
