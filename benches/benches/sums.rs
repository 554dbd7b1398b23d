//! Exact sums of clipped contributions compared with plain ones: nanoseconds per coordinate and record.
//!
//! `cargo bench -p benches --bench sums` prints criterion's figures, then for each dimension the exact sum and a plain clip
//! and add in floating point, both in processor time, best of 30 turns, one thread. Records stay in the cache, so that only
//! the arithmetic is compared. The sums of a linear model are compared with a plain `axpy`. Second moments are compared with
//! nalgebra's product of the whole matrix, which neither clips nor is exact, in nanoseconds per record.

use std::hint::black_box;

use benches::ratio::best_of;
use criterion::{BenchmarkId, Criterion, Throughput};
use dp_accountant::ZeroOut;
use dp_mechanisms::clip::{ClippingNorm, ExactSum, MomentSum, RankOneSum, RowGrid, TruncatedRows, clip_coefficient};
use nalgebra::DMatrix;

const DIMENSIONS: [usize; 3] = [50, 1_000, 100_000];
/// Number of values in all records together.
const NUMBERS: usize = 200_000;

/// Returns records of which about half are longer than 1.
fn records(dim: usize) -> Vec<Vec<f64>> {
    let length = (3.0 / dim as f64).sqrt();
    (0..(NUMBERS / dim).max(1))
        .map(|i| (0..dim).map(|j| ((i * dim + j) as f64 * 0.7).sin() * length * (0.3 + (i % 7) as f64 / 4.0)).collect())
        .collect()
}

/// Computes the norm, one multiplication and one addition per coordinate, in floating point.
fn plain_clip_and_add(records: &[Vec<f64>], norm: ClippingNorm, sum: &mut [f64]) {
    for record in records {
        let mut partial = [0.0; 8];
        for chunk in record.chunks(8) {
            partial.iter_mut().zip(chunk).for_each(|(partial, x)| *partial += x * x);
        }
        let factor = clip_coefficient(partial.iter().sum(), norm, record.len());
        sum.iter_mut().zip(record).for_each(|(sum, x)| *sum += factor * x);
    }
}

fn exact(records: &[Vec<f64>], sum: &mut ExactSum<ZeroOut>) {
    for record in records {
        // The number of records is public here.
        let _ = sum.add(record);
    }
    black_box(sum.finish());
}

fn rank_one(rows: &TruncatedRows<f64>, sum: &mut RankOneSum<ZeroOut>) {
    for index in 0..rows.len() {
        if let Some(row) = rows.row(index) {
            let _ = sum.add(black_box(0.37), row);
        }
    }
    black_box(sum.finish());
}

fn axpy(records: &[Vec<f64>], sum: &mut [f64]) {
    for record in records {
        let scalar = black_box(0.37);
        sum.iter_mut().zip(record).for_each(|(sum, x)| *sum += scalar * x);
    }
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), dp_mechanisms::Error> {
    let norm = ClippingNorm::new(1.0)?;
    let grid = RowGrid::new(norm, 16)?;
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("sums");
    let mut lines = Vec::new();
    for dim in DIMENSIONS {
        let records = records(dim);
        let (mut rows, mut plain_sum) = (TruncatedRows::<f64>::new(grid, dim)?, vec![0.0; dim]);
        records.iter().try_for_each(|record| rows.push(record))?;
        let mut doubles = ExactSum::<ZeroOut>::new(dim, norm.into(), 2f64.powi(-30), 1 << 20)?;
        let mut integers = ExactSum::<ZeroOut>::new(dim, norm.into(), 2f64.powi(-40), 1 << 20)?;
        let mut of_rows = RankOneSum::<ZeroOut>::finest(dim, grid, norm, 1 << 19)?;

        group.throughput(Throughput::Elements((records.len() * dim) as u64));
        let id = |name| BenchmarkId::new(name, dim);
        group.bench_function(id("plain"), |b| b.iter(|| plain_clip_and_add(&records, norm, &mut plain_sum)));
        group.bench_function(id("exact"), |b| b.iter(|| exact(&records, &mut doubles)));
        group.bench_function(id("exact-integers"), |b| b.iter(|| exact(&records, &mut integers)));
        group.bench_function(id("axpy"), |b| b.iter(|| axpy(&records, &mut plain_sum)));
        group.bench_function(id("rank-one"), |b| b.iter(|| rank_one(&rows, &mut of_rows)));

        let mut line = |name: &str, ours: &mut dyn FnMut(), baseline: &mut dyn FnMut()| {
            let (ours, baseline) = best_of(30, ours, baseline);
            let nanoseconds = |seconds: f64| seconds * 1e9 / (records.len() * dim) as f64;
            let (ours, plain) = (nanoseconds(ours), nanoseconds(baseline));
            lines.push(format!("{dim:>9}  {name:<16}{ours:>8.2}{plain:>8.2}{:>8.2}", ours / plain));
        };
        let mut sum = vec![0.0; dim];
        line("exact", &mut || exact(&records, &mut doubles), &mut || plain_clip_and_add(&records, norm, &mut sum));
        line("exact, integers", &mut || exact(&records, &mut integers), &mut || {
            plain_clip_and_add(&records, norm, &mut sum);
        });
        line("rank one", &mut || rank_one(&rows, &mut of_rows), &mut || axpy(&records, &mut sum));
        black_box(sum);
    }
    for dim in [55, 138, 325] {
        let records = records(dim);
        let matrix = DMatrix::from_fn(records.len(), dim, |i, j| records[i][j]);
        let exact = || {
            let mut sum = MomentSum::<ZeroOut>::squares(dim, norm, 1 << 20)?;
            records.iter().try_for_each(|record| sum.add(record, &[]))?;
            black_box(sum.finish());
            Ok::<_, dp_mechanisms::Error>(())
        };
        exact()?;
        let (ours, baseline) = best_of(30, &mut || drop(exact()), &mut || {
            black_box(black_box(&matrix).tr_mul(&matrix));
        });
        let [ours, plain] = [ours, baseline].map(|seconds| seconds * 1e9 / records.len() as f64);
        lines.push(format!("{dim:>9}  {:<16}{ours:>8.0}{plain:>8.0}{:>8.2}", "second moments", ours / plain));
    }
    group.finish();
    println!("\n{:>9}  {:<16}{:>8}{:>8}{:>8}", "dim", "sum", "ns", "plain", "ratio");
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}
