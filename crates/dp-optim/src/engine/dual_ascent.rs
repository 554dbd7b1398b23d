//! A point certified to be close to the minimiser of a regularised risk whose loss may have kinks.
//!
//! # Formula
//! For rows `x_i` with targets, a loss of bounded slopes and a centre `v`,
//! ```text
//! P(w) = (1/n) Σ ℓ(⟨w, x_i⟩, y_i) + (λ/2) ‖w - v‖²,      w(u) = v - (1/(λn)) Σ u_i x_i
//! (λ/2) ‖w(u) - w*‖² <= (1/n) Σ [ℓ(p_i) + ℓ*(u_i) - u_i p_i],     p_i = ⟨w(u), x_i⟩
//! ```
//! for any slopes `u` in the domain of the conjugate `ℓ*` ([`ProximalLoss`]). The right side is a sum of terms that are not
//! negative, each computed to high accuracy, and 0 at the minimiser: it certifies a point to far more digits than the two
//! objectives could, which agree in most of theirs.
//!
//! The solver is coordinate ascent on the slopes, in an order drawn anew for each round: each step solves for one record
//! exactly, and no step size is involved. Every few rounds the certificate is computed. Should none have passed after a
//! number of rounds that depends on public numbers only, all slopes are moved at once by proximal gradient steps, whose
//! average after as many rounds is certified by their number.
//!
//! # Certificate by count
//! The dual, `max_u ⟨v, s⟩ - ‖s‖²/(2λ) - (1/n) Σ ℓ*(u_i)` with `s = (1/n) Σ u_i x_i`, has the gradient `p_i/n` in its smooth
//! part and curvature at most `M/n` there, `M = X²/λ` (rows of norm at most `X`). With `A` the length of the slopes' interval, and predictions off by at most `δ` each
//! and by a common shift `e` of `w`, the steps `u_i' = argmin_u ℓ*(u) - u p_i + (M/2)(u - u_i)²` satisfy, summed over `K`
//! rounds,
//! ```text
//! gap(ū) <= X²A²/(2λK) + δA + e √(2λ gap)    =>    gap(ū) <= X²A²/(λK) + 2δA + 2λe²
//! ```
//! by convexity (the shift is seen through `λ ⟨e, w(u) - w*⟩`). With `K >= 8X²A²/(λτ)²`, `λτ² >= 16 δA` and `e <= τ/8`,
//! `‖w(ū) - w*‖ <= √(2 gap/λ) + e <= √(1/4 + 1/4 + 1/16) τ + τ/8 < τ`.
//!
//! # Privacy
//! How many rounds were taken, and so how long it took, depends on the data and is not covered by the guarantee. It is
//! neither returned nor reported.
//!
//! # References
//! Shalev-Shwartz, Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization", JMLR 14, 2013.
//! Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008.

mod rows;
#[cfg(test)]
mod tests;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use dp_data::Block;
use dp_losses::{ProximalLoss, Real};
use nalgebra::convert;
use rand::seq::SliceRandom;

use super::control::Control;
use crate::error::{Error, positive};
use rows::RowOperations;

/// Rows whose multiples are summed before they are added to the total: keeps the rounding of the sum small.
const CHUNK: usize = 256;

const UNIT: f64 = f64::EPSILON / 2.0;

/// The public numbers that certify a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    n: u64,
    dim: u64,
    modulus: f64,
    row_norm: f64,
    /// Length of the interval of slopes.
    slopes: f64,
    /// Size of the numbers that predictions are compared with: targets and widths.
    offset: f64,
    tolerance: f64,
    /// Bound on the error of a point computed from slopes.
    point_error: f64,
}

/// What a certificate is made for; all of it public.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// n: number of rows.
    pub n: u64,
    /// d: number of weights.
    pub dim: u64,
    /// λ: strong convexity.
    pub modulus: f64,
    /// X: bound on the rows' norm, at most 1.
    pub row_norm: f64,
    /// Length of the interval of slopes: 1 for losses of two classes, 2 for losses of numbers.
    pub slopes: f64,
    /// Size of the numbers that predictions are compared with: 1 + targets + half width of a parabola.
    pub offset: f64,
    /// Bound on the norm of the centre.
    pub centre_norm: f64,
    /// Bound on the distance from the centre to the minimiser.
    pub reach: f64,
}

impl Terms {
    /// Bound on the error in norm of `v - (1/(λn)) Σ u_i x_i` as computed: the sum in two levels, one product each, and the
    /// difference. Slopes are at most 1.
    fn point_error(&self) -> f64 {
        let levels = CHUNK as f64 + self.n as f64 / CHUNK as f64 + 8.0;
        1.01 * UNIT * ((levels + 4.0) * self.row_norm / self.modulus + 2.0 * self.centre_norm)
    }

    /// Bound on the error of a prediction, and of what it is compared with, at points near the minimiser; and of a
    /// proximal step, in terms of the prediction.
    fn prediction_error(&self) -> f64 {
        // From slopes that are no worse than none, every point is within the reach of the minimiser.
        let norm = self.centre_norm + 2.0 * self.reach;
        let step = self.row_norm * self.row_norm / self.modulus;
        1.01 * UNIT * ((self.dim as f64 + 64.0) * (norm * self.row_norm + self.offset) + 8.0 * step)
    }

    /// The least tolerance that double precision can certify, with room to spare.
    ///
    /// # Formula
    /// ```text
    /// max(√(16 δA/λ), 8e)        δ, e: errors of a prediction and of a point
    /// ```
    pub fn least_tolerance(&self) -> f64 {
        (16.0 * self.prediction_error() * self.slopes / self.modulus).sqrt().max(8.0 * self.point_error())
            * (1.0 + 1e-12)
    }

    /// The certificate of points within `tolerance` of the minimiser.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a parameter outside its range; [`Error::NotProved`] for a tolerance below
    /// [`least_tolerance`](Self::least_tolerance).
    pub fn certificate(&self, tolerance: f64) -> Result<Certificate, Error> {
        positive("strong convexity", self.modulus)?;
        positive("row norm", self.row_norm)?;
        positive("length of the interval of slopes", self.slopes)?;
        positive("tolerance", tolerance)?;
        if !(self.dim as f64 * UNIT < 1e-3 && self.n as f64 * UNIT < 1e-3) {
            return Err(Error::Count { name: "dimension", value: self.dim, range: "below a thousandth of 1/roundoff" });
        }
        if !(tolerance >= self.least_tolerance()) {
            return Err(Error::NotProved {
                recipe: "certified minimiser",
                why: "the tolerance is below what double precision can certify; choose a larger one",
            });
        }
        Ok(Certificate {
            n: self.n,
            dim: self.dim,
            modulus: self.modulus,
            row_norm: self.row_norm,
            slopes: self.slopes,
            offset: self.offset,
            tolerance,
            point_error: self.point_error(),
        })
    }
}

impl Certificate {
    /// Distance from the minimiser that is certified.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Whether this sum of gaps certifies.
    fn accepts(&self, sum_of_gaps: f64) -> bool {
        let n = self.n as f64;
        // The terms are rounded a few times each, and their sum n times. The last summand is for the logistic loss, whose
        // slopes near 0 and 1 are known to some units of the last place only.
        let gap = sum_of_gaps / n * (1.0 + 4.0 * (n + 32.0) * UNIT) + 256.0 * UNIT;
        let distance = (2.0 * gap / self.modulus).sqrt() + self.point_error;
        distance <= self.tolerance * (1.0 - 1e-12)
    }

    /// Bound on the error of predictions at a point of this norm.
    fn prediction_error(&self, norm: f64) -> f64 {
        1.01 * UNIT * (self.dim as f64 + 8.0) * (norm * self.row_norm + self.offset)
    }

    /// Rounds of proximal gradient steps after which their average is certified by their number.
    fn rounds(&self) -> u64 {
        let ratio = self.row_norm * self.slopes / (self.modulus * self.tolerance);
        ((8.0 * ratio * ratio * (1.0 + 1e-12)).ceil() as u64).saturating_add(1)
    }
}

/// Goes to a point within the certificate's tolerance of the minimiser for these rows and this centre.
///
/// # Errors
/// [`Error::Shape`] for another number of rows or weights than planned; [`Error::Interrupted`].
pub fn certified<F: Real, L: ProximalLoss<F>>(
    loss: &L,
    rows: Block<'_, F>,
    centre: &[F],
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Vec<F>, Error> {
    let mut state = State::new(loss, rows, centre, certificate)?;
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    // The order is no secret and no matter of privacy: any point that is certified will do.
    let mut generator = ChaCha20Rng::from_seed([0; 32]);
    let rounds = certificate.rounds();
    let (mut round, mut next_test) = (0u64, 1u64);
    while round < rounds {
        control.check()?;
        order.shuffle(&mut generator);
        state.ascend(&order);
        round += 1;
        if round >= next_test || round == rounds {
            state.refresh();
            if state.is_certified() {
                return Ok(state.point);
            }
            next_test = round + 1 + round / 4;
        }
    }
    state.by_count(control)
}

/// The slopes, in the loss's own units, and the point that they give.
struct State<'s, F, L> {
    loss: &'s L,
    rows: Block<'s, F>,
    centre: &'s [F],
    certificate: &'s Certificate,
    duals: Vec<F>,
    /// How far a unit of slope moves the row's own prediction, `‖x_i‖²/(λn)`.
    curvatures: Vec<F>,
    point: Vec<F>,
    /// Room for the sum of a chunk of rows, and of all.
    chunk: Vec<F>,
    sum: Vec<F>,
}

impl<'s, F: Real, L: ProximalLoss<F>> State<'s, F, L> {
    fn new(loss: &'s L, rows: Block<'s, F>, centre: &'s [F], certificate: &'s Certificate) -> Result<Self, Error> {
        let shape = |name, planned, found| Err(Error::Shape { name, planned, found });
        if certificate.n != rows.len() as u64 || rows.len() > u32::MAX as usize {
            return shape("n", certificate.n, rows.len() as u64);
        }
        if certificate.dim != rows.dim() as u64 || centre.len() != rows.dim() {
            return shape("dim", certificate.dim, centre.len() as u64);
        }
        let start: F = {
            let (low, high) = loss.dual_range();
            convert(0.0f64.clamp(low, high))
        };
        let per_unit: F = convert(1.0 / (certificate.modulus * certificate.n as f64));
        let curvatures = (0..rows.len()).map(|row| per_unit * rows.rows.squared_norm(row)).collect();
        let zeros = || vec![F::zero(); centre.len()];
        let mut state = Self {
            loss,
            rows,
            centre,
            certificate,
            duals: vec![start; rows.len()],
            curvatures,
            point: centre.to_vec(),
            chunk: zeros(),
            sum: zeros(),
        };
        state.refresh();
        Ok(state)
    }

    fn counts(&self, row: usize) -> bool {
        self.rows.valid.is_none_or(|valid| valid[row])
    }

    /// One exact step on each row's slope, in this order.
    fn ascend(&mut self, order: &[u32]) {
        let scale: F = convert(-1.0 / (self.certificate.modulus * self.certificate.n as f64));
        for &row in order {
            let row = row as usize;
            if !self.counts(row) {
                continue;
            }
            let target = self.rows.targets[row];
            let prediction = self.rows.rows.dot(row, &self.point);
            let before = self.duals[row];
            let after = self.loss.dual_step(before, prediction, target, self.curvatures[row]);
            if after != before {
                let moved = self.loss.slope(after, target) - self.loss.slope(before, target);
                self.rows.rows.add(row, scale * moved, &mut self.point);
                self.duals[row] = after;
            }
        }
    }

    /// The point of the slopes, computed afresh: what has been added up over the rounds has drifted.
    fn refresh(&mut self) {
        self.sum.fill(F::zero());
        let rows = self.rows.len();
        for start in (0..rows).step_by(CHUNK) {
            self.chunk.fill(F::zero());
            for row in start..(start + CHUNK).min(rows) {
                if self.counts(row) {
                    let slope = self.loss.slope(self.duals[row], self.rows.targets[row]);
                    if slope != F::zero() {
                        self.rows.rows.add(row, slope, &mut self.chunk);
                    }
                }
            }
            self.sum.iter_mut().zip(&self.chunk).for_each(|(sum, &chunk)| *sum += chunk);
        }
        let scale: F = convert(-1.0 / (self.certificate.modulus * self.certificate.n as f64));
        for ((point, &sum), &centre) in self.point.iter_mut().zip(&self.sum).zip(self.centre) {
            *point = centre + scale * sum;
        }
    }

    /// Whether the point of the slopes, freshly computed, is certified.
    fn is_certified(&self) -> bool {
        let squared: f64 = self.point.iter().fold(F::zero(), |sum, &w| sum + w * w).to_subset_unchecked();
        let norm = squared.sqrt() * (1.0 + (self.certificate.dim as f64 + 4.0) * f64::EPSILON);
        let error: F = convert(self.certificate.prediction_error(norm));
        let mut sum = 0.0f64;
        for row in (0..self.rows.len()).filter(|&row| self.counts(row)) {
            let (dual, target) = (self.duals[row], self.rows.targets[row]);
            let prediction = self.rows.rows.dot(row, &self.point);
            let below = self.loss.gap(dual, prediction - error, target);
            let above = self.loss.gap(dual, prediction + error, target);
            let gap: f64 = if below > above { below } else { above }.to_subset_unchecked();
            sum += gap;
        }
        self.certificate.accepts(sum)
    }

    /// Proximal gradient steps on all slopes at once, as many as certify the average without any test. Not reached in
    /// practice.
    fn by_count(mut self, control: &Control<'_>) -> Result<Vec<F>, Error> {
        let certificate = self.certificate;
        let curvature: F = convert(certificate.row_norm * certificate.row_norm / certificate.modulus);
        // Summed with a compensation, so that the average is as good as exact however many rounds there are.
        let mut sums = vec![(F::zero(), F::zero()); self.duals.len()];
        let rounds = certificate.rounds();
        for _ in 0..rounds {
            control.check()?;
            self.refresh();
            for row in (0..self.rows.len()).filter(|&row| self.rows.valid.is_none_or(|valid| valid[row])) {
                let prediction = self.rows.rows.dot(row, &self.point);
                let dual = self.loss.dual_step(self.duals[row], prediction, self.rows.targets[row], curvature);
                self.duals[row] = dual;
                let (sum, lost) = &mut sums[row];
                let term = dual - *lost;
                let next = *sum + term;
                *lost = (next - *sum) - term;
                *sum = next;
            }
        }
        let (low, high) = self.loss.dual_range();
        let (low, high, rounds): (F, F, F) = (convert(low), convert(high), convert(rounds as f64));
        for (dual, &(sum, _)) in self.duals.iter_mut().zip(&sums) {
            *dual = (sum / rounds).clamp(low, high);
        }
        self.refresh();
        Ok(self.point)
    }
}
