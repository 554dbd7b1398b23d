use dp_accountant::certificate::{Assumption, Derivation as _, NoiseMode};
use dp_accountant::{ChangeListLabels, DpEvent};
use dp_mechanisms::clip::{ClippingNorm, ExactSum};
use dp_mechanisms::{OsSeeded, SeededRng};
use dp_optim::recipes::Budget;

mod modes;
mod scaling;

use super::*;
use crate::loss::{BayesRank, LambdaRank, ListLoss, ListMle, ListNet};
use crate::metrics::{self, Cutoff};
use crate::scorer::{Activation, Linear, Mlp, Scorer};
use crate::spectral::{Normalise, norm_upper_bound};
use crate::synthetic::{FEATURES, Shape, draw};
use crate::{Error, QueryList, QueryLists, Ranking};

fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget::new(epsilon, delta).unwrap()
}

fn linear() -> Linear {
    Linear::new(FEATURES).unwrap()
}

/// Returns the mean NDCG@10 of a scorer's rankings.
fn ndcg<S: Scorer>(scorer: &S, weights: &[f64], lists: &QueryLists) -> f64 {
    let (mut workspace, mut scores) = (S::Workspace::default(), Vec::new());
    let rankings: Vec<Ranking> = lists
        .iter()
        .map(|list| {
            scores.resize(list.documents(), 0.0);
            scorer.scores(weights, list.features(), &mut workspace, &mut scores);
            Ranking::new(&scores, list.grades()).unwrap()
        })
        .collect();
    metrics::mean_over(&rankings, |ranking| metrics::ndcg(ranking, Cutoff::new(10).unwrap())).unwrap()
}

/// The private and public parts of a gradient add up to the gradient, and grades do not change the public part.
#[test]
fn gradients_have_two_parts() {
    fn check<S: Scorer>(scorer: &S, weights: &[f64], loss: &impl ListLoss) {
        let lists = draw(Shape::Mq2008, 6, 3).unwrap().lists;
        let mut gradients = ListGradient::new(scorer);
        for list in lists.iter() {
            let (mut whole, mut parts) = (vec![0.0; scorer.parameters()], vec![0.0; scorer.parameters()]);
            gradients.add_whole(loss, weights, list, &mut whole);
            gradients.add_private(loss, weights, list, &mut parts);
            let private = parts.clone();
            gradients.add_public(loss, weights, list.features(), 1.0, &mut parts);
            let scale = whole.iter().chain(&private).fold(1e-3, |most: f64, x| most.max(x.abs()));
            for (whole, part) in whole.iter().zip(&parts) {
                assert!((whole - part).abs() <= 1e-12 * scale, "{whole} {part}");
            }
            if !loss.has_public_centre() {
                assert_eq!(private, parts);
            }
        }
    }
    let mlp = Mlp::new(FEATURES, 5, Activation::Tanh).unwrap();
    let weights: Vec<f64> = (0..FEATURES).map(|i| (i as f64).sin()).collect();
    check(&linear(), &weights, &BayesRank::TOP_1);
    check(&linear(), &weights, &ListNet::TOP_1);
    check(&linear(), &weights, &ListMle);
    check(&mlp, &mlp.initial(1), &ListNet::TOP_1);
    check(&mlp, &mlp.initial(1), &BayesRank::new(Cutoff::new(2).unwrap()));
}

/// For any grades of one list, the sum of a batch changes by at most the claimed sensitivity, and the list contributes at most
/// the radius; some grades nearly attain both.
#[test]
fn no_grades_move_a_sum_by_more_than_the_sensitivity() {
    fn grades(of: u64, documents: usize) -> Vec<u32> {
        (0..documents).map(|i| (of / 3u64.pow(i as u32) % 3) as u32).collect()
    }
    fn check<L: ListLoss>(loss: &L, clipping: f64, weight: f64, centred: bool) -> (f64, f64) {
        let add = |gradients: &mut ListGradient<'_, Linear>,
                   loss: &L,
                   weights: &[f64],
                   list: QueryList<'_>,
                   sum: &mut [f64]| {
            if centred {
                gradients.add_private(loss, weights, list, sum);
            } else {
                gradients.add_whole(loss, weights, list, sum);
            }
        };
        let scorer = Linear::new(2).unwrap();
        let features = [0.0, 1.0, 1.0, 0.0, 0.3, 0.9, 0.8, 0.1];
        let weights = [weight, -weight];
        let norm = ClippingNorm::new(clipping).unwrap();
        let mut gradients = ListGradient::new(&scorer);
        let sums: Vec<Vec<f64>> = (0..81)
            .map(|labels| {
                let mut lists = QueryLists::new(2, 2).unwrap();
                lists.push("other", &features, &[2, 0, 1, 0]).unwrap();
                lists.push("one", &features, &grades(labels, 4)).unwrap();
                let mut sum = ExactSum::<ChangeListLabels>::new(2, norm.into(), 2f64.powi(-40), 2).unwrap();
                assert_eq!(sum.sensitivity().get(), 2.0 * clipping);
                for list in lists.iter() {
                    let mut of_list = vec![0.0; 2];
                    add(&mut gradients, loss, &weights, list, &mut of_list);
                    sum.add(&of_list).unwrap();
                }
                release_without_noise(sum.finish())
            })
            .collect();
        let mut of_other = vec![0.0; 2];
        let mut lists = QueryLists::new(2, 2).unwrap();
        lists.push("other", &features, &[2, 0, 1, 0]).unwrap();
        add(&mut gradients, loss, &weights, lists.list(0), &mut of_other);
        let mut alone = ExactSum::<ChangeListLabels>::new(2, norm.into(), 2f64.powi(-40), 2).unwrap();
        alone.add(&of_other).unwrap();
        let alone = release_without_noise(alone.finish());
        let apart = |a: &[f64], b: &[f64]| (a[0] - b[0]).hypot(a[1] - b[1]);
        let farthest = sums.iter().flat_map(|a| sums.iter().map(|b| apart(a, b))).fold(0.0, f64::max);
        let radius = sums.iter().map(|a| apart(a, &alone)).fold(0.0, f64::max);
        assert!(farthest <= 2.0 * clipping * (1.0 + 1e-9) && radius <= clipping * (1.0 + 1e-9), "{farthest} {radius}");
        (farthest / (2.0 * clipping), radius / clipping)
    }
    /// Returns the sum without noise: a huge sum with negligible noise.
    fn release_without_noise(sum: dp_mechanisms::Bounded<Vec<f64>, ChangeListLabels>) -> Vec<f64> {
        let sensitivity = sum.sensitivity();
        let noise = dp_mechanisms::Gaussian::from_std_dev(sensitivity, 1e-12).unwrap();
        let mut log = dp_accountant::EventLog::new();
        noise.release(sum, &mut log, &mut SeededRng::new(1)).unwrap().into_inner()
    }
    use dp_mechanisms::Mechanism;
    for weight in [0.0, 0.7, 4.0] {
        for clipping in [0.02, 0.1, 10.0] {
            let bayes = check(&BayesRank::TOP_1, clipping, weight, false);
            let list_net = check(&ListNet::TOP_1, clipping, weight, true);
            check(&ListNet::TOP_1, clipping, weight, false);
            check(&ListMle, clipping, weight, false);
            if clipping == 0.02 && weight < 1.0 {
                assert!(bayes.0 > 0.95 && bayes.1 > 0.99 && list_net.1 > 0.99, "{bayes:?} {list_net:?}");
            }
        }
    }
}

#[test]
fn a_plan_keeps_its_budget_and_its_log_says_the_same() {
    let lists = draw(Shape::Mq2008, 60, 1).unwrap().lists;
    for (epsilon, delta) in [(0.5, 1e-4), (3.0, 1e-6)] {
        let descent = Descent { updates: 30, ..Descent::default() };
        let recipe =
            PrivateRanking { descent, batch_size: 6, centred: epsilon < 1.0, ..PrivateRanking::new(ListNet::TOP_1) };
        let plan = recipe.plan(60, FEATURES as u64, budget(epsilon, delta)).unwrap();
        assert!(plan.reached().epsilon <= epsilon && plan.reached().epsilon > 0.98 * epsilon, "{:?}", plan.reached());
        let mut seen = Vec::new();
        let mut observer = |update: u64, _: &[f64]| seen.push(update);
        let start = vec![0.0; FEATURES];
        let trained = plan.train(&linear(), start, &lists, &mut OsSeeded::new().unwrap(), &mut observer).unwrap();
        assert_eq!(seen, (0..=30).collect::<Vec<_>>());
        assert_eq!(trained.log.to_event(), plan.event().unwrap());
        assert_eq!(trained.derivation.event().unwrap(), plan.event().unwrap());
        assert!(matches!(
            plan.event().unwrap(),
            DpEvent::SelfComposed { count: 30, event } if matches!(*event,
                DpEvent::PoissonSampledReplacement { distance, radius, .. } if distance == 2.0 * radius)
        ));
        let certificate = trained.certificate(Vec::new(), "0".repeat(64), Default::default());
        assert!(certificate.private);
        let verified = certificate.verify().unwrap();
        assert!((verified.epsilon / plan.reached().epsilon - 1.0).abs() < 1e-9, "{verified:?}");
        // Noise for fewer updates is detected.
        let mut edited = certificate.clone();
        edited.derivation.updates -= 1;
        assert!(edited.verify().is_err());
        // A seeded run is not private.
        let seeded =
            plan.train(&linear(), vec![0.0; FEATURES], &lists, &mut SeededRng::new(1), &mut |_, _| {}).unwrap();
        assert!(
            !seeded.log.is_private()
                && seeded.certificate(Vec::new(), "0".repeat(64), Default::default()).reached.is_none()
        );
    }
}

#[test]
fn less_budget_or_more_updates_need_more_noise() {
    let noise = |epsilon: f64, updates: u64, batch_size: u64| {
        let descent = Descent { updates, ..Descent::default() };
        let recipe = PrivateRanking { descent, batch_size, ..PrivateRanking::new(BayesRank::TOP_1) };
        recipe.plan(628, 46, budget(epsilon, 1e-4)).unwrap().noise_multiplier()
    };
    assert!(noise(0.5, 400, 10) > noise(1.0, 400, 10));
    assert!(noise(1.0, 800, 10) > noise(1.0, 400, 10));
    assert!(noise(1.0, 400, 30) > noise(1.0, 400, 10));
    // Batches larger than the data use all lists, at their own Poisson rate.
    assert_eq!(noise(1.0, 40, 628), noise(1.0, 40, 10_000));
}

/// If a sum of very many lists is rounded at the end, all that rounding adds to the distance of two may come from one list.
#[test]
fn rounding_of_a_sum_counts_for_one_list_too() {
    let derivation = |std_dev: f64| RankingDerivation {
        lists: 1 << 31,
        parameters: 3,
        batch_size: 1 << 20,
        updates: 1,
        clipping: 0.25,
        std_dev,
        exact_noise: true,
        protects: Protected::WholeList,
        scaling: Scaling::Clip,
    };
    let of = |std_dev| match derivation(std_dev).event().unwrap() {
        DpEvent::PoissonSampledReplacement { distance, radius, .. } => (distance, radius),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(1e6), (0.5, 0.25));
    let (distance, radius) = of(1.0);
    assert!(distance > 0.5, "{distance}");
    assert!(radius >= distance - 0.25 && radius <= distance - 0.25 + 1e-15, "{radius} {distance}");
}

/// A certificate states what is public and whether its noise is idealised; a noise multiplier is relative to the distance of
/// neighbours.
#[test]
fn a_derivation_says_what_it_rests_on() {
    for protects in [Protected::Grades, Protected::ListPresence, Protected::WholeList, Protected::Document] {
        for exact_noise in [true, false] {
            let derivation = RankingDerivation {
                lists: 100,
                parameters: 3,
                batch_size: 10,
                updates: 1,
                clipping: 0.25,
                std_dev: 1.0,
                exact_noise,
                protects,
                scaling: Scaling::Clip,
            };
            let assumptions = derivation.assumptions();
            assert!(assumptions.contains(&Assumption::PublicN));
            assert_eq!(assumptions.contains(&Assumption::IdealisedFloat), !exact_noise);
            let text = assumptions.iter().find_map(|assumption| match assumption {
                Assumption::Other { text } => Some(text),
                _ => None,
            });
            let text = text.expect("what is trusted");
            assert_eq!(text.contains("documents, their features"), protects.has_public_features(), "{text}");
            assert_eq!(text.contains("lengths of lists"), protects.has_public_lengths(), "{text}");
            assert!(protects.has_public_features() || text.contains("were declared"), "{text}");
            let lists = if protects == Protected::ListPresence { 1.0 } else { 2.0 };
            assert_eq!(derivation.distance(), lists * 0.25);
        }
    }
    let plan = PrivateRanking::new(BayesRank::TOP_1).plan(60, 3, budget(1.0, 1e-4)).unwrap();
    let apart = 2.0 * plan.derivation().clipping;
    assert!((plan.noise_multiplier() * apart / plan.derivation().std_dev - 1.0).abs() < 1e-15);
}

/// At a budget that needs almost no noise, private training agrees with training without privacy; at a usual budget it attains
/// most of its quality. 40 lists of 8 and more documents (seeds are fixed).
#[test]
fn it_learns_to_rank() {
    let data = draw(Shape::Mq2007, 500, 11).unwrap().lists;
    let test = draw(Shape::Mq2007, 500, 11).unwrap();
    let (scorer, zeros) = (linear(), vec![0.0; FEATURES]);
    let best = ndcg(&scorer, &test.theta, &test.lists);
    let by_order = ndcg(&scorer, &zeros, &test.lists);
    let free = NonPrivateRanking::new(BayesRank::TOP_1);
    let without = free.train(&scorer, zeros.clone(), &data, [3; 32], &mut |_, _| {}).unwrap();
    let without = ndcg(&scorer, &without, &test.lists);
    assert!(without > by_order + 0.6 * (best - by_order), "{by_order} {without} {best}");
    let private = |epsilon: f64| {
        let recipe = PrivateRanking::new(BayesRank::TOP_1);
        let plan = recipe.plan(500, FEATURES as u64, budget(epsilon, 1e-4)).unwrap();
        let trained = plan.train(&scorer, zeros.clone(), &data, &mut SeededRng::new(5), &mut |_, _| {}).unwrap();
        ndcg(&scorer, trained.weights.get(), &test.lists)
    };
    let (little, much) = (private(1.0), private(1e3));
    assert!(much > without - 0.02, "{much} {without}");
    assert!(little > by_order + 0.4 * (best - by_order), "{by_order} {little} {best}");
}

#[test]
fn normalised_networks_stay_normalised() {
    let lists = draw(Shape::Mq2008, 30, 2).unwrap().lists;
    let scorer = Mlp::new(FEATURES, 6, Activation::Relu).unwrap();
    let descent = Descent { updates: 10, normalise: Some(Normalise::Always), ..Descent::default() };
    let recipe = PrivateRanking { descent, ..PrivateRanking::new(BayesRank::TOP_1) };
    let plan = recipe.plan(30, scorer.parameters() as u64, budget(1.0, 1e-3)).unwrap();
    let matrices: Vec<_> = scorer.blocks().into_iter().filter(|block| block.name.starts_with('w')).collect();
    assert_eq!(matrices.len(), 2);
    let mut observer = |_: u64, weights: &[f64]| {
        for block in &matrices {
            let norm = norm_upper_bound(&weights[block.range.clone()], block.rows, block.columns);
            assert!((1.0 - 1e-9..1.02).contains(&norm), "{norm}");
        }
    };
    plan.train(&scorer, scorer.initial(4), &lists, &mut SeededRng::new(1), &mut observer).unwrap();
}

#[test]
fn steps_fall_by_quarters() {
    let descent = Descent { updates: 8, step: 2.0, ..Descent::default() };
    let steps: Vec<f64> = (0..8).map(|update| descent.step_at(update)).collect();
    assert_eq!(steps, [2.0, 2.0, 1.5, 1.5, 1.0, 1.0, 0.5, 0.5]);
    assert_eq!(Descent { falling: false, ..descent }.step_at(7), 2.0);
    assert!(Descent { updates: u64::MAX, ..descent }.step_at(u64::MAX) > 0.0);
}

#[test]
fn nonsense_is_refused() {
    let good = PrivateRanking::new(BayesRank::TOP_1);
    let refused = |recipe: PrivateRanking<BayesRank>| recipe.plan(100, 46, budget(1.0, 1e-4)).unwrap_err().to_string();
    for clipping in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(PrivateRanking { clipping, ..good }).contains("clipping"), "{clipping}");
    }
    for step in [0.0, f64::NAN, f64::INFINITY] {
        let descent = Descent { step, ..good.descent };
        assert!(refused(PrivateRanking { descent, ..good }).contains("step"), "{step}");
    }
    assert!(refused(PrivateRanking { descent: Descent { updates: 0, ..good.descent }, ..good }).contains("updates"));
    assert!(refused(PrivateRanking { batch_size: 0, ..good }).contains("batch"));
    assert!(refused(PrivateRanking { noise_mode: NoiseMode::None, ..good }).contains("noise"));
    assert!(good.plan(0, 46, budget(1.0, 1e-4)).is_err() && good.plan(100, 0, budget(1.0, 1e-4)).is_err());
    assert!(good.plan(100, 46, budget(1.0, 0.0)).is_err(), "Gaussian noise needs a delta");

    let lists = draw(Shape::Mq2008, 10, 2).unwrap().lists;
    let plan = good.plan(11, FEATURES as u64, budget(1.0, 1e-3)).unwrap();
    let train = |scorer: &Linear, start: usize, lists: &QueryLists| {
        plan.train(scorer, vec![0.0; start], lists, &mut SeededRng::new(1), &mut |_, _| {}).unwrap_err()
    };
    assert!(matches!(
        train(&linear(), FEATURES, &lists),
        TrainError::Ranking(Error::Shape { what: "the lists", found: 10, expected: 11 })
    ));
    assert!(matches!(train(&Linear::new(2).unwrap(), 2, &lists), TrainError::Ranking(Error::Shape { .. })));
    let eleven = draw(Shape::Mq2008, 11, 2).unwrap().lists;
    assert!(matches!(train(&linear(), 3, &eleven), TrainError::Ranking(Error::Shape { what: "the start", .. })));
    assert!(matches!(
        train(&linear(), FEATURES, &QueryLists::new(FEATURES, 2).unwrap()),
        TrainError::Ranking(Error::NoLists)
    ));
}

/// Losses of pairs have no private trainer; they learn without privacy.
#[test]
fn anchors_learn_without_privacy() {
    let data = draw(Shape::Mq2008, 200, 5).unwrap();
    let training = NonPrivateRanking {
        descent: Descent { step: 0.3, ..Descent::default() },
        ..NonPrivateRanking::new(LambdaRank)
    };
    let (scorer, zeros) = (linear(), vec![0.0; FEATURES]);
    let before = ndcg(&scorer, &zeros, &data.lists);
    let after = training.train(&scorer, zeros, &data.lists, [1; 32], &mut |_, _| {}).unwrap();
    assert!(ndcg(&scorer, &after, &data.lists) > before + 0.1);
}
