//! The range of losses that a grid must cover, and the grid step that suits laws with few losses.

use crate::loss_law::Law;
use crate::work;

/// Probabilities permitted outside of a grid, for one release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outside {
    above: f64,
    below: f64,
}

/// Logarithm of the mass permitted outside of grids and windows, relative to delta.
pub(super) const LOG_OUTSIDE: f64 = -20.0;

/// Least distinguishable probability.
const LEAST_OUTSIDE: f64 = 1e-300;

impl Outside {
    /// Returns probabilities so small that all releases together change a delta of about `e^log_delta` negligibly.
    pub(super) fn new(log_delta: f64, releases: f64) -> Self {
        let above = (log_delta + LOG_OUTSIDE).exp() / releases;
        // Low losses are only rounded up, or omitted from the lower law, which changes delta by their share.
        Self { above: above.max(LEAST_OUTSIDE), below: 1e-10 / releases }
    }

    /// Returns whether the permitted probability above is as small as wanted.
    pub(super) fn is_negligible(&self) -> bool {
        self.above > LEAST_OUTSIDE
    }
}

/// Losses beyond this are outside of the grid in any case.
const FARTHEST: f64 = 1e6;

/// Number of halvings of the search for a median.
const HALVINGS: u32 = 64;

/// Returns the least and the largest loss to cover.
pub(super) fn range(law: &Law, outside: Outside) -> (f64, f64) {
    let (least, largest) = law.support();
    let high = quantile(|loss| law.mass_outside(loss).0 <= outside.above);
    let low = -quantile(|loss| law.mass_outside(-loss).1 <= outside.below);
    (low.max(least.max(-FARTHEST)), high.min(largest.min(FARTHEST)))
}

/// Returns about the least positive number from which on `is_enough` holds, approached from above.
fn quantile(is_enough: impl Fn(f64) -> bool) -> f64 {
    let mut high = 1e-12;
    while high < FARTHEST && !is_enough(high) {
        high *= 2.0;
    }
    let mut low = 0.5 * high;
    for _ in 0..6 {
        let middle = 0.5 * (low + high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// A step, with whether all losses are multiples of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Aligned {
    pub(super) step: f64,
    pub(super) is_exact: bool,
}

/// Largest relative distance from a point of the grid at which a loss counts as on it; the lattice charges more.
const ON_GRID: f64 = 3e-15;

/// Maximum number of divisions of the least loss tried for an exact grid.
const MAX_DIVISIONS: u32 = 64;

/// Largest ratio of the wanted step to that of an exact grid.
const FINER: f64 = 32.0;

/// Number of losses above which no step comes near all of them.
const FEW: usize = 8;

/// Number of steps tried for a nearly exact grid.
const CANDIDATES: u32 = 2048;

/// Returns the offset of a law's grid: its least loss of positive probability, if there is one.
///
/// Each law may have its own grid, shifted against the others', if the steps agree: the total is then on a grid shifted by the
/// sum. A law of two losses always lies on a grid.
pub(super) fn offset(law: &Law) -> f64 {
    let (atoms, _) = law.atoms();
    atoms.into_iter().reduce(f64::min).unwrap_or(0.0)
}

/// Mass of a single loss, relative to all within half a step, from which on a grid is aligned with it.
const LONE: f64 = 0.9;

/// Returns the offset of a grid with one point on the bulk of a law: the loss of all outcomes within half a `step` of the median,
/// merged, or the median itself if nearly all of these have that loss.
///
/// A lower law that keeps rare losses rounds the bulk down to the grid, so that the bulk should lie on it.
pub(super) fn bulk(law: &Law, step: f64) -> f64 {
    let (Law::Known(law) | Law::Between { below: law, .. }) = law else { return offset(law) };
    work::charge((f64::from(HALVINGS) + 4.0) * law.steps());
    let (mut low, mut high) = (-FARTHEST, FARTHEST);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if law.tails(middle).p_below >= 0.5 { high = middle } else { low = middle }
    }
    let within = |distance: f64| {
        let (left, right) = (law.tails(low - distance), law.tails(high + distance));
        let mass = |above: (f64, f64), below: (f64, f64)| f64::max(above.0 - above.1, below.1 - below.0);
        let p = mass((left.p_above, right.p_above), (left.p_below, right.p_below));
        (p, mass((left.q_above, right.q_above), (left.q_below, right.q_below)))
    };
    let (near, alone) = (within(0.5 * step), within(1e-6 * step));
    let (p, q) = if alone.0 > LONE * near.0 { alone } else { near };
    // Any offset is sound. Both masses may have underflowed.
    let loss = (p / q).ln();
    if (low - step..=high + step).contains(&loss) { loss } else { high }
}

/// Returns a step for laws some of whose losses have positive probability. All losses lie on multiples of it, counted from each
/// law's [`offset`], if there is such a step; otherwise it is near the wanted `step`, and not above it, and the losses nearly lie
/// on its multiples.
pub(super) fn aligned_step<'a>(laws: impl Iterator<Item = &'a Law>, step: f64) -> Aligned {
    let mut losses: Vec<f64> = Vec::new();
    let mut all_discrete = true;
    for law in laws {
        let (atoms, is_all) = law.atoms();
        let offset = offset(law);
        all_discrete &= is_all;
        losses.extend(atoms.iter().map(|loss| loss - offset).filter(|loss| *loss > 0.0));
    }
    losses.sort_by(f64::total_cmp);
    losses.dedup_by(|later, kept| (*later - *kept).abs() <= 4.0 * ON_GRID * *kept);
    let (Some(&least), Some(&largest)) = (losses.first(), losses.last()) else {
        // Each law has one loss at most: any grid is exact, and a coarse one short.
        return Aligned { step: if all_discrete { step.max(8.0) } else { step }, is_exact: all_discrete };
    };
    let misalignment = |step: f64| {
        let off = |loss: &f64| (loss / step - (loss / step).round()).abs();
        losses.iter().map(off).fold(0.0, f64::max)
    };
    if all_discrete {
        for divisions in 1..=MAX_DIVISIONS {
            // The largest loss determines the step more precisely than the least.
            let candidate = largest / (largest * f64::from(divisions) / least).round();
            if candidate < step / FINER {
                break;
            }
            if misalignment(candidate) <= ON_GRID * largest / candidate {
                return Aligned { step: candidate, is_exact: true };
            }
        }
    }
    let first = (largest / step).ceil().max(1.0);
    let mut best = (f64::INFINITY, step);
    for more in 0..CANDIDATES {
        let candidate = largest / (first + f64::from(more));
        if losses.len() > FEW || candidate < 0.5 * step {
            break;
        }
        let off = misalignment(candidate);
        // A coarser step is cheaper, so a finer one must be clearly better.
        if off < 0.5 * best.0 {
            best = (off, candidate);
        }
        if off <= ON_GRID * largest / candidate {
            break;
        }
    }
    Aligned { step: best.1, is_exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::leaf_law::law_of;
    use crate::leaves::Leaf;

    #[test]
    fn a_point_lies_on_the_bulk() {
        let at = |leaf: &Leaf, step: f64| bulk(&law_of(leaf).unwrap(), step);
        // Most of a Laplace law under P has the largest loss. A law narrower than the step is merged to a loss of 0.
        let laplace = Leaf::Laplace { x: 0.5 };
        assert!((at(&laplace, 1e-3) - 0.5).abs() < 1e-12 && at(&laplace, 3.0).abs() < 1e-12);
        let pure = Leaf::Pure { epsilon: 0.3 };
        assert!((at(&pure, 0.1) - 0.3).abs() < 1e-12);
        let rate = 1e-3;
        let sampled = Leaf::PoissonGaussian { rate, mu: 4.0 };
        let found = at(&sampled, 0.01);
        assert!(found > (-rate).ln_1p() && found < -0.9 * rate, "{found}");
    }
}
