use proptest::prelude::*;

use super::*;

/// Every loss with a conjugate.
fn losses() -> Vec<LossKind> {
    let huber = |h| {
        [LossKind::HuberSvm(HuberSvm::new(h).unwrap()), LossKind::HuberRegression(HuberRegression::new(h).unwrap())]
    };
    let plain = [LossKind::Logistic, LossKind::Hinge, LossKind::Absolute];
    plain.into_iter().chain(huber(0.05)).chain(huber(1.5)).collect()
}

fn proximal<V: ProximalVisitor<f64>>(kind: LossKind, visitor: V) -> V::Output {
    kind.visit_proximal(visitor).unwrap()
}

/// The largest value of `ℓ(p) + [u p' - ℓ(p')] - u p` over a fine grid of `p'`: at most the true gap, and near it.
struct GapBySearch {
    dual: f64,
    prediction: f64,
    target: f64,
}

impl ProximalVisitor<f64> for GapBySearch {
    type Output = (f64, f64);
    fn visit<L: ProximalLoss<f64>>(self, loss: L) -> (f64, f64) {
        let (p, y) = (self.prediction, self.target);
        let slope = loss.slope(self.dual, y);
        let below = |q: f64| loss.value(p, y) - loss.value(q, y) - slope * (p - q);
        let best = (-40_000..40_000).map(|i| below(f64::from(i) * 1e-3)).fold(0.0, f64::max);
        (loss.gap(self.dual, p, y), best.max(below(1.0)).max(below(-1.0)).max(below(y)))
    }
}

#[test]
fn the_gap_is_that_of_fenchel_and_young() {
    for kind in losses() {
        let (low, high) = if kind.is_classification() { (0.0, 1.0) } else { (-1.0, 1.0) };
        for i in 0..=10 {
            let dual = low + (high - low) * f64::from(i) / 10.0;
            for prediction in [-7.0, -1.3, -1.0, -0.4, 0.0, 0.7, 1.0, 1.02, 1.5, 6.0] {
                for target in [-1.0, 1.0] {
                    let (gap, searched) = proximal(kind, GapBySearch { dual, prediction, target });
                    assert!(gap >= searched * (1.0 - 1e-9) - 1e-12, "{kind} {dual} {prediction}: {gap} {searched}");
                    // Logistic: a bound that is at most a few times the gap.
                    if kind != LossKind::Logistic {
                        assert!(gap <= searched + 1e-4, "{kind} {dual} {prediction}: {gap} {searched}");
                    }
                }
            }
        }
    }
}

struct AfterStep {
    dual: f64,
    prediction: f64,
    target: f64,
    curvature: f64,
}

impl ProximalVisitor<f64> for AfterStep {
    /// The new dual, the gap at the prediction to which it moves, and the larger end of the range.
    type Output = (f64, f64);
    fn visit<L: ProximalLoss<f64>>(self, loss: L) -> Self::Output {
        let Self { dual, prediction, target, curvature } = self;
        let after = loss.dual_step(dual, prediction, target, curvature);
        let (low, high) = loss.dual_range();
        assert!(after >= low && after <= high, "{after}");
        let moved = loss.slope(after, target) - loss.slope(dual, target);
        (after, loss.gap(after, prediction - curvature * moved, target))
    }
}

/// Newton's method on this equation cycles between two points, 5 on either side of the root.
#[test]
fn a_steep_logistic_step_settles() {
    for log_curvature in 0..60 {
        let curvature = (f64::from(log_curvature) / 4.0).exp();
        for (dual, prediction) in [(0.9686144978570997, 5.322222578428006), (0.5, 0.3), (0.999, 3.0), (0.001, -3.0)] {
            let step = AfterStep { dual, prediction, target: 1.0, curvature };
            let (after, gap) = proximal(LossKind::Logistic, step);
            assert!(gap <= 1e-12 * (1.0 + curvature), "{curvature} {dual} {prediction}: {after} {gap}");
        }
    }
}

proptest! {
    #[test]
    fn a_step_is_optimal_for_its_record(
        at in 0.0..1.0_f64, prediction in -20.0..20.0_f64, y in prop_oneof![Just(-1.0), Just(1.0), -1.0..1.0_f64],
        log_curvature in -8.0..8.0_f64,
    ) {
        let curvature = log_curvature.exp();
        for kind in losses() {
            let dual = if kind.is_classification() { at } else { 2.0 * at - 1.0 };
            let (after, gap) = proximal(kind, AfterStep { dual, prediction, target: y, curvature });
            prop_assert!(gap <= 1e-12 * (1.0 + curvature), "{}: {} {}", kind, after, gap);
        }
    }

    #[test]
    fn the_gap_falls_and_then_rises(
        at in 0.0..1.0_f64, middle in -6.0..6.0_f64, width in 0.0..3.0_f64, share in 0.0..1.0_f64, positive: bool,
    ) {
        struct Gaps { dual: f64, target: f64, at: [f64; 3] }
        impl ProximalVisitor<f64> for Gaps {
            type Output = [f64; 3];
            fn visit<L: ProximalLoss<f64>>(self, loss: L) -> [f64; 3] {
                self.at.map(|p| loss.gap(self.dual, p, self.target))
            }
        }
        let target = if positive { 1.0 } else { -1.0 };
        for kind in losses() {
            let dual = if kind.is_classification() { at } else { 2.0 * at - 1.0 };
            let at = [middle - width, middle - width + 2.0 * width * share, middle + width];
            let [below, within, above] = proximal(kind, Gaps { dual, target, at });
            prop_assert!(within <= below.max(above) * (1.0 + 1e-9) + 1e-13, "{}", kind);
        }
    }

    #[test]
    fn a_slope_of_the_loss_has_no_gap(p in -30.0..30.0_f64, positive: bool) {
        struct OfDerivative { p: f64, y: f64 }
        impl ProximalVisitor<f64> for OfDerivative {
            type Output = f64;
            fn visit<L: ProximalLoss<f64>>(self, loss: L) -> f64 {
                let derivative = loss.derivative(self.p, self.y);
                let (low, _) = loss.dual_range();
                let dual = if low == 0.0 { -derivative * self.y } else { derivative };
                assert!((loss.slope(dual, self.y) - derivative).abs() < 1e-15);
                loss.gap(dual, self.p, self.y)
            }
        }
        let y = if positive { 1.0 } else { -1.0 };
        for kind in losses() {
            prop_assert!(proximal(kind, OfDerivative { p, y }) <= 1e-14, "{}", kind);
        }
    }
}

/// A record that contributes nothing does not move, and a row of zeros takes the slope of its loss at once.
#[test]
fn records_without_features_or_target_are_settled_at_once() {
    for kind in losses() {
        let (_, gap) = proximal(kind, AfterStep { dual: 0.5, prediction: 0.0, target: 0.3, curvature: 0.0 });
        assert!(gap <= 1e-14, "{kind}: {gap}");
        if kind.is_classification() {
            let (_, gap) = proximal(kind, AfterStep { dual: 0.5, prediction: 2.0, target: 0.0, curvature: 0.25 });
            assert!(gap <= 1e-14, "{kind}: {gap}");
        }
    }
}

#[test]
fn quotients_by_zero_are_limits() {
    let quotients = [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (1.0, 4.0)].map(|(above, below)| quotient(above, below));
    assert_eq!(quotients, [0.0, f64::INFINITY, f64::NEG_INFINITY, 0.25]);
}

#[test]
fn losses_without_bounded_slopes_have_none() {
    struct Nothing;
    impl ProximalVisitor<f64> for Nothing {
        type Output = ();
        fn visit<L: ProximalLoss<f64>>(self, _: L) {}
    }
    assert!(LossKind::Squared.visit_proximal(Nothing).is_none());
}
