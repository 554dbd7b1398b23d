use super::*;
use crate::rounding::power_of_two;
use crate::testing::golden_cases;
use num_bigint::BigInt;
use proptest::prelude::*;

/// Returns whether `Σ v_i² <= bound²`, in exact integer arithmetic: every double is a multiple of `2^-1074`.
pub(super) fn exactly_within(v: &[f64], bound: f64) -> bool {
    let integer = |x: f64| -> BigInt {
        let bits = x.abs().to_bits();
        let exponent = (bits >> 52) as usize;
        let mantissa = bits & ((1 << 52) - 1);
        if exponent == 0 { BigInt::from(mantissa) } else { BigInt::from(mantissa | (1 << 52)) << (exponent - 1) }
    };
    let square = |x: f64| integer(x) * integer(x);
    v.iter().map(|&x| square(x)).sum::<BigInt>() <= square(bound)
}

fn clipped(v: &[f64], bound: f64) -> Vec<f64> {
    let mut v = v.to_vec();
    clip_l2(&mut v, ClippingNorm::new(bound).unwrap());
    v
}

#[test]
fn golden() {
    let cases = golden_cases("mechanisms.json", "clip_l2");
    for case in cases {
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
        };
        let (v, bound) = (numbers(&case.input["v"]), case.input("c"));
        let found = clipped(&v, bound);
        for (&found, &expected) in found.iter().zip(&numbers(&case.out["clipped"])) {
            case.check_number("entry", found, expected);
        }
        assert!(exactly_within(&found, bound), "{}", case.id);
    }
}

#[test]
fn refused_norms() {
    assert!(matches!(ClippingNorm::new(f64::NAN), Err(Error::NotFinite { name: "clipping norm", .. })));
    assert!(matches!(ClippingNorm::new(f64::INFINITY), Err(Error::NotFinite { name: "clipping norm", .. })));
    for value in [0.0, -0.0, -1.0] {
        assert!(matches!(ClippingNorm::new(value), Err(Error::NotPositive { name: "clipping norm", .. })));
    }
    for value in [5e-324, 1e-300, ClippingNorm::LEAST.next_down()] {
        assert!(matches!(ClippingNorm::new(value), Err(Error::TooSmall { name: "clipping norm", .. })));
    }
    assert_eq!(ClippingNorm::LEAST, 2f64.powi(-500));
    assert!(ClippingNorm::new(ClippingNorm::LEAST).is_ok() && ClippingNorm::new(f64::MAX).is_ok());
}

#[test]
fn edge_cases() {
    assert!(clipped(&[], 1.0).is_empty());
    let zeros = clipped(&[-0.0, 0.0], 1.0);
    assert!(zeros[0].is_sign_negative() && zeros[1].is_sign_positive());
    for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(clipped(&[1.0, broken, 1e300], 1.0), [0.0; 3]);
        assert_eq!(clipped(&[1e-200, broken], 1.0), [0.0; 2]);
    }
    // The quotient of this bound and this norm is subnormal: without the power of two the norm would be 1.617 C.
    let least = ClippingNorm::LEAST;
    let found = clipped(&[1e173], least);
    assert!(found[0] <= least && found[0] >= least * (1.0 - 1e-14));
    let mut single = [1e30f32, 1e30];
    clip_l2(&mut single, ClippingNorm::new(1e-20).unwrap());
    assert!((f64::from(single[0]) / (1e-20 / 2f64.sqrt()) - 1.0).abs() < 1e-6);
    let mut subnormal = [3e38f32, 1.0];
    clip_l2(&mut subnormal, ClippingNorm::new(1e-44).unwrap());
    assert!(exactly_within(&subnormal.map(f64::from), 1e-44));
}

fn finite() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite())
}

/// Returns bounds over the whole accepted range.
fn bound() -> impl Strategy<Value = f64> {
    (523u64..2047, 0u64..(1 << 52)).prop_map(|(e, m)| f64::from_bits((e << 52) | m))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn stored_norm_is_within_for_all_finite_input(v in prop::collection::vec(finite(), 0..30), bound in bound()) {
        prop_assert!(exactly_within(&clipped(&v, bound), bound));
    }

    /// The tight case: random directions whose norm is near the bound or above it.
    #[test]
    fn stored_norm_is_within_near_the_bound(
        v in prop::collection::vec(-1.0f64..1.0, 1..200), ratio in 0.999_999_999_999..3.0f64, power in -450i32..450,
    ) {
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        prop_assume!(norm > 1e-3);
        let scale = power_of_two(power);
        let v: Vec<f64> = v.iter().map(|x| x * scale).collect();
        let bound = norm / ratio * scale;
        let found = clipped(&v, bound);
        prop_assert!(exactly_within(&found, bound));
        // The norm attains the bound up to the stated slack.
        let found_norm = found.iter().map(|x| (x / scale).powi(2)).sum::<f64>().sqrt() * scale;
        if ratio > 1.0 {
            prop_assert!(found_norm >= bound * (1.0 - 1e-13));
        }
    }

    #[test]
    fn single_precision_is_within(v in prop::collection::vec(any::<u32>(), 1..30), exponent in -140.0f64..130.0) {
        let mut v: Vec<f32> = v.into_iter().map(f32::from_bits).filter(|x| x.is_finite()).collect();
        let bound = exponent.exp2();
        clip_l2(&mut v, ClippingNorm::new(bound).unwrap());
        let exact: Vec<f64> = v.iter().map(|&x| f64::from(x)).collect();
        prop_assert!(exactly_within(&exact, bound));
    }

    #[test]
    fn short_vectors_are_left_alone(v in prop::collection::vec(finite(), 1..20)) {
        let largest = v.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        let bound = largest * 5.0; // above √20 times the largest entry
        prop_assume!(bound.is_finite() && bound >= ClippingNorm::LEAST);
        let found = clipped(&v, bound);
        prop_assert!(found.iter().zip(&v).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn clipping_twice_is_clipping_once(v in prop::collection::vec(-1e3f64..1e3, 1..50)) {
        let once = clipped(&v, 1.0);
        let twice = clipped(&once, 1.0);
        let distance = once.iter().zip(&twice).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        prop_assert!(distance <= 1e-14);
    }

    #[test]
    fn coefficient_times_gradient_is_within(v in prop::collection::vec(-1e6f64..1e6, 1..200), bound in 1e-6f64..1e6) {
        let squared_norm = v.iter().map(|x| x * x).sum::<f64>();
        let coefficient = clip_coefficient(squared_norm, ClippingNorm::new(bound).unwrap(), v.len());
        prop_assert!((0.0..=1.0).contains(&coefficient));
        let scaled: Vec<f64> = v.iter().map(|x| coefficient * x).collect();
        prop_assert!(exactly_within(&scaled, bound));
    }
}

#[test]
fn coefficients_of_what_is_no_norm_are_zero() {
    let bound = ClippingNorm::new(1.0).unwrap();
    for squared_norm in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        assert_eq!(clip_coefficient(squared_norm, bound, 3), 0.0);
    }
    assert_eq!(clip_coefficient(0.0, bound, 3), 1.0);
    assert_eq!(clip_coefficient(5e-324, bound, 3), 1.0);
    assert!(clip_coefficient(f64::MAX, bound, 3) > 0.0);
}

/// The naive scaling is above the bound about half of the time, which is why the result is shrunk.
#[test]
fn naive_scaling_breaks_the_bound() {
    let mut broken = 0;
    for i in 0..1000 {
        let v: Vec<f64> = (0..10).map(|j| f64::from(i * 10 + j).sin() + 2.0).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let naive: Vec<f64> = v.iter().map(|x| x * (1.0 / norm)).collect();
        broken += usize::from(!exactly_within(&naive, 1.0));
        assert!(exactly_within(&clipped(&v, 1.0), 1.0));
    }
    assert!((300..700).contains(&broken), "{broken}");
}

/// Random vectors are seldom slightly too long; these all are, or just not.
#[test]
fn vectors_beside_the_norm_are_within() {
    for dim in [1usize, 3, 40] {
        for parts in [3f64, 10.0, 77.0] {
            let direction: Vec<f64> = (0..dim).map(|i| 1.0 + i as f64 / parts).collect();
            let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
            for excess in [-64.0, -2.0, 0.0, 1.0, 2.0, 7.0, 64.0, 1e3, 1e6, 1e9, 1e12] {
                let scale = (1.0 + excess * f64::EPSILON) / length;
                let mut v: Vec<f64> = direction.iter().map(|x| x * scale).collect();
                clip_l2(&mut v, ClippingNorm::new(1.0).unwrap());
                assert!(exactly_within(&v, 1.0), "{dim} coordinates, {excess} units too long");
                assert!(v.iter().map(|x| x * x).sum::<f64>() > 1.0 - 1e-13);
            }
        }
    }
}
