//! Typed cells, whose numbers are encoded in blocks, give the rows, warnings and errors of the same cells as text.

use core::num::NonZeroUsize;

use proptest::prelude::*;

use super::bits;
use crate::encode::{Cell, Encoder, Encoding};
use crate::read::{CsvOptions, Input, load_csv};
use crate::schema::Schema;
use crate::table::{Batch, Table, TableColumn};
use crate::workers::Workers;

const SCHEMA: &str = "missing = ['', '-999']\n\
    label = { column = 'y', positive = '1', negative = '0' }\n\
    columns.a = { type = 'numeric', min = -3, max = 700, on_missing = 'neutral', on_unreadable = 'neutral' }\n\
    columns.b = { type = 'numeric', min = 0, max = 1e9, log1p = true, missing = ['', '1e300'], on_missing = { value = 7 }, on_unreadable = 'neutral' }\n\
    columns.ward = { type = 'categorical', categories = ['1', 'x'], on_unknown = 'neutral', on_missing = 'category' }\n\
    columns.c = { type = 'indicator', on_missing = 'neutral' }\n\
    columns.d = { type = 'numeric', min = 5, max = 5, on_missing = 'neutral', on_unreadable = 'neutral' }";

/// A cell, as a source has it and as a file has it.
#[derive(Debug, Clone)]
enum Value {
    Missing,
    Number(f64),
    Text(&'static str),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Missing => Cell::Missing,
            Self::Number(number) => Cell::Number(*number),
            Self::Text(text) => Cell::Text(text.as_bytes()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Number(number) => String::from_utf8_lossy(Cell::Number(*number).text(&mut [0; 32])).into_owned(),
            Self::Text(text) => (*text).to_owned(),
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
    let number = prop_oneof![Just(-999.0), Just(1.0), Just(0.0), -10.0..1000.0, Just(1e300)];
    let text = prop::sample::select(vec!["12.5", " 3", "x", "none", "-999", "1"]);
    prop_oneof![1 => Just(Value::Missing), 6 => number.prop_map(Value::Number), 1 => text.prop_map(Value::Text)]
}

fn rows() -> impl Strategy<Value = Vec<[Value; 5]>> {
    // An indicator of 2 is refused: in some of the tables.
    let indicator = prop_oneof![
        400 => prop::sample::select(vec![0.0, 1.0]).prop_map(Value::Number),
        40 => Just(Value::Missing),
        1 => Just(Value::Number(2.0)),
    ];
    let row = (values(), values(), values(), indicator, values()).prop_map(|(a, b, ward, c, d)| [a, b, ward, c, d]);
    prop::collection::vec(row, 1..300)
}

fn table(rows: &[[Value; 5]], of_a_batch: usize) -> Table {
    let columns = ["a", "b", "ward", "c", "d", "y"].map(|name| TableColumn { name: name.to_owned(), unreadable: None });
    let rows = rows.to_vec();
    Table::new("t", columns.to_vec(), move |used, batches| {
        for (part, chunk) in rows.chunks(of_a_batch).enumerate() {
            let mut batch = Batch::new(used.len());
            for (place, &column) in used.iter().enumerate() {
                for (i, row) in chunk.iter().enumerate() {
                    match row.get(column) {
                        // Numbers come singly or together.
                        Some(Value::Number(number)) if part % 2 == 0 => batch.push_numbers(place, &[*number])?,
                        Some(Value::Missing) if part % 2 == 0 => batch.push_numbers(place, &[f64::NAN])?,
                        Some(value) => batch.push(place, value.cell())?,
                        None => batch.push(place, Cell::Number((i % 2) as f64))?,
                    }
                }
            }
            batches.send(batch)?;
        }
        Ok(())
    })
}

fn text(rows: &[[Value; 5]], of_a_batch: usize) -> Input {
    let mut text = "a,b,ward,c,d,y\n".to_owned();
    for chunk in rows.chunks(of_a_batch) {
        for (i, row) in chunk.iter().enumerate() {
            row.iter().for_each(|value| text.push_str(&format!("{},", value.text())));
            text.push_str(&format!("{}\n", i % 2));
        }
    }
    Input::from_bytes("t", text.into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn typed_cells_are_encoded_as_their_text(
        rows in rows(),
        of_a_batch in 1usize..120,
        threads in 1usize..4,
    ) {
        let encoder = Encoder::new(&Schema::parse("s.toml", SCHEMA).unwrap(), Encoding::UNIT_ROWS).unwrap();
        let workers = Workers::new(NonZeroUsize::new(threads).unwrap());
        let load = |input: Input| load_csv::<f64>(input, &encoder, &CsvOptions::default());
        let typed = load(Input::from_table(table(&rows, of_a_batch)).with_workers(workers));
        let of_text = load(text(&rows, of_a_batch));
        match (typed, of_text) {
            (Ok(typed), Ok(of_text)) => {
                prop_assert!(bits(&typed.examples) == bits(&of_text.examples));
                prop_assert_eq!(format!("{:?}", typed.warnings), format!("{:?}", of_text.warnings));
            }
            (Err(typed), Err(of_text)) => {
                prop_assert_eq!(typed.code(), of_text.code());
                prop_assert_eq!(typed.column(), of_text.column());
                // A file has a header.
                prop_assert_eq!(typed.line().map(|line| line + 1), of_text.line());
            }
            (typed, of_text) => prop_assert!(false, "{:?} {:?}", typed.map(drop), of_text.map(drop)),
        }
    }
}
