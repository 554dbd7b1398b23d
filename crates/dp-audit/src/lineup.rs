//! Several pairs of inputs for one claim: a pilot on separate runs selects the pair that is audited.
//!
//! # Allocation of runs
//! With `T` runs per side for the audit, the pilot gets another `T`, over all pairs. It tries as many pairs as can have
//! [`FEWEST_RUNS`] runs per side in every round: all, or the leading ones and a random sample of the others. Each round ranks
//! the remaining pairs by the bound that their runs would give, and keeps the best quarter. The first round gets half of the
//! runs, the others equal shares of the other half, so that the runs per pair increase.
//!
//! # Validity
//! The pilot's runs use separate random streams and are never counted. Conditionally on the pilot the pair is fixed, and its
//! audit holds with its confidence; hence it does so unconditionally. The failure probability is that of one audit, whatever
//! the number of pairs.
//!
//! # References
//! K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016
//! (successive halving).

use core::ops::Range;
use core::sync::atomic::AtomicU64;
use std::sync::OnceLock;

use dp_mechanisms::{Purpose, ReleaseRng as _, SeededRng};
use rand::RngExt as _;
use rayon::prelude::*;

use crate::attack::{Scored, Scorer};
use crate::audit::Audit;
use crate::auditor::Auditor;
use crate::error::Error;
use crate::logistic::Logistic;
use crate::monitor::{Monitor, Unwatched};
use crate::selection::{Goal, Scores};
use crate::subject::{Side, Statistic, Subject};
use crate::trials::{Half, Trials, name_hash};

/// Minimum number of runs on each input, per pair and round of a pilot.
pub const FEWEST_RUNS: u64 = 64;

/// Failure probability of the bounds that rank pairs: not small, as no claim depends on it.
const DOUBT: f64 = 0.1;

/// Pairs of inputs on which one claim can be attacked.
pub trait Lineup: Send + Sync {
    /// Returns the number of pairs, at least one.
    fn pairs(&self) -> usize;

    /// Returns the number of leading pairs, which are tried before a sample of the others.
    fn leading(&self) -> usize;

    /// Returns one pair by index. Subjects of different pairs have different names, and all have the same number of features.
    ///
    /// # Errors
    /// Errors of the subject.
    fn subject(&self, pair: usize) -> Result<Box<dyn Subject>, Error>;
}

/// The record of a pilot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pilot {
    /// Number of pairs tried.
    pub tried: usize,
    /// Number of pairs.
    pub of: usize,
    /// The index of the audited pair.
    pub chosen: usize,
    /// Number of pilot runs on each input, over all pairs; none was counted.
    pub trials: u64,
}

/// A round keeps one pair in this many.
const KEPT: usize = 4;

/// Returns the number of pairs in each round and the runs per side of each.
fn schedule(pairs: usize, trials: u64) -> Vec<(usize, u64)> {
    let in_round = core::iter::successors(Some(pairs), |&left| (left > 1).then(|| left.div_ceil(KEPT)));
    let left: Vec<usize> = in_round.take_while(|&left| left > 1).collect();
    let later = left.len().saturating_sub(1) as u64;
    let share = |round: usize| match (round, later) {
        (0, 0) => trials,
        (0, _) => trials / 2,
        _ => trials / 2 / later,
    };
    left.iter().enumerate().map(|(round, &left)| (left, share(round) / left as u64)).collect()
}

/// Returns how many of `pairs` can have enough runs, of `trials` per side.
fn affordable(pairs: usize, trials: u64) -> usize {
    let fits = |tried: &usize| schedule(*tried, trials).iter().all(|&(_, runs)| runs >= FEWEST_RUNS);
    // The first round allows no more than this.
    let most = (trials / FEWEST_RUNS).min(pairs as u64) as usize;
    (1..=most).rev().find(fits).unwrap_or(1)
}

impl Auditor {
    /// Selects a pair by a pilot and audits it. All pairs are audited with the number of runs of the first.
    ///
    /// # Errors
    /// Those of [`audit_with`](Self::audit_with).
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::DpEvent;
    /// use dp_audit::{Auditor, Claim, Error, Lineup, Statistic, Subject, Unwatched, Side, subject};
    /// use rand::RngExt;
    ///
    /// /// Laplace noise of scale 1 on two numbers, which are the farther apart the later the pair.
    /// struct Shifts;
    /// impl Lineup for Shifts {
    ///     fn pairs(&self) -> usize {
    ///         8
    ///     }
    ///     fn leading(&self) -> usize {
    ///         1
    ///     }
    ///     fn subject(&self, pair: usize) -> Result<Box<dyn Subject>, Error> {
    ///         let shift = pair as f64 / 7.0;
    ///         let claim = Claim::new(DpEvent::Laplace { scale: 1.0, sensitivity: 1.0 })?;
    ///         Ok(Box::new(subject::from_fn(
    ///             format!("shift {pair}"), "two numbers", claim, Statistic::Score,
    ///             move |side, rng, features| {
    ///                 let (sign, size) = (rng.random::<bool>(), -rng.random::<f64>().ln());
    ///                 let centre = if side == Side::Neighbour { shift } else { 0.0 };
    ///                 features.push(centre + if sign { size } else { -size });
    ///                 Ok(())
    ///             },
    ///         )))
    ///     }
    /// }
    /// let (audit, pilot) = Auditor::exactly(20_000)?.audit_among(&Shifts, &Unwatched)?;
    /// assert_eq!((pilot.tried, pilot.chosen), (8, 7));
    /// assert!(audit.epsilon_lower > 0.8 && audit.epsilon_lower <= 1.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn audit_among(&self, lineup: &dyn Lineup, monitor: &dyn Monitor) -> Result<(Audit, Pilot), Error> {
        let first = lineup.subject(0)?;
        let trials = self.trials_of(&first);
        let tried = self.tried(lineup, &first, trials);
        let schedule = schedule(tried.len(), trials);
        let spent: u64 = schedule.iter().map(|&(left, runs)| left as u64 * runs).sum();
        let total = 2 * (spent + trials);
        let mut left: Vec<(usize, Box<dyn Subject>)> =
            tried.iter().map(|&pair| Ok((pair, lineup.subject(pair)?))).collect::<Result<_, Error>>()?;
        let (mut begin, mut done) = (0, 0);
        for &(_, runs) in &schedule {
            let reached = self.inside(|| {
                left.par_iter()
                    .map(|(_, subject)| {
                        if monitor.cancelled() {
                            return Err(Error::Cancelled);
                        }
                        reach(self.seed(), subject, begin..begin + runs)
                    })
                    .collect::<Result<Vec<_>, _>>()
            })?;
            let mut ranked: Vec<_> = reached.into_iter().zip(left).collect();
            done += 2 * runs * ranked.len() as u64;
            monitor.progress(first.name(), done, total);
            // A stable sort: of equal pairs, the earlier stays.
            ranked.sort_by(|((a, a_shift), _), ((b, b_shift), _)| b.total_cmp(a).then(b_shift.total_cmp(a_shift)));
            ranked.truncate(ranked.len().div_ceil(KEPT));
            left = ranked.into_iter().map(|(_, subject)| subject).collect();
            begin += runs;
        }
        // One remains: the first is always tried, and each round keeps a quarter, rounded up.
        let (chosen, subject) = left.swap_remove(0);
        let later = After { monitor, done, total };
        let audit = self.clone().exactly_of(trials).audit_with(&subject, &later)?;
        Ok((audit, Pilot { tried: tried.len(), of: lineup.pairs(), chosen, trials: spent }))
    }

    /// Returns the runs on each input of all pairs of a lineup, including the pilot's.
    ///
    /// # Errors
    /// Errors of the first pair's subject.
    pub fn trials_among(&self, lineup: &dyn Lineup) -> Result<u64, Error> {
        let trials = self.trials_of(&lineup.subject(0)?);
        let tried = affordable(lineup.pairs(), trials);
        Ok(trials + schedule(tried, trials).iter().map(|&(left, runs)| left as u64 * runs).sum::<u64>())
    }

    /// Returns the indices of the pairs to try: the leading ones, then a random sample of the others.
    fn tried(&self, lineup: &dyn Lineup, first: &dyn Subject, trials: u64) -> Vec<usize> {
        let (pairs, tried) = (lineup.pairs().max(1), affordable(lineup.pairs(), trials));
        let leading = lineup.leading().min(tried);
        let mut others: Vec<usize> = (leading..pairs).collect();
        let mut rng = SeededRng::new(self.seed()).stream(Purpose::Custom(7), name_hash(first.name()), 0);
        for place in 0..tried - leading {
            let other = rng.random_range(place..others.len());
            others.swap(place, other);
        }
        (0..leading).chain(others.into_iter().take(tried - leading)).collect()
    }
}

/// The progress of an audit that follows a pilot.
struct After<'m> {
    monitor: &'m dyn Monitor,
    done: u64,
    total: u64,
}

impl Monitor for After<'_> {
    fn progress(&self, subject: &str, done: u64, _total: u64) {
        self.monitor.progress(subject, self.done + done, self.total);
    }

    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}

/// Rates a pair on these pilot runs: the bound on epsilon that their rates would give, and, for pairs without one, their
/// separation as a normal shift.
///
/// A regression is fitted on each half of the runs and scores the other half.
fn reach(seed: u64, subject: &dyn Subject, range: Range<u64>) -> Result<(f64, f64), Error> {
    let runs = (range.end - range.start) as usize;
    let (done, width) = (AtomicU64::new(0), OnceLock::new());
    let trials = Trials { subject, seed, monitor: &Unwatched, done, total: u64::MAX, width };
    let observed = |side| {
        let batches = trials.run(
            Half::Pilot,
            side,
            range.clone(),
            || (Vec::new(), Vec::new()),
            |(rows, ties): &mut (Vec<f64>, Vec<f64>), features, rng| {
                rows.extend(features);
                ties.push(rng.random::<f64>());
            },
        )?;
        let (rows, ties): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
        Ok::<_, Error>((rows.concat(), ties.concat()))
    };
    let [(base, base_ties), (neighbour, neighbour_ties)] = [observed(Side::Base)?, observed(Side::Neighbour)?];
    let width = trials.width.get().copied().unwrap_or(1);
    let middle = runs / 2;
    let scorers = match subject.statistic() {
        Statistic::Score | Statistic::Event => [Scorer::First, Scorer::First],
        Statistic::Learned => [middle..runs, 0..middle].map(|half| {
            let half = half.start * width..half.end * width;
            Scorer::Learned(Logistic::fit(&base[half.clone()], &neighbour[half], width))
        }),
    };
    let scored = |rows: &[f64], ties: &[f64]| -> Vec<Scored> {
        let rows = rows.chunks_exact(width).zip(ties).enumerate();
        rows.map(|(i, (row, &tie))| scorers[usize::from(i >= middle)].score_with(row, tie)).collect()
    };
    let scores = Scores::new(scored(&base, &base_ties), scored(&neighbour, &neighbour_ties));
    let (nats, delta) = (-DOUBT.ln(), subject.claim().delta);
    let estimate = |goal| scores.choose(goal, nats).0;
    let epsilon = [Side::Neighbour, Side::Base].map(|accused| estimate(Goal::Epsilon { accused, delta }));
    Ok((epsilon[0].max(epsilon[1]).max(0.0), estimate(Goal::Separation(None))))
}

#[cfg(test)]
mod tests;
