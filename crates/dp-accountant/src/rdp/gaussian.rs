//! Gaussian noise: a line through the origin.

/// Returns the slope of the curve: `rdp(order) = order mu^2 / 2`, `mu` = L2 sensitivity / standard deviation.
///
/// # References
/// Mironov 2017, "Renyi differential privacy", Proposition 7, arXiv:1702.07476.
pub(crate) fn rdp_per_order(mu: f64) -> f64 {
    0.5 * mu * mu
}

#[cfg(test)]
mod tests {
    #[test]
    fn by_integration() {
        // D_3 between N(1, 2^2) and N(0, 2^2): mu = 1/2, rdp = 3/8.
        let step = 1e-3;
        let moment: f64 = (-40_000..40_000)
            .map(|i| f64::from(i) * step)
            .map(|x: f64| (-x * x / 8.0 + 3.0 * (2.0 * x - 1.0) / 8.0).exp())
            .sum::<f64>()
            * step
            / (8.0 * core::f64::consts::PI).sqrt();
        assert!((moment.ln() / 2.0 - 3.0 * super::rdp_per_order(0.5)).abs() < 1e-12);
    }
}
