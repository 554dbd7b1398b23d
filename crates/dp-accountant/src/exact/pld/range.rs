//! Which losses a grid must cover, and how fine a grid suits laws of a few losses.

use crate::exact::loss_law::Law;

/// What may be left outside of a grid, for one release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outside {
    above: f64,
    below: f64,
}

/// Less than this is not told from nothing.
const LEAST_OUTSIDE: f64 = 1e-300;

impl Outside {
    /// So little that all releases together change a delta of about `e^log_delta` negligibly.
    pub(super) fn new(log_delta: f64, releases: f64) -> Self {
        let above = (log_delta + super::LOG_OUTSIDE).exp() / releases;
        // Low losses are only rounded up, or left out of the lower law, which changes delta by their share.
        Self { above: above.max(LEAST_OUTSIDE), below: 1e-10 / releases }
    }

    /// Whether what is left outside above is as little as was wanted.
    pub(super) fn is_negligible(&self) -> bool {
        self.above > LEAST_OUTSIDE
    }
}

/// Losses further out than this are left outside in any case.
const FARTHEST: f64 = 1e6;

/// The least and the largest loss to cover.
pub(super) fn range(law: &Law, outside: Outside) -> (f64, f64) {
    let (least, largest) = law.support();
    let high = quantile(|loss| law.mass_outside(loss).0 <= outside.above);
    let low = -quantile(|loss| law.mass_outside(-loss).1 <= outside.below);
    (low.max(least.max(-FARTHEST)), high.min(largest.min(FARTHEST)))
}

/// About the least positive number from which on `is_enough` holds, from above.
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

/// A step, and whether all losses are multiples of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Aligned {
    pub(super) step: f64,
    pub(super) is_exact: bool,
}

/// How far from a point of the grid a loss may be to count as on it, relative to itself; the lattice charges more.
const ON_GRID: f64 = 3e-15;

/// Divisions of the least loss that are tried for an exact grid.
const MAX_DIVISIONS: u32 = 64;

/// How much finer than wanted an exact grid may be.
const FINER: f64 = 32.0;

/// With more losses than this no step comes near all of them.
const FEW: usize = 8;

/// Steps that are tried for a grid that is nearly exact.
const CANDIDATES: u32 = 2048;

/// Where a law's grid begins: at its least loss of positive probability, if it has such.
///
/// Each law may have a grid of its own, moved against the others', as long as the steps agree: the total is then on a
/// grid moved by the sum. A law of two losses is on a grid in any case.
pub(super) fn offset(law: &Law) -> f64 {
    let (atoms, _) = law.atoms();
    atoms.into_iter().reduce(f64::min).unwrap_or(0.0)
}

/// A step for laws some of whose losses have positive probability: one on whose multiples all losses lie, from each law's
/// [`offset`] on, if there is such; else one near the wanted `step`, but not above, on whose multiples those losses nearly
/// lie.
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
        // No loss at all: any grid is exact.
        return Aligned { step: if all_discrete { step.max(1e-9) } else { step }, is_exact: all_discrete };
    };
    let misalignment = |step: f64| {
        let off = |loss: &f64| (loss / step - (loss / step).round()).abs();
        losses.iter().map(off).fold(0.0, f64::max)
    };
    if all_discrete {
        for divisions in 1..=MAX_DIVISIONS {
            // The largest loss tells the step more precisely than the least.
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
