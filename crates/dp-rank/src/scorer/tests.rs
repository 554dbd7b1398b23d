use proptest::prelude::*;

use super::*;
use crate::random::Public;

fn vector(random: &mut Public, length: usize) -> Vec<f64> {
    (0..length).map(|_| random.normal()).collect()
}

/// Returns `Σ g_i f(x_i, θ)`, whose gradient in `θ` is added by `add_gradient`.
fn weighted_scores<S: Scorer>(scorer: &S, parameters: &[f64], list: Features<'_>, g: &[f64]) -> f64 {
    let mut scores = vec![0.0; list.documents()];
    scorer.scores(parameters, list, &mut S::Workspace::default(), &mut scores);
    scores.iter().zip(g).map(|(s, g)| s * g).sum()
}

fn gradients_and_grams<S: Scorer>(scorer: &S, parameters: &[f64], list: Features<'_>, g: &[f64]) {
    let n = list.documents();
    let mut workspace = S::Workspace::default();
    let mut scores = vec![0.0; n];
    scorer.scores(parameters, list, &mut workspace, &mut scores);

    // The gradient is added to the buffer's contents.
    let mut sum = vec![1.0; scorer.parameters()];
    scorer.add_gradient(parameters, list, g, &mut workspace, &mut sum);
    let step = 1e-5;
    for at in 0..scorer.parameters() {
        let mut moved = parameters.to_vec();
        moved[at] += step;
        let up = weighted_scores(scorer, &moved, list, g);
        moved[at] -= 2.0 * step;
        let difference = (up - weighted_scores(scorer, &moved, list, g)) / (2.0 * step);
        assert!((sum[at] - 1.0 - difference).abs() <= 1e-5 * (1.0 + difference.abs()), "{at}: {sum:?} {difference}");
    }

    let mut gram = vec![f64::NAN; n * n];
    scorer.gram(parameters, list, &mut workspace, &mut gram);
    let rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let unit: Vec<f64> = (0..n).map(|j| f64::from(u8::from(i == j))).collect();
            let mut row = vec![0.0; scorer.parameters()];
            scorer.add_gradient(parameters, list, &unit, &mut workspace, &mut row);
            row
        })
        .collect();
    for i in 0..n {
        for j in 0..n {
            let expected: f64 = rows[i].iter().zip(&rows[j]).map(|(a, b)| a * b).sum();
            assert!((gram[i * n + j] - expected).abs() <= 1e-12 * (1.0 + expected.abs()) * scorer.parameters() as f64);
        }
    }
    let blocks = scorer.blocks();
    assert_eq!(blocks.last().unwrap().range.end, scorer.parameters());
    assert!(blocks.iter().all(|block| block.range.len() == block.rows * block.columns));
    assert!(blocks.windows(2).all(|pair| pair[0].range.end == pair[1].range.start));
}

/// A list's results are a function of this list and the parameters alone, whatever the workspace was used for before. All
/// sensitivities depend on this.
fn forgets<S: Scorer>(scorer: &S) {
    let mut random = Public::new(3);
    let parameters = vector(&mut random, scorer.parameters());
    let spoilt = vec![f64::NAN; scorer.parameters()];
    let mut used = S::Workspace::default();
    for documents in [7, 1, 4, 9] {
        let values = vector(&mut random, documents * scorer.features());
        let (list, g) = (Features::new(&values, scorer.features()).unwrap(), vector(&mut random, documents));
        let all = |parameters: &[f64], workspace: &mut S::Workspace| {
            let (mut scores, mut sum) = (vec![0.0; documents], vec![0.0; scorer.parameters()]);
            let mut gram = vec![0.0; documents * documents];
            scorer.scores(parameters, list, workspace, &mut scores);
            scorer.add_gradient(parameters, list, &g, workspace, &mut sum);
            scorer.gram(parameters, list, workspace, &mut gram);
            [scores, sum, gram]
        };
        all(&spoilt, &mut used);
        assert_eq!(all(&parameters, &mut used), all(&parameters, &mut S::Workspace::default()), "{documents}");
    }
}

#[test]
fn a_workspace_keeps_nothing_of_the_list_before() {
    forgets(&Linear::new(5).unwrap());
    forgets(&Mlp::new(5, 3, Activation::Relu).unwrap());
    forgets(&Mlp::new(5, 16, Activation::Tanh).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gradients_are_differences_and_grams_are_products(
        n in 1_usize..12, width in 1_usize..20, hidden in 1_usize..20, seed: u64,
    ) {
        let mut random = Public::new(seed);
        let values = vector(&mut random, n * width);
        let list = Features::new(&values, width).unwrap();
        let g = vector(&mut random, n);
        gradients_and_grams(&Linear::new(width).unwrap(), &vector(&mut random, width), list, &g);
        let smooth = Mlp::new(width, hidden, Activation::Tanh).unwrap().with_output_bias(0.3);
        gradients_and_grams(&smooth, &smooth.initial(seed), list, &g);
        // Skips the rare inputs within a step of a kink.
        let kinked = Mlp::new(width, hidden, Activation::Relu).unwrap();
        let parameters = kinked.initial(seed);
        let near_kink = list.rows().any(|row| (0..hidden).any(|unit| {
            let w: f64 = row.iter().zip(&parameters[unit * width..]).map(|(x, w)| x * w).sum();
            (w + parameters[hidden * width + unit]).abs() < 1e-3
        }));
        if !near_kink {
            gradients_and_grams(&kinked, &parameters, list, &g);
        }
    }

    #[test]
    fn workspaces_keep_nothing_between_lists(seed: u64) {
        let mut random = Public::new(seed);
        let scorer = Mlp::new(3, 5, Activation::Tanh).unwrap();
        let parameters = scorer.initial(seed);
        let mut used = MlpWorkspace::default();
        for n in [7, 2, 9] {
            let values = vector(&mut random, n * 3);
            let list = Features::new(&values, 3).unwrap();
            let (mut with_used, mut with_fresh) = (vec![0.0; n], vec![0.0; n]);
            let mut fresh = MlpWorkspace::default();
            scorer.scores(&parameters, list, &mut used, &mut with_used);
            scorer.scores(&parameters, list, &mut fresh, &mut with_fresh);
            prop_assert_eq!(&with_used, &with_fresh);
            let (mut gram_used, mut gram_fresh) = (vec![0.0; n * n], vec![0.0; n * n]);
            scorer.gram(&parameters, list, &mut used, &mut gram_used);
            scorer.gram(&parameters, list, &mut fresh, &mut gram_fresh);
            prop_assert_eq!(gram_used, gram_fresh);
            let (mut sum_used, mut sum_fresh) = (vec![0.0; scorer.parameters()], vec![0.0; scorer.parameters()]);
            scorer.add_gradient(&parameters, list, &with_used, &mut used, &mut sum_used);
            scorer.add_gradient(&parameters, list, &with_used, &mut fresh, &mut sum_fresh);
            prop_assert_eq!(sum_used, sum_fresh);
        }
    }
}

#[test]
fn seeds_repeat_and_differ_and_the_scale_is_as_documented() {
    let scorer = Mlp::new(46, 256, Activation::Relu).unwrap();
    assert_eq!(scorer.initial(7), scorer.initial(7));
    assert_ne!(scorer.initial(7), scorer.initial(8));
    let initial = scorer.initial(7);
    let (first, second) = initial.split_at(256 * 47);
    let variance = |part: &[f64]| part.iter().map(|x| x * x).sum::<f64>() / part.len() as f64;
    assert!((variance(first) * 47.0 / 2.0 - 1.0).abs() < 0.06);
    assert!((variance(second) * 256.0 - 1.0).abs() < 0.4);
    let flat = Mlp::new(46, 256, Activation::Tanh).unwrap().initial(7);
    assert!((variance(&flat[..256 * 47]) * 47.0 - 1.0).abs() < 0.06);
}

#[test]
fn empty_shapes_are_typed_errors() {
    assert!(Linear::new(0).is_err() && Mlp::new(0, 3, Activation::Relu).is_err());
    assert!(Mlp::new(3, 0, Activation::Relu).unwrap_err().to_string().contains("hidden units"));
}

/// Number of terms of products of gradients in all parameters: one for each feature; for a network two for each hidden unit (its
/// weight, and its part of the inputs' product), one for each feature and one for each of the two offsets.
#[test]
fn products_say_how_many_terms_they_are_summed_from() {
    assert_eq!(Linear::new(7).unwrap().gram_terms(), 7);
    assert_eq!(Mlp::new(7, 5, Activation::Tanh).unwrap().gram_terms(), 5 + 5 + 7 + 1 + 1);
}
