use super::*;
use crate::normal::upper_tail;

/// `P(noise > x)` and the density of the noise, both for a scale of one.
type Noise = (fn(f64) -> f64, fn(f64) -> f64);

const GAUSSIAN: Noise = (upper_tail, crate::normal::density);

const LAPLACE: Noise = (|x| if x > 0.0 { 0.5 * (-x).exp() } else { 1.0 - 0.5 * x.exp() }, |x| 0.5 * (-x.abs()).exp());

/// Queries that move in either direction.
fn any(threshold: f64, query: f64, max_queries: u64) -> Gaussian {
    Gaussian { threshold, query, max_queries, range_bounded: false }
}

/// Queries that move within one interval.
fn bounded(threshold: f64, query: f64, max_queries: u64) -> Gaussian {
    Gaussian { range_bounded: true, ..any(threshold, query, max_queries) }
}

/// Returns the law of the index of the first of `queries` above a threshold of 0, and the probability that there is none.
fn outcomes(noise: Noise, threshold_scale: f64, query_scale: f64, queries: &[f64], steps: i32) -> Vec<f64> {
    let (tail, density) = noise;
    let reach = 40.0;
    let step = 2.0 * reach / f64::from(steps);
    let mut law = vec![0.0; queries.len() + 1];
    for i in 0..steps {
        let z = -reach + (f64::from(i) + 0.5) * step;
        let mut weight = density(z) * step;
        if weight == 0.0 {
            continue;
        }
        for (k, query) in queries.iter().enumerate() {
            let above = tail((threshold_scale * z - query) / query_scale);
            law[k] += weight * above;
            weight *= tail((query - threshold_scale * z) / query_scale);
        }
        law[queries.len()] += weight;
    }
    law
}

fn divergence(p: &[f64], q: &[f64], order: f64) -> f64 {
    let moment: f64 = p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| p * (p / q).powf(order - 1.0)).sum();
    moment.ln() / (order - 1.0)
}

#[test]
fn the_published_gaussian_bound_without_a_number_of_queries_is_exceeded_and_ours_is_not() {
    // 2000 queries that rise slowly, alternating with neighbours one above and one below.
    let (threshold_std, query_std, order) = (5.0, 1.2, 2.0);
    let queries: Vec<f64> = (0..2000).map(|i| -22.0 + 36.0 * f64::from(i) / 1999.0).collect();
    let neighbours: Vec<f64> =
        queries.iter().enumerate().map(|(i, q)| if i % 2 == 0 { q + 1.0 } else { q - 1.0 }).collect();
    let law = |queries: &[f64]| outcomes(GAUSSIAN, threshold_std, query_std, queries, 4000);
    let exact = divergence(&law(&queries), &law(&neighbours), order);
    assert!((exact - 3.2297).abs() < 1e-3, "{exact}");
    let published = 0.5 * order * ((1.0 / threshold_std).powi(2) + (2.0 / query_std).powi(2));
    assert!((published - 2.8178).abs() < 1e-4 && exact > published);
    assert!(any(1.0 / threshold_std, 1.0 / query_std, 2000).rdp(order) >= exact);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    #[test]
    fn never_below_the_divergence_of_a_stream(
        queries in proptest::collection::vec((-3.0f64..3.0, -1.0f64..1.0), 1..7),
        threshold_scale in 0.4f64..4.0,
        query_scale in 0.4f64..4.0,
        order in 1.05f64..9.0,
    ) {
        let first: Vec<f64> = queries.iter().map(|(query, _)| *query).collect();
        let second: Vec<f64> = queries.iter().map(|(query, shift)| query + shift.signum()).collect();
        let count = first.len() as u64;
        let both = |noise: Noise| {
            let law = |queries: &[f64]| outcomes(noise, threshold_scale, query_scale, queries, 8000);
            let (p, q) = (law(&first), law(&second));
            divergence(&p, &q, order).max(divergence(&q, &p, order))
        };
        let (threshold, query) = (1.0 / threshold_scale, 2.0 / query_scale);
        let gaussian = both(GAUSSIAN);
        proptest::prop_assert!(gaussian <= any(threshold, 0.5 * query, count).rdp(order) + 1e-6, "{gaussian}");
        let laplace = both(LAPLACE);
        proptest::prop_assert!(laplace <= rdp_laplace(order, threshold, query) + 1e-4, "{laplace}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    #[test]
    fn queries_in_one_interval_are_never_below_the_divergence_of_a_stream(
        queries in proptest::collection::vec((-3.0f64..3.0, proptest::bool::ANY), 1..7),
        low in proptest::sample::select(vec![0.0, -1.0, -0.5, -0.2]),
        threshold_scale in 0.4f64..4.0,
        query_scale in 0.4f64..4.0,
        order in 1.05f64..9.0,
    ) {
        let first: Vec<f64> = queries.iter().map(|(query, _)| *query).collect();
        let second: Vec<f64> = queries.iter().map(|(query, up)| query + low + if *up { 1.0 } else { 0.0 }).collect();
        let law = |queries: &[f64]| outcomes(GAUSSIAN, threshold_scale, query_scale, queries, 8000);
        let (p, q) = (law(&first), law(&second));
        let found = divergence(&p, &q, order).max(divergence(&q, &p, order));
        let mechanism = bounded(threshold_scale.recip(), query_scale.recip(), first.len() as u64);
        proptest::prop_assert!(found <= mechanism.rdp(order) + 1e-6, "{found}");
        let general = Gaussian { range_bounded: false, ..mechanism };
        proptest::prop_assert!(mechanism.rdp(order) <= general.rdp(order) * (1.0 + 1e-12));
    }
}

/// The closed form of the vector's bound compared with a search over all vertices of the shifts, by the quadratic form itself.
#[test]
fn the_worst_vector_of_an_interval() {
    for (threshold, query, count) in [(0.5, 0.7, 1u64), (0.1, 0.9, 2), (2.0, 0.3, 6), (0.3, 0.3, 7), (1.0, 0.05, 9)] {
        let (s1, s2) = (1.0f64 / threshold, 1.0f64 / query);
        let c = s1 * s1 / (s2 * s2 + count as f64 * s1 * s1);
        let mut largest: f64 = 0.0;
        for moved in 0..=count {
            for share in 0..=20 {
                let x = f64::from(share) / 20.0;
                let (up, down) = (moved as f64, (count - moved) as f64);
                let (sum, squares) = (up * (1.0 - x) - down * x, up * (1.0 - x) * (1.0 - x) + down * x * x);
                largest = largest.max((squares - c * sum * sum) / (s2 * s2));
            }
        }
        let got = bounded(threshold, query, count).per_order();
        assert!((got / (0.5 * largest) - 1.0).abs() < 1e-12, "{threshold} {query} {count}: {got} {largest}");
    }
}

#[test]
fn one_query_is_one_gaussian() {
    // The threshold's and the query's noise add up, and the difference moves by one sensitivity.
    let got = any(0.5, 0.25, 1).rdp(3.0);
    assert!((got - 1.5 / (4.0 + 16.0)).abs() < 1e-14, "{got}");
}

#[test]
fn rho_covers_every_order() {
    for (threshold, query, count) in [(0.5, 0.5, 1), (0.1, 2.0, 3), (1.0, 0.01, 1_000_000), (0.3, 0.3, 40)] {
        for step in 0..60 {
            let order = 1.0 + (-6.0 + 0.3 * f64::from(step)).exp();
            for mechanism in [any(threshold, query, count), bounded(threshold, query, count)] {
                assert!(mechanism.rdp(order) <= order * mechanism.rho() * 1.0001);
            }
            assert!(rdp_laplace(order, threshold, query) <= order * rho_laplace(threshold, query) * 1.0001);
        }
    }
}
