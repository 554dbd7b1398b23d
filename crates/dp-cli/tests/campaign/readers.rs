//! Mutated files given directly to the readers, without a process for each. No reader may panic, and accepted data must
//! satisfy what every guarantee relies on: rows within the encoder's bound, targets within theirs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dp::accounting::Line;
use dp::model::ModelFile;
use dp::ranker::{RankerFile, SCHEMA as RANKER};
use dp::sealed::Sealed;
use dp::verify;
use dp_data::draft::{self, DraftOptions};
use dp_data::encode::{ImageFormat, LibsvmFormat};
use dp_data::read::{CsvOptions, Input, Loaded, load_csv, load_images, load_libsvm};
use dp_data::schema::Label;
use dp_data::{DataError, Encoder, Encoding, Rows, Schema};
use dp_rank::read::{CsvColumns, ListOptions, ReadError, load_letor};

use crate::Campaign;
use crate::judge::{Ending, Fault, Place, Verdict};
use crate::mutate::mutate;
use crate::specimens::SCHEMA;
use crate::support::Dice;

/// A reader: returns whether the file was accepted, or the error in the data read.
type Reader = fn(&Campaign, Vec<u8>) -> Result<bool, String>;

/// Specimens and the readers that get them mutated.
const READERS: &[(&str, Reader)] = &[
    ("people.csv", csv),
    ("people.csv", drafted),
    ("people.csv.gz", csv),
    ("people.csv.xz", csv),
    ("schema.toml", schema),
    ("drafted.toml", schema),
    ("rows.svm", libsvm),
    ("images.idx", images),
    ("labels.idx", labels),
    ("lists.txt", letor),
    ("lists.csv", lists),
    ("questions.jsonl", questions),
    ("model.json", model),
    ("gaussian.json", model),
    ("images.json", model),
    ("ranker.json", model),
];

pub fn run(campaign: &Campaign, _: &Place, dice: &mut Dice) -> Verdict {
    let (name, reader) = READERS[dice.below(READERS.len() as u64) as usize];
    let content = mutate(name, &campaign.specimens[name], dice);
    let keep = content.clone();
    let fault = match catch_unwind(AssertUnwindSafe(|| reader(campaign, content))) {
        Ok(Ok(accepted)) => {
            let ending = if accepted { Ending::Succeeded } else { Ending::Refused };
            return Verdict { ending, faults: vec![] };
        }
        Ok(Err(what)) => (Fault::Believed, what),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            (
                Fault::Panic,
                text.or_else(|| panic.downcast_ref().map(|text: &&str| (*text).to_owned())).unwrap_or_default(),
            )
        }
    };
    let what = format!("{name}: {}: {:?}", fault.1, String::from_utf8_lossy(&keep));
    Verdict { ending: Ending::Refused, faults: vec![(fault.0, what)] }
}

/// Checks that every row is within the encoder's bound and every target within its own.
fn bounded(loaded: Result<Loaded<f64>, DataError>, encoder: &Encoder) -> Result<bool, String> {
    let Ok(loaded) = loaded else { return Ok(false) };
    let block = loaded.examples.block();
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let longest = match block.rows {
        Rows::Dense { values, dim, .. } => values.chunks(dim).map(norm).fold(0.0, f64::max),
        Rows::Sparse { offsets, values, .. } => {
            offsets.windows(2).map(|row| norm(&values[row[0]..row[1]])).fold(0.0, f64::max)
        }
    };
    let finite = match block.rows {
        Rows::Dense { values, .. } | Rows::Sparse { values, .. } => values.iter().all(|value| value.is_finite()),
    };
    let largest = block.targets.iter().fold(0.0, |largest: f64, target| largest.max(target.abs()));
    if !finite || longest > encoder.row_bound() * (1.0 + 1e-12) {
        return Err(format!("a row of norm {longest} beyond {}", encoder.row_bound()));
    }
    if block.targets.iter().any(|target| !target.is_finite()) || largest > encoder.target_bound() {
        return Err(format!("a target of {largest} beyond {}", encoder.target_bound()));
    }
    Ok(true)
}

fn csv(_: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    let schema = Schema::parse("schema.toml", SCHEMA).expect("a schema");
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).expect("an encoder");
    bounded(load_csv(Input::from_bytes("people.csv", content), &encoder, &CsvOptions::default()), &encoder)
}

/// A schema drafted from a file reads that file, or rejects it for its content.
fn drafted(_: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    let input = Input::from_bytes("people.csv", content.clone());
    let Ok(mut draft) = draft::draft(input, &DraftOptions::new("earns"), &CsvOptions::default()) else {
        return Ok(false);
    };
    let text = draft.to_toml();
    let again = Schema::parse("draft.toml", &text).map_err(|error| format!("a draft that is no schema: {error}"))?;
    if again != draft.schema {
        return Err(format!("a draft that reads as another schema: {text}"));
    }
    draft.schema.assume_all_public();
    let Ok(encoder) = Encoder::new(&draft.schema, Encoding::UNIT_ROWS) else { return Ok(false) };
    bounded(load_csv(Input::from_bytes("people.csv", content), &encoder, &CsvOptions::default()), &encoder)
}

/// An accepted schema is unchanged by writing and reading.
fn schema(campaign: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    let Ok(text) = String::from_utf8(content) else { return Ok(false) };
    let Ok(schema) = Schema::parse("schema.toml", &text) else { return Ok(false) };
    let written = schema.to_toml();
    match Schema::parse("again.toml", &written) {
        Ok(again) if again == schema => {}
        other => return Err(format!("written {written} and read {other:?}")),
    }
    let Ok(encoder) = Encoder::new(&schema, Encoding::UNIT_ROWS) else { return Ok(false) };
    let people = Input::from_bytes("people.csv", campaign.specimens["people.csv"].clone());
    bounded(load_csv(people, &encoder, &CsvOptions::default()), &encoder)?;
    Ok(true)
}

fn libsvm(_: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    let format = LibsvmFormat { features: Some(9), ..LibsvmFormat::default() };
    let encoder = Encoder::libsvm(format.clone(), Encoding::UNIT_ROWS).expect("an encoder");
    let loaded = load_libsvm(Input::from_bytes("rows.svm", content), &format, Encoding::UNIT_ROWS);
    bounded(loaded.map(|(_, loaded)| loaded), &encoder)
}

fn digits(images: Vec<u8>, labels: Vec<u8>) -> Result<bool, String> {
    let label = Label::classes("label", (0..4).map(|class| class.to_string()).collect());
    let format = ImageFormat::new(vec![3, 2], label);
    let encoder = Encoder::images(format, Encoding::UNIT_ROWS).expect("an encoder");
    let input = Input::from_bytes("images.idx", images).with_labels(Input::from_bytes("labels.idx", labels));
    bounded(load_images(input, &encoder), &encoder)
}

fn images(campaign: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    digits(content, campaign.specimens["labels.idx"].clone())
}

fn labels(campaign: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    digits(campaign.specimens["images.idx"].clone(), content)
}

/// Checks that grades and features of all lists are within the declared ranges.
fn ranked(loaded: Result<dp_rank::read::Loaded, ReadError>) -> Result<bool, String> {
    let Ok(loaded) = loaded else { return Ok(false) };
    for at in 0..loaded.lists.len() {
        let list = loaded.lists.list(at);
        if list.grades().iter().any(|&grade| grade > 2) || list.features().values().iter().any(|x| !x.is_finite()) {
            return Err(format!("list {at} holds what was not declared"));
        }
    }
    Ok(true)
}

fn letor(_: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    ranked(load_letor(Input::from_bytes("lists.txt", content), &ListOptions::default()))
}

fn lists(_: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    let columns = CsvColumns { query: "user".into(), grade: "clicks".into(), features: None };
    let input = Input::from_bytes("lists.csv", content);
    ranked(dp_rank::read::load_csv(input, &columns, &CsvOptions::default(), &ListOptions::default()))
}

fn questions(_: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    let good = |line: &[u8]| Line::parse(line).request.is_ok();
    Ok(content.split(|&byte| byte == b'\n').fold(true, |all, line| all & good(line)))
}

fn model(_: &Campaign, content: Vec<u8>) -> Result<bool, String> {
    let Ok(sealed) = Sealed::parse(&content) else { return Ok(false) };
    let outcome = match sealed.format() {
        Some(RANKER) => RankerFile::from_sealed(sealed).and_then(|file| verify::ranker(&file)),
        _ => ModelFile::from_sealed(sealed).and_then(|file| verify::model(&file, 1 << 16)),
    };
    match outcome {
        Ok(stated) if stated.epsilon.is_nan() || stated.delta.is_nan() => Err("a guarantee that is no number".into()),
        outcome => Ok(outcome.is_ok()),
    }
}
