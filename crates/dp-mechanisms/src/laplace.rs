//! The coordinate-wise Laplace mechanism: pure differential privacy for L1 sensitivities.
