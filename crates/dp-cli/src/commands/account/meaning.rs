//! `--semantics`: what the guarantee means for an attacker, by theorems on the whole privacy curve.

use dp_accountant::semantics::{self, of_curve};
use dp_accountant::{AdjacencyKind, Delta, Epsilon, Error};
use serde::Serialize;

use super::answer::Solution;
use super::evaluate;
use super::question::Question;
use super::solve;
use crate::failure::Failure;
use crate::wording;

/// Rates of false alarms for which the rate of detections is stated.
const FALSE_POSITIVE_RATES: [f64; 3] = [0.001, 0.01, 0.1];

/// Beliefs before the release for which those after it are stated.
const PRIORS: [f64; 2] = [0.01, 0.5];

/// The probability with which a Bayes factor may be larger than stated, over delta.
const FAILURE_OVER_DELTA: f64 = 10.0;

/// What the guarantee means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Meaning {
    /// The best attacker's true-positive less false-positive rate is at most this.
    pub advantage: f64,
    /// Detections at given rates of false alarms.
    pub true_positive_rates: Vec<Detection>,
    /// Except with probability `failure`, the evidence changes the odds by at most this factor.
    #[serde(serialize_with = "super::answer::number")]
    pub bayes_factor: f64,
    /// The probability with which the factor may be larger.
    pub failure: f64,
    /// Beliefs after the release, by the factor.
    pub posteriors: Vec<Belief>,
    /// Which two data sets are told apart.
    #[serde(skip)]
    relation: AdjacencyKind,
}

/// How many are found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Detection {
    /// Of those who are not there, this share is accused.
    pub false_positive_rate: f64,
    /// Of those who are, at most this share is found.
    pub at_most: f64,
}

/// What can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Belief {
    /// Before.
    pub prior: f64,
    /// After.
    pub at_most: f64,
}

impl Meaning {
    /// What the guarantee of a solved question means.
    ///
    /// # Errors
    /// What the accountant says of the tree.
    pub fn new(question: &Question, solution: &Solution) -> Result<Self, Failure> {
        Self::of_solution(question, solution).map_err(|error| question.refused(&error))
    }

    fn of_solution(question: &Question, solution: &Solution) -> Result<Self, Error> {
        let event = solve::event(question, solution);
        let delta_at = |epsilon: f64| {
            evaluate::delta(question.accountant, &event, question.relation, epsilon).map(|delta| delta.upper.min(1.0))
        };
        let failure = (FAILURE_OVER_DELTA * solution.delta).min(1.0);
        let log_factor =
            if failure == 0.0 { solution.epsilon.upper } else { of_curve::bayes_factor(failure, delta_at)? };
        // The promise itself is a point of the curve, which the search along it may miss by a little.
        let promise = Epsilon::new(solution.epsilon.upper).ok().zip(Delta::new(solution.delta).ok());
        let detection = |false_positive_rate| {
            let by_curve = of_curve::true_positive_rate(false_positive_rate, delta_at)?;
            let at_most = match promise {
                None => by_curve,
                Some((epsilon, delta)) => {
                    by_curve.min(semantics::true_positive_rate(false_positive_rate, epsilon, delta)?)
                }
            };
            Ok(Detection { false_positive_rate, at_most })
        };
        let belief = |prior| Ok(Belief { prior, at_most: semantics::posterior(prior, log_factor)? });
        Ok(Self {
            advantage: of_curve::advantage(delta_at)?,
            true_positive_rates: FALSE_POSITIVE_RATES.into_iter().map(detection).collect::<Result<_, Error>>()?,
            bayes_factor: log_factor.exp().next_up(),
            failure,
            posteriors: PRIORS.into_iter().map(belief).collect::<Result<_, Error>>()?,
            relation: question.relation,
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let question = match self.relation {
            AdjacencyKind::AddRemoveOne | AdjacencyKind::ZeroOut => "whether one record is there",
            AdjacencyKind::ReplaceOne => "which of two values one record has",
            AdjacencyKind::ChangeListLabels => "which of two labellings one list has",
        };
        let shown = |value: f64| wording::rounded_up(value, 4);
        let mut lines = vec![
            String::new(),
            format!("An attacker who knows everything else and sees the output asks {question}."),
            format!(
                "  advantage       true-positive less false-positive rate: at most {}; right about a fair coin with \
                 probability at most {}",
                shown(self.advantage),
                shown(0.5 + 0.5 * self.advantage)
            ),
        ];
        for detection in &self.true_positive_rates {
            lines.push(format!(
                "  detections      with a false-positive rate of {}, a true-positive rate of at most {}",
                detection.false_positive_rate,
                shown(detection.at_most)
            ));
        }
        let except = match self.failure {
            0.0 => String::new(),
            failure => format!(", except with probability {}", shown(failure)),
        };
        lines.push(format!("  Bayes factor    at most {}{except}", shown(self.bayes_factor)));
        for belief in &self.posteriors {
            lines.push(format!(
                "  beliefs         from {} before to at most {} after{except}",
                belief.prior,
                shown(belief.at_most)
            ));
        }
        lines.push(
            "These are bounds on any attack, whatever it knows; attacks that are known may find much less.".to_owned(),
        );
        lines.join("\n")
    }
}
