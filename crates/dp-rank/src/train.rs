//! Training of a [`Scorer`](crate::scorer::Scorer) with a list loss, privately and without privacy.
//!
//! ```text
//! lists drawn  ->  Σ gradients of lists, each clipped  ->  + N(0, σ² I), + what is public  ->  step, normalisation
//! ```
//!
//! [`PrivateRanking`] performs all of this, for a [`ListLoss`](crate::loss::ListLoss); [`NonPrivateRanking`] omits clipping and
//! noise, for any loss, as a baseline.

mod descent;
mod error;
mod gradient;
mod non_private;
pub mod private;
pub mod protect;
#[cfg(test)]
mod tests;

pub use descent::{Descent, Observer};
pub use error::TrainError;
pub use gradient::ListGradient;
pub use non_private::NonPrivateRanking;
pub use private::{PrivateRanking, RankingDerivation, RankingPlan, Scaling, TrainedRanker};
pub use protect::{Document, Grades, ListPresence, Protect, Protected, WholeList};
