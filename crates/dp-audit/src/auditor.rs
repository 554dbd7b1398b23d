//! The auditor: half of the runs choose the attack, the other half convict.

use core::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use dp_accountant::{Delta, bound, gaussian, gdp};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::attack::{Rule, Scored, Scorer};
use crate::audit::{Audit, Band, BoundKind, Conviction, GaussianComparison, Point, Reached, Test, Verdict};
use crate::bounds::{Hits, Limits, trade_off};
use crate::error::{self, Error};
use crate::logistic::Logistic;
use crate::monitor::{Monitor, Unwatched};
use crate::selection::{Goal, Scores};
use crate::subject::{Side, Statistic, Subject};
use crate::trials::{Half, Trials};

/// With this probability at most does a suite of sound subjects, or an audit of one, alarm falsely, unless chosen
/// otherwise.
pub const FALSE_ALARM_RATE: f64 = 1e-3;

/// A bound of epsilon or mu exceeds a claim if it does by more than this factor: what rounding could explain.
pub const TOLERANCE: f64 = 1e-9;

/// Fewer runs a side than this show nothing.
const FEWEST_TRIALS: u64 = 16;

/// More runs a side are refused.
const MOST_TRIALS: u64 = 1 << 40;

/// Runs a side on which a regression is trained, at most, and the features that they may hold together.
const MOST_TRAINED: u64 = 20_000;
const MOST_FEATURES: u64 = 1 << 23;

/// Points of the reached curve.
const CURVE_POINTS: usize = 48;

/// How many runs, how confident, from which seed.
///
/// # Examples
/// ```
/// use dp_accountant::DpEvent;
/// use dp_audit::{Auditor, Claim, Side, Statistic, Verdict, subject};
/// use rand::RngExt;
///
/// // Laplace noise of scale 1/2 on a value of sensitivity 1, claimed to be that of scale 1.
/// let claim = Claim::new(DpEvent::Laplace { scale: 1.0, sensitivity: 1.0 })?;
/// let broken = subject::from_fn("half-scale", "0 and 1", claim, Statistic::Score, |side, rng, features| {
///     let (sign, size) = (rng.random::<bool>(), -0.5 * rng.random::<f64>().ln());
///     features.push(f64::from(side == Side::Neighbour) + if sign { size } else { -size });
///     Ok(())
/// });
/// let audit = Auditor::new(20_000)?.audit(&broken)?;
/// assert_eq!(audit.verdict, Verdict::Refuted);
/// assert!(audit.epsilon_lower > 1.5 && audit.epsilon_lower < 2.0);
/// # Ok::<(), dp_audit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Auditor {
    trials: u64,
    /// Whether subjects may change the number.
    flexible: bool,
    multiplier: u64,
    failure: f64,
    seed: u64,
    pool: Option<Arc<ThreadPool>>,
}

impl Auditor {
    /// About `trials` runs on each input: fewer of a subject that is dearer than a scalar release, as many as the
    /// subject says where it says. Confidence 99.9 %, seed 0, all threads.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for fewer than 16 or more than 2^40.
    pub fn new(trials: u64) -> Result<Self, Error> {
        if !(FEWEST_TRIALS..=MOST_TRIALS).contains(&trials) {
            return Err(Error::OutOfRange { name: "trials", value: trials as f64, range: "[16, 2^40]" });
        }
        Ok(Self { trials, flexible: true, multiplier: 1, failure: FALSE_ALARM_RATE, seed: 0, pool: None })
    }

    /// Exactly `trials` runs on each input, whatever the subject says.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn exactly(trials: u64) -> Result<Self, Error> {
        Ok(Self { flexible: false, ..Self::new(trials)? })
    }

    /// With `multiplier` times the runs: a long audit.
    pub fn with_multiplier(self, multiplier: u64) -> Self {
        Self { multiplier: multiplier.max(1), ..self }
    }

    /// With this confidence in each audit.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a confidence outside (0, 1).
    pub fn with_confidence(self, confidence: f64) -> Result<Self, Error> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::OutOfRange { name: "confidence", value: confidence, range: "(0, 1)" });
        }
        self.with_failure_probability(1.0 - confidence)
    }

    /// The same by what is left of 1, which may be small.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a probability outside (0, 1).
    pub fn with_failure_probability(self, failure: f64) -> Result<Self, Error> {
        Ok(Self { failure: error::failure_probability(failure)?, ..self })
    }

    /// With this seed. An audit is a function of subject, seed, confidence and number of runs.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// On so many threads of its own; results do not depend on it.
    ///
    /// # Errors
    /// [`Error::Threads`].
    pub fn with_threads(self, threads: usize) -> Result<Self, Error> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Threads { threads, reason: error.to_string() })?;
        Ok(Self { pool: Some(Arc::new(pool)), ..self })
    }

    /// Probability that an audit of a sound subject refutes it, at most.
    pub fn failure_probability(&self) -> f64 {
        self.failure
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Runs on each input of this subject.
    pub fn trials_of(&self, subject: &(impl Subject + ?Sized)) -> u64 {
        let trials = if self.flexible {
            // A cost that is no number, or below 1, is 1.
            let cost = subject.relative_cost().max(1.0);
            subject.trials_hint().unwrap_or((self.trials as f64 / cost) as u64)
        } else {
            self.trials
        };
        trials.saturating_mul(self.multiplier).clamp(FEWEST_TRIALS, MOST_TRIALS)
    }

    /// Both phases: [`select`](Self::select), then [`evaluate`](Selected::evaluate).
    ///
    /// # Errors
    /// What the subject refuses, and a claim that cannot be accounted for.
    pub fn audit(&self, subject: &dyn Subject) -> Result<Audit, Error> {
        self.audit_with(subject, &Unwatched)
    }

    /// The same, watched.
    ///
    /// # Errors
    /// Those of [`audit`](Self::audit), and [`Error::Cancelled`].
    pub fn audit_with(&self, subject: &dyn Subject, monitor: &dyn Monitor) -> Result<Audit, Error> {
        self.select(subject, monitor)?.evaluate()
    }

    /// Runs the first half and chooses the attack: which regression, which cuts.
    ///
    /// What is chosen is used by [`evaluate`](Selected::evaluate) on runs of its own, which it draws itself. There is no
    /// way to count the runs on which an attack was chosen.
    ///
    /// # Errors
    /// Those of [`audit_with`](Self::audit_with).
    pub fn select<'a>(&self, subject: &'a dyn Subject, monitor: &'a dyn Monitor) -> Result<Selected<'a>, Error> {
        let claim = subject.claim();
        error::delta(claim.delta)?;
        let per_side = self.trials_of(subject);
        let selecting = match subject.statistic() {
            Statistic::Event => 0,
            Statistic::Score | Statistic::Learned => per_side / 2,
        };
        let trials = Trials {
            subject,
            seed: self.seed,
            monitor,
            done: AtomicU64::new(0),
            total: 2 * per_side,
            width: OnceLock::new(),
        };
        let plan = Plan {
            scorer: Scorer::First,
            rules: Vec::new(),
            cuts: Vec::new(),
            selecting,
            counting: per_side - selecting,
        };
        let plan = self.inside(|| match subject.statistic() {
            Statistic::Event => Ok(plan.fixed_event()),
            Statistic::Score => plan.with_cuts(&trials, 0, claim.delta, self.failure),
            Statistic::Learned => {
                let trained = train(&trials, selecting)?;
                plan.with_model(trained.0).with_cuts(&trials, trained.1, claim.delta, self.failure)
            }
        })?;
        Ok(Selected { auditor: self.clone(), trials, plan })
    }

    fn inside<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(run),
            None => run(),
        }
    }
}

/// Trains the regression on the first runs of the selection half; how many that were.
fn train(trials: &Trials<'_>, selecting: u64) -> Result<(Logistic, u64), Error> {
    let features = |side, range| {
        let batches = trials
            .run(Half::Selection, side, range, Vec::new, |into: &mut Vec<f64>, features, _| into.extend(features))?;
        Ok::<_, Error>(batches.concat())
    };
    // The first run tells how many features there are.
    let mut base = features(Side::Base, 0..1)?;
    let width = trials.width.get().copied().unwrap_or(1);
    let most = (MOST_FEATURES / width as u64).clamp(2, MOST_TRAINED);
    let count = (selecting / 2).min(most).max(1);
    base.extend(features(Side::Base, 1..count)?);
    let neighbour = features(Side::Neighbour, 0..count)?;
    Ok((Logistic::fit(&base, &neighbour, width), count))
}

/// How runs are scored and counted.
struct Plan {
    scorer: Scorer,
    rules: Vec<Rule>,
    /// Cuts at which runs are counted, ascending; those of the rules among them.
    cuts: Vec<Scored>,
    /// Runs a side that are spent on choosing.
    selecting: u64,
    /// Runs a side that are counted.
    counting: u64,
}

impl Plan {
    /// The event is fixed beforehand: either input may be the one that it accuses.
    fn fixed_event(mut self) -> Self {
        let cut = Scored { score: 0.5, tie: 0.0 };
        self.rules = [Side::Neighbour, Side::Base].map(|accused| Rule { accused, cut, above: true }).to_vec();
        self.cuts = vec![cut];
        self
    }

    fn with_model(mut self, model: Logistic) -> Self {
        self.scorer = Scorer::Learned(model);
        self
    }

    /// Chooses one cut for each direction of the pair, and a third for claims with a delta, whose curve is refuted
    /// elsewhere than epsilon at one delta.
    fn with_cuts(mut self, trials: &Trials<'_>, from: u64, delta: f64, failure: f64) -> Result<Self, Error> {
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
        if delta > 0.0 {
            goals.push(Goal::Separation);
        }
        let nats = (2.0 * goals.len() as f64 / failure).ln();
        self.rules = goals.into_iter().map(|goal| scores.choose(goal, nats)).collect();
        self.cuts = scores.spread(CURVE_POINTS);
        self.cuts.extend(self.rules.iter().map(|rule| rule.cut));
        self.cuts.sort_unstable_by(Scored::compare);
        self.cuts.dedup_by(|a, b| a.compare(b).is_eq());
        Ok(self)
    }

    /// How many of `reached[i]` runs, those at or above the i-th cut, a rule hits.
    fn hits(&self, rule: &Rule, reached: &[u64]) -> u64 {
        let index = self.cuts.partition_point(|cut| cut.compare(&rule.cut).is_lt());
        let above = reached.get(index).copied().unwrap_or(0);
        if rule.above { above } else { self.counting - above }
    }
}

/// An attack that was chosen on the first half of the runs; [`evaluate`](Self::evaluate) tries it on the second.
///
/// It is tried once, so that nobody can evaluate until the verdict suits:
/// ```compile_fail,E0382
/// # use dp_audit::{Auditor, Error, Subject, Unwatched};
/// fn twice(auditor: &Auditor, subject: &dyn Subject) -> Result<(), Error> {
///     let selected = auditor.select(subject, &Unwatched)?;
///     let first = selected.evaluate()?;
///     let second = selected.evaluate()?; // `selected` was moved
///     Ok(())
/// }
/// ```
/// And it carries nothing of the runs on which it was chosen:
/// ```compile_fail,E0616
/// # use dp_audit::Selected;
/// fn read(selected: Selected<'_>) {
///     let plan = selected.plan;
/// }
/// ```
pub struct Selected<'a> {
    auditor: Auditor,
    trials: Trials<'a>,
    plan: Plan,
}

impl Selected<'_> {
    /// Runs the second half and says what follows.
    ///
    /// Each of the attack's tests has two limits, and all of them hold together with the audit's confidence: every one
    /// takes an equal share of its failure probability.
    ///
    /// # Errors
    /// Those of [`Auditor::audit_with`].
    pub fn evaluate(self) -> Result<Audit, Error> {
        let Self { auditor, trials, plan } = self;
        let claim = trials.subject.claim();
        let delta = Delta::new(claim.delta)?;
        let count = |side| count(&trials, &plan, side);
        let (base, neighbour) = auditor.inside(|| Ok::<_, Error>((count(Side::Base)?, count(Side::Neighbour)?)))?;

        let share = auditor.failure / plan.rules.len() as f64;
        let tests = plan
            .rules
            .iter()
            .map(|rule| {
                let (hits0, hits1) = (plan.hits(rule, &base), plan.hits(rule, &neighbour));
                let (true_positives, false_positives) = match rule.accused {
                    Side::Neighbour => (hits1, hits0),
                    Side::Base => (hits0, hits1),
                };
                let runs = plan.counting;
                let hits = Hits { true_positives, positives: runs, false_positives, negatives: runs };
                let limits = Limits::new(hits, share)?;
                // No curve lies above 1 - alpha: what does not beat guessing refutes nothing.
                let beats_guessing = limits.type_two_upper() < limits.false_positive.complement;
                let least_type_two = beats_guessing
                    .then(|| trade_off::least_type_two(&claim.event, limits.false_positive.value))
                    .transpose()?;
                Ok(Test {
                    accused: rule.accused,
                    event: describe(trials.subject.statistic(), rule),
                    hits,
                    epsilon_lower: limits.epsilon_lower(claim.delta)?,
                    mu_lower: limits.mu_lower(),
                    limits,
                    least_type_two,
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;

        let claimed_epsilon = bound::epsilon(&claim.event, delta)?.value;
        let gaussian = compare_gaussian(&tests, claim, delta)?;
        let conviction = convict(&tests, claimed_epsilon, gaussian.as_ref());
        Ok(Audit {
            subject: trials.subject.name().to_owned(),
            pair: trials.subject.pair().to_owned(),
            statistic: trials.subject.statistic(),
            event: claim.event.clone(),
            delta: claim.delta,
            claimed_epsilon,
            epsilon_lower: tests.iter().map(|test| test.epsilon_lower).fold(0.0, f64::max),
            gaussian,
            reached: reached(&plan, &base, &neighbour, auditor.failure),
            tests,
            failure_probability: auditor.failure,
            seed: auditor.seed,
            trials: plan.selecting + plan.counting,
            counted: plan.counting,
            verdict: if conviction.is_some() { Verdict::Refuted } else { Verdict::NotRefuted },
            conviction,
        })
    }
}

/// How many runs of the evaluation half reach each cut.
fn count(trials: &Trials<'_>, plan: &Plan, side: Side) -> Result<Vec<u64>, Error> {
    // Runs between two cuts; those below all are not needed.
    let between = trials.run(
        Half::Evaluation,
        side,
        0..plan.counting,
        || vec![0u64; plan.cuts.len()],
        |into: &mut Vec<u64>, features, rng| {
            let scored = plan.scorer.score(features, rng);
            if let Some(last) = plan.cuts.partition_point(|cut| scored.reaches(cut)).checked_sub(1) {
                into[last] += 1;
            }
        },
    )?;
    let mut reached = vec![0; plan.cuts.len()];
    for batch in between {
        for (sum, count) in reached.iter_mut().zip(batch) {
            *sum += count;
        }
    }
    for i in (1..reached.len()).rev() {
        reached[i - 1] += reached[i];
    }
    Ok(reached)
}

fn describe(statistic: Statistic, rule: &Rule) -> String {
    match statistic {
        Statistic::Event => "the fixed event".to_owned(),
        Statistic::Score | Statistic::Learned => {
            let comparison = if rule.above { ">=" } else { "<" };
            format!("score {comparison} {:?}", rule.cut.score)
        }
    }
}

/// What the limits say of mu, where the claim has one.
fn compare_gaussian(
    tests: &[Test],
    claim: &crate::subject::Claim,
    delta: Delta,
) -> Result<Option<GaussianComparison>, Error> {
    let Ok(claimed_mu) = gdp::mu(&claim.event) else { return Ok(None) };
    if !claimed_mu.is_finite() {
        return Ok(None);
    }
    let mu_lower = tests.iter().map(|test| test.mu_lower).fold(0.0, f64::max);
    let epsilon = match (mu_lower > 0.0, delta.get() > 0.0) {
        (false, _) => 0.0,
        (true, false) => f64::INFINITY,
        // The accountant rounds up by far less than this.
        (true, true) => gaussian::epsilon(mu_lower, delta)? * (1.0 - TOLERANCE),
    };
    Ok(Some(GaussianComparison { claimed_mu, mu_lower, epsilon }))
}

/// The first bound that the claim does not survive, the plainest first.
fn convict(tests: &[Test], claimed_epsilon: f64, gaussian: Option<&GaussianComparison>) -> Option<Conviction> {
    let exceeds = |bound: f64, claim: f64| bound > claim * (1.0 + TOLERANCE) + f64::MIN_POSITIVE;
    let by = |bound: BoundKind, found: &dyn Fn(&Test) -> bool| {
        tests.iter().position(found).map(|test| Conviction { bound, test })
    };
    by(BoundKind::Epsilon, &|test| exceeds(test.epsilon_lower, claimed_epsilon))
        .or_else(|| {
            by(BoundKind::TradeOff, &|test| {
                test.least_type_two.is_some_and(|least| trade_off::refutes(&test.limits, least))
            })
        })
        .or_else(|| {
            let claimed = gaussian?.claimed_mu;
            by(BoundKind::Mu, &|test| exceeds(test.mu_lower, claimed))
        })
}

/// The curve that the first test's score reached, and its band.
fn reached(plan: &Plan, base: &[u64], neighbour: &[u64], failure: f64) -> Reached {
    let runs = plan.counting as f64;
    let rule = plan.rules.first();
    let mut points: Vec<Point> = plan
        .cuts
        .iter()
        .map(|&cut| {
            let rule = Rule { cut, ..rule.copied().unwrap_or(Rule { accused: Side::Neighbour, cut, above: true }) };
            let share = |reached: &[u64]| plan.hits(&rule, reached) as f64 / runs;
            let (hit, falsely) = match rule.accused {
                Side::Neighbour => (share(neighbour), share(base)),
                Side::Base => (share(base), share(neighbour)),
            };
            Point { type_one: falsely, type_two: 1.0 - hit }
        })
        .collect();
    points.sort_unstable_by(|a, b| a.type_one.total_cmp(&b.type_one));
    // Dvoretzky, Kiefer and Wolfowitz with Massart's constant, half of the probability for each side.
    let band = Band { half_width: ((4.0 / failure).ln() / (2.0 * runs)).sqrt(), failure_probability: failure };
    Reached { points, band }
}

#[cfg(test)]
mod tests;
