//! Consensus ADMM: parties that each hold their own records agree on one model.

use dp_losses::ProximalMap;
use nalgebra::{RealField, convert};

use super::update::{Step, UpdateRule, project};

/// Linearised consensus ADMM of N parties, which take turns. An update is one party's step on the sum of its own records'
/// gradients, taken at its own copy of the model. After the last party's turn the consensus model and the duals are updated.
///
/// # Formula
/// With `g` the party's sum of gradients over the divisor, plus λ w_i; all variables are zero at the start:
/// ```text
/// w_i <- ( w_i/η + ρ w + γ_i - g ) / ( 1/η + ρ )                  each party in turn
/// w   <- prox_{P/ρ}( mean_i (w_i - γ_i/ρ) )                       after the last
/// γ_i <- γ_i - ρ (w_i - w)
/// ```
/// and the w_i are projected onto the ball, if there is one. Its fixed points minimise the mean over parties of their
/// regularised risks, plus the penalty P.
///
/// # Examples
/// ```
/// use dp_optim::engine::{ConsensusAdmm, Step, UpdateRule};
/// let mut w = [0.0];
/// let mut rule = ConsensusAdmm::new(1.0, 2, None, &w);
/// let step = Step { update: 1, step_size: 1.0, divisor: 1.0, weight: 1.0 };
/// rule.apply(&mut w, &[-1.0], &step); // 1/(1 + 1)
/// assert_eq!((w, rule.point(&w)), ([0.0], &[0.0][..])); // the second party's turn, at its own copy
/// rule.apply(&mut w, &[-3.0], &step); // 3/(1 + 1), and the mean is 1
/// assert_eq!((w, rule.point(&w)), ([0.5], &[1.0][..]));
/// ```
///
/// # References
/// Boyd, Parikh, Chu, Peleato, Eckstein, "Distributed optimization and statistical learning via the alternating direction
/// method of multipliers", 2011, section 7.1; Huang, Hu, Guo, Chan-Tin, Gong, "DP-ADMM: ADMM-based distributed learning with
/// differential privacy", IEEE TIFS 2020, for the linearised step with noise.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsensusAdmm<F> {
    /// λ of the L2 regulariser of each party's risk.
    lambda: f64,
    radius: Option<f64>,
    rho: f64,
    map: Option<ProximalMap>,
    parties: Vec<Party<F>>,
    turn: usize,
    agreed: Vec<F>,
}

/// One party's copy of the model and its dual variable.
#[derive(Debug, Clone, PartialEq)]
struct Party<F> {
    model: Vec<F>,
    dual: Vec<F>,
}

impl<F: RealField + Copy> ConsensusAdmm<F> {
    /// Starts `parties` (at least one) copies at zero in the dimension of `start`, with `rho > 0` and a map checked for the
    /// step `1/rho`.
    pub fn new(rho: f64, parties: usize, map: Option<ProximalMap>, start: &[F]) -> Self {
        let zeros = || vec![F::zero(); start.len()];
        let parties = (0..parties.max(1)).map(|_| Party { model: zeros(), dual: zeros() }).collect();
        Self { lambda: 0.0, radius: None, rho, map, parties, turn: 0, agreed: zeros() }
    }

    /// Adds an L2 regulariser, and a ball onto which iterates are projected.
    pub fn with_ball(self, lambda: f64, radius: Option<f64>) -> Self {
        Self { lambda, radius, ..self }
    }

    /// Returns `w_i` of the party at this index, from 0.
    pub fn model_of(&self, party: usize) -> Option<&[F]> {
        self.parties.get(party).map(|party| &party.model[..])
    }

    /// Returns `γ_i` of the party at this index, from 0.
    pub fn dual_of(&self, party: usize) -> Option<&[F]> {
        self.parties.get(party).map(|party| &party.dual[..])
    }

    /// Updates the consensus model and the duals after the last party's turn.
    fn agree(&mut self) {
        let count: F = convert(1.0 / self.parties.len() as f64);
        let (rho, inverse): (F, F) = (convert(self.rho), convert(1.0 / self.rho));
        self.agreed.fill(F::zero());
        for Party { model, dual } in &self.parties {
            for ((agreed, &model), &dual) in self.agreed.iter_mut().zip(model).zip(dual) {
                *agreed += count * (model - inverse * dual);
            }
        }
        if let Some(map) = &mut self.map {
            map.apply(1.0 / self.rho, &mut self.agreed);
        }
        for Party { model, dual } in &mut self.parties {
            for ((dual, &model), &agreed) in dual.iter_mut().zip(model.iter()).zip(&self.agreed) {
                *dual -= rho * (model - agreed);
            }
        }
    }
}

impl<F: RealField + Copy> UpdateRule<F> for ConsensusAdmm<F> {
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        let (eta, rho) = (step.step_size, self.rho);
        // Numerator and denominator are multiplied by η, which may be 0.
        let whole = 1.0 + eta * rho;
        let keep: F = convert((1.0 - eta * self.lambda) / whole);
        let (draw, push): (F, F) = (convert(eta * rho / whole), convert(eta / whole));
        let scale: F = convert(-eta / (whole * step.divisor));
        if let Some(Party { model, dual }) = self.parties.get_mut(self.turn) {
            let public = self.agreed.iter().zip(dual.iter());
            for (((model, &w), (&agreed, &dual)), &sum) in
                model.iter_mut().zip(parameters.iter()).zip(public).zip(gradient_sum)
            {
                *model = keep * w + draw * agreed + push * dual + scale * sum;
            }
            if let Some(radius) = self.radius {
                project(model, radius);
            }
        }
        self.turn += 1;
        if self.turn >= self.parties.len() {
            self.turn = 0;
            self.agree();
        }
        if let Some(next) = self.parties.get(self.turn) {
            parameters.copy_from_slice(&next.model);
        }
    }

    fn restart(&mut self, parameters: &mut [F]) {
        if let Some(radius) = self.radius {
            project(parameters, radius);
        }
        for party in &mut self.parties {
            party.model.copy_from_slice(parameters);
        }
    }

    fn point<'p>(&'p self, _parameters: &'p [F]) -> &'p [F] {
        &self.agreed
    }
}

#[cfg(test)]
mod tests {
    use dp_losses::Penalty;
    use dp_losses::penalty::Layout;
    use proptest::prelude::*;

    use super::*;
    use crate::descent::consensus_reach;

    fn map(penalty: Penalty, rho: f64) -> ProximalMap {
        let layout = Layout { features: 4, outputs: 1, intercept: false };
        ProximalMap::new(penalty, layout, 1.0 / rho).unwrap()
    }

    fn step(step_size: f64) -> Step {
        Step { update: 1, step_size, divisor: 1.0, weight: 1.0 }
    }

    fn norm(v: &[f64]) -> f64 {
        v.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Parties with risks `½‖w - c_i‖²` agree on the minimiser of their mean plus `(λ/2)‖w‖²` and a penalty.
    #[test]
    fn parties_agree_on_the_minimiser_of_their_mean_risk() {
        let centres = [[3.0, -1.0, 0.9, 0.0], [1.0, -1.0, -0.3, 0.4], [2.0, -1.0, 0.3, -0.1]];
        let mut w = [0.0; 4];
        let penalty = map(Penalty::L1 { lambda: 0.5 }, 0.7);
        let mut rule = ConsensusAdmm::new(0.7, 3, Some(penalty), &w).with_ball(0.25, None);
        for turn in 0..3 * 3000 {
            let centre = centres[turn % 3];
            let gradient = [0, 1, 2, 3].map(|j| w[j] - centre[j]);
            rule.apply(&mut w, &gradient, &step(0.8));
        }
        // S(mean c, 1/2)/(1 + 1/4)
        for (j, expected) in [1.2, -0.4, 0.0, 0.0].into_iter().enumerate() {
            assert!(f64::abs(rule.point(&w)[j] - expected) < 1e-9, "{:?}", rule.point(&w));
        }
        // The copies still differ where the data do: the duals compensate for it.
        let dual: f64 = (0..3).map(|party| rule.dual_of(party).unwrap()[0]).sum();
        assert!(norm(rule.dual_of(0).unwrap()) > 0.5 && (dual / 3.0 + 0.5).abs() < 1e-9, "{dual}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// The bound on which the range of the iterates rests: see [`Descent::check_range`](crate::Descent).
        #[test]
        fn rounds_add_a_bounded_amount(
            kind in 0..4, lambda in 0.0..2.0f64, share in 0.0..2.0f64, rho in 0.1..3.0f64, decay in 0.0..1.0f64,
            sums in prop::collection::vec(prop::array::uniform4(-4.0..4.0f64), 1..90), eta in 0.01..5.0f64, push in 0..3,
            count in 1..4usize, ball: bool,
        ) {
            let penalty = match kind {
                0 => None,
                1 => Some(Penalty::L1 { lambda }),
                2 => Some(Penalty::ElasticNet { lambda, ridge: share * rho }),
                _ => Some(Penalty::Nuclear { lambda }),
            };
            let radius = ball.then_some(0.5);
            let pull = penalty.as_ref().map_or(0.0, |penalty| penalty.pull(4));
            let map = penalty.map(|penalty| map(penalty, rho));
            let mut w = [0.0; 4];
            let mut rule = ConsensusAdmm::new(rho, count, map, &w).with_ball(decay / eta, radius);
            let mut longest = 0.0f64;
            for (t, sum) in sums.iter().enumerate() {
                // Away from the origin, apart from one another, or arbitrary.
                let sum = match push {
                    0 => *sum,
                    1 => sum.map(|entry| -entry.abs()),
                    _ => sum.map(|entry| if t % count == 0 { entry.abs() } else { -entry.abs() }),
                };
                rule.apply(&mut w, &sum, &step(eta));
                longest = longest.max(norm(&sum));
                let rounds = (t / count + 1) as f64;
                let reach = consensus_reach(rho, count as f64, rounds, eta, longest, radius, pull);
                for party in &rule.parties {
                    prop_assert!(norm(&party.model) <= reach * (1.0 + 1e-9), "{} {}", norm(&party.model), reach);
                    prop_assert!(norm(&party.dual) / rho <= reach * (1.0 + 1e-9), "{} {}", norm(&party.dual), reach);
                }
                prop_assert!(norm(&rule.agreed) <= reach * (1.0 + 1e-9), "{} {}", norm(&rule.agreed), reach);
            }
        }
    }
}
