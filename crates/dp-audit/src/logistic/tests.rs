use dp_mechanisms::SeededRng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

fn normals(count: usize, mean: f64, std_dev: f64, rng: &mut SeededRng) -> Vec<f64> {
    (0..count).map(|_| mean + std_dev * <StandardNormal as Distribution<f64>>::sample(&StandardNormal, rng)).collect()
}

#[test]
fn a_shift_has_the_likelihood_ratio_that_it_has() {
    let mut rng = SeededRng::new(1);
    let (base, neighbour) = (normals(20_000, 0.0, 1.0, &mut rng), normals(20_000, 1.0, 1.0, &mut rng));
    let model = Logistic::fit(&base, &neighbour, 1);
    // ln(phi(x - 1) / phi(x)) = x - 1/2.
    for x in [-1.0, 0.0, 0.5, 1.0, 2.0] {
        assert!((model.score(&[x]) - (x - 0.5)).abs() < 0.2, "{x}: {}", model.score(&[x]));
    }
}

#[test]
fn a_change_of_spread_is_seen() {
    let mut rng = SeededRng::new(2);
    let (base, neighbour) = (normals(20_000, 0.0, 1.0, &mut rng), normals(20_000, 0.0, 2.0, &mut rng));
    let model = Logistic::fit(&base, &neighbour, 1);
    // 3 x²/8 - ln 2.
    for x in [-2.0f64, 0.0, 2.0] {
        assert!((model.score(&[x]) - (0.375 * x * x - 2f64.ln())).abs() < 0.3, "{x}: {}", model.score(&[x]));
    }
}

#[test]
fn indicators_get_the_logarithm_of_their_ratio() {
    let rows = |counts: [usize; 3]| -> Vec<f64> {
        (0..3).flat_map(|i| (0..counts[i]).flat_map(move |_| (0..3).map(move |j| f64::from(i == j)))).collect()
    };
    let model = Logistic::fit(&rows([8000, 1900, 100]), &rows([6000, 3700, 300]), 3);
    for (row, ratio) in [([1.0, 0.0, 0.0], 0.75f64), ([0.0, 1.0, 0.0], 3.7 / 1.9), ([0.0, 0.0, 1.0], 3.0)] {
        assert!((model.score(&row) - ratio.ln()).abs() < 0.1, "{row:?}: {}", model.score(&row));
    }
}

#[test]
fn separable_infinite_and_constant_features_give_finite_scores() {
    let model = Logistic::fit(&[0.0, 5.0, 0.0, 5.0], &[1.0, 5.0, 1.0, 5.0], 2);
    assert!(model.score(&[0.0, 5.0]) < -1.0 && model.score(&[1.0, 5.0]) > 1.0);
    let model = Logistic::fit(&[0.0, 1.0, 2.0], &[f64::NAN, 1.0, f64::INFINITY], 1);
    assert!(model.score(&[f64::NAN]) > model.score(&[1.0]));
    for value in [f64::NAN, f64::NEG_INFINITY, f64::MAX, -f64::MAX, 5e-324] {
        assert!(model.score(&[value]).is_finite());
    }
    assert!(Logistic::fit(&[f64::NAN], &[f64::NAN], 1).score(&[0.0]).is_finite());
}

#[test]
fn many_features_are_fitted_without_squares() {
    let mut rng = SeededRng::new(3);
    let width = 200;
    let mut rows = |shift: f64| -> Vec<f64> {
        let mut all = Vec::new();
        for _ in 0..1000 {
            let mut row = normals(width, 0.0, 1.0, &mut rng);
            row[17] += shift;
            all.extend(row);
        }
        all
    };
    let model = Logistic::fit(&rows(0.0), &rows(3.0), width);
    let mut probe = vec![0.0; width];
    let before = model.score(&probe);
    probe[17] = 3.0;
    assert!(model.score(&probe) - before > 4.0);
}

#[test]
fn units_do_not_matter() {
    let mut rng = SeededRng::new(4);
    let (base, neighbour) = (normals(2000, 0.0, 1.0, &mut rng), normals(2000, 1.0, 1.0, &mut rng));
    let unit = 2f64.powi(40);
    let scaled = |values: &[f64]| values.iter().map(|x| x * unit).collect::<Vec<_>>();
    let (model, large) = (Logistic::fit(&base, &neighbour, 1), Logistic::fit(&scaled(&base), &scaled(&neighbour), 1));
    for x in [-2.0, 0.3, 4.0] {
        assert_eq!(model.score(&[x]), large.score(&[x * unit]));
    }
}
