//! A ranker of documents as data: everything that identifies a run, and what is measured of it.

mod measure;
mod train;

use core::fmt;

pub use measure::{NDCG_AT, Ranked};
pub use train::epsilon_of;
pub(crate) use train::run;

use crate::dataset::DataSet;

/// δ of the chapter.
pub const DELTA: f64 = 1e-4;

/// What gives documents their scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A weighted sum of the features, from weights of 0.
    Linear,
    /// A network with one hidden layer of rectified units, from random weights that nothing private has a part in.
    Network {
        /// Hidden units.
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

/// A loss that rankers may learn by privately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The expected NDCG of the first position.
    BayesRank,
    /// The cross entropy of the first position.
    ListNet,
    /// The likelihood of the sorted grades.
    ListMle,
}

impl Loss {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BayesRank, Self::ListNet, Self::ListMle];

    /// The name in pictures and tables.
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

/// How much noise there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// So many times the distance between what two vectors of grades can make of a list's share, `2C`.
    Multiplier(f64),
    /// As much as this epsilon needs, at [`DELTA`].
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

/// C: the norm that a list's gradient is scaled to at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clipping {
    /// This.
    At(f64),
    /// Half of the largest [sensitivity](dp_rank::sensitivity) of a list under BayesRank where training starts, over the
    /// lists that are trained on: of documents and starting weights alone, which are public. There, no gradient is longer.
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

/// What ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Nothing: documents in random order.
    RandomOrder,
    /// LambdaRank, without privacy.
    LambdaRank,
    /// Descent on a loss, without privacy.
    NonPrivate(Loss),
    /// The same with clipped gradients and noise on every step: batches drawn list by list.
    Private {
        /// Of a list.
        loss: Loss,
        /// How much.
        noise: Noise,
        /// To which norm.
        clipping: Clipping,
    },
}

impl fmt::Display for Method {
    /// What it learns by: not how much noise there is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RandomOrder => f.write_str("random-order"),
            Self::LambdaRank => f.write_str("lambda-rank"),
            Self::NonPrivate(loss) | Self::Private { loss, .. } => loss.fmt(f),
        }
    }
}

/// A run of a ranker but for its repetition: how well it ranks after so many of its updates.
///
/// One training measures all points of its course, on each of five folds: four parts of the lists are trained on and the
/// fifth is ranked, in turn. What is measured is the mean over the folds.
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
    /// Lists to learn from and to rank.
    pub data: DataSet,
    /// What gives scores.
    pub shape: Shape,
    /// What learns.
    pub method: Method,
    /// Whether weight matrices are divided by their spectral norms at the start and after every update.
    pub normalised: bool,
    /// Lists in a batch, on average where batches are drawn list by list.
    pub batch_size: u64,
    /// Updates of the whole training.
    pub updates: u64,
    /// The first step, over a mean of gradients; three quarters, half and a quarter of it later on.
    pub step: f64,
    /// Updates after which this is measured.
    pub after: u64,
}

impl RankerSetting {
    /// The chapter's: 400 updates with batches of 10, measured after the last; a first step of 1, or 0.1 for ListMLE and
    /// LambdaRank, over the mean of a batch's gradients, which is 0.1 and 0.01 over their sum.
    pub fn new(data: DataSet, shape: Shape, method: Method) -> Self {
        let step = match method {
            Method::LambdaRank | Method::NonPrivate(Loss::ListMle) | Method::Private { loss: Loss::ListMle, .. } => 0.1,
            _ => 1.0,
        };
        Self { data, shape, method, normalised: false, batch_size: 10, updates: 400, step, after: 400 }
    }

    /// All points of the same training have the same: that of its end.
    #[must_use]
    pub fn course(self) -> Self {
        Self { after: self.updates, ..self }
    }

    /// The columns of a record that say what this is: data, algorithm, loss, λ, privacy, tuning, passes, batch size, step,
    /// rows. In place of passes there are updates.
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
