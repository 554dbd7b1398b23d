//! Discretisation of loss laws on a grid: one law that dominates the true one and one that it dominates; composition preserves
//! both orders.

use crate::loss_law::{Between, DominatingCurve, Law, LossLaw, Tails};

/// `P`-masses of a law whose finite losses lie on a grid.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Masses {
    /// The loss of the first mass, in steps from the grid's offset.
    pub(super) first: i64,
    /// Masses at consecutive losses.
    pub(super) finite: Vec<f64>,
    /// Mass of the infinite loss.
    pub(super) infinite: f64,
}

/// A grid of losses: multiples of `step` from `least` to `largest` steps, all shifted by `offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Grid {
    pub(super) offset: f64,
    pub(super) step: f64,
    pub(super) least: i64,
    pub(super) largest: i64,
    /// True if the lower law keeps rare losses, at some cost to the others: see [`Tabulated::lower`].
    pub(super) keeps_rare: bool,
}

impl Grid {
    fn loss(&self, index: i64) -> f64 {
        (index as f64).mul_add(self.step, self.offset)
    }

    /// Returns the largest distance of a cell's losses from the cell, by rounding of the thresholds and by the law's own
    /// threshold errors at the grid's points.
    fn threshold_error(&self, own: impl Iterator<Item = f64>) -> f64 {
        let extent = self.loss(self.least).abs().max(self.loss(self.largest).abs()).max(self.offset.abs());
        let own = own.filter(|error| error.is_finite()).fold(0.0, f64::max);
        // A loss counts as on the grid if it is within this of a point.
        own + 16.0 * f64::EPSILON * extent
    }
}

/// A loss law between two others on a grid.
#[derive(Debug, Clone)]
pub(super) struct Discretised {
    /// Dominates the law once its losses are raised by `shift`.
    pub(super) upper: Masses,
    /// Dominated by the law once its losses are lowered by `shift`; `None` if only a bound on the law is known.
    pub(super) lower: Option<Masses>,
    /// Bound on the change of a loss by rounding.
    pub(super) shift: f64,
    /// The grid's offset.
    pub(super) offset: f64,
}

impl Discretised {
    /// Discretises `law`. Losses outside of the grid are rounded up for the upper law (to the least loss and to infinity) and
    /// down for the lower one (to negative infinity and to the largest loss).
    pub(super) fn new(law: &Law, grid: &Grid) -> Self {
        let (upper, lower) = match law {
            Law::Known(law) => {
                let sampled = Tabulated::new(law.as_ref(), grid);
                (sampled.upper(), Some(sampled.lower()))
            }
            Law::Between { above, below, .. } => {
                (Tabulated::new(above.as_ref(), grid).upper(), Some(Tabulated::new(below.as_ref(), grid).lower()))
            }
            Law::Bounded(curve) => (upper_of_curve(curve.as_ref(), grid), None),
        };
        let (upper, upper_shift) = upper;
        let (lower, lower_shift) = lower.map_or((None, 0.0), |(masses, shift)| (Some(masses), shift));
        Self { upper, lower, shift: upper_shift.max(lower_shift), offset: grid.offset }
    }
}

/// A law's tails at the grid's points and half-way between them.
struct Tabulated<'a> {
    law: &'a dyn LossLaw,
    grid: &'a Grid,
    thresholds: Vec<Threshold>,
    threshold_error: f64,
}

/// The masses of a cell under both laws, and bounds on their errors.
#[derive(Debug, Clone, Copy)]
struct Cell {
    p: f64,
    q: f64,
    p_error: f64,
    q_error: f64,
}

/// Value below which a tail may have lost its relative precision to underflow.
const TINY: f64 = 1e-300;

/// A threshold with the law's tails there, and their relative error.
#[derive(Debug, Clone, Copy)]
struct Threshold {
    loss: f64,
    tails: Tails,
    error: f64,
    /// The law's own threshold error; 0 between the grid's points if the law knows its cells.
    own_error: f64,
}

impl Threshold {
    fn new(law: &dyn LossLaw, loss: f64) -> Self {
        let (tails, error, own_error) = law.threshold(loss);
        Self { loss, tails, error, own_error }
    }
}

impl Cell {
    /// Returns the cell between two thresholds, as the law gives it, or otherwise from the tails on its smaller side.
    fn between(law: &dyn LossLaw, low: &Threshold, high: &Threshold) -> Self {
        if !law.knows_cells() {
            return Self::by_tails(low, high);
        }
        match law.between(low.loss, high.loss) {
            Some(Between { p, q, relative_error }) => {
                let error = |mass: f64| if mass > 0.0 { relative_error * mass + TINY } else { 0.0 };
                Self { p, q, p_error: error(p), q_error: error(q) }
            }
            None => Self::by_tails(&Threshold::new(law, low.loss), &Threshold::new(law, high.loss)),
        }
    }

    fn by_tails(low: &Threshold, high: &Threshold) -> Self {
        let error = low.error.max(high.error);
        let (low, high) = (&low.tails, &high.tails);
        let (p, p_error) = difference(low.p_above, high.p_above, low.p_below, high.p_below, error);
        let (q, q_error) = difference(low.q_above, high.q_above, low.q_below, high.q_below, error);
        Self { p, q, p_error, q_error }
    }
}

fn difference(low_above: f64, high_above: f64, low_below: f64, high_below: f64, error: f64) -> (f64, f64) {
    let (large, small) = if low_above < high_below { (low_above, high_above) } else { (high_below, low_below) };
    // Equal computed tails do not prove that the cell is empty; the error accounts for this.
    ((large - small).max(0.0), (error + f64::EPSILON) * (large + small) + TINY)
}

impl<'a> Tabulated<'a> {
    fn new(law: &'a dyn LossLaw, grid: &'a Grid) -> Self {
        let (first, last) = (2 * grid.least, 2 * grid.largest);
        let thresholds = (first..=last).map(|half| {
            let loss = (0.5 * half as f64).mul_add(grid.step, grid.offset);
            // Between the ends, tails only show whether cells hold any mass.
            if law.knows_cells() && half != first && half != last {
                let own_error = if half % 2 == 0 { law.threshold_error(loss) } else { 0.0 };
                Threshold { loss, tails: Tails::default(), error: 0.0, own_error }
            } else {
                Threshold::new(law, loss)
            }
        });
        let thresholds: Vec<Threshold> = thresholds.collect();
        let threshold_error = grid.threshold_error(thresholds.iter().step_by(2).map(|threshold| threshold.own_error));
        Self { law, grid, thresholds, threshold_error }
    }

    /// Returns the law above: each cell's masses are split over its two ends.
    ///
    /// A cell `[a, b]` of losses with masses `(p, q)` has `e^a <= p/q <= e^b`; splitting `p` so that both laws keep their
    /// masses puts
    ///
    /// ```text
    /// at b: (p - q e^a) / (1 - e^(a - b)),        at a: the rest.
    /// ```
    ///
    /// Under `Q` the ratio `R = dP/dQ` within the cell is thereby replaced by the law on the cell's two ends that has the same
    /// mean, the largest in convex order, so that `E_Q (R - x)+` grows for every x: the resulting pair dominates, and its curve
    /// interpolates the true curve between the grid's points. Errors are taken to the safe side: more `p` and less `q` puts more
    /// mass at the upper end and no less in total.
    ///
    /// **Thresholds.** If the ends are known to within `t` only, the cell's curve is below its chord from `a - t` to `b + t`,
    /// hence at `a + t` below `p - q e^(a - t)`, and zero at `b + t`. Splitting with `2 t p` added to the numerator between ends
    /// raised by `t` lies above that at both points and at 0, and between them by convexity.
    ///
    /// # References
    /// Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, "Connect the dots: tighter discrete approximations of privacy
    /// loss distributions", Theorem 3.3, arXiv:2207.04380.
    fn upper(&self) -> (Masses, f64) {
        let Self { law, grid, thresholds, threshold_error } = self;
        let count = (grid.largest - grid.least) as usize + 1;
        let mut finite = vec![0.0; count];
        let spread = -(-grid.step).exp_m1() * (1.0 - 4.0 * f64::EPSILON);
        finite[0] = thresholds[0].tails.p_below * (1.0 + thresholds[0].error);
        for cell in 0..count - 1 {
            let Cell { p, q, p_error, q_error } = Cell::between(*law, &thresholds[2 * cell], &thresholds[2 * cell + 2]);
            let (p, q) = (p + p_error, (q - q_error).max(0.0));
            let loss = grid.loss(grid.least + cell as i64);
            let odds = loss.exp() * (1.0 - 2.0 * f64::EPSILON * (2.0 + loss.abs()));
            // The product's rounding is relative to `q odds`, which is about `p`.
            let excess = (p - q * odds + 2.0 * (threshold_error + f64::EPSILON) * p) / spread;
            let high = if excess < p { excess.max(0.0) } else { p };
            finite[cell + 1] += high * (1.0 + 2.0 * f64::EPSILON);
            finite[cell] += (p - high) * (1.0 + 2.0 * f64::EPSILON);
        }
        let Threshold { tails: Tails { p_above: above, .. }, error, .. } = thresholds[2 * (count - 1)];
        let (_, largest) = law.support();
        let infinite = if largest <= grid.loss(grid.largest) { law.p_infinite() } else { above };
        (Masses { first: grid.least, finite, infinite: infinite * (1.0 + error + f64::EPSILON) }, *threshold_error)
    }

    /// Returns the law below: outcomes are merged into bins whose likelihood ratio is a point of the grid.
    ///
    /// Any randomised merging of outcomes is dominated by the original (it is post-processing). From the least loss upwards,
    /// half-cells are merged until the ratio of the masses reaches the grid's next point. The half-cell that crosses it is split
    /// at random so that the ratio is exactly that point, and its remainder begins the next bin. The bins' ends thus alternate
    /// about the middle between the grid's points, and no loss is rounded. If outcomes are too sparse for that, rounding the
    /// merged loss down to the grid costs less. In the mean of the loss, rounding costs the distance to the point below; merging
    /// costs about half the product of the distances to the point above and to the outcome that must be mixed in.
    ///
    /// **Rare losses.** If nearly all mass lies less than a step below a point, its ratio reaches the point only together with all
    /// rarer outcomes above, however large their losses, since the ratio of all outcomes is 1. If the grid keeps rare losses, a bin
    /// takes no whole outcome from more than a step beyond its point, and rounds down what it holds instead. Outcomes above the
    /// grid are then omitted: at its end they would dominate the larger moments, which bound the aliases.
    ///
    /// Errors are taken to the safe side: with less `p` and more `q` in every bin, `E (P - x Q)+` falls for every x.
    fn lower(&self) -> (Masses, f64) {
        let Self { law, grid, thresholds, threshold_error } = self;
        let count = (grid.largest - grid.least) as usize + 1;
        let error = law.relative_error() + f64::EPSILON;
        let shift = threshold_error + 16.0 * error;
        let mut bins = Bins { grid, masses: vec![0.0; count], p: 0.0, q: 0.0, shift };
        // A loss of positive probability gets its own cell, in which it can lie on the grid.
        let mut thresholds = thresholds.clone();
        let (atoms, is_all) = law.atoms();
        if !is_all {
            let inside = atoms.iter().filter(|loss| grid.loss(grid.least) < **loss && **loss < grid.loss(grid.largest));
            let sides = inside.flat_map(|loss| [loss - shift, loss + shift]);
            thresholds.extend(sides.map(|loss| Threshold::new(*law, loss)));
            thresholds.sort_by(|left, right| left.loss.total_cmp(&right.loss));
        }
        for pair in thresholds.windows(2) {
            let Cell { p, q, p_error, q_error } = Cell::between(*law, &pair[0], &pair[1]);
            bins.add(p - p_error, q + q_error);
        }
        let infinite = law.p_infinite() * (1.0 - 2.0 * error) - law.beyond_doubles().0;
        if let Some(Threshold { tails: last, error, .. }) = thresholds.last()
            && !grid.keeps_rare
        {
            let above = last.p_above * (1.0 - 2.0 * error) - law.p_infinite() * (1.0 + 2.0 * error);
            bins.add(above - TINY, last.q_above * (1.0 + 2.0 * error) + TINY);
        }
        (Masses { first: grid.least, finite: bins.finish(), infinite: infinite.max(0.0) }, shift)
    }
}

/// Bins of the lower law, filled from the least loss upwards.
struct Bins<'a> {
    grid: &'a Grid,
    masses: Vec<f64>,
    /// Masses pending until their bin is complete.
    p: f64,
    q: f64,
    /// Amount by which a loss may be raised, charged to the whole: rounding must not make an outcome that lies on a point of the
    /// grid fall to the next one below.
    shift: f64,
}

/// Relative margin by which a bin's ratio must exceed the grid's point, for rounding.
const RATIO_MARGIN: f64 = 8.0 * f64::EPSILON;

impl Bins<'_> {
    fn add(&mut self, p: f64, q: f64) {
        // Outcomes may be omitted.
        if !(p > 0.0 && q > 0.0) {
            return;
        }
        let (mut p, mut q) = (p, q);
        if self.p > 0.0 {
            let loss = log_ratio(self.p, self.q);
            let below = self.point_below(loss);
            let above = below.saturating_add(1);
            let target = self.grid.loss(above);
            let next = log_ratio(p, q);
            if (loss - self.grid.loss(below)) <= 0.5 * (target - loss) * (next - loss).max(0.0) {
                self.flush();
            } else {
                let odds = target.exp() * (1.0 + RATIO_MARGIN * (1.0 + target.abs()));
                let lack = self.q * odds - self.p;
                let gain = p - q * odds;
                let reached = gain > 0.0 && lack < gain;
                let is_far = self.grid.keeps_rare && next > target + self.grid.step;
                if !reached && !is_far && (gain > 0.0 || self.point_below(next) <= below) {
                    self.p += p;
                    self.q += q;
                    return;
                }
                if !reached {
                    // An outcome on a point of the grid stays there, and a far one in its own bin.
                    self.flush();
                    (self.p, self.q) = (p, q);
                    return;
                }
                // Rounded up, so that the ratio is reached.
                let share = (lack.max(0.0) / gain * (1.0 + RATIO_MARGIN)).min(1.0);
                self.put(above, self.p + share * p);
                p *= (1.0 - share) * (1.0 - f64::EPSILON);
                q *= (1.0 - share) * (1.0 + f64::EPSILON);
            }
        }
        self.p = p;
        self.q = q;
    }

    /// Returns the largest point of the grid at which a bin of this loss may be counted.
    fn point_below(&self, loss: f64) -> i64 {
        ((loss + 0.5 * self.shift - self.grid.offset) / self.grid.step).floor() as i64
    }

    /// Counts the pending masses at the point below.
    fn flush(&mut self) {
        if self.p > 0.0 {
            let below = self.point_below(log_ratio(self.p, self.q));
            self.put(below, self.p);
        }
        (self.p, self.q) = (0.0, 0.0);
    }

    fn put(&mut self, index: i64, mass: f64) {
        let index = index.min(self.grid.largest).saturating_sub(self.grid.least);
        if let Some(bin) = usize::try_from(index).ok().and_then(|index| self.masses.get_mut(index)) {
            *bin += mass * (1.0 - 2.0 * f64::EPSILON);
        }
    }

    fn finish(mut self) -> Vec<f64> {
        self.flush();
        self.masses
    }
}

fn log_ratio(p: f64, q: f64) -> f64 {
    let ratio = p / q;
    if (0.5..2.0).contains(&ratio) { ((p - q) / q).ln_1p() } else { ratio.ln() }
}

/// Returns the law above a curve for which only an upper bound is known: the one that interpolates the bound between the grid's
/// points.
///
/// With `F_i` at point i, the law's tail is `P(L >= l_i) = (F_(i-1) - e^-h F_i)/(1 - e^-h)`; on the left, where F is nearly `1 -
/// e^l`, it is computed from the shortfall `S`, as `1 - (e^-h S_i - S_(i-1))/(1 - e^-h)`. Each tail is rounded up by its error,
/// and is at least the next tail above, so that the result is a law that lies above.
fn upper_of_curve(curve: &dyn DominatingCurve, grid: &Grid) -> (Masses, f64) {
    let count = (grid.largest - grid.least) as usize + 1;
    let error = curve.relative_error() + 4.0 * f64::EPSILON;
    let decay = (-grid.step).exp();
    let spread = -(-grid.step).exp_m1();
    let value = |index: usize| {
        let loss = grid.loss(grid.least + index as i64);
        (curve.delta(loss), curve.shortfall(loss))
    };
    let mut above = vec![1.0; count];
    let mut before = value(0);
    for (index, tail) in above.iter_mut().enumerate().skip(1) {
        let (delta, shortfall) = value(index);
        let by_delta = (before.0 * (1.0 + error) - decay * delta * (1.0 - error)) / spread;
        let below = (decay * shortfall * (1.0 - error) - before.1 * (1.0 + error)) / spread;
        *tail = by_delta.min(1.0 - below).clamp(0.0, 1.0);
        before = (delta, shortfall);
    }
    let (_, largest) = curve.support();
    // The curve's value at the last point is counted as an infinite loss.
    let infinite = if largest <= grid.loss(grid.largest) { 0.0 } else { before.0 * (1.0 + error) };
    let mut finite = vec![0.0; count];
    let mut tail = infinite;
    for index in (0..count).rev() {
        let here = above[index].max(tail);
        finite[index] = (here - tail) * (1.0 + f64::EPSILON);
        tail = here;
    }
    // The points themselves are rounded.
    let extent = grid.loss(grid.least).abs().max(grid.loss(grid.largest).abs());
    (Masses { first: grid.least, finite, infinite }, 2.0 * f64::EPSILON * extent)
}

#[cfg(test)]
mod tests;
