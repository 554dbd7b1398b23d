//! A network of images as data: everything that identifies a run.

mod train;

use core::fmt;

pub(crate) use train::run;

use crate::dataset::DataSet;

/// δ of the dissertation's chapter 5.
pub const DELTA: f64 = 1e-8;

/// The training of a network.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Optimiser {
    /// Adam, without privacy.
    Adam,
    /// DP-SGD, without momentum.
    DpSgd,
    /// DP-Adam.
    DpAdam,
    /// DP-BLSGD: DP-SGD with a private backtracking line search, which has a tenth of the cost of each step.
    DpBlsgd {
        /// The share of the predicted decrease that a step must reach.
        armijo: f64,
    },
}

impl fmt::Display for Optimiser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adam => f.write_str("adam"),
            Self::DpSgd => f.write_str("dp-sgd"),
            Self::DpAdam => f.write_str("dp-adam"),
            Self::DpBlsgd { .. } => f.write_str("dp-blsgd"),
        }
    }
}

/// A run of a network except its repetition: its measurements after a given number of iterations, all of which are of one
/// training.
///
/// # Examples
/// ```
/// use dp_reproduce::network::{NetworkSetting, Optimiser};
/// use dp_reproduce::{Cell, DataSet};
/// let setting = NetworkSetting::new(DataSet::MnistImages, "mlp:1000", Optimiser::DpSgd);
/// let early = NetworkSetting { after: 100, ..setting };
/// assert_ne!(Cell::new(setting, 0).key(), Cell::new(early, 0).key());
/// assert_eq!(Cell::new(setting, 0).seed(), Cell::new(early, 0).seed());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkSetting {
    /// The images for training and testing.
    pub data: DataSet,
    /// The name of the network: see [`Architecture::named`](dp_nets::Architecture::named).
    pub network: &'static str,
    /// Its training.
    pub optimiser: Optimiser,
    /// Epsilon of all iterations together, at [`DELTA`]; without privacy it has no meaning.
    pub epsilon: f64,
    /// The inverse of the sampling rate.
    pub batches: u64,
    /// λ: coefficient of the regulariser `(λ/2)‖w‖²`.
    pub lambda: f64,
    /// The clipping norm of gradients, and the bound to which losses are clamped.
    pub clipping: f64,
    /// The step size; for DP-BLSGD the longest.
    pub step: f64,
    /// Number of iterations of the whole training.
    pub iterations: u64,
    /// Number of iterations after which this is measured.
    pub after: u64,
}

impl NetworkSetting {
    /// Creates the setting of the chapter: sampling rate 1/200, clipping at 3, λ = 0.001, and step sizes of 0.2 for DP-SGD and 0.001
    /// for Adam; epsilon 2, 1000 iterations and the longest step of 1 are not the chapter's, which names none.
    pub fn new(data: DataSet, network: &'static str, optimiser: Optimiser) -> Self {
        let step = match optimiser {
            Optimiser::Adam | Optimiser::DpAdam => 0.001,
            Optimiser::DpSgd => 0.2,
            Optimiser::DpBlsgd { .. } => 1.0,
        };
        let (lambda, clipping, iterations) = (0.001, 3.0, 1000);
        Self {
            data,
            network,
            optimiser,
            epsilon: 2.0,
            batches: 200,
            lambda,
            clipping,
            step,
            iterations,
            after: iterations,
        }
    }

    /// Returns the end point of the training, which is the same for all its points.
    #[must_use]
    pub fn course(self) -> Self {
        Self { after: self.iterations, ..self }
    }

    /// Returns the columns of a record that identify the run: data, algorithm, loss, λ, privacy, tuning, passes, batch size,
    /// step, rows. Iterations take the place of passes.
    pub(crate) fn columns(&self) -> [String; 10] {
        let privacy = match self.optimiser {
            Optimiser::Adam => "none".to_owned(),
            _ => format!("epsilon {} delta {DELTA:e}", self.epsilon),
        };
        [
            self.data.to_string(),
            format!("{} {}", self.network.replace(',', " "), self.optimiser),
            "cross-entropy".to_owned(),
            self.lambda.to_string(),
            privacy,
            "given".to_owned(),
            self.after.to_string(),
            format!("n/{}", self.batches),
            self.step.to_string(),
            String::new(),
        ]
    }
}

impl fmt::Display for NetworkSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data, network, optimiser, epsilon, batches, lambda, clipping, step, iterations, after } = self;
        write!(f, "data {data}; network {network}; {optimiser}")?;
        match optimiser {
            Optimiser::Adam => {}
            _ => write!(f, "; epsilon {epsilon} delta {DELTA:e}; clipped at {clipping}")?,
        }
        if let Optimiser::DpBlsgd { armijo } = optimiser {
            write!(f, "; armijo {armijo}")?;
        }
        write!(f, "; lambda {lambda}; batch n/{batches}; step {step}; after {after} of {iterations} iterations")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;

    #[test]
    fn every_change_changes_the_key_and_only_the_point_keeps_the_seed() {
        let base = NetworkSetting::new(DataSet::MnistImages, "mlp:256,256", Optimiser::DpBlsgd { armijo: 0.1 });
        let of = |optimiser| NetworkSetting { optimiser, ..base };
        let changed = [
            base,
            NetworkSetting { data: DataSet::FashionImages, ..base },
            NetworkSetting { data: DataSet::MadeUpImages { images: 40 }, ..base },
            NetworkSetting { data: DataSet::MadeUpImages { images: 44 }, ..base },
            NetworkSetting { network: "mlp:256", ..base },
            of(Optimiser::Adam),
            of(Optimiser::DpSgd),
            of(Optimiser::DpAdam),
            of(Optimiser::DpBlsgd { armijo: 0.2 }),
            NetworkSetting { epsilon: 1.0, ..base },
            NetworkSetting { batches: 100, ..base },
            NetworkSetting { lambda: 0.0, ..base },
            NetworkSetting { clipping: 1.0, ..base },
            NetworkSetting { step: 0.5, ..base },
            NetworkSetting { iterations: 1001, ..base },
        ];
        let unique = |mut values: Vec<String>| {
            let count = values.len();
            values.sort();
            values.dedup();
            assert_eq!(values.len(), count);
        };
        let early = NetworkSetting { after: 999, ..base };
        let all = changed.iter().chain([&early]);
        unique(all.map(|&setting| Cell::new(setting, 0).key()).chain([Cell::new(base, 1).key()]).collect());
        let seeds = changed.iter().map(|&setting| Cell::new(setting.course(), 0).seed().to_string());
        unique(seeds.chain([Cell::new(base, 1).seed().to_string()]).collect());
        assert_eq!(Cell::new(early, 0).seed(), Cell::new(base, 0).seed());
        assert_eq!(
            early.to_string(),
            "data mnist-images; network mlp:256,256; dp-blsgd; epsilon 2 delta 1e-8; clipped at 3; armijo 0.1; lambda 0.001; \
             batch n/200; step 1; after 999 of 1000 iterations"
        );
        assert!(changed.iter().all(|setting| !setting.columns().join("").contains(',')));
    }
}
