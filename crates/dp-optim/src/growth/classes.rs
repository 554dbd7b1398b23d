//! Position classes, which replace many positions in the event of a release that hides the position.

use super::{Growth, OrderPolicy, Sensitivity};
use crate::error::Error;

/// Sensitivities given the position of the differing record, rounded up to a few values, with their probabilities.
///
/// If one secret, uniformly random permutation is used for all passes, neither neighbour's output reveals the record's
/// position, and the release is a mixture over the positions with the same weights for both neighbours. Rounding a position's
/// sensitivity *up* only weakens the guarantee.
///
/// # Formula
/// ```text
/// edge_i = Δ_max (i / 256),   i = 1 .. 256
/// class of r: the least i with edge_i >= by_position[r]
/// sensitivity of a class: its largest by_position[r];   weight: Σ size_r / n
/// ```
/// Empty classes are dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct PositionClasses {
    /// The sensitivities of the classes, increasing.
    pub sensitivities: Vec<f64>,
    /// The probabilities that a record falls in each class; they sum to 1 up to rounding.
    pub weights: Vec<f64>,
}

/// Maximum number of classes of a [`PositionClasses`].
pub const MOST_CLASSES: usize = 256;

impl PositionClasses {
    /// Sorts the positions of `sensitivity` into classes. With a single class, hiding the position gains nothing.
    ///
    /// # Errors
    /// [`Error::NotProved`] for fresh permutations: a record's positions in several passes are then independent, and
    /// the bounds by position do not hold.
    pub fn new(growth: &Growth, sensitivity: &Sensitivity) -> Result<Self, Error> {
        if growth.order == OrderPolicy::Fresh {
            return Err(Error::NotProved {
                recipe: "averaging over the hidden position",
                why: "it needs one permutation for all passes; choose the fixed order",
            });
        }
        let largest = sensitivity.by_position.iter().copied().fold(0.0, f64::max);
        let edge =
            |i: usize| if i + 1 == MOST_CLASSES { largest } else { largest * ((i + 1) as f64 / MOST_CLASSES as f64) };
        // Counts records, not positions: the last batch may be short.
        let mut records = vec![0u64; MOST_CLASSES];
        let mut worst = vec![0.0f64; MOST_CLASSES];
        let batch_size = growth.batch_size.min(growth.n);
        for (position, &value) in sensitivity.by_position.iter().enumerate() {
            let guess = (value / largest * MOST_CLASSES as f64).ceil();
            let mut class = if guess >= 1.0 { (guess as usize - 1).min(MOST_CLASSES - 1) } else { 0 };
            while class + 1 < MOST_CLASSES && !(edge(class) >= value) {
                class += 1;
            }
            let before = (position as u64).saturating_mul(batch_size);
            records[class] += growth.n.saturating_sub(before).min(batch_size);
            worst[class] = worst[class].max(value);
        }
        let occupied = (0..MOST_CLASSES).filter(|&class| records[class] > 0);
        let (sensitivities, weights) =
            occupied.map(|class| (worst[class], records[class] as f64 / growth.n as f64)).unzip();
        Ok(Self { sensitivities, weights })
    }

    /// Returns whether hiding the position gains nothing.
    pub fn is_single(&self) -> bool {
        self.sensitivities.len() <= 1
    }
}
