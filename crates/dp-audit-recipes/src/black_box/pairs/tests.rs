use std::collections::HashSet;

use super::*;

fn rows(pair: &Pair, side: Side, classes: u32) -> Vec<(Vec<f64>, f64, bool)> {
    let examples = pair.examples(side, classes).unwrap();
    let block = examples.block();
    let dp_data::Rows::Dense { values, .. } = block.rows else { panic!("dense") };
    let row = |i: usize| (values[2 * i..2 * i + 2].to_vec(), block.targets[i], block.valid.unwrap()[i]);
    (0..block.len()).map(row).collect()
}

const RELATIONS: [AdjacencyKind; 2] = [AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut];

#[test]
fn pairs_differ_in_one_record_of_those_that_are_said() {
    for relation in RELATIONS {
        for classes in [2, 3] {
            let pairs = Pairs::new(relation, classes).unwrap();
            assert_eq!(pairs.leading(), 6);
            for pair in pairs.all() {
                let (base, neighbour) = (rows(pair, Side::Base, classes), rows(pair, Side::Neighbour, classes));
                let differing: Vec<usize> = (0..base.len()).filter(|&i| base[i] != neighbour[i]).collect();
                assert_eq!(differing, [usize::from(pair.at)], "{}", pair.describe());
                assert!((2..=7).contains(&base.len()) && base.len() as u64 == pair.n());
                let at = &neighbour[usize::from(pair.at)];
                assert_eq!((base[usize::from(pair.at)].2, at.2), (true, relation == AdjacencyKind::ReplaceOne));
                assert!(pair.fits(relation) && RELATIONS.iter().filter(|relation| pair.fits(**relation)).count() == 1);
                for (features, target, valid) in base.iter().chain(&neighbour) {
                    let squares: f64 = features.iter().map(|feature| feature * feature).sum();
                    assert!(squares == 0.0 || squares == 1.0);
                    assert!(*valid || squares == 0.0);
                    assert!(classes == 3 && [0.0, 1.0, 2.0].contains(target) || target.abs() == 1.0 || !valid);
                }
            }
            let described: HashSet<String> = pairs.all().iter().map(Pair::describe).collect();
            assert_eq!(described.len(), pairs.all().len());
        }
    }
}

/// Every possible pair is equivalent to exactly one that is listed.
#[test]
fn every_pair_is_listed_once_up_to_symmetry() {
    for relation in RELATIONS {
        let classes = 2;
        let (symmetries, pairs) = (Symmetry::all(classes), Pairs::new(relation, classes).unwrap());
        assert_eq!(symmetries.len(), 8);
        let listed: HashSet<Pair> = pairs.all().iter().map(|pair| pair.least(&symmetries)).collect();
        assert_eq!(listed.len(), pairs.all().len());
        let records = Extreme::all(classes);
        assert_eq!(records.len(), 10);
        let with_null = || records.iter().copied().chain([Extreme::Null]);
        let (neighbours, kinds): (Vec<_>, Vec<_>) = match relation {
            AdjacencyKind::ReplaceOne => (records.clone(), records.clone()),
            _ => (vec![Extreme::Null], with_null().collect()),
        };
        let mut found = HashSet::new();
        for n in 2..=7u8 {
            for at in [0, n / 2, n - 1] {
                for (&base, &neighbour) in records.iter().flat_map(|base| neighbours.iter().map(move |b| (base, b))) {
                    for (&first, &second) in kinds.iter().flat_map(|first| kinds.iter().map(move |b| (first, b))) {
                        if base != neighbour && (n > 2 || first == second) {
                            let others = [first, second];
                            found.insert(Pair { n, at, base, neighbour, others, classes: 2 }.least(&symmetries));
                        }
                    }
                }
            }
        }
        assert_eq!(found, listed, "{relation}");
        // Counted by an independent program.
        assert_eq!(listed.len(), if relation == AdjacencyKind::ReplaceOne { 10_936 } else { 3455 });
        // Every position and number of records, and data sets of one kind and of two.
        for n in 2..=7 {
            for at in [0, n / 2, n - 1] {
                let there = |equal: bool| {
                    pairs
                        .all()
                        .iter()
                        .any(|pair| (pair.n, pair.at) == (n, at) && (pair.others[0] == pair.others[1]) == equal)
                };
                assert!(there(true) && (n == 2 || there(false)));
            }
        }
    }
}

/// A symmetry composed with its inverse is the identity, and the symmetries are distinct.
#[test]
fn symmetries_are_a_group_that_moves_records() {
    for classes in [2, 3] {
        let symmetries = Symmetry::all(classes);
        assert_eq!(symmetries.len(), if classes == 2 { 8 } else { 24 });
        let records = Extreme::all(classes);
        let table: HashSet<Vec<Extreme>> =
            symmetries.iter().map(|symmetry| records.iter().map(|&record| symmetry.of(record)).collect()).collect();
        assert_eq!(table.len(), symmetries.len());
        for images in &table {
            let twice: Vec<Extreme> =
                images.iter().map(|image| images[records.iter().position(|record| record == image).unwrap()]).collect();
            assert!(table.contains(&twice), "closed");
            assert_eq!(images.iter().collect::<HashSet<_>>().len(), records.len(), "one to one");
        }
    }
}

#[test]
fn other_relations_and_numbers_of_classes_are_refused() {
    assert!(matches!(Pairs::new(AdjacencyKind::AddRemoveOne, 2), Err(Error::Adjacency { .. })));
    for classes in [0, 1, 6] {
        assert!(matches!(Pairs::new(AdjacencyKind::ZeroOut, classes), Err(Error::Count { .. })));
    }
}
