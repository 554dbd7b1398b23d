//! For `dp-audit-recipes`: values before noise, as private as the data, and the releases of a training as they happen.
//!
//! Nothing here is a release. The functions are in one place, so that a review sees everything that leaves a recipe
//! without a release.

use dp_accountant::{EventLog, ReplaceOne, ZeroOut};
use dp_data::{Block, Examples, Order, RowSource};
use dp_losses::{Model, ModelVisitor, ScaledSteps};
use dp_mechanisms::{Gaussian, LentRng, ReleaseRng as _, Released, SeededRng};

use crate::engine::{Control, StepSum};
use crate::error::Error;
use crate::line_search::{Searcher, Sums};
use crate::recipes::dp_newton::NewtonRun;
use crate::recipes::dp_svrg::SvrgRun;
use crate::recipes::majority::AnswerRun;
use crate::recipes::noisy_moments::MomentsRun;
use crate::recipes::obj_pert::ObjPertRun;
use crate::recipes::phases::PhasedRun;
use crate::recipes::priv_gene::GeneRun;
use crate::recipes::scs13::UpdatesRun;
use crate::recipes::searched_descent::SearchRun;
use crate::recipes::{BoltOn, Bst14, ModelPlan, Planned, Problem, RecordAdjacency, Search, TrainsAny};
use crate::tuning::agreement::choose;
use crate::tuning::portions::PortionsPlan;

pub use crate::added_up::AddedUp;
pub use crate::recipes::bolt_on::OutputRun;
pub use crate::recipes::dp_svrg::Observation as SvrgObservation;
pub use crate::recipes::linear::size;
pub use crate::recipes::noisy_run::{Batching, NoisyRun, StepsRun};
pub use crate::recipes::scs13::Observation as Scs13Observation;
pub use crate::recipes::searched_descent::Observation as SearchObservation;
pub use crate::tuning::agreement::{agreement, sensitivity as agreement_sensitivity};
pub use crate::tuning::repetitions::mean as mean_repetitions;

/// Runs bolt-on SGD in the source's order and returns its output before noise.
///
/// # Errors
/// A failing source.
pub fn train_without_noise(run: &OutputRun, source: &mut dyn RowSource<f64>) -> Result<Vec<f64>, Error> {
    run.training()?.train(source, Order::Declared, &mut Control::default())
}

/// Returns the bolt-on recipe that runs.
pub fn recipe_of(run: &OutputRun) -> &BoltOn {
    &run.recipe
}

/// Returns PrivGene's utilities at these weights.
///
/// # Errors
/// A failing source.
pub fn utilities(
    run: &GeneRun,
    source: &mut dyn RowSource<f64>,
    weights: &[f64],
    step: f64,
) -> Result<Vec<f64>, Error> {
    run.utilities(source, weights, step, 0, &mut Control::default())
}

/// Returns the two counts of a constant prediction.
///
/// # Errors
/// A failing source.
pub fn counts(run: &AnswerRun, source: &mut dyn RowSource<f64>) -> Result<[f64; 2], Error> {
    run.counts(source, &mut Control::default())
}

/// Returns ω of DP-Newton's joint sum.
pub fn newton_weight(run: &NewtonRun) -> f64 {
    run.joint.weight()
}

/// Returns L of BST14.
///
/// # Errors
/// A regulariser or radius outside its range.
pub fn lipschitz(recipe: &Bst14, problem: &Problem) -> Result<f64, Error> {
    recipe.lipschitz(problem)
}

/// Returns the public numbers of a run with noise in every step.
pub fn noisy_run(run: &StepsRun) -> &NoisyRun {
    &run.run
}

/// Returns the size of the first step.
pub fn first_step(run: &StepsRun) -> f64 {
    run.steps.at(1)
}

/// Returns the minimiser of the perturbed objective for a given linear term.
///
/// # Errors
/// A failing source.
pub fn perturbed_minimiser(
    run: &ObjPertRun,
    source: &mut dyn RowSource<f64>,
    noise: &[f64],
    centre: &[f64],
) -> Result<Vec<f64>, Error> {
    run.minimiser(source, noise, centre, &mut Control::default())
}

/// Returns the first phase's result before its noise.
///
/// # Errors
/// A failing source.
pub fn first_phase_without_noise(
    run: &PhasedRun,
    source: &mut dyn RowSource<f64>,
    start: Vec<f64>,
) -> Result<Vec<f64>, Error> {
    run.first_phase_without_noise(source, start)
}

/// Returns the clipped sum of SCS13 over a batch.
///
/// # Errors
/// A batch of another shape.
pub fn clipped_sum(run: &UpdatesRun, batch: &Examples<f64>, parameters: &[f64]) -> Result<Vec<f64>, Error> {
    let dim = size("dimension", run.problem.dim)?;
    let sum = ClippedSumOf { sum: &run.terms.sum, batch: batch.block(), parameters };
    run.recipe.loss.visit_model(dim, sum)
}

/// The sum of a batch's gradients as training computes it, before its noise.
struct ClippedSumOf<'s> {
    sum: &'s StepSum,
    batch: Block<'s, f64>,
    parameters: &'s [f64],
}

impl ModelVisitor<f64> for ClippedSumOf<'_> {
    type Output = Result<Vec<f64>, Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
    {
        let Self { sum, batch, parameters } = self;
        let (mut pass, mut total) = (model.pass(0), vec![0.0; parameters.len()]);
        let mut clipped = sum.start::<f64, M, ReplaceOne>(&model, 0.0)?;
        let microbatch = usize::try_from(sum.microbatch).unwrap_or(usize::MAX);
        for start in (0..batch.len()).step_by(microbatch) {
            let piece = batch.slice(start..batch.len().min(start.saturating_add(microbatch)));
            model.forward(parameters, piece, &mut pass);
            model.backward(parameters, piece, &mut pass);
            let mut norms = vec![0.0; piece.len()];
            model.squared_norms(piece, &mut pass, &mut norms);
            clipped.add(&norms, |coefficients, sum| {
                model.add_weighted_in_double(piece, &mut pass, coefficients, sum);
                total.iter_mut().zip(sum).for_each(|(total, part)| *total += *part);
            })?;
        }
        Ok(total)
    }
}

/// Returns the mechanism of a gradient of a searched descent that costs `rho`.
///
/// # Errors
/// A clipping norm or cost outside its range.
pub fn gradient_noise<A: RecordAdjacency>(run: &SearchRun, rho: f64, clipping: f64) -> Result<Gaussian<A>, Error> {
    run.noise(rho, clipping)
}

/// Returns the public number with which the private sum of each candidate step is compared.
///
/// # Errors
/// A number of records beyond the grid.
pub fn required_gains(
    run: &SearchRun,
    weights: &[f64],
    direction: &[f64],
    steps: &[f64],
    most_loss: f64,
) -> Result<Vec<f64>, Error> {
    run.required(weights, direction, steps, most_loss)
}

/// Returns the probabilities of a choice among candidate steps, no step first, from sums of clamped losses at the
/// weights and at each candidate, and the [`required_gains`].
///
/// # Errors
/// A cost outside its range, and sums that are not finite.
pub fn law_of_choice<A: RecordAdjacency>(
    search: Search,
    rho: f64,
    losses: Vec<f64>,
    required: Vec<f64>,
) -> Result<Vec<f64>, Error> {
    Searcher::<A>::new(search, rho)?.law(&Sums { losses, required })
}

/// Returns the divisor of a batch's sum.
pub fn divisor_of_model<A: RecordAdjacency>(plan: &ModelPlan<A>) -> f64 {
    plan.divisor()
}

/// Returns the sensitivity of a step's sum.
///
/// # Errors
/// Numbers outside the range of a sum.
pub fn sensitivity_of_model<A: RecordAdjacency>(plan: &ModelPlan<A>) -> Result<f64, Error> {
    plan.sensitivity()
}

/// Returns the standard deviation of the noise on the count of gradients below an adaptive norm; 0 without one.
///
/// # Errors
/// Numbers outside the range of a sum.
pub fn count_std_dev<A: RecordAdjacency>(plan: &ModelPlan<A>) -> Result<f64, Error> {
    let multiplier = plan.derivation().std_dev / plan.sensitivity()?;
    Ok(plan.derivation().recipe.adaptive_norm.map_or(0.0, |norm| norm.count(A::KIND, multiplier).1))
}

/// Returns the factors of the candidate steps of a model's first step, and their probabilities from the sum of clamped losses at the
/// start and at each candidate, in units of the largest loss; `points` are the start and the candidates. `None` without a search.
///
/// # Errors
/// Numbers that are not finite.
pub fn law_of_step<A: RecordAdjacency>(
    plan: &ModelPlan<A>,
    step_size: f64,
    losses: impl Fn(&[f64]) -> f64,
    here: &[f64],
    point: impl Fn(f64) -> Vec<f64>,
) -> Result<Option<Vec<(f64, f64)>>, Error> {
    let Some(search) = plan.search::<A>()? else { return Ok(None) };
    let factors = search.factors(1.0);
    let candidates = factors.iter().map(|&factor| {
        let point = point(factor);
        (losses(&point), search.required(here, &point, step_size * factor))
    });
    let law = search.law(losses(here), &candidates.collect::<Vec<_>>())?;
    Ok(Some(factors.into_iter().zip(law).collect()))
}

/// Returns the steps of DP-SVRG.
pub fn svrg_steps(run: &SvrgRun) -> &NoisyRun {
    &run.run.steps
}

/// Returns the choice of [`PortionsPlan`] among these models.
///
/// # Errors
/// A failing source.
pub fn chosen_portion<P: Planned<A>, A: RecordAdjacency>(
    plan: &PortionsPlan<P, A>,
    models: &[&[f64]],
    source: &mut dyn RowSource<f64>,
    rng: &mut SeededRng,
) -> Result<usize, Error> {
    let agreements = models.iter().map(|weights| agreement(source, weights, &Control::default()));
    Ok(choose(plan.choice(), agreements.collect::<Result<_, _>>()?, &mut rng.lend())?.0)
}

/// Defines [`Observed`] and compiles it here for both relations.
macro_rules! observed {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),+ $(,)?) -> $result:ty $body:block)+) => {
        /// A relation for which this crate compiles trainings that are observed.
        pub trait Observed: TrainsAny<f64> {
            $($(#[$doc])* fn $name($($argument: $type),+) -> $result;)+
        }

        impl Observed for ZeroOut {
            $(fn $name($($argument: $type),+) -> $result $body)+
        }

        impl Observed for ReplaceOne {
            $(fn $name($($argument: $type),+) -> $result $body)+
        }
    };
}

observed! {
    /// Returns the noisy counts of a constant prediction.
    ///
    /// # Errors
    /// A failing source.
    fn noisy_counts(
        run: &AnswerRun,
        source: &mut dyn RowSource<f64>,
        rng: &mut LentRng<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        run.noisy_counts::<f64, Self>(source, &mut EventLog::new(), rng, &mut Control::default())
    }

    /// Returns the noisy sums of a step of DP-Newton.
    ///
    /// # Errors
    /// A failing source.
    fn newton_sums(
        run: &NewtonRun,
        source: &mut dyn RowSource<f64>,
        weights: &[f64],
        rng: &mut SeededRng,
    ) -> Result<Released<Vec<f64>>, Error> {
        run.sums::<f64, Self>(source, weights, 0, &mut EventLog::new(), rng, &mut Control::default())
    }

    /// Returns the noisy moments.
    ///
    /// # Errors
    /// A failing source.
    fn noisy_moments(
        run: &MomentsRun,
        source: &mut dyn RowSource<f64>,
        rng: &mut LentRng<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        run.moments::<f64, Self>(source, &mut EventLog::new(), rng, &mut Control::default())
    }

    /// Trains in phases and returns the release of each.
    ///
    /// # Errors
    /// A failing source.
    fn phases(
        run: &PhasedRun,
        source: &mut dyn RowSource<f64>,
        rng: &mut LentRng<'_>,
    ) -> Result<Vec<Released<Vec<f64>>>, Error> {
        let released = run.releases::<f64, Self>(source, rng, &mut Control::default())?;
        Ok(released.earlier.into_iter().chain([released.last]).collect())
    }

    /// Trains by a searched descent, passing each release to `observe`.
    ///
    /// # Errors
    /// A failing source.
    fn search_observed(
        run: &SearchRun,
        source: &mut dyn RowSource<f64>,
        rng: &mut LentRng<'_>,
        observe: &mut dyn FnMut(SearchObservation<'_>),
    ) -> Result<(), Error> {
        run.train_observing::<f64, Self>(source, rng, &mut Control::default(), observe).map(|_| ())
    }

    /// Trains by DP-SVRG, passing each release to `observe`.
    ///
    /// # Errors
    /// A failing source.
    fn svrg_observed(
        run: &SvrgRun,
        source: &mut dyn RowSource<f64>,
        rng: &mut LentRng<'_>,
        observe: &mut dyn FnMut(SvrgObservation<'_, f64>),
    ) -> Result<(), Error> {
        run.train_observing::<f64, Self>(source, rng, &mut Control::default(), observe).map(|_| ())
    }

    /// Trains by SCS13, passing each update to `observe`.
    ///
    /// # Errors
    /// A failing source.
    fn scs13_observed(
        run: &UpdatesRun,
        source: &mut dyn RowSource<f64>,
        rng: &mut LentRng<'_>,
        observe: &mut dyn FnMut(Scs13Observation<'_, f64>),
    ) -> Result<(), Error> {
        run.train_observing::<f64, Self>(source, rng, &mut Control::default(), observe).map(|_| ())
    }
}
