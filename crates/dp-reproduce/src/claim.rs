//! Claims of a paper about a figure, as comparisons of its points, and their verdicts from measurements.

use crate::figure::Figure;
use crate::results::{Place, Results};
use crate::statistics::{Sample, number};

/// Number of standard errors that a difference must exceed.
const STANDARD_ERRORS: f64 = 2.0;

/// A claim: comparisons that should hold, all of them or at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The claim in words.
    pub statement: String,
    /// The number of comparisons that should hold.
    pub quantifier: Quantifier,
    /// The comparisons.
    pub comparisons: Vec<Comparison>,
}

/// The number of comparisons that must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// All.
    Every,
    /// At least one, as in "up to four times".
    Some,
}

/// Two points and their claimed relation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The point that the claim is about.
    pub left: Place,
    /// The claimed relation.
    pub relation: Relation,
    /// The point that it is compared with.
    pub right: Place,
}

/// The relation of two means, tested at two standard errors of `left - factor · right`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Relation {
    /// Significantly more: `left > factor · right + margin`, beyond the uncertainty.
    MoreThan {
        /// The factor on the right side.
        factor: f64,
        /// The margin added to it.
        margin: f64,
    },
    /// Not significantly more: `left ≤ factor · right + margin`, within the uncertainty.
    AtMost {
        /// The factor on the right side.
        factor: f64,
        /// The margin added to it.
        margin: f64,
    },
    /// At most `tolerance` apart, within the uncertainty, of which at most `tolerance` counts: imprecise values are not
    /// considered close.
    CloseTo {
        /// The largest distance.
        tolerance: f64,
    },
    /// Significantly beyond a share of the way from a third point to the right side: `left > start + share (right - start)`.
    PartOfTheWay {
        /// The share; 1 is the right side.
        share: f64,
        /// The third point, at share 0.
        start: Place,
    },
}

impl Relation {
    /// Significantly more, without factor or margin.
    pub const MORE: Self = Self::MoreThan { factor: 1.0, margin: 0.0 };

    /// Returns the margin by which the relation holds; positive if it does. `start` is the measurement at the third point, if
    /// there is one.
    fn slack(self, left: &Sample, right: &Sample, start: Option<&Sample>) -> f64 {
        let noise = |factor: f64| STANDARD_ERRORS * left.std_error().hypot(factor * right.std_error());
        match self {
            Self::PartOfTheWay { share, .. } => start.map_or(f64::NAN, |start| {
                let line = (1.0 - share) * start.mean + share * right.mean;
                let of_start = STANDARD_ERRORS * (1.0 - share) * start.std_error();
                left.mean - line - noise(share).hypot(of_start)
            }),
            Self::MoreThan { factor, margin } => left.mean - factor * right.mean - margin - noise(factor),
            Self::AtMost { factor, margin } => factor * right.mean + margin - left.mean + noise(factor),
            Self::CloseTo { tolerance } => tolerance + noise(1.0).min(tolerance) - (left.mean - right.mean).abs(),
        }
    }

    /// Returns the third point, if there is one.
    fn start(self) -> Option<Place> {
        match self {
            Self::PartOfTheWay { start, .. } => Some(start),
            _ => None,
        }
    }
}

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every comparison holds, or one if one suffices.
    Holds,
    /// Some comparisons hold.
    HoldsInPart,
    /// No comparison holds.
    DoesNotHold,
    /// No comparison has been run.
    NotMeasured,
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::HoldsInPart => "holds in part",
            Self::DoesNotHold => "does not hold",
            Self::NotMeasured => "not measured",
        })
    }
}

/// A verdict with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// Number of comparisons that hold.
    pub confirmed: usize,
    /// Number of comparisons that could be made.
    pub compared: usize,
    /// The sentence for readers.
    pub sentence: String,
}

impl Claim {
    /// Claims that `left` has this relation to `right`, by name, wherever a panel has both at the same x.
    pub fn between(
        statement: &str,
        panels: &[crate::figure::Panel],
        left: &str,
        relation: Relation,
        right: &str,
        quantifier: Quantifier,
    ) -> Self {
        let mut comparisons = Vec::new();
        for (panel, contents) in panels.iter().enumerate() {
            let find = |name: &str| contents.series.iter().position(|series| series.name == name);
            let (Some(one), Some(other)) = (find(left), find(right)) else { continue };
            for (point, here) in contents.series[one].points.iter().enumerate() {
                let matching = contents.series[other].points.iter().position(|there| there.x == here.x);
                if let Some(matching) = matching {
                    let left = Place { panel, series: one, point };
                    comparisons.push(Comparison {
                        left,
                        relation,
                        right: Place { series: other, point: matching, ..left },
                    });
                }
            }
        }
        Self { statement: statement.to_owned(), quantifier, comparisons }
    }

    /// Judges the claim by the measurements.
    pub fn judge(&self, results: &Results<'_>) -> Finding {
        let (mut outcomes, mut missing): (Vec<(f64, String)>, usize) = (Vec::new(), 0);
        for comparison in &self.comparisons {
            let third = comparison.relation.start();
            let start = third.and_then(|place| results.at(place)).map(|measured| measured.sample);
            let (Some(left), Some(right)) = (results.at(comparison.left), results.at(comparison.right)) else {
                missing += 1;
                continue;
            };
            if third.is_some() && start.is_none() {
                missing += 1;
                continue;
            }
            let slack = comparison.relation.slack(&left.sample, &right.sample, start.as_ref());
            let from = third.zip(start).map(|(place, sample)| {
                format!("{}, {sample}, and ", name_beside(results.figure, comparison.left, place))
            });
            let text = format!(
                "{}, {} against {}{}, {}",
                name(results.figure, comparison.left),
                left.sample,
                from.unwrap_or_default(),
                name_beside(results.figure, comparison.left, comparison.right),
                right.sample
            );
            outcomes.push((slack, text));
        }
        // A NaN slack (of two infinities) confirms nothing.
        let confirmed = outcomes.iter().filter(|(slack, _)| *slack > 0.0).count();
        let compared = outcomes.len();
        let verdict = match (compared, confirmed, self.quantifier) {
            (0, ..) => Verdict::NotMeasured,
            (_, 0, _) => Verdict::DoesNotHold,
            (_, _, Quantifier::Some) => Verdict::Holds,
            // Missing comparisons do not confirm the claim either.
            (compared, confirmed, _) if compared == confirmed && missing == 0 => Verdict::Holds,
            _ => Verdict::HoldsInPart,
        };
        outcomes.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut sentence = format!("\"{}\": **{verdict}**", self.statement);
        if let (Some((least, worst)), Some((_, best))) = (outcomes.first(), outcomes.last()) {
            sentence.push_str(&format!(
                " ({confirmed} of {compared} comparisons at {STANDARD_ERRORS} standard errors). Most in favour: {best}."
            ));
            if compared > 1 && self.quantifier == Quantifier::Every {
                let heading = if *least > 0.0 { "Least in favour" } else { "Most against" };
                sentence.push_str(&format!(" {heading}: {worst}."));
            }
        } else {
            sentence.push('.');
        }
        if missing > 0 {
            sentence.push_str(&format!(" Comparisons without a result: {missing}."));
        }
        Finding { verdict, confirmed, compared, sentence }
    }
}

/// Formats a point as "MNIST, convex: Ours at epsilon = 0.1".
fn name(figure: &Figure, place: Place) -> String {
    let Some(panel) = figure.panels.get(place.panel) else { return String::new() };
    format!("{}: {}", panel.title, name_of_point(figure, place))
}

/// Does the same without the parts that both sides share.
fn name_beside(figure: &Figure, left: Place, right: Place) -> String {
    if left.panel != right.panel { name(figure, right) } else { name_of_point(figure, right) }
}

fn name_of_point(figure: &Figure, place: Place) -> String {
    let panel = figure.panels.get(place.panel);
    let series = panel.and_then(|panel| Some((panel, panel.series.get(place.series)?)));
    let Some((panel, series)) = series else { return String::new() };
    let x = series.points.get(place.point).map(|point| number(point.x)).unwrap_or_default();
    format!("{} at {} = {x}", series.name, panel.x.label)
}

#[cfg(test)]
mod tests;
