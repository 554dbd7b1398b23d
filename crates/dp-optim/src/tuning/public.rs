//! The choice of a candidate on public records: a plain grid search, which costs no privacy.
//!
//! # Comparison of candidates
//! The noise of a private training is roughly a function of `n ε`: on fewer records it is larger. To match the private
//! training, each candidate is trained on half of the `m` public records with `ε n/(m/2)` in place of `ε`, and its mistakes
//! are counted on the other half, then with the halves exchanged, as often as requested. The candidate with the fewest
//! mistakes in total is chosen, the first one of equal candidates.
//!
//! # Privacy
//! Of the private records only their number is used, which is public. The public records have no protection: the choice
//! depends on them.

#[cfg(test)]
mod tests;

use dp_accountant::Epsilon;
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;
use rand::Rng;

use super::agreement::agreement;
use super::portion::{Portion, portions};
use super::{check_number, common_terms};
use crate::engine::Control;
use crate::engine::trainings::Trainings;
use crate::error::Error;
use crate::recipes::recipe::{Budget, Planned, Recipe};
use crate::recipes::{AnyRecipe, TrainsAny};

const RECIPE: &str = "tuning on public records";

/// Returns the position of the candidate with the fewest mistakes on `public` records, for a training on `n` private ones
/// within `budget` under the relation `A`.
///
/// `repetitions` is the number of times that each candidate is trained on either half, over which its noise is averaged.
///
/// # Errors
/// No candidates or too many, a candidate whose plan or training fails, a regression loss, fewer than 2 public records, 0
/// repetitions, a failing source, [`Error::Interrupted`].
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_data::Examples;
/// use dp_losses::LossKind;
/// use dp_mechanisms::SeededRng;
/// use dp_optim::MemorySource;
/// use dp_optim::engine::Control;
/// use dp_optim::recipes::{BoltOn, Budget};
/// use dp_optim::tuning::public;
///
/// let n = 1000;
/// let rows = (0..n).flat_map(|i| [if i % 2 == 0 { 0.8 } else { -0.8 }, 0.6]).collect();
/// let labels = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
/// let mut public = MemorySource::<f64>::new(Examples::dense(rows, labels, 2)?, 1.0, 1.0);
///
/// let usual = |lambda| BoltOn::strongly_convex(LossKind::Logistic, lambda);
/// let candidates = [BoltOn { batch_size: 1, passes: 40, ..usual(1e-7) }.into(), usual(0.05).into()];
/// let budget = Budget { epsilon: Epsilon::new(0.1)?, delta: Delta::ZERO };
/// let rng = &mut SeededRng::new(1);
/// let chosen = public::choose::<ReplaceOne, _>(&candidates, &mut public, 2000, budget, 5, rng, &Control::default())?;
/// assert_eq!(chosen, 1, "the first is all noise");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn choose<A: TrainsAny<F>, F: Real>(
    candidates: &[AnyRecipe],
    public: &mut dyn RowSource<F>,
    n: u64,
    budget: Budget,
    repetitions: u32,
    rng: &mut (impl ReleaseRng + ?Sized),
    control: &Control<'_>,
) -> Result<usize, Error> {
    check_number(candidates.len())?;
    if repetitions == 0 {
        return Err(Error::Count { name: "repetitions", value: 0, range: "1 or more" });
    }
    let description = public.describe()?;
    if description.n < 2 {
        return Err(Error::Count { name: "number of public records", value: description.n, range: "2 or more" });
    }
    let rng = &mut rng.lend();
    let mut key = [0; 32];
    rng.fill_bytes(&mut key);
    let halves = portions(description.n, 2, key)?;
    let [first, second] = &halves[..] else { return Ok(0) };
    let half = description.n / 2;
    let epsilon = Epsilon::new((budget.epsilon.get() * (n as f64 / half as f64)).clamp(1e-12, 1e6))?;
    let budget = Budget { epsilon, ..budget };
    let mut best = None;
    for (position, candidate) in candidates.iter().enumerate() {
        let plan = candidate.plan_copies::<A>(half, description.dim as u64, budget, 1)?;
        common_terms(RECIPE, &[plan.derivation()], half)?;
        let trainings = Trainings { number: 2 * u64::from(repetitions), memory: plan.memory(), sizes: None };
        let quiet = &mut Control { progress: None, ..*control };
        let agreements = trainings.collect(&mut *public, rng, quiet, |i, public, rng, control| {
            let (here, there) = if i % 2 == 0 { (first, second) } else { (second, first) };
            // A pointer keeps the type of nested sources finite.
            let half: &mut dyn RowSource<F> = &mut Portion::new(&mut *public, here);
            let model = A::train_any(&plan, half, rng, control)?;
            agreement(&mut Portion::new(public, there), model.weights.get(), control)
        })?;
        let right = agreements.into_iter().fold(0i64, i64::saturating_add);
        if best.is_none_or(|(_, most)| right > most) {
            best = Some((position, right));
        }
    }
    public.finish()?;
    Ok(best.map_or(0, |(position, _)| position))
}
