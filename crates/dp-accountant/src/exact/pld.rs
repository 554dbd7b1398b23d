//! Composition of discretised privacy loss distributions, with an upper and a lower bound.

use super::loss_law::{Direction, Law};
use crate::leaves::Leaves;

/// Everything that was released, as the loss laws of its parts, in each direction that differs.
#[derive(Debug, Clone)]
pub(crate) struct Composed {
    directions: Vec<Vec<(Law, u64)>>,
}

impl Composed {
    /// Prepares the composition; `None` where some part has no dominating pair that could be composed.
    pub(crate) fn new(leaves: &Leaves) -> Option<Self> {
        let laws = |direction: Direction| -> Option<Vec<(Law, u64)>> {
            leaves.iter().map(|(leaf, count)| Some((Law::of(leaf)?.directed(direction), *count))).collect()
        };
        let remove = laws(Direction::Remove)?;
        let symmetric = remove.iter().all(|(law, _)| law.is_symmetric());
        let directions = if symmetric { vec![remove] } else { vec![remove, laws(Direction::Add)?] };
        Some(Self { directions })
    }
}
