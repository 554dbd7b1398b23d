//! Tests of the compensated gradient against 400-digit binary arithmetic, and of the acceptance rule of a certificate.

use dp_data::{Block, Description, Examples, Order, PassRequest, RowSource, RowStream, Rows, SourceError, Workers};
use dp_losses::{
    CompensatedGradient, Curved, HuberSvm, LinearModel, Logistic, Loss, LossKind, Model, ModelVisitor, ScaledSteps,
    Softmax, SoftmaxModel,
};
use dp_mechanisms::SeededRng;
use rand::RngExt;

use super::*;
use crate::engine::RowBatches;
use crate::engine::long::Long;
use crate::engine::tests::Chopped;
use crate::memory::MemorySource;
use crate::memory::tests::{Copied, OnlyUnexpanded};

fn inner(w: &[f64], x: &[f64]) -> Long {
    w.iter().zip(x).fold(Long::new(0.0), |sum, (w, x)| sum.plus(&Long::new(*w).times(&Long::new(*x))))
}

/// The residuals of one example: one for the logistic loss, one per class for softmax.
fn residuals(w: &[f64], x: &[f64], target: f64, classes: usize) -> Vec<Long> {
    let one = Long::new(1.0);
    if classes == 1 {
        // -y / (1 + e^s), from the exponential of a non-positive number.
        let margin = inner(w, x).times(&Long::new(target));
        let negative = margin.value() < 0.0;
        let tail = if negative { margin } else { Long::new(0.0).minus(&margin) }.exponential();
        let numerator = if negative { one.clone() } else { tail.clone() };
        return vec![numerator.over(&one.plus(&tail)).times(&Long::new(-target))];
    }
    let scores: Vec<Long> = w.chunks_exact(x.len()).map(|w| inner(w, x)).collect();
    let largest = scores.iter().max().unwrap().clone();
    let powers: Vec<Long> = scores.iter().map(|z| z.minus(&largest).exponential()).collect();
    let total = powers.iter().fold(Long::new(0.0), |sum, power| sum.plus(power));
    let of_class = |(class, power): (usize, &Long)| {
        let p = power.over(&total);
        if class as f64 == target { p.minus(&one) } else { p }
    };
    powers.iter().enumerate().map(of_class).collect()
}

/// The gradient of a risk in long arithmetic.
fn exact_gradient(w: &[f64], examples: &Examples<f64>, lambda: f64, linear: &[f64], classes: usize) -> Vec<Long> {
    let Rows::Dense { values, dim } = examples.block().rows else { unreachable!() };
    let mut sum = vec![Long::new(0.0); w.len()];
    for (x, &target) in values.chunks_exact(dim).zip(examples.targets()) {
        for (sum, residual) in sum.chunks_exact_mut(dim).zip(residuals(w, x, target, classes)) {
            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum = sum.plus(&residual.times(&Long::new(*x))));
        }
    }
    let n = Long::new(examples.len() as f64);
    let mean = sum.iter().map(|sum| sum.over(&n));
    let pull = w.iter().map(|w| Long::new(lambda).times(&Long::new(*w)));
    mean.zip(pull).zip(linear).map(|((mean, pull), t)| mean.plus(&pull).plus(&Long::new(*t))).collect()
}

fn distance(exact: &[Long], found: &[f64]) -> f64 {
    exact.iter().zip(found).fold(0.0f64, |norm, (exact, found)| norm.hypot(exact.minus(&Long::new(*found)).value()))
}

/// Rows of norm below 1 on which weights of norm 3R nearly cancel: every margin is small, every term large.
fn adversarial(n: usize, dim: usize, size: f64, classes: usize, seed: u64) -> (Vec<f64>, Examples<f64>) {
    let mut rng = SeededRng::new(seed);
    let scale = size / ((dim * classes) as f64).sqrt();
    let mut of_class: Vec<f64> = (0..dim).map(|_| scale * rng.random_range(0.5..1.0)).collect();
    of_class[dim - 1] = 0.7 * size / (classes as f64).sqrt();
    let w = (0..classes).flat_map(|_| of_class.iter().map(|w| w + rng.random_range(-2.0..2.0)).collect::<Vec<_>>());
    let w: Vec<f64> = w.collect();
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for i in 0..n {
        let mut row: Vec<f64> = (0..dim).map(|_| rng.random_range(-1.0..1.0) / (dim as f64).sqrt() * 0.7).collect();
        let rest: f64 = row[..dim - 1].iter().zip(&w).map(|(x, w)| x * w).sum();
        row[dim - 1] = ((rng.random_range(-1.0..1.0) - rest) / w[dim - 1]).clamp(-0.7, 0.7);
        rows.extend(row);
        targets.push(if classes > 1 { (i % classes) as f64 } else { f64::from(i % 2 == 0) * 2.0 - 1.0 });
    }
    (w, Examples::dense(rows, targets, dim).unwrap())
}

/// Errors of the compensated and of the plain gradient, and the certificate's allowance.
fn errors<M>(model: &M, risk: &Risk, w: &[f64], examples: &Examples<f64>, classes: usize) -> [f64; 3]
where
    M: CompensatedGradient<f64> + Curved<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
{
    let linear: Vec<f64> = (0..w.len()).map(|j| 1e-3 * (j as f64).cos() / w.len() as f64).collect();
    let exact = exact_gradient(w, examples, risk.strong_convexity, &linear, classes);
    let certificate = Certificate::new(risk, 1.0).unwrap();
    let mut full = FullGradient::new(model, &linear, &certificate);
    let mut source = MemorySource::new(examples.clone(), 1.0, classes as f64);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let mut control = Control::default();
    let mut records = Records::All(&mut batches);
    full.compensated_at(model, &mut records, (w, &[]), &mut control).unwrap();
    let compensated = distance(&exact, &full.gradient);
    full.at(model, &mut records, w, &mut control).unwrap();
    [compensated, distance(&exact, &full.gradient), risk.gradient_error()]
}

fn risk(n: usize, parameters: usize, classes: u32, size: f64) -> Risk {
    let kind = if classes > 1 { LossKind::Softmax(Softmax::new(classes).unwrap()) } else { LossKind::Logistic };
    let lipschitz = if classes > 1 { 2f64.sqrt() } else { 1.0 };
    // R such that w lies just within 3R.
    let strong_convexity = 3.0 * (lipschitz + 1e-3) / size * 0.999;
    Risk {
        n: n as u64,
        parameters: parameters as u64,
        outputs: u64::from(classes),
        smoothness: 0.5 + strong_convexity,
        strong_convexity,
        data_lipschitz: lipschitz,
        value_at_zero: f64::INFINITY,
        condition: kind.condition(&dp_losses::Domain::unit_rows()),
        linear_norm: 1e-3,
        linear_error: 0.0,
    }
}

/// On rows where terms of 1e4 cancel, the compensated gradient is within its bound, a few roundings of one gradient; the plain
/// gradient is not, and the test detects it.
#[test]
fn the_certifying_gradient_is_as_exact_as_the_certificate_says() {
    let mut plain_is_caught = 0;
    let cases = [(1100, 3, 1e4), (40, 60, 1e4), (300, 10, 1e6), (50, 8, 5.0), (1, 3, 1e4), (1, 60, 1e4), (1, 10, 1e6)];
    for (seed, (n, dim, size)) in cases.into_iter().enumerate() {
        let (w, examples) = adversarial(n, dim, size, 1, seed as u64);
        let length = w.iter().fold(0.0f64, |norm, w| norm.hypot(*w));
        let model = LinearModel::new(dim, Logistic);
        let [compensated, plain, allowed] = errors(&model, &risk(n, dim, 1, length), &w, &examples, 1);
        assert!(compensated <= allowed, "n={n} dim={dim} |w|={size:e}: {compensated:e}, allowed {allowed:e}");
        assert!(allowed < 1e-14, "{allowed:e}");
        // Errors of many records cancel; that of a single record does not.
        plain_is_caught += usize::from(n == 1 && plain > allowed);
    }
    assert!(plain_is_caught >= 2, "{plain_is_caught}");
    for (seed, (n, classes, size)) in [(60, 3u32, 1e4), (30, 11, 100.0)].into_iter().enumerate() {
        let (w, examples) = adversarial(n, 6, size, classes as usize, 10 + seed as u64);
        let length = w.iter().fold(0.0f64, |norm, w| norm.hypot(*w));
        let model = SoftmaxModel::new(6, Softmax::new(classes).unwrap());
        let risk = risk(n, w.len(), classes, length);
        let [compensated, _, allowed] = errors(&model, &risk, &w, &examples, classes as usize);
        assert!(compensated <= allowed, "classes={classes} |w|={size:e}: {compensated:e}, allowed {allowed:e}");
    }
}

/// The certificate's allowance does not grow with the number of records: the tolerance grows with `1/γ` alone.
#[test]
fn the_allowance_does_not_grow_with_the_records() {
    let at = |n: u64| Risk { n, ..risk(1000, 51, 1, 3000.0) }.gradient_error();
    assert!(at(1_000_000_000) < 1.1 * at(1000), "{:e} {:e}", at(1000), at(1_000_000_000));
}

/// Each rounding of a certifying gradient alone, in its unit, is within the allowance, which is not much larger.
#[test]
fn every_rounding_of_a_certifying_gradient_is_allowed_for() {
    let unit = f64::EPSILON / 2.0;
    let none = Risk { smoothness: 1e-9, data_lipschitz: 1e-9, condition: 0.0, linear_norm: 0.0, ..risk(1, 1, 1, 48.0) };
    let none = Risk { strong_convexity: 0.125, ..none };
    let near = |risk: Risk, needed: f64, most: f64| {
        let found = risk.gradient_error() / unit;
        assert!(found >= needed && found <= most * needed, "{found} {needed}");
    };
    // The derivative (8), its product, the last rounding of the sum, and the quotient, of a gradient of length 2.
    let long = Risk { data_lipschitz: 2.0, ..none };
    near(long, 11.0 * 2.0, 3.5);
    near(Risk { outputs: 100_000, ..long }, 2.0 * 100_000.0 * 2.0, 1.02);
    near(Risk { condition: 1e6, ..long }, 2.0 * 1e6, 1.02);
    // The linear term, and the regulariser at three times the radius that the linear term gives.
    near(Risk { linear_norm: 5.0, ..none }, 4.0 * (3.0 * 5.0 + 5.0), 1.02);
    near(Risk { linear_error: 1e-3, ..none }, 1e-3 / unit, 1.001);
    // Second-order terms: of predictions at three times the radius `L/γ = 16`, of sums over many chunks.
    near(Risk { parameters: 1 << 20, smoothness: 1e20, ..long }, 2f64.powi(40) * unit * 48.0 * 1e20, 1.02);
    near(Risk { parameters: 1, smoothness: 1e40, ..long }, unit * 48.0 * 1e40, 450.0);
    near(Risk { n: 1 << 60, ..long }, (2f64.powi(60) / CHUNK as f64).powi(2) * unit * 2.0, 1.001);
}

/// From slopes: `γR = L + ‖t‖`, which the hinge's linear part attains. From values: the objective at `R` equals that at 0,
/// `γR²/2 - ‖t‖R = ℓ₀`. `t` is the exact linear term.
#[test]
fn the_radius_is_where_slope_or_value_end() {
    for (linear_norm, linear_error, strong_convexity) in [(0.0, 0.0, 0.25), (0.5, 0.25, 0.25), (3.0, 0.0, 2.0)] {
        let risk = Risk { linear_norm, linear_error, strong_convexity, data_lipschitz: 4.0, ..risk(10, 3, 1, 10.0) };
        let largest = linear_norm + linear_error;
        let by_slope = Risk { value_at_zero: f64::INFINITY, ..risk }.radius();
        assert!((strong_convexity * by_slope / (4.0 + largest) - 1.0).abs() < 1e-11, "{by_slope}");
        let by_value = Risk { value_at_zero: 0.5, ..risk }.radius();
        assert!(by_value < by_slope);
        let above = 0.5 * strong_convexity * by_value * by_value - largest * by_value;
        assert!((above / 0.5 - 1.0).abs() < 1e-10, "{above}");
        assert_eq!(Risk { value_at_zero: 1e6, ..risk }.radius(), by_slope);
    }
}

/// A point is accepted if the bound on its gradient, rounding included, is at most γτ and the point is near the ball.
#[test]
fn what_a_certificate_accepts() {
    let risk = risk(1000, 10, 1, 30.0);
    let certificate = Certificate::new(&risk, 1e-3).unwrap();
    let most = risk.strong_convexity * 1e-3;
    let error = risk.gradient_error();
    assert!(certificate.accepts(most - 2.0 * error, 1.0) && !certificate.accepts(most - 0.5 * error, 1.0));
    assert!(!certificate.accepts(most * (1.0 + 1e-9), 1.0) && !certificate.accepts(f64::NAN, 1.0));
    // The bound allows for points up to 3R; the accepted ones are nearer.
    assert!(certificate.accepts(0.0, 2.7 * risk.radius()) && !certificate.accepts(0.0, 2.9 * risk.radius()));
    assert!(!certificate.accepts(0.0, f64::NAN));
    let finer = Certificate::new(&risk, Certificate::least_tolerance(&risk).unwrap()).unwrap();
    assert!(finer.tolerance() < 1e-9 && finer.accepts(0.0, 0.0));
}

/// The slope of a narrow parabola changes fast: rounding the margin moves it by `κ u`.
#[test]
fn a_steep_slope_is_allowed_for() {
    let loss = HuberSvm::new(1e-3).unwrap();
    let condition = LossKind::HuberSvm(loss).condition(&dp_losses::Domain::unit_rows());
    let mut largest = 0.0f64;
    for i in 0..20_000u32 {
        let margin = 1.0 + (f64::from(i) / 10_000.0 - 1.0) * 1e-3;
        let exact = Long::new(1e-3).plus(&Long::new(1.0).minus(&Long::new(margin)));
        let exact = exact.over(&Long::new(2e-3)).value().clamp(0.0, 1.0);
        for rounded in [margin.next_up(), margin.next_down()] {
            largest = largest.max((loss.derivative(rounded, 1.0) + exact).abs());
        }
    }
    let unit = f64::EPSILON / 2.0;
    assert!(largest <= (16.0 + 2.0 * condition) * unit && largest > 100.0 * unit, "{largest:e}");
}

/// Counts the passes over a source in memory.
struct Counted(MemorySource<f64>, usize);

impl RowSource<f64> for Counted {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.0.describe()
    }
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.1 += 1;
        self.0.open_pass(request)
    }
}

/// Counts the passes to the minimiser with and without curvatures.
struct Passes<'e> {
    examples: &'e Examples<f64>,
    risk: Risk,
}

impl ModelVisitor<f64> for Passes<'_> {
    type Output = [usize; 2];
    fn visit<M>(self, model: M) -> [usize; 2]
    where
        M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
    {
        let certificate =
            Certificate::new(&self.risk, 20.0 * Certificate::least_tolerance(&self.risk).unwrap()).unwrap();
        let target_bound = self.examples.targets().iter().fold(1.0, |most, target| target.max(most));
        let ran = [true, false].map(|curved| {
            let mut source = Counted(MemorySource::new(self.examples.clone(), 1.0, target_bound), 0);
            let mut batches = RowBatches::new(&mut source, Order::Declared);
            let mut full = FullGradient::new(&model, &[], &certificate);
            assert!(full.next_curved.is_some());
            if !curved {
                full.next_curved = None;
            }
            let start = vec![0.0; model.parameters()];
            let control = &mut Control::default();
            let records = &mut Records::All(&mut batches);
            let found = quasi_newton(&mut full, &model, records, start, control).unwrap();
            let Found::AtGoal(point) = found else { panic!("not certified: {curved}") };
            (point, source.1)
        });
        let [(with, fewer), (without, more)] = ran;
        let apart = with.iter().zip(&without).fold(0.0f64, |norm, (a, b)| norm.hypot(a - b));
        assert!(apart <= 2.0 * certificate.tolerance(), "{apart}");
        [fewer, more]
    }
}

/// Chunks are summed by any thread and added up in the order of the records: gradients, curvatures and the certified point have
/// the same bits. 70,000 records are three groups, the last of them short.
#[test]
fn the_number_of_threads_changes_no_bit() {
    // With many features, a part of the curvature is several chunks.
    // With many records, a sample comes first.
    for (n, dim, size, most) in [(70_000, 20, 0.2, 30), (17_000, 520, 0.04, 25), (135_000, 20, 0.2, 14)] {
        let mut rng = SeededRng::new(11);
        let rows: Vec<f64> = (0..n * dim).map(|_| rng.random_range(-size..size)).collect();
        let targets: Vec<f64> =
            rows.chunks_exact(dim).map(|x| if x[0] + x[5] > 0.1 * size { 1.0 } else { -1.0 }).collect();
        let risk = Risk { linear_norm: 0.0, linear_error: 0.0, ..risk(n, dim, 1, 1e3) };
        let certificate = Certificate::new(&risk, 1e-7).unwrap();
        let (examples, model) = (Examples::dense(rows, targets, dim).unwrap(), LinearModel::new(dim, Logistic));
        let with = |threads: usize| {
            let mut source = Counted(MemorySource::new(examples.clone(), 1.0, 1.0), 0);
            let mut batches = RowBatches::new(&mut source, Order::Declared);
            let workers = Workers::new(threads.try_into().unwrap());
            let mut control = Control { workers, ..Control::default() };
            let point = certified(&model, &mut batches, vec![0.0; dim], &[], &certificate, &mut control).unwrap();
            (point, source.1)
        };
        let one = with(1);
        assert!(one.1 > 4 && one.1 <= most, "a search of some passes: {}", one.1);
        assert!([2, 3, 8].iter().all(|&threads| with(threads) == one));
        let memory = MemorySource::new(examples.clone(), 1.0, 1.0);
        let mut blocks = Chopped { memory, blocks: vec![1500, 7000, 1], lose: 0, receipt: n as u64 };
        let mut batches = RowBatches::new(&mut blocks, Order::Declared);
        let mut control = Control::default();
        let streamed = certified(&model, &mut batches, vec![0.0; dim], &[], &certificate, &mut control).unwrap();
        assert_eq!(streamed, one.0, "nor do the blocks of a stream");
        for threads in [1, 3] {
            let mut kept = OnlyUnexpanded(Copied(examples.clone()));
            let mut batches = RowBatches::new(&mut kept, Order::Declared);
            let mut control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
            let found = certified(&model, &mut batches, vec![0.0; dim], &[], &certificate, &mut control).unwrap();
            assert_eq!(found, one.0, "nor where features are computed");
        }
    }
}

/// Of many features, compressed rows have no curvature: its factorisation would take longer than all gradients.
#[test]
fn many_features_have_curvatures_if_rows_are_dense() {
    let (n, dim) = (20_000, 600);
    let targets: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let dense = Examples::dense(vec![0.01; n as usize * dim], targets.clone(), dim).unwrap();
    let columns: Vec<u32> = (0..n as u32).map(|i| i % dim as u32).collect();
    let sparse = Examples::sparse((0..=n as usize).collect(), columns, vec![1.0; n as usize], targets, dim).unwrap();
    let certificate = Certificate::new(&risk(n as usize, dim, 1, 1e3), 1e-6).unwrap();
    for (examples, curved) in [(dense, true), (sparse, false)] {
        let model = LinearModel::new(dim, Logistic);
        let mut source = MemorySource::new(examples, 1.0, 1.0);
        let mut batches = RowBatches::new(&mut source, Order::Declared);
        let mut full = FullGradient::new(&model, &[], &certificate);
        full.at(&model, &mut Records::All(&mut batches), &vec![0.0; dim], &mut Control::default()).unwrap();
        assert_eq!((full.preconditioner.is_some(), full.next_curved.is_some()), (curved, curved));
    }
}

/// Features whose sizes differ by factors of hundreds: the curvature captures the scales, for dense rows and for sparse ones,
/// whose columns are ones in hardly any row.
#[test]
fn with_curvatures_few_passes_are_enough() {
    let (n, dim) = (6000, 24);
    let mut rng = SeededRng::new(3);
    let mut values = Vec::new();
    let (mut offsets, mut columns, mut ones) = (vec![0], Vec::new(), Vec::new());
    let mut classes = Vec::new();
    for i in 0..n {
        let x: Vec<f64> = (0..dim).map(|j| rng.random_range(-0.2..0.2) * 0.7f64.powi(j)).collect();
        classes.push(if x[0] + x[3] > 0.05 { 2.0 } else { f64::from(i % 2) });
        values.extend(x);
        // A column with a one in 1/2^(k+1) of the rows.
        columns.extend([(i as u32).trailing_zeros().min(dim as u32 / 2 - 1), dim as u32 / 2 + (i as u32 % 3)]);
        ones.extend([0.7, 0.7]);
        offsets.push(columns.len());
    }
    let two: Vec<f64> = classes.iter().map(|class| if *class == 2.0 { 1.0 } else { -1.0 }).collect();
    let dense = Examples::dense(values.clone(), two.clone(), dim as usize).unwrap();
    let sparse = Examples::sparse(offsets, columns, ones, two, dim as usize).unwrap();
    let of_classes = Examples::dense(values, classes, dim as usize).unwrap();
    for (name, examples, loss, classes) in
        [("dense", &dense, "logistic", 1), ("sparse", &sparse, "logistic", 1), ("softmax", &of_classes, "softmax:3", 3)]
    {
        let parameters = dim as usize * classes as usize;
        let risk = Risk { linear_norm: 0.0, linear_error: 0.0, ..risk(n as usize, parameters, classes, 1e4) };
        let kind: LossKind = loss.parse().unwrap();
        let [fewer, more] = kind.visit_model(dim as usize, Passes { examples, risk });
        // The coupling between classes is left to the quasi-Newton method.
        let share = if classes > 1 { 1.5 } else { 2.0 };
        let enough = fewer <= 22 && share * fewer as f64 <= more as f64;
        assert!(enough, "{name}: {fewer} passes with curvatures, {more} without");
    }
}

/// With a public number of gradients, a source sees only that number, whatever the records are.
#[test]
fn idle_gradients_make_the_passes_a_public_number() {
    let (n, model) = (500, LinearModel::new(3, Logistic));
    let risk = Risk { linear_norm: 0.0, linear_error: 0.0, ..risk(n, 3, 1, 100.0) };
    let certificate = Certificate::new(&risk, 1e-6).unwrap();
    let passes = |seed: u64, gradients| {
        let (_, examples) = adversarial(n, 3, 100.0, 1, seed);
        let mut source = Counted(MemorySource::new(examples, 1.0, 1.0), 0);
        let mut control = Control { gradients, ..Control::default() };
        let mut batches = RowBatches::new(&mut source, Order::Declared);
        let point = certified(&model, &mut batches, vec![0.0; 3], &[], &certificate, &mut control).unwrap();
        (point, source.1)
    };
    let mut different = Vec::new();
    // A curvature is computed with gradients of the same numbers for all data, and with none after the 48th.
    let (_, examples) = adversarial(n, 3, 100.0, 1, 0);
    let mut source = MemorySource::new(examples, 1.0, 1.0);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let mut curved = |mut full: FullGradient<'_, f64>| -> Vec<u64> {
        (1..=60)
            .filter(|_| {
                full.preconditioner = None;
                full.at(&model, &mut Records::All(&mut batches), &[0.0; 3], &mut Control::default()).unwrap();
                full.preconditioner.is_some()
            })
            .collect()
    };
    assert_eq!(curved(FullGradient::new(&model, &[], &certificate)), [1, 5, 13, 29]);
    assert_eq!(curved(FullGradient::new(&model, &[], &certificate).after_sample()), [1, 13, 37]);
    for seed in 0..8 {
        let ((point, needed), (padded, all)) = (passes(seed, None), passes(seed, Some(40)));
        assert_eq!((point, all), (padded, 43));
        different.push(needed);
    }
    assert!(different.iter().any(|needed| *needed != different[0]), "no data told anything: {different:?}");
}

/// Nor does the number of gradients of a sample depend on the records then.
#[test]
fn idle_gradients_make_those_of_a_sample_a_public_number() {
    let (n, model) = (135_000, LinearModel::new(3, Logistic));
    let risk = Risk { linear_norm: 0.0, linear_error: 0.0, ..risk(n, 3, 1, 100.0) };
    let certificate = Certificate::new(&risk, 1e-6).unwrap();
    let computed: Vec<[u64; 2]> = (0..3)
        .map(|seed| {
            let (_, examples) = adversarial(n, 3, 100.0, 1, seed);
            let mut source = MemorySource::new(examples, 1.0, 1.0);
            [None, Some(7)].map(|gradients| {
                let mut batches = RowBatches::new(&mut source, Order::Declared);
                let mut control = Control { gradients, ..Control::default() };
                of_a_sample(&model, &mut batches, &[0.0; 3], &[], &certificate, &mut control).unwrap().unwrap().1
            })
        })
        .collect();
    assert!(computed.iter().all(|[needed, all]| *needed < 40 && *all == 48), "{computed:?}");
}

/// The sample of sparse rows, some of them null records, leads to the same point; a model of several outputs has none.
#[test]
fn a_sample_of_sparse_rows_and_null_records_leads_to_the_same_point() {
    let (n, dim) = (135_000, 6);
    let mut rng = SeededRng::new(8);
    let columns = (0..n).flat_map(|i| [(i % 3) as u32, 3 + (i / 7 % 3) as u32]).collect();
    let values = (0..2 * n).map(|_| rng.random_range(-0.7..0.7)).collect();
    let targets = (0..n).map(|i| if i % 5 < 2 { 1.0 } else { -1.0 }).collect();
    let examples = Examples::sparse((0..=n).map(|i| 2 * i).collect(), columns, values, targets, dim).unwrap();
    let examples = examples.with_valid((0..n).map(|i| i % 11 != 3).collect()).unwrap();
    let risk = Risk { linear_norm: 0.0, linear_error: 0.0, ..risk(n, dim, 1, 1e4) };
    let (certificate, model) = (Certificate::new(&risk, 1e-6).unwrap(), LinearModel::new(dim, Logistic));
    let mut source = MemorySource::new(examples, 1.0, 1.0);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let control = &mut Control::default();
    let (start, linear) = (vec![0.0; dim], vec![1e-4; dim]);
    let sample = of_a_sample(&model, &mut batches, &start, &linear, &certificate, control).unwrap().unwrap().0;
    let found = certified(&model, &mut batches, start.clone(), &linear, &certificate, control).unwrap();
    let mut full = FullGradient::new(&model, &linear, &certificate);
    let all = quasi_newton(&mut full, &model, &mut Records::All(&mut batches), start, control).unwrap().into_point();
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |norm, (a, b)| norm.hypot(a - b));
    assert!(apart(&found, &all) <= 2.0 * certificate.tolerance());
    // That of the sample is near, and is not that of all records.
    assert!((1e-4..0.3).contains(&apart(&sample, &all)), "{}", apart(&sample, &all));
    let softmax = SoftmaxModel::new(dim, Softmax::new(3).unwrap());
    let none = of_a_sample(&softmax, &mut batches, &[0.0; 18], &[], &certificate, control).unwrap();
    assert!(none.is_none());
}

/// Rows longer than what is near in a cache are read one after the other.
#[test]
fn long_rows_have_gradients() {
    let (n, dim) = (3, 20_000);
    let examples = Examples::dense(vec![0.005; n * dim], vec![1.0, -1.0, 1.0], dim).unwrap();
    let certificate = Certificate::new(&Risk { linear_norm: 0.0, ..risk(n, dim, 1, 10.0) }, 1e-3).unwrap();
    let mut source = MemorySource::new(examples, 1.0, 1.0);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let model = LinearModel::new(dim, Logistic);
    let found = certified(&model, &mut batches, vec![0.0; dim], &[], &certificate, &mut Control::default()).unwrap();
    assert!(found[0] > 0.0 && found.iter().all(|weight| *weight == found[0]));
}

/// With many records the search starts from the minimiser of a sample: the certified point is the same within its tolerance, and
/// all records are read less often.
#[test]
fn a_sample_saves_passes() {
    let (n, dim) = (140_000, 6);
    let mut rng = SeededRng::new(5);
    let row = |rng: &mut SeededRng| -> Vec<f64> {
        (0..dim).map(|j| rng.random_range(-0.4..0.4) * 0.6f64.powi(j as i32)).collect()
    };
    let mut examples: Vec<(f64, Vec<f64>)> = (0..n)
        .map(|_| row(&mut rng))
        .map(|row| (if row[0] + row[1] + 0.5 * row[5] > 0.0 { 1.0 } else { -1.0 }, row))
        .collect();
    // Neighbours are alike.
    examples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (targets, rows): (Vec<f64>, Vec<Vec<f64>>) = examples.into_iter().unzip();
    let rows = rows.concat();
    let risk = Risk { linear_norm: 0.0, linear_error: 0.0, ..risk(n, dim, 1, 1e5) };
    let certificate = Certificate::new(&risk, 1e-7).unwrap();
    let model = LinearModel::new(dim, Logistic);
    let mut source = Counted(MemorySource::new(Examples::dense(rows, targets, dim).unwrap(), 1.0, 1.0), 0);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let control = &mut Control::default();
    let found = certified(&model, &mut batches, vec![0.0; dim], &[], &certificate, control).unwrap();
    let passes = core::mem::take(&mut source.1);
    let mut batches = RowBatches::new(&mut source, Order::Declared);
    let mut full = FullGradient::new(&model, &[], &certificate);
    let from_origin =
        quasi_newton(&mut full, &model, &mut Records::All(&mut batches), vec![0.0; dim], control).unwrap().into_point();
    assert!(passes + 3 <= source.1, "{passes} passes with a sample, {} without", source.1);
    let apart = found.iter().zip(&from_origin).fold(0.0f64, |norm, (a, b)| norm.hypot(a - b));
    assert!(apart <= 2.0 * certificate.tolerance(), "{apart:e}");
}

/// Runs the quasi-Newton method. Returns the number of gradients, whether the point is certified, and whether curvatures are
/// still computed or kept at the end.
struct Gradients<'e> {
    examples: &'e Examples<f64>,
    risk: Risk,
}

impl ModelVisitor<f64> for Gradients<'_> {
    type Output = (u64, bool, bool);
    fn visit<M>(self, model: M) -> (u64, bool, bool)
    where
        M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
    {
        let certificate =
            Certificate::new(&self.risk, 20.0 * Certificate::least_tolerance(&self.risk).unwrap()).unwrap();
        let target_bound = self.examples.targets().iter().fold(1.0, |most, target| target.max(most));
        let mut source = MemorySource::new(self.examples.clone(), 1.0, target_bound);
        let mut batches = RowBatches::new(&mut source, Order::Declared);
        let mut full = FullGradient::new(&model, &[], &certificate);
        let start = vec![0.0; model.parameters()];
        let control = &mut Control::default();
        let found = quasi_newton(&mut full, &model, &mut Records::All(&mut batches), start, control).unwrap();
        let curved = full.next_curved.is_some() || full.preconditioner.is_some();
        (full.computed[0], matches!(found, Found::AtGoal(_)), curved)
    }
}

/// Twenty classes and a weak regulariser: the coupling between classes, which the curvature's blocks ignore, takes more than
/// the 48 gradients that have curvatures. No curvature is computed after the 48th, and the point is still certified.
#[test]
fn curvatures_are_given_up_after_so_many_gradients() {
    let (n, dim, classes) = (100, 3, 20u32);
    let mut rng = SeededRng::new(3);
    let rows = (0..n * dim).map(|k| rng.random_range(-0.5..0.5) * 0.5f64.powi((k % dim) as i32)).collect();
    let targets = (0..n).map(|i| f64::from(i as u32 % classes)).collect();
    let examples = Examples::dense(rows, targets, dim).unwrap();
    let kind = LossKind::Softmax(Softmax::new(classes).unwrap());
    for (size, more) in [(1e6, false), (1e8, true)] {
        let risk = Risk { linear_norm: 0.0, linear_error: 0.0, ..risk(n, dim * classes as usize, classes, size) };
        let (gradients, certified, curved) = kind.visit_model(dim, Gradients { examples: &examples, risk });
        assert!(certified && gradients < QUASI_NEWTON_GRADIENTS, "{size:e}: {gradients}");
        assert_eq!((gradients > CURVED_GRADIENTS, curved), (more, !more), "{size:e}: {gradients}");
    }
}
