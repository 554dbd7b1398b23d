use dp_losses::{HuberSvm, Softmax};

use dp_mechanisms::clip::ClippingNorm;

use super::*;

fn clipped(norm: f64) -> Contributions {
    Contributions::Clipped(ClippingNorm::new(norm).unwrap().into())
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

/// Single precision has the same allowance as double precision, and neither grows much with the number of records.
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
    assert!(sensitivity(clipped(1e28), 10, FloatKind::F32) && !sensitivity(clipped(1e28), 1000, FloatKind::F32));
    assert!(!sensitivity(clipped(1.0), 1 << 45, FloatKind::F32), "a sum that rounding could take all of");
    for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        assert!(!sensitivity(Contributions::Bounded { lipschitz: bad, difference: 1.0 }, 1, FloatKind::F64));
    }
}

/// The allowance of a plain sum covers each of its roundings, in its own precision.
#[test]
fn plain_sums_are_charged_what_they_round() {
    for (float, examples, microbatch) in [
        (FloatKind::F32, 1, 1),
        (FloatKind::F32, 1000, 1000),
        (FloatKind::F32, 1000, 10),
        (FloatKind::F32, 5000, 1),
        (FloatKind::F64, 1_000_000, 1000),
    ] {
        for bound in [0.5, 1.0, 4.0] {
            let sum = StepSum::whole(clipped(bound), examples, float);
            let plain = sum.added_up(Summation::Plain, microbatch);
            let found = plain.sensitivity(AdjacencyKind::ZeroOut).unwrap() / bound - 1.0;
            // A product and an addition for each example of a microbatch, an addition for each microbatch; on both sides.
            let roundings = (microbatch + examples.div_ceil(microbatch)) as f64;
            let needed = 2.0 * roundings * examples as f64 * float.unit_roundoff();
            assert!(found >= needed && found <= 2.1 * needed + 1e-14, "{examples} {microbatch}: {found} {needed}");
            assert_eq!(sum.added_up(Summation::Compensated, microbatch), sum);
        }
    }
    // A case in which the products and sums of the bound and its share are exact: `1 + 2 γ` with `γ > 4 υ`.
    let one = StepSum::whole(clipped(1.0), 1, FloatKind::F64).added_up(Summation::Plain, 1);
    assert!(one.sensitivity(AdjacencyKind::ZeroOut).unwrap() > 1.0 + 4.0 * f64::EPSILON);
    let long = StepSum::whole(clipped(1.0), 1 << 20, FloatKind::F32);
    assert!(matches!(
        long.added_up(Summation::Plain, 1 << 20).sensitivity(AdjacencyKind::ZeroOut),
        Err(Error::Count { .. })
    ));
}

/// In single precision and many dimensions the rounding of predictions is no longer small: `d υ R` in each; for softmax also
/// the subtraction of the largest score and the residuals of all classes.
#[test]
fn predictions_that_round_are_charged() {
    let float = FloatKind::F32;
    let roundoff = float.unit_roundoff();
    let softmax = LossKind::Softmax(Softmax::new(50).unwrap());
    for loss in [LossKind::Logistic, LossKind::HuberSvm(HuberSvm::USUAL), softmax] {
        for (features, radius) in [(100_000, 0.25), (100_000, 4.0), (3, 0.5)] {
            let domain = |radius| Domain::unit_rows().with_radius(radius).unwrap();
            let Contributions::Bounded { lipschitz, difference } =
                Contributions::of_loss(&loss, &domain(radius), features, float).unwrap()
            else {
                unreachable!()
            };
            // A projection's own rounding: that of a norm.
            let radius = radius * (1.0 + loss.parameters(features) as f64 * roundoff);
            let constants = loss.constants(L2::NONE, &domain(radius));
            let most = loss.constants(L2::NONE, &Domain::unit_rows()).data_lipschitz;
            let (scores, residuals) = if loss.outputs() > 1 { (4.0, 2.0 * 50.0) } else { (0.0, 0.0) };
            let slip = constants.smoothness * (features as f64 + scores) * roundoff * radius;
            let residuals = residuals * roundoff * constants.data_lipschitz;
            let one = (constants.data_lipschitz + slip).min(most) + residuals;
            let two = (constants.gradient_difference + 2.0 * slip).min(2.0 * most) + 2.0 * residuals;
            for (found, needed) in [(lipschitz, one), (difference, two)] {
                assert!(found >= needed && found <= needed * (1.0 + 1e-5), "{loss:?} {features}: {found} {needed}");
            }
        }
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
    // In single precision the rounding of predictions is visible.
    let Contributions::Bounded { difference, .. } = of(LossKind::Logistic, radius(10.0), FloatKind::F32).unwrap()
    else {
        unreachable!()
    };
    let exact = dp_losses::logistic_gradient_difference(10.0);
    assert!(difference > exact + 1e-6 && difference < exact + 1e-3, "{difference}");
}
