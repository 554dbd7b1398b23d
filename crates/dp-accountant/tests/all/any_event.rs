//! Any tree, including one from a file, gives no panic, no NaN and no optimistic result, and satisfies the general laws.

use dp_accountant::{AdjacencyKind, Delta, DpEvent, MarginLoss, RdpOrder, Repetitions, bound, rdp::RdpCurve, zcdp};
use proptest::prelude::*;

/// Mostly typical numbers, sometimes extreme ones, rarely invalid ones.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-3.0f64..3.0).prop_map(f64::exp),
        3 => (-300.0f64..300.0).prop_map(f64::exp),
        1 => prop::sample::select(vec![
            0.0, -0.0, -1.0, 1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324,
        ]),
    ]
}

fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-20.0f64..0.0).prop_map(f64::exp),
        1 => prop::sample::select(vec![0.0, 1.0, -0.1, 1.1, f64::NAN, 1e-300, 1.0 - f64::EPSILON]),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..20, 2 => 0u64..1_000_000, 1 => any::<u64>()]
}

/// Masses that sum to about 1, or do not.
fn masses(length: usize) -> impl Strategy<Value = Vec<f64>> {
    (prop::collection::vec(0.0f64..1.0, length), prop::bool::weighted(0.9)).prop_map(|(mut masses, normalise)| {
        let sum: f64 = masses.iter().sum();
        if normalise && sum > 0.0 {
            masses.iter_mut().for_each(|mass| *mass /= sum);
        }
        masses
    })
}

fn leaf() -> impl Strategy<Value = DpEvent> {
    let margin_loss = prop_oneof![
        Just(MarginLoss::Logistic),
        number().prop_map(|width| MarginLoss::HuberSvm { width }),
        (number(), number()).prop_map(|(slope, curvature)| MarginLoss::BoundedSlope { slope, curvature }),
        number().prop_map(|width| MarginLoss::LogCosh { width }),
        any::<u32>().prop_map(|classes| MarginLoss::Softmax { classes }),
    ];
    let noisy = prop_oneof![
        Just(DpEvent::NoOp),
        Just(DpEvent::NonPrivate),
        (number(), number()).prop_map(|(std_dev, sensitivity)| DpEvent::Gaussian { std_dev, sensitivity }),
        (number(), number()).prop_map(|(scale, sensitivity)| DpEvent::Laplace { scale, sensitivity }),
        (number(), number(), count()).prop_map(|(scale, sensitivity, dim)| DpEvent::LaplaceBall {
            scale,
            sensitivity,
            dim
        }),
        (number(), number(), count()).prop_map(|(scale, sensitivity, dim)| DpEvent::DiscreteGaussian {
            scale,
            sensitivity,
            dim
        }),
        (number(), count()).prop_map(|(scale, sensitivity)| DpEvent::DiscreteLaplace { scale, sensitivity }),
        (count(), rate()).prop_map(|(buckets, noise)| DpEvent::RandomizedResponse { buckets, noise }),
    ];
    let claimed = prop_oneof![
        number().prop_map(|epsilon| DpEvent::PureDp { epsilon }),
        (number(), rate()).prop_map(|(epsilon, delta)| DpEvent::ApproximateDp { epsilon, delta }),
        number().prop_map(|rho| DpEvent::Zcdp { rho }),
        number().prop_map(|epsilon| DpEvent::BoundedRange { epsilon }),
        number().prop_map(|mu| DpEvent::Gdp { mu }),
        (1usize..4, number(), number()).prop_map(|(points, first, divergence)| DpEvent::RenyiDp {
            orders: (1..=points).map(|i| 1.0 + first * i as f64).collect(),
            divergences: (1..=points).map(|i| divergence * i as f64).collect(),
        }),
        (1usize..6)
            .prop_flat_map(|length| (masses(length), masses(length)))
            .prop_map(|(p, q)| DpEvent::DominatingPair { p, q }),
    ];
    let replacement = (rate(), number(), number(), number()).prop_map(|(sampling_rate, std_dev, distance, radius)| {
        DpEvent::PoissonSampledReplacement { sampling_rate, std_dev, distance, radius: radius.min(distance) }
    });
    let published = prop_oneof![
        replacement,
        (number(), 0u64..2_000).prop_map(|(epsilon, records)| DpEvent::Shuffled { epsilon, records }),
        (1usize..5, number()).prop_flat_map(|(length, contraction)| {
            let lists = (prop::collection::vec(number(), length), prop::collection::vec(number(), length));
            lists.prop_map(move |(sensitivities, std_devs)| DpEvent::AmplifiedByIteration {
                sensitivities,
                std_devs,
                contraction: contraction.min(1.0),
            })
        }),
        (number(), number(), number()).prop_map(|(threshold_scale, query_scale, sensitivity)| {
            DpEvent::AboveThresholdLaplace { threshold_scale, query_scale, sensitivity }
        }),
        (number(), number(), number(), count(), any::<bool>()).prop_map(
            |(threshold_std_dev, query_std_dev, sensitivity, max_queries, range_bounded)| {
                DpEvent::AboveThresholdGaussian {
                    threshold_std_dev,
                    query_std_dev,
                    sensitivity,
                    max_queries,
                    range_bounded,
                }
            }
        ),
        (number(), number(), margin_loss).prop_map(|(std_dev, regularization, loss)| {
            DpEvent::ObjectivePerturbation { std_dev, regularization, loss }
        }),
        (1usize..4)
            .prop_flat_map(|length| (number(), prop::collection::vec(number(), length), masses(length)))
            .prop_map(|(std_dev, sensitivities, weights)| DpEvent::GaussianMixture { std_dev, sensitivities, weights }),
    ];
    prop_oneof![2 => noisy, 1 => claimed, 1 => published]
}

fn event() -> impl Strategy<Value = DpEvent> {
    let repetitions = || {
        prop_oneof![
            (-1.0f64..3.0, rate()).prop_map(|(eta, gamma)| Repetitions::TruncatedNegativeBinomial { eta, gamma }),
            number().prop_map(|mean| Repetitions::Poisson { mean }),
        ]
    };
    leaf().prop_recursive(3, 8, 3, move |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        let one = || inner.clone().prop_map(Box::new);
        prop_oneof![
            some().prop_map(|events| DpEvent::Composed { events }),
            (one(), count()).prop_map(|(event, count)| DpEvent::SelfComposed { event, count }),
            (rate(), one()).prop_map(|(sampling_rate, event)| DpEvent::PoissonSampled { sampling_rate, event }),
            (rate(), one())
                .prop_map(|(sampling_rate, event)| DpEvent::SampledWithoutReplacement { sampling_rate, event }),
            some().prop_map(|events| DpEvent::Parallel { events }),
            some().prop_map(|events| DpEvent::ParallelByValue { events }),
            some().prop_map(|events| DpEvent::OneOf { events }),
            (0u64..6, one()).prop_map(|(size, event)| DpEvent::Group { size, event }),
            one().prop_map(|event| DpEvent::AddRemoveTwice { event }),
            (repetitions(), one()).prop_map(|(repetitions, event)| DpEvent::RandomStopping { repetitions, event }),
        ]
    })
}

proptest! {
    // Half the usual number of cases: some trees take a second.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.div_ceil(2),
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_answer_is_a_number_or_a_typed_error(event in event()) {
        prop_assert_eq!(bound::epsilon(&event, Delta::ZERO).is_ok(), event.relations().is_ok());
        let mut before = f64::INFINITY;
        for delta in [0.0, 1e-300, 1e-9, 1e-3, 0.5] {
            let delta = Delta::new(delta).unwrap();
            let bound = bound::epsilon(&event, delta);
            if let Ok(bound) = bound {
                prop_assert!(bound.value >= 0.0, "{:?}", bound);
                // Up to the width of composed loss distributions.
                prop_assert!(bound.value <= before * 1.01, "{:?} after {}", bound, before);
                before = bound.value;
            }
        }
        if let Ok(bound) = bound::delta(&event, 1.0) {
            prop_assert!((0.0..=1.0).contains(&bound.value), "{:?}", bound);
        }
        if let Ok(curve) = RdpCurve::new(&event) {
            // These are bounds, not the divergence itself, which grows with the order; each is sound by itself.
            for order in [1.5, 2.0, 7.3, 64.0, 1e4] {
                let value = curve.at(RdpOrder::new(order).unwrap());
                prop_assert!(value >= 0.0, "order {}: {}", order, value);
            }
        }
        if let Ok(rho) = zcdp::rho(&event) {
            prop_assert!(rho >= 0.0);
        }
    }

    #[test]
    fn files_give_the_tree_back(event in event()) {
        if let Ok(text) = serde_json::to_string(&event)
            && let Ok(back) = serde_json::from_str::<DpEvent>(&text)
        {
            prop_assert_eq!(format!("{event:?}"), format!("{back:?}"));
        }
    }

    #[test]
    fn a_tree_twice_costs_no_less_than_once(event in event()) {
        let twice = DpEvent::SelfComposed { event: Box::new(event.clone()), count: 2 };
        let delta = Delta::new(1e-5).unwrap();
        if let (Ok(once), Ok(twice)) = (bound::epsilon(&event, delta), bound::epsilon(&twice, delta)) {
            prop_assert!(twice.value >= once.value * (1.0 - 1e-3), "{:?} {:?}", once, twice);
        }
    }

    #[test]
    fn a_relation_is_accepted_by_accountants_exactly_where_the_tree_says_so(event in event()) {
        use dp_accountant::{Accountant, AddRemoveOne, RdpAccountant, ReplaceOne};
        let Ok(relations) = event.relations() else { return Ok(()) };
        if RdpCurve::new(&event).is_err() {
            return Ok(());
        }
        let add_remove = RdpAccountant::<AddRemoveOne>::new().compose(&event, 1).is_ok();
        let replace = RdpAccountant::<ReplaceOne>::new().compose(&event, 1).is_ok();
        prop_assert_eq!(add_remove, relations.contains(AdjacencyKind::AddRemoveOne));
        prop_assert_eq!(replace, relations.contains(AdjacencyKind::ReplaceOne));
    }
}
