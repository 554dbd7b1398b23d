use super::single::SMALLEST_RATIO;
use super::*;

fn gaussian(std_dev: f64) -> DpEvent {
    DpEvent::Gaussian { std_dev, sensitivity: 1.0 }
}

#[test]
fn counts_multiply_and_equal_neighbours_merge() {
    let event = DpEvent::SelfComposed {
        event: Box::new(DpEvent::Composed {
            events: vec![gaussian(2.0), DpEvent::NoOp, gaussian(2.0), DpEvent::PureDp { epsilon: 0.5 }],
        }),
        count: 3,
    };
    assert_eq!(leaves(&event, 2).unwrap(), [(Leaf::Gaussian { mu: 0.5 }, 12), (Leaf::Pure { epsilon: 0.5 }, 6)]);
    assert_eq!(leaves(&event, 0).unwrap(), []);
}

#[test]
fn what_never_happened_is_still_checked() {
    let event = DpEvent::SelfComposed { event: Box::new(gaussian(f64::NAN)), count: 0 };
    assert!(matches!(leaves(&event, 1), Err(Error::NotFinite { name: "std_dev", .. })));
}

#[test]
fn too_many_repetitions_and_too_much_depth_are_typed_errors() {
    let mut event = gaussian(1.0);
    for _ in 0..2 {
        event = DpEvent::SelfComposed { event: Box::new(event), count: 1 << 40 };
    }
    assert!(matches!(leaves(&event, 1), Err(Error::OutOfRange { name: "number of repetitions", .. })));
    let mut event = gaussian(1.0);
    for _ in 0..2 * MAX_DEPTH {
        event = DpEvent::Composed { events: vec![event] };
    }
    assert_eq!(leaves(&event, 1), Err(Error::TooDeep { limit: MAX_DEPTH }));
}

#[test]
fn extreme_ratios_are_on_the_safe_side() {
    let huge = DpEvent::Gaussian { std_dev: 1e-300, sensitivity: 1e300 };
    assert_eq!(leaves(&huge, 1).unwrap(), [(Leaf::NonPrivate, 1)]);
    let tiny = DpEvent::Laplace { scale: 1e300, sensitivity: 1e-300 };
    assert_eq!(leaves(&tiny, 1).unwrap(), [(Leaf::Laplace { x: SMALLEST_RATIO }, 1)]);
}

fn poisson(sampling_rate: f64, event: DpEvent) -> DpEvent {
    DpEvent::PoissonSampled { sampling_rate, event: Box::new(event) }
}

fn fixed_size(sampling_rate: f64, event: DpEvent) -> DpEvent {
    DpEvent::SampledWithoutReplacement { sampling_rate, event: Box::new(event) }
}

/// Returns the event nested inside others of every kind that does not restrict the relation.
fn wrappings(event: &DpEvent) -> Vec<DpEvent> {
    let boxed = || Box::new(event.clone());
    let mut deep = event.clone();
    for _ in 0..50 {
        deep = DpEvent::Composed { events: vec![DpEvent::SelfComposed { event: Box::new(deep), count: 1 }] };
    }
    vec![
        event.clone(),
        deep,
        DpEvent::Composed { events: vec![gaussian(1.0), event.clone()] },
        DpEvent::SelfComposed { event: boxed(), count: 7 },
        DpEvent::SelfComposed { event: boxed(), count: 0 },
        DpEvent::Parallel { events: vec![gaussian(1.0), event.clone()] },
        DpEvent::Group { size: 2, event: boxed() },
        DpEvent::RandomStopping { repetitions: Repetitions::Poisson { mean: 3.0 }, event: boxed() },
    ]
}

#[test]
fn each_sampling_theorem_is_refused_under_the_other_relation_at_every_depth() {
    let in_place = [AdjacencyKind::ReplaceOne, AdjacencyKind::ChangeListLabels];
    let present_or_not = [AdjacencyKind::AddRemoveOne, AdjacencyKind::ZeroOut];
    for rate in [0.0, 0.01, 1.0] {
        for event in wrappings(&poisson(rate, gaussian(1.0))) {
            for relation in in_place {
                let refused = leaves_under(&event, 1, relation).unwrap_err();
                assert!(matches!(refused, Error::NotUnderRelation { event: "poisson-sampled", .. }), "{refused}");
            }
            assert!(present_or_not.into_iter().all(|relation| leaves_under(&event, 1, relation).is_ok()));
        }
        for event in wrappings(&fixed_size(rate, gaussian(1.0))) {
            for relation in present_or_not.into_iter().chain([AdjacencyKind::ChangeListLabels]) {
                let refused = leaves_under(&event, 1, relation).unwrap_err();
                assert!(
                    matches!(refused, Error::NotUnderRelation { event: "sampled-without-replacement", .. }),
                    "{refused}"
                );
            }
            assert!(leaves_under(&event, 1, AdjacencyKind::ReplaceOne).is_ok());
        }
    }
}

#[test]
fn a_replaced_record_of_a_sample_is_one_in_place_at_every_depth() {
    for rate in [0.0, 0.01, 1.0] {
        let replaced =
            DpEvent::PoissonSampledReplacement { sampling_rate: rate, std_dev: 1.0, distance: 1.0, radius: 0.75 };
        for event in wrappings(&replaced) {
            for relation in [AdjacencyKind::AddRemoveOne, AdjacencyKind::ZeroOut] {
                let refused = leaves_under(&event, 1, relation).unwrap_err();
                let named = matches!(refused, Error::NotUnderRelation { event: "poisson-sampled-replacement", .. });
                assert!(named, "{refused}");
            }
            for relation in [AdjacencyKind::ReplaceOne, AdjacencyKind::ChangeListLabels] {
                leaves_under(&event, 1, relation).unwrap();
            }
            // It can neither be sampled again nor be read as an event that holds under add/remove.
            for outer in [poisson(0.1, event.clone()), DpEvent::AddRemoveTwice { event: Box::new(event) }] {
                assert!(matches!(leaves(&outer, 1), Err(Error::RelationsConflict { .. })), "{outer:?}");
            }
        }
    }
}

#[test]
fn a_replaced_record_of_sampled_gaussian_noise_has_a_pair_of_its_own() {
    let twice = |event| leaves(&DpEvent::AddRemoveTwice { event: Box::new(event) }, 1).unwrap();
    let direct = |rate, std_dev| {
        let event = DpEvent::PoissonSampledReplacement { sampling_rate: rate, std_dev, distance: 2.0, radius: 1.0 };
        leaves(&event, 1).unwrap().remove(0).0
    };
    assert_eq!(twice(poisson(0.1, gaussian(3.0))), [(direct(0.1, 3.0), 1)]);
    let steps = DpEvent::SelfComposed { event: Box::new(poisson(0.1, gaussian(3.0))), count: 7 };
    let run = DpEvent::Composed { events: vec![steps, gaussian(4.0), poisson(0.2, poisson(0.5, gaussian(5.0)))] };
    let run = DpEvent::SelfComposed { event: Box::new(run), count: 2 };
    let expected = [(Leaf::Gaussian { mu: 0.5 }, 2), (direct(0.1, 3.0), 14), (direct(0.1, 5.0), 2)];
    assert_eq!(twice(run), expected);
    // Releases that are only Gaussian-DP, disjoint parts, and releases that fail are read as before.
    let base = vec![(Leaf::PoissonGaussian { rate: 0.1, mu: 0.5 }, 1)];
    for event in [DpEvent::Gdp { mu: 0.5 }, DpEvent::OneOf { events: vec![gaussian(2.0), gaussian(3.0)] }] {
        assert_eq!(twice(poisson(0.1, event)), [(Leaf::Group { size: 2, base: base.clone() }, 1)]);
    }
    let failing =
        DpEvent::Composed { events: vec![gaussian(2.0), DpEvent::ApproximateDp { epsilon: 0.1, delta: 1e-9 }] };
    let failing = DpEvent::AddRemoveTwice { event: Box::new(poisson(0.1, failing)) };
    assert!(leaves(&failing, 1).is_err());
}

#[test]
fn both_kinds_of_sampling_in_one_tree_are_refused_at_every_depth() {
    let conflict =
        |event: &DpEvent| assert!(matches!(leaves(event, 1), Err(Error::RelationsConflict { .. })), "{event:?}");
    conflict(&poisson(0.1, fixed_size(0.1, gaussian(1.0))));
    conflict(&fixed_size(0.1, poisson(0.1, gaussian(1.0))));
    for one in wrappings(&poisson(0.1, gaussian(1.0))) {
        for other in wrappings(&fixed_size(0.1, gaussian(1.0))) {
            conflict(&DpEvent::Composed { events: vec![one.clone(), other.clone()] });
            conflict(&DpEvent::Parallel { events: vec![other.clone(), one.clone()] });
        }
        conflict(&fixed_size(0.1, one));
    }
}

/// A replaced record may stay in its part, which then loses one record and gains another.
#[test]
fn a_record_replaced_within_its_part_costs_as_much_as_twice() {
    let by_value = |events| leaves(&DpEvent::ParallelByValue { events }, 1).unwrap();
    let laplace = |scale| DpEvent::Laplace { scale, sensitivity: 1.0 };
    assert_eq!(by_value(vec![gaussian(1.0)]), [(Leaf::Gaussian { mu: 2.0 }, 1)]);
    assert_eq!(by_value(vec![gaussian(10.0), gaussian(1.0), gaussian(1.0)]), [(Leaf::Gaussian { mu: 2.0 }, 1)]);
    let pure = |events| pure::pure_epsilon_of_all(&by_value(events));
    assert_eq!(pure(vec![laplace(1.0), laplace(10.0)]), 2.0);
    assert_eq!(pure(vec![laplace(1.0), laplace(1.0)]), 2.0);
    assert!(by_value(vec![DpEvent::NoOp, DpEvent::NoOp]).is_empty());
}

#[test]
fn conversions_need_what_they_convert_from() {
    let twice = |event| DpEvent::AddRemoveTwice { event: Box::new(event) };
    let by_value = |event| DpEvent::ParallelByValue { events: vec![event, gaussian(1.0)] };
    for event in wrappings(&poisson(0.1, gaussian(1.0))) {
        for converted in [twice(event.clone()), by_value(event.clone())] {
            leaves_under(&converted, 1, AdjacencyKind::ReplaceOne).unwrap();
            for relation in [AdjacencyKind::AddRemoveOne, AdjacencyKind::ZeroOut, AdjacencyKind::ChangeListLabels] {
                assert!(matches!(leaves_under(&converted, 1, relation), Err(Error::NotUnderRelation { .. })));
            }
            // A converted event may be composed with one that holds under the new relation only.
            let beside = DpEvent::Composed { events: vec![converted, fixed_size(0.1, gaussian(1.0))] };
            leaves_under(&beside, 1, AdjacencyKind::ReplaceOne).unwrap();
        }
    }
    for event in wrappings(&fixed_size(0.1, gaussian(1.0))) {
        for converted in [twice(event.clone()), by_value(event)] {
            assert!(matches!(leaves(&converted, 1), Err(Error::RelationsConflict { .. })), "{converted:?}");
        }
    }
    // It cannot be converted twice.
    assert!(leaves(&twice(twice(gaussian(1.0))), 1).is_err());
}

#[test]
fn groups_are_read_as_one_record_of_many_times_the_sensitivity() {
    let group = |size, event| leaves(&DpEvent::Group { size, event: Box::new(event) }, 1).unwrap();
    assert_eq!(group(3, gaussian(2.0)), [(Leaf::Gaussian { mu: 1.5 }, 1)]);
    assert_eq!(group(4, DpEvent::Laplace { scale: 2.0, sensitivity: 1.0 }), [(Leaf::Laplace { x: 2.0 }, 1)]);
    assert_eq!(group(4, DpEvent::Zcdp { rho: 0.25 }), [(Leaf::Zcdp { rho: 4.0 }, 1)]);
    assert_eq!(group(4, DpEvent::PureDp { epsilon: 0.25 }), [(Leaf::Pure { epsilon: 1.0 }, 1)]);
    assert_eq!(
        group(4, DpEvent::DiscreteLaplace { scale: 5.0, sensitivity: 2 }),
        [(Leaf::DiscreteLaplace { scale: 5.0, sensitivity: 8 }, 1)]
    );
    assert_eq!(group(1, poisson(0.5, gaussian(1.0))), [(Leaf::PoissonGaussian { rate: 0.5, mu: 1.0 }, 1)]);
    let base = vec![(Leaf::PoissonGaussian { rate: 0.5, mu: 1.0 }, 1)];
    assert_eq!(group(2, poisson(0.5, gaussian(1.0))), [(Leaf::Group { size: 2, base }, 1)]);
    assert_eq!(
        leaves(&DpEvent::AddRemoveTwice { event: Box::new(gaussian(2.0)) }, 1).unwrap(),
        [(Leaf::Gaussian { mu: 1.0 }, 1)]
    );
    let none = DpEvent::Group { size: 0, event: Box::new(gaussian(1.0)) };
    assert!(matches!(leaves(&none, 1), Err(Error::NotPositive { name: "size", .. })));
}

#[test]
fn samples_of_samples_and_of_several_gaussians_are_one() {
    let nested = leaves(&poisson(0.5, poisson(0.25, gaussian(1.0))), 1).unwrap();
    assert_eq!(nested, [(Leaf::PoissonGaussian { rate: 0.125, mu: 1.0 }, 1)]);
    let two = DpEvent::Composed { events: vec![gaussian(1.0 / 3.0), gaussian(0.25)] };
    let leaf = leaves(&poisson(0.5, two), 1).unwrap();
    assert!(matches!(leaf[..], [(Leaf::PoissonGaussian { rate: 0.5, mu }, 1)] if (5.0..5.0 + 1e-13).contains(&mu)));
    assert_eq!(leaves(&poisson(1.0, gaussian(1.0)), 1).unwrap(), [(Leaf::Gaussian { mu: 1.0 }, 1)]);
    assert_eq!(leaves(&poisson(0.0, gaussian(1.0)), 1).unwrap(), []);
    // Two samples drawn one after the other are not the same sample.
    let apart = DpEvent::SelfComposed { event: Box::new(poisson(0.25, gaussian(1.0))), count: 2 };
    let base = vec![(Leaf::PoissonGaussian { rate: 0.25, mu: 1.0 }, 2)];
    assert_eq!(leaves(&poisson(0.5, apart), 1).unwrap(), [(Leaf::Poisson { rate: 0.5, base }, 1)]);
}

#[test]
fn typed_accountants_refuse_by_the_name_of_the_event() {
    use crate::accountant::Accountant;
    use crate::adjacency::{AddRemoveOne, ReplaceOne};
    use crate::gdp::GdpAccountant;
    use crate::rdp::RdpAccountant;
    use crate::zcdp::ZcdpAccountant;
    fn named<T>(result: Result<T, Error>, name: &str) {
        assert!(result.is_err_and(|error| error.to_string().contains(name)), "{name}");
    }
    let (step, fixed) = (poisson(0.1, gaussian(1.0)), fixed_size(0.1, gaussian(1.0)));
    named(RdpAccountant::<ReplaceOne>::new().compose(&step, 1), "poisson-sampled");
    named(RdpAccountant::<AddRemoveOne>::new().compose(&fixed, 1), "sampled-without-replacement");
    named(ZcdpAccountant::<ReplaceOne>::new().compose(&step, 1), "poisson-sampled");
    named(GdpAccountant::<ReplaceOne>::new().compose(&step, 1), "poisson-sampled");
    named(GdpAccountant::<AddRemoveOne>::new().compose(&fixed, 1), "sampled-without-replacement");
    RdpAccountant::<AddRemoveOne>::new().compose(&step, 1).unwrap();
    RdpAccountant::<ReplaceOne>::new().compose(&fixed, 1).unwrap();
}

#[test]
fn a_group_fails_more_often_the_larger_epsilon_is() {
    let claim = DpEvent::ApproximateDp { epsilon: 1.0, delta: 1e-3 };
    let group = DpEvent::Group { size: 3, event: Box::new(claim) };
    let found = leaves(&group, 1).unwrap();
    let [(Leaf::Approximate { epsilon, delta }, 1)] = found.as_slice() else { panic!("{found:?}") };
    // 1 + e + e^2
    let times = 1.0 + 1f64.exp() + 2f64.exp();
    assert!(*epsilon == 3.0 && *delta >= 1e-3 * times * (1.0 - 1e-15) && *delta < 1e-3 * times * (1.0 + 1e-12));
}

#[test]
fn the_least_noisy_of_disjoint_gaussians_stands_for_all() {
    let parallel = |events| leaves(&DpEvent::Parallel { events }, 1).unwrap();
    let four = vec![gaussian(4.0), gaussian(2.0), gaussian(2.0), gaussian(8.0)];
    assert_eq!(parallel(four), [(Leaf::Gaussian { mu: 0.5 }, 1)]);
    // Two releases from one part are not a single one, and are kept.
    let twice = DpEvent::SelfComposed { event: Box::new(gaussian(4.0)), count: 2 };
    let mixed = parallel(vec![gaussian(2.0), twice, gaussian(3.0)]);
    let parts = vec![vec![(Leaf::Gaussian { mu: 0.5 }, 1)], vec![(Leaf::Gaussian { mu: 0.25 }, 2)]];
    assert_eq!(mixed, [(Leaf::Parallel { parts }, 1)]);
}
