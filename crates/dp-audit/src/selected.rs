//! The second half of an audit: counts and conclusions.

use dp_accountant::{Delta, bound, gaussian, gdp};

use crate::attack::Rule;
use crate::audit::{Audit, Band, BoundKind, Conviction, GaussianComparison, Point, Reached, Test, Verdict};
use crate::auditor::{Auditor, TOLERANCE};
use crate::bounds::{Hits, Limits, trade_off};
use crate::error::Error;
use crate::plan::Plan;
use crate::subject::{Claim, Side, Statistic};
use crate::trials::{Half, Trials};

/// An attack selected on the first half of the runs; [`evaluate`](Self::evaluate) tests it on the second.
///
/// It can be tested only once, so that an evaluation cannot be repeated until the verdict suits:
/// ```compile_fail,E0382
/// # use dp_audit::{Auditor, Error, Subject, Unwatched};
/// fn twice(auditor: &Auditor, subject: &dyn Subject) -> Result<(), Error> {
///     let selected = auditor.select(subject, &Unwatched)?;
///     let first = selected.evaluate()?;
///     let second = selected.evaluate()?; // `selected` was moved
///     Ok(())
/// }
/// ```
/// It gives no access to the runs that selected it:
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

impl<'a> Selected<'a> {
    pub(crate) fn new(auditor: Auditor, trials: Trials<'a>, plan: Plan) -> Self {
        Self { auditor, trials, plan }
    }

    /// Runs the second half and draws the conclusions.
    ///
    /// Each test of the attack has two limits, and all limits hold simultaneously with the audit's confidence: each takes an
    /// equal share of its failure probability.
    ///
    /// # Errors
    /// Those of [`Auditor::audit_with`].
    pub fn evaluate(self) -> Result<Audit, Error> {
        let Self { auditor, trials, plan } = self;
        let claim = trials.subject.claim();
        let delta = Delta::new(claim.delta)?;
        let count = |side| count(&trials, &plan, side);
        let (base, neighbour) = auditor.inside(|| Ok::<_, Error>((count(Side::Base)?, count(Side::Neighbour)?)))?;

        let share = auditor.failure_probability() / plan.rules.len() as f64;
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
                // No curve lies above 1 - alpha: a test no better than guessing refutes nothing.
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
            reached: reached(&plan, &base, &neighbour, auditor.failure_probability()),
            tests,
            failure_probability: auditor.failure_probability(),
            seed: auditor.seed(),
            trials: plan.selecting + plan.counting,
            counted: plan.counting,
            verdict: if conviction.is_some() { Verdict::Refuted } else { Verdict::NotRefuted },
            conviction,
        })
    }
}

/// Counts the runs of the evaluation half that reach each cut.
fn count(trials: &Trials<'_>, plan: &Plan, side: Side) -> Result<Vec<u64>, Error> {
    // Runs between two cuts; those below all cuts are not needed.
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

/// Compares the bound on mu with the claim, if the claim has a mu.
fn compare_gaussian(tests: &[Test], claim: &Claim, delta: Delta) -> Result<Option<GaussianComparison>, Error> {
    let Ok(claimed_mu) = gdp::mu(&claim.event) else { return Ok(None) };
    if !claimed_mu.is_finite() {
        return Ok(None);
    }
    let mu_lower = tests.iter().map(|test| test.mu_lower).fold(0.0, f64::max);
    let epsilon = match (mu_lower > 0.0, delta.get() > 0.0) {
        (false, _) => 0.0,
        (true, false) => f64::INFINITY,
        // The accountant rounds up by much less than this.
        (true, true) => gaussian::epsilon(mu_lower, delta)? * (1.0 - TOLERANCE),
    };
    Ok(Some(GaussianComparison { claimed_mu, mu_lower, epsilon }))
}

/// Returns the first bound that refutes the claim, in order of simplicity.
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

/// Returns the observed curve of the first test's score, with its band.
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
    // Dvoretzky, Kiefer and Wolfowitz with Massart's constant; half of the probability for each side.
    let band = Band { half_width: ((4.0 / failure).ln() / (2.0 * runs)).sqrt(), failure_probability: failure };
    Reached { points, band }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Rate;

    fn rate(value: f64) -> Rate {
        Rate { value, complement: 1.0 - value }
    }

    /// A test whose limits are 0.5 and 0.1, with these bounds.
    fn test(epsilon_lower: f64, mu_lower: f64, least_type_two: Option<f64>) -> Test {
        let hits = Hits { true_positives: 0, positives: 1, false_positives: 0, negatives: 1 };
        let limits = Limits { true_positive: rate(0.5), false_positive: rate(0.1) };
        Test { accused: Side::Base, event: String::new(), hits, limits, epsilon_lower, mu_lower, least_type_two }
    }

    #[test]
    fn each_bound_convicts_alone_and_only_beyond_rounding() {
        let claimed = GaussianComparison { claimed_mu: 1.0, mu_lower: 0.0, epsilon: 0.0 };
        let found = |second: Test| {
            let tests = [test(0.0, 0.0, None), second];
            convict(&tests, 1.0, Some(&claimed)).map(|conviction| (conviction.bound, conviction.test))
        };
        assert_eq!(found(test(1.0, 1.0, Some(0.5))), None);
        assert_eq!(found(test(1.0 + 1e-10, 1.0 + 1e-10, Some(0.5 + 1e-13))), None);
        assert_eq!(found(test(1.0 + 1e-8, 0.0, None)), Some((BoundKind::Epsilon, 1)));
        assert_eq!(found(test(0.0, 1.0 + 1e-8, None)), Some((BoundKind::Mu, 1)));
        assert_eq!(found(test(0.0, 0.0, Some(0.5 + 1e-11))), Some((BoundKind::TradeOff, 1)));
        assert_eq!(found(test(2.0, 2.0, Some(0.9))), Some((BoundKind::Epsilon, 1)));
        // A claim of zero is refuted by any bound, an infinite claim by none.
        assert!(convict(&[test(1e-9, 0.0, None)], 0.0, None).is_some());
        assert_eq!(convict(&[test(0.0, 9.0, None)], 0.0, None), None);
        assert_eq!(convict(&[test(f64::INFINITY, 0.0, None)], f64::INFINITY, None), None);
    }
}
