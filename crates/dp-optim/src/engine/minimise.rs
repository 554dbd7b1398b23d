//! Certified approximation of the minimiser of a strongly convex risk, by any number of steps.
//!
//! # Formula
//! `F` is γ-strongly convex with minimiser `w*`. Then `‖∇F(w)‖ ≤ γτ` implies `‖w - w*‖ ≤ τ`, since
//! `γ‖w - w*‖² ≤ ⟨∇F(w), w - w*⟩`. Minimisers on neighbouring data sets are within `G/(γn)` of one another, so that outputs
//! certified in this way are within `G/(γn) + 2τ`, whatever solver found them and however long it took.
//!
//! `F` may also have a linear term `⟨t, w⟩`: the noise of objective perturbation, or a term that recentres the regulariser.
//! Then `‖w*‖ ≤ (L + ‖t‖)/γ`, `L` the Lipschitz constant of the mean loss; and for a non-negative loss that is at most `ℓ₀` at
//! prediction 0, `F(w*) ≤ F(0)` gives `‖w*‖ ≤ (‖t‖ + √(‖t‖² + 2γℓ₀))/γ`, which is far smaller.
//!
//! The solver is the limited-memory quasi-Newton method, followed by Nesterov's accelerated gradient method. The quasi-Newton
//! method is preconditioned with the curvature of a sample of the records where that costs little ([`Curved`]), recomputed
//! after 4, 8 and 16 more gradients. Its steps are then Newton steps, corrected by later gradients. Where a computed gradient is short
//! enough, it is computed again at that point as a [`CompensatedGradient`], which is tested: its error, see
//! [`Risk::gradient_error`], does not grow with the number of records. If no test has passed after a number of gradients that
//! depends on public numbers only, gradient descent with compensated gradients and step `1/β` takes over. It contracts by
//! `1 - γ/β` per step: after `⌈(β/γ) ln(D/τ)⌉` steps from distance at most `D` its result is within `τ` without any test.
//!
//! Gradients are sums over chunks of records, which [`Workers`] compute and which are added up in the order of
//! the records: no bit depends on the number of threads.
//!
//! # Privacy
//! The number of steps, and so the running time, depends on the data and is not covered by the guarantee. It is neither
//! returned nor reported. On request ([`Control::gradients`]) idle gradients follow up to a public number of gradients, and of
//! compensated ones; the running time then depends on the data only where more were needed.
//!
//! # References
//! Nesterov 2004, Introductory Lectures on Convex Optimization, scheme 2.2.11 and Theorem 2.1.15. On the bound for outputs
//! near the minimiser: Wu et al. 2017 stop on the training error instead, which is not private; see
//! [`as_published`](crate::growth::as_published::stopped_on_training_error).

use core::marker::PhantomData;

use dp_data::{Block, Workers};
use dp_losses::{CompensatedGradient, CompensatedSum, Curved, Model};
use nalgebra::{RealField, convert};

use super::batches::{BatchSizes, Batches, Piece, Pieces, Visit};
use super::chunks::{Divided as _, UnexpandedPart, each_chunk};
use super::control::{Control, Pace};
use super::gradient::{GradientEstimate, PlainGradient};
use super::lbfgs::{Curvature, dot};
use super::preconditioner::{FEW_FEATURES, Preconditioner, Sample};
use super::{expect_rows, expect_unexpanded};
use crate::error::{Error, positive};
use crate::growth::Rounding;

/// Examples whose gradients are summed before they are added to the total, which keeps the sum's rounding error small.
pub(crate) const CHUNK: usize = 1024;

/// Examples of a part of the curvature: its matrix is made and added up once for them.
const CURVATURE_CHUNK: usize = 4 * CHUNK;

/// Examples that threads divide between two checks for cancellation.
const GROUP: usize = 64 * CHUNK;

/// Maximum number of gradients of the quasi-Newton method, which normally takes tens of them.
const QUASI_NEWTON_GRADIENTS: u32 = 400;

/// Gradients from the first to the second computation of the curvature, each of which costs several gradients. Later
/// distances double, since the point moves less and less.
const GRADIENTS_PER_CURVATURE: u64 = 4;

/// Compensated gradients in a run with a public number of gradients: the first or second test passes.
const COMPENSATED_GRADIENTS: u64 = 3;

/// Maximum number of gradients with curvature (about twenty are normally enough), after which the quasi-Newton method restarts
/// without it: a sample may miss a feature that is rare in the records.
const CURVED_GRADIENTS: u32 = 48;

/// A strictly convex risk: the mean of `n` losses, a regulariser `(γ/2)‖w‖²` and a linear term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Risk {
    /// Number of examples.
    pub n: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// Predictions per example: 1, or the number of classes of softmax.
    pub outputs: u64,
    /// β: smoothness, regulariser included. Rows have norm at most one.
    pub smoothness: f64,
    /// γ: strong convexity of the regulariser.
    pub strong_convexity: f64,
    /// L: bound on the norm of data gradients at every point (tests are also made outside the ball that contains the
    /// minimiser).
    pub data_lipschitz: f64,
    /// ℓ₀: maximum of a non-negative loss at prediction 0; infinite if unknown.
    pub value_at_zero: f64,
    /// Condition number of a gradient with respect to a prediction: [`LossKind::condition`](dp_losses::LossKind::condition).
    pub condition: f64,
    /// ‖t‖: norm of the linear term.
    pub linear_norm: f64,
    /// Bound on the distance between the rounded linear term and the exact one.
    pub linear_error: f64,
}

impl Risk {
    /// Returns R, the radius of a ball that contains the minimiser.
    pub(crate) fn radius(&self) -> f64 {
        let Self { strong_convexity, data_lipschitz, value_at_zero, linear_norm, .. } = *self;
        let linear_norm = linear_norm + self.linear_error;
        let by_slope = (data_lipschitz + linear_norm) / strong_convexity;
        let by_value =
            (linear_norm + linear_norm.hypot((2.0 * strong_convexity * value_at_zero).sqrt())) / strong_convexity;
        by_slope.min(by_value) * (1.0 + 1e-12)
    }

    /// Bounds the error of a compensated gradient's norm at points within `3R` of the origin; a test accepts no others.
    ///
    /// # Formula
    /// With `u = 2^-53`, `p` parameters, `C` scores per example and `m` examples in a chunk,
    /// ```text
    /// 1.01 u [(24 + c) L + 2 κ + 4 (3 R γ + ‖t‖)]  +  1.01 β ((p + 20) u)² 3R  +  ((m + n/m + 8) u)² L  +  error of t
    /// ```
    /// From the left: the derivative (8 ulp; `c = 2 (C + 8)` for softmax), its product with the row, the last rounding of the
    /// sum and its quotient by n; the rounding of a prediction and of its product with the target, multiplied by the loss's
    /// [`condition`](Self::condition) κ; the rounding of the regulariser and of the linear term; the remaining error of
    /// [`CompensatedGradient`] in the prediction's products and sums, multiplied by the smoothness β; its remaining error in
    /// the sum over examples. Without the second-order terms, none grows with n or with the parameters' norm.
    pub fn gradient_error(&self) -> f64 {
        let Self { n, smoothness, strong_convexity, data_lipschitz, condition, .. } = *self;
        let (radius, parameters) = (self.radius(), self.parameters as f64);
        let unit = f64::EPSILON / 2.0;
        let (of_derivative, _) = Rounding::of_classes(self.outputs);
        let others = 4.0 * (3.0 * radius * strong_convexity + self.linear_norm);
        let first_order = unit * ((24.0 + of_derivative) * data_lipschitz + 2.0 * condition + others);
        let of_products = ((parameters + 20.0) * unit).powi(2) * 3.0 * radius * smoothness;
        let of_sums = ((CHUNK as f64 + n as f64 / CHUNK as f64 + 8.0) * unit).powi(2) * data_lipschitz;
        1.01 * (first_order + of_products) + of_sums + self.linear_error
    }
}

/// The public numbers from which a point is certified.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    n: u64,
    smoothness: f64,
    strong_convexity: f64,
    distance: f64,
    tolerance: f64,
    /// Bound on the error of a computed gradient's norm.
    gradient_error: f64,
    /// Bound on the relative error in computing the norm of a vector.
    length_error: f64,
}

impl Certificate {
    /// Creates the certificate of points within `tolerance` of the minimiser of a risk.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a parameter outside its range; [`Error::NotProved`] if the tolerance is so small that
    /// rounding alone could exceed it.
    pub fn new(risk: &Risk, tolerance: f64) -> Result<Self, Error> {
        let Risk { n, smoothness, strong_convexity, data_lipschitz, .. } = *risk;
        positive("smoothness", smoothness)?;
        positive("strong convexity", strong_convexity)?;
        positive("data Lipschitz constant", data_lipschitz)?;
        positive("tolerance", tolerance)?;
        for (name, value) in
            [("norm of the linear term", risk.linear_norm), ("error of the linear term", risk.linear_error)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::OutOfRange { name, value, range: "0 or more, finite" });
            }
        }
        if !(risk.value_at_zero >= 0.0) {
            let (name, value) = ("loss at prediction 0", risk.value_at_zero);
            return Err(Error::OutOfRange { name, value, range: "0 or more" });
        }
        let gradient_error = risk.gradient_error();
        let length_error = (risk.parameters as f64 + 16.0) * f64::EPSILON;
        let distance = 2.0 * risk.radius();
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

    /// Returns the least tolerance to which a risk's minimiser can be certified despite rounding, or slightly more.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn least_tolerance(risk: &Risk) -> Result<f64, Error> {
        // `new` refuses parameters outside their range.
        let least = 4.01 * risk.gradient_error() / risk.strong_convexity;
        Self::new(risk, least).map(|certificate| certificate.tolerance)
    }

    /// Returns the certified distance from the minimiser.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Returns whether a plain gradient of this norm is short enough that a compensated one may certify the point.
    fn is_worth_a_test(&self, computed: f64) -> bool {
        computed <= self.strong_convexity * self.tolerance
    }

    /// Returns whether a compensated gradient of this norm, at a point of norm `point`, certifies the point.
    fn accepts(&self, computed: f64, point: f64) -> bool {
        let norm = computed * (1.0 + self.length_error) + self.gradient_error;
        point <= 1.4 * self.distance && norm <= self.strong_convexity * self.tolerance * (1.0 - 1e-12)
    }

    fn condition(&self) -> f64 {
        self.smoothness / self.strong_convexity
    }

    /// Returns the maximum number of steps of the accelerated method: four times the number in its theorem.
    fn accelerated_steps(&self) -> u64 {
        let ratio = self.distance / self.tolerance;
        (4.0 * self.condition().sqrt() * ((self.condition() + 1.0) * ratio * ratio).ln().max(1.0)).ceil() as u64 + 8
    }

    /// Returns the number of steps after which plain gradient descent is within half the tolerance of the minimiser in exact
    /// arithmetic. Rounding takes at most the other half: an error `e` of each gradient moves a step by `e/β`, and the steps'
    /// errors add up to at most `e/γ`.
    fn plain_steps(&self, start_norm: f64) -> u64 {
        let distance = start_norm + 0.5 * self.distance;
        (self.condition() * (2.0 * distance / self.tolerance).ln().max(1.0) * (1.0 + 1e-12)).ceil() as u64 + 1
    }
}

/// Returns a point within the certificate's tolerance of the minimiser, starting from `start`; `linear` is the linear term, or
/// empty for none.
///
/// # Errors
/// A source that fails or delivers a number of examples other than planned; [`Error::Interrupted`].
pub fn certified<F, M, B>(
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    linear: &[F],
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Vec<F>, Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
{
    let mut full = FullGradient::new(model, linear, certificate);
    let mut start = start;
    if start.iter().any(|weight| !weight.is_finite()) {
        // The steps were far too long: restart instead of failing because of the data.
        start.fill(F::zero());
    }
    crate::engine::project(&mut start, 0.5 * certificate.distance);
    let start = match quasi_newton(&mut full, model, batches, start, certificate, control)? {
        Found::Certified(point) => return full.idle(model, batches, point, control),
        Found::Near(point) => point,
    };
    full.forget_curvature();
    let start = match accelerated(&mut full, model, batches, start, certificate, control)? {
        Found::Certified(point) => return full.idle(model, batches, point, control),
        Found::Near(point) => point,
    };
    // Not reached in practice: by its theorem the accelerated method needs a quarter of its steps.
    by_count(model, batches, start, linear, certificate, control)
}

enum Found<F> {
    Certified(Vec<F>),
    /// Its best approximation, not certified.
    Near(Vec<F>),
}

/// Runs the limited-memory quasi-Newton method with a line search on slopes alone: along a line a convex function's slope
/// increases, and a step is taken once the slope's magnitude has halved.
fn quasi_newton<F, M, B>(
    full: &mut FullGradient<'_, F>,
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Found<F>, Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
{
    let inverse: F = convert(1.0 / certificate.smoothness);
    let (half, tenth, ten): (F, F, F) = (convert(0.5), convert(0.1), convert(10.0));
    let mut curvature = Curvature::new();
    let mut point = start;
    let mut gradients = 1;
    if full.certifies(model, batches, &point, certificate, control)? {
        return Ok(Found::Certified(point));
    }
    let mut gradient = full.gradient.clone();
    'steps: while gradients < QUASI_NEWTON_GRADIENTS {
        if full.preconditioner.is_some() && gradients >= CURVED_GRADIENTS {
            full.forget_curvature();
            curvature.forget();
        }
        let mut direction = curvature.direction(&gradient, inverse, full.preconditioner.as_ref());
        let mut slope = dot(&direction, &gradient);
        if !(slope < F::zero()) {
            // Rounding errors dominate: use the negative gradient.
            curvature.forget();
            direction = gradient.iter().map(|&g| -inverse * g).collect();
            slope = dot(&direction, &gradient);
        }
        let mut by = F::one();
        while gradients < QUASI_NEWTON_GRADIENTS {
            let next: Vec<F> = point.iter().zip(&direction).map(|(&p, &d)| p + by * d).collect();
            gradients += 1;
            if full.certifies(model, batches, &next, certificate, control)? {
                return Ok(Found::Certified(next));
            }
            let there = dot(&direction, &full.gradient);
            if there.abs() <= -half * slope {
                let step = direction.iter().map(|&d| by * d).collect();
                let change = full.gradient.iter().zip(&gradient).map(|(&after, &before)| after - before).collect();
                curvature.learn(step, change);
                point = next;
                gradient.copy_from_slice(&full.gradient);
                continue 'steps;
            }
            // The zero of the slope if it increased linearly.
            let even = slope / (slope - there);
            let factor = if even.is_finite() && even > F::zero() { even.clamp(tenth, ten) } else { ten };
            by *= factor;
            if !by.is_finite() || by <= F::zero() {
                break 'steps;
            }
        }
    }
    if point.iter().any(|weight| !weight.is_finite()) {
        point.fill(F::zero());
    }
    crate::engine::project(&mut point, 0.5 * certificate.distance);
    Ok(Found::Near(point))
}

fn accelerated<F, M, B>(
    full: &mut FullGradient<'_, F>,
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Found<F>, Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
{
    let inverse: F = convert(1.0 / certificate.smoothness);
    let root = certificate.condition().sqrt();
    let momentum: F = convert((root - 1.0) / (root + 1.0));
    let mut previous = start;
    let mut point = previous.clone();
    for _ in 0..certificate.accelerated_steps() {
        if full.certifies(model, batches, &point, certificate, control)? {
            return Ok(Found::Certified(point));
        }
        for ((point, previous), &gradient) in point.iter_mut().zip(&mut previous).zip(&full.gradient) {
            let next = *point - inverse * gradient;
            *point = next + momentum * (next - *previous);
            *previous = next;
        }
    }
    Ok(Found::Near(previous))
}

/// Runs plain gradient descent for enough steps to certify its result without a test.
pub(super) fn by_count<F, M, B>(
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    linear: &[F],
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Vec<F>, Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
{
    let mut full = FullGradient::new(model, linear, certificate);
    let inverse: F = convert(1.0 / certificate.smoothness);
    let limit = 0.5 * certificate.distance;
    let mut point = start;
    crate::engine::project(&mut point, limit);
    for _ in 0..certificate.plain_steps(limit) {
        full.compensated_at(model, batches, &point, control)?;
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

/// The sums of a part's chunks, and the curvature of its sample if it was asked for.
type Part<F> = (Vec<Vec<F>>, Option<Sample<F>>);

/// A model of rows whose gradients, compensated gradients and curvature are sums over chunks of a block.
pub trait Chunked<F>: CompensatedGradient<F> + Curved<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>> {}

impl<F, M> Chunked<F> for M where M: CompensatedGradient<F> + Curved<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>> {}

/// Computes the gradient of the whole regularised risk.
struct FullGradient<'l, F: RealField + Copy> {
    linear: &'l [F],
    gradient: Vec<F>,
    /// The curvature at a recent point, and the number of the next gradient with which it is computed; `None` if curvatures are
    /// not used.
    preconditioner: Option<Preconditioner<F>>,
    next_curved: Option<u64>,
    /// Gradients computed so far, plain and compensated.
    computed: [u64; 2],
    n: u64,
    strong_convexity: f64,
}

impl<'l, F: RealField + Copy> FullGradient<'l, F> {
    fn new<M: Chunked<F>>(model: &M, linear: &'l [F], certificate: &Certificate) -> Self {
        Self {
            linear,
            gradient: vec![F::zero(); model.parameters()],
            preconditioner: None,
            next_curved: Preconditioner::<F>::pays(model.parameters(), model.features(), certificate.n).then_some(1),
            computed: [0; 2],
            n: certificate.n,
            strong_convexity: certificate.strong_convexity,
        }
    }

    /// Computes the gradient at `point`, and again with compensation if that may certify the point; keeps the second one then.
    fn certifies<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        batches: &mut B,
        point: &[F],
        certificate: &Certificate,
        control: &mut Control<'_>,
    ) -> Result<bool, Error> {
        if !certificate.is_worth_a_test(self.at(model, batches, point, control)?) {
            return Ok(false);
        }
        let norm = self.compensated_at(model, batches, point, control)?;
        Ok(certificate.accepts(norm, length(point)))
    }

    /// Computes the gradient at `point`, summed in two levels, and returns its norm.
    fn at<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        batches: &mut B,
        point: &[F],
        control: &mut Control<'_>,
    ) -> Result<f64, Error> {
        self.computed[0] += 1;
        self.gradient.fill(F::zero());
        let (parameters, features) = (model.parameters(), model.features());
        let curved = self.wants_curvature();
        let mut sample: Option<Sample<F>> = None;
        let buffers = || (PlainGradient::new(model, CHUNK), curved.then(|| model.pass(CHUNK)));
        let of_part = |(estimate, buffers): &mut (PlainGradient<F, M>, Option<M::Pass>), part: Block<'_, F>| {
            let curved = curved && Preconditioner::pays_for(&part.rows, features);
            let (mut sums, mut sample) = (Vec::new(), curved.then(|| Sample::new(parameters, features)));
            for start in (0..part.len()).step_by(CHUNK) {
                let chunk = part.slice(start..part.len().min(start + CHUNK));
                let mut sum = vec![F::zero(); parameters];
                estimate.estimate(model, point, chunk, Piece::whole(chunk.len()), &mut sum)?;
                sums.push(sum);
                if let (Some(sample), Some(buffers)) = (&mut sample, &mut *buffers) {
                    sample.add(model, point, chunk, chunk.len(), buffers);
                }
            }
            Ok::<_, Error>((sums, sample))
        };
        let add = |of_part: Result<Part<F>, Error>| {
            let (sums, of_part) = of_part?;
            for sum in sums {
                self.gradient.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
            }
            match (&mut sample, of_part) {
                (Some(sample), Some(of_part)) => sample.merge(&of_part),
                (none @ None, of_part) => *none = of_part,
                (Some(_), None) => {}
            }
            Ok(())
        };
        let numbers = parameters.saturating_mul(1 + if curved { features } else { 0 });
        let part = if curved && features > FEW_FEATURES { CURVATURE_CHUNK } else { CHUNK };
        pass(batches, self.n, (part, numbers), buffers, of_part, add, control)?;
        if curved && sample.is_none() {
            self.next_curved = None;
        }
        if let Some(sample) = sample {
            self.preconditioner = sample.factorise(model.features(), self.strong_convexity);
        }
        Ok(self.of_the_risk(point))
    }

    /// Computes gradients at the point and discards them until the requested number is reached.
    fn idle<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        batches: &mut B,
        point: Vec<F>,
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let Some(gradients) = control.gradients else { return Ok(point) };
        while self.computed[0] < gradients {
            self.at(model, batches, &point, control)?;
        }
        while self.computed[1] < COMPENSATED_GRADIENTS {
            self.compensated_at(model, batches, &point, control)?;
        }
        Ok(point)
    }

    /// Stops computing the curvature, and drops the current one.
    fn forget_curvature(&mut self) {
        self.next_curved = None;
        self.preconditioner = None;
    }

    /// Returns whether the curvature is computed with this gradient. Depends on the gradient's number only, so that idle
    /// gradients take as long.
    fn wants_curvature(&mut self) -> bool {
        if self.computed[0] > u64::from(CURVED_GRADIENTS) {
            return false;
        }
        let due = self.next_curved == Some(self.computed[0]);
        if due {
            // 1, 5, 13, 29
            self.next_curved = Some(2 * self.computed[0] - 1 + GRADIENTS_PER_CURVATURE);
        }
        due
    }

    /// Computes the gradient at `point` within the error that the certificate allows for, and returns its norm.
    fn compensated_at<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        batches: &mut B,
        point: &[F],
        control: &mut Control<'_>,
    ) -> Result<f64, Error> {
        self.computed[1] += 1;
        let parameters = model.parameters();
        let mut total = CompensatedSum::zeros(parameters);
        let of_chunk = |buffers: &mut M::Pass, chunk: Block<'_, F>| {
            let mut sum = CompensatedSum::zeros(parameters);
            model.add_compensated(point, chunk, buffers, &mut sum);
            sum
        };
        let add = |sum: CompensatedSum| {
            total.add(&sum);
            Ok(())
        };
        pass(batches, self.n, (CHUNK, 2 * parameters), || model.pass(CHUNK), of_chunk, add, control)?;
        self.gradient.iter_mut().enumerate().for_each(|(j, gradient)| *gradient = convert(total.value(j)));
        Ok(self.of_the_risk(point))
    }

    /// Turns the sum of all gradients into the gradient of the mean with regulariser and linear term, and returns its norm.
    fn of_the_risk(&mut self, point: &[F]) -> f64 {
        let (mean, lambda): (F, F) = (convert(1.0 / self.n as f64), convert(self.strong_convexity));
        for (gradient, &point) in self.gradient.iter_mut().zip(point) {
            *gradient = mean * *gradient + lambda * point;
        }
        for (gradient, &linear) in self.gradient.iter_mut().zip(self.linear) {
            *gradient += linear;
        }
        length(&self.gradient)
    }
}

/// Passes the `n` records to `of_part` in parts, on the control's workers, and its results to `add` in the order of the records.
/// `size` is the number of records of a part, and of numbers of its result.
fn pass<F, M, B, P, T>(
    batches: &mut B,
    n: u64,
    size: (usize, usize),
    buffers: impl Fn() -> P + Sync,
    of_part: impl Fn(&mut P, Block<'_, F>) -> T + Sync,
    add: impl FnMut(T) -> Result<(), Error>,
    control: &mut Control<'_>,
) -> Result<(), Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
    T: Send,
{
    let workers = control.workers;
    let description = if batches.unexpanded().is_some() { Some(batches.describe()?) } else { None };
    if let Some((rows, description)) = batches.unexpanded().zip(description) {
        expect_rows(n, description.n)?;
        expect_unexpanded(rows, &description)?;
        let rows = UnexpandedPart::all(rows);
        let (mut add, mut pace) = (add, Pace::quiet(control));
        for start in (0..rows.rows()).step_by(GROUP) {
            let group = rows.part(start..rows.rows().min(start + GROUP));
            let buffers = || (buffers(), Vec::new());
            let of_part = |(buffers, features): &mut (P, Vec<F>), part: UnexpandedPart<'_, F>| {
                of_part(buffers, part.expand(features))
            };
            each_chunk(&group, size, workers, buffers, of_part, &mut add)?;
            pace.advance(group.rows())?;
        }
        return Ok(());
    }
    // The order does not matter: a source has pass 0 at hand under a fixed order.
    let mut groups = Groups { size, buffers, of_part, add, workers, pace: Pace::quiet(control), types: PhantomData };
    let all = BatchSizes::Equal(usize::try_from(n).unwrap_or(usize::MAX));
    let rows = batches.pass(0, &all, &mut groups)?;
    expect_rows(n, rows)
}

struct Groups<'s, 'c, F, P, T, N, C, A> {
    /// Records of a part, numbers of its result.
    size: (usize, usize),
    buffers: N,
    of_part: C,
    add: A,
    workers: Workers,
    pace: Pace<'s, 'c>,
    types: PhantomData<fn(F, P) -> T>,
}

impl<F, M, P, T, N, C, A> Visit<F, M> for Groups<'_, '_, F, P, T, N, C, A>
where
    F: RealField + Copy,
    M: Chunked<F>,
    T: Send,
    N: Fn() -> P + Sync,
    C: Fn(&mut P, Block<'_, F>) -> T + Sync,
    A: FnMut(T) -> Result<(), Error>,
{
    fn pieces(&self) -> Pieces {
        Pieces::MultiplesOf(self.size.0)
    }

    fn batch(&mut self, rows: Block<'_, F>, piece: Piece) -> Result<(), Error> {
        let Self { size, buffers, of_part, add, workers, pace, .. } = self;
        for start in (0..piece.examples).step_by(GROUP) {
            let group = rows.slice(start..piece.examples.min(start + GROUP));
            each_chunk(&group, *size, *workers, &*buffers, &*of_part, &mut *add)?;
            pace.advance(group.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
