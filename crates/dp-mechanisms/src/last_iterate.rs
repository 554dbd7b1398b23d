//! Noise on every iterate of a run that releases only the last one: amplification by iteration.
//!
//! If all iterates may be published, the cost for a record depends on the noise of the iterate that it changed. If only the last
//! one is released, the noise on all later iterates protects the record too, provided that no update increases distances.
//! [`LastIterate`] is the mechanism of such a run: [`start`](LastIterate::start) logs the cost of the last iterate,
//! [`LastIterateSession::step`] adds noise to an iterate that stays secret, and [`LastIterateSession::release`] releases only the
//! last one.

mod event;

use core::fmt;

use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Adjacency, DpEvent, EventLog, LogId};
use nalgebra::RealField;

use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, dimension, positive_normal};
use crate::grid::Grid;
use crate::mechanism::PrivacyEvent;
use crate::noise::{Drawing, Sampler};
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::{ReleaseRng, refuse_stuck};
use crate::sensitivity::L2Sensitivity;

/// Number of bits of an iterate's grid below its noise. Rounding to the grid is part of each of many updates, so the grid is
/// finer than that of a single release.
const GRID_BITS: u32 = 34;
/// Maximum number of iterates of a pass.
const MOST_ITERATES: u64 = 1 << 32;
/// Maximum number of iterates of a pass if there are several passes: each needs some bytes while the event is derived.
const MOST_ITERATES_OF_PASSES: u64 = 1 << 25;

/// Consecutive iterates with the same parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Iterates {
    /// Number of iterates.
    pub count: u64,
    /// Largest change of the iterate by one record that the update reads: `sup ‖ψ(w) - ψ'(w)‖`.
    pub sensitivity: f64,
    /// Lipschitz constant of the update `ψ`, at most 1.
    pub contraction: f64,
    /// Additional distance due to rounding: `‖ψ(v) - ψ(w)‖ <= contraction ‖v - w‖ + deviation` for the update as computed,
    /// including the rounding of the iterate itself to its float type.
    pub deviation: f64,
    /// Standard deviation of the noise on the iterate.
    pub std_dev: f64,
}

/// The last iterate of `w_t = ψ_t(w_{t-1}) + N(0, std_dev_t² I)`, where each `ψ_t` reads its own records.
///
/// # Formula
/// For one pass, with `s_t` the sensitivities, `c_t` the contractions and `σ_t` the standard deviations, the last iterate
/// is μ-Gaussian-DP with
/// ```text
/// μ = max_t  s_t / √r_t,    r_t = Σ_{s >= t} σ_s² / Π_{t < u <= s} c_u²  =  σ_t² + r_{t+1} / c_{t+1}²
/// ```
/// up to rounding. The [event](PrivacyEvent::event) is `AmplifiedByIteration` of the iterates measured in units that shrink with
/// them, `Π_{u > t} c_u`, in which every contraction is 1. A step that costs no more than a later one (no larger `s_t`: `r_t`
/// only decreases with `t`) gives its noise to the step before it, which keeps the event short and does not change the cost.
///
/// # Several passes
/// If the passes have the same order, a record changes iterate `t` of each pass. Each time its shift is absorbed by the noise up
/// to its next appearance, the last time by the noise up to the end:
/// ```text
/// μ² <= (passes - 1) max_t s_t² / R_t  +  max_t s_t² / r_t
/// ```
/// with `R_t` like `r_t` but over one whole turn from `t` on. Shifts and their absorption add up over the appearances, in
/// disjoint stretches of the run, so that the squares do too (steps 2 and 4 of the proof of the rule of `AmplifiedByIteration`).
/// For equal steps without contraction, `μ² = (s/σ)² (1 + (passes - 1)/steps)`: passes after the first cost very little.
///
/// # Rounding
/// An update computed in floating point increases distances slightly more than the exact one, and rounding a noisy iterate to its
/// grid is part of the next update. If `e_t` bounds both, the shifts `e_t` are absorbed at once, `a_t' = a_t + e_t`, and by
/// Minkowski's inequality
/// ```text
/// √(Σ (a_t + e_t)² / σ_t²) <= √(Σ a_t² / σ_t²) + E,    E² = Σ e_t² / σ_t²
/// ```
/// The event's sensitivities are `s_t + E √r_t`. So no assumption is made about the arithmetic.
///
/// # Privacy
/// No other iterate, nor anything computed from one (an average, a training loss, a stopping time), may be released. The order in
/// which records are read must not depend on their values. The caller claims that the updates contract as stated, as for a
/// sensitivity in [`Bounded::with_proven_sensitivity`]. A projection onto a convex set may follow the noise: it is part of the
/// next update, and after the last iterate it is post-processing.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, EventLog, ReplaceOne, bound};
/// use dp_mechanisms::last_iterate::{Iterates, LastIterate};
/// use dp_mechanisms::{Bounded, L2Sensitivity, OsSeeded, PrivacyEvent};
///
/// let early = Iterates { count: 99, sensitivity: 0.1, contraction: 1.0, deviation: 0.0, std_dev: 0.5 };
/// let last = Iterates { count: 1, sensitivity: 0.01, ..early };
/// let mechanism = LastIterate::<ReplaceOne>::new(2, vec![early, last], 1)?;
///
/// let (mut log, mut rng) = (EventLog::new(), OsSeeded::new()?);
/// let mut session = mechanism.start(&mut log, &mut rng)?;
/// let mut w = vec![0.0f64; 2];
/// for _ in 0..99 {
///     let sensitivity = session.sensitivity();
///     session.step(Bounded::with_proven_sensitivity(&mut w[..], sensitivity), &mut rng)?;
/// }
/// let sensitivity = session.sensitivity();
/// let released = session.release(Bounded::with_proven_sensitivity(w, sensitivity), &mut log, &mut rng)?;
/// assert_eq!(released.get().len(), 2);
/// // The record before the last is protected by two draws; it determines the cost.
/// let epsilon = bound::epsilon(&log.to_event(), Delta::new(1e-6)?)?.value;
/// let mu = 0.1 / (2.0 * 0.25f64).sqrt();
/// let expected = dp_accountant::gaussian::epsilon(mu, Delta::new(1e-6)?)?;
/// assert!((epsilon / expected - 1.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
/// Feldman, Mironov, Talwar, Thakurta 2018, "Privacy amplification by iteration", Theorem 22, arXiv 1808.06651; Feldman, Koren,
/// Talwar 2020, "Private stochastic convex optimization: optimal rates in linear time", Theorem 3.1, arXiv 2005.04763; Bok, Su,
/// Altschuler 2024, "Shifted interpolation for differential privacy", arXiv 2403.00278, for the Gaussian trade-off and for
/// several passes. Different contractions and rounding are derived above.
#[derive(Debug, Clone, PartialEq)]
pub struct LastIterate<A: Adjacency> {
    dim: u64,
    stages: Vec<Stage<A>>,
    passes: u64,
    iterates_per_pass: u64,
    sampler: Sampler,
}

/// Checked [`Iterates`].
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stage<A: Adjacency> {
    iterates: Iterates,
    sensitivity: L2Sensitivity<A>,
    grid: Grid,
}

impl<A: Adjacency> LastIterate<A> {
    /// Returns the grid of the last iterate's release.
    pub fn last_grid(&self) -> Grid {
        let Stage { grid, .. } = self.stages[self.stages.len() - 1];
        grid
    }

    /// Creates the mechanism for iterates of `dim` coordinates; `pass` lists the iterates of one pass over the records, the same
    /// in every pass.
    ///
    /// # Errors
    /// [`Error::Dimension`]; [`Error::Length`] for an empty pass; [`Error::OutOfRange`] for numbers outside their range, for no
    /// passes, and for more than 2^32 iterates per pass (2^25 if there are several passes); [`Error::ScaleOverflow`];
    /// [`Error::Accountant`] under a relation for which the theorem does not hold.
    pub fn new(dim: u64, pass: Vec<Iterates>, passes: u64) -> Result<Self, Error> {
        let dim = dimension(dim)?;
        if pass.is_empty() {
            return Err(Error::Length { name: "the list of iterates", found: 0, expected: "at least 1" });
        }
        if !(1..=1 << 24).contains(&passes) {
            return Err(Error::OutOfRange { name: "passes", value: passes as f64, range: "1..=2^24" });
        }
        let mut iterates_per_pass = 0u64;
        let mut stages = Vec::with_capacity(pass.len());
        for iterates in pass {
            let Iterates { count, sensitivity, contraction, deviation, std_dev } = iterates;
            if count == 0 {
                return Err(Error::OutOfRange { name: "count of iterates", value: 0.0, range: "1 or more" });
            }
            if !(0.0..=1.0).contains(&contraction) {
                return Err(Error::OutOfRange { name: "contraction", value: contraction, range: "[0, 1]" });
            }
            if !(deviation >= 0.0 && deviation.is_finite()) {
                return Err(Error::OutOfRange { name: "deviation", value: deviation, range: "[0, inf)" });
            }
            iterates_per_pass = iterates_per_pass.saturating_add(count);
            stages.push(Stage {
                iterates,
                sensitivity: L2Sensitivity::new(sensitivity)?,
                grid: Grid::new(positive_normal("standard deviation", std_dev)?, GRID_BITS)?,
            });
        }
        let most = if passes == 1 { MOST_ITERATES } else { MOST_ITERATES_OF_PASSES };
        if iterates_per_pass > most {
            let range = if passes == 1 { "at most 2^32" } else { "at most 2^25" };
            return Err(Error::OutOfRange { name: "iterates per pass", value: iterates_per_pass as f64, range });
        }
        let mechanism = Self { dim, stages, passes, iterates_per_pass, sampler: Sampler::Exact };
        // The relations under which the theorem holds do not depend on the numbers.
        let event = DpEvent::AmplifiedByIteration { sensitivities: vec![1.0], std_devs: vec![1.0], contraction: 1.0 };
        let holds_under = event.relations()?;
        if !holds_under.contains(A::KIND) {
            let (event, found) = (event.name(), A::KIND);
            return Err(dp_accountant::Error::NotUnderRelation { event, holds_under, found }.into());
        }
        Ok(mechanism)
    }

    /// Sets the noise mode; the default is exact noise.
    ///
    /// # Errors
    /// [`Error::UnavailableNoise`] for [`NoiseMode::None`].
    pub fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(Self { sampler: Sampler::of(mode)?, ..self })
    }

    /// Logs the cost of the last iterate and starts a run.
    ///
    /// # Errors
    /// [`Error::StuckGenerator`]; in this case nothing is logged.
    pub fn start<R: ReleaseRng + ?Sized>(
        &self,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<LastIterateSession<'_, A>, Error> {
        refuse_stuck(rng)?;
        let cost = Cost { event: self.event(), noise: self.noise_mode(), assumptions: Vec::new() };
        release::record(cost, log, rng);
        Ok(LastIterateSession {
            mechanism: self,
            paid_in: log.id(),
            stage: &self.stages[0],
            next_stage: 1,
            left_in_stage: self.stages[0].iterates.count,
            left: self.iterates(),
            assumptions: Vec::new(),
            secret: true,
        })
    }

    /// Returns the number of coordinates.
    pub fn dim(&self) -> u64 {
        self.dim
    }

    /// Returns the number of iterates, over all passes.
    pub fn iterates(&self) -> u64 {
        self.iterates_per_pass.saturating_mul(self.passes)
    }

    /// Returns the noise mode.
    pub fn noise_mode(&self) -> NoiseMode {
        self.sampler.mode()
    }
}

impl<A: Adjacency> PrivacyEvent for LastIterate<A> {
    fn event(&self) -> DpEvent {
        let stages: Vec<(Iterates, f64)> =
            self.stages.iter().map(|stage| (stage.iterates, stage.grid.step())).collect();
        event::of_passes(&stages, self.dim, self.passes)
    }
}

/// A run whose last iterate is paid for.
pub struct LastIterateSession<'m, A: Adjacency> {
    mechanism: &'m LastIterate<A>,
    paid_in: LogId,
    stage: &'m Stage<A>,
    next_stage: usize,
    left_in_stage: u64,
    left: u64,
    assumptions: Vec<Assumption>,
    secret: bool,
}

impl<A: Adjacency> fmt::Debug for LastIterateSession<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastIterateSession").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<A: Adjacency> LastIterateSession<'_, A> {
    /// Returns the largest accepted sensitivity of the next iterate.
    pub fn sensitivity(&self) -> L2Sensitivity<A> {
        self.stage.sensitivity
    }

    /// Returns the number of remaining iterates, including the last one.
    pub fn iterates_left(&self) -> u64 {
        self.left
    }

    /// Adds noise in place to an iterate that is not the last. The result is still secret.
    ///
    /// # Errors
    /// [`Error::SessionOver`] if only the last iterate remains, which must be [released](Self::release);
    /// [`Error::SensitivityExceeded`], [`Error::DimensionMismatch`], [`Error::ScaleOverflow`] if the float type cannot represent
    /// the noise, [`Error::NonFiniteInput`], [`Error::StuckGenerator`]. After an error the run must not be used.
    #[inline]
    pub fn step<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &mut self,
        iterate: Bounded<&mut [F], A>,
        rng: &mut R,
    ) -> Result<(), Error> {
        if self.left <= 1 {
            let most = self.mechanism.iterates().saturating_sub(1);
            return Err(Error::SessionOver { what: "hidden iterates", most });
        }
        release::check_sensitivity(&iterate, self.stage.sensitivity)?;
        let (value, assumptions) = iterate.open();
        self.check(value)?;
        refuse_stuck(rng)?;
        for assumption in assumptions {
            if !self.assumptions.contains(&assumption) {
                self.assumptions.push(assumption);
            }
        }
        self.secret &= rng.is_secret();
        self.mechanism.sampler.add_gaussian(
            value,
            self.stage.iterates.std_dev,
            self.stage.grid,
            &mut Drawing::default(),
            rng,
        )?;
        self.advance();
        Ok(())
    }

    /// Releases the last iterate with its noise.
    ///
    /// # Errors
    /// [`Error::IteratesLeft`] before the last one; [`Error::OtherLog`] for any log other than that of the start;
    /// [`Error::SensitivityExceeded`], [`Error::DimensionMismatch`], [`Error::ScaleOverflow`], [`Error::NonFiniteInput`],
    /// [`Error::StuckGenerator`]. In these cases nothing is released.
    pub fn release<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        self,
        iterate: Bounded<Vec<F>, A>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<F>>, Error> {
        if self.left != 1 {
            return Err(Error::IteratesLeft { left: self.left });
        }
        let Stage { iterates, sensitivity, grid } = *self.stage;
        let released = release::prepaid(iterate, sensitivity, self.paid_in, log, rng, |mut value, rng| {
            self.check(&value)?;
            self.mechanism.sampler.add_gaussian(&mut value, iterates.std_dev, grid, &mut Drawing::default(), rng)?;
            Ok(value)
        })?;
        for assumption in self.assumptions {
            log.assume(assumption);
        }
        if !self.secret {
            log.mark_not_private();
        }
        Ok(released)
    }

    fn check<F: RealField + Copy>(&self, value: &[F]) -> Result<(), Error> {
        let (expected, found) = (self.mechanism.dim, value.len() as u64);
        if found != expected {
            return Err(Error::DimensionMismatch { expected, found });
        }
        additive::check_range::<F>(self.stage.iterates.std_dev)?;
        additive::check_vector(value)
    }

    #[inline]
    fn advance(&mut self) {
        self.left -= 1;
        self.left_in_stage -= 1;
        if self.left_in_stage == 0 {
            let stages = &self.mechanism.stages;
            let next = self.next_stage % stages.len();
            self.stage = &stages[next];
            self.left_in_stage = self.stage.iterates.count;
            self.next_stage = next + 1;
        }
    }
}

#[cfg(test)]
mod tests;
