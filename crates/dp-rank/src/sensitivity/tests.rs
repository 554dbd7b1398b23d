use proptest::prelude::*;

use super::*;
use crate::lists::Features;
use crate::loss::{BayesRank, ListNet, LossBuffers, RankingLoss};
use crate::metrics::Cutoff;
use crate::random::Public;
use crate::scorer::{Activation, Linear, Mlp, Scorer};

/// Scores, score gradients (rows) and their products.
struct List {
    scores: Vec<f64>,
    vectors: Vec<Vec<f64>>,
    gram: Vec<f64>,
}

impl List {
    fn random(n: usize, width: usize, spread: f64, seed: u64) -> Self {
        let mut random = Public::new(seed);
        let offset = 3.0 * random.normal();
        let vectors: Vec<Vec<f64>> = (0..n).map(|_| (0..width).map(|_| random.normal() + offset).collect()).collect();
        let scores = (0..n).map(|_| spread * random.normal()).collect();
        Self::new(scores, vectors)
    }

    fn new(scores: Vec<f64>, vectors: Vec<Vec<f64>>) -> Self {
        let gram = vectors
            .iter()
            .flat_map(|a| vectors.iter().map(|b| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()))
            .collect();
        Self { scores, vectors, gram }
    }

    fn gram(&self) -> Gram<'_> {
        Gram::new(&self.gram, self.scores.len(), self.vectors[0].len()).unwrap()
    }

    fn contributions(&self, k: usize) -> Contributions {
        Contributions::new(bayes_rank(k), &self.scores, &self.gram()).unwrap()
    }

    fn gradient(&self, loss: &dyn RankingLoss, grades: &[u32]) -> Vec<f64> {
        let mut g = vec![0.0; grades.len()];
        loss.evaluate(&self.scores, grades, &mut LossBuffers::default(), &mut g);
        combine(&self.vectors, &g)
    }

    /// Returns the gradients of all grades from 0 to `largest`.
    fn image(&self, loss: &dyn RankingLoss, largest: u32) -> Vec<Vec<f64>> {
        all_grades(self.scores.len(), largest).iter().map(|grades| self.gradient(loss, grades)).collect()
    }
}

fn bayes_rank(k: usize) -> BayesRank {
    BayesRank::new(Cutoff::new(k).unwrap())
}

fn combine(vectors: &[Vec<f64>], coefficients: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; vectors[0].len()];
    for (vector, c) in vectors.iter().zip(coefficients) {
        sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += c * x);
    }
    sum
}

fn all_grades(n: usize, largest: u32) -> Vec<Vec<u32>> {
    let base = largest as usize + 1;
    (0..base.pow(n as u32)).map(|code| (0..n).map(|i| (code / base.pow(i as u32) % base) as u32).collect()).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

fn diameter_of(image: &[Vec<f64>]) -> f64 {
    image.iter().flat_map(|a| image.iter().map(|b| distance(a, b))).fold(0.0, f64::max)
}

fn radius_of(image: &[Vec<f64>], centre: &[f64]) -> f64 {
    image.iter().map(|a| distance(a, centre)).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The certified bounds are compared without tolerance.
    #[test]
    fn no_grades_leave_the_bounds(n in 1_usize..6, width in 1_usize..6, spread in 0.0..6.0_f64, seed: u64) {
        let list = List::random(n, width, spread, seed);
        for k in 1..=3 {
            let loss = bayes_rank(k);
            let image = list.image(&loss, 2);
            let (diameter, radius) = (diameter_of(&image), radius_of(&image, &vec![0.0; width]));
            let contributions = list.contributions(k);
            let bounds = contributions.bounds();
            prop_assert!(diameter <= bounds.diameter, "k={k}: {diameter} {bounds:?}");
            prop_assert!(radius <= bounds.radius, "k={k}: {radius} {bounds:?}");
            let all = [contributions.exact().unwrap(), contributions.weighted(), contributions.covariance(),
                contributions.triangle(), triangle_over_prefixes(Cutoff::new(k).unwrap(), &list.scores, &list.gram()).unwrap().unwrap()];
            for bound in all {
                prop_assert!(diameter <= bound, "k={k}: {diameter} {all:?}");
            }
            // For one position, grades of 0 and 1 attain the bound.
            if k == 1 {
                let binary = diameter_of(&list.image(&loss, 1));
                prop_assert!(bounds.diameter <= binary * (1.0 + 1e-9) + 1e-9, "{binary} {bounds:?}");
                prop_assert!(bounds.radius <= radius * (1.0 + 1e-9) + 1e-9);
            }
        }
    }

    /// Gradients depend on differences of score gradients alone. If a large common part makes the rounding of the products larger
    /// than the differences, the bounds still hold for the differences.
    #[test]
    fn what_cancels_is_allowed_for(n in 2_usize..6, width in 1_usize..6, spread in 0.0..3.0_f64, seed: u64) {
        let mut random = Public::new(seed);
        let common: Vec<f64> = (0..width).map(|_| (1 << 20) as f64 + random.below(1 << 20) as f64).collect();
        // Few digits, so that adding the common part is exact.
        let own: Vec<Vec<f64>> = (0..n)
            .map(|_| (0..width).map(|_| (random.below(256) as f64 - 128.0) * 2f64.powi(-14)).collect())
            .collect();
        let shifted = own.iter().map(|row| row.iter().zip(&common).map(|(x, c)| x + c).collect()).collect();
        let scores: Vec<f64> = (0..n).map(|_| spread * random.normal()).collect();
        let (own, shifted) = (List::new(scores.clone(), own), List::new(scores, shifted));
        let almost = 1.0 - 1e-9;
        for k in 1..=2 {
            let loss = bayes_rank(k);
            let image = own.image(&loss, 1);
            let (diameter, radius) = (diameter_of(&image), radius_of(&image, &vec![0.0; width]));
            let found = shifted.contributions(k);
            let all = [found.exact().unwrap(), found.weighted(), found.covariance(), found.triangle()];
            prop_assert!(all.iter().all(|bound| *bound >= diameter * almost), "k={}: {} {:?}", k, diameter, all);
            let prefixes = triangle_over_prefixes(Cutoff::new(k).unwrap(), &shifted.scores, &shifted.gram());
            prop_assert!(prefixes.unwrap().unwrap() >= diameter * almost, "k={}: {}", k, diameter);
            prop_assert!(found.bounds().radius >= radius * almost, "k={}: {} {:?}", k, radius, found.bounds());
            let one = |i: usize| own.gradient(&loss, &(0..n).map(|j| u32::from(i == j)).collect::<Vec<_>>());
            let thinned: Vec<Vec<f64>> = (0..n).map(one).chain([vec![0.0; width]]).collect();
            let (diameter, radius) = (diameter_of(&thinned), radius_of(&thinned, &vec![0.0; width]));
            prop_assert!(found.thinned_exact() >= diameter * almost, "k={}: {} {}", k, diameter, found.thinned_exact());
            prop_assert!(found.thinned_triangle() >= diameter * almost && found.thinned_radius() >= radius * almost);
        }
        let image = own.image(&ListNet::TOP_1, 2);
        let equal = own.gradient(&ListNet::TOP_1, &vec![0; n]);
        let bounds = list_net(&shifted.gram(), 2);
        let farthest = own.vectors.iter().flat_map(|a| own.vectors.iter().map(|b| distance(a, b))).fold(0.0, f64::max);
        prop_assert!(half_diameter(&shifted.gram()) >= 0.5 * farthest * almost);
        prop_assert!(bounds.diameter >= diameter_of(&image) * almost && bounds.radius >= radius_of(&image, &equal) * almost);
    }

    #[test]
    fn the_bounds_are_ordered(n in 2_usize..15, width in 1_usize..30, spread in 0.0..8.0_f64, seed: u64) {
        let list = List::random(n, width, spread, seed);
        let one = list.contributions(1);
        let slack = 1.0 + 1e-7;
        let (exact, weighted, covariance) = (one.exact().unwrap(), one.weighted(), one.covariance());
        prop_assert!(exact <= weighted * slack && weighted <= one.triangle() * slack);
        prop_assert!(exact <= covariance * slack && covariance <= half_diameter(&list.gram()) * slack);
        prop_assert!(one.thinned_exact() <= one.thinned_triangle() * slack);
        prop_assert!(one.thinned_exact() <= exact * slack && one.thinned_radius() <= one.thinned_exact() * slack);
        prop_assert!(one.bounds().diameter <= weighted.min(covariance) * slack);
        for k in 2..4 {
            let more = list.contributions(k);
            let exact = more.exact().unwrap();
            prop_assert!(exact <= more.weighted() * slack && more.weighted() <= more.triangle() * slack);
            prop_assert!(exact <= more.covariance() * slack);
        }
    }

    #[test]
    fn the_best_signs_are_found(n in 1_usize..12, width in 1_usize..8, seed: u64) {
        let list = List::random(n, width, 1.0, seed);
        let mut p = vec![0.0; n];
        crate::plackett_luce::softmax(&list.scores, &mut p);
        let mean = combine(&list.vectors, &p);
        let v: Vec<Vec<f64>> = (0..n)
            .map(|i| list.vectors[i].iter().zip(&mean).map(|(x, m)| p[i] * (x - m)).collect())
            .collect();
        let brute = (0..1_usize << n)
            .map(|code| {
                let signs: Vec<f64> = (0..n).map(|i| if code >> i & 1 == 1 { 1.0 } else { -1.0 }).collect();
                combine(&v, &signs).iter().map(|x| x * x).sum::<f64>().sqrt()
            })
            .fold(0.0, f64::max);
        let exact = list.contributions(1).exact().unwrap();
        prop_assert!(brute <= exact && exact <= brute * (1.0 + 1e-9) + 1e-9, "{brute} {exact}");
    }

    #[test]
    fn thinned_grades_stay_within_their_bounds(n in 1_usize..12, width in 1_usize..6, spread in 0.0..6.0_f64, seed: u64) {
        let list = List::random(n, width, spread, seed);
        for k in 1..=2 {
            let loss = bayes_rank(k);
            let mut image = vec![vec![0.0; width]];
            for one in 0..n {
                let grades: Vec<u32> = (0..n).map(|i| u32::from(i == one)).collect();
                image.push(list.gradient(&loss, &grades));
            }
            let (diameter, radius) = (diameter_of(&image), radius_of(&image, &vec![0.0; width]));
            let contributions = list.contributions(k);
            let bounds = contributions.thinned_bounds();
            prop_assert!(diameter <= bounds.diameter && bounds.diameter <= diameter * (1.0 + 1e-8) + 1e-8);
            prop_assert!(radius <= bounds.radius && bounds.radius <= radius * (1.0 + 1e-8) + 1e-8);
            prop_assert!(bounds.diameter <= contributions.thinned_triangle() * (1.0 + 1e-7));
        }
    }

    #[test]
    fn list_net_stays_within_its_bounds(n in 1_usize..6, width in 1_usize..6, spread in 0.0..6.0_f64, largest in 1_u32..4, seed: u64) {
        let list = List::random(n, width, spread, seed);
        let image = list.image(&ListNet::TOP_1, largest);
        let equal = list.gradient(&ListNet::TOP_1, &vec![0; n]);
        let bounds = list_net(&list.gram(), largest);
        prop_assert!(diameter_of(&image) <= bounds.diameter);
        prop_assert!(radius_of(&image, &equal) <= bounds.radius);
    }

    #[test]
    fn random_grades_of_long_lists_stay_within_the_bounds(n in 11_usize..60, spread in 0.0..4.0_f64, seed: u64) {
        let list = List::random(n, 20, spread, seed);
        let mut random = Public::new(!seed);
        for k in [1, 2, 5] {
            let bounds = list.contributions(k).bounds();
            let mut last = vec![0.0; 20];
            for _ in 0..10 {
                let relevant = random.uniform();
                let grades: Vec<u32> =
                    (0..n).map(|_| if random.uniform() < relevant { 1 + random.below(2) as u32 } else { 0 }).collect();
                let gradient = list.gradient(&bayes_rank(k), &grades);
                prop_assert!(distance(&gradient, &last) <= bounds.diameter);
                prop_assert!(distance(&gradient, &[0.0; 20]) <= bounds.radius);
                last = gradient;
            }
        }
    }

    #[test]
    fn scorers_gradients_stay_within_the_bounds(seed: u64, tanh: bool) {
        let mut random = Public::new(seed);
        let n = 4;
        let values: Vec<f64> = (0..n * 5).map(|_| random.uniform()).collect();
        let list = Features::new(&values, 5).unwrap();
        let mlp = Mlp::new(5, 7, if tanh { Activation::Tanh } else { Activation::Relu }).unwrap();
        let linear = Linear::new(5).unwrap();
        let theta: Vec<f64> = (0..5).map(|_| 2.0 * random.normal()).collect();
        stays_within(&mlp, &mlp.initial(seed), list);
        stays_within(&linear, &theta, list);
    }
}

fn stays_within<S: Scorer>(scorer: &S, parameters: &[f64], list: Features<'_>) {
    let n = list.documents();
    let mut workspace = S::Workspace::default();
    let mut scores = vec![0.0; n];
    scorer.scores(parameters, list, &mut workspace, &mut scores);
    let mut values = Vec::new();
    let gram = Gram::of(scorer, parameters, list, &mut workspace, &mut values);
    for k in 1..=2 {
        let loss = bayes_rank(k);
        let bounds = Contributions::new(loss, &scores, &gram).unwrap().bounds();
        let image: Vec<Vec<f64>> = all_grades(n, 2)
            .iter()
            .map(|grades| {
                let (mut g, mut gradient) = (vec![0.0; n], vec![0.0; scorer.parameters()]);
                loss.evaluate(&scores, grades, &mut LossBuffers::default(), &mut g);
                scorer.add_gradient(parameters, list, &g, &mut workspace, &mut gradient);
                gradient
            })
            .collect();
        assert!(diameter_of(&image) <= bounds.diameter);
        assert!(radius_of(&image, &vec![0.0; scorer.parameters()]) <= bounds.radius);
    }
}

#[test]
fn orthogonal_gradients_gain_the_root_of_the_length() {
    let n = 16;
    let vectors: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let one = List::new(vec![0.0; n], vectors).contributions(1);
    let gain = one.triangle() / one.weighted();
    assert!((gain - (15.0_f64).sqrt()).abs() < 1e-6, "{gain}");
}

#[test]
fn collinear_gradients_leave_nothing_to_gain() {
    let list = List::random(9, 1, 1.0, 5);
    let one = list.contributions(1);
    assert!((one.exact().unwrap() - one.triangle()).abs() < 1e-9 * one.triangle());
}

#[test]
fn a_single_document_moves_nothing_and_equal_ones_hardly() {
    let single = List::random(1, 3, 1.0, 1);
    assert_eq!(single.contributions(1).bounds(), ImageBounds { diameter: 0.0, radius: 0.0 });
    assert_eq!(list_net(&single.gram(), 2), ImageBounds { diameter: 0.0, radius: 0.0 });
    let equal = List::new(vec![0.0, 1.0, 2.0], vec![vec![1.0, 2.0]; 3]);
    assert!(equal.contributions(1).bounds().diameter < 1e-6);
    // Saturated scores: the probability of some documents underflows to 0.
    let saturated = List::new(vec![0.0, -1e4, -2e4], vec![vec![1.0], vec![2.0], vec![4.0]]);
    for k in 1..3 {
        let bounds = saturated.contributions(k);
        assert!(bounds.weighted().is_finite() && bounds.covariance().is_finite());
        assert!(bounds.bounds().diameter < 1e-5, "{bounds:?}");
    }
}

#[test]
fn what_is_not_finite_is_bounded_by_infinity() {
    for broken in [f64::NAN, f64::INFINITY, 1e308] {
        let gram = [broken, 0.0, 0.0, 1.0];
        let gram = Gram::new(&gram, 2, 1).unwrap();
        let bounds = Contributions::new(BayesRank::TOP_1, &[0.0, 0.0], &gram).unwrap();
        if broken == 1e308 {
            assert!(bounds.bounds().diameter >= 0.5e154);
            continue;
        }
        for bound in [
            bounds.bounds().diameter,
            bounds.bounds().radius,
            bounds.weighted(),
            bounds.triangle(),
            bounds.thinned_exact(),
            half_diameter(&gram),
            list_net(&gram, 2).diameter,
        ] {
            assert_eq!(bound, f64::INFINITY);
        }
    }
    assert!(Contributions::new(BayesRank::TOP_1, &[0.0, f64::NAN], &Gram::new(&[1.0; 4], 2, 1).unwrap()).is_err());
    assert!(Contributions::new(BayesRank::TOP_1, &[0.0], &Gram::new(&[1.0; 4], 2, 1).unwrap()).is_err());
    assert!(Gram::new(&[1.0; 3], 2, 1).is_err() && Gram::new(&[], 0, 1).is_err());
}
