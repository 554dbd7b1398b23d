//! The engine with a linear model on it: what the bolt-on recipes and the baseline without privacy share.

use dp_data::{Order, PassSource};
use dp_losses::{LinearModel, Loss, LossKind, LossVisitor, Real};

use crate::engine::{
    Batches, Buffered, Control, GradientDescent, Iterate, Passes, PlainGradient, RowBatches, Run, Scaled, minimise,
};
use crate::error::Error;
use crate::growth::Arithmetic;

/// A linear model's training: the parts of the engine, all public.
pub(super) struct LinearTraining {
    pub(super) loss: LossKind,
    pub(super) lambda: f64,
    pub(super) radius: Option<f64>,
    pub(super) dim: usize,
    /// The bounds on rows and targets that the source must enforce.
    pub(super) row_norm: f64,
    pub(super) target_bound: f64,
    pub(super) run: Run,
    pub(super) passes: u64,
    pub(super) arithmetic: Arithmetic,
    /// After the passes, go on to a point certified to be this close to the minimiser.
    pub(super) minimise: Option<minimise::Certificate>,
}

impl LinearTraining {
    /// Runs and returns the output of the run: as private as the data.
    pub(super) fn train<F: Real, S: PassSource<F> + ?Sized>(
        &self,
        source: &mut S,
        order: Order,
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let description = source.describe()?;
        for (name, planned, found) in
            [("n", self.run.n, description.n), ("dim", self.dim as u64, description.dim as u64)]
        {
            if planned != found {
                return Err(Error::Shape { name, planned, found });
            }
        }
        for (name, planned, found) in [
            ("row norms", self.row_norm, description.row_norm),
            ("targets", self.target_bound, description.target_bound),
        ] {
            if !(found <= planned) {
                return Err(Error::Bound { name, planned, found });
            }
        }
        control.check()?;
        let output =
            self.loss.visit(Visitor { training: self, source, order, control, float: core::marker::PhantomData })?;
        source.finish()?;
        Ok(output)
    }

    fn train_model<F: Real, M, B>(&self, model: &M, batches: &mut B, control: &mut Control<'_>) -> Result<Vec<F>, Error>
    where
        M: dp_losses::ScaledSteps<F>,
        B: Batches<F, M>,
    {
        let start = vec![F::zero(); model.parameters()];
        let averaged = !self.run.weights.is_last();
        let mut stop = Passes(self.passes);
        let output = match self.arithmetic {
            Arithmetic::Buffered => {
                let gradient = PlainGradient::new(model, self.run.batch_size);
                let rule = GradientDescent { lambda: self.lambda, radius: self.radius };
                let mut iterate = Buffered::new(start, averaged, gradient, rule);
                self.run.run(model, batches, &mut iterate, &mut stop, control)?;
                Iterate::<F, M>::into_output(iterate)
            }
            Arithmetic::Scaled => {
                let mut iterate = Scaled::new(model, start, averaged, self.run.batch_size, self.lambda, self.radius);
                self.run.run(model, batches, &mut iterate, &mut stop, control)?;
                iterate.into_output()
            }
        };
        match &self.minimise {
            Some(certificate) => minimise::certified(model, batches, output, certificate, control),
            None => Ok(output),
        }
    }
}

/// Receives the loss as a type.
struct Visitor<'t, 'c, 'd, F, S: ?Sized> {
    training: &'t LinearTraining,
    source: &'t mut S,
    order: Order,
    control: &'c mut Control<'d>,
    float: core::marker::PhantomData<F>,
}

impl<F: Real, S: PassSource<F> + ?Sized> LossVisitor<F> for Visitor<'_, '_, '_, F, S> {
    type Output = Result<Vec<F>, Error>;

    fn visit<L: Loss<F> + 'static>(self, loss: L) -> Self::Output {
        let model = LinearModel::new(self.training.dim, loss);
        let mut batches = RowBatches::new(self.source, self.order);
        self.training.train_model(&model, &mut batches, self.control)
    }
}
