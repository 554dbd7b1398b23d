use proptest::prelude::*;

use super::*;

#[test]
fn what_is_refused_is_not_added() {
    let mut lists = QueryLists::new(2, 2).unwrap();
    lists.push("a", &[1.0, 2.0], &[2]).unwrap();
    let before = lists.clone();
    assert_eq!(lists.push("b", &[], &[]), Err(Error::EmptyList));
    let shape = Error::Shape { what: "a list's features", found: 3, expected: 4 };
    assert_eq!(lists.push("b", &[1.0, 2.0, 3.0], &[0, 1]), Err(shape));
    let infinite = Error::FeatureNotFinite { document: 1, feature: 1 };
    assert_eq!(lists.push("b", &[1.0, 2.0, 3.0, f64::INFINITY], &[0, 1]), Err(infinite));
    let grade = Error::GradeTooLarge { document: 1, label: 3, limit: 2 };
    assert_eq!(lists.push("b", &[1.0, 2.0, 3.0, 4.0], &[0, 3]), Err(grade));
    assert_eq!(lists.push("a", &[1.0, 2.0], &[0]), Err(Error::DuplicateQuery { id: "a".into() }));
    assert_eq!(lists, before);
    lists.push("b", &[3.0, 4.0], &[0]).unwrap();
    assert_eq!(lists.iter().map(|list| list.id()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(lists.longest(), 1);
}

#[test]
fn settings_are_checked() {
    assert!(QueryLists::new(0, 2).is_err() && QueryLists::new(2, 0).is_err() && QueryLists::new(2, 53).is_err());
    assert_eq!(QueryLists::new(2, 2).unwrap().longest(), 0);
}

#[test]
fn nothing_printed_shows_a_grade() {
    let mut lists = QueryLists::new(1, 52).unwrap();
    lists.push("a", &[1.0, 2.0], &[17, 23]).unwrap();
    let shown = format!("{lists:?} {:?}", lists.list(0));
    assert!(!shown.contains("17") && !shown.contains("23"), "{shown}");
    assert!(shown.contains("documents: 2"));
}

#[test]
fn parts_join_when_their_shapes_agree() {
    let mut lists = QueryLists::new(1, 2).unwrap();
    let mut other = QueryLists::new(1, 2).unwrap();
    other.push("a", &[1.0, 2.0], &[0, 1]).unwrap();
    lists.extend(&other).unwrap();
    assert_eq!(lists.list(0).grades(), [0, 1]);
    assert_eq!(lists.extend(&other), Err(Error::DuplicateQuery { id: "a".into() }));
    assert!(lists.extend(&QueryLists::new(2, 2).unwrap()).is_err());
}

#[test]
fn a_list_is_shuffled_by_its_query_whatever_the_others_are() {
    let list = |lists: &mut QueryLists, id: &str, documents: u32| {
        let features: Vec<f64> = (0..documents).map(f64::from).collect();
        lists.push(id, &features, &(0..documents).map(|document| document % 3).collect::<Vec<_>>()).unwrap();
    };
    let shuffled = |ids: &[(&str, u32)], seed| {
        let mut lists = QueryLists::new(1, 2).unwrap();
        ids.iter().for_each(|(id, documents)| list(&mut lists, id, *documents));
        lists.shuffle_documents(seed);
        lists
    };
    let both = shuffled(&[("a", 30), ("b", 30)], 1);
    let values = |lists: &QueryLists, at: usize| lists.list(at).features().values().to_vec();
    // The presence, the length and the position of another list do not change a list's order.
    assert_eq!(values(&both, 1), values(&shuffled(&[("b", 30)], 1), 0));
    assert_eq!(values(&both, 0), values(&shuffled(&[("b", 9), ("a", 30)], 1), 1));
    // Orders depend on the query and the seed.
    assert_ne!(values(&both, 0), values(&both, 1));
    assert_ne!(values(&both, 0), values(&shuffled(&[("a", 30)], 2), 0));
    // Each document keeps its features and its grade, and none is lost.
    for list in both.iter() {
        let mut seen: Vec<u32> = list.features().values().iter().map(|value| *value as u32).collect();
        assert!(seen.iter().zip(list.grades()).all(|(document, grade)| document % 3 == *grade));
        seen.sort_unstable();
        assert_eq!(seen, (0..30).collect::<Vec<_>>());
    }
}

#[test]
fn all_orders_of_a_list_come_up() {
    // Six orders over 6,000 seeds: each has expected count 1,000 and standard deviation 29. The probability that one deviates by
    // five standard deviations is about 1 in 300,000, and the seeds are fixed.
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..6_000 {
        let mut lists = QueryLists::new(1, 2).unwrap();
        lists.push("q", &[0.0, 1.0, 2.0], &[0, 1, 2]).unwrap();
        lists.shuffle_documents(seed);
        *counts.entry(lists.list(0).grades().to_vec()).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|count| count.abs_diff(1_000) < 145), "{counts:?}");
}

proptest! {
    #[test]
    fn normalised_features_fill_the_unit_interval(
        rows in proptest::collection::vec(proptest::array::uniform3(-1e308..1e308_f64), 1..20),
    ) {
        let values: Vec<f64> = rows.concat();
        let mut lists = QueryLists::new(3, 2).unwrap();
        lists.push("a", &values, &vec![0; rows.len()]).unwrap();
        lists.normalise_features();
        for feature in 0..3 {
            let column: Vec<f64> = lists.list(0).features().rows().map(|row| row[feature]).collect();
            prop_assert!(column.iter().all(|value| (0.0..=1.0).contains(value)), "{column:?}");
            prop_assert!(column.contains(&0.0) && (rows.len() == 1 || column.contains(&1.0)), "{column:?}");
        }
        // Normalisation is idempotent.
        let once = lists.clone();
        lists.normalise_features();
        for (a, b) in once.list(0).features().values().iter().zip(lists.list(0).features().values()) {
            prop_assert!((a - b).abs() <= 1e-15);
        }
    }
}
