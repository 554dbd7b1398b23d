//! Tests of consensus ADMM.

use dp_data::Order;
use dp_losses::Penalty;

use super::*;
use crate::engine::BatchSizes;

fn recipe(parties: u64) -> DpSgd {
    DpSgd { passes: 400, lambda: 0.05, ..DpSgd::dp_admm(LossKind::Logistic, parties) }
}

/// Two thirds of the labels follow the first feature, and the parts of the order as held differ.
fn uneven(n: usize) -> MemorySource<f64> {
    let row = |i: usize| if 2 * i < n { [0.8, 0.1, 0.5] } else { [-0.3, 0.7, 0.5] };
    let rows = (0..n).flat_map(row).collect();
    let labels = (0..n).map(|i| if (i % 3 == 0) == (2 * i < n) { -1.0 } else { 1.0 }).collect();
    MemorySource::new(Examples::dense(rows, labels, 3).unwrap(), 1.0, 1.0)
}

fn released(recipe: &DpSgd, n: usize) -> Vec<f64> {
    let budget = Budget::new(1e9, 1e-6).unwrap();
    let plan = recipe.plan::<ZeroOut>(n as u64, 3, budget).unwrap();
    let trained = plan.train(&mut uneven(n), &mut SeededRng::new(1), &mut Control::default()).unwrap();
    assert_eq!(trained.log.to_event(), plan.event());
    assert_eq!(plan.derivation().event().unwrap(), plan.event());
    trained.weights.into_inner()
}

/// Without noise all parties converge to the result of a single one, although the parts differ much; also with a penalty.
#[test]
fn parties_agree_on_what_one_would_find() {
    for penalty in [None, Some(Penalty::L1 { lambda: 0.03 })] {
        let with = |parties| DpSgd { declared_order: true, penalty: penalty.clone(), ..recipe(parties) };
        let alone = released(&with(1), 120);
        assert!(alone[0] > 0.1, "{alone:?}");
        for parties in [2, 5] {
            for (found, expected) in released(&with(parties), 120).iter().zip(&alone) {
                assert!((found - expected).abs() < 1e-3, "{parties} {penalty:?}: {found} {expected}");
            }
        }
    }
}

/// A record is in one part, the same in every round; the parts cover all records; and a round costs as much as the sum of one
/// part.
#[test]
fn a_record_is_one_party_s() {
    for (n, parties) in [(100, 2), (101, 4), (7, 7), (9, 4)] {
        for declared_order in [true, false] {
            let recipe = DpSgd { declared_order, ..recipe(parties) };
            let run = recipe.run(&recipe.problem(n, 3, AdjacencyKind::ZeroOut).unwrap()).unwrap();
            let (rounds, sizes, order) = run.passes([3; 32]);
            let BatchSizes::Listed(sizes) = sizes else { panic!("{sizes:?}") };
            assert_eq!((rounds, sizes.len() as u64, sizes.iter().sum::<usize>() as u64), (400, parties, n));
            assert!(sizes.iter().all(|size| size.abs_diff(sizes[0]) <= 1) && sizes[0] as u64 == run.sums.sum.examples);
            let fixed = Order::Keyed { key: [3; 32], fresh_each_pass: false };
            assert_eq!(order, if declared_order { Order::Declared } else { fixed });
            assert_eq!(run.updates(), 400 * parties);
            let DpEvent::SelfComposed { count, event } = run.event(2.0).unwrap() else { panic!("{recipe:?}") };
            assert_eq!((count, matches!(*event, DpEvent::Gaussian { .. })), (400, true));
        }
    }
    // A replaced record also affects one party only.
    let plan = |relation| recipe(3).run(&recipe(3).problem(90, 3, relation).unwrap()).unwrap().sensitivity().unwrap();
    assert!(plan(AdjacencyKind::ReplaceOne) <= 2.0 * plan(AdjacencyKind::ZeroOut) * (1.0 + 1e-9));
}

#[test]
fn refuses_parties_that_cannot_be() {
    let refused = |recipe: DpSgd| recipe.plan::<ZeroOut>(50, 3, budget()).unwrap_err().to_string();
    for (recipe, named) in [
        (recipe(0), "parties"),
        (recipe(51), "parties"),
        (recipe(1 << 40), "parties"),
        (DpSgd { sampling: Sampling::Poisson, ..recipe(2) }, "turns"),
        (DpSgd { descent: Descent::Consensus { rho: 0.0, parties: 2 }, ..recipe(2) }, "rho"),
        (DpSgd { penalty: Some(Penalty::Mcp { lambda: 0.1, gamma: 99.0 }), ..recipe(2) }, "convex"),
        (DpSgd { schedule: Some(Schedule::InverseSqrt { step: 1.0 }), ..recipe(2) }, "constant"),
    ] {
        let error = refused(recipe);
        assert!(error.contains(named), "{named}: {error}");
    }
    // Within a ball steps may fall.
    let schedule = Some(Schedule::InverseSqrt { step: 1.0 });
    assert!(DpSgd { schedule, radius: Some(5.0), ..recipe(2) }.plan::<ZeroOut>(50, 3, budget()).is_ok());
}

/// Suited rounds follow from public numbers alone: with more parties there are fewer rounds and a smaller total step.
#[test]
fn suited_rounds_shrink_with_the_parties() {
    let suited = |parties, rounds| {
        let recipe = DpSgd::dp_admm(LossKind::Logistic, parties);
        recipe.with_suited_rounds(rounds, 20_000, 10, budget(), AdjacencyKind::ZeroOut).unwrap()
    };
    assert!(suited(2, None).passes > suited(50, None).passes);
    assert_eq!(suited(2, Some(7)).passes, 7);
    let plan = suited(4, None).plan::<ZeroOut>(20_000, 10, budget()).unwrap();
    assert_eq!(plan.run().steps(), 4 * suited(4, None).passes);
}
