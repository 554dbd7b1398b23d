//! Answers a question: evaluates the tree, or searches for the omitted number.

use dp_accountant::calibrate::Calibration;
use dp_accountant::semantics::Protection;
use dp_accountant::trade_off::{Errors, TradeOff};
use dp_accountant::{
    Delta, DpEvent, Error, Evaluation, Evaluator, Interval, NoiseMultiplier, SamplingRate, Theorem, gdp,
};

use super::answer::{Answer, Solution};
use super::choices::{Sampling, Unknown};
use super::question::Question;
use super::refusal::{Refusal, RefusalKind};
use super::request::Job;
use crate::protection::Meaning;

/// Number of epsilons from which a trade-off curve is built.
const TRADE_OFF_EPSILONS: usize = 400;

/// Answers a question.
///
/// # Errors
/// `privacy.adjacency`, `account.*`, `usage.value`.
pub fn answer(question: &Question) -> Result<Answer, Refusal> {
    solve(question).map(|solution| Answer::new(question, &solution))
}

/// Computes the unknown.
///
/// # Errors
/// As [`answer`].
pub fn solve(question: &Question) -> Result<Solution, Refusal> {
    let given = Solution {
        noise_multiplier: question.noise_multiplier,
        sampling_rate: question.sampling_rate,
        steps: question.steps,
        epsilon: Interval { lower: 0.0, ..promise(question.epsilon) },
        delta: question.delta,
        certified_delta: None,
    };
    match question.unknown {
        Unknown::Epsilon => {
            let epsilon = epsilon(question, &given, question.target_delta()?)?;
            Ok(Solution { epsilon, ..given })
        }
        Unknown::Delta => delta(question, &given),
        Unknown::NoiseMultiplier | Unknown::SamplingRate | Unknown::Steps => calibrated(question, given),
    }
}

/// Returns the whole event, with the numbers of a solution.
pub fn event(question: &Question, solution: &Solution) -> DpEvent {
    let (noise, rate) = (solution.noise_multiplier.unwrap_or(1.0), solution.sampling_rate.unwrap_or(1.0));
    question.event_at(noise, rate, solution.steps)
}

/// Prepares a tree for the accountant of the question.
///
/// # Errors
/// `privacy.adjacency`, `usage.value`.
pub fn evaluation<'e>(question: &Question, event: &'e DpEvent) -> Result<Evaluation<'e>, Refusal> {
    Evaluation::new(question.accountant.evaluator(), event, question.relation).map_err(|error| question.refused(&error))
}

/// Returns the whole event of a question, with the omitted number filled in.
///
/// # Errors
/// As [`answer`].
pub fn solved_event(question: &Question) -> Result<DpEvent, Refusal> {
    match question.unknown {
        Unknown::Epsilon | Unknown::Delta => Ok(question.event()),
        _ => Ok(event(question, &solve(question)?)),
    }
}

/// Returns the meaning of a solved question's guarantee, by the curve of the accountant that answered.
///
/// # Errors
/// As [`answer`].
pub fn meaning(question: &Question, solution: &Solution) -> Result<Meaning, Refusal> {
    let event = event(question, solution);
    let evaluation = evaluation(question, &event)?;
    let delta_at = |epsilon: f64| evaluation.delta(epsilon).map(|delta| delta.upper.min(1.0));
    evaluation
        .epsilon(Delta::ZERO)
        .and_then(|largest_loss| {
            Protection::of_curve(solution.epsilon.upper, solution.delta, largest_loss.upper, delta_at)
        })
        .map(|protection| Meaning::new(protection, question.relation, &question.unit()))
        .map_err(|error| question.refused(&error))
}

/// Returns `count` points of the trade-off curve: the least type II error for each type I error; between the evaluated epsilons, a
/// lower bound on it.
///
/// # Errors
/// As [`answer`].
pub fn trade_off(question: &Question, count: usize) -> Result<Vec<Errors>, Refusal> {
    let event = solved_event(question)?;
    let evaluation = evaluation(question, &event)?;
    let delta_at = |epsilon: f64| evaluation.delta(epsilon).map(|delta| delta.upper.min(1.0));
    let errors = TradeOff::new(delta_at, TRADE_OFF_EPSILONS).and_then(|curve| curve.points(count));
    errors.map_err(|error| question.refused(&error))
}

fn epsilon(question: &Question, solution: &Solution, delta: Delta) -> Result<Interval, Refusal> {
    let event = event(question, solution);
    evaluation(question, &event)?.epsilon(delta).map_err(|error| question.refused(&error))
}

/// Computes delta at the promised epsilon, and the lower bound on epsilon at that delta.
fn delta(question: &Question, given: &Solution) -> Result<Solution, Refusal> {
    let event = question.event();
    let certified = evaluation(question, &event)?.delta(question.epsilon).map_err(|error| question.refused(&error))?;
    let upper = certified.upper.min(1.0);
    let lower = match Delta::new(upper) {
        Ok(delta) => epsilon(question, given, delta)?.lower.min(question.epsilon),
        // Delta 1 promises nothing and holds with any epsilon.
        Err(_) => 0.0,
    };
    let epsilon = Interval { lower, ..promise(question.epsilon) };
    Ok(Solution { epsilon, delta: upper, certified_delta: Some(Interval { upper, ..certified }), ..*given })
}

/// Returns the interval of a given epsilon.
fn promise(epsilon: f64) -> Interval {
    Interval { lower: 0.0, upper: epsilon, theorem: Theorem::NoGuarantee }
}

/// Computes the least noise, the largest rate or the most steps that meet the target, and the budget spent with it.
fn calibrated(question: &Question, given: Solution) -> Result<Solution, Refusal> {
    let delta = question.target_delta()?;
    let refused = |error: Error| question.refused(&error);
    let evaluator = match question.accountant.evaluator() {
        Evaluator::Gdp => {
            // If an event is Gaussian-DP, that curve is its tightest bound; other events are refused here.
            gdp::mu(&question.event()).map_err(refused)?;
            Evaluator::Tightest
        }
        evaluator => evaluator,
    };
    let calibration =
        Calibration::new(question.target_epsilon()?, delta).with_evaluator(evaluator).under(question.relation);
    let poisson = question.job == Job::Dpsgd
        && question.sampling == Sampling::Poisson
        && !question.replaces()
        && question.group == 1;
    let noise = question.noise_multiplier.unwrap_or(1.0);
    let rate = question.sampling_rate.unwrap_or(1.0);
    let steps = question.steps;
    let noise_multiplier = || NoiseMultiplier::new(noise).map_err(refused);
    let sampling_rate = || SamplingRate::new(rate).map_err(refused);
    let (solution, reached) = match question.unknown {
        Unknown::NoiseMultiplier => {
            let found = match poisson {
                true => calibration.dp_sgd_noise_multiplier(sampling_rate()?, steps),
                false => calibration.least_scale(|noise| question.event_at(noise, rate, steps)),
            }
            .map_err(refused)?;
            (Solution { noise_multiplier: Some(found.value), ..given }, found.epsilon)
        }
        Unknown::SamplingRate => {
            let found = match poisson {
                true => calibration.dp_sgd_sampling_rate(noise_multiplier()?, steps),
                false => calibration.largest_rate(|rate| question.event_at(noise, rate, steps)),
            }
            .map_err(refused)?;
            (Solution { sampling_rate: Some(found.value), ..given }, found.epsilon)
        }
        _ => {
            let found = match poisson {
                true => calibration.dp_sgd_steps(noise_multiplier()?, sampling_rate()?),
                false => calibration.most_steps(|steps| question.event_at(noise, rate, steps)),
            }
            .map_err(refused)?;
            if found.value == 0 {
                return Err(none_fits(question));
            }
            (Solution { steps: found.value, ..given }, found.epsilon)
        }
    };
    // Two upper bounds on the same number: the smaller holds.
    let epsilon = epsilon(question, &solution, delta)?;
    let upper = if reached < epsilon.upper { reached } else { epsilon.upper };
    Ok(Solution { epsilon: Interval { lower: epsilon.lower.min(upper), upper, ..epsilon }, ..solution })
}

fn none_fits(question: &Question) -> Refusal {
    Refusal::new(RefusalKind::Privacy, "account.unreachable", "not even one step meets the target")
        .at_field("epsilon")
        .expected(format!("more than epsilon = {:?} at delta = {:?}", question.epsilon, question.delta))
        .help("ask for a larger epsilon or delta, or add noise")
}
