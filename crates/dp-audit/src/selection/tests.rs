use super::*;

fn scored(scores: impl IntoIterator<Item = f64>) -> Vec<Scored> {
    scores.into_iter().map(|score| Scored { score, tie: 0.0 }).collect()
}

fn uniform(count: usize, low: f64, high: f64) -> Vec<Scored> {
    scored((0..count).map(|i| low + (high - low) * i as f64 / count as f64))
}

#[test]
fn the_cut_lies_where_one_side_begins() {
    let scores = Scores::new(uniform(10_000, 0.0, 1.0), uniform(10_000, 0.5, 1.5));
    let (_, rule) = scores.choose(Goal::Epsilon { accused: Side::Neighbour, delta: 0.0 }, 7.0);
    assert!(rule.accused == Side::Neighbour && rule.above && (rule.cut.score - 1.0).abs() < 0.02, "{rule:?}");
    let (_, rule) = scores.choose(Goal::Epsilon { accused: Side::Base, delta: 0.0 }, 7.0);
    assert!(rule.accused == Side::Base && !rule.above && (rule.cut.score - 0.5).abs() < 0.02, "{rule:?}");
}

#[test]
fn a_score_of_the_wrong_sign_is_used_all_the_same() {
    let scores = Scores::new(uniform(10_000, 0.5, 1.5), uniform(10_000, 0.0, 1.0));
    let (_, rule) = scores.choose(Goal::Epsilon { accused: Side::Neighbour, delta: 0.0 }, 7.0);
    assert!(!rule.above && (rule.cut.score - 0.5).abs() < 0.02, "{rule:?}");
}

#[test]
fn one_lucky_hit_is_no_temptation() {
    // A single neighbour above all others would have an infinite ratio; the broad excess below it is more reliable.
    let base = scored((0..1000).map(|i| f64::from(i % 10)));
    let mut neighbour: Vec<f64> = (0..1000).map(|i| f64::from((i % 10).max(4))).collect();
    neighbour[0] = 100.0;
    let scores = Scores::new(base, scored(neighbour));
    let (_, rule) = scores.choose(Goal::Epsilon { accused: Side::Base, delta: 0.0 }, 7.0);
    assert_eq!((rule.cut.score, rule.above), (4.0, false));
    let (_, rule) = scores.choose(Goal::Epsilon { accused: Side::Neighbour, delta: 0.0 }, 7.0);
    assert!(rule.cut.score <= 5.0, "{rule:?}");
}

#[test]
fn separation_accuses_whoever_is_easier_told_apart() {
    let scores = Scores::new(uniform(10_000, 0.0, 1.0), uniform(10_000, 0.8, 1.8));
    let (_, rule) = scores.choose(Goal::Separation(None), 7.0);
    assert!((0.79..1.01).contains(&rule.cut.score), "{rule:?}");
}

#[test]
fn every_cut_of_few_values_is_tried_and_ends_of_many() {
    let scores = Scores::new(scored([0.0, 0.0, 1.0]), scored([1.0, 2.0, f64::INFINITY]));
    let cuts: Vec<f64> = scores.cuts().into_iter().map(|cut| cut.score).collect();
    assert_eq!(cuts, [0.0, 1.0, 2.0, f64::INFINITY]);
    let many = Scores::new(uniform(100_000, 0.0, 1.0), uniform(100_000, 0.0, 1.0));
    let cuts = many.cuts();
    assert!(cuts.len() < 600, "{}", cuts.len());
    assert!(cuts[0].score == 0.0 && cuts.last().unwrap().score > 0.99998);
    assert_eq!(Scores::new(Vec::new(), Vec::new()).cuts(), []);
}

#[test]
fn what_a_delta_forgives_is_not_chosen() {
    // The largest value occurs on one side only, but less often than delta.
    let side = |counts: [usize; 3]| scored((0..3).flat_map(|value| vec![value as f64; counts[value]]));
    let scores = Scores::new(side([7000, 3000, 0]), side([3800, 6000, 200]));
    let chosen = |delta| scores.choose(Goal::Epsilon { accused: Side::Neighbour, delta }, 7.0).1;
    assert_eq!((chosen(0.0).cut.score, chosen(0.0).above), (2.0, true));
    assert_eq!((chosen(0.05).cut.score, chosen(0.05).above), (1.0, true));
}
