//! The matrix factorisation mechanism: noise on combinations of steps, chosen for a small error of prefix sums.

use std::collections::VecDeque;

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog, LogId, NoiseMultiplier};
use nalgebra::RealField;

use super::factor::COEFFICIENT_BITS;
use super::stream_grid::StreamGrid;
use super::{Factor, Participation};
use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, dimension, positive_normal};
use crate::mechanism::PrivacyEvent;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::sensitivity::L2Sensitivity;

/// Number of bits of the inputs' grid below that of the noise: with the coefficients' bits, those of a double's fraction.
const FINE_BITS: u32 = 52 - COEFFICIENT_BITS;

/// Releases `Cf G + Z` row by row, with `G` the stream of vectors, `Cf` a lower-triangular [`Factor`] and `Z` independent
/// Gaussian noise, and computes the stream's prefix sums from it.
///
/// # Formula
/// ```text
/// y_t = Σ_{i<=t} Cf[t,i] x_i + N(0, s² I)                      the release
/// w_t = (y_t - Σ_{i<t} Cf[t,i] w_i) / Cf[t,t]                  = x_t + (Cf^-1 Z)_t, by substitution
/// prefix(t) = w_1 + ... + w_t                                  = (A G)_t + (B Z)_t,  B = A Cf^-1
/// ```
///
/// # Privacy
/// Neighbours change `Cf G` by at most `each` times the factor's [sensitivity](super::FactorSensitivity). The event is one
/// `Gaussian { std_dev: s, sensitivity }` for the whole stream, including adaptive inputs; see [`continual`](super).
///
/// The commonly published `x_t + (Cf^-1 Z)_t` is a function of `Cf G + Z` in real arithmetic only: with rounded noise and rounded
/// coefficients neither its grid nor its law is that of the theorem. Here `y_t` itself is released: inputs are whole numbers of a
/// fine step, coefficients whole numbers of `2^-40`, so that `Cf G` is an integer combination, formed without rounding and then
/// released exactly as [`Gaussian`](crate::Gaussian) would. `w_t` and the prefix sums are computed from released numbers in
/// floating point, which is post-processing. The only rounding before the noise is the truncation of inputs to multiples of `f =
/// g 2^-12`, with `g` the step of the noise's grid; `f √d` is added to `each` for it.
///
/// # Examples
/// ```
/// use dp_accountant::{EventLog, NoiseMultiplier, ZeroOut};
/// use dp_mechanisms::continual::{Factor, MatrixFactorisation, Participation};
/// use dp_mechanisms::{Bounded, L2Sensitivity, OsSeeded};
///
/// // Three epochs of 20 batches in a fixed order; 8 bands.
/// let each = L2Sensitivity::<ZeroOut>::new(1.0)?;
/// let factor = Factor::banded_square_root(60, 8)?;
/// let epochs = Participation::repeated(3, 20)?;
/// let mechanism = MatrixFactorisation::from_noise_multiplier(factor, epochs, each, 2, NoiseMultiplier::new(1.0)?)?;
/// // Bands do not overlap: the three contributions add up like independent ones.
/// assert!((mechanism.sensitivity().get() / (3.0 * 1.71838f64).sqrt() - 1.0).abs() < 1e-5);
///
/// let (mut log, mut rng) = (EventLog::new(), OsSeeded::new()?);
/// let mut session = mechanism.start(&mut log, &mut rng);
/// let sum = Bounded::with_proven_sensitivity(vec![5.0, 1.0], each);
/// let released = session.step(sum, &mut log, &mut rng)?;
/// assert_eq!(released.get().prefix.len(), 2);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// C. Li, M. Hay, V. Rastogi, G. Miklau, A. McGregor, "Optimizing linear counting queries under differential privacy",
/// PODS 2010. S. Denisov, H. B. McMahan, J. Rush, A. Smith, A. G. Thakurta, 2022, Theorem 2.1, arXiv 2202.08312.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::continual::MatrixFactorisationRecord",
        into = "crate::record::continual::MatrixFactorisationRecord",
        bound = ""
    )
)]
pub struct MatrixFactorisation<A: Adjacency> {
    factor: Factor,
    participation: Participation,
    each: L2Sensitivity<A>,
    dim: usize,
    grid: StreamGrid<A>,
}

impl<A: Adjacency> MatrixFactorisation<A> {
    /// Creates the mechanism for vectors of `dim` coordinates, to which a record contributes at most `each` in each step in which
    /// it takes part, with noise of this standard deviation on each row.
    ///
    /// # Errors
    /// [`Error::Dimension`]; those of [`Factor::sensitivity`]; [`Error::NotFinite`], [`Error::NotPositive`] or
    /// [`Error::TooSmall`] for the noise; [`Error::ScaleOverflow`].
    pub fn from_std_dev(
        factor: Factor,
        participation: Participation,
        each: L2Sensitivity<A>,
        dim: usize,
        std_dev: f64,
    ) -> Result<Self, Error> {
        let d = dimension(dim as u64)?;
        let bound = factor.sensitivity(participation)?;
        let std_dev = positive_normal("standard deviation", std_dev)?;
        let grid = StreamGrid::new(each, d, bound.value, std_dev, FINE_BITS, factor.growth_bits())?;
        Ok(Self { factor, participation, each, dim, grid })
    }

    /// As [`from_std_dev`](Self::from_std_dev), with noise of at least `noise_multiplier` times the sensitivity of all rows
    /// together.
    ///
    /// # Errors
    /// As [`from_std_dev`](Self::from_std_dev).
    pub fn from_noise_multiplier(
        factor: Factor,
        participation: Participation,
        each: L2Sensitivity<A>,
        dim: usize,
        noise_multiplier: NoiseMultiplier,
    ) -> Result<Self, Error> {
        let d = dimension(dim as u64)?;
        let bound = factor.sensitivity(participation)?;
        let multiplier = positive_normal("noise multiplier", noise_multiplier.get())?;
        let growth = factor.growth_bits();
        let grid = StreamGrid::from_noise_multiplier(each, d, bound.value, multiplier, FINE_BITS, growth)?;
        Ok(Self { factor, participation, each, dim, grid })
    }

    /// Sets the noise mode; the default is exact noise.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for a mode that is not implemented.
    pub fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(Self { grid: self.grid.with_noise_mode(mode)?, ..self })
    }

    /// Logs the cost of the whole stream and starts it.
    pub fn start<R: ReleaseRng + ?Sized>(&self, log: &mut EventLog<A>, rng: &mut R) -> MatrixSession<A> {
        let cost = Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() };
        release::record(cost, log, rng);
        MatrixSession {
            paid_in: log.id(),
            mechanism: self.clone(),
            step: 0,
            inputs: VecDeque::new(),
            increments: VecDeque::new(),
            prefix: vec![0.0; self.dim],
        }
    }

    /// Returns the factor.
    pub fn factor(&self) -> &Factor {
        &self.factor
    }

    /// Returns the largest contribution of a record to one step.
    pub fn each(&self) -> L2Sensitivity<A> {
        self.each
    }

    /// Returns the number of coordinates.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the steps in which a record may take part.
    pub fn participation(&self) -> Participation {
        self.participation
    }

    /// Returns the sensitivity of all rows together.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.grid.noise().sensitivity()
    }

    /// Returns the standard deviation of the noise on each row.
    pub fn std_dev(&self) -> f64 {
        self.grid.noise().std_dev()
    }

    /// Returns the largest standard deviation of a prefix sum's coordinate.
    pub fn largest_error(&self) -> f64 {
        self.std_dev() * self.factor.largest_error()
    }

    /// Returns the root of the mean of the prefix sums' variances.
    pub fn rms_error(&self) -> f64 {
        self.std_dev() * self.factor.rms_error()
    }

    /// Returns the noise mode.
    pub fn noise_mode(&self) -> NoiseMode {
        self.grid.noise_mode()
    }
}

impl<A: Adjacency> PrivacyEvent for MatrixFactorisation<A> {
    /// Returns the event of the whole stream.
    fn event(&self) -> DpEvent {
        self.grid.noise().event()
    }
}

/// The release of one step of a stream.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StreamRelease {
    /// The step's own vector, with noise that later increments cancel in part.
    pub increment: Vec<f64>,
    /// The sum of all increments so far.
    pub prefix: Vec<f64>,
}

/// A stream in progress. Secret, because it holds the last inputs, as many as the factor has bands.
pub struct MatrixSession<A: Adjacency> {
    paid_in: LogId,
    mechanism: MatrixFactorisation<A>,
    step: usize,
    /// Inputs in fine steps, newest first.
    inputs: VecDeque<Vec<i128>>,
    /// Released increments, newest first.
    increments: VecDeque<Vec<f64>>,
    prefix: Vec<f64>,
}

impl<A: Adjacency> MatrixSession<A> {
    /// Releases the increment of the next vector and the sum of all so far.
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
    ) -> Result<Released<StreamRelease>, Error> {
        if self.step == self.mechanism.factor.steps() {
            return Err(Error::SessionOver { what: "steps", most: self.step as u64 });
        }
        release::prepaid(input, self.mechanism.each, self.paid_in, log, rng, |value, rng| {
            additive::check_vector(&value)?;
            if value.len() != self.mechanism.dim {
                let (expected, found) = (self.mechanism.dim as u64, value.len() as u64);
                return Err(Error::DimensionMismatch { expected, found });
            }
            self.advance(self.mechanism.grid.input(&value), rng)
        })
    }

    fn advance<R: ReleaseRng + ?Sized>(&mut self, input: Vec<i128>, rng: &mut R) -> Result<StreamRelease, Error> {
        let MatrixFactorisation { factor, grid, .. } = &self.mechanism;
        let row = self.step;
        // Cf G, in fine steps times 2^-40, exactly.
        let diagonal = i128::from(factor.numerator(row, row));
        let mut sum: Vec<i128> = input.iter().map(|&x| diagonal * x).collect();
        for (earlier, column) in self.inputs.iter().zip((0..row).rev()) {
            let coefficient = i128::from(factor.numerator(row, column));
            sum.iter_mut().zip(earlier).for_each(|(sum, &x)| *sum += coefficient * x);
        }
        let noisy = grid.add_noise(&sum, FINE_BITS + COEFFICIENT_BITS, rng)?;
        // From here on everything is post-processing.
        let mut increment: Vec<f64> = noisy.into_iter().map(|steps| grid.position(steps)).collect();
        for (earlier, column) in self.increments.iter().zip((0..row).rev()) {
            let coefficient = factor.coefficient(row, column);
            increment.iter_mut().zip(earlier).for_each(|(increment, &w)| *increment -= coefficient * w);
        }
        let diagonal = factor.coefficient(row, row);
        increment.iter_mut().for_each(|increment| *increment /= diagonal);
        self.prefix.iter_mut().zip(&increment).for_each(|(prefix, &w)| *prefix += w);

        let kept = factor.bands() - 1;
        self.inputs.push_front(input);
        self.inputs.truncate(kept);
        self.increments.push_front(increment.clone());
        self.increments.truncate(kept);
        self.step += 1;
        Ok(StreamRelease { increment, prefix: self.prefix.clone() })
    }

    /// Returns the number of steps taken.
    pub fn steps_taken(&self) -> usize {
        self.step
    }
}

#[cfg(test)]
mod tests;
