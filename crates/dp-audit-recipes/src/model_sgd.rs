//! The canary of the training of a model: one noisy gradient and what is released beside it from the same batch, the choice of the
//! step's size or the count of gradients below the clipping norm. The attacker sees both.
//!
//! The model has one parameter. All samples but the canary are null. Whether the canary is in the batch decides the law of the
//! gradient *and* that of the other release: a bound that amplified them one by one would be wrong.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Samples;
use dp_losses::{ChoosesFrom, Model, ParameterBlock};
use dp_mechanisms::clip::ClippingNorm;

use dp_optim::audit;
use dp_optim::engine::{AfterUpdate, Control};
use dp_optim::recipes::{ModelPlan, ModelSgd, QuantileClipping, RecordAdjacency, Sampling, Search, StepSearch};
use dp_optim::{Descent, Error, FloatKind, Schedule};

use super::likelihood::log_sum_exp;
use super::scored::scored;
use super::{Audited, Distance, Parameters, mode_name};

/// Costs in units of releasing one number: of the integrals of a backtracking search, and of the rest of a run.
const COST_OF_AN_INTEGRAL: f64 = 1000.0;
const COST_OF_A_RUN: f64 = 60.0;

pub(super) fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if !(parameters.delta > 0.0) {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for (name, beside) in [
        ("plain", Beside::Nothing),
        ("adaptive", Beside::Count),
        ("backtracking", Beside::Search(Search::Backtracking)),
        ("selection", Beside::Search(Search::Selection)),
    ] {
        for noise_mode in parameters.modes() {
            let recipe = recipe(parameters, beside, noise_mode)?;
            let name = format!("model-sgd/{name}/{}", mode_name(noise_mode));
            all.push(match parameters.relation {
                AdjacencyKind::ReplaceOne => audited::<ReplaceOne>(name, &recipe, parameters)?,
                AdjacencyKind::ZeroOut => audited::<ZeroOut>(name, &recipe, parameters)?,
                adjacency => return Err(Error::Adjacency { recipe: "model-sgd", adjacency }),
            });
        }
    }
    Ok(all)
}

/// The release beside the gradient.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    Count,
    Search(Search),
}

/// One step; half of its cost is that of the release beside the gradient, so that a fault in either shows.
fn recipe(parameters: &Parameters, beside: Beside, noise_mode: NoiseMode) -> Result<ModelSgd, Error> {
    let search = match beside {
        Beside::Search(search) => {
            Some(StepSearch { search, candidates: 4, shrink: 0.5, armijo: 1e-6, most_loss: 1.0, share: 0.5 })
        }
        _ => None,
    };
    let count = QuantileClipping { quantile: 0.5, rate: 0.01, share: 0.5 };
    let is_replaced = parameters.relation == AdjacencyKind::ReplaceOne;
    Ok(ModelSgd {
        sampling: if is_replaced { Sampling::FixedSize } else { Sampling::Poisson },
        batch_size: parameters.batch_size.min(parameters.n),
        steps: 1,
        descent: Descent::Plain,
        schedule: Schedule::Constant { step: 1.0 },
        search,
        adaptive_norm: matches!(beside, Beside::Count).then_some(count),
        noise_mode,
        float: FloatKind::F64,
        ..ModelSgd::new(ClippingNorm::new(1.0)?)
    })
}

fn audited<A: RecordAdjacency>(name: String, recipe: &ModelSgd, parameters: &Parameters) -> Result<Audited, Error> {
    let plan = recipe.plan::<A>(parameters.n, 1, parameters.budget()?)?;
    let rate = parameters.batch_size.min(parameters.n) as f64 / parameters.n as f64;
    let rate = match recipe.sampling {
        Sampling::FixedSize => rate,
        _ => audit::divisor_of_model(&plan) / parameters.n as f64,
    };
    let other = (A::KIND == AdjacencyKind::ReplaceOne).then_some(-1.0);
    let sides = [Some(1.0), other];
    let claim = Claim { event: plan.derivation().event()?, delta: parameters.delta };
    let pair = format!("a sample of one class against {}", if other.is_some() { "the other" } else { "a null sample" });
    // One contribution is cut to the clipping norm, which is 1.
    let distance = Distance {
        reached: if other.is_some() { 2.0 } else { 1.0 },
        claimed: audit::sensitivity_of_model(&plan)?,
        pairs: 1,
    };
    let backtracks = recipe.search.is_some_and(|search| search.search == Search::Backtracking);
    let cost = COST_OF_A_RUN + if backtracks { 4.0 * COST_OF_AN_INTEGRAL } else { 0.0 };
    let n = parameters.n;
    let subject = scored(name, pair, claim, cost, move |side, rng| {
        let canary = if side == Side::Base { sides[0] } else { sides[1] };
        let (samples, mut seen) = (OneCanary { n, canary }, None);
        let mut observer = |after: &AfterUpdate<'_, f64>| {
            let norm_scale = after.state().map_or(1.0, |state| state.norm_scale);
            seen = Some(Seen { reached: after.iterate[0], step: after.step_size, norm_scale });
        };
        plan.train(&Bump::new(), &samples, vec![0.0], rng, &mut Control::default(), &mut observer)?;
        let seen = seen.ok_or(Error::Interrupted)?;
        let [base, neighbour] = sides.map(|canary| log_density(&plan, rate, canary, &seen));
        Ok::<f64, Error>(neighbour? - base?)
    });
    Ok(Audited { subject, distance })
}

/// The view of the attacker.
struct Seen {
    /// The parameter after the step.
    reached: f64,
    /// The size of the step.
    step: f64,
    /// The factor on the clipping norm after the step.
    norm_scale: f64,
}

/// Returns the logarithm of the density of the noisy sum and of the release beside it, up to a constant.
fn log_density<A: RecordAdjacency>(
    plan: &ModelPlan<A>,
    rate: f64,
    canary: Option<f64>,
    &Seen { reached, step, norm_scale }: &Seen,
) -> Result<f64, Error> {
    let (std_dev, divisor) = (plan.derivation().std_dev, audit::divisor_of_model(plan));
    let noisy_sum = -reached * divisor / step;
    let at = |factor: f64| vec![-factor * noisy_sum / divisor];
    let mut terms = Vec::new();
    for (probability, canary) in [(rate, canary), (1.0 - rate, None)] {
        let sum = canary.map_or(0.0, |x| Bump::gradient(0.0, x).clamp(-1.0, 1.0));
        let gradient = -(noisy_sum - sum).powi(2) / (2.0 * std_dev * std_dev);
        let losses = |point: &[f64]| canary.map_or(0.0, |x| Bump::loss(point[0], x).clamp(0.0, 1.0));
        let choice = match audit::law_of_step(plan, 1.0, losses, &[0.0], at)? {
            None => 1.0,
            Some(law) => law.iter().find(|(factor, _)| (factor - step).abs() < 1e-12).map_or(0.0, |(_, p)| *p),
        };
        // The canary's gradient is never below the norm.
        let count = match plan.derivation().recipe.adaptive_norm {
            None => 0.0,
            Some(norm) => {
                let noisy = divisor * (norm.quantile - 0.5 - norm_scale.ln() / norm.rate);
                let halves = canary.map_or(0.0, |_| -0.5);
                -(noisy - halves).powi(2) / (2.0 * audit::count_std_dev(plan)?.powi(2))
            }
        };
        terms.push(probability.ln() + gradient + choice.ln() + count);
    }
    Ok(log_sum_exp(terms.into_iter()))
}

/// Samples of which all but the first are null, and maybe the first.
struct OneCanary {
    n: u64,
    canary: Option<f64>,
}

impl Samples for OneCanary {
    fn count(&self) -> u64 {
        self.n
    }

    fn is_null(&self, position: u32) -> bool {
        position > 0 || self.canary.is_none()
    }
}

/// A loss in one parameter that is steep at the origin, and clamped to zero at some candidates and to the largest loss at others:
/// `100 sin(500 x w)`.
struct Bump([ParameterBlock; 1]);

impl Bump {
    fn new() -> Self {
        Self([ParameterBlock { name: "position".into(), range: 0..1 }])
    }

    fn loss(w: f64, x: f64) -> f64 {
        100.0 * (500.0 * x * w).sin()
    }

    fn gradient(w: f64, x: f64) -> f64 {
        5e4 * x * (500.0 * x * w).cos()
    }
}

#[derive(Clone, Copy)]
struct Batch<'a> {
    samples: &'a OneCanary,
    positions: &'a [u32],
}

impl Batch<'_> {
    fn each(&self) -> impl Iterator<Item = f64> {
        self.positions.iter().filter_map(|_| self.samples.canary)
    }
}

impl Model<f64> for Bump {
    type Batch<'a> = Batch<'a>;
    /// The parameter.
    type Pass = f64;

    fn blocks(&self) -> &[ParameterBlock] {
        &self.0
    }

    fn pass(&self, _: usize) -> f64 {
        0.0
    }

    fn forward(&self, w: &[f64], _: Batch<'_>, pass: &mut f64) {
        *pass = w[0];
    }

    fn losses(&self, batch: Batch<'_>, pass: &f64, out: &mut [f64]) {
        out.iter_mut().zip(batch.each()).for_each(|(out, x)| *out = Self::loss(*pass, x));
    }

    fn backward(&self, _: &[f64], _: Batch<'_>, _: &mut f64) {}

    fn squared_norms(&self, batch: Batch<'_>, pass: &mut f64, out: &mut [f64]) {
        out.iter_mut().zip(batch.each()).for_each(|(out, x)| *out = Self::gradient(*pass, x).powi(2));
    }

    fn add_weighted(&self, batch: Batch<'_>, pass: &mut f64, coefficients: &[f64], sum: &mut [f64]) {
        for (coefficient, x) in coefficients.iter().zip(batch.each()) {
            sum[0] += coefficient * Self::gradient(*pass, x);
        }
    }

    fn add_weighted_in_double(&self, batch: Batch<'_>, pass: &mut f64, coefficients: &[f64], sum: &mut [f64]) {
        self.add_weighted(batch, pass, coefficients, sum);
    }
}

impl ChoosesFrom<f64, OneCanary> for Bump {
    fn choose<'a>(&self, samples: &'a OneCanary, positions: &'a [u32]) -> Batch<'a> {
        Batch { samples, positions }
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::bound;

    use super::*;

    /// Returns the larger hockey-stick divergence of the two laws of what the attacker sees, in both directions, by quadrature over the
    /// noisy sum.
    fn divergences<A: RecordAdjacency>(
        plan: &ModelPlan<A>,
        (rate, canaries): (f64, [Option<f64>; 2]),
        epsilons: &[f64],
    ) -> Vec<f64> {
        let (std_dev, divisor) = (plan.derivation().std_dev, audit::divisor_of_model(plan));
        let (points, width) = (160, 14.0 * std_dev);
        let mut found = vec![[0.0; 2]; epsilons.len()];
        for i in 0..points {
            let noisy_sum = width * ((f64::from(i) + 0.5) / f64::from(points) - 0.5);
            for step in [1.0, 0.5, 0.25, 0.125] {
                let reached = -step * noisy_sum / divisor;
                let [one, other] = canaries.map(|canary| {
                    let log = log_density(plan, rate, canary, &Seen { reached, step, norm_scale: 1.0 }).unwrap();
                    log.exp() / (std_dev * (2.0 * core::f64::consts::PI).sqrt()) * width / f64::from(points)
                });
                for (sums, epsilon) in found.iter_mut().zip(epsilons) {
                    sums[0] += (one - epsilon.exp() * other).max(0.0);
                    sums[1] += (other - epsilon.exp() * one).max(0.0);
                }
            }
        }
        found.into_iter().map(|[one, other]| f64::max(one, other)).collect()
    }

    /// Gradient and search on one batch cost no more than the event, and not much less: for a sample present or absent, and for one
    /// replaced by its opposite.
    #[test]
    fn the_law_of_a_step_is_within_its_event() {
        fn check<A: RecordAdjacency>(batch_size: u64, search: Search, of_claim: f64) {
            let epsilons = [0.0, 0.1, 0.3, 0.6, 1.0, 1.5];
            let parameters = Parameters { n: 40, batch_size, epsilon: 2.5, delta: 1e-3, ..Parameters::default() };
            let parameters = Parameters { relation: A::KIND, ..parameters };
            let recipe = recipe(&parameters, Beside::Search(search), NoiseMode::Exact).unwrap();
            let plan = recipe.plan::<A>(40, 1, parameters.budget().unwrap()).unwrap();
            let rate = audit::divisor_of_model(&plan) / 40.0;
            let other = (A::KIND == AdjacencyKind::ReplaceOne).then_some(-1.0);
            let found = divergences(&plan, (rate, [Some(1.0), other]), &epsilons);
            for (found, epsilon) in found.into_iter().zip(epsilons) {
                let claimed = bound::delta(plan.event(), epsilon).unwrap().value;
                let what = format!("{search:?} {} in {batch_size} at {epsilon}", A::KIND);
                assert!(found <= claimed * (1.0 + 1e-3) + 1e-9, "{what}: {found} beyond {claimed}");
                assert!(epsilon > 0.0 || found > of_claim * claimed, "{what}: {found} of {claimed}");
            }
        }
        for (search, of_claim) in [(Search::Selection, 0.6), (Search::Backtracking, 0.35)] {
            check::<ZeroOut>(4, search, of_claim);
            check::<ZeroOut>(20, search, of_claim);
            // Samples of fixed size have Renyi bounds only, which say little about small epsilons.
            check::<ReplaceOne>(4, search, 0.1);
            check::<ReplaceOne>(40, search, of_claim);
        }
    }
}
