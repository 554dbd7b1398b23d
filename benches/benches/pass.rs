//! One pass of mini-batch SGD for L2-regularised logistic regression over rows in memory, compared with the plain scalar
//! loop.
//!
//! `cargo bench -p benches --bench pass` prints criterion's figures, then for each case, all in processor time: rows/s and
//! bytes/s of a pass of the bare kernels, their speed relative to the plain loop, and the share of the kernels' speed that a
//! pass of the whole training engine reaches, with the arithmetic that the recipes choose for such rows and with the one for
//! many records, in two parts. Cases: dense 1,000,000 x 50, 60,000 x 784 and 200,000 x 109, 2,000 rows of 50 that fit a
//! cache, and 500,000 sparse rows with 14 of 123 columns; f32 and f64; batches of 50 and of 1. `--table` prints only the
//! table.
//!
//! Large arrays are read faster from pages of 2 MiB. On Linux, `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` makes the allocator
//! request such pages, as in a program with that memory layout.

use std::hint::black_box;

use benches::cpu_time::{CpuTime, throughput};
use benches::ratio::best_of;
use criterion::{BenchmarkId, Criterion};
use dp_data::examples::Feature;
use dp_data::{Examples, Order, Rows};
use dp_losses::{LinearModel, Logistic, Model, Real, ScaledSteps};
use dp_optim::averaging::Averaging;
use dp_optim::engine::{
    BatchSizes, Buffered, Control, GradientDescent, Iterate, Passes, PlainGradient, RowBatches, Run, Scaled, TwoParts,
};
use dp_optim::growth::{Arithmetic, Divisor};
use dp_optim::schedule::Schedule;
use dp_optim::{Error, MemorySource};
use nalgebra::{RealField, convert};

const LAMBDA: f64 = 1e-3;

/// A pass as in an engine: parameters are kept as `scale · v`, so that the regulariser changes one number.
fn model_pass<F: Real>(examples: &Examples<F>, batch: usize) -> Vec<F> {
    let block = examples.block();
    let model = LinearModel::new(examples.dim(), Logistic);
    let mut pass = model.pass(batch);
    let mut v = vec![F::zero(); examples.dim()];
    let mut scale = 1.0_f64;
    let mut start = 0;
    let mut step = 0.0_f64;
    while start < block.len() {
        let end = (start + batch).min(block.len());
        step += 1.0;
        let eta = 1.0 / step.sqrt();
        let next = scale * (1.0 - eta * LAMBDA);
        let coefficient = convert::<f64, F>(-eta / (next * (end - start) as f64));
        model.step_scaled(convert(scale), coefficient, block.slice(start..end), &mut pass, &mut v);
        scale = next;
        start = end;
    }
    v.iter_mut().for_each(|w| *w *= convert::<f64, F>(scale));
    v
}

/// The same pass by the training engine, from a source.
fn engine_pass<F: Real + Feature>(
    source: &mut MemorySource<F>,
    batch: usize,
    arithmetic: Arithmetic,
) -> Result<Vec<F>, Error> {
    let (n, dim) = (source.examples().len() as u64, source.examples().dim());
    let updates = n.div_ceil(batch as u64);
    let run = Run {
        n,
        batches: BatchSizes::Equal(batch),
        divisor: Divisor::Nominal,
        steps: Schedule::InverseSqrt { step: 1.0 }.prepare(updates)?,
        weights: Averaging::Last.prepare(updates)?,
    };
    let model = LinearModel::new(dim, Logistic);
    let start = vec![F::zero(); dim];
    let mut batches = RowBatches::new(source, Order::Declared);
    let (stop, control) = (&mut Passes(1), &mut Control::default());
    match arithmetic {
        Arithmetic::Scaled => {
            let mut iterate = Scaled::new(&model, start, false, batch, LAMBDA, None);
            run.run(&model, &mut batches, &mut iterate, stop, control)?;
            Ok(iterate.into_output())
        }
        Arithmetic::TwoParts => {
            let mut iterate = TwoParts::new(&model, start, false, batch, LAMBDA, None);
            run.run(&model, &mut batches, &mut iterate, stop, control)?;
            Ok(iterate.into_output())
        }
        Arithmetic::Buffered => {
            let rule = GradientDescent { lambda: LAMBDA, radius: None };
            let mut iterate = Buffered::new(start, false, PlainGradient::new(&model, batch), rule);
            run.run(&model, &mut batches, &mut iterate, stop, control)?;
            Ok(Iterate::<F, LinearModel<F, Logistic>>::into_output(iterate))
        }
    }
}

/// The same pass as a simple loop over rows with a gradient buffer.
fn plain_pass<F: RealField + Copy>(examples: &Examples<F>, batch: usize) -> Vec<F> {
    let block = examples.block();
    let dim = examples.dim();
    let lambda = convert::<f64, F>(LAMBDA);
    let (mut w, mut gradient, mut slopes) = (vec![F::zero(); dim], vec![F::zero(); dim], vec![F::zero(); batch]);
    let mut start = 0;
    let mut step = 0.0_f64;
    while start < block.len() {
        let end = (start + batch).min(block.len());
        step += 1.0;
        let eta = convert::<f64, F>(1.0 / step.sqrt());
        let size = convert::<f64, F>((end - start) as f64);
        let slopes = &mut slopes[..end - start];
        match block.rows {
            Rows::Dense { values, .. } => {
                for (slope, row) in slopes.iter_mut().zip(values[start * dim..end * dim].chunks_exact(dim)) {
                    *slope = row.iter().zip(&w).fold(F::zero(), |sum, (&x, &w)| sum + x * w);
                }
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                for (slope, row) in slopes.iter_mut().zip(offsets[start..=end].windows(2)) {
                    let row = row[0]..row[1];
                    let entries = indices[row.clone()].iter().zip(&values[row]);
                    *slope = entries.fold(F::zero(), |sum, (&column, &x)| sum + x * w[column as usize]);
                }
            }
        }
        for (slope, &y) in slopes.iter_mut().zip(&block.targets[start..end]) {
            *slope = -y / (F::one() + (y * *slope).exp());
        }
        match block.rows {
            Rows::Dense { values, .. } => {
                for (&slope, row) in slopes.iter().zip(values[start * dim..end * dim].chunks_exact(dim)) {
                    for (sum, &x) in gradient.iter_mut().zip(row) {
                        *sum += slope * x;
                    }
                }
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                for (&slope, row) in slopes.iter().zip(offsets[start..=end].windows(2)) {
                    let row = row[0]..row[1];
                    for (&column, &x) in indices[row.clone()].iter().zip(&values[row]) {
                        gradient[column as usize] += slope * x;
                    }
                }
            }
        }
        for (w, sum) in w.iter_mut().zip(&mut gradient) {
            *w -= eta * (lambda * *w + *sum / size);
            *sum = F::zero();
        }
        start = end;
    }
    w
}

/// A small random generator of numbers in [0, 1).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn sign<F: RealField>(&mut self) -> F {
        if self.next() < 0.5 { -F::one() } else { F::one() }
    }
}

fn dense<F: Real>(rows: usize, dim: usize) -> Examples<F> {
    let mut uniform = Uniform(88_172_645_463_325_252);
    let scale = 1.0 / (dim as f64).sqrt();
    let values = (0..rows * dim).map(|_| convert((uniform.next() - 0.5) * scale)).collect();
    let targets = (0..rows).map(|_| uniform.sign()).collect();
    Examples::dense(values, targets, dim).expect("the shape fits")
}

fn sparse<F: Real>(rows: usize, dim: usize, stored: usize) -> Examples<F> {
    let mut uniform = Uniform(88_172_645_463_325_252);
    let offsets = (0..=rows).map(|row| row * stored).collect();
    let width = (dim / stored) as f64;
    let indices =
        (0..rows * stored).map(|k| (k % stored * dim / stored) as u32 + (uniform.next() * width) as u32).collect();
    let values = vec![convert(1.0 / (stored as f64).sqrt()); rows * stored];
    let targets = (0..rows).map(|_| uniform.sign()).collect();
    Examples::sparse(offsets, indices, values, targets, dim).expect("the shape fits")
}

/// Runs one data set with both batch sizes: criterion's figures unless only the `table` is requested, and lines of the table.
fn cases<F: Real + Feature>(
    criterion: &mut Criterion<CpuTime>,
    table: bool,
    name: &str,
    bytes: usize,
    examples: Examples<F>,
) {
    let rows = examples.len();
    let repetitions = if rows < 10_000 { 200 } else { 7 };
    let mut source = MemorySource::new(examples, 1.0, 1.0);
    for batch in [50, 1] {
        if !table {
            let mut group = criterion.benchmark_group(name);
            group.throughput(throughput(rows, bytes)).sample_size(10);
            group.bench_function(BenchmarkId::new("pass", batch), |b| {
                b.iter(|| black_box(model_pass(source.examples(), batch)))
            });
            group.finish();
        }
        let examples = source.examples();
        let (ours, plain) = best_of(
            repetitions,
            || drop(black_box(model_pass(examples, batch))),
            || drop(black_box(plain_pass(examples, batch))),
        );
        let shared = core::cell::RefCell::new(&mut source);
        let suited = Arithmetic::suited_to(shared.borrow().examples().is_sparse(), batch as u64);
        let [of_engine, of_two_parts] = [suited, Arithmetic::TwoParts].map(|arithmetic| {
            let (kernels, engine) = best_of(
                repetitions,
                || drop(black_box(model_pass(shared.borrow().examples(), batch))),
                || drop(black_box(engine_pass(&mut shared.borrow_mut(), batch, arithmetic))),
            );
            kernels / engine
        });
        eprintln!(
            "{name:<26} batch {batch:>2}  {:>9.4e} rows/s  {:>6.2} GB/s  {:>6.2} times the plain loop  engine {of_engine:>5.3}  \
             in two parts {of_two_parts:>5.3}",
            rows as f64 / ours,
            bytes as f64 / ours / 1e9,
            plain / ours
        );
    }
}

fn float<F: Real + Feature>(criterion: &mut Criterion<CpuTime>, table: bool, name: &str) {
    let width = size_of::<F>();
    for (rows, dim) in [(1_000_000, 50), (60_000, 784), (200_000, 109), (2_000, 50)] {
        cases(criterion, table, &format!("{rows} x {dim} {name}"), rows * dim * width, dense::<F>(rows, dim));
    }
    let (rows, dim, stored) = (500_000, 123, 14);
    let examples = sparse::<F>(rows, dim, stored);
    cases(criterion, table, &format!("{rows} x {stored} of {dim} {name}"), rows * stored * (width + 4), examples);
}

fn main() {
    let table = std::env::args().any(|argument| argument == "--table");
    let mut criterion = Criterion::default().with_measurement(CpuTime);
    if !table {
        criterion = criterion.configure_from_args();
    }
    float::<f32>(&mut criterion, table, "f32");
    float::<f64>(&mut criterion, table, "f64");
    if !table {
        criterion.final_summary();
    }
}
