//! What the kernels need of a float.

/// Vector registers of this float. Sealed by its module being private.
pub trait Lanes: Sized {}

impl Lanes for f32 {}
impl Lanes for f64 {}
