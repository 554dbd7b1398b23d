//! k-ary randomised response.

/// Returns the Renyi divergence of order `order >= 1` of the answers of one record that changes.
///
/// # Formula
/// With `t = 1 - noise + noise/k` the probability of the true answer and `f = noise/k` that of any other,
///
/// ```text
/// 1/(a-1) ln( t^a f^(1-a) + f^a t^(1-a) + (k-2) f ),    a = order;    (t - f) ln(t/f) at a = 1.
/// ```
///
/// With `y = (a-1) ln(t/f)` the sum exceeds 1 by `2 (t+f) sinh^2(y/2) + (t-f) sinh y`, in which nothing cancels.
pub(crate) fn rdp(order: f64, buckets: u64, noise: f64) -> f64 {
    let buckets = buckets as f64;
    let other = noise / buckets;
    let advantage = 1.0 - noise;
    let own = other + advantage;
    let loss = (advantage / other).ln_1p();
    let excess_order = order - 1.0;
    if excess_order == 0.0 {
        return advantage * loss;
    }
    let y = excess_order * loss;
    if y > 20.0 {
        let neither = noise * ((buckets - 2.0) / buckets);
        return loss + (own + neither * (-y).exp() + other * (-2.0 * y).exp()).ln() / excess_order;
    }
    let half = (0.5 * y).sinh();
    (2.0 * (own + other) * half * half + advantage * y.sinh()).ln_1p() / excess_order
}

#[cfg(test)]
mod tests {
    use super::rdp;
    use crate::rdp::pure;

    #[test]
    fn two_buckets_are_the_pair_that_dominates_pure_guarantees() {
        for (order, epsilon) in [(1.5, 0.3), (2.0, 2.0), (40.0, 1.0), (1e5, 0.01), (1.0 + 1e-7, 1.0)] {
            let noise = 2.0 / (1.0 + f64::exp(epsilon));
            let (got, expected) = (rdp(order, 2, noise), pure::rdp(order, epsilon));
            assert!((got / expected - 1.0).abs() < 1e-9, "{order} {epsilon}: {got} {expected}");
        }
    }

    #[test]
    fn by_its_definition() {
        let (order, buckets, noise) = (3.5f64, 7u64, 0.4f64);
        let other = noise / 7.0;
        let own = 1.0 - noise + other;
        let moment =
            own.powf(order) * other.powf(1.0 - order) + other.powf(order) * own.powf(1.0 - order) + 5.0 * other;
        assert!((rdp(order, buckets, noise) - moment.ln() / (order - 1.0)).abs() < 1e-13);
        assert!((rdp(60.0, buckets, noise) - rdp(60.0 + 1e-9, buckets, noise)).abs() < 1e-9);
        assert_eq!(rdp(2.0, 4, 1.0), 0.0);
    }

    #[test]
    fn branches_meet() {
        let (buckets, noise) = (5, 0.2);
        let order = 1.0 + 20.0 / (0.8f64 / 0.04).ln_1p();
        let (below, above) = (rdp(order * (1.0 - 1e-12), buckets, noise), rdp(order * (1.0 + 1e-12), buckets, noise));
        assert!((below / above - 1.0).abs() < 1e-11, "{below} {above}");
    }
}
