mod agreement;
mod changes;
mod chunks;
mod refusals;
mod regular;
mod swallowed;
mod typed;

use std::io::{self, Read, Write};

use super::*;
use crate::block::Rows;
use crate::encode::{Encoder, Encoding, LibsvmFormat, MAX_FEATURES};
use crate::examples::{Examples, Feature};
use crate::schema::{Label, LabelRange, Schema};

const SCHEMA: &str = "\
missing = ['', 'NA']
label = { column = 'y', positive = 'yes', negative = 'no' }
columns.age = { type = 'numeric', min = 0, max = 100 }
columns.city = { type = 'categorical', categories = ['Rome', 'Oslo', 'São Paulo, SP'] }
columns.note = { type = 'drop', line_ends = true }
";

const PEOPLE: &str = "\
city,age,note,y
Rome,41,\"a \"\"quoted\"\"
note\",yes
\"São Paulo, SP\",17.25,,no
Oslo,1e2,x,no
";

fn schema() -> Schema {
    Schema::parse("schema.toml", SCHEMA).unwrap()
}

fn encoder() -> Encoder {
    Encoder::new(&schema(), Encoding::UNIT_ROWS).unwrap()
}

fn load_text(text: &str) -> Result<Loaded<f64>, crate::DataError> {
    load_csv(Input::from_bytes("people.csv", text.as_bytes().to_vec()), &encoder(), &CsvOptions::default())
}

/// Offsets, columns, values, targets and marks.
type Bits = (Vec<usize>, Vec<u32>, Vec<u64>, Vec<u64>, Option<Vec<bool>>);

/// Everything that is stored, as bits.
fn bits(examples: &Examples<f64>) -> Bits {
    let block = examples.block();
    let to_bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
    let (offsets, indices, values) = match block.rows {
        Rows::Dense { values, .. } => (vec![], vec![], to_bits(values)),
        Rows::Sparse { offsets, indices, values, .. } => (offsets.to_vec(), indices.to_vec(), to_bits(values)),
    };
    (offsets, indices, values, to_bits(block.targets), block.valid.map(<[bool]>::to_vec))
}

pub(super) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns its bytes in pieces of the given lengths, then an error if there is one.
struct Dribble {
    bytes: Vec<u8>,
    given: usize,
    step: usize,
    error: Option<io::ErrorKind>,
}

impl Read for Dribble {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.step.min(out.len()).min(self.bytes.len() - self.given);
        if count == 0 {
            return self.error.map_or(Ok(0), |kind| Err(kind.into()));
        }
        out[..count].copy_from_slice(&self.bytes[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

#[test]
fn a_small_file_by_hand() {
    let loaded = load_text(PEOPLE).unwrap();
    let Rows::Dense { values, dim } = loaded.examples.block().rows else { panic!("3 of 5 features are not zero") };
    assert_eq!((dim, loaded.examples.targets()), (5, &[1.0, -1.0, -1.0][..]));
    let expected = [[-0.18, 1.0, 0.0, 0.0, 1.0], [-0.655, 0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0, 1.0]];
    for (row, expected) in values.chunks(5).zip(expected) {
        let norm = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!(row.iter().zip(expected).all(|(found, wanted)| (found - wanted / norm).abs() < 1e-14), "{row:?}");
    }
    assert_eq!(loaded.examples.block().valid, None, "no record of this schema can be null");
    assert_eq!(loaded.warnings, []);
}

#[test]
fn warnings_are_about_content_and_do_not_refuse() {
    let text = "age,city,note,extra,y\n-5,Rome,a,1,no\n101,Rome,a,1,no\n";
    let warnings = load_text(text).unwrap().warnings;
    assert_eq!(
        warnings,
        [
            CuratorWarning::UnusedColumns { columns: vec!["extra".into()] },
            CuratorWarning::Clamped { column: "age".into(), values: 2 },
            CuratorWarning::ConstantColumn { column: "city".into() },
            CuratorWarning::SingleClass { column: "y".into(), class: "negative".into() },
        ]
    );
    assert!(warnings.iter().all(|warning| !warning.to_string().is_empty()));
    let text = "age,city,y\n50,Rome,yes\n";
    assert_eq!(load_text(text).unwrap().examples.len(), 1, "a single row is data");

    let neutral = SCHEMA.replace("max = 100 }", "max = 100, on_missing = 'neutral', on_unreadable = 'neutral' }");
    let encoder = Encoder::new(&Schema::parse("s", &neutral).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let load = |text: &str| {
        load_csv::<f64>(Input::from_bytes("p", text.as_bytes().to_vec()), &encoder, &CsvOptions::default()).unwrap()
    };
    let some = load("age,city,y\n50,Rome,yes\nNA,Rome,no\nnan,Oslo,no\n60,Oslo,no\n");
    assert_eq!(some.examples.block().valid, Some(&[true, false, false, true][..]));
    assert_eq!(some.examples.targets(), &[1.0, 0.0, 0.0, -1.0]);
    assert!(some.warnings.contains(&CuratorWarning::Neutral { records: 2 }));
    let Rows::Dense { values, .. } = some.examples.block().rows else { panic!("dense") };
    assert!(values[5..15].iter().all(|value| *value == 0.0), "the intercept of a null record is 0 too");
    let none = load("age,city,y\n50,Rome,yes\n60,Oslo,no\n");
    assert_eq!(none.examples.block().valid, Some(&[true, true][..]), "marks are kept whatever the records hold");
}

#[test]
fn single_precision_is_loaded_towards_zero() {
    let options = CsvOptions::default();
    let single = load_csv::<f32>(Input::from_bytes("p", PEOPLE.into()), &encoder(), &options).unwrap().examples;
    let converted = load_text(PEOPLE).unwrap().examples.to_f32();
    let (Rows::Dense { values: a, .. }, Rows::Dense { values: b, .. }) = (single.block().rows, converted.block().rows)
    else {
        panic!("dense")
    };
    assert_eq!((a, single.targets()), (b, converted.targets()));
    assert_eq!(f32::narrow(0.1), f32::from_bits(0.1_f32.to_bits() - 1));
}

#[test]
fn libsvm_by_hand() {
    let read = |text: &str, format: &LibsvmFormat| {
        load_libsvm::<f64>(Input::from_bytes("a.libsvm", text.as_bytes().to_vec()), format, Encoding::UNIT_ROWS)
    };
    let text = "+1 2:2 3:-2\r\n\n# nothing\n-1.0\n0 1:1e300 # last\n";
    let declared = LibsvmFormat { features: Some(3), ..Default::default() };
    let (encoder, loaded) = read(text, &declared).unwrap();
    assert_eq!((encoder.dim(), loaded.examples.len(), loaded.examples.dim()), (4, 3, 4));
    let Rows::Sparse { offsets, indices, values, .. } = loaded.examples.block().rows else { panic!("sparse") };
    assert_eq!((offsets, indices), (&[0, 3, 4, 6][..], &[1, 2, 3, 3, 0, 3][..]));
    for (found, wanted) in values.iter().zip([2.0 / 3.0, -2.0 / 3.0, 1.0 / 3.0, 1.0, 1.0, 1e-300]) {
        assert!((found - wanted).abs() < 1e-14, "{values:?}");
    }
    assert_eq!(loaded.examples.targets(), &[1.0, -1.0, -1.0]);

    let (found, narrowed) = read(text, &LibsvmFormat::default()).unwrap();
    assert_eq!(bits(&narrowed.examples), bits(&loaded.examples), "the width that the data has is 3 as well");
    let crate::encode::InputFormat::Libsvm(format) = found.input() else { panic!("libsvm") };
    assert_eq!((format.features, format.features_from_data, narrowed.examples.dim()), (Some(3), true, 4));

    let zero_based = LibsvmFormat { zero_based: true, ..Default::default() };
    let (_, shifted) = read("+1 1:2 2:-2\n-1\n0 0:1e300\n", &zero_based).unwrap();
    assert_eq!(bits(&shifted.examples), bits(&loaded.examples));

    let mut records = RecordReader::new(
        Input::from_bytes("a.libsvm", text.as_bytes().to_vec()),
        &encoder,
        &CsvOptions::default(),
        true,
    )
    .unwrap();
    let mut targets = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        assert_eq!(record.cells().count(), 0);
        targets.push((record.line(), record.row().target().unwrap()));
    }
    assert_eq!(targets, [(1, 1.0), (4, -1.0), (5, -1.0)]);
}

#[test]
fn several_classes_and_numbers_in_both_forms() {
    let load = |label: &str, rows: &str| {
        let schema =
            Schema::parse("s", &format!("label = {{ column = 'y', {label} }}\ncolumns.x = {{ type = 'indicator' }}"));
        let encoder = Encoder::new(&schema.unwrap(), Encoding::UNIT_ROWS).unwrap();
        let input = Input::from_bytes("f.csv", format!("x,y\n{rows}").into());
        load_csv::<f32>(input, &encoder, &CsvOptions::default()).map(|loaded| {
            let warnings: Vec<_> =
                loaded.warnings.into_iter().filter(|warning| !warning.to_string().contains("`x`")).collect();
            (loaded.examples.targets().to_vec(), warnings)
        })
    };
    let column = || "y".to_owned();
    let classes = "classes = ['a', 'b', 'c']";
    assert_eq!(load(classes, "0,c\n1,a\n1,b\n").unwrap(), (vec![2.0, 0.0, 1.0], vec![]));
    assert_eq!(
        load(classes, "0,c\n1,c\n").unwrap(),
        (vec![2.0, 2.0], vec![CuratorWarning::SingleClass { column: column(), class: "c".into() }])
    );
    assert_eq!(
        load(classes, "0,c\n1,b\n").unwrap().1,
        vec![CuratorWarning::EmptyClasses { column: column(), classes: vec!["a".into()] }]
    );
    assert_eq!(
        load("type = 'numeric', min = 0, max = 3", "0,1\n1,4\n0,-2\n").unwrap(),
        (vec![-0.333_333_3, 1.0, -1.0], vec![CuratorWarning::Clamped { column: column(), values: 2 }])
    );
    assert_eq!(
        load("type = 'numeric', min = 0, max = 3", "0,3\n1,3\n").unwrap().1,
        vec![CuratorWarning::ConstantLabel { column: column() }]
    );
    let lines = |label: Label, text: &str| {
        let format = LibsvmFormat { features: Some(2), label, ..Default::default() };
        load_libsvm::<f64>(Input::from_bytes("f.libsvm", text.into()), &format, Encoding::UNIT_ROWS)
            .map(|(encoder, loaded)| (loaded.examples.targets().to_vec(), encoder.target_bound()))
            .map_err(|error| (error.code(), error.line()))
    };
    let digits = || Label::classes("label", ["0", "1", "2", "9"].map(String::from).to_vec());
    assert_eq!(lines(digits(), "9 1:1\n1.0 2:1\n+2\n"), Ok((vec![3.0, 1.0, 2.0], 3.0)));
    assert_eq!(lines(digits(), "9 1:1\n3 2:1\n"), Err(("label.unknown", Some(2))));
    let number = || Label::number("label", LabelRange { min: -10.0, max: 10.0 });
    assert_eq!(lines(number(), "-5 1:1\n2.5 2:1\n1e9\n"), Ok((vec![-0.5, 0.25, 1.0], 1.0)));
    assert_eq!(lines(number(), "-5 1:1\nnan 2:1\n"), Err(("libsvm.bad_value", Some(2))));
    let lenient = Label { unreadable_is_neutral: true, ..number() };
    assert_eq!(lines(lenient, "-5 1:1\nnan 2:1\n"), Ok((vec![-0.5, 0.0], 1.0)), "a null record has target 0");
}

/// Twice as many columns take twice as long: a pass over all columns for each of them would take minutes here.
#[test]
fn a_table_of_a_hundred_thousand_columns() {
    const COLUMNS: usize = 100_000;
    let names: Vec<String> = (0..COLUMNS).map(|i| format!("x{i}")).collect();
    let row = |value: &str| vec![value; COLUMNS].join(",");
    let text = format!("{},y\n{},no\n{},yes\n", names.join(","), row("0"), row("2.5"));
    let input = || Input::from_bytes("wide.csv", text.clone().into_bytes());
    let drafted = crate::draft::draft(input(), &crate::draft::DraftOptions::new("y"), &CsvOptions::default()).unwrap();
    let mut schema = Schema::parse("wide.toml", &drafted.to_toml()).unwrap();
    assert_eq!(schema.unreviewed().len(), COLUMNS + 1);
    schema.assume_public(&[&names[..], &["y".to_owned()]].concat()).unwrap();
    schema.check_reviewed().unwrap();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    let loaded = load_csv::<f64>(input(), &encoder, &CsvOptions::default()).unwrap();
    assert_eq!((loaded.examples.dim(), loaded.examples.targets()), (COLUMNS + 1, &[-1.0, 1.0][..]));
    let mut reader = RecordReader::new(input(), &encoder, &CsvOptions::default(), true).unwrap();
    assert!(reader.next_record().unwrap().is_some());
}
