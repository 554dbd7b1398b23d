use proptest::prelude::*;

use super::*;
use crate::plackett_luce::{for_each_prefix, log_probability_and_gradient};

type Gain = fn(&[f64], &[f64], usize, &mut LossBuffers, &mut [f64]) -> f64;

/// Evaluates the definition: every prefix with its NDCG and its probability.
fn by_definition(scores: &[f64], coefficients: &[f64], k: usize) -> (f64, Vec<f64>) {
    let n = scores.len();
    let (mut value, mut sum, mut gradient) = (0.0, vec![0.0; n], vec![0.0; n]);
    for_each_prefix(n, k, &mut |prefix| {
        let p = log_probability_and_gradient(scores, prefix, &mut gradient).unwrap().exp();
        let gain: f64 = prefix.iter().enumerate().map(|(t, &j)| discount(t) * coefficients[j]).sum();
        value += p * gain;
        sum.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += gain * p * g);
    });
    (value, sum)
}

fn both(scores: &[f64], coefficients: &[f64], k: usize) -> [(f64, Vec<f64>); 2] {
    [enumerate::expected_gain as Gain, race::expected_gain as Gain].map(|gain| {
        let mut gradient = vec![0.0; scores.len()];
        let value = gain(scores, coefficients, k, &mut LossBuffers::default(), &mut gradient);
        (value, gradient)
    })
}

fn close(a: &(f64, Vec<f64>), b: &(f64, Vec<f64>), tolerance: f64) {
    assert!((a.0 - b.0).abs() <= tolerance, "{a:?} {b:?}");
    a.1.iter().zip(&b.1).for_each(|(x, y)| assert!((x - y).abs() <= tolerance, "{a:?} {b:?}"));
}

proptest! {
    #[test]
    fn the_walk_and_the_race_agree_with_the_definition(
        list in proptest::collection::vec((-6.0..6.0_f64, 0.0..1.0_f64), 2..7), k in 1_usize..7,
    ) {
        let (scores, coefficients): (Vec<f64>, Vec<f64>) = list.into_iter().unzip();
        let k = k.min(scores.len());
        let expected = by_definition(&scores, &coefficients, k);
        let [walk, race] = both(&scores, &coefficients, k);
        close(&walk, &expected, 1e-12);
        close(&race, &expected, 1e-11);
    }

    #[test]
    fn the_race_agrees_with_the_walk_on_longer_lists(
        list in proptest::collection::vec((-4.0..4.0_f64, 0.0..1.0_f64), 10..40), k in 1_usize..4, stretch in 0.0..30.0_f64,
    ) {
        let (scores, coefficients): (Vec<f64>, Vec<f64>) = list.into_iter().unzip();
        let scores: Vec<f64> = scores.iter().map(|score| score * stretch).collect();
        let [walk, race] = both(&scores, &coefficients, k);
        close(&walk, &race, 1e-11);
    }

    #[test]
    fn two_positions_have_closed_marginals(list in proptest::collection::vec((-3.0..3.0_f64, 0.0..1.0_f64), 2..20)) {
        let (scores, coefficients): (Vec<f64>, Vec<f64>) = list.into_iter().unzip();
        let mut p = vec![0.0; scores.len()];
        softmax(&scores, &mut p);
        let a: f64 = p.iter().map(|p| p / (1.0 - p)).sum();
        let second = |i: usize| p[i] * (a - p[i] / (1.0 - p[i]));
        let expected: f64 =
            (0..p.len()).map(|i| coefficients[i] * (p[i] + discount(1) * second(i))).sum();
        let [walk, _] = both(&scores, &coefficients, 2);
        prop_assert!((walk.0 - expected).abs() < 1e-12);
    }

    #[test]
    fn coefficients_lie_in_the_unit_interval_and_a_perfect_order_gains_one(
        grades in proptest::collection::vec(0_u32..5, 1..12), k in 1_usize..6,
    ) {
        let loss = BayesRank::new(Cutoff::new(k).unwrap());
        let mut coefficients = vec![0.0; grades.len()];
        loss.coefficients(&grades, &mut coefficients);
        prop_assert!(coefficients.iter().all(|c| (0.0..=1.0).contains(c)));
        let mut sorted = coefficients;
        sorted.sort_by(|a, b| b.total_cmp(a));
        let best: f64 = sorted.iter().take(k).enumerate().map(|(t, c)| discount(t) * c).sum();
        let expected = if grades.iter().all(|&grade| grade == 0) { 0.0 } else { 1.0 };
        prop_assert!((best - expected).abs() < 1e-12);
    }
}

#[test]
fn scores_far_apart_neither_overflow_nor_lose_the_order() {
    for gap in [800.0, 1e6, 1e200] {
        let scores = [0.0, -gap, -2.0 * gap, -2.0 * gap];
        let coefficients = [0.25, 1.0, 0.5, 0.0];
        let expected = 0.25 + discount(1) + discount(2) * 0.25;
        for (value, gradient) in both(&scores, &coefficients, 3) {
            assert!((value - expected).abs() < 1e-11, "{gap}: {value} {expected}");
            let expected = discount(2) * 0.125;
            assert!((gradient[2] - expected).abs() < 1e-11 && (gradient[3] + expected).abs() < 1e-11, "{gradient:?}");
            assert!(gradient[0].abs() < 1e-11 && gradient[1].abs() < 1e-11, "{gradient:?}");
        }
    }
}

#[test]
fn long_lists_at_large_k_are_raced_and_sum_to_zero() {
    let scores: Vec<f64> = (0..120).map(|i| ((i * 37) % 50) as f64 / 10.0).collect();
    let grades: Vec<u32> = (0..120).map(|i| u32::from(i % 7 == 0) + u32::from(i % 11 == 0)).collect();
    let mut gradient = vec![0.0; 120];
    let ten = BayesRank::new(Cutoff::new(10).unwrap());
    let loss = ten.evaluate(&scores, &grades, &mut LossBuffers::default(), &mut gradient);
    assert!((-1.0..0.0).contains(&loss));
    assert!(gradient.iter().sum::<f64>().abs() < 1e-11);
    // A step against the gradient lowers the loss at first order.
    let moved: Vec<f64> = scores.iter().zip(&gradient).map(|(s, g)| s - 1e-3 * g).collect();
    let after = ten.evaluate(&moved, &grades, &mut LossBuffers::default(), &mut vec![0.0; 120]);
    let predicted = 1e-3 * gradient.iter().map(|g| g * g).sum::<f64>();
    assert!((loss - after - predicted).abs() < 1e-2 * predicted, "{loss} {after} {predicted}");
}
