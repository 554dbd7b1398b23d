//! A Gaussian with a hidden random sensitivity.

use crate::gaussian_mixture::GaussianMixture;
use crate::logspace::CompensatedSum;

/// Returns the Renyi divergence of order `order >= 1` of the mixture with the index revealed.
///
/// # Formula
/// ```text
/// 1/(a-1) ln sum_r w_r exp( a (a-1) mu_r^2 / 2 ),    a = order
/// ```
///
/// by joint convexity of `exp((a-1) D_a)`, with the same index for both neighbours. Summed relative to the largest exponent, or
/// as excess over 1 if all exponents are small.
pub(crate) fn rdp(order: f64, mixture: &GaussianMixture) -> f64 {
    if order == 1.0 {
        return mixture.components().iter().map(|(mu, weight)| 0.5 * weight * mu * mu).sum();
    }
    let half_square = |mu: f64| 0.5 * order * (order - 1.0) * mu * mu;
    let largest = half_square(mixture.largest_mu());
    if largest == f64::INFINITY {
        return f64::INFINITY;
    }
    let sum_of = |term: &dyn Fn(f64) -> f64| {
        let mut sum = CompensatedSum::default();
        for &(mu, weight) in mixture.components() {
            sum.add(weight * term(half_square(mu)));
        }
        sum.value()
    };
    if largest < 1.0 {
        sum_of(&|exponent| exponent.exp_m1()).ln_1p() / (order - 1.0)
    } else {
        (largest + sum_of(&|exponent| (exponent - largest).exp()).ln()) / (order - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_component_is_a_gaussian() {
        let mixture = GaussianMixture::new(2.0, &[1.0], &[1.0]).unwrap();
        for order in [1.001, 2.0, 500.0] {
            assert!((rdp(order, &mixture) / (order * 0.125) - 1.0).abs() < 1e-13);
        }
    }

    #[test]
    fn lies_between_the_mean_and_the_largest_and_branches_agree() {
        let mixture = GaussianMixture::new(1.0, &[0.5, 1.0, 2.0], &[0.5, 0.25, 0.25]).unwrap();
        let mean_square = 0.5 * 0.25 + 0.25 * 1.0 + 0.25 * 4.0;
        for order in [1.1, 1.36, 1.37, 3.0, 100.0] {
            let value = rdp(order, &mixture);
            assert!(value >= 0.5 * order * mean_square && value <= 0.5 * order * 4.0, "{order}: {value}");
        }
        let direct: f64 = [(0.5f64, 0.5), (1.0, 0.25), (2.0, 0.25)].iter().map(|(m, w)| w * (3.0 * m * m).exp()).sum();
        assert!((rdp(3.0, &mixture) - direct.ln() / 2.0).abs() < 1e-14);
    }

    #[test]
    fn overflow_is_infinite_not_wrong() {
        let mixture = GaussianMixture::new(1.0, &[1e90], &[1.0]).unwrap();
        assert_eq!(rdp(1e70, &mixture), f64::INFINITY);
    }
}
