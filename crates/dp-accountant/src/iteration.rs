//! Amplification by iteration: the privacy loss of the last of many noisy contractions for a record used long before.
//!
//! # Formula
//! The `psi_t` are contractions with Lipschitz constant `c <= 1`, each followed by Gaussian noise of standard deviation
//! `sigma_t`. The record of interest changes one of them, `psi_t`, by at most `s_t`. For neighbours that differ in the record of
//! iterate t, with `T` iterates in total, the last iterate is mu-Gaussian-DP with
//!
//! ```text
//! mu = max_t mu_t,    mu_t = c^(T-t) s_t / sqrt(sum_(i>=t) c^(2(T-i)) sigma_i^2),
//! ```
//!
//! and therefore `mu^2/2`-zCDP, as proved by Feldman, Mironov, Talwar and Thakurta 2018 for `c = 1`.
//!
//! # Proof
//! Let `X_i = psi_i(X_(i-1)) + Z_i` and `X'_i = psi'_i(X'_(i-1)) + Z'_i` be the two runs from the same start, and choose
//! `0 <= l_i <= 1` with `l_T = 1`. A third run is driven by the noise of the first:
//!
//! ```text
//! Y_i = l_i psi_i(X_(i-1)) + (1 - l_i) psi'_i(Y_(i-1)) + Z_i,    Y_0 = X_0.
//! ```
//!
//! 1. `Y_T = X_T`.
//! 2. With `|psi_i(x) - psi'_i(y)| <= c |x - y| + s_i` it stays near: `|X_i - Y_i| <= z_i` almost surely, where `z_0 = 0`, `z_i =
//!    c z_(i-1) + s_i - a_i` and `a_i = l_i (c z_(i-1) + s_i)`.
//! 3. Given `Y_(i-1) = y`, `Y_i` is `psi'_i(y)` with Gaussian noise and a further shift, of length at most `a_i` and independent
//!    of that noise; given `X'_(i-1) = y`, `X'_i` is the same without the shift. Distinguishing them is no easier than `N(0, 1)`
//!    from `N(a_i / sigma_i, 1)`: this holds for each value of the shift, and trade-off functions are convex. Adaptive
//!    composition (Dong, Roth and Su 2022, Theorem 3.2) gives `mu^2 = sum_i (a_i / sigma_i)^2` for `X_T = Y_T` against `X'_T`.
//! 4. Any `a_i >= 0` with all `z_i >= 0` and `z_T = 0` are possible. For one record, `sum_(i>=t) c^(T-i) a_i = c^(T-t) s_t`,
//!    and `a_i` proportional to `c^(T-i) sigma_i^2` has the least sum of squares (Cauchy and Schwarz), `mu_t^2`.
//!
//! Step 2 needs only the stated inequality: maps computed in floating point satisfy it with a larger `s_i`. Affine maps attain
//! the bound. The proof holds for any two records: a record may be exchanged, or replaced by a null record.
//!
//! # References
//! J. Bok, W. Su, J. M. Altschuler, "Shifted interpolation for differential privacy", ICML 2024, arXiv 2403.00278: steps 1
//! to 3. V. Feldman, I. Mironov, K. Talwar, A. Thakurta, "Privacy amplification by iteration", FOCS 2018, Theorem 22,
//! arXiv 1808.06651.

use crate::error::{Error, non_negative, positive};

/// Value below which a sum of squares is not accurate to rounding.
const LEAST_VARIANCE: f64 = 1e-290;

/// Returns the largest `mu_t` over all iterates, rounded up; infinite if there is no guarantee.
pub(crate) fn mu(sensitivities: &[f64], std_devs: &[f64], contraction: f64) -> Result<f64, Error> {
    if sensitivities.len() != std_devs.len() || sensitivities.is_empty() {
        return Err(Error::LengthMismatch {
            left: "sensitivities",
            left_length: sensitivities.len(),
            right: "std_devs",
            right_length: std_devs.len(),
        });
    }
    let contraction = non_negative("contraction", contraction)?;
    if !(contraction <= 1.0) {
        return Err(Error::OutOfRange { name: "contraction", value: contraction, range: "[0, 1]" });
    }
    for &std_dev in std_devs {
        positive("std_dev", std_dev)?;
    }
    // In units of the largest noise, so that no square overflows.
    let unit = std_devs.iter().copied().fold(0.0, f64::max);
    let mut largest: f64 = 0.0;
    // Noise and shift as propagated to the last iterate: `shrink` is c^(T-t).
    let (mut variance, mut shrink) = (0.0, 1.0f64);
    for (&sensitivity, &std_dev) in sensitivities.iter().zip(std_devs).rev() {
        let arriving = shrink * (std_dev / unit);
        variance += arriving * arriving;
        let shift = shrink * (non_negative("sensitivity", sensitivity)? / unit);
        if sensitivity > 0.0 {
            // A variance that lost digits to underflow counts as no protection; a ratio that underflowed must not become zero.
            let ratio = if variance > LEAST_VARIANCE { shift / variance.sqrt() } else { f64::INFINITY };
            largest = largest.max(ratio).max(f64::MIN_POSITIVE);
        }
        shrink *= contraction;
    }
    // Each iterate rounds its term of the sum and the power once or twice.
    Ok(largest * (1.0 + 4.0 * f64::EPSILON * (sensitivities.len() as f64 + 4.0)))
}

#[cfg(test)]
mod tests {
    use super::mu;
    use crate::error::Error;
    use crate::{DpEvent, bound, gaussian};

    fn rho(sensitivities: &[f64], std_devs: &[f64], contraction: f64) -> Result<f64, Error> {
        mu(sensitivities, std_devs, contraction).map(|mu| 0.5 * mu * mu)
    }

    #[test]
    fn the_last_iterate_alone_is_a_gaussian() {
        assert!((rho(&[1.0], &[2.0], 1.0).unwrap() - 0.125).abs() < 1e-14);
        assert!((rho(&[0.0, 1.0], &[2.0, 2.0], 0.5).unwrap() - 0.125).abs() < 1e-14);
    }

    #[test]
    fn early_records_are_better_protected_and_contraction_helps() {
        let early = rho(&[1.0, 0.0, 0.0, 0.0], &[1.0; 4], 1.0).unwrap();
        assert!((early - 0.125).abs() < 1e-14);
        assert!(rho(&[1.0, 0.0, 0.0, 0.0], &[1.0; 4], 0.9).unwrap() < early);
    }

    /// Affine maps attain the bound: the last iterate is Gaussian with mean shift `c^(T-t) s` and the summed variance.
    #[test]
    fn affine_maps_attain_it() {
        let (contraction, s, sigmas) = (0.8f64, 1.5, [0.5, 1.0, 0.7]);
        let mut variance = 0.0;
        let mut shift = s;
        for (i, sigma) in sigmas.iter().enumerate() {
            variance = variance * contraction * contraction + sigma * sigma;
            shift *= if i == 0 { 1.0 } else { contraction };
        }
        let expected = shift * shift / (2.0 * variance);
        assert!((rho(&[s, 0.0, 0.0], &sigmas, contraction).unwrap() - expected).abs() < 1e-14);
    }

    #[test]
    fn any_unit_of_length_gives_the_same() {
        let expected = rho(&[1.0, 2.0, 0.5], &[2.0, 1.0, 3.0], 0.9).unwrap();
        for unit in [1e-250, 1e-100, 1e100, 1e250] {
            let scaled = |values: [f64; 3]| values.map(|value| value * unit);
            let got = rho(&scaled([1.0, 2.0, 0.5]), &scaled([2.0, 1.0, 3.0]), 0.9).unwrap();
            assert!((got / expected - 1.0).abs() < 1e-14, "{unit}: {got} {expected}");
        }
        // Noise that underflows relative to that of the other iterates is not used.
        assert_eq!(rho(&[0.0, 1e-200], &[1e200, 1e-200], 1.0).unwrap(), f64::INFINITY);
        assert!(mu(&[1e-200], &[1e200], 1.0).unwrap() > 0.0);
    }

    #[test]
    fn bad_numbers_are_typed_errors() {
        assert!(rho(&[], &[], 1.0).is_err());
        assert!(rho(&[1.0], &[0.0], 1.0).is_err());
        assert!(rho(&[1.0], &[1.0], 1.1).is_err());
        assert!(rho(&[1.0], &[1.0], f64::NAN).is_err());
        assert!(rho(&[-1.0], &[1.0], 1.0).is_err());
    }

    /// An affine chain of three steps, in one dimension: the law of the last iterate is exactly Gaussian for both neighbours, and
    /// no test distinguishes them better than the event allows.
    #[test]
    fn the_trade_off_of_affine_maps_is_the_claimed_one() {
        let event =
            DpEvent::AmplifiedByIteration { sensitivities: vec![1.0, 0.2], std_devs: vec![0.7, 0.9], contraction: 0.5 };
        let exact = 0.5 / (0.25 * 0.49f64 + 0.81).sqrt();
        for epsilon in [0.1, 0.5, 1.0] {
            let found = bound::delta(&event, epsilon).unwrap().value;
            let expected = gaussian::delta(exact, epsilon).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-6 && found >= expected, "{epsilon}: {found} {expected}");
        }
    }
}
