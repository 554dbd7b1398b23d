//! Reading the files and preparing the rows.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use dp_data::read::{CsvOptions, CsvReader, Input};
use dp_data::{Examples, Images};
use flate2::read::MultiGzDecoder;

use super::transform::Table;
use super::{DataSet, Prepared, images, synthetic};
use crate::error::Error;

/// Columns of KDD Cup 99 that are not numeric or are binary.
const KDD_SYMBOLIC: [&str; 7] =
    ["protocol_type", "service", "flag", "land", "logged_in", "is_host_login", "is_guest_login"];

pub(super) fn load(set: DataSet, folder: &Path) -> Result<Prepared, Error> {
    let seed = format!("{set}/projection");
    let files = set.files();
    let csv = |index: usize, read: &CsvTask<'_>| read.load(&folder.join(files[index].name));
    let (mut train, mut test) = match set {
        DataSet::Mnist | DataSet::MnistZero => {
            let images = images::load(DataSet::MnistImages, folder)?;
            let (mut train, mut test) = (as_rows(&images.train), as_rows(&images.test));
            for table in [&mut train, &mut test] {
                table.normalise_rows();
                if set == DataSet::Mnist {
                    table.project(50, &seed);
                } else {
                    table.sample_columns(15, &seed);
                    table.targets.iter_mut().for_each(|digit| *digit = if *digit == 0.0 { 1.0 } else { -1.0 });
                }
            }
            (train, Some(test))
        }
        DataSet::Covertype => {
            let table = csv(0, &CsvTask::new("cover_type", &|cell| cell == b"2"))?;
            let (train, test) = table.partition(|i| i % 7 != 6);
            scaled_with_intercept(train, Some(test))
        }
        DataSet::Higgs => {
            let task = CsvTask::new("class_label", &|cell| cell.starts_with(b"1"));
            scaled_with_intercept(csv(0, &task)?, Some(csv(1, &task)?))
        }
        DataSet::KddCup => {
            let (train, test) = csv(0, &kdd(None))?.partition(|i| i % 5 != 4);
            scaled_with_intercept(train, Some(test))
        }
        DataSet::KddCup34 | DataSet::KddCup9 => {
            let mut table = csv(0, &kdd(Some(50_000)))?;
            table.scale_columns(&mut []);
            table.normalise_rows();
            if set == DataSet::KddCup9 {
                table.sample_columns(9, &seed);
            }
            (table, None)
        }
        DataSet::Banknote => scaled_with_intercept(csv(0, &CsvTask::new("class", &|cell| cell == b"1"))?, None),
        DataSet::Occupancy => {
            let task = CsvTask { drop: &["date"], ..CsvTask::new("occupancy", &|cell| cell == b"1") };
            let (mut test, more) = (csv(1, &task)?, csv(2, &task)?);
            test.values.extend(more.values);
            test.targets.extend(more.targets);
            scaled_with_intercept(csv(0, &task)?, Some(test))
        }
        DataSet::Adult => {
            let (mut table, more) =
                (libsvm(&folder.join(files[0].name), 123)?, libsvm(&folder.join(files[1].name), 123)?);
            table.values.extend(more.values);
            table.targets.extend(more.targets);
            with_last_intercept(table)
        }
        DataSet::Bank => {
            let table = csv(0, &CsvTask::new("y", &|cell| cell == b"1"))?;
            with_last_intercept(table)
        }
        DataSet::SparseModel => {
            let (mut train, mut test) = synthetic::sparse_model(100_000, 10_000);
            train.normalise_rows();
            test.normalise_rows();
            (train, Some(test))
        }
        DataSet::Sphere => (synthetic::sphere(), None),
        DataSet::MadeUp { thousands } => (synthetic::made_up(thousands as usize * 1000), None),
        _ => return Err(Error::Data { file: set.to_string(), what: "these are no rows".to_owned() }),
    };
    let shape = |source: dp_data::examples::ShapeError| Error::Data { file: set.to_string(), what: source.to_string() };
    for table in core::iter::once(&mut train).chain(&mut test) {
        table.clip_rows();
    }
    let examples = |table: Table| Examples::dense(table.values, table.targets, table.dim).map_err(shape);
    let truth = (set == DataSet::SparseModel).then(synthetic::sparse_truth);
    Ok(Prepared { train: examples(train)?, test: test.map(examples).transpose()?, classes: set.classes(), truth })
}

fn kdd(rows: Option<usize>) -> CsvTask<'static> {
    CsvTask { drop: &KDD_SYMBOLIC, rows, ..CsvTask::new("label", &|cell| cell != b"normal") }
}

/// Scales columns to `[0, 1]` by the training rows' ranges, prepends a constant 1, and scales rows to norm 1.
fn scaled_with_intercept(mut train: Table, test: Option<Table>) -> (Table, Option<Table>) {
    let mut others: Vec<Table> = test.into_iter().collect();
    train.scale_columns(&mut others);
    let finish = |table: Table| {
        let mut table = table.with_intercept();
        table.normalise_rows();
        table
    };
    (finish(train), others.pop().map(finish))
}

/// Takes every fifth row for testing, scales columns to `[0, 1]` by the training rows' ranges, appends a constant 1, and
/// scales rows to norm 1.
fn with_last_intercept(table: Table) -> (Table, Option<Table>) {
    let (mut train, mut test) = table.partition(|i| i % 5 != 4);
    train.scale_columns(core::slice::from_mut(&mut test));
    let finish = |table: Table| {
        let mut table = table.with_last_intercept();
        table.normalise_rows();
        table
    };
    (finish(train), Some(finish(test)))
}

/// Reads lines `label index:value ...`, with indices from 1 to `dim`.
fn libsvm(path: &Path, dim: usize) -> Result<Table, Error> {
    let mut text = String::new();
    let file = File::open(path).map_err(Error::file(path))?;
    MultiGzDecoder::new(BufReader::new(file)).read_to_string(&mut text).map_err(Error::file(path))?;
    let mut table = Table { dim, ..Table::default() };
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_ascii_whitespace();
        let label = words.next().and_then(|label| label.parse::<f64>().ok());
        let mut row = vec![0.0; dim];
        let read = words.all(|word| {
            let Some((index, value)) = word.split_once(':') else { return false };
            let place = index.parse::<usize>().ok().and_then(|index| row.get_mut(index.checked_sub(1)?));
            let value = value.parse().ok().filter(|value: &f64| value.is_finite());
            place.zip(value).map(|(place, value)| *place = value).is_some()
        });
        let label = label.filter(|label| read && label.is_finite()).ok_or_else(|| Error::Data {
            file: path.display().to_string(),
            what: format!("line {}: expected a label and index:value with indices from 1 to {dim}", number + 1),
        })?;
        table.values.extend(row);
        table.targets.push(if label > 0.0 { 1.0 } else { -1.0 });
    }
    if table.targets.is_empty() {
        return Err(Error::Data { file: path.display().to_string(), what: "there are no rows".to_owned() });
    }
    Ok(table)
}

/// The conversion of a CSV file to rows and targets.
#[derive(Clone, Copy)]
struct CsvTask<'t> {
    label: &'static str,
    positive: &'t dyn Fn(&[u8]) -> bool,
    drop: &'static [&'static str],
    /// Number of leading rows to read, if limited.
    rows: Option<usize>,
}

impl<'t> CsvTask<'t> {
    fn new(label: &'static str, positive: &'t dyn Fn(&[u8]) -> bool) -> Self {
        Self { label, positive, drop: &[], rows: None }
    }

    fn load(&self, path: &Path) -> Result<Table, Error> {
        let name = path.display().to_string();
        let refuse = |error: dp_data::DataError| Error::Data { file: name.clone(), what: error.message() };
        let input = Input::open(&name).map_err(refuse)?;
        let mut reader = CsvReader::new(input, CsvOptions::default()).map_err(refuse)?;
        let label = reader.position(self.label).map_err(refuse)?;
        let columns: Vec<usize> = (0..reader.header().len())
            .filter(|&i| i != label && !self.drop.contains(&reader.header()[i].as_str()))
            .collect();
        let mut table = Table { dim: columns.len(), ..Table::default() };
        while self.rows.is_none_or(|rows| table.rows() < rows) {
            let Some(record) = reader.next_record().map_err(refuse)? else { break };
            for &column in &columns {
                let cell = core::str::from_utf8(record.cell(column)).unwrap_or_default();
                let value = cell.trim().parse().ok().filter(|value: &f64| value.is_finite());
                table.values.push(value.ok_or_else(|| Error::Data {
                    file: name.clone(),
                    what: format!("line {}: `{}` is not a number", record.line(), cell.escape_debug()),
                })?);
            }
            table.targets.push(if (self.positive)(record.cell(label)) { 1.0 } else { -1.0 });
        }
        if table.targets.is_empty() || table.dim == 0 {
            return Err(Error::Data { file: name, what: "there are no rows or no columns of numbers".to_owned() });
        }
        Ok(table)
    }
}

/// Returns images as rows of numbers in `[0, 1]`.
fn as_rows(images: &Images) -> Table {
    let positions: Vec<u32> = (0..images.len() as u32).collect();
    let chosen = images.choose(&positions);
    let pixels = (0..chosen.len()).flat_map(|i| chosen.pixels(i));
    Table {
        values: pixels.map(|&pixel| f64::from(pixel) / 255.0).collect(),
        targets: (0..chosen.len()).map(|i| chosen.label(i) as f64).collect(),
        dim: images.shape().values().unwrap_or_default(),
    }
}
