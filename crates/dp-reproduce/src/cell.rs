//! One run of an experiment, whatever it trains, and the name that it is found and seeded by.

use core::fmt;

use sha2::{Digest, Sha256};

use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::ranker::RankerSetting;
use crate::seed;
use crate::setting::Setting;

/// Raised when the code changes what every run of the same setting measures, so that older records are not taken for it.
const REVISION: u32 = 1;

/// The same of one algorithm, 0 for what has not changed since the revision above: 3 since the minimiser of a perturbed
/// objective is certified by compensated gradients and looked for with curvatures. Part of the key alone: random numbers stay what they were.
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
        Experiment::Ranker(_) => 0,
    }
}

/// What is run.
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
    /// A linear model, or one for each class.
    Model(Setting),
    /// A ranker after so many of its updates.
    Ranker(RankerSetting),
}

impl Experiment {
    /// What is learnt from.
    pub fn data(&self) -> DataSet {
        match self {
            Self::Model(setting) => setting.data,
            Self::Ranker(setting) => setting.data,
        }
    }

    /// The linear model, if it is one.
    pub fn model(&self) -> Option<&Setting> {
        match self {
            Self::Model(setting) => Some(setting),
            Self::Ranker(_) => None,
        }
    }

    /// The ranker, if it is one.
    pub fn ranker(&self) -> Option<&RankerSetting> {
        match self {
            Self::Ranker(setting) => Some(setting),
            Self::Model(_) => None,
        }
    }

    /// What learns, by the name that `dp reproduce --algorithm` takes: an [`Algorithm`], the
    /// loss of a ranker, or what ranks without one.
    pub fn algorithm(&self) -> String {
        match self {
            Self::Model(setting) => setting.algorithm.to_string(),
            Self::Ranker(setting) => setting.method.to_string(),
        }
    }

    /// Whether the time is what counts: nothing else runs meanwhile.
    pub fn is_timed(&self) -> bool {
        self.model().is_some_and(|setting| setting.timed)
    }

    /// What one training measures: itself, or all points of the course of a ranker.
    fn training(self) -> Self {
        match self {
            Self::Model(_) => self,
            Self::Ranker(setting) => Self::Ranker(setting.course()),
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

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(setting) => setting.fmt(f),
            Self::Ranker(setting) => setting.fmt(f),
        }
    }
}

/// A run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Everything but the repetition.
    pub experiment: Experiment,
    /// Which repetition, from 0.
    pub repetition: u32,
}

impl Cell {
    /// This repetition of this.
    pub fn new(experiment: impl Into<Experiment>, repetition: u32) -> Self {
        Self { experiment: experiment.into(), repetition }
    }

    /// Sixteen hexadecimal digits that change when anything about the run changes.
    pub fn key(&self) -> String {
        let text = match revision_of(&self.experiment) {
            0 => self.to_string(),
            revision => format!("{self}.{revision}"),
        };
        let hash = Sha256::digest(text.as_bytes());
        hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The training that measures this, and maybe others that have the same one.
    pub fn training(&self) -> Self {
        Self { experiment: self.experiment.training(), ..*self }
    }

    /// The seed of everything random in this run: that of its [training](Self::training).
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
