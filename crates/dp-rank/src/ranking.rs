//! One list in the order of its scores.

use crate::error::Error;

/// The largest accepted grade: its gain is still exactly representable.
pub const LARGEST_GRADE: u32 = 52;

/// The labels of one list in ranked order: best score first.
///
/// # Ties
/// Documents of equal score keep the given order (the sort is stable; `-0.0` equals `0.0`). Metrics of a scorer with many ties
/// thus depend on the order of the file; shuffle the lists first if that matters.
///
/// # Examples
/// ```
/// use dp_rank::Ranking;
/// let ranking = Ranking::new(&[1.0, 3.0, 1.0], &[2, 0, 1])?;
/// assert_eq!(ranking.order(), [1, 0, 2]);
/// assert_eq!(ranking.labels(), [0, 2, 1]);
/// # Ok::<(), dp_rank::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    order: Vec<usize>,
    labels: Vec<u32>,
}

impl Ranking {
    /// Ranks documents by score, descending.
    ///
    /// # Shapes
    /// `scores[i]` and `labels[i]` belong to document `i` of the list.
    ///
    /// # Errors
    /// If the list is empty, the lengths differ, a score is NaN (infinities are ordered like any number) or a grade is above
    /// [`LARGEST_GRADE`].
    pub fn new(scores: &[f64], labels: &[u32]) -> Result<Self, Error> {
        if scores.len() != labels.len() {
            return Err(Error::LengthMismatch { scores: scores.len(), labels: labels.len() });
        }
        if scores.is_empty() {
            return Err(Error::EmptyList);
        }
        if let Some(document) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::NanScore { document });
        }
        if let Some(document) = labels.iter().position(|&label| label > LARGEST_GRADE) {
            return Err(Error::GradeTooLarge { document, label: labels[document], limit: LARGEST_GRADE });
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        // Adding 0.0 turns -0.0, which `total_cmp` orders below 0.0, into 0.0.
        order.sort_by(|&a, &b| (scores[b] + 0.0).total_cmp(&(scores[a] + 0.0)));
        let labels = order.iter().map(|&document| labels[document]).collect();
        Ok(Self { order, labels })
    }

    /// Returns the documents' positions in the given list, best first.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the labels in ranked order.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_keep_their_order_and_signed_zeros_tie() {
        let ranking = Ranking::new(&[0.0, -0.0, 1.0, 0.0], &[0, 1, 2, 3]).unwrap();
        assert_eq!(ranking.order(), [2, 0, 1, 3]);
    }

    #[test]
    fn infinities_are_ordered_and_nan_is_refused() {
        let ranking = Ranking::new(&[f64::NEG_INFINITY, 1e300, f64::INFINITY], &[0, 1, 2]).unwrap();
        assert_eq!(ranking.order(), [2, 1, 0]);
        assert_eq!(Ranking::new(&[0.0, f64::NAN], &[0, 1]), Err(Error::NanScore { document: 1 }));
    }

    #[test]
    fn malformed_lists_are_typed_errors() {
        assert_eq!(Ranking::new(&[], &[]), Err(Error::EmptyList));
        assert_eq!(Ranking::new(&[1.0], &[0, 1]), Err(Error::LengthMismatch { scores: 1, labels: 2 }));
        let error = Ranking::new(&[1.0, 2.0], &[0, 60]).unwrap_err();
        assert_eq!(error.to_string(), "the label of document 1 is 60; grades above 52 are refused");
    }
}
