//! The record of finished runs: one line of CSV each, on the disk before the next one starts.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::algorithm::Outcome;
use crate::cell::{Cell, Experiment};
use crate::error::Error;
use crate::ranker::Ranked;
use crate::setting::Setting;

const HEADER: &str = "key,data,algorithm,loss,lambda,privacy,tuning,passes,batch_size,step,rows,repetition,accuracy,\
                      objective,seconds,reads,coverage,ranking";

/// What older records lack, in the header and in each line: those of before `reads` and `coverage`, and of before `ranking`.
const LACKING: [(&str, &str); 2] = [(",reads,coverage,ranking", ",0.0,,"), (",ranking", ",")];

/// Finished runs, in memory and in `runs.csv`.
///
/// A run is found by its [key](Cell::key), so that runs of an older configuration are kept and never taken for new ones. A
/// line that was cut off, as by a crash while it was written, is forgotten and its run done again.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    runs: BTreeMap<String, Outcome>,
}

impl Store {
    /// Opens or creates the record at `path`, and reads what is there.
    ///
    /// # Errors
    /// [`Error::File`], and [`Error::Record`] for a file that is something else.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let io = || Error::file(path);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io())?;
        let mut text = String::from_utf8_lossy(&std::fs::read(path).map_err(io())?).into_owned();
        if let Some(completed) = completed(&text) {
            file.set_len(0).map_err(io())?;
            file.write_all(completed.as_bytes()).map_err(io())?;
            text = completed;
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            if whole == 0 && !HEADER.starts_with(&text) {
                return Err(refuse(path, 1, "this is no record of runs"));
            }
            file.set_len(whole as u64).map_err(io())?;
            file.seek(SeekFrom::End(0)).map_err(io())?;
        }
        let mut runs = BTreeMap::new();
        for (line, row) in text[..whole].lines().enumerate() {
            if line == 0 {
                if row != HEADER {
                    return Err(refuse(path, 1, "this is no record of runs, or one with other columns"));
                }
                continue;
            }
            let (key, outcome) = parse(row).ok_or_else(|| refuse(path, line + 1, "not a finished run"))?;
            runs.insert(key, outcome);
        }
        if whole == 0 {
            writeln!(file, "{HEADER}").map_err(io())?;
        }
        file.sync_all().map_err(io())?;
        Ok(Self { path: path.to_owned(), file, runs })
    }

    /// What was measured of a run, if it has finished.
    pub fn get(&self, cell: &Cell) -> Option<&Outcome> {
        self.runs.get(&cell.key())
    }

    /// Number of finished runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether nothing has finished.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a finished run and waits until the disk has it.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn append(&mut self, cell: &Cell, outcome: Outcome) -> Result<(), Error> {
        let (key, repetition) = (cell.key(), cell.repetition);
        let columns = match &cell.experiment {
            Experiment::Model(setting) => columns(setting),
            Experiment::Ranker(setting) => setting.columns(),
        };
        let Outcome { accuracy, objective, seconds, reads, coverage, ranked } = outcome;
        let (coverage, ranking) = (coverage.map(joined), ranked.map(|ranked| joined(ranked.to_array())));
        let line = format!(
            "{key},{},{repetition},{accuracy:?},{objective:?},{seconds:?},{reads:?},{},{}\n",
            columns.join(","),
            coverage.unwrap_or_default(),
            ranking.unwrap_or_default(),
        );
        // One call, so that no other line comes in between.
        self.file.write_all(line.as_bytes()).map_err(Error::file(&self.path))?;
        self.file.sync_data().map_err(Error::file(&self.path))?;
        self.runs.insert(key, outcome);
        Ok(())
    }
}

/// What a record says of a linear model: data, algorithm, loss, λ, privacy, tuning, passes, batch size, step, rows.
fn columns(setting: &Setting) -> [String; 10] {
    [
        setting.data.to_string(),
        setting.algorithm.to_string(),
        setting.loss.to_string(),
        setting.lambda.to_string(),
        setting.privacy.to_string(),
        setting.tuning.to_string(),
        setting.passes.to_string(),
        setting.batch_size.to_string(),
        setting.step.to_string(),
        setting.rows.map(|rows| rows.to_string()).unwrap_or_default(),
    ]
}

fn refuse(path: &Path, line: usize, what: &str) -> Error {
    Error::Record { path: path.to_owned(), line, what: what.to_owned() }
}

/// The text of a record of before there were as many columns, with all of them; what was cut off is left away.
fn completed(text: &str) -> Option<String> {
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut lines = whole.lines();
    let header = lines.next()?;
    let (_, end) = LACKING.iter().find(|(lacking, _)| HEADER.strip_suffix(lacking) == Some(header))?;
    let rest = lines.map(|line| format!("{line}{end}\n"));
    Some(core::iter::once(format!("{HEADER}\n")).chain(rest).collect())
}

fn parse(row: &str) -> Option<(String, Outcome)> {
    let cells: Vec<&str> = row.split(',').collect();
    if cells.len() != HEADER.split(',').count() {
        return None;
    }
    let [.., accuracy, objective, seconds, reads, coverage, ranking] = cells[..] else { return None };
    let number = |text: &str| text.parse::<f64>().ok();
    let outcome = Outcome {
        accuracy: number(accuracy)?,
        objective: number(objective)?,
        seconds: number(seconds)?,
        reads: number(reads)?,
        coverage: separated(coverage)?,
        ranked: separated(ranking)?.map(Ranked::from_array),
    };
    Some((cells[0].to_owned(), outcome))
}

/// Numbers in one cell.
fn joined<const N: usize>(numbers: [f64; N]) -> String {
    numbers.map(|number| format!("{number:?}")).join(" ")
}

/// The inverse: none of an empty cell, and no answer for anything else than so many numbers.
fn separated<const N: usize>(cell: &str) -> Option<Option<[f64; N]>> {
    if cell.is_empty() {
        return Some(None);
    }
    let numbers: Option<Vec<f64>> = cell.split(' ').map(|number| number.parse().ok()).collect();
    Some(Some(numbers?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::dataset::DataSet;
    use crate::ranker::{Loss, Method, RankerSetting, Shape};
    use crate::setting::Privacy;

    fn cell(repetition: u32) -> Cell {
        let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Approximate { epsilon: 0.1 });
        Cell::new(setting, repetition)
    }

    const OUTCOME: Outcome = Outcome {
        accuracy: 0.1 + 0.2,
        objective: 1e-9,
        seconds: 1.5,
        reads: 7.25,
        coverage: Some([0.5, 0.1, 0.7, 1.0]),
        ranked: None,
    };

    #[test]
    fn what_was_appended_is_there_again_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let mut store = Store::open(&path).unwrap();
        assert!(store.is_empty() && store.get(&cell(0)).is_none());
        store.append(&cell(0), OUTCOME).unwrap();
        store.append(&cell(1), Outcome { objective: f64::INFINITY, ..OUTCOME }).unwrap();
        let again = Store::open(&path).unwrap();
        assert_eq!((again.len(), again.get(&cell(0))), (2, Some(&OUTCOME)));
        assert_eq!(again.get(&cell(1)).unwrap().objective, f64::INFINITY);
        assert!(again.get(&cell(2)).is_none());
    }

    #[test]
    fn a_record_with_fewer_columns_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let first = format!("{},sphere,bolt-on,logistic,0,epsilon,given,10,50,usual,,0,0.5,0.25,1.5", cell(0).key());
        let plain = Outcome { accuracy: 0.5, objective: 0.25, seconds: 1.5, ..Outcome::default() };
        let covered = Outcome { reads: 7.25, coverage: OUTCOME.coverage, ..plain };
        for (lacking, line, expected) in [
            (",reads,coverage,ranking", first.clone(), plain),
            (",ranking", format!("{first},0.0,"), plain),
            (",ranking", format!("{first},7.25,0.5 0.1 0.7 1.0"), covered),
        ] {
            let old = HEADER.strip_suffix(lacking).unwrap();
            std::fs::write(&path, format!("{old}\n{line}\n{}", &line[..20])).unwrap();
            let mut store = Store::open(&path).unwrap();
            assert_eq!((store.len(), store.get(&cell(0))), (1, Some(&expected)));
            store.append(&cell(1), OUTCOME).unwrap();
            let again = Store::open(&path).unwrap();
            assert_eq!((again.get(&cell(0)), again.get(&cell(1))), (Some(&expected), Some(&OUTCOME)));
        }
    }

    #[test]
    fn points_of_a_ranker_are_kept_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let setting = RankerSetting::new(DataSet::Mq2008, Shape::Linear, Method::NonPrivate(Loss::ListNet));
        let cells = [50, 400].map(|after| Cell::new(RankerSetting { after, ..setting }, 3));
        let mut store = Store::open(&path).unwrap();
        for (cell, map) in cells.iter().zip([0.1 + 0.2, 0.5]) {
            let ranked = Some(Ranked { map, ndcg: [0.25, 1e-17, 1.0, 0.0] });
            let nothing = Outcome { accuracy: f64::NAN, objective: f64::NAN, ..Outcome::default() };
            store.append(cell, Outcome { ranked, ..nothing }).unwrap();
        }
        let again = Store::open(&path).unwrap();
        for (cell, map) in cells.iter().zip([0.1 + 0.2, 0.5]) {
            let outcome = again.get(cell).unwrap();
            assert_eq!(outcome.ranked, Some(Ranked { map, ndcg: [0.25, 1e-17, 1.0, 0.0] }));
            assert!(outcome.accuracy.is_nan() && outcome.objective.is_nan() && outcome.coverage.is_none());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(",mq2008,ranker linear,list-net,0,none,given,50,10,1,,3,NaN,NaN,"), "{text}");
    }

    #[test]
    fn a_torn_line_is_forgotten_wherever_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let mut store = Store::open(&path).unwrap();
        store.append(&cell(0), OUTCOME).unwrap();
        let whole = std::fs::read(&path).unwrap().len();
        store.append(&cell(1), OUTCOME).unwrap();
        drop(store);
        let bytes = std::fs::read(&path).unwrap();
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut store = Store::open(&path).unwrap();
            assert_eq!(store.get(&cell(0)).is_some(), cut >= whole, "{cut}");
            assert!(store.get(&cell(1)).is_none());
            store.append(&cell(1), OUTCOME).unwrap();
            let again = Store::open(&path).unwrap();
            assert_eq!(again.len(), if cut >= whole { 2 } else { 1 }, "{cut}");
        }
    }

    #[test]
    fn another_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        for text in ["my notes", "my notes\nmore\n", &format!("{HEADER}\nabc,1,2\n")] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Store::open(&path), Err(Error::Record { .. })), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
