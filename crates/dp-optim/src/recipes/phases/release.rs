//! The noise of the phases: each is a release from separate records, all with the same ratio of noise to sensitivity.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog};
use dp_data::Order;
use dp_losses::Real;
use dp_mechanisms::grid::Grid;
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LentRng, Mechanism, PrivacyEvent, Released};
use rand::Rng as _;

use crate::engine::project;
use crate::error::{Error, positive};
use crate::recipes::recipe::{Budget, least_scale};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PhaseNoise<A: Adjacency> {
    mechanisms: Vec<Gaussian<A>>,
}

/// Returns a random order under a fresh key, unless the source's own order is declared.
pub(super) fn order(declared: bool, rng: &mut LentRng<'_>) -> Order {
    if declared {
        return Order::Declared;
    }
    let mut key = [0; 32];
    rng.fill_bytes(&mut key);
    Order::Keyed { key, fresh_each_pass: false }
}

/// The result of calibration: the noise of each phase.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct NoiseMultiplier {
    /// Ratio of each phase's noise to its sensitivity, `1/ρ`, on which the default step size also depends.
    pub noise_multiplier: f64,
}

/// Returns the least noise multiplier with which one phase, and so all of them, stays within the budget `copies` times.
pub(in crate::recipes) fn noise_multiplier(recipe: &'static str, budget: Budget, copies: u64) -> Result<f64, Error> {
    if budget.delta.get() == 0.0 {
        return Err(Error::NotProved { recipe, why: "its noise is Gaussian, which needs delta > 0" });
    }
    least_scale(budget, copies, |std_dev| DpEvent::Gaussian { std_dev, sensitivity: 1.0 })
}

impl<A: Adjacency> PhaseNoise<A> {
    /// Creates noise of `multiplier` times each phase's sensitivity.
    pub(super) fn new(sensitivities: &[f64], multiplier: f64, mode: NoiseMode) -> Result<Self, Error> {
        positive("noise multiplier", multiplier)?;
        let mechanism = |&sensitivity: &f64| -> Result<Gaussian<A>, Error> {
            // Rounded up, so that the quotient is never above 1/multiplier.
            let std_dev = multiplier * sensitivity * (1.0 + 8.0 * f64::EPSILON);
            let sensitivity = L2Sensitivity::new(sensitivity)?;
            Ok(Gaussian::from_std_dev(sensitivity, std_dev)?.with_noise_mode(mode)?)
        };
        Ok(Self { mechanisms: sensitivities.iter().map(mechanism).collect::<Result<_, _>>()? })
    }

    pub(super) fn event(&self) -> DpEvent {
        DpEvent::Parallel { events: self.mechanisms.iter().map(PrivacyEvent::event).collect() }
    }

    /// Returns the grid of the last phase's release, which is the model before its projection.
    pub(super) fn last_grid(&self) -> Option<Grid> {
        self.mechanisms.last().map(Gaussian::grid)
    }

    /// Starts a run at the origin.
    pub(super) fn start<F: Real>(&self, parameters: u64, radius: f64) -> Result<PhaseRun<'_, F, A>, Error> {
        let too_large = |_| Error::Count { name: "parameters", value: parameters, range: "what memory can address" };
        let origin = vec![F::zero(); usize::try_from(parameters).map_err(too_large)?];
        let phases = self.mechanisms.len();
        let (parts, releases) = (Vec::with_capacity(phases), Vec::with_capacity(phases));
        Ok(PhaseRun { noise: self, parts, releases, origin, radius })
    }

    pub(super) fn std_devs(&self) -> impl Iterator<Item = f64> {
        self.mechanisms.iter().map(Gaussian::std_dev)
    }
}

/// A sink of the phases' results, which also determines the start of the next phase.
pub(super) trait PhaseSink<F> {
    /// Returns the public start of the next phase.
    fn start(&self) -> &[F];

    /// Returns the number of the next phase, from 0.
    fn phase(&self) -> usize;

    /// Receives a phase's result.
    fn take(&mut self, output: Vec<F>, rng: &mut LentRng<'_>) -> Result<(), Error>;
}

/// Releases each phase's result; the next phase starts at its projection.
pub(super) struct PhaseRun<'n, F, A: Adjacency> {
    noise: &'n PhaseNoise<A>,
    parts: Vec<EventLog<A>>,
    releases: Vec<Released<Vec<F>>>,
    origin: Vec<F>,
    radius: f64,
}

impl<F: Real, A: Adjacency> PhaseSink<F> for PhaseRun<'_, F, A> {
    fn start(&self) -> &[F] {
        self.releases.last().map_or(&self.origin, |released| released.get())
    }

    fn phase(&self) -> usize {
        self.parts.len()
    }

    /// Releases the result, to whose sensitivity the noise was calibrated.
    fn take(&mut self, output: Vec<F>, rng: &mut LentRng<'_>) -> Result<(), Error> {
        // There are as many mechanisms as phases.
        let Some(mechanism) = self.noise.mechanisms.get(self.parts.len()) else { return Ok(()) };
        let mut log = EventLog::new();
        let bounded = Bounded::with_proven_sensitivity(output, mechanism.sensitivity());
        let radius = self.radius;
        let released = mechanism.release(bounded, &mut log, rng)?.map(|mut weights| {
            project(&mut weights, radius);
            weights
        });
        self.releases.push(released);
        self.parts.push(log);
        Ok(())
    }
}

impl<F: Real, A: Adjacency> PhaseRun<'_, F, A> {
    /// Returns the projected releases of the phases and their joint log; an error if phases are missing, which the check of
    /// the row count excludes.
    pub(super) fn finish(self) -> Result<Releases<F, A>, Error> {
        let (planned, found) = (self.noise.mechanisms.len() as u64, self.parts.len() as u64);
        let mut earlier = self.releases;
        match earlier.pop() {
            Some(last) if found == planned => {
                let mut log = EventLog::new();
                log.record_parallel(self.parts);
                Ok(Releases { last, earlier, log })
            }
            _ => Err(Error::Shape { name: "phases", planned, found }),
        }
    }
}

pub(crate) struct Releases<F, A: Adjacency> {
    /// The model.
    pub(crate) last: Released<Vec<F>>,
    #[cfg_attr(not(feature = "audit"), expect(dead_code, reason = "only an audit looks at them"))]
    pub(crate) earlier: Vec<Released<Vec<F>>>,
    pub(crate) log: EventLog<A>,
}

/// Keeps the results without noise, and starts every phase at one point; for audits and tests of the sensitivities.
#[cfg(any(test, feature = "audit"))]
pub(super) struct Unreleased {
    pub(super) start: Vec<f64>,
    pub(super) outputs: Vec<Vec<f64>>,
}

#[cfg(any(test, feature = "audit"))]
impl PhaseSink<f64> for Unreleased {
    fn start(&self) -> &[f64] {
        &self.start
    }

    fn phase(&self) -> usize {
        self.outputs.len()
    }

    fn take(&mut self, output: Vec<f64>, _rng: &mut LentRng<'_>) -> Result<(), Error> {
        self.outputs.push(output);
        Ok(())
    }
}
