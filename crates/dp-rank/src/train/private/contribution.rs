//! The contribution of one list to the sum of a batch, before clipping.

use chacha20::ChaCha20Rng;
use rand::SeedableRng as _;

use super::scaling::Scaling;
use crate::lists::{Features, QueryList};
use crate::loss::ListLoss;
use crate::random::below;
use crate::scorer::Scorer;
use crate::train::gradient::ListGradient;

/// Allowance for the rounding of a weight, of its products and of the bounds' quotients: `2^-49`, sixteen units.
const ROUNDING: f64 = 1.0 / (1_u64 << 49) as f64;

/// Computes contributions of lists one after another.
///
/// # Privacy
/// A contribution is a function of the list, the parameters and, if thinned, coins of its own, and independent of the other drawn
/// lists.
pub(crate) struct Contribution<'s, S: Scorer, L> {
    loss: L,
    centred: bool,
    thinning: Option<Thinning>,
    /// The largest distance of two versions and the largest norm after weighting; `None` without weights.
    limits: Option<(f64, f64)>,
    gradients: ListGradient<'s, S>,
    of_list: Vec<f64>,
}

impl<'s, S: Scorer, L: ListLoss> Contribution<'s, S, L> {
    /// Computes gradients of `loss`, to be clipped.
    pub(crate) fn new(scorer: &'s S, loss: L) -> Self {
        let (gradients, of_list) = (ListGradient::new(scorer), vec![0.0; scorer.parameters()]);
        Self { loss, centred: false, thinning: None, limits: None, gradients, of_list }
    }

    /// Omits the public part of the gradients if `centred`.
    pub(crate) fn centred(self, centred: bool) -> Self {
        Self { centred: centred && self.loss.has_public_centre(), ..self }
    }

    /// Thins grades with coins from `key`, if given.
    pub(crate) fn thinned(self, key: Option<[u8; 32]>) -> Self {
        Self { thinning: key.map(Thinning::new), ..self }
    }

    /// Weights gradients for the clipping norm, if `scaling` requires it.
    pub(crate) fn scaled(self, scaling: Scaling, clipping: f64) -> Self {
        let limits = match scaling {
            Scaling::Clip => None,
            Scaling::Public { distance } => Some((distance * clipping, clipping)),
        };
        Self { limits, ..self }
    }

    /// Returns the contribution of this list.
    pub(crate) fn of(&mut self, parameters: &[f64], list: QueryList<'_>) -> &[f64] {
        self.of_list.fill(0.0);
        let weight = self.weight(parameters, list.features());
        // A list whose bounds are unknown contributes 0.
        if weight == 0.0 {
            return &self.of_list;
        }
        let list = match &mut self.thinning {
            Some(thinning) => list.with_grades(thinning.of(list.grades())),
            None => list,
        };
        if self.centred {
            self.gradients.add_private(&self.loss, parameters, list, &mut self.of_list);
        } else {
            self.gradients.add_whole(&self.loss, parameters, list, &mut self.of_list);
        }
        if weight < 1.0 {
            self.of_list.iter_mut().for_each(|entry| *entry *= weight);
        }
        &self.of_list
    }

    /// Returns `min(1, d/Δ, C/r)` with Δ and r the diameter and the radius of a list's gradients over all grades. Grades are not
    /// used.
    pub(crate) fn weight(&mut self, parameters: &[f64], features: Features<'_>) -> f64 {
        let Some((distance, radius)) = self.limits else { return 1.0 };
        let image = self.gradients.image(&self.loss, parameters, features, self.thinning.is_some());
        let Ok(image) = image else { return 0.0 };
        if image.diameter <= distance && image.radius <= radius {
            return 1.0;
        }
        let weight = (distance / image.diameter).min(radius / image.radius) * (1.0 - ROUNDING);
        // The weight is 0 for NaN.
        if weight > 0.0 { weight.min(1.0) } else { 0.0 }
    }

    /// Adds `weight` times the public part of the gradients of all `lists` to `sum`, if it was omitted from the contributions.
    pub(crate) fn add_public<'l>(
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

/// Thinning of grades: one of the largest, drawn uniformly, is kept.
struct Thinning {
    coins: ChaCha20Rng,
    grades: Vec<u32>,
}

impl Thinning {
    fn new(key: [u8; 32]) -> Self {
        Self { coins: ChaCha20Rng::from_seed(key), grades: Vec::new() }
    }

    fn of(&mut self, grades: &[u32]) -> &[u32] {
        let largest = grades.iter().copied().max().unwrap_or(0);
        let of_largest = || grades.iter().enumerate().filter(|(_, grade)| **grade == largest).map(|(i, _)| i);
        let kept = of_largest().nth(below(&mut self.coins, of_largest().count().max(1)));
        self.grades.clear();
        self.grades.resize(grades.len(), 0);
        if let Some(kept) = kept {
            self.grades[kept] = largest;
        }
        &self.grades
    }
}
