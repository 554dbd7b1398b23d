//! Training any recipe, and the baseline without privacy, compiled once.

use dp_accountant::{ReplaceOne, ZeroOut};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::LentRng;

use super::any::{AnyDerivation, AnyPlan};
use super::non_private::{self, NonPrivate, NonPrivateDerivation};
use super::recipe::{Planned, RecordAdjacency};
use crate::engine::Control;
use crate::error::Error;
use crate::trained::Trained;

/// A relation for which this crate compiles the training of any plan in the arithmetic `F`.
///
/// [`Planned::train`] is generic: a crate that calls it for an [`AnyPlan`] compiles every recipe again, which takes minutes.
/// This trait provides the same call, compiled here. It is implemented for both relations in both arithmetics.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon, ReplaceOne};
/// use dp_data::Examples;
/// use dp_losses::LossKind;
/// use dp_mechanisms::{ReleaseRng, SeededRng};
/// use dp_optim::MemorySource;
/// use dp_optim::engine::Control;
/// use dp_optim::recipes::{AnyRecipe, BoltOn, Budget, Recipe, TrainsAny};
///
/// let rows = vec![0.6, 0.8, -0.6, 0.8, 0.8, -0.6, -0.8, 0.6];
/// let mut source = MemorySource::<f64>::new(Examples::dense(rows, vec![1.0, -1.0, 1.0, -1.0], 2)?, 1.0, 1.0);
/// let recipe = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.1));
/// let plan = recipe.plan_copies::<ReplaceOne>(4, 2, Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO }, 1)?;
/// let rng = &mut SeededRng::new(1);
/// let trained = ReplaceOne::train_any(&plan, &mut source, &mut rng.lend(), &mut Control::default())?;
/// assert_eq!(trained.weights.get().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TrainsAny<F: Real>: RecordAdjacency + Sized {
    /// Calls [`Planned::train`] on `plan`.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// Those of [`Planned::train`].
    fn train_any(
        plan: &AnyPlan<Self>,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Trained<F, Self, AnyDerivation>, Error>;
}

macro_rules! compiled {
    ($($relation:ty, $real:ty);+) => {
        $(impl TrainsAny<$real> for $relation {
            fn train_any(
                plan: &AnyPlan<Self>,
                source: &mut dyn RowSource<$real>,
                rng: &mut LentRng<'_>,
                control: &mut Control<'_>,
            ) -> Result<Trained<$real, Self, AnyDerivation>, Error> {
                plan.train(source, rng, control)
            }
        })+
    };
}

compiled!(ZeroOut, f32; ZeroOut, f64; ReplaceOne, f32; ReplaceOne, f64);

/// An arithmetic in which training without privacy is compiled with this crate: `f32` and `f64`.
pub trait Compiled: Real {
    /// [`train_without_privacy`].
    ///
    /// # Errors
    /// Those of [`train_without_privacy`].
    fn baseline(
        recipe: &NonPrivateDerivation,
        source: &mut dyn RowSource<Self>,
        key: [u8; 32],
        control: &mut Control<'_>,
    ) -> Result<NonPrivate<Vec<Self>>, Error>;
}

macro_rules! baseline {
    ($($real:ty),+) => {
        $(impl Compiled for $real {
            fn baseline(
                recipe: &NonPrivateDerivation,
                source: &mut dyn RowSource<Self>,
                key: [u8; 32],
                control: &mut Control<'_>,
            ) -> Result<NonPrivate<Vec<Self>>, Error> {
                non_private::train(recipe, source, key, control)
            }
        })+
    };
}

baseline!(f32, f64);

/// Trains without privacy, rows in the order given by `key`: a baseline, for the curator's eyes.
///
/// # Errors
/// Parameters outside their range, a source that fails, [`Error::Interrupted`].
pub fn train_without_privacy<F: Compiled>(
    recipe: &NonPrivateDerivation,
    source: &mut dyn RowSource<F>,
    key: [u8; 32],
    control: &mut Control<'_>,
) -> Result<NonPrivate<Vec<F>>, Error> {
    F::baseline(recipe, source, key, control)
}
