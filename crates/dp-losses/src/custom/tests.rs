use std::sync::atomic::{AtomicU64, Ordering};

use dp_data::Examples;
use proptest::prelude::*;

use super::*;
use crate::linear::LinearModel;
use crate::log_cosh::LogCosh;
use crate::logistic::Logistic;
use crate::loss_kind::LossKind;
use crate::model::Model;
use crate::regulariser::L2;

/// A loss whose parts a test replaces.
#[derive(Debug, Clone, Copy)]
struct Parts {
    name: &'static str,
    classes: bool,
    value: fn(f64) -> f64,
    derivative: fn(f64) -> f64,
    slope: f64,
    curvature: f64,
    relative: f64,
}

impl CustomLoss for Parts {
    fn name(&self) -> &'static str {
        self.name
    }
    fn is_classification(&self) -> bool {
        self.classes
    }
    fn value(&self, t: f64) -> f64 {
        (self.value)(t)
    }
    fn derivative(&self, t: f64) -> f64 {
        (self.derivative)(t)
    }
    fn slope(&self) -> f64 {
        self.slope
    }
    fn curvature(&self) -> f64 {
        self.curvature
    }
    fn relative_curvature(&self) -> f64 {
        self.relative
    }
}

fn register(parts: Parts) -> Result<RegisteredLoss, Error> {
    RegisteredLoss::new(Box::leak(Box::new(parts)))
}

/// Logistic loss, restated.
const LOGISTIC: Parts = Parts {
    name: "logistic-restated",
    classes: true,
    value: |m| (-m).max(0.0) + (-m.abs()).exp().ln_1p(),
    derivative: |m| if m > 0.0 { -(-m).exp() / (1.0 + (-m).exp()) } else { -1.0 / (1.0 + m.exp()) },
    slope: 1.0,
    curvature: 0.25,
    relative: 0.2239,
};

/// Log-cosh, restated.
const LOG_COSH: Parts = Parts {
    name: "log-cosh-restated",
    classes: false,
    value: |r| r.abs() + 0.5 * ((-4.0 * r.abs()).exp().ln_1p() - core::f64::consts::LN_2),
    derivative: |r| (2.0 * r).tanh(),
    slope: 1.0,
    curvature: 2.0,
    relative: 0.448,
};

fn refused(parts: Parts) -> String {
    let name = format!("refused-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    register(Parts { name: name.leak(), ..parts }).unwrap_err().to_string()
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The gradient of a linear model over some rows.
fn gradient<F: Real, L: Loss<F>>(loss: L) -> Vec<f64> {
    let number = |i: usize| convert::<f64, F>(f64::from((i * 37 % 11) as u32) / 9.0 - 0.5);
    let targets = (0..20).map(|i| if i % 3 == 0 { F::one() } else { -F::one() }).collect();
    let data = Examples::dense((0..60).map(number).collect(), targets, 3).unwrap();
    let model = LinearModel::new(3, loss);
    let (w, mut pass) = ([convert(0.7), convert(-1.9), convert(3.1)], model.pass(20));
    let mut gradient = vec![F::zero(); 3];
    model.forward(&w, data.block(), &mut pass);
    model.backward(&w, data.block(), &mut pass);
    model.add_weighted(data.block(), &mut pass, &[F::one(); 20], &mut gradient);
    gradient.into_iter().map(|g| g.to_subset().unwrap()).collect()
}

#[test]
fn a_restated_loss_has_the_gradients_of_ours() {
    let (logistic, log_cosh) = (register(LOGISTIC).unwrap(), register(LOG_COSH).unwrap());
    let close = |a: Vec<f64>, b: Vec<f64>, tolerance: f64| {
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= tolerance), "{a:?} {b:?}");
    };
    close(gradient::<f64, _>(logistic), gradient::<f64, _>(Logistic), 1e-13);
    close(gradient::<f64, _>(log_cosh), gradient::<f64, _>(LogCosh::new(0.5).unwrap()), 1e-13);
    close(gradient::<f32, _>(logistic), gradient::<f32, _>(Logistic), 1e-5);
    close(gradient::<f32, _>(log_cosh), gradient::<f32, _>(LogCosh::new(0.5).unwrap()), 1e-5);
    // The constants are those without a radius, apart from the sharper difference of gradients of ours.
    for (custom, ours) in [(logistic, LossKind::Logistic), (log_cosh, LossKind::LogCosh(LogCosh::new(0.5).unwrap()))] {
        let domain = Domain::unit_rows().with_row_norm(0.5).unwrap();
        let (found, expected) =
            (LossKind::Custom(custom).constants(L2::NONE, &domain), ours.constants(L2::NONE, &domain));
        assert!((found.data_lipschitz - expected.data_lipschitz).abs() < 1e-12);
        assert!((found.smoothness - expected.smoothness).abs() < 1e-12);
        assert!(found.gradient_difference >= expected.gradient_difference - 1e-12);
    }
}

#[test]
fn a_name_is_one_loss() {
    static ONE: Parts = Parts { name: "one", ..LOGISTIC };
    let one = RegisteredLoss::new(&ONE).unwrap();
    assert_eq!(RegisteredLoss::new(&ONE), Ok(one));
    let other = Parts { curvature: 0.3, ..ONE };
    assert!(register(other).unwrap_err().to_string().contains("the name of another registered loss"));
    let kind = LossKind::Custom(one);
    assert_eq!((kind.to_string().parse(), kind.name()), (Ok(kind), "custom"));
    assert_eq!((kind.is_classification(), kind.classes(), kind.outputs(), kind.is_smooth()), (true, Some(2), 1, true));
    let unknown = "custom:nobody".parse::<LossKind>().unwrap_err().to_string();
    assert_eq!(unknown, "the custom loss \"nobody\" is not registered in this program");
    for name in ["", "Name", "a b", "ü", "a:b"] {
        assert!(register(Parts { name, ..LOGISTIC }).unwrap_err().to_string().contains("lower-case"), "{name}");
    }
}

/// A loss whose claims change does not change what is registered.
#[test]
fn the_first_claims_hold() {
    #[derive(Debug)]
    struct Changing(AtomicU64);
    impl CustomLoss for Changing {
        fn name(&self) -> &'static str {
            "changing"
        }
        fn is_classification(&self) -> bool {
            true
        }
        fn value(&self, t: f64) -> f64 {
            0.1 * (LOGISTIC.value)(t)
        }
        fn derivative(&self, t: f64) -> f64 {
            0.1 * (LOGISTIC.derivative)(t)
        }
        fn slope(&self) -> f64 {
            [1.0, 0.5][self.0.fetch_add(1, Ordering::Relaxed) as usize]
        }
        fn curvature(&self) -> f64 {
            0.25
        }
    }
    static CHANGING: Changing = Changing(AtomicU64::new(0));
    let slopes = [(); 2].map(|()| RegisteredLoss::new(&CHANGING).unwrap().slope());
    assert_eq!(slopes, [1.0, 1.0]);
}

#[cfg(feature = "serde")]
#[test]
fn files_hold_the_name() {
    let kind = LossKind::Custom(register(Parts { name: "filed", ..LOG_COSH }).unwrap());
    let text = serde_json::to_string(&kind).unwrap();
    assert_eq!(text, r#"{"name":"custom","loss":"filed"}"#);
    assert_eq!(serde_json::from_str::<LossKind>(&text).unwrap(), kind);
    let unknown = serde_json::from_str::<LossKind>(r#"{"name":"custom","loss":"missing"}"#).unwrap_err().to_string();
    assert!(unknown.contains("\"missing\" is not registered"), "{unknown}");
    assert!(serde_json::from_str::<LossKind>(r#"{"name":"custom","loss":"filed","h":1}"#).is_err());
}

#[test]
fn claims_that_the_function_contradicts_are_refused() {
    for (slope, curvature) in [(0.0, 0.25), (1.1, 0.25), (f64::NAN, 0.25), (1.0, 0.0), (1.0, -1.0), (1.0, f64::NAN)] {
        assert!(refused(Parts { slope, curvature, ..LOGISTIC }).contains("must lie in"), "{slope} {curvature}");
    }
    assert!(refused(Parts { relative: f64::NAN, ..LOGISTIC }).contains("must lie in"));
    assert!(refused(Parts { slope: 0.99, ..LOGISTIC }).contains("beyond its slope"));
    assert!(refused(Parts { curvature: 0.24, ..LOGISTIC }).contains("bends more"));
    assert!(refused(Parts { relative: 0.22, ..LOGISTIC }).contains("bends more"));
    assert!(refused(Parts { relative: 0.44, ..LOG_COSH }).contains("bends more"));
    assert!(refused(Parts { value: |m| 0.999 * (LOGISTIC.value)(m), ..LOGISTIC }).contains("not that of its value"));
    assert!(refused(Parts { derivative: |m| -(LOGISTIC.derivative)(m), ..LOGISTIC }).contains("not that of its value"));
    assert!(
        refused(Parts { value: |r| -(LOG_COSH.value)(r), derivative: |r| -(LOG_COSH.derivative)(r), ..LOG_COSH })
            .contains("not convex")
    );
    let holed = Parts { value: |m| if m > 9.0 { f64::NAN } else { (LOGISTIC.value)(m) }, ..LOGISTIC };
    assert!(refused(holed).contains("has value NaN"));
    // A kink has no finite curvature.
    let absolute = Parts { name: "kinked", value: f64::abs, derivative: f64::signum, ..LOG_COSH };
    assert!(refused(absolute).contains("bends more"));
    let kinked = Parts { curvature: f64::INFINITY, relative: f64::INFINITY, ..absolute };
    assert!(!LossKind::Custom(register(kinked).unwrap()).is_smooth());
}

/// Log-cosh at the points of the grid, something else between them.
#[derive(Debug)]
struct Hostile {
    name: &'static str,
    classes: bool,
    between: f64,
}

impl Hostile {
    fn or(&self, t: f64, honest: fn(f64) -> f64) -> f64 {
        if (t * 128.0).fract() == 0.0 || t.abs() > 16.0 { honest(t) } else { self.between }
    }
}

impl CustomLoss for Hostile {
    fn name(&self) -> &'static str {
        self.name
    }
    fn is_classification(&self) -> bool {
        self.classes
    }
    fn value(&self, t: f64) -> f64 {
        self.or(t, LOG_COSH.value)
    }
    fn derivative(&self, t: f64) -> f64 {
        self.or(t, LOG_COSH.derivative)
    }
    fn slope(&self) -> f64 {
        1.0
    }
    fn curvature(&self) -> f64 {
        2.0
    }
}

/// Whatever the code returns, a derivative stays within the slope and a value within its reach.
#[test]
fn a_loss_that_lies_is_clamped() {
    for (i, between) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e9, -1e9].into_iter().enumerate() {
        for classes in [false, true] {
            let name = format!("hostile-{i}-{classes}").leak();
            let loss = RegisteredLoss::new(Box::leak(Box::new(Hostile { name, classes, between }))).unwrap();
            for (p, y) in [(0.001f64, -1.0f64), (-0.3, 0.7), (7.7, 1.0), (-13.3, 1.0)] {
                let (value, derivative): (f64, f64) = (loss.value(p, y), loss.derivative(p, y));
                let t = if classes { p * y } else { p - y };
                assert!(derivative.abs() <= 1.0, "{name} {p} {y}");
                assert!((value - loss.origin).abs() <= t.abs() * (1.0 + 1e-15), "{name} {p} {y}");
                let (value, derivative): (f32, f32) =
                    (loss.value(p as f32, y as f32), loss.derivative(p as f32, y as f32));
                assert!(derivative.abs() <= 1.0 && value.is_finite(), "{name} {p} {y}");
            }
        }
    }
}

proptest! {
    /// Rounding never takes a derivative above the slope, also where the slope is not a number of single precision.
    #[test]
    fn derivatives_stay_within_the_slope(slope in 0.01f64..1.0, p in -1e3f64..1e3, y in -1f64..1.0) {
        #[derive(Debug)]
        struct Scaled(f64, &'static str);
        impl CustomLoss for Scaled {
            fn name(&self) -> &'static str { self.1 }
            fn is_classification(&self) -> bool { true }
            fn value(&self, t: f64) -> f64 { self.0 * (LOG_COSH.value)(t) }
            fn derivative(&self, t: f64) -> f64 { self.0 * (LOG_COSH.derivative)(t) }
            fn slope(&self) -> f64 { self.0 }
            fn curvature(&self) -> f64 { 2.0 * self.0 }
        }
        let name = format!("scaled-{}", slope.to_bits()).leak();
        let loss = RegisteredLoss::new(Box::leak(Box::new(Scaled(slope, name)))).unwrap();
        prop_assert!(loss.slope() >= slope && loss.slope() <= slope * (1.0 + 1e-6));
        prop_assert!(Loss::<f64>::derivative(&loss, p, y).abs() <= loss.slope());
        prop_assert!(f64::from(Loss::<f32>::derivative(&loss, p as f32, y as f32)).abs() <= loss.slope());
    }
}
