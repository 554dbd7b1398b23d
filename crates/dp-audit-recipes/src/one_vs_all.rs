//! The canary of one model for each class: a record that changes its class, which affects two models.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Examples;
use dp_losses::Softmax;

use super::canary::distance;
use super::likelihood::Law;
use super::scored::{Sides, scored, trained};
use super::{Audited, Canary, Distance, Parameters, Search, mode_name};
use dp_optim::Error;
use dp_optim::MemorySource;
use dp_optim::audit;
use dp_optim::audit::size;
use dp_optim::recipes::AnyDerivation;
use dp_optim::recipes::one_vs_all::{OneAgainstRest, Share};
use dp_optim::recipes::{AnyPlan, AnyRecipe};
use dp_optim::recipes::{BoltOn, OneVsAll, OutputNoise, Recipe, TrainsAny};

/// Two classes are as informative as any number: each model moves by its maximum when the record changes class.
const CLASSES: u32 = 2;

/// Costs of a row and of a run, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.1;
const COST_OF_A_RUN: f64 = 4.0;

pub(super) fn bolt_on(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if !parameters.loss.is_classification() {
        return Ok(Vec::new()); // It trains on two classes.
    }
    match parameters.relation {
        AdjacencyKind::ReplaceOne => build::<ReplaceOne>(parameters),
        AdjacencyKind::ZeroOut => build::<ZeroOut>(parameters),
        adjacency => Err(Error::Adjacency { recipe: "one-vs-all", adjacency }),
    }
}

fn build<A: TrainsAny<f64> + 'static>(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    let mut forms = vec![
        ("joint/laplace-ball", Share::Joint, OutputNoise::LaplaceBall),
        ("composed/laplace-ball", Share::Composed, OutputNoise::LaplaceBall),
    ];
    if parameters.delta > 0.0 {
        forms.push(("composed/gaussian", Share::Composed, OutputNoise::Gaussian));
    }
    let mut all = Vec::new();
    for noise_mode in parameters.modes() {
        let mode = mode_name(noise_mode);
        for &(form, share, output_noise) in &forms {
            let recipe = BoltOn {
                lambda: parameters.lambda.unwrap_or(0.0),
                passes: parameters.passes,
                batch_size: parameters.batch_size,
                radius: parameters.radius,
                // The attacker knows the order; hiding it gains nothing.
                declared_order: true,
                output_noise,
                noise_mode,
                ..BoltOn::convex(parameters.loss)
            };
            all.push(audited::<A>(format!("one-vs-all/{form}/{mode}"), recipe, share, parameters)?);
        }
    }
    Ok(all)
}

fn examples(canary: &Canary, side: Side, n: usize, at: usize) -> Result<Examples<f64>, Error> {
    let examples = canary.examples(side, n, at)?;
    let indices = examples.targets().iter().map(|&target| f64::from(u8::from(target > 0.0))).collect();
    examples.with_targets(indices).map_err(|_| Error::Count { name: "rows", value: n as u64, range: "one target each" })
}

fn audited<A: TrainsAny<f64> + 'static>(
    name: String,
    recipe: BoltOn,
    share: Share,
    parameters: &Parameters,
) -> Result<Audited, Error> {
    let (n, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let (budget, classes) = (parameters.budget()?, Softmax::new(CLASSES)?);
    let one = recipe.plan::<A>(parameters.n, parameters.dim, budget)?;
    let output = |canary: &Canary, side, at| -> Result<Vec<f64>, Error> {
        let mut source = MemorySource::new(examples(canary, side, n, at)?, recipe.row_norm, 1.0);
        let mut stack = Vec::new();
        for class in 0..CLASSES as usize {
            let mut source = OneAgainstRest::new(&mut source, classes, class);
            stack.extend(audit::train_without_noise(one.run(), &mut source)?);
        }
        Ok(stack)
    };
    let by_position = one.run().growth().sensitivity().map(|sensitivity| sensitivity.by_position).unwrap_or_default();
    let worst = (0..by_position.len()).max_by(|&i, &j| by_position[i].total_cmp(&by_position[j])).unwrap_or(0);
    let at = worst * size("batch size", one.run().growth().batch_size.min(parameters.n))?;
    let search = Search {
        dim,
        row_norm: recipe.row_norm,
        target_bound: 1.0,
        classes: true,
        relation: A::KIND,
        pairs: parameters.pairs.min(200),
    };
    let (canary, reached, pairs) = search
        .farthest(|canary| Ok(distance(&output(canary, Side::Base, at)?, &output(canary, Side::Neighbour, at)?)))?;
    let plan = OneVsAll { share, ..OneVsAll::new(AnyRecipe::from(recipe.clone()), CLASSES) };
    let plan = plan.plan_copies::<A>(parameters.n, parameters.dim, budget, 1)?;
    let AnyDerivation::BoltOn(each) = &*plan.derivation().each else {
        return Err(Error::NotProved { recipe: "one-vs-all", why: "audited with the bolt-on recipe" });
    };
    // Released together: one law for the stack; otherwise one for each model.
    let length = if share == Share::Joint { dim * CLASSES as usize } else { dim };
    let laws = |side| -> Result<Vec<Law>, Error> {
        let stack = output(&canary, side, at)?;
        Ok(stack.chunks_exact(length).map(|centre| Law::new(each.calibrated.noise, [(1.0, centre.to_vec())])).collect())
    };
    let (base, neighbour) = (laws(Side::Base)?, laws(Side::Neighbour)?);
    let pure = recipe.output_noise == OutputNoise::LaplaceBall;
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: if pure { 0.0 } else { parameters.delta } };
    let distance = Distance { reached, claimed: one.run().sensitivity() * f64::from(CLASSES).sqrt(), pairs };
    let sides = Sides::new(1.0, 1.0, |side| examples(&canary, side, n, at))?;
    let passes = one.run().growth().passes;
    let cost =
        COST_OF_A_RUN + (dim as f64 + COST_OF_A_ROW * (n as u64 * passes) as f64 * (1.0 + dim as f64 / 8.0)) * 2.0;
    let plan = AnyPlan::OneVsAll(plan);
    let subject = scored(name, canary.describe(), claim, cost, move |side, rng| {
        trained(&plan, sides.source(side), rng).map(|released| {
            let models = released.chunks_exact(length).zip(base.iter().zip(&neighbour));
            models.map(|(model, (base, neighbour))| neighbour.log_density(model) - base.log_density(model)).sum()
        })
    });
    Ok(Audited { subject, distance })
}
