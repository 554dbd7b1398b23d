//! Gradients from an engine that keeps its rows: each step's sum is computed there, exactly, and gets its noise here.

use dp_accountant::certificate::Assumption;
use dp_accountant::{Adjacency, EventLog};
use dp_data::sums::{IntegerSums, Slope, SumKind, SumRequest, SumSource, bits_of};
use dp_data::{Block, Description, Rows, SourceError};
use dp_losses::{LossKind, Model};
use dp_mechanisms::clip::{ClippingNorm, ExactSum, GradientClipping};
use dp_mechanisms::steps::{NoisySteps, StepNoise};
use dp_mechanisms::{Bounded, ReleaseRng, Released};
use nalgebra::{RealField, convert, try_convert};

use super::batches::{BatchSizes, Batches, Piece, Visit};
use super::gradient::GradientEstimate;
use super::noisy::OTHER_BATCHES;
use super::step_batches::{Driven, StepBatches};
use super::step_sum::{Contributions, StepSum};
use crate::error::Error;

const RECIPE: &str = "sums";

/// The noisy sum of all records' gradients, each computed by a [`SumSource`]. The noise was paid for when the run started.
///
/// Each estimate is released, as those of [`NoisyGradient`](super::NoisyGradient) are: the weights that the source is asked about
/// are computed from such estimates alone.
///
/// The first sum is computed twice: if the two differ, or a later one is over another number of records, the run ends.
///
/// # Privacy
/// [`ExactSum`] has the sensitivity of exact arithmetic, whatever the engine does with exponentials and in whatever order it adds
/// up. The bound on contributions that [`SumSource`] promises relies on the engine's arithmetic; the release states this
/// assumption ([`Assumption::EngineArithmetic`]).
pub(crate) struct SumGradient<'r, A: Adjacency, R: ?Sized> {
    paid: StepBatches,
    is_driven: bool,
    source: &'r mut dyn SumSource,
    slope: Slope,
    n: u64,
    bits: u32,
    sum: ExactSum<A>,
    steps: NoisySteps<A>,
    rng: &'r mut R,
    /// True until the first sum was compared with its repetition.
    is_first: bool,
}

impl<'r, A: Adjacency, R: ReleaseRng + ?Sized> SumGradient<'r, A, R> {
    /// Logs the cost of all steps and starts the run.
    ///
    /// # Errors
    /// A loss that no engine computes, steps that are not over all records, noise for a smaller sensitivity, and errors of
    /// [`ExactSum::new`] and [`NoisySteps::start`]. Nothing is logged then.
    pub(crate) fn start(
        (loss, parameters): (LossKind, usize),
        paid: StepBatches,
        sum: &StepSum,
        noise: StepNoise<A>,
        source: &'r mut dyn SumSource,
        log: &mut EventLog<A>,
        rng: &'r mut R,
    ) -> Result<Self, Error> {
        let n = match &paid {
            StepBatches::Passes { n, sizes: BatchSizes::Equal(size), .. } if *size as u64 >= *n => *n,
            _ => {
                return Err(Error::NotProved {
                    recipe: RECIPE,
                    why: "only sums over all records are computed elsewhere",
                });
            }
        };
        let slope = slope(loss, &sum.contributions)?;
        let (bits, norm) = (bits_of(n), sum.contributions.bound());
        let exact = ExactSum::new(parameters, ClippingNorm::new(norm)?.into(), 2f64.powi(-(bits as i32)), n)?;
        let (found, built_for) = (exact.sensitivity().get(), noise.sensitivity().get());
        if !(found <= built_for) {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "two records' gradients are proved to be closer within a radius than an engine's rounding allows to \
                      assume: omit the radius",
            });
        }
        let steps = NoisySteps::start(noise, paid.plan()?, log, rng)?;
        Ok(Self { paid, is_driven: false, source, slope, n, bits, sum: exact, steps, rng, is_first: true })
    }

    /// Ends the run and declares `output` released.
    ///
    /// # Errors
    /// A log other than that of the start.
    pub(crate) fn finish<T>(self, output: T, log: &mut EventLog<A>) -> Result<Released<T>, Error> {
        Ok(self.steps.finish(output, log)?)
    }
}

/// Returns sums over `n` records.
fn ask(source: &mut dyn SumSource, request: &SumRequest<'_>, n: u64) -> Result<IntegerSums, Error> {
    let sums = source.sums(request)?;
    if sums.records != n {
        return Err(SourceError::CountChanged { expected: n, found: sums.records }.into());
    }
    Ok(sums)
}

/// Returns sums over `n` records that are the same when they are asked for again.
fn ask_twice(source: &mut dyn SumSource, request: &SumRequest<'_>, n: u64) -> Result<IntegerSums, Error> {
    let sums = ask(source, request, n)?;
    if ask(source, request, n)? != sums {
        return Err(broken(
            "it gave two answers to one question: the table changes during the run, or the engine is not deterministic",
        ));
    }
    Ok(sums)
}

/// Returns one value of exact sums over `n` records that are computed elsewhere: `add` takes them, and returns the value.
///
/// # Errors
/// Those of the engine and of `add`.
pub(crate) fn once<T, A: Adjacency>(
    source: &mut dyn SumSource,
    (kind, bits): (SumKind, u32),
    n: u64,
    add: impl FnOnce(IntegerSums) -> Result<Bounded<T, A>, dp_mechanisms::Error>,
) -> Result<Bounded<T, A>, Error> {
    let sums = ask_twice(source, &SumRequest { kind, weights: &[], bits }, n)?;
    Ok(add(sums).map_err(impossible)?.assuming(Assumption::EngineArithmetic { bits }))
}

fn impossible(error: dp_mechanisms::Error) -> Error {
    match error {
        dp_mechanisms::Error::ImpossibleSum => broken(&error.to_string()),
        error => error.into(),
    }
}

fn broken(why: &str) -> Error {
    SourceError::Engine { engine: RECIPE, message: why.to_owned() }.into()
}

impl<F: RealField + Copy, M: Model<F>, A: Adjacency, R: ReleaseRng + ?Sized> GradientEstimate<F, M>
    for SumGradient<'_, A, R>
{
    fn begin(&mut self, driven: &Driven<'_>) -> Result<(), Error> {
        self.is_driven = driven.are(&self.paid);
        if self.is_driven { Ok(()) } else { Err(OTHER_BATCHES) }
    }

    fn end(&mut self) {
        self.is_driven = false;
    }

    fn estimate(
        &mut self,
        _model: &M,
        parameters: &[F],
        _batch: M::Batch<'_>,
        _piece: Piece,
        sum: &mut [F],
    ) -> Result<(), Error> {
        if !self.is_driven {
            return Err(OTHER_BATCHES);
        }
        let weights: Vec<f64> = parameters.iter().map(|&weight| try_convert(weight).unwrap_or(f64::NAN)).collect();
        let request = SumRequest { kind: SumKind::Gradients(self.slope), weights: &weights, bits: self.bits };
        let ask = if core::mem::take(&mut self.is_first) { ask_twice } else { ask };
        let sums = ask(self.source, &request, self.n)?;
        self.sum.add_from_elsewhere(&sums.steps, sums.records).map_err(impossible)?;
        let exact = self.sum.finish().assuming(Assumption::EngineArithmetic { bits: self.bits });
        let noisy = self.steps.noisy(exact, self.rng)?;
        sum.iter_mut().zip(noisy).for_each(|(out, noisy)| *out = convert(noisy));
        Ok(())
    }
}

/// Returns the slope of a loss whose contributions have these bounds.
fn slope(loss: LossKind, contributions: &Contributions) -> Result<Slope, Error> {
    let clipped = match contributions {
        Contributions::Clipped(GradientClipping::Flat(norm)) => Some(norm.get()),
        Contributions::Clipped(_) => {
            return Err(Error::NotProved { recipe: RECIPE, why: "other engines clip a gradient to one norm" });
        }
        Contributions::Bounded { .. } => None,
    };
    Ok(match (loss, clipped) {
        (LossKind::Logistic, None) => Slope::Logistic,
        (LossKind::HuberSvm(loss), None) => Slope::HuberSvm { h: loss.h() },
        (LossKind::Hinge, None) => Slope::HuberSvm { h: 0.0 },
        (LossKind::HuberRegression(loss), None) => Slope::Huber { h: loss.h() },
        (LossKind::Absolute, None) => Slope::Huber { h: 0.0 },
        (LossKind::LogCosh(loss), None) => Slope::LogCosh { h: loss.h() },
        (LossKind::Softmax(loss), None) => Slope::Softmax { classes: loss.classes() },
        (LossKind::Squared, Some(most)) => Slope::ClippedResidual { most },
        (LossKind::Squared, None) => {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "other engines bound the gradient of the squared loss by a clipping norm: state one",
            });
        }
        (LossKind::Custom(_), _) | (_, None) => {
            return Err(Error::NotProved { recipe: RECIPE, why: "other engines do not know this loss" });
        }
        (_, Some(_)) => {
            return Err(Error::NotProved {
                recipe: RECIPE,
                why: "other engines use the gradient bound of the loss itself: omit the clipping norm",
            });
        }
    })
}

/// Batches of all records, without the records.
pub(crate) struct AllElsewhere {
    pub(crate) description: Description,
}

impl<F, M> Batches<F, M> for AllElsewhere
where
    M: for<'a> Model<F, Batch<'a> = Block<'a, F>>,
{
    fn describe(&mut self) -> Result<Description, Error> {
        Ok(self.description.clone())
    }

    fn pass<V: Visit<F, M>>(&mut self, _pass: u32, _sizes: &BatchSizes, visit: &mut V) -> Result<u64, Error> {
        let Description { n, dim, .. } = self.description;
        let none = Block { rows: Rows::Dense { values: &[], dim }, targets: &[], valid: None };
        visit.batch(none, Piece::whole(usize::try_from(n).unwrap_or(usize::MAX)))?;
        Ok(n)
    }

    fn same_order_each_pass(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
