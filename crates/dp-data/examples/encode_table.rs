//! From a CSV file to examples: draft a schema, review it, encode.
//!
//! `cargo run -p dp-data --features files --example encode_table`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use dp_data::draft::{DraftOptions, draft};
use dp_data::read::{CsvOptions, Input, RecordReader, load_csv};
use dp_data::{Encoder, Encoding, Schema};

const PEOPLE: &str = "\
age,work,capital,income
39,public,2174,low
50,self,0,low
38,private,0,low
53,private,14084,high
28,private,0,high
37,public,0,low
";

fn main() -> Result<(), Box<dyn Error>> {
    let file = || Input::from_bytes("people.csv", PEOPLE.as_bytes().to_vec());
    let csv = CsvOptions::default();

    // A draft takes ranges, categories and classes from the records, so training refuses it.
    let drafted = draft(file(), &DraftOptions::new("income"), &csv)?;
    println!("{}", drafted.to_toml());
    if let Err(refused) = drafted.schema.check_reviewed() {
        println!("as drafted: {refused}\n");
    }

    // A person replaces them by publicly known ones.
    let reviewed = r#"
        label = { column = "income", positive = "high", negative = "low" }
        columns.age = { type = "numeric", min = 0, max = 120 }
        columns.work = { type = "categorical", categories = ["private", "public", "self", "other"] }
        columns.capital = { type = "numeric", min = 0, max = 100000, log1p = true }
    "#;
    let schema = Schema::parse("reviewed.toml", reviewed)?;
    schema.check_reviewed()?;

    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
    println!("features: {}", encoder.feature_names().join(", "));
    let loaded = load_csv::<f64>(file(), &encoder, &csv)?;
    println!("loaded {:?}, for the curator: {:?}\n", loaded.examples, loaded.warnings);

    // Prediction streams records with their original cells.
    let weights: Vec<f64> = (0..encoder.dim()).map(|feature| feature as f64 - 3.0).collect();
    let mut records = RecordReader::new(file(), &encoder, &csv, false)?;
    while let Some(record) = records.next_record()? {
        let cells: Vec<_> = record.cells().collect();
        println!("{:<24} score {:+.3}", cells.join(","), record.row().dot(&weights));
    }
    Ok(())
}
