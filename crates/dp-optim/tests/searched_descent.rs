//! What a private line search costs, against values computed elsewhere.

mod support;

use dp_accountant::rdp::RdpCurve;
use dp_accountant::{Delta, DpEvent, Epsilon, RdpOrder, ZeroOut, bound};
use dp_mechanisms::{AboveThreshold, LInfSensitivity, PrivacyEvent};
use serde_json::Value;
use support::{close, golden_family, number};

fn at(event: &DpEvent, case: &Value) -> f64 {
    RdpCurve::new(event).unwrap().at(RdpOrder::new(number(&case["alpha"])).unwrap())
}

/// Queries in one interval cost `ε₁ + ε₂`, at half the noise of others; its Renyi curve is that of randomised response.
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
        // Of queries that move anyhow the same noise says less.
        let generic = bound::epsilon(&any.event(), Delta::ZERO).unwrap().value;
        close(generic, eps1.get() + eps2.get(), 1e-12, id);
        close(number(&case["generic"]["pure_dp"]), eps1.get() + 2.0 * eps2.get(), 1e-12, id);
    }
}

/// Erratum E-7: a gradient and a search on the *same* sample cost more than two amplified releases; what is charged is
/// right for the fresh sample that each draws.
#[test]
fn a_shared_batch_costs_more_than_two_samples() {
    for case in golden_family("counterexamples").into_iter().filter(|case| case["id"] == "ce-shared-batch") {
        let (q, alpha) = (number(&case["q"]), number(&case["alpha"]));
        let gaussian = |name: &str| DpEvent::PoissonSampled {
            sampling_rate: q,
            event: Box::new(DpEvent::Gaussian { std_dev: number(&case[name]), sensitivity: 1.0 }),
        };
        let both = at(&gaussian("noise_multiplier_1"), &case) + at(&gaussian("noise_multiplier_2"), &case);
        close(both, number(&case["sum_of_amplified"]), 1e-9, "fresh samples");
        // Both on one sample: the Gaussian of both, sampled once.
        let joint = DpEvent::PoissonSampled {
            sampling_rate: q,
            event: Box::new(DpEvent::Gaussian { std_dev: 0.5f64.sqrt(), sensitivity: 1.0 }),
        };
        assert_eq!(alpha, 2.0);
        close(at(&joint, &case), number(&case["true_joint"]), 1e-9, "one sample");
        assert!(number(&case["true_joint"]) > 1.8 * both);
    }
}

/// Selection in place of backtracking: `e²/8`, and exactly a little less.
#[test]
fn range_bounded_selection() {
    for case in golden_family("range_bounded_em") {
        let (id, epsilon) = (case["id"].as_str().unwrap(), number(&case["eps_br"]));
        let (found, published) = (at(&DpEvent::BoundedRange { epsilon }, &case), number(&case["rdp_zcdp"]));
        assert!(found <= published && found > 0.8 * published.min(epsilon), "{id}: {found} of {published}");
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
