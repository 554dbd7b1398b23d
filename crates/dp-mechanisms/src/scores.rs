//! Scores of candidates: the input of a selection mechanism.

use core::fmt;

use crate::error::{Error, dimension};

/// One score for each of finitely many candidates; higher is better.
///
/// The number and the order of the candidates are public, the scores are not: `Debug` shows only the number. Wrap them as
/// [`Bounded`](crate::Bounded) with the largest change of any single score by one record
/// ([`LInfSensitivity`](crate::LInfSensitivity)) and pass them to [`Exponential`](crate::Exponential),
/// [`PermuteAndFlip`](crate::PermuteAndFlip) or [`NoisyMax`](crate::NoisyMax).
///
/// Scores are an aggregate of many records, so a score that is NaN or infinite is a breach of the contract by the caller: the
/// release then returns [`Error::NonFiniteInput`], draws nothing and logs nothing. This error depends on the data.
///
/// # Examples
/// ```
/// use dp_mechanisms::scores::Scores;
/// let scores = Scores::new(vec![3.0, 17.0, 5.5])?;
/// assert_eq!(scores.len(), 3);
/// assert_eq!(format!("{scores:?}"), "Scores(.., 3 candidates)");
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Clone)]
pub struct Scores(Vec<f64>);

impl Scores {
    /// Wraps scores of at least one candidate.
    ///
    /// # Errors
    /// [`Error::Length`] for no candidates, [`Error::Dimension`] for more than 2^32.
    pub fn new(scores: Vec<f64>) -> Result<Self, Error> {
        if scores.is_empty() {
            return Err(Error::Length { name: "scores", found: 0, expected: "at least 1" });
        }
        dimension(scores.len() as u64)?;
        Ok(Self(scores))
    }

    /// Returns the number of candidates, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the scores, if all are finite.
    pub(crate) fn finite(&self) -> Result<&[f64], Error> {
        if self.0.iter().all(|score| score.is_finite()) { Ok(&self.0) } else { Err(Error::NonFiniteInput) }
    }
}

impl fmt::Debug for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scores(.., {} candidates)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_checked_when() {
        assert!(matches!(Scores::new(Vec::new()), Err(Error::Length { name: "scores", found: 0, .. })));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let scores = Scores::new(vec![1.0, bad]).unwrap();
            assert_eq!(scores.finite(), Err(Error::NonFiniteInput));
        }
        assert_eq!(Scores::new(vec![-0.0, f64::MAX]).unwrap().finite(), Ok(&[-0.0, f64::MAX][..]));
    }
}
