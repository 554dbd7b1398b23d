//! Inner products of a list's score gradients, with their rounding errors.

use crate::certified::UNIT;
use crate::error::Error;
use crate::lists::Features;
use crate::scorer::Scorer;

/// Inner products `K_ij = φ_i · φ_j` of the score gradients of one list.
///
/// # Examples
/// ```
/// use dp_rank::sensitivity::{Gram, half_diameter};
/// // Score gradients (0, 0), (3, 4).
/// let gram = Gram::new(&[0.0, 0.0, 0.0, 25.0], 2, 2)?;
/// assert!(half_diameter(&gram) >= 2.5 && half_diameter(&gram) < 2.5 + 1e-12);
/// # Ok::<(), dp_rank::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Gram<'a> {
    values: &'a [f64],
    documents: usize,
    terms: usize,
}

impl<'a> Gram<'a> {
    /// Takes the products for `documents` documents, each computed as a sum of at most `terms` terms.
    ///
    /// # Errors
    /// [`Error::EmptyList`], [`Error::Shape`].
    pub fn new(values: &'a [f64], documents: usize, terms: usize) -> Result<Self, Error> {
        if documents == 0 {
            return Err(Error::EmptyList);
        }
        if values.len() != documents * documents {
            let expected = documents * documents;
            return Err(Error::Shape { what: "a Gram matrix", found: values.len(), expected });
        }
        Ok(Self { values, documents, terms })
    }

    /// Computes the products into `values` by `scorer`, after its scores of the same list at the same parameters.
    ///
    /// # Panics
    /// As [`Scorer::gram`]. `values` is resized as needed.
    pub fn of<S: Scorer>(
        scorer: &S,
        parameters: &[f64],
        list: Features<'_>,
        workspace: &mut S::Workspace,
        values: &'a mut Vec<f64>,
    ) -> Self {
        let documents = list.documents();
        values.resize(documents * documents, 0.0);
        scorer.gram(parameters, list, workspace, values);
        Self { values, documents, terms: scorer.gram_terms() }
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// Returns the largest number of terms of a product.
    pub fn terms(&self) -> usize {
        self.terms
    }

    pub(super) fn values(&self) -> &'a [f64] {
        self.values
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.documents + j]
    }

    /// Returns `max_i ‖φ_i‖²`, rounded up; infinity if a product is not finite.
    pub(super) fn largest_square(&self) -> f64 {
        if self.values.iter().any(|product| !product.is_finite()) {
            return f64::INFINITY;
        }
        let largest = (0..self.documents).map(|i| self.at(i, i)).fold(0.0, f64::max);
        largest * (1.0 + 4.0 * self.relative_error())
    }

    /// Returns a bound on the error of each product, and of each combination of them below with `O(n)` operations, in units of
    /// `max_i ‖φ_i‖²` times the absolute sum of the coefficients.
    ///
    /// The error of an inner product of `m` terms is at most `m u ‖φ_i‖ ‖φ_j‖` with `u` the unit roundoff (Higham 2002, section
    /// 3.1), that of each `φ`, a product of a few factors per entry, a few `u`, and a combination over documents adds `n u` per
    /// sum. The bound is more than twice the total.
    pub(super) fn relative_error(&self) -> f64 {
        (2 * self.terms + 8 * self.documents + 64) as f64 * UNIT
    }

    /// Returns a bound on the effect of the gradients' rounding on a distance between two of them, for document coefficients that
    /// sum to at most 1 in absolute value: `2 (n + ..) u max ‖φ‖`.
    pub(super) fn gradient_rounding(&self) -> f64 {
        (8 * self.documents + 64) as f64 * UNIT * self.largest_square().sqrt()
    }
}

/// Returns half the largest distance between two score gradients. No bound of [`Contributions`](super::Contributions) for k = 1
/// exceeds it by more than rounding.
///
/// # Formula
/// ```text
/// ½ max_{a,b} ‖φ_a - φ_b‖
/// ```
pub fn half_diameter(gram: &Gram<'_>) -> f64 {
    0.5 * diameter(gram)
}

pub(super) fn diameter(gram: &Gram<'_>) -> f64 {
    let n = gram.documents;
    let largest = gram.largest_square();
    if !largest.is_finite() {
        return f64::INFINITY;
    }
    let mut square = 0.0_f64;
    for a in 0..n {
        for b in 0..a {
            square = square.max(gram.at(a, a) + gram.at(b, b) - gram.at(a, b) - gram.at(b, a));
        }
    }
    if n == 1 { 0.0 } else { (square + 4.0 * gram.relative_error() * largest).sqrt() * (1.0 + 4.0 * UNIT) }
}
