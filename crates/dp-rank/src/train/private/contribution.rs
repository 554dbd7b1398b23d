//! What one list adds to the sum of a batch, before it is clipped.

use crate::lists::QueryList;
use crate::loss::ListLoss;
use crate::scorer::Scorer;
use crate::train::gradient::ListGradient;

/// Computes it for lists one after another.
///
/// # Privacy
/// A function of the list and the parameters alone: nothing of who else was drawn comes in.
pub(in crate::train) struct Contribution<'s, S: Scorer, L> {
    loss: L,
    centred: bool,
    gradients: ListGradient<'s, S>,
    of_list: Vec<f64>,
}

impl<'s, S: Scorer, L: ListLoss> Contribution<'s, S, L> {
    /// Of gradients of `loss`, without their public part if they are `centred`.
    pub(in crate::train) fn new(scorer: &'s S, loss: L, centred: bool) -> Self {
        let centred = centred && loss.has_public_centre();
        Self { loss, centred, gradients: ListGradient::new(scorer), of_list: vec![0.0; scorer.parameters()] }
    }

    /// What this list adds.
    pub(in crate::train) fn of(&mut self, parameters: &[f64], list: QueryList<'_>) -> &[f64] {
        self.of_list.fill(0.0);
        if self.centred {
            self.gradients.add_private(&self.loss, parameters, list, &mut self.of_list);
        } else {
            self.gradients.add_whole(&self.loss, parameters, list, &mut self.of_list);
        }
        &self.of_list
    }

    /// Adds `weight` times what is public about the gradients of all `lists` to `sum`, where it was taken out of what
    /// they add.
    pub(in crate::train) fn add_public<'l>(
        &mut self,
        parameters: &[f64],
        lists: impl Iterator<Item = QueryList<'l>>,
        weight: f64,
        sum: &mut [f64],
    ) {
        if self.centred {
            for list in lists {
                self.gradients.add_public(&self.loss, parameters, list.features(), weight, sum);
            }
        }
    }
}
