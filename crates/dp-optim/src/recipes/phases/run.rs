//! A run in phases, with its noise.

use dp_accountant::{Adjacency, DpEvent, EventLog, ReplaceOne};
use dp_data::{Order, RowSource};
use dp_losses::Real;
use dp_mechanisms::{LentRng, Released};

use super::release::{PhaseNoise, PhaseSink, Releases, order};
use super::{Inputs, Objective, Phase, descent, minimisation};
use crate::engine::Control;
use crate::error::Error;
use crate::growth::Arithmetic;
use crate::lattice::ReleaseLattice;
use crate::recipes::algorithm::Run;
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// The method applied to a phase's records.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::recipes) enum Method {
    /// A gradient step on each record, in this arithmetic.
    Descent(Arithmetic),
    /// Minimisation of each phase's objective.
    Minimisation(Vec<Objective>),
}

/// A training in phases: their records, method and noise.
#[derive(Debug, Clone, PartialEq)]
pub struct PhasedRun {
    pub(in crate::recipes) inputs: Inputs,
    pub(in crate::recipes) problem: Problem,
    pub(in crate::recipes) phases: Vec<Phase>,
    pub(in crate::recipes) sensitivities: Vec<f64>,
    pub(in crate::recipes) noise_multiplier: f64,
    pub(in crate::recipes) method: Method,
}

impl PhasedRun {
    /// Returns the phases, in order.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Returns the L2 sensitivity of each phase's point, rounding included and for the distance from the minimiser.
    pub fn sensitivities(&self) -> &[f64] {
        &self.sensitivities
    }

    /// Returns the standard deviation of each phase's noise.
    pub fn std_devs(&self) -> Vec<f64> {
        // The scale does not depend on the relation: any will do.
        self.noise::<ReplaceOne>().map_or_else(|_| Vec::new(), |noise| noise.std_devs().collect())
    }

    /// Returns the root of the expected squared norm of the last phase's noise, which remains in the model.
    pub fn noise_norm(&self) -> f64 {
        self.std_devs().last().copied().unwrap_or(0.0) * (self.problem.parameters() as f64).sqrt()
    }

    /// Returns the strong convexity of each phase's objective; empty if phases take gradient steps.
    pub fn moduli(&self) -> Vec<f64> {
        self.objectives().iter().map(|objective| objective.modulus).collect()
    }

    /// Returns the distance from the minimiser that is certified in each phase; empty if phases take gradient steps.
    pub fn tolerances(&self) -> Vec<f64> {
        self.objectives().iter().map(|objective| objective.certificate.tolerance()).collect()
    }

    fn objectives(&self) -> &[Objective] {
        match &self.method {
            Method::Descent(_) => &[],
            Method::Minimisation(objectives) => objectives,
        }
    }

    fn noise<A: Adjacency>(&self) -> Result<PhaseNoise<A>, Error> {
        PhaseNoise::new(&self.sensitivities, self.noise_multiplier, self.problem.setting.noise_mode)
    }

    /// Returns the lattice of the released model.
    pub(in crate::recipes) fn lattice(&self) -> Result<ReleaseLattice, Error> {
        // The grid is the same for any relation.
        let grid = self.noise::<ReplaceOne>()?.last_grid();
        let released = grid.map_or(ReleaseLattice::ORIGIN, |grid| ReleaseLattice::on_grid(grid.step()));
        Ok(released.within(Some(self.inputs.radius)))
    }

    fn run<F: Real, K: PhaseSink<F>>(
        &self,
        sink: K,
        source: &mut dyn RowSource<F>,
        order: Order,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<K, Error> {
        match &self.method {
            Method::Descent(arithmetic) => descent::run(self, *arithmetic, sink, source, order, rng, control),
            Method::Minimisation(objectives) => minimisation::run(self, objectives, sink, source, order, rng, control),
        }
    }

    pub(crate) fn releases<F: Real, A: Adjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Releases<F, A>, Error> {
        let order = order(self.inputs.declared_order, rng);
        let noise = self.noise::<A>()?;
        let sink = noise.start(self.problem.parameters(), self.inputs.radius)?;
        self.run(sink, source, order, rng, control)?.finish()
    }

    /// Returns the first phase's result before its noise, for audits and tests of the sensitivity.
    #[cfg(any(test, feature = "audit"))]
    pub(crate) fn first_phase_without_noise(
        &self,
        source: &mut dyn RowSource<f64>,
        start: Vec<f64>,
    ) -> Result<Vec<f64>, Error> {
        use dp_mechanisms::ReleaseRng as _;

        let sink = super::release::Unreleased { start, outputs: Vec::new() };
        // Values drawn from the generator are not used.
        let rng = &mut dp_mechanisms::SeededRng::new(0);
        let run = self.run(sink, source, Order::Declared, &mut rng.lend(), &mut Control::default());
        Ok(run?.outputs.swap_remove(0))
    }
}

impl Run for PhasedRun {
    fn event(&self) -> Result<DpEvent, Error> {
        // The event is the same for any relation.
        Ok(self.noise::<ReplaceOne>()?.event())
    }

    fn summary(&self) -> Summary {
        let first = self.phases.first().map_or(0.0, |phase| phase.step);
        Summary {
            // Each phase has a different sensitivity.
            sensitivity: None,
            rows: self.problem.n,
            text: format!(
                "{} phases, the first with step {first:.4e}, noise of norm {:.4e} in the last, radius {:e}, lambda {:e}",
                self.phases.len(),
                self.noise_norm(),
                self.inputs.radius,
                self.inputs.lambda
            ),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let Releases { last, log, .. } = self.releases(source, rng, control)?;
        Ok((last, log))
    }
}
