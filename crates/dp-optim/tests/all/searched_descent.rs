//! The cost of a private line search, against values computed elsewhere.

use crate::support::{close, golden_family, number};
use dp_accountant::rdp::{RdpCurve, poisson_sampled, poisson_sampled_as_published};
use dp_accountant::{Delta, DpEvent, Epsilon, RdpOrder, SamplingRate, ZeroOut, bound};
use dp_mechanisms::{AboveThreshold, LInfSensitivity, PrivacyEvent};
use serde_json::Value;

fn at(event: &DpEvent, case: &Value) -> f64 {
    RdpCurve::new(event).unwrap().at(RdpOrder::new(number(&case["alpha"])).unwrap())
}

/// Queries in one interval cost `ε₁ + ε₂`, with half the noise of general ones; the Renyi curve is that of randomised
/// response.
#[test]
fn noisy_backtracking() {
    for case in golden_family("noisybtls_laplace") {
        let (id, expected) = (case["id"].as_str().unwrap(), &case["range_bounded"]);
        let epsilon = |name: &str| Epsilon::new(number(&case[name])).unwrap();
        let (eps1, eps2) = (epsilon("eps1"), epsilon("eps2"));
        let any = AboveThreshold::from_split(LInfSensitivity::<ZeroOut>::new(1.0).unwrap(), eps1, eps2, 1).unwrap();
        let event = any.range_bounded().unwrap().event();
        let epsilon = bound::epsilon(&event, Delta::ZERO).unwrap().value;
        close(epsilon, number(&expected["pure_dp"]), 1e-12, id);
        close(at(&event, &case), number(&expected["rr_pure"]), 1e-9, id);
        // For general queries the same noise gives a weaker guarantee.
        let generic = bound::epsilon(&any.event(), Delta::ZERO).unwrap().value;
        close(generic, eps1.get() + eps2.get(), 1e-12, id);
        close(number(&case["generic"]["pure_dp"]), eps1.get() + 2.0 * eps2.get(), 1e-12, id);
    }
}

/// Erratum E-7: a gradient and a search on the *same* sample cost more than two amplified releases; the charge is correct for
/// separate fresh samples.
#[test]
fn a_shared_batch_costs_more_than_two_samples() {
    for case in golden_family("counterexamples").into_iter().filter(|case| case["id"] == "ce-shared-batch") {
        let q = number(&case["q"]);
        let gaussian = |name: &str| DpEvent::PoissonSampled {
            sampling_rate: q,
            event: Box::new(DpEvent::Gaussian { std_dev: number(&case[name]), sensitivity: 1.0 }),
        };
        let both = at(&gaussian("noise_multiplier_1"), &case) + at(&gaussian("noise_multiplier_2"), &case);
        close(both, number(&case["sum_of_amplified"]), 1e-9, "fresh samples");
        // Both on one sample: the Gaussian of both, sampled once.
        let precision: f64 =
            ["noise_multiplier_1", "noise_multiplier_2"].map(|name| number(&case[name]).powi(-2)).iter().sum();
        let joint = DpEvent::PoissonSampled {
            sampling_rate: q,
            event: Box::new(DpEvent::Gaussian { std_dev: precision.sqrt().recip(), sensitivity: 1.0 }),
        };
        close(at(&joint, &case), number(&case["true_joint"]), 1e-9, "one sample");
        assert!(number(&case["true_joint"]) > both);
    }
}

/// Returns the largest log-ratio of the probabilities of an answer to a search's queries, for a record whose losses lie in
/// `[least, 1]`: `u` at the start of the search, the same for all queries, and `v_i` at its candidates, each at an end of the
/// range. Tries several levels of the other records' queries, and both directions.
fn most_told(search: &AboveThreshold<ZeroOut>, least: f64) -> f64 {
    const CANDIDATES: usize = 4;
    let mut most = 0.0f64;
    let levels = [-12.0, -6.0, -2.0, 0.0, 4.0, 8.0];
    for (first, last) in levels.into_iter().flat_map(|first| levels.map(|last| (first, last))) {
        let mut without = vec![first; CANDIDATES];
        without[CANDIDATES - 1] = last;
        let of_others = search.first_answer(&without, 0.0).unwrap();
        for (ends, start) in (0..1u32 << CANDIDATES).flat_map(|ends| [(ends, least), (ends, 1.0)]) {
            let loss = |i: usize| if ends >> i & 1 == 1 { 1.0 } else { least };
            let with: Vec<f64> = without.iter().enumerate().map(|(i, query)| query + start - loss(i)).collect();
            let with_it = search.first_answer(&with, 0.0).unwrap();
            // Answers of tiny probability are not computed to enough digits.
            let told = of_others.iter().zip(&with_it).filter(|&(p, q)| p.min(*q) > 1e-7);
            most = told.fold(most, |most, (p, q)| most.max((p / q).ln().abs()));
        }
    }
    most
}

/// Erratum E-3: the search of Theorem 5.1 needs losses from 0 to Δ. For losses from -Δ to Δ, which the theorem allows, the
/// privacy loss exceeds the claim. For the former it is smaller than published: `ε₁ + ε₂`, three quarters of the claim at the
/// published split.
#[test]
fn a_search_over_losses_of_both_signs_tells_more_than_is_promised() {
    for promised in [1.0f64, 4.0] {
        // The published split: half of epsilon for the threshold, and the other half for a query's shift of two sensitivities.
        let half = Epsilon::new(promised / 2.0).unwrap();
        let search = AboveThreshold::from_split(LInfSensitivity::<ZeroOut>::new(1.0).unwrap(), half, half, 1).unwrap();
        let kept = search.range_bounded().unwrap();
        let charged = bound::epsilon(&kept.event(), Delta::ZERO).unwrap().value;
        let told = most_told(&kept, 0.0);
        assert!(told <= charged * (1.0 + 1e-6), "{promised}: {told} above {charged}");
        assert!(told > 0.9 * charged, "{promised}: {told} of {charged}");
        let of_printed = most_told(&search, 0.0);
        assert!(of_printed <= 0.75 * promised * (1.0 + 1e-6) && of_printed > 0.65 * promised, "{of_printed}");
        let of_both_signs = most_told(&search, -1.0);
        assert!(of_both_signs > 1.3 * promised, "{promised}: {of_both_signs}");
    }
}

fn counter_example(id: &str) -> Option<Value> {
    golden_family("counterexamples").into_iter().find(|case| case["id"] == id)
}

/// Renyi divergence of normal laws with different variances, `ασ₂² + (1-α)σ₁² > 0`:
/// `ln(σ₂/σ₁) + ln(σ₂²/σ_α²) / (2(α-1)) + α (μ₁-μ₂)² / (2σ_α²)`.
fn normal_divergence(alpha: f64, first: (f64, f64), second: (f64, f64)) -> f64 {
    let mixed = alpha * second.1.powi(2) + (1.0 - alpha) * first.1.powi(2);
    (second.1 / first.1).ln()
        + (second.1.powi(2) / mixed).ln() / (2.0 * (alpha - 1.0))
        + alpha * (first.0 - second.0).powi(2) / (2.0 * mixed)
}

/// Erratum E-2: a noisy sum divided by the number of records in the batch is not a Gaussian mechanism of sensitivity C, and
/// reveals that number. (The divisors here are public: see the test `divisors_are_public` of the recipe.)
#[test]
fn a_mean_over_the_batch_that_was_drawn_is_no_gaussian_mechanism() {
    if let Some(case) = counter_example("ce-realised-batch-mean") {
        let (rho, alpha) = (number(&case["rho"]), number(&case["alpha"]));
        let (records, more) = (number(&case["batch_d"]), number(&case["batch_d_prime"]));
        let noise = (2.0 * rho).sqrt().recip();
        let claimed = DpEvent::Gaussian { std_dev: noise, sensitivity: 1.0 };
        close(at(&claimed, &case), number(&case["claimed"]), 1e-12, "claimed");
        // All gradients are C, one more is -C.
        let (without, with) = ((1.0, noise / records), ((records - 1.0) / more, noise / more));
        let truth = [(without, with), (with, without)].map(|(p, q)| normal_divergence(alpha, p, q));
        close(truth[0].max(truth[1]), number(&case["true_at_least"]), 1e-9, "realised");
        assert!(number(&case["true_at_least"]) > at(&claimed, &case));
        // With a public divisor, the same records move the sum by C and change nothing else.
        let public = normal_divergence(alpha, (records, noise), (records - 1.0, noise));
        close(public, at(&claimed, &case), 1e-12, "public divisor");
    }
    if let Some(case) = counter_example("ce-realised-batch-variance") {
        let (dim, batch) = (number(&case["p"]), number(&case["batch"]));
        // The variance of any coordinate alone reveals the number of records.
        let ratio = batch / (batch + 1.0);
        let kl = dim * 0.5 * (ratio.powi(2) - 1.0 - 2.0 * ratio.ln());
        let other = dim * 0.5 * (ratio.powi(-2) - 1.0 + 2.0 * ratio.ln());
        let known = number(&case["kl"]);
        assert!([kl, other].iter().any(|kl| (kl / known - 1.0).abs() < 0.01), "{kl} or {other} instead of {known}");
        assert!(kl.min(other) > 0.0);
    }
}

/// Erratum E-8: the published lemma on sampling charges for an uninformative search; a run would stop before it began.
#[test]
fn sampling_never_costs_more_than_what_is_sampled() {
    let Some(case) = counter_example("ce-lemma24-floor") else { return };
    let rate = SamplingRate::new(number(&case["q"])).unwrap();
    let (order, base) = (case["alpha"].as_u64().unwrap() as u32, number(&case["base_rdp"]));
    let published = poisson_sampled_as_published(order, rate, |_| base);
    close(published, number(&case["lemma24"]), 1e-9, "as printed");
    let alpha = RdpOrder::new(f64::from(order)).unwrap();
    close(poisson_sampled(alpha, rate, |_| base), number(&case["correct"]), 1e-12, "correct");
    let rate = SamplingRate::new(0.1).unwrap();
    // The published defaults at epsilon 0.1: a search of 0.001, which the lemma multiplies by hundreds.
    let search = DpEvent::PureDp { epsilon: 0.001 };
    let order = RdpOrder::new(100.0).unwrap();
    let own = RdpCurve::new(&search).unwrap().at(order);
    let printed = poisson_sampled_as_published(100, rate, |order| search_at(&search, order));
    let sampled = DpEvent::PoissonSampled { sampling_rate: rate.get(), event: Box::new(search.clone()) };
    let ours = RdpCurve::new(&sampled).unwrap().at(order);
    assert!(printed > 200.0 * own, "{printed} against {own}");
    assert!(ours < 0.02 * own, "{ours} against {own}");
}

fn search_at(event: &DpEvent, order: f64) -> f64 {
    RdpCurve::new(event).unwrap().at(RdpOrder::new(order).unwrap())
}

/// Erratum E-10: the formula for an added or removed record does not cover a replaced record, for Poisson batches too.
#[test]
fn replacing_in_a_poisson_batch_costs_more_than_removing() {
    let Some(case) = counter_example("ce-poisson-replace") else { return };
    let (q, noise) = (number(&case["q"]), number(&case["noise_multiplier"]));
    let gaussian = DpEvent::Gaussian { std_dev: noise, sensitivity: 1.0 };
    let sampled = DpEvent::PoissonSampled { sampling_rate: q, event: Box::new(gaussian) };
    close(at(&sampled, &case), number(&case["addremove"]), 1e-9, "add or remove");
    // A record at +1 replaced by one at -1: `ln E_Q[(P/Q)^a]` by summation over a fine grid.
    let order = number(&case["alpha"]);
    let density = |x: f64, mean: f64| (-0.5 * ((x - mean) / noise).powi(2)).exp();
    let mixture = |x: f64, mean: f64| (1.0 - q) * density(x, 0.0) + q * density(x, mean);
    let (width, step) = (40_000, 1e-3);
    let grid = (-width..=width).map(|k| f64::from(k) * step);
    let (sum, mass) = grid.fold((0.0, 0.0), |(sum, mass), x| {
        let (p, q) = (mixture(x, 1.0), mixture(x, -1.0));
        (if p > 0.0 && q > 0.0 { sum + p * (p / q).powf(order - 1.0) } else { sum }, mass + q)
    });
    let truth = (sum / mass).ln() / (order - 1.0);
    close(truth, number(&case["true_replace"]), 1e-6, "replaced");
    assert!(truth > at(&sampled, &case));
    // For a replaced record the event states and charges it.
    let replaced = at(&DpEvent::AddRemoveTwice { event: Box::new(sampled) }, &case);
    assert!(replaced >= truth * (1.0 - 1e-6), "{replaced} {truth}");
}

/// Erratum E-9: spending until *all* orders are exhausted keeps the budget of no order. A public coin chooses between two
/// releases, each within the budget of some order; the choice is within the budget of none.
#[test]
fn stopping_when_the_last_order_is_exhausted_keeps_no_order() {
    let left = |order: f64| 1.0 - 1e5f64.ln() / (order - 1.0);
    let gaussian = DpEvent::Zcdp { rho: 0.020_811_8 };
    let response = DpEvent::RandomizedResponse { buckets: 2, noise: 2.0 / (1.0 + 0.97f64.exp()) };
    let (gaussian, response) = (RdpCurve::new(&gaussian).unwrap(), RdpCurve::new(&response).unwrap());
    let of = |curve: &RdpCurve, order: f64| curve.at(RdpOrder::new(order).unwrap());
    assert!(of(&gaussian, 25.0) <= left(25.0) + 1e-6 && of(&response, 400.0) <= left(400.0));
    let excess = |order: f64| {
        let moment = |curve: &RdpCurve| ((order - 1.0) * (of(curve, order) - left(order))).exp();
        (0.5 * moment(&gaussian) + 0.5 * moment(&response)).ln() / (order - 1.0)
    };
    let orders = (0..4000).map(|step| 1.05 + 0.25 * f64::from(step));
    let (least, at) =
        orders.map(|order| (excess(order), order)).fold((f64::INFINITY, 0.0), |a, b| if b.0 < a.0 { b } else { a });
    assert!((least - 0.2148).abs() < 5e-4 && (40.0..50.0).contains(&at), "{least} at {at}");
    // For one order fixed in advance, the spending stays within the budget.
    assert!(excess(25.0) > 0.0 && of(&response, 25.0) > left(25.0));
}

/// Selection in place of backtracking: `e²/8`, and exactly slightly less.
#[test]
fn range_bounded_selection() {
    for case in golden_family("range_bounded_em") {
        let (id, epsilon) = (case["id"].as_str().unwrap(), number(&case["eps_br"]));
        let (found, published) = (at(&DpEvent::BoundedRange { epsilon }, &case), number(&case["rdp_zcdp"]));
        assert!(found <= published * (1.0 + 1e-12), "{id}: {found} of {published}");
        // The worst pair with two losses at this distance attains it.
        let alpha = number(&case["alpha"]);
        let pair = |i: u32| {
            let upper = epsilon * f64::from(i) / 4000.0;
            let q = (1.0 - (upper - epsilon).exp()) / (upper.exp() - (upper - epsilon).exp());
            let excess = q * (alpha * upper).exp_m1() + (1.0 - q) * (alpha * (upper - epsilon)).exp_m1();
            excess.ln_1p() / (alpha - 1.0)
        };
        let best = (1..4000).map(pair).fold(0.0, f64::max);
        assert!(found >= best * (1.0 - 1e-9) - 1e-15 && found <= best * (1.0 + 1e-4), "{id}: {found} {best}");
    }
}

/// A line search on a Poisson sample.
#[test]
fn amplified_searches() {
    for case in golden_family("amp_pure") {
        let (id, epsilon) = (case["id"].as_str().unwrap(), number(&case["eps"]));
        let event = Box::new(DpEvent::PureDp { epsilon });
        close(at(&event, &case), number(&case["rr_unamplified"]), 1e-9, id);
        let sampled = DpEvent::PoissonSampled { sampling_rate: number(&case["q"]), event };
        let (found, expected) = (at(&sampled, &case), number(&case["rdp"]));
        // Never below the dominating pair's divergence.
        assert!(found >= expected * (1.0 - 1e-9), "{id}: {found} below {expected}");
        assert!(found <= number(&case["rr_unamplified"]) * (1.0 + 1e-12), "{id}: {found}");
    }
}
