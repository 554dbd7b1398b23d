//! Tests of each mode's protection with many versions of one list.

use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent, bound, guarantee::Unit, work};
use dp_mechanisms::{Mechanism as _, SeededRng};

use super::{budget, linear};
use crate::loss::{BayesRank, ListLoss, ListMle, ListNet};
use crate::metrics::Cutoff;
use crate::random::Public;
use crate::scorer::{Activation, Linear, Mlp, Scorer};
use crate::synthetic::{FEATURES, Shape, draw};
use crate::train::private::contribution::Contribution;
use crate::train::*;
use crate::{QueryList, QueryLists};

const WIDTH: usize = 2;

/// Features and grades.
type List = (Vec<f64>, Vec<u32>);

fn random_list(dice: &mut Public, documents: usize) -> List {
    let scale = [1e-3, 0.3, 1.0, 30.0][dice.below(4)];
    let features = (0..documents * WIDTH).map(|_| scale * (2.0 * dice.uniform() - 1.0)).collect();
    (features, (0..documents).map(|_| dice.below(3) as u32).collect())
}

fn add(lists: &mut QueryLists, id: &str, (features, grades): &List) {
    lists.push(id, features, grades).unwrap();
}

/// The sum of a batch of one public list and one of the `versions`, or of the first alone, as computed by a plan's training.
struct Sums<P: Protect> {
    versions: Vec<Vec<f64>>,
    alone: Vec<f64>,
    sensitivity: f64,
    event: DpEvent,
    protects: P,
}

impl<P: Protect> Sums<P> {
    fn of<S: Scorer>(
        protects: P,
        (scorer, parameters): (&S, &[f64]),
        loss: &impl ListLoss,
        clipping: f64,
        versions: &[List],
        normalise: bool,
    ) -> Self {
        let descent = Descent { updates: 3, ..Descent::default() };
        let recipe = PrivateRanking { clipping, descent, ..PrivateRanking::new(BayesRank::TOP_1) };
        let plan = recipe.protecting(protects).plan(50, scorer.parameters() as u64, budget(1.0, 1e-4)).unwrap();
        let derivation = plan.derivation();
        let gaussian = derivation.gaussian::<P::Relation>().unwrap();
        let mut sum = derivation.sum(&gaussian).unwrap();
        let mut contribution = Contribution::new(scorer, loss);
        let mut summed = |version: Option<&List>| {
            let mut lists = QueryLists::new(WIDTH, 2).unwrap();
            add(&mut lists, "other", &(vec![0.0, 1.0, 1.0, 0.0, 0.3, 0.9], vec![2, 0, 1]));
            if let Some(version) = version {
                add(&mut lists, "one", version);
            }
            if normalise {
                lists.normalise_features();
            }
            lists.iter().for_each(|list: QueryList<'_>| sum.add(contribution.of(parameters, list)).unwrap());
            // The sum without noise: the noise is negligible.
            let noise = dp_mechanisms::Gaussian::from_std_dev(sum.sensitivity(), 1e-12 * clipping).unwrap();
            let mut log = dp_accountant::EventLog::new();
            noise.release(sum.finish(), &mut log, &mut SeededRng::new(1)).unwrap().into_inner()
        };
        Self {
            versions: versions.iter().map(|version| summed(Some(version))).collect(),
            alone: summed(None),
            sensitivity: derivation.sum(&gaussian).unwrap().sensitivity().get(),
            event: derivation.event().unwrap(),
            protects,
        }
    }

    /// Returns the largest distance between versions, or from absence, relative to the claim of a step's event. Asserts that no
    /// distance exceeds the claim, and no distance from absence the radius.
    fn reached(&self) -> f64 {
        let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let radius = self.versions.iter().map(|a| apart(a, &self.alone)).fold(0.0, f64::max);
        let diameter = self.versions.iter().flat_map(|a| self.versions.iter().map(|b| apart(a, b))).fold(0.0, f64::max);
        let DpEvent::SelfComposed { event, count: 3 } = &self.event else { panic!("{:?}", self.event) };
        let (reached, claimed) = match &**event {
            DpEvent::PoissonSampled { event, .. } => {
                let DpEvent::Gaussian { sensitivity, .. } = **event else { panic!("{event:?}") };
                assert_eq!(sensitivity, self.sensitivity);
                (radius, sensitivity)
            }
            &DpEvent::PoissonSampledReplacement { distance, radius: claimed, .. } => {
                assert_eq!(distance, self.sensitivity);
                assert!(radius <= claimed * (1.0 + 1e-9), "{:?}: {radius} > {claimed}", self.protects);
                (diameter, distance)
            }
            other => panic!("{other:?}"),
        };
        assert!(reached <= claimed * (1.0 + 1e-9), "{:?}: {reached} > {claimed}", self.protects);
        reached / claimed
    }
}

/// Returns lists of several lengths and sizes, each also with opposite features, which reverses its gradient.
fn whole_lists(dice: &mut Public) -> Vec<List> {
    let mut versions = Vec::new();
    for documents in [1, 1, 2, 2, 3, 4, 5, 7] {
        let (features, grades) = random_list(dice, documents);
        versions.push((features.iter().map(|x| -x).collect(), grades.clone()));
        versions.push((features, grades));
    }
    versions.push((vec![1e200, 0.0, -1e200, 1.0], vec![2, 0]));
    versions.push((vec![f64::MAX, f64::MAX, -f64::MAX, f64::MIN_POSITIVE], vec![0, 1]));
    versions
}

#[test]
fn no_list_moves_a_sum_by_more_than_each_mode_says() {
    fn check<S: Scorer>(scorer: &S, parameters: &[f64], loss: &impl ListLoss, best: &mut [f64; 3]) {
        let mut dice = Public::new(5);
        for clipping in [0.02, 0.3] {
            let versions = whole_lists(&mut dice);
            let at = (scorer, parameters);
            let present = Sums::of(ListPresence, at, loss, clipping, &versions, false).reached();
            let replaced = Sums::of(WholeList, at, loss, clipping, &versions, false).reached();
            // One document of one list, with features mapped to [0, 1] within the list, and without.
            let (features, grades) = random_list(&mut dice, 3);
            let changed: Vec<List> = (0..40)
                .map(|_| {
                    let (document, grade) = random_list(&mut dice, 1);
                    let (mut features, mut grades) = (features.clone(), grades.clone());
                    features[WIDTH..2 * WIDTH].copy_from_slice(&document);
                    grades[1] = grade[0];
                    (features, grades)
                })
                .collect();
            let document = Sums::of(Document, at, loss, clipping, &changed, false).reached();
            Sums::of(Document, at, loss, clipping, &changed, true).reached();
            for (best, reached) in best.iter_mut().zip([present, replaced, document]) {
                *best = best.max(reached);
            }
        }
    }
    let scorer = Linear::new(WIDTH).unwrap();
    let network = Mlp::new(WIDTH, 3, Activation::Tanh).unwrap();
    let mut best = [0.0; 3];
    for weight in [0.0, 0.7] {
        let weights = [weight, -weight];
        check(&scorer, &weights, &BayesRank::TOP_1, &mut best);
        check(&scorer, &weights, &BayesRank::new(Cutoff::new(3).unwrap()), &mut best);
        check(&scorer, &weights, &ListNet::TOP_1, &mut best);
        check(&scorer, &weights, &ListNet::new(Cutoff::new(2).unwrap()), &mut best);
        check(&scorer, &weights, &ListMle, &mut best);
    }
    check(&network, &network.initial(3), &BayesRank::TOP_1, &mut best);
    check(&network, &network.initial(3), &ListMle, &mut best);
    // The claims are tight: a single document can reverse the gradient of its list.
    assert!(best[0] > 0.999 && best[1] > 0.999 && best[2] > 0.99, "{best:?}");
}

/// The substitute for an absent list contributes 0.
#[test]
fn an_empty_list_is_one_of_a_single_document() {
    let mut lists = QueryLists::new(WIDTH, 2).unwrap();
    lists.push("null", &[0.3, -2.0], &[2]).unwrap();
    let network = Mlp::new(WIDTH, 3, Activation::Relu).unwrap();
    for loss in [BayesRank::TOP_1, BayesRank::new(Cutoff::new(3).unwrap())] {
        let of = Contribution::new(&network, loss).of(&network.initial(1), lists.list(0)).to_vec();
        assert_eq!(of, vec![0.0; network.parameters()]);
    }
    let of = Contribution::new(&network, ListNet::TOP_1).of(&network.initial(1), lists.list(0)).to_vec();
    assert_eq!(of, vec![0.0; network.parameters()]);
    let of = Contribution::new(&network, ListMle).of(&network.initial(1), lists.list(0)).to_vec();
    assert_eq!(of, vec![0.0; network.parameters()]);
}

/// Noise follows from the mode's event and uses nearly all of the budget; the certificate states the protected data.
#[test]
fn each_mode_has_its_noise_and_its_certificate() {
    fn check<P: Protect>(protects: P, adjacency: AdjacencyKind, unit: &Unit) -> f64 {
        let lists = draw(Shape::Mq2008, 60, 1).unwrap().lists;
        let descent = Descent { updates: 30, ..Descent::default() };
        let recipe = PrivateRanking { descent, batch_size: 6, ..PrivateRanking::new(BayesRank::TOP_1) };
        for noise_mode in [NoiseMode::Exact, NoiseMode::Rounded] {
            let recipe = PrivateRanking { noise_mode, ..recipe }.protecting(protects);
            let plan = recipe.plan(60, FEATURES as u64, budget(1.0, 1e-4)).unwrap();
            assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.98, "{:?}", plan.reached());
            let delta = dp_accountant::Delta::new(1e-4).unwrap();
            let again = bound::epsilon(&plan.event().unwrap(), delta).unwrap().value;
            assert!((again / plan.reached().epsilon - 1.0).abs() < 1e-9);
            let mut rng = dp_mechanisms::OsSeeded::new().unwrap();
            let trained = plan.train(&linear(), vec![0.0; FEATURES], &lists, &mut rng, &mut |_, _| {}).unwrap();
            assert_eq!((trained.log.adjacency(), trained.log.to_event()), (adjacency, plan.event().unwrap()));
            let certificate = trained.certificate(Vec::new(), "0".repeat(64), Default::default());
            assert_eq!((certificate.adjacency, &certificate.unit), (adjacency, unit));
            certificate.verify().unwrap();
            // A certificate does not verify for another mode that needs other noise or protects other data.
            for other in [Protected::Grades, Protected::ListPresence, Protected::WholeList, Protected::Document] {
                let mut edited = certificate.clone();
                edited.derivation.protects = other;
                let same = other == P::PROTECTED;
                let fits = edited.verify().is_ok() && edited.derivation.unit() == edited.unit;
                assert_eq!(fits, same, "{other:?} for {:?}", P::PROTECTED);
            }
        }
        recipe.protecting(protects).plan(60, FEATURES as u64, budget(1.0, 1e-4)).unwrap().derivation().std_dev
    }
    let grades = check(Grades, AdjacencyKind::ChangeListLabels, &Unit::List);
    let presence = check(ListPresence, AdjacencyKind::ZeroOut, &Unit::List);
    let whole = check(WholeList, AdjacencyKind::ReplaceOne, &Unit::List);
    let document = check(Document, AdjacencyKind::ReplaceOne, &Unit::Document);
    assert_eq!((grades, grades), (whole, document));
    // Half the distance needs less noise, but more than half of it: sampling hides a replaced list better.
    assert!(presence < grades && presence > 0.5 * grades, "{presence} {grades}");
}

#[test]
fn what_features_tell_is_used_for_grades_only() {
    let centred = PrivateRanking { centred: true, ..PrivateRanking::new(ListNet::TOP_1) };
    assert!(centred.plan(60, 46, budget(1.0, 1e-4)).is_ok());
    let refused = |error: TrainError| matches!(error, TrainError::Protected { .. });
    assert!(refused(centred.protecting(WholeList).plan(60, 46, budget(1.0, 1e-4)).unwrap_err()));
    assert!(refused(centred.protecting(ListPresence).plan(60, 46, budget(1.0, 1e-4)).unwrap_err()));
    assert!(refused(centred.protecting(Document).plan(60, 46, budget(1.0, 1e-4)).unwrap_err()));
}

/// What a plan within a limit promises is what verification recomputes without one.
#[test]
fn a_promise_is_evaluated_without_a_limit() {
    let descent = Descent { updates: 2000, ..Descent::default() };
    let recipe = PrivateRanking { descent, batch_size: 1, ..PrivateRanking::new(BayesRank::TOP_1) };
    let recipe = recipe.protecting(ListPresence);
    let plan = work::limited(1e5, || recipe.plan(200, FEATURES as u64, budget(1.0, 1e-6)));
    assert!(plan.is_short);
    let plan = plan.value.unwrap();
    let event = plan.event().unwrap();
    let delta = dp_accountant::Delta::new(1e-6).unwrap();
    assert_eq!(plan.reached().epsilon, bound::epsilon(&event, delta).unwrap().value);
    assert!(work::limited(1e5, || bound::epsilon(&event, delta)).value.unwrap().value > plan.reached().epsilon);
}
