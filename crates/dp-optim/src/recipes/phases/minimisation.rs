//! Minimisation over one pass of the source, one phase's records at a time.

use dp_data::{Block, Order, RowSource};
use dp_losses::{LinearModel, ProximalLoss, ProximalVisitor, Real};
use dp_mechanisms::LentRng;
use nalgebra::convert;

use super::PhasedRun;
use super::release::PhaseSink;
use crate::engine::dual_ascent::{self, Certificate};
use crate::engine::{BatchSizes, Batches, Control, Piece, RowBatches, Visit, expect_rows};
use crate::error::Error;
use crate::recipes::linear::size;

/// The objective of one phase, and the certificate of its minimiser.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::recipes) struct Objective {
    /// `λ + λ_i`.
    pub(in crate::recipes) modulus: f64,
    /// `λ_i / (λ + λ_i)`: the centre is this multiple of the start.
    pub(in crate::recipes) centre: f64,
    pub(in crate::recipes) certificate: Certificate,
}

/// Runs the phases in this order of the rows, and returns the sink of their results.
pub(super) fn run<F: Real, K: PhaseSink<F>>(
    phased: &PhasedRun,
    objectives: &[Objective],
    sink: K,
    source: &mut dyn RowSource<F>,
    order: Order,
    rng: &mut LentRng<'_>,
    control: &mut Control<'_>,
) -> Result<K, Error> {
    let visitor = Visitor { phased, objectives, sink, source, order, rng, control };
    let unbounded = Error::NotProved { recipe: phased.inputs.recipe, why: "this loss's slopes are not bounded" };
    phased.problem.setting.loss.visit_proximal(visitor).unwrap_or(Err(unbounded))
}

struct Visitor<'t, 'c, 'r, F, K> {
    phased: &'t PhasedRun,
    objectives: &'t [Objective],
    sink: K,
    source: &'t mut dyn RowSource<F>,
    order: Order,
    rng: &'t mut LentRng<'r>,
    control: &'t mut Control<'c>,
}

impl<F: Real, K: PhaseSink<F>> ProximalVisitor<F> for Visitor<'_, '_, '_, F, K> {
    type Output = Result<K, Error>;

    fn visit<L: ProximalLoss<F>>(self, loss: L) -> Self::Output {
        let Visitor { phased, objectives, sink, source, order, rng, control } = self;
        let records = phased.phases().iter().map(|phase| size("number of records", phase.records));
        let sizes = BatchSizes::Listed(records.collect::<Result<Vec<usize>, _>>()?.into());
        let mut minimisation = Minimisation { loss, objectives, sink, rng, control };
        let mut batches = RowBatches::new(source, order);
        let rows = Batches::<F, LinearModel<F, L>>::pass(&mut batches, 0, &sizes, &mut minimisation)?;
        let sink = minimisation.sink;
        expect_rows(phased.problem.n, rows)?;
        Ok(sink)
    }
}

/// The state of the phases, which receive their records.
struct Minimisation<'d, 'c, 'r, L, K> {
    loss: L,
    objectives: &'d [Objective],
    sink: K,
    rng: &'d mut LentRng<'r>,
    control: &'d mut Control<'c>,
}

impl<F, L, K> Visit<F, LinearModel<F, L>> for Minimisation<'_, '_, '_, L, K>
where
    F: Real,
    L: ProximalLoss<F>,
    K: PhaseSink<F>,
{
    fn batch(&mut self, rows: Block<'_, F>, _: Piece) -> Result<(), Error> {
        let Some(objective) = self.objectives.get(self.sink.phase()) else { return Ok(()) };
        let share: F = convert(objective.centre);
        let centre: Vec<F> = self.sink.start().iter().map(|&start| share * start).collect();
        let point = dual_ascent::certified(&self.loss, rows, &centre, &objective.certificate, self.control)?;
        self.sink.take(point, self.rng)
    }
}
