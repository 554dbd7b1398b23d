use proptest::prelude::*;

use super::*;

fn cutoff(k: usize) -> Cutoff {
    Cutoff::new(k).unwrap()
}

type Metric = fn(&Ranking) -> f64;

/// Returns every metric, at a few positions.
fn all() -> Vec<Metric> {
    vec![
        |r| ndcg(r, cutoff(1)),
        |r| ndcg(r, cutoff(3)),
        |r| ndcg(r, cutoff(100)),
        |r| ndcg_letor(r, cutoff(1)),
        |r| ndcg_letor(r, cutoff(3)),
        mean_ndcg_letor,
        average_precision,
        |r| average_precision_at(r, cutoff(3)),
        |r| precision(r, cutoff(1)),
        |r| precision(r, cutoff(10)),
        reciprocal_rank,
        |r| expected_reciprocal_rank(r, cutoff(5), 4).unwrap(),
    ]
}

fn lists() -> impl Strategy<Value = Vec<(f64, u32)>> {
    proptest::collection::vec((-1e3f64..1e3, 0u32..5), 1..40)
}

fn ranking(list: &[(f64, u32)]) -> Ranking {
    let (scores, labels): (Vec<f64>, Vec<u32>) = list.iter().copied().unzip();
    Ranking::new(&scores, &labels).unwrap()
}

proptest! {
    #[test]
    fn all_lie_between_zero_and_one(list in lists()) {
        let ranking = ranking(&list);
        for (index, metric) in all().iter().enumerate() {
            let value = metric(&ranking);
            prop_assert!((0.0..=1.0).contains(&value), "metric {index}: {value}");
        }
    }

    #[test]
    fn the_order_of_the_file_does_not_matter_without_ties(list in lists(), seed in any::<u64>()) {
        // Makes the scores distinct.
        let list: Vec<(f64, u32)> = list.iter().enumerate().map(|(i, &(s, l))| (s + 1e4 * i as f64, l)).collect();
        let mut shuffled = list.clone();
        let mut state = seed;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(i, (state >> 33) as usize % (i + 1));
        }
        let (straight, permuted) = (ranking(&list), ranking(&shuffled));
        for metric in all() {
            prop_assert_eq!(metric(&straight), metric(&permuted));
        }
    }

    #[test]
    fn only_the_order_of_the_scores_matters(list in lists()) {
        let stretched: Vec<(f64, u32)> = list.iter().map(|&(s, l)| (8.0 * s + 16.0, l)).collect();
        prop_assert_eq!(ranking(&list).labels().to_vec(), ranking(&stretched).labels().to_vec());
    }

    #[test]
    fn a_perfect_ranking_scores_one(labels in proptest::collection::vec(0u32..5, 1..40)) {
        let perfect: Vec<(f64, u32)> = labels.iter().map(|&l| (f64::from(l), l)).collect();
        let ranking = ranking(&perfect);
        let expected = if labels.iter().any(|&l| l > 0) { 1.0 } else { 0.0 };
        for k in [1, 3, 100] {
            prop_assert_eq!(ndcg(&ranking, cutoff(k)), expected);
        }
        prop_assert_eq!(average_precision(&ranking), expected);
        prop_assert!((mean_ndcg_letor(&ranking) - expected).abs() < 1e-15);
    }

    #[test]
    fn swapping_a_better_document_up_never_hurts_ndcg(list in lists()) {
        let ranked = ranking(&list);
        for at in 1..ranked.labels().len() {
            if ranked.labels()[at] > ranked.labels()[at - 1] {
                let mut labels = ranked.labels().to_vec();
                labels.swap(at, at - 1);
                let better: Vec<(f64, u32)> = labels.iter().enumerate().map(|(i, &l)| (-(i as f64), l)).collect();
                prop_assert!(ndcg(&ranking(&better), cutoff(100)) >= ndcg(&ranked, cutoff(100)));
            }
        }
    }
}

#[test]
fn the_average_over_the_top_equals_average_precision_at_the_end() {
    let ranking = Ranking::new(&[4.0, 3.0, 2.0, 1.0], &[0, 1, 0, 2]).unwrap();
    assert_eq!(average_precision_at(&ranking, cutoff(4)), average_precision(&ranking));
    assert_eq!(average_precision_at(&ranking, cutoff(400)), average_precision(&ranking));
    assert!(average_precision_at(&ranking, cutoff(3)) > 0.0);
}

#[test]
fn letor_leaves_short_lists_out_and_the_literature_does_not() {
    let ranking = Ranking::new(&[2.0, 1.0], &[1, 0]).unwrap();
    assert_eq!(ndcg_letor(&ranking, cutoff(3)), 0.0);
    assert_eq!(ndcg(&ranking, cutoff(3)), 1.0);
}

#[test]
fn the_largest_grade_is_exact() {
    let ranking = Ranking::new(&[2.0, 1.0], &[crate::ranking::LARGEST_GRADE, 0]).unwrap();
    assert_eq!(gain(crate::ranking::LARGEST_GRADE), 4_503_599_627_370_495.0);
    assert_eq!(ndcg(&ranking, cutoff(2)), 1.0);
}

#[test]
fn empty_means_and_zero_cutoffs_are_typed_errors() {
    assert_eq!(Cutoff::new(0), Err(Error::ZeroCutoff));
    assert_eq!(mean_over(&[], average_precision), Err(Error::NoLists));
}

#[test]
fn expected_reciprocal_rank_refuses_grades_above_the_declared_one() {
    let ranking = Ranking::new(&[1.0, 2.0], &[3, 0]).unwrap();
    let refused = Error::GradeTooLarge { document: 1, label: 3, limit: 2 };
    assert_eq!(expected_reciprocal_rank(&ranking, cutoff(1), 2), Err(refused));
    assert!(expected_reciprocal_rank(&ranking, cutoff(1), 53).is_err());
    // A relevant document of the largest grade in first position has stopping probability 15/16.
    assert_eq!(expected_reciprocal_rank(&Ranking::new(&[1.0], &[4]).unwrap(), cutoff(3), 4), Ok(15.0 / 16.0));
}

#[test]
fn ties_are_averaged_over_and_nothing_else() {
    use rand::SeedableRng;
    let mut random = rand::rngs::StdRng::seed_from_u64(3);
    let (scores, labels) = ([2.0, 1.0, 1.0, 0.0], [0, 1, 0, 2]);
    let mean = mean_over_ties(&scores, &labels, 3000, &mut random, average_precision).unwrap();
    let ap = |labels: [u32; 4]| average_precision(&Ranking::new(&[4.0, 3.0, 2.0, 1.0], &labels).unwrap());
    let expected = 0.5 * (ap([0, 1, 0, 2]) + ap([0, 0, 1, 2]));
    assert!((mean - expected).abs() < 0.01, "{mean} {expected}");
    // Without ties the ranking is evaluated as it is.
    let distinct = mean_over_ties(&[0.1, 0.3, 0.2], &[1, 0, 2], 1, &mut random, average_precision).unwrap();
    assert_eq!(distinct, average_precision(&Ranking::new(&[0.1, 0.3, 0.2], &[1, 0, 2]).unwrap()));
    assert!(mean_over_ties(&scores, &labels, 0, &mut random, average_precision).is_err());
    assert!(mean_over_ties(&[f64::NAN], &[0], 1, &mut random, average_precision).is_err());
}
