use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn probabilities_of_all_prefixes_sum_to_one_and_their_gradients_to_zero(
        scores in proptest::collection::vec(-5.0..5.0_f64, 1..6), length in 1_usize..6,
    ) {
        let n = scores.len();
        let (mut sum, mut sum_of_gradients, mut count) = (0.0, vec![0.0; n], 0.0);
        let mut gradient = vec![0.0; n];
        for_each_prefix(n, length, &mut |prefix| {
            let p = log_probability_and_gradient(&scores, prefix, &mut gradient).unwrap().exp();
            sum += p;
            count += 1.0;
            assert!(gradient.iter().sum::<f64>().abs() < 1e-13);
            sum_of_gradients.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += p * g);
        });
        prop_assert_eq!(count, prefixes(n, length));
        prop_assert!((sum - 1.0).abs() < 1e-13);
        prop_assert!(sum_of_gradients.iter().all(|g| g.abs() < 1e-13), "{:?}", sum_of_gradients);
    }

    #[test]
    fn gradients_are_differences(scores in proptest::collection::vec(-3.0..3.0_f64, 3..7), length in 1_usize..4) {
        let prefix: Vec<usize> = (0..length).rev().collect();
        let mut gradient = vec![0.0; scores.len()];
        log_probability_and_gradient(&scores, &prefix, &mut gradient).unwrap();
        for at in 0..scores.len() {
            let mut moved = scores.clone();
            moved[at] += 1e-5;
            let up = log_probability(&moved, &prefix).unwrap();
            moved[at] -= 2e-5;
            let difference = (up - log_probability(&moved, &prefix).unwrap()) / 2e-5;
            prop_assert!((gradient[at] - difference).abs() < 1e-8);
        }
    }
}

#[test]
fn scores_far_apart_stay_finite() {
    let scores = [0.0, 1e5, -1e5];
    assert_eq!(log_probability(&scores, &[2, 0, 1]).unwrap(), -2e5 - 1e5);
    let mut p = [0.0; 3];
    assert_eq!(softmax(&scores, &mut p), 1e5);
    assert_eq!(p, [0.0, 1.0, 0.0]);
}

#[test]
fn what_is_no_prefix_is_a_typed_error() {
    let refused = Err(Error::NotAPrefix { documents: 2 });
    for prefix in [&[][..], &[0, 0], &[2], &[0, 1, 0]] {
        assert_eq!(log_probability(&[0.0, 1.0], prefix), refused);
    }
    assert_eq!(log_probability(&[0.0, f64::NAN], &[0]), Err(Error::NanScore { document: 1 }));
}
