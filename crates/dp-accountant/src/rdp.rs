//! Renyi differential privacy: the curve of an event tree, and its conversion to (epsilon, delta).
//!
//! Each event has its own file with its curve and the proof or source; [`RdpCurve`] adds the curves up; [`conversion`] converts a
//! curve to (epsilon, delta), at the best order over all of `(1, inf)`.
//!
//! Theorems that need only numbers are plain functions:
//!
//! | function | holds under |
//! |---|---|
//! | [`poisson_sampled_gaussian`], at any real order, to 1e-12 | add/remove |
//! | [`poisson_sampled`], of any curve, with no factor 3 | add/remove |
//! | [`without_replacement`], of any curve | replace-one |
//! | [`group_of`], of any curve | the curve's own |
//! | [`above_threshold_laplace`], [`above_threshold_gaussian`], [`bounded_range()`], [`random_stopping`] | any |

pub(crate) mod above_threshold;
mod accountant;
pub(crate) mod bounded_range;
pub mod conversion;
mod convexity;
mod curve;
mod discrete_laplace;
mod finite_pair;
mod gaussian;
mod group;
mod integer_orders;
pub(crate) mod laplace;
pub(crate) mod leaf;
mod mixture;
mod order;
mod parallel;
mod points;
mod poisson;
mod poisson_gaussian;
mod prepared;
mod pure;
pub mod random_stopping;
mod randomized_response;
mod shuffled;
mod without_replacement;

pub use above_threshold::{above_threshold_gaussian, above_threshold_gaussian_range_bounded, above_threshold_laplace};
pub use accountant::RdpAccountant;
pub use bounded_range::bounded_range;
pub(crate) use convexity::mixed_with_nothing;
pub use curve::RdpCurve;
pub(crate) use gaussian::rdp_per_order;
pub use group::group_of;
pub(crate) use points::RenyiPoints;
pub use poisson::{poisson_sampled, poisson_sampled_as_published};
pub use poisson_gaussian::poisson_sampled_gaussian;
pub(crate) use poisson_gaussian::rdp as sampled_gaussian_divergence;
pub use without_replacement::{without_replacement, without_replacement_as_published};
