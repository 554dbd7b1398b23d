//! A private algorithm as its author writes it.
//!
//! An [`Algorithm`] is public parameters; its [`Run`] is what they come to on a [`Problem`] with a certain noise. Plan,
//! derivation, certificate and training are the same for all of them: [`Plan`](super::Plan) and
//! [`Derivation`](crate::Derivation). A run states its event and trains by the same numbers, and what training logged is
//! compared with what was promised, so that an algorithm cannot log one thing and run another.

use dp_accountant::certificate::Assumption;
use dp_accountant::{AdjacencyKind, DpEvent, EventLog};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::{LentRng, Released};

use super::problem::{Problem, Setting};
use super::recipe::{Budget, RecordAdjacency, Summary};
use crate::derivation::RELEASE;
use crate::engine::Control;
use crate::error::Error;
use crate::lattice::ReleaseLattice;

/// A private training algorithm with its public parameters.
///
/// `examples/own_recipe.rs` writes one outside of this crate.
pub trait Algorithm: Clone + core::fmt::Debug + PartialEq {
    /// Its name in messages.
    const NAME: &'static str;

    /// The largest bound on the rows' norm that it is proved for.
    const MOST_ROW_NORM: f64 = 1.0;

    /// The largest bound on the targets of two classes that it is proved for.
    const MOST_CLASS_TARGET: f64 = 1.0;

    /// What calibration finds. A certificate states it beside the recipe and the public sizes.
    type Calibrated: Clone + core::fmt::Debug + PartialEq;

    /// The run.
    type Run: Run;

    /// The loss, the bounds and the arithmetic.
    fn setting(&self) -> Setting;

    /// What it solves on `n` records of `dim` features under a relation.
    ///
    /// # Errors
    /// Those of [`Problem::new`].
    fn problem(&self, n: u64, dim: u64, relation: AdjacencyKind) -> Result<Problem, Error> {
        Problem::new(self, n, dim, relation)
    }

    /// The least noise with which `copies` releases on the same records stay within the budget, and the run with it.
    ///
    /// # Errors
    /// Parameters outside their range or outside what is proved ([`Error::NotProved`]), and a budget that no noise
    /// reaches.
    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64)
    -> Result<(Self::Calibrated, Self::Run), Error>;

    /// The run with this noise, as a certificate states it.
    ///
    /// # Errors
    /// As [`calibrate`](Self::calibrate).
    fn resolve(&self, problem: &Problem, calibrated: &Self::Calibrated) -> Result<Self::Run, Error>;

    /// What a release takes on trust.
    fn assumptions(&self, problem: &Problem) -> Vec<Assumption> {
        problem.setting.assumptions()
    }

    /// What the released weights can be. See [`lattice`](crate::lattice) for which recipe is held to what.
    ///
    /// # Errors
    /// Noise that is none.
    fn lattice(&self, problem: &Problem, calibrated: &Self::Calibrated) -> Result<ReleaseLattice, Error> {
        let _ = (problem, calibrated);
        Ok(ReleaseLattice::ANYWHERE)
    }

    /// About how many steps it takes to recompute the event and its cost: see
    /// [`DerivesModel::work`](crate::DerivesModel::work).
    fn work(&self, problem: &Problem, calibrated: &Self::Calibrated) -> u64 {
        let _ = (problem, calibrated);
        RELEASE
    }
}

/// An algorithm with its noise on a problem: everything that is known before data is read.
pub trait Run: Clone + core::fmt::Debug + PartialEq {
    /// The event of the release, of the numbers that [`train`](Self::train) draws noise with.
    ///
    /// # Errors
    /// Noise that is none.
    fn event(&self) -> Result<DpEvent, Error>;

    /// Sensitivity, noise and settings, for people.
    fn summary(&self) -> Summary;

    /// Trains, releases and logs. The source has the problem's shape and bounds.
    ///
    /// # Errors
    /// A source that fails, [`Error::Interrupted`]. Nothing has been released then.
    fn train<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error>;
}
