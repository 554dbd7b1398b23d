//! Gradients of random batches compared with those of contiguous ones, and of all classes of softmax regression compared with
//! one linear model for each class.
//!
//! `cargo bench -p benches --bench batches` prints criterion's figures, then, in processor time on one thread, nanoseconds per row
//! and ratios. Random batches are sorted, as Poisson sampling draws them, and gathered from a source in memory. Cases: 500,000 dense
//! rows of 55, which fit no cache, and 10,000, which do; 500,000 sparse rows with 14 of 123 columns; f32 and f64; batches of 50, 500
//! and 5,000. `--table` prints only the table.

use std::hint::black_box;

use benches::cpu_time::CpuTime;
use benches::ratio::best_of;
use criterion::{BenchmarkId, Criterion, Throughput};
use dp_data::examples::Feature;
use dp_data::{Block, Examples, RowSource};
use dp_losses::{LinearModel, Logistic, Model, Real, Softmax, SoftmaxModel};
use dp_optim::MemorySource;
use nalgebra::convert;
use rand::{RngExt, SeedableRng, rngs::StdRng};

const CLASSES: u32 = 10;
/// Number of rows of all batches of a measurement together.
const ROWS: usize = 100_000;

fn dense<F: Real>(rows: usize, dim: usize, rng: &mut StdRng) -> Examples<F> {
    let length = 1.0 / (dim as f64).sqrt();
    let values = (0..rows * dim).map(|_| convert(length * rng.random_range(-1.0..1.0))).collect();
    let targets = (0..rows).map(|_| convert(f64::from(rng.random_range(0..CLASSES)))).collect();
    Examples::dense(values, targets, dim).expect("rows of equal length")
}

fn sparse<F: Real>(rows: usize, dim: usize, stored: usize, rng: &mut StdRng) -> Examples<F> {
    let step = dim / stored;
    let offsets = (0..=rows).map(|i| i * stored).collect();
    let indices = (0..rows * stored).map(|k| ((k % stored) * step + rng.random_range(0..step)) as u32).collect();
    let values = vec![convert(0.25); rows * stored];
    let targets = vec![convert(1.0); rows];
    Examples::sparse(offsets, indices, values, targets, dim).expect("increasing columns")
}

/// The gradient of a batch, added to `sum`.
struct Gradient<F, M: Model<F>> {
    model: M,
    parameters: Vec<F>,
    pass: M::Pass,
    ones: Vec<F>,
    sum: Vec<F>,
}

impl<F: Real, M: for<'a> Model<F, Batch<'a> = Block<'a, F>>> Gradient<F, M> {
    fn new(model: M, batch: usize) -> Self {
        let parameters = vec![convert(0.1); model.parameters()];
        let (pass, sum) = (model.pass(batch), vec![F::zero(); parameters.len()]);
        Self { model, parameters, pass, ones: vec![F::one(); batch], sum }
    }

    fn add(&mut self, batch: Block<'_, F>) {
        self.model.forward(&self.parameters, batch, &mut self.pass);
        self.model.backward(&self.parameters, batch, &mut self.pass);
        self.model.add_weighted(batch, &mut self.pass, &self.ones[..batch.len()], &mut self.sum);
        black_box(&self.sum);
    }
}

fn random_batches<F: Real + Feature>(
    criterion: &mut Criterion<CpuTime>,
    table: bool,
    name: &str,
    examples: Examples<F>,
) {
    let (n, dim) = (examples.len(), examples.dim());
    let mut source = MemorySource::new(examples.clone(), 1.0, f64::from(CLASSES));
    let mut rng = StdRng::seed_from_u64(1);
    for batch in [50, 500, 5_000] {
        let drawn: Vec<Vec<u32>> = (0..ROWS / batch)
            .map(|_| {
                let mut positions: Vec<u32> = (0..batch).map(|_| rng.random_range(0..n as u32)).collect();
                positions.sort_unstable();
                positions
            })
            .collect();
        let mut gradient = Gradient::new(LinearModel::new(dim, Logistic), batch);
        let mut random = || {
            for positions in &drawn {
                gradient.add(source.gather(positions).expect("rows in memory"));
            }
        };
        if !table {
            let mut group = criterion.benchmark_group(name);
            group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
            group.bench_function(BenchmarkId::new("random", batch), |b| b.iter(&mut random));
            group.finish();
        }
        let mut gradient = Gradient::new(LinearModel::new(dim, Logistic), batch);
        let mut start = 0;
        let contiguous = || {
            for _ in 0..ROWS / batch {
                start = if start + 2 * batch > n { 0 } else { start + batch };
                gradient.add(examples.block().slice(start..start + batch));
            }
        };
        let (random, contiguous) = best_of(9, random, contiguous);
        let of_row = |seconds: f64| seconds * 1e9 / ROWS as f64;
        eprintln!(
            "{name:<24} batch {batch:>5}  random {:>6.1} ns a row  contiguous {:>5.1}  ratio {:>5.2}",
            of_row(random),
            of_row(contiguous),
            random / contiguous
        );
    }
}

fn classes<F: Real + Feature>(criterion: &mut Criterion<CpuTime>, table: bool, name: &str, examples: &Examples<F>) {
    const BATCH: usize = 1_000;
    let (n, dim) = (examples.len(), examples.dim());
    let pass = |gradient: &mut dyn FnMut(Block<'_, F>)| {
        for start in (0..n).step_by(BATCH) {
            gradient(examples.block().slice(start..n.min(start + BATCH)));
        }
    };
    let softmax = Softmax::new(CLASSES).expect("several classes");
    let mut together = Gradient::new(SoftmaxModel::new(dim, softmax), BATCH);
    let mut one_by_one: Vec<_> = (0..CLASSES).map(|_| Gradient::new(LinearModel::new(dim, Logistic), BATCH)).collect();
    if !table {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(n as u64)).sample_size(10);
        group.bench_function("softmax", |b| b.iter(|| pass(&mut |batch| together.add(batch))));
        group.finish();
    }
    let (all, each) = best_of(
        5,
        || pass(&mut |batch| together.add(batch)),
        || one_by_one.iter_mut().for_each(|gradient| pass(&mut |batch| gradient.add(batch))),
    );
    let of_row_and_class = |seconds: f64| seconds * 1e9 / (n * CLASSES as usize) as f64;
    eprintln!(
        "{name:<24} {CLASSES} classes  together {:>5.1} ns a row and class  one by one {:>5.1}  ratio {:>5.2}",
        of_row_and_class(all),
        of_row_and_class(each),
        all / each
    );
}

fn float<F: Real + Feature>(criterion: &mut Criterion<CpuTime>, table: bool, float: &str) {
    let mut rng = StdRng::seed_from_u64(0);
    for rows in [500_000, 10_000] {
        let examples = dense::<F>(rows, 55, &mut rng);
        classes(criterion, table, &format!("{rows} x 55 {float}"), &examples);
        random_batches(criterion, table, &format!("{rows} x 55 {float}"), examples);
    }
    let examples = sparse::<F>(500_000, 123, 14, &mut rng);
    random_batches(criterion, table, &format!("500000 x 14 of 123 {float}"), examples);
}

fn main() {
    let table = std::env::args().any(|argument| argument == "--table");
    let mut criterion = Criterion::default().with_measurement(CpuTime);
    if !table {
        criterion = criterion.configure_from_args();
    }
    float::<f64>(&mut criterion, table, "f64");
    float::<f32>(&mut criterion, table, "f32");
    if !table {
        criterion.final_summary();
    }
}
