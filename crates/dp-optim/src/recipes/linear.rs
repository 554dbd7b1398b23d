//! The engine with a linear model or softmax regression, shared by the bolt-on recipes and the non-private baseline.

use dp_data::{Block, Order, RowSource};
use dp_losses::{LossKind, Model, ModelVisitor, Real, ScaledSteps};

use crate::engine::{
    Batches, Buffered, Control, GradientDescent, Iterate, Passes, PlainGradient, RowBatches, Run, Scaled, TwoParts,
    minimise,
};
use crate::error::Error;
use crate::growth::Arithmetic;

/// The public parts of the engine for a model's training.
pub(crate) struct LinearTraining {
    pub(super) loss: LossKind,
    pub(super) lambda: f64,
    pub(super) radius: Option<f64>,
    pub(super) dim: usize,
    pub(super) run: Run,
    pub(super) passes: u64,
    pub(super) arithmetic: Arithmetic,
    /// If set, the passes are followed by a search for a point certified to be this close to the minimiser.
    pub(super) minimise: Option<minimise::Certificate>,
}

impl LinearTraining {
    /// Runs the training and returns its output, as private as the data.
    pub(crate) fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        order: Order,
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let description = source.describe()?;
        // Clipping would change the class of an index.
        let last = self.loss.usual_target_bound();
        if self.loss.outputs() > 1 && !(description.target_bound >= last) {
            return Err(Error::OutOfRange {
                name: "the source's target bound",
                value: description.target_bound,
                range: "at least the largest class index",
            });
        }
        let visitor = Visitor { training: self, source, order, control };
        self.loss.visit_model(self.dim, visitor)
    }

    fn train_model<F: Real, M, B>(&self, model: &M, batches: &mut B, control: &mut Control<'_>) -> Result<Vec<F>, Error>
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
        B: Batches<F, M>,
    {
        let start = vec![F::zero(); model.parameters()];
        let averaged = !self.run.weights.is_last();
        let mut stop = Passes(self.passes);
        let batch_size = self.run.batches.largest();
        let output = match self.arithmetic {
            Arithmetic::Buffered => {
                let gradient = PlainGradient::new(model, batch_size);
                let rule = GradientDescent { lambda: self.lambda, radius: self.radius };
                let mut iterate = Buffered::new(start, averaged, gradient, rule);
                self.run.run(model, batches, &mut iterate, &mut stop, control)?;
                Iterate::<F, M>::into_output(iterate)
            }
            Arithmetic::Scaled => {
                let mut iterate = Scaled::new(model, start, averaged, batch_size, self.lambda, self.radius);
                self.run.run(model, batches, &mut iterate, &mut stop, control)?;
                iterate.into_output()
            }
            Arithmetic::TwoParts => {
                let mut iterate = TwoParts::new(model, start, averaged, batch_size, self.lambda, self.radius);
                self.run.run(model, batches, &mut iterate, &mut stop, control)?;
                iterate.into_output()
            }
        };
        match &self.minimise {
            Some(certificate) => minimise::certified(model, batches, output, &[], certificate, control),
            None => Ok(output),
        }
    }
}

/// Converts a public size to `usize`.
pub fn size(name: &'static str, value: u64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| Error::Count { name, value, range: "what memory can address" })
}

struct Visitor<'t, 'c, 'd, F> {
    training: &'t LinearTraining,
    source: &'t mut dyn RowSource<F>,
    order: Order,
    control: &'c mut Control<'d>,
}

impl<F: Real> ModelVisitor<F> for Visitor<'_, '_, '_, F> {
    type Output = Result<Vec<F>, Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let mut batches = RowBatches::new(self.source, self.order);
        self.training.train_model(&model, &mut batches, self.control)
    }
}
