//! The common part of the selection mechanisms: their parameters, and exact gaps between scores.
//!
//! # Formula
//! ```text
//! t_i    scores on the lattice (see `lattice`), S their sensitivity in steps
//! gap_i  min(max_j t_j - t_i, cap)
//! b      >= 2 S / epsilon   (S / epsilon for monotonic scores), a rational number of steps
//! ```
//! All decisions of the mechanisms are coins of probability `exp(-gap_i / b)`, drawn exactly by integers. So the release has
//! exactly the law of the textbook mechanism on the integer scores `v_i = max(t_i, max_j t_j - cap)`, at an epsilon `2 S / b`
//! that is at most the stated one.
//!
//! The cap only keeps the integers small. It costs no privacy: the maximum of the scores is 1-Lipschitz in the maximum norm and
//! monotonic, hence so is `v`: neighbours' `v_i` are within `S`, and change in one direction if the `t_i` do. The same holds for
//! the clamp at ±2^120 steps. It costs no accuracy either, since a candidate at the cap is selected with probability below
//! `exp(-4096)`.
//!
//! Scores near the largest double, equal scores, a single candidate or scores with a large common offset need no special
//! treatment: no exponential of a score is ever computed.

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Adjacency, DpEvent, Epsilon, EventLog};
use rand::CryptoRng;

use crate::bounded::Bounded;
use crate::error::Error;
use crate::lattice::Lattice;
use crate::lattice_scale::RationalScale;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::scores::Scores;
use crate::sensitivity::{LInf, LInfSensitivity};

/// The parameters of a selection mechanism.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "record::SelectionRecord", into = "record::SelectionRecord", bound = "")
)]
pub(crate) struct Selection<A: Adjacency> {
    sensitivity: LInfSensitivity<A>,
    epsilon: Epsilon,
    monotonic: bool,
    lattice: Lattice,
    scale: RationalScale,
}

impl<A: Adjacency> Selection<A> {
    pub(crate) fn new(sensitivity: LInfSensitivity<A>, epsilon: Epsilon, monotonic: bool) -> Result<Self, Error> {
        let lattice = Lattice::new(sensitivity.get());
        let steps = lattice.sensitivity() as f64; // exact: at most 2^31
        let shift = if monotonic { steps } else { 2.0 * steps };
        let scale = RationalScale::for_shift(shift, epsilon.get())?;
        Ok(Self { sensitivity, epsilon, monotonic, lattice, scale })
    }

    pub(crate) fn monotonic(self) -> Result<Self, Error> {
        Self::new(self.sensitivity, self.epsilon, true)
    }

    pub(crate) fn sensitivity(&self) -> LInfSensitivity<A> {
        self.sensitivity
    }

    pub(crate) fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    pub(crate) fn is_monotonic(&self) -> bool {
        self.monotonic
    }

    pub(crate) fn scale(&self) -> RationalScale {
        self.scale
    }

    /// Returns a length in the units of the scores, in units of the ideal scale.
    pub(crate) fn in_scales(&self, length: f64) -> f64 {
        let factor = if self.monotonic { 1.0 } else { 0.5 };
        length / self.sensitivity.get() * (factor * self.epsilon.get())
    }

    /// Releases the index that `choose` draws.
    pub(crate) fn release<R: ReleaseRng + ?Sized>(
        &self,
        input: Bounded<Scores, A, LInf>,
        event: DpEvent,
        log: &mut EventLog<A>,
        rng: &mut R,
        choose: impl FnOnce(&[i128], &mut R) -> Result<usize, Error>,
    ) -> Result<Released<usize>, Error> {
        let assumptions = if self.monotonic { vec![Assumption::MonotonicScores] } else { Vec::new() };
        let cost = Cost { event, noise: NoiseMode::Exact, assumptions };
        release::bounded(input, self.sensitivity, cost, log, rng, |scores, rng| {
            let steps: Vec<i128> = scores.finite()?.iter().map(|&score| self.lattice.floor(score)).collect();
            choose(&steps, rng)
        })
    }

    /// Returns the gaps to the largest score.
    pub(crate) fn gaps(&self, steps: &[i128]) -> Vec<u128> {
        let cap = self.scale.gap_cap();
        let largest = steps.iter().copied().max().unwrap_or(0);
        steps.iter().map(|&step| largest.abs_diff(step).min(cap)).collect()
    }

    /// Returns true with probability `exp(-gap / b)`.
    pub(crate) fn coin<R: CryptoRng + ?Sized>(&self, gap: u128, rng: &mut R) -> Result<bool, Error> {
        self.scale.coin(gap, rng)
    }

    /// Returns `(max_j u_j - u_i) / b` for real scores and the ideal scale.
    pub(crate) fn exponents(&self, scores: &Scores) -> Result<Vec<f64>, Error> {
        let scores = scores.finite()?;
        let largest = scores.iter().copied().fold(f64::MIN, f64::max);
        // Halves, so that a difference of huge scores does not overflow before it is divided.
        Ok(scores.iter().map(|score| 2.0 * self.in_scales(0.5 * largest - 0.5 * score)).collect())
    }
}

/// Defines the methods that selection mechanisms have in common; the texts end sentences of their documentation.
macro_rules! selection_methods {
    ($Mechanism:ident, $monotonic:literal, $epsilon:literal) => {
        impl<A: Adjacency> $Mechanism<A> {
            /// Creates the mechanism for scores that may change in different directions.
            ///
            /// # Errors
            /// [`Error::ScaleOverflow`] for noise beyond the integers of the lattice, which no valid [`Epsilon`] requires.
            pub fn new(sensitivity: LInfSensitivity<A>, epsilon: Epsilon) -> Result<Self, Error> {
                Selection::new(sensitivity, epsilon, false).map(Self)
            }

            /// Declares that between neighbours all scores change in the same direction, as counts under add/remove do, and
            #[doc = $monotonic]
            ///
            /// # Privacy
            /// The declaration is recorded in the log with each release. Under replace-one counts do not satisfy it.
            ///
            /// # Errors
            /// As [`new`](Self::new).
            pub fn monotonic(self) -> Result<Self, Error> {
                self.0.monotonic().map(Self)
            }

            /// Returns the largest accepted change of a score.
            pub fn sensitivity(&self) -> LInfSensitivity<A> {
                self.0.sensitivity()
            }

            /// Returns the stated epsilon
            #[doc = $epsilon]
            pub fn epsilon(&self) -> Epsilon {
                self.0.epsilon()
            }

            /// Returns whether scores are declared to change in the same direction.
            pub fn is_monotonic(&self) -> bool {
                self.0.is_monotonic()
            }

            /// Returns the noise mode, which is always exact.
            pub fn noise_mode(&self) -> NoiseMode {
                NoiseMode::Exact
            }
        }
    };
}
pub(crate) use selection_methods;

#[cfg(feature = "serde")]
mod record;
#[cfg(feature = "serde")]
pub(crate) use record::relation;
#[cfg(test)]
pub(crate) mod tests;
