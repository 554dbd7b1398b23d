//! The canaries of DP-SGD, DP-FTRL and BST14: noise in every step, on batches drawn at random or in an order.
//!
//! All records except one are null, and the steps are so short (or there is only one) that gradients equal those at the
//! origin. The release is then a sum: the canary's gradient times the binomial number of its draws, plus the noise of all
//! steps. Its law is a mixture of Gaussians in closed form, which gives the attacker's best score.

use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::Claim;
use dp_data::{Block, Examples};
use dp_losses::{LossKind, Model, ModelVisitor, ScaledSteps};
use dp_mechanisms::continual::Factor;

use super::likelihood::{Law, log_ratio};
use super::scored::{Sides, scored, trained};
use super::{Audited, Canary, Distance, Parameters, Record, Search, mode_name};
use dp_optim::Averaging;
use dp_optim::Error;
use dp_optim::MemorySource;
use dp_optim::Schedule;
use dp_optim::audit;
use dp_optim::audit::size;
use dp_optim::audit::{Batching, NoisyRun, StepsRun};
use dp_optim::engine::{BatchLaw, GradientEstimate, Piece, PlainGradient};
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::{AnyPlan, Bst14, DpFtrl, DpSgd, Planned, Recipe as _, Sampling, TrainsAny};

/// A step so short that gradients do not change.
const SHORT: f64 = 1e-7;

/// Default λ of recipes that need one.
const LAMBDA: f64 = 0.5;

/// Radius of a ball that one step does not leave.
const WIDE: f64 = 1e6;

/// Distance of one step's result from the boundary of the ball, in norms of the noise: it lies beyond with probability below
/// `e^-300`.
const AWAY: f64 = 50.0;

/// Bound on the total weight of the omitted terms of a mixture.
const NEGLIGIBLE: f64 = 1e-17;

/// Costs of a row, and of the rest of a step, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.1;
const COST_OF_A_STEP: f64 = 1.0;

pub(super) fn dp_sgd(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    under_relation("dp-sgd", parameters)
}

pub(super) fn dp_ftrl(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    under_relation("dp-ftrl", parameters)
}

pub(super) fn bst14_convex(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    under_relation("bst14-convex", parameters)
}

pub(super) fn bst14_strongly_convex(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    under_relation("bst14-strongly-convex", parameters)
}

fn under_relation(name: &'static str, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    match parameters.relation {
        AdjacencyKind::ReplaceOne => all::<ReplaceOne>(name, parameters),
        AdjacencyKind::ZeroOut => all::<ZeroOut>(name, parameters),
        adjacency => Err(Error::Adjacency { recipe: name, adjacency }),
    }
}

fn all<A: TrainsAny<f64> + 'static>(name: &'static str, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let mut all = Vec::new();
    // All noise is Gaussian.
    if !(parameters.delta > 0.0) {
        return Ok(all);
    }
    let (n, dim, budget) = (parameters.n, parameters.dim, parameters.budget()?);
    for noise_mode in parameters.modes() {
        let mode = mode_name(noise_mode);
        if name == "dp-ftrl" {
            let recipe = DpFtrl {
                lambda: parameters.lambda.unwrap_or(0.0),
                batch_size: parameters.batch_size,
                passes: parameters.passes,
                radius: parameters.radius,
                schedule: Some(Schedule::Constant { step: SHORT }),
                noise_mode,
                ..DpFtrl::new(parameters.loss)
            };
            let plan = recipe.plan::<A>(n, dim, budget)?;
            let form = Form::of(format!("{name}/last/{mode}"), n, plan.run(), parameters);
            all.push(form.build(AnyPlan::DpFtrl(plan.clone()))?);
            // All releases in one number: the combination of the iterates that is most informative about a record in the first
            // batch of each pass.
            let all_steps = EveryStep::of(plan.run())?;
            let averaging = Averaging::Coefficients { values: all_steps.coefficients.clone() };
            let plan = DpFtrl { averaging, declared_order: true, ..recipe }.plan::<A>(n, dim, budget)?;
            let form = Form::of(format!("{name}/every-step/{mode}"), n, plan.run(), parameters);
            all.push(all_steps.seen_in(form, plan.run())?.build(AnyPlan::DpFtrl(plan.clone()))?);
        } else if name == "dp-sgd" {
            let recipe = DpSgd {
                lambda: parameters.lambda.unwrap_or(0.0),
                batch_size: parameters.batch_size,
                passes: parameters.passes,
                radius: parameters.radius,
                schedule: Some(Schedule::Constant { step: SHORT }),
                averaging: Averaging::Last,
                noise_mode,
                ..DpSgd::new(parameters.loss)
            };
            let mut forms = vec![("poisson", Sampling::Poisson), ("passes", Sampling::Passes)];
            if A::KIND == AdjacencyKind::ReplaceOne {
                forms.push(("fixed-size", Sampling::FixedSize));
            }
            for (form, sampling) in forms {
                let plan = DpSgd { sampling, ..recipe.clone() }.plan::<A>(n, dim, budget)?;
                let audited = Form::of(format!("{name}/{form}/{mode}"), n, plan.run(), parameters);
                all.push(audited.build(AnyPlan::DpSgd(plan.clone()))?);
            }
        } else {
            let (form, sampling) = match A::KIND {
                AdjacencyKind::ReplaceOne => ("fixed-size", Sampling::FixedSize),
                _ => ("poisson", Sampling::Poisson),
            };
            let (recipe, n) = if name == "bst14-convex" {
                let convex = Bst14 {
                    lambda: parameters.lambda.unwrap_or(0.0),
                    ..Bst14::convex(parameters.loss, parameters.radius.unwrap_or(1.0))
                };
                // The step is about 2R/n times the noisy sum: with this many records one step stays in the ball.
                let one = Bst14 { passes: 1, batch_size: n, sampling, ..convex.clone() }.plan::<A>(n, dim, budget)?;
                let lipschitz = audit::lipschitz(&one.derivation().recipe, one.problem())?;
                let noise = one.run().std_dev() * (dim as f64).sqrt() / lipschitz;
                (convex, n.max((AWAY * noise) as u64 + 1))
            } else {
                let lambda = parameters.lambda.unwrap_or(LAMBDA);
                (Bst14 { radius: WIDE, ..Bst14::strongly_convex(parameters.loss, lambda) }, n)
            };
            // A single batch of all records is most informative about a replaced record, random darts about a missing one.
            let recipe = Bst14 { passes: 1, batch_size: n, sampling, noise_mode, ..recipe };
            let plan = recipe.plan::<A>(n, dim, budget)?;
            let form = Form::of(format!("{name}/{form}/{mode}"), n, plan.run(), parameters);
            all.push(form.build(AnyPlan::Bst14(plan.clone()))?);
        }
    }
    Ok(all)
}

/// Computes the sum of the gradients of all records at the origin.
struct SumAtOrigin<'a>(&'a Examples<f64>);

impl ModelVisitor<f64> for SumAtOrigin<'_> {
    type Output = Result<Vec<f64>, Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
    {
        let (origin, mut sum) = (vec![0.0; model.parameters()], vec![0.0; model.parameters()]);
        let mut gradient = PlainGradient::new(&model, self.0.len());
        gradient.estimate(&model, &origin, self.0.block(), Piece::whole(self.0.len()), &mut sum)?;
        Ok(sum)
    }
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

struct Form<'p> {
    name: String,
    n: u64,
    run: &'p NoisyRun,
    /// The sensitivity of a sum, or of all of them together.
    claimed: f64,
    /// Factor from a gradient to the quantity whose sensitivity is claimed.
    weight: f64,
    /// Factor from a sum to the model.
    scale: f64,
    /// Standard deviation of the total noise on the model.
    std_dev: f64,
    /// The numbers of times that the canary may be in a sum, each with its probability.
    times: Vec<(f64, u64)>,
    cost: f64,
    parameters: &'p Parameters,
}

/// Returns the cost of a run in units of releasing one number.
fn cost(run: &NoisyRun, dim: u64, rows: u64) -> f64 {
    (COST_OF_A_STEP + 2.0 * dim as f64) * run.updates() as f64 + COST_OF_A_ROW * rows as f64 * (1.0 + dim as f64 / 8.0)
}

impl<'p> Form<'p> {
    /// Creates the variant for steps on sums of gradients.
    fn of(name: String, n: u64, plan: &'p StepsRun, parameters: &'p Parameters) -> Self {
        let run = audit::noisy_run(plan);
        let scale = audit::first_step(plan) / run.divisor;
        Self {
            name,
            n,
            run,
            claimed: plan.sensitivity(),
            weight: 1.0,
            scale,
            // The noise of the sum of all steps.
            std_dev: plan.std_dev()
                * scale
                * run.factor.as_ref().map_or((run.updates() as f64).sqrt(), Factor::largest_error),
            times: times_drawn(run),
            cost: cost(run, parameters.dim, run.rows()),
            parameters,
        }
    }

    fn build<A: TrainsAny<f64> + 'static>(&self, release: AnyPlan<A>) -> Result<Audited, Error> {
        let (n, dim) = (size("number of records", self.n)?, size("dimension", self.parameters.dim)?);
        let run = self.run;
        let (loss, row_norm, target_bound): (LossKind, f64, f64) = (run.loss, run.row_norm, run.target_bound);
        let gradient = |record: &Record| {
            let examples = Examples::dense(record.features.clone(), vec![record.target], dim)
                .map_err(|_| Error::Count { name: "dimension", value: dim as u64, range: "1 or more" })?;
            loss.visit_model(dim, SumAtOrigin(MemorySource::new(examples, row_norm, target_bound).examples()))
        };
        // With Poisson sampling the claim is about a record's presence, even if a replaced record counts as two.
        let presence = matches!(run.batching, Batching::Drawn(BatchLaw::Poisson { .. }));
        let search = Search {
            dim,
            row_norm,
            target_bound,
            classes: loss.is_classification(),
            relation: A::KIND,
            pairs: self.parameters.pairs,
        };
        // The pair that an attacker distinguishes best has the largest difference of gradients, whatever the claim concerns.
        let longest = core::cell::Cell::new(0.0f64);
        let (canary, apart, pairs) = search.farthest(|canary| {
            let (one, two) = (gradient(&canary.base)?, gradient(&canary.neighbour)?);
            longest.set(longest.get().max(norm(&one)).max(norm(&two)));
            Ok(norm(&one.iter().zip(&two).map(|(a, b)| a - b).collect::<Vec<f64>>()))
        })?;
        let reached = if presence { longest.get() } else { apart };
        let canary = Canary { common: Record::null(dim), ..canary };
        let (times, scale, std_dev) = (&self.times, self.scale, self.std_dev);
        let law = |record: &Record| -> Result<Law, Error> {
            let gradient = gradient(record)?;
            let centre = |count: u64| gradient.iter().map(|g| -scale * count as f64 * g).collect();
            let centres = times.iter().map(|&(weight, count)| (weight, centre(count)));
            Ok(Law::new(OutputNoiseScale::Gaussian { std_dev }, centres))
        };
        let laws = [law(&canary.base)?, law(&canary.neighbour)?];
        // The recomputed event, not the plan's.
        let event = dp_accountant::certificate::Derivation::event(&release.derivation())?;
        let claim = Claim { event, delta: self.parameters.delta };
        let sides = Sides::new(row_norm, target_bound, |side| canary.examples(side, n, 0))?;
        let subject = scored(self.name.clone(), canary.describe(), claim, self.cost, move |side, rng| {
            trained(&release, sides.source(side), rng).map(|released| log_ratio(&laws, &released))
        });
        let distance = Distance { reached: self.weight * reached, claimed: self.claimed, pairs };
        Ok(Audited { subject, distance })
    }
}

/// The information of all iterates of a run with correlated noise about a record in the first batch of each pass.
///
/// ```text
/// y = Cf c g + Z          the rows released: c has ones at the record's steps, g is its gradient
/// p = A Cf⁻¹ y            noisy sums of all gradients so far: iterates are multiples of them
/// a = A⁻ᵀ Cfᵀ Cf c        so that ⟨a, p⟩ = ⟨Cf c, y⟩, which is all that y says of g: ‖Cf c‖² g + N(0, σ² ‖Cf c‖²)
/// ```
struct EveryStep {
    /// a
    coefficients: Vec<f64>,
    /// `‖Cf c‖`
    norm: f64,
}

impl EveryStep {
    fn of(plan: &StepsRun) -> Result<Self, Error> {
        let run = audit::noisy_run(plan);
        let steps = size("steps", run.updates())?;
        let participation = run.participation()?;
        let apart = size("steps of a pass", participation.separation())?;
        let coefficient = |row, column| run.factor.as_ref().map_or(0.0, |factor| factor.coefficient(row, column));
        let row = |t: usize| (0..=t).step_by(apart).map(|column| coefficient(t, column)).sum::<f64>();
        let moved: Vec<f64> = (0..steps).map(row).collect();
        let column = |t: usize| (t..steps).map(|row| coefficient(row, t) * moved[row]).sum::<f64>();
        let back: Vec<f64> = (0..steps).map(column).collect();
        // A⁻ᵀ subtracts from each entry the next one.
        let next = back.iter().skip(1).chain(core::iter::once(&0.0));
        let coefficients = back.iter().zip(next).map(|(entry, next)| entry - next).collect();
        Ok(Self { coefficients, norm: norm(&moved) })
    }

    /// Replaces the sum of all steps in a variant by this combination.
    fn seen_in<'p>(&self, form: Form<'p>, plan: &StepsRun) -> Result<Form<'p>, Error> {
        let run = form.run;
        let claimed = match &run.factor {
            Some(factor) => factor.sensitivity(run.participation()?)?.value * plan.sensitivity(),
            None => plan.sensitivity(),
        };
        let step = form.scale;
        let std_dev = step * self.norm * plan.std_dev();
        Ok(Form {
            claimed,
            weight: self.norm,
            scale: step * self.norm * self.norm,
            std_dev,
            times: vec![(1.0, 1)],
            ..form
        })
    }
}

/// Returns the numbers of times that the canary may be drawn, each with its probability.
fn times_drawn(run: &NoisyRun) -> Vec<(f64, u64)> {
    let rate = match run.batching {
        Batching::Passes { passes, .. } | Batching::Parties { rounds: passes, .. } => return vec![(1.0, passes)],
        Batching::Drawn(law) => law.mean_size(run.n).unwrap_or(f64::NAN) / run.n as f64,
    };
    let steps = run.updates();
    if rate >= 1.0 {
        return vec![(1.0, steps)];
    }
    let mut all = Vec::new();
    let mut log_weight = steps as f64 * (-rate).ln_1p();
    for count in 0..=steps {
        let weight = log_weight.exp();
        if weight > NEGLIGIBLE {
            all.push((weight, count));
        } else if !all.is_empty() {
            break;
        }
        log_weight += ((steps - count) as f64 / (count + 1) as f64).ln() + rate.ln() - (-rate).ln_1p();
    }
    all
}
