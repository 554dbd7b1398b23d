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
