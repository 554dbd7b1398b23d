//! Bounds on the contributions of labels to BayesRank's gradient, for each document and in total.

use super::ImageBounds;
use super::gram::Gram;
use crate::certified::{UNIT, largest_eigenvalue};
use crate::dense::{multiply, multiply_transposed};
use crate::error::Error;
use crate::loss::{BayesRank, LossBuffers};
use crate::plackett_luce::softmax;

/// The length of the longest list for which all sign vectors are enumerated.
const LARGEST_EXACT: usize = 20;
/// Up to this length enumeration is cheaper than an eigenvalue.
const CHEAP_EXACT: usize = 10;
/// The running products are recomputed after this many sign flips.
const AFRESH: usize = 64;

/// The vectors `v_i` of one list, represented by their inner products. BayesRank's gradient is `-Σ_i c_i v_i` with coefficients
/// `c ∈ [0,1]^n` determined by the grades.
///
/// # Formula
/// ```text
/// v_i = Σ_l u_il φ_l,  u_il = ∂/∂s_l Σ_{t <= k} M_{t,i} / log2(t + 1);  for k = 1: v_i = p_i (φ_i - Σ_l p_l φ_l)
/// ```
/// with `M_{t,i}` the probability of document `i` at position `t`. Scores and `φ`, hence all values here, are public.
///
/// # Privacy
/// [`bounds`](Self::bounds) holds for any two vectors of grades, whatever their range: every vector of grades gives coefficients
/// in `[0,1]^n`. See the [module](super) for the rounding errors covered.
///
/// # Examples
/// ```
/// use dp_rank::loss::BayesRank;
/// use dp_rank::sensitivity::{Contributions, Gram};
///
/// // Two documents with score gradients (1, 0), (0, 1) and equal scores: v = ±(1/4, -1/4).
/// let gram = Gram::new(&[1.0, 0.0, 0.0, 1.0], 2, 2)?;
/// let list = Contributions::new(BayesRank::TOP_1, &[0.0, 0.0], &gram)?;
/// let expected = 0.5_f64.sqrt();
/// assert!((list.bounds().diameter - expected).abs() < 1e-11);
/// assert!((list.bounds().radius - expected / 2.0).abs() < 1e-11);
/// # Ok::<(), dp_rank::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Contributions {
    documents: usize,
    /// The inner products `v_i · v_j`.
    products: Vec<f64>,
    /// The error of each product is at most `product_error sizes_i sizes_j`.
    product_error: f64,
    sizes: Vec<f64>,
    /// Upper bounds on `‖v_i‖`.
    norms: Vec<f64>,
    /// Weights of the covariance bound: for k = 1 the probabilities.
    masses: Vec<f64>,
    /// `‖Σ_i v_i‖`, which is 0 up to rounding.
    imbalance: f64,
    /// Bound on the effect of the gradients' rounding on a distance.
    rounding: f64,
}

impl Contributions {
    /// Computes the vectors from a list's scores and the inner products of its score gradients.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::NanScore`].
    pub fn new(loss: BayesRank, scores: &[f64], gram: &Gram<'_>) -> Result<Self, Error> {
        let n = gram.documents();
        if scores.len() != n {
            return Err(Error::LengthMismatch { scores: scores.len(), labels: n });
        }
        if let Some(document) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::NanScore { document });
        }
        if n == 1 {
            // The softmax of one score is exactly 1 and its coefficient equals its mean: the gradient is exactly 0.
            return Ok(Self {
                documents: 1,
                products: vec![0.0],
                product_error: 0.0,
                sizes: vec![0.0],
                norms: vec![0.0],
                masses: vec![1.0],
                imbalance: 0.0,
                rounding: 0.0,
            });
        }
        let k = loss.k().min(n);
        let largest = gram.largest_square();
        let (products, sizes, masses, residual) =
            if k == 1 { first_position(scores, gram) } else { positions(loss, scores, gram) };
        let product_error = gram.relative_error() * largest;
        let broken = !largest.is_finite() || products.iter().any(|product| !product.is_finite());
        let norm = |i: usize| {
            let square = products[i * n + i].max(0.0) + product_error * sizes[i] * sizes[i];
            if broken { f64::INFINITY } else { square.sqrt() * (1.0 + 4.0 * UNIT) }
        };
        let norms = (0..n).map(norm).collect();
        let imbalance = residual * largest.sqrt();
        // For k > 1 a gradient is itself a sum over documents and positions.
        let operations = if k == 1 { 1 } else { k * n };
        let rounding = operations as f64 * gram.gradient_rounding();
        Ok(Self { documents: n, products, product_error, sizes, norms, masses, imbalance, rounding })
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// Returns upper bounds on the norms `‖v_i‖`.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// Returns diameter and radius of the image by the best bound that is cheap for the list's length: exact up to 10 documents,
    /// otherwise the smaller of [`weighted`](Self::weighted) and [`covariance`](Self::covariance).
    pub fn bounds(&self) -> ImageBounds {
        let diameter = match self.exact().filter(|_| self.documents <= CHEAP_EXACT) {
            Some(exact) => exact,
            None => self.weighted().min(self.covariance()).min(self.triangle()),
        };
        ImageBounds { diameter, radius: self.radius(diameter) }
    }

    /// Returns the radius of the image about 0 implied by a bound on its diameter: half of it, since the image is symmetric, plus
    /// an allowance for rounding.
    pub fn radius(&self, diameter: f64) -> f64 {
        0.5 * (diameter + self.imbalance) * (1.0 + 4.0 * UNIT) + 0.5 * self.rounding
    }

    /// Returns the published bound, by the triangle inequality: `Σ_i ‖v_i‖`.
    pub fn triangle(&self) -> f64 {
        self.rounded_up(self.norms.iter().sum())
    }

    /// Returns the diameter of the zonotope, by enumeration of all sign vectors; `None` for lists of more than 20 documents.
    pub fn exact(&self) -> Option<f64> {
        let n = self.documents;
        if n > LARGEST_EXACT {
            return None;
        }
        if self.norms.iter().any(|norm| !norm.is_finite()) {
            return Some(f64::INFINITY);
        }
        let size: f64 = self.products.iter().map(|product| product.abs()).sum();
        let mut signs = vec![1.0; n];
        let mut rows = vec![0.0; n];
        let mut square = self.afresh(&signs, &mut rows);
        let mut largest = square;
        // Gray code: each step flips one sign, and all vectors up to a common sign are visited.
        for step in 1_usize..1 << (n - 1) {
            let flipped = step.trailing_zeros() as usize;
            let column = &self.products[flipped * n..(flipped + 1) * n];
            square += 4.0 * (column[flipped] - signs[flipped] * rows[flipped]);
            for (row, product) in rows.iter_mut().zip(column) {
                *row -= 2.0 * signs[flipped] * product;
            }
            signs[flipped] = -signs[flipped];
            if step % AFRESH == 0 {
                square = self.afresh(&signs, &mut rows);
            }
            largest = largest.max(square);
        }
        // Each flip rounds every row by at most 2 u of the sum of all products, and the square by 4 u of it plus four times the
        // error of its row: over AFRESH flips about 4 AFRESH² u. A fresh sum has n² terms.
        let summing = (8 * AFRESH * AFRESH + 4 * n * n) as f64 * UNIT * size;
        let sizes: f64 = self.sizes.iter().sum();
        Some(self.rounded_up((largest + summing + self.product_error * sizes * sizes).max(0.0).sqrt()))
    }

    /// Returns `sᵀ G s` and writes `G s` to `rows`.
    fn afresh(&self, signs: &[f64], rows: &mut [f64]) -> f64 {
        let n = self.documents;
        for (row, products) in rows.iter_mut().zip(self.products.chunks_exact(n)) {
            *row = products.iter().zip(signs).map(|(product, sign)| product * sign).sum();
        }
        rows.iter().zip(signs).map(|(row, sign)| row * sign).sum()
    }

    /// Returns `sqrt((Σ_i w_i) λ_max(W^-1/2 G W^-1/2))` with `w_i = ‖v_i‖`: at most [`triangle`](Self::triangle), and smaller by
    /// up to a factor `sqrt n` if score gradients have many directions.
    pub fn weighted(&self) -> f64 {
        self.weighted_by(&self.norms)
    }

    /// Returns the bound of [`weighted`](Self::weighted) with `w_i = p_i`: for k = 1 the square root of the largest eigenvalue of
    /// the covariance of `φ` under `p` (for larger k, with the weights `½ Σ_l |u_il|`).
    pub fn covariance(&self) -> f64 {
        self.weighted_by(&self.masses)
    }

    fn weighted_by(&self, weights: &[f64]) -> f64 {
        if self.norms.iter().any(|norm| !norm.is_finite()) {
            return f64::INFINITY;
        }
        // The norm of a document with weight 0 is added in full (it may be positive due to the rounding allowance).
        let kept: Vec<usize> = (0..self.documents).filter(|&i| weights[i] > 0.0 && self.norms[i] > 0.0).collect();
        let dropped: f64 = (0..self.documents).filter(|&i| !(weights[i] > 0.0)).map(|i| self.norms[i]).sum();
        if kept.is_empty() {
            return self.rounded_up(dropped);
        }
        let order = kept.len();
        let total: f64 = kept.iter().map(|&i| weights[i]).sum();
        let mut matrix = vec![0.0; order * order];
        for (row, &i) in kept.iter().enumerate() {
            for (column, &j) in kept.iter().enumerate().take(row + 1) {
                let entry = self.products[i * self.documents + j] / (weights[i].sqrt() * weights[j].sqrt());
                (matrix[row * order + column], matrix[column * order + row]) = (entry, entry);
            }
        }
        // Errors of the products are bounded by a rank-one matrix, those of the divisions by the largest entry times the order.
        let by_product: f64 = kept.iter().map(|&i| self.sizes[i] * self.sizes[i] / weights[i]).sum();
        let by_division = 8.0 * UNIT * matrix.iter().map(|entry| entry.abs()).fold(0.0, f64::max) * order as f64;
        let eigenvalue = largest_eigenvalue(&matrix, order) + self.product_error * by_product + by_division;
        self.rounded_up((total * eigenvalue.max(0.0)).sqrt() + dropped)
    }

    /// Returns diameter and radius under label thinning: the image is `{0, v_1 .. v_n}`.
    pub fn thinned_bounds(&self) -> ImageBounds {
        ImageBounds { diameter: self.thinned_exact(), radius: self.thinned_radius() }
    }

    /// Returns the published bound under label thinning: the sum of the two largest norms.
    pub fn thinned_triangle(&self) -> f64 {
        let mut norms = self.norms.clone();
        norms.sort_unstable_by(|a, b| b.total_cmp(a));
        self.rounded_up(norms.iter().take(2).sum())
    }

    /// Returns the diameter under label thinning: the largest distance in `{0, v_1 .. v_n}`.
    pub fn thinned_exact(&self) -> f64 {
        let n = self.documents;
        let mut largest = self.norms.iter().copied().fold(0.0, f64::max);
        if !largest.is_finite() {
            return f64::INFINITY;
        }
        for a in 0..n {
            for b in 0..a {
                let square = self.products[a * n + a] + self.products[b * n + b] - 2.0 * self.products[a * n + b];
                let size = self.sizes[a] + self.sizes[b];
                largest = largest.max((square.max(0.0) + self.product_error * size * size).sqrt());
            }
        }
        self.rounded_up(largest)
    }

    /// Returns the radius about 0 under label thinning: the largest norm, which may be more than half the diameter.
    pub fn thinned_radius(&self) -> f64 {
        self.rounded_up(self.norms.iter().copied().fold(0.0, f64::max))
    }

    /// Adds an allowance for the rounding of the last sums and roots, and of the gradients themselves.
    fn rounded_up(&self, bound: f64) -> f64 {
        bound * (1.0 + 1e-12 * self.documents as f64) + self.rounding
    }
}

/// Products, sizes, masses and the absolute sum of the imbalance.
type Parts = (Vec<f64>, Vec<f64>, Vec<f64>, f64);

/// Computes `v_i = p_i (φ_i - φ̄)` with `φ` taken relative to the most probable document `t`: rounding errors are then of order
/// `1 - p_t`, like the `v_i`.
fn first_position(scores: &[f64], gram: &Gram<'_>) -> Parts {
    let n = gram.documents();
    let mut p = vec![0.0; n];
    softmax(scores, &mut p);
    let top = (0..n).fold(0, |top, i| if p[i] > p[top] { i } else { top });
    let rest: f64 = (0..n).filter(|&i| i != top).map(|i| p[i]).sum();
    let relative = |i: usize, j: usize| {
        if i == top || j == top {
            0.0
        } else {
            (gram.at(i, j) - gram.at(i, top)) - (gram.at(top, j) - gram.at(top, top))
        }
    };
    let mean_products: Vec<f64> = (0..n).map(|i| (0..n).map(|l| relative(i, l) * p[l]).sum()).collect();
    let mean_square: f64 = mean_products.iter().zip(&p).map(|(product, p)| product * p).sum();
    let mut products = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let product = p[i] * p[j] * ((relative(i, j) - mean_products[i]) - (mean_products[j] - mean_square));
            (products[i * n + j], products[j * n + i]) = (product, product);
        }
    }
    // A product relative to t has four terms, so its error is 4 times that of one term: a factor of 2 in each size. The
    // coefficients of v_i in these are p_i for document i, unless it is t, and p_i p_l for the others except t.
    let sizes = (0..n).map(|i| 2.0 * p[i] * (f64::from(u8::from(i != top)) + rest)).collect();
    // Σ_i p_i (φ_i - φ̄) = φ̄ (1 - Σ p).
    (products, sizes, p, (2 * n + 4) as f64 * UNIT)
}

/// Computes `v_i` from the derivatives of the positions' marginals.
fn positions(loss: BayesRank, scores: &[f64], gram: &Gram<'_>) -> Parts {
    let n = gram.documents();
    let mut buffers = LossBuffers::default();
    let mut rows = vec![0.0; n * n];
    let mut unit = vec![0.0; n];
    for (i, row) in rows.chunks_exact_mut(n).enumerate() {
        unit[i] = 1.0;
        loss.expected_gain(scores, &unit, &mut buffers, row);
        unit[i] = 0.0;
    }
    let mut half = vec![0.0; n * n];
    multiply(&rows, gram.values(), n, n, n, 0.0, &mut half);
    let mut products = vec![0.0; n * n];
    multiply_transposed(&half, &rows, n, 0.0, &mut Vec::new(), &mut products);
    let sizes: Vec<f64> = rows.chunks_exact(n).map(|row| row.iter().map(|u| u.abs()).sum()).collect();
    let masses = sizes.iter().map(|size| 0.5 * size).collect();
    let residual = (0..n).map(|l| rows.iter().skip(l).step_by(n).sum::<f64>().abs()).sum::<f64>();
    (products, sizes, masses, residual + (4 * n) as f64 * UNIT * loss.k() as f64)
}
