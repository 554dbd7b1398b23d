//! The non-private baseline: the same engine, no noise, no guarantee.

use dp_data::{Order, RowSource};
use dp_losses::{Domain, L2, LossKind, Real};

use super::linear::LinearTraining;
use crate::averaging::Averaging;
use crate::engine::{BatchSizes, Control, Run, minimise};
use crate::error::{Error, positive};
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
    /// If set, training continues to a point within this distance of the minimiser; needs a regulariser.
    pub minimiser_within: Option<f64>,
    /// The representation of the iterate.
    pub arithmetic: Arithmetic,
}

impl NonPrivateDerivation {
    /// Creates a baseline of ten passes with batches of 50.
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
        Some(_) if !recipe.loss.is_smooth() => {
            return Err(Error::NotProved {
                recipe: "certified minimiser",
                why: "small gradients certify nothing where the loss has a kink: choose its smooth form, or fixed passes",
            });
        }
        Some(tolerance) => {
            let risk = minimise::Risk {
                n,
                parameters: recipe.loss.parameters(description.dim as u64),
                outputs: recipe.loss.outputs().into(),
                smoothness: constants.smoothness,
                strong_convexity: recipe.lambda,
                data_lipschitz: constants.data_lipschitz,
                value_at_zero: f64::INFINITY,
                condition: recipe.loss.condition(&domain),
                linear_norm: 0.0,
                linear_error: 0.0,
            };
            Some(minimise::Certificate::new(&risk, tolerance)?)
        }
        None => None,
    };
    let training = LinearTraining {
        loss: recipe.loss,
        lambda: recipe.lambda,
        radius: recipe.radius,
        dim: description.dim,
        run: Run {
            n,
            batches: BatchSizes::Equal(usize::try_from(batch_size).map_err(|_| Error::Count {
                name: "batch size",
                value: batch_size,
                range: "what memory can address",
            })?),
            divisor: Divisor::Nominal,
            steps: schedule.prepare(updates)?,
            weights: recipe.averaging.prepare(updates)?,
        },
        passes: recipe.passes,
        arithmetic: recipe.arithmetic,
        minimise,
    };
    let order = Order::Keyed { key, fresh_each_pass: false };
    control.check()?;
    let value = training.train(source, order, control)?;
    source.finish()?;
    Ok(NonPrivate { value })
}
