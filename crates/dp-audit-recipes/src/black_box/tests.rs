use dp_losses::LossKind;

use super::*;
use dp_optim::recipes::BoltOn;
use dp_optim::tuning::Portions;

fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-3).unwrap()
}

fn candidates() -> Vec<AnyRecipe> {
    [0.05, 0.5].map(|lambda| BoltOn::strongly_convex(LossKind::Logistic, lambda).into()).to_vec()
}

fn family(recipe: &AnyRecipe, relation: AdjacencyKind, epsilon: f64) -> Family {
    let pairs = Arc::new(Pairs::new(relation, 2).unwrap());
    let targets = (FEWEST_RECORDS..=MOST_RECORDS)
        .filter_map(|n| Target::new(recipe, relation, budget(epsilon), n, 2).ok())
        .collect();
    Family::new("family", targets, pairs).unwrap()
}

#[test]
fn a_pair_of_another_relation_or_size_is_refused() {
    let recipe = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.1));
    let target = Target::new(&recipe, AdjacencyKind::ReplaceOne, budget(1.0), 2, 2).unwrap();
    let of = |relation, classes| Pairs::new(relation, classes).unwrap();
    let (replaced, null, three) =
        (of(AdjacencyKind::ReplaceOne, 2), of(AdjacencyKind::ZeroOut, 2), of(AdjacencyKind::ReplaceOne, 3));
    let of_size = |pairs: &Pairs, n| *pairs.all().iter().find(|pair| pair.n() == n).unwrap();
    assert!(target.subject("x", &of_size(&replaced, 2)).is_ok());
    assert!(matches!(target.subject("x", &of_size(&null, 2)), Err(Error::Adjacency { .. })));
    assert!(matches!(target.subject("x", &of_size(&replaced, 3)), Err(Error::Shape { name: "n", .. })));
    assert!(matches!(target.subject("x", &of_size(&three, 2)), Err(Error::Shape { name: "classes", .. })));
    assert!(matches!(
        Family::new("x", vec![target], Arc::new(null)),
        Err(Error::Adjacency { adjacency: AdjacencyKind::ReplaceOne, .. })
    ));
    assert!(matches!(Family::new("x", Vec::new(), Arc::new(replaced)), Err(Error::Count { .. })));
    assert!(Target::new(&recipe, AdjacencyKind::ChangeListLabels, budget(1.0), 2, 2).is_err());
}

#[test]
fn a_family_has_the_pairs_of_the_sizes_that_were_planned() {
    let recipe = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.1));
    let pairs = Arc::new(Pairs::new(AdjacencyKind::ReplaceOne, 2).unwrap());
    let targets = [3, 7].map(|n| Target::new(&recipe, AdjacencyKind::ReplaceOne, budget(1.0), n, 2).unwrap()).to_vec();
    let family = Family::new("some", targets, pairs.clone()).unwrap();
    assert_eq!(family.pairs(), pairs.all().iter().filter(|pair| [3, 7].contains(&pair.n())).count());
    assert_eq!(family.leading(), 2);
    let last = family.subject(family.pairs() - 1).unwrap();
    assert_eq!(last.name(), format!("some/pair={}", family.pairs()));
    assert!(last.pair().starts_with("record 7 of 7"), "{}", last.pair());
    assert!(family.subject(family.pairs()).is_err());
}

/// A choice releases the candidate and its weights, at its own position.
#[test]
fn a_choice_shows_which_candidate_was_chosen() {
    let recipe = AnyRecipe::from(Portions::new(candidates()));
    let family = family(&recipe, AdjacencyKind::ReplaceOne, 4.0);
    let subject = family.subject(0).unwrap();
    let mut chosen = [false; 2];
    for seed in 0..40 {
        let mut features = Vec::new();
        subject.observe(Side::Base, &mut SeededRng::new(seed), &mut features).unwrap();
        assert_eq!((features.len(), features[0] + features[3]), (6, 1.0));
        let other = if features[0] == 1.0 { &features[4..] } else { &features[1..3] };
        assert_eq!(other, [0.0, 0.0]);
        chosen[usize::from(features[3] == 1.0)] = true;
    }
    assert_eq!(chosen, [true; 2]);
}

/// A plan of any recipe is observed as a plan of the catalogue is.
#[test]
fn a_plan_of_any_recipe_releases_the_same() {
    let recipe = BoltOn::strongly_convex(LossKind::Logistic, 0.1);
    let pair = Pairs::new(AdjacencyKind::ZeroOut, 2).unwrap().all()[0];
    let plan = recipe.plan::<ZeroOut>(pair.n(), DIM, budget(1.0)).unwrap();
    let planned = Target::planned(plan, pair.n(), 2, 40.0);
    let known = Target::new(&recipe.into(), AdjacencyKind::ZeroOut, budget(1.0), pair.n(), 2).unwrap();
    assert_eq!((planned.cost, planned.relation), (known.cost, known.relation));
    let observe = |target: &Target, side| {
        let mut features = Vec::new();
        target.subject("x", &pair).unwrap().observe(side, &mut SeededRng::new(7), &mut features).unwrap();
        features
    };
    for side in [Side::Base, Side::Neighbour] {
        assert_eq!(observe(&planned, side), observe(&known, side));
    }
    assert_ne!(observe(&planned, Side::Base), observe(&planned, Side::Neighbour));
}
