//! Composition of discretised privacy loss distributions, with an upper and a lower bound.
//!
//! Each part's loss law is discretised on a common grid twice, once as a law that dominates it and once as one that it dominates
//! ([`lattice`]); both compositions are then exact up to bounded rounding ([`spectrum`]). The grid is refined until the two
//! results agree to [`WIDTH`], or until the limit on work.
//!
//! With grid step h and one release's loss of standard deviation s, the width relative to epsilon is about `h^2/(8
//! s^2)`, whatever the number of releases: both laws keep the exact means and differ in variance, by `h^2/6` more and
//! `h^2/12` less.
//!
//! On a grid too coarse for most of the mass, as in a composition with a release from a small sample, a lower law of least loss in
//! the mean may lose all rare large losses, which decide a small delta. If the two results stay far apart, the laws are
//! discretised again on grids with a point on each law's bulk, with lower laws that keep rare losses ([`Grids::KeepingRare`]).
//! Where one large loss decides, a bound without a grid is closer ([`largest`]).

mod fft;
mod largest;
mod lattice;
mod range;
mod spectrum;
mod tilt;

use core::cell::RefCell;

use fft::Fft;
use lattice::{Discretised, Grid, Masses};
use range::{LOG_OUTSIDE, Outside, aligned_step, bulk, offset, range};
use spectrum::{Aliases, PartSide, Side};
pub(super) use tilt::Question;
use tilt::{Cumulants, Saddle, charge};

use super::ends::{Ends, WIDE};
use super::kept::{Kept, Size, WIDENING};
use super::leaf_law::law_of;
use crate::leaves::Leaves;
use crate::loss_law::{Direction, Law};
use crate::work;

/// Largest index; beyond it sums of indices could overflow or lose their unit.
const MAX_INDEX: u64 = 1 << 50;

/// Target relative distance of the two results for epsilon, or for the logarithm of delta over the tilt.
const WIDTH: f64 = 2e-4;

/// Number of cells of the first, coarse grid.
const COARSE_CELLS: f64 = 1024.0;

/// Least number of cells for each part; fewer give no result.
const LEAST_CELLS: f64 = 32.0;

/// The permitted cost of a grid.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Maximum number of cells of all parts' grids together.
    cells: f64,
    /// Maximum number of frequencies of all parts together.
    frequencies: f64,
    /// Maximum length of a transform.
    length: f64,
}

/// The effort for every evaluation.
const MODEST: Effort = Effort { cells: 1.3e5, frequencies: 5.3e5, length: (1 << 17) as f64 };

/// The effort if it is expected to bring the ends within [`WORTH`] of each other.
const FULL: Effort = Effort { cells: 1e6, frequencies: 4.2e6, length: (1 << 20) as f64 };

/// Relative distance that the ends must reach for full effort.
const WORTH: f64 = 0.1;

/// Steps for a cell in addition to its law's two thresholds: both laws' bins, and the searches for a tilt.
const STEPS_PER_CELL: f64 = 1500.0;

/// Steps for a frequency in each part: transforms, powers, and the searches for an epsilon.
const STEPS_PER_FREQUENCY: f64 = 700.0;

impl Effort {
    /// Returns this effort, or the effort that `steps` allow if that is less.
    fn within(self, steps: f64, per_cell: f64) -> Self {
        let frequencies = self.frequencies.min(0.5 * steps / STEPS_PER_FREQUENCY);
        Self {
            cells: self.cells.min(0.5 * steps / per_cell).max(16.0),
            frequencies: frequencies.max(16.0),
            length: self.length.min(frequencies).max(16.0),
        }
    }
}

/// Relative distance of the ends on the first grid above which finer grids rarely bring them together.
const FAR: f64 = 0.5;

/// The choice of grids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grids {
    /// All grids that bring the ends closer.
    All,
    /// No further grids once one leaves the ends [`FAR`] apart.
    Promising,
    /// All grids, with lower laws that keep rare losses. Those of laws without rare losses lie farther below than usual.
    KeepingRare,
}

/// Maximum number of grids.
const MAX_GRIDS: u32 = 5;

/// Share of the limit on work for the first direction: the other one mostly has to be shown to be below it.
const FIRST_SHARE: f64 = 0.75;

/// Logarithm of the least delta with close bounds; bounds on smaller deltas are not close.
const LEAST_LOG_DELTA: f64 = -690.0;

/// Maximum number of reductions of a tilt for a shorter window.
const MAX_EASING: u32 = 8;

/// Logarithm of the precision that these reductions may lose.
const MAX_LOG_LOSS: f64 = 12.0;

/// Maximum number of cached compositions tried for one evaluation, the nearest first.
const MAX_KEPT: usize = 2;

/// All releases, as the loss laws of the parts, in each distinct direction.
#[derive(Debug, Clone)]
pub(crate) struct Composed {
    directions: Vec<OneWay>,
}

/// The laws of one direction, with their cached compositions.
#[derive(Debug, Clone)]
struct OneWay {
    parts: Vec<(Law, u64)>,
    kept: Kept<Composition>,
}

impl Composed {
    /// Prepares the composition; `None` if some part has no dominating pair that could be composed.
    pub(crate) fn new(leaves: &Leaves) -> Option<Self> {
        let mut merged: Leaves = Vec::new();
        for (leaf, count) in leaves {
            match merged.iter_mut().find(|(known, times)| known == leaf && times.checked_add(*count).is_some()) {
                Some((_, times)) => *times += count,
                None => merged.push((leaf.clone(), *count)),
            }
        }
        let laws: Vec<(Law, u64)> =
            merged.iter().map(|(leaf, count)| Some((law_of(leaf)?, *count))).collect::<Option<_>>()?;
        let directed = |direction: Direction| OneWay {
            parts: laws.iter().map(|(law, count)| (law.clone().directed(direction), *count)).collect(),
            kept: Kept::default(),
        };
        let directions = if laws.iter().all(|(law, _)| law.is_symmetric()) {
            vec![directed(Direction::Remove)]
        } else {
            vec![directed(Direction::Remove), directed(Direction::Add)]
        };
        Some(Self { directions })
    }

    /// Returns a lower bound on the result, by the largest loss alone: see [`largest`].
    pub(super) fn lower_end(&self, question: Question) -> f64 {
        let ends = self.directions.iter().map(|direction| largest::lower_end(&direction.parts, question));
        ends.fold(question.trivial().0, f64::max)
    }

    /// Returns bounds on the larger of both directions' results, which is known to be at least `floor`; `None` if a direction is
    /// not promising.
    pub(super) fn ends(&self, question: Question, floor: f64, grids: Grids) -> Option<Ends> {
        let mut ends = Ends { lower: floor, upper: question.trivial().0 };
        for (index, direction) in self.directions.iter().enumerate() {
            let share = if index + 1 < self.directions.len() { FIRST_SHARE } else { 1.0 };
            let answer = || direction.answer(question, ends.lower, grids);
            let (lower, upper) = work::limited(share * work::allowance(), answer).value?;
            ends = ends.larger(Ends { lower, upper });
        }
        Some(ends)
    }
}

impl OneWay {
    /// Returns a cached composition's result if it is close, otherwise that of a new composition; `None` if that is not
    /// promising.
    fn answer(&self, question: Question, floor: f64, grids: Grids) -> Option<(f64, f64)> {
        let both = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.min(b.1));
        let trivial = question.trivial();
        let mut known = trivial;
        let mut ready = self.kept.ready();
        ready.retain(|composition| composition.keeps_rare == (grids == Grids::KeepingRare));
        ready.sort_by(|a, b| a.distance(question).total_cmp(&b.distance(question)));
        for composition in ready.iter().take(MAX_KEPT) {
            let found = composition.answer(question);
            known = both(known, found);
            let width = relative_width(question, &composition.saddle, found);
            if width <= (WIDENING * composition.width).max(WIDTH) || known.1 <= floor {
                return Some(known);
            }
        }
        let found = self.kept.keeping(|| match answer(&self.parts, question, floor, grids).unwrap_or(Found::Nothing) {
            Found::Ends(ends, composition) => (Some(ends), composition.map(|composition| *composition)),
            Found::Nothing => (Some(trivial), None),
            Found::Unpromising => (None, None),
        });
        Some(both(known, found?))
    }
}

/// Returns the distance of two ends: relative to epsilon, or to the tilt if they are logarithms of delta.
fn relative_width(question: Question, saddle: &Saddle, (lower, upper): (f64, f64)) -> f64 {
    match question {
        Question::DeltaAt(epsilon, _) => (upper - lower) / (saddle.tilt * epsilon).max(0.1),
        Question::EpsilonAt(..) => (upper - lower) / upper,
    }
}

/// The result of a direction's laws.
enum Found {
    /// A lower and an upper bound, with the composition that gave the closest ones.
    Ends((f64, f64), Option<Box<Composition>>),
    /// Even the coarsest grid gives no result.
    Nothing,
    /// See [`Grids::Promising`].
    Unpromising,
}

/// Returns one direction's result with the closest composition, or `floor`, a lower bound on both directions' results, if that is
/// larger. The upper end is computed no more finely than needed to see that it is below `floor`. `None` for [`Found::Nothing`].
fn answer(parts: &[(Law, u64)], question: Question, floor: f64, grids: Grids) -> Option<Found> {
    let releases: f64 = parts.iter().map(|(_, count)| *count as f64).sum();
    if !(releases > 0.0) {
        let nothing = match question {
            Question::DeltaAt(..) => (f64::NEG_INFINITY, f64::NEG_INFINITY),
            Question::EpsilonAt(..) => (0.0, 0.0),
        };
        return Some(Found::Ends(nothing, None));
    }
    let (allowed, before) = (work::allowance(), work::spent());
    let per_cell = STEPS_PER_CELL + 2.0 * parts.iter().map(|(law, _)| law.steps()).fold(0.0, f64::max);
    let affordable = |effort: Effort| effort.within(allowed - (work::spent() - before), per_cell);
    let mut log_delta = match question {
        // Nothing may be omitted until the scale of delta is known.
        Question::DeltaAt(..) => LEAST_LOG_DELTA,
        Question::EpsilonAt(log_delta, _) => log_delta,
    };
    let coarse = COARSE_CELLS.min(0.5 * allowed / (per_cell * parts.len() as f64));
    if coarse < LEAST_CELLS {
        work::cut_short();
        return None;
    }
    if coarse < COARSE_CELLS {
        work::change();
    }
    let keeps_rare = grids == Grids::KeepingRare;
    // The distance of the ends to reach and the largest to judge by, and the factor by which a finer step must be smaller.
    let (target, widest, worthwhile) = if keeps_rare { (WIDE, 1.0, 0.5) } else { (WIDTH, f64::INFINITY, 0.9) };
    let mut discretisation = Discretisation::coarse(parts, Outside::new(log_delta, releases), coarse, keeps_rare)?;
    // Far below the mean loss delta is nearly 1, but a tilt for so small an epsilon needs too long a window.
    if let (true, Question::DeltaAt(epsilon, _)) = (keeps_rare, question)
        && let Some(larger) = discretisation.typical_loss().filter(|larger| epsilon < *larger)
    {
        return match answer(parts, Question::DeltaAt(larger, 0.0), floor, grids)? {
            Found::Ends((lower, _), _) => Some(Found::Ends((lower, 0.0), None)),
            other => Some(other),
        };
    }
    let mut best: Option<((f64, f64), Composition)> = None;
    let mut width_before = f64::INFINITY;
    // True once the limit on work made a grid coarser.
    let mut restricted = false;
    for _ in 0..MAX_GRIDS {
        let Some(mut saddle) = discretisation.saddle(question) else { break };
        match (question, &best) {
            (Question::DeltaAt(..), _) => log_delta = saddle.log_delta.clamp(LEAST_LOG_DELTA, 0.0),
            // Where the curve is nearly flat, the estimate may be far too large, and its window too short.
            (Question::EpsilonAt(..), Some(((_, upper), _))) => saddle.epsilon = saddle.epsilon.min(*upper),
            (Question::EpsilonAt(..), None) => {}
        }
        let outside = Outside::new(log_delta, releases);
        // The first grid serves only to find the saddle point, unless it is exact.
        if best.is_none() && !discretisation.is_exact {
            let step = (4.0 * WIDTH * saddle.variance / releases).sqrt();
            let finest = discretisation.finest(&saddle, outside, MODEST);
            let affordable = discretisation.finest(&saddle, outside, affordable(MODEST));
            restricted |= affordable > finest && affordable > step;
            discretisation = Discretisation::new(parts, step.max(affordable), outside, keeps_rare)?;
        }
        let Some(mut composition) = discretisation.compose(&saddle, log_delta, affordable(FULL).length) else { break };
        let found = composition.answer(question);
        composition.width = relative_width(question, &saddle, found);
        let found = (found.0.max(floor), found.1);
        let ((lower, upper), closest) = match best {
            Some(((lower, upper), before)) => {
                let closest = if WIDENING * before.width < composition.width { before } else { composition };
                ((found.0.max(lower), found.1.min(upper)), closest)
            }
            None => (found, composition),
        };
        best = Some(((lower, upper), closest));
        let width = relative_width(question, &saddle, (lower, upper));
        if upper <= floor {
            return Some(Found::Ends((lower, upper), None));
        }
        if grids == Grids::Promising && width > FAR {
            return Some(Found::Unpromising);
        }
        if !(width > target) || discretisation.is_exact || discretisation.has_gap() {
            break;
        }
        if !(keeps_rare || width < 0.9 * width_before || width_before.is_infinite()) {
            // The distance of the ends is not due to the grid. With rare losses it varies: the bulk is rounded by chance.
            break;
        }
        width_before = width;
        let finer = discretisation.step * (0.7 * (WIDTH / width.min(1e3)).sqrt()).clamp(1.0 / 16.0, 0.6);
        let before = discretisation.step;
        let within = |effort| finer.max(discretisation.finest(&saddle, outside, effort));
        let (modest, full) = (within(MODEST), within(FULL));
        // If the mass outside of any grid is not negligible, no grid brings the ends together.
        let width = width.min(widest);
        let reaches = outside.is_negligible() && width * (full / before).powi(2) <= WORTH;
        let wanted = if reaches { full } else { modest };
        let step = wanted.max(within(affordable(if reaches { FULL } else { MODEST })));
        restricted |= step > wanted;
        if !(step < worthwhile * before) {
            break;
        }
        // An aligned grid may be too fine.
        let Some(finer) = Discretisation::new(parts, step, outside, keeps_rare) else { break };
        discretisation = finer;
    }
    let ((lower, upper), composition) = best?;
    if restricted {
        let is_close = relative_width(question, &composition.saddle, (lower, upper)) <= WIDTH;
        if is_close { work::change() } else { work::cut_short() }
    }
    Some(Found::Ends((lower, upper), Some(Box::new(composition))))
}

/// All parts' laws on one grid.
struct Discretisation<'a> {
    parts: &'a [(Law, u64)],
    step: f64,
    /// True if all losses lie on the grid, so that refining it gains nothing.
    is_exact: bool,
    keeps_rare: bool,
    laws: Vec<Discretised>,
    /// The sum of all releases' offsets, and a bound on its rounding.
    offset: f64,
    offset_error: f64,
    /// The cumulants computed so far, by the bits of their tilts.
    known: RefCell<Vec<(u64, Cumulants)>>,
}

impl<'a> Discretisation<'a> {
    fn coarse(parts: &'a [(Law, u64)], outside: Outside, cells: f64, keeps_rare: bool) -> Option<Self> {
        let widest = parts
            .iter()
            .map(|(law, _)| {
                let (least, largest) = range(law, outside);
                largest - least
            })
            .fold(0.0, f64::max);
        Self::new(parts, widest.max(1e-290) / cells, outside, keeps_rare)
    }

    fn new(parts: &'a [(Law, u64)], step: f64, outside: Outside, keeps_rare: bool) -> Option<Self> {
        let aligned = aligned_step(parts.iter().map(|(law, _)| law), step);
        let step = aligned.step;
        if !(step > 0.0 && step.is_finite()) {
            return None;
        }
        let grids: Vec<Grid> = parts
            .iter()
            .map(|(law, _)| {
                let (least, largest) = range(law, outside);
                let offset = if keeps_rare && !aligned.is_exact { bulk(law, step) } else { offset(law) };
                let index = |loss: f64| (loss - offset) / step;
                // If the step is too small for the extent, the indices saturate and there are too many cells.
                let (least, largest) = (index(least).floor() as i64, index(largest).ceil() as i64);
                let (least, largest) = (least.saturating_sub(1), largest.saturating_add(1));
                Grid { offset, step, least, largest, keeps_rare }
            })
            .collect();
        let farthest = |grid: &Grid| grid.least.unsigned_abs().max(grid.largest.unsigned_abs());
        if grids.iter().any(|grid| farthest(grid) > MAX_INDEX) {
            return None;
        }
        let cells: f64 = grids.iter().map(|grid| grid.largest as f64 - grid.least as f64).sum();
        if !(cells <= 1.1 * FULL.cells + 4.0 * parts.len() as f64) {
            return None;
        }
        let steps = |(law, grid): (&Law, &Grid)| (grid.largest - grid.least) as f64 * (2.0 * law.steps() + 300.0);
        work::charge(parts.iter().map(|(law, _)| law).zip(&grids).map(steps).sum());
        let laws = parts.iter().zip(&grids).map(|((law, _), grid)| Discretised::new(law, grid)).collect();
        let offset = parts.iter().zip(&grids).map(|((_, count), grid)| *count as f64 * grid.offset).sum();
        let offset_error = parts
            .iter()
            .zip(&grids)
            .map(|((_, count), grid)| *count as f64 * grid.offset.abs() * f64::EPSILON)
            .sum::<f64>();
        let offset_error = offset_error * (2.0 + parts.len() as f64);
        let known = RefCell::default();
        Some(Self { parts, step, is_exact: aligned.is_exact, keeps_rare, laws, offset, offset_error, known })
    }

    /// Returns the least step of a grid that costs no more than `effort`.
    fn finest(&self, saddle: &Saddle, outside: Outside, effort: Effort) -> f64 {
        let extent: f64 = self
            .parts
            .iter()
            .map(|(law, _)| {
                let (least, largest) = range(law, outside);
                largest - least
            })
            .sum();
        let window = self.aliases(saddle).least_window(saddle.epsilon, saddle.log_delta + LOG_OUTSIDE);
        let length = effort.length.min(effort.frequencies / self.parts.len() as f64);
        (window / length).max(extent / effort.cells)
    }

    /// Returns the tilt for an evaluation: that of the saddle point, unless rare large losses make it need a long window.
    fn saddle(&self, question: Question) -> Option<Saddle> {
        let cumulants = |tilt| self.cumulants(tilt);
        let mut saddle = Saddle::find(cumulants, self.step, question)?;
        let window = |saddle: &Saddle| {
            self.aliases(saddle).least_window(saddle.epsilon, saddle.log_delta.max(LEAST_LOG_DELTA) + LOG_OUTSIDE)
        };
        let mut needed = window(&saddle);
        for _ in 0..MAX_EASING {
            let eased = saddle.eased(cumulants, self.step)?;
            let less = window(&eased);
            if !(less < 0.9 * needed && eased.log_loss(cumulants, self.step) < MAX_LOG_LOSS) {
                break;
            }
            (saddle, needed) = (eased, less);
        }
        // A tilt that separates neighbouring points by more gains nothing above, and may leave only the largest loss below.
        if self.keeps_rare && saddle.tilt * self.step > 1.0 {
            return saddle.at_tilt(self.step.recip(), cumulants, self.step);
        }
        Some(saddle)
    }

    /// Returns a loss that the total exceeds with a probability near 1.
    fn typical_loss(&self) -> Option<f64> {
        let Cumulants { mean, variance, .. } = self.cumulants(0.0)?;
        Some((mean - 8.0 * variance.sqrt()) * self.step - 40.0)
    }

    /// Returns whether the results stay apart on every grid.
    fn has_gap(&self) -> bool {
        self.parts.iter().any(|(law, _)| !matches!(law, Law::Known(_)))
    }

    fn uppers(&self) -> impl Iterator<Item = (&Masses, f64)> {
        self.laws.iter().zip(self.parts).map(|(law, (_, count))| (&law.upper, *count as f64))
    }

    /// Returns the upper laws' cumulants, computed once for each tilt; each use is charged, so that a limit does not depend on
    /// the cache.
    fn cumulants(&self, tilt: f64) -> Option<Cumulants> {
        let bits = tilt.to_bits();
        let known = self.known.borrow().iter().find(|(other, _)| *other == bits).map(|(_, cumulants)| *cumulants);
        if known.is_some() {
            self.uppers().for_each(|(law, _)| charge(law));
            return known;
        }
        let found = Cumulants::of(self.uppers(), tilt)?.moved(self.offset / self.step, tilt);
        self.known.borrow_mut().push((bits, found));
        Some(found)
    }

    fn aliases(&self, saddle: &Saddle) -> Aliases {
        Aliases::new(|tilt| self.cumulants(tilt), self.step, saddle.tilt)
    }

    /// Returns whether a part is omitted from the lower side, which is sound: on grids that keep rare losses, if no
    /// lower law is known, or if rounding down its bulk costs more at the tilt than its rare losses gain, so that its moment is
    /// below 1, the moment of no release.
    fn is_omitted(&self, law: &Discretised, saddle: &Saddle) -> bool {
        let log_moment = || {
            let found = Cumulants::of([(law.lower.as_ref()?, 1.0)].into_iter(), saddle.tilt * self.step)?;
            Some(found.log_moment + saddle.tilt * law.offset)
        };
        self.keeps_rare && log_moment().is_none_or(|log_moment| log_moment < 0.0)
    }

    /// Returns the composition at a tilt, with transforms not much longer than `longest`.
    fn compose(&self, saddle: &Saddle, log_delta: f64, longest: f64) -> Option<Composition> {
        let aliases = self.aliases(saddle);
        let window = aliases.least_window(saddle.epsilon, log_delta + LOG_OUTSIDE);
        let length = (window / self.step).clamp(16.0, longest.min(FULL.length));
        let fft = Fft::new(length.log2().ceil() as u32);
        let omitted: Vec<bool> = self.laws.iter().map(|law| self.is_omitted(law, saddle)).collect();
        let laws =
            || self.laws.iter().zip(self.parts).zip(&omitted).map(|((law, (_, n)), omitted)| (law, *n, *omitted));
        let lower_offset: f64 = laws().filter(|law| law.2).map(|(law, count, _)| count as f64 * law.offset).sum();
        let lower_offset = self.offset - lower_offset;
        // The lower laws need their own cumulants: losses above the grid are infinite in the upper laws, and excluded from their
        // moments, but lie at the grid's end in the lower laws.
        let lower_cumulants = |tilt| {
            let lowers = laws().filter(|law| !law.2).map(|(law, count, _)| Some((law.lower.as_ref()?, count as f64)));
            let lowers: Option<Vec<_>> = lowers.collect();
            Some(Cumulants::of(lowers?.into_iter(), tilt)?.moved(lower_offset / self.step, tilt))
        };
        let aliases =
            Aliases::new(lower_cumulants, self.step, saddle.tilt).with_window(fft.length() as f64 * self.step);
        let sides: Vec<_> = laws()
            .map(|(Discretised { upper, lower, .. }, count, omitted)| {
                (PartSide { masses: upper, count }, lower.as_ref().filter(|_| !omitted))
            })
            .collect();
        let (upper, lower) = spectrum::compose(&fft, self.step, saddle.tilt, &sides)?;
        let shift: f64 = self.laws.iter().zip(self.parts).map(|(law, (_, count))| *count as f64 * law.shift).sum();
        let shift = (shift + self.offset_error) * (1.0 + 1e-12);
        let largest: f64 =
            self.uppers().map(|(law, count)| count * (law.first + law.finite.len() as i64) as f64 * self.step).sum();
        let (step, offset, saddle, keeps_rare) = (self.step, self.offset, *saddle, self.keeps_rare);
        let (lower, width) = (lower.map(|lower| (lower, lower_offset)), f64::INFINITY);
        Some(Composition { saddle, step, offset, shift, largest, fft, upper, lower, aliases, width, keeps_rare })
    }
}

/// A composition on one grid at one tilt. It bounds the whole curve, closely near the epsilon for which the tilt was chosen.
#[derive(Debug)]
struct Composition {
    saddle: Saddle,
    step: f64,
    offset: f64,
    shift: f64,
    largest: f64,
    fft: Fft,
    upper: Side,
    /// The side below with its offset.
    lower: Option<(Side, f64)>,
    aliases: Aliases,
    /// [`relative_width`] at the evaluation for which it was made.
    width: f64,
    keeps_rare: bool,
}

impl Size for Composition {
    fn bytes(&self) -> usize {
        self.upper.bytes() + self.lower.as_ref().map_or(0, |(lower, _)| lower.bytes()) + 48 * self.fft.length()
    }
}

impl Composition {
    /// Returns the distance of an evaluation from the one for which the tilt was chosen, in the units of the evaluation.
    fn distance(&self, question: Question) -> f64 {
        match question {
            Question::DeltaAt(epsilon, _) => (epsilon - self.saddle.epsilon).abs(),
            Question::EpsilonAt(log_delta, _) => (log_delta - self.saddle.log_delta).abs(),
        }
    }

    /// Returns a lower and an upper bound.
    fn answer(&self, question: Question) -> (f64, f64) {
        let Self { saddle, step, offset, shift, largest, fft, upper, lower, aliases, .. } = self;
        let above = |epsilon: f64| log_upper(upper, fft, epsilon - offset - shift, *largest);
        let below = |epsilon: f64| {
            let epsilon = epsilon + shift;
            let log_alias = aliases.log_bound(epsilon);
            let found = lower.as_ref().map(|(side, offset)| side.log_lower(fft, epsilon - offset, log_alias));
            found.unwrap_or(f64::NEG_INFINITY)
        };
        match question {
            Question::DeltaAt(epsilon, _) => (below(epsilon), above(epsilon)),
            Question::EpsilonAt(low, high) => {
                let limit = (largest + offset).max(0.0) + shift + step;
                let (_, upper) = crossing(above, saddle, low, limit);
                let is_infinite = lower.as_ref().is_some_and(|(side, _)| side.infinite().ln() > high);
                let lower = if is_infinite { f64::INFINITY } else { crossing(below, saddle, high, limit).0 };
                (lower, upper)
            }
        }
    }
}

/// Returns the logarithm of the upper bound; beyond the largest finite loss, only infinite losses contribute.
fn log_upper(side: &Side, fft: &Fft, epsilon: f64, largest: f64) -> f64 {
    if epsilon > largest { side.infinite().ln() } else { side.log_upper(fft, epsilon) }
}

/// Maximum number of steps of the search for a crossing: each narrows the bracket, and its ends are sound at any time.
const MAX_STEPS: u32 = 80;

/// Target relative distance of the ends of a crossing.
const CLOSE: f64 = 1e-11;

/// A point at which a function was evaluated.
#[derive(Debug, Clone, Copy)]
struct Evaluated {
    point: f64,
    value: f64,
}

/// Returns two close points, with `f > target` at the first (or 0) and `f <= target` at the second (or infinity), for a function
/// that falls by about the tilt per unit.
fn crossing(f: impl Fn(f64) -> f64, saddle: &Saddle, target: f64, limit: f64) -> (f64, f64) {
    let exceeds = |value: f64| value > target;
    // The ends found so far.
    let (mut low, mut high): (Option<Evaluated>, Option<Evaluated>) = (None, None);
    let mut point = saddle.epsilon.clamp(0.0, limit);
    let mut reach = 1.0 / saddle.tilt;
    for _ in 0..MAX_STEPS {
        let value = f(point);
        if exceeds(value) {
            low = Some(Evaluated { point, value });
        } else {
            if point == 0.0 {
                return (0.0, 0.0);
            }
            high = Some(Evaluated { point, value });
        }
        point = match (low, high) {
            (Some(Evaluated { point: low, value: at_low }), Some(Evaluated { point: high, value: at_high })) => {
                if high - low <= CLOSE * high {
                    break;
                }
                let secant = low + (high - low) * (at_low - target) / (at_low - at_high);
                let newton = point + (value - target) / saddle.tilt;
                let inside = |x: f64| x > low && x < high;
                // A point a little beyond the secant's root, on alternating sides, narrows the bracket from both.
                let margin = 0.25 * CLOSE * high;
                let guess = if inside(secant) { secant } else { newton };
                let guess = if exceeds(value) { guess + margin } else { guess - margin };
                let middle = 0.5 * (low + high);
                if inside(guess) && (value - target).abs() < 0.5 { guess } else { middle }
            }
            (Some(Evaluated { point: low, value: at_low }), None) => {
                if low >= limit {
                    break;
                }
                let step = ((at_low - target) / saddle.tilt).min(reach).max(1e-9 * reach);
                reach *= 4.0;
                (low + step * (1.0 + 1e-6)).min(limit)
            }
            (None, Some(Evaluated { point: high, value: at_high })) => {
                let step = ((target - at_high) / saddle.tilt).min(reach).max(1e-9 * reach);
                reach *= 4.0;
                (high - step * (1.0 + 1e-6)).max(0.0)
            }
            (None, None) => break,
        };
    }
    (low.map_or(0.0, |end| end.point), high.map_or(f64::INFINITY, |end| end.point))
}

#[cfg(test)]
mod tests;
