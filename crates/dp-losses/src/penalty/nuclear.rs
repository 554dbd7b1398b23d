//! Singular values by one-sided Jacobi rotations: a bounded number of sweeps for any matrix, and an orthogonal transformation of
//! its columns at every step, so that no norm can grow.

/// Maximum number of sweeps over all pairs of columns; six to ten are usual.
const MOST_SWEEPS: usize = 60;

/// Rotates `outputs` columns until they are orthogonal, and the columns of the identity likewise: `A V = C`.
///
/// # References
/// Hestenes, 1958; Demmel and Veselić, SIAM J. Matrix Analysis 1992, for its accuracy.
fn orthogonalise(columns: &mut [f64], outputs: usize, rotations: &mut Vec<f64>) {
    let outputs = outputs.max(1);
    let rows = columns.len() / outputs;
    rotations.clear();
    rotations.resize(outputs * outputs, 0.0);
    rotations.iter_mut().step_by(outputs + 1).for_each(|entry| *entry = 1.0);
    for _ in 0..MOST_SWEEPS {
        let mut rotated = false;
        for p in 0..outputs {
            for q in p + 1..outputs {
                let (left, right) = (&columns[p * rows..][..rows], &columns[q * rows..][..rows]);
                let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let (a, b, g) = (product(left, left), product(right, right), product(left, right));
                if !(g.abs() > 1e-14 * (a * b).sqrt()) {
                    continue;
                }
                rotated = true;
                let zeta = (b - a) / (2.0 * g);
                let tangent = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                let sine = cosine * tangent;
                for (matrix, rows) in [(&mut *columns, rows), (rotations.as_mut_slice(), outputs)] {
                    let (before, after) = matrix.split_at_mut(q * rows);
                    for (x, y) in before[p * rows..][..rows].iter_mut().zip(&mut after[..rows]) {
                        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
                    }
                }
            }
        }
        if !rotated {
            break;
        }
    }
}

fn norms(columns: &[f64], outputs: usize) -> Vec<f64> {
    let rows = (columns.len() / outputs.max(1)).max(1);
    columns.chunks_exact(rows).map(|column| column.iter().map(|x| x * x).sum::<f64>().sqrt()).collect()
}

/// Returns the singular values of a matrix given by its columns, which are overwritten.
pub(super) fn singular_values(columns: &mut [f64], outputs: usize, rotations: &mut Vec<f64>) -> Vec<f64> {
    orthogonalise(columns, outputs, rotations);
    norms(columns, outputs)
}

/// Replaces each singular value `s` by `max(s - threshold, 0)`.
pub(super) fn shrink(columns: &mut [f64], outputs: usize, threshold: f64, rotations: &mut Vec<f64>) {
    let outputs = outputs.max(1);
    let rows = columns.len() / outputs;
    let kept: Vec<f64> = singular_values(columns, outputs, rotations)
        .into_iter()
        .map(|value| if value <= threshold { 0.0 } else { 1.0 - threshold / value })
        .collect();
    // Transforms back: row i of the result is `Σ_j kept_j C_ij V_kj` over outputs k.
    let mut row = vec![0.0; outputs];
    for i in 0..rows {
        for (k, entry) in row.iter_mut().enumerate() {
            *entry = (0..kept.len()).map(|j| kept[j] * columns[j * rows + i] * rotations[j * outputs + k]).sum();
        }
        row.iter().enumerate().for_each(|(k, &entry)| columns[k * rows + i] = entry);
    }
}
