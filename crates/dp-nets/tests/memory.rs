//! The memory of a private training: counted allocations, which do not grow with the batch.

use dp_accountant::ZeroOut;
use dp_data::images::Shape;
use dp_data::{Images, Workers};
use dp_losses::Model as _;
use dp_mechanisms::OsSeeded;
use dp_mechanisms::clip::ClippingNorm;
use dp_nets::{Architecture, Initial, Network, Pixels, Scaling};
use dp_optim::engine::Control;
use dp_optim::recipes::{Budget, ModelSgd};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// The largest number of bytes that are allocated at a time, images included, while `mnist-mlp` is trained on 60,000 images.
fn peak(images: &Images, batch_size: u64, threads: usize) -> usize {
    let architecture = Architecture::named("mnist-mlp", images.shape(), 10, None).unwrap();
    let network = Network::<f32, _>::new(architecture, Pixels::new(Scaling::Unit)).unwrap();
    let norm = ClippingNorm::new(0.1).unwrap();
    let recipe = ModelSgd { batch_size, steps: 2, microbatch: 128, ..ModelSgd::new(norm) };
    let budget = Budget::new(2.0, 1e-5).unwrap();
    let plan = recipe.plan::<ZeroOut>(60_000, network.parameters() as u64, budget).unwrap();
    let mut control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
    let mut rng = OsSeeded::new().unwrap();
    ALLOCATED.reset_peak_usage();
    let start = network.initial(Initial::Uniform, 1);
    plan.train(&network, images, start, &mut rng, &mut control, &mut |_| ()).unwrap();
    ALLOCATED.peak_usage()
}

#[test]
fn memory_does_not_grow_with_the_batch() {
    let shape = Shape { height: 28, width: 28, channels: 1 };
    let labels = (0..60_000).map(|i| (i % 10) as u8).collect();
    let images = Images::new(shape, vec![90; 784 * 60_000], labels, 10).unwrap();
    let [small, large] = [256, 2048].map(|batch_size| peak(&images, batch_size, 1));
    // 1792 more images have 13 MB of activations. A small batch may have no microbatch of the largest size.
    assert!(large < 85_000_000 && large < small + 1_000_000, "{small} and {large} bytes");
    // A second thread has a microbatch and a sum of its own, one sum may wait for its turn, and noise is drawn ahead.
    let of_two = peak(&images, 2048, 2);
    assert!(of_two < 110_000_000, "{of_two} bytes");
}
