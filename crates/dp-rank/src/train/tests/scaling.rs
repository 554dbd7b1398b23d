//! Tests of public weights and thinning.

use dp_accountant::certificate::Derivation as _;
use dp_accountant::{ChangeListLabels, DpEvent};
use dp_mechanisms::clip::{ClippingNorm, ExactSum};
use dp_mechanisms::{Mechanism as _, SeededRng};

use super::{budget, linear};
use crate::loss::{BayesRank, ListLoss, ListMle, ListNet};
use crate::metrics::Cutoff;
use crate::random::Public;
use crate::scorer::{Activation, Linear, Mlp, Scorer};
use crate::synthetic::{FEATURES, Shape, draw};
use crate::train::private::contribution::Contribution;
use crate::train::*;
use crate::{Features, QueryLists};

const WIDTH: usize = 3;
const CLIPPING: f64 = 0.1;

/// Returns the sum of one list on the grid, without noise.
fn summed(sum: &mut ExactSum<ChangeListLabels>, of_list: &[f64]) -> Vec<f64> {
    sum.add(of_list).unwrap();
    let noise = dp_mechanisms::Gaussian::from_std_dev(sum.sensitivity(), 1e-13).unwrap();
    let mut log = dp_accountant::EventLog::new();
    noise.release(sum.finish(), &mut log, &mut SeededRng::new(1)).unwrap().into_inner()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn plan(scaling: Scaling, thin: bool, parameters: u64, updates: u64) -> RankingPlan<BayesRank> {
    let descent = Descent { updates, ..Descent::default() };
    let recipe = PrivateRanking { clipping: CLIPPING, scaling, thin, descent, ..PrivateRanking::new(BayesRank::TOP_1) };
    recipe.plan(50, parameters, budget(1.0, 1e-4)).unwrap()
}

/// Returns distance and radius claimed by a step's event.
fn claimed(plan: &RankingPlan<BayesRank>) -> (f64, f64) {
    match plan.event().unwrap() {
        DpEvent::PoissonSampledReplacement { distance, radius, .. } => (distance, radius),
        other => panic!("{other:?}"),
    }
}

/// Returns all grades from 0 to 2 of this many documents.
fn all_grades(documents: usize) -> impl Iterator<Item = Vec<u32>> {
    (0..3u32.pow(documents as u32)).map(move |of| (0..documents).map(|i| of / 3u32.pow(i as u32) % 3).collect())
}

/// No two vectors of grades are farther apart than the claimed distance, nor one from an absent list than the radius; some nearly
/// attain both.
#[test]
fn no_grades_are_farther_apart_than_weights_allow() {
    fn check<S: Scorer>(scorer: &S, parameters: &[f64], loss: BayesRank, scaling: Scaling, thin: bool) -> (f64, f64) {
        let plan = plan(scaling, thin, scorer.parameters() as u64, 1);
        let (distance, radius) = claimed(&plan);
        let gaussian = plan.derivation().gaussian::<ChangeListLabels>().unwrap();
        let mut sum = plan.derivation().sum(&gaussian).unwrap();
        assert_eq!(sum.sensitivity().get(), distance);
        let mut dice = Public::new(8);
        let (mut farthest, mut longest) = (0.0f64, 0.0f64);
        for documents in [1, 2, 3, 4, 4, 5] {
            let scale = [0.05, 1.0, 20.0][dice.below(3)];
            let features: Vec<f64> = (0..documents * WIDTH).map(|_| scale * (2.0 * dice.uniform() - 1.0)).collect();
            let key = thin.then_some([documents as u8; 32]);
            let mut contribution = Contribution::new(scorer, loss).thinned(key).scaled(scaling, CLIPPING);
            let images: Vec<Vec<f64>> = all_grades(documents)
                .map(|grades| {
                    let mut lists = QueryLists::new(WIDTH, 2).unwrap();
                    lists.push("one", &features, &grades).unwrap();
                    summed(&mut sum, contribution.of(parameters, lists.list(0)))
                })
                .collect();
            let zero = vec![0.0; scorer.parameters()];
            for a in &images {
                longest = longest.max(apart(a, &zero));
                farthest = images.iter().map(|b| apart(a, b)).fold(farthest, f64::max);
            }
        }
        assert!(farthest <= distance * (1.0 + 1e-9), "{scaling:?} {thin}: {farthest} > {distance}");
        assert!(longest <= radius * (1.0 + 1e-9), "{scaling:?} {thin}: {longest} > {radius}");
        (farthest / distance, longest / radius)
    }
    let (scorer, network) = (Linear::new(WIDTH).unwrap(), Mlp::new(WIDTH, 4, Activation::Tanh).unwrap());
    let (mut best, k2) = ([0.0f64; 2], BayesRank::new(Cutoff::new(2).unwrap()));
    for (scaling, thin) in [
        (Scaling::WHOLE, false),
        (Scaling::WHOLE, true),
        (Scaling::THINNED, false),
        (Scaling::THINNED, true),
        (Scaling::Public { distance: 1.0 }, true),
        (Scaling::Public { distance: 1.2 }, true),
    ] {
        for weights in [[0.0; 3], [0.7, -0.3, 0.1]] {
            let (farthest, longest) = check(&scorer, &weights, BayesRank::TOP_1, scaling, thin);
            best = [best[0].max(farthest), best[1].max(longest)];
            // At equal scores the image of few documents is known exactly.
            if weights == [0.0; 3] && (scaling, thin) != (Scaling::THINNED, false) {
                assert!(farthest > 0.98 || longest > 0.98, "{scaling:?} {thin}: {farthest} {longest}");
            }
            check(&scorer, &weights, k2, scaling, thin);
        }
        check(&network, &network.initial(1), BayesRank::TOP_1, scaling, thin);
    }
    assert!(best[0] > 0.999 && best[1] > 0.999, "{best:?}");
}

/// Tests each limit separately: gradients that are short enough but too far apart, and gradients that are close enough but too
/// long. A weight allows for its own rounding, and no more.
#[test]
fn weights_keep_both_limits() {
    let (scorer, parameters) = (Linear::new(WIDTH).unwrap(), [0.0; WIDTH]);
    let (mut only_apart, mut only_long, mut neither) = (0, 0, 0);
    let mut dice = Public::new(5);
    for (scaling, d) in [
        (Scaling::Public { distance: 1.0 }, 1.0),
        (Scaling::Public { distance: 1.2 }, 1.2),
        (Scaling::THINNED, 2f64.sqrt()),
        (Scaling::WHOLE, 2.0),
    ] {
        let mut contribution =
            Contribution::new(&scorer, BayesRank::TOP_1).thinned(Some([1; 32])).scaled(scaling, CLIPPING);
        for _ in 0..300 {
            let scale = 10f64.powf(1.5 * dice.uniform() - 1.0);
            let features: Vec<f64> = (0..3 * WIDTH).map(|_| scale * dice.uniform()).collect();
            let features = Features::new(&features, WIDTH).unwrap();
            let image = ListGradient::new(&scorer).image(&BayesRank::TOP_1, &parameters, features, true).unwrap();
            let (apart, long) = (image.diameter / (d * CLIPPING), image.radius / CLIPPING);
            let weight = contribution.weight(&parameters, features);
            if apart <= 1.0 && long <= 1.0 {
                neither += 1;
                assert_eq!(weight, 1.0);
            } else {
                only_apart += u32::from(long <= 1.0);
                only_long += u32::from(apart <= 1.0);
                let most = weight * apart.max(long);
                assert!(most <= 1.0 - 2f64.powi(-50) && most >= 1.0 - 1e-12, "{scaling:?}: {most} {image:?}");
            }
        }
    }
    assert!(only_apart > 50 && only_long > 10 && neither > 300, "{only_apart} {only_long} {neither}");
}

/// The method's source scales noise by the largest sensitivity in the batch, which reveals the drawn lists. Here neither the
/// noise nor a list's contribution depends on the other lists.
#[test]
fn weights_do_not_depend_on_who_else_was_drawn() {
    let drawn = draw(Shape::Mq2008, 30, 4).unwrap().lists;
    let mut lists = QueryLists::new(FEATURES, 2).unwrap();
    for (i, list) in drawn.iter().enumerate() {
        // The last list alone would determine the noise scale of its batch.
        let scale = if i == 29 { 1e3 } else { 1.0 };
        let features: Vec<f64> = list.features().values().iter().map(|x| scale * x).collect();
        lists.push(list.id(), &features, list.grades()).unwrap();
    }
    let (scorer, parameters) = (linear(), vec![0.0; FEATURES]);
    for (scaling, thin) in [(Scaling::WHOLE, false), (Scaling::THINNED, true)] {
        let new = || {
            let thinned = Contribution::new(&scorer, BayesRank::TOP_1).thinned(thin.then_some([7; 32]));
            thinned.scaled(scaling, 10.0 * CLIPPING)
        };
        let weights = |among: &[usize]| -> Vec<f64> {
            let mut contribution = new();
            among.iter().map(|&list| contribution.weight(&parameters, lists.list(list).features())).collect()
        };
        let all: Vec<usize> = (0..30).collect();
        let (alone, with_the_large) = (weights(&all[..29]), weights(&all));
        assert_eq!(alone, with_the_large[..29]);
        assert!(with_the_large[29] < 0.1 * alone.iter().copied().fold(f64::INFINITY, f64::min));
        // The event has one scale for all batches.
        let derivation = plan(scaling, thin, FEATURES as u64, 5).derivation().clone();
        let DpEvent::SelfComposed { event, count: 5 } = derivation.event().unwrap() else { panic!() };
        assert!(matches!(*event, DpEvent::PoissonSampledReplacement { std_dev, .. } if std_dev == derivation.std_dev));
    }
}

#[test]
fn weights_keep_directions_and_thinning_keeps_one_best_document() {
    let lists = draw(Shape::Mq2008, 40, 9).unwrap().lists;
    let (scorer, parameters) = (linear(), vec![0.0; FEATURES]);
    let mut plain = Contribution::new(&scorer, BayesRank::TOP_1);
    let mut weighted = Contribution::new(&scorer, BayesRank::TOP_1).scaled(Scaling::WHOLE, CLIPPING);
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut shortened = 0;
    for list in lists.iter() {
        let weight = weighted.weight(&parameters, list.features());
        let (whole, part) = (plain.of(&parameters, list).to_vec(), weighted.of(&parameters, list).to_vec());
        shortened += usize::from(weight < 1.0);
        assert!(norm(&part) <= CLIPPING && (0.0..=1.0).contains(&weight));
        whole.iter().zip(&part).for_each(|(whole, part)| assert!((weight * whole - part).abs() <= 1e-15));
    }
    assert!(shortened > 20, "{shortened}");

    // Each best document is kept about equally often, and no other.
    let mut lists = QueryLists::new(1, 2).unwrap();
    lists.push("q", &[1.0, 2.0, 4.0, 8.0], &[2, 1, 2, 2]).unwrap();
    let scorer = Linear::new(1).unwrap();
    let mut thinned = Contribution::new(&scorer, BayesRank::TOP_1).thinned(Some([3; 32]));
    let mean = 15.0 / 4.0;
    let mut kept = [0; 4];
    for _ in 0..3000 {
        let gradient = thinned.of(&[0.0], lists.list(0))[0];
        let document = [1.0, 2.0, 4.0, 8.0].iter().position(|x| (gradient + (x - mean) / 4.0).abs() < 1e-12).unwrap();
        kept[document] += 1;
    }
    assert_eq!(kept[1], 0);
    assert!([0, 2, 3].iter().all(|&document| (900..1100).contains(&kept[document])), "{kept:?}");
}

#[test]
fn less_noise_for_closer_versions_and_the_certificate_says_so() {
    let noise = |scaling, thin| plan(scaling, thin, 46, 400).derivation().std_dev;
    let clipped = noise(Scaling::Clip, false);
    assert_eq!((clipped, clipped), (noise(Scaling::Clip, true), noise(Scaling::WHOLE, false)));
    let thinned = noise(Scaling::THINNED, true);
    assert!(thinned < 0.95 * clipped && thinned > 0.5 * clipped, "{thinned} {clipped}");
    assert!(noise(Scaling::Public { distance: 1.0 }, true) < thinned);

    let lists = draw(Shape::Mq2008, 50, 1).unwrap().lists;
    let plan = plan(Scaling::THINNED, true, FEATURES as u64, 20);
    assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.98, "{:?}", plan.reached());
    let mut rng = dp_mechanisms::OsSeeded::new().unwrap();
    let trained = plan.train(&linear(), vec![0.0; FEATURES], &lists, &mut rng, &mut |_, _| {}).unwrap();
    let certificate = trained.certificate(Vec::new(), "0".repeat(64), Default::default());
    certificate.verify().unwrap();
    for scaling in [Scaling::Clip, Scaling::WHOLE, Scaling::Public { distance: 1.1 }, Scaling::Public { distance: 0.5 }]
    {
        let mut edited = certificate.clone();
        edited.derivation.scaling = scaling;
        assert!(edited.verify().is_err(), "{scaling:?}");
    }
    let mut edited = certificate.clone();
    edited.derivation.protects = Protected::WholeList;
    assert!(edited.verify().is_err());
}

#[test]
fn weights_need_public_features_and_a_known_image() {
    let of = |scaling| PrivateRanking { scaling, ..PrivateRanking::new(BayesRank::TOP_1) };
    let refused = |distance: f64| of(Scaling::Public { distance }).plan(50, 46, budget(1.0, 1e-4)).unwrap_err();
    for distance in [0.0, 0.99, 2.01, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(distance), TrainError::OutOfRange { name: "distance", .. }), "{distance}");
    }
    let protected = |error: TrainError| matches!(error, TrainError::Protected { .. });
    assert!(protected(of(Scaling::WHOLE).protecting(WholeList).plan(50, 46, budget(1.0, 1e-4)).unwrap_err()));
    assert!(protected(of(Scaling::WHOLE).protecting(ListPresence).plan(50, 46, budget(1.0, 1e-4)).unwrap_err()));
    assert!(protected(of(Scaling::WHOLE).protecting(Document).plan(50, 46, budget(1.0, 1e-4)).unwrap_err()));
    fn unknown(loss: impl ListLoss + Copy + std::fmt::Debug) {
        let recipe = PrivateRanking { scaling: Scaling::WHOLE, ..PrivateRanking::new(loss) };
        assert!(matches!(recipe.plan(50, 46, budget(1.0, 1e-4)).unwrap_err(), TrainError::UnknownImage));
    }
    unknown(ListNet::TOP_1);
    unknown(ListMle);
    // A list whose weight cannot be computed contributes 0.
    let mut lists = QueryLists::new(1, 2).unwrap();
    lists.push("huge", &[f64::MAX, -f64::MAX], &[2, 0]).unwrap();
    let scorer = Linear::new(1).unwrap();
    for weight in [0.0, 1.0] {
        let mut contribution = Contribution::new(&scorer, BayesRank::TOP_1).scaled(Scaling::WHOLE, CLIPPING);
        assert_eq!(contribution.of(&[weight], lists.list(0)), [0.0]);
    }
    let norm = ClippingNorm::new(CLIPPING).unwrap();
    assert!(ExactSum::<ChangeListLabels>::new(1, norm.into(), 2f64.powi(-40), 9).unwrap().within(0.0).is_err());
}
