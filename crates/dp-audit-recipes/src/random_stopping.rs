//! The canary of a random number of repetitions: all records except one cancel, and the best score follows the remaining one.
//!
//! Half of the other records contradict the other half, so that the differing record alone decides which sign of a model gets
//! more records right. The choice then favours models on the side to which that record has already pushed them, which is why
//! repetitions cost more than one training.
//!
//! # The law of the release
//! With `p` the density of one trained model, `a(w)` the number of records that it gets right minus the number that it gets
//! wrong (here a function of one sign), `q` the masses of the score's noise, `G` the distribution function of a score and `f`
//! the generating function of the number of repetitions:
//! ```text
//! density of the released w   p(w) Σ_s q(s - a(w)) (f(G(s)) - f(G(s - 1))) / (G(s) - G(s - 1))
//! f(x)                        ln(1 - (1 - γ) x) / ln γ     (η = 0)
//! ```
//! since, given the best score, the model with this score is distributed as in one repetition.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, Delta, Repetitions, ReplaceOne, ZeroOut};
use dp_audit::{Claim, Side};
use dp_data::Examples;
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;

use super::likelihood::Law;
use super::scored::{Sides, scored, trained};
use super::{Audited, Distance, Parameters, mode_name};
use dp_optim::Error;
use dp_optim::audit;
use dp_optim::audit::size;
use dp_optim::audit::{agreement, agreement_sensitivity};
use dp_optim::engine::Control;
use dp_optim::recipes::AnyDerivation;
use dp_optim::recipes::bolt_on::OutputNoiseScale;
use dp_optim::recipes::{AnyPlan, AnyRecipe};
use dp_optim::recipes::{BoltOn, Budget, OutputNoise, Recipe, TrainsAny};
use dp_optim::tuning::RandomStopping;

const NAME: &str = "random-stopping";

/// Mean number of repetitions.
const REPETITIONS: f64 = 4.0;

/// Costs of a row, and of the rest of a repetition, in units of releasing one number.
const COST_OF_A_ROW: f64 = 0.1;
const COST_OF_A_REPETITION: f64 = 8.0;

pub(super) fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    if !parameters.loss.is_classification() {
        return Ok(Vec::new()); // It counts mistakes.
    }
    match parameters.relation {
        AdjacencyKind::ReplaceOne => build::<ReplaceOne>(parameters),
        AdjacencyKind::ZeroOut => build::<ZeroOut>(parameters),
        adjacency => Err(Error::Adjacency { recipe: NAME, adjacency }),
    }
}

fn build<A: TrainsAny<f64> + 'static>(parameters: &Parameters) -> Result<Vec<Audited>, Error> {
    parameters.modes().into_iter().map(|mode| audited::<A>(parameters, mode)).collect()
}

fn audited<A: TrainsAny<f64> + 'static>(parameters: &Parameters, noise_mode: NoiseMode) -> Result<Audited, Error> {
    let candidate = BoltOn {
        lambda: parameters.lambda.unwrap_or(0.0),
        passes: parameters.passes,
        batch_size: parameters.batch_size,
        radius: parameters.radius,
        output_noise: OutputNoise::LaplaceBall,
        noise_mode,
        // An order known to the attacker: the claim holds for all orders.
        declared_order: true,
        ..BoltOn::convex(parameters.loss)
    };
    // A pure guarantee is audited: the cost of repetitions is then a simple factor.
    let budget = Budget { delta: Delta::ZERO, ..parameters.budget()? };
    let plan = RandomStopping::new([AnyRecipe::from(candidate.clone())], REPETITIONS).plan_copies::<A>(
        parameters.n,
        parameters.dim,
        budget,
        1,
    )?;
    let (rows, dim) = (size("number of records", parameters.n)?, size("dimension", parameters.dim)?);
    let (row_norm, target_bound) = (candidate.row_norm, candidate.target_bound);
    let sides = Sides::new(row_norm, target_bound, |side| examples(rows, dim, side, A::KIND))?;
    let up = first_coordinate(dim, 1.0);
    let down = first_coordinate(dim, -1.0);
    let agreements = |side| -> Result<[i64; 2], Error> {
        let agreement = |weights: &[f64]| agreement(&mut sides.source(side), weights, &Control::default());
        Ok([agreement(&up)?, agreement(&down)?])
    };
    let agreements = [agreements(Side::Base)?, agreements(Side::Neighbour)?];
    let claimed = agreement_sensitivity(NAME, A::KIND)?;
    let moved = agreements[0].iter().zip(&agreements[1]).map(|(base, neighbour)| base.abs_diff(*neighbour)).max();
    let distance = Distance { reached: moved.unwrap_or(0) as f64, claimed: claimed as f64, pairs: 1 };
    let derivation = plan.derivation();
    let (Some(AnyDerivation::BoltOn(each)), Repetitions::TruncatedNegativeBinomial { gamma, .. }) =
        (derivation.each.first(), derivation.repetitions)
    else {
        return Err(Error::NotProved { recipe: NAME, why: "its law is known for one bolt-on candidate alone" });
    };
    let OutputNoiseScale::LaplaceBall { scale } = each.calibrated.noise else {
        return Err(Error::NotProved { recipe: NAME, why: "its law is known for the Laplace ball alone" });
    };
    let without_noise = candidate.plan::<A>(parameters.n, parameters.dim, budget)?;
    let law = |side, agreements| -> Result<Best, Error> {
        let centre = audit::train_without_noise(without_noise.run(), &mut sides.source(side))?;
        let above = share_above_zero(centre[0], scale, dim);
        let chosen = choice(agreements, above, derivation.score.scale(), gamma);
        Ok(Best { model: Law::new(each.calibrated.noise, [(1.0, centre)]), chosen })
    };
    let (base, neighbour) = (law(Side::Base, agreements[0])?, law(Side::Neighbour, agreements[1])?);
    // The recomputed event, not the plan's.
    let claim = Claim { event: plan.derivation().event()?, delta: 0.0 };
    let mode = mode_name(noise_mode);
    let other = if A::KIND == AdjacencyKind::ZeroOut { "a null record" } else { "one with the other label" };
    let pair = format!("one record against {other}, all others in pairs that cancel");
    let cost = REPETITIONS * (COST_OF_A_REPETITION + COST_OF_A_ROW * parameters.n as f64);
    let plan = AnyPlan::RandomStopping(plan);
    let subject = scored(format!("{NAME}/{mode}"), pair, claim, cost, move |side, rng| {
        trained(&plan, sides.source(side), rng)
            .map(|weights| neighbour.log_density(&weights) - base.log_density(&weights))
    });
    Ok(Audited { subject, distance })
}

struct Best {
    /// The law of a repetition.
    model: Law,
    /// Logarithms of the factors of the choice on its density, for a positive first weight and otherwise.
    chosen: [f64; 2],
}

impl Best {
    fn log_density(&self, weights: &[f64]) -> f64 {
        let [up, down] = self.chosen;
        self.model.log_density(weights) + if weights[0] > 0.0 { up } else { down }
    }
}

/// Returns the logarithm of the sum over scores in the law above, for the two agreements, the first of which has probability
/// `above`; scores have discrete Laplace noise of this scale.
fn choice(agreements: [i64; 2], above: f64, scale: f64, gamma: f64) -> [f64; 2] {
    let q = (-scale.recip()).exp();
    let mass = |k: i64| (1.0 - q) / (1.0 + q) * (-(k.unsigned_abs() as f64) / scale).exp();
    // The mass beyond is below 1e-26.
    let reach = (60.0 * scale).ceil() as i64 + 1;
    let (least, most) = (agreements[0].min(agreements[1]) - reach, agreements[0].max(agreements[1]) + reach);
    let f = |below: f64| (-(1.0 - gamma) * below.min(1.0)).ln_1p() / gamma.ln();
    let (mut below, mut sums) = (0.0, [0.0; 2]);
    for score in least..=most {
        let of_score = above * mass(score - agreements[0]) + (1.0 - above) * mass(score - agreements[1]);
        if of_score > 0.0 {
            let weight = (f(below + of_score) - f(below)) / of_score;
            sums = [0, 1].map(|i| sums[i] + mass(score - agreements[i]) * weight);
        }
        below += of_score;
    }
    sums.map(f64::ln)
}

/// Returns the probability that the sum of `c` and the first coordinate of noise of density `exp(-‖z‖/scale)` is positive.
///
/// # Formula
/// ```text
/// 1/2 + sign(c)/2 E[I_(min(1, c²/R²))(1/2, (d - 1)/2)],   R ~ Gamma(d, scale)
/// ```
/// as a direction's first coordinate is at most `t` in absolute value with probability `I_(t²)(1/2, (d - 1)/2)`.
fn share_above_zero(c: f64, scale: f64, dim: usize) -> f64 {
    const POINTS: u32 = 20_000;
    let d = dim as f64;
    let log_norm = ln_gamma(d);
    let end = d + 60.0 + 10.0 * d.sqrt();
    let step = end / f64::from(POINTS);
    let inside: f64 = (0..POINTS)
        .map(|i| {
            let r = (f64::from(i) + 0.5) * step;
            let density = ((d - 1.0) * r.ln() - r - log_norm).exp();
            let t = (c / scale / r).powi(2);
            let within = match dim {
                _ if t >= 1.0 => 1.0,
                1 => 0.0,
                _ => beta_reg(0.5, 0.5 * (d - 1.0), t),
            };
            step * density * within
        })
        .sum();
    0.5 + 0.5 * c.signum() * inside
}

/// Returns a vector with `value` in the first coordinate, and zeros.
fn first_coordinate(dim: usize, value: f64) -> Vec<f64> {
    (0..dim).map(|i| if i == 0 { value } else { 0.0 }).collect()
}

/// Returns equal rows; the label of the first differs between the sides, the others' labels alternate.
fn examples(rows: usize, dim: usize, side: Side, relation: AdjacencyKind) -> Result<Examples<f64>, Error> {
    let (mut values, mut targets) = (Vec::with_capacity(rows * dim), Vec::with_capacity(rows));
    for row in 0..rows {
        let differs = row == 0 && side == Side::Neighbour;
        let null =
            differs && relation == AdjacencyKind::ZeroOut || row > 0 && rows.is_multiple_of(2) && row + 1 == rows;
        values.extend(first_coordinate(dim, 1.0).iter().map(|x| if null { f64::NAN } else { *x }));
        targets.push(if differs || row % 2 == 1 { -1.0 } else { 1.0 });
    }
    Examples::dense(values, targets, dim).map_err(|_| Error::Count {
        name: "rows",
        value: rows as u64,
        range: "one target each",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_above_zero_are_those_of_the_line_and_of_space() {
        // In one dimension the noise is Laplace.
        for c in [-2.0, -0.3, 0.0, 0.7] {
            let tail = 0.5 * (-f64::abs(c) / 0.5).exp();
            let expected = if c > 0.0 { 1.0 - tail } else { tail };
            assert!((share_above_zero(c, 0.5, 1) - expected).abs() < 1e-3, "{c}");
        }
        for dim in [1, 2, 3, 7] {
            let (up, down) = (share_above_zero(0.4, 1.0, dim), share_above_zero(-0.4, 1.0, dim));
            assert!((up + down - 1.0).abs() < 1e-12 && up > 0.5, "{dim}");
        }
        // In three dimensions the first coordinate's density is (1 + |z|) exp(-|z|)/4.
        let expected = 1.0 - (2.0 + 0.4) * (-0.4f64).exp() / 4.0;
        assert!((share_above_zero(0.4, 1.0, 3) - expected).abs() < 1e-5);
    }

    /// Densities integrate to 1 for any choice: the mean of its factor over one repetition is 1.
    #[test]
    fn the_choice_reweighs_and_no_more() {
        for (agreements, above, scale, gamma) in
            [([1, -1], 0.6, 1.5, 0.1), ([0, 0], 0.3, 4.0, 0.5), ([3, -3], 0.01, 0.7, 0.01)]
        {
            let [up, down] = choice(agreements, above, scale, gamma).map(f64::exp);
            assert!((above * up + (1.0 - above) * down - 1.0).abs() < 1e-9);
            assert!(agreements[0] == agreements[1] || up > down);
        }
    }
}
