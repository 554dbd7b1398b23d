//! The iterate in two parts, so that what an update rounds off is a share of the update and not of the iterate.

use dp_losses::compensated::two_sum;
use dp_losses::{CompensatedSum, Model, Real, ScaledSteps};
use nalgebra::convert;

use super::iterate::Iterate;
use super::update::Step;
use crate::error::Error;

/// The iterate `w = s v` of plain projected gradient descent with an L2 regulariser, `s` a number and `v` a vector in two
/// parts each.
///
/// Shrinking and projecting change `s` alone; a batch's gradient, taken at the first parts, is added onto `v`. Where there
/// is neither a radius nor an average, an update of a sparse batch costs as much as it has non-zeros. What all that rounds
/// off is allowed for in the sensitivity ([`Rounding`](crate::growth::Rounding),
/// [`Arithmetic::TwoParts`](crate::growth::Arithmetic::TwoParts)).
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
    /// Room for [`Iterate::current`].
    whole: Vec<F>,
}

impl<F: Real, M: ScaledSteps<F>> TwoParts<F, M> {
    /// Starts at `start`, in the ball where there is one; `averaged` says whether the output is an average.
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
            // A power of two within reach of every float, so that products with it are exact.
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

    /// The iterate, rounded.
    fn values(&self) -> impl Iterator<Item = F> {
        let (high, low): (F, F) = (convert(self.scale.0), convert(self.scale.1));
        self.direction.parts().map(move |(entry, rest)| high * entry + (high * rest + low * entry))
    }
}

/// `‖s v‖² - R²` in two parts.
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
    fn update(&mut self, model: &M, batch: M::Batch<'_>, examples: usize, step: &Step) -> Result<(), Error> {
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
