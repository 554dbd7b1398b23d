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
//! method is preconditioned with the curvature where that costs little ([`Curved`](dp_losses::Curved)), recomputed after 4, 8
//! and 16 more gradients. Its steps are then Newton steps, corrected by later gradients. With one output and many records for
//! each feature, it runs first on a sample of at most an eighth of the records, which is copied to memory; from there the
//! gradients of all records are a few, with the curvature of the first. Where a computed gradient is short enough, it is
//! computed again at that point as a [`CompensatedGradient`](dp_losses::CompensatedGradient), which is tested: its error, see
//! [`Risk::gradient_error`], does not grow with the number of records. If no test has passed after a number of gradients that
//! depends on public numbers only, gradient descent with compensated gradients and step `1/β` takes over, at points in two parts
//! each. It contracts by `1 - γ/β` per step: after `⌈(β/γ) ln(2D/τ)⌉` steps from distance at most `D` its result is within `τ`
//! without any test.
//!
//! Gradients are sums over chunks of records, which [`Workers`](dp_data::Workers) compute and which are added up in the order of
//! the records: no bit depends on the number of threads.
//!
//! # Privacy
//! The number of steps, and so the running time, depends on the data and is not covered by the guarantee. It is neither
//! returned nor reported. On request ([`Control::gradients`]) idle gradients follow up to a public number of gradients of all
//! records, of compensated ones and of those of a sample; the running time then depends on the data only where more were needed.
//!
//! # References
//! Nesterov 2004, Introductory Lectures on Convex Optimization, scheme 2.2.11 and Theorem 2.1.15. On the bound for outputs
//! near the minimiser: Wu et al. 2017 stop on the training error instead, which is not private; see
//! [`as_published`](crate::growth::as_published::stopped_on_training_error).

use dp_losses::CompensatedSum;
use nalgebra::{RealField, convert};

use super::batches::Batches;
use super::control::Control;
use super::lbfgs::{Curvature, dot};
use crate::error::{Error, positive};
use crate::growth::Rounding;

mod full_gradient;
mod records;

pub(crate) use self::full_gradient::CHUNK;
pub use self::full_gradient::Chunked;
use self::full_gradient::{CURVED_GRADIENTS, FullGradient};
use self::records::Records;
pub(crate) use self::records::sampled_numbers;

/// Maximum number of gradients of the quasi-Newton method, which normally takes tens of them.
const QUASI_NEWTON_GRADIENTS: u64 = 400;

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
    /// [`CompensatedGradient`](dp_losses::CompensatedGradient) in the prediction's products and sums, multiplied by the smoothness β; its remaining error in
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
    data_lipschitz: f64,
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
        let certificate =
            Self { n, smoothness, strong_convexity, data_lipschitz, distance, tolerance, gradient_error, length_error };
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
    /// arithmetic. Rounding takes less than the other half: an error `e` of each gradient moves a step by `e/β`, and the steps'
    /// errors add up to at most `e/γ`, which is at most `τ/4`. The points are in two parts, since the rounding of each to one would
    /// add up to `(β/γ) u R`; the last one is rounded once, by at most `e/(12γ)`. The regulariser's gradient leaves out the second part:
    /// the last of the four roundings that `e` has for it.
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
    let mut start = start;
    if start.iter().any(|weight| !weight.is_finite()) {
        // The steps were far too long: restart instead of failing because of the data.
        start.fill(F::zero());
    }
    crate::engine::project(&mut start, 0.5 * certificate.distance);
    let mut full = FullGradient::new(model, linear, certificate);
    if let Some((minimiser, _)) = of_a_sample(model, batches, &start, linear, certificate, control)? {
        start = minimiser;
        full = full.after_sample();
    }
    let mut records = Records::All(batches);
    let start = match quasi_newton(&mut full, model, &mut records, start, control)? {
        Found::AtGoal(point) => return full.idle(model, &mut records, point, control),
        Found::Near(point) => point,
    };
    full.forget_curvature();
    let start = match accelerated(&mut full, model, &mut records, start, control)? {
        Found::AtGoal(point) => return full.idle(model, &mut records, point, control),
        Found::Near(point) => point,
    };
    // Not reached in practice: by its theorem the accelerated method needs a quarter of its steps.
    by_count(model, batches, start, linear, certificate, control)
}

/// Returns the minimiser of the risk of a sample of the records, found from `start`, and the number of its gradients; `None` if no
/// sample pays.
fn of_a_sample<F, M, B>(
    model: &M,
    batches: &mut B,
    start: &[F],
    linear: &[F],
    certificate: &Certificate,
    control: &mut Control<'_>,
) -> Result<Option<(Vec<F>, u64)>, Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
{
    let Some(mut sample) = Records::sample(batches, model, certificate.n, control)? else { return Ok(None) };
    let mut full = FullGradient::of_sample(model, linear, certificate, sample.sampled());
    let found = quasi_newton(&mut full, model, &mut sample, start.to_vec(), control)?;
    let point = full.idle(model, &mut sample, found.into_point(), control)?;
    Ok(Some((point, full.computed[0])))
}

enum Found<F> {
    AtGoal(Vec<F>),
    /// The method's best approximation.
    Near(Vec<F>),
}

impl<F> Found<F> {
    fn into_point(self) -> Vec<F> {
        match self {
            Self::AtGoal(point) | Self::Near(point) => point,
        }
    }
}

/// Runs the limited-memory quasi-Newton method with a line search on slopes alone: along a line a convex function's slope
/// increases, and a step is taken once the slope's magnitude has halved.
fn quasi_newton<F, M, B>(
    full: &mut FullGradient<'_, F>,
    model: &M,
    records: &mut Records<'_, F, B>,
    start: Vec<F>,
    control: &mut Control<'_>,
) -> Result<Found<F>, Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
{
    let (certificate, most) = (full.certificate, full.most_gradients());
    let inverse: F = convert(1.0 / certificate.smoothness);
    let (half, tenth, ten): (F, F, F) = (convert(0.5), convert(0.1), convert(10.0));
    let mut curvature = Curvature::new();
    let mut point = start;
    let mut gradients = 1;
    if full.reaches_goal(model, records, &point, control)? {
        return Ok(Found::AtGoal(point));
    }
    let mut gradient = full.gradient.clone();
    'steps: while gradients < most {
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
        while gradients < most {
            let next: Vec<F> = point.iter().zip(&direction).map(|(&p, &d)| p + by * d).collect();
            gradients += 1;
            if full.reaches_goal(model, records, &next, control)? {
                return Ok(Found::AtGoal(next));
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
    records: &mut Records<'_, F, B>,
    start: Vec<F>,
    control: &mut Control<'_>,
) -> Result<Found<F>, Error>
where
    F: RealField + Copy,
    M: Chunked<F>,
    B: Batches<F, M>,
{
    let certificate = full.certificate;
    let inverse: F = convert(1.0 / certificate.smoothness);
    let root = certificate.condition().sqrt();
    let momentum: F = convert((root - 1.0) / (root + 1.0));
    let mut previous = start;
    let mut point = previous.clone();
    for _ in 0..certificate.accelerated_steps() {
        if full.reaches_goal(model, records, &point, control)? {
            return Ok(Found::AtGoal(point));
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
    let mut records = Records::All(batches);
    let limit = 0.5 * certificate.distance;
    let mut start = start;
    crate::engine::project(&mut start, limit);
    let double = |vector: &[F]| vector.iter().map(|&entry| entry.to_subset_unchecked()).collect::<Vec<f64>>();
    let mut point = CompensatedSum::from(double(&start));
    for _ in 0..certificate.plain_steps(limit) {
        let (high, low): (Vec<F>, Vec<F>) =
            point.parts().map(|(high, low)| (convert::<_, F>(high), convert::<_, F>(low))).unzip();
        full.compensated_at(model, &mut records, (&high, &low), control)?;
        point.add_scaled(-1.0 / certificate.smoothness, &double(&full.gradient));
    }
    Ok((0..start.len()).map(|j| convert(point.value(j))).collect())
}

/// Returns the Euclidean norm of a vector.
fn length<F: RealField + Copy>(vector: &[F]) -> f64 {
    let squared: f64 = vector.iter().fold(F::zero(), |sum, &entry| sum + entry * entry).to_subset_unchecked();
    squared.sqrt()
}

#[cfg(test)]
mod tests;
