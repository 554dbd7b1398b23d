use dp_accountant::certificate::{Assumption, Derivation as _};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Delta, DpEvent, ReplaceOne, ZeroOut, bound};
use dp_data::{Alternatives, Block, Description, Examples, PassRequest, RowSource, RowStream, Rows, SourceError};
use dp_losses::LossKind;
use dp_mechanisms::{OsSeeded, SeededRng};

use super::*;
use crate::derivation::DerivesModel as _;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{BoltOn, DpSgd, Majority, ObjPert, OutputNoise, Planned, budget};

const N: usize = 3000;

fn signs(i: usize) -> [f64; 2] {
    [if i.is_multiple_of(2) { 0.5 } else { -0.5 }, if (i / 2).is_multiple_of(2) { 0.5 } else { -0.5 }]
}

/// The label is the sign of the product of both numbers, or that of the first, of which an encoding has two features, and another
/// the product too.
fn sources(of_product: bool) -> [MemorySource<f64>; 2] {
    let label = |i: usize| signs(i)[0].signum() * if of_product { signs(i)[1].signum() } else { 1.0 };
    let targets: Vec<f64> = (0..N).map(label).collect();
    let longer = (0..N).flat_map(|i| [signs(i)[0], signs(i)[1], 2.0 * signs(i)[0] * signs(i)[1]]).collect();
    [((0..N).flat_map(signs).collect(), 2), (longer, 3)]
        .map(|(rows, dim)| MemorySource::new(Examples::dense(rows, targets.clone(), dim).unwrap(), 1.0, 1.0))
}

fn with_and_without(recipe: impl Into<AnyRecipe>) -> Composition {
    let candidate = Candidate::new(recipe.into());
    let with = Candidate { weight: 2.0, encoding: Some(Alternative { number: 0, dim: 3 }), ..candidate.clone() };
    Composition::new([candidate, with])
}

/// A model without the product is right about half of the records, whatever its weights: with the product it has 150 more of the
/// 300 for the choice, and is chosen except with probability `e^-150`. Without need for the product both are right about all.
#[test]
fn the_encoding_that_helps_is_chosen() {
    let recipe = with_and_without(ObjPert::new(LossKind::Logistic));
    let plan = recipe.plan::<ZeroOut>(N as u64, 2, budget(2.0, 1e-6)).unwrap();
    assert_eq!(plan.derivation().model_terms().weights, 2, "before training those of the first");
    for seed in 0..10 {
        let [mut plain, mut other] = sources(true);
        let source = &mut Alternatives::new(&mut plain, vec![&mut other]);
        let trained = plan.train::<f64>(source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
        let weights = trained.weights.get();
        assert_eq!((trained.derivation.chosen, weights.len()), (Some(1), 3), "seed {seed}");
        assert!(weights[2] > weights[0].abs() && weights[2] > weights[1].abs());
        assert_eq!(trained.derivation.model_terms().weights, 3);
        trained.derivation.release_lattice().unwrap().check(weights).unwrap();
        assert_eq!(trained.log.to_event(), plan.event());
    }
    let [mut plain, mut other] = sources(true);
    let source = &mut Alternatives::new(&mut plain, vec![&mut other]);
    let trained = plan.train::<f64>(source, &mut OsSeeded::new().unwrap(), &mut Control::default()).unwrap();
    let mut certificate = trained.certificate(Unit::Record, Vec::new(), "00".repeat(32), Default::default());
    assert!(certificate.verify().is_ok());
    certificate.assumptions.retain(|assumption| *assumption != Assumption::PublicEncodings);
    assert!(certificate.verify().is_err(), "what the encodings rest on is stated");
    let mut chosen = [0; 2];
    for seed in 0..40 {
        let [mut plain, mut other] = sources(false);
        let source = &mut Alternatives::new(&mut plain, vec![&mut other]);
        let trained = plan.train::<f64>(source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
        let position = trained.derivation.chosen.unwrap() as usize;
        assert_eq!(trained.weights.get().len(), [2, 3][position]);
        chosen[position] += 1;
    }
    // Two fair outcomes: one of them in fewer than 5 of 40 cases has probability below 2e-6.
    assert!(chosen.iter().all(|&times| times >= 5), "{chosen:?}");
}

/// Every candidate is planned at its weight, and the trainings together cost the budget, as the choice does.
#[test]
fn weights_divide_the_budget() {
    for delta in [0.0, 1e-6] {
        let output_noise = if delta == 0.0 { OutputNoise::LaplaceBall } else { OutputNoise::Gaussian };
        let recipe = with_and_without(BoltOn { output_noise, ..BoltOn::strongly_convex(LossKind::Logistic, 0.05) });
        let plan = recipe.plan::<ReplaceOne>(1000, 2, budget(1.0, delta)).unwrap();
        let unit = plan.candidates()[0].requested().epsilon;
        for (candidate, weight) in plan.candidates().iter().zip([1.0, 2.0]) {
            let epsilon = candidate.requested().epsilon;
            assert!((epsilon / (weight * unit) - 1.0).abs() < 1e-12, "{epsilon} {unit}");
            assert_eq!(candidate.derivation().records(), 900);
        }
        let event = plan.derivation().event().unwrap();
        let DpEvent::Parallel { events } = &event else { panic!("{event:?}") };
        let trainings = plan.candidates().iter().map(Planned::event).collect();
        assert_eq!(events[0], DpEvent::Composed { events: trainings });
        let cost = bound::epsilon(&events[0], Delta::new(delta).unwrap()).unwrap().value;
        assert!(cost <= 1.0 && cost > 0.9998, "{cost}");
        assert_eq!(events[1..], [DpEvent::BoundedRange { epsilon: 1.0 }]);
        assert!(plan.reached().epsilon <= 1.0 && plan.choice().sensitivity().get() == 2.0);
        // The estimate before planning.
        let first = recipe.budget_of(1.0, budget(1.0, delta)).unwrap().epsilon.get();
        assert!((first / unit - 1.0).abs() < if delta == 0.0 { 1e-3 } else { 0.1 }, "{first} {unit}");
    }
}

/// The part for the choice has a tenth of the records, the trainings the others, and another key cuts elsewhere. No record plays a
/// role.
#[test]
fn records_are_cut_at_random() {
    let plan = with_and_without(Majority::new(LossKind::Logistic)).plan::<ZeroOut>(50, 2, budget(2.0, 0.0)).unwrap();
    let mut seen = Vec::new();
    for seed in 0..20 {
        let (of_training, of_choice) = plan.cut(&mut SeededRng::new(seed)).unwrap();
        assert_eq!((of_training.len(), of_choice.len()), (45, 5));
        assert!(of_training.is_sorted() && of_choice.is_sorted());
        let mut all = [of_training, of_choice.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        seen.push(of_choice);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 20, "of two million equally likely parts");
}

/// A source that counts how often each record is gathered, by its target.
struct Counted {
    inner: MemorySource<f64>,
    times: Vec<u32>,
}

impl RowSource<f64> for Counted {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.inner.describe()
    }

    fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        Err(SourceError::Order { engine: "counted", why: "a pass reads records of both parts" })
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        positions.iter().for_each(|&position| self.times[position as usize] += 1);
        self.inner.gather(positions)
    }
}

/// Two passes of training read the records of their part twice, and no score reads any of them; each record of the choice is read
/// once, by the score.
#[test]
fn trainings_and_scores_read_their_own_part_alone() {
    let recipe = BoltOn { passes: 2, ..BoltOn::strongly_convex(LossKind::Logistic, 0.05) };
    let plan = with_and_without(recipe).plan::<ZeroOut>(N as u64, 2, budget(2.0, 0.0)).unwrap();
    assert_eq!(plan.choice().sensitivity().get(), 1.0);
    for seed in 0..3 {
        let (_, of_choice) = plan.cut(&mut SeededRng::new(seed)).unwrap();
        let [mut plain, mut other] = sources(true).map(|inner| Counted { inner, times: vec![0; N] });
        let source = &mut Alternatives::new(&mut plain, vec![&mut other]);
        plan.train::<f64>(source, &mut SeededRng::new(seed), &mut Control::default()).unwrap();
        for source in [plain, other] {
            for (i, &times) in source.times.iter().enumerate() {
                assert_eq!(times, if of_choice.contains(&(i as u32)) { 1 } else { 2 }, "{i}");
            }
        }
    }
}

/// With the same coins, a record of the choice that is replaced changes no model, and one of the trainings does.
#[test]
fn neighbours_differ_in_one_part_alone() {
    let plan = with_and_without(BoltOn::strongly_convex(LossKind::Logistic, 0.05));
    let plan = plan.plan::<ReplaceOne>(N as u64, 2, budget(30.0, 0.0)).unwrap();
    let (_, of_choice) = plan.cut(&mut SeededRng::new(4)).unwrap();
    let weights = |replaced: usize| {
        let [mut plain, mut other] = sources(true).map(|source| {
            let (mut rows, mut targets) = (Vec::new(), Vec::new());
            let examples = source.into_examples();
            let block = examples.block();
            let Rows::Dense { values, dim } = block.rows else { unreachable!() };
            for i in 0..N {
                let sign = if i == replaced { -1.0 } else { 1.0 };
                rows.extend(values[i * dim..(i + 1) * dim].iter().map(|value| sign * value));
                targets.push(block.targets[i]);
            }
            MemorySource::new(Examples::dense(rows, targets, dim).unwrap(), 1.0, 1.0)
        });
        let source = &mut Alternatives::new(&mut plain, vec![&mut other]);
        let trained = plan.train::<f64>(source, &mut SeededRng::new(4), &mut Control::default()).unwrap();
        assert_eq!(trained.derivation.chosen, Some(1));
        trained.weights.into_inner()
    };
    let base = weights(usize::MAX);
    for replaced in (0..N).step_by(250).chain(of_choice.iter().take(10).map(|&i| i as usize)) {
        assert_eq!(weights(replaced) == base, of_choice.contains(&(replaced as u32)), "{replaced}");
    }
}

#[test]
fn sources_without_the_encoding_are_refused() {
    let plan = with_and_without(ObjPert::new(LossKind::Logistic)).plan::<ZeroOut>(N as u64, 2, budget(2.0, 1e-6));
    let plan = plan.unwrap();
    let train = |source: &mut dyn RowSource<f64>| {
        plan.train::<f64>(source, &mut SeededRng::new(1), &mut Control::default()).map(drop).unwrap_err().to_string()
    };
    let [mut plain, mut other] = sources(true);
    assert!(train(&mut plain).contains("encoding"));
    let mut same = sources(true).into_iter().next().unwrap();
    assert!(train(&mut Alternatives::new(&mut plain, vec![&mut same])).contains("dim = 3, the source has 2"));
    let fewer = Examples::dense(vec![0.5; 30], vec![1.0; 10], 3).unwrap();
    let mut fewer = MemorySource::new(fewer, 1.0, 1.0);
    assert!(train(&mut Alternatives::new(&mut plain, vec![&mut fewer])).contains("the source has 10"));
    assert!(train(&mut Alternatives::new(&mut other, vec![&mut plain])).contains("the source has 3"));
}

/// Candidates in one encoding have the same number of features, and each candidate has an encoding.
#[test]
fn derivations_whose_encodings_do_not_fit_are_refused() {
    let plan = with_and_without(DpSgd { passes: 1, ..DpSgd::new(LossKind::Logistic) });
    let derivation = plan.plan::<ZeroOut>(1000, 2, budget(2.0, 1e-6)).unwrap().derivation().clone();
    assert!(derivation.event().is_ok());
    for encodings in [vec![0, 0], vec![1, 1], vec![0], vec![0, 1, 1], Vec::new()] {
        let changed = CompositionDerivation { encodings, ..derivation.clone() };
        assert!(changed.event().is_err() && changed.model_terms().weights == 0);
    }
    let event = derivation.event().unwrap();
    for n in [0, 1, 900, 1001, 1100, u64::MAX] {
        assert!(CompositionDerivation { n, ..derivation.clone() }.event().is_err(), "{n}");
    }
    let renamed = CompositionDerivation { encodings: vec![4, 2], ..derivation.clone() };
    assert_eq!(renamed.event().unwrap(), event, "the cost is that of the trainings");
    assert!(derivation.release_lattice().is_err(), "no model was chosen");
}
