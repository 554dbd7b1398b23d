//! A point certified to be close to the minimiser of a strongly convex risk, by any number of steps.
//!
//! # Formula
//! `F` is γ-strongly convex with minimiser `w*`. Then `‖∇F(w)‖ ≤ γτ` implies `‖w - w*‖ ≤ τ`, since
//! `γ‖w - w*‖² ≤ ⟨∇F(w), w - w*⟩`. Minimisers on neighbouring data sets are within `G/(γn)` of one another, so that
//! outputs certified in this way are within `G/(γn) + 2τ`, whatever solver found them and however long it took.
//!
//! The solver is Nesterov's accelerated gradient method; every gradient that it computes is tested. Should no test have
//! passed after a number of steps that depends on public numbers only, plain gradient descent with step `1/β` takes
//! over, which contracts by `1 - γ/β` a step: after `⌈(β/γ) ln(D/τ)⌉` steps from distance at most `D` its result is
//! within `τ` without any test.
//!
//! # Privacy
//! How many steps were taken, and so how long it took, depends on the data and is not covered by the guarantee. It is
//! neither returned nor reported.
//!
//! # References
//! Nesterov 2004, Introductory Lectures on Convex Optimization, scheme 2.2.11 and Theorem 2.1.15. The bound for outputs
//! near the minimiser: Wu et al. 2017 stop on the training error instead, which is not private; see
//! [`as_published`](crate::growth::as_published::stopped_on_training_error).

use dp_losses::Model;
use nalgebra::{RealField, convert};

use super::batches::{BatchSizes, Batches, Visit};
use super::control::{Control, Pace};
use super::expect_rows;
use super::gradient::{GradientEstimate, PlainGradient};
use crate::error::{Error, positive};
use crate::growth::Rounding;

/// Examples whose gradients are summed before they are added to the total: keeps the rounding of the sum small.
const CHUNK: usize = 1024;

/// The public numbers that certify a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    n: u64,
    smoothness: f64,
    strong_convexity: f64,
    distance: f64,
    tolerance: f64,
    /// Largest error of a computed gradient's norm.
    gradient_error: f64,
    /// Largest relative error in computing the length of a vector.
    length_error: f64,
}

impl Certificate {
    /// For the mean of `n` losses of smoothness β whose regulariser is γ-strongly convex, `dim` parameters, `outputs`
    /// predictions per example (1, or the classes of softmax), rows of norm at most one and data gradients of norm at
    /// most `data_lipschitz` at every point (tests are made outside the ball that holds the minimiser, too): certifies
    /// points within `tolerance` of the minimiser.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a parameter outside its range; [`Error::NotProved`] where the tolerance is so small
    /// that rounding alone could exceed it.
    pub fn new(
        n: u64,
        dim: u64,
        outputs: u64,
        smoothness: f64,
        strong_convexity: f64,
        data_lipschitz: f64,
        tolerance: f64,
    ) -> Result<Self, Error> {
        positive("smoothness", smoothness)?;
        positive("strong convexity", strong_convexity)?;
        positive("data Lipschitz constant", data_lipschitz)?;
        positive("tolerance", tolerance)?;
        // Every minimiser lies within L/γ of the origin: γ w* is minus the mean data gradient at w*.
        let radius = data_lipschitz / strong_convexity * (1.0 + 1e-12);
        // As for an update (see `Rounding`): margins seen through a β-smooth derivative, the derivatives, and a sum in
        // two levels. Points are within 3 radii of the origin wherever a test can pass.
        let unit = f64::EPSILON / 2.0;
        let (of_derivative, of_margins) = Rounding::of_classes(outputs);
        let levels = CHUNK as f64 + (n as f64 / CHUNK as f64) + 40.0 + of_derivative;
        let margins = (dim as f64 + 8.0 + of_margins) * 3.0 * radius;
        let gradient_error = 1.01 * unit * (levels * data_lipschitz + smoothness * margins);
        let length_error = (dim as f64 + 16.0) * f64::EPSILON;
        let distance = 2.0 * radius;
        let certificate = Self { n, smoothness, strong_convexity, distance, tolerance, gradient_error, length_error };
        // The fallback contracts towards a point that rounding may shift by e/γ, and must still end within τ.
        if !(2.0 * gradient_error <= 0.5 * strong_convexity * tolerance) {
            return Err(Error::NotProved {
                recipe: "certified minimiser",
                why: "the tolerance is below what double precision can certify; choose a larger one, or fixed passes",
            });
        }
        Ok(certificate)
    }

    /// Distance from the minimiser that is certified.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Whether a computed gradient of this norm, at a point of norm `point`, certifies.
    fn accepts(&self, computed: f64, point: f64) -> bool {
        let norm = computed * (1.0 + self.length_error) + self.gradient_error;
        point <= 1.4 * self.distance && norm <= self.strong_convexity * self.tolerance * (1.0 - 1e-12)
    }

    fn condition(&self) -> f64 {
        self.smoothness / self.strong_convexity
    }

    /// Steps of the accelerated method before giving up on it: four times what its theorem needs.
    fn accelerated_steps(&self) -> u64 {
        let ratio = self.distance / self.tolerance;
        (4.0 * self.condition().sqrt() * ((self.condition() + 1.0) * ratio * ratio).ln().max(1.0)).ceil() as u64 + 8
    }

    /// Steps after which plain gradient descent is within half the tolerance of the minimiser, without rounding; with
    /// it, within the other half: an error `e` at each step adds up to at most `e β/γ`, each step's being `1/β` of the
    /// gradient's.
    fn plain_steps(&self, start_norm: f64) -> u64 {
        let distance = start_norm + 0.5 * self.distance;
        (self.condition() * (2.0 * distance / self.tolerance).ln().max(1.0) * (1.0 + 1e-12)).ceil() as u64 + 1
    }
}

/// Goes from `start` to a point within the certificate's tolerance of the minimiser.
///
/// # Errors
/// A source that fails or delivers another number of examples than planned; [`Error::Interrupted`].
pub fn certified<F, M, B>(
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Vec<F>, Error>
where
    F: RealField + Copy,
    M: Model<F>,
    B: Batches<F, M>,
{
    let mut full = FullGradient::new(model, certificate);
    let inverse: F = convert(1.0 / certificate.smoothness);
    let root = certificate.condition().sqrt();
    let momentum: F = convert((root - 1.0) / (root + 1.0));
    let limit = 0.5 * certificate.distance;

    let mut previous = start;
    if previous.iter().any(|weight| !weight.is_finite()) {
        // Steps that were far too long: start afresh rather than fail on account of the data.
        previous.fill(F::zero());
    }
    crate::engine::project(&mut previous, limit);
    let mut point = previous.clone();
    for _ in 0..certificate.accelerated_steps() {
        let norm = full.at(model, batches, &point, control)?;
        if certificate.accepts(norm, length(&point)) {
            return Ok(point);
        }
        for ((point, previous), &gradient) in point.iter_mut().zip(&mut previous).zip(&full.gradient) {
            let next = *point - inverse * gradient;
            *point = next + momentum * (next - *previous);
            *previous = next;
        }
    }
    // Not reached in practice: the accelerated method's theorem promises a quarter of the steps.
    by_count(model, batches, previous, certificate, control)
}

/// Plain gradient descent for as many steps as certify its result whether or not a gradient does.
pub(super) fn by_count<F, M, B>(
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Vec<F>, Error>
where
    F: RealField + Copy,
    M: Model<F>,
    B: Batches<F, M>,
{
    let mut full = FullGradient::new(model, certificate);
    let inverse: F = convert(1.0 / certificate.smoothness);
    let limit = 0.5 * certificate.distance;
    let mut point = start;
    crate::engine::project(&mut point, limit);
    for _ in 0..certificate.plain_steps(limit) {
        full.at(model, batches, &point, control)?;
        for (point, &gradient) in point.iter_mut().zip(&full.gradient) {
            *point -= inverse * gradient;
        }
    }
    Ok(point)
}

fn length<F: RealField + Copy>(vector: &[F]) -> f64 {
    let squared: f64 = vector.iter().fold(F::zero(), |sum, &entry| sum + entry * entry).to_subset_unchecked();
    squared.sqrt()
}

/// The gradient of the whole regularised risk, summed in two levels.
struct FullGradient<F, M: Model<F>> {
    estimate: PlainGradient<F, M>,
    chunk: Vec<F>,
    gradient: Vec<F>,
    n: u64,
    strong_convexity: f64,
}

impl<F: RealField + Copy, M: Model<F>> FullGradient<F, M> {
    fn new(model: &M, certificate: &Certificate) -> Self {
        let zeros = || vec![F::zero(); model.parameters()];
        Self {
            estimate: PlainGradient::new(model, CHUNK),
            chunk: zeros(),
            gradient: zeros(),
            n: certificate.n,
            strong_convexity: certificate.strong_convexity,
        }
    }

    /// Computes the gradient at `point` and returns its norm.
    fn at<B: Batches<F, M>>(
        &mut self,
        model: &M,
        batches: &mut B,
        point: &[F],
        control: &mut Control<'_>,
    ) -> Result<f64, Error> {
        self.gradient.fill(F::zero());
        // The order does not matter here: pass 0 is the one that a source has at hand under a fixed order.
        let mut sum = Sum { full: self, model, point, pace: Pace::quiet(control) };
        let rows = batches.pass(0, &BatchSizes::Equal(CHUNK), &mut sum)?;
        expect_rows(self.n, rows)?;
        let (mean, lambda): (F, F) = (convert(1.0 / self.n as f64), convert(self.strong_convexity));
        for (gradient, &point) in self.gradient.iter_mut().zip(point) {
            *gradient = mean * *gradient + lambda * point;
        }
        Ok(length(&self.gradient))
    }
}

struct Sum<'s, 'c, F, M: Model<F>> {
    full: &'s mut FullGradient<F, M>,
    model: &'s M,
    point: &'s [F],
    pace: Pace<'s, 'c>,
}

impl<F: RealField + Copy, M: Model<F>> Visit<F, M> for Sum<'_, '_, F, M> {
    fn batch(&mut self, batch: M::Batch<'_>, examples: usize) -> Result<(), Error> {
        let full = &mut *self.full;
        full.estimate.estimate(self.model, self.point, batch, examples, &mut full.chunk)?;
        for (total, &chunk) in full.gradient.iter_mut().zip(&full.chunk) {
            *total += chunk;
        }
        self.pace.advance(examples)
    }
}
