//! Tests of penalties, and of descents other than plain.

use dp_losses::Penalty;

use super::*;
use crate::engine::AdmmOutput;

/// Records whose label depends on the first of `dim` features alone; the last feature is constant.
fn wide_source(n: usize, dim: usize) -> MemorySource<f64> {
    let entry = |i: usize, j: usize| match j {
        0 => 0.5 * if i.is_multiple_of(2) { 1.0 } else { -1.0 },
        j if j + 1 == dim => 0.5,
        j => 0.3 * (((i * (2 * j + 3) + j * j) % 7) as f64 / 3.0 - 1.0) / (dim as f64).sqrt(),
    };
    let rows = (0..n).flat_map(|i| (0..dim).map(move |j| entry(i, j))).collect();
    let labels = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    MemorySource::new(Examples::dense(rows, labels, dim).unwrap(), 1.0, 1.0)
}

const N: usize = 4000;
const DIM: usize = 10;

fn l1(lambda: f64) -> Option<Penalty> {
    Some(Penalty::L1 { lambda })
}

fn base() -> DpSgd {
    DpSgd {
        sampling: Sampling::Passes,
        batch_size: u64::MAX,
        passes: 30,
        schedule: Some(Schedule::Constant { step: 2.0 }),
        intercept: true,
        ..DpSgd::new(LossKind::Logistic)
    }
}

fn released(recipe: &DpSgd, seed: u64) -> Vec<f64> {
    let plan = recipe.plan::<ZeroOut>(N as u64, DIM as u64, budget()).unwrap();
    let trained = plan.train(&mut wide_source(N, DIM), &mut SeededRng::new(seed), &mut Control::default()).unwrap();
    assert_eq!(trained.log.to_event(), plan.event());
    assert_eq!(plan.derivation().event().unwrap(), plan.event());
    trained.weights.into_inner()
}

/// Every descent, with a penalty if it takes one.
fn descents() -> Vec<DpSgd> {
    vec![
        DpSgd { penalty: l1(0.02), ..base() },
        DpSgd { penalty: l1(0.02), averaging: Averaging::Uniform, ..base() },
        DpSgd { penalty: Some("mcp:0.02:3".parse().unwrap()), averaging: Averaging::Polynomial, ..base() },
        DpSgd { penalty: Some("elastic-net:0.02:0.1".parse().unwrap()), descent: Descent::suited_to(0.2), ..base() },
        DpSgd { penalty: l1(0.02), descent: Descent::Admm { rho: 0.25, output: AdmmOutput::Sparse }, ..base() },
        DpSgd { penalty: l1(0.02), descent: Descent::Admm { rho: 0.25, output: AdmmOutput::Smooth }, ..base() },
        DpSgd {
            descent: Descent::Adam { first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8 },
            schedule: Some(Schedule::Constant { step: 0.1 }),
            ..base()
        },
        DpSgd {
            descent: Descent::AdamBc { first_decay: 0.9, second_decay: 0.999, floor: 0.1 },
            schedule: Some(Schedule::Constant { step: 0.1 }),
            lambda: 0.001,
            ..base()
        },
    ]
}

/// All have one event: post-processing of the noisy sums costs nothing.
#[test]
fn no_descent_and_no_penalty_costs_anything() {
    fn check<A: RecordAdjacency>() {
        let straight = base().plan::<A>(N as u64, DIM as u64, budget()).unwrap();
        for recipe in descents() {
            let plan = recipe.plan::<A>(N as u64, DIM as u64, budget()).unwrap();
            assert_eq!(
                (plan.event(), plan.run().std_dev()),
                (straight.event(), straight.run().std_dev()),
                "{recipe:?}"
            );
        }
    }
    check::<ReplaceOne>();
    check::<ZeroOut>();
}

#[test]
fn all_descents_learn() {
    for recipe in descents() {
        for seed in 0..3 {
            let weights = released(&recipe, seed);
            assert!(weights.iter().all(|weight| weight.is_finite()));
            assert!(weights[0] > 1.0, "{recipe:?}: {weights:?}");
        }
    }
}

#[test]
fn what_is_released_is_sparse_and_the_intercept_is_not_shrunk() {
    let zeros = |weights: &[f64]| weights[..DIM - 1].iter().filter(|weight| **weight == 0.0).count();
    for recipe in descents() {
        let weights = released(&recipe, 1);
        let smooth = matches!(recipe.descent, Descent::Admm { output: AdmmOutput::Smooth, .. });
        if recipe.penalty.is_some() && !smooth {
            assert!(zeros(&weights) >= 5 && weights[0] != 0.0, "{recipe:?}: {weights:?}");
            // A penalty under which no other weight survives.
            let strong = DpSgd { penalty: l1(5.0), ..recipe };
            let weights = released(&strong, 1);
            assert_eq!(zeros(&weights), DIM - 1, "{strong:?}: {weights:?}");
            assert_ne!(weights[DIM - 1], 0.0);
            let all = released(&DpSgd { intercept: false, ..strong }, 1);
            assert_eq!(all, [0.0; DIM]);
        } else {
            assert_eq!(zeros(&weights), 0, "{recipe:?}: {weights:?}");
        }
    }
}

/// If noise moves every weight away from zero now and then, a mean of iterates has zeros only because of the final map.
#[test]
fn a_mean_of_iterates_goes_through_the_map() {
    let weights = released(&DpSgd { penalty: l1(0.006), averaging: Averaging::Uniform, ..base() }, 1);
    assert!(weights[..DIM - 1].iter().filter(|weight| **weight == 0.0).count() > 2, "{weights:?}");
}

#[test]
fn softmax_takes_groups_and_the_nuclear_norm() {
    let loss = LossKind::Softmax(Softmax::new(3).unwrap());
    let n = 3000;
    let rows = (0..n)
        .flat_map(|i| {
            let one = |k| 0.6 * f64::from(u8::from(i % 3 == k));
            [one(0), one(1), 0.3 * ((i % 7) as f64 / 3.0 - 1.0), 0.3]
        })
        .collect();
    let targets: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
    let mut source = MemorySource::new(Examples::dense(rows, targets, 4).unwrap(), 1.0, 2.0);
    for penalty in ["group:0.02", "group:0.02:2", "nuclear:0.02"] {
        let penalty: Penalty = penalty.parse().unwrap();
        let recipe = DpSgd { penalty: Some(penalty.clone()), ..DpSgd { loss, target_bound: 2.0, ..base() } };
        let plan = recipe.plan::<ZeroOut>(n as u64, 4, budget()).unwrap();
        let trained: Trained<f64, _, _> =
            plan.train(&mut source, &mut SeededRng::new(3), &mut Control::default()).unwrap();
        let weights = trained.weights.get();
        assert!(weights[0] > weights[8] && weights[5] > weights[9], "{penalty}: {weights:?}");
        if !matches!(penalty, Penalty::Nuclear { .. }) {
            assert!([2, 6, 10].iter().all(|&j| weights[j] == 0.0), "{penalty}: {weights:?}");
        }
    }
    let three = Penalty::Group { lambda: 0.1, sizes: vec![3, 1] };
    let refused = DpSgd { penalty: Some(three), ..DpSgd { loss, target_bound: 2.0, ..base() } };
    assert!(matches!(refused.plan::<ZeroOut>(n as u64, 4, budget()), Err(Error::Loss(_))));
}

#[test]
fn what_fits_no_penalty_is_refused() {
    let adam = Descent::Adam { first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8 };
    let admm = Descent::Admm { rho: 0.25, output: AdmmOutput::Sparse };
    let penalty = |text: &str| Some(text.parse::<Penalty>().unwrap());
    let net = |ridge| Some(Penalty::ElasticNet { lambda: 0.1, ridge });
    let falling = Some(Schedule::InverseSqrt { step: 1.0 });
    let corrected = Descent::AdamBc { first_decay: 0.9, second_decay: 0.999, floor: 0.1 };
    for (bad, why) in [
        (DpSgd { descent: adam, penalty: l1(0.1), ..base() }, "an adaptive step and a map"),
        (DpSgd { descent: admm, ..base() }, "nothing to split off"),
        (DpSgd { penalty: l1(-1.0), ..base() }, "a number"),
        (DpSgd { penalty: Some(Penalty::Scad { lambda: 0.1, a: 1.0 }), ..base() }, "a number"),
        (DpSgd { penalty: penalty("mcp:0.1:1.9"), ..base() }, "the step is 2"),
        (DpSgd { descent: admm, penalty: penalty("mcp:0.1:3.9"), ..base() }, "1/rho is 4"),
        (DpSgd { descent: admm, penalty: net(0.6), ..base() }, "its copies may run away"),
        (DpSgd { descent: Descent::suited_to(0.1), penalty: net(0.6), schedule: falling, ..base() }, "moves add up"),
        (DpSgd { descent: admm, penalty: l1(0.1), lambda: 2.0, ..base() }, "steps beyond 2/lambda"),
        (DpSgd { descent: adam, schedule: Some(Schedule::Constant { step: 1e140 }), ..base() }, "range"),
        (DpSgd { descent: corrected, lambda: 1e4, passes: 300, ..base() }, "a geometric sum"),
    ] {
        assert!(bad.plan::<ZeroOut>(N as u64, DIM as u64, budget()).is_err(), "{why}: {bad:?}");
    }
    for good in [
        DpSgd { descent: admm, penalty: net(0.5), ..base() },
        DpSgd { descent: admm, penalty: penalty("mcp:0.1:4.1"), ..base() },
        DpSgd { descent: corrected, lambda: 1e4, passes: 300, radius: Some(2.0), ..base() },
    ] {
        assert!(good.plan::<ZeroOut>(N as u64, DIM as u64, budget()).is_ok(), "{good:?}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn recipes_without_a_penalty_are_written_as_before() {
    let text = serde_json::to_string(&DpSgd { intercept: false, ..base() }).unwrap();
    assert!(!text.contains("penalty") && !text.contains("intercept"), "{text}");
    for recipe in descents() {
        let text = serde_json::to_string(&recipe).unwrap();
        assert_eq!(serde_json::from_str::<DpSgd>(&text).unwrap(), recipe, "{text}");
    }
    let admm = r#"{"kind":"admm","rho":0.5}"#;
    let descent: Descent = serde_json::from_str(admm).unwrap();
    assert_eq!(descent, Descent::Admm { rho: 0.5, output: AdmmOutput::Sparse });
    assert!(serde_json::from_str::<Descent>(r#"{"kind":"admm","rho":0.5,"theta":1}"#).is_err());
}

#[test]
fn admm_of_the_literature() {
    let penalty = Penalty::L1 { lambda: 0.001 };
    let on_batches = |relation| DpSgd::ss_admm(LossKind::Logistic, penalty.clone(), 4001, relation);
    let fixed = on_batches(AdjacencyKind::ReplaceOne).plan::<ReplaceOne>(4001, 3, budget()).unwrap();
    assert_eq!((fixed.run().steps(), fixed.run().divisor()), (640, 63.0));
    assert!((fixed.run().sensitivity() - 2.0).abs() < 1e-9);
    assert!(on_batches(AdjacencyKind::ZeroOut).plan::<ZeroOut>(4001, 3, budget()).is_ok());
    assert!(on_batches(AdjacencyKind::ReplaceOne).plan::<ZeroOut>(4001, 3, budget()).is_err());
    // Noise on the model of mp-admm is noise on its gradient.
    let all = DpSgd::mp_admm(LossKind::Logistic, penalty).plan::<ReplaceOne>(4001, 3, budget()).unwrap();
    assert_eq!((all.run().steps(), all.run().divisor()), (10, 4001.0));
    let on_model = admm::std_dev_on_the_model(all.run().std_dev() / 4001.0, 1.0, 0.5);
    let sensitivity = admm::std_dev_on_the_model(all.run().sensitivity() / 4001.0, 1.0, 0.5);
    assert!((on_model / sensitivity - all.run().std_dev() / all.run().sensitivity()).abs() < 1e-12);
    assert!((admm::std_dev_on_the_gradient(on_model, 1.0, 0.5) - all.run().std_dev() / 4001.0).abs() < 1e-15);
    assert!((sensitivity - 2.0 / (4001.0 * 1.5)).abs() < 1e-9);
}

#[test]
fn recommended_recipes_of_other_steps_can_be_planned_and_learn() {
    let (n, dim) = (N as u64, DIM as u64);
    let gd = DpSgd::full_gradient(LossKind::Logistic, n, dim, budget(), AdjacencyKind::ZeroOut).unwrap();
    let adaptive = |recipe: DpSgd| recipe.with_adaptive_steps(n, dim, budget(), AdjacencyKind::ZeroOut).unwrap();
    let (adam, bc) = (adaptive(DpSgd::adam(LossKind::Logistic)), adaptive(DpSgd::adam_bc(LossKind::Logistic)));
    for recipe in [gd, adam, bc] {
        let weights = released(&recipe, 2);
        assert!(weights[0] > 0.5, "{recipe:?}: {weights:?}");
    }
    for (n, dim) in [(1, 1), (10, 1000), (1_000_000, 3)] {
        for loss in [LossKind::Logistic, LossKind::Hinge] {
            let recipe = DpSgd::full_gradient(loss, n, dim, budget(), AdjacencyKind::ReplaceOne).unwrap();
            assert!((1..=200).contains(&recipe.passes));
            recipe.plan::<ReplaceOne>(n, dim, budget()).unwrap();
        }
    }
}
