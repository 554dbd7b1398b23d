use proptest::prelude::*;

use super::*;
use crate::encode::{FeatureMap, RowNorm};
use crate::read::{load, load_coordinates, load_libsvm};
use crate::schema::Schema;
use crate::units::UnitBound;

const SCHEMA: &str = "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
    columns.age = { type = 'numeric', min = 0, max = 100, on_missing = 'neutral' }\n\
    columns.town = { type = 'categorical', categories = ['a', 'b', 'c'] }";

fn table(n: usize) -> Vec<u8> {
    let mut text = String::from("age,town,y\n");
    for i in 0..n {
        let age = if i % 17 == 3 { String::new() } else { (i % 101).to_string() };
        text.push_str(&format!("{age},{},{}\n", ["a", "b", "c"][i % 3], ["yes", "no"][i % 2]));
    }
    text.into_bytes()
}

fn room(memory: u64) -> Room {
    Room { memory, spool: SpoolOptions::default() }
}

/// Returns the bits of all rows, targets and marks.
fn bits(held: &mut Held<f64>) -> Vec<u64> {
    let mut all = Vec::new();
    let of_block = |block: &Block<'_, f64>| {
        for i in 0..block.len() {
            let one = block.slice(i..i + 1);
            let (values, indices) = match one.rows {
                crate::Rows::Dense { values, .. } => (values, &[][..]),
                crate::Rows::Sparse { offsets, indices, values, .. } => {
                    (&values[offsets[0]..offsets[1]], &indices[offsets[0]..offsets[1]])
                }
            };
            all.extend(values.iter().map(|value| value.to_bits()));
            all.extend(indices.iter().map(|&index| u64::from(index)));
            all.extend([one.targets[0].to_bits(), u64::from(one.valid.is_none_or(|valid| valid[0]))]);
        }
        Ok(())
    };
    held.for_each_block(of_block).unwrap();
    all
}

/// Returns the bits of rows whose bounds training in memory enforces, and a spool when it is written.
fn enforced(mut examples: Examples<f64>, encoder: &Encoder) -> Vec<u64> {
    examples.enforce_bounds(encoder.row_bound(), encoder.target_bound());
    bits(&mut Held::Memory(examples))
}

fn found(held: Held<f64>, encoder: &Encoder) -> Vec<u64> {
    match held {
        Held::Memory(examples) => enforced(examples, encoder),
        mut held => bits(&mut held),
    }
}

fn workers() -> [Workers; 2] {
    [Workers::ONE, Workers::new(2.try_into().unwrap())]
}

#[test]
fn a_table_is_the_same_in_memory_and_beyond() {
    let schema = Schema::parse("s.toml", SCHEMA).unwrap();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    for n in [1, 1500, 300_000] {
        for workers in workers() {
            let input = || Input::from_bytes("a.csv", table(n)).with_workers(workers);
            let loaded = load::<f64>(input(), &encoder, &CsvOptions::default()).unwrap();
            let expected = enforced(loaded.examples, &encoder);
            // One byte too few for all rows is too little, on any number of threads.
            let all = n as u64 * encoder.row_bytes::<f64>(Stage::Features).unwrap();
            for (memory, spools) in [(u64::MAX, false), (100, n >= 1500), (all, false), (all - 1, true)] {
                let (held, warnings) =
                    Held::<f64>::read(input(), &encoder, &CsvOptions::default(), &room(memory)).unwrap();
                assert_eq!((held.len(), matches!(held, Held::Spool(_))), (n as u64, spools), "{n} {memory}");
                assert_eq!(format!("{warnings:?}"), format!("{:?}", loaded.warnings));
                assert!(found(held, &encoder) == expected, "{n} {memory}");
            }
        }
    }
}

#[test]
fn a_map_is_chosen_after_the_records_were_spooled() {
    let schema = Schema::parse("s.toml", SCHEMA).unwrap();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    let mapped = encoder.with_map(FeatureMap::curves(6)).unwrap();
    let n = 20_000;
    for workers in workers() {
        let input = || Input::from_bytes("a.csv", table(n)).with_workers(workers);
        let (coordinates, _) = load_coordinates::<f64>(input(), &encoder, &CsvOptions::default()).unwrap();
        let expected = enforced(coordinates.encode(&mapped, workers).unwrap(), &mapped);
        // Coordinates of 41 bytes and rows of about 110: both in memory, one, and none.
        for (memory, spools) in [(u64::MAX, false), (1_500_000, true), (1000, true)] {
            let (mut held, _) =
                HeldCoordinates::<f64>::read(input(), &encoder, &CsvOptions::default(), &room(memory)).unwrap();
            assert_eq!((held.len(), matches!(held.0, Held::Spool(_))), (n as u64, memory == 1000));
            let held = held.encode(&mapped, workers, &room(memory)).unwrap();
            assert!(matches!(held, Held::Spool(_)) == spools && found(held, &mapped) == expected, "{memory}");
        }
    }
}

/// Returns the features, targets and marks of all rows, widened.
fn all_of<F: Stored>(held: &mut Held<F>) -> Vec<(Vec<u64>, u64, bool)> {
    let mut all = Vec::new();
    held.for_each_block(|block| {
        let crate::Rows::Dense { values, dim } = block.rows else { panic!("dense rows") };
        all.extend(values.chunks_exact(dim).zip(block.targets).enumerate().map(|(i, (row, target))| {
            let bits = |value: &F| value.widen().to_bits();
            (row.iter().map(bits).collect(), bits(target), block.valid.is_none_or(|valid| valid[i]))
        }));
        Ok(())
    })
    .unwrap();
    all
}

/// Curves of records in memory, with a target that is too large, one that is no number and a null record, have the bounds that
/// are enforced on stored rows; and ranges may start and end anywhere. Rows whose squares overflow are stored.
#[test]
fn bounds_are_enforced_on_curves() {
    let text = "label = { column = 'y', type = 'numeric', min = 0, max = 1 }\n\
                columns.a = { type = 'numeric', min = 0, max = 10 }\n\
                columns.b = { type = 'numeric', min = 0, max = 10 }";
    let encoder = Encoder::new(&Schema::parse("s.toml", text).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let mapped = encoder.with_map(FeatureMap::curves(20)).unwrap();
    let n = 30;
    let values: Vec<f64> = (0..2 * n).map(|i| (i as f64 * 0.37).sin()).collect();
    let target = |i: usize| match i {
        4 => 7.0,
        5 => -7.0,
        9 => f64::NAN,
        _ => (i as f64).cos(),
    };
    let examples = Examples::dense(values, (0..n).map(target).collect(), 2).unwrap();
    let marks = (0..n).map(|i| i != 11).collect();
    for examples in [examples.clone(), examples.with_valid(marks).unwrap()] {
        let encoded = |mapped: &Encoder| {
            let mut held = HeldCoordinates(Held::Memory(examples.clone()));
            let held = held.encode(mapped, Workers::ONE, &room(u64::MAX)).unwrap();
            let mut stored = crate::encode::Coordinates::new(examples.clone()).encode(mapped, Workers::ONE).unwrap();
            stored.enforce_bounds(mapped.row_bound(), mapped.target_bound());
            (held, all_of(&mut Held::Memory(stored)))
        };
        let (Held::Curves(curves), expected) = encoded(&mapped) else { panic!("curves") };
        for range in [0..30, 3..21, 8..16, 7..9, 29..30, 5..5] {
            let mut features = vec![9.0; 3];
            let part = Examples::of_block(&curves.block(range.clone(), &mut features)).unwrap();
            assert_eq!(all_of(&mut Held::Memory(part)), expected[range]);
        }
        assert_eq!(all_of(&mut Held::Curves(curves)), expected);
        let huge = Encoder::new(encoder.schema().unwrap(), Encoding::UNIT_ROWS.with_intercept(1e150)).unwrap();
        let huge = huge.with_map(FeatureMap::curves(20)).unwrap();
        let (held, expected) = encoded(&huge);
        let Held::Memory(mut stored) = held else { panic!("stored rows") };
        stored.enforce_bounds(huge.row_bound(), huge.target_bound());
        assert_eq!(all_of(&mut Held::Memory(stored)), expected);
    }
}

/// Reads a table as curves that are not computed yet, and as stored rows; returns both, bounded.
fn both<F: Stored>(
    csv: &str,
    encoder: &Encoder,
    mapped: &Encoder,
    workers: Workers,
) -> (Box<CurveRows<F>>, Examples<F>) {
    let input = || Input::from_bytes("a.csv", csv.as_bytes().to_vec()).with_workers(workers);
    let (coordinates, _) = load_coordinates::<F>(input(), encoder, &CsvOptions::default()).unwrap();
    let mut stored = coordinates.encode(mapped, workers).unwrap();
    stored.enforce_bounds(mapped.row_bound(), mapped.target_bound());
    let (mut held, _) = HeldCoordinates::<F>::read(input(), encoder, &CsvOptions::default(), &room(u64::MAX)).unwrap();
    let Held::Curves(curves) = held.encode(mapped, workers, &room(u64::MAX)).unwrap() else { panic!("curves") };
    (curves, stored)
}

proptest! {
    /// Curves that are computed when they are read have the bits of stored rows, and records at any positions those of a pass:
    /// curved and plain columns, categories around them, values in the middle of a range, whose cosine is 0, null records, any
    /// intercept, rows that are scaled or clipped, both precisions.
    #[test]
    fn curves_have_the_bits_of_stored_rows(
        cells in prop::collection::vec((prop_oneof![Just(5.0), Just(0.0), -2.0..12.0_f64], 0_usize..4, 0.0..1.0_f64), 1..40),
        cosines in 40_u32..50, clip in any::<bool>(), intercept in prop_oneof![Just(0.0), 0.01..2.0_f64], log in any::<bool>(),
        of_b in 0_u32..4, numbers in any::<bool>(), unit in any::<bool>(), towns in any::<bool>(),
    ) {
        let (scale, label) = (
            if log { "log" } else { "linear" },
            if numbers { "label = { column = 'y', type = 'numeric', min = 0, max = 1 }" } else { SCHEMA.lines().next().unwrap() },
        );
        let of_b = of_b.checked_sub(1).map_or_else(String::new, |cosines| format!(", cosines = {cosines}"));
        // Without categories, rows may be shorter than 1.
        let towns = if towns { "type = 'categorical', categories = ['0', '1', '2'], on_unknown = 'neutral'" } else { "type = 'drop'" };
        let text = format!(
            "{label}\n\
             columns.c = {{ {towns} }}\n\
             columns.a = {{ type = 'numeric', min = 0, max = 10, scale = '{scale}' }}\n\
             columns.i = {{ type = 'indicator' }}\n\
             columns.b = {{ type = 'numeric', min = -10, max = 10, scale = '{scale}'{of_b} }}\n\
             columns.w = {{ type = 'numeric', min = 3, max = 3 }}\n"
        );
        let schema = Schema::parse("s.toml", &text).unwrap();
        let row_norm = if clip { RowNorm::Clip } else { RowNorm::Unit };
        let encoding = if unit { Encoding::unit_scale(row_norm) } else { Encoding { row_norm, ..Encoding::UNIT_ROWS } };
        let encoding = encoding.with_intercept(intercept);
        let encoder = Encoder::new(&schema, encoding).unwrap();
        let mapped = encoder.with_map(FeatureMap::curves(cosines)).unwrap();
        let mut csv = "c,a,i,b,w,y\n".to_owned();
        for (number, category, target) in &cells {
            let target = if numbers { target.to_string() } else { ["no", "yes"][usize::from(*target > 0.5)].to_owned() };
            csv += &format!("{category},{number},{},{},3,{target}\n", category % 2, -number);
        }
        for workers in workers() {
            fn check<F: Stored>(mapped: &Encoder, (curves, stored): (Box<CurveRows<F>>, Examples<F>)) {
                let slots = [Some(0), None, Some(curves.len() as u32 - 1), Some(0)];
                let (mut held, expected) = (Held::Curves(curves), all_of(&mut Held::Memory(stored)));
                assert_eq!(all_of(&mut held), expected);
                let (room, selected) = (room(u64::MAX), Selected { slots: slots.to_vec(), warning: None });
                let shelf = Shelf::of_stage(mapped, Stage::Features, &room);
                let few = all_of(&mut held.selected(&selected, shelf).unwrap());
                let null = (vec![0; expected[0].0.len()], 0, false);
                let chosen = slots.map(|slot| slot.map_or(null.clone(), |i| expected[i as usize].clone()));
                assert_eq!(few, chosen);
            }
            check(&mapped, both::<f64>(&csv, &encoder, &mapped, workers));
            check(&mapped, both::<f32>(&csv, &encoder, &mapped, workers));
        }
    }
}

/// Curves of many records, over several parts; and where features are stored all the same: too few of them, no room for all.
#[test]
fn curves_are_kept_where_that_saves_memory() {
    let schema = Schema::parse("s.toml", SCHEMA).unwrap();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    let n = 5000;
    let csv = String::from_utf8(table(n)).unwrap();
    for workers in workers() {
        let mapped = encoder.with_map(FeatureMap::curves(20)).unwrap();
        let (curves, stored) = both::<f64>(&csv, &encoder, &mapped, workers);
        assert_eq!((curves.len(), curves.dim(), curves.is_empty()), (n, 24, false));
        assert_eq!(all_of(&mut Held::Curves(curves)), all_of(&mut Held::Memory(stored)));
        let all = n as u64 * mapped.row_bytes::<f64>(Stage::Features).unwrap();
        for (cosines, memory, kept) in [(20, all, true), (20, all - 1, false), (6, u64::MAX, false)] {
            let mapped = encoder.with_map(FeatureMap::curves(cosines)).unwrap();
            let input = Input::from_bytes("a.csv", csv.as_bytes().to_vec()).with_workers(workers);
            let (mut held, _) =
                HeldCoordinates::<f64>::read(input, &encoder, &CsvOptions::default(), &room(u64::MAX)).unwrap();
            let held = held.encode(&mapped, workers, &room(memory)).unwrap();
            assert_eq!((matches!(held, Held::Curves(_)), held.len()), (kept, n as u64), "{cosines} {memory}");
        }
    }
}

#[test]
fn a_width_is_found_while_rows_are_spooled() {
    let line = |i: usize| format!("{} {}:0.5 {}:0.25\n", ["+1", "-1"][i % 2], 1 + i % 7, 10 + i % 50);
    let text: String = (0..30_000).map(line).collect();
    for features in [None, Some(80)] {
        let format = LibsvmFormat { features, ..LibsvmFormat::default() };
        let input = || Input::from_bytes("a.libsvm", text.clone().into_bytes());
        let (encoder, loaded) = load_libsvm::<f64>(input(), &format, Encoding::UNIT_ROWS).unwrap();
        let expected = enforced(loaded.examples, &encoder);
        for memory in [u64::MAX, 1000] {
            let (same, held, _) =
                Held::<f64>::read_libsvm(input(), &format, Encoding::UNIT_ROWS, &room(memory)).unwrap();
            assert_eq!((same.dim(), held.len()), (encoder.dim(), 30_000));
            assert!(matches!(held, Held::Spool(_)) == (memory == 1000) && found(held, &encoder) == expected);
        }
    }
}

#[test]
fn errors_are_those_of_reading_or_of_the_spool() {
    let schema = Schema::parse("s.toml", SCHEMA).unwrap();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    let code = |bytes: Vec<u8>, room: &Room| {
        let read = Held::<f64>::read(Input::from_bytes("a.csv", bytes), &encoder, &CsvOptions::default(), room);
        read.unwrap_err().code()
    };
    let mut bad = table(5000);
    bad.extend_from_slice(b"5,a,perhaps\n");
    assert_eq!(code(bad, &room(1000)), "label.unknown");
    assert_eq!(code(b"age,town,y\n".to_vec(), &room(0)), "csv.no_rows");
    let nowhere = Room {
        memory: 1000,
        spool: SpoolOptions { folder: "/no/such".into(), encrypted: false, workers: Workers::ONE },
    };
    assert_eq!(code(table(5000), &nowhere), "spool.folder");
    let few = Held::<f64>::read(Input::from_bytes("a.csv", table(5)), &encoder, &CsvOptions::default(), &nowhere);
    assert!(few.is_ok(), "no file is needed");
}

/// Rows with the names of their units: rows of `z` come and go, and have any values.
fn visits(n: usize, of_z: &[(usize, &str)]) -> Vec<u8> {
    let mut rows: Vec<String> = (0..n)
        .map(|i| format!("p{},{},{},{}", i * 7 % 40, i % 101, ["a", "b", "c"][i % 3], ["yes", "no"][i % 2]))
        .collect();
    of_z.iter().for_each(|(place, row)| rows.insert((*place).min(rows.len()), format!("z,{row}")));
    format!("who,age,town,y\n{}\n", rows.join("\n")).into_bytes()
}

/// Tables that differ in one unit differ in its records alone, at the same places: in memory and spooled, on one thread and two, as
/// rows and as coordinates that are encoded later.
#[test]
fn tables_that_differ_in_a_unit_differ_in_a_block() {
    let encoder = Encoder::new(&Schema::parse("s", SCHEMA).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let curved = encoder.with_map(FeatureMap::curves(2)).unwrap();
    for most in [1, 2, 5] {
        let bound = UnitBound { column: "who".to_owned(), most, key: [3; 32] };
        let read = |of_z: &[(usize, &str)], memory, workers| {
            let input = || Input::from_bytes("t", visits(3000, of_z)).with_workers(workers);
            let (held, _) =
                Held::<f64>::read_units(input(), &encoder, &Default::default(), &room(memory), Some(&bound)).unwrap();
            assert_eq!((held.len(), matches!(held, Held::Memory(_))), (41 * most, memory > 10_000));
            let rows = found(held, &encoder);
            let coordinates =
                HeldCoordinates::<f64>::read_units(input(), &encoder, &Default::default(), &room(memory), Some(&bound));
            let curves = coordinates.unwrap().0.encode(&curved, workers, &room(memory)).unwrap();
            (rows, found(curves, &curved))
        };
        let one = [(5, "50,a,yes")];
        let (rows, curves) = read(&one, 1 << 20, Workers::ONE);
        for of_z in [
            &[(5, "50,a,yes")][..],
            &[(5, "0,c,no")],
            &[(5, "7,b,no"), (900, "9,c,yes"), (2000, ",a,yes"), (2999, "1,a,no")],
        ] {
            for memory in [1 << 20, 400] {
                for workers in workers() {
                    let (other_rows, other_curves) = read(of_z, memory, workers);
                    for (one, other) in [(&rows, other_rows), (&curves, other_curves)] {
                        assert_eq!(one.len(), other.len());
                        let of_record = one.len() / (41 * most as usize);
                        let differ: Vec<usize> = (0..one.len()).filter(|&at| one[at] != other[at]).collect();
                        let block = |at: usize| at / of_record / most as usize;
                        assert!(differ.iter().all(|&at| block(at) == block(differ[0])), "{most}: {differ:?}");
                        assert_eq!(differ.is_empty(), of_z == one_row_as_it_was(), "{most}");
                    }
                }
            }
        }
    }
}

fn one_row_as_it_was() -> &'static [(usize, &'static str)] {
    &[(5, "50,a,yes")]
}

#[test]
fn units_need_their_column() {
    let encoder = Encoder::new(&Schema::parse("s", SCHEMA).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let read = |text: &str, column: &str| {
        let bound = UnitBound { column: column.to_owned(), most: 2, key: [3; 32] };
        let input = Input::from_bytes("t", text.as_bytes().to_vec());
        Held::<f64>::read_units(input, &encoder, &Default::default(), &room(1 << 20), Some(&bound))
            .map(|(held, warnings)| (held.len(), warnings))
            .map_err(|error| error.code())
    };
    assert_eq!(read("age,town,y\n1,a,no\n", "who").unwrap_err(), "csv.missing_column");
    assert_eq!(read("who,age,town,y\n,1,a,no\n  ,2,a,no\n", "who").unwrap_err(), "csv.no_rows");
    let (n, warnings) = read("who,age,town,y\n,1,a,no\n7,2,a,no\n", "who").unwrap();
    let left_out = CuratorWarning::RowsOfUnits { column: "who".to_owned(), dropped: 0, unnamed: 1 };
    assert!(n == 2 && warnings.contains(&left_out));
    assert!(!warnings.iter().any(|warning| matches!(warning, CuratorWarning::UnusedColumns { .. })));
}
