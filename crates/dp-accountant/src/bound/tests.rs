use super::*;
use crate::gaussian;

fn at(event: &DpEvent, value: f64) -> Bound {
    epsilon(event, Delta::new(value).unwrap()).unwrap()
}

fn repeated(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(event), count }
}

fn composed(events: Vec<DpEvent>) -> DpEvent {
    DpEvent::Composed { events }
}

fn gaussian_event(mu: f64) -> DpEvent {
    DpEvent::Gaussian { std_dev: 1.0, sensitivity: mu }
}

fn pure_event(epsilon: f64) -> DpEvent {
    DpEvent::PureDp { epsilon }
}

#[test]
fn each_tree_gets_the_theorem_that_fits() {
    let laplace = DpEvent::LaplaceBall { scale: 2.0, sensitivity: 1.0, dim: 40 };
    let mixture = DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![0.1, 0.5], weights: vec![0.5, 0.5] };
    for (event, delta, theorem) in [
        (DpEvent::NoOp, 1e-6, Theorem::NothingReleased),
        (composed(vec![pure_event(1.0), DpEvent::NonPrivate]), 1e-6, Theorem::NoGuarantee),
        (gaussian_event(1.0), 0.0, Theorem::NoGuarantee),
        (gaussian_event(1.0), 1e-6, Theorem::AnalyticGaussian),
        (composed(vec![gaussian_event(1.0), gaussian_event(0.5)]), 1e-6, Theorem::AnalyticGaussian),
        (mixture.clone(), 1e-6, Theorem::GaussianMixture),
        (composed(vec![mixture.clone(), gaussian_event(0.1)]), 1e-6, Theorem::GaussianMixture),
        (repeated(mixture, 2), 1e-6, Theorem::ContourIntegral),
        (laplace.clone(), 0.0, Theorem::PureComposition),
        (laplace.clone(), 0.1, Theorem::LaplaceCurve),
        (repeated(laplace.clone(), 2), 0.0, Theorem::PureComposition),
        (repeated(pure_event(0.1), 30), 1e-6, Theorem::OptimalPureComposition),
        (composed(vec![pure_event(0.1), pure_event(0.2)]), 0.0, Theorem::PureComposition),
        (DpEvent::ApproximateDp { epsilon: 0.3, delta: 1e-6 }, 1e-6, Theorem::BasicComposition),
        (DpEvent::Zcdp { rho: 0.1 }, 1e-6, Theorem::Renyi),
        (composed(vec![gaussian_event(5.0), pure_event(1e-3)]), 1e-6, Theorem::ContourIntegral),
        (composed(vec![gaussian_event(0.5), repeated(laplace, 40)]), 1e-6, Theorem::LossDistribution),
    ] {
        assert_eq!(at(&event, delta).theorem, theorem, "{event:?} at {delta}");
    }
}

#[test]
fn pure_guarantees_are_exact() {
    let event = DpEvent::LaplaceBall { scale: 4.0, sensitivity: 1.0, dim: 3 };
    assert_eq!(at(&event, 0.0).value, 0.25);
    assert_eq!(at(&repeated(event.clone(), 8), 0.0).value, 2.0);
    assert_eq!(delta(&event, 0.25).unwrap().value, 0.0);
    assert!(delta(&event, 0.2499).unwrap().value > 0.0);
    // One third is not a float: the bound is the next one above.
    assert_eq!(at(&DpEvent::Laplace { scale: 3.0, sensitivity: 1.0 }, 0.0).value, (1.0f64 / 3.0).next_up());
}

#[test]
fn gaussians_compose_exactly() {
    let several = composed(vec![repeated(gaussian_event(0.1), 100), gaussian_event(3.0), DpEvent::NoOp]);
    for target in [1e-3, 1e-9] {
        let exact = gaussian::epsilon(10f64.sqrt(), Delta::new(target).unwrap()).unwrap();
        let got = at(&several, target).value;
        assert!(got >= exact * (1.0 - 1e-15) && got <= exact * (1.0 + 1e-13), "{got} {exact}");
    }
}

#[test]
fn a_mixture_beside_gaussians_adds_to_each_component() {
    let mixture = DpEvent::GaussianMixture { std_dev: 2.0, sensitivities: vec![1.0, 2.0], weights: vec![0.75, 0.25] };
    let event = composed(vec![gaussian_event(0.5), mixture]);
    for epsilon in [0.1, 1.0, 3.0] {
        let expected = 0.75 * gaussian::delta(0.5f64.sqrt(), epsilon).unwrap()
            + 0.25 * gaussian::delta(1.25f64.sqrt(), epsilon).unwrap();
        let got = delta(&event, epsilon).unwrap().value;
        assert!((got / expected - 1.0).abs() < 1e-12, "{got} {expected}");
    }
}

#[test]
fn approximate_guarantees_fail_with_their_deltas() {
    let approximate = DpEvent::ApproximateDp { epsilon: 0.1, delta: 1e-6 };
    let ten = repeated(approximate.clone(), 10);
    // Basic composition exactly: epsilon 1 at delta 1e-5 (and a little below, because failures overlap).
    assert_eq!(at(&ten, 1e-5).value, at(&repeated(pure_event(0.1), 10), 0.0).value.min(at(&ten, 1e-5).value));
    assert_eq!(at(&ten, 0.9e-5).theorem, Theorem::NoGuarantee);
    assert!(at(&ten, 1e-3).value < 0.95, "what is left of delta is used");
    let got = delta(&ten, 1.0).unwrap();
    let exact = -(10.0 * (-1e-6f64).ln_1p()).exp_m1();
    assert!(got.value >= exact && got.value <= exact * (1.0 + 1e-12));
    // Together with a Gaussian.
    let mixed = composed(vec![approximate, gaussian_event(1.0)]);
    let gaussian_alone = gaussian::epsilon(1.0, Delta::new(1e-5 - 1e-6).unwrap()).unwrap();
    assert!(at(&mixed, 1e-5).value <= gaussian_alone + 0.1 + 1e-6);
    assert!(at(&mixed, 1e-5).value > gaussian::epsilon(1.0, Delta::new(1e-5).unwrap()).unwrap());
}

#[test]
fn epsilon_and_delta_are_views_of_one_curve() {
    let events = [
        gaussian_event(0.7),
        DpEvent::Laplace { scale: 1.0, sensitivity: 2.0 },
        repeated(pure_event(0.2), 25),
        composed(vec![gaussian_event(0.2), repeated(pure_event(0.05), 20), DpEvent::Zcdp { rho: 0.01 }]),
        composed(vec![DpEvent::ApproximateDp { epsilon: 0.4, delta: 1e-7 }, gaussian_event(0.3)]),
        DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![0.1, 0.5, 2.0], weights: vec![0.5, 0.4, 0.1] },
    ];
    for event in &events {
        for target in [0.2, 1e-3, 1e-5] {
            let epsilon = at(event, target).value;
            let back = delta(event, epsilon).unwrap().value;
            assert!(back <= target * (1.0 + 1e-6), "{event:?}: {back} > {target}");
        }
    }
}

#[test]
fn the_ball_in_ten_dimensions_by_simulation() {
    // Monte Carlo in ten dimensions: the hockey-stick divergence at 0.5 for a shift of one sensitivity, noise scale 1. 20,000
    // samples of a mean with standard error below 3e-4, in an interval of 6 of them on either side: false alarms with probability
    // below 2e-9.
    let (dim, scale, epsilon) = (10usize, 1.0f64, 0.5f64);
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let mut sum = 0.0;
    for _ in 0..20_000 {
        let mut z: Vec<f64> =
            (0..dim).map(|_| (-2.0 * uniform().ln()).sqrt() * (core::f64::consts::TAU * uniform()).cos()).collect();
        let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt();
        let radius: f64 = -(0..dim).map(|_| uniform().ln()).sum::<f64>() * scale;
        z.iter_mut().for_each(|v| *v *= radius / norm);
        let mut shifted = z.clone();
        shifted[0] -= 1.0;
        let loss = (shifted.iter().map(|v| v * v).sum::<f64>().sqrt() - radius) / scale;
        sum += (1.0 - (epsilon - loss).exp()).max(0.0);
    }
    let event = DpEvent::LaplaceBall { scale, sensitivity: 1.0, dim: dim as u64 };
    let bound = delta(&event, epsilon).unwrap().value;
    assert!((sum / 20_000.0 - bound).abs() < 0.0018, "{} {bound}", sum / 20_000.0);
}

#[test]
fn large_mixtures_are_read_in_full() {
    let n = 500_000;
    let sensitivities: Vec<f64> = (0..n).map(|i| 1.0 + f64::from(i) / f64::from(n)).collect();
    let event = DpEvent::GaussianMixture { std_dev: 10.0, sensitivities, weights: vec![1.0 / f64::from(n); 500_000] };
    let got = at(&event, 1e-6).value;
    assert!(got < gaussian::epsilon(0.2, Delta::new(1e-6).unwrap()).unwrap());
    assert!(got > gaussian::epsilon(0.15, Delta::new(1e-6).unwrap()).unwrap());
    assert!(delta(&event, got).unwrap().value <= 1e-6);
    assert!(delta(&event, got * (1.0 - 1e-9)).unwrap().value > 1e-6);
}

#[test]
fn bad_arguments_are_typed_errors() {
    assert!(matches!(delta(&DpEvent::NoOp, f64::NAN), Err(Error::NotFinite { name: "epsilon", .. })));
    assert!(delta(&DpEvent::NoOp, -1.0).is_err());
    assert!(epsilon(&gaussian_event(f64::NAN), Delta::ZERO).is_err());
}

proptest::proptest! {
    #[test]
    fn more_of_anything_costs_more(
        mu in 0.01f64..3.0, pure in 0.0f64..1.0, rho in 0.0f64..0.5, log_delta in -60.0f64..-1.0, count in 1u64..20
    ) {
        let tree = |factor: f64, count: u64| composed(vec![
            gaussian_event(mu * factor),
            repeated(pure_event(pure * factor), count),
            DpEvent::Zcdp { rho: rho * factor },
        ]);
        let delta = log_delta.exp();
        let base = at(&tree(1.0, count), delta).value;
        proptest::prop_assert!(at(&tree(1.1, count), delta).value >= base * (1.0 - 1e-9));
        proptest::prop_assert!(at(&tree(1.0, count + 1), delta).value >= base * (1.0 - 1e-9));
        proptest::prop_assert!(at(&tree(1.0, count), delta * 0.5).value >= base * (1.0 - 1e-9));
    }
}

/// One sampled release has an exact curve; few sampled releases together with a pure guarantee have none. The former's epsilon
/// plus the latter is still a bound.
#[test]
fn a_pure_guarantee_beside_others_costs_no_more_than_its_epsilon() {
    let gaussian = Box::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 });
    let sampled = DpEvent::PoissonSampled { sampling_rate: 0.01, event: gaussian };
    let target = Delta::new(1e-6).unwrap();
    let alone = epsilon(&sampled, target).unwrap().value;
    for pure in [0.01, 0.3, 2.0] {
        let both = DpEvent::Composed { events: vec![sampled.clone(), DpEvent::PureDp { epsilon: pure }] };
        let together = epsilon(&both, target).unwrap().value;
        assert!(together <= (alone + pure) * (1.0 + 1e-12) && together >= alone, "{together} {alone} {pure}");
        let at = alone + pure;
        let back = delta(&both, at).unwrap().value;
        assert!(back <= 1e-6 * (1.0 + 1e-9), "{back}");
    }
    // If the pure part is known by its guarantee alone, this is one candidate among others.
    let both = DpEvent::Composed { events: vec![sampled, DpEvent::BoundedRange { epsilon: 0.3 }] };
    let together = epsilon(&both, target).unwrap().value;
    assert!(together > 1.01 * alone && together <= (alone + 0.3) * (1.0 + 1e-12), "{together} {alone}");
}

#[test]
fn what_is_left_of_delta_counts_only_where_nothing_failed() {
    let gaussian = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
    let claim = DpEvent::ApproximateDp { epsilon: 0.0, delta: 0.4 };
    let both = DpEvent::Composed { events: vec![gaussian.clone(), claim] };
    for at in [0.1, 1.0, 3.0] {
        let all = delta(&both, at).unwrap().value;
        let alone = delta(&gaussian, at).unwrap().value;
        assert!((all - (0.4 + 0.6 * alone)).abs() < 1e-14);
        let back = epsilon(&both, Delta::new(all).unwrap()).unwrap().value;
        assert!(back >= at * (1.0 - 1e-12) && back <= at * (1.0 + 1e-9), "{at}: {back}");
    }
}

#[test]
fn what_is_known_already_changes_no_answer() {
    let delta = Delta::new(1e-6).unwrap();
    let sampled = DpEvent::PoissonSampled {
        sampling_rate: 0.01,
        event: Box::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 }),
    };
    let steps = DpEvent::SelfComposed { event: Box::new(sampled), count: 100 };
    let failing = DpEvent::ApproximateDp { epsilon: 0.1, delta: 1e-7 };
    let both = DpEvent::Composed { events: vec![steps.clone(), failing] };
    let curve = PrivacyCurve::new(&steps).unwrap();
    let known = curve.epsilon(delta).unwrap();
    assert_eq!(epsilon_beside(None, &steps, delta, Some(known)), epsilon(&steps, delta));
    assert_eq!(delta_beside(None, &steps, 1.0, curve.delta(1.0).ok()), super::delta(&steps, 1.0));
    // With failures, the known value is used unchanged: neither reduced nor increased by them again.
    let curve = PrivacyCurve::new(&both).unwrap();
    let (of_epsilon, of_delta) = (curve.epsilon(delta).unwrap(), curve.delta(1.0).unwrap());
    assert_eq!(epsilon_beside(None, &both, delta, Some(of_epsilon)).unwrap().value, of_epsilon.upper);
    let (beside, fresh) = (delta_beside(None, &both, 1.0, Some(of_delta)).unwrap(), super::delta(&both, 1.0).unwrap());
    assert!(beside.value >= of_delta.lower && (beside.value / fresh.value - 1.0).abs() < 1e-9, "{beside:?}, {fresh:?}");
}

#[test]
fn disjoint_parts_cost_what_the_costliest_part_costs() {
    let laplace = DpEvent::LaplaceBall { scale: 1.25, sensitivity: 1.0, dim: 3 };
    let parts = vec![gaussian_event(0.25), pure_event(0.75), repeated(gaussian_event(0.1), 3), laplace];
    for of in [|events| DpEvent::Parallel { events }, |events| DpEvent::OneOf { events }] {
        for delta_at in [0.0, 1e-9, 1e-6, 1e-2] {
            let worst = parts.iter().map(|part| at(part, delta_at).value).fold(0.0, f64::max);
            assert_eq!(at(&of(parts.clone()), delta_at).value, worst, "at {delta_at}");
        }
        for epsilon_at in [0.1, 0.5, 1.0] {
            let worst = parts.iter().map(|part| delta(part, epsilon_at).unwrap().value).fold(0.0, f64::max);
            assert_eq!(delta(&of(parts.clone()), epsilon_at).unwrap().value, worst, "at {epsilon_at}");
        }
        // Twice the same: the differing part may change, so the maximum of the Renyi curves composes.
        let (once, twice) = (at(&of(parts.clone()), 1e-6).value, at(&repeated(of(parts.clone()), 2), 1e-6).value);
        let each_twice = parts.iter().map(|part| at(&repeated(part.clone(), 2), 1e-6).value).fold(0.0, f64::max);
        assert!(twice >= each_twice && twice <= 2.0 * once + 0.5, "{twice}");
        assert_eq!(at(&of(vec![gaussian_event(0.25), DpEvent::NonPrivate]), 1e-6).value, f64::INFINITY);
        assert_eq!(at(&of(Vec::new()), 1e-6).theorem, Theorem::NothingReleased);
    }
}

fn twice(event: DpEvent) -> DpEvent {
    DpEvent::AddRemoveTwice { event: Box::new(event) }
}

fn perturbed(std_dev: f64) -> DpEvent {
    DpEvent::ObjectivePerturbation { std_dev, regularization: 20.0, loss: crate::MarginLoss::Logistic }
}

/// If the law for two records is known, the path is above it, and not far above.
#[test]
fn a_path_is_never_below_the_exact_curve_of_a_group() {
    let nothing = Bound { value: f64::INFINITY, theorem: Theorem::NoGuarantee };
    for size in [2u64, 3, 5] {
        for mu in [0.02, 0.1, 0.5] {
            let path = Path::new(&DpEvent::Group { size, event: Box::new(gaussian_event(mu)) }).unwrap();
            for small in [1e-5, 1e-9] {
                let target = Delta::new(small).unwrap();
                let exact = gaussian::epsilon(size as f64 * mu, target).unwrap();
                let found = path.epsilon(nothing, target).unwrap();
                assert_eq!(found.theorem, Theorem::GroupPrivacy);
                assert!(
                    found.value >= exact && found.value < 1.4 * exact,
                    "{size} {mu} {small}: {} {exact}",
                    found.value
                );
                // The least value of the formula: one step below it is not safe by the same formula.
                let at = |epsilon| path.delta(Bound { value: 1.0, ..nothing }, epsilon).unwrap().value;
                assert!(at(found.value * (1.0 + 1e-9)) <= small && at(found.value * (1.0 - 1e-6)) > small);
                assert!(at(exact) >= gaussian::delta(size as f64 * mu, exact).unwrap());
            }
        }
    }
}

#[test]
fn a_replaced_record_of_objective_perturbation_costs_little_more_than_twice() {
    let small = Delta::new(1e-8).unwrap();
    let of = |event: &DpEvent| epsilon(event, small).unwrap();
    let one = of(&perturbed(20.0));
    // With twice the noise, a replaced record costs what an added or removed record did.
    let replaced = of(&twice(perturbed(40.0)));
    assert_eq!(replaced.theorem, Theorem::GroupPrivacy);
    assert!(replaced.value > one.value && replaced.value < 1.01 * one.value, "{} {}", replaced.value, one.value);
    // Several releases, each read for a replaced record, are one run read for a replaced record.
    let run = of(&twice(composed(vec![perturbed(40.0), gaussian_event(0.01)])));
    let each = composed(vec![twice(perturbed(40.0)), DpEvent::NoOp, twice(gaussian_event(0.01))]);
    assert_eq!(of(&each), run);
    assert_eq!(of(&repeated(twice(perturbed(90.0)), 3)), of(&twice(repeated(perturbed(90.0), 3))));
    // Together with another size: each release by itself.
    let group = DpEvent::Group { size: 3, event: Box::new(twice(perturbed(90.0))) };
    assert!(of(&composed(vec![group.clone(), twice(perturbed(90.0))])).theorem != Theorem::GroupPrivacy);
    assert!(of(&group).value > 2.9 * of(&perturbed(90.0)).value);
}

#[test]
fn a_path_takes_nothing_from_what_is_exact_and_improves_samples() {
    let small = Delta::new(1e-6).unwrap();
    for (event, group) in [
        (gaussian_event(0.5), gaussian_event(1.0)),
        (pure_event(0.1), pure_event(0.2)),
        (
            DpEvent::LaplaceBall { scale: 4.0, sensitivity: 1.0, dim: 4 },
            DpEvent::LaplaceBall { scale: 2.0, sensitivity: 1.0, dim: 4 },
        ),
    ] {
        assert_eq!(epsilon(&twice(event), small), epsilon(&group, small));
    }
    let sampled = DpEvent::PoissonSampled { sampling_rate: 0.05, event: Box::new(gaussian_event(0.5)) };
    let run = twice(repeated(sampled, 200));
    let found = epsilon(&run, small).unwrap();
    let by_release = RdpCurve::new(&run).unwrap().epsilon(small);
    assert!(found.value < by_release, "{} {by_release}", found.value);
    let at = delta(&run, found.value).unwrap().value;
    assert!(at <= 1e-6 * (1.0 + 1e-6) && at > 0.9e-6, "{at}");
}

#[test]
fn no_path_is_better_for_pure_guarantees() {
    let nothing = Bound { value: f64::INFINITY, theorem: Theorem::NoGuarantee };
    for (size, epsilon) in [(2, 0.01), (2, 0.3), (2, 2.0), (3, 0.1), (5, 1.0)] {
        for count in [1, 2, 5, 20, 100, 1000] {
            let group = DpEvent::Group { size, event: Box::new(repeated(pure_event(epsilon), count)) };
            let path = Path::new(&group).unwrap();
            for small in [1e-2, 1e-8] {
                let small = Delta::new(small).unwrap();
                let (found, each) = (path.epsilon(nothing, small).unwrap(), super::epsilon(&group, small).unwrap());
                assert!(found.value >= each.value * (1.0 - 1e-9), "{size} {count}: {found:?} {each:?}");
            }
            for at in [0.0, 0.3, 3.0] {
                let found = path.delta(Bound { value: 1.0, ..nothing }, at).unwrap().value;
                let each = delta(&group, at).unwrap().value;
                assert!(found >= each * (1.0 - 1e-9), "{size} {count} at {at}: {found} {each}");
            }
        }
    }
}

/// Evaluations of one tree share the curve of one record, and find what separate ones find.
#[test]
fn a_path_is_kept_between_evaluations_and_omitted_where_each_release_is_best() {
    let group = |event| DpEvent::Group { size: 3, event: Box::new(event) };
    let laplace = DpEvent::Laplace { scale: 9.0, sensitivity: 1.0 };
    let ball = DpEvent::LaplaceBall { scale: 8.0, sensitivity: 1.0, dim: 3 };
    let each = group(composed(vec![laplace, ball, gaussian_event(0.1), pure_event(0.3)]));
    assert!(Path::if_better(&each).unwrap().is_none());
    let sampled = DpEvent::PoissonSampled { sampling_rate: 0.01, event: Box::new(gaussian_event(1.0)) };
    let sampled = group(repeated(sampled, 1000));
    let path = Path::if_better(&sampled).unwrap().unwrap();
    for at in [0.0, 0.4, 2.0, 6.0] {
        let kept = delta_beside(Some(&path), &sampled, at, None).unwrap();
        let separate = delta(&sampled, at).unwrap();
        assert!((kept.value / separate.value - 1.0).abs() < 1e-3, "{at}: {kept:?} {separate:?}");
    }
}

/// Both neighbours' samples without the record are the same, so that a clipped replacement is no removal and addition.
#[test]
fn a_replaced_record_of_sampled_noise_costs_less_than_the_path_and_more_than_a_removal() {
    let small = Delta::new(1e-6).unwrap();
    let of = |event: &DpEvent| epsilon(event, small).unwrap();
    for (rate, noise, count, expected) in [
        (0.01, 2.0, 1000, 1.3743),
        (0.005, 1.2552, 2000, 1.6134),
        (0.001, 0.9027, 10_000, 1.0629),
        (0.2, 10.0, 50, 1.2113),
    ] {
        let sampled = DpEvent::PoissonSampled { sampling_rate: rate, event: Box::new(gaussian_event(1.0 / noise)) };
        let run = repeated(sampled, count);
        let (one, replaced) = (of(&run).value, of(&twice(run.clone())));
        let path = of(&DpEvent::Group { size: 2, event: Box::new(run.clone()) });
        assert_eq!((replaced.theorem, path.theorem), (Theorem::ContourIntegral, Theorem::GroupPrivacy));
        assert!((replaced.value - expected).abs() < 2e-3, "{rate}: {replaced:?}");
        assert!(one < replaced.value && replaced.value < 0.98 * path.value, "{rate}: {one} {replaced:?} {path:?}");
        // Clipped to half of the distance, stated explicitly.
        let said =
            DpEvent::PoissonSampledReplacement { sampling_rate: rate, std_dev: noise, distance: 2.0, radius: 1.0 };
        assert!((of(&repeated(said, count)).value / replaced.value - 1.0).abs() < 1e-8, "{rate}");
        // Together with another release there was no path.
        let beside = |event| composed(vec![event, gaussian_event(0.2)]);
        let group = DpEvent::Group { size: 2, event: Box::new(run.clone()) };
        let (new, old) = (of(&beside(twice(run))).value, of(&beside(group)).value);
        assert!(replaced.value < new && new < 0.97 * old, "{rate}: {new} {old}");
    }
}

#[test]
fn disjoint_parts_cost_what_the_worst_of_them_costs_along_its_path() {
    let small = Delta::new(1e-6).unwrap();
    let sampled = DpEvent::PoissonSampled { sampling_rate: 0.05, event: Box::new(gaussian_event(0.5)) };
    let run = |count| twice(repeated(sampled.clone(), count));
    let parts = |event: &DpEvent| epsilon(event, small).unwrap();
    let all = DpEvent::Parallel { events: vec![run(50), run(200), DpEvent::BoundedRange { epsilon: 0.1 }] };
    assert_eq!(parts(&all), parts(&run(200)));
    assert_eq!(delta(&all, 1.0), delta(&run(200), 1.0));
    let unknown = DpEvent::OneOf { events: vec![run(50), DpEvent::NonPrivate] };
    assert_eq!(parts(&unknown).value, f64::INFINITY);
}

#[test]
fn a_path_claims_nothing_where_its_powers_overflow() {
    // A Renyi bound at one order near 1 gives (1 + ln(1/delta)/0.055): a group's share of delta shrinks faster than its epsilon
    // grows, so that no epsilon holds along the path. (inf/inf was once read as the group's size.)
    let one = DpEvent::RenyiDp { orders: vec![1.055], divergences: vec![1.0] };
    let pair = DpEvent::Group { size: 2, event: Box::new(DpEvent::OneOf { events: vec![one.clone()] }) };
    for value in [1e-300, 1e-9, 1e-3] {
        assert_eq!(at(&pair, value).value, f64::INFINITY, "{value}");
    }
    // Along the path delta is at most d (e^epsilon - 1)/(e^(epsilon/2) - 1), which is above 1 here.
    let known = delta(&one, 1000.0).unwrap().value;
    assert!(known > 1e-30 && known < 1e-3, "{known}");
    assert_eq!(delta(&pair, 2000.0).unwrap().value, 1.0);
}

/// Objective perturbation for a replaced record, beside a pure release: its own curve along the path, and the epsilons add.
#[test]
fn pure_releases_beside_a_group_add_their_epsilon() {
    let loss = crate::event::MarginLoss::Logistic;
    let objective = DpEvent::ObjectivePerturbation { std_dev: 40.0, regularization: 5.0, loss };
    let group = DpEvent::AddRemoveTwice { event: Box::new(objective.clone()) };
    let pure = |epsilon| DpEvent::PureDp { epsilon };
    let delta = Delta::new(1e-6).unwrap();
    let alone = epsilon(&group, delta).unwrap();
    let both = |events: &[DpEvent]| DpEvent::Composed { events: events.to_vec() };
    let found = epsilon(&both(&[pure(0.01), group.clone(), pure(0.02)]), delta).unwrap();
    assert!(found.theorem == Theorem::BasicComposition && (found.value - alone.value - 0.03).abs() < 1e-12);
    let back = super::delta(&both(&[group.clone(), pure(0.03)]), found.value).unwrap();
    assert!((back.value / 1e-6 - 1.0).abs() < 1e-4, "{back:?}");
    // Below the pure guarantee there is none by this theorem.
    assert!(super::delta(&both(&[group.clone(), pure(0.5)]), 0.4).unwrap().theorem != Theorem::BasicComposition);
    // Another group, a Gaussian or an approximate guarantee beside it: other theorems.
    let approximate = DpEvent::ApproximateDp { epsilon: 0.01, delta: 1e-8 };
    for other in
        [group.clone(), DpEvent::Gaussian { std_dev: 900.0, sensitivity: 1.0 }, approximate, DpEvent::NonPrivate]
    {
        let found = epsilon(&both(&[group.clone(), other]), delta).unwrap();
        assert!(found.theorem != Theorem::BasicComposition && found.value > alone.value, "{found:?}");
    }
}

/// The hockey-stick divergence of a Gaussian and a pair of losses with a range on one Poisson sample, by quadrature.
fn of_mixed_sample(rate: f64, mu: f64, range: f64, high: f64, epsilon: f64, removes: bool) -> f64 {
    let low = high - range;
    let q = -low.exp_m1() / (high.exp() - low.exp());
    let (steps, width) = (20_000, 24.0);
    let mut sum = 0.0;
    for i in 0..steps {
        let z = width * ((f64::from(i) + 0.5) / f64::from(steps) - 0.5) + 0.5 * mu;
        let density = (-0.5 * z * z).exp() / (2.0 * core::f64::consts::PI).sqrt() * width / f64::from(steps);
        for (mass, loss) in [(q, high), (1.0 - q, low)] {
            let without = density * mass;
            let with = without * (1.0 - rate + rate * (mu * z - 0.5 * mu * mu + loss).exp());
            let (one, other) = if removes { (with, without) } else { (without, with) };
            sum += (one - epsilon.exp() * other).max(0.0);
        }
    }
    sum
}

/// Gaussian noise and a choice with a range of losses on one Poisson sample: the bound holds for every pair with the range, in both
/// directions, and is not far above the largest.
#[test]
fn a_choice_beside_gaussian_noise_on_one_sample_costs_no_more_than_a_gaussian() {
    for (rate, mu, range) in [(0.05, 0.5, 0.3), (0.3, 1.0, 0.5), (0.01, 2.0, 1.5)] {
        let choice = DpEvent::BoundedRange { epsilon: range };
        let sample = |event| DpEvent::PoissonSampled { sampling_rate: rate, event: Box::new(event) };
        let both = sample(composed(vec![gaussian_event(mu), choice]));
        for at in [0.0, 0.02, 0.1, 0.5] {
            let found = delta(&both, at).unwrap().value;
            let mut largest: f64 = 0.0;
            for i in 1..20 {
                for removes in [true, false] {
                    largest = largest.max(of_mixed_sample(rate, mu, range, range * f64::from(i) / 20.0, at, removes));
                }
            }
            assert!(found >= largest * (1.0 - 1e-9), "{rate} {mu} {range} {at}: {found} {largest}");
            let most = if at <= 0.1 { 1.2 } else { 2.5 };
            assert!(found <= most * largest, "{rate} {mu} {range} {at}: {found} {largest}");
        }
    }
}

#[test]
fn pure_guarantees_on_the_sample_of_gaussian_noise_have_an_exact_curve() {
    let step = |beside: Vec<DpEvent>| {
        let events = core::iter::once(gaussian_event(0.5)).chain(beside).collect();
        repeated(DpEvent::PoissonSampled { sampling_rate: 0.03, event: Box::new(composed(events)) }, 600)
    };
    let alone = at(&step(Vec::new()), 1e-5).value;
    let choice = at(&step(vec![DpEvent::BoundedRange { epsilon: 0.2 }]), 1e-5);
    assert_eq!(choice.theorem, Theorem::ContourIntegral);
    let as_gaussian = at(&step(vec![gaussian_event(gdp::mu_of_bounded_range(0.2).unwrap())]), 1e-5).value;
    assert!((choice.value / as_gaussian - 1.0).abs() < 1e-9 && choice.value > alone);
    // Half of the range as a pure guarantee is the same; Laplace noise is no worse than its guarantee.
    let pure = at(&step(vec![pure_event(0.1)]), 1e-5).value;
    let laplace = at(&step(vec![DpEvent::Laplace { scale: 10.0, sensitivity: 1.0 }]), 1e-5).value;
    assert!((pure / choice.value - 1.0).abs() < 1e-9 && (laplace / pure - 1.0).abs() < 1e-9);
    // What has no pure guarantee is bounded by its Renyi curve, as before.
    assert_eq!(at(&step(vec![DpEvent::Zcdp { rho: 0.005 }]), 1e-5).theorem, Theorem::Renyi);
    // Renyi curves lose more than this.
    assert!(
        choice.value
            < 0.94
                * RdpCurve::new(&step(vec![DpEvent::BoundedRange { epsilon: 0.2 }]))
                    .unwrap()
                    .epsilon(Delta::new(1e-5).unwrap())
    );
}

/// What costs nothing on a sample, or almost nothing, costs nothing beside other releases.
#[test]
fn tiny_choices_on_a_sample_cost_next_to_nothing() {
    let sample = |event| DpEvent::PoissonSampled { sampling_rate: 0.03, event: Box::new(event) };
    let sgd = repeated(sample(gaussian_event(0.5)), 600);
    let alone = at(&sgd, 1e-5).value;
    for beside in [
        DpEvent::BoundedRange { epsilon: 0.0 },
        repeated(pure_event(0.0), 2),
        DpEvent::BoundedRange { epsilon: 1e-200 },
        composed(vec![pure_event(1e-170), pure_event(1e-180)]),
    ] {
        let both = at(&composed(vec![sgd.clone(), repeated(sample(beside.clone()), 600)]), 1e-5).value;
        assert!(both >= alone * (1.0 - 1e-12) && both <= alone * (1.0 + 1e-6), "{beside:?}: {both} {alone}");
        let found = at(&sample(beside.clone()), 1e-5).value;
        assert!((0.0..1e-9).contains(&found), "{beside:?}: {found}");
    }
}

/// A choice on a sample costs no more than its pure guarantee, also where its Gaussian costs more; and no more than one as a Gaussian.
#[test]
fn a_sampled_choice_beside_others_adds_no_more_than_its_pure_guarantee() {
    let sample = |rate: f64, event| DpEvent::PoissonSampled { sampling_rate: rate, event: Box::new(event) };
    let sgd = repeated(sample(0.01, gaussian_event(1.0)), 100);
    let alone = at(&sgd, 1e-5).value;
    let both = at(&composed(vec![sgd, sample(0.001, DpEvent::BoundedRange { epsilon: 8.0 })]), 1e-5).value;
    let pure = (0.001 * 8f64.exp_m1()).ln_1p();
    assert!(both <= (alone + pure) * (1.0 + 1e-9), "{both} {alone} {pure}");
    let steps = repeated(sample(0.03, DpEvent::BoundedRange { epsilon: 4.0 }), 600);
    let as_gaussian = repeated(sample(0.03, gaussian_event(gdp::mu_of_bounded_range(4.0).unwrap())), 600);
    assert!(at(&steps, 1e-2).value <= at(&as_gaussian, 1e-2).value * (1.0 + 1e-9));
}

#[test]
fn samples_cost_no_more_than_the_probability_of_taking_part() {
    let event = |std_dev| Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 });
    let poisson = |std_dev| DpEvent::PoissonSampled { sampling_rate: 1e-3, event: event(std_dev) };
    let fixed_size = |std_dev| DpEvent::SampledWithoutReplacement { sampling_rate: 1e-3, event: event(std_dev) };
    let group = |event, size| DpEvent::Group { size, event: Box::new(event) };
    for std_dev in [0.01, 1.0] {
        for (event, probability) in [
            (repeated(fixed_size(std_dev), 10), 1.0 - 0.999f64.powi(10)),
            (group(repeated(poisson(std_dev), 10), 3), 1.0 - 0.999f64.powi(30)),
            (group(repeated(fixed_size(std_dev), 10), 3), 1.0 - 0.997f64.powi(10)),
            (DpEvent::AddRemoveTwice { event: Box::new(repeated(poisson(std_dev), 10)) }, 1.0 - 0.999f64.powi(20)),
            (composed(vec![repeated(fixed_size(std_dev), 10), DpEvent::ApproximateDp { epsilon: 0.0, delta: 0.1 }]), {
                1.0 - 0.9 * 0.999f64.powi(10)
            }),
        ] {
            for epsilon in [0.0, 1.0, 8.0] {
                let found = delta(&event, epsilon).unwrap().value;
                assert!(found <= probability * (1.0 + 1e-12), "{found} at {epsilon} for {event:?}");
            }
            assert_eq!(at(&event, probability * (1.0 + 1e-9)).value, 0.0);
        }
    }
    // With so little noise the sample can be seen, so that no bound can be smaller.
    let seen = composed(vec![repeated(fixed_size(0.01), 10)]);
    let found = delta(&seen, 5.0).unwrap();
    assert_eq!(found.theorem, Theorem::Participation);
    assert!(at(&seen, found.value * 0.9999).value > 10.0);
}

/// The sum of the shares at a fraction of epsilon grows faster than one record's delta falls.
#[test]
fn a_group_costs_no_more_than_its_size_times_one_record_at_zero() {
    let one = repeated(DpEvent::PoissonSampled { sampling_rate: 0.01, event: Box::new(gaussian_event(3.0)) }, 4);
    let group = DpEvent::Group { size: 5, event: Box::new(one.clone()) };
    let most = 5.0 * delta(&one, 0.0).unwrap().value * (1.0 + 1e-12);
    for epsilon in [0.0, 1.0, 3.0] {
        let found = delta(&group, epsilon).unwrap().value;
        assert!(found <= most, "{found} at {epsilon}, above {most}");
    }
    assert_eq!(at(&group, most * (1.0 + 1e-9)).value, 0.0);
}
