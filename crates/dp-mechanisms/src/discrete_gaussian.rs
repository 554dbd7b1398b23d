//! The discrete Gaussian mechanism: concentrated differential privacy for integer vectors.
