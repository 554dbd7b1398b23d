use std::collections::BTreeSet;

use dp_data::{Examples, Order, RowSource as _, Rows};

use super::*;
use crate::memory::MemorySource;
use crate::tuning::Portions;
use crate::tuning::tests::{at, cases};

#[test]
fn golden_portions() {
    for case in cases("tuning_portions") {
        let (n, candidates) = (at(&case, "n") as u64, at(&case, "candidates") as usize);
        let portion = Portions::records_of_portion(n, candidates);
        assert_eq!(portion, at(&case, "portion") as u64, "{}", case["id"]);
        assert_eq!(n - portion * (candidates as u64 + 1), at(&case, "unused") as u64, "{}", case["id"]);
        let cut = portions(n, candidates + 1, [7; 32]).unwrap();
        assert!(cut.len() == candidates + 1 && cut.iter().all(|part| part.len() as u64 == portion));
        let used: BTreeSet<u32> = cut.iter().flatten().copied().collect();
        assert_eq!(used.len() as u64, portion * (candidates as u64 + 1), "disjoint");
    }
}

/// For neighbours and the same coins only the candidate whose portion contains the differing record changes.
#[test]
fn neighbours_share_all_portions_but_one() {
    let (n, key) = (42u32, [3; 32]);
    let cut = portions(n.into(), 4, key).unwrap();
    let rows = |replaced: Option<u32>| {
        (0..n).map(|i| if Some(i) == replaced { -0.5 } else { f64::from(i) / 50.0 }).collect::<Vec<f64>>()
    };
    let source = |replaced| MemorySource::new(Examples::dense(rows(replaced), vec![1.0; 42], 1).unwrap(), 1.0, 1.0);
    let read = |source: &mut MemorySource<f64>, part: &[u32], order: Order| {
        let mut portion = Portion::new(source, part);
        assert_eq!(portion.describe().unwrap().n, part.len() as u64);
        let mut stream = portion.open_pass(&PassRequest { pass: 1, order }).unwrap();
        let mut all = Vec::new();
        while let Some(block) = stream.next_block().unwrap() {
            let Rows::Dense { values, .. } = block.rows else { unreachable!() };
            all.extend_from_slice(values);
        }
        assert_eq!(stream.receipt().unwrap().rows, part.len() as u64);
        all
    };
    let keyed = Order::Keyed { key: [9; 32], fresh_each_pass: true };
    let base = &mut source(None);
    for replaced in 0..n {
        let other = &mut source(Some(replaced));
        for part in &cut {
            for order in [Order::Declared, keyed] {
                let (a, b) = (read(base, part, order), read(other, part, order));
                assert_eq!(a == b, !part.contains(&replaced));
                let mut sorted = a.clone();
                sorted.sort_by(f64::total_cmp);
                assert_eq!(sorted, part.iter().map(|&i| f64::from(i) / 50.0).collect::<Vec<_>>());
                assert_eq!(order == Order::Declared, a == sorted);
            }
        }
    }
    let mut portion = Portion::new(base, &cut[0]);
    let block = portion.gather(&[2, 0, 2]).unwrap();
    let Rows::Dense { values, .. } = block.rows else { unreachable!() };
    assert_eq!(values, [2usize, 0, 2].map(|i| f64::from(cut[0][i]) / 50.0));
    assert!(portion.gather(&[10]).is_err());
    let chosen = portion.select(&[2, 0, 2]).unwrap().unwrap();
    for (i, position) in [2, 0, 2].into_iter().enumerate() {
        let Rows::Dense { values, .. } = chosen.example(i).rows else { unreachable!() };
        assert_eq!(values, [f64::from(cut[0][position]) / 50.0]);
    }
    assert!(portion.select(&[10]).is_err());
    for mut reader in portion.readers(2).unwrap().unwrap() {
        assert_eq!(reader.describe().unwrap().n, 10);
        let Rows::Dense { values, .. } = reader.gather(&[1]).unwrap().rows else { unreachable!() };
        assert_eq!(values, [f64::from(cut[0][1]) / 50.0]);
    }
}
