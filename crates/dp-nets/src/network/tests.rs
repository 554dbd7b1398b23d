mod bad_examples;
mod constructed;
mod laws;
mod torch;
mod views;

use dp_data::images::Shape;
use dp_data::{Block, ImageBatch, Images, Rows};
use dp_losses::Model;

use crate::{Activation, Architecture, Features, Float, Initial, Input, Layer, Network, Pixels, Scaling, Views};

/// The architecture of layers after an input.
fn architecture(input: [usize; 3], layers: &[Layer]) -> Architecture {
    let [height, width, channels] = input;
    Architecture { input: Shape { height, width, channels }, layers: layers.to_vec() }
}

fn convolution(channels: usize, kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Layer {
    Layer::Convolution { channels, kernel, stride, padding }
}

fn linear(units: usize) -> Layer {
    Layer::Linear { units }
}

fn average_pool(size: [usize; 2], stride: [usize; 2]) -> Layer {
    Layer::AveragePool { size, stride }
}

fn max_pool(size: [usize; 2], stride: [usize; 2]) -> Layer {
    Layer::MaxPool { size, stride }
}

fn of_rows<F: Float>(architecture: Architecture) -> Network<F, Features> {
    Network::new(architecture, Features).unwrap()
}

/// Numbers without a pattern in `[-1, 1]`.
fn number<F: Float>(j: usize) -> F {
    F::narrow(((j as f64 + 0.37) * 12.9898).sin())
}

/// Parameters of about the size of initial ones, scales and shifts of norms included.
fn parameters<F: Float, I: Input<F>>(network: &Network<F, I>) -> Vec<F> {
    let initial = network.initial(Initial::Uniform, 3);
    initial.iter().enumerate().map(|(j, &w)| w + F::narrow(0.05) * number(j + 900)).collect()
}

/// Rows with their targets, as a block.
fn block<'a, F>(values: &'a [F], targets: &'a [F], valid: Option<&'a [bool]>) -> Block<'a, F> {
    let dim = values.len() / targets.len();
    Block { rows: Rows::Dense { values, dim }, targets, valid }
}

fn images(shape: Shape, count: usize, classes: usize) -> Images {
    let pixels = (0..count * shape.values().unwrap()).map(|j| (j * 97 + j * j * 31 + 7) as u8).collect();
    Images::new(shape, pixels, (0..count).map(|i| (i % classes) as u8).collect(), classes).unwrap()
}

/// All that a model computes for a batch.
struct Evaluation<F> {
    losses: Vec<F>,
    squared_norms: Vec<F>,
    gradient: Vec<F>,
}

fn evaluate<F: Float, I: Input<F>>(
    network: &Network<F, I>,
    parameters: &[F],
    batch: I::Batch<'_>,
    coefficients: Option<&[F]>,
) -> Evaluation<F> {
    let (n, blocks) = (network.input_examples(batch), network.blocks().len());
    let mut pass = network.pass(n);
    let mut out = Evaluation {
        losses: vec![F::zero(); n],
        squared_norms: vec![F::zero(); n * blocks],
        gradient: vec![F::zero(); network.parameters()],
    };
    network.forward(parameters, batch, &mut pass);
    network.losses(batch, &pass, &mut out.losses);
    network.backward(parameters, batch, &mut pass);
    network.squared_norms(batch, &mut pass, &mut out.squared_norms);
    let ones = vec![F::one(); n * blocks];
    network.add_weighted(batch, &mut pass, coefficients.unwrap_or(&ones), &mut out.gradient);
    out
}

impl<F: Float, I: Input<F>> Network<F, I> {
    fn input_examples(&self, batch: I::Batch<'_>) -> usize {
        self.input.examples(batch)
    }
}

/// Tiny networks of tanh and averages, which are smooth, and of kinks.
fn tiny() -> Vec<Architecture> {
    vec![
        architecture([1, 1, 5], &[linear(3)]),
        architecture([1, 1, 5], &[linear(4), Layer::Tanh, linear(3), Layer::Relu, linear(2)]),
        architecture([5, 4, 2], &[convolution(3, [3, 2], [1, 1], [0, 0]), Layer::Tanh, linear(3)]),
        architecture(
            [5, 6, 1],
            &[
                convolution(2, [2, 3], [2, 1], [1, 2]),
                Layer::Tanh,
                average_pool([2, 2], [1, 2]),
                convolution(3, [2, 1], [1, 2], [1, 0]),
                Layer::Relu,
                linear(4),
                Layer::Tanh,
                linear(3),
            ],
        ),
        architecture(
            [6, 6, 1],
            &[convolution(2, [3, 3], [1, 1], [1, 1]), Layer::Tanh, max_pool([2, 3], [2, 3]), linear(3)],
        ),
        architecture(
            [4, 4, 2],
            &[
                average_pool([2, 2], [1, 1]),
                convolution(4, [2, 2], [1, 1], [0, 0]),
                Layer::GroupNorm { groups: 2 },
                Layer::Relu,
                max_pool([2, 2], [1, 1]),
                Layer::GroupNorm { groups: 1 },
                linear(2),
            ],
        ),
        architecture([3, 2, 4], &[Layer::GroupNorm { groups: 4 }, Layer::Tanh, linear(3)]),
    ]
}

#[test]
fn names_and_ranges_of_blocks() {
    let network = of_rows::<f32>(tiny().swap_remove(5));
    let names: Vec<_> = network.blocks().iter().map(|block| (block.name.as_str(), block.range.clone())).collect();
    let expected = [("2 convolution", 0..36), ("3 group-norm", 36..44), ("6 group-norm", 44..52), ("7 linear", 52..62)];
    assert_eq!(names, expected);
}

#[test]
fn the_recommended_microbatch_fits_the_cache() {
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    let of = |name: &str, input| {
        let architecture = Architecture::named(name, input, 10, None).unwrap();
        Network::<f32, _>::new(architecture, Pixels::new(Scaling::Unit)).unwrap()
    };
    let mlp = of("mnist-mlp", mnist);
    assert_eq!(mlp.recommended_microbatch(), 512);
    assert!((14_000..18_000).contains(&mlp.bytes_per_example()));
    let cnn = of("small-cnn", mnist);
    assert!((16..=96).contains(&cnn.recommended_microbatch()), "{}", cnn.bytes_per_example());
    let cifar = of("cifar-cnn", Shape { height: 32, width: 32, channels: 3 });
    assert!(cifar.bytes_per_example() > 1 << 22 && cifar.recommended_microbatch() == 16);
    // Weights of 50 MB, and buffers of 66 kB for an example.
    let wide = Architecture::mlp(Architecture::rows(3072), &[4096], 10, Activation::Relu);
    assert_eq!(of_rows::<f32>(wide).recommended_microbatch(), 512);
}

#[test]
fn no_batch_and_growing_batches() {
    let network = of_rows::<f64>(tiny().swap_remove(3));
    let w = parameters(&network);
    let (values, targets): (Vec<f64>, _) = ((0..30 * 40).map(number).collect(), [1.0; 40]);
    let all = block(&values, &targets, None);
    let mut pass = network.pass(1);
    let mut sum = vec![0.0; w.len()];
    for n in [0, 3, 40, 5] {
        let batch = all.slice(0..n);
        network.forward(&w, batch, &mut pass);
        network.backward(&w, batch, &mut pass);
        sum.fill(0.0);
        network.add_weighted(batch, &mut pass, &vec![1.0; 4 * n], &mut sum);
        assert_eq!(pass.logits().len(), 3 * n);
        assert_eq!(sum, evaluate(&network, &w, batch, None).gradient, "{n} examples");
    }
}

#[test]
fn buffers_are_reused() {
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    let architecture = Architecture::named("tempered-cnn", mnist, 10, None).unwrap();
    let network = Network::<f32, _>::new(architecture, Pixels::new(Scaling::Unit)).unwrap();
    let (images, w) = (images(mnist, 9, 10), network.initial(Initial::Uniform, 1));
    let mut pass = network.pass(9);
    let mut addresses = Vec::new();
    for positions in [&[0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[4], &[8, 7, 6, 5, 4, 3, 2, 1, 0], &[]] {
        let (batch, n) = (images.choose(positions), 4 * positions.len());
        network.forward(&w, batch, &mut pass);
        network.backward(&w, batch, &mut pass);
        network.squared_norms(batch, &mut pass, &mut vec![0.0; n]);
        network.add_weighted(batch, &mut pass, &vec![0.5; n], &mut vec![0.0; w.len()]);
        network.add_weighted_in_double(batch, &mut pass, &vec![0.5; n], &mut vec![0.0; w.len()]);
        let of = |buffers: &[Vec<f32>]| buffers.iter().map(|b| (b.as_ptr() as usize, b.len())).collect::<Vec<_>>();
        let mut all =
            [of(&pass.values), of(&pass.gradients), of(&[]), of(core::slice::from_ref(&pass.buffer))].concat();
        for kept in &pass.kept {
            all.extend([(kept.per_example.as_ptr() as usize, kept.per_example.len())]);
            all.extend([(kept.indices.as_ptr() as usize, kept.indices.len())]);
        }
        all.extend([(pass.wide.as_ptr() as usize, pass.wide.len()), (pass.norms.as_ptr() as usize, pass.norms.len())]);
        all.extend([(pass.classes.as_ptr() as usize, 0), (pass.column.as_ptr() as usize, 0)]);
        addresses.push(all);
    }
    assert!(addresses.iter().all(|all| *all == addresses[0]));
}

#[test]
fn initial_parameters_are_those_of_the_seed_and_the_layer() {
    let network = of_rows::<f64>(tiny().swap_remove(5));
    let uniform = network.initial(Initial::Uniform, 1);
    assert_eq!(uniform, network.initial(Initial::Uniform, 1));
    assert_ne!(uniform, network.initial(Initial::Uniform, 2));
    assert_eq!(uniform.len(), network.parameters());
    // K = 2 · 2 · 2 in the convolution, 4 inputs in the linear layer.
    let largest = |range: core::ops::Range<usize>| uniform[range].iter().fold(0.0_f64, |m, w| m.max(w.abs()));
    assert!((0.3..=8f64.powf(-0.5)).contains(&largest(0..36)) && (0.4..=0.5).contains(&largest(52..62)));
    assert_eq!(uniform[36..44], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);

    let wide = of_rows::<f32>(architecture([1, 1, 50], &[linear(400), Layer::Relu, linear(2)]));
    let normal = wide.initial(Initial::KaimingNormal, 1);
    let mean = normal[..20_000].iter().map(|w| w / 20_000.0).sum::<f32>();
    let variance = normal[..20_000].iter().map(|w| w * w / 20_000.0).sum::<f32>();
    assert!(mean.abs() < 0.005 && (variance * 25.0 - 1.0).abs() < 0.05, "{mean} {variance}");
    assert!(normal[20_000..20_400].iter().all(|&b| b == 0.0));
}

#[test]
fn buffers_are_not_shown() {
    let network = of_rows::<f64>(tiny().swap_remove(0));
    assert_eq!(format!("{:?}", network.pass(3)), "Pass { .. }");
}

#[test]
fn images_of_another_shape_or_other_classes_are_refused() {
    let shape = Shape { height: 5, width: 5, channels: 1 };
    let network = Network::<f32, _>::new(architecture([5, 5, 1], &[linear(3)]), Pixels::new(Scaling::Unit)).unwrap();
    assert_eq!(network.check_images(&images(shape, 2, 3)), Ok(()));
    assert!(network.check_images(&images(shape, 2, 2)).is_err());
    let error = network.check_images(&images(Shape { width: 4, ..shape }, 2, 3)).unwrap_err();
    assert!(error.to_string().contains("5 x 4 x 1"), "{error}");
    // A label that is no class of the network is a null record.
    let images = images(shape, 4, 4);
    let w = parameters(&network);
    let batch: ImageBatch<'_> = images.choose(&[3]);
    let null = evaluate(&network, &w, batch, None);
    assert!(null.losses == [0.0] && null.squared_norms == [0.0] && null.gradient.iter().all(|&g| g == 0.0));
}
