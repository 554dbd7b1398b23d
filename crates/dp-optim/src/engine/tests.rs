use core::sync::atomic::AtomicBool;

use dp_accountant::{DpEvent, EventLog, NoiseMultiplier, ReplaceOne};
use dp_data::{Description, Examples, Order, PassReceipt, PassRequest, RowSource, RowStream, SourceError};
use dp_losses::{LinearModel, Logistic};
use dp_mechanisms::clip::{ClippedSum, ClippingNorm};
use dp_mechanisms::{Gaussian, Mechanism, ReleaseRng, SeededRng};
use rand::RngExt;

use super::*;
use crate::averaging::Averaging;
use crate::growth::Arithmetic;
use crate::memory::MemorySource;
use crate::schedule::Schedule;

const DIM: usize = 4;

fn examples(n: usize, seed: u64) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let values = (0..n * DIM).map(|_| rng.random_range(-0.5..0.5)).collect();
    let targets = (0..n).map(|_| if rng.random_bool(0.5) { 1.0 } else { -1.0 }).collect();
    Examples::dense(values, targets, DIM).unwrap()
}

/// The first feature of each example of each batch, and the lengths of the pieces.
#[derive(Default)]
struct Seen {
    takes: Pieces,
    batches: Vec<Vec<f64>>,
    lengths: Vec<Vec<usize>>,
    within: bool,
}

impl Visit<f64, LinearModel<f64, Logistic>> for Seen {
    fn pieces(&self) -> Pieces {
        self.takes
    }

    fn batch(&mut self, batch: dp_data::Block<'_, f64>, piece: Piece) -> Result<(), Error> {
        let dp_data::Rows::Dense { values, dim } = batch.rows else { unreachable!() };
        assert_eq!((piece.examples, piece.starts), (batch.len(), !self.within));
        if piece.starts {
            self.batches.push(Vec::new());
            self.lengths.push(Vec::new());
        }
        self.batches.last_mut().unwrap().extend(values.chunks(dim).map(|row| row[0]));
        self.lengths.last_mut().unwrap().push(batch.len());
        self.within = !piece.ends;
        Ok(())
    }
}

#[test]
fn a_pass_is_cut_into_the_listed_sizes_however_the_source_cuts_its_blocks() {
    let data = examples(20, 3);
    let dp_data::Rows::Dense { values, .. } = data.block().rows else { unreachable!() };
    let firsts: Vec<f64> = values.chunks(DIM).map(|row| row[0]).collect();
    // Surplus examples are delivered, counted and not used; the last batch is short if the rows run out.
    for sizes in [&[1, 5, 2, 7][..], &[20], &[19, 1], &[], &[15, 30, 4]] {
        let mut expected = Vec::new();
        let mut start = 0;
        for &size in sizes {
            let end = (start + size).min(20);
            if start < end {
                expected.push(firsts[start..end].to_vec());
            }
            start = end;
        }
        for blocks in [&[20][..], &[1, 2, 3], &[7]] {
            let mut source = Chopped {
                memory: MemorySource::new(data.clone(), 1.0, 1.0),
                blocks: blocks.to_vec(),
                lose: 0,
                receipt: 20,
            };
            let sizes = BatchSizes::Listed(sizes.into());
            for takes in [Pieces::Whole, Pieces::Of(1), Pieces::Of(3), Pieces::MultiplesOf(1), Pieces::MultiplesOf(3)] {
                let mut seen = Seen { takes, ..Seen::default() };
                let mut batches = RowBatches::new(&mut source, Order::Declared);
                let rows = batches.pass(0, &sizes, &mut seen).unwrap();
                assert_eq!((rows, &seen.batches, seen.within), (20, &expected, false), "{sizes:?} {blocks:?}");
                for lengths in seen.lengths {
                    let (&last, lengths) = lengths.split_last().unwrap();
                    assert!(match takes {
                        Pieces::Whole => lengths.is_empty(),
                        Pieces::Of(size) => last <= size && lengths.iter().all(|&length| length == size),
                        Pieces::MultiplesOf(size) => lengths.iter().all(|&length| length % size == 0),
                    });
                }
            }
        }
    }
}

fn run_of(n: u64, batch_size: usize, averaging: Averaging) -> Run {
    let updates = n.div_ceil(batch_size as u64) * 3;
    Run {
        n,
        batches: BatchSizes::Equal(batch_size),
        divisor: Divisor::Nominal,
        steps: Schedule::InverseSqrt { step: 2.0 }.prepare(updates).unwrap(),
        weights: averaging.prepare(updates).unwrap(),
    }
}

/// Delivers a memory source's pass in blocks of other lengths.
pub(super) struct Chopped {
    pub(super) memory: MemorySource<f64>,
    pub(super) blocks: Vec<usize>,
    pub(super) lose: usize,
    /// The number of rows that its receipt states.
    pub(super) receipt: u64,
}

struct ChoppedPass<'a> {
    examples: &'a Examples<f64>,
    blocks: Vec<usize>,
    at: usize,
    end: usize,
    receipt: u64,
}

impl RowSource<f64> for Chopped {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.memory.describe()
    }
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        drop(self.memory.open_pass(request)?);
        let examples = self.memory.examples();
        let end = examples.len() - self.lose;
        Ok(Box::new(ChoppedPass { examples, blocks: self.blocks.clone(), at: 0, end, receipt: self.receipt }))
    }
}

impl RowStream<f64> for ChoppedPass<'_> {
    fn next_block(&mut self) -> Result<Option<dp_data::Block<'_, f64>>, SourceError> {
        let length = self.blocks.remove(0);
        self.blocks.push(length);
        let start = self.at;
        self.at = (start + length).min(self.end);
        Ok((start < self.end).then(|| self.examples.block().slice(start..self.at)))
    }
    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.receipt })
    }
}

fn train<S: RowSource<f64>>(source: &mut S, run: &Run, fresh: bool, arithmetic: Arithmetic) -> Result<Vec<f64>, Error> {
    let model = LinearModel::new(DIM, Logistic);
    let order = Order::Keyed { key: [7; 32], fresh_each_pass: fresh };
    let mut batches = RowBatches::new(source, order);
    let (start, mut control) = (vec![0.0; DIM], Control::default());
    let (lambda, radius, batch_size) = (0.1, Some(0.9), run.batches.largest());
    match arithmetic {
        Arithmetic::Scaled => {
            let mut iterate = Scaled::new(&model, start, true, batch_size, lambda, radius);
            run.run(&model, &mut batches, &mut iterate, &mut Passes(3), &mut control)?;
            Ok(iterate.into_output())
        }
        Arithmetic::TwoParts => {
            let mut iterate = TwoParts::new(&model, start, true, batch_size, lambda, radius);
            run.run(&model, &mut batches, &mut iterate, &mut Passes(3), &mut control)?;
            Ok(iterate.into_output())
        }
        Arithmetic::Buffered => {
            let rule = GradientDescent { lambda, radius };
            let mut iterate = Buffered::new(start, true, PlainGradient::new(&model, batch_size), rule);
            run.run(&model, &mut batches, &mut iterate, &mut Passes(3), &mut control)?;
            Ok(Iterate::<f64, LinearModel<f64, Logistic>>::into_output(iterate))
        }
    }
}

#[test]
fn a_stream_gives_the_same_bits_as_memory() {
    for (n, batch_size) in [(103, 1), (103, 7), (103, 50), (103, 103), (20_000, 9000), (20_000, 20_000)] {
        let run = run_of(n, batch_size, Averaging::Uniform);
        for (fresh, arithmetic) in [false, true].into_iter().flat_map(|fresh| Arithmetic::ALL.map(|kind| (fresh, kind)))
        {
            let memory = || MemorySource::new(examples(n as usize, 1), 1.0, 1.0);
            let expected = train(&mut memory(), &run, fresh, arithmetic).unwrap();
            for blocks in [vec![1], vec![3, 11, 2], vec![60], vec![5, 98], vec![1000], vec![8192], vec![20_000]] {
                let mut source = Chopped { memory: memory(), blocks: blocks.clone(), lose: 0, receipt: n };
                let found = train(&mut source, &run, fresh, arithmetic).unwrap();
                assert_eq!(found, expected, "{batch_size} {blocks:?} {fresh} {arithmetic:?}");
            }
        }
    }
}

#[test]
fn all_representations_agree() {
    for averaging in [Averaging::Uniform, Averaging::Polynomial, Averaging::Suffix { updates: 5 }] {
        // The last comes in pieces where it is buffered.
        for (n, batch_size) in [(80, 1), (80, 10), (20_000, 9000)] {
            let run = run_of(n, batch_size, averaging.clone());
            let mut source = MemorySource::new(examples(n as usize, 2), 1.0, 1.0);
            let [buffered, scaled, two_parts] =
                Arithmetic::ALL.map(|arithmetic| train(&mut source, &run, false, arithmetic).unwrap());
            for (a, b) in buffered.iter().chain(&buffered).zip(scaled.iter().chain(&two_parts)) {
                assert!((a - b).abs() < 1e-12, "{averaging:?}: {a} and {b}");
            }
        }
    }
}

#[test]
fn a_pass_that_loses_rows_is_an_error() {
    // Whether or not its receipt states the true number.
    for receipt in [19, 20] {
        let memory = MemorySource::new(examples(20, 3), 1.0, 1.0);
        let mut source = Chopped { memory, blocks: vec![4], lose: 1, receipt };
        let error = train(&mut source, &run_of(20, 5, Averaging::Last), false, Arithmetic::Buffered).unwrap_err();
        assert!(matches!(error, Error::Source(SourceError::CountChanged { expected: 20, found: 19 })), "{error}");
    }
}

#[test]
fn a_cancelled_run_is_an_error_and_progress_is_reported() {
    let model = LinearModel::new(DIM, Logistic);
    let n = 50_000;
    let run = run_of(n, 10, Averaging::Last);
    let mut source = MemorySource::new(examples(n as usize, 4), 1.0, 1.0);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let cancelled = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut show = |progress: Progress| {
        seen.push(progress);
        if progress.pass == 1 {
            cancelled.store(true, core::sync::atomic::Ordering::Relaxed);
        }
    };
    let mut control = Control { cancelled: Some(&cancelled), progress: Some(&mut show), ..Control::default() };
    let mut iterate = Scaled::new(&model, vec![0.0; DIM], false, 10, 0.0, None);
    let error = run.run(&model, &mut batches, &mut iterate, &mut Passes(3), &mut control).unwrap_err();
    assert!(matches!(error, Error::Interrupted));
    assert_eq!(seen.iter().rfind(|progress| progress.pass == 0).map(|progress| progress.rows), Some(n));
    assert!(seen.len() > 3 && seen.iter().all(|progress| progress.pass < 2));
}

/// Clipped gradients with Gaussian noise on each sum: a model of a per-step mechanism.
struct ClippedAndNoised<'r, M: Model<f64>, R: ReleaseRng> {
    pass: M::Pass,
    norms: Vec<f64>,
    sum: ClippedSum<f64, ReplaceOne>,
    mechanism: Gaussian<ReplaceOne>,
    log: EventLog<ReplaceOne>,
    rng: &'r mut R,
}

impl<M: Model<f64>, R: ReleaseRng> GradientEstimate<f64, M> for ClippedAndNoised<'_, M, R> {
    fn estimate(
        &mut self,
        model: &M,
        parameters: &[f64],
        batch: M::Batch<'_>,
        piece: Piece,
        sum: &mut [f64],
    ) -> Result<(), Error> {
        let Self { pass, norms, sum: clipped, mechanism, log, rng } = self;
        model.forward(parameters, batch, pass);
        model.backward(parameters, batch, pass);
        norms.resize(piece.examples * model.blocks().len(), 0.0);
        model.squared_norms(batch, pass, norms);
        clipped.add(norms, |coefficients, sum| model.add_weighted(batch, pass, coefficients, sum))?;
        sum.copy_from_slice(mechanism.release(clipped.finish(), log, *rng)?.get());
        Ok(())
    }
}

#[test]
fn noise_at_every_step_plugs_in_as_a_gradient_estimate() {
    let model = LinearModel::new(DIM, Logistic);
    let n = 40;
    let run = run_of(n, 8, Averaging::Last);
    let mut source = MemorySource::new(examples(n as usize, 5), 1.0, 1.0);
    let norm = ClippingNorm::new(0.3).unwrap();
    let mut rng = SeededRng::new(9);
    let sum = ClippedSum::new(DIM, 1, norm, DIM as f64, 8, 8).unwrap();
    let multiplier = NoiseMultiplier::new(1.5).unwrap();
    let gradient = ClippedAndNoised::<LinearModel<f64, Logistic>, _> {
        pass: model.pass(8),
        norms: Vec::new(),
        mechanism: Gaussian::from_noise_multiplier(sum.sensitivity(), multiplier).unwrap(),
        sum,
        log: EventLog::new(),
        rng: &mut rng,
    };
    let rule = GradientDescent { lambda: 0.0, radius: None };
    let mut iterate = Buffered::new(vec![0.0; DIM], false, gradient, rule);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    run.run(&model, &mut batches, &mut iterate, &mut Passes(3), &mut Control::default()).unwrap();
    let log = iterate.into_parts().1.log;
    let [(DpEvent::Gaussian { std_dev, sensitivity }, 15)] = log.entries() else {
        panic!("not one release for each of 15 updates: {:?}", log.entries())
    };
    assert!((std_dev - 0.9).abs() < 1e-12 && (sensitivity - 0.6).abs() < 1e-12);
    assert!(!log.is_private(), "the generator was reproducible");
}

/// The risk of logistic regression.
fn risk(n: u64, lambda: f64) -> minimise::Risk {
    minimise::Risk {
        n,
        parameters: DIM as u64,
        outputs: 1,
        smoothness: 0.25 + lambda,
        strong_convexity: lambda,
        data_lipschitz: 1.0,
        value_at_zero: f64::INFINITY,
        condition: 0.224,
        linear_norm: 0.0,
        linear_error: 0.0,
    }
}

#[test]
fn the_certified_minimiser_is_near_the_minimiser_and_neighbours_are_near_each_other() {
    let (n, lambda) = (60, 0.05);
    let model = LinearModel::new(DIM, Logistic);
    let minimise = |examples: &Examples<f64>, tolerance: f64| {
        let certificate = minimise::Certificate::new(&risk(n, lambda), tolerance).unwrap();
        let mut source = MemorySource::new(examples.clone(), 1.0, 1.0);
        let mut batches = RowBatches::new(&mut source, Order::Declared);
        minimise::certified(&model, &mut batches, vec![0.3; DIM], &[], &certificate, &mut Control::default()).unwrap()
    };
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
    let base = examples(n as usize, 6);
    let exact = minimise(&base, 1e-9);
    // The full gradient vanishes, computed independently of the solver.
    let dp_data::Rows::Dense { values, dim } = base.block().rows else { unreachable!() };
    let mut gradient: Vec<f64> = exact.iter().map(|w| lambda * w).collect();
    for (row, y) in values.chunks(dim).zip(base.targets()) {
        let margin: f64 = row.iter().zip(&exact).map(|(x, w)| x * w).sum::<f64>() * y;
        let derivative = -y / (1.0 + margin.exp()) / n as f64;
        gradient.iter_mut().zip(row).for_each(|(g, x)| *g += derivative * x);
    }
    assert!(gradient.iter().all(|g| g.abs() < 1e-10), "{gradient:?}");
    for tolerance in [1.0, 0.1, 1e-3, 1e-6] {
        let found = minimise(&base, tolerance);
        assert!(distance(&found, &exact) <= tolerance, "{tolerance}");
        let bound = crate::growth::closed_form::approximate_minimiser(n, lambda, 2.0, tolerance);
        for i in 0..10 {
            let mut values = values.to_vec();
            let mut targets = base.targets().to_vec();
            targets[i] = -targets[i];
            values[i * DIM..(i + 1) * DIM].fill(0.5);
            let neighbour = Examples::dense(values, targets, DIM).unwrap();
            assert!(distance(&minimise(&neighbour, tolerance), &found) <= bound);
        }
    }
}

#[test]
fn a_tolerance_below_rounding_is_refused() {
    let certificate = |tolerance| minimise::Certificate::new(&risk(1000, 0.01), tolerance);
    assert!(certificate(1e-6).is_ok());
    assert!(matches!(certificate(1e-13), Err(Error::NotProved { .. })));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(certificate(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_fallback_certifies_by_its_count() {
    let certificate = minimise::Certificate::new(&risk(30, 0.1), 1e-5).unwrap();
    let model = LinearModel::new(DIM, Logistic);
    let base = examples(30, 8);
    let mut source = MemorySource::new(base, 1.0, 1.0);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let mut control = Control::default();
    let exact = minimise::certified(&model, &mut batches, vec![0.0; DIM], &[], &certificate, &mut control).unwrap();
    let by_count = minimise::by_count(&model, &mut batches, vec![5.0; DIM], &[], &certificate, &mut control).unwrap();
    let distance: f64 = exact.iter().zip(&by_count).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
    assert!(distance <= 2e-5, "{distance}");
}

/// Steps that are shorter than half a unit in the last place of the weights count, which plain descent would not take.
#[test]
fn the_fallback_goes_on_below_the_last_place() {
    let (strong_convexity, smoothness, slope) = (0.01, 10.0, 0.7);
    let risk = minimise::Risk { smoothness, linear_norm: slope, ..risk(4, strong_convexity) };
    let least = minimise::Certificate::least_tolerance(&risk).unwrap();
    let certificate = minimise::Certificate::new(&risk, least).unwrap();
    let model = LinearModel::new(1, Logistic);
    let rows = Examples::dense(vec![0.0; 4], vec![1.0; 4], 1).unwrap();
    let mut source = MemorySource::new(rows, 1.0, 1.0);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let mut control = Control::default();
    let minimiser = -slope / strong_convexity;
    for start in [0.0, 2.0 * minimiser] {
        let found =
            minimise::by_count(&model, &mut batches, vec![start], &[slope], &certificate, &mut control).unwrap();
        let distance = (found[0] - minimiser).abs();
        assert!(distance <= least, "{distance:e} {least:e}");
        let mut plain: f64 = start;
        (0..100_000).for_each(|_| plain -= (strong_convexity * plain + slope) / smoothness);
        assert!((plain - minimiser).abs() > 2.0 * least, "{plain} {least:e}");
    }
}

/// Delivers the same malformed blocks in each pass.
struct Malformed(Vec<(Examples<f64>, usize)>);

impl RowSource<f64> for Malformed {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description { n: 4, dim: DIM, row_norm: 1.0, target_bound: 1.0, engine: "malformed" })
    }
    fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        Ok(Box::new(MalformedPass(&self.0)))
    }
}

/// The remaining blocks, each with the number of targets that it shows.
struct MalformedPass<'m>(&'m [(Examples<f64>, usize)]);

impl RowStream<f64> for MalformedPass<'_> {
    fn next_block(&mut self) -> Result<Option<dp_data::Block<'_, f64>>, SourceError> {
        let Some(((examples, targets), rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        let block = examples.block();
        Ok(Some(dp_data::Block { targets: &block.targets[..*targets], ..block }))
    }
    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: 4 })
    }
}

#[test]
fn blocks_of_another_shape_are_refused_before_a_model_sees_them() {
    let dense = |rows: usize, dim: usize| Examples::dense(vec![0.1; rows * dim], vec![1.0; rows], dim).unwrap();
    let sparse = || Examples::sparse(vec![0, 1, 2], vec![0, 1], vec![0.5, 0.5], vec![1.0; 2], DIM).unwrap();
    let run = Run {
        n: 4,
        batches: BatchSizes::Equal(3),
        divisor: Divisor::Nominal,
        steps: Schedule::Constant { step: 0.1 }.prepare(6).unwrap(),
        weights: Averaging::Last.prepare(6).unwrap(),
    };
    let refused = [
        vec![(dense(4, DIM + 1), 4)],
        vec![(dense(4, DIM), 3)],
        vec![(sparse(), 1)],
        vec![(dense(2, DIM), 2), (sparse(), 2)],
        vec![(sparse(), 2), (dense(2, DIM), 2)],
    ];
    for blocks in refused {
        for arithmetic in Arithmetic::ALL {
            let error = train(&mut Malformed(blocks.clone()), &run, false, arithmetic).unwrap_err();
            assert!(matches!(error, Error::Source(SourceError::Shape { .. })), "{error:?}");
        }
    }
    assert!(
        train(&mut Malformed(vec![(dense(2, DIM), 2), (dense(2, DIM), 2)]), &run, false, Arithmetic::Buffered).is_ok()
    );
}
