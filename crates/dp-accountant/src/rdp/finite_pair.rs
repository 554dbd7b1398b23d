//! A pair of laws on finitely many outcomes.

use crate::finite_pair::FinitePair;
use crate::logspace::{CompensatedSum, log_add};

/// Least excess of the order over 1: smaller orders are raised to it, since the divergence does not decrease with the order.
const LEAST_EXCESS_ORDER: f64 = 1e-4;

/// Exponents below this cannot overflow.
const SAFE_EXPONENT: f64 = 600.0;

/// Returns the larger of the Renyi divergences of order `order >= 1` of the two laws from each other.
///
/// # Formula
/// ```text
/// 1/(a-1) ln( 1 + sum_i q_i [r_i^a - 1 - a (r_i - 1)] ),    r_i = p_i/q_i, a = order,
/// ```
///
/// for laws of equal total mass, a sum of non-negative terms; infinite if an outcome has no mass under the other law.
pub(crate) fn rdp(order: f64, pair: &FinitePair) -> f64 {
    let outcomes = || pair.outcomes().iter().copied();
    f64::max(one_way(order, outcomes()), one_way(order, outcomes().map(|(p, q)| (q, p))))
}

fn one_way(order: f64, outcomes: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    if outcomes.clone().any(|(p, q)| q == 0.0 && p > 0.0) {
        return f64::INFINITY;
    }
    let order = order.max(1.0 + LEAST_EXCESS_ORDER);
    let log_ratio = |p: f64, q: f64| ((p - q) / q).ln_1p();
    let largest = outcomes.clone().map(|(p, q)| log_ratio(p, q)).fold(0.0, f64::max);
    if order * largest > SAFE_EXPONENT {
        let log_moment = outcomes
            .filter(|&(p, _)| p > 0.0)
            .map(|(p, q)| p.ln() + (order - 1.0) * log_ratio(p, q))
            .fold(f64::NEG_INFINITY, log_add);
        let rounding = 8.0 * f64::EPSILON * (order * largest + 40.0);
        return (log_moment + rounding) / (order - 1.0);
    }
    let (mut excess, mut difference) = (CompensatedSum::default(), CompensatedSum::default());
    for (p, q) in outcomes {
        excess.add(q * moment_excess(order, log_ratio(p, q)));
        difference.add(p);
        difference.add(-q);
    }
    // A difference of the totals, by rounding, is included if it is positive.
    let moment = excess.value() * (1.0 + ROUNDING / (order - 1.0)) + order * difference.value().max(0.0);
    moment.ln_1p() / (order - 1.0)
}

/// Bound on the relative rounding of [`moment_excess`], times the order's excess over 1.
const ROUNDING: f64 = 100.0 * f64::EPSILON;

/// Number of terms of the series in `order * log_ratio`; the first dropped is below `0.25^13/13!` of the first.
const SERIES_TERMS: i32 = 14;

/// Returns `r^a - 1 - a (r - 1)` for a likelihood ratio r, from its logarithm; at least 0.
pub(super) fn moment_excess(order: f64, log_ratio: f64) -> f64 {
    if (order * log_ratio).abs() < 0.25 {
        // sum_(k >= 2) (a^k - a) l^k / k!
        let log_order = order.ln();
        let mut power = log_ratio;
        let mut sum = 0.0;
        for k in 2..SERIES_TERMS {
            power *= log_ratio / f64::from(k);
            sum += order * (f64::from(k - 1) * log_order).exp_m1() * power;
        }
        return sum;
    }
    if log_ratio == f64::NEG_INFINITY {
        return order - 1.0;
    }
    (order * log_ratio).exp_m1() - order * log_ratio.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(p: &[f64], q: &[f64]) -> FinitePair {
        FinitePair::new(p, q).unwrap()
    }

    fn by_definition(order: f64, p: &[f64], q: &[f64]) -> f64 {
        let moment: f64 = p.iter().zip(q).map(|(p, q)| p.powf(order) * q.powf(1.0 - order)).sum();
        moment.ln() / (order - 1.0)
    }

    #[test]
    fn the_larger_direction_by_its_definition() {
        let (p, q) = ([0.5, 0.375, 0.125], [0.25, 0.25, 0.5]);
        for order in [1.2, 2.0, 7.5, 60.0] {
            let expected = f64::max(by_definition(order, &p, &q), by_definition(order, &q, &p));
            let got = rdp(order, &pair(&p, &q));
            assert!((got / expected - 1.0).abs() < 1e-12, "{order}: {got} {expected}");
        }
        // The largest log ratio is the limit.
        assert!((rdp(1e6, &pair(&p, &q)) - 4f64.ln()).abs() < 1e-5);
    }

    #[test]
    fn laws_that_nearly_agree_keep_their_digits() {
        let step = 1.0 / f64::from(1 << 30);
        let (p, q) = ([0.5 + step, 0.5 - step], [0.5, 0.5]);
        // 1/(a-1) ln(1 + a(a-1)/2 4 step^2 (1 + O(step^2)))
        let got = rdp(3.0, &pair(&p, &q));
        assert!((got / (6.0 * step * step) - 1.0).abs() < 1e-10, "{got}");
    }

    #[test]
    fn an_outcome_of_one_law_alone_is_infinite() {
        assert_eq!(rdp(2.0, &pair(&[0.5, 0.5], &[1.0, 0.0])), f64::INFINITY);
        assert_eq!(rdp(2.0, &pair(&[1.0, 0.0], &[0.5, 0.5])), f64::INFINITY);
        assert_eq!(rdp(2.0, &pair(&[0.5, 0.5], &[0.5, 0.5])), 0.0);
    }

    #[test]
    fn series_and_direct_form_meet() {
        for order in [1.01, 1.7, 12.0, 1e4] {
            for sign in [1.0, -1.0] {
                let loss = sign * 0.25 / order;
                let (inside, outside) =
                    (moment_excess(order, loss * (1.0 - 1e-12)), moment_excess(order, loss * (1.0 + 1e-12)));
                assert!((inside / outside - 1.0).abs() < 1e-11, "{order} {inside} {outside}");
            }
        }
    }
}
