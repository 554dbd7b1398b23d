//! Private training of networks through the engine: its accuracy, its bits, its certificate, and the law of its releases.

use std::collections::BTreeMap;

use dp_accountant::guarantee::Unit;
use dp_accountant::{ReplaceOne, ZeroOut};
use dp_data::images::Shape;
use dp_data::{Images, Samples, Workers};
use dp_losses::{ChoosesFrom, Model};
use dp_mechanisms::SeededRng;
use dp_mechanisms::clip::{AutomaticClipping, ClippingNorm, GradientClipping};
use dp_nets::{Activation, Architecture, Features, Float, Initial, Layer, Network, Pixels, Scaling, Views};
use dp_optim::engine::Control;
use dp_optim::recipes::{Budget, ModelSgd};
use dp_optim::{Averaging, Descent, FloatKind, Schedule};
use statrs::distribution::{ContinuousCDF, Normal};

const SHAPE: Shape = Shape { height: 8, width: 8, channels: 1 };

/// Images of a bar that is horizontal, vertical or diagonal, at any place, with noise.
fn bars(count: usize, seed: usize) -> Images {
    let mut state = seed as u64 * 2 + 1;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (class, place) = (random() % 3, random() % 8);
        labels.push(class as u8);
        for y in 0..8 {
            for x in 0..8 {
                let along = [y == place, x == place, (x + place) % 8 == y][class];
                pixels.push((if along { 180 } else { 0 } + random() % 75) as u8);
            }
        }
    }
    Images::new(SHAPE, pixels, labels, 3).unwrap()
}

fn network<F: Float>() -> Network<F, Pixels<F>> {
    with_views(Views::One)
}

fn with_views<F: Float>(views: Views) -> Network<F, Pixels<F>> {
    let layers = vec![
        Layer::Convolution { channels: 6, kernel: [3, 3], stride: [1, 1], padding: [1, 1] },
        Layer::Tanh,
        Layer::MaxPool { size: [2, 2], stride: [2, 2] },
        Layer::Linear { units: 16 },
        Layer::Tanh,
        Layer::Linear { units: 3 },
    ];
    let pixels = Pixels::new(Scaling::Symmetric).with_views(views);
    Network::new(Architecture { input: SHAPE, layers }, pixels).unwrap()
}

fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-5).unwrap()
}

fn recipe(clipping: GradientClipping) -> ModelSgd {
    ModelSgd {
        batch_size: 300,
        steps: 150,
        microbatch: 64,
        descent: Descent::Accelerated { momentum: 0.9 },
        schedule: Schedule::Constant { step: 0.5 },
        averaging: Averaging::Suffix { updates: 20 },
        ..ModelSgd::new(clipping)
    }
}

fn accuracy<F: Float>(network: &Network<F, Pixels<F>>, w: &[F], images: &Images) -> f64 {
    let positions: Vec<u32> = (0..images.len() as u32).collect();
    let (mut pass, batch) = (network.pass(1), images.choose(&positions));
    network.forward(w, batch, &mut pass);
    let is_hit = |(i, logits): (usize, &[F])| logits.iter().all(|&logit| logit <= logits[batch.label(i)]);
    pass.logits().chunks_exact(3).enumerate().filter(|&example| is_hit(example)).count() as f64 / images.len() as f64
}

/// A network learns privately under every rule of clipping, with the same bits on any number of threads; its certificate is derived
/// again from public numbers.
#[test]
fn a_network_is_trained_and_certified() {
    let (train, test) = (bars(3000, 1), bars(500, 2));
    let norm = ClippingNorm::new(0.5).unwrap();
    let automatic = AutomaticClipping::new(norm, 0.01).unwrap();
    for clipping in [norm.into(), GradientClipping::PerBlock(norm), automatic.into()] {
        let plan =
            recipe(clipping).plan::<ReplaceOne>(3000, network::<f32>().parameters() as u64, budget(8.0)).unwrap();
        let trained = |threads: usize| {
            let mut control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
            let (network, mut rng) = (network::<f32>(), SeededRng::new(9));
            let start = network.initial(Initial::Uniform, 1);
            plan.train(&network, &train, start, &mut rng, &mut control, &mut |_| ()).unwrap()
        };
        let of_one = trained(1);
        assert_eq!(of_one.weights.get(), trained(3).weights.get());
        let share = accuracy(&network(), of_one.weights.get(), &test);
        assert!(share > 0.9, "{clipping:?}: {share}");
        let certificate = of_one.certificate(Unit::Record, Vec::new(), "0".repeat(64), BTreeMap::new());
        // The generator was not secret.
        assert!(!certificate.private);
        let event = dp_accountant::certificate::Derivation::event(&certificate.derivation).unwrap();
        assert_eq!(event, *plan.event());
    }
    let double = ModelSgd { float: FloatKind::F64, ..recipe(norm.into()) };
    let plan = double.plan::<ZeroOut>(3000, network::<f64>().parameters() as u64, budget(8.0)).unwrap();
    let network = network::<f64>();
    let start = network.initial(Initial::Uniform, 1);
    let mut rng = SeededRng::new(9);
    let trained = plan.train(&network, &train, start, &mut rng, &mut Control::default(), &mut |_| ()).unwrap();
    assert!(accuracy(&network, trained.weights.get(), &test) > 0.9);
}

/// A network's norms are exact to a constant number of roundings, so that its clipping norm does not shrink with the number of its
/// parameters; a model that declared one for each parameter would be refused in single precision.
#[test]
fn large_networks_are_clipped_to_their_norm_in_single_precision() {
    let architecture = Architecture::mlp(Architecture::rows(4096), &[4200], 2, Activation::Relu);
    let network = Network::<f32, _>::new(architecture, Features).unwrap();
    assert!(network.parameters() > 1 << 24);
    let norm = ClippingNorm::new(1.0).unwrap();
    let sum = |roundings| {
        dp_mechanisms::clip::ClippedSum::<f32, ZeroOut>::new(network.parameters(), 2, norm, roundings, 64, 1000)
    };
    assert!(sum(network.norm_roundings()).is_ok());
    assert!(sum(network.parameters() as f64).is_err());
}

/// One image, there or null.
struct Canary {
    image: Images,
    is_null: bool,
}

impl Samples for Canary {
    fn count(&self) -> u64 {
        1
    }

    fn is_null(&self, _: u32) -> bool {
        self.is_null
    }
}

struct Tested(Network<f32, Pixels<f32>>);

impl Tested {
    /// Returns the gradient of the canary, clipped by `rule` up to rounding.
    fn contribution(&self, w: &[f32], canary: &Canary, rule: GradientClipping) -> Vec<f64> {
        let (network, blocks) = (&self.0, self.0.blocks());
        let (batch, mut pass) = (canary.image.choose(&[0]), network.pass(1));
        let mut gradient = vec![0.0; w.len()];
        network.forward(w, batch, &mut pass);
        network.backward(w, batch, &mut pass);
        network.add_weighted_in_double(batch, &mut pass, &vec![1.0; blocks.len()], &mut gradient);
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (c, whole) = (rule.norm().get(), norm(&gradient));
        for block in blocks {
            let own = norm(&gradient[block.range.clone()]);
            let factor = match rule {
                GradientClipping::PerBlock(_) => (c / (blocks.len() as f64).sqrt() / own).min(1.0),
                GradientClipping::Automatic(rule) => c / (whole + rule.gamma()),
                _ => (c / whole).min(1.0),
            };
            gradient[block.range.clone()].iter_mut().for_each(|g| *g *= factor);
        }
        gradient
    }
}

/// Forwards all methods to the network.
impl Model<f32> for Tested {
    type Batch<'a> = <Network<f32, Pixels<f32>> as Model<f32>>::Batch<'a>;
    type Pass = <Network<f32, Pixels<f32>> as Model<f32>>::Pass;

    fn blocks(&self) -> &[dp_losses::ParameterBlock] {
        self.0.blocks()
    }

    fn pass(&self, microbatch: usize) -> Self::Pass {
        self.0.pass(microbatch)
    }

    fn forward(&self, parameters: &[f32], batch: Self::Batch<'_>, pass: &mut Self::Pass) {
        self.0.forward(parameters, batch, pass);
    }

    fn losses(&self, batch: Self::Batch<'_>, pass: &Self::Pass, out: &mut [f32]) {
        self.0.losses(batch, pass, out);
    }

    fn backward(&self, parameters: &[f32], batch: Self::Batch<'_>, pass: &mut Self::Pass) {
        self.0.backward(parameters, batch, pass);
    }

    fn squared_norms(&self, batch: Self::Batch<'_>, pass: &mut Self::Pass, out: &mut [f32]) {
        self.0.squared_norms(batch, pass, out);
    }

    fn norm_roundings(&self) -> f64 {
        self.0.norm_roundings()
    }

    fn add_weighted(&self, batch: Self::Batch<'_>, pass: &mut Self::Pass, coefficients: &[f32], sum: &mut [f32]) {
        self.0.add_weighted(batch, pass, coefficients, sum);
    }

    fn add_weighted_in_double(
        &self,
        batch: Self::Batch<'_>,
        pass: &mut Self::Pass,
        coefficients: &[f32],
        sum: &mut [f64],
    ) {
        self.0.add_weighted_in_double(batch, pass, coefficients, sum);
    }
}

impl ChoosesFrom<f32, Canary> for Tested {
    fn choose<'a>(&self, canary: &'a Canary, positions: &'a [u32]) -> Self::Batch<'a> {
        canary.image.choose(positions)
    }
}

/// The released sum of one step, projected on the canary's gradient: `N(0, σ²)` without it, and with it a mixture of that and of
/// `N(‖clipped gradient‖, σ²)` with the sampling rate as weight. Kolmogorov's distance, at a false-alarm rate of 1e-6 for each of seven
/// tests.
#[test]
fn released_sums_have_the_stated_law() {
    const RUNS: usize = 4000;
    let norm = ClippingNorm::new(0.5).unwrap();
    let automatic = AutomaticClipping::new(norm, 0.01).unwrap();
    let w = network::<f32>().initial(Initial::Uniform, 4);
    for (rule, views) in [
        (norm.into(), Views::One),
        (GradientClipping::PerBlock(norm), Views::One),
        (automatic.into(), Views::One),
        // Ten views of an image make one contribution.
        (norm.into(), Views::ShiftsAndFlip),
    ] {
        let model = Tested(with_views(views));
        for is_null in [true, false].into_iter().skip(usize::from(views != Views::One)) {
            let canary = Canary { image: bars(1, 3), is_null };
            let gradient = model.contribution(&w, &canary, rule);
            let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            assert!(length < 0.5 + 1e-9 && length > 0.4, "{length}");
            let recipe = ModelSgd {
                batch_size: 1,
                steps: 1,
                descent: Descent::Plain,
                schedule: Schedule::Constant { step: 1.0 },
                averaging: Averaging::Last,
                microbatch: 1,
                ..ModelSgd::new(rule)
            };
            let plan = recipe.plan::<ZeroOut>(1, w.len() as u64, budget(40.0)).unwrap();
            let (std_dev, rate) = (plan.derivation().std_dev, -(-1f64).exp_m1());
            let mut found: Vec<f64> = (0..RUNS as u64)
                .map(|seed| {
                    let (mut rng, mut control) = (SeededRng::new(seed), Control::default());
                    let trained = plan.train(&model, &canary, w.clone(), &mut rng, &mut control, &mut |_| ()).unwrap();
                    let moved = w.iter().zip(trained.weights.get()).map(|(w, v)| f64::from(w - v) * rate);
                    moved.zip(&gradient).map(|(sum, g)| sum * g / length).sum()
                })
                .collect();
            found.sort_by(f64::total_cmp);
            let noise = Normal::new(0.0, std_dev).unwrap();
            let law = |x: f64| {
                if is_null { noise.cdf(x) } else { (1.0 - rate) * noise.cdf(x) + rate * noise.cdf(x - length) }
            };
            let runs = RUNS as f64;
            let distance = found.iter().enumerate().map(|(i, &x)| {
                let below = law(x);
                (below - i as f64 / runs).abs().max((below - (i + 1) as f64 / runs).abs())
            });
            let distance = distance.fold(0.0, f64::max);
            // 2 exp(-2 n d²) = 1e-6.
            let most = ((2e6f64).ln() / (2.0 * runs)).sqrt();
            assert!(distance < most, "{rule:?}, {views:?}, null: {is_null}: {distance} above {most}");
            // The test would see a canary that is not there, or that is there in full in every batch.
            assert!(length / std_dev > 1.0, "{length} {std_dev}");
        }
    }
}
