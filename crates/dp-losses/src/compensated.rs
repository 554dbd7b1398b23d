//! Gradients summed so accurately that their error does not grow with the number of examples.

use core::fmt;

use crate::model::Model;
use crate::real::Real;

/// A vector stored as the unevaluated sum of two. The rounding error of an addition to the first is added to the second, which
/// stays below a unit in the last place of the first.
///
/// # Formula
/// ```text
/// s + e = a + b  exactly,   s = fl(a + b),   e = (a - (s - z)) + (b - z),   z = fl(s - a)
/// ```
/// The error of an addition to `high + low` is only the rounding of `low + e`: `2 u²` times the larger of the sums before and
/// after it, with `u` the unit roundoff.
///
/// # Examples
/// ```
/// use dp_losses::CompensatedSum;
/// let mut sum = CompensatedSum::zeros(1);
/// sum.add_at(0, 1e16);
/// sum.add_at(0, 1.0);
/// sum.add_at(0, -1e16);
/// assert_eq!(sum.value(0), 1.0); // plainly it would be 0
/// ```
///
/// # References
/// Knuth, The Art of Computer Programming 2, section 4.2.2, Theorem B. Ogita, Rump, Oishi, "Accurate sum and dot
/// product", SIAM Journal on Scientific Computing 26, 2005.
#[derive(Clone)]
pub struct CompensatedSum<F = f64> {
    pub(crate) high: Vec<F>,
    pub(crate) low: Vec<F>,
}

impl<F> fmt::Debug for CompensatedSum<F> {
    // A function of records: never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompensatedSum").field("len", &self.high.len()).finish_non_exhaustive()
    }
}

impl<F: Real> From<Vec<F>> for CompensatedSum<F> {
    fn from(high: Vec<F>) -> Self {
        Self { low: vec![F::zero(); high.len()], high }
    }
}

impl<F: Real> CompensatedSum<F> {
    /// Creates `len` zeros.
    pub fn zeros(len: usize) -> Self {
        vec![F::zero(); len].into()
    }

    /// Sets all coordinates to 0.
    pub fn clear(&mut self) {
        self.high.fill(F::zero());
        self.low.fill(F::zero());
    }

    /// Returns the first parts: the rounded vector.
    pub fn high(&self) -> &[F] {
        &self.high
    }

    /// Returns both parts of each coordinate.
    pub fn parts(&self) -> impl Iterator<Item = (F, F)> {
        self.high.iter().copied().zip(self.low.iter().copied())
    }

    /// Multiplies by a power of two, which is exact.
    pub fn scale_by_power(&mut self, power: F) {
        self.high.iter_mut().chain(&mut self.low).for_each(|part| *part *= power);
    }

    /// Adds `factor` times a vector of the same length, with the rounding error of the products and, for the sum, `2 u²`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_scaled(&mut self, factor: F, terms: &[F]) {
        assert_eq!(self.high.len(), terms.len(), "a vector of the sum's length");
        for ((high, low), &term) in self.high.iter_mut().zip(&mut self.low).zip(terms) {
            add(high, low, factor * term);
        }
    }

    /// Adds the result of `sum` on a zero vector; `buffer` provides its memory.
    pub(crate) fn add_summed(&mut self, buffer: &mut Vec<F>, sum: impl FnOnce(&mut [F])) {
        buffer.clear();
        buffer.resize(self.high.len(), F::zero());
        sum(buffer);
        self.add_scaled(F::one(), buffer);
    }

    /// Adds a number to coordinate `j`.
    ///
    /// # Panics
    /// If there is no such coordinate.
    pub fn add_at(&mut self, j: usize, term: F) {
        add(&mut self.high[j], &mut self.low[j], term);
    }

    /// Adds another sum of the same length.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.high.len(), other.high.len(), "sums of one length");
        let terms = other.high.iter().zip(&other.low);
        for ((high, low), (&term, &rest)) in self.high.iter_mut().zip(&mut self.low).zip(terms) {
            add(high, low, term);
            add(high, low, rest);
        }
    }

    /// Returns coordinate `j`, rounded once.
    ///
    /// # Panics
    /// If there is no such coordinate.
    pub fn value(&self, j: usize) -> F {
        self.high[j] + self.low[j]
    }
}

/// Returns `(fl(a + b), a + b - fl(a + b))`: a sum without rounding error, unless it overflows.
///
/// # Examples
/// ```
/// use dp_losses::compensated::two_sum;
/// assert_eq!(two_sum(1e16, 1.0), (1e16, 1.0));
/// ```
#[inline(always)]
pub fn two_sum<F: Real>(a: F, b: F) -> (F, F) {
    let sum = a + b;
    let z = sum - a;
    (sum, (a - (sum - z)) + (b - z))
}

/// Adds a number to a sum in two parts.
#[inline(always)]
pub(crate) fn add<F: Real>(high: &mut F, low: &mut F, term: F) {
    let (sum, rest) = two_sum(*high, term);
    (*high, *low) = two_sum(sum, *low + rest);
}

/// A model whose gradients can be summed with an error that does not grow with the number of examples, nor, to first order, with
/// the parameters' norm. This certifies that a point is near a minimiser.
///
/// # Formula
/// Let `u = 2^-53`, `d` the features, `X` a bound on the rows' norm and `A = ‖w‖ X`. Everything is in double precision.
/// ```text
/// prediction      products and sums in two parts (Dot2), then rounded once: off by u |p| + ((d + 20) u)² A; that of a second
///                 part of the parameters is added to the second part
/// derivative      of the margin y p, or of the residual p - y, which is taken in two parts before the rounding
/// sum             of m examples in two parts: what each product rounds off, u ℓ' ‖x‖, and (m u)² Σ ℓ' ‖x‖
/// ```
/// *Prediction*. With `p + s` the parts after `D <= d` terms, the errors of additions collected in `s` have sizes that add up to
/// `(D + 9) u A` at most, those of products to `u A`, and a term of `s` passes through at most `D + 18` additions. So `|p + s -
/// ⟨w, x⟩| <= (D + 18)(D + 10) u² A`, which is below `((d + 20) u)² A` including the second-order error of subtracting a target
/// or the largest score. A relative error `u` of a margin or residual `r` changes the derivative by `|r| ℓ''(r) u` at most:
/// [`LossKind::condition`](crate::LossKind::condition) bounds it.
///
/// *Sum*. `e` of an addition is at most `u` times the partial sum, which is at most the sum `S` of all sizes; for `m` of them,
/// added up with `m` roundings, it is `(m u)² S`. Over the coordinates the norms of these bounds add up to `(m u)² Σ ℓ' ‖x‖`.
///
/// # Laws
/// 1. It adds the same as [`add_weighted`](Model::add_weighted) with all coefficients 1, up to the latter's rounding.
/// 2. An invalid example adds exactly nothing.
///
/// # Examples
/// ```
/// use dp_data::Examples;
/// use dp_losses::{CompensatedGradient, CompensatedSum, LinearModel, Model, Squared};
///
/// // ⟨w, x⟩ = 1e16 + 1 - 1e16, for which plain arithmetic gives 0.
/// let data = Examples::dense(vec![1e16, 1.0, -1e16], vec![0.0], 3)?;
/// let model = LinearModel::new(3, Squared);
/// let mut sum = CompensatedSum::zeros(3);
/// model.add_compensated((&[1.0, 1.0, 1.0], &[]), data.block(), &mut model.pass(1), &mut sum);
/// assert_eq!(sum.value(1), 1.0);
/// # Ok::<(), dp_data::examples::ShapeError>(())
/// ```
///
/// # References
/// Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM Journal on Scientific Computing 26, 2005, Algorithm 5.3 and
/// Proposition 5.5.
pub trait CompensatedGradient<F>: Model<F> {
    /// Adds to `sum` the value `Σ_i gradient_i` at parameters in two parts, of which the second is empty or as long as the first and
    /// below a unit in its last places; for any previous contents of the pass.
    ///
    /// # Panics
    /// As [`forward`](Model::forward) and [`add_weighted`](Model::add_weighted).
    fn add_compensated(
        &self,
        parameters: (&[F], &[F]),
        batch: Self::Batch<'_>,
        pass: &mut Self::Pass,
        sum: &mut CompensatedSum,
    );
}

#[cfg(test)]
mod tests;
