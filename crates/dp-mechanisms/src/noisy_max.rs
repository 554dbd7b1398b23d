//! Report noisy max with Laplace noise.
