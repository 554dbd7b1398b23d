//! Renyi differential privacy: the curve of an event tree, and its conversion to (epsilon, delta).
//!
//! One file per event holds that event's curve with its proof or source; [`RdpCurve`] adds them up;
//! [`conversion`] turns a curve into a statement, at the best order over all of `(1, inf)`.

pub mod conversion;
mod curve;
mod gaussian;
pub(crate) mod laplace;
mod laplace_ball;
mod mixture;
mod order;
mod pure;

pub use curve::RdpCurve;

mod accountant;
pub use accountant::RdpAccountant;
