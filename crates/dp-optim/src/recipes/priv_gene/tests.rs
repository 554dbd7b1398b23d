use dp_accountant::certificate::Derivation as _;
use dp_accountant::{DpEvent, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_data::examples::Feature;
use dp_losses::{Loss, Real};
use dp_mechanisms::SeededRng;
use dp_mechanisms::scores::Scores;
use rand::RngExt;

use super::*;
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::memory::MemorySource;
use crate::recipes::{Plan, Planned, Recipe as _, RecordAdjacency, budget};

const DIM: usize = 3;

type Record = (Vec<f64>, f64);

fn record(rng: &mut SeededRng, real: bool) -> Record {
    let mut x: Vec<f64> = (0..DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
    if rng.random_bool(0.4) {
        x = vec![0.0; DIM];
        x[rng.random_range(0..DIM)] = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
    }
    let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
    x.iter_mut().for_each(|v| *v *= (1.0 - 1e-15) / norm);
    (x, if real { rng.random_range(-1.0..1.0) } else { [-1.0, 1.0][rng.random_range(0..2)] })
}

fn source<F: Real + Feature>(data: &[Record], sparse: bool) -> MemorySource<F> {
    let narrow = |&x: &f64| nalgebra::convert::<f64, F>(x);
    let targets = data.iter().map(|(_, y)| narrow(y)).collect();
    let examples = if sparse {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (x, _) in data {
            for (j, x) in (0u32..).zip(x).filter(|(_, x)| **x != 0.0) {
                indices.push(j);
                values.push(narrow(x));
            }
            offsets.push(values.len());
        }
        Examples::sparse(offsets, indices, values, targets, DIM).unwrap()
    } else {
        Examples::dense(data.iter().flat_map(|(x, _)| x).map(narrow).collect(), targets, DIM).unwrap()
    };
    MemorySource::new(examples, 1.0, 1.0)
}

/// A record that does not count.
fn null() -> Record {
    (vec![f64::NAN; DIM], 0.0)
}

fn utilities<A: RecordAdjacency>(
    plan: &Plan<PrivGene, A>,
    data: &[Record],
    weights: &[f64],
    step: f64,
    sparse: bool,
) -> Vec<f64> {
    plan.run().utilities::<f64>(&mut source(data, sparse), weights, step, 0, &mut Control::default()).unwrap()
}

#[test]
fn utilities_are_those_of_the_formula() {
    let mut rng = SeededRng::new(1);
    let data: Vec<Record> = (0..30).map(|_| record(&mut rng, false)).collect();
    let plan = PrivGene::new(LossKind::Logistic).plan::<ZeroOut>(30, DIM as u64, budget(1.0, 0.0)).unwrap();
    let weights = [0.3, -0.7, 0.2];
    let loss = |weights: &[f64]| -> f64 {
        data.iter()
            .map(|(x, y)| dp_losses::Logistic.value(x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>(), *y))
            .sum()
    };
    for sparse in [false, true] {
        let found = utilities(&plan, &data, &weights, 0.25, sparse);
        assert_eq!(found.len(), 2 * DIM);
        for (candidate, found) in found.into_iter().enumerate() {
            let mut moved = weights;
            moved[candidate / 2] += if candidate % 2 == 0 { 0.25 } else { -0.25 };
            let expected = (loss(&weights) - loss(&moved)) / 0.25;
            assert!((found - expected).abs() < 1e-7, "{candidate}: {found} instead of {expected}");
        }
    }
}

/// Over random neighbours no utility moves by more than its sensitivity, the exact law of the choice has a range of at most
/// the round's epsilon, and both are nearly attained.
#[test]
fn brute_force_over_neighbours() {
    let kinds = ["logistic", "huber-svm", "hinge", "absolute", "huber-regression"];
    let mut rng = SeededRng::new(2);
    let (mut most, mut widest) = ([0.0f64; 2], 0.0f64);
    for trial in 0..1500 {
        let loss: LossKind = kinds[trial % kinds.len()].parse().unwrap();
        let real = !loss.is_classification();
        let n = rng.random_range(1..7usize);
        let data: Vec<Record> = (0..n).map(|_| record(&mut rng, real)).collect();
        let at = rng.random_range(0..n);
        let weights: Vec<f64> = (0..DIM).map(|_| rng.random_range(-2.0..2.0)).collect();
        let step = rng.random_range(0.01..2.0);
        let recipe = PrivGene { rounds: Some(1), ..PrivGene::new(loss) };
        let replaced = recipe.plan::<ReplaceOne>(n as u64, DIM as u64, budget(1.0, 0.0)).unwrap();
        let nulled = recipe.plan::<ZeroOut>(n as u64, DIM as u64, budget(1.0, 0.0)).unwrap();
        for (which, other) in [(0, record(&mut rng, real)), (1, null())] {
            let mut neighbour = data.clone();
            neighbour[at] = other;
            let [one, two] = [&data, &neighbour].map(|data| utilities(&replaced, data, &weights, step, trial % 2 == 0));
            let claimed = if which == 0 {
                replaced.run().choice::<ReplaceOne>().unwrap().sensitivity().get()
            } else {
                nulled.run().choice::<ZeroOut>().unwrap().sensitivity().get()
            };
            let moved = one.iter().zip(&two).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(moved <= claimed, "{loss:?}: {moved}");
            most[which] = most[which].max(moved / claimed);
            let law = |scores: Vec<f64>| {
                let scores = Scores::new(scores).unwrap();
                if which == 0 {
                    replaced.run().choice::<ReplaceOne>().unwrap().probabilities(&scores)
                } else {
                    nulled.run().choice::<ZeroOut>().unwrap().probabilities(&scores)
                }
            };
            let losses: Vec<f64> = law(one).unwrap().iter().zip(law(two).unwrap()).map(|(p, q)| (p / q).ln()).collect();
            let (low, high) =
                losses.iter().fold((0.0f64, 0.0f64), |(low, high), &loss| (low.min(loss), high.max(loss)));
            let range = high - low;
            assert!(range <= 1.0 + 1e-9, "{loss:?}: {range}");
            widest = widest.max(range);
        }
    }
    assert!(most.iter().all(|&most| most > 0.99) && widest > 0.95, "{most:?} {widest}");
}

#[test]
fn trains_within_its_budget_and_derives_its_event() {
    let mut rng = SeededRng::new(3);
    let n = 4000;
    let data: Vec<Record> = (0..n)
        .map(|i| {
            let y = [-1.0, 1.0][i % 2];
            (vec![0.7 * y, rng.random_range(-0.5..0.5), 0.5], y)
        })
        .collect();
    for delta in [0.0, 1e-6] {
        let recipe = PrivGene { rounds: Some(12), ..PrivGene::new(LossKind::Logistic) };
        let plan = recipe.plan::<ReplaceOne>(n as u64, DIM as u64, budget(2.0, delta)).unwrap();
        assert!(plan.reached().epsilon <= 2.0 && plan.reached().epsilon > 1.99, "{:?}", plan.reached());
        let trained = plan.train::<f32>(&mut source(&data, false), &mut rng, &mut Control::default()).unwrap();
        let derivation = &trained.derivation;
        assert_eq!(derivation.event().unwrap(), trained.log.to_event());
        assert_eq!(derivation.event().unwrap(), plan.event());
        let weights = trained.weights.get();
        assert!(weights[0] > 1.0 && weights[1].abs() < weights[0], "{weights:?}");
        assert!(!trained.log.is_private());
    }
}

/// With one informative feature and others that are 0, every round chooses a step along it, in the improving direction: its
/// weight is the sum of all steps, and the others are 0.
#[test]
fn steps_are_taken_along_the_coordinate_that_is_chosen() {
    let recipe = PrivGene { rounds: Some(4), ..PrivGene::new(LossKind::Logistic) };
    let plan = recipe.plan::<ReplaceOne>(4000, DIM as u64, budget(40.0, 0.0)).unwrap();
    let distance: f64 = recipe.steps(4).sum();
    for (feature, sign) in (0..DIM).flat_map(|feature| [(feature, 1.0), (feature, -1.0)]) {
        let record = |i: usize| {
            let (mut x, y) = (vec![0.0; DIM], [-1.0, 1.0][i % 2]);
            x[feature] = 0.7 * sign * y;
            (x, y)
        };
        let data: Vec<Record> = (0..4000).map(record).collect();
        let mut rng = SeededRng::new(feature as u64);
        let trained = plan.train::<f64>(&mut source(&data, false), &mut rng, &mut Control::default()).unwrap();
        let mut expected = [0.0; DIM];
        expected[feature] = sign * distance;
        for (weight, expected) in trained.weights.get().iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-12, "{:?}: {feature} {sign}", trained.weights.get());
        }
    }
}

#[test]
fn rounds_follow_records_and_budget() {
    let rounds = |n, epsilon| {
        PrivGene::new(LossKind::Logistic).plan::<ZeroOut>(n, 3, budget(epsilon, 0.0)).unwrap().run().rounds()
    };
    assert_eq!([rounds(100, 1.0), rounds(1600, 1.0), rounds(1600, 0.5), rounds(80_000, 0.1)], [1, 2, 1, 10]);
}

#[test]
fn nonsense_is_refused() {
    let good = PrivGene::new(LossKind::Logistic);
    let refused = |recipe: &PrivGene, n| recipe.plan::<ReplaceOne>(n, 3, budget(1.0, 0.0)).unwrap_err().to_string();
    assert!(refused(&good, 0).contains("records"));
    assert!(refused(&good, u64::MAX).contains("records"));
    for rounds in [0, u64::MAX] {
        assert!(refused(&PrivGene { rounds: Some(rounds), ..good.clone() }, 10).contains("steps"));
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(&PrivGene { step: bad, ..good.clone() }, 10).contains("step size"), "{bad}");
        assert!(refused(&PrivGene { decay: bad, ..good.clone() }, 10).contains("decay"), "{bad}");
        assert!(refused(&PrivGene { slope: Some(bad), ..good.clone() }, 10).contains("clipping norm"), "{bad}");
        assert!(refused(&PrivGene { row_norm: bad, ..good.clone() }, 10).contains("row norm"), "{bad}");
    }
    assert!(refused(&PrivGene { loss: "softmax:3".parse().unwrap(), ..good.clone() }, 10).contains("classes"));
    let squared = PrivGene { loss: LossKind::Squared, ..good.clone() };
    assert!(refused(&squared, 10).contains("slope"));
    assert!(PrivGene { slope: Some(2.0), ..squared }.plan::<ReplaceOne>(10, 3, budget(1.0, 0.0)).is_ok());
    let plan = good.plan::<ReplaceOne>(10, 3, budget(1.0, 0.0)).unwrap();
    for (rounds, epsilon_of_round) in [(0, 1.0), (1, 0.0), (1, f64::NAN)] {
        let calibrated = Rounds { rounds, epsilon_of_round };
        assert!(Derivation { calibrated, ..plan.derivation().clone() }.event().is_err());
    }
    assert!(matches!(plan.event(), DpEvent::BoundedRange { .. }));
}

/// Step lengths, the cost of a round, and every bound at its limit.
#[test]
fn rounds_and_limits_follow_their_formulas() {
    let usual = PrivGene::new(LossKind::Logistic);
    let lengths: Vec<f64> = PrivGene { step: 0.5, decay: 0.5, ..usual.clone() }.steps(4).collect();
    assert_eq!(lengths, [0.5, 0.25, 0.125, 0.0625]);
    let five = PrivGene { rounds: Some(5), ..usual.clone() };
    let plan = five.plan::<ReplaceOne>(100, 3, budget(1.0, 0.0)).unwrap();
    let DpEvent::SelfComposed { event, count: 5 } = plan.event() else { panic!("{:?}", plan.event()) };
    assert_eq!(*event, DpEvent::BoundedRange { epsilon: plan.run().epsilon_of_round() });
    assert!(plan.run().epsilon_of_round() > 0.199 && plan.run().epsilon_of_round() <= 0.2 * (1.0 + 1e-12));
    let accepts = |recipe: &PrivGene, dim, accept: bool| {
        let checked = recipe.problem(100, dim, AdjacencyKind::ReplaceOne).and_then(|problem| recipe.check(&problem));
        assert_eq!(checked.is_ok(), accept, "{recipe:?} {dim}");
    };
    accepts(&usual, 1 << 31, true);
    accepts(&usual, (1 << 31) + 1, false);
    for (row_norm, accept) in [(1.0, true), (0.5, true), (1.0 + 1e-15, false), (0.0, false), (f64::NAN, false)] {
        accepts(&PrivGene { row_norm, ..usual.clone() }, 3, accept);
        // With a given slope the loss's own is not needed.
        accepts(&PrivGene { row_norm, slope: Some(1.0), ..usual.clone() }, 3, accept);
    }
    for (target_bound, accept) in [(1.0, true), (0.5, true), (1.0 + 1e-15, false), (0.0, false)] {
        accepts(&PrivGene { target_bound, slope: Some(1.0), ..usual.clone() }, 3, accept);
    }
    accepts(&PrivGene { target_bound: 2.0, ..PrivGene::new(LossKind::Absolute) }, 3, true);
}
