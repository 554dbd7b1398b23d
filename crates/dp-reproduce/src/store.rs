//! The record of finished runs: one line of CSV each, on the disk before the next one starts.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::algorithm::Outcome;
use crate::error::Error;
use crate::setting::Cell;

const HEADER: &str = "key,data,algorithm,loss,lambda,privacy,tuning,passes,batch_size,step,rows,repetition,accuracy,\
                      objective,seconds,reads,coverage";

/// What a record of before `reads` and `coverage` lacks, in its header and in each line.
const LACKING: [&str; 2] = [",reads,coverage", ",0.0,"];

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
        let (setting, key) = (&cell.setting, cell.key());
        let rows = setting.rows.map(|rows| rows.to_string()).unwrap_or_default();
        let Outcome { accuracy, objective, seconds, reads, coverage } = outcome;
        let coverage = coverage.map(|all| all.map(|share| format!("{share:?}")).join(" ")).unwrap_or_default();
        let line = format!(
            "{key},{},{},{},{},{},{},{},{},{},{rows},{},{accuracy:?},{objective:?},{seconds:?},\
             {reads:?},{coverage}\n",
            setting.data,
            setting.algorithm,
            setting.loss,
            setting.lambda,
            setting.privacy,
            setting.tuning,
            setting.passes,
            setting.batch_size,
            setting.step,
            cell.repetition,
        );
        // One call, so that no other line comes in between.
        self.file.write_all(line.as_bytes()).map_err(Error::file(&self.path))?;
        self.file.sync_data().map_err(Error::file(&self.path))?;
        self.runs.insert(key, outcome);
        Ok(())
    }
}

fn refuse(path: &Path, line: usize, what: &str) -> Error {
    Error::Record { path: path.to_owned(), line, what: what.to_owned() }
}

/// The text of a record of before there were as many columns, with all of them; what was cut off is left away.
fn completed(text: &str) -> Option<String> {
    let old = HEADER.strip_suffix(LACKING[0])?;
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut lines = whole.lines();
    if lines.next() != Some(old) {
        return None;
    }
    let rest = lines.map(|line| format!("{line}{}\n", LACKING[1]));
    Some(core::iter::once(format!("{HEADER}\n")).chain(rest).collect())
}

fn parse(row: &str) -> Option<(String, Outcome)> {
    let cells: Vec<&str> = row.split(',').collect();
    if cells.len() != HEADER.split(',').count() {
        return None;
    }
    let [.., accuracy, objective, seconds, reads, coverage] = cells[..] else { return None };
    let number = |text: &str| text.parse::<f64>().ok();
    let coverage = match coverage {
        "" => None,
        shares => Some(shares.split(' ').map(number).collect::<Option<Vec<f64>>>()?.try_into().ok()?),
    };
    let (accuracy, objective, seconds) = (number(accuracy)?, number(objective)?, number(seconds)?);
    let outcome = Outcome { accuracy, objective, seconds, reads: number(reads)?, coverage };
    Some((cells[0].to_owned(), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::dataset::DataSet;
    use crate::setting::{Privacy, Setting};

    fn cell(repetition: u32) -> Cell {
        let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Approximate { epsilon: 0.1 });
        Cell { setting, repetition }
    }

    const OUTCOME: Outcome = Outcome {
        accuracy: 0.1 + 0.2,
        objective: 1e-9,
        seconds: 1.5,
        reads: 7.25,
        coverage: Some([0.5, 0.1, 0.7, 1.0]),
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
        let old = HEADER.strip_suffix(",reads,coverage").unwrap();
        let line = format!("{},sphere,bolt-on,logistic,0,epsilon,given,10,50,usual,,0,0.5,0.25,1.5", cell(0).key());
        std::fs::write(&path, format!("{old}\n{line}\n{}", &line[..20])).unwrap();
        let expected = Outcome { accuracy: 0.5, objective: 0.25, seconds: 1.5, ..Outcome::default() };
        let mut store = Store::open(&path).unwrap();
        assert_eq!((store.len(), store.get(&cell(0))), (1, Some(&expected)));
        store.append(&cell(1), OUTCOME).unwrap();
        let again = Store::open(&path).unwrap();
        assert_eq!((again.get(&cell(0)), again.get(&cell(1))), (Some(&expected), Some(&OUTCOME)));
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
