//! A number between certified bounds, and the engine that computed them.

/// A number with certified bounds: the true value lies between `lower` and `upper`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// Certified lower bound.
    pub lower: f64,
    /// Certified upper bound: the guarantee.
    pub upper: f64,
    /// The engine that computed it.
    pub engine: Engine,
}

/// The engine that computed a [`Bracket`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// A closed form, or an integral over the loss of one release.
    ClosedForm,
    /// The contour integral of the moment function.
    Contour,
    /// Composition of discretised privacy loss distributions.
    LossDistribution,
}
