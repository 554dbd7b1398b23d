//! The gradient of a regularised risk, plain or compensated, and its curvature.

use dp_data::Block;
use dp_losses::{CompensatedGradient, CompensatedSum, Curved, Model};
use nalgebra::{RealField, convert};

use super::records::{Records, pass};
use super::{Certificate, QUASI_NEWTON_GRADIENTS, length};
use crate::engine::batches::{Batches, Piece};
use crate::engine::chunks::Part;
use crate::engine::control::Control;
use crate::engine::gradient::{GradientEstimate, PlainGradient};
use crate::engine::preconditioner::{FEW_FEATURES, Preconditioner, Sample};
use crate::error::Error;

/// Examples whose gradients are summed before they are added to the total, which keeps the sum's rounding error small.
pub(crate) const CHUNK: usize = 1024;

/// Examples of a part of the curvature: its matrix is made and added up once for them.
const CURVATURE_CHUNK: usize = 4 * CHUNK;

/// Gradients from the first to the second computation of the curvature, each of which costs several gradients: from any start, and
/// from the minimiser of a sample. Later distances double, since the point moves less and less.
const GRADIENTS_PER_CURVATURE: [u64; 2] = [4, 12];

/// Compensated gradients in a run with a public number of gradients: the first or second test passes.
const COMPENSATED_GRADIENTS: u64 = 3;

/// Maximum number of gradients with curvature (about twenty are normally enough), after which the quasi-Newton method restarts
/// without it: a sample may miss a feature that is rare in the records.
pub(super) const CURVED_GRADIENTS: u64 = 48;

/// Norm of the gradient of a sample of `m` records at which the search on it ends, as a fraction of `L/√m`.
const OF_SAMPLE_ERROR: f64 = 1e-3;

/// The sums of a part's chunks, and the curvature of its sample if it was asked for.
type OfPart<F> = (Vec<Vec<F>>, Option<Sample<F>>);

/// A model of rows whose gradients, compensated gradients and curvature are sums over chunks of a block.
pub trait Chunked<F>: CompensatedGradient<F> + Curved<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>> {}

impl<F, M> Chunked<F> for M where M: CompensatedGradient<F> + Curved<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>> {}

/// Returns the bounds of steps of `size` within `0..len`.
fn steps(len: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len).step_by(size).map(move |start| (start, len.min(start.saturating_add(size))))
}

/// The gradient's norm at which a search ends.
#[derive(Clone, Copy)]
enum Goal {
    /// That of a compensated gradient with which the certificate accepts the point.
    Certificate,
    /// This norm of a plain gradient.
    Norm(f64),
}

/// Computes the gradient of the regularised risk of all records, or of a sample of them.
pub(super) struct FullGradient<'l, F: RealField + Copy> {
    linear: &'l [F],
    pub(super) certificate: &'l Certificate,
    goal: Goal,
    pub(super) gradient: Vec<F>,
    /// The curvature at a recent point, and the number of the next gradient with which it is computed; `None` if curvatures are
    /// not used.
    pub(super) preconditioner: Option<Preconditioner<F>>,
    pub(super) next_curved: Option<u64>,
    gradients_per_curvature: u64,
    /// Gradients computed so far, plain and compensated.
    pub(super) computed: [u64; 2],
    n: u64,
}

impl<'l, F: RealField + Copy> FullGradient<'l, F> {
    pub(super) fn new<M: Chunked<F>>(model: &M, linear: &'l [F], certificate: &'l Certificate) -> Self {
        let n = certificate.n;
        Self {
            linear,
            certificate,
            goal: Goal::Certificate,
            gradient: vec![F::zero(); model.parameters()],
            preconditioner: None,
            next_curved: Preconditioner::<F>::pays(model.parameters(), model.features(), n).then_some(1),
            gradients_per_curvature: GRADIENTS_PER_CURVATURE[0],
            computed: [0; 2],
            n,
        }
    }

    /// Creates the gradient of the risk of a sample of `n` records. The goal is a small fraction of the standard error with which
    /// it estimates the gradient of all records.
    pub(super) fn of_sample<M: Chunked<F>>(model: &M, linear: &'l [F], certificate: &'l Certificate, n: u64) -> Self {
        let norm = OF_SAMPLE_ERROR * certificate.data_lipschitz / (n as f64).sqrt();
        Self { goal: Goal::Norm(norm), n, ..Self::new(model, linear, certificate) }
    }

    /// Computes the curvature less often, for a search that starts from the minimiser of a sample.
    pub(super) fn after_sample(self) -> Self {
        Self { gradients_per_curvature: GRADIENTS_PER_CURVATURE[1], ..self }
    }

    /// Returns the maximum number of gradients of the quasi-Newton method.
    pub(super) fn most_gradients(&self) -> u64 {
        match self.goal {
            Goal::Certificate => QUASI_NEWTON_GRADIENTS,
            Goal::Norm(_) => CURVED_GRADIENTS,
        }
    }

    /// Computes the gradient at `point` and returns whether the point is at the goal. If the goal is a certificate, computes the
    /// gradient again with compensation where that may certify the point, and keeps the second one then.
    pub(super) fn reaches_goal<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        records: &mut Records<'_, F, B>,
        point: &[F],
        control: &mut Control<'_>,
    ) -> Result<bool, Error> {
        let norm = self.at(model, records, point, control)?;
        if let Goal::Norm(goal) = self.goal {
            return Ok(norm <= goal);
        }
        if !self.certificate.is_worth_a_test(norm) {
            return Ok(false);
        }
        let norm = self.compensated_at(model, records, (point, &[]), control)?;
        Ok(self.certificate.accepts(norm, length(point)))
    }

    /// Computes the gradient at `point`, summed in two levels, and returns its norm.
    pub(super) fn at<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        records: &mut Records<'_, F, B>,
        point: &[F],
        control: &mut Control<'_>,
    ) -> Result<f64, Error> {
        self.computed[0] += 1;
        self.gradient.fill(F::zero());
        let (parameters, features) = (model.parameters(), model.features());
        let curved = self.wants_curvature();
        let mut sample: Option<Sample<F>> = None;
        let buffers = || (PlainGradient::new(model, CHUNK), curved.then(|| model.pass(CHUNK)));
        let of_part = |(estimate, buffers): &mut (PlainGradient<F, M>, Option<M::Pass>), mut part: Part<'_, '_, F>| {
            let (len, near) = (part.len(), part.near());
            let (mut sums, mut sample) = (Vec::new(), None);
            for start in (0..len).step_by(CHUNK) {
                let chunk = start..len.min(start + CHUNK);
                let mut sum = vec![F::zero(); parameters];
                let mut add = |rows: Block<'_, F>, ends: usize| {
                    let piece = Piece { examples: rows.len(), starts: ends == rows.len(), ends: ends == chunk.len() };
                    estimate.estimate(model, point, rows, piece, &mut sum)
                };
                if let Some(buffers) = buffers {
                    let rows = part.block(chunk.clone());
                    for (start, end) in steps(rows.len(), near) {
                        add(rows.slice(start..end), end)?;
                    }
                    if Preconditioner::pays_for(&rows.rows, features) {
                        let sample = sample.get_or_insert_with(|| Sample::new(parameters, features));
                        sample.add(model, point, rows, rows.len(), buffers);
                    }
                } else {
                    for (from, to) in steps(chunk.len(), near) {
                        add(part.block(start + from..start + to), to)?;
                    }
                }
                sums.push(sum);
            }
            Ok::<_, Error>((sums, sample))
        };
        let add = |of_part: Result<OfPart<F>, Error>| {
            let (sums, of_part) = of_part?;
            for sum in sums {
                self.gradient.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
            }
            match (&mut sample, of_part) {
                (Some(sample), Some(of_part)) => sample.merge(&of_part),
                (none @ None, of_part) => *none = of_part,
                (Some(_), None) => {}
            }
            Ok(())
        };
        let numbers = parameters.saturating_mul(1 + if curved { features } else { 0 });
        let part = if curved && features > FEW_FEATURES { CURVATURE_CHUNK } else { CHUNK };
        pass(records, self.n, (part, numbers), buffers, of_part, add, control)?;
        if curved && sample.is_none() {
            self.next_curved = None;
        }
        if let Some(sample) = sample {
            self.preconditioner = sample.factorise(model.features(), self.certificate.strong_convexity);
        }
        Ok(self.of_the_risk(point))
    }

    /// Computes gradients at the point and discards them until the requested number is reached.
    pub(super) fn idle<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        records: &mut Records<'_, F, B>,
        point: Vec<F>,
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let Some(gradients) = control.gradients else { return Ok(point) };
        let (gradients, compensated) = match self.goal {
            Goal::Certificate => (gradients, COMPENSATED_GRADIENTS),
            Goal::Norm(_) => (self.most_gradients(), 0),
        };
        while self.computed[0] < gradients {
            self.at(model, records, &point, control)?;
        }
        while self.computed[1] < compensated {
            self.compensated_at(model, records, (&point, &[]), control)?;
        }
        Ok(point)
    }

    /// Stops computing the curvature, and drops the current one.
    pub(super) fn forget_curvature(&mut self) {
        self.next_curved = None;
        self.preconditioner = None;
    }

    /// Returns whether the curvature is computed with this gradient. Depends on the gradient's number only, so that idle
    /// gradients take as long.
    fn wants_curvature(&mut self) -> bool {
        if self.computed[0] > CURVED_GRADIENTS {
            return false;
        }
        let due = self.next_curved == Some(self.computed[0]);
        if due {
            // 1, 5, 13, 29; from a sample 1, 13, 37.
            self.next_curved = Some(2 * self.computed[0] - 1 + self.gradients_per_curvature);
        }
        due
    }

    /// Computes the gradient at `point + rest` within the error that the certificate allows for, and returns its norm. `rest` has at
    /// most half a unit in the last place of each entry of `point`, or is empty.
    pub(super) fn compensated_at<M: Chunked<F>, B: Batches<F, M>>(
        &mut self,
        model: &M,
        records: &mut Records<'_, F, B>,
        (point, rest): (&[F], &[F]),
        control: &mut Control<'_>,
    ) -> Result<f64, Error> {
        self.computed[1] += 1;
        let parameters = model.parameters();
        let mut total = CompensatedSum::zeros(parameters);
        let of_chunk = |buffers: &mut M::Pass, mut chunk: Part<'_, '_, F>| {
            let mut sum = CompensatedSum::zeros(parameters);
            let (len, near) = (chunk.len(), chunk.near());
            for (start, end) in steps(len, near) {
                model.add_compensated((point, rest), chunk.block(start..end), buffers, &mut sum);
            }
            sum
        };
        let add = |sum: CompensatedSum| {
            total.add(&sum);
            Ok(())
        };
        pass(records, self.n, (CHUNK, 2 * parameters), || model.pass(CHUNK), of_chunk, add, control)?;
        self.gradient.iter_mut().enumerate().for_each(|(j, gradient)| *gradient = convert(total.value(j)));
        Ok(self.of_the_risk(point))
    }

    /// Turns the sum of all gradients into the gradient of the mean with regulariser and linear term, and returns its norm.
    fn of_the_risk(&mut self, point: &[F]) -> f64 {
        let (mean, lambda): (F, F) = (convert(1.0 / self.n as f64), convert(self.certificate.strong_convexity));
        for (gradient, &point) in self.gradient.iter_mut().zip(point) {
            *gradient = mean * *gradient + lambda * point;
        }
        for (gradient, &linear) in self.gradient.iter_mut().zip(self.linear) {
            *gradient += linear;
        }
        length(&self.gradient)
    }
}
