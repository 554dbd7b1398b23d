//! The algorithms of the experiments.

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
    /// Bolt-on private SGD, with noise for the sensitivity of the run: sound.
    Ours,
    /// Bolt-on with the noise as published, whose sensitivity in the strongly convex case is divided by the batch size: **not
    /// private** at the stated epsilon.
    OursAsPublished,
    /// Song, Chaudhuri and Sarwate 2013: noise on every step, with all passes calibrated together: sound.
    Scs13,
    /// SCS13 with the noise as published: `(ε/k, δ/k)` for each of `k` passes. Sound, but more noise than needed.
    Scs13AsPublished,
    /// Bassily, Smith and Thakurta 2014, as extended by Wu et al.: random batches and noise on every step, with the least
    /// noise that the accountant certifies. In the convex case within radius 10, which its steps need.
    Bst14,
    /// BST14 with batches of fixed size and the noise as published, far more than needed.
    Bst14AsPublished,
    /// Current differentially private stochastic gradient descent, with Poisson batches.
    DpSgd,
    /// Feldman, Koren and Talwar 2020: noise on every iterate, the last one released.
    Pnsgd,
    /// PNSGD in one pass, on growing batches.
    SnowballSgd,
    /// Feldman, Koren and Talwar 2020: one pass in phases, with noise at the end of each.
    PhasedSgd,
    /// Algorithm and settings chosen from public numbers; only the loss is taken from the setting.
    Auto,
    /// The minimiser of the regularised objective, without privacy.
    Minimiser,
    /// Accelerated proximal descent with a budget so large that its noise is negligible: close to the minimiser with an L1
    /// penalty, without privacy.
    SparseMinimiser,
    /// The model from which synthetic labels were drawn.
    TrueModel,
    /// A constant prediction.
    Majority,
    /// Noise on the model after descent with averages and restarts.
    RsgdAr,
    /// Noise on the model after plain descent, calibrated for the worst position of a record.
    Nsgd,
    /// Noise on the model after full gradients with a constant step.
    OutPertGd,
    /// Noise in the objective, with the λ of the setting.
    ObjPert,
    /// Objective perturbation with the recommended regulariser, around a centre from noisy moments.
    ObjPertCentred,
    /// Objective perturbation as published by Chaudhuri, Monteleoni and Sarwate 2011, without delta: more noise than needed.
    ObjPertCms11,
    /// Objective perturbation as published by Kifer, Smith and Thakurta 2012.
    ObjPertKst12,
    /// Objective perturbation by the Renyi bound of Redberg, Koskela and Wang 2023.
    ObjPertRdp,
    /// Approximate minima perturbation, calibrated exactly.
    Amp,
    /// Approximate minima perturbation as published by Iyengar et al. 2019.
    AmpAsPublished,
    /// Least squares on noisy second moments.
    NoisyMoments,
    /// Newton's method with a noisy Hessian.
    DpNewton,
    /// Batches in a fixed order, with noise that later steps partly cancel.
    DpFtrl,
    /// Noise that shrinks with the distance from the point where the full gradient is known.
    DpSvrg,
    /// Full gradients with noise on each, for the recommended number of steps.
    DpGd,
    /// DP-SGD with Adam's update rule.
    DpAdam,
    /// DP-Adam with the contribution of the noise to its mean squares subtracted.
    DpAdamBc,
    /// Coordinate steps chosen by the exponential mechanism.
    PrivGene,
    /// Linearised ADMM on random batches.
    SsAdmm,
    /// Linearised ADMM on all records, with noise on the model at each step.
    MpAdmm,
    /// Consensus of two parties, each with noise on its own gradients.
    DpAdmm,
    /// ADMM in which each iteration minimises a perturbed objective.
    AdmmObjPert,
    /// Full gradients, with a noisy backtracking line search for each step and the budget spent as needed.
    DpBlgd,
    /// DP-BLGD on random batches.
    DpBlsgd,
    /// DP-BLSGD with shrinking clipping norms.
    DpBlsgdAc,
    /// Full gradients, with the step size selected by noisy minimum.
    DpAgd,
}

impl Algorithm {
    /// Returns whether its noise is that of a paper rather than the calibrated one.
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

    /// Returns whether it has a privacy budget.
    pub fn is_private(self) -> bool {
        !matches!(self, Self::Noiseless | Self::Minimiser | Self::SparseMinimiser | Self::TrueModel)
    }

    /// Returns the name in pictures and tables.
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
