use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_mechanisms::SeededRng;
use proptest::prelude::*;

use super::*;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{BoltOn, DpSgd, Majority, ObjPert, OneVsAll, budget};
use crate::tuning::portions::Portions;

/// One record of ten is positive, and two thirds of those have the feature.
fn source(n: usize) -> MemorySource<f64> {
    let positive = |i: usize| i.is_multiple_of(10);
    let rows = (0..n).flat_map(|i| [f64::from(u8::from(positive(i) && !i.is_multiple_of(30))), 0.7]);
    let targets = (0..n).map(|i| if positive(i) { 1.0 } else { -1.0 });
    MemorySource::new(Examples::dense(rows.map(|x| 0.7 * x).collect(), targets.collect(), 2).unwrap(), 1.0, 1.0)
}

fn recipes() -> Vec<AnyRecipe> {
    let loss = LossKind::Logistic;
    vec![
        BoltOn::strongly_convex(loss, 0.01).into(),
        ObjPert::approximate(loss).into(),
        DpSgd { passes: 2, ..DpSgd::new(loss) }.into(),
        Majority::new(loss).into(),
    ]
}

/// The threshold is the log-odds of the noisy base rate: its noise has about the scale 1/(share epsilon) in records under zero-out.
#[test]
fn the_threshold_is_at_the_base_rate() {
    let (n, epsilon) = (5000, 0.5);
    for recipe in recipes() {
        let recipe = AtBaseRate::new(recipe);
        let plan = recipe.plan::<ZeroOut>(n as u64, 2, budget(epsilon, 1e-6)).unwrap();
        let mut apart = Vec::new();
        for seed in 0..40 {
            let mut rng = SeededRng::new(seed);
            let trained = plan.train::<f64>(&mut source(n), &mut rng, &mut Control::default()).unwrap();
            let weights = trained.weights.into_inner();
            assert!(weights.len() == 3);
            let lattice = plan.derivation().release_lattice().unwrap();
            lattice.check(&weights).unwrap();
            assert!(lattice.check(&[]).is_err());
            let positives = n as f64 / (1.0 + (-weights[2]).exp());
            apart.push((positives - 500.0).abs());
        }
        // Noise `(a, b)` on the counts moves the number of positives by `0.9 a - 0.1 b`, whose mean size is `0.9 · 1.39` scales
        // for noise of density `exp(-|z|)` in the plane; the mean of 40 is off by a factor of two once in 10^4 times.
        let (mean, scale) = (apart.iter().sum::<f64>() / 40.0, 1.0 / (0.05 * epsilon));
        assert!(mean > 0.5 * scale && mean < 2.0 * scale, "{mean} {scale}");
    }
}

/// A model that is the base rate itself, with the same noise: one event, twice.
#[test]
fn equal_events_are_counted_twice() {
    let recipe = AtBaseRate { share: 0.5, ..AtBaseRate::new(Majority::new(LossKind::Logistic)) };
    let plan = recipe.plan::<ZeroOut>(5000, 2, budget(0.5, 0.0)).unwrap();
    assert!((plan.reached().epsilon / 0.5 - 1.0).abs() < 1e-9);
    let trained = plan.train::<f64>(&mut source(5000), &mut SeededRng::new(1), &mut Control::default()).unwrap();
    assert_eq!(trained.log.to_event(), plan.event());
}

/// A count beyond all records, by noise, gives a threshold that is finite.
#[test]
fn rates_of_zero_and_one_are_finite() {
    let plan = AtBaseRate::new(recipes().remove(0)).plan::<ZeroOut>(4, 2, budget(0.01, 0.0)).unwrap();
    for seed in 0..20 {
        let mut rng = SeededRng::new(seed);
        let trained = plan.train::<f64>(&mut source(4), &mut rng, &mut Control::default()).unwrap();
        assert!(trained.weights.get()[2].abs() <= (9.0f64).ln() + 1e-12);
    }
}

#[test]
fn what_has_no_base_rate_is_refused() {
    let [logistic, svm] =
        [LossKind::Logistic, "huber-svm".parse().unwrap()].map(|loss| BoltOn::strongly_convex(loss, 0.01));
    let plan = |recipe: AtBaseRate| recipe.plan::<ZeroOut>(1000, 2, budget(1.0, 1e-6));
    let of = |recipe: AnyRecipe| AtBaseRate::new(recipe);
    assert!(plan(of(logistic.clone().into())).is_ok());
    for recipe in [
        AnyRecipe::from(svm),
        OneVsAll::new(logistic.clone().into(), 3).into(),
        Portions::new([logistic.clone().into(), BoltOn::strongly_convex(LossKind::Logistic, 0.1).into()]).into(),
        of(logistic.clone().into()).into(),
        BoltOn { target_bound: 0.5, ..logistic.clone() }.into(),
    ] {
        assert!(plan(of(recipe.clone())).is_err(), "{recipe:?}");
    }
    // Nor is it part of another recipe.
    let inner: AnyRecipe = of(logistic.clone().into()).into();
    assert!(OneVsAll::new(inner.clone(), 3).plan::<ZeroOut>(1000, 2, budget(1.0, 1e-6)).is_err());
    assert!(Portions::new([inner, logistic.clone().into()]).plan::<ZeroOut>(1000, 2, budget(1.0, 1e-6)).is_err());
    for share in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(plan(AtBaseRate { share, ..of(logistic.clone().into()) }).is_err());
    }
    // A certificate whose parts are of different records, relations, noise or targets.
    let derivation = plan(of(logistic.into())).unwrap().derivation();
    let event = |change: &dyn Fn(&mut AtBaseRateDerivation)| {
        let mut changed = derivation.clone();
        change(&mut changed);
        let refused = changed.event().is_err();
        assert_eq!(refused, changed.model_terms().weights == 0);
        refused
    };
    assert!(!event(&|_| ()));
    assert!(event(&|derivation| derivation.rate.n = 2000));
    assert!(event(&|derivation| derivation.rate.dim = 2));
    assert!(event(&|derivation| derivation.rate.relation = AdjacencyKind::ReplaceOne));
    assert!(event(&|derivation| derivation.rate.recipe.noise_mode = NoiseMode::Rounded));
    assert!(event(&|derivation| derivation.rate.recipe.target_bound = 0.5));
    assert!(event(&|derivation| derivation.rate.recipe.loss = LossKind::Squared));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn budgets_are_kept(epsilon in 0.05..3.0f64, pure in any::<bool>(), share in 0.01..0.9f64, copies in 1u64..3, which in 0usize..4) {
        let delta = if pure { 0.0 } else { 1e-6 };
        let recipe = AtBaseRate { share, ..AtBaseRate::new(recipes().remove(which)) };
        // Some algorithms have no guarantee at delta 0.
        if let Ok(plan) = recipe.plan_copies::<ReplaceOne>(1000, 2, budget(epsilon, delta), copies) {
            prop_assert!(plan.reached().epsilon <= epsilon);
            prop_assert_eq!(plan.event(), plan.derivation().event().unwrap());
        } else {
            // Copies of a group's releases beside pure ones have no joint curve.
            prop_assert!((pure && matches!(which, 1 | 2)) || (copies > 1 && which == 1));
        }
    }
}
