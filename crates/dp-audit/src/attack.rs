//! An attack: the score of the features, and the cut above or below which an input is accused.

use dp_mechanisms::SeededRng;
use rand::RngExt;

use crate::logistic::Logistic;
use crate::subject::Side;

/// A score with its tie-breaker, compared lexicographically.
///
/// A learned score may take few values, and the best rate may lie between two of them; a uniform tie-breaker makes every rate
/// reachable. For a score supplied by the subject, the tie-breaker is 0 and ties stay together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub(crate) score: f64,
    pub(crate) tie: f64,
}

impl Scored {
    pub(crate) fn compare(&self, other: &Self) -> core::cmp::Ordering {
        self.score.total_cmp(&other.score).then(self.tie.total_cmp(&other.tie))
    }

    /// Returns whether the score is at or above the cut.
    pub(crate) fn reaches(&self, cut: &Self) -> bool {
        self.compare(cut).is_ge()
    }
}

/// The map from features to a score.
#[derive(Debug, Clone)]
pub(crate) enum Scorer {
    /// The first feature.
    First,
    /// A trained logistic regression, with random tie-breaking.
    Learned(Logistic),
}

impl Scorer {
    pub(crate) fn score(&self, features: &[f64], rng: &mut SeededRng) -> Scored {
        let tie = if matches!(self, Self::First) { 0.0 } else { rng.random() };
        self.score_with(features, tie)
    }

    /// Returns the score with the given tie-breaker, which only a learned score uses.
    pub(crate) fn score_with(&self, features: &[f64], tie: f64) -> Scored {
        match self {
            // Normalises the sign of zero and the pattern of NaN, so that ties are detected; NaN is the largest.
            Self::First => {
                let score = features.first().copied().unwrap_or(f64::NAN);
                let score = if score.is_nan() { f64::NAN } else { score + 0.0 };
                Scored { score, tie: 0.0 }
            }
            Self::Learned(model) => Scored { score: model.score(features), tie },
        }
    }
}

/// One test of the claim: the accused input and the condition for accusing it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rule {
    /// The input whose runs should be hit more often.
    pub(crate) accused: Side,
    /// The cut.
    pub(crate) cut: Scored,
    /// True if runs at or above the cut are hits, false if runs below it are.
    pub(crate) above: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_numbers_that_are_none_tie_with_themselves_and_the_latter_are_largest() {
        let mut rng = SeededRng::new(0);
        let mut first = |score| Scorer::First.score(&[score, 7.0], &mut rng);
        let equal = |a: Scored, b: Scored| a.compare(&b).is_eq() && a.reaches(&b) && b.reaches(&a);
        assert!(equal(first(0.0), first(-0.0)));
        assert!(equal(first(f64::NAN), first(-f64::NAN)));
        assert!(first(f64::NAN).reaches(&first(f64::INFINITY)) && !first(f64::INFINITY).reaches(&first(f64::NAN)));
        assert!(first(1.0).reaches(&first(0.5)) && !first(0.5).reaches(&first(1.0)));
    }

    #[test]
    fn ties_of_a_learned_score_are_broken_at_random() {
        let model = Logistic::fit(&[0.0, 0.0, 1.0], &[0.0, 1.0, 1.0], 1);
        let mut rng = SeededRng::new(1);
        let scorer = Scorer::Learned(model);
        let cut = Scored { tie: 0.5, ..scorer.score(&[1.0], &mut rng) };
        let above = (0..1000).filter(|_| scorer.score(&[1.0], &mut rng).reaches(&cut)).count();
        // 6.2 standard deviations of Binomial(1000, 1/2): 1e-9 on each side.
        assert!(above.abs_diff(500) < 98, "{above}");
    }
}
