//! Runs with output perturbation, shared by the bolt-on recipes and RSGD-AR.

use dp_accountant::{DpEvent, EventLog};
use dp_data::{Order, RowSource};
use dp_losses::{Constants, Domain, Real};
use dp_mechanisms::{LentRng, Released};
use rand::Rng as _;

use super::noise::{Noise, OutputNoiseScale};
use super::{BoltOn, RECIPE, Stopping, Terms, allow_for};
use crate::averaging::Averaging;
use crate::engine::{BatchSizes, Control, minimise, project};
use crate::error::{Error, positive};
use crate::growth::{Growth, OrderPolicy, PositionClasses, closed_form};
use crate::recipes::algorithm;
use crate::recipes::linear::{LinearTraining, size};
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{Budget, RecordAdjacency, Summary};

/// A sensitivity, with the numbers it is derived from.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::recipes) struct Derived {
    pub(super) terms: Terms,
    pub(in crate::recipes) sensitivity: f64,
    minimise: Option<minimise::Certificate>,
}

impl Derived {
    pub(in crate::recipes) fn new(recipe: &BoltOn, problem: &Problem) -> Result<Self, Error> {
        let n = problem.n;
        let terms = recipe.terms(problem)?;
        let (sensitivity, minimise) = match recipe.stopping {
            Stopping::Passes => (terms.growth.bound()?, None),
            Stopping::CertifiedMinimiser { tolerance } => {
                // The passes only provide a start, but they must be valid.
                terms.growth.validate()?;
                let g = terms.growth.gradient_difference;
                let apart = closed_form::strongly_convex_decreasing(n, recipe.lambda, g);
                let tolerance = tolerance.unwrap_or(0.01 * apart);
                let risk = minimise::Risk {
                    n,
                    parameters: problem.parameters(),
                    outputs: recipe.loss.outputs().into(),
                    smoothness: terms.constants.smoothness,
                    strong_convexity: recipe.lambda,
                    data_lipschitz: terms.lipschitz_everywhere,
                    value_at_zero: f64::INFINITY,
                    condition: recipe.loss.condition(&Domain::unit_rows().with_row_norm(recipe.row_norm)?),
                    linear_norm: 0.0,
                    linear_error: 0.0,
                };
                let certificate = minimise::Certificate::new(&risk, tolerance)?;
                let bound = closed_form::approximate_minimiser(n, recipe.lambda, g, tolerance);
                (bound * (1.0 + 1e-14), Some(certificate))
            }
        };
        let sensitivity = allow_for(recipe.float, sensitivity);
        if !(sensitivity.is_finite() && sensitivity > 0.0) {
            return Err(Error::Sensitivity { value: sensitivity, why: "no noise can be scaled to it" });
        }
        Ok(Self { terms, sensitivity, minimise })
    }

    /// Returns the sensitivity of `models` models of the same records, released as one vector: `√models` times that of one.
    fn stacked(self, models: u32) -> Self {
        match models {
            1 => self,
            _ => {
                let sensitivity = self.sensitivity * f64::from(models).sqrt() * (1.0 + 4.0 * f64::EPSILON);
                Self { sensitivity, ..self }
            }
        }
    }

    /// Returns the classes of positions, or `None` if the recipe does not hide the position, hiding it gains nothing, or the
    /// run is too long for the recursion.
    pub(super) fn position_classes(&self, recipe: &BoltOn) -> Result<Option<PositionClasses>, Error> {
        let hidden = recipe.hide_position && recipe.order == OrderPolicy::Fixed && !recipe.declared_order;
        if !hidden || recipe.stopping != Stopping::Passes {
            return Ok(None);
        }
        if self.terms.growth.positions_are_even()? || !self.terms.growth.recursion_is_feasible() {
            return Ok(None);
        }
        let mut sensitivity = self.terms.growth.sensitivity()?;
        for value in &mut sensitivity.by_position {
            *value = allow_for(recipe.float, *value);
        }
        let classes = PositionClasses::new(&self.terms.growth, &sensitivity)?;
        Ok((!classes.is_single()).then_some(classes))
    }
}

/// A training with a single release: the recursion's input, the sensitivity, and the noise.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRun {
    pub(crate) recipe: BoltOn,
    problem: Problem,
    derived: Derived,
    /// Number of models that are released as one vector.
    models: u32,
    noise: OutputNoiseScale,
    /// The classes of positions, if the noise averages over them.
    classes: Option<PositionClasses>,
}

impl OutputRun {
    /// Creates the run with the least noise of the recipe's law with which all copies meet the budget.
    pub(in crate::recipes) fn calibrated(
        recipe: &BoltOn,
        problem: &Problem,
        models: u32,
        budget: Budget,
        copies: u64,
    ) -> Result<Self, Error> {
        let derived = Derived::new(recipe, problem)?.stacked(models);
        let dim = problem.parameters().saturating_mul(models.into());
        let (noise, classes) = OutputNoiseScale::least(recipe, &derived, dim, budget, copies)?;
        Ok(Self { recipe: recipe.clone(), problem: *problem, derived, models, noise, classes })
    }

    pub(in crate::recipes) fn new(
        recipe: &BoltOn,
        problem: &Problem,
        models: u32,
        noise: OutputNoiseScale,
    ) -> Result<Self, Error> {
        let derived = Derived::new(recipe, problem)?.stacked(models);
        positive(noise.name(), noise.scale())?;
        let classes = match noise {
            OutputNoiseScale::HiddenPositionGaussian { .. } => Some(derived.position_classes(recipe)?.ok_or({
                let why = "this recipe gains nothing by hiding the position, or does not hide it";
                Error::NotProved { recipe: RECIPE, why }
            })?),
            _ => None,
        };
        Ok(Self { recipe: recipe.clone(), problem: *problem, derived, models, noise, classes })
    }

    /// Returns the number of weights of all models together.
    fn weights(&self) -> u64 {
        self.problem.parameters().saturating_mul(self.models.into())
    }

    /// Returns the L2 sensitivity of the model before noise, rounding included.
    pub fn sensitivity(&self) -> f64 {
        self.derived.sensitivity
    }

    /// Returns the noise on the model.
    pub fn noise(&self) -> OutputNoiseScale {
        self.noise
    }

    /// Returns the root of the expected squared norm of the noise.
    pub fn noise_norm(&self) -> f64 {
        self.noise.mean_squared_norm(self.weights()).sqrt()
    }

    /// Returns the loss's constants that the plan uses.
    pub fn constants(&self) -> &Constants {
        &self.derived.terms.constants
    }

    /// Returns the recursion's input: schedule, batches, constants.
    pub fn growth(&self) -> &Growth {
        &self.derived.terms.growth
    }

    pub(in crate::recipes) fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the output of a run in the recipe's order, before noise: as private as the data.
    pub(in crate::recipes) fn train_unreleased<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let order = if self.recipe.declared_order {
            Order::Declared
        } else {
            // Each training has a fresh key: a hidden position must not recur in the next run.
            let mut key = [0; 32];
            rng.fill_bytes(&mut key);
            Order::Keyed { key, fresh_each_pass: self.recipe.order == OrderPolicy::Fresh }
        };
        self.training()?.train(source, order, control)
    }

    /// Adds noise to the output of all models, and projects each onto the ball of its iterates.
    pub(in crate::recipes) fn release<F: Real, A: RecordAdjacency>(
        &self,
        output: Vec<F>,
        rng: &mut LentRng<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let noise = Noise::<A>::new(self.noise, self.derived.sensitivity, self.weights(), self.classes.as_ref())?
            .drawn(self.recipe.noise_mode)?;
        let dim = (output.len() / self.models as usize).max(1);
        let mut log = EventLog::new();
        let mut released = noise.release(output, &mut log, rng)?;
        if let Some(radius) = self.recipe.radius {
            released = released.map(|mut weights| {
                weights.chunks_exact_mut(dim).for_each(|model| project(model, radius));
                weights
            });
        }
        Ok((released, log))
    }

    pub(crate) fn training(&self) -> Result<LinearTraining, Error> {
        let (recipe, growth) = (&self.recipe, self.growth());
        let updates = growth.updates_per_pass().saturating_mul(growth.passes);
        Ok(LinearTraining {
            loss: recipe.loss,
            lambda: recipe.lambda,
            radius: recipe.radius,
            dim: size("dimension", self.problem.dim)?,
            run: crate::engine::Run {
                n: growth.n,
                batches: BatchSizes::Equal(size("batch size", growth.batch_size.min(growth.n))?),
                divisor: growth.divisor,
                steps: growth.schedule.prepare(updates)?,
                weights: growth.averaging.prepare(updates)?,
            },
            passes: growth.passes,
            arithmetic: recipe.arithmetic,
            minimise: self.derived.minimise,
        })
    }
}

impl algorithm::Run for OutputRun {
    fn event(&self) -> Result<DpEvent, Error> {
        let sensitivity = self.derived.sensitivity;
        Ok(match (self.noise, &self.classes) {
            (OutputNoiseScale::LaplaceBall { scale }, _) => {
                DpEvent::LaplaceBall { scale, sensitivity, dim: self.weights() }
            }
            (OutputNoiseScale::HiddenPositionGaussian { std_dev }, Some(classes)) => DpEvent::GaussianMixture {
                std_dev,
                sensitivities: classes.sensitivities.clone(),
                weights: classes.weights.clone(),
            },
            (OutputNoiseScale::Gaussian { std_dev } | OutputNoiseScale::HiddenPositionGaussian { std_dev }, _) => {
                DpEvent::Gaussian { std_dev, sensitivity }
            }
        })
    }

    fn summary(&self) -> Summary {
        let recipe = &self.recipe;
        let restarts = match recipe.averaging {
            Averaging::Restarts { updates } => {
                format!(", averaged every {} passes", updates / self.growth().updates_per_pass().max(1))
            }
            _ => String::new(),
        };
        Summary {
            sensitivity: Some(self.sensitivity()),
            rows: self.problem.n.saturating_mul(recipe.passes),
            text: format!(
                "sensitivity {:.4e}, noise of norm {:.4e}, {} passes, batches of {}, lambda {:e}{restarts}",
                self.sensitivity(),
                self.noise_norm(),
                recipe.passes,
                recipe.batch_size,
                recipe.lambda
            ),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let output = self.train_unreleased(source, rng, control)?;
        self.release(output, rng)
    }
}
