//! Processor time of a plain and a clipped gradient sum, on generated images: `cargo run --release -p dp-nets --example speed`.
#![allow(clippy::print_stdout)]

use dp_data::{Images, images::Shape};
use dp_losses::Model;
use dp_nets::{Architecture, Float, Initial, Network, Pixels, Scaling};
use rustix::time::{ClockId, clock_gettime};

/// Returns the processor time of this process in milliseconds.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Adds the gradients of the chosen images, microbatch by microbatch; with `clip`, each is scaled to a norm of at most 1.
fn sum<F: Float>(
    network: &Network<F, Pixels<F>>,
    w: &[F],
    data: &Images,
    chosen: &[u32],
    clip: bool,
    work: &mut Work<F>,
) {
    let blocks = network.blocks().len();
    work.sum.fill(F::zero());
    for positions in chosen.chunks(network.recommended_microbatch()) {
        let (batch, pass) = (data.choose(positions), &mut work.pass);
        network.forward(w, batch, pass);
        network.backward(w, batch, pass);
        work.coefficients.resize(positions.len() * blocks, F::one());
        if clip {
            network.squared_norms(batch, pass, &mut work.coefficients);
            for coefficients in work.coefficients.chunks_exact_mut(blocks) {
                let norm = coefficients.iter().map(|norm| norm.wide()).sum::<f64>().sqrt();
                coefficients.fill(F::narrow(if norm.is_finite() { (1.0 / norm).min(1.0) } else { 0.0 }));
            }
        } else {
            work.coefficients.fill(F::one());
        }
        network.add_weighted(batch, pass, &work.coefficients, &mut work.sum);
    }
}

struct Work<F> {
    pass: dp_nets::Pass<F>,
    coefficients: Vec<F>,
    sum: Vec<F>,
}

fn measure<F: Float>(name: &str, shape: Shape, batch: u32, rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let network = Network::<F, _>::new(Architecture::named(name, shape, 10, None)?, Pixels::new(Scaling::Unit))?;
    let values = shape.height * shape.width * shape.channels;
    let pixels = (0..values * batch as usize).map(|j| (j * 97 + j / 31 * 53) as u8).collect();
    let data = Images::new(shape, pixels, (0..batch).map(|i| (i % 10) as u8).collect(), 10)?;
    let w = network.initial(Initial::Uniform, 1);
    let pass = network.pass(network.recommended_microbatch());
    let mut work = Work { pass, coefficients: Vec::new(), sum: vec![F::zero(); w.len()] };
    let chosen: Vec<u32> = (0..batch).collect();
    let mut best = [f64::INFINITY; 2];
    for _ in 0..rounds {
        for (clip, best) in [false, true].into_iter().zip(&mut best) {
            let start = now();
            sum(&network, &w, &data, &chosen, clip, &mut work);
            *best = best.min(now() - start);
        }
    }
    let [plain, clipped] = best;
    println!(
        "{name:10} {:3} {batch:5} examples  microbatch {:3}  plain {plain:7.2} ms  clipped {clipped:7.2} ms  ratio {:.3}",
        if size_of::<F>() == 4 { "f32" } else { "f64" },
        network.recommended_microbatch(),
        clipped / plain,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mnist = Shape { height: 28, width: 28, channels: 1 };
    let cifar = Shape { height: 32, width: 32, channels: 3 };
    for (name, shape, batch, rounds) in [
        ("mnist-mlp", mnist, 256, 20),
        ("mnist-mlp", mnist, 2048, 5),
        ("small-cnn", mnist, 512, 10),
        ("cifar-cnn", cifar, 32, 3),
    ] {
        measure::<f32>(name, shape, batch, rounds)?;
        measure::<f64>(name, shape, batch, rounds)?;
    }
    Ok(())
}
