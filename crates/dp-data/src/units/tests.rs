use super::*;

fn names(of_rows: &[&str]) -> UnitNames {
    let mut names = UnitNames::default();
    of_rows.iter().for_each(|name| names.push(name).unwrap());
    names
}

fn bound(most: u64, key: u8) -> UnitBound {
    UnitBound { column: "patient".to_owned(), most, key: [key; 32] }
}

#[test]
fn each_unit_has_so_many_records_in_a_block() {
    let of_rows = ["b", "a", "a ", "", "c", "a", "b", "a", " "];
    for most in 1..6u64 {
        let Selected { slots, warning } = select(&names(&of_rows), &bound(most, 1)).unwrap();
        let blocks: Vec<&[Option<u32>]> = slots.chunks(most as usize).collect();
        assert_eq!(blocks.len(), 3);
        let mut kept = 0;
        for (block, (unit, rows)) in blocks.iter().zip([("b", 2), ("a", 4), ("c", 1)]) {
            let found: Vec<u32> = block.iter().flatten().copied().collect();
            assert!(found.is_sorted() && found.iter().all(|row| of_rows[*row as usize].trim() == unit), "{block:?}");
            assert_eq!(found.len() as u64, most.min(rows));
            assert!(block.is_sorted_by_key(Option::is_none));
            kept += found.len() as u64;
        }
        let expected = CuratorWarning::RowsOfUnits { column: "patient".to_owned(), dropped: 7 - kept, unnamed: 2 };
        assert_eq!(warning, Some(expected));
    }
    let alone = select(&names(&["b", "a"]), &bound(1, 1)).unwrap();
    assert_eq!(alone, Selected { slots: vec![Some(0), Some(1)], warning: None });
}

/// What a unit keeps depends on no other unit, wherever the other's rows stand and however many there are: all records but
/// those of one block stay at their places.
#[test]
fn a_unit_does_not_influence_the_others() {
    let others = ["a", "b", "a", "a", "c", "b", "a", "b", "c"];
    // Rows by their unit and their number within it.
    let records_of = |of_rows: &[&'static str], key| {
        let selected = select(&names(of_rows), &bound(2, key)).unwrap();
        let numbered: Vec<(&str, usize)> = (0..of_rows.len())
            .map(|row| (of_rows[row], of_rows[..row].iter().filter(|name| **name == of_rows[row]).count()))
            .collect();
        selected.slots.iter().map(|slot| slot.map(|row| numbered[row as usize])).collect::<Vec<_>>()
    };
    for key in 0..20 {
        for first in 0..=others.len() {
            let with = |more: &[usize]| {
                let mut all: Vec<&str> = others.to_vec();
                all.insert(first, "z");
                more.iter().for_each(|place| all.insert((first + 1 + place).min(all.len()), "z"));
                records_of(&all, key)
            };
            let alone = with(&[]);
            for more in [&[0][..], &[3], &[2, 5], &[0, 0, 9, 4]] {
                let found = with(more);
                assert_eq!(found.len(), alone.len());
                let differ: Vec<usize> = (0..alone.len()).filter(|&at| found[at] != alone[at]).collect();
                assert!(differ.iter().all(|at| at / 2 == differ[0] / 2), "{differ:?}");
                assert!(differ.iter().all(|&at| found[at].is_none_or(|(unit, _)| unit == "z")));
            }
        }
    }
}

/// Over the keys, each row of a unit is kept as often as any other: 4 rows of 10, 4,000 keys, five standard deviations of the share
/// of each (a false alarm in 10^5 for all ten).
#[test]
fn rows_of_a_unit_are_kept_alike() {
    let of_unit = names(&["a"; 10]);
    let mut times = [0u32; 10];
    for key in 0..4000u32 {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&key.to_le_bytes());
        let selected = select(&of_unit, &UnitBound { key: bytes, ..bound(4, 0) }).unwrap();
        selected.slots.iter().flatten().for_each(|&row| times[row as usize] += 1);
    }
    let deviation = (4000.0 * 0.4 * 0.6_f64).sqrt();
    assert!(times.iter().all(|times| (f64::from(*times) - 1600.0).abs() < 5.0 * deviation), "{times:?}");
}

#[test]
fn names_join_in_their_order() {
    let (mut all, next) = (names(&["a", "", "bc"]), names(&["d", "", "e"]));
    all.append(&next).unwrap();
    let found: Vec<&[u8]> = (0..6).map(|row| all.name(row)).collect();
    assert_eq!(found, [&b"a"[..], b"", b"bc", b"d", b"", b"e"]);
    assert!(select(&names(&["a"]), &bound(u64::MAX, 1)).is_err());
}
