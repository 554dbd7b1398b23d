//! The tree mechanism: each step contributes to one noisy node per level.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog, LogId, NoiseMultiplier};
use nalgebra::RealField;

use super::Participation;
use super::stream_grid::StreamGrid;
use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, dimension, positive_normal};
use crate::mechanism::PrivacyEvent;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::sqrt_up;
use crate::sensitivity::L2Sensitivity;

/// Number of bits of the inputs' grid below that of the noise.
const FINE_BITS: u32 = 20;
/// Maximum number of steps of a stream.
const MOST_STEPS: u64 = 1 << 40;

/// Releases all prefix sums of a stream of `T` vectors: each node of a binary tree over the steps is the sum of its
/// leaves with its own Gaussian noise, and a prefix is the sum of at most `log2(T + 1)` nodes.
///
/// # Formula
/// ```text
/// node(l, j) = Σ x_t over t in (j 2^l, (j+1) 2^l] + N(0, s² I),   l < h = ⌊log2 T⌋ + 1
/// prefix(t) = Σ over the bits l of t of the node of 2^l steps that ends at t with its lower bits cleared
/// ```
/// With [variance reduction](Self::with_variance_reduction) a node's estimate is the best linear combination of its own noisy
/// value and the sum of its children's estimates; its variance is `s² 2^l / (2^(l+1) - 1)` instead of `s²`.
///
/// # Privacy
/// A step is in one node per level, so that a record in one step changes the vector of all nodes by at most `C √h`. A record in
/// `k` steps, of which at most `m_l` fall into one node of level `l`, changes the nodes of that level by at most
/// ```text
/// C √(Σ_v a_v²),   Σ_v a_v = k,  a_v <= m_l   ⟹   at most C √(⌊k/m_l⌋ m_l² + (k mod m_l)²),
/// ```
/// since the sum of squares is convex, hence largest if the counts are as unequal as possible. The levels' squares add up. One
/// event `Gaussian { std_dev: s, sensitivity }` covers the stream, including adaptive inputs; see [`continual`](super).
/// Restarting is a new [`start`](Self::start), hence a separate event: `k` epochs with one tree each are `k` events, whose
/// composition is exact.
///
/// The noise is part of the mechanism: a node's value is formed in integers, released once, and used in all prefixes.
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, EventLog, NoiseMultiplier, ZeroOut};
/// use dp_mechanisms::continual::{Participation, TreeAggregation};
/// use dp_mechanisms::{Bounded, L2Sensitivity, OsSeeded};
///
/// let each = L2Sensitivity::<ZeroOut>::new(1.0)?;
/// let tree = TreeAggregation::from_noise_multiplier(each, 1, 1000, Participation::once(), NoiseMultiplier::new(2.0)?)?;
/// assert!((tree.sensitivity().get() - 10f64.sqrt()).abs() < 1e-12);
/// assert_eq!(tree.nodes_in_prefix(500), 6);
///
/// let (mut log, mut rng) = (EventLog::new(), OsSeeded::new()?);
/// let mut session = tree.start(&mut log, &mut rng);
/// for step in 0..3 {
///     let sum = Bounded::with_proven_sensitivity(vec![f64::from(step)], each);
///     let prefix = session.step(sum, &mut log, &mut rng)?;
///     assert_eq!(prefix.get().len(), 1);
/// }
/// assert_eq!(log.entries().len(), 1);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// C. Dwork, M. Naor, T. Pitassi, G. N. Rothblum, 2010; T.-H. H. Chan, E. Shi, D. Song, 2011. J. Honaker, "Efficient use
/// of differentially private binary trees", TPDP 2015, section 3.2, estimation from below.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::continual::TreeAggregationRecord",
        into = "crate::record::continual::TreeAggregationRecord",
        bound = ""
    )
)]
pub struct TreeAggregation<A: Adjacency> {
    each: L2Sensitivity<A>,
    dim: usize,
    steps: u64,
    participation: Participation,
    grid: StreamGrid<A>,
    reduced: bool,
}

impl<A: Adjacency> TreeAggregation<A> {
    /// Creates the mechanism for `steps` vectors of `dim` coordinates, to which a record contributes at most `each` per step,
    /// with noise of this standard deviation on each node.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::OutOfRange`] unless `steps` is in `1..=2^40`; [`Error::NotFinite`],
    /// [`Error::NotPositive`] or [`Error::TooSmall`] for the noise; [`Error::ScaleOverflow`].
    pub fn from_std_dev(
        each: L2Sensitivity<A>,
        dim: usize,
        steps: u64,
        participation: Participation,
        std_dev: f64,
    ) -> Result<Self, Error> {
        let (spread, growth) = checked(dim, steps, participation)?;
        let std_dev = positive_normal("standard deviation", std_dev)?;
        let grid = StreamGrid::new(each, dim as u64, spread, std_dev, FINE_BITS, growth)?;
        Ok(Self { each, dim, steps, participation, grid, reduced: false })
    }

    /// As [`from_std_dev`](Self::from_std_dev), with noise of at least `noise_multiplier` times the sensitivity of all nodes
    /// together.
    ///
    /// # Errors
    /// As [`from_std_dev`](Self::from_std_dev).
    pub fn from_noise_multiplier(
        each: L2Sensitivity<A>,
        dim: usize,
        steps: u64,
        participation: Participation,
        noise_multiplier: NoiseMultiplier,
    ) -> Result<Self, Error> {
        let (spread, growth) = checked(dim, steps, participation)?;
        let noise_multiplier = positive_normal("noise multiplier", noise_multiplier.get())?;
        let grid = StreamGrid::from_noise_multiplier(each, dim as u64, spread, noise_multiplier, FINE_BITS, growth)?;
        Ok(Self { each, dim, steps, participation, grid, reduced: false })
    }

    /// Estimates each node also from all nodes below it: less error for the same cost, but two noisy nodes per step instead of
    /// one.
    pub fn with_variance_reduction(self) -> Self {
        Self { reduced: true, ..self }
    }

    /// Sets the noise mode; the default is exact noise.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for a mode that is not implemented.
    pub fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(Self { grid: self.grid.with_noise_mode(mode)?, ..self })
    }

    /// Logs the cost of the whole stream and starts it.
    pub fn start<R: ReleaseRng + ?Sized>(&self, log: &mut EventLog<A>, rng: &mut R) -> TreeSession<A> {
        let cost = Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() };
        release::record(cost, log, rng);
        TreeSession { paid_in: log.id(), tree: self.clone(), step: 0, levels: Vec::new() }
    }

    /// Returns the largest contribution of a record to one step.
    pub fn each(&self) -> L2Sensitivity<A> {
        self.each
    }

    /// Returns the number of coordinates.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the steps in which a record may take part.
    pub fn participation(&self) -> Participation {
        self.participation
    }

    /// Returns whether nodes are also estimated from all nodes below them.
    pub fn is_variance_reduced(&self) -> bool {
        self.reduced
    }

    /// Returns the number of levels, `⌊log2 T⌋ + 1`.
    pub fn levels(&self) -> u32 {
        levels(self.steps)
    }

    /// Returns the number of nodes whose sum is the prefix at step `t`.
    pub fn nodes_in_prefix(&self, t: u64) -> u32 {
        t.count_ones()
    }

    /// Returns the sensitivity of all nodes together.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.grid.noise().sensitivity()
    }

    /// Returns the standard deviation of the noise on one node.
    pub fn std_dev(&self) -> f64 {
        self.grid.noise().std_dev()
    }

    /// Returns the standard deviation of each coordinate of the prefix at step `t`.
    ///
    /// ```text
    /// s √(Σ over the bits l of t of v_l),   v_l = 1, or 2^l / (2^(l+1) - 1) with variance reduction
    /// ```
    pub fn error(&self, t: u64) -> f64 {
        let variance = |level: u32| if self.reduced { reduced_variance(level) } else { 1.0 };
        let bits = (0..u64::BITS).filter(|level| t >> level & 1 == 1);
        self.std_dev() * bits.map(variance).sum::<f64>().sqrt()
    }

    /// Returns the noise mode.
    pub fn noise_mode(&self) -> NoiseMode {
        self.grid.noise_mode()
    }
}

impl<A: Adjacency> PrivacyEvent for TreeAggregation<A> {
    /// Returns the event of the whole stream.
    fn event(&self) -> DpEvent {
        self.grid.noise().event()
    }
}

/// Returns `⌊log2 steps⌋ + 1`.
fn levels(steps: u64) -> u32 {
    u64::BITS - steps.leading_zeros()
}

/// Checks the public sizes; returns the nodes' sensitivity for contributions of norm 1, and the number of bits by which a sum of
/// all steps exceeds one step.
fn checked(dim: usize, steps: u64, participation: Participation) -> Result<(f64, u32), Error> {
    dimension(dim as u64)?;
    if !(1..=MOST_STEPS).contains(&steps) {
        return Err(Error::OutOfRange { name: "steps", value: steps as f64, range: "1..=2^40" });
    }
    let all = u128::from(participation.most_among(steps));
    let squares: u128 = (0..levels(steps))
        .map(|level| {
            let in_node = u128::from(participation.most_among(1 << level)).min(all);
            all / in_node * in_node * in_node + (all % in_node).pow(2)
        })
        .sum();
    // Rounded up above 2^53.
    let squares = if squares <= 1 << 53 { squares as f64 } else { (squares as f64).next_up() };
    Ok((sqrt_up(squares), levels(steps)))
}

/// Returns the variance of the best estimate of a node with `level` levels below it, for noise of variance 1 on each.
///
/// Its own value has variance 1, the sum of its children's estimates `2 v(level - 1)`; inverses add:
/// `1 / v = 1 + 1 / (2 v(level - 1))`.
fn reduced_variance(level: u32) -> f64 {
    let leaves = 2f64.powi(level as i32);
    leaves / (2.0 * leaves - 1.0)
}

/// One level of the tree with an open node.
struct Level {
    /// The sum of the open node's finished half, in fine steps. Secret.
    sum: Vec<i128>,
    /// The estimate of that half, which is released.
    estimate: Vec<f64>,
    filled: bool,
}

/// A stream in progress. Secret, because it holds sums that are not yet released.
pub struct TreeSession<A: Adjacency> {
    paid_in: LogId,
    tree: TreeAggregation<A>,
    step: u64,
    levels: Vec<Level>,
}

impl<A: Adjacency> TreeSession<A> {
    /// Releases the sum of all vectors so far, including the next one.
    ///
    /// The cost is in the log already; the assumptions of the vector's sensitivity are added to the log here, so that it must be
    /// the same log.
    ///
    /// # Errors
    /// [`Error::SessionOver`] after the last step; [`Error::OtherLog`] for any log other than that of the start, including copies
    /// of it; [`Error::DimensionMismatch`]; [`Error::SensitivityExceeded`]; [`Error::NonFiniteInput`]. In these cases nothing is
    /// released, and the stream continues with the next vector.
    pub fn step<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &mut self,
        input: Bounded<Vec<F>, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<f64>>, Error> {
        if self.step == self.tree.steps {
            return Err(Error::SessionOver { what: "steps", most: self.tree.steps });
        }
        release::prepaid(input, self.tree.each, self.paid_in, log, rng, |value, rng| {
            additive::check_vector(&value)?;
            if value.len() != self.tree.dim {
                let (expected, found) = (self.tree.dim as u64, value.len() as u64);
                return Err(Error::DimensionMismatch { expected, found });
            }
            self.advance(self.tree.grid.input(&value), rng)
        })
    }

    /// Closes all nodes that end with this step, and sums the estimates of the nodes of the prefix.
    fn advance<R: ReleaseRng + ?Sized>(&mut self, leaf: Vec<i128>, rng: &mut R) -> Result<Vec<f64>, Error> {
        let step = self.step + 1;
        // The bits of `step - 1` below this one are all ones: that many levels exist and are filled.
        let top = (step.trailing_zeros() as usize).min(self.levels.len());
        let reduced = self.tree.reduced;
        // The estimate of the highest node that ends here; with variance reduction, computed from those below it.
        let mut sum = leaf;
        let mut estimate = if reduced || top == 0 { self.noisy(&sum, rng)? } else { Vec::new() };
        for (level, half) in (1u32..).zip(&self.levels[..top]) {
            sum.iter_mut().zip(&half.sum).for_each(|(sum, half)| *sum += half);
            if reduced {
                // The weight of a value is its inverse variance divided by the sum of both; its own variance is 1.
                let own = reduced_variance(level);
                let node = self.noisy(&sum, rng)?;
                for ((estimate, &left), node) in estimate.iter_mut().zip(&half.estimate).zip(node) {
                    *estimate = own * node + (1.0 - own) * (left + *estimate);
                }
            } else if level as usize == top {
                estimate = self.noisy(&sum, rng)?;
            }
        }
        // No error is possible from here on.
        self.step = step;
        self.levels[..top].iter_mut().for_each(|level| level.filled = false);
        let closed = Level { sum, estimate, filled: true };
        match self.levels.get_mut(top) {
            Some(level) => *level = closed,
            None => self.levels.push(closed),
        }
        let mut prefix = vec![0.0; self.tree.dim];
        for level in self.levels.iter().filter(|level| level.filled) {
            prefix.iter_mut().zip(&level.estimate).for_each(|(prefix, part)| *prefix += part);
        }
        Ok(prefix)
    }

    /// Returns a node's value with its noise.
    fn noisy<R: ReleaseRng + ?Sized>(&self, sum: &[i128], rng: &mut R) -> Result<Vec<f64>, Error> {
        let grid = &self.tree.grid;
        let noisy = grid.add_noise(sum, FINE_BITS, rng)?;
        Ok(noisy.into_iter().map(|steps| grid.position(steps)).collect())
    }

    /// Returns the number of steps taken.
    pub fn steps_taken(&self) -> u64 {
        self.step
    }
}

#[cfg(test)]
mod tests;
