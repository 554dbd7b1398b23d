//! A run on one of two data sets, reduced to the score of an attacker.

use core::fmt::Display;

use dp_audit::subject::from_fn;
use dp_audit::{Claim, Side, Statistic, Subject};
use dp_data::Examples;
use dp_mechanisms::{ReleaseRng as _, SeededRng};

use dp_optim::Error;
use dp_optim::MemorySource;
use dp_optim::engine::Control;
use dp_optim::recipes::{AnyPlan, TrainsAny};

/// Creates a subject from a closure that runs once on one side and returns the score.
pub(super) fn scored<E: Display>(
    name: String,
    pair: String,
    claim: Claim,
    cost: f64,
    score: impl Fn(Side, &mut SeededRng) -> Result<f64, E> + Send + Sync + 'static,
) -> Box<dyn Subject> {
    let subject = name.clone();
    let trial = move |side: Side, rng: &mut SeededRng, features: &mut Vec<f64>| {
        let failed = |error: E| dp_audit::Error::Trial { subject: subject.clone(), reason: error.to_string() };
        features.push(score(side, rng).map_err(failed)?);
        Ok(())
    };
    Box::new(from_fn(name, pair, claim, Statistic::Score, trial).with_relative_cost(cost))
}

/// The two data sets of a pair, with the bounds of their rows and targets.
pub(super) struct Sides {
    base: Examples<f64>,
    neighbour: Examples<f64>,
    row_norm: f64,
    target_bound: f64,
}

impl Sides {
    /// Creates the data sets that `examples` returns for each side.
    pub(super) fn new(
        row_norm: f64,
        target_bound: f64,
        examples: impl Fn(Side) -> Result<Examples<f64>, Error>,
    ) -> Result<Self, Error> {
        let (base, neighbour) = (examples(Side::Base)?, examples(Side::Neighbour)?);
        Ok(Self { base, neighbour, row_norm, target_bound })
    }

    /// Returns a new source of the data set of one side.
    pub(super) fn source(&self, side: Side) -> MemorySource<f64> {
        let examples = match side {
            Side::Base => &self.base,
            Side::Neighbour => &self.neighbour,
        };
        MemorySource::new(examples.clone(), self.row_norm, self.target_bound)
    }
}

/// Trains as planned and returns the released weights.
pub(super) fn trained<A: TrainsAny<f64>>(
    plan: &AnyPlan<A>,
    mut source: MemorySource<f64>,
    rng: &mut SeededRng,
) -> Result<Vec<f64>, Error> {
    Ok(A::train_any(plan, &mut source, &mut rng.lend(), &mut Control::default())?.weights.into_inner())
}
