//! One pass over the source, a phase's records at a time.

use core::marker::PhantomData;

use dp_data::{Block, Order, RowSource};
use dp_losses::{LinearModel, ProximalLoss, ProximalVisitor, Real};
use dp_mechanisms::ReleaseRng;
use nalgebra::convert;

use super::RECIPE;
use super::derivation::{Derived, Objective, PhasedErmDerivation};
use crate::engine::{BatchSizes, Batches, Control, RowBatches, Visit, dual_ascent, expect_rows};
use crate::error::Error;
use crate::float::FloatKind;
use crate::recipes::phases::PhaseSink;
use crate::recipes::recipe::Expected;

/// Runs the phases in this order of the rows, and returns what received their results.
pub(super) fn run<F, K, S, R>(
    derivation: &PhasedErmDerivation,
    derived: &Derived,
    sink: K,
    source: &mut S,
    order: Order,
    rng: &mut R,
    control: &mut Control<'_>,
) -> Result<K, Error>
where
    F: Real,
    K: PhaseSink<F>,
    S: RowSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    let PhasedErmDerivation { recipe, n, dim, .. } = derivation;
    FloatKind::F64.expect::<F>()?;
    Expected { n: *n, dim: *dim, row_norm: recipe.row_norm, target_bound: recipe.target_bound }
        .check(&source.describe()?)?;
    control.check()?;
    let visitor = Visitor { n: *n, derived, sink, source, order, rng, control, float: PhantomData };
    recipe
        .loss
        .visit_proximal(visitor)
        .unwrap_or(Err(Error::NotProved { recipe: RECIPE, why: "this loss's slopes are not bounded" }))
}

/// Receives the loss as a type.
struct Visitor<'t, 'c, F, K, S: ?Sized, R: ?Sized> {
    n: u64,
    derived: &'t Derived,
    sink: K,
    source: &'t mut S,
    order: Order,
    rng: &'t mut R,
    control: &'t mut Control<'c>,
    float: PhantomData<F>,
}

impl<F, K, S, R> ProximalVisitor<F> for Visitor<'_, '_, F, K, S, R>
where
    F: Real,
    K: PhaseSink<F>,
    S: RowSource<F> + ?Sized,
    R: ReleaseRng + ?Sized,
{
    type Output = Result<K, Error>;

    fn visit<L: ProximalLoss<F>>(self, loss: L) -> Self::Output {
        let size = |records: u64| {
            usize::try_from(records).map_err(|_| Error::Count {
                name: "number of records",
                value: records,
                range: "what memory can address",
            })
        };
        let sizes: Vec<usize> =
            self.derived.phases.iter().map(|phase| size(phase.records)).collect::<Result<_, _>>()?;
        let Visitor { n, derived, sink, source, rng, control, .. } = self;
        let mut minimisation = Minimisation { loss, objectives: &derived.objectives, sink, rng, control };
        let mut batches = RowBatches::new(source, self.order);
        let sizes = BatchSizes::Listed(sizes.into());
        let rows = Batches::<F, LinearModel<F, L>>::pass(&mut batches, 0, &sizes, &mut minimisation)?;
        let sink = minimisation.sink;
        expect_rows(n, rows)?;
        source.finish()?;
        Ok(sink)
    }
}

/// The phases as they receive their records.
struct Minimisation<'d, 'c, L, K, R: ?Sized> {
    loss: L,
    objectives: &'d [Objective],
    sink: K,
    rng: &'d mut R,
    control: &'d mut Control<'c>,
}

impl<F, L, K, R> Visit<F, LinearModel<F, L>> for Minimisation<'_, '_, L, K, R>
where
    F: Real,
    L: ProximalLoss<F>,
    K: PhaseSink<F>,
    R: ReleaseRng + ?Sized,
{
    fn batch(&mut self, rows: Block<'_, F>, _examples: usize) -> Result<(), Error> {
        let Some(objective) = self.objectives.get(self.sink.phase()) else { return Ok(()) };
        let share: F = convert(objective.centre);
        let centre: Vec<F> = self.sink.start().iter().map(|&start| share * start).collect();
        let point = dual_ascent::certified(&self.loss, rows, &centre, &objective.certificate, self.control)?;
        self.sink.take(point, self.rng)
    }
}
