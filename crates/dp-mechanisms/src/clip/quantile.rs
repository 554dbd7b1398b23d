//! Clipping at an adaptive quantile of the norms.
