//! An optimiser outside of this crate: DP-AdaGrad. It is planned, trained, certified, verified, tuned and
//! audited like any other.
//!
//! ```sh
//! cargo run --release -p dp-audit-recipes --example own_recipe
//! ```
//!
//! # References
//! Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic optimization", JMLR 2011; Asi,
//! Duchi, Fallah, Javidbakht, Talwar, "Private adaptive gradient methods for convex optimization", ICML 2021.

#![allow(clippy::print_stdout)]

use dp_accountant::certificate::NoiseMode;
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, DpEvent, EventLog, ReplaceOne, ZeroOut};
use dp_audit::Auditor;
use dp_audit_recipes::black_box::{DIM, Pairs, Target};
use dp_data::{Block, Examples, RowSource};
use dp_losses::{LossKind, Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{Gaussian, L2Sensitivity, LentRng, OsSeeded, Released, SeededRng};
use dp_optim::engine::{
    BatchKey, BatchLaw, Buffered, Contributions, Control, NoisyGradient, SampledRun, Step, StepBatches, StepSum,
    UpdateRule,
};
use dp_optim::recipes::noise_scale::StdDev;
use dp_optim::recipes::{
    Admitted, Algorithm, Budget, OneVsAll, Planned, Problem, Recipe, RecordAdjacency, Run, Setting, Summary,
    least_scale,
};
use dp_optim::tuning::Portions;
use dp_optim::{Averaging, Error, FloatKind, MemorySource, Schedule};
use nalgebra::convert;
use rand::RngExt;

/// The update rule: each weight's step shrinks with its accumulated gradients. It receives noisy sums only.
///
/// ```text
/// s += g²,   w -= η g/√s
/// ```
struct AdaGrad<F> {
    squares: Vec<F>,
}

impl<F: Real> UpdateRule<F> for AdaGrad<F> {
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        let (length, divisor): (F, F) = (convert(step.step_size), convert(step.divisor));
        for ((weight, square), &sum) in parameters.iter_mut().zip(&mut self.squares).zip(gradient_sum) {
            let gradient = sum / divisor;
            *square += gradient * gradient;
            *weight -= length * gradient / (square.sqrt() + F::default_epsilon());
        }
    }
}

/// The recipe: public parameters only.
#[derive(Debug, Clone, PartialEq)]
struct DpAdaGrad {
    loss: LossKind,
    clipping: f64,
    batch_size: u64,
    steps: u64,
    step: f64,
}

/// The run for a problem and a noise.
#[derive(Debug, Clone, PartialEq)]
struct AdaGradRun {
    recipe: DpAdaGrad,
    problem: Problem,
    std_dev: f64,
}

impl Algorithm for DpAdaGrad {
    const NAME: &'static str = "dp-adagrad";

    type Calibrated = StdDev;
    type Run = AdaGradRun;

    fn setting(&self) -> Setting {
        let (noise_mode, float) = (NoiseMode::Exact, Some(FloatKind::F64));
        Setting { loss: self.loss, row_norm: 1.0, target_bound: 1.0, noise_mode, float }
    }

    fn calibrate(&self, problem: &Problem, budget: Budget, copies: u64) -> Result<(StdDev, AdaGradRun), Error> {
        let at = |std_dev| AdaGradRun { recipe: self.clone(), problem: *problem, std_dev };
        at(1.0).event()?;
        // Invalid events count as non-private.
        let std_dev = least_scale(budget, copies, |noise| at(noise).event().unwrap_or(DpEvent::NonPrivate))?;
        Ok((StdDev { std_dev }, at(std_dev)))
    }

    fn resolve(&self, problem: &Problem, noise: &StdDev) -> Result<AdaGradRun, Error> {
        Ok(AdaGradRun { recipe: self.clone(), problem: *problem, std_dev: noise.std_dev })
    }
}

impl AdaGradRun {
    /// Returns the sum of a batch's clipped gradients.
    fn sum(&self) -> Result<StepSum, Error> {
        let contributions = Contributions::Clipped(ClippingNorm::new(self.recipe.clipping)?.into());
        Ok(StepSum::whole(contributions, self.problem.n, FloatKind::F64))
    }

    fn law(&self) -> BatchLaw {
        BatchLaw::Poisson { mean_darts: self.recipe.batch_size }
    }

    fn batches(&self) -> StepBatches {
        StepBatches::Drawn { n: self.problem.n, law: self.law(), steps: self.recipe.steps }
    }

    fn noise(&self) -> Result<Gaussian<ZeroOut>, Error> {
        // Poisson sampling concerns a record's presence.
        let sensitivity = L2Sensitivity::new(self.sum()?.sensitivity(AdjacencyKind::ZeroOut)?)?;
        Ok(Gaussian::from_std_dev(sensitivity, self.std_dev)?)
    }
}

impl Run for AdaGradRun {
    fn event(&self) -> Result<DpEvent, Error> {
        let (std_dev, sensitivity) = (self.std_dev, self.noise()?.sensitivity().get());
        let event = self.batches().plan()?.event(DpEvent::Gaussian { std_dev, sensitivity });
        Ok(match self.problem.relation {
            AdjacencyKind::ZeroOut => event,
            // A replacement is a removal and an addition.
            _ => DpEvent::AddRemoveTwice { event: Box::new(event) },
        })
    }

    fn summary(&self) -> Summary {
        let DpAdaGrad { steps, batch_size, .. } = self.recipe;
        let text = format!("noise of standard deviation {:.3} on each of {steps} sums", self.std_dev);
        Summary { sensitivity: None, rows: steps * batch_size, text }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let training = Training { run: self, source, rng, control };
        let (weights, log) = self.recipe.loss.visit_model(self.problem.dim as usize, training)?;
        Ok((weights, A::from_null_records(log)))
    }
}

/// Visitor of the model's type.
struct Training<'t, 'r, 'c, F> {
    run: &'t AdaGradRun,
    source: &'t mut dyn RowSource<F>,
    rng: &'t mut LentRng<'r>,
    control: &'t mut Control<'c>,
}

impl<F: Real> ModelVisitor<F> for Training<'_, '_, '_, F> {
    type Output = Result<(Released<Vec<F>>, EventLog<ZeroOut>), Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let Self { run, source, rng, control } = self;
        let (n, updates) = (run.problem.n, run.recipe.steps);
        let key = BatchKey::draw(rng);
        let mut log = EventLog::new();
        let gradient = NoisyGradient::start(&model, run.batches(), run.sum()?, run.noise()?.into(), &mut log, rng)?;
        let start = vec![F::zero(); model.parameters()];
        let rule = AdaGrad { squares: start.clone() };
        let mut iterate = Buffered::new(start, true, gradient, rule);
        let steps = Schedule::Constant { step: run.recipe.step }.prepare(updates)?;
        let weights = Averaging::Suffix { updates: updates.div_ceil(2) }.prepare(updates)?;
        let sampled = SampledRun { n, law: run.law(), updates, divisor: run.law().mean_size(n)?, steps, weights };
        sampled.run(&model, source, &mut iterate, key, control)?;
        let (output, gradient) = iterate.into_parts();
        Ok((gradient.finish(output, &mut log)?, log))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (n, mut rng) = (20_000, SeededRng::new(1));
    // The second feature is a hundred times smaller than the first, and equally informative.
    let rows: Vec<[f64; 2]> = (0..n).map(|_| [rng.random_range(-0.9..0.9), rng.random_range(-0.009..0.009)]).collect();
    let labels: Vec<f64> = rows.iter().map(|row| (row[0] + 100.0 * row[1]).signum()).collect();
    let mut source = MemorySource::new(Examples::dense(rows.concat(), labels.clone(), 2)?, 1.0, 1.0);

    let recipe = DpAdaGrad { loss: LossKind::Logistic, clipping: 0.5, batch_size: 500, steps: 400, step: 0.5 };
    let budget = Budget::new(1.0, 1e-6)?;
    let plan = recipe.plan::<ReplaceOne>(n as u64, 2, budget)?;
    println!("{}, epsilon {:.4}", plan.run().summary().text, plan.reached().epsilon);
    let trained = plan.train::<f64>(&mut source, &mut OsSeeded::new()?, &mut Control::default())?;
    let weights = trained.weights.get();
    let right =
        rows.iter().zip(&labels).filter(|(row, label)| (row[0] * weights[0] + row[1] * weights[1]) * **label > 0.0);
    println!("training accuracy {:.3} (for the curator's eyes only)", right.count() as f64 / n as f64);

    let certificate = trained.certificate(Unit::Record, Vec::new(), "of the model file".to_owned(), Default::default());
    println!("verified: {:?}", certificate.verify()?);

    // As candidates of tuning: the choice and the training together cost one epsilon.
    let candidates = [0.005, 0.5].map(|step| DpAdaGrad { step, batch_size: 100, ..recipe.clone() });
    let plan = Portions::new(candidates).plan_copies::<ReplaceOne>(n as u64, 2, budget, 1)?;
    let tuned = plan.train::<f64>(&mut source, &mut OsSeeded::new()?, &mut Control::default())?;
    let chosen = tuned.derivation.chosen;
    let certificate = tuned.certificate(Unit::Record, Vec::new(), "of the model file".to_owned(), Default::default());
    println!("chosen: {chosen:?}, verified: {:?}", certificate.verify()?);

    // For three classes, one model for each against the rest.
    let classes = rows.iter().map(|row| f64::from(u8::from(row[0] > 0.3)) + f64::from(u8::from(row[0] > -0.3)));
    let mut source = MemorySource::new(Examples::dense(rows.concat(), classes.collect(), 2)?, 1.0, 2.0);
    let plan = OneVsAll::new(recipe, 3).plan::<ReplaceOne>(n as u64, 2, budget)?;
    let models = plan.train::<f64>(&mut source, &mut OsSeeded::new()?, &mut Control::default())?;
    println!("{} weights, epsilon {:.4}", models.weights.get().len(), plan.reached().epsilon);

    // Its releases on two neighbouring data sets, compared.
    let pair = Pairs::new(AdjacencyKind::ReplaceOne, 2)?.all()[0];
    let tiny = DpAdaGrad { loss: LossKind::Logistic, clipping: 0.5, batch_size: 2, steps: 20, step: 0.5 };
    let plan = tiny.plan::<ReplaceOne>(pair.n(), DIM, budget)?;
    let audit =
        Auditor::exactly(5000)?.audit(&Target::planned(plan, pair.n(), 2, 40.0).subject("dp-adagrad", &pair)?)?;
    println!("audit: {:?}, epsilon at least {:.3}", audit.verdict, audit.epsilon_lower);
    Ok(())
}
