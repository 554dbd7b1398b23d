//! The agreement of a model: its number of correct minus incorrect predictions.
//!
//! # Sensitivity
//! A record counts +1 if the model predicts its class, -1 if it does not, and 0 if it is null. Replacing a record by another
//! moves the sum by at most 2, by a null record by at most 1: a record's count depends on it and the model alone, in floating
//! point too, because its scores are summed in the order of its features.

#[cfg(test)]
mod tests;

use dp_accountant::{Adjacency, AdjacencyKind, EventLog};
use dp_data::{Block, Order, PassRequest, RowSource, Rows};
use dp_losses::{Real, Softmax};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::{Bounded, Exponential, LentRng, Mechanism as _};

use crate::engine::{Control, check_shape, expect_rows};
use crate::error::Error;

/// Returns the sensitivity of the agreement of any model.
pub fn sensitivity(recipe: &'static str, relation: AdjacencyKind) -> Result<u64, Error> {
    match relation {
        AdjacencyKind::ReplaceOne => Ok(2),
        AdjacencyKind::ZeroOut => Ok(1),
        adjacency => Err(Error::Adjacency { recipe, adjacency }),
    }
}

/// Returns the number of records that a model of `weights` classifies correctly minus the number that it classifies
/// incorrectly. With classes -1 and +1, a score above 0 predicts +1; with one score for each class, the first largest one
/// wins.
pub fn agreement<F: Real>(source: &mut dyn RowSource<F>, weights: &[F], control: &Control<'_>) -> Result<i64, Error> {
    let description = source.describe()?;
    let dim = description.dim;
    let classes = match weights.len().checked_div(dim) {
        Some(0 | 1) | None => None,
        Some(outputs) => Some(Softmax::new(u32::try_from(outputs).unwrap_or(u32::MAX))?),
    };
    let (mut sum, mut rows, mut sparse) = (0i64, 0u64, None);
    let mut stream = source.open_pass(&PassRequest { pass: 0, order: Order::Declared })?;
    while let Some(block) = stream.next_block()? {
        control.check()?;
        check_shape(&block, dim, &mut sparse, description.engine)?;
        rows += block.len() as u64;
        for i in 0..block.len() {
            sum += of_record(&block, i, weights, classes);
        }
    }
    expect_rows(description.n, rows)?;
    Ok(sum)
}

/// Releases the position of one of several models, by their agreements with the same records.
///
/// # Errors
/// Those of the mechanism.
pub(crate) fn choose<A: Adjacency>(
    choice: &Exponential<A>,
    agreements: Vec<i64>,
    rng: &mut LentRng<'_>,
) -> Result<(usize, EventLog<A>), Error> {
    let scores = Scores::new(agreements.into_iter().map(|right| right as f64).collect())?;
    let mut log = EventLog::new();
    let chosen = choice.release(Bounded::with_proven_sensitivity(scores, choice.sensitivity()), &mut log, rng)?;
    Ok((chosen.into_inner(), log))
}

/// Returns the count of the record at `i`.
fn of_record<F: Real>(block: &Block<'_, F>, i: usize, weights: &[F], classes: Option<Softmax>) -> i64 {
    if block.valid.is_some_and(|valid| !valid.get(i).copied().unwrap_or(false)) {
        return 0;
    }
    let Some(&target) = block.targets.get(i) else { return 0 };
    let right = match classes {
        None => {
            let score = dot(&block.rows, i, weights);
            if target == F::one() {
                score > F::zero()
            } else if target == -F::one() {
                !(score > F::zero())
            } else {
                return 0;
            }
        }
        Some(classes) => {
            let Some(class) = classes.class_index(target) else { return 0 };
            let mut best = (0, None);
            for (c, weights) in weights.chunks_exact(block.dim().max(1)).enumerate() {
                let score = dot(&block.rows, i, weights);
                if best.1.is_none_or(|largest| score > largest) {
                    best = (c, Some(score));
                }
            }
            best.0 == class
        }
    };
    if right { 1 } else { -1 }
}

/// Returns the product of row `i` with `weights`, summed in the order of the features.
fn dot<F: Real>(rows: &Rows<'_, F>, i: usize, weights: &[F]) -> F {
    let mut sum = F::zero();
    match *rows {
        Rows::Dense { values, dim } => {
            let row = values.get(i * dim..(i + 1) * dim).unwrap_or_default();
            for (&value, &weight) in row.iter().zip(weights) {
                sum += value * weight;
            }
        }
        Rows::Sparse { offsets, indices, values, .. } => {
            if let (Some(&start), Some(&end)) = (offsets.get(i), offsets.get(i + 1)) {
                for (&index, &value) in indices[start..end].iter().zip(&values[start..end]) {
                    if let Some(&weight) = weights.get(index as usize) {
                        sum += value * weight;
                    }
                }
            }
        }
    }
    sum
}
