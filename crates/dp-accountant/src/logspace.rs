//! Sums, differences and shifted exponentials of numbers given by their logarithms.

/// Returns `ln(e^a + e^b)`; negative infinity represents zero.
pub(crate) fn log_add(a: f64, b: f64) -> f64 {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY || large == f64::INFINITY {
        return large;
    }
    large + (small - large).exp().ln_1p()
}

/// Returns `ln(e^a - e^b)` for `a >= b`; negative infinity if they are equal.
pub(crate) fn log_sub(a: f64, b: f64) -> f64 {
    if b == f64::NEG_INFINITY {
        return a;
    }
    if a == b {
        return f64::NEG_INFINITY;
    }
    a + log_one_minus_exp(b - a)
}

/// Returns `ln(1 - e^x)` for `x <= 0`; switches branch at `-ln 2`, where both lose at most one bit (Maechler 2012).
pub(crate) fn log_one_minus_exp(x: f64) -> f64 {
    if x > -core::f64::consts::LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

/// Returns `ln(e^x - 1)` for `x >= 0`, without overflow.
pub(crate) fn log_exp_m1(x: f64) -> f64 {
    if x == f64::INFINITY { x } else { x + log_one_minus_exp(-x) }
}

/// Returns `ln(1 + e^x)`, without overflow.
pub(crate) fn log_one_plus_exp(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// Returns `ln(1 - rate + rate e^x)` for `x` so large that `e^x` may overflow, without cancellation even if the rate is so small
/// that the sum is close to 1.
pub(crate) fn log_mixed(rate: f64, x: f64) -> f64 {
    let log = x + rate.ln();
    if log < 0.0 { (log.exp() - rate).ln_1p() } else { log + ((1.0 - rate) * (-log).exp()).ln_1p() }
}

/// A running sum with Neumaier's correction: its error does not grow with the number of terms.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CompensatedSum {
    sum: f64,
    correction: f64,
}

impl CompensatedSum {
    #[inline]
    pub(crate) fn add(&mut self, term: f64) {
        // The exact rounding error of the sum, whichever operand is larger (Knuth's two-sum), without a branch to mispredict.
        let sum = self.sum + term;
        let added = sum - self.sum;
        self.correction += (self.sum - (sum - added)) + (term - added);
        self.sum = sum;
    }

    pub(crate) fn value(self) -> f64 {
        self.sum + self.correction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_the_direct_formulas_where_those_are_exact() {
        assert!((log_add(2f64.ln(), 3f64.ln()) - 5f64.ln()).abs() < 1e-15);
        assert!((log_sub(5f64.ln(), 3f64.ln()) - 2f64.ln()).abs() < 1e-15);
        assert!((log_exp_m1(1.0) - 1f64.exp_m1().ln()).abs() < 1e-15);
        assert_eq!(log_exp_m1(800.0), 800.0);
        assert!((log_exp_m1(1e-20) + 20.0 * 10f64.ln()).abs() < 1e-13);
        assert_eq!(log_one_plus_exp(900.0), 900.0);
        assert!((log_one_plus_exp(0.0) - 2f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn mixing_with_one_does_not_cancel() {
        for (rate, x) in [(0.3f64, 20.0f64), (1e-9, 20.0), (1e-9, 21.0), (1e-12, 30.0), (1.0, 40.0)] {
            let expected = (rate * x.exp_m1()).ln_1p();
            assert!((log_mixed(rate, x) / expected - 1.0).abs() < 1e-14, "{rate} {x}");
        }
        // 1e-280 e^644: the sum exceeds 1 by e^(644 - 280 ln 10).
        let small = (644.0f64 - 280.0 * 10f64.ln()).exp();
        assert!((log_mixed(1e-280, 644.0) / small.ln_1p() - 1.0).abs() < 1e-12);
        assert!((log_mixed(1e-280, 600.0) / (600.0f64 - 280.0 * 10f64.ln()).exp() - 1.0).abs() < 1e-12);
        assert!((log_mixed(0.5, 2000.0) - (2000.0 - core::f64::consts::LN_2)).abs() < 1e-12);
    }

    #[test]
    fn zero_is_negative_infinity() {
        assert_eq!(log_add(f64::NEG_INFINITY, 1.0), 1.0);
        assert_eq!(log_add(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(log_sub(1.0, 1.0), f64::NEG_INFINITY);
        assert_eq!(log_sub(1.0, f64::NEG_INFINITY), 1.0);
        assert_eq!(log_exp_m1(0.0), f64::NEG_INFINITY);
        assert_eq!(log_add(f64::INFINITY, f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn the_compensated_sum_keeps_what_a_plain_sum_loses() {
        let mut sum = CompensatedSum::default();
        for term in [1.0, 1e100, 1.0, -1e100] {
            sum.add(term);
        }
        assert_eq!(sum.value(), 2.0);
    }
}
