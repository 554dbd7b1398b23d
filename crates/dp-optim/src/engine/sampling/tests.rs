use std::collections::BTreeMap;

use dp_accountant::{AdjacencyKind, EventLog, ZeroOut};
use dp_data::{Description, Examples, PassRequest, RowStream, Selection};
use dp_losses::{LinearModel, Logistic};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{Gaussian, L2Sensitivity, SeededRng};
use rand::RngExt;

use super::*;
use crate::averaging::Averaging;
use crate::engine::{
    Buffered, Contributions, GradientDescent, GradientEstimate, NoisyGradient, Piece, PlainGradient, Progress,
    StepBatches, StepSum,
};
use crate::float::FloatKind;
use crate::memory::MemorySource;
use crate::schedule::Schedule;

fn sampler(law: BatchLaw, n: u64, key: u8) -> Sampler {
    Sampler::new(law, n, [key; 32]).unwrap()
}

/// A batch as a set, one bit for each position.
fn mask(batch: &[u32]) -> u64 {
    let mask = batch.iter().fold(0u64, |mask, &position| mask | 1 << position);
    assert_eq!(mask.count_ones() as usize, batch.len(), "every position once");
    mask
}

/// Chi-square of counts against probabilities, over `draws`.
fn chi_square(counts: &BTreeMap<u64, u64>, draws: u64, probability: impl Fn(u64) -> f64, outcomes: u64) -> f64 {
    (0..outcomes)
        .filter(|&outcome| probability(outcome) > 0.0)
        .map(|outcome| {
            let expected = draws as f64 * probability(outcome);
            let found = counts.get(&outcome).copied().unwrap_or(0) as f64;
            (found - expected).powi(2) / expected
        })
        .sum()
}

#[test]
fn every_set_of_fixed_size_is_equally_likely() {
    // 20 sets of 3 among 6. Chi-square with 19 degrees of freedom exceeds 85.5 with probability below 1e-9.
    let draws = 200_000;
    let (mut sampler, mut counts) = (sampler(BatchLaw::FixedSize { size: 3 }, 6, 1), BTreeMap::new());
    for _ in 0..draws {
        *counts.entry(mask(sampler.draw().unwrap())).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 20);
    let found = chi_square(&counts, draws, |set| if set.count_ones() == 3 { 0.05 } else { 0.0 }, 64);
    assert!(found < 85.5, "{found}");
}

#[test]
fn poisson_batches_hold_each_record_by_itself() {
    // All 64 subsets of 6 records with the probabilities of independent coins: 63 degrees of freedom, exceeded at 158
    // with probability below 1e-9. The first law has rare sets, of which 2 are expected at least.
    for (mean_darts, draws) in [(2u64, 300_000u64), (6, 300_000)] {
        let law = BatchLaw::Poisson { mean_darts };
        let rate = -(-(mean_darts as f64) / 6.0).exp_m1();
        let (mut sampler, mut counts) = (sampler(law, 6, 2), BTreeMap::new());
        for _ in 0..draws {
            *counts.entry(mask(sampler.draw().unwrap())).or_insert(0) += 1;
        }
        let probability = |set: u64| {
            let size = set.count_ones() as i32;
            rate.powi(size) * (1.0 - rate).powi(6 - size)
        };
        let found = chi_square(&counts, draws, probability, 64);
        assert!(found < 158.0, "{mean_darts}: {found}");
    }
}

#[test]
fn batches_of_different_steps_are_independent() {
    // A record's participation in one step and in the next: 4 outcomes, 3 degrees of freedom; 46 is exceeded with probability
    // below 1e-9.
    for law in [BatchLaw::Poisson { mean_darts: 5 }, BatchLaw::FixedSize { size: 5 }] {
        let rate = law.sampling_rate(20).unwrap().get();
        let mut sampler = sampler(law, 20, 3);
        let (mut counts, mut before, draws) = (BTreeMap::new(), 0, 200_000);
        for _ in 0..draws {
            let now = u64::from(sampler.draw().unwrap().contains(&11));
            *counts.entry(2 * before + now).or_insert(0) += 1;
            before = now;
        }
        let coin = |part: u64| if part == 1 { rate } else { 1.0 - rate };
        let found = chi_square(&counts, draws, |both| coin(both / 2) * coin(both % 2), 4);
        assert!(found < 46.0, "{law:?}: {found}");
    }
}

#[test]
fn sizes_have_the_law_that_is_stated() {
    let (n, draws) = (1000u64, 40_000u64);
    let law = BatchLaw::Poisson { mean_darts: 50 };
    let mut sampler = sampler(law, n, 4);
    let mut sizes = Vec::new();
    for _ in 0..draws {
        sizes.push(sampler.draw().unwrap().len() as f64);
    }
    let mean = sizes.iter().sum::<f64>() / draws as f64;
    let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / draws as f64;
    let rate = law.sampling_rate(n).unwrap().get();
    let (expected, spread) = (n as f64 * rate, n as f64 * rate * (1.0 - rate));
    // Six and a half standard errors: 1e-10 each.
    assert!((mean - expected).abs() < 6.5 * (spread / draws as f64).sqrt(), "{mean} {expected}");
    assert!((variance / spread - 1.0).abs() < 6.5 * (2.0 / draws as f64).sqrt() * 1.02, "{variance} {spread}");
    assert!((law.mean_size(n).unwrap() - expected).abs() < 1e-9);
}

#[test]
fn empty_batches_occur() {
    let mut sampler = sampler(BatchLaw::Poisson { mean_darts: 1 }, 100, 5);
    let empty = (0..10_000).filter(|_| sampler.draw().unwrap().is_empty()).count();
    // e^(-1) of them, within six and a half standard errors (1e-10).
    assert!((empty as f64 - 3678.8).abs() < 6.5 * 48.3, "{empty}");
}

#[test]
fn stated_rates_are_not_below_the_true_ones() {
    for n in [1u64, 2, 3, 7, 10, 999, 1 << 20, 3_000_000_019, u64::from(u32::MAX)] {
        for size in [1, 2, 3, n / 7, n / 3, n - 1, n] {
            if !(1..=n).contains(&size) {
                continue;
            }
            let rate = |law: BatchLaw| law.sampling_rate(n).unwrap().get();
            let fixed = rate(BatchLaw::FixedSize { size });
            // In integers: rate = a 2^-k, and size 2^k <= a n.
            let (bits, exponent) = (fixed.to_bits() & ((1 << 52) - 1) | 1 << 52, (fixed.to_bits() >> 52) as i32 - 1075);
            let shift = -exponent as u32;
            if shift < 90 {
                assert!((u128::from(size) << shift) <= u128::from(bits) * u128::from(n), "{size} of {n}");
            }
            assert!(fixed <= size as f64 / n as f64 * (1.0 + 1e-15));
            let poisson = rate(BatchLaw::Poisson { mean_darts: size });
            assert!(poisson < fixed || size == n && poisson < 0.6322, "{size} of {n}");
            let series = |x: f64| x - x * x / 2.0 + x * x * x / 6.0;
            let x = size as f64 / n as f64;
            if x < 1e-4 {
                assert!(poisson >= series(x) * (1.0 - 1e-16) && poisson <= series(x) * (1.0 + 4e-15));
            }
        }
    }
}

#[test]
fn laws_that_do_not_fit_are_refused() {
    for law in [BatchLaw::Poisson { mean_darts: 0 }, BatchLaw::FixedSize { size: 11 }] {
        assert!(matches!(law.sampling_rate(10), Err(Error::Count { .. })));
        assert!(Sampler::new(law, 10, [0; 32]).is_err() && law.mean_size(10).is_err());
    }
    let one = BatchLaw::FixedSize { size: 1 };
    assert!(one.sampling_rate(0).is_err() && one.sampling_rate(1 << 32).is_err());
}

/// Counts updates and the rows in them.
#[derive(Default)]
struct Counting {
    updates: u64,
    rows: u64,
    empty: u64,
}

impl<M: Model<f64>> GradientEstimate<f64, M> for &mut Counting {
    fn estimate(&mut self, _: &M, _: &[f64], _: M::Batch<'_>, piece: Piece, sum: &mut [f64]) -> Result<(), Error> {
        self.updates += 1;
        self.rows += piece.examples as u64;
        self.empty += u64::from(piece.examples == 0);
        sum.fill(1.0);
        Ok(())
    }
}

fn run(law: BatchLaw, n: u64, updates: u64) -> SampledRun {
    SampledRun {
        n,
        law,
        updates,
        divisor: law.mean_size(n).unwrap(),
        steps: Schedule::Constant { step: 0.5 }.prepare(updates).unwrap(),
        weights: Averaging::Last.prepare(updates).unwrap(),
    }
}

fn source(n: usize, sparse: bool) -> MemorySource<f64> {
    let targets = vec![1.0; n];
    let examples = if sparse {
        Examples::sparse((0..=n).collect(), vec![0; n], vec![0.5; n], targets, 1)
    } else {
        Examples::dense(vec![0.5; n], targets, 1)
    };
    MemorySource::new(examples.unwrap(), 1.0, 1.0)
}

#[test]
fn an_empty_batch_makes_an_update_as_any_other() {
    let model = LinearModel::new(1, Logistic);
    for sparse in [false, true] {
        let (run, mut source) = (run(BatchLaw::Poisson { mean_darts: 1 }, 10, 200), source(10, sparse));
        let mut counting = Counting::default();
        let rule = GradientDescent { lambda: 0.0, radius: None };
        let mut iterate = Buffered::new(vec![0.0], false, &mut counting, rule);
        let mut seen = Vec::new();
        let mut show = |progress: Progress| seen.push(progress);
        let mut control = Control { cancelled: None, progress: Some(&mut show), ..Control::default() };
        run.run(&model, &mut source, &mut iterate, BatchKey::of([1; 32]), &mut control).unwrap();
        let w = Iterate::<f64, LinearModel<f64, Logistic>>::into_output(iterate)[0];
        // 200 steps of 0.5 on a sum of 1, divided by the mean size, whatever the batches were.
        assert!((w + 100.0 / run.divisor).abs() < 1e-9, "{w}");
        assert!(counting.updates == 200 && counting.empty > 20 && counting.rows > 100);
        assert_eq!(seen, [Progress { pass: 20, rows: 0 }], "what is expected, not what was drawn");
        // A plain gradient reads an empty batch without complaint.
        let mut iterate = Buffered::new(vec![0.0], false, PlainGradient::new(&model, 1), rule);
        run.run(&model, &mut source, &mut iterate, BatchKey::of([1; 32]), &mut Control::default()).unwrap();
        assert!(Iterate::<f64, LinearModel<f64, Logistic>>::into_output(iterate)[0] > 0.0);
    }
}

#[test]
fn a_source_of_another_size_is_refused_and_a_cancelled_run_is_an_error() {
    let model = LinearModel::new(1, Logistic);
    let run = run(BatchLaw::FixedSize { size: 2 }, 10, 100_000);
    let rule = GradientDescent { lambda: 0.0, radius: None };
    let mut iterate = Buffered::new(vec![0.0], false, PlainGradient::new(&model, 2), rule);
    let error = run
        .run(&model, &mut source(11, false), &mut iterate, BatchKey::of([1; 32]), &mut Control::default())
        .unwrap_err();
    assert!(matches!(error, Error::Source(SourceError::CountChanged { expected: 10, found: 11 })), "{error}");
    let cancelled = core::sync::atomic::AtomicBool::new(true);
    let mut control = Control { cancelled: Some(&cancelled), ..Control::default() };
    let error = run.run(&model, &mut source(10, false), &mut iterate, BatchKey::of([1; 32]), &mut control).unwrap_err();
    assert!(matches!(error, Error::Interrupted));
}

/// A source that offers its rows where they are: all that are asked for, all but one, or none, so that they are gathered.
struct Offers(MemorySource<f64>, Offer);

#[derive(Clone, Copy)]
enum Offer {
    All,
    AllButOne,
    None,
}

impl RowSource<f64> for Offers {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.0.describe()
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.0.open_pass(request)
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        self.0.gather(positions)
    }

    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, f64>>, SourceError> {
        match self.1 {
            Offer::All => self.0.select(positions),
            Offer::AllButOne => self.0.select(&positions[1..]),
            Offer::None => Ok(None),
        }
    }
}

#[test]
fn selected_rows_make_the_updates_of_gathered_ones_and_must_be_those_drawn() {
    let (model, run) = (LinearModel::new(1, Logistic), run(BatchLaw::FixedSize { size: 3 }, 10, 50));
    let output = |offer| {
        let values = (0..10).map(|i| f64::from(i) / 10.0).collect();
        let examples = Examples::dense(values, vec![1.0; 10], 1).unwrap();
        let mut source = Offers(MemorySource::new(examples, 1.0, 1.0), offer);
        let rule = GradientDescent { lambda: 0.0, radius: None };
        let mut iterate = Buffered::new(vec![0.0], true, PlainGradient::new(&model, 3), rule);
        run.run(&model, &mut source, &mut iterate, BatchKey::of([1; 32]), &mut Control::default())?;
        Ok::<_, Error>(Iterate::<f64, LinearModel<f64, Logistic>>::into_output(iterate))
    };
    assert_eq!(output(Offer::All).unwrap(), output(Offer::None).unwrap());
    let error = output(Offer::AllButOne).unwrap_err();
    assert!(matches!(error, Error::Source(SourceError::Shape { what: NOT_ASKED_FOR, .. })), "{error}");
}

/// Batches of thousands of records, some of them null, from which every estimate is computed in pieces.
#[test]
fn long_batches_come_in_pieces_and_make_the_same_updates() {
    let n = 40_000;
    let (model, mut rng) = (LinearModel::new(2, Logistic), SeededRng::new(5));
    let mut values: Vec<f64> = (0..2 * n).map(|_| rng.random_range(-0.7..0.7)).collect();
    values.iter_mut().step_by(14).for_each(|value| *value = f64::NAN);
    let examples = Examples::dense(values, vec![1.0; n], 2).unwrap();
    let run = run(BatchLaw::Poisson { mean_darts: 25_000 }, n as u64, 3);
    let steps = StepBatches::Drawn { n: n as u64, law: run.law, steps: 3 };
    let sum = StepSum::whole(Contributions::Clipped(ClippingNorm::new(0.1).unwrap().into()), n as u64, FloatKind::F64);
    let rule = GradientDescent { lambda: 0.0, radius: None };
    let outputs = |offer| {
        let mut source = Offers(MemorySource::new(examples.clone(), 1.0, 1.0), offer);
        let mut control = Control::default();
        let mut iterate = Buffered::new(vec![0.0; 2], true, PlainGradient::new(&model, n), rule);
        run.run(&model, &mut source, &mut iterate, BatchKey::of([1; 32]), &mut control).unwrap();
        let plain = Iterate::<f64, LinearModel<f64, Logistic>>::into_output(iterate);
        let (mut rng, mut log) = (SeededRng::new(2), EventLog::<ZeroOut>::new());
        let sensitivity = L2Sensitivity::new(sum.sensitivity(AdjacencyKind::ZeroOut).unwrap()).unwrap();
        let noise = Gaussian::from_std_dev(sensitivity, 1.0).unwrap().into();
        let gradient = NoisyGradient::start(&model, steps.clone(), sum, noise, &mut log, &mut rng).unwrap();
        let mut iterate = Buffered::new(vec![0.0; 2], true, gradient, rule);
        run.run(&model, &mut source, &mut iterate, BatchKey::of([1; 32]), &mut control).unwrap();
        (plain, iterate.into_parts().0)
    };
    let (plain, noisy) = outputs(Offer::All);
    assert!(plain[0] != 0.0 && noisy[0] != 0.0);
    assert_eq!((plain, noisy), outputs(Offer::None));
}
