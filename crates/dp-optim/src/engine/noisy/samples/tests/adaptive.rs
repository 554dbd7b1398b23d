//! Sums clipped to a norm that has changed, and the count of gradients below it.

use proptest::prelude::*;

use super::*;
use crate::engine::norm_follower::{Beside, NormFollower};

/// Returns the sum of a batch over the factor on the norm, and twice the count, from noise that is too small to matter.
fn at_scale<F: RealField + Copy>(vectors: &Vectors<F>, sum: StepSum, scale: f64, batch: &[u32]) -> (Vec<f64>, f64) {
    let model = Inner::new(vectors.dim);
    let sensitivity = L2Sensitivity::<ZeroOut>::new(sum.sensitivity(AdjacencyKind::ZeroOut).unwrap()).unwrap();
    let noise = Gaussian::from_std_dev(sensitivity, 1e-30).unwrap().with_noise_mode(NoiseMode::Rounded).unwrap();
    let Contributions::Clipped(rule) = sum.contributions else { panic!() };
    let follower = NormFollower::new(rule.norm().get(), (0.5, 0.01), (0.5, 1e-6), 1.0).unwrap();
    let paid = StepBatches::Drawn { n: vectors.count(), law: BatchLaw::Poisson { mean_darts: 1 }, steps: 1 };
    let (mut log, mut rng) = (EventLog::new(), SeededRng::new(1));
    let beside = Beside::Count(follower);
    let mut gradient =
        NoisyGradient::<F, _, ZeroOut, _>::start_beside(&model, paid, sum, noise.into(), beside, &mut log, &mut rng)
            .unwrap();
    (gradient.drive, gradient.norm_scale) = (Drive::Running, scale);
    let mut out = vec![F::zero(); vectors.dim];
    gradient.estimate(&model, &vec![F::zero(); vectors.dim], vectors, batch, &mut out).unwrap();
    let halves = -2.0 * (gradient.norm_scale / scale).ln() / 0.01;
    let wide = |&x: &F| -> f64 { x.to_subset_unchecked() };
    (out.iter().map(|x| wide(x) / scale).collect(), halves)
}

proptest! {
    /// For any norm, one sample moves the sum over the factor by at most the sensitivity, and the count by 1/2.
    #[test]
    fn one_sample_moves_a_scaled_sum_and_the_count_within_their_sensitivities(
        values in prop::collection::vec(-3.0..3.0f32, 3..60), exponent in -18..9i32, part in 1.0..2.0f64,
        without in any::<prop::sample::Index>(), far in prop::option::of(prop::sample::select(vec![1e18f32, f32::INFINITY, f32::NAN])), in_float in any::<bool>(),
    ) {
        let scale = part * 2f64.powi(exponent);
        let mut values: Vec<f32> = values.chunks_exact(3).flatten().map(|x| x * scale as f32).collect();
        if let Some(far) = far {
            values[0] = far;
        }
        let vectors = Vectors { values, dim: 3, null: 0..0 };
        let n = vectors.count() as u32;
        let norm = ClippingNorm::new(1.0).unwrap();
        let sum = StepSum { in_float, ..StepSum::in_float(norm, u64::from(n), 4, FloatKind::F32) };
        let all: Vec<u32> = (0..n).collect();
        let without = without.index(all.len()) as u32;
        let rest: Vec<u32> = all.iter().copied().filter(|&i| i != without).collect();
        let ((with, count), (other, other_count)) =
            (at_scale(&vectors, sum, scale, &all), at_scale(&vectors, sum, scale, &rest));
        let sensitivity = sum.sensitivity(AdjacencyKind::ZeroOut).unwrap();
        // The output is rounded to single precision after its release.
        let slack = 1e-6 * f64::from(n);
        prop_assert!(norm_of_difference(&with, &other) <= sensitivity + slack, "{with:?} {other:?}");
        prop_assert!(((count - other_count).abs() - 1.0).abs() < 1e-3, "{count} {other_count}");
        // In value: clipped to the current norm, which is the factor, divided by it; what is not finite drops out.
        let mut expected = [0.0f64; 3];
        let mut below = 0.0;
        for vector in vectors.values.chunks_exact(3) {
            let wide = [0, 1, 2].map(|j| f64::from(vector[j]) / scale);
            let length = wide.iter().map(|x| x * x).sum::<f64>().sqrt();
            let usable = length.is_finite() && f64::from(vector[0]).powi(2) < 1e37;
            if usable {
                (0..3).for_each(|j| expected[j] += wide[j] / length.max(1.0));
            }
            below += if length <= 1.0 { 1.0 } else { -1.0 };
        }
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4 * f64::from(n);
        prop_assert!(far == Some(1e18) || (0..3).all(|j| near(with[j], expected[j])), "{with:?} {expected:?}");
        prop_assert!((count - below).abs() < 2.1, "{count} {below}");
    }
}
