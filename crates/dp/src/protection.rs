//! The meaning of a guarantee to an attacker, in words. No other module states it.
//!
//! Every number is a bound by [`dp_accountant::semantics`] on the curve of the release, rounded up. There is no scale from
//! strong to weak: authors disagree on the terms, and epsilon alone does not decide.

use dp_accountant::certificate::Certificate;
use dp_accountant::guarantee::Unit;
use dp_accountant::semantics::{Belief, Detection, Protection, whole_records};
use dp_accountant::{AdjacencyKind, Delta, Epsilon};
use serde::Serialize;

use crate::wording::{delta as all_digits, rounded_up};

/// Number of significant digits.
const DIGITS: i32 = 3;

/// The false-positive rate at which a short description states the true-positive rate.
const FALSE_POSITIVE_RATE: f64 = 0.01;

/// The meaning of a guarantee: [`Protection`] as JSON and as sentences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Meaning {
    /// Upper bound on the best attack's true-positive rate minus its false-positive rate.
    pub advantage: f64,
    /// True-positive rates at given false-positive rates.
    pub true_positive_rates: Vec<Detection>,
    /// Upper bound on the probability that the odds rise by a factor above `e^epsilon`.
    pub odds_beyond_epsilon: f64,
    /// Except with probability `failure`, the odds rise by at most this factor.
    #[serde(serialize_with = "crate::canonical::number")]
    pub bayes_factor: f64,
    /// The probability with which the factor may be exceeded.
    pub failure: f64,
    /// Posterior beliefs, by the factor.
    pub posteriors: Vec<Belief>,
    #[serde(skip)]
    epsilon: f64,
    #[serde(skip)]
    log_bayes_factor: f64,
    #[serde(skip)]
    question: &'static str,
}

impl Meaning {
    /// Describes `protection` under `relation` for one `unit`.
    pub fn new(protection: Protection, relation: AdjacencyKind, unit: &Unit) -> Self {
        Self {
            advantage: protection.advantage,
            true_positive_rates: protection.true_positive_rates,
            odds_beyond_epsilon: protection.odds_beyond_epsilon,
            bayes_factor: protection.log_bayes_factor.exp().next_up(),
            failure: protection.failure,
            posteriors: protection.posteriors,
            epsilon: protection.epsilon,
            log_bayes_factor: protection.log_bayes_factor,
            question: question(relation, unit),
        }
    }

    /// Returns the meaning of a private model's certificate; `None` if it claims nothing.
    pub fn of_certificate<D>(certificate: &Certificate<D>) -> Option<Self> {
        let reached = certificate.reached.filter(|_| certificate.private)?;
        let (epsilon, delta) = (reached.epsilon, reached.delta);
        let by_event =
            Epsilon::new(epsilon).and_then(|epsilon| Ok((epsilon, Delta::new(delta)?))).and_then(|(epsilon, delta)| {
                Protection::of_event(&certificate.event, certificate.adjacency, epsilon, delta)
            });
        // The statement alone, if the event has no curve: valid but weaker.
        let by_statement = || {
            let largest_loss = if delta == 0.0 { epsilon } else { f64::INFINITY };
            Protection::of_curve(epsilon, delta, largest_loss, |at| Ok(if at >= epsilon { delta } else { 1.0 }))
        };
        let protection = by_event.or_else(|_| by_statement()).ok()?;
        Some(Self::new(protection, certificate.adjacency, &certificate.unit))
    }

    /// Returns the few sentences of a report.
    pub fn short(&self) -> Vec<String> {
        let detection = self.true_positive_rates.iter().find(|found| found.false_positive_rate == FALSE_POSITIVE_RATE);
        [self.attacker(), self.guess()]
            .into_iter()
            .chain(detection.map(detected))
            .chain([raised(self.epsilon, self.odds_beyond_epsilon)])
            .collect()
    }

    /// Returns the full description, one sentence per line.
    pub fn text(&self) -> String {
        let mut lines = vec![String::new(), self.attacker()];
        let mut indented = |sentence: String| lines.push(format!("  {sentence}"));
        indented(self.guess());
        self.true_positive_rates.iter().map(detected).for_each(&mut indented);
        indented(raised(self.epsilon, self.odds_beyond_epsilon));
        if self.failure < 1.0 && self.log_bayes_factor < f64::INFINITY {
            if self.failure > 0.0 {
                indented(raised(self.log_bayes_factor, self.failure));
            }
            self.posteriors.iter().map(|belief| self.believed(belief)).for_each(&mut indented);
        }
        lines.push("These bounds hold for every attack; known attacks may achieve much less.".to_owned());
        lines.join("\n")
    }

    fn attacker(&self) -> String {
        format!(
            "An attacker sees what is released, knows everything else except the noise, and tests {}.",
            self.question
        )
    }

    fn guess(&self) -> String {
        let right = rounded_up(0.5 + 0.5 * self.advantage, DIGITS);
        format!("Where both answers are equally likely beforehand, a guess is right with probability at most {right}.")
    }

    fn believed(&self, belief: &Belief) -> String {
        let except = match self.failure {
            0.0 => String::new(),
            failure => format!(", except with probability {}", rounded_up(failure, DIGITS)),
        };
        format!(
            "A belief of {} in either becomes at most {}{except}.",
            belief.prior,
            rounded_up(belief.at_most, DIGITS)
        )
    }
}

fn detected(found: &Detection) -> String {
    format!(
        "At a false-positive rate of {} the true-positive rate is at most {}.",
        found.false_positive_rate,
        rounded_up(found.at_most, DIGITS)
    )
}

fn raised(log_factor: f64, probability: f64) -> String {
    let factor = match log_factor.exp().next_up() {
        factor if factor < f64::MAX => rounded_up(factor, DIGITS + 1),
        _ => format!("e^{}", rounded_up(log_factor, DIGITS + 1)),
    };
    match probability {
        0.0 => format!("The odds of either answer rise by a factor of at most {factor}."),
        probability => format!(
            "The odds of either answer rise by a factor above {factor} with probability at most {}.",
            rounded_up(probability, DIGITS)
        ),
    }
}

/// Returns the question that an attacker cannot answer.
fn question(relation: AdjacencyKind, unit: &Unit) -> &'static str {
    match (relation, unit) {
        (AdjacencyKind::ChangeListLabels, _) => "which of two gradings one list has",
        (AdjacencyKind::ReplaceOne, Unit::Record) => "which of two values one record has",
        (AdjacencyKind::ReplaceOne, Unit::List) => "which of two contents one list has",
        (AdjacencyKind::ReplaceOne, Unit::Document) => "which of two contents one document has",
        (AdjacencyKind::ReplaceOne, Unit::Column(_)) => "which of two sets of rows one unit has",
        (AdjacencyKind::ReplaceOne, _) => "which of two contents the protected records have",
        (_, Unit::Record) => "whether one record is there",
        (_, Unit::List) => "whether one list is there",
        (_, Unit::Document) => "whether one document is there",
        (_, Unit::Column(_)) => "whether the rows of one unit are there",
        _ => "whether the protected records are there",
    }
}

/// Returns the warning about a delta that is no protection by itself, for `n` units named by `units`; `None` for a delta
/// below `1/n`.
///
/// The judgement follows Dwork and Roth 2014, "The algorithmic foundations of differential privacy", section 2.3: see
/// [`whole_records`].
pub fn large_delta(delta: f64, n: u64, units: &str) -> Option<String> {
    let published = Delta::new(delta).map_or(n, |delta| whole_records(delta, n)).min(n);
    (published > 0).then(|| {
        format!(
            "delta = {} is not below 1/n = 1/{n}: publishing {published} of the {n} {units}, drawn at random, would \
             satisfy the guarantee too.",
            all_digits(delta)
        )
    })
}

/// The epsilon above which a guarantee promises little by itself: odds may rise by a factor of more than e^10, about 22026.
const LARGE_EPSILON: f64 = 10.0;

/// Returns the warning about an epsilon above 10; the release may protect better than its epsilon states.
pub fn large_epsilon(epsilon: f64) -> Option<String> {
    (epsilon > LARGE_EPSILON).then(|| {
        format!(
            "epsilon = {} promises little: it lets the odds rise by a factor of e^{}.",
            crate::wording::epsilon(epsilon),
            rounded_up(epsilon, DIGITS + 1)
        )
    })
}

/// Returns the warnings about an epsilon and a delta that promise little, for `n` units named by `units`, if known.
pub fn warnings(epsilon: f64, delta: f64, n: Option<u64>, units: &str) -> Vec<String> {
    large_epsilon(epsilon).into_iter().chain(n.and_then(|n| large_delta(delta, n, units))).collect()
}

/// Returns the warnings about the guarantee reached by a private model over `n` records, units or lists.
pub fn warnings_of<D>(certificate: &Certificate<D>, n: Option<u64>) -> Vec<String> {
    let Some(reached) = certificate.reached.filter(|_| certificate.private) else { return Vec::new() };
    let units = match certificate.unit {
        Unit::List | Unit::Document => "lists",
        Unit::Column(_) => "units",
        _ => "records",
    };
    warnings(reached.epsilon, reached.delta, n, units)
}

/// The guarantee for a person with several rows.
///
/// By [`Guarantee::for_group`](dp_accountant::Guarantee::for_group).
pub const SEVERAL_ROWS: &str = "Each person has one row. For a person with k rows, the guarantee has k times epsilon and \
                                k e^((k-1) epsilon) times delta.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epsilon_above_ten_is_said_to_promise_little() {
        assert_eq!((large_epsilon(10.0), large_epsilon(0.1)), (None, None));
        assert!(large_epsilon(12.5).unwrap().contains("a factor of e^12.5"));
        assert_eq!(warnings(11.0, 0.5, Some(10), "records").len(), 2);
        assert_eq!(warnings(11.0, 0.5, None, "records").len(), 1);
    }

    #[test]
    fn a_delta_is_judged_by_the_number_of_records() {
        for (delta, n) in [(0.0, u64::MAX), (1e-6, 999_999), (0.000_999, 1000), (0.5, 1)] {
            assert_eq!(large_delta(delta, n, "records"), None, "{delta} {n}");
        }
        for (delta, n, published) in [(1e-3, 1000, 1), (0.01, 1000, 10), (0.999_999_9, 50, 49), (1.0, 50, 50)] {
            let said = large_delta(delta, n, "records").unwrap();
            assert!(said.contains(&format!("publishing {published} of the {n} records")), "{said}");
        }
    }
}
