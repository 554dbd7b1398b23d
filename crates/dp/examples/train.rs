//! Trains on a table, verifies the file and applies the model. `cargo run --release -p dp --example train`
#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::fmt::Write as _;

use dp::metrics::Measure;
use dp_data::Schema;
use dp_data::read::{CsvOptions, Input, RecordReader};

/// The public facts about the table.
const SCHEMA: &str = r#"
[label]
column = "buys"
positive = "yes"
negative = "no"

[columns.age]
type = "numeric"
min = 18
max = 78

[columns.visits]
type = "numeric"
min = 0
max = 30
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = Schema::parse("schema.toml", SCHEMA)?;
    let file = dp::Training::new(0.5, 1e-6)?.on_csv(&schema, table(0..20_000))?;
    let text = file.to_text()?;

    // Anyone with the file can check the guarantee, and apply the model to other records.
    let file = dp::ModelFile::parse(text.as_bytes())?;
    let verified = dp::verify::model(&file, dp::verify::WORK)?;
    println!("epsilon {} by {}", verified.epsilon, verified.theorem);

    let mut records = RecordReader::new(table(20_000..25_000), &file.model.encoder, &CsvOptions::default(), true)?;
    let mut measure = Measure::new(&file.model);
    let mut scores = vec![0.0; file.model.kind.outputs()];
    while let Some(record) = records.next_record()? {
        if let Some(target) = record.row().target() {
            file.model.score(record.row(), &mut scores);
            measure.push(&scores, target)?;
        }
    }
    let (_, figures) = measure.finish().ok_or("no record")?;
    let accuracy = figures.accuracy().unwrap_or_default();
    println!("held-out accuracy {accuracy:.3}");
    assert!(verified.epsilon <= 0.5 && accuracy > 0.7);
    Ok(())
}

/// Ages and visits; frequent visitors buy.
fn table(rows: core::ops::Range<u64>) -> Input {
    let mut text = String::from("age,visits,buys\n");
    for i in rows {
        let (age, visits) = (18 + i * 7 % 60, i * 13 % 31);
        let buys = if 2 * visits + age % 10 > 34 { "yes" } else { "no" };
        let _ = writeln!(text, "{age},{visits},{buys}");
    }
    Input::from_bytes("people.csv", text.into_bytes())
}
