//! Synthetic data sets: the same name always gives the same rows.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, StandardNormal};

use super::transform::{Table, on_sphere};
use crate::seed;

/// Generates 10,000 points on the unit sphere in 5 dimensions, labelled by the side of a hyperplane from which all are at
/// least 0.001 away.
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

/// Generates points on the unit sphere in 50 dimensions, labelled by the side of a hyperplane; a tenth of the labels are
/// flipped.
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

/// Number of features of the sparse model, and the correlation of adjacent ones.
const SPARSE_DIM: usize = 100;
const CORRELATION: f64 = 0.5;

/// Returns ten weights from 0.5 to 5, their negatives, and eighty zeros.
pub(super) fn sparse_truth() -> Vec<f64> {
    (0..SPARSE_DIM)
        .map(|i| match i {
            0..10 => 0.5 * (i + 1) as f64,
            10..20 => -0.5 * (i - 9) as f64,
            _ => 0.0,
        })
        .collect()
}

/// Generates training and test rows of normal features with covariance `0.5^|j - k|`, labelled by a Bernoulli draw with
/// log-odds `⟨m, s⟩ - ι`, ι standard normal.
///
/// # References
/// Chen 2020 (dissertation, University of Georgia), section 4.6.3.
pub(super) fn sparse_model(train: usize, test: usize) -> (Table, Table) {
    let (truth, mut rng) = (sparse_truth(), StdRng::seed_from_u64(seed::of("sparse-model")));
    let mut rows = |count: usize| {
        let mut table = Table { dim: SPARSE_DIM, ..Table::default() };
        table.values.reserve(count * SPARSE_DIM);
        for _ in 0..count {
            let start = table.values.len();
            // Each feature follows from the previous one: the covariance is a power of the distance.
            let mut before: f64 = StandardNormal.sample(&mut rng);
            table.values.push(before);
            for _ in 1..SPARSE_DIM {
                let fresh: f64 = StandardNormal.sample(&mut rng);
                before = CORRELATION * before + (1.0 - CORRELATION * CORRELATION).sqrt() * fresh;
                table.values.push(before);
            }
            let score: f64 = table.values[start..].iter().zip(&truth).map(|(s, m)| s * m).sum();
            let shift: f64 = StandardNormal.sample(&mut rng);
            let positive = rng.random_bool(1.0 / (1.0 + (shift - score).exp()));
            table.targets.push(if positive { 1.0 } else { -1.0 });
        }
        table
    };
    (rows(train), rows(test))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covariances of 1, 0.5, 0.25, 0.125 at distances 0 to 3. The mean product of a row's 97 pairs has variance at most
    /// 4/97; over 20,000 rows the standard error is below 0.0015, and 0.0075 is five of them.
    #[test]
    fn the_sparse_model_is_as_correlated_balanced_and_learnable_as_its_source_says() {
        let (train, test) = sparse_model(20_000, 1000);
        assert_eq!((train.rows(), train.dim, test.rows()), (20_000, 100, 1000));
        let covariance = |distance: usize| {
            let pairs = train.values.chunks_exact(100).flat_map(|row| (0..97).map(move |j| row[j] * row[j + distance]));
            pairs.sum::<f64>() / (20_000.0 * 97.0)
        };
        for (distance, expected) in [(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.125)] {
            assert!((covariance(distance) - expected).abs() < 0.0075, "{distance}: {}", covariance(distance));
        }
        // Half of the rows belong to each class, up to five standard errors of 0.5/√20,000.
        let positive = train.targets.iter().filter(|&&target| target > 0.0).count() as f64 / 20_000.0;
        assert!((positive - 0.5).abs() < 0.018, "{positive}");
        let truth = sparse_truth();
        assert_eq!(truth.iter().filter(|&&weight| weight != 0.0).count(), 20);
        assert_eq!((truth[0], truth[9], truth[10], truth[19], truth[20]), (0.5, 5.0, -0.5, -5.0, 0.0));
        let right = |rows: &Table| {
            let scores =
                rows.values.chunks_exact(100).map(|row| row.iter().zip(&truth).map(|(s, m)| s * m).sum::<f64>());
            scores.zip(&rows.targets).filter(|(score, target)| score * *target > 0.0).count() as f64
                / rows.rows() as f64
        };
        assert!(right(&train) > 0.9 && right(&test) > 0.88, "{} {}", right(&train), right(&test));
        // The same rows again, and a prefix of a longer table.
        let (again, _) = sparse_model(10, 0);
        assert_eq!(again.values[..], train.values[..1000]);
    }
}
