//! The update rules of such runs as one type, so that generic code is compiled once for all of them.

use dp_losses::ProximalMap;
use nalgebra::RealField;

use crate::descent::Descent;
use crate::engine::{
    AcceleratedDescent, Adam, ConsensusAdmm, Denominator, GradientDescent, HeavyBall, LinearisedAdmm, Step, UpdateRule,
};

#[derive(Clone)]
pub(in crate::recipes) enum Rule<F> {
    Descent(AcceleratedDescent<F>),
    HeavyBall(HeavyBall<F>),
    Adam(Adam<F>),
    Admm(LinearisedAdmm<F>),
    Consensus(ConsensusAdmm<F>),
}

impl<F: RealField + Copy> Rule<F> {
    /// Creates the rule of a descent with noise of this standard deviation on each sum, an L2 regulariser, iterates in a ball, and
    /// a penalty's map.
    pub(in crate::recipes) fn new(
        descent: Descent,
        (lambda, radius): (f64, Option<f64>),
        map: Option<ProximalMap>,
        std_dev: f64,
        start: &[F],
    ) -> Self {
        let adam = |first_decay, second_decay, denominator| {
            Self::Adam(Adam::new(first_decay, second_decay, denominator, start).with_ball(lambda, radius))
        };
        match (descent, map) {
            (Descent::Adam { first_decay, second_decay, epsilon }, _) => {
                adam(first_decay, second_decay, Denominator::Plus { epsilon })
            }
            (Descent::AdamBc { first_decay, second_decay, floor }, _) => {
                adam(first_decay, second_decay, Denominator::WithoutNoise { std_dev, floor })
            }
            (Descent::Admm { rho, output }, Some(map)) => {
                Self::Admm(LinearisedAdmm::new(rho, map, output, start).with_ball(lambda, radius))
            }
            (Descent::Consensus { rho, parties }, map) => {
                let parties = usize::try_from(parties).unwrap_or(usize::MAX);
                Self::Consensus(ConsensusAdmm::new(rho, parties, map, start).with_ball(lambda, radius))
            }
            (Descent::HeavyBall { momentum }, _) => {
                Self::HeavyBall(HeavyBall::new(GradientDescent { lambda, radius }, momentum, start))
            }
            (descent, map) => {
                let plain = GradientDescent { lambda, radius };
                let rule = AcceleratedDescent::new(plain, descent.momentum(), start);
                Self::Descent(match map {
                    Some(map) => rule.with_penalty(map),
                    None => rule,
                })
            }
        }
    }
}

impl<F: RealField + Copy> UpdateRule<F> for Rule<F> {
    fn apply(&mut self, parameters: &mut [F], gradient_sum: &[F], step: &Step) {
        match self {
            Self::Descent(rule) => rule.apply(parameters, gradient_sum, step),
            Self::HeavyBall(rule) => rule.apply(parameters, gradient_sum, step),
            Self::Adam(rule) => rule.apply(parameters, gradient_sum, step),
            Self::Admm(rule) => rule.apply(parameters, gradient_sum, step),
            Self::Consensus(rule) => rule.apply(parameters, gradient_sum, step),
        }
    }

    fn restart(&mut self, parameters: &mut [F]) {
        match self {
            Self::Descent(rule) => rule.restart(parameters),
            Self::HeavyBall(rule) => rule.restart(parameters),
            Self::Adam(rule) => rule.restart(parameters),
            Self::Admm(rule) => rule.restart(parameters),
            Self::Consensus(rule) => rule.restart(parameters),
        }
    }

    fn kept(&self) -> Option<Vec<&[F]>> {
        match self {
            Self::Descent(rule) => rule.kept(),
            Self::HeavyBall(rule) => rule.kept(),
            Self::Adam(rule) => rule.kept(),
            Self::Admm(_) | Self::Consensus(_) => None,
        }
    }

    fn set_kept(&mut self, kept: Vec<Vec<F>>) {
        match self {
            Self::Descent(rule) => rule.set_kept(kept),
            Self::HeavyBall(rule) => rule.set_kept(kept),
            Self::Adam(rule) => rule.set_kept(kept),
            Self::Admm(_) | Self::Consensus(_) => {}
        }
    }

    fn point<'p>(&'p self, parameters: &'p [F]) -> &'p [F] {
        match self {
            Self::Descent(rule) => rule.point(parameters),
            Self::HeavyBall(rule) => rule.point(parameters),
            Self::Adam(rule) => rule.point(parameters),
            Self::Admm(rule) => rule.point(parameters),
            Self::Consensus(rule) => rule.point(parameters),
        }
    }
}

#[cfg(test)]
mod tests {
    use dp_data::{Block, Examples};
    use dp_losses::penalty::Layout;
    use dp_losses::{LinearModel, Logistic, Penalty, Real};

    use super::*;
    use crate::averaging::Averaging;
    use crate::engine::{AdmmOutput, Buffered, GradientEstimate, Iterate, Piece};
    use crate::error::Error;

    const DIM: usize = 3;
    const RADIUS: f64 = 1.0;

    /// Sums of gradients that point away from the origin, or back now and then; keeps the largest norm at which one was asked for.
    struct Pushes {
        back_every: u64,
        made: u64,
        farthest: f64,
    }

    impl<F: Real> GradientEstimate<F, LinearModel<F, Logistic>> for &mut Pushes {
        fn estimate(
            &mut self,
            _: &LinearModel<F, Logistic>,
            parameters: &[F],
            _: Block<'_, F>,
            _: Piece,
            sum: &mut [F],
        ) -> Result<(), Error> {
            let wide = |x: F| -> f64 { x.to_subset_unchecked() };
            self.farthest = self.farthest.max(parameters.iter().map(|&x| wide(x).powi(2)).sum::<f64>().sqrt());
            self.made += 1;
            let sign = if self.made.is_multiple_of(self.back_every) { 1.0 } else { -1.0 };
            for (sum, entry) in sum.iter_mut().zip([1.0; DIM]) {
                *sum = nalgebra::convert(sign * entry);
            }
            Ok(())
        }
    }

    /// Returns the largest norm at which a gradient is taken, in radii.
    fn farthest<F: Real>(
        descent: Descent,
        penalty: Option<&Penalty>,
        every: u64,
        updates: u64,
        back_every: u64,
    ) -> f64 {
        let layout = Layout { features: DIM, outputs: 1, intercept: false };
        let rho = if let Descent::Admm { rho, .. } | Descent::Consensus { rho, .. } = descent { rho } else { 0.1 };
        let map = penalty.map(|penalty| ProximalMap::new(penalty.clone(), layout, 1.0 / rho).unwrap());
        let start = vec![F::zero(); DIM];
        let rule = Rule::new(descent, (0.0, Some(RADIUS)), map, 0.1, &start);
        let mut pushes = Pushes { back_every, made: 0, farthest: 0.0 };
        let model = LinearModel::<F, _>::new(DIM, Logistic);
        let rows = Examples::dense(vec![F::zero(); DIM], vec![F::one()], DIM).unwrap();
        let weights = Averaging::Restarts { updates: every }.prepare(updates).unwrap();
        let mut iterate = Buffered::new(start, true, &mut pushes, rule);
        for t in 1..=updates {
            let step = Step { update: t, step_size: 9.0, divisor: 1.0, weight: weights.at(t) };
            iterate.update(&model, rows.block(), Piece::whole(1), &step).unwrap();
            if weights.restarts_after(t) {
                Iterate::<F, LinearModel<F, Logistic>>::restart(&mut iterate);
            }
        }
        drop(iterate);
        pushes.farthest / RADIUS
    }

    /// The sensitivity of gradients that are not clipped holds within the ball, widened by the rounding of a projection.
    #[test]
    fn gradients_are_taken_in_the_ball_after_a_restart_too() {
        let penalties = [
            Penalty::L1 { lambda: 0.3 },
            Penalty::Mcp { lambda: 1.0, gamma: 11.0 },
            Penalty::Scad { lambda: 1.0, a: 12.0 },
        ];
        let admm = |output| Descent::Admm { rho: 0.1, output };
        let (first_decay, second_decay) = (0.9, 0.999);
        let descents = [
            Descent::Plain,
            Descent::Accelerated { momentum: 0.9 },
            Descent::HeavyBall { momentum: 0.9 },
            Descent::Adam { first_decay, second_decay, epsilon: 1e-8 },
            admm(AdmmOutput::Sparse),
            admm(AdmmOutput::Smooth),
            Descent::Consensus { rho: 0.1, parties: 3 },
        ];
        let widened = |roundoff: f64| 1.0 + (DIM as f64 + 16.0) * roundoff;
        for descent in descents {
            for penalty in penalties.iter().map(Some).chain([None]) {
                let (takes_one, needs_one) = match descent {
                    Descent::Admm { .. } => (true, true),
                    Descent::HeavyBall { .. } | Descent::Adam { .. } => (false, false),
                    _ => (true, false),
                };
                if (penalty.is_some() && !takes_one) || (penalty.is_none() && needs_one) {
                    continue;
                }
                for (every, back_every) in [(1, 2), (1, 7), (1, 100), (5, 2), (20, 100), (8, 3)] {
                    let found = farthest::<f64>(descent, penalty, every, 60, back_every);
                    assert!(found <= widened(f64::EPSILON / 2.0), "{descent:?} {penalty:?} {every}: {found}");
                }
            }
            // Rounding adds up in the mean of many points of the sphere.
            if !matches!(descent, Descent::Admm { .. }) {
                for every in [10_000, 30_000, 100_000] {
                    let found = farthest::<f32>(descent, None, every, every + 1, u64::MAX);
                    assert!(found <= widened(f64::from(f32::EPSILON) / 2.0), "{descent:?} {every}: {found}");
                }
            }
        }
    }
}
