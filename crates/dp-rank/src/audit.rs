//! For `dp-audit-recipes`: the contribution of a list before noise, as private as the list, and the law of the sums.

use dp_optim::engine::BatchLaw;

use crate::lists::QueryList;
use crate::loss::ListLoss;
use crate::scorer::Scorer;
use crate::train::private::contribution::Contribution;
use crate::train::{PrivateRanking, Protect, RankingPlan, TrainError};

/// Returns the contribution of a list to a sum, without the public part of a thinned or centred gradient.
pub fn contribution<S: Scorer, L: ListLoss, P>(
    recipe: &PrivateRanking<L, P>,
    scorer: &S,
    key: Option<[u8; 32]>,
    parameters: &[f64],
    list: QueryList<'_>,
) -> Vec<f64> {
    let contribution = Contribution::new(scorer, &recipe.loss).thinned(key);
    contribution.scaled(recipe.scaling, recipe.clipping).of(parameters, list).to_vec()
}

/// Returns the sensitivity of a sum.
///
/// # Errors
/// None after successful planning.
pub fn sensitivity<L: ListLoss, P: Protect>(plan: &RankingPlan<L, P>) -> Result<f64, TrainError> {
    let gaussian = plan.derivation().gaussian::<P::Relation>()?;
    Ok(plan.derivation().sum(&gaussian)?.sensitivity().get())
}

/// Returns the law of the batches.
pub fn law<L: ListLoss, P: Protect>(plan: &RankingPlan<L, P>) -> BatchLaw {
    plan.derivation().law()
}
