//! The algorithms that are compared.

mod published;
mod recipes;
mod train;

use core::fmt;

#[cfg(test)]
pub(crate) use train::reached;
pub use train::{Outcome, SELECTED, run};

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
    /// The minimiser of the regularised objective, without privacy.
    Minimiser,
    /// Accelerated proximal descent with so large a budget that its noise is none to speak of: near the minimiser with an
    /// L1 penalty, without privacy.
    SparseMinimiser,
    /// The model that made-up labels were drawn from.
    TrueModel,
    /// The same answer for all.
    Majority,
    /// Noise on the model after descent with averages and restarts.
    RsgdAr,
    /// Noise on the model after plain descent, for the worst position of a record.
    Nsgd,
    /// Noise on the model after full gradients with a constant step.
    OutPertGd,
    /// Noise in the objective, with the λ of the setting.
    ObjPert,
    /// Noise in the objective, with the regulariser that is recommended, around a centre from noisy moments.
    ObjPertCentred,
    /// Noise in the objective as Chaudhuri, Monteleoni and Sarwate 2011 print it, without delta: more than is needed.
    ObjPertCms11,
    /// The same as Kifer, Smith and Thakurta 2012 print it.
    ObjPertKst12,
    /// The same by the Renyi bound of Redberg, Koskela and Wang 2023.
    ObjPertRdp,
    /// Approximate minima perturbation, calibrated exactly.
    Amp,
    /// The same as Iyengar et al. 2019 print it.
    AmpAsPublished,
    /// Least squares on noisy second moments.
    NoisyMoments,
    /// Newton's method with noisy curvature.
    DpNewton,
    /// Batches in one order, with noise that later steps take back in part.
    DpFtrl,
    /// Noise that shrinks with the distance from where the gradient of all records is known.
    DpSvrg,
    /// Full gradients with noise on each, as many steps as are recommended.
    DpGd,
    /// DP-SGD with the steps of Adam.
    DpAdam,
    /// The same without the noise's part in its mean squares.
    DpAdamBc,
    /// Coordinate steps chosen by the exponential mechanism.
    PrivGene,
    /// Linearised ADMM on random batches.
    SsAdmm,
    /// Linearised ADMM on all records, noise on the model at each step.
    MpAdmm,
    /// Two parties that agree on a model, each with noise on its own gradients.
    DpAdmm,
    /// ADMM, each iteration the minimiser of a perturbed objective.
    AdmmObjPert,
    /// Full gradients, a noisy backtracking search for each step, the budget spent as needed.
    DpBlgd,
    /// The same on random batches.
    DpBlsgd,
    /// The same with clipping norms that shrink.
    DpBlsgdAc,
    /// Full gradients, the step by noisy minimum.
    DpAgd,
}

impl Algorithm {
    /// Whether its noise is that of a paper rather than what is needed.
    pub fn is_as_published(self) -> bool {
        matches!(
            self,
            Self::OursAsPublished
                | Self::Scs13AsPublished
                | Self::Bst14AsPublished
                | Self::ObjPertCms11
                | Self::ObjPertKst12
                | Self::ObjPertRdp
                | Self::AmpAsPublished
        )
    }

    /// Whether it has a budget at all.
    pub fn is_private(self) -> bool {
        !matches!(self, Self::Noiseless | Self::Minimiser | Self::SparseMinimiser | Self::TrueModel)
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
            Self::Minimiser => "Non-private",
            Self::SparseMinimiser => "Non-private",
            Self::TrueModel => "True model",
            Self::Majority => "Majority",
            Self::RsgdAr => "RSGD-AR",
            Self::Nsgd => "NSGD",
            Self::OutPertGd => "OutPert-GD",
            Self::ObjPert => "ObjPert",
            Self::ObjPertCentred => "ObjPert, centred",
            Self::ObjPertCms11 => "ObjPert, CMS11",
            Self::ObjPertKst12 => "ObjPert, KST12",
            Self::ObjPertRdp => "ObjPert, Rényi",
            Self::Amp => "AMP",
            Self::AmpAsPublished => "AMP, noise as printed",
            Self::NoisyMoments => "Noisy moments",
            Self::DpNewton => "DP-Newton",
            Self::DpFtrl => "DP-FTRL",
            Self::DpSvrg => "DP-SVRG",
            Self::DpGd => "DP-GD",
            Self::DpAdam => "DP-Adam",
            Self::DpAdamBc => "DP-AdamBC",
            Self::PrivGene => "PrivGene",
            Self::SsAdmm => "ssADMM",
            Self::MpAdmm => "mpADMM",
            Self::DpAdmm => "DP-ADMM",
            Self::AdmmObjPert => "ADMM-objP",
            Self::DpBlgd => "DP-BLGD",
            Self::DpBlsgd => "DP-BLSGD",
            Self::DpBlsgdAc => "DP-BLSGD-AC",
            Self::DpAgd => "DP-AGD",
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
            Self::Minimiser => "minimiser",
            Self::SparseMinimiser => "sparse-minimiser",
            Self::TrueModel => "true-model",
            Self::Majority => "majority",
            Self::RsgdAr => "rsgd-ar",
            Self::Nsgd => "nsgd",
            Self::OutPertGd => "out-pert-gd",
            Self::ObjPert => "obj-pert",
            Self::ObjPertCentred => "obj-pert-centred",
            Self::ObjPertCms11 => "obj-pert-cms11",
            Self::ObjPertKst12 => "obj-pert-kst12",
            Self::ObjPertRdp => "obj-pert-rdp",
            Self::Amp => "amp",
            Self::AmpAsPublished => "amp-as-published",
            Self::NoisyMoments => "noisy-moments",
            Self::DpNewton => "dp-newton",
            Self::DpFtrl => "dp-ftrl",
            Self::DpSvrg => "dp-svrg",
            Self::DpGd => "dp-gd",
            Self::DpAdam => "dp-adam",
            Self::DpAdamBc => "dp-adambc",
            Self::PrivGene => "priv-gene",
            Self::SsAdmm => "ss-admm",
            Self::MpAdmm => "mp-admm",
            Self::DpAdmm => "dp-admm",
            Self::AdmmObjPert => "admm-obj-pert",
            Self::DpBlgd => "dp-blgd",
            Self::DpBlsgd => "dp-blsgd",
            Self::DpBlsgdAc => "dp-blsgd-ac",
            Self::DpAgd => "dp-agd",
        })
    }
}
