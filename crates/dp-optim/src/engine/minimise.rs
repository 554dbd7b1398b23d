//! A point certified to be close to the minimiser of a strongly convex risk, by any number of steps.
//!
//! # Formula
//! `F` is γ-strongly convex with minimiser `w*`. Then `‖∇F(w)‖ ≤ γτ` implies `‖w - w*‖ ≤ τ`, since
//! `γ‖w - w*‖² ≤ ⟨∇F(w), w - w*⟩`. Minimisers on neighbouring data sets are within `G/(γn)` of one another, so that
//! outputs certified in this way are within `G/(γn) + 2τ`, whatever solver found them and however long it took.
//!
//! `F` may have a linear term `⟨t, w⟩` besides: the noise of objective perturbation, or what centres the regulariser
//! elsewhere. Then `‖w*‖ ≤ (L + ‖t‖)/γ`, `L` the Lipschitz constant of the mean loss; and for a loss that is never negative
//! and at most `ℓ₀` at prediction 0, `F(w*) ≤ F(0)` gives `‖w*‖ ≤ (‖t‖ + √(‖t‖² + 2γℓ₀))/γ`, which is far less.
//!
//! The solver is the limited-memory quasi-Newton method, then Nesterov's accelerated gradient method. The former measures
//! lengths by the curvature of a sample of the records where that costs little ([`Curved`]), computed with every few
//! gradients: steps are Newton's then, corrected by what gradients have shown since. Where a gradient that
//! they compute is short enough, it is computed again at that point as a [`CompensatedGradient`], and that one is tested:
//! its error, see [`Risk::gradient_error`], does not grow with the number of records. Should no test have passed after a
//! number of gradients that depends on public numbers only, gradient descent with compensated gradients and step `1/β` takes
//! over, which contracts by `1 - γ/β` a step: after `⌈(β/γ) ln(D/τ)⌉` steps from distance at most `D` its result is within
//! `τ` without any test.
//!
//! # Privacy
//! How many steps were taken, and so how long it took, depends on the data and is not covered by the guarantee. It is
//! neither returned nor reported. On request ([`Control::gradients`]) idle gradients follow until there were a public number
//! of them, and of compensated ones; then time tells of the data only where more were needed.
//!
//! # References
//! Nesterov 2004, Introductory Lectures on Convex Optimization, scheme 2.2.11 and Theorem 2.1.15. The bound for outputs
//! near the minimiser: Wu et al. 2017 stop on the training error instead, which is not private; see
//! [`as_published`](crate::growth::as_published::stopped_on_training_error).

use dp_losses::{CompensatedGradient, CompensatedSum, Curved, Model};
use nalgebra::{RealField, convert};

use super::batches::{BatchSizes, Batches, Visit};
use super::control::{Control, Pace};
use super::expect_rows;
use super::gradient::{GradientEstimate, PlainGradient};
use super::lbfgs::{Curvature, dot};
use super::preconditioner::{Preconditioner, Sample};
use crate::error::{Error, positive};
use crate::growth::Rounding;

/// Examples whose gradients are summed before they are added to the total: keeps the rounding of the sum small.
pub(crate) const CHUNK: usize = 1024;

/// Gradients of the quasi-Newton method, which takes tens of them, before it is given up.
const QUASI_NEWTON_GRADIENTS: u32 = 400;

/// Gradients after which the curvature is computed anew, which costs as much as four.
const GRADIENTS_PER_CURVATURE: u32 = 4;

/// Compensated gradients in a run of a public number of gradients: where a test is made, the first or second passes.
const COMPENSATED_GRADIENTS: u64 = 3;

/// Gradients with curvatures, of which some twenty are enough, before the quasi-Newton method starts anew without them: a
/// sample may know nothing of a feature that hardly any record has.
const CURVED_GRADIENTS: u32 = 48;

/// A strictly convex risk: the mean of `n` losses, a regulariser `(γ/2)‖w‖²` and a linear term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Risk {
    /// Number of examples.
    pub n: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// Predictions per example: 1, or the classes of softmax.
    pub outputs: u64,
    /// β: smoothness, regulariser included. Rows have norm at most one.
    pub smoothness: f64,
    /// γ: strong convexity, which is the regulariser's.
    pub strong_convexity: f64,
    /// L: data gradients have at most this norm at every point (tests are made outside the ball that holds the minimiser,
    /// too).
    pub data_lipschitz: f64,
    /// ℓ₀: the most that a loss is at prediction 0, for losses that are never negative; infinite where nothing is known.
    pub value_at_zero: f64,
    /// How far a relative error of a prediction moves a gradient: [`LossKind::condition`](dp_losses::LossKind::condition).
    pub condition: f64,
    /// ‖t‖: norm of the linear term.
    pub linear_norm: f64,
    /// How far the linear term may be from the one that is meant: what it was rounded by.
    pub linear_error: f64,
}

impl Risk {
    /// R: the radius of a ball that holds the minimiser.
    pub(crate) fn radius(&self) -> f64 {
        let Self { strong_convexity, data_lipschitz, value_at_zero, linear_norm, .. } = *self;
        let linear_norm = linear_norm + self.linear_error;
        let by_slope = (data_lipschitz + linear_norm) / strong_convexity;
        let by_value =
            (linear_norm + linear_norm.hypot((2.0 * strong_convexity * value_at_zero).sqrt())) / strong_convexity;
        by_slope.min(by_value) * (1.0 + 1e-12)
    }

    /// Largest error of a compensated gradient's norm at points within `3R` of the origin, which are all that a test
    /// accepts.
    ///
    /// # Formula
    /// With `u = 2^-53`, `p` parameters, `C` scores per example and `m` examples in a chunk,
    /// ```text
    /// 1.01 u [(24 + c) L + 2 κ + 4 (3 R γ + ‖t‖)]  +  1.01 β ((p + 20) u)² 3R  +  ((m + n/m + 8) u)² L  +  error of t
    /// ```
    /// From the left: the derivative (8 ulp; `c = 2 (C + 8)` of a softmax), its product with the row, the last rounding of
    /// the sum and its quotient by n; the rounding of a prediction and of its product with the target, seen through the
    /// loss, κ its [`condition`](Self::condition); the regulariser's and the linear term's; what
    /// [`CompensatedGradient`] leaves of the prediction's products and sums, seen through a β-smooth derivative; what it
    /// leaves of the sum over examples. Without the second order no term grows with n or with the parameters' norm.
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
    /// Certifies points within `tolerance` of the minimiser of a risk.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a parameter outside its range; [`Error::NotProved`] where the tolerance is so small
    /// that rounding alone could exceed it.
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

    /// The least tolerance that rounding lets a risk's minimiser be certified to, or a little more.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn least_tolerance(risk: &Risk) -> Result<f64, Error> {
        // Parameters out of their range are refused there.
        let least = 4.01 * risk.gradient_error() / risk.strong_convexity;
        Self::new(risk, least).map(|certificate| certificate.tolerance)
    }

    /// Distance from the minimiser that is certified.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Whether a plain gradient of this norm is so short that a compensated one may certify.
    fn is_worth_a_test(&self, computed: f64) -> bool {
        computed <= self.strong_convexity * self.tolerance
    }

    /// Whether a compensated gradient of this norm, at a point of norm `point`, certifies.
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

/// Goes from `start` to a point within the certificate's tolerance of the minimiser; `linear` is the linear term, none if
/// it is empty.
///
/// # Errors
/// A source that fails or delivers another number of examples than planned; [`Error::Interrupted`].
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
    M: CompensatedGradient<F> + Curved<F>,
    B: Batches<F, M>,
{
    let mut full = FullGradient::new(model, linear, certificate);
    let mut start = start;
    if start.iter().any(|weight| !weight.is_finite()) {
        // Steps that were far too long: start afresh rather than fail on account of the data.
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
    // Not reached in practice: the accelerated method's theorem promises a quarter of its steps.
    by_count(model, batches, start, linear, certificate, control)
}

/// Where a method has ended.
enum Found<F> {
    Certified(Vec<F>),
    /// Its best guess.
    Near(Vec<F>),
}

/// The limited-memory quasi-Newton method with a line search that looks at slopes alone: along a line a convex function's
/// slope rises, and where it has become less steep by half the step is taken.
fn quasi_newton<F, M, B>(
    full: &mut FullGradient<'_, F, M>,
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Found<F>, Error>
where
    F: RealField + Copy,
    M: CompensatedGradient<F> + Curved<F>,
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
        if full.since_curved.is_some() && gradients >= CURVED_GRADIENTS {
            full.forget_curvature();
            curvature.forget();
        }
        let mut direction = curvature.direction(&gradient, inverse, full.preconditioner.as_ref());
        let mut slope = dot(&direction, &gradient);
        if !(slope < F::zero()) {
            // Rounding has taken over: the gradient itself points down.
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
            // Where the slope would be 0 if it rose evenly.
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

/// Nesterov's method.
fn accelerated<F, M, B>(
    full: &mut FullGradient<'_, F, M>,
    model: &M,
    batches: &mut B,
    start: Vec<F>,
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Found<F>, Error>
where
    F: RealField + Copy,
    M: CompensatedGradient<F> + Curved<F>,
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

/// Plain gradient descent for as many steps as certify its result whether or not a gradient does.
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
    M: CompensatedGradient<F> + Curved<F>,
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

/// The gradient of the whole regularised risk.
struct FullGradient<'l, F: RealField + Copy, M: Model<F>> {
    linear: &'l [F],
    estimate: PlainGradient<F, M>,
    /// Of compensated gradients: the buffers of a pass, and sums of a chunk and of all records.
    compensated: Option<(M::Pass, [CompensatedSum; 2])>,
    chunk: Vec<F>,
    gradient: Vec<F>,
    /// The curvature at one of the last points, and how many gradients ago it was computed; `None` where it is not.
    preconditioner: Option<Preconditioner<F>>,
    since_curved: Option<u32>,
    /// Gradients computed so far, plain and compensated.
    computed: [u64; 2],
    n: u64,
    strong_convexity: f64,
}

impl<'l, F: RealField + Copy, M: CompensatedGradient<F> + Curved<F>> FullGradient<'l, F, M> {
    fn new(model: &M, linear: &'l [F], certificate: &Certificate) -> Self {
        let zeros = || vec![F::zero(); model.parameters()];
        Self {
            linear,
            estimate: PlainGradient::new(model, CHUNK),
            compensated: None,
            chunk: zeros(),
            gradient: zeros(),
            preconditioner: None,
            since_curved: Preconditioner::<F>::pays(model.features(), certificate.n).then_some(GRADIENTS_PER_CURVATURE),
            computed: [0; 2],
            n: certificate.n,
            strong_convexity: certificate.strong_convexity,
        }
    }

    /// Computes the gradient at `point`, and a second time where that may certify: then the second one is kept.
    fn certifies<B: Batches<F, M>>(
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
    fn at<B: Batches<F, M>>(
        &mut self,
        model: &M,
        batches: &mut B,
        point: &[F],
        control: &mut Control<'_>,
    ) -> Result<f64, Error> {
        self.computed[0] += 1;
        self.gradient.fill(F::zero());
        let mut sample = self.wants_curvature().then(|| Sample::new(model.parameters(), model.features()));
        let mut buffers = sample.as_ref().map(|_| model.pass(CHUNK));
        let Self { estimate, chunk, gradient, .. } = self;
        let add = |batch: M::Batch<'_>, examples: usize| {
            estimate.estimate(model, point, batch, examples, chunk)?;
            gradient.iter_mut().zip(&*chunk).for_each(|(total, &chunk)| *total += chunk);
            if let (Some(sample), Some(buffers)) = (&mut sample, &mut buffers) {
                sample.add(model, point, batch, examples, buffers);
            }
            Ok(())
        };
        let rows = pass(batches, add, control)?;
        expect_rows(self.n, rows)?;
        if let Some(sample) = sample {
            self.preconditioner = sample.factorise(model.features(), self.strong_convexity);
        }
        Ok(self.of_the_risk(point))
    }

    /// Computes gradients at the point, and drops them, until there were as many as were asked for.
    fn idle<B: Batches<F, M>>(
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

    /// Computes no curvature any more, and drops what there is.
    fn forget_curvature(&mut self) {
        self.since_curved = None;
        self.preconditioner = None;
    }

    /// Whether the curvature is due with this gradient: a matter of its number alone, so that idle gradients take as long.
    fn wants_curvature(&mut self) -> bool {
        if self.computed[0] > u64::from(CURVED_GRADIENTS) {
            return false;
        }
        let Some(since) = &mut self.since_curved else { return false };
        let due = *since >= GRADIENTS_PER_CURVATURE;
        *since = if due { 1 } else { *since + 1 };
        due
    }

    /// Computes the gradient at `point` with the error that the certificate allows for, and returns its norm.
    fn compensated_at<B: Batches<F, M>>(
        &mut self,
        model: &M,
        batches: &mut B,
        point: &[F],
        control: &mut Control<'_>,
    ) -> Result<f64, Error> {
        self.computed[1] += 1;
        let zeros = || CompensatedSum::zeros(model.parameters());
        let (buffers, [chunk, total]) = self.compensated.get_or_insert_with(|| (model.pass(CHUNK), [zeros(), zeros()]));
        total.clear();
        let add = |batch: M::Batch<'_>, _| {
            chunk.clear();
            model.add_compensated(point, batch, buffers, chunk);
            total.add(chunk);
            Ok(())
        };
        let rows = pass(batches, add, control)?;
        expect_rows(self.n, rows)?;
        self.gradient.iter_mut().enumerate().for_each(|(j, gradient)| *gradient = convert(total.value(j)));
        Ok(self.of_the_risk(point))
    }

    /// Makes the sum of all gradients that of the mean, with regulariser and linear term, and returns its norm.
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

/// Hands all records to `add` in chunks, and says how many there were.
fn pass<F, M: Model<F>, B: Batches<F, M>>(
    batches: &mut B,
    add: impl FnMut(M::Batch<'_>, usize) -> Result<(), Error>,
    control: &mut Control<'_>,
) -> Result<u64, Error> {
    // The order does not matter here: pass 0 is the one that a source has at hand under a fixed order.
    batches.pass(0, &BatchSizes::Equal(CHUNK), &mut Chunks { add, pace: Pace::quiet(control) })
}

struct Chunks<'s, 'c, A> {
    add: A,
    pace: Pace<'s, 'c>,
}

impl<F, M, A> Visit<F, M> for Chunks<'_, '_, A>
where
    M: Model<F>,
    A: FnMut(M::Batch<'_>, usize) -> Result<(), Error>,
{
    fn batch(&mut self, batch: M::Batch<'_>, examples: usize) -> Result<(), Error> {
        (self.add)(batch, examples)?;
        self.pace.advance(examples)
    }
}

#[cfg(test)]
mod tests;
