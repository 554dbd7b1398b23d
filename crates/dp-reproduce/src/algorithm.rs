//! The algorithms that are compared.

mod published;
mod train;

use core::fmt;

pub use train::{Outcome, run};

/// An algorithm of the experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Stochastic gradient descent without privacy.
    Noiseless,
    /// Bolt-on private descent, noise from the sensitivity of the run: sound.
    Ours,
    /// The same with the noise as printed, the sensitivity of the strongly convex case divided by the batch size: **not
    /// private** at the epsilon on the axis.
    OursAsPublished,
    /// Song, Chaudhuri and Sarwate 2013, noise on every step, all passes calibrated together: sound.
    Scs13,
    /// The same with the noise as printed: `(ε/k, δ/k)` for each of `k` passes. Sound, and more than is needed.
    Scs13AsPublished,
    /// Bassily, Smith and Thakurta 2014 as Wu et al. extend it, random batches and noise on every step, the least noise
    /// that the accountant certifies. In the convex case within radius 10, which its steps need.
    Bst14,
    /// The same with batches of fixed size and the noise as printed, far more than is needed.
    Bst14AsPublished,
    /// Differentially private stochastic gradient descent of today, Poisson batches.
    DpSgd,
    /// Feldman, Koren and Talwar 2020: noise on every iterate, the last one released.
    Pnsgd,
    /// The same in one pass, on batches that grow.
    SnowballSgd,
    /// Feldman, Koren and Talwar 2020: one pass in phases, noise at the end of each.
    PhasedSgd,
    /// Algorithm and settings chosen from public numbers; of a setting it takes the loss alone.
    Auto,
}

impl Algorithm {
    /// Whether its noise is that of a paper rather than what is needed.
    pub fn is_as_published(self) -> bool {
        matches!(self, Self::OursAsPublished | Self::Scs13AsPublished | Self::Bst14AsPublished)
    }

    /// The name in pictures and tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Noiseless => "Noiseless",
            Self::Ours => "Ours",
            Self::OursAsPublished => "Ours, noise as printed (not private)",
            Self::Scs13 => "SCS13",
            Self::Scs13AsPublished => "SCS13, noise as printed",
            Self::Bst14 => "BST14",
            Self::Bst14AsPublished => "BST14, noise as printed",
            Self::DpSgd => "DP-SGD",
            Self::Pnsgd => "PNSGD",
            Self::SnowballSgd => "Snowball-SGD",
            Self::PhasedSgd => "Phased-SGD",
            Self::Auto => "Auto",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Noiseless => "noiseless",
            Self::Ours => "bolt-on",
            Self::OursAsPublished => "bolt-on-as-published",
            Self::Scs13 => "scs13",
            Self::Scs13AsPublished => "scs13-as-published",
            Self::Bst14 => "bst14",
            Self::Bst14AsPublished => "bst14-as-published",
            Self::DpSgd => "dp-sgd",
            Self::Pnsgd => "pnsgd",
            Self::SnowballSgd => "snowball-sgd",
            Self::PhasedSgd => "phased-sgd",
            Self::Auto => "auto",
        })
    }
}
