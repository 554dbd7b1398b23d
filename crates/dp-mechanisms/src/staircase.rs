//! The staircase mechanism: the least expected magnitude of noise for pure epsilon in one dimension.
