//! The hot loops over rows.

mod lanes;
pub(crate) mod reference;

pub use lanes::Lanes;
