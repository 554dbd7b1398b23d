//! The iterate in two parts, so that the rounding error of an update is relative to the update, not to the iterate.

use dp_losses::compensated::two_sum;
use dp_losses::{CompensatedSum, Model, Real, ScaledSteps};
use nalgebra::convert;

use super::batches::Piece;
use super::iterate::Iterate;
use super::update::Step;
use crate::error::Error;

/// The iterate `w = s v` of plain projected gradient descent with an L2 regulariser; the scalar `s` and the vector `v` are
/// each stored in two parts.
///
/// Shrinking and projecting change `s` alone; a batch's gradient, taken at the first parts, is added to `v`. Without radius
/// and average, the cost of an update of a sparse batch is proportional to its number of non-zeros. The sensitivity allows for
/// the rounding errors ([`Rounding`](crate::growth::Rounding), [`Arithmetic::TwoParts`](crate::growth::Arithmetic::TwoParts)).
///
/// # Formula
/// ```text
/// s <- s - s (ηλ)             two-part sum; then powers of two between s and v, exactly, until |s| lies in [1, 2)
/// v <- v - η/(b s) Σ ∇ℓ_i     two-part sums
/// s <- s - s q,               q = 1 - R/‖w‖ = (‖w‖² - R²) / (‖w‖ (‖w‖ + R)),   where ‖w‖² - R² > 0
/// ```
/// `‖w‖² - R²` is formed in two parts, products included, and rounded once.
pub struct TwoParts<F, M: ScaledSteps<F>> {
    scale: (f64, f64),
    direction: CompensatedSum<F>,
    pass: <M as Model<F>>::Pass,
    coefficients: Vec<F>,
    blocks: usize,
    lambda: f64,
    radius: Option<f64>,
    average: Option<CompensatedSum<F>>,
    /// Buffer for [`Iterate::current`].
    whole: Vec<F>,
}

impl<F: Real, M: ScaledSteps<F>> TwoParts<F, M> {
    /// Starts at `start`; later iterates are projected onto the ball of this radius, if any. If `averaged`, the output is the
    /// average.
    pub fn new(model: &M, start: Vec<F>, averaged: bool, batch_size: usize, lambda: f64, radius: Option<f64>) -> Self {
        Self {
            scale: (1.0, 0.0),
            pass: model.pass(batch_size),
            coefficients: Vec::with_capacity(batch_size * model.blocks().len()),
            blocks: model.blocks().len(),
            lambda,
            radius,
            average: averaged.then(|| CompensatedSum::zeros(start.len())),
            whole: Vec::new(),
            direction: start.into(),
        }
    }

    /// Multiplies the iterate by `1 - share`.
    fn shrink(&mut self, share: f64) {
        let (high, low) = self.scale;
        let (sum, rest) = two_sum(high, -(high * share));
        self.scale = two_sum(sum, low + rest);
        let size = self.scale.0.abs();
        if size == 0.0 {
            self.direction.clear();
            self.scale = (1.0, 0.0);
        } else if !(1.0..2.0).contains(&size) {
            // A power of two within the range of every float type, so that products with it are exact.
            let power = size.log2().floor().clamp(-100.0, 100.0).exp2();
            self.direction.scale_by_power(convert(power));
            self.scale = (self.scale.0 / power, self.scale.1 / power);
        }
    }

    fn project(&mut self, radius: f64) {
        let (high, low) = excess_of_square(self.scale, &self.direction, radius);
        let excess = high + low;
        if excess > 0.0 {
            let norm = radius.mul_add(radius, excess).sqrt();
            self.shrink(excess / (norm * (norm + radius)));
        }
    }

    fn values(&self) -> impl Iterator<Item = F> {
        let (high, low): (F, F) = (convert(self.scale.0), convert(self.scale.1));
        self.direction.parts().map(move |(entry, rest)| high * entry + (high * rest + low * entry))
    }
}

/// Returns `‖s v‖² - R²` in two parts.
fn excess_of_square<F: Real>(scale: (f64, f64), direction: &CompensatedSum<F>, radius: f64) -> (f64, f64) {
    let (mut high, mut low) = (0.0, 0.0);
    let mut add = |term: f64, rest: f64| {
        let (sum, lost) = two_sum(high, term);
        high = sum;
        low += lost + rest;
    };
    for (entry, rest) in direction.parts() {
        let (entry, rest): (f64, f64) = (entry.to_subset_unchecked(), rest.to_subset_unchecked());
        let square = entry * entry;
        add(square, entry.mul_add(entry, -square) + 2.0 * entry * rest);
    }
    let square = scale.0 * scale.0;
    let of_square = scale.0.mul_add(scale.0, -square) + 2.0 * scale.0 * scale.1;
    let product = square * high;
    let of_product = square.mul_add(high, -product) + (square * low + of_square * high);
    let of_ball = radius * radius;
    let (excess, lost) = two_sum(product, -of_ball);
    (excess, lost + (of_product - radius.mul_add(radius, -of_ball)))
}

impl<F: Real, M: ScaledSteps<F>> Iterate<F, M> for TwoParts<F, M> {
    fn update(&mut self, model: &M, batch: M::Batch<'_>, piece: Piece, step: &Step) -> Result<(), Error> {
        let examples = piece.examples;
        model.forward_scaled(convert(self.scale.0), self.direction.high(), batch, &mut self.pass);
        model.backward(self.direction.high(), batch, &mut self.pass);
        self.shrink(step.step_size * self.lambda);
        self.coefficients.clear();
        self.coefficients.resize(examples * self.blocks, convert(-step.step_size / (step.divisor * self.scale.0)));
        model.add_weighted_in_two_parts(batch, &mut self.pass, &self.coefficients, &mut self.direction);
        if let Some(radius) = self.radius {
            self.project(radius);
        }
        if let Some(average) = &mut self.average
            && step.weight != 0.0
        {
            average.add_scaled(convert(step.weight * self.scale.0), self.direction.high());
        }
        Ok(())
    }

    fn restart(&mut self) {
        if let Some(average) = &mut self.average {
            core::mem::swap(&mut self.direction, average);
            average.clear();
            self.scale = (1.0, 0.0);
        }
    }

    fn current(&mut self) -> &[F] {
        let mut whole = core::mem::take(&mut self.whole);
        whole.clear();
        whole.extend(self.values());
        self.whole = whole;
        &self.whole
    }

    fn into_output(self) -> Vec<F> {
        match &self.average {
            Some(average) => average.parts().map(|(high, low)| high + low).collect(),
            None => self.values().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use dp_data::Examples;
    use dp_losses::{HuberRegression, LinearModel};

    use super::*;
    use crate::engine::long::Long;

    const DIM: usize = 6;
    /// Unit roundoff.
    const UNIT: f64 = f64::EPSILON / 2.0;
    const START: [f64; DIM] = [0.6, 0.3, 0.2, -0.1, 0.4, 0.3];
    const ROWS: [[f64; DIM]; 2] = [[0.5, 0.25, -0.25, 0.5, 0.125, 0.0], [0.25, 0.5, 0.5, -0.25, 0.5, 0.125]];

    /// The same run in long arithmetic and in two parts. Within the ball every prediction is below the targets by more than
    /// the loss's half width: the gradients are exactly minus the rows.
    struct Runs {
        model: LinearModel<f64, HuberRegression>,
        examples: Examples<f64>,
        lambda: f64,
        radius: Option<f64>,
        two_parts: TwoParts<f64, LinearModel<f64, HuberRegression>>,
        exact: Vec<Long>,
        projections: u32,
    }

    impl Runs {
        fn new(start: [f64; DIM], averaged: bool, lambda: f64, radius: Option<f64>) -> Self {
            let model = LinearModel::new(DIM, HuberRegression::new(2f64.powi(-10)).unwrap());
            let examples = Examples::dense(ROWS.concat(), vec![8.0; 2], DIM).unwrap();
            let two_parts = TwoParts::new(&model, start.to_vec(), averaged, 2, lambda, radius);
            let exact = start.map(Long::new).to_vec();
            Self { model, examples, lambda, radius, two_parts, exact, projections: 0 }
        }

        fn update(&mut self, step_size: f64, weight: f64) {
            let step = Step { update: 1, step_size, divisor: 3.0, weight };
            self.two_parts.update(&self.model, self.examples.block(), Piece::whole(2), &step).unwrap();
            let step_size = Long::new(step_size);
            let kept = Long::new(1.0).minus(&step_size.times(&Long::new(self.lambda)));
            for (j, w) in self.exact.iter_mut().enumerate() {
                let pull = Long::new(ROWS[0][j] + ROWS[1][j]).over(&Long::new(3.0));
                *w = w.times(&kept).plus(&step_size.times(&pull));
            }
            let norm = self.exact.iter().fold(Long::new(0.0), |sum, w| sum.plus(&w.times(w))).square_root();
            if let Some(radius) = self.radius.map(Long::new)
                && norm > radius
            {
                self.projections += 1;
                self.exact.iter_mut().for_each(|w| *w = w.times(&radius).over(&norm));
            }
        }

        /// The sum of both parts of all numbers.
        fn whole(&self) -> Vec<Long> {
            let two = |(high, low): (f64, f64)| Long::new(high).plus(&Long::new(low));
            self.two_parts.direction.parts().map(|parts| two(parts).times(&two(self.two_parts.scale))).collect()
        }

        fn error(&self) -> f64 {
            let off = self.whole().iter().zip(&self.exact).map(|(found, exact)| found.minus(exact).value()).collect();
            norm(off)
        }
    }

    fn norm(vector: Vec<f64>) -> f64 {
        vector.into_iter().fold(0.0, f64::hypot)
    }

    /// Many short updates round off less than a hundredth of a unit of the iterate: a unit of the updates themselves.
    #[test]
    fn short_updates_round_off_a_share_of_themselves() {
        for (lambda, radius) in [(0.125, None), (0.125, Some(0.866)), (0.0, Some(0.866))] {
            let mut runs = Runs::new(START, false, lambda, radius);
            let (mut moved, mut rounded) = (0.0, 0.0f64);
            for t in 1..=500 {
                let step_size = 1e-6 * (1.0 + 1.0 / f64::from(t));
                runs.update(step_size, 1.0);
                moved += step_size;
                // Rounding the iterate to one part takes a product and a sum.
                let (whole, current) = (runs.whole(), runs.two_parts.current());
                for (whole, current) in whole.iter().zip(current) {
                    let off = whole.minus(&Long::new(*current)).value().abs() / (UNIT * current.abs());
                    rounded = rounded.max(off);
                }
            }
            assert!(runs.error() <= 4.0 * UNIT * moved, "{lambda} {radius:?}: {:e}", runs.error() / UNIT);
            assert!(rounded <= 2.0 && rounded > 0.5, "{rounded}");
            assert_eq!(runs.projections > 400, radius.is_some(), "{}", runs.projections);
            assert_eq!(runs.two_parts.current().to_vec(), runs.two_parts.into_output());
        }
    }

    /// Steps that shrink the iterate much, to zero, or flip it, and that leave the ball by far.
    #[test]
    fn long_updates_are_exact_up_to_a_few_units() {
        for radius in [None, Some(1.25)] {
            let mut runs = Runs::new(START, false, 1.0, radius);
            for (update, step_size) in
                [0.75, 0.75, 1.5, 0.3, 1.0, 0.25, 1.9, 0.99, 1e-9, 1.0, 1.0].into_iter().enumerate()
            {
                runs.update(step_size, 1.0);
                assert!(runs.error() <= 8.0 * UNIT, "{radius:?} {update}: {}", runs.error() / UNIT);
                let size = runs.two_parts.scale.0.abs();
                assert!((1.0..2.0).contains(&size), "{size}");
            }
        }
    }

    /// An average of many iterates is as accurate as one of them.
    #[test]
    fn an_average_of_many_iterates_is_off_by_a_few_units() {
        let updates = 3000;
        let mut runs = Runs::new(START, true, 0.125, None);
        let weight = 1.0 / f64::from(updates);
        let mut exact = vec![Long::new(0.0); DIM];
        for t in 1..=updates {
            // Some of the iterates have weight zero.
            let weight = if t % 3 == 0 { 0.0 } else { weight };
            runs.update(1e-3, weight);
            exact.iter_mut().zip(&runs.exact).for_each(|(sum, w)| *sum = sum.plus(&w.times(&Long::new(weight))));
        }
        runs.two_parts.restart();
        let error = norm(runs.whole().iter().zip(&exact).map(|(w, exact)| w.minus(exact).value()).collect());
        let size = norm(exact.iter().map(Long::value).collect());
        assert!(error <= 2.0 * UNIT * size, "{}", error / (UNIT * size));
        // The run continues from there with a new average.
        runs.exact = runs.whole();
        runs.update(1e-3, 1.0);
        let last: Vec<f64> = runs.exact.iter().map(Long::value).collect();
        let output = runs.two_parts.into_output();
        let error = norm(output.iter().zip(&last).map(|(found, exact)| found - exact).collect());
        assert!(error <= 4.0 * UNIT * size, "{}", error / (UNIT * size));
    }
}
