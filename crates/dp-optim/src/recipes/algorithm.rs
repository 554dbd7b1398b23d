//! The traits that the author of a private algorithm implements.
//!
//! An [`Algorithm`] holds public parameters. Its [`Run`] holds the numbers that follow from them for one [`Problem`] and one
//! noise. [`Plan`](super::Plan) and [`Derivation`] are the same code for all algorithms.
//!
//! # Privacy
//! A run states its event and trains with the same numbers. The plan compares the log of a training with the event that it
//! promised, and discards the result if they differ. The author of the run is responsible for the claim that the logged
//! mechanisms protect the computed values: review each `impl Run`.

use dp_accountant::certificate::Assumption;
use dp_accountant::{AdjacencyKind, DpEvent, EventLog};
use dp_losses::Real;
use dp_mechanisms::{LentRng, Released};

use super::bolt_on::OutputRun;
use super::noise_scale::NoiseScale;
use super::problem::{Admitted, Problem, Setting};
use super::recipe::{Budget, NOT_JOINT, RecordAdjacency, Summary};
use crate::derivation::{Derivation, RELEASE};
use crate::engine::Control;
use crate::error::Error;
use crate::lattice::ReleaseLattice;

/// A private training algorithm with its public parameters.
///
/// `own_recipe.rs`, an example of `dp-audit-recipes`, implements one outside of this crate.
pub trait Algorithm: Clone + core::fmt::Debug + PartialEq + Sync {
    /// Its name in messages.
    const NAME: &'static str;

    /// Largest bound on the rows' norm for which it is proved.
    const MOST_ROW_NORM: f64 = 1.0;

    /// Largest bound on the targets of binary losses for which it is proved.
    const MOST_CLASS_TARGET: f64 = 1.0;

    /// The result of calibration: the noise, and other values that the recipe leaves open. The certificate states it.
    type Calibrated: Clone + core::fmt::Debug + PartialEq + Sync;

    /// The run.
    type Run: Run;

    /// Returns the loss, the bounds and the arithmetic.
    fn setting(&self) -> Setting;

    /// Returns the problem for `n` records of `dim` features under a neighbouring relation.
    ///
    /// # Errors
    /// Those of [`Problem::new`].
    fn problem(&self, n: u64, dim: u64, relation: AdjacencyKind) -> Result<Problem, Error> {
        Problem::new(self, n, dim, relation)
    }

    /// Returns the least noise with which `copies` releases on the same records stay within the budget, and the run with it.
    ///
    /// # Errors
    /// Parameters outside their range or outside the proof ([`Error::NotProved`]), and a budget that no noise can meet.
    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64)
    -> Result<(Self::Calibrated, Self::Run), Error>;

    /// Returns the run with this noise, as a certificate states it.
    ///
    /// # Errors
    /// As [`calibrate`](Self::calibrate).
    fn resolve(&self, problem: &Problem, calibrated: &Self::Calibrated) -> Result<Self::Run, Error>;

    /// Returns the assumptions that the certificate lists.
    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions()
    }

    /// Returns the set of weights that an honest release can have. [`lattice`](crate::lattice) lists the checks of each
    /// recipe.
    ///
    /// # Errors
    /// Noise that is not positive and finite.
    fn lattice(&self, problem: &Problem, calibrated: &Self::Calibrated) -> Result<ReleaseLattice, Error> {
        let _ = (problem, calibrated);
        Ok(ReleaseLattice::ANYWHERE)
    }

    /// Returns the noise that is added to the weights at the end: see [`DerivesModel::weight_noise`](crate::DerivesModel::weight_noise).
    fn weight_noise(&self, calibrated: &Self::Calibrated) -> Option<NoiseScale> {
        let _ = calibrated;
        None
    }

    /// Returns roughly the number of steps that recomputing the event and its cost takes: see
    /// [`DerivesModel::work`](crate::DerivesModel::work).
    fn work(&self, problem: &Problem, calibrated: &Self::Calibrated) -> u64 {
        let _ = (problem, calibrated);
        RELEASE
    }

    /// Plans one release of `classes` models together, for an algorithm that releases its result once, at the end; returns the
    /// derivation of one model with the noise of all.
    ///
    /// # Errors
    /// As [`calibrate`](Self::calibrate); [`Error::NotProved`] for any other algorithm.
    fn calibrate_joint(
        &self,
        _problem: &Problem,
        _classes: u32,
        _budget: Budget,
        _copies: u64,
    ) -> Result<(OutputRun, Derivation<Self>), Error> {
        Err(NOT_JOINT)
    }

    /// Returns the event of that release, from the derivation of one model.
    ///
    /// # Errors
    /// As [`calibrate_joint`](Self::calibrate_joint).
    fn joint_event(&self, _problem: &Problem, _calibrated: &Self::Calibrated, _classes: u32) -> Result<DpEvent, Error> {
        Err(NOT_JOINT)
    }
}

/// An algorithm with its noise on a problem: everything that is known before data is read.
pub trait Run: Clone + core::fmt::Debug + PartialEq + Sync {
    /// Returns the event of the release, of the numbers that [`train`](Self::train) draws noise with.
    ///
    /// # Errors
    /// Noise that is not positive and finite.
    fn event(&self) -> Result<DpEvent, Error>;

    /// Returns sensitivity, noise and settings, for display.
    fn summary(&self) -> Summary;

    /// Returns whether training sums second moments of the features, or holds another matrix of all their pairs.
    fn holds_square(&self) -> bool {
        false
    }

    /// Trains, releases and logs.
    ///
    /// Only a plan calls it: [`Admitted`] rows are those of the plan's shape, within its bounds, under its relation.
    ///
    /// ```compile_fail,E0308
    /// # use dp_accountant::{ReplaceOne, ZeroOut};
    /// # use dp_data::RowSource; use dp_mechanisms::LentRng; use dp_optim::engine::Control;
    /// # use dp_optim::recipes::{BoltOn, Plan, Run};
    /// fn train(plan: &Plan<BoltOn, ZeroOut>, source: &mut dyn RowSource<f64>, rng: &mut LentRng<'_>) {
    ///     // The noise of one relation under the name of another, on unchecked rows.
    ///     let _ = plan.run().train::<f64, ReplaceOne>(source, rng, &mut Control::default());
    /// }
    /// ```
    ///
    /// # Errors
    /// A failing source, [`Error::Interrupted`]. Nothing has been released then.
    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error>;
}
