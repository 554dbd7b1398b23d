//! Continual release: sums over time with correlated noise.
