//! The canary of objective perturbation: a record that the others contradict, so that its slope is steep wherever the noise
//! moves the minimiser.
//!
//! All records lie along the first axis, so that the determinant of the objective's Hessian is a product, and the density of
//! the minimiser has a closed form: with `b(w) = -(Σ ℓ'(⟨w, x_i⟩) x_i + Λ w)` and `H` the curvature along the axis,
//! `ln p(w) = -‖b(w)‖²/(2σ²) + ln H(w) + (d - 1) ln Λ`, with `-‖b(w)‖/s` as the first term for the noise without delta. The
//! release is the minimiser plus noise thousands of times smaller than the effect of `b`.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Examples;
use dp_losses::LossKind;

use super::scored::{Sides, scored, trained};
use super::{Audited, Distance, Parameters, mode_name};
use dp_optim::Error;
use dp_optim::audit;
use dp_optim::audit::size;
use dp_optim::recipes::obj_pert::ObjPertRun;
use dp_optim::recipes::{AnyPlan, NoiseScale, ObjPert, OutputNoise, PerUnit, Planned as _, Recipe as _, TrainsAny};

const NAME: &str = "obj-pert";

/// Costs of a row, and of the rest of a run (tens of gradients), in units of releasing one number.
const COST_OF_A_ROW: f64 = 1.0;
const COST_OF_A_RUN: f64 = 40.0;

pub(super) fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let law = if parameters.delta == 0.0 { OutputNoise::LaplaceBall } else { OutputNoise::Gaussian };
    let recipe = ObjPert { lambda: parameters.lambda, law, ..ObjPert::new(parameters.loss) };
    if !is_taken(parameters.loss) {
        return Ok(Vec::new());
    }
    match parameters.relation {
        AdjacencyKind::ReplaceOne => build::<ReplaceOne>(&recipe, parameters),
        AdjacencyKind::ZeroOut => build::<ZeroOut>(&recipe, parameters),
        adjacency => Err(Error::Adjacency { recipe: NAME, adjacency }),
    }
}

/// Returns whether a loss has canaries: one of bounded slope. Softmax has canaries of more than one axis.
fn is_taken(loss: LossKind) -> bool {
    matches!(loss, LossKind::Logistic | LossKind::HuberSvm(_) | LossKind::HuberRegression(_) | LossKind::LogCosh(_))
}

fn build<A: TrainsAny<f64> + 'static>(recipe: &ObjPert, parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let recipes = parameters.modes().into_iter().map(|noise_mode| ObjPert { noise_mode, ..recipe.clone() });
    let audited = |recipe: ObjPert| {
        let plan = recipe.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
        // The recomputed event, not the plan's.
        let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
        let pair = format!("a record that all {} others contradict", parameters.n - 1);
        audited_on_axis(NAME, &recipe, (plan.run(), AnyPlan::ObjPert(plan.clone())), (claim, pair), 1, parameters)
    };
    recipes.map(audited).collect()
}

/// Number of rows of a unit.
const ROWS_OF_UNIT: u64 = 5;

/// The audit of a guarantee for all rows of a unit: the rows of one unit contradict all other rows.
pub(super) fn per_unit(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let law = if parameters.delta == 0.0 { OutputNoise::LaplaceBall } else { OutputNoise::Gaussian };
    let parameters = &Parameters { n: ROWS_OF_UNIT * parameters.n.div_ceil(ROWS_OF_UNIT), ..parameters.clone() };
    if !is_taken(parameters.loss) {
        return Ok(Vec::new());
    }
    let build = |noise_mode| {
        // The recommended regulariser: with a smaller one, no noise suffices for a unit.
        let recipe = ObjPert { law, noise_mode, ..ObjPert::new(parameters.loss) };
        match parameters.relation {
            AdjacencyKind::ReplaceOne => unit::<ReplaceOne>(&recipe, parameters),
            AdjacencyKind::ZeroOut => unit::<ZeroOut>(&recipe, parameters),
            adjacency => Err(Error::Adjacency { recipe: "per-unit", adjacency }),
        }
    };
    parameters.modes().into_iter().map(build).collect()
}

fn unit<A: TrainsAny<f64> + 'static>(recipe: &ObjPert, parameters: &Parameters) -> Result<Audited, Error> {
    let per_unit = PerUnit::new(recipe.clone(), ROWS_OF_UNIT, "unit");
    let plan = per_unit.plan::<A>(parameters.n, parameters.dim, parameters.budget()?)?;
    let AnyPlan::ObjPert(of_record) = plan.of_record().clone() else {
        return Err(Error::NotProved { recipe: "per-unit", why: "its records are protected by another recipe" });
    };
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let pair = format!("{ROWS_OF_UNIT} rows of a unit that all others contradict");
    let plan = AnyPlan::PerUnit(plan);
    audited_on_axis("per-unit", recipe, (of_record.run(), plan), (claim, pair), ROWS_OF_UNIT as usize, parameters)
}

/// Returns the audit of records along one axis, of which `changed` differ.
fn audited_on_axis<A: TrainsAny<f64> + 'static>(
    name: &str,
    recipe: &ObjPert,
    (run, plan): (&ObjPertRun, AnyPlan<A>),
    (claim, pair): (Claim, String),
    changed: usize,
    parameters: &Parameters,
) -> Result<Audited, Error> {
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    // The target of the differing record; `None` for a null record.
    let neighbour = (A::KIND == AdjacencyKind::ReplaceOne).then_some(1.0);
    let [base, neighbour] =
        [Some(-1.0), neighbour].map(|target| OnAxis { loss: recipe.loss, others: rows - changed, changed, target });
    let sides = Sides::new(recipe.row_norm, recipe.target_bound, |side| match side {
        Side::Base => base.examples(dim),
        Side::Neighbour => neighbour.examples(dim),
    })?;
    // The minimiser after the noise.
    let mut source = sides.source(Side::Base);
    let minimiser = audit::perturbed_minimiser(run, &mut source, &vec![0.0; dim], &vec![0.0; dim])?;
    let slope = |side: &OnAxis| side.target.map_or(0.0, |target| terms(recipe.loss, minimiser[0], target).0);
    let claimed = if A::KIND == AdjacencyKind::ReplaceOne { 2.0 } else { 1.0 } * recipe.row_norm;
    let reached = changed as f64 * (slope(&base) - slope(&neighbour)).abs();
    let distance = Distance { reached, claimed: changed as f64 * claimed, pairs: 1 };
    let mode = mode_name(recipe.noise_mode);
    let other = match (neighbour.target, changed) {
        (None, 1) => "a null record",
        (None, _) => "null records",
        (Some(_), 1) => "one that agrees with them",
        (Some(_), _) => "rows that agree with them",
    };
    let pair = format!("{pair} against {other}");
    let cost = COST_OF_A_RUN * (1.0 + COST_OF_A_ROW * parameters.n as f64 / 20.0);
    let (regularization, noise) = (run.regularization(), run.noise());
    let subject = scored(format!("{name}/{mode}"), pair, claim, cost, move |side, rng| {
        trained(&plan, sides.source(side), rng).map(|weights| {
            let log_density = |side: &OnAxis| side.log_density(&weights, regularization, noise);
            log_density(&neighbour) - log_density(&base)
        })
    });
    Ok(Audited { subject, distance })
}

fn terms(loss: LossKind, prediction: f64, target: f64) -> (f64, f64) {
    match loss {
        LossKind::HuberSvm(svm) => {
            let (h, margin) = (svm.h(), prediction * target);
            let slope = ((1.0 + h - margin) / (2.0 * h)).clamp(0.0, 1.0);
            (-target * slope, if slope > 0.0 && slope < 1.0 { 1.0 / (2.0 * h) } else { 0.0 })
        }
        LossKind::HuberRegression(huber) => {
            let slope = ((prediction - target) / huber.h()).clamp(-1.0, 1.0);
            (slope, if slope.abs() < 1.0 { 1.0 / huber.h() } else { 0.0 })
        }
        LossKind::LogCosh(loss) => {
            let slope = ((prediction - target) / loss.h()).tanh();
            (slope, (1.0 - slope * slope) / loss.h())
        }
        _ => {
            let slope = 1.0 / (1.0 + (prediction * target).exp());
            (-target * slope, slope * (1.0 - slope))
        }
    }
}

/// Records along the first axis: `others` with target 1, and some that differ.
struct OnAxis {
    loss: LossKind,
    others: usize,
    changed: usize,
    target: Option<f64>,
}

impl OnAxis {
    fn examples(&self, dim: usize) -> Result<Examples<f64>, Error> {
        let rows = self.others + self.changed;
        let (mut values, mut targets) = (vec![0.0; rows * dim], vec![1.0; rows]);
        (0..rows).for_each(|row| values[row * dim] = 1.0);
        match self.target {
            Some(target) => targets[..self.changed].fill(target),
            None => (0..self.changed).for_each(|row| values[row * dim] = f64::NAN),
        }
        Examples::dense(values, targets, dim).map_err(|_| Error::Count {
            name: "rows",
            value: rows as u64,
            range: "one target each",
        })
    }

    /// Returns the logarithm of the minimiser's density, up to a term common to both sides.
    fn log_density(&self, weights: &[f64], regularization: f64, noise: NoiseScale) -> f64 {
        let (mut gradient, mut curvature) = (regularization * weights[0], regularization);
        let records =
            [(self.others as f64, 1.0)].into_iter().chain(self.target.map(|target| (self.changed as f64, target)));
        for (count, target) in records {
            let (slope, curved) = terms(self.loss, weights[0], target);
            gradient += count * slope;
            curvature += count * curved;
        }
        let squared =
            weights[1..].iter().map(|weight| (regularization * weight).powi(2)).sum::<f64>() + gradient * gradient;
        let of_noise = match noise {
            NoiseScale::LaplaceBall { scale } => -squared.sqrt() / scale,
            NoiseScale::Gaussian { std_dev } => -0.5 * squared / (std_dev * std_dev),
        };
        of_noise + curvature.ln()
    }
}
