use proptest::prelude::*;

use super::*;
use crate::metrics::Cutoff;
use crate::plackett_luce::{for_each_prefix, log_probability};

fn cutoff(k: usize) -> Cutoff {
    Cutoff::new(k).unwrap()
}

/// Returns all losses: first those whose gradient is the derivative of the value, LambdaRank last.
fn all() -> Vec<(&'static str, Box<dyn RankingLoss>)> {
    vec![
        ("ListNet", Box::new(ListNet::TOP_1)),
        ("ListNet@2", Box::new(ListNet::new(cutoff(2)))),
        ("ListNet@3", Box::new(ListNet::new(cutoff(3)))),
        ("ListMLE", Box::new(ListMle)),
        ("BayesRank", Box::new(BayesRank::TOP_1)),
        ("BayesRank@2", Box::new(BayesRank::new(cutoff(2)))),
        ("BayesRank@5", Box::new(BayesRank::new(cutoff(5)))),
        ("RankNet", Box::new(RankNet)),
        ("LambdaRank", Box::new(LambdaRank)),
    ]
}

fn evaluate(loss: &dyn RankingLoss, scores: &[f64], grades: &[u32]) -> (f64, Vec<f64>) {
    let mut gradient = vec![f64::NAN; scores.len()];
    let value = loss.evaluate(scores, grades, &mut LossBuffers::default(), &mut gradient);
    (value, gradient)
}

fn lists(longest: usize) -> impl Strategy<Value = (Vec<f64>, Vec<u32>)> {
    proptest::collection::vec((-4.0..4.0_f64, 0_u32..3), 1..longest).prop_map(|list| list.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn gradients_are_differences((scores, grades) in lists(9)) {
        for (name, loss) in &all()[..8] {
            let (_, gradient) = evaluate(&**loss, &scores, &grades);
            for at in 0..scores.len() {
                let mut moved = scores.clone();
                moved[at] += 1e-5;
                let up = evaluate(&**loss, &moved, &grades).0;
                moved[at] -= 2e-5;
                let difference = (up - evaluate(&**loss, &moved, &grades).0) / 2e-5;
                prop_assert!((gradient[at] - difference).abs() < 1e-7, "{name} {at}: {} {difference}", gradient[at]);
            }
        }
    }

    #[test]
    fn gradients_sum_to_zero_and_constants_change_nothing((scores, grades) in lists(30), shift in -100.0..100.0_f64) {
        let shifted: Vec<f64> = scores.iter().map(|score| score + shift).collect();
        for (name, loss) in all() {
            let (value, gradient) = evaluate(&*loss, &scores, &grades);
            prop_assert!(gradient.iter().sum::<f64>().abs() < 1e-10, "{name}");
            let (same, same_gradient) = evaluate(&*loss, &shifted, &grades);
            prop_assert!((value - same).abs() < 1e-9 * (1.0 + value.abs()), "{name}");
            for (a, b) in gradient.iter().zip(&same_gradient) {
                prop_assert!((a - b).abs() < 1e-9, "{name}");
            }
        }
    }

    #[test]
    fn the_order_of_documents_does_not_matter((scores, grades) in lists(20), turn in 0_usize..20) {
        let turn = turn % scores.len();
        let rotate = |values: &[f64]| [&values[turn..], &values[..turn]].concat();
        let rotated_grades = [&grades[turn..], &grades[..turn]].concat();
        for (name, loss) in all() {
            // ListMLE breaks ties of grades, and LambdaRank ties of scores, by the order.
            let distinct = grades.iter().enumerate().all(|(i, grade)| !grades[..i].contains(grade));
            if name == "ListMLE" && !distinct {
                continue;
            }
            let (value, gradient) = evaluate(&*loss, &scores, &grades);
            let (same, same_gradient) = evaluate(&*loss, &rotate(&scores), &rotated_grades);
            prop_assert!((value - same).abs() < 1e-10 * (1.0 + value.abs()), "{name}");
            for (a, b) in rotate(&gradient).iter().zip(&same_gradient) {
                prop_assert!((a - b).abs() < 1e-10, "{name}");
            }
        }
    }

    #[test]
    fn list_net_is_the_cross_entropy_over_prefixes((scores, grades) in lists(6), k in 1_usize..4) {
        let targets: Vec<f64> = grades.iter().map(|&grade| f64::from(grade)).collect();
        let mut expected = 0.0;
        for_each_prefix(scores.len(), k, &mut |prefix| {
            expected -=
                log_probability(&targets, prefix).unwrap().exp() * log_probability(&scores, prefix).unwrap();
        });
        let (value, _) = evaluate(&ListNet::new(cutoff(k)), &scores, &grades);
        prop_assert!((value - expected).abs() < 1e-11 * (1.0 + expected));
    }

    #[test]
    fn list_mle_is_the_likelihood_of_the_sorted_list((scores, grades) in lists(9)) {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by_key(|&document| core::cmp::Reverse(grades[document]));
        let (value, _) = evaluate(&ListMle, &scores, &grades);
        prop_assert!((value + log_probability(&scores, &order).unwrap()).abs() < 1e-11);
    }

    #[test]
    fn public_centres_do_not_see_grades_and_meet_equal_ones(scores in proptest::collection::vec(-4.0..4.0_f64, 1..9)) {
        let mut buffers = LossBuffers::default();
        let mut centre = vec![f64::NAN; scores.len()];
        ListNet::TOP_1.public_centre(&scores, &mut buffers, &mut centre);
        let equal = vec![2; scores.len()];
        prop_assert_eq!(&evaluate(&ListNet::TOP_1, &scores, &equal).1, &centre);
        BayesRank::TOP_1.public_centre(&scores, &mut buffers, &mut centre);
        prop_assert!(centre.iter().all(|&z| z == 0.0));
    }
}

#[test]
fn buffers_keep_nothing_between_lists() {
    let lists: [(&[f64], &[u32]); 3] = [
        (&[0.5, -1.0, 2.0, 0.0], &[0, 2, 1, 1]),
        (&[3.0, 1.0], &[0, 1]),
        (&[0.1, 0.2, 0.3, -0.4, 0.9, 1.5], &[0, 0, 2, 1, 0, 0]),
    ];
    for (name, loss) in all() {
        let mut used = LossBuffers::default();
        for (scores, grades) in lists {
            let mut gradient = vec![0.0; scores.len()];
            let value = loss.evaluate(scores, grades, &mut used, &mut gradient);
            assert_eq!((value, gradient), evaluate(&*loss, scores, grades), "{name}");
        }
    }
}

#[test]
fn a_list_without_relevant_documents_is_silent() {
    for loss in [BayesRank::TOP_1, BayesRank::new(cutoff(2)), BayesRank::new(cutoff(9))] {
        let (value, gradient) = evaluate(&loss, &[1.0, -3.0, 0.5], &[0, 0, 0]);
        assert!(value == 0.0 && gradient.iter().all(|&g| g == 0.0) && value.is_sign_positive());
    }
    assert_eq!(evaluate(&LambdaRank, &[1.0, -3.0], &[0, 0]), (0.0, vec![0.0, 0.0]));
}

#[test]
fn far_scores_stay_finite() {
    for (name, loss) in all() {
        let (value, gradient) = evaluate(&*loss, &[1e4, -1e4, 0.0, 5e3], &[0, 2, 1, 0]);
        assert!(value.is_finite() && gradient.iter().all(|g| g.is_finite()), "{name}: {value} {gradient:?}");
    }
}

/// A reference to a loss behaves as that loss; the public centre of a loss without one is 0, whatever the buffer held before.
#[test]
fn references_are_the_loss_itself() {
    fn seen(loss: impl ListLoss) -> (f64, bool, bool, Vec<f64>, ImageBounds) {
        let scores = [0.5, -1.0, 2.0];
        let mut centre = vec![7.0; 3];
        loss.public_centre(&scores, &mut LossBuffers::default(), &mut centre);
        let gram = Gram::new(&[2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 5.0], 3, 3).unwrap();
        let image = loss.image(&scores, &gram, true).unwrap();
        (loss.usual_step(), loss.has_public_centre(), loss.has_known_image(), centre, image)
    }
    fn check<L: ListLoss>(loss: &L, centred: bool, known: bool) {
        let found = seen(loss);
        assert_eq!((found.1, found.2), (centred, known));
        assert_eq!(found.3 != [0.0; 3], centred, "{:?}", found.3);
        assert_eq!(found.4.diameter.is_finite(), known);
        // Through one more reference.
        assert_eq!(seen(loss), found);
    }
    check(&ListNet::TOP_1, true, false);
    check(&ListMle, false, false);
    check(&BayesRank::TOP_1, false, true);
}
