//! Scores of documents by a ranker.

use dp_rank::ranking::LARGEST_GRADE;
use dp_rank::scorer::Scorer;
use dp_rank::{Error, QueryList, QueryLists};

use super::{AnyScorer, Ranker};

/// Scores lists one after another, in buffers as large as the longest list so far.
#[derive(Debug)]
pub struct ListScores<'r> {
    ranker: &'r Ranker,
    scorer: AnyScorer,
    workspace: <AnyScorer as Scorer>::Workspace,
    scores: Vec<f64>,
}

impl Ranker {
    /// Returns the scores of documents by this ranker.
    ///
    /// # Errors
    /// A number of weights that does not fit the scorer, or a scorer without features or units; neither occurs for a ranker
    /// from a file.
    pub fn scores(&self) -> Result<ListScores<'_>, Error> {
        let scorer = self.scorer.scorer(self.width)?;
        let (found, expected) = (self.weights.len(), scorer.parameters());
        if found != expected {
            return Err(Error::Shape { what: "the vector of weights", found, expected });
        }
        Ok(ListScores { ranker: self, scorer, workspace: Default::default(), scores: Vec::new() })
    }
}

impl ListScores<'_> {
    /// Returns the scores of a list's documents. Features are mapped to [0, 1] first, if the ranker was trained so. Grades are not
    /// used.
    ///
    /// # Errors
    /// Documents of another width ([`Error::Shape`]), and a score that is NaN ([`Error::NanScore`]).
    pub fn of(&mut self, list: QueryList<'_>) -> Result<&[f64], Error> {
        let (found, expected) = (list.features().width(), self.scorer.features());
        if found != expected {
            return Err(Error::Shape { what: "a document", found, expected });
        }
        let mut features = list.features();
        let mut alone;
        if self.ranker.normalise_features {
            alone = QueryLists::new(found, LARGEST_GRADE)?;
            alone.push("", features.values(), list.grades())?;
            alone.normalise_features();
            features = alone.list(0).features();
        }
        self.scores.resize(features.documents(), 0.0);
        self.scorer.scores(&self.ranker.weights, features, &mut self.workspace, &mut self.scores);
        match self.scores.iter().position(|score| score.is_nan()) {
            Some(document) => Err(Error::NanScore { document }),
            None => Ok(&self.scores),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_scored_is_an_error() {
        let mut lists = QueryLists::new(2, 2).unwrap();
        lists.push("a", &[1.0, 2.0, 1e308, 1e308], &[0, 1]).unwrap();
        assert_eq!(Ranker::linear(&[1.0, 0.5]).scores().unwrap().of(lists.list(0)), Ok(&[2.0, 1.5e308][..]));
        let of = |ranker: Ranker| ranker.scores()?.of(lists.list(0)).map(<[f64]>::to_vec);
        assert_eq!(of(Ranker::linear(&[10.0, -10.0])), Err(Error::NanScore { document: 1 }));
        assert!(matches!(of(Ranker::linear(&[1.0])), Err(Error::Shape { what: "a document", found: 2, expected: 1 })));
        assert!(matches!(
            of(Ranker { width: 2, ..Ranker::linear(&[1.0]) }),
            Err(Error::Shape { what: "the vector of weights", .. })
        ));
        assert!(of(Ranker::linear(&[])).is_err());
    }
}
