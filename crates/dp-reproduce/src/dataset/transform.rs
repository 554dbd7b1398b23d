//! Conversion of raw columns to rows of norm at most 1.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, StandardNormal};

use crate::seed;

/// Raw rows in row-major order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Table {
    pub(super) values: Vec<f64>,
    pub(super) targets: Vec<f64>,
    pub(super) dim: usize,
}

impl Table {
    pub(super) fn rows(&self) -> usize {
        self.targets.len()
    }

    /// Scales each column to `[0, 1]` by the ranges of `self` and applies the same scaling to `others`; constant columns
    /// become 0.
    pub(super) fn scale_columns(&mut self, others: &mut [Table]) {
        let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); self.dim];
        for row in self.values.chunks_exact(self.dim) {
            for (range, &value) in ranges.iter_mut().zip(row) {
                *range = (range.0.min(value), range.1.max(value));
            }
        }
        for table in core::iter::once(self).chain(others) {
            for row in table.values.chunks_exact_mut(table.dim) {
                for (&(least, most), value) in ranges.iter().zip(row) {
                    let scaled = (*value - least) / (most - least);
                    *value = if most > least { scaled.clamp(0.0, 1.0) } else { 0.0 };
                }
            }
        }
    }

    /// Prepends a constant 1 to every row.
    pub(super) fn with_intercept(self) -> Self {
        let dim = self.dim + 1;
        let mut values = Vec::with_capacity(self.rows() * dim);
        for row in self.values.chunks_exact(self.dim) {
            values.push(1.0);
            values.extend_from_slice(row);
        }
        Self { values, dim, ..self }
    }

    /// Appends a constant 1 to every row.
    pub(super) fn with_last_intercept(self) -> Self {
        let dim = self.dim + 1;
        let mut values = Vec::with_capacity(self.rows() * dim);
        for row in self.values.chunks_exact(self.dim) {
            values.extend_from_slice(row);
            values.push(1.0);
        }
        Self { values, dim, ..self }
    }

    /// Divides every row by its norm, except rows of zeros.
    pub(super) fn normalise_rows(&mut self) {
        self.divide_rows_by(|norm| norm);
    }

    /// Divides every row with norm above 1 by its norm.
    pub(super) fn clip_rows(&mut self) {
        self.divide_rows_by(|norm| norm.max(1.0));
    }

    fn divide_rows_by(&mut self, divisor: impl Fn(f64) -> f64) {
        for row in self.values.chunks_exact_mut(self.dim) {
            let divisor = divisor(row.iter().map(|x| x * x).sum::<f64>().sqrt());
            if divisor > 0.0 {
                row.iter_mut().for_each(|x| *x /= divisor);
            }
        }
    }

    /// Multiplies every row by a matrix of independent normal entries of variance `1/dim`, determined by `name`.
    pub(super) fn project(&mut self, dim: usize, name: &str) {
        let mut rng = StdRng::seed_from_u64(seed::of(name));
        let scale = (dim as f64).sqrt().recip();
        let matrix: Vec<f64> = (0..self.dim * dim)
            .map(|_| {
                let normal: f64 = StandardNormal.sample(&mut rng);
                scale * normal
            })
            .collect();
        let mut projected = vec![0.0; self.rows() * dim];
        for (row, output) in self.values.chunks_exact(self.dim).zip(projected.chunks_exact_mut(dim)) {
            for (&value, weights) in row.iter().zip(matrix.chunks_exact(dim)) {
                if value != 0.0 {
                    output.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
                }
            }
        }
        (self.values, self.dim) = (projected, dim);
    }

    /// Keeps `dim` random columns, determined by `name`.
    pub(super) fn sample_columns(&mut self, dim: usize, name: &str) {
        let mut columns: Vec<usize> = (0..self.dim).collect();
        columns.shuffle(&mut StdRng::seed_from_u64(seed::of(name)));
        columns.truncate(dim);
        let values = self.values.chunks_exact(self.dim).flat_map(|row| columns.iter().map(|&column| row[column]));
        (self.values, self.dim) = (values.collect(), columns.len());
    }

    /// Splits the rows into those whose number satisfies `keep`, and the others.
    pub(super) fn partition(self, keep: impl Fn(usize) -> bool) -> (Self, Self) {
        let empty = || Self { dim: self.dim, ..Self::default() };
        let (mut kept, mut others) = (empty(), empty());
        for (i, (row, &target)) in self.values.chunks_exact(self.dim).zip(&self.targets).enumerate() {
            let table = if keep(i) { &mut kept } else { &mut others };
            table.values.extend_from_slice(row);
            table.targets.push(target);
        }
        (kept, others)
    }
}

/// Draws a point uniformly from the unit sphere.
pub(super) fn on_sphere<R: Rng + ?Sized>(dim: usize, rng: &mut R) -> Vec<f64> {
    loop {
        let point: Vec<f64> = (0..dim).map(|_| StandardNormal.sample(rng)).collect();
        let norm = point.iter().map(|x: &f64| x * x).sum::<f64>().sqrt();
        if norm > 0.0 {
            return point.into_iter().map(|x| x / norm).collect();
        }
    }
}
