//! The bound on mu for a claim of Gaussian differential privacy.

use core::f64::consts::SQRT_2;

use statrs::function::erf::erfc_inv;

use super::binomial::Rate;
use super::clopper_pearson::Limits;

impl Limits {
    /// Returns a lower bound on mu, which refutes any claim of mu-GDP below it.
    ///
    /// It uses the whole trade-off curve of a Gaussian and so needs far fewer runs than epsilon at one delta. For a mechanism
    /// with another curve it has no meaning beyond that refutation.
    ///
    /// # Formula
    /// ```text
    /// max{ 0, Phi^-1(p) - Phi^-1(q) },   p = true_positive, q = false_positive
    /// ```
    ///
    /// # Examples
    /// ```
    /// use dp_audit::bounds::{Hits, Limits};
    /// let hits = Hits { true_positives: 900, positives: 1000, false_positives: 50, negatives: 1000 };
    /// assert!((Limits::new(hits, 0.05)?.mu_lower() - 2.684577956).abs() < 1e-8);
    /// # Ok::<(), dp_audit::Error>(())
    /// ```
    ///
    /// # References
    /// J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", 2019, Definition 2.6, arXiv 1905.02383. M. Nasr et
    /// al., "Tight auditing of differentially private machine learning", 2023, Section 4.3, arXiv 2302.07956.
    pub fn mu_lower(&self) -> f64 {
        let (p, q) = (normal_quantile(self.true_positive), normal_quantile(self.false_positive));
        let mu = p - q;
        if mu == f64::INFINITY {
            return mu;
        }
        // Covers the error of the inverse error function, a few units of 1e-15.
        let mu = mu - 1e-12 * (1.0 + p.abs() + q.abs());
        if mu > 0.0 { mu } else { 0.0 }
    }
}

/// Computes `Phi^-1` from the smaller of the rate and its complement.
fn normal_quantile(rate: Rate) -> f64 {
    if rate.value < rate.complement {
        -SQRT_2 * erfc_inv(2.0 * rate.value)
    } else {
        SQRT_2 * erfc_inv(2.0 * rate.complement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_invert_the_distribution_function_to_the_margin() {
        for exponent in 1..300 {
            let value = 10f64.powi(-exponent);
            let z = normal_quantile(Rate { value, complement: 1.0 - value });
            let back = 0.5 * libm::erfc(-z / SQRT_2);
            // The slope of the density relative to the tail is about |z| there.
            assert!((back / value - 1.0).abs() < 1e-12 * (1.0 + z * z), "{value}: {z} gives {back}");
            assert_eq!(-z, normal_quantile(Rate { value: 1.0 - value, complement: value }));
        }
        assert_eq!(normal_quantile(Rate { value: 0.5, complement: 0.5 }), 0.0);
    }
}
