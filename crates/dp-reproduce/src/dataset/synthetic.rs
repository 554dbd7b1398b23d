//! Generated data sets: the same rows for the same name.

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::transform::{Table, on_sphere};
use crate::seed;

/// 10,000 points of the unit sphere in 5 dimensions, labelled by the side of a hyperplane from which all are at least
/// 0.001 away.
pub(super) fn sphere() -> Table {
    const DIM: usize = 5;
    let mut rng = StdRng::seed_from_u64(seed::of("sphere"));
    let normal = on_sphere(DIM, &mut rng);
    let mut table = Table { dim: DIM, ..Table::default() };
    while table.rows() < 10_000 {
        let point = on_sphere(DIM, &mut rng);
        let side: f64 = point.iter().zip(&normal).map(|(x, w)| x * w).sum();
        if side.abs() >= 0.001 {
            table.values.extend(point);
            table.targets.push(side.signum());
        }
    }
    table
}

/// Points of the unit sphere in 50 dimensions, labelled by the side of a hyperplane; a tenth of the labels are turned.
pub(super) fn made_up(rows: usize) -> Table {
    const DIM: usize = 50;
    let mut rng = StdRng::seed_from_u64(seed::of("made-up"));
    let normal = on_sphere(DIM, &mut rng);
    let mut table = Table { dim: DIM, ..Table::default() };
    table.values.reserve(rows * DIM);
    for _ in 0..rows {
        let point = on_sphere(DIM, &mut rng);
        let side: f64 = point.iter().zip(&normal).map(|(x, w)| x * w).sum();
        let right = rng.random_bool(0.9);
        table.values.extend(point);
        table.targets.push(if (side > 0.0) == right { 1.0 } else { -1.0 });
    }
    table
}
