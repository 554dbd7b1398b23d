//! Clipping that does not bound the contribution of one record.

use dp_accountant::{EventLog, NoiseMultiplier, ZeroOut};
use dp_mechanisms::SeededRng;
use dp_mechanisms::clip::{AdaptiveClipping, ClippingNorm, ExactSum, clip_l2};
use num_bigint::BigUint;
use rand::RngExt;

use crate::specimen::{Specimen, gaussian, pick};
use crate::textbook::{norm, normal, release_gaussian};

const BOUND: f64 = 1.0;

fn clipped(mut v: Vec<f64>) -> Vec<f64> {
    clip_l2(&mut v, ClippingNorm::new(BOUND).unwrap());
    v
}

/// The sum of two-dimensional gradients, each clipped.
fn clipped_sum(gradients: &[[f64; 2]]) -> Vec<f64> {
    gradients
        .iter()
        .map(|gradient| clipped(gradient.to_vec()))
        .fold(vec![0.0; 2], |sum, gradient| sum.iter().zip(gradient).map(|(a, b)| a + b).collect())
}

/// Returns `v · C / ‖v‖` for longer vectors, by a comparison that is false for NaN.
fn scaled_if_longer(v: &[f64], norm: f64) -> Vec<f64> {
    let factor = if norm > BOUND { BOUND / norm } else { 1.0 };
    v.iter().map(|x| factor * x).collect()
}

fn sum(gradients: &[[f64; 2]]) -> [f64; 2] {
    gradients.iter().fold([0.0; 2], |sum, gradient| [sum[0] + gradient[0], sum[1] + gradient[1]])
}

pub(crate) fn specimens() -> Vec<Specimen> {
    let opposite = |side| {
        let mut batch = vec![[-1.0, 0.0]; 9];
        batch.push(pick(side, [0.0, 0.0], [1e3, 0.0]));
        batch
    };
    vec![
        Specimen::score(
            "batch clipped as a whole",
            "nine gradients (-1, 0), with (1000, 0) or without",
            gaussian(1.0),
            move |side, rng| {
                let sum = sum(&opposite(side));
                scaled_if_longer(&sum, norm(&sum))[0] + normal(rng)
            },
            move |side, rng| release_gaussian(clipped_sum(&opposite(side)), 1.0, rng)[0],
        ),
        // Nine of ten gradients are 0; the noise is calibrated for a mean of ten.
        Specimen::score(
            "clip after averaging",
            "nine gradients 0, with (1000, 0) or without",
            gaussian(1.0),
            |side, rng| pick(side, 0.0f64, 1e3 / 10.0).min(BOUND) + normal(rng) / 10.0,
            |side, rng| {
                let mean = clipped_sum(&[pick(side, [0.0, 0.0], [1e3, 0.0])]).iter().map(|x| x / 10.0).collect();
                release_gaussian(mean, 0.1, rng)[0]
            },
        ),
        Specimen::score(
            "clip by the maximum norm for an L2 claim",
            "no gradient, and (1, .., 1) in 16 coordinates",
            gaussian(1.0),
            |side, rng| (0..16).map(|_| pick(side, 0.0, 1.0) + normal(rng)).sum(),
            |side, rng| release_gaussian(clipped(vec![pick(side, 0.0, 1.0); 16]), 1.0, rng).iter().sum(),
        ),
        Specimen::event(
            "NaN escapes the clip",
            "no gradient, and (NaN, 0)",
            gaussian(1.0),
            |side, rng| {
                let gradient = pick(side, [0.0, 0.0], [f64::NAN, 0.0]);
                (scaled_if_longer(&gradient, norm(&gradient))[0] + normal(rng)).is_nan()
            },
            |side, rng| {
                release_gaussian(clipped(pick(side, vec![0.0, 0.0], vec![f64::NAN, 0.0])), 1.0, rng)[0].is_nan()
            },
        ),
        Specimen::event(
            "infinity escapes the clip",
            "no gradient, and (inf, 0)",
            gaussian(1.0),
            |side, rng| {
                let gradient = pick(side, [0.0, 0.0], [f64::INFINITY, 0.0]);
                !(scaled_if_longer(&gradient, norm(&gradient))[0] + normal(rng)).is_finite()
            },
            |side, rng| {
                !release_gaussian(clipped(pick(side, vec![0.0, 0.0], vec![f64::INFINITY, 0.0])), 1.0, rng)[0]
                    .is_finite()
            },
        ),
        true_quantile(),
    ]
}

/// The clipping norm after one step of adaptive clipping, at rate 1 and for the median of ten norms: it is unchanged if five
/// are below.
fn true_quantile() -> Specimen {
    let clipping = AdaptiveClipping::<ZeroOut>::new(0.5, 1.0, 10.0, NoiseMultiplier::new(1.0).unwrap(), 2.0).unwrap();
    let norm = ClippingNorm::new(BOUND).unwrap();
    let norms = |side| {
        let mut norms = vec![0.5, 0.5, 0.5, 0.5, 2.0, 2.0, 2.0, 2.0, 2.0];
        norms.extend(pick(side, None, Some(0.5)));
        norms
    };
    Specimen::event(
        "clipping norm adapted by the true quantile",
        "nine norms, four of them below the clipping norm, and one more below",
        gaussian(1.0),
        move |side, _| clipping.next_norm(norm, pick(side, 0.4, 0.5)) == norm,
        move |side, rng| {
            let mut state = clipping.start(norm).unwrap();
            let mut sum = ExactSum::new(1, norm.into(), 2f64.powi(-30), 10).unwrap();
            let mut count = state.count();
            for length in norms(side) {
                sum.add(&[length]).unwrap();
                count.add(length * length);
            }
            state.release(sum.finish(), count, &mut EventLog::new(), rng).unwrap().get().next_norm == norm
        },
    )
}

/// Scaling by `C / ‖v‖` leaves about half of the vectors one ulp longer than `C`; the clipping of this workspace leaves none.
/// Samples cannot show an ulp: squares are summed exactly, as integers.
#[test]
fn clip_overshoots_by_an_ulp() {
    let mut rng = SeededRng::new(1);
    let vectors: Vec<Vec<f64>> =
        (0..2000).map(|i| (0..[2, 10, 100][i % 3]).map(|_| normal(&mut rng) * 10.0).collect()).collect();
    let longer = |v: &Vec<f64>| exact_squared_norm(v) > square(BOUND);
    let naive = vectors.iter().filter(|v| longer(&scaled_if_longer(v, norm(v)))).count();
    let ours = vectors.iter().filter(|v| longer(&clipped((*v).clone()))).count();
    println!("longer than the clipping norm: {naive} of 2000 naively, {ours} of 2000 by clip_l2");
    assert!((800..1200).contains(&naive), "{naive}");
    assert_eq!(ours, 0);
}

/// Returns `x²` in units of `2^-2148`, the square of the smallest double's unit.
fn square(x: f64) -> BigUint {
    let bits = x.abs().to_bits();
    let exponent = bits >> 52;
    let mantissa = bits & ((1 << 52) - 1);
    let (mantissa, shift) = if exponent == 0 { (mantissa, 0) } else { (mantissa | 1 << 52, exponent - 1) };
    let integer = BigUint::from(mantissa) << shift;
    &integer * &integer
}

fn exact_squared_norm(v: &[f64]) -> BigUint {
    v.iter().map(|&x| square(x)).sum()
}

#[test]
fn exact_squares() {
    assert_eq!(square(5e-324), BigUint::from(1u32));
    assert_eq!(square(1.0), BigUint::from(1u32) << 2148);
    let x = SeededRng::new(2).random::<f64>();
    assert_eq!(square(2.0 * x), square(x) << 2);
}
