//! The stated noise of an accepted configuration, and a check of its releases.

use dp_mechanisms::{Error, SeededRng};

/// The law of the noise, to the accuracy of 64 releases.
pub enum Law {
    /// Continuous, or on a grid too fine to matter.
    Continuous {
        std_dev: f64,
        /// Fourth central moment over the squared variance.
        kurtosis: f64,
    },
    /// The most probable outcome has this probability.
    Discrete { probability_of_likeliest: f64 },
}

/// One release.
pub type Release = Box<dyn Fn(&mut SeededRng) -> Result<f64, Error>>;

/// A configuration that a constructor accepted.
pub struct Accepted {
    pub law: Law,
    /// Makes one release: the noise, for a continuous law; otherwise 0 for the most probable outcome and nonzero for any other.
    pub release: Release,
}

/// Number of releases of each configuration.
const RELEASES: u64 = 64;

impl Accepted {
    /// Checks that 64 releases are not all equal, unless their law makes that likely, and that their spread is within 5 standard
    /// errors of the stated one.
    pub fn check(&self, what: &str) {
        let mut rng = SeededRng::new(17);
        let drawn: Vec<f64> = (0..RELEASES)
            .map(|_| (self.release)(&mut rng).unwrap_or_else(|error| panic!("{what}: accepted, then {error}")))
            .collect();
        assert!(drawn.iter().all(|noise| noise.is_finite()), "{what}: {drawn:?}");
        let n = RELEASES as f64;
        let all_equal = drawn.iter().all(|noise| *noise == drawn[0]);
        match self.law {
            Law::Continuous { std_dev, kurtosis } => {
                assert!(!all_equal, "{what}: 64 releases of {}", drawn[0]);
                assert!(std_dev > 0.0 && std_dev.is_finite(), "{what}: announces {std_dev}");
                // Scaled first: the square of the noise may be out of range.
                let mean_square = drawn.iter().map(|noise| (noise / std_dev).powi(2)).sum::<f64>() / n;
                let standard_error = ((kurtosis - 1.0) / n).sqrt();
                assert!((mean_square - 1.0).abs() < 5.0 * standard_error, "{what}: {mean_square} of the variance");
            }
            Law::Discrete { probability_of_likeliest: p } => {
                assert!((0.0..=1.0 + 1e-12).contains(&p), "{what}: announces {p}");
                let p = p.min(1.0);
                assert!(!all_equal || p.powi(RELEASES as i32) > 1e-9, "{what}: 64 equal releases");
                let likeliest = drawn.iter().filter(|noise| **noise == 0.0).count() as f64;
                // At least one draw's worth of slack, for probabilities near 0 and 1.
                let slack = 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0;
                assert!((likeliest - n * p).abs() <= slack, "{what}: likeliest {likeliest} times, p = {p}");
            }
        }
    }
}
