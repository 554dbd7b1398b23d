//! Optimal composition of pure guarantees.

use crate::logspace::{log_add, log_one_plus_exp, log_sub};

/// Number of repetitions above which other accountants are used, which are nearly as tight there.
pub(crate) const MAX_COUNT: u64 = 20_000;

/// The direction of rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
}

impl Rounding {
    const fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }
}

/// Returns the least epsilon of `count` adaptively chosen `epsilon`-DP mechanisms at `delta > 0`, rounded up.
///
/// # Formula
/// ```text
/// delta(e) = sum_l C(k,l) (e^((k-l) epsilon) - e^(e + l epsilon))_+ / (1 + e^epsilon)^k
/// ```
///
/// Between two neighbouring points `(k - 2l) epsilon` the curve is `A - e^e B` with `A`, `B` partial sums, so the segment that
/// contains the result is found in one pass and solved exactly. Sums are kept as logarithms; the rounding of the log-gamma
/// function, by far the largest error, is charged to `delta`.
///
/// # References
/// Kairouz, Oh and Viswanath 2015, "The composition theorem for differential privacy", Theorem 3.3, arXiv:1311.0776.
pub(crate) fn optimal_epsilon(epsilon: f64, count: u64, delta: f64) -> f64 {
    epsilon_at(epsilon, count, delta.ln(), Rounding::Up)
}

/// As [`optimal_epsilon`], at `e^log_delta`, rounded up.
pub(crate) fn optimal_epsilon_up(epsilon: f64, count: u64, log_delta: f64) -> f64 {
    epsilon_at(epsilon, count, log_delta, Rounding::Up)
}

/// As [`optimal_epsilon`], at `e^log_delta`, rounded down.
pub(crate) fn optimal_epsilon_down(epsilon: f64, count: u64, log_delta: f64) -> f64 {
    epsilon_at(epsilon, count, log_delta, Rounding::Down)
}

fn epsilon_at(epsilon: f64, count: u64, log_delta: f64, rounding: Rounding) -> f64 {
    let k = count as f64;
    let log_factorial = libm::lgamma(k + 1.0);
    let log_scale = k * log_one_plus_exp(-epsilon);
    let margin = rounding.sign() * 16.0 * f64::EPSILON * (1.0 + log_factorial + log_scale.abs() + k);
    let log_delta = log_delta - margin;
    let (mut upper, mut lower) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for l in 0..count {
        let l = l as f64;
        let end = (k - 2.0 * l) * epsilon;
        if !(end > 0.0) {
            break;
        }
        // Numerator and denominator are divided by e^(k epsilon).
        let log_binomial = log_factorial - libm::lgamma(l + 1.0) - libm::lgamma(k - l + 1.0);
        upper = log_add(upper, log_binomial - l * epsilon - log_scale);
        lower = log_add(lower, log_binomial - (k - l) * epsilon - log_scale);
        if upper > log_delta {
            let rest = log_sub(upper, log_delta);
            let solution = rest - lower;
            let next_end = (k - 2.0 * (l + 1.0)) * epsilon;
            if solution >= next_end {
                let error = margin * (1.0 + (upper - rest).exp());
                return (solution + error).clamp(0.0, k * epsilon * (1.0 + rounding.sign() * f64::EPSILON));
            }
        }
    }
    0.0
}

/// Returns the least delta of `count` adaptively chosen `epsilon`-DP mechanisms at `total`, rounded up.
pub(crate) fn optimal_delta(epsilon: f64, count: u64, total: f64) -> f64 {
    log_delta_at(epsilon, count, total, Rounding::Up).exp().min(1.0)
}

/// Returns the logarithm of that delta, rounded up.
pub(crate) fn optimal_log_delta_up(epsilon: f64, count: u64, total: f64) -> f64 {
    log_delta_at(epsilon, count, total, Rounding::Up).min(0.0)
}

/// Returns the logarithm of that delta, rounded down.
pub(crate) fn optimal_log_delta_down(epsilon: f64, count: u64, total: f64) -> f64 {
    log_delta_at(epsilon, count, total, Rounding::Down).min(0.0)
}

fn log_delta_at(epsilon: f64, count: u64, total: f64, rounding: Rounding) -> f64 {
    let k = count as f64;
    let log_factorial = libm::lgamma(k + 1.0);
    let log_scale = k * log_one_plus_exp(-epsilon);
    let margin = rounding.sign() * 16.0 * f64::EPSILON * (1.0 + log_factorial + log_scale.abs() + k);
    // The excess is a difference: taking every term a little further along the curve covers its rounding.
    let slack = rounding.sign() * 4.0 * f64::EPSILON * k * epsilon;
    let mut sum = f64::NEG_INFINITY;
    for l in 0..count {
        let l = l as f64;
        let excess = total - (k - 2.0 * l) * epsilon - slack;
        if !(excess < 0.0) {
            break;
        }
        let log_binomial = log_factorial - libm::lgamma(l + 1.0) - libm::lgamma(k - l + 1.0);
        sum = log_add(sum, log_binomial - l * epsilon - log_scale + (-excess.exp_m1()).ln());
    }
    sum + margin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enumerates all outcomes of `count` randomised responses.
    fn brute_force(epsilon: f64, count: u32, total: f64) -> f64 {
        let truth = epsilon.exp() / (1.0 + epsilon.exp());
        (0..1u32 << count)
            .map(|outcome| {
                let ones = outcome.count_ones() as i32;
                let zeros = count as i32 - ones;
                let p = truth.powi(zeros) * (1.0 - truth).powi(ones);
                let q = truth.powi(ones) * (1.0 - truth).powi(zeros);
                (p - total.exp() * q).max(0.0)
            })
            .sum()
    }

    #[test]
    fn delta_is_that_of_randomised_responses() {
        for (epsilon, count) in [(0.1, 10), (1.0, 7), (2.5, 3), (0.4, 1)] {
            for fraction in [0.0, 0.21, 0.5, 0.77, 0.999] {
                let total = fraction * epsilon * f64::from(count);
                let expected = brute_force(epsilon, count, total);
                let got = optimal_delta(epsilon, u64::from(count), total);
                assert!(
                    got >= expected * (1.0 - 1e-12) && got <= expected * (1.0 + 1e-10) + 1e-13,
                    "{epsilon} {count} {total}: {got} {expected}"
                );
            }
        }
    }

    #[test]
    fn rounded_up_and_down_they_enclose_the_enumeration() {
        for (epsilon, count) in [(0.1, 10), (1.0, 7), (2.5, 3), (0.4, 1)] {
            for fraction in [0.0, 0.21, 0.5, 0.77, 0.999] {
                let total = fraction * epsilon * f64::from(count);
                // The enumeration subtracts, and is accurate to 1e-11 at the largest total.
                let exact = brute_force(epsilon, count, total).ln();
                let low = optimal_log_delta_down(epsilon, u64::from(count), total);
                let high = optimal_log_delta_up(epsilon, u64::from(count), total);
                assert!(low <= exact + 1e-11 && exact <= high + 1e-11 && high - low < 1e-9, "{low} {exact} {high}");
                if total > 0.0 {
                    let low = optimal_epsilon_down(epsilon, u64::from(count), exact);
                    let high = optimal_epsilon_up(epsilon, u64::from(count), exact);
                    assert!(low <= total + 1e-11 && total <= high + 1e-11 && high - low < 1e-8, "{low} {total} {high}");
                }
            }
        }
    }

    #[test]
    fn epsilon_inverts_delta_on_the_safe_side() {
        for (epsilon, count) in [(0.1, 10), (1.0, 30), (0.05, 1000), (3.0, 2), (0.01, 20_000)] {
            for delta in [1e-30, 1e-9, 1e-3, 0.3] {
                let total = optimal_epsilon(epsilon, count, delta);
                // At the sum of all epsilons delta jumps to zero, and the slack of the evaluation shows.
                if total < epsilon * count as f64 * (1.0 - 1e-9) {
                    assert!(optimal_delta(epsilon, count, total) <= delta * (1.0 + 1e-6), "{epsilon} {count} {delta}");
                }
                if count <= 10 {
                    let exact = brute_force(epsilon, count as u32, total);
                    assert!(exact <= delta * (1.0 + 1e-12) + 1e-16, "{epsilon} {count} {delta}: {exact}");
                }
                if total > 1e-6 {
                    let below = optimal_delta(epsilon, count, total * (1.0 - 1e-7));
                    assert!(below > delta, "{epsilon} {count} {delta}: {total} {below}");
                }
            }
        }
    }
}
