//! The file of a ranker: model, certificate and the hashes that bind them, as for other models ([`crate::sealed`]).

use dp_accountant::certificate::{Assumption, Derivation};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_rank::plackett_luce::prefixes;
use dp_rank::scorer::{Activation, Linear, Mlp, Scorer as _};
use dp_rank::spectral::Normalise;
use dp_rank::train::{RankingDerivation, TrainError};
use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::error::Error;
use crate::protection;
use crate::sealed::{self, Content, to_value};

mod any;
mod scores;

pub use any::{AnyLoss, AnyScorer};
pub use scores::ListScores;

/// The format of the model member.
pub const SCHEMA: &str = "dp.ranker/1";

/// A released ranker, with everything needed to score the documents of new lists.
///
/// # Formula
/// ```text
/// linear  f(x) = Σ_j weights[j] x_j
/// mlp     f(x) = Σ_h w2[h] a(Σ_j W1[h, j] x_j + b1[h]),     weights = W1 row after row, b1, w2
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranker {
    /// [`SCHEMA`].
    pub schema: String,
    /// The scoring function of documents.
    pub scorer: ScorerShape,
    /// The loss that it was trained with.
    pub loss: NamedLoss,
    /// The format of the lists.
    pub input: ListForm,
    /// The number of features of a document.
    pub width: usize,
    /// The declared largest grade of a document.
    pub largest_grade: u32,
    /// True if each list's features are mapped to [0, 1] before scoring.
    pub normalise_features: bool,
    /// The released weights.
    pub weights: Vec<f64>,
}

/// The scoring function of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScorerShape {
    /// A weighted sum of features.
    Linear {},
    /// One hidden layer.
    Mlp {
        /// Number of hidden units.
        hidden: usize,
        /// The activation function.
        activation: NamedActivation,
    },
}

/// The activation function of a hidden unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedActivation {
    /// max(h, 0).
    #[default]
    Relu,
    /// tanh h.
    Tanh,
}

impl From<NamedActivation> for Activation {
    fn from(activation: NamedActivation) -> Self {
        match activation {
            NamedActivation::Relu => Self::Relu,
            NamedActivation::Tanh => Self::Tanh,
        }
    }
}

/// A loss of lists, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum NamedLoss {
    /// Minus the expected NDCG of the first `k` positions.
    Bayesrank {
        /// Number of positions.
        k: usize,
    },
    /// The cross entropy of the first `k` positions.
    Listnet {
        /// Number of positions.
        k: usize,
    },
    /// The negative log-likelihood of the order of grades.
    Listmle {},
}

impl NamedLoss {
    /// Returns the loss; `None` for k = 0.
    pub fn loss(self) -> Option<AnyLoss> {
        AnyLoss::new(self)
    }

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bayesrank { .. } => "bayesrank",
            Self::Listnet { .. } => "listnet",
            Self::Listmle {} => "listmle",
        }
    }

    /// Returns its number of positions, if it has one.
    pub fn k(self) -> Option<usize> {
        match self {
            Self::Bayesrank { k } | Self::Listnet { k } => Some(k),
            Self::Listmle {} => None,
        }
    }

    /// Returns whether it breaks ties by the order of documents. Documents are then shuffled before training, because their order
    /// in the file would be learned.
    pub fn depends_on_order(self) -> bool {
        matches!(self, Self::Listmle {})
    }

    /// Returns the number of permutations of `documents` documents that one evaluation enumerates: `n! / (n - k)!` for ListNet
    /// with k > 1, otherwise 1. Infinity on overflow.
    pub fn orders(self, documents: usize) -> f64 {
        match self {
            Self::Listnet { k: k @ 2.. } => prefixes(documents, k),
            _ => 1.0,
        }
    }
}

/// The file format of lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ListForm {
    /// `grade qid:ID index:value …`.
    Letor {},
    /// CSV with a header.
    Csv {
        /// The column of query identifiers.
        query: String,
        /// The column of grades.
        label: String,
        /// The feature columns, in the order of the weights.
        features: Vec<String>,
    },
}

impl ListForm {
    /// Returns the name of the format.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Letor {} => "LETOR",
            Self::Csv { .. } => "CSV",
        }
    }
}

impl ScorerShape {
    /// The default number of hidden units.
    pub const HIDDEN: usize = 256;

    /// Returns a network of [`HIDDEN`](Self::HIDDEN) units with the default activation.
    pub fn mlp() -> Self {
        Self::Mlp { hidden: Self::HIDDEN, activation: NamedActivation::default() }
    }

    /// Returns the scorer of documents with `width` features.
    ///
    /// # Errors
    /// No features or no hidden units.
    pub fn scorer(self, width: usize) -> Result<AnyScorer, dp_rank::Error> {
        Ok(match self {
            Self::Linear {} => AnyScorer::Linear(Linear::new(width)?),
            Self::Mlp { hidden, activation } => AnyScorer::Mlp(Mlp::new(width, hidden, activation.into())?),
        })
    }

    /// Returns the number of parameters; `None` if it overflows.
    pub fn parameters(self, width: usize) -> Option<usize> {
        match self {
            Self::Linear {} => Some(width),
            Self::Mlp { hidden, .. } => width.checked_add(2)?.checked_mul(hidden),
        }
    }
}

impl Ranker {
    /// Returns the SHA-256 of the canonical form.
    ///
    /// # Errors
    /// A weight that JSON cannot hold.
    pub fn sha256(&self) -> Result<String, Error> {
        Ok(canonical::sha256(&to_value(self)?))
    }

    /// Checks that the parts are consistent.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.schema != SCHEMA {
            return Err("the ranker is of another format");
        }
        // Counted before a scorer of that size is created.
        if self.scorer.parameters(self.width) != Some(self.weights.len()) {
            return Err("weights, width and scorer do not fit each other");
        }
        let scorer = self.scorer.scorer(self.width).map_err(|_| "the scorer has no feature or no unit")?;
        if scorer.parameters() != self.weights.len() {
            return Err("weights, width and scorer do not fit each other");
        }
        if self.loss.loss().is_none() {
            return Err("the loss needs at least one position");
        }
        if !(1..=dp_rank::ranking::LARGEST_GRADE).contains(&self.largest_grade) {
            return Err("the largest grade is out of range");
        }
        match &self.input {
            ListForm::Csv { features, .. } if features.len() != self.width => {
                Err("the names of the features do not fit the width")
            }
            _ => Ok(()),
        }
    }
}

/// The derivation of a ranker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "recipe", rename_all = "kebab-case")]
pub enum RankerDerivation {
    /// Training with privacy.
    PrivateRanking(PrivateRanker),
    /// Training without privacy.
    NonPrivateRanking(PlainRanking),
}

/// A training with privacy: the derivation of its noise, and the trained model.
// Unknown members are rejected on reading, by comparison with the text that would be written: `flatten` rules out
// `deny_unknown_fields`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrivateRanker {
    /// The derivation of the noise.
    #[serde(flatten)]
    pub ranking: RankingDerivation,
    /// The trained model; omitted by certificates of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<TrainedModel>,
}

/// The settings that a ranker was trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedModel {
    /// The loss, with its number of positions.
    pub loss: NamedLoss,
    /// The scoring function of documents.
    pub scorer: ScorerShape,
    /// True if each time a list is drawn, a single random document of its largest grade keeps that grade.
    pub thin: bool,
    /// The declared largest grade of a document.
    pub largest_grade: u32,
    /// True if each list's features are mapped to [0, 1] before scoring.
    pub normalise_features: bool,
    /// The condition under which weight matrices are divided by their spectral norms, if at all.
    pub normalise: Option<NamedNormalise>,
}

/// The condition under which weight matrices are divided by their spectral norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedNormalise {
    /// After every update.
    Always,
    /// After updates that leave a norm above 1.
    AboveOne,
}

impl From<Normalise> for NamedNormalise {
    fn from(normalise: Normalise) -> Self {
        match normalise {
            Normalise::Always => Self::Always,
            Normalise::AboveOne => Self::AboveOne,
        }
    }
}

impl TrainedModel {
    /// Returns whether these settings agree with those of the ranker.
    pub fn is_of(&self, ranker: &Ranker) -> bool {
        let Self { loss, scorer, largest_grade, normalise_features, thin: _, normalise: _ } = *self;
        (loss, scorer, largest_grade, normalise_features)
            == (ranker.loss, ranker.scorer, ranker.largest_grade, ranker.normalise_features)
    }
}

/// A training without privacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainRanking {
    /// Number of lists.
    pub lists: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// Number of lists in a batch.
    pub batch_size: u64,
    /// Number of updates.
    pub updates: u64,
}

impl Derivation for RankerDerivation {
    type Error = TrainError;

    fn event(&self) -> Result<DpEvent, TrainError> {
        match self {
            Self::PrivateRanking(private) => private.ranking.event(),
            Self::NonPrivateRanking(_) => Ok(DpEvent::NonPrivate),
        }
    }

    fn adjacency(&self) -> AdjacencyKind {
        match self {
            Self::PrivateRanking(private) => private.ranking.adjacency(),
            Self::NonPrivateRanking(_) => AdjacencyKind::ChangeListLabels,
        }
    }

    fn assumptions(&self) -> Vec<Assumption> {
        match self {
            Self::PrivateRanking(private) => private.ranking.assumptions(),
            Self::NonPrivateRanking(_) => Vec::new(),
        }
    }
}

/// The file of a ranker.
pub type RankerFile = sealed::File<Ranker, RankerDerivation>;

impl Content for Ranker {
    const SCHEMA: &'static str = SCHEMA;

    fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn checked(&self) -> Result<(), Error> {
        self.check().map_err(|why| malformed(why).at("model"))
    }
}

impl RankerFile {
    /// Returns the warnings about an epsilon or delta that promises little.
    pub fn warnings(&self) -> Vec<String> {
        let lists = match &self.certificate.derivation {
            RankerDerivation::PrivateRanking(private) => Some(private.ranking.lists),
            RankerDerivation::NonPrivateRanking(_) => None,
        };
        protection::warnings_of(&self.certificate, lists)
    }
}

pub(crate) fn malformed(message: impl Into<String>) -> Error {
    sealed::malformed(message, SCHEMA)
}

#[cfg(test)]
impl Ranker {
    /// Returns a weighted sum of features, for tests.
    pub(crate) fn linear(weights: &[f64]) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            scorer: ScorerShape::Linear {},
            loss: NamedLoss::Listmle {},
            input: ListForm::Letor {},
            width: weights.len(),
            largest_grade: 1,
            normalise_features: false,
            weights: weights.to_vec(),
        }
    }
}
