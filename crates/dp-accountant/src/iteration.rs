//! Amplification by iteration: what the last of many noisy contractions reveals about a record used long before.
//!
//! The `psi_t` are contractions with Lipschitz constant `c <= 1`, the record of interest moves one of them, `psi_t`, by
//! at most `s_t`, and Gaussian noise of standard deviation `sigma_t` follows each. For neighbours that differ in the
//! record of iterate t, with `T` iterates in all,
//!
//! ```text
//! D_a(X_T || X_T') <= a rho_t,    rho_t = (c^(T-t) s_t)^2 / (2 sum_(i>=t) c^(2(T-i)) sigma_i^2).
//! ```
//!
//! For `c = 1` this is Feldman, Mironov, Talwar and Thakurta 2018, "Privacy amplification by iteration", Theorem 22
//! with shifts proportional to `sigma_i^2`. For `c < 1` the shifts `a_i` that still have to be removed shrink by `c`
//! in each step; minimising `sum a_i^2 / (2 sigma_i^2)` under `sum_(i>=t) c^(T-i) a_i = c^(T-t) s_t` by Cauchy and
//! Schwarz gives the same with weights, and affine maps attain it. The statement is about Renyi divergences: it is an
//! upper bound that is linear in the order, not a Gaussian trade-off function.

use crate::error::{Error, non_negative, positive};

/// Below this a sum of squares is not accurate to rounding.
const LEAST_VARIANCE: f64 = 1e-290;

/// The largest `rho_t` over all iterates, rounded up.
pub(crate) fn rho(sensitivities: &[f64], std_devs: &[f64], contraction: f64) -> Result<f64, Error> {
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
    // Noise and shift as they arrive at the last iterate: `shrink` is c^(T-t).
    let (mut variance, mut shrink) = (0.0, 1.0f64);
    for (&sensitivity, &std_dev) in sensitivities.iter().zip(std_devs).rev() {
        let arriving = shrink * (std_dev / unit);
        variance += arriving * arriving;
        let shift = shrink * (non_negative("sensitivity", sensitivity)? / unit);
        if sensitivity > 0.0 {
            let ratio = shift / variance.sqrt();
            // A variance that lost digits to underflow protects nothing; a cost that did is not zero.
            let rho = if variance > LEAST_VARIANCE { 0.5 * ratio * ratio } else { f64::INFINITY };
            largest = largest.max(rho).max(f64::MIN_POSITIVE);
        }
        shrink *= contraction;
    }
    // Each iterate rounds its term of the sum and the power once or twice.
    Ok(largest * (1.0 + 4.0 * f64::EPSILON * (sensitivities.len() as f64 + 4.0)))
}

#[cfg(test)]
mod tests {
    use super::rho;

    #[test]
    fn the_last_iterate_alone_is_a_gaussian() {
        assert!((rho(&[1.0], &[2.0], 1.0).unwrap() - 0.125).abs() < 1e-15);
        assert!((rho(&[0.0, 1.0], &[2.0, 2.0], 0.5).unwrap() - 0.125).abs() < 1e-15);
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
        // Noise that vanishes beside the other iterates' is not counted on.
        assert_eq!(rho(&[0.0, 1e-200], &[1e200, 1e-200], 1.0).unwrap(), f64::INFINITY);
        assert!(rho(&[1e-200], &[1e200], 1.0).unwrap() > 0.0);
    }

    #[test]
    fn bad_numbers_are_typed_errors() {
        assert!(rho(&[], &[], 1.0).is_err());
        assert!(rho(&[1.0], &[0.0], 1.0).is_err());
        assert!(rho(&[1.0], &[1.0], 1.1).is_err());
        assert!(rho(&[1.0], &[1.0], f64::NAN).is_err());
        assert!(rho(&[-1.0], &[1.0], 1.0).is_err());
    }
}
