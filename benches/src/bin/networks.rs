//! Private training of networks: time of a step, and accuracy on images from files.
//!
//! ```text
//! cargo run --release -p benches --bin networks -- speed [--threads 1] [--rounds 5] [--floats f32,f64]
//! cargo run --release -p benches --bin networks -- accuracy --images FILE.. --labels FILE.. --test-images FILE.. --test-labels FILE..
//!     [--network small-cnn] [--epsilons 1,2,4,8] [--seeds 3] [--delta 1e-5] [--held-out 0] [--threads 2] [--float f32] [--views one]
//!     [--algorithm dp-sgd] [--passes 20] [--batch-size N] [--clip 0.1] [--step-size 4] ..
//! ```
//!
//! `speed` uses generated images and prints processor time (with more threads, time) in milliseconds, the best of the rounds. A
//! plain sum and a clipped one have the same examples and microbatches. A step has a Poisson batch of 60,000 images. With more
//! threads, the last column is the time of a step on one thread over that on these threads, both with exact noise.
//!
//! `accuracy` prints the accuracy on the test images after the last step, for each epsilon and seed, with the settings and defaults of
//! `dp help networks`. The seed is that of the start: batches and noise are not reproducible. `--network` is a name or a TOML file of
//! layers. `--held-out N` tests on the last N training images instead, which are not trained on: for choosing settings.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, ZeroOut};
use dp_data::images::Shape;
use dp_data::read::{ImageOptions, Input, load_image_bytes};
use dp_data::{Images, Workers};
use dp_losses::Model;
use dp_mechanisms::OsSeeded;
use dp_mechanisms::clip::{ClippedSum, ClippingNorm, microbatches};
use dp_nets::{Architecture, Float, Initial, Network, Pass, Pixels, Scaling, Views};
use dp_optim::catalogue::{self, Entry, Kind, ModelRequest, PARAMETERS, Settings, Value};
use dp_optim::engine::{
    AfterUpdate, BatchKey, BatchLaw, Buffered, Control, GradientDescent, PlainGradient, SampledRun,
};
use dp_optim::recipes::{Budget, ModelSgd};
use dp_optim::{Averaging, Descent, FloatKind, Schedule};
use rustix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let mut options: HashMap<String, Vec<String>> = HashMap::new();
    let mut name = String::new();
    for argument in arguments {
        match argument.strip_prefix("--") {
            Some(option) => name = option.to_owned(),
            None => options.entry(name.clone()).or_default().push(argument),
        }
    }
    let options = Options(options);
    match command.as_str() {
        "speed" => speed(&options),
        "accuracy" if options.text("float", "f32") == "f64" => accuracy::<f64>(&options, FloatKind::F64),
        "accuracy" => accuracy::<f32>(&options, FloatKind::F32),
        _ => Err("speed or accuracy; the source says what they take".into()),
    }
}

struct Options(HashMap<String, Vec<String>>);

impl Options {
    fn text(&self, name: &str, usual: &str) -> String {
        self.0.get(name).and_then(|values| values.first()).cloned().unwrap_or_else(|| usual.to_owned())
    }

    fn number<T: std::str::FromStr>(&self, name: &str, usual: &str) -> Outcome<T> {
        self.text(name, usual).parse().map_err(|_| format!("--{name} is not a number").into())
    }

    /// The settings of the training by their names, and the algorithm.
    fn settings(&self) -> Outcome<(Settings, &'static Entry)> {
        let mut settings = Settings::default();
        for parameter in PARAMETERS {
            let Some(text) = self.0.get(parameter.name).and_then(|values| values.first()) else { continue };
            let value = match parameter.kind {
                Kind::Number(_) => Value::Number(text.parse()?),
                Kind::Count { .. } => Value::Count(text.parse()?),
                _ => Value::Name(text.clone()),
            };
            parameter.set(&mut settings, value)?;
        }
        let algorithm = self.text("algorithm", "dp-sgd");
        Ok((settings, catalogue::find(&algorithm).ok_or("there is no such algorithm")?))
    }

    fn files(&self, name: &str) -> Outcome<Vec<Input>> {
        let files = self.0.get(name).ok_or_else(|| format!("--{name} is missing"))?;
        files.iter().map(|file| Ok(Input::open(file)?)).collect()
    }
}

const MNIST: Shape = Shape { height: 28, width: 28, channels: 1 };

fn speed(options: &Options) -> Outcome<()> {
    let (threads, rounds) = (options.number("threads", "1")?, options.number("rounds", "5")?);
    let values = MNIST.values().unwrap_or(0);
    let pixels = (0..60_000 * values).map(|j| (j * 97 + j / 31 * 53) as u8).collect();
    let data = Images::new(MNIST, pixels, (0..60_000).map(|i| (i % 10) as u8).collect(), 10)?;
    let columns =
        "plain sum,clipped sum,ratio,plain step,step rounded noise,step exact noise,ratio,ratio to one thread";
    println!("network,float,batch,{columns}");
    let floats = options.text("floats", "f32,f64");
    for (name, batch) in [("mnist-mlp", 256), ("mnist-mlp", 2048), ("small-cnn", 256), ("small-cnn", 2048)] {
        for float in floats.split(',') {
            match float {
                "f32" => of_network::<f32>(name, batch, &data, threads, rounds)?,
                "f64" => of_network::<f64>(name, batch, &data, threads, rounds)?,
                other => return Err(format!("--floats {other}: f32, f64 or both").into()),
            }
        }
    }
    Ok(())
}

fn of_network<F: Float>(name: &str, batch: u64, data: &Images, threads: usize, rounds: usize) -> Outcome<()> {
    let architecture = Architecture::named(name, MNIST, 10, None)?;
    let network = Network::<F, _>::new(architecture, Pixels::new(Scaling::Unit))?;
    let w = network.initial(Initial::Uniform, 1);
    let workers = Workers::new(threads.try_into()?);
    let float = if size_of::<F>() == 4 { FloatKind::F32 } else { FloatKind::F64 };
    let most = network.recommended_microbatch();
    let norm = ClippingNorm::new(0.1)?;
    let start = Instant::now();
    let now = move || if threads == 1 { processor_time() } else { start.elapsed().as_secs_f64() * 1e3 };

    // The same examples and microbatches, with and without norms and coefficients.
    let chosen: Vec<u32> = (0..batch as u32).map(|i| i * (60_000 / batch as u32)).collect();
    let mut pass = network.pass(most);
    let mut best = [f64::INFINITY; 6];
    for _ in 0..rounds {
        let start = now();
        plain_sum(&network, &w, data, &chosen, &mut pass);
        best[0] = best[0].min(now() - start);
        let start = now();
        clipped_sum(&network, &w, data, &chosen, &mut pass, norm)?;
        best[1] = best[1].min(now() - start);
    }

    let steps = (20_000 / batch).clamp(5, 40);
    let law = BatchLaw::Poisson { mean_darts: batch };
    let run = SampledRun {
        n: 60_000,
        law,
        updates: steps,
        divisor: batch as f64,
        steps: Schedule::Constant { step: 0.1 }.prepare(steps)?,
        weights: Averaging::Last.prepare(steps)?,
    };
    let mut rng = OsSeeded::new()?;
    let recipe = ModelSgd {
        batch_size: batch,
        steps,
        microbatch: most as u64,
        descent: Descent::Plain,
        float,
        ..ModelSgd::new(norm)
    };
    let budget = Budget::new(2.0, 1e-5)?;
    for _ in 0..rounds.min(3) {
        let control = |workers| Control { workers, ..Control::default() };
        let gradient = PlainGradient::new(&network, batch as usize);
        let mut iterate = Buffered::new(w.clone(), false, gradient, GradientDescent { lambda: 0.0, radius: None });
        let start = now();
        run.run_on_samples(&network, data, &mut iterate, BatchKey::draw(&mut rng), &mut control(workers), &mut |_| ())?;
        best[2] = best[2].min((now() - start) / steps as f64);
        let kinds = [(NoiseMode::Rounded, workers), (NoiseMode::Exact, workers), (NoiseMode::Exact, Workers::ONE)];
        let kinds = &kinds[..if threads > 1 { 3 } else { 2 }];
        for (&(noise_mode, workers), best) in kinds.iter().zip(&mut best[3..]) {
            let recipe = ModelSgd { noise_mode, ..recipe.clone() };
            let plan = recipe.plan::<ZeroOut>(60_000, w.len() as u64, budget)?;
            let mut times = Vec::new();
            let mut observer = |_: &AfterUpdate<'_, F>| times.push(now());
            plan.train(&network, data, w.clone(), &mut rng, &mut control(workers), &mut observer)?;
            // The first step allocates the buffers.
            if let [first, .., last] = times[..] {
                *best = best.min((last - first) / (steps - 1) as f64);
            }
        }
    }
    let [plain, clipped, step, rounded, exact, alone] = best;
    let alone = if threads > 1 { alone } else { exact };
    println!(
        "{name},{},{batch},{plain:.1},{clipped:.1},{:.3},{step:.1},{rounded:.1},{exact:.1},{:.3},{:.2}",
        float.as_str(),
        clipped / plain,
        exact / step,
        alone / exact
    );
    Ok(())
}

/// Returns the processor time of this process in milliseconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn plain_sum<F: Float>(
    network: &Network<F, Pixels<F>>,
    w: &[F],
    data: &Images,
    chosen: &[u32],
    pass: &mut Pass<F>,
) -> Vec<F> {
    let mut sum = vec![F::zero(); w.len()];
    for range in microbatches(chosen, network.recommended_microbatch()) {
        let positions = &chosen[range];
        let batch = data.choose(positions);
        network.forward(w, batch, pass);
        network.backward(w, batch, pass);
        let ones = vec![F::one(); positions.len() * network.blocks().len()];
        network.add_weighted(batch, pass, &ones, &mut sum);
    }
    sum
}

fn clipped_sum<F: Float>(
    network: &Network<F, Pixels<F>>,
    w: &[F],
    data: &Images,
    chosen: &[u32],
    pass: &mut Pass<F>,
    norm: ClippingNorm,
) -> Outcome<()> {
    let (most, blocks) = (network.recommended_microbatch(), network.blocks().len());
    let mut sum = ClippedSum::<F, ZeroOut>::new(w.len(), blocks, norm, network.norm_roundings(), most, 60_000)?;
    sum = sum.in_float()?;
    let mut squared_norms = Vec::new();
    for range in microbatches(chosen, most) {
        let positions = &chosen[range];
        let batch = data.choose(positions);
        network.forward(w, batch, pass);
        network.backward(w, batch, pass);
        squared_norms.resize(positions.len() * blocks, F::zero());
        network.squared_norms(batch, pass, &mut squared_norms);
        sum.add_in_float(&squared_norms, |coefficients, sum| network.add_weighted(batch, pass, coefficients, sum))?;
    }
    drop(sum.finish());
    Ok(())
}

fn accuracy<F: Float>(options: &Options, float: FloatKind) -> Outcome<()> {
    let load = |images: &str, labels: &str| -> Outcome<Images> {
        let labels = if options.0.contains_key(labels) { options.files(labels)? } else { Vec::new() };
        Ok(load_image_bytes(options.files(images)?, labels, &ImageOptions::default())?)
    };
    let train = load("images", "labels")?;
    let held_out = options.number::<usize>("held-out", "0")?.min(train.len());
    let (train, test) = match held_out {
        0 => (train, load("test-images", "test-labels")?),
        _ => (part(&train, 0..train.len() - held_out)?, part(&train, train.len() - held_out..train.len())?),
    };
    let name = options.text("network", "small-cnn");
    let architecture = match name.ends_with(".toml") {
        true => toml::from_str(&std::fs::read_to_string(&name)?)?,
        false => Architecture::named(&name, train.shape(), train.classes(), None)?,
    };
    let views = match options.text("views", "one").as_str() {
        "one" => Views::One,
        "shifts" => Views::Shifts,
        "flip" => Views::Flip,
        "shifts-and-flip" => Views::ShiftsAndFlip,
        other => return Err(format!("--views {other}: one, shifts, flip or shifts-and-flip").into()),
    };
    let network = Network::<F, _>::new(architecture, Pixels::new(Scaling::Unit).with_views(views))?;
    network.check_images(&test)?;
    let n = train.len() as u64;
    let (settings, algorithm) = options.settings()?;
    let microbatch = network.recommended_microbatch().min(256) as u64;
    let workers = Workers::new(options.number::<usize>("threads", "2")?.try_into()?);
    println!("network,float,epsilon,seed,noise multiplier,steps,accuracy,seconds");
    for epsilon in options.text("epsilons", "1,2,4,8").split(',') {
        let budget = Budget::new(epsilon.parse()?, options.number("delta", "1e-5")?)?;
        let (noise_mode, relation) = (NoiseMode::Exact, AdjacencyKind::ZeroOut);
        let request = ModelRequest { settings: &settings, n, microbatch, float, noise_mode, budget, relation };
        let recipe = request.build(algorithm)?;
        let plan = recipe.plan::<ZeroOut>(n, network.parameters() as u64, budget)?;
        for seed in 1..=options.number::<u64>("seeds", "3")? {
            let start = Instant::now();
            let (w, mut rng) = (network.initial(Initial::Uniform, seed), OsSeeded::new()?);
            let mut control = Control { workers, ..Control::default() };
            let trained = plan.train(&network, &train, w, &mut rng, &mut control, &mut |_| ())?;
            let share = share_of_hits(&network, trained.weights.get(), &test);
            println!(
                "{name},{},{epsilon},{seed},{:.3},{},{share:.4},{:.0}",
                float.as_str(),
                plan.noise_multiplier(),
                recipe.steps,
                start.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}

/// Returns the images of a range.
fn part(images: &Images, range: std::ops::Range<usize>) -> Outcome<Images> {
    let positions: Vec<u32> = (range.start as u32..range.end as u32).collect();
    let chosen = images.choose(&positions);
    let pixels = (0..chosen.len()).flat_map(|i| chosen.pixels(i).iter().copied()).collect();
    let labels = (0..chosen.len()).map(|i| chosen.label(i) as u8).collect();
    Ok(Images::new(images.shape(), pixels, labels, images.classes())?)
}

/// Returns the accuracy: of equal logits the first counts.
fn share_of_hits<F: Float>(network: &Network<F, Pixels<F>>, w: &[F], test: &Images) -> f64 {
    let positions: Vec<u32> = (0..test.len() as u32).collect();
    let mut pass = network.pass(256);
    let mut hits = 0;
    for chosen in positions.chunks(256) {
        let batch = test.choose(chosen);
        network.forward(w, batch, &mut pass);
        for (i, logits) in pass.logits().chunks_exact(network.classes()).enumerate() {
            let first = |best: usize, class: usize| if logits[class] > logits[best] { class } else { best };
            hits += u32::from((1..logits.len()).fold(0, first) == batch.label(i));
        }
    }
    f64::from(hits) / test.len() as f64
}
