use dp_rank::loss::{BayesRank, LossBuffers, RankingLoss};
use dp_rank::metrics::Cutoff;
use dp_rank::sensitivity::{Contributions, Gram, half_diameter, triangle_over_prefixes};
use dp_rank::spectral::{PowerIteration, norm_upper_bound};

use super::{Case, for_each_case, matrix, vector};

/// Returns scores, products of the score gradients, the gradients themselves, and the length of each gradient.
fn list(case: &Case<'_>) -> (Vec<f64>, Vec<f64>, Vec<f64>, usize) {
    let scores = vector(&case.input["scores"]);
    let (values, width) = matrix(&case.input["score_grads"]);
    let rows = || values.chunks_exact(width);
    let products = rows().flat_map(|a| rows().map(|b| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>())).collect();
    (scores, products, values, width)
}

#[test]
fn sens_top1() {
    for_each_case("sens_top1", |case| {
        let (scores, products, _, width) = list(case);
        let gram = Gram::new(&products, scores.len(), width).unwrap();
        let one = Contributions::new(BayesRank::TOP_1, &scores, &gram).unwrap();
        let exact = one.exact().unwrap();
        let results = [
            ("seed_bound", one.triangle()),
            ("exact", exact),
            ("radius", one.radius(exact)),
            ("cov_bound", one.covariance()),
            ("dual_bound", one.weighted()),
            ("half_diam", half_diameter(&gram)),
            ("thin_seed_bound", one.thinned_triangle()),
            ("thin_exact", one.thinned_exact()),
            ("thin_radius", one.thinned_radius()),
        ];
        for (name, got) in results {
            case.check(name, got);
            // Bounds: never below the expected number, except in its last digits.
            assert!(got >= case.out[name].as_f64().unwrap() * (1.0 - 1e-14), "{} {name}", case.id);
        }
        let seed = triangle_over_prefixes(Cutoff::new(1).unwrap(), &scores, &gram).unwrap().unwrap();
        case.check("seed_bound", seed);
    });
}

#[test]
fn sens_topk() {
    for_each_case("sens_topk", |case| {
        let (scores, products, values, width) = list(case);
        let n = scores.len();
        let gram = Gram::new(&products, n, width).unwrap();
        let k = Cutoff::new(usize::try_from(case.input["k"].as_u64().unwrap()).unwrap()).unwrap();
        case.check("seed_bound", triangle_over_prefixes(k, &scores, &gram).unwrap().unwrap());

        let loss = BayesRank::new(k);
        let image: Vec<Vec<f64>> = (0..3_usize.pow(n as u32))
            .map(|code| {
                let grades: Vec<u32> = (0..n).map(|i| (code / 3_usize.pow(i as u32) % 3) as u32).collect();
                let mut g = vec![0.0; n];
                loss.evaluate(&scores, &grades, &mut LossBuffers::default(), &mut g);
                (0..width).map(|column| (0..n).map(|i| g[i] * values[i * width + column]).sum()).collect()
            })
            .collect();
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let diameter = image.iter().flat_map(|a| image.iter().map(|b| distance(a, b))).fold(0.0, f64::max);
        let radius = image.iter().map(|a| distance(a, &vec![0.0; width])).fold(0.0, f64::max);
        case.check("exact_labels_012", diameter);
        case.check("radius_labels_012", radius);
        let bounds = Contributions::new(loss, &scores, &gram).unwrap().bounds();
        assert!(diameter <= bounds.diameter && radius <= bounds.radius, "{}", case.id);
        // Never larger than the published bound; equal to it if all gradients have one direction.
        let published = case.out["seed_bound"].as_f64().unwrap();
        assert!(bounds.diameter <= published * (1.0 + 1e-9), "{}: {} {published}", case.id, bounds.diameter);
    });
}

#[test]
fn spectral_norm() {
    for_each_case("spectral_norm", |case| {
        let (values, columns) = matrix(&case.input["a"]);
        let rows = values.len() / columns;
        case.check("sigma", PowerIteration::default().estimate(&values, rows, columns));
        let bound = norm_upper_bound(&values, rows, columns);
        case.check("sigma", bound);
        assert!(bound >= case.out["sigma"].as_f64().unwrap() * (1.0 - 1e-14), "{}", case.id);
    });
}
