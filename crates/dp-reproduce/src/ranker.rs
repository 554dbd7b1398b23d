//! A ranker of documents as data: everything that identifies a run, and its measurements.

mod measure;
mod train;

use core::fmt;

pub use measure::{NDCG_AT, Ranked};
pub use train::epsilon_of;
pub(crate) use train::run;

use crate::dataset::DataSet;

/// δ of the chapter.
pub const DELTA: f64 = 1e-4;

/// The scoring function of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A linear function of the features, starting from weights of 0.
    Linear,
    /// A network with one hidden layer of rectified linear units, starting from random weights independent of private data.
    Network {
        /// Number of hidden units.
        hidden: u32,
    },
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linear => f.write_str("linear"),
            Self::Network { hidden } => write!(f, "network of {hidden}"),
        }
    }
}

/// A loss for private training of rankers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The expected NDCG of the first position.
    BayesRank,
    /// The cross entropy of the first position.
    ListNet,
    /// The negative log-likelihood of the sorted grades.
    ListMle,
}

impl Loss {
    /// All losses.
    pub const ALL: [Self; 3] = [Self::BayesRank, Self::ListNet, Self::ListMle];

    /// Returns the name in pictures and tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::BayesRank => "BayesRank",
            Self::ListNet => "ListNet",
            Self::ListMle => "ListMLE",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BayesRank => "bayes-rank",
            Self::ListNet => "list-net",
            Self::ListMle => "list-mle",
        })
    }
}

/// The amount of noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// The noise multiplier: noise over the largest distance `2C` between the contributions of a list under two vectors of
    /// grades.
    Multiplier(f64),
    /// The noise that this epsilon requires, at [`DELTA`].
    Epsilon(f64),
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multiplier(multiplier) => write!(f, "noise {multiplier}"),
            Self::Epsilon(epsilon) => write!(f, "epsilon {epsilon} delta {DELTA}"),
        }
    }
}

/// The clipping norm C of a list's gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clipping {
    /// A fixed norm.
    At(f64),
    /// Half of the largest [sensitivity](dp_rank::sensitivity) of a training list under BayesRank at the starting weights: a
    /// function of documents and starting weights alone, which are public. No gradient is longer there.
    HalfSensitivity,
}

impl fmt::Display for Clipping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(norm) => write!(f, "clipped at {norm}"),
            Self::HalfSensitivity => f.write_str("clipped at half the first sensitivity"),
        }
    }
}

/// The ranking method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Documents in random order, without training.
    RandomOrder,
    /// LambdaRank, without privacy.
    LambdaRank,
    /// Descent on a loss, without privacy.
    NonPrivate(Loss),
    /// Descent with clipped gradients and noise on every step, and batches sampled list by list.
    Private {
        /// The loss of a list.
        loss: Loss,
        /// The amount of noise.
        noise: Noise,
        /// The clipping norm.
        clipping: Clipping,
    },
}

impl fmt::Display for Method {
    /// Formats the loss or method, without the amount of noise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RandomOrder => f.write_str("random-order"),
            Self::LambdaRank => f.write_str("lambda-rank"),
            Self::NonPrivate(loss) | Self::Private { loss, .. } => loss.fmt(f),
        }
    }
}

/// A run of a ranker except its repetition: its metrics after a given number of updates.
///
/// One training measures all points of its course, on each of five folds: four parts of the lists for training and the fifth
/// for ranking, in turn. The result is the mean over the folds.
///
/// # Examples
/// ```
/// use dp_reproduce::ranker::{Loss, Method, RankerSetting, Shape};
/// use dp_reproduce::{Cell, DataSet};
/// let setting = RankerSetting::new(DataSet::Mq2008, Shape::Linear, Method::NonPrivate(Loss::ListNet));
/// let early = RankerSetting { after: 100, ..setting };
/// assert_ne!(Cell::new(setting, 0).key(), Cell::new(early, 0).key());
/// assert_eq!(Cell::new(setting, 0).seed(), Cell::new(early, 0).seed());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankerSetting {
    /// The lists for training and ranking.
    pub data: DataSet,
    /// The scoring function.
    pub shape: Shape,
    /// The ranking method.
    pub method: Method,
    /// True if weight matrices are divided by their spectral norms at the start and after every update.
    pub normalised: bool,
    /// Number of lists in a batch, on average if batches are sampled list by list.
    pub batch_size: u64,
    /// Number of updates of the whole training.
    pub updates: u64,
    /// The initial step size for a mean of gradients; later three quarters, half and a quarter of it.
    pub step: f64,
    /// Number of updates after which this is measured.
    pub after: u64,
}

impl RankerSetting {
    /// Creates the setting of the chapter: 400 updates with batches of 10, measured after the last; an initial step size of
    /// 1, or 0.1 for ListMLE and LambdaRank, for the mean of a batch's gradients, which is 0.1 and 0.01 for their sum.
    pub fn new(data: DataSet, shape: Shape, method: Method) -> Self {
        let step = match method {
            Method::LambdaRank | Method::NonPrivate(Loss::ListMle) | Method::Private { loss: Loss::ListMle, .. } => 0.1,
            _ => 1.0,
        };
        Self { data, shape, method, normalised: false, batch_size: 10, updates: 400, step, after: 400 }
    }

    /// Returns the end point of the training, which is the same for all its points.
    #[must_use]
    pub fn course(self) -> Self {
        Self { after: self.updates, ..self }
    }

    /// Returns the columns of a record that identify the run: data, algorithm, loss, λ, privacy, tuning, passes, batch size,
    /// step, rows. Updates take the place of passes.
    pub(crate) fn columns(&self) -> [String; 10] {
        let (algorithm, loss) = match self.method {
            Method::RandomOrder => ("random-order", String::new()),
            learns => ("ranker", learns.to_string()),
        };
        let privacy = match self.method {
            Method::Private { noise, clipping, .. } => format!("{noise} {clipping}"),
            _ => "none".to_owned(),
        };
        let normalised = if self.normalised { " normalised" } else { "" };
        [
            self.data.to_string(),
            format!("{algorithm} {}{normalised}", self.shape),
            loss,
            "0".to_owned(),
            privacy,
            "given".to_owned(),
            self.after.to_string(),
            self.batch_size.to_string(),
            self.step.to_string(),
            String::new(),
        ]
    }
}

impl fmt::Display for RankerSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data {}; ranker {}; ", self.data, self.shape)?;
        match self.method {
            Method::RandomOrder => f.write_str("random order")?,
            Method::LambdaRank => f.write_str("loss lambda-rank; privacy none")?,
            Method::NonPrivate(loss) => write!(f, "loss {loss}; privacy none")?,
            Method::Private { loss, noise, clipping } => write!(f, "loss {loss}; privacy {noise}; {clipping}")?,
        }
        f.write_str(if self.normalised { "; spectral norms 1" } else { "" })?;
        write!(f, "; batch {}; step {}; after {} of {} updates", self.batch_size, self.step, self.after, self.updates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;

    #[test]
    fn every_change_changes_the_key_and_only_the_point_keeps_the_seed() {
        let noisy = |loss, noise, clipping| Method::Private { loss, noise, clipping };
        let method = noisy(Loss::BayesRank, Noise::Multiplier(1.5), Clipping::At(0.1));
        let base = RankerSetting::new(DataSet::Mq2008, Shape::Linear, method);
        let of = |method| RankerSetting { method, ..base };
        let changed = [
            base,
            RankerSetting { data: DataSet::Mq2007, ..base },
            RankerSetting { data: DataSet::MadeUpLists { lists: 5 }, ..base },
            RankerSetting { data: DataSet::MadeUpLists { lists: 6 }, ..base },
            RankerSetting { shape: Shape::Network { hidden: 256 }, ..base },
            RankerSetting { shape: Shape::Network { hidden: 255 }, ..base },
            of(Method::RandomOrder),
            of(Method::LambdaRank),
            of(Method::NonPrivate(Loss::BayesRank)),
            of(Method::NonPrivate(Loss::ListNet)),
            of(Method::NonPrivate(Loss::ListMle)),
            of(noisy(Loss::ListNet, Noise::Multiplier(1.5), Clipping::At(0.1))),
            of(noisy(Loss::BayesRank, Noise::Multiplier(2.0), Clipping::At(0.1))),
            of(noisy(Loss::BayesRank, Noise::Epsilon(1.5), Clipping::At(0.1))),
            of(noisy(Loss::BayesRank, Noise::Multiplier(1.5), Clipping::At(0.2))),
            of(noisy(Loss::BayesRank, Noise::Multiplier(1.5), Clipping::HalfSensitivity)),
            RankerSetting { normalised: true, ..base },
            RankerSetting { batch_size: 11, ..base },
            RankerSetting { updates: 401, ..base },
            RankerSetting { step: 1.5, ..base },
        ];
        let unique = |mut values: Vec<String>| {
            let count = values.len();
            values.sort();
            values.dedup();
            assert_eq!(values.len(), count);
        };
        let early = RankerSetting { after: 399, ..base };
        let all = changed.iter().chain([&early]);
        unique(all.map(|&setting| Cell::new(setting, 0).key()).chain([Cell::new(base, 1).key()]).collect());
        let seeds = changed.iter().map(|&setting| Cell::new(setting, 0).seed().to_string());
        unique(seeds.chain([Cell::new(base, 1).seed().to_string()]).collect());
        assert_eq!(Cell::new(early, 0).seed(), Cell::new(base, 0).seed());
        assert_eq!(
            early.to_string(),
            "data mq2008; ranker linear; loss bayes-rank; privacy noise 1.5; clipped at 0.1; batch 10; step 1; \
             after 399 of 400 updates"
        );
        assert!(changed.iter().all(|setting| !setting.columns().join("").contains(',')));
    }
}
