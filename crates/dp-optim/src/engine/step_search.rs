//! The private choice of a step's size among candidates, by the losses of the step's own batch.

use dp_accountant::Adjacency;
use dp_mechanisms::ReleaseRng;
use dp_mechanisms::steps::NoisySteps;
use nalgebra::RealField;

use super::grid_sum::GridSum;
use crate::error::Error;
use crate::line_search::{REVIEW, Searcher, backtrack, select};

/// The least factor of the longest candidate, so that no step has size 0.
const LEAST: f64 = 1e-100;

/// Returns the longest candidate of the next step, as a factor on the size of its schedule, from the factors chosen so far: after
/// every ten steps at most 1.2 times the longest of them. It never rises.
pub(super) fn longest(chosen: &[f64]) -> f64 {
    let (review, ratio) = REVIEW;
    let reviews =
        chosen.chunks_exact(review).map(|steps| ratio * steps.iter().fold(0.0, |most: f64, &step| most.max(step)));
    reviews.fold(1.0, f64::min).max(LEAST)
}

/// The points that a step of each size would reach.
pub struct Candidates<'c, F> {
    /// The current point.
    pub here: &'c [F],
    /// η: the size of the schedule.
    pub step_size: f64,
    /// The largest factor on that size that is worth trying, from those chosen so far.
    pub longest: f64,
    pub(super) at: &'c dyn Fn(f64) -> Vec<F>,
}

impl<F> Candidates<'_, F> {
    /// Returns the point after a step of this factor on the size of the schedule.
    pub fn at(&self, factor: f64) -> Vec<F> {
        (self.at)(factor)
    }
}

/// A search of each step's size, with all numbers that do not need data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepSearcher<A: Adjacency> {
    pub(crate) searcher: Searcher<A>,
    /// β: ratio of each candidate to the one before.
    pub(crate) shrink: f64,
    /// K: number of candidates.
    pub(crate) candidates: u32,
    /// a: share of `b ‖w - w_i‖² / η_i` that a backtracking search requires of the decrease.
    pub(crate) armijo: f64,
    /// C_o: upper bound to which a loss is clamped.
    pub(crate) most_loss: f64,
    /// λ of the regulariser.
    pub(crate) lambda: f64,
    /// The mean number of samples of a batch.
    pub(crate) divisor: f64,
    /// The grid of sums of losses over C_o.
    pub(crate) grid: GridSum,
}

impl<A: Adjacency> StepSearcher<A> {
    /// Returns the factors of the candidates on the size of the schedule.
    pub(crate) fn factors(&self, longest: f64) -> Vec<f64> {
        (0..self.candidates).map(|i| longest * self.shrink.powi(i32::try_from(i).unwrap_or(i32::MAX))).collect()
    }

    /// Returns the decrease of the sum of losses that a step of this size to `point` requires, over C_o and on the grid.
    pub(crate) fn required<F: RealField + Copy>(&self, here: &[F], point: &[F], step_size: f64) -> f64 {
        let units = self.divisor / self.most_loss;
        let moved = squared(here.iter().zip(point).map(|(&a, &b)| a - b));
        let penalty = |point: &[F]| 0.5 * self.lambda * squared(point.iter().copied());
        self.grid.public(units * (self.armijo * moved / step_size + penalty(point) - penalty(here)))
    }

    /// Returns the probability of each candidate, from the sum of losses here and, for each candidate, the sum and the required
    /// decrease.
    ///
    /// # Errors
    /// Numbers that are not finite.
    #[cfg(feature = "audit")]
    pub(crate) fn law(&self, here: f64, candidates: &[(f64, f64)]) -> Result<Vec<f64>, Error> {
        match &self.searcher {
            Searcher::Selection(mechanism) => {
                let scores = candidates.iter().map(|(loss, required)| -loss - required).collect();
                Ok(mechanism.probabilities(&dp_mechanisms::scores::Scores::new(scores)?)?)
            }
            searcher => {
                let losses = core::iter::once(here).chain(candidates.iter().map(|(loss, _)| *loss)).collect();
                let required = candidates.iter().map(|(_, required)| *required).collect();
                let mut law = searcher.law(&crate::line_search::Sums { losses, required })?;
                // The shortest candidate is taken instead of no step.
                let none = law.remove(0);
                law.iter_mut().next_back().into_iter().for_each(|last| *last += none);
                Ok(law)
            }
        }
    }

    /// Returns the factor of the chosen candidate; `loss` gives the sum of the batch's clamped losses at a point, over C_o and on the
    /// grid. A backtracking search that accepts no candidate takes the shortest one.
    ///
    /// # Privacy
    /// A sum moves by at most 1 if a record is added or removed, and the points depend on records only through what was
    /// released.
    pub(super) fn choose<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &self,
        candidates: &Candidates<'_, F>,
        steps: &mut NoisySteps<A>,
        rng: &mut R,
        loss_at: impl Fn(&[F]) -> Result<f64, Error>,
    ) -> Result<f64, Error> {
        let &Candidates { here, step_size, longest, .. } = candidates;
        let factors = self.factors(longest);
        // The sum of losses at a candidate, and the decrease that it requires.
        let at = |factor: &f64| {
            let point = candidates.at(*factor);
            Ok::<_, Error>((loss_at(&point)?, self.required(here, &point, step_size * factor)))
        };
        let chosen = match &self.searcher {
            Searcher::Backtracking(mechanism) => {
                let loss_here = loss_at(here)?;
                let gains =
                    factors.iter().map(|factor| at(factor).map(|(loss, required)| (loss_here - loss) - required));
                let found = steps.beside(rng, |log, rng| backtrack(mechanism, gains, log, rng))?;
                found.checked_sub(1).unwrap_or(factors.len() - 1)
            }
            Searcher::Selection(mechanism) => {
                let scores = factors.iter().map(|factor| at(factor).map(|(loss, required)| -loss - required));
                let scores = scores.collect::<Result<Vec<f64>, Error>>()?;
                steps.beside(rng, |log, rng| select(mechanism, scores, log, rng))?
            }
            Searcher::NoisyMin(_) => {
                let why = "a choice among all steps along the normalised gradient is for the filter of DP-AGD";
                return Err(Error::NotProved { recipe: "line search", why });
            }
        };
        Ok(factors.get(chosen).copied().unwrap_or(longest))
    }
}

fn squared<F: RealField + Copy>(vector: impl Iterator<Item = F>) -> f64 {
    vector.map(|x| x.to_subset_unchecked()).map(|x: f64| x * x).sum()
}

#[cfg(test)]
mod tests {
    use dp_accountant::{EventLog, ZeroOut};
    use dp_mechanisms::steps::StepPlan;
    use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, OsSeeded};
    use proptest::prelude::*;

    use super::*;
    use crate::line_search::Search;

    proptest! {
        /// With so little noise that it never matters, the choice is that of the formulas, for a point in one dimension.
        #[test]
        fn without_noise_the_choice_is_that_of_the_formulas(
            losses in prop::collection::vec(0.0..50.0f64, 7), (armijo, lambda) in (0.01..0.9f64, 0.0..0.5f64),
            (here, direction, step_size) in (-2.0..2.0f64, -2.0..2.0f64, 0.1..2.0f64), longest in 0.2..1.0f64,
            selects in any::<bool>(),
        ) {
            let (divisor, most_loss) = (40.0, 0.5);
            let search = if selects { Search::Selection } else { Search::Backtracking };
            let searcher = Searcher::<ZeroOut>::new(search, 1e18).unwrap();
            let grid = GridSum::new(1000).unwrap();
            let search = StepSearcher { searcher, shrink: 0.5, candidates: 6, armijo, most_loss, lambda, divisor, grid };
            let sensitivity = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
            let noise = Gaussian::from_std_dev(sensitivity, 1.0).unwrap();
            let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
            let plan = StepPlan::AllRecords { steps: 1 };
            let mut steps = NoisySteps::start_beside(noise.into(), search.searcher.event(), plan, &mut log, &mut rng).unwrap();
            steps.noisy(Bounded::with_proven_sensitivity(vec![0.0f64], sensitivity), &mut rng).unwrap();

            let at = |factor: f64| vec![here - step_size * factor * direction];
            let factor = |i: usize| longest * 0.5f64.powi(i as i32);
            let number = |point: &[f64]| {
                let close = |i: &usize| (point[0] - at(factor(*i))[0]).abs() < 1e-12;
                (0..6).find(close).filter(|_| point[0] != here).map_or(0, |i| i + 1)
            };
            prop_assume!(direction.abs() > 1e-3);
            let candidates = Candidates { here: &[here], step_size, longest, at: &at };
            let chosen = search.choose(&candidates, &mut steps, &mut rng, |point| Ok(losses[number(point)])).unwrap();

            let units = divisor / most_loss;
            let required = |i: usize| {
                let there = at(factor(i))[0];
                let of_penalty = 0.5 * lambda * (there * there - here * here);
                units * (armijo * step_size * factor(i) * direction * direction + of_penalty)
            };
            let gains: Vec<f64> = (0..6).map(|i| losses[0] - losses[i + 1] - required(i)).collect();
            let mut sorted = gains.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assume!(sorted[5] - sorted[4] > 1e-4 && gains.iter().all(|gain| gain.abs() > 1e-4));
            let expected = match selects {
                true => gains.iter().position(|&gain| gain == sorted[5]).unwrap(),
                false => gains.iter().position(|&gain| gain >= 0.0).unwrap_or(5),
            };
            prop_assert_eq!(chosen, factor(expected));
        }
    }

    #[test]
    fn the_longest_candidate_follows_the_steps_taken() {
        assert_eq!(longest(&[]), 1.0);
        assert_eq!(longest(&[0.1; 9]), 1.0);
        assert!((longest(&[0.1; 10]) - 0.12).abs() < 1e-15);
        let mut chosen = vec![0.1; 10];
        chosen[4] = 0.5;
        chosen.extend([0.6; 9]);
        assert!((longest(&chosen) - 0.6).abs() < 1e-15);
        chosen.push(0.6);
        // It never grows.
        assert!((longest(&chosen) - 0.6).abs() < 1e-15);
        chosen.extend([0.01; 10]);
        assert!((longest(&chosen) - 0.012).abs() < 1e-15);
    }
}
