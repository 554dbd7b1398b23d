//! Algorithms of the literature, each a choice of the engine's parts with its theorem.
//!
//! Each is a [`Recipe`]: public parameters from which a plan derives the noise. [`AnyRecipe`] holds any of them, for a choice
//! at run time.

pub mod admm_obj_pert;
pub mod algorithm;
mod any;
pub mod at_base_rate;
pub mod bolt_on;
pub mod bst14;
mod compiled;
pub mod dp_ftrl;
pub mod dp_newton;
pub mod dp_sgd;
pub mod dp_svrg;
mod last_iterate;
pub(crate) mod linear;
pub mod majority;
pub mod model_sgd;
pub mod noise_scale;
pub mod noisy_moments;
pub(crate) mod noisy_run;
mod noisy_sums;
pub mod non_private;
pub mod obj_pert;
pub mod one_vs_all;
pub mod per_unit;
pub mod phased_erm;
pub mod phased_sgd;
pub mod phases;
mod plan;
pub mod pnsgd;
pub mod priv_gene;
pub mod problem;
pub mod promise;
pub mod recipe;
pub mod rsgd_ar;
pub mod scs13;
pub mod searched_descent;
pub mod snowball_sgd;
#[cfg(test)]
mod tests;

pub use crate::line_search::Search;
pub use admm_obj_pert::AdmmObjPert;
pub use algorithm::{Algorithm, Run};
pub use any::{AnyDerivation, AnyPlan, AnyRecipe};
pub use at_base_rate::AtBaseRate;
pub use bolt_on::{BoltOn, Convexity, OutputNoise, Stopping};
pub use bst14::{Bst14, Bst14Calibration};
pub use compiled::{Compiled, TrainsAny, train_without_privacy};
pub use dp_ftrl::DpFtrl;
pub use dp_newton::{Curvature, DpNewton};
pub use dp_sgd::{DpSgd, Sampling};
pub use dp_svrg::DpSvrg;
pub use majority::Majority;
pub use model_sgd::{ModelDerivation, ModelPlan, ModelSgd, NonPrivateSgd, QuantileClipping, StepSearch};
pub use noise_scale::NoiseScale;
pub use noisy_moments::NoisyMoments;
pub use non_private::NonPrivate;
pub use obj_pert::ObjPert;
pub use one_vs_all::{OneVsAll, Share};
pub use per_unit::PerUnit;
pub use phased_erm::PhasedErm;
pub use phased_sgd::PhasedSgd;
pub use plan::Plan;
pub use pnsgd::Pnsgd;
pub use priv_gene::PrivGene;
pub use problem::{Admitted, Problem, Setting};
pub use promise::Promise;
#[cfg(test)]
pub(crate) use recipe::budget;
pub use recipe::{Budget, DerivationOf, Nesting, Planned, Recipe, RecordAdjacency, Summary, least_scale};
pub use rsgd_ar::{PassSteps, RsgdAr};
pub use scs13::Scs13;
pub use searched_descent::SearchedDescent;
pub use snowball_sgd::SnowballSgd;
