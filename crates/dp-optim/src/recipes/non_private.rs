//! The non-private baseline: the same engine, no noise, no guarantee.

use dp_data::{Block, Description, Order, RowSource};
use dp_losses::{Domain, L2, LinearModel, LossKind, ProximalLoss, ProximalVisitor, Real};

use super::linear::{LinearTraining, size};
use crate::averaging::Averaging;
use crate::engine::dual_ascent::{self, Shape, Terms};
use crate::engine::{BatchSizes, Batches, Control, Piece, RowBatches, Run, Visit, minimise};
use crate::error::{Error, positive};
use crate::float::FloatKind;
use crate::growth::{Arithmetic, Divisor};
use crate::schedule::Schedule;

/// A value computed from private records without any protection.
///
/// The wrapper prevents accidental publication: the method that unwraps it is named for the risk, and `Debug` shows nothing.
/// It cannot be converted to a [`Released`](dp_mechanisms::Released).
///
/// ```compile_fail,E0616
/// fn publish(model: dp_optim::recipes::NonPrivate<Vec<f64>>) -> Vec<f64> {
///     model.value
/// }
/// ```
pub struct NonPrivate<T> {
    value: T,
}

impl<T> NonPrivate<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value }
    }

    /// Returns the value, which may reveal anything about the records.
    pub fn expose_without_any_guarantee(self) -> T {
        self.value
    }
}

impl<T> core::fmt::Debug for NonPrivate<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("NonPrivate(..)")
    }
}

/// Difference of a baseline's risk from the least one.
const RISK_GAP: f64 = 1e-5;

const RECIPE: &str = "non-private";

/// The training, as a certificate without a guarantee states it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct NonPrivateDerivation {
    /// The loss.
    pub loss: LossKind,
    /// λ of the regulariser `(λ/2)‖w‖²`.
    pub lambda: f64,
    /// Passes over the data.
    pub passes: u64,
    /// Records per batch.
    pub batch_size: u64,
    /// The step sizes; `None` is `min(1/β, 1/(λt))` with a regulariser, otherwise the constant `1/β`; for a loss with a kink
    /// `1/(λt)` with a regulariser, otherwise `1/√t`.
    pub schedule: Option<Schedule>,
    /// Radius of the ball onto which iterates are projected.
    pub radius: Option<f64>,
    /// The combination of the iterates that is the model.
    pub averaging: Averaging,
    /// If set, training continues to a point within this distance of the minimiser; needs a regulariser and double precision.
    /// For a loss with a kink it replaces the passes.
    pub minimiser_within: Option<f64>,
    /// The representation of the iterate.
    pub arithmetic: Arithmetic,
}

impl NonPrivateDerivation {
    /// Creates a baseline of ten passes of SGD with batches of 50.
    pub fn new(loss: LossKind, lambda: f64) -> Self {
        Self {
            loss,
            lambda,
            passes: 10,
            batch_size: 50,
            schedule: None,
            radius: None,
            averaging: Averaging::Last,
            minimiser_within: None,
            arithmetic: Arithmetic::Buffered,
        }
    }

    /// Creates a baseline that is the minimiser of the regularised risk: its risk is certified to be within 1e-5 of the
    /// least.
    ///
    /// # Formula
    /// `F(w) - F* <= ‖∇F(w)‖²/(2λ)`, and the certificate of a distance τ shows that `‖∇F(w)‖ <= λτ`; so `τ = √(2·10⁻⁵/λ)`.
    /// For a loss with a kink the certificate shows a duality gap of at most `λτ²/2`.
    ///
    /// # Examples
    /// ```
    /// use dp_data::Examples;
    /// use dp_losses::LossKind;
    /// use dp_optim::MemorySource;
    /// use dp_optim::engine::Control;
    /// use dp_optim::recipes::{non_private::NonPrivateDerivation, train_without_privacy};
    ///
    /// // (w - 1)²/2 · 2/3 + (w + 1)²/2 · 1/3 + 0.05 w² has its minimum at 1/3 / 1.1.
    /// let examples = Examples::dense(vec![1.0; 3], vec![1.0, 1.0, -1.0], 1)?;
    /// let mut source = MemorySource::new(examples, 1.0, 1.0);
    /// let recipe = NonPrivateDerivation::minimiser(LossKind::Squared, 0.1);
    /// let model = train_without_privacy::<f64>(&recipe, &mut source, [7; 32], &mut Control::default())?;
    /// assert!((model.expose_without_any_guarantee()[0] - 1.0 / 3.3).abs() < 0.015);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn minimiser(loss: LossKind, lambda: f64) -> Self {
        Self { passes: 1, minimiser_within: Some((2.0 * RISK_GAP / lambda).sqrt()), ..Self::new(loss, lambda) }
    }
}

/// [`train_without_privacy`](super::train_without_privacy), for any arithmetic.
pub(super) fn train<F: Real>(
    recipe: &NonPrivateDerivation,
    source: &mut dyn RowSource<F>,
    key: [u8; 32],
    control: &mut Control<'_>,
) -> Result<NonPrivate<Vec<F>>, Error> {
    let description = source.describe()?;
    let n = description.n;
    for (name, value) in
        [("number of records", n), ("batch size", recipe.batch_size), ("dimension", description.dim as u64)]
    {
        if value == 0 {
            return Err(Error::Count { name, value, range: "1 or more" });
        }
    }
    if recipe.minimiser_within.is_some() {
        FloatKind::F64.expect::<F>()?;
        if recipe.radius.is_some() {
            return Err(Error::NotProved { recipe: RECIPE, why: "the certified minimiser has no radius" });
        }
    }
    let order = Order::Keyed { key, fresh_each_pass: false };
    control.check()?;
    let value = match recipe.minimiser_within {
        Some(tolerance) if !recipe.loss.is_smooth() => {
            minimiser_with_kinks(recipe, tolerance, &description, source, order, control)?
        }
        _ => linear_training(recipe, &description)?.train(source, order, control)?,
    };
    source.finish()?;
    Ok(NonPrivate::new(value))
}

/// Returns SGD, followed by the search for the minimiser of a smooth risk if the recipe asks for it.
fn linear_training(recipe: &NonPrivateDerivation, description: &Description) -> Result<LinearTraining, Error> {
    let n = description.n;
    let mut domain = Domain::unit_rows();
    if let Some(radius) = recipe.radius {
        domain = domain.with_radius(positive("radius", radius)?)?;
    }
    let constants = recipe.loss.constants(L2::new(recipe.lambda)?, &domain);
    let schedule = match &recipe.schedule {
        Some(schedule) => schedule.clone(),
        // For losses that are not smooth: the subgradient method, whose steps must decrease for it to converge.
        None if !recipe.loss.is_smooth() && recipe.lambda > 0.0 => {
            Schedule::StronglyConvex { smoothness: recipe.lambda, strong_convexity: recipe.lambda }
        }
        None if !recipe.loss.is_smooth() => Schedule::InverseSqrt { step: 1.0 },
        None if recipe.lambda > 0.0 => {
            Schedule::StronglyConvex { smoothness: constants.smoothness, strong_convexity: recipe.lambda }
        }
        None => Schedule::Constant { step: 1.0 / constants.smoothness },
    };
    let batch_size = recipe.batch_size.min(n);
    let updates = n.div_ceil(batch_size).saturating_mul(recipe.passes);
    let minimise = match recipe.minimiser_within {
        Some(tolerance) => {
            let mut value_at_zero = f64::INFINITY;
            if !constants.data_lipschitz.is_finite() {
                // The squared loss: tests are made within three times the radius of the ball that contains the minimiser.
                value_at_zero = 0.5 * description.target_bound * description.target_bound;
                let radius = (2.0 * value_at_zero / recipe.lambda).sqrt();
                domain = domain.with_radius(positive("radius", 3.0 * radius * (1.0 + 1e-12))?)?;
            }
            let data_lipschitz = recipe.loss.constants(L2::new(recipe.lambda)?, &domain).data_lipschitz;
            let risk = minimise::Risk {
                n,
                parameters: recipe.loss.parameters(description.dim as u64),
                outputs: recipe.loss.outputs().into(),
                smoothness: constants.smoothness,
                strong_convexity: recipe.lambda,
                data_lipschitz,
                value_at_zero,
                condition: recipe.loss.condition(&domain),
                linear_norm: 0.0,
                linear_error: 0.0,
            };
            Some(minimise::Certificate::new(&risk, tolerance)?)
        }
        None => None,
    };
    Ok(LinearTraining {
        loss: recipe.loss,
        lambda: recipe.lambda,
        radius: recipe.radius,
        dim: description.dim,
        run: Run {
            n,
            batches: BatchSizes::Equal(size("batch size", batch_size)?),
            divisor: Divisor::Nominal,
            steps: schedule.prepare(updates)?,
            weights: recipe.averaging.prepare(updates)?,
        },
        passes: recipe.passes,
        arithmetic: recipe.arithmetic,
        minimise,
    })
}

/// Returns the certified minimiser for a loss with a kink and bounded slopes. The rows are held in memory as one batch.
fn minimiser_with_kinks<F: Real>(
    recipe: &NonPrivateDerivation,
    tolerance: f64,
    description: &Description,
    source: &mut dyn RowSource<F>,
    order: Order,
    control: &mut Control<'_>,
) -> Result<Vec<F>, Error> {
    let shape = Shape::of(recipe.loss, description.target_bound, RECIPE)?;
    let modulus = positive("strong convexity", L2::new(recipe.lambda)?.lambda())?;
    let row_norm = description.row_norm;
    // λ‖w*‖ is at most the slope's length, and λ/2 ‖w*‖² at most the risk at 0.
    let reach = (row_norm / modulus).min((2.0 * shape.at_zero / modulus).sqrt()) * (1.0 + 1e-12);
    let terms = Terms {
        n: description.n,
        dim: description.dim as u64,
        modulus,
        row_norm,
        slopes: shape.slopes,
        offset: shape.offset,
        centre_norm: 0.0,
        reach,
    };
    let certificate = terms.certificate(tolerance)?;
    let visitor = Kinked { n: size("number of records", description.n)?, certificate, source, order, control };
    recipe
        .loss
        .visit_proximal(visitor)
        .unwrap_or(Err(Error::NotProved { recipe: RECIPE, why: "this loss's slopes are not bounded" }))
}

struct Kinked<'t, 'c, F> {
    n: usize,
    certificate: dual_ascent::Certificate,
    source: &'t mut dyn RowSource<F>,
    order: Order,
    control: &'t mut Control<'c>,
}

impl<F: Real> ProximalVisitor<F> for Kinked<'_, '_, F> {
    type Output = Result<Vec<F>, Error>;

    fn visit<L: ProximalLoss<F>>(self, loss: L) -> Self::Output {
        let Self { n, certificate, source, order, control } = self;
        let mut all = Minimisation { loss, certificate, control, point: Vec::new() };
        let mut batches = RowBatches::new(source, order);
        Batches::<F, LinearModel<F, L>>::pass(&mut batches, 0, &BatchSizes::Equal(n), &mut all)?;
        Ok(all.point)
    }
}

struct Minimisation<'t, 'c, F, L> {
    loss: L,
    certificate: dual_ascent::Certificate,
    control: &'t Control<'c>,
    point: Vec<F>,
}

impl<F: Real, L: ProximalLoss<F>> Visit<F, LinearModel<F, L>> for Minimisation<'_, '_, F, L> {
    fn batch(&mut self, rows: Block<'_, F>, _: Piece) -> Result<(), Error> {
        let centre = vec![F::zero(); rows.dim()];
        self.point = dual_ascent::certified(&self.loss, rows, &centre, &self.certificate, self.control)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dp_data::Examples;
    use dp_losses::{HuberRegression, HuberSvm, LogCosh, Loss};

    use super::*;
    use crate::MemorySource;

    const LAMBDA: f64 = 0.05;

    /// Rows on the half circle, the targets of two classes or of numbers, and one outlier.
    fn examples(classes: bool) -> Examples<f64> {
        let angle = |i: usize| i as f64 * 0.61;
        let rows = (0..40).flat_map(|i| [0.9 * angle(i).cos(), 0.9 * angle(i).sin()]).collect();
        let target = |i: usize| {
            let value = if i == 7 { -1.0 } else { 0.7 * angle(i).cos() + 0.2 };
            if classes { value.signum() } else { value.clamp(-1.0, 1.0) }
        };
        Examples::dense(rows, (0..40).map(target).collect(), 2).unwrap()
    }

    fn trained(recipe: &NonPrivateDerivation, classes: bool) -> Result<Vec<f64>, Error> {
        let mut source = MemorySource::new(examples(classes), 1.0, 1.0);
        let model = train::<f64>(recipe, &mut source, [3; 32], &mut Control::default())?;
        Ok(model.expose_without_any_guarantee())
    }

    fn risk(loss: LossKind, classes: bool, w: &[f64]) -> f64 {
        let examples = examples(classes);
        let dp_data::Rows::Dense { values, .. } = examples.block().rows else { panic!("dense") };
        let loss = loss.scalar().unwrap();
        let each =
            values.chunks(2).zip(examples.targets()).map(|(row, &y)| loss.value(w[0] * row[0] + w[1] * row[1], y));
        each.sum::<f64>() / 40.0 + 0.5 * LAMBDA * (w[0] * w[0] + w[1] * w[1])
    }

    #[test]
    fn the_minimiser_has_the_least_risk_of_all_points_around_it() {
        let losses = [
            (LossKind::Logistic, true),
            (LossKind::HuberSvm(HuberSvm::new(0.1).unwrap()), true),
            (LossKind::Hinge, true),
            (LossKind::Squared, false),
            (LossKind::HuberRegression(HuberRegression::new(0.1).unwrap()), false),
            (LossKind::LogCosh(LogCosh::new(0.1).unwrap()), false),
            (LossKind::Absolute, false),
        ];
        for (loss, classes) in losses {
            let recipe =
                NonPrivateDerivation { minimiser_within: Some(1e-4), ..NonPrivateDerivation::minimiser(loss, LAMBDA) };
            let point = trained(&recipe, classes).unwrap();
            let least = risk(loss, classes, &point);
            // At this distance strong convexity alone raises the risk by LAMBDA/2 · 1e-4, far beyond what 1e-4 costs.
            for direction in 0..32 {
                let angle = f64::from(direction) * core::f64::consts::PI / 16.0;
                let moved = [point[0] + 0.01 * angle.cos(), point[1] + 0.01 * angle.sin()];
                assert!(risk(loss, classes, &moved) > least + 2e-6, "{loss} {direction}");
            }
            // Ten passes of SGD are not there yet.
            let rough = trained(&NonPrivateDerivation::new(loss, LAMBDA), classes).unwrap();
            assert!(risk(loss, classes, &rough) > least, "{loss}");
        }
    }

    #[test]
    fn a_minimiser_that_cannot_be_certified_is_refused() {
        let recipe = NonPrivateDerivation::minimiser(LossKind::Logistic, LAMBDA);
        let ball = NonPrivateDerivation { radius: Some(1.0), ..recipe.clone() };
        assert!(matches!(trained(&ball, true), Err(Error::NotProved { recipe: RECIPE, .. })));
        for loss in [LossKind::Logistic, LossKind::Hinge] {
            let flat = NonPrivateDerivation::minimiser(loss, 0.0);
            assert!(matches!(trained(&flat, true), Err(Error::OutOfRange { .. })), "{loss}");
        }
        let single = examples(true).to_f32();
        let mut source = MemorySource::new(single, 1.0, 1.0);
        let refused = train::<f32>(&recipe, &mut source, [3; 32], &mut Control::default());
        assert!(matches!(refused, Err(Error::FloatKind { .. })));
    }
}
