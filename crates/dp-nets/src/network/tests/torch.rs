//! Losses, norms and clipped sums against PyTorch in double precision: `testdata/golden.py`.

use serde::Deserialize;

use super::*;
use crate::architecture::Task;

#[derive(Deserialize)]
struct Golden {
    networks: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    name: String,
    parameters: usize,
    losses: Vec<f64>,
    norms: Vec<f64>,
    clipped_norm: f64,
    first: Vec<f64>,
    spread: Vec<f64>,
}

fn named(name: &str) -> Architecture {
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    if name != "group-norm" {
        return Architecture::named(name, mnist, 10, None).unwrap();
    }
    let layers = [
        convolution(8, [3, 3], [1, 1], [1, 1]),
        Layer::GroupNorm { groups: 4 },
        Layer::Tanh,
        average_pool([2, 2], [2, 2]),
        Layer::GroupNorm { groups: 2 },
        linear(10),
    ];
    architecture([7, 6, 3], &layers)
}

/// The parameters of the script.
fn of_formula(architecture: &Architecture) -> Vec<f64> {
    let sine = |j: usize| ((j + 1) as f64).sin();
    let of_layer = |planned: crate::architecture::Planned| -> Vec<f64> {
        let range = planned.parameters.clone();
        let middle = range.start + range.len() / 2;
        match planned.task {
            Task::GroupNorm { .. } => range.map(|j| f64::from(u8::from(j < middle)) + 0.1 * sine(j)).collect(),
            _ => range.map(|j| sine(j) / (planned.fan_in() as f64).sqrt()).collect(),
        }
    };
    architecture.plan().unwrap().into_iter().flat_map(of_layer).collect()
}

fn agrees<F: Float>(expected: &Expected, tolerance: f64) {
    let architecture = named(&expected.name);
    let w: Vec<F> = of_formula(&architecture).into_iter().map(F::narrow).collect();
    assert_eq!(w.len(), expected.parameters);
    let images = images(architecture.input, 8, 10);
    let network = Network::<F, _>::new(architecture, Pixels::new(Scaling::Unit)).unwrap();
    let (batch, blocks) = (images.choose(&[0, 1, 2, 3, 4, 5, 6, 7]), network.blocks().len());
    let found = evaluate(&network, &w, batch, None);
    let norms: Vec<f64> = found
        .squared_norms
        .chunks_exact(blocks)
        .map(|norms| norms.iter().map(|norm| norm.wide()).sum::<f64>().sqrt())
        .collect();
    let coefficients: Vec<F> = norms.iter().flat_map(|norm| vec![F::narrow((1.0 / norm).min(1.0)); blocks]).collect();
    let sum: Vec<f64> = evaluate(&network, &w, batch, Some(&coefficients)).gradient.iter().map(|&s| s.wide()).collect();
    let near = |found: f64, expected: f64, size: f64| {
        assert!((found - expected).abs() <= tolerance * size, "{found} instead of {expected}");
    };
    for i in 0..8 {
        near(found.losses[i].wide(), expected.losses[i], expected.losses[i]);
        near(norms[i], expected.norms[i], expected.norms[i]);
        near(sum[i], expected.first[i], expected.clipped_norm);
        near(sum[(2 * i + 1) * sum.len() / 16], expected.spread[i], expected.clipped_norm);
    }
    near(sum.iter().map(|s| s * s).sum::<f64>().sqrt(), expected.clipped_norm, expected.clipped_norm);
}

#[test]
fn networks_agree_with_torch() {
    let golden: Golden = serde_json::from_str(include_str!("../../../testdata/torch.json")).unwrap();
    assert_eq!(golden.networks.len(), 4);
    for expected in &golden.networks {
        agrees::<f64>(expected, 1e-11);
        agrees::<f32>(expected, 1e-4);
    }
}
