//! One run of an experiment of any kind, with the name that identifies and seeds it.

use core::fmt;

use sha2::{Digest, Sha256};

use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::network::NetworkSetting;
use crate::ranker::RankerSetting;
use crate::seed;
use crate::setting::Setting;

/// Incremented when a code change affects the results of every run, so that older records are not reused.
const REVISION: u32 = 1;

/// Returns the revision of one algorithm, 0 if it has not changed since `REVISION`: 3 since the minimiser of a perturbed
/// objective is certified by compensated gradients and searched with curvatures. It is part of the key alone: random numbers
/// stay the same.
const fn revision_of(experiment: &Experiment) -> u32 {
    match experiment {
        Experiment::Model(setting) => match setting.algorithm {
            Algorithm::Auto
            | Algorithm::ObjPert
            | Algorithm::ObjPertCentred
            | Algorithm::ObjPertCms11
            | Algorithm::ObjPertKst12
            | Algorithm::ObjPertRdp
            | Algorithm::Amp
            | Algorithm::AmpAsPublished
            | Algorithm::AdmmObjPert => 3,
            _ => 0,
        },
        Experiment::Ranker(_) | Experiment::Network(_) => 0,
    }
}

/// An experiment: everything about a run except its repetition.
///
/// # Examples
/// ```
/// use dp_reproduce::{Algorithm, DataSet, Experiment, Privacy, Setting};
/// let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Pure { epsilon: 1.0 });
/// let experiment = Experiment::from(setting);
/// assert_eq!((experiment.data(), experiment.to_string()), (DataSet::Sphere, setting.to_string()));
/// assert_eq!(experiment.algorithm(), "bolt-on");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Experiment {
    /// A linear model, or one per class.
    Model(Setting),
    /// A ranker after a given number of updates.
    Ranker(RankerSetting),
    /// A network of images after a given number of iterations.
    Network(NetworkSetting),
}

impl Experiment {
    /// Returns the data set.
    pub fn data(&self) -> DataSet {
        match self {
            Self::Model(setting) => setting.data,
            Self::Ranker(setting) => setting.data,
            Self::Network(setting) => setting.data,
        }
    }

    /// Returns the linear model, if it is one.
    pub fn model(&self) -> Option<&Setting> {
        match self {
            Self::Model(setting) => Some(setting),
            Self::Ranker(_) | Self::Network(_) => None,
        }
    }

    /// Returns the ranker, if it is one.
    pub fn ranker(&self) -> Option<&RankerSetting> {
        match self {
            Self::Ranker(setting) => Some(setting),
            Self::Model(_) | Self::Network(_) => None,
        }
    }

    /// Returns the learning algorithm by its name for `dp reproduce --algorithm`: an [`Algorithm`], the loss of a ranker, the
    /// ranking method without a loss, or the optimiser of a network.
    pub fn algorithm(&self) -> String {
        match self {
            Self::Model(setting) => setting.algorithm.to_string(),
            Self::Ranker(setting) => setting.method.to_string(),
            Self::Network(setting) => setting.optimiser.to_string(),
        }
    }

    /// Returns whether the run is timed: then no other run executes at the same time.
    pub fn is_timed(&self) -> bool {
        self.model().is_some_and(|setting| setting.timed)
    }

    /// Returns the training that measures this: itself, or the whole course of a ranker or network.
    fn training(self) -> Self {
        match self {
            Self::Model(_) => self,
            Self::Ranker(setting) => Self::Ranker(setting.course()),
            Self::Network(setting) => Self::Network(setting.course()),
        }
    }
}

impl From<Setting> for Experiment {
    fn from(setting: Setting) -> Self {
        Self::Model(setting)
    }
}

impl From<RankerSetting> for Experiment {
    fn from(setting: RankerSetting) -> Self {
        Self::Ranker(setting)
    }
}

impl From<NetworkSetting> for Experiment {
    fn from(setting: NetworkSetting) -> Self {
        Self::Network(setting)
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(setting) => setting.fmt(f),
            Self::Ranker(setting) => setting.fmt(f),
            Self::Network(setting) => setting.fmt(f),
        }
    }
}

/// A run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The experiment.
    pub experiment: Experiment,
    /// The repetition, from 0.
    pub repetition: u32,
}

impl Cell {
    /// Creates a run from an experiment and a repetition.
    pub fn new(experiment: impl Into<Experiment>, repetition: u32) -> Self {
        Self { experiment: experiment.into(), repetition }
    }

    /// Returns sixteen hexadecimal digits that change when anything about the run changes.
    pub fn key(&self) -> String {
        let text = match revision_of(&self.experiment) {
            0 => self.to_string(),
            revision => format!("{self}.{revision}"),
        };
        let hash = Sha256::digest(text.as_bytes());
        hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the training that measures this run, shared by all runs with the same training.
    pub fn training(&self) -> Self {
        Self { experiment: self.experiment.training(), ..*self }
    }

    /// Returns the seed of all randomness in this run: that of its [training](Self::training).
    pub fn seed(&self) -> u64 {
        seed::of(&self.training().to_string())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; repetition {}; revision {REVISION}", self.experiment, self.repetition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Privacy;

    #[test]
    fn an_algorithm_that_has_changed_has_another_key_and_the_same_seed() {
        let of = |algorithm| Cell::new(Setting::new(DataSet::Sphere, algorithm, Privacy::Pure { epsilon: 1.0 }), 0);
        let plain = |cell: &Cell| {
            let hash = Sha256::digest(cell.to_string().as_bytes());
            hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        for (algorithm, changed) in [(Algorithm::Auto, true), (Algorithm::ObjPert, true), (Algorithm::DpSgd, false)] {
            let cell = of(algorithm);
            assert_eq!(cell.key() != plain(&cell), changed, "{algorithm}");
            assert_eq!(cell.seed(), seed::of(&cell.to_string()), "{algorithm}");
        }
    }
}
