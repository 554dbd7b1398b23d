use dp_losses::HuberSvm;

use super::*;

fn clipped(norm: f64) -> Contributions {
    Contributions::Clipped(ClippingNorm::new(norm).unwrap())
}

#[test]
fn the_relation_decides_how_far_a_record_moves_a_sum() {
    for float in [FloatKind::F64, FloatKind::F32] {
        let bounded = Contributions::Bounded { lipschitz: 1.0, difference: 1.2 };
        for (contributions, replace, zero) in [(clipped(0.5), 1.0, 0.5), (bounded, 1.2, 1.0)] {
            let sum = StepSum::whole(contributions, 1, float);
            for (relation, expected) in [(AdjacencyKind::ReplaceOne, replace), (AdjacencyKind::ZeroOut, zero)] {
                let found = sum.sensitivity(relation).unwrap();
                assert!(found > expected && found < expected * (1.0 + 1e-14), "{found}");
            }
            for relation in [AdjacencyKind::AddRemoveOne, AdjacencyKind::ChangeListLabels] {
                assert!(matches!(sum.sensitivity(relation), Err(Error::Adjacency { .. })));
            }
        }
    }
}

/// Single precision is charged as double precision is, and the charge of either hardly grows with the records.
#[test]
fn rounding_does_not_outweigh_a_record() {
    let allowance = |examples| {
        let of =
            |float| StepSum::whole(clipped(1.0), examples, float).sensitivity(AdjacencyKind::ZeroOut).unwrap() - 1.0;
        assert_eq!(of(FloatKind::F32), of(FloatKind::F64));
        of(FloatKind::F64)
    };
    // 2 (50 + 3) 50 υ.
    assert!((allowance(50) - 106.0 * 50.0 * 2f64.powi(-53)).abs() < 3e-15);
    for (n, most) in [(1000, 1e-9), (60_000, 2e-8), (1_000_000, 3e-7), (100_000_000, 3e-5), (1_000_000_000, 3e-4)] {
        assert!(allowance(n) < most, "{n}: {}", allowance(n));
    }
    assert!(allowance(1 << 32) < 1e-3);
}

#[test]
fn what_cannot_be_summed_is_refused() {
    let sensitivity = |contributions, examples, float| {
        StepSum::whole(contributions, examples, float).sensitivity(AdjacencyKind::ReplaceOne).is_ok()
    };
    assert!(sensitivity(clipped(1e150), 1000, FloatKind::F64));
    assert!(!sensitivity(clipped(1e150), 1000, FloatKind::F32) && !sensitivity(clipped(1e-20), 1, FloatKind::F32));
    assert!(!sensitivity(clipped(1.0), 1 << 45, FloatKind::F32), "a sum that rounding could take all of");
    for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        assert!(!sensitivity(Contributions::Bounded { lipschitz: bad, difference: 1.0 }, 1, FloatKind::F64));
    }
}

#[test]
fn losses_bound_their_gradients() {
    let domain = Domain::unit_rows();
    let radius = |radius| domain.with_radius(radius).unwrap();
    let of = |loss: LossKind, domain: Domain, float| Contributions::of_loss(&loss, &domain, 10, float);
    let bounds = |loss, domain| match of(loss, domain, FloatKind::F64).unwrap() {
        Contributions::Bounded { lipschitz, difference } => (lipschitz, difference),
        Contributions::Clipped(_) => unreachable!(),
    };
    let near = |(lipschitz, difference): (f64, f64), l: f64, g: f64| {
        assert!(lipschitz > l && lipschitz < l * (1.0 + 1e-13), "{lipschitz} {l}");
        assert!(difference > g && difference < g * (1.0 + 1e-13), "{difference} {g}");
    };
    near(bounds(LossKind::Logistic, domain), 1.0, 2.0);
    near(
        bounds(LossKind::Logistic, radius(1.0)),
        1.0 / (1.0 + (-1f64).exp()),
        dp_losses::logistic_gradient_difference(1.0),
    );
    near(bounds(LossKind::HuberSvm(HuberSvm::USUAL), radius(5.0)), 1.0, 2.0);
    near(bounds(LossKind::Hinge, radius(5.0)), 1.0, 2.0);
    near(bounds(LossKind::Squared, radius(3.0)), 4.0, dp_losses::squared_gradient_difference(3.0, 1.0));
    assert!(matches!(of(LossKind::Squared, domain, FloatKind::F64), Err(Error::NotProved { .. })));
    // In single precision the predictions' rounding shows.
    let Contributions::Bounded { difference, .. } = of(LossKind::Logistic, radius(10.0), FloatKind::F32).unwrap()
    else {
        unreachable!()
    };
    let exact = dp_losses::logistic_gradient_difference(10.0);
    assert!(difference > exact + 1e-6 && difference < exact + 1e-3, "{difference}");
}
