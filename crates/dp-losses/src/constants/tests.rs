use proptest::prelude::*;

use super::*;
use crate::golden;
use crate::{Absolute, Hinge, HuberRegression, HuberSvm, LogCosh, Logistic, Loss, LossKind, Softmax, Squared};

#[test]
fn golden_constants_of_the_papers() {
    let mut checked = 0;
    for case in golden::erm_cases("loss_constants") {
        let given = &case["in"];
        let loss = match given["loss"].as_str().unwrap() {
            "logistic" => LossKind::Logistic,
            "huber_svm" => LossKind::HuberSvm(HuberSvm::new(given["h"].as_f64().unwrap()).unwrap()),
            "squared" => LossKind::Squared,
            "hinge" => LossKind::Hinge,
            "absolute" => LossKind::Absolute,
            "softmax" => LossKind::Softmax(Softmax::new(given["classes"].as_u64().unwrap() as u32).unwrap()),
            _ => continue, // losses of other models
        };
        let mut domain = Domain::unit_rows();
        if let Some(radius) = given["radius"].as_f64() {
            domain = domain.with_radius(radius).unwrap();
        }
        if let Some(bound) = given["y_bound"].as_f64() {
            domain = domain.with_target_bound(bound).unwrap();
        }
        let lambda = given["lam"].as_f64().unwrap();
        let regulariser = L2::new(lambda).unwrap();
        let got = Constants::of_the_papers(&loss, regulariser, &domain);
        let (out, rtol) = (&case["out"], case["rtol"].as_f64().unwrap());
        golden::assert_close(&case["id"], "lipschitz", got.lipschitz, &out["lipschitz"], rtol);
        golden::assert_close(&case["id"], "beta", got.smoothness, &out["beta"], rtol);
        golden::assert_close(&case["id"], "gamma", got.strong_convexity, &out["gamma"], rtol);
        golden::assert_close(&case["id"], "grad_diff", got.gradient_difference, &out["grad_diff"], rtol);
        if loss == LossKind::Logistic {
            let published = Logistic.smoothness_as_published(1.0) + lambda;
            golden::assert_close(&case["id"], "beta_seed", published, &out["beta_seed"], rtol);
        }
        let tight = loss.constants(regulariser, &domain);
        assert!(tight.lipschitz <= got.lipschitz && tight.gradient_difference <= got.gradient_difference);
        checked += 1;
    }
    assert!(checked > 0);
}

/// The published value for rows of norm 1 scales with the square of the norm.
#[test]
fn published_smoothness_grows_with_the_square_of_the_rows() {
    for row_norm in [0.5, 2.0] {
        let domain = Domain::unit_rows().with_row_norm(row_norm).unwrap();
        let square = row_norm * row_norm;
        assert!((Logistic.smoothness_as_published(row_norm) / square - 1.0).abs() < 1e-15);
        let softmax = LossKind::Softmax(Softmax::new(3).unwrap());
        let papers = Constants::of_the_papers(&softmax, L2::NONE, &domain);
        assert!((papers.smoothness / (square / 2.0) - 1.0).abs() < 1e-15);
    }
}

#[test]
fn regulariser_without_a_radius_has_no_lipschitz_constant_but_a_gradient_difference() {
    let constants = LossKind::Logistic.constants(L2::new(0.1).unwrap(), &Domain::unit_rows());
    assert_eq!(constants.lipschitz, f64::INFINITY);
    assert_eq!(constants.gradient_difference, 2.0);
    let none = LossKind::Logistic.constants(L2::NONE, &Domain::unit_rows());
    assert_eq!(none.lipschitz, 1.0);
    let squared = LossKind::Squared.constants(L2::NONE, &Domain::unit_rows());
    assert_eq!((squared.data_lipschitz, squared.gradient_difference), (f64::INFINITY, f64::INFINITY));
}

#[test]
fn bounds_outside_their_range_are_refused() {
    let domain = Domain::unit_rows();
    for value in [-1.0, f64::NAN, f64::INFINITY, 1e101] {
        assert!(domain.with_radius(value).is_err() && domain.with_target_bound(value).is_err(), "{value}");
        assert!(domain.with_row_norm(value).is_err(), "{value}");
    }
    assert!(domain.with_row_norm(0.0).is_err());
}

/// Returns the largest gradient, gradient difference and slope of the gradient along a line that a search finds in the plane
/// spanned by `w` and a direction orthogonal to it: rows on the circle of radius `X` (and inside), parameters of norm `R` (and
/// less), extreme targets.
fn found<L: Loss<f64>>(loss: L, row_norm: f64, radius: f64, targets: [f64; 2]) -> (f64, f64, f64) {
    let angles = 180;
    let (mut steepest, mut difference, mut bend) = (0.0_f64, 0.0_f64, 0.0_f64);
    for share in [0.3, 1.0] {
        let r = radius * share;
        let mut gradients = Vec::new();
        for step in 0..=angles {
            let (sin, cos) = (core::f64::consts::PI * f64::from(step) / f64::from(angles)).sin_cos();
            for y in targets {
                for length in [0.2 * row_norm, row_norm] {
                    let prediction = r * length * cos;
                    let derivative = loss.derivative(prediction, y);
                    gradients.push((derivative * length * cos, derivative * length * sin));
                    gradients.push((derivative * length * cos, -derivative * length * sin));
                    let reach = 1e-3 * length;
                    let slope = (loss.derivative(prediction + reach, y) - derivative) / 1e-3;
                    bend = bend.max(slope * length);
                }
            }
        }
        for (i, a) in gradients.iter().enumerate() {
            steepest = steepest.max(a.0.hypot(a.1));
            for b in &gradients[..i] {
                difference = difference.max((a.0 - b.0).hypot(a.1 - b.1));
            }
        }
    }
    (steepest, difference, bend)
}

#[test]
fn constants_bound_what_a_search_finds_and_are_nearly_attained() {
    fn check<L: Loss<f64> + LossBounds + core::fmt::Debug>(loss: L, difference_attained: bool) {
        for row_norm in [1.0, 0.5, 3.0] {
            for radius in [0.0, 0.3, 1.0, 4.0, 30.0] {
                let domain = Domain::unit_rows().with_row_norm(row_norm).unwrap().with_radius(radius).unwrap();
                let constants = Constants::new(&loss, L2::NONE, &domain);
                let (steepest, difference, bend) = found(loss, row_norm, radius, [-1.0, 1.0]);
                let at = format!("{loss:?}, rows {row_norm}, radius {radius}: {constants:?}");
                // The search itself rounds a few times.
                assert!(steepest <= constants.data_lipschitz * (1.0 + 1e-15), "{at}: gradient {steepest}");
                assert!(steepest > 0.999 * constants.data_lipschitz, "{at}: gradient {steepest}");
                assert!(difference <= constants.gradient_difference * (1.0 + 1e-15), "{at}: difference {difference}");
                if difference_attained {
                    assert!(difference > 0.999 * constants.gradient_difference, "{at}: difference {difference}");
                }
                assert!(bend <= constants.smoothness * (1.0 + 1e-9), "{at}: curvature {bend}");
                if radius * row_norm >= 1.0 && constants.smoothness.is_finite() {
                    assert!(bend > 0.9 * constants.smoothness, "{at}: curvature {bend}");
                }
            }
        }
    }
    check(Logistic, true);
    check(Squared, true);
    check(HuberSvm::new(0.1).unwrap(), true);
    check(HuberSvm::new(0.5).unwrap(), true);
    check(HuberSvm::new(2.0).unwrap(), false);
    check(Hinge, true);
    check(Absolute, true);
    check(LogCosh::new(0.5).unwrap(), false);
    check(LogCosh::new(5.0).unwrap(), false);
    check(LogCosh::new(20.0).unwrap(), false);
    check(HuberRegression::new(0.1).unwrap(), false);
    check(HuberRegression::new(1.0).unwrap(), false);
    check(HuberRegression::new(100.0).unwrap(), true); // a parabola throughout
}

proptest! {
    #[test]
    fn tight_constants_never_exceed_those_of_the_papers(
        row_norm in 1e-3..1e3_f64, radius in 0.0..1e4_f64, target in 0.0..10.0_f64, lambda in 0.0..1.0_f64, h in 0.01..5.0_f64,
    ) {
        let domain = Domain::unit_rows().with_row_norm(row_norm).unwrap().with_radius(radius).unwrap()
            .with_target_bound(target).unwrap();
        let regulariser = L2::new(lambda).unwrap();
        for loss in [
            LossKind::Logistic,
            LossKind::Squared,
            LossKind::HuberSvm(HuberSvm::new(h).unwrap()),
            LossKind::Hinge,
            LossKind::Absolute,
            LossKind::HuberRegression(HuberRegression::new(h).unwrap()),
            LossKind::LogCosh(LogCosh::new(h).unwrap()),
            LossKind::Softmax(Softmax::new(2).unwrap()),
            LossKind::Softmax(Softmax::new(7).unwrap()),
        ] {
            let (tight, papers) = (loss.constants(regulariser, &domain), Constants::of_the_papers(&loss, regulariser, &domain));
            prop_assert!(tight.lipschitz <= papers.lipschitz && tight.gradient_difference <= papers.gradient_difference);
            prop_assert!(tight.gradient_difference >= tight.data_lipschitz * 0.999_999);
            prop_assert!(tight.gradient_difference <= 2.0 * tight.data_lipschitz * (1.0 + 1e-14));
            prop_assert_eq!(tight.strong_convexity, lambda);
        }
    }
}
