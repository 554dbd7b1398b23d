//! Logistic regression of the side on the features: a score close to the likelihood ratio if that is nearly linear.
//!
//! Features are centred, scaled and clipped at eight standard deviations. If there are few, their squares are added, so that
//! a change of spread is detected as well as a shift; a further column marks non-finite features. The fit is Newton's method
//! on the penalised likelihood, each step by conjugate gradients, which need only products with the Hessian: there is no
//! factorisation and no limit on the number of features.
//!
//! # References
//! B. Bichsel, S. Steffen, I. Bogunovic, M. Vechev, "DP-Sniper: black-box discovery of differential privacy violations
//! using classifiers", 2021, Section 4.

/// Largest number of features whose squares are added.
const SQUARED: usize = 64;

/// Number of standard deviations from the mean at which a feature is clipped.
const CUT: f64 = 8.0;

/// Weight of the penalty per sample; it keeps the solution finite on separable data.
const RIDGE: f64 = 1e-5;

/// Newton steps, and conjugate-gradient steps in each.
const NEWTON_STEPS: usize = 12;
const CONJUGATE_STEPS: usize = 30;

/// A trained regression.
#[derive(Debug, Clone)]
pub(crate) struct Logistic {
    centre: Vec<f64>,
    inverse_spread: Vec<f64>,
    /// The weights of [`columns`](Self::columns), the intercept last.
    weights: Vec<f64>,
}

impl Logistic {
    /// Trains on rows of `width` features each, one list per side.
    pub(crate) fn fit(base: &[f64], neighbour: &[f64], width: usize) -> Self {
        let rows = || base.chunks_exact(width).chain(neighbour.chunks_exact(width));
        let mut centre = vec![0.0; width];
        let mut inverse_spread = vec![1.0; width];
        for feature in 0..width {
            let mut values: Vec<f64> = rows().map(|row| row[feature]).filter(|value| value.is_finite()).collect();
            values.sort_unstable_by(f64::total_cmp);
            if values.is_empty() {
                continue;
            }
            // Quantiles, which are robust to heavy tails; the whole range if the middle half is a single value.
            let at = |fraction: f64| values[((values.len() - 1) as f64 * fraction) as usize];
            centre[feature] = at(0.5);
            let middle = (at(0.75) - at(0.25)) / 1.349;
            let spread = if middle > 0.0 { middle } else { at(1.0) - at(0.0) };
            if spread > 0.0 && spread.is_finite() {
                inverse_spread[feature] = 1.0 / spread;
            }
        }
        let mut model = Self { centre, inverse_spread, weights: Vec::new() };
        let columns = model.width_of_columns();
        let mut design = Vec::with_capacity((base.len() + neighbour.len()) / width * columns);
        for row in rows() {
            model.columns(row, &mut design);
        }
        model.weights = newton(&design, columns, base.len() / width);
        model
    }

    /// Returns the log-odds of the neighbour.
    pub(crate) fn score(&self, features: &[f64]) -> f64 {
        let mut row = Vec::with_capacity(self.weights.len());
        self.columns(features, &mut row);
        // Every column and weight is finite.
        dot(&row, &self.weights) + 0.0
    }

    fn width_of_columns(&self) -> usize {
        let width = self.centre.len();
        if width <= SQUARED { 2 * width + 2 } else { width + 2 }
    }

    fn columns(&self, features: &[f64], into: &mut Vec<f64>) {
        let scaled = |(i, value): (usize, &f64)| {
            let scaled = (value - self.centre[i]) * self.inverse_spread[i];
            if scaled.is_nan() { 0.0 } else { scaled.clamp(-CUT, CUT) }
        };
        into.extend(features.iter().enumerate().map(scaled));
        if features.len() <= SQUARED {
            into.extend(features.iter().enumerate().map(scaled).map(|z| z * z));
        }
        into.push(f64::from(features.iter().any(|value| !value.is_finite())));
        into.push(1.0);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns weights that nearly minimise the penalised loss; the first `zeros` rows have label 0, the others 1.
fn newton(design: &[f64], columns: usize, zeros: usize) -> Vec<f64> {
    let rows = design.len() / columns;
    let ridge = RIDGE * rows as f64;
    let loss = |weights: &[f64]| {
        let data: f64 = design
            .chunks_exact(columns)
            .enumerate()
            .map(|(i, row)| {
                let margin = if i < zeros { -dot(row, weights) } else { dot(row, weights) };
                // ln(1 + e^-margin) without overflow.
                (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
            })
            .sum();
        data + 0.5 * ridge * dot(weights, weights)
    };
    let mut weights = vec![0.0; columns];
    let mut best = loss(&weights);
    let mut curvature = vec![0.0; rows];
    for _ in 0..NEWTON_STEPS {
        let mut gradient: Vec<f64> = weights.iter().map(|weight| ridge * weight).collect();
        for (i, row) in design.chunks_exact(columns).enumerate() {
            let p = 1.0 / (1.0 + (-dot(row, &weights)).exp());
            curvature[i] = p * (1.0 - p);
            let residual = p - f64::from(i >= zeros);
            for (gradient, x) in gradient.iter_mut().zip(row) {
                *gradient += residual * x;
            }
        }
        let hessian = |direction: &[f64]| {
            let mut product: Vec<f64> = direction.iter().map(|value| ridge * value).collect();
            for (curvature, row) in curvature.iter().zip(design.chunks_exact(columns)) {
                let along = curvature * dot(row, direction);
                for (product, x) in product.iter_mut().zip(row) {
                    *product += along * x;
                }
            }
            product
        };
        let step = conjugate_gradients(hessian, &gradient);
        // Halved until the loss decreases; if it does not, the weights stay.
        let mut length = 1.0;
        let improved = (0..20).find_map(|_| {
            let tried: Vec<f64> = weights.iter().zip(&step).map(|(weight, step)| weight - length * step).collect();
            let value = loss(&tried);
            length *= 0.5;
            (value < best).then_some((tried, value))
        });
        let Some((tried, value)) = improved else { break };
        let gain = best - value;
        (weights, best) = (tried, value);
        if gain < 1e-9 * rows as f64 {
            break;
        }
    }
    weights
}

/// Solves `hessian x = right` approximately for a positive definite Hessian.
fn conjugate_gradients(hessian: impl Fn(&[f64]) -> Vec<f64>, right: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; right.len()];
    let mut residual = right.to_vec();
    let mut direction = residual.clone();
    let mut square = dot(&residual, &residual);
    let enough = 1e-12 * square;
    for _ in 0..CONJUGATE_STEPS {
        if !(square > enough) {
            break;
        }
        let product = hessian(&direction);
        let along = square / dot(&direction, &product);
        if !along.is_finite() {
            break;
        }
        for i in 0..solution.len() {
            solution[i] += along * direction[i];
            residual[i] -= along * product[i];
        }
        let next = dot(&residual, &residual);
        for (direction, residual) in direction.iter_mut().zip(&residual) {
            *direction = residual + next / square * *direction;
        }
        square = next;
    }
    solution
}

#[cfg(test)]
mod tests;
