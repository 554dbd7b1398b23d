//! Properties of every accountant, as one function run for each.

use super::*;
use crate::adjacency::{AddRemoveOne, ReplaceOne, ZeroOut};
use crate::exact::ExactAccountant;
use crate::gaussian;
use crate::gdp::GdpAccountant;
use crate::rdp::RdpAccountant;
use crate::zcdp::ZcdpAccountant;

const DELTAS: [f64; 5] = [0.3, 1e-3, 1e-6, 1e-30, 1e-300];

/// Events that Renyi divergences and zCDP both cover, under any relation.
fn of_any_relation() -> Vec<DpEvent> {
    vec![
        DpEvent::Gaussian { std_dev: 3.0, sensitivity: 1.0 },
        DpEvent::Laplace { scale: 10.0, sensitivity: 1.0 },
        DpEvent::LaplaceBall { scale: 2.0, sensitivity: 0.3, dim: 5 },
        DpEvent::PureDp { epsilon: 0.2 },
        DpEvent::Zcdp { rho: 0.01 },
        DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![0.1, 0.4], weights: vec![0.75, 0.25] },
    ]
}

fn repeated(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(event), count }
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn agree<C: Accountant<A>, A: Adjacency>(a: &C, b: &C, what: &str) {
    for delta in DELTAS {
        let delta = Delta::new(delta).unwrap();
        assert!(close(a.epsilon(delta), b.epsilon(delta)), "{what}: {} {}", a.epsilon(delta), b.epsilon(delta));
    }
}

/// `supported` are events that the accountant covers, `unsupported` those for which it has no theorem.
fn contract<C: Accountant<A> + Default + Clone + PartialEq + core::fmt::Debug, A: Adjacency>(
    supported: &[DpEvent],
    unsupported: &[DpEvent],
) {
    let composed = |events: &[(DpEvent, u64)]| {
        let mut accountant = C::default();
        for (event, count) in events {
            accountant.compose(event, *count).unwrap();
        }
        accountant
    };
    let nothing = C::default();
    assert_eq!(nothing.epsilon(Delta::ZERO), 0.0);
    assert_eq!(nothing.delta(0.0).unwrap(), 0.0);
    for event in [DpEvent::NoOp, DpEvent::Composed { events: vec![] }, repeated(supported[0].clone(), 0)] {
        agree(&composed(&[(event, 7)]), &nothing, "what releases nothing costs nothing");
    }

    let infinite = composed(&[(supported[0].clone(), 1), (repeated(DpEvent::NonPrivate, 2), 1)]);
    assert_eq!(infinite.epsilon(Delta::new(0.9).unwrap()), f64::INFINITY);
    assert_eq!(infinite.delta(100.0).unwrap(), 1.0);
    assert!(infinite.guarantee(Delta::new(0.1).unwrap()).is_err());

    for event in supported {
        let once = composed(&[(event.clone(), 1)]);
        let thrice = composed(&[(event.clone(), 3)]);
        agree(&thrice, &composed(&[(event.clone(), 1), (event.clone(), 2)]), "counts add");
        agree(&thrice, &composed(&[(repeated(event.clone(), 3), 1)]), "self-composition is a count");
        let nested = DpEvent::Composed { events: vec![event.clone(), repeated(event.clone(), 2)] };
        agree(&thrice, &composed(&[(nested, 1)]), "nesting does not matter");
        let mut before = f64::INFINITY;
        for delta in [1e-300, 1e-30, 1e-6, 1e-3, 0.3, 0.999_999] {
            let delta = Delta::new(delta).unwrap();
            let (one, three) = (once.epsilon(delta), thrice.epsilon(delta));
            assert!(one <= three && three <= before, "{event:?} at {delta}: {one} {three} {before}");
            assert!(!one.is_nan() && one.is_finite());
            before = three;
            // delta() and epsilon() are inverse to each other.
            if three > 0.0 {
                // Slightly above, because next to a pure bound the curve falls from delta to 0 within rounding.
                let back = thrice.delta(three * (1.0 + 1e-9)).unwrap();
                assert!(back <= delta.get() * (1.0 + 1e-6), "{event:?}: {back} > {delta}");
                assert!(thrice.delta(three * 0.99).unwrap() >= delta.get() * 0.999_999, "{event:?} at {delta}");
            }
        }
        // Infinite, unless the accountant knows a pure bound.
        assert!(once.epsilon(Delta::ZERO) >= once.epsilon(Delta::new(1e-300).unwrap()));
    }

    let forwards: Vec<(DpEvent, u64)> = supported.iter().cloned().map(|event| (event, 2)).collect();
    let backwards: Vec<(DpEvent, u64)> = forwards.iter().rev().cloned().collect();
    agree(&composed(&forwards), &composed(&backwards), "order does not matter");

    for bad in unsupported {
        for event in
            [bad.clone(), repeated(bad.clone(), 2), DpEvent::Composed { events: vec![DpEvent::NoOp, bad.clone()] }]
        {
            refuses(&composed(&forwards), &event);
        }
    }
    for bad in [
        DpEvent::Gaussian { std_dev: -1.0, sensitivity: 1.0 },
        DpEvent::Gaussian { std_dev: 0.0, sensitivity: 1.0 },
        DpEvent::Gaussian { std_dev: f64::NAN, sensitivity: 1.0 },
        DpEvent::Gaussian { std_dev: 1.0, sensitivity: 0.0 },
        DpEvent::Laplace { scale: f64::INFINITY, sensitivity: 1.0 },
        DpEvent::LaplaceBall { scale: 1.0, sensitivity: 1.0, dim: 0 },
        DpEvent::PureDp { epsilon: f64::NAN },
        DpEvent::PureDp { epsilon: -0.1 },
        DpEvent::ApproximateDp { epsilon: 0.1, delta: 1.5 },
        DpEvent::Zcdp { rho: f64::INFINITY },
        DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![1.0], weights: vec![0.5] },
    ] {
        refuses(&composed(&forwards), &bad);
        refuses(&nothing, &DpEvent::Composed { events: vec![supported[0].clone(), bad] });
    }
    for epsilon in [f64::NAN, -1.0, f64::INFINITY] {
        assert!(nothing.delta(epsilon).is_err() && infinite.delta(epsilon).is_err());
    }

    let mut log = EventLog::<A>::new();
    for (event, count) in &forwards {
        log.record(event.clone(), *count);
    }
    let mut from_log = C::default();
    from_log.compose_log(&log).unwrap();
    agree(&from_log, &composed(&forwards), "a log is its events");
    log.mark_not_private();
    from_log.compose_log(&log).unwrap();
    assert_eq!(from_log.epsilon(Delta::new(0.5).unwrap()), f64::INFINITY);
}

/// A refused event leaves the accountant unchanged.
fn refuses<C: Accountant<A> + Clone + PartialEq + core::fmt::Debug, A: Adjacency>(before: &C, event: &DpEvent) {
    let mut after = before.clone();
    assert!(after.compose(event, 1).is_err(), "{event:?} was accepted");
    assert_eq!(after, *before, "{event:?} was recorded in part");
}

const APPROXIMATE: DpEvent = DpEvent::ApproximateDp { epsilon: 0.1, delta: 1e-9 };

fn laplace(scale: f64) -> Box<DpEvent> {
    Box::new(DpEvent::Laplace { scale, sensitivity: 1.0 })
}

fn gaussian_noise(std_dev: f64) -> Box<DpEvent> {
    Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 })
}

#[test]
fn renyi_accountant_obeys_the_contract() {
    let fixed = |sampling_rate, event| DpEvent::SampledWithoutReplacement { sampling_rate, event };
    let mut supported = of_any_relation();
    supported.extend([
        fixed(0.1, gaussian_noise(3.0)),
        fixed(0.1, laplace(3.0)),
        DpEvent::AddRemoveTwice {
            event: Box::new(DpEvent::PoissonSampled { sampling_rate: 0.05, event: gaussian_noise(2.0) }),
        },
        DpEvent::ParallelByValue { events: vec![*laplace(5.0), *gaussian_noise(4.0)] },
    ]);
    let refused = [APPROXIMATE, DpEvent::PoissonSampled { sampling_rate: 0.1, event: gaussian_noise(1.0) }];
    contract::<RdpAccountant<ReplaceOne>, _>(&supported, &refused);
}

#[test]
fn renyi_accountant_obeys_the_contract_under_add_remove() {
    let poisson = |sampling_rate, event| DpEvent::PoissonSampled { sampling_rate, event };
    let mut supported = of_any_relation();
    supported.extend([
        poisson(0.01, gaussian_noise(1.0)),
        poisson(0.3, laplace(3.0)),
        poisson(0.2, Box::new(DpEvent::Composed { events: vec![*laplace(5.0), poisson(0.5, gaussian_noise(4.0))] })),
        DpEvent::Parallel { events: vec![poisson(0.01, gaussian_noise(1.0)), *laplace(4.0)] },
        DpEvent::Group { size: 3, event: Box::new(poisson(0.01, gaussian_noise(2.0))) },
    ]);
    let refused = [APPROXIMATE, DpEvent::SampledWithoutReplacement { sampling_rate: 0.1, event: gaussian_noise(1.0) }];
    contract::<RdpAccountant<AddRemoveOne>, _>(&supported, &refused);
}

#[test]
fn zcdp_accountant_obeys_the_contract() {
    contract::<ZcdpAccountant<ZeroOut>, _>(&of_any_relation(), &[APPROXIMATE]);
}

#[test]
fn gaussian_dp_accountant_obeys_the_contract() {
    let supported = [
        *gaussian_noise(3.0),
        DpEvent::Gdp { mu: 0.25 },
        DpEvent::Group { size: 3, event: gaussian_noise(20.0) },
        repeated(DpEvent::Gdp { mu: 0.01 }, 100),
    ];
    let unsupported = [
        APPROXIMATE,
        *laplace(1.0),
        DpEvent::PureDp { epsilon: 1.0 },
        DpEvent::Zcdp { rho: 0.5 },
        DpEvent::PoissonSampled { sampling_rate: 0.1, event: gaussian_noise(1.0) },
        DpEvent::AmplifiedByIteration { sensitivities: vec![1.0], std_devs: vec![1.0], contraction: 1.0 },
    ];
    contract::<GdpAccountant<AddRemoveOne>, _>(&supported, &unsupported);
    let iterated = DpEvent::AmplifiedByIteration { sensitivities: vec![1.0], std_devs: vec![4.0], contraction: 1.0 };
    contract::<GdpAccountant<ReplaceOne>, _>(core::slice::from_ref(&iterated), &[APPROXIMATE]);
    contract::<GdpAccountant<ZeroOut>, _>(&[iterated], &[APPROXIMATE]);
}

#[test]
fn exact_accountant_obeys_the_contract() {
    let gaussian = Box::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 });
    let supported = [
        DpEvent::Gaussian { std_dev: 3.0, sensitivity: 1.0 },
        DpEvent::Gdp { mu: 0.2 },
        DpEvent::PureDp { epsilon: 0.2 },
        DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![0.1, 0.4], weights: vec![0.75, 0.25] },
        repeated(DpEvent::PoissonSampled { sampling_rate: 0.01, event: gaussian }, 1000),
    ];
    let unsupported =
        [DpEvent::Zcdp { rho: 0.01 }, DpEvent::RenyiDp { orders: vec![2.0, 8.0], divergences: vec![0.1, 0.4] }];
    contract::<ExactAccountant<AddRemoveOne>, _>(&supported, &unsupported);
}

#[test]
fn the_smallest_guarantee_is_not_zero() {
    let guarantee = RdpAccountant::<ReplaceOne>::new().guarantee(Delta::new(1e-5).unwrap()).unwrap();
    assert_eq!(guarantee.epsilon(), Epsilon::MIN);
}

proptest::proptest! {
    #[test]
    fn no_accountant_is_below_the_exact_gaussian(log_mu in -5.0f64..3.0, log_delta in -300.0f64..-0.1, count in 1u64..1000) {
        let mu = log_mu.exp();
        let event = DpEvent::Gaussian { std_dev: 1.0, sensitivity: mu };
        let delta = Delta::new(log_delta.exp()).unwrap();
        let exact = gaussian::epsilon(mu * (count as f64).sqrt(), delta).unwrap();
        let mut renyi = RdpAccountant::<ReplaceOne>::new();
        renyi.compose(&event, count).unwrap();
        let mut zcdp = ZcdpAccountant::<ReplaceOne>::new();
        zcdp.compose(&event, count).unwrap();
        proptest::prop_assert!(renyi.epsilon(delta) >= exact * (1.0 - 1e-10) - 1e-12);
        proptest::prop_assert!(zcdp.epsilon(delta) >= exact * (1.0 - 1e-10) - 1e-12);
        // The Renyi bound is at most the simple conversion of zCDP.
        let simple = crate::zcdp::epsilon_simple(0.5 * mu * mu * count as f64, delta).unwrap();
        proptest::prop_assert!(renyi.epsilon(delta) <= simple);
    }

    #[test]
    fn renyi_is_never_below_the_exact_laplace_curve(log_x in -5.0f64..4.0, log_delta in -300.0f64..-0.1) {
        let x = log_x.exp();
        let delta = Delta::new(log_delta.exp()).unwrap();
        let mut renyi = RdpAccountant::<ReplaceOne>::new();
        renyi.compose(&DpEvent::Laplace { scale: 1.0, sensitivity: x }, 1).unwrap();
        let epsilon = renyi.epsilon(delta);
        proptest::prop_assert!(epsilon >= crate::laplace::epsilon(x, delta.get()) * (1.0 - 1e-10) - 1e-12);
    }
}
