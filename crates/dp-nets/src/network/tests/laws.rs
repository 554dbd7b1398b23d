//! The laws of `Model`, for every kind of layer and both inputs.

use dp_losses::laws::{Case, model_laws, norm_laws};

use super::*;

const EXAMPLES: usize = 5;

fn case<'a>(all: Block<'a, f64>, parameters: Vec<f64>, poisoned: Block<'a, f64>) -> Case<Block<'a, f64>> {
    Case {
        parameters,
        whole: all,
        singles: (0..EXAMPLES).map(|i| all.slice(i..i + 1)).collect(),
        parts: vec![(all.slice(0..2), 2), (all.slice(2..3), 1), (all.slice(3..5), 2)],
        poisoned: Some((poisoned, 2)),
    }
}

#[test]
fn rows_satisfy_the_laws() {
    for architecture in tiny() {
        let network = of_rows::<f64>(architecture.clone());
        let (dim, classes) = (architecture.input.values().unwrap(), network.classes());
        let values: Vec<f64> = (0..EXAMPLES * dim).map(number).collect();
        let targets: Vec<f64> = (0..EXAMPLES).map(|i| (i % classes) as f64).collect();
        let mut poison = values.clone();
        poison[2 * dim + dim / 2] = f64::NAN;
        // One null record, which holds numbers nevertheless.
        for valid in [None, Some(&[true, true, true, false, true][..])] {
            let case = case(block(&values, &targets, valid), parameters(&network), block(&poison, &targets, valid));
            assert_eq!(model_laws(&network, &case), Ok(()), "{architecture:?}");
        }
        let network = of_rows::<f32>(architecture.clone());
        let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let targets: Vec<f32> = targets.iter().map(|&x| x as f32).collect();
        let all = block(&values, &targets, None);
        let singles: Vec<_> = (0..EXAMPLES).map(|i| all.slice(i..i + 1)).collect();
        assert_eq!(norm_laws(&network, &parameters(&network), &singles), Ok(()), "{architecture:?}");
    }
}

#[test]
fn sparse_rows_are_those_of_the_dense_rows() {
    let architecture = tiny().swap_remove(1);
    let network = of_rows::<f64>(architecture);
    let (offsets, indices) = ([3, 5, 5, 6, 9, 10], [9, 9, 9, 1, 4, 0, 0, 2, 3, 4]);
    let values: Vec<f64> = (0..10).map(number).collect();
    let targets = [-1.0, 1.0, 0.0, 1.0, -1.0];
    let rows = Rows::Sparse { offsets: &offsets, indices: &indices, values: &values, dim: 5 };
    let all = Block { rows, targets: &targets, valid: None };
    let mut dense = [0.0; 25];
    for i in 0..5 {
        for j in offsets[i]..offsets[i + 1] {
            dense[5 * i + indices[j] as usize] = values[j];
        }
    }
    let w = parameters(&network);
    let (found, expected) =
        (evaluate(&network, &w, all, None), evaluate(&network, &w, block(&dense, &targets, None), None));
    assert!(found.gradient == expected.gradient && found.losses == expected.losses);
    let mut poison = values.clone();
    poison[5] = f64::NAN;
    let rows = Rows::Sparse { offsets: &offsets, indices: &indices, values: &poison, dim: 5 };
    let case = case(all, w, Block { rows, ..all });
    assert_eq!(model_laws(&network, &case), Ok(()));
}

#[test]
fn images_satisfy_the_laws() {
    let tiny = tiny();
    for (architecture, scaling) in
        [(&tiny[2], Scaling::Unit), (&tiny[4], Scaling::Symmetric), (&tiny[5], Scaling::Unit)]
    {
        let network = Network::<f64, _>::new(architecture.clone(), Pixels::new(scaling)).unwrap();
        let images = images(architecture.input, 9, network.classes());
        let positions = [7, 0, 3, 8, 3];
        let case = Case {
            parameters: parameters(&network),
            whole: images.choose(&positions),
            singles: (0..EXAMPLES).map(|i| images.choose(&positions[i..i + 1])).collect(),
            parts: vec![(images.choose(&positions[0..1]), 1), (images.choose(&positions[1..5]), 4)],
            poisoned: None,
        };
        assert_eq!(model_laws(&network, &case), Ok(()), "{architecture:?}");
        let network = Network::<f32, _>::new(architecture.clone(), Pixels::new(scaling)).unwrap();
        assert_eq!(norm_laws(&network, &parameters(&network), &case.singles), Ok(()));
    }
}

#[test]
fn single_precision_agrees_with_double() {
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    let named = ["small-cnn", "tempered-cnn"].map(|name| Architecture::named(name, mnist, 10, None).unwrap());
    for architecture in tiny().into_iter().chain(named) {
        let network = Network::<f64, _>::new(architecture.clone(), Pixels::new(Scaling::Unit)).unwrap();
        let images = images(architecture.input, 4, network.classes());
        let (batch, w) = (images.choose(&[0, 1, 2, 3]), network.initial(Initial::Uniform, 5));
        let double = evaluate(&network, &w, batch, None);
        let network = Network::<f32, _>::new(architecture, Pixels::new(Scaling::Unit)).unwrap();
        let w: Vec<f32> = w.iter().map(|&w| w as f32).collect();
        let single = evaluate(&network, &w, batch, None);
        let norm = double.gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let distance = |(&s, &d): (&f32, &f64)| (f64::from(s) - d).powi(2);
        let error = single.gradient.iter().zip(&double.gradient).map(distance).sum::<f64>().sqrt();
        assert!(error <= 1e-4 * norm, "{error} of {norm}");
        let close = |(&s, &d): (&f32, &f64)| (f64::from(s) - d).abs() <= 1e-4 * d.abs();
        assert!(single.losses.iter().zip(&double.losses).all(close));
    }
}

/// Central differences on some parameters of named networks; tanh and averages are smooth.
#[test]
fn gradients_of_large_networks_are_central_differences() {
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    for name in ["small-cnn", "tempered-cnn"] {
        let mut architecture = Architecture::named(name, mnist, 10, None).unwrap();
        for layer in &mut architecture.layers {
            if let Layer::MaxPool { size, stride } = *layer {
                *layer = Layer::AveragePool { size, stride };
            }
        }
        let network = Network::<f64, _>::new(architecture, Pixels::new(Scaling::Unit)).unwrap();
        let images = images(mnist, 2, 10);
        let (batch, mut w) = (images.choose(&[0, 1]), network.initial(Initial::Uniform, 5));
        let gradient = evaluate(&network, &w, batch, None).gradient;
        let mut pass = network.pass(2);
        let mut total = |w: &[f64]| {
            let mut losses = [0.0; 2];
            network.forward(w, batch, &mut pass);
            network.losses(batch, &pass, &mut losses);
            losses[0] + losses[1]
        };
        let count = w.len();
        for j in (0..50).map(|i| i * 7919 % count) {
            let (before, step) = (w[j], 1e-5);
            w[j] = before + step;
            let above = total(&w);
            w[j] = before - step;
            let slope = (above - total(&w)) / (2.0 * step);
            w[j] = before;
            assert!((slope - gradient[j]).abs() <= 1e-6 * gradient[j].abs().max(1e-3), "{name} {j}: {slope}");
        }
    }
}
