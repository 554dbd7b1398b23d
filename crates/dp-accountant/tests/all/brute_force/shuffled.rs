//! Shuffled answers of k-ary randomised response, by enumeration of all answers.

use std::collections::BTreeMap;

use dp_accountant::DpEvent;

use super::finite::{Checks, Pairs};

/// Returns the law of the counts of the answers; `records` are the true values.
fn law_of_counts(records: &[usize], buckets: usize, epsilon: f64) -> BTreeMap<Vec<u8>, f64> {
    let lie = 1.0 / (epsilon.exp() + buckets as f64 - 1.0);
    let mut laws = BTreeMap::from([(vec![0u8; buckets], 1.0)]);
    for &value in records {
        let mut next = BTreeMap::new();
        for (counts, mass) in laws {
            for answer in 0..buckets {
                let mut counts: Vec<u8> = counts.clone();
                counts[answer] += 1;
                *next.entry(counts).or_insert(0.0) += mass * if answer == value { epsilon.exp() * lie } else { lie };
            }
        }
        laws = next;
    }
    laws
}

#[test]
fn shuffled_answers() {
    let mut checks = Checks::default();
    for (buckets, epsilon) in [(2usize, 0.5), (3, 3.0)] {
        for records in [1usize, 2, 6] {
            let mut pairs = Pairs::default();
            // The others' values: all equal to the first, to the second, to neither, or mixed.
            for pattern in 0..4 {
                let others: Vec<usize> =
                    (1..records).map(|i| if pattern == 3 { i % buckets } else { pattern % buckets }).collect();
                let law = |value| {
                    let all: Vec<usize> = others.iter().copied().chain([value]).collect();
                    law_of_counts(&all, buckets, epsilon).into_values().collect::<Vec<_>>()
                };
                pairs.add(law(0), law(1));
            }
            checks.curve("shuffled", &pairs, &DpEvent::Shuffled { epsilon, records: records as u64 });
        }
    }
    checks.came_within(0.5);
}
