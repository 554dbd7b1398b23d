//! The discrete Laplace (two-sided geometric) mechanism: pure differential privacy for integers.
