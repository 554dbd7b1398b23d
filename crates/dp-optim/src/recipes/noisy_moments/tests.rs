use dp_accountant::certificate::Derivation as _;
use dp_accountant::{DpEvent, ReplaceOne, ZeroOut};
use dp_data::{
    Block, Description, Examples, PassReceipt, PassRequest, RowSource, RowStream, Rows, SourceError, Workers,
};
use dp_mechanisms::{ReleaseRng as _, SeededRng};
use proptest::prelude::*;
use rand::RngExt;

use super::*;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::memory::tests::{Copied, OnlyUnexpanded};
use crate::recipes::{Planned as _, Recipe as _, budget};

/// Rows in the unit ball; targets are linear in them plus some noise.
fn examples(n: usize, seed: u64) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row = [rng.random_range(-0.6..0.6), rng.random_range(-0.6..0.6), 0.5];
        targets.push(0.9 * row[0] - 0.5 * row[1] + 0.2 * row[2] + rng.random_range(-0.05..0.05));
        rows.extend(row);
    }
    Examples::dense(rows, targets, 3).unwrap()
}

fn stage(recipe: &NoisyMoments, n: u64, dim: u64) -> Stage {
    Stage::of(&Problem::new(recipe, n, dim, AdjacencyKind::ZeroOut).unwrap())
}

fn train(recipe: &NoisyMoments, data: Examples<f64>, budget: Budget) -> Vec<f64> {
    let plan = recipe.plan::<ZeroOut>(data.len() as u64, data.dim() as u64, budget).unwrap();
    let mut source = MemorySource::new(data, recipe.row_norm, recipe.target_bound);
    let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut Control::default()).unwrap();
    assert_eq!(trained.log.to_event(), plan.event());
    assert_eq!(trained.derivation.event().unwrap(), plan.event());
    trained.weights.into_inner()
}

#[test]
fn with_hardly_any_noise_it_is_least_squares() {
    for delta in [0.0, 1e-6] {
        let weights = train(&NoisyMoments::new(LossKind::Squared), examples(20_000, 1), budget(1e4, delta));
        for (weight, expected) in weights.iter().zip([0.9, -0.5, 0.2]) {
            assert!((weight - expected).abs() < 0.01, "{weights:?}");
        }
    }
    // Twice that for the logistic loss on targets -1 and +1: the log-odds near 0.
    let data = examples(20_000, 1);
    let Rows::Dense { values, .. } = data.block().rows else { unreachable!() };
    let labels: Vec<f64> = data.targets().iter().map(|y| y.signum()).collect();
    let signs = Examples::dense(values.to_vec(), labels.clone(), 3).unwrap();
    let squared = train(&NoisyMoments::new(LossKind::Squared), signs.clone(), budget(1e4, 1e-6));
    let logistic = train(&NoisyMoments::new(LossKind::Logistic), signs, budget(1e4, 1e-6));
    for (twice, once) in logistic.iter().zip(&squared) {
        assert!((twice - 2.0 * once).abs() < 1e-9);
    }
    // Softmax on two classes gives the same model, as the difference of the classes' weights.
    let classes = labels.iter().map(|y| f64::midpoint(*y, 1.0)).collect();
    let two = Examples::dense(values.to_vec(), classes, 3).unwrap();
    let softmax = train(&NoisyMoments::new("softmax:2".parse().unwrap()), two, budget(1e4, 1e-6));
    for ((zero, one), expected) in softmax[..3].iter().zip(&softmax[3..]).zip(&logistic) {
        assert!((one - zero - expected).abs() < 0.02, "{softmax:?} {logistic:?}");
    }
}

#[test]
fn a_ridge_is_added_to_what_the_noise_needs() {
    let plain = train(&NoisyMoments::new(LossKind::Squared), examples(2000, 1), budget(1e4, 1e-6));
    let ridge = NoisyMoments { lambda: 1.0, ..NoisyMoments::new(LossKind::Squared) };
    let shrunk = train(&ridge, examples(2000, 1), budget(1e4, 1e-6));
    // The features' second moments are 0.12.
    assert!((shrunk[0] / plain[0] - 0.12 / 1.12).abs() < 0.01, "{shrunk:?} {plain:?}");
}

#[test]
fn null_records_and_sparse_rows_are_summed_as_such() {
    let data = examples(50, 5);
    let Rows::Dense { values, .. } = data.block().rows else { unreachable!() };
    let mut with_null = values.to_vec();
    with_null.extend([f64::NAN, 0.3, 0.1]);
    let targets: Vec<f64> = data.targets().iter().copied().chain([1.0]).collect();
    let with_null = Examples::dense(with_null, targets, 3).unwrap();
    let recipe = NoisyMoments::new(LossKind::Squared);
    // The noise is the same: that of the same generator and scale.
    let plan = recipe.plan::<ZeroOut>(51, 3, budget(1.0, 1e-6)).unwrap();
    let moments = |data: Examples<f64>| {
        let mut source = MemorySource::new(data, 1.0, 1.0);
        let (mut log, mut rng) = (dp_accountant::EventLog::<ZeroOut>::new(), SeededRng::new(1));
        let released = plan.run().moments::<f64, _>(&mut source, &mut log, &mut rng.lend(), &mut Control::default());
        released.unwrap().into_inner()
    };
    let mut as_zeros = values.to_vec();
    as_zeros.extend([0.0; 3]);
    let targets: Vec<f64> = data.targets().iter().copied().chain([1.0]).collect();
    let as_zeros = Examples::dense(as_zeros, targets.clone(), 3).unwrap();
    let expected = moments(as_zeros);
    assert_eq!(moments(with_null), expected);
    let offsets = (0..=51).map(|i| 3 * i).collect();
    let mut sparse = values.to_vec();
    sparse.extend([0.0; 3]);
    let sparse = Examples::sparse(offsets, [0u32, 1, 2].repeat(51), sparse, targets, 3).unwrap();
    assert_eq!(moments(sparse), expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let usual = NoisyMoments::new(LossKind::Squared);
    let refused = |recipe: &NoisyMoments, n, dim| recipe.plan::<ZeroOut>(n, dim, budget(1.0, 1e-6)).unwrap_err();
    assert!(matches!(refused(&usual, 0, 3), Error::Count { .. }));
    assert!(matches!(refused(&usual, 3, 0), Error::Count { .. }));
    assert!(matches!(refused(&usual, 100, 1 << 40), Error::Source(SourceError::Memory(_))));
    for lambda in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(&NoisyMoments { lambda, ..usual.clone() }, 9, 3), Error::OutOfRange { .. }));
    }
    // Rows and targets may have any bound, also for binary losses.
    let long = NoisyMoments { row_norm: 3.0, target_bound: 2.0, ..NoisyMoments::new(LossKind::Logistic) };
    let plan = long.plan::<ZeroOut>(9, 3, budget(1.0, 1e-6)).unwrap();
    assert!((plan.run().sensitivity() / 117f64.sqrt() - 1.0).abs() < 1e-12); // 3 √(9 + 4)
    assert_eq!(plan.derivation().event().unwrap(), plan.event());
    let none = NoisyMoments { noise_mode: NoiseMode::None, ..usual.clone() };
    assert!(matches!(refused(&none, 9, 3), Error::NotProved { .. }));
    let plan = usual.plan::<ZeroOut>(100, 3, budget(1.0, 1e-6)).unwrap();
    let mut wider = MemorySource::new(examples(100, 1), 2.0, 1.0);
    assert!(plan.train::<f64>(&mut wider, &mut SeededRng::new(1), &mut Control::default()).is_err());
    let mut fewer = MemorySource::new(examples(99, 1), 1.0, 1.0);
    assert!(plan.train::<f64>(&mut fewer, &mut SeededRng::new(1), &mut Control::default()).is_err());
}

/// A source that delivers examples thirty at a time and states the given number of rows.
struct Blocks {
    examples: Examples<f64>,
    claimed: u64,
}

/// The remaining rows, and their first index.
struct BlocksPass<'b>(&'b Blocks, usize);

impl RowSource<f64> for Blocks {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description { n: self.claimed, dim: 3, row_norm: 1.0, target_bound: 1.0, engine: "blocks" })
    }
    fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        Ok(Box::new(BlocksPass(self, 0)))
    }

    fn gather(&mut self, _: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        unreachable!("moments are of a pass")
    }
}

impl RowStream<f64> for BlocksPass<'_> {
    fn next_block(&mut self) -> Result<Option<Block<'_, f64>>, SourceError> {
        let (examples, start) = (&self.0.examples, self.1);
        self.1 = (start + 30).min(examples.len());
        Ok((start < self.1).then(|| examples.block().slice(start..self.1)))
    }
    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.0.claimed })
    }
}

/// The second moments are summed exactly, so that the threads' parts add up to the same bits.
#[test]
fn the_number_of_threads_changes_no_bit() {
    let plan = NoisyMoments::new(LossKind::Squared).plan::<ZeroOut>(20_001, 3, budget(1.0, 1e-6)).unwrap();
    let with = |threads: usize| {
        let workers = Workers::new(threads.try_into().unwrap());
        let mut source = MemorySource::new(examples(20_001, 1), 1.0, 1.0);
        let mut control = Control { workers, ..Control::default() };
        plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut control).unwrap().weights.into_inner()
    };
    let one = with(1);
    assert!([2, 3, 8].iter().all(|&threads| with(threads) == one));
    for threads in [1, 3] {
        let workers = Workers::new(threads.try_into().unwrap());
        let mut source = OnlyUnexpanded(Copied(MemorySource::new(examples(20_001, 1), 1.0, 1.0).into_examples()));
        let mut control = Control { workers, ..Control::default() };
        let found = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut control).unwrap();
        assert_eq!(found.weights.into_inner(), one, "where features are computed");
    }
}

/// On any number of threads, the moments are those of the records within what truncation takes.
#[test]
fn moments_of_many_features() {
    let (n, dim) = (9001u64, 70);
    let mut rng = SeededRng::new(8);
    let rows: Vec<f64> = (0..n as usize * dim).map(|_| rng.random_range(-0.1..0.1)).collect();
    let targets: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let examples = MemorySource::new(Examples::dense(rows, targets, dim).unwrap(), 1.0, 1.0).into_examples();
    let stage = Stage { loss: LossKind::Logistic, n, dim: dim as u64, row_norm: 1.0, target_bound: 1.0 };
    let noise = NoiseScale::Gaussian { std_dev: 1e-6 };
    let moments = |threads: usize| {
        let (mut log, mut rng) = (dp_accountant::EventLog::<ZeroOut>::new(), SeededRng::new(1));
        let mut control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
        let mut source = MemorySource::new(examples.clone(), 1.0, 1.0);
        let released = stage.moments_released(noise, NoiseMode::Exact, &mut source, &mut log, &mut rng, &mut control);
        released.unwrap().into_inner()
    };
    let one = moments(1);
    assert_eq!(moments(3), one);
    let found = dp_mechanisms::clip::Moments::new(&one, dim, 1).unwrap();
    let Rows::Dense { values, .. } = examples.block().rows else { unreachable!() };
    let rows = || values.chunks_exact(dim).zip(examples.targets());
    let step = 2f64.powi(-14);
    for (i, j) in [(0, 0), (3, 69), (69, 69), (12, 40)] {
        let exact: f64 = rows().map(|(x, _)| x[i] * x[j]).sum();
        // Each entry loses up to a step of at most 0.1.
        let lost = (exact - found.matrix[(i, j)]).abs();
        assert!(lost <= 0.2 * step * n as f64 && (i != j || lost > 1e-4), "{i} {j}: {lost}");
        let exact: f64 = rows().map(|(x, y)| x[i] * y).sum();
        assert!((exact - found.vectors[(i, 0)]).abs() <= step * n as f64, "{i}");
    }
}

/// Blocks add up to the same sum as a single block. A source that delivers more rows than it states, or fewer, is refused, and
/// rows after the excess are not read.
#[test]
fn rows_beyond_those_claimed_are_refused() {
    let trained = |rows, claimed| {
        let plan = NoisyMoments::new(LossKind::Squared).plan::<ZeroOut>(claimed, 3, budget(1.0, 1e-6)).unwrap();
        let mut source = Blocks { examples: examples(rows, 1), claimed };
        plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut Control::default())
    };
    for n in [60, 75] {
        let whole = train(&NoisyMoments::new(LossKind::Squared), examples(n, 1), budget(1.0, 1e-6));
        assert_eq!(trained(n, n as u64).unwrap().weights.into_inner(), whole, "{n}");
    }
    for (rows, claimed, seen) in [(120, 60, 90), (120, 59, 60), (45, 60, 45)] {
        let error = trained(rows, claimed).unwrap_err();
        let Error::Source(SourceError::CountChanged { expected, found }) = error else { panic!("{error}") };
        assert_eq!((expected, found), (claimed, seen));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn budgets_are_kept(epsilon in 0.05..4.0f64, pure in any::<bool>(), dim in 1u64..60, copies in 1u64..4) {
        let delta = if pure { 0.0 } else { 1e-7 };
        let recipe = NoisyMoments::new(LossKind::Logistic);
        let plan = recipe.plan_copies::<ZeroOut>(1000, dim, budget(epsilon, delta), copies).unwrap();
        prop_assert!(plan.reached().epsilon <= epsilon && plan.reached().epsilon > 0.99 * epsilon);
        let replaced = recipe.plan_copies::<ReplaceOne>(1000, dim, budget(epsilon, delta), copies).unwrap();
        let ratio = replaced.run().noise().scale() / plan.run().noise().scale();
        prop_assert!((ratio - 1.5).abs() < 1e-3, "{ratio}"); // √4.5/√2
        let is_one_release = matches!(plan.event(), DpEvent::Gaussian { .. } | DpEvent::LaplaceBall { .. });
        prop_assert!(is_one_release);
    }
}

/// A record whose target is no class index does not count; the bound on the targets enters the sensitivity of regression, not
/// of classification.
#[test]
fn what_is_no_class_does_not_count() {
    let three: LossKind = "softmax:3".parse().unwrap();
    let recipe = NoisyMoments { target_bound: 9.0, ..NoisyMoments::new(three) };
    let with = |last: f64| {
        let rows = [[0.3, 0.4, 0.5], [0.1, -0.6, 0.5], [-0.5, 0.2, 0.5], [0.6, 0.1, 0.5]].concat();
        train(&recipe, Examples::dense(rows, vec![0.0, 1.0, 2.0, last], 3).unwrap(), budget(1.0, 1e-6))
    };
    let null = with(7.0);
    for no_class in [-1.0, -0.5, 0.5, 1.5, 3.0, 8.0] {
        assert_eq!(with(no_class), null, "{no_class}");
    }
    for class in [0.0, 1.0, 2.0] {
        assert_ne!(with(class), null, "{class}");
    }
    let (classes, mut coded, rest) = (stage(&recipe, 10, 3), [9.0; 3], -1.0 / 3.0);
    assert!(classes.code(1.0, &mut coded));
    assert_eq!((classes.moments(), coded), (6 + 9, [rest, rest + 1.0, rest]));
    let moved = |loss: LossKind, target_bound: f64| {
        stage(&NoisyMoments { target_bound, ..NoisyMoments::new(loss) }, 10, 3).sensitivity::<ZeroOut>().unwrap()
    };
    // One record: x² and x y, with joint norm X √(X² + Y²).
    for bound in [0.5f64, 1.0, 3.0] {
        assert!((moved(LossKind::Squared, bound) / (1.0 + bound * bound).sqrt() - 1.0).abs() < 1e-12);
        assert!((moved(three, bound) / 2f64.sqrt() - 1.0).abs() < 1e-12);
    }
}

/// The ridge is 0.4 of a coordinate's noise times `√d`: the weights of one record by hand, with no eigenvalue below the ridge.
#[test]
fn the_ridge_follows_its_formula() {
    let plan = |delta| NoisyMoments::new(LossKind::Squared).plan::<ZeroOut>(1, 2, budget(1.0, delta)).unwrap();
    for delta in [0.0, 1e-6] {
        let noise = plan(delta).run().noise();
        let stage = stage(&NoisyMoments::new(LossKind::Squared), 1, 2);
        let one =
            dp_mechanisms::LaplaceBall::<ZeroOut>::from_scale(dp_mechanisms::L2Sensitivity::new(1.0).unwrap(), 1e-9, 5)
                .unwrap();
        // Moments of the row (1, 0) with target 1/2: x₁², √2 x₁x₂, x₁y, x₂², x₂y.
        let exact = dp_mechanisms::Bounded::with_proven_sensitivity(vec![1.0, 0.0, 0.5, 0.0, 0.0], one.sensitivity());
        let released =
            dp_mechanisms::Mechanism::release(&one, exact, &mut dp_accountant::EventLog::new(), &mut SeededRng::new(1))
                .unwrap();
        let weights = stage.solve(released, noise, 0.25).unwrap().into_inner();
        let ridge = 0.25 + 0.4 * noise.coordinate_std_dev(5) * 2f64.sqrt();
        assert!((weights[0] / (0.5 / (1.0 + ridge)) - 1.0).abs() < 1e-6, "{weights:?} {ridge}");
    }
}
