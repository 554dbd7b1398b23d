//! Audits of training recipes: canary data sets on which one record has nearly its maximum effect.
//!
//! Each recipe has one entry in [`RECIPES`]: a name, and a function that builds its audits from public parameters. An audit
//! first checks, without noise, the [`Distance`] between the two trained models against the claimed sensitivity. Then it
//! provides a [`Subject`] for [`dp_audit`]: the whole recipe, noise included, against the event that its certificate will
//! state.
//!
//! ```text
//! Parameters ──build──▶ canary data sets, farthest of many ──▶ Distance { reached <= claimed }
//!                                        │
//!                                        └──▶ Subject: train, release, log-likelihood ratio ──▶ dp-audit
//! ```
//!
//! # Examples
//! ```
//! use dp_audit_recipes::{Parameters, recipe};
//!
//! let audited = recipe("bolt-on-convex").unwrap().subjects(&Parameters::default())?;
//! for audited in &audited {
//!     // One record moves the trained model by at most the claim, and nearly attains it.
//!     assert!(audited.distance.holds() && audited.distance.ratio() > 0.5);
//! }
//! # Ok::<(), dp_optim::Error>(())
//! ```
//!
//! # References
//! Jagielski, Ullman, Oprea, "Auditing differentially private machine learning: how private is private SGD?", NeurIPS
//! 2020; Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini, Terzis, "Tight auditing of differentially private
//! machine learning", USENIX Security 2023, arXiv 2302.07956.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod black_box;
mod bolt_on;
mod canary;
mod choice;
mod last_iterate;
mod likelihood;
mod model_sgd;
mod newton;
mod noisy_moments;
mod noisy_steps;
mod obj_pert;
mod one_vs_all;
mod phased;
mod random_stopping;
pub mod rank;
mod rsgd_ar;
mod scored;
mod scs13;
mod searched;
mod svrg;
mod tuning;

#[cfg(test)]
mod tests;

pub use canary::{Canary, Record, Search};

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_audit::Subject;
use dp_losses::{HuberSvm, LossKind};

use dp_optim::Error;
use dp_optim::recipes::Budget;

use self::Setting::{BatchSize, Lambda, Loss, Passes, Radius, Relation};

/// The public parameters under which a recipe is audited.
///
/// The default is small, so that a run costs microseconds, and chosen so that one record can nearly attain the claim: 20 rows
/// of 2 features, 5 steps, and a loss whose gradients stay long.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Number of records.
    pub n: u64,
    /// Number of features.
    pub dim: u64,
    /// Epsilon of the release.
    pub epsilon: f64,
    /// Delta of the release. With 0 only pure guarantees are audited.
    pub delta: f64,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// The loss.
    pub loss: LossKind,
    /// Coefficient of the regulariser; `None` is 0 if the recipe needs none, otherwise 0.5.
    pub lambda: Option<f64>,
    /// Passes over the data.
    pub passes: u64,
    /// Records per batch.
    pub batch_size: u64,
    /// Radius of the ball onto which iterates are projected.
    pub radius: Option<f64>,
    /// The noise mode; `None` audits both exact and rounded noise.
    pub noise_mode: Option<NoiseMode>,
    /// Number of pairs in the search for the farthest pair of data sets, fewer if training takes long.
    pub pairs: u32,
}

impl Parameters {
    fn budget(&self) -> Result<Budget, Error> {
        Ok(Budget::new(self.epsilon, self.delta)?)
    }

    /// Returns the audited noise modes.
    fn modes(&self) -> Vec<NoiseMode> {
        self.noise_mode.map_or(vec![NoiseMode::Exact, NoiseMode::Rounded], |mode| vec![mode])
    }
}

/// Returns the name of a noise mode at the end of a subject's name.
fn mode_name(mode: NoiseMode) -> &'static str {
    if mode == NoiseMode::Rounded { "rounded" } else { "exact" }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            n: 20,
            dim: 2,
            epsilon: 1.0,
            delta: 1e-5,
            relation: AdjacencyKind::ReplaceOne,
            loss: LossKind::HuberSvm(HuberSvm::USUAL),
            lambda: None,
            passes: 1,
            batch_size: 4,
            radius: None,
            noise_mode: None,
            pairs: 1000,
        }
    }
}

/// A setting of [`Parameters`] that has no effect on the audits of some recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// [`Parameters::relation`].
    Relation,
    /// [`Parameters::loss`].
    Loss,
    /// [`Parameters::lambda`].
    Lambda,
    /// [`Parameters::passes`].
    Passes,
    /// [`Parameters::batch_size`].
    BatchSize,
    /// [`Parameters::radius`].
    Radius,
}

impl Setting {
    const ALL: &[Self] = &[Relation, Loss, Lambda, Passes, BatchSize, Radius];
}

/// A recipe with an audit.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// The name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The settings that have an effect.
    pub settings: &'static [Setting],
    build: fn(&Parameters) -> Result<Vec<Audited>, Error>,
}

impl Recipe {
    /// Returns the audits: one for each law and mode of noise that the recipe can use under these parameters.
    ///
    /// # Errors
    /// Parameters that the recipe refuses.
    pub fn subjects(&self, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
        (self.build)(parameters)
    }
}

/// Every audited recipe of this crate. Each optimiser adds its entry, unless another entry covers its releases. `dp-sgd`
/// covers other steps on the same noisy sums (Adam, linearised ADMM, the parties of ADMM, each with a separate pass).
/// `obj-pert` covers ADMM by objective perturbation: each iteration is `obj-pert` around another centre.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        name: "bolt-on-convex",
        about: "convex losses, noise on the trained model (Wu et al. 2017, Algorithm 1)",
        settings: Setting::ALL,
        build: bolt_on::convex,
    },
    Recipe {
        name: "bolt-on-strongly-convex",
        about: "regularised losses, noise on the trained model (Wu et al. 2017, Algorithm 2)",
        settings: Setting::ALL,
        build: bolt_on::strongly_convex,
    },
    Recipe {
        name: "phased-sgd",
        about: "smooth convex losses, phases on fresh records (Feldman, Koren, Talwar 2020, Algorithm 2)",
        settings: &[Relation, Loss, Lambda, Radius],
        build: phased::sgd,
    },
    Recipe {
        name: "phased-erm",
        about: "convex losses, phases of certified minimisation (Feldman, Koren, Talwar 2020, section 4.2)",
        settings: &[Relation, Loss, Lambda, Radius],
        build: phased::erm,
    },
    Recipe {
        name: "bst14-convex",
        about: "noise in every step on random batches (Bassily et al. 2014), one step",
        settings: &[Relation, Loss, Lambda, Radius],
        build: noisy_steps::bst14_convex,
    },
    Recipe {
        name: "bst14-strongly-convex",
        about: "the same for regularised losses, one step",
        settings: &[Relation, Loss],
        build: noisy_steps::bst14_strongly_convex,
    },
    Recipe {
        name: "dp-sgd",
        about: "noise on the clipped gradients of each step, on random batches (Abadi et al. 2016)",
        settings: &[Relation, Loss, Lambda, Passes, BatchSize],
        build: noisy_steps::dp_sgd,
    },
    Recipe {
        name: "dp-ftrl",
        about: "noise that is correlated over the steps of passes in one order (Kairouz et al. 2021), the last iterate and all of them",
        settings: &[Relation, Loss, Lambda, Passes, BatchSize],
        build: noisy_steps::dp_ftrl,
    },
    Recipe {
        name: "dp-newton",
        about: "gradients and curvatures with one noise (Ganesh et al. 2023), one step, all of which the attacker sees",
        settings: &[Relation, Loss],
        build: newton::subjects,
    },
    Recipe {
        name: "dp-svrg",
        about: "noise on the gradient of all records and on differences from it (Johnson, Zhang 2013), every step seen",
        settings: Setting::ALL,
        build: svrg::subjects,
    },
    Recipe {
        name: "noisy-moments",
        about: "least squares on noisy second moments, all of which the attacker sees",
        settings: &[Relation],
        build: noisy_moments::subjects,
    },
    Recipe {
        name: "obj-pert",
        about: "noise in the objective, the certified minimiser released (Chaudhuri et al. 2011)",
        settings: &[Relation, Loss, Lambda],
        build: obj_pert::subjects,
    },
    Recipe {
        name: "one-vs-all",
        about: "one model for each class against the rest, all of them within one budget",
        settings: Setting::ALL,
        build: one_vs_all::bolt_on,
    },
    Recipe {
        name: "per-unit",
        about: "all rows of a unit together, here five under noise in the objective",
        settings: &[Relation, Loss],
        build: obj_pert::per_unit,
    },
    Recipe {
        name: "pnsgd",
        about: "noise on every iterate, the last one released (Feldman et al. 2020, Algorithm 1)",
        settings: Setting::ALL,
        build: last_iterate::pnsgd,
    },
    Recipe {
        name: "rsgd-ar",
        about: "passes averaged and restarted, noise on the trained model for a hidden position",
        settings: Setting::ALL,
        build: rsgd_ar::rsgd_ar,
    },
    Recipe {
        name: "nsgd",
        about: "steps that fall from pass to pass, noise on the trained model for the worst position",
        settings: Setting::ALL,
        build: rsgd_ar::nsgd,
    },
    Recipe {
        name: "out-pert-gd",
        about: "full-gradient descent, noise on the trained model (Zhang et al. 2017)",
        settings: &[Relation, Loss, Lambda, Passes, Radius],
        build: rsgd_ar::full_gradient,
    },
    Recipe {
        name: "priv-gene",
        about: "coordinate steps chosen by the exponential mechanism (Zhang et al. 2013), one round",
        settings: &[Relation, Loss],
        build: choice::priv_gene,
    },
    Recipe {
        name: "majority",
        about: "the same answer for everyone, by two noisy counts",
        settings: &[Relation],
        build: choice::majority,
    },
    Recipe {
        name: "dp-blgd",
        about: "gradient descent with a noisy line search, one step, all of which the attacker sees",
        settings: &[Relation, Loss, Lambda],
        build: searched::dp_blgd,
    },
    Recipe {
        name: "dp-agd",
        about: "gradient descent with a noisy choice of the best step (Lee, Kifer 2018), one step",
        settings: &[Relation, Loss, Lambda],
        build: searched::dp_agd,
    },
    Recipe {
        name: "model-sgd",
        about: "a model of any kind (DP-SGD, DP-BLSGD): one step, its gradient and its line search on one batch",
        settings: &[Relation, BatchSize],
        build: model_sgd::subjects,
    },
    Recipe {
        name: "snowball-sgd",
        about: "the same on batches that grow (Feldman et al. 2020, Theorem 3.5)",
        settings: &[Relation, Loss, Lambda, Radius],
        build: last_iterate::snowball_sgd,
    },
    Recipe {
        name: "scs13",
        about: "noise on every update, all of which the attacker sees (Song et al. 2013)",
        settings: &[Relation, Loss, Passes, BatchSize],
        build: scs13::subjects,
    },
    Recipe {
        name: "portions",
        about: "a choice among candidates on a portion of the records (Wu et al. 2017, Algorithm 3)",
        settings: Setting::ALL,
        build: tuning::portions,
    },
    Recipe {
        name: "random-stopping",
        about: "the best of a random number of repetitions (Liu, Talwar 2019; Papernot, Steinke 2022)",
        settings: Setting::ALL,
        build: random_stopping::subjects,
    },
];

/// Returns the recipe of this name.
pub fn recipe(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name)
}

/// Returns the audits of all recipes under these parameters.
///
/// # Errors
/// Parameters that a recipe refuses.
pub fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let mut all = Vec::new();
    for recipe in RECIPES {
        all.extend(recipe.subjects(parameters)?);
    }
    Ok(all)
}

/// A recipe on its canary data sets, ready to be audited.
pub struct Audited {
    /// The audited run, noise included.
    pub subject: Box<dyn Subject>,
    /// The result of the search without noise.
    pub distance: Distance,
}

/// The largest distance found between the models of two neighbouring data sets, before any noise.
///
/// It needs no statistics: one pair beyond the claim refutes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// The largest distance found.
    pub reached: f64,
    /// The claimed sensitivity.
    pub claimed: f64,
    /// Number of pairs of data sets tried.
    pub pairs: u32,
}

impl Distance {
    /// Generous bound on the relative error of a distance computed in double precision from two models.
    const ROUNDING: f64 = 1e-12;

    /// Returns whether the claim holds.
    pub fn holds(&self) -> bool {
        self.reached * (1.0 - Self::ROUNDING) <= self.claimed
    }

    /// Returns the fraction of the claim that was reached: near 1 if the sensitivity is tight and the search good.
    pub fn ratio(&self) -> f64 {
        self.reached / self.claimed
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
