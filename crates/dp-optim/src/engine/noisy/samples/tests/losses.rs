//! Sums of losses, by which a step's size is chosen.

use proptest::prelude::*;

use super::super::{LossSum, Spare};
use super::*;
use crate::engine::grid_sum::GridSum;

/// Losses of samples at a few points, of any values.
struct Table(Vec<Vec<f64>>);

impl Samples for Table {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }
}

/// The model whose loss at the point `[j]` is entry `j` of a sample.
struct Reads(Vec<ParameterBlock>);

#[derive(Clone, Copy)]
struct Drawn<'a> {
    table: &'a Table,
    positions: &'a [u32],
}

impl<F: RealField + Copy> Model<F> for Reads {
    type Batch<'a> = Drawn<'a>;
    /// The point.
    type Pass = usize;

    fn blocks(&self) -> &[ParameterBlock] {
        &self.0
    }

    fn pass(&self, _: usize) -> usize {
        0
    }

    fn forward(&self, point: &[F], _: Drawn<'_>, pass: &mut usize) {
        let at: f64 = point[0].to_subset_unchecked();
        *pass = at as usize;
    }

    fn losses(&self, batch: Drawn<'_>, pass: &usize, out: &mut [F]) {
        for (out, &position) in out.iter_mut().zip(batch.positions) {
            *out = convert(batch.table.0[position as usize][*pass]);
        }
    }

    fn backward(&self, _: &[F], _: Drawn<'_>, _: &mut usize) {}

    fn squared_norms(&self, _: Drawn<'_>, _: &mut usize, _: &mut [F]) {}

    fn add_weighted(&self, _: Drawn<'_>, _: &mut usize, _: &[F], _: &mut [F]) {}

    fn add_weighted_in_double(&self, _: Drawn<'_>, _: &mut usize, _: &[F], _: &mut [f64]) {}
}

impl<F: RealField + Copy> ChoosesFrom<F, Table> for Reads {
    fn choose<'a>(&self, table: &'a Table, positions: &'a [u32]) -> Drawn<'a> {
        Drawn { table, positions }
    }
}

const POINTS: usize = 5;

fn losses() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.0..4.0f64,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, 1e300, 1e-300]),
    ]
}

proptest! {
    /// With any losses, a sample moves the sums of all points by numbers in [0, 1], so that the decreases from one point to the
    /// others move within one interval of length 1 that holds 0.
    #[test]
    fn one_sample_moves_all_decreases_within_one_interval(
        table in prop::collection::vec(prop::collection::vec(losses(), POINTS), 1..40),
        most_loss in prop_oneof![Just(3.0), 1e-3..10.0f64],
        without in any::<prop::sample::Index>(),
        (microbatch, threads) in (1..9usize, 1..4usize),
    ) {
        let (table, model) = (Table(table), Reads(vec![ParameterBlock { name: "point".into(), range: 0..1 }]));
        let (n, without) = (table.count() as u32, without.index(table.0.len()) as u32);
        let grid = GridSum::new(u64::from(n)).unwrap();
        let sums = |positions: &[u32], threads: usize| {
            let workers = Workers::new(threads.try_into().unwrap());
            let sum = LossSum { grid, most_loss, microbatch, workers };
            let spare = Spare::<f64, usize>::default();
            let at = |j: usize| sum.at(&model, &[j as f64], &table, positions, &spare).unwrap();
            (0..POINTS).map(at).collect::<Vec<f64>>()
        };
        let all: Vec<u32> = (0..n).collect();
        let rest: Vec<u32> = all.iter().copied().filter(|&i| i != without).collect();
        let (with, without) = (sums(&all, threads), sums(&rest, threads));
        prop_assert_eq!(&with, &sums(&all, 1));
        let changes: Vec<f64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
        prop_assert!(changes.iter().all(|change| (0.0..=1.0).contains(change)), "{changes:?}");
        let gain = |sums: &[f64], j: usize| sums[0] - sums[j];
        let moved: Vec<f64> = (1..POINTS).map(|j| gain(&with, j) - gain(&without, j)).collect();
        let (low, high) = moved.iter().fold((0.0f64, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
        prop_assert!(high - low <= 1.0, "{moved:?}");
        // In value: each loss clamped, and rounded down by less than a cell.
        for (j, &sum) in with.iter().enumerate() {
            let clamped = |row: &Vec<f64>| if row[j].is_nan() { 1.0 } else { (row[j] / most_loss).clamp(0.0, 1.0) };
            let expected: f64 = table.0.iter().map(clamped).sum();
            prop_assert!((sum - expected).abs() <= f64::from(n) * grid.cell_size() + 1e-12, "{sum} {expected}");
        }
    }
}
