//! The laws of `Model`, for every kind of layer and both inputs.

use dp_losses::laws::{Case, companion_laws, model_laws, norm_laws};

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

/// The laws for rows that are read through `input`, with and without a null record, which holds numbers nevertheless.
pub(super) fn check_rows<I>(architecture: &Architecture, input: I)
where
    I: Copy + for<'a> Input<f64, Batch<'a> = Block<'a, f64>> + for<'a> Input<f32, Batch<'a> = Block<'a, f32>>,
{
    let network = Network::<f64, _>::new(architecture.clone(), input).unwrap();
    let (dim, classes) = (architecture.input.values().unwrap(), network.classes());
    let values: Vec<f64> = (0..EXAMPLES * dim).map(number).collect();
    let targets: Vec<f64> = (0..EXAMPLES).map(|i| (i % classes) as f64).collect();
    let mut poison = values.clone();
    poison[2 * dim + dim / 2] = f64::NAN;
    for valid in [None, Some(&[true, true, true, false, true][..])] {
        let case = case(block(&values, &targets, valid), parameters(&network), block(&poison, &targets, valid));
        assert_eq!(model_laws(&network, &case), Ok(()), "{architecture:?}");
    }
    let network = Network::<f32, _>::new(architecture.clone(), input).unwrap();
    let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    let targets: Vec<f32> = targets.iter().map(|&x| x as f32).collect();
    let all = block(&values, &targets, None);
    let singles: Vec<_> = (0..EXAMPLES).map(|i| all.slice(i..i + 1)).collect();
    assert_eq!(norm_laws(&network, &parameters(&network), &singles), Ok(()), "{architecture:?}");
    assert_eq!(companion_laws(&network, &parameters(&network), all, &singles), Ok(()), "{architecture:?}");
}

#[test]
fn rows_satisfy_the_laws() {
    tiny().iter().for_each(|architecture| check_rows(architecture, Features));
}

/// The products `c g` are those of `add_weighted`, rounded to `F`; only what follows is in double precision.
#[test]
fn contributions_in_double_precision_are_rounded_products() {
    let network = of_rows::<f32>(tiny().swap_remove(5));
    let (w, blocks) = (parameters(&network), network.blocks());
    let values: Vec<f32> = (0..32).map(number).collect();
    let batch = block(&values, &[1.0], None);
    let gradient = evaluate(&network, &w, batch, None).gradient;
    let (mut pass, mut sum) = (network.pass(1), vec![0.0; w.len()]);
    network.forward(&w, batch, &mut pass);
    network.backward(&w, batch, &mut pass);
    network.add_weighted_in_double(batch, &mut pass, &[0.3; 4], &mut sum);
    // All of the layers whose gradients are stored, and the biases of the linear layer, whose inputs are 1.
    for j in (0..blocks[2].range.end).chain(w.len() - 2..w.len()) {
        assert_eq!(sum[j], f64::from(0.3 * gradient[j]), "{j}");
    }
}

#[test]
fn declared_roundings_are_few_in_single_precision() {
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    for name in ["mnist-mlp", "small-cnn"] {
        let of = || Architecture::named(name, mnist, 10, None).unwrap();
        let single = Network::<f32, _>::new(of(), Pixels::new(Scaling::Unit)).unwrap().norm_roundings();
        assert!((1.0..1.001).contains(&single), "{single}");
        let double = Network::<f64, _>::new(of(), Pixels::new(Scaling::Unit)).unwrap().norm_roundings();
        assert!((100.0..300.0).contains(&double), "{double}");
    }
}

/// Networks of layers drawn at random: those that fit satisfy the laws of norms, and none panics.
#[test]
fn random_networks_satisfy_the_laws_of_norms() {
    let mut state = 1_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % bound) as usize
    };
    let mut checked = 0;
    for _ in 0..300 {
        let input = [1 + below(8), 1 + below(8), 1 + below(3)];
        let mut layers: Vec<Layer> = (0..below(6))
            .map(|_| {
                let pair = |low: usize, a: usize, b: usize| [low + a, low + b];
                match below(7) {
                    0 => linear(1 + below(5)),
                    1 | 2 => {
                        let (kernel, stride) = (pair(1, below(3), below(3)), pair(1, below(3), below(3)));
                        convolution(1 + below(4), kernel, stride, pair(0, below(3), below(3)))
                    }
                    3 => max_pool(pair(1, below(3), below(3)), pair(1, below(3), below(3))),
                    4 => average_pool(pair(1, below(3), below(3)), pair(1, below(3), below(3))),
                    5 => Layer::GroupNorm { groups: 1 + below(2) },
                    _ => [Layer::Tanh, Layer::Relu][below(2)],
                }
            })
            .collect();
        layers.push(linear(2 + below(2)));
        let architecture = architecture(input, &layers);
        let Ok(network) = Network::<f32, _>::new(architecture.clone(), Features) else { continue };
        checked += 1;
        let dim = architecture.input.values().unwrap();
        let values: Vec<f32> = (0..2 * dim).map(number).collect();
        let all = block(&values, &[0.0, 1.0], None);
        let singles = [all.slice(0..1), all.slice(1..2)];
        assert_eq!(norm_laws(&network, &parameters(&network), &singles), Ok(()), "{architecture:?}");
        let sum = evaluate(&network, &parameters(&network), all, None).gradient;
        let single = |i: usize| evaluate(&network, &parameters(&network), singles[i], None).gradient;
        let size = sum.iter().fold(1e-3_f32, |size, s| size.max(s.abs()));
        for ((sum, a), b) in sum.iter().zip(single(0)).zip(single(1)) {
            assert!((sum - a - b).abs() <= 1e-5 * size, "{architecture:?}");
        }
    }
    assert!(checked > 60, "{checked}");
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
    for (architecture, scaling, views) in [
        (&tiny[2], Scaling::Unit, Views::One),
        (&tiny[4], Scaling::Symmetric, Views::One),
        (&tiny[5], Scaling::Unit, Views::One),
        (&tiny[2], Scaling::Unit, Views::ShiftsAndFlip),
        (&tiny[4], Scaling::Symmetric, Views::Shifts),
        (&tiny[5], Scaling::Unit, Views::Flip),
    ] {
        let network = Network::<f64, _>::new(architecture.clone(), Pixels::new(scaling).with_views(views)).unwrap();
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
        let network = Network::<f32, _>::new(architecture.clone(), Pixels::new(scaling).with_views(views)).unwrap();
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

/// An example has the same bits alone and among others, in networks whose layers have few or many rows, columns and inputs: see
/// `multiply_rows`.
#[test]
fn no_example_depends_on_its_companions() {
    fn check<F: Float>(architecture: &Architecture, views: Views, others: &[usize]) {
        let pixels = Pixels::new(Scaling::Symmetric).with_views(views);
        let network = Network::<F, _>::new(architecture.clone(), pixels).unwrap();
        let images = images(architecture.input, 150, network.classes());
        let w = parameters(&network);
        for &count in others {
            let positions: Vec<u32> = (0..count).map(|i| (i * 37 % 150) as u32).collect();
            // The first, one in the middle and the last, of which the others keep their places.
            let kept = [0, count / 2, count - 1].map(|i| positions[i]);
            let rotated: Vec<u32> = kept.iter().chain(&positions).copied().collect();
            let singles: Vec<_> =
                rotated.iter().map(|position| images.choose(core::slice::from_ref(position))).collect();
            let whole = images.choose(&rotated);
            assert_eq!(companion_laws(&network, &w, whole, &singles), Ok(()), "{count}: {architecture:?}");
        }
    }
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    for architecture in tiny() {
        check::<f64>(&architecture, Views::One, &[1, 20, 70]);
        check::<f32>(&architecture, Views::One, &[1, 20, 70]);
        check::<f32>(&architecture, Views::Shifts, &[1, 20]);
    }
    for layers in [
        vec![linear(600), Layer::Relu, linear(20), Layer::Tanh, linear(2)],
        vec![
            convolution(40, [3, 3], [3, 3], [0, 0]),
            Layer::Relu,
            convolution(3, [2, 2], [2, 2], [0, 0]),
            linear(1),
            linear(3),
        ],
        vec![convolution(1, [5, 5], [2, 2], [0, 0]), Layer::Tanh, convolution(70, [9, 9], [1, 1], [0, 0]), linear(3)],
    ] {
        check::<f32>(&architecture([28, 28, 1], &layers), Views::One, &[1, 7, 66]);
        check::<f32>(&architecture([28, 28, 1], &layers), Views::Flip, &[1, 7]);
    }
    check::<f32>(&Architecture::named("small-cnn", mnist, 10, None).unwrap(), Views::One, &[5]);
}
