//! The format of a record of runs: a header, then for each run a line that ends with a digest of the line.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::algorithm::Outcome;
use crate::cell::{Cell, Experiment};
use crate::ranker::Ranked;
use crate::setting::Setting;

/// The first line.
pub(super) const HEADER: &str = "key,data,algorithm,loss,lambda,privacy,tuning,passes,batch_size,step,rows,repetition,\
                                 accuracy,objective,seconds,reads,coverage,ranking,chosen_step,digest";

/// The columns at the end that older records do not have.
const NEWER: &str = ",reads,coverage,ranking,chosen_step,digest";

/// The columns at the end of older records in their place, and the substitute of the missing ones in each line: before `reads` and
/// `coverage`, before `ranking`, before digests, before `chosen_step`.
const OLDER: [(&str, &str); 4] = [
    ("", ",0.0,,,"),
    (",reads,coverage", ",,"),
    (",reads,coverage,ranking", ","),
    (",reads,coverage,ranking,digest", ","),
];

/// The content of a file.
pub(super) struct Content {
    /// The runs by key; of two lines with the same key, the later one.
    pub(super) runs: BTreeMap<String, Outcome>,
    /// Length in bytes of the complete lines; the incomplete rest is ignored.
    pub(super) whole: usize,
    /// The same runs with all columns and digests, if the file lacks some.
    pub(super) renewed: Option<String>,
    /// True if the file has no digests.
    pub(super) is_unbound: bool,
}

/// Reads a record. Complete lines must be unchanged; only the last one may be incomplete.
///
/// # Errors
/// The line, from 1, and the error in it.
pub(super) fn read(bytes: &[u8]) -> Result<Content, (usize, String)> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    if whole == 0 {
        let cut_off = HEADER.as_bytes().starts_with(bytes);
        let nothing = Content { runs: BTreeMap::new(), whole: 0, renewed: None, is_unbound: false };
        return if cut_off { Ok(nothing) } else { Err((1, "this is no record of runs".to_owned())) };
    }
    let mut lines = bytes[..whole - 1].split(|&byte| byte == b'\n');
    let header = lines.next().unwrap_or_default();
    let header = std::str::from_utf8(header).unwrap_or_default();
    let end = HEADER.strip_suffix(NEWER).and_then(|first| header.strip_prefix(first));
    let older = OLDER.iter().find(|(old, _)| end == Some(old));
    if older.is_none() && header != HEADER {
        return Err((1, "this is no record of runs, or one with other columns".to_owned()));
    }
    let (fill, has_digests) = older.map_or(("", true), |(end, fill)| (fill, end.ends_with("digest")));
    let mut runs = BTreeMap::new();
    let mut renewed = older.map(|_| format!("{HEADER}\n"));
    for (number, line) in (2..).zip(lines) {
        let text = std::str::from_utf8(line).map_err(|_| (number, "not a finished run".to_owned()))?;
        let row = match text.rsplit_once(',') {
            _ if !has_digests => text,
            Some((row, end)) if end == digest(header, row) => row,
            _ => return Err((number, "this line is not as it was written: its digest does not fit".to_owned())),
        };
        let row = format!("{row}{fill}");
        let (key, outcome) = parse(&row).ok_or_else(|| (number, "not a finished run".to_owned()))?;
        runs.insert(key, outcome);
        if let Some(renewed) = &mut renewed {
            renewed.push_str(&bound(&row));
        }
    }
    Ok(Content { runs, whole, renewed, is_unbound: !has_digests })
}

/// Returns the line of a finished run.
pub(super) fn line(cell: &Cell, outcome: &Outcome) -> String {
    let columns = match &cell.experiment {
        Experiment::Model(setting) => columns(setting),
        Experiment::Ranker(setting) => setting.columns(),
        Experiment::Network(setting) => setting.columns(),
    };
    let Outcome { accuracy, objective, seconds, reads, coverage, ranked, chosen_step } = *outcome;
    let (coverage, ranking) = (coverage.map(joined), ranked.map(|ranked| joined(ranked.to_array())));
    bound(&format!(
        "{},{},{},{accuracy:?},{objective:?},{seconds:?},{reads:?},{},{},{}",
        cell.key(),
        columns.join(","),
        cell.repetition,
        coverage.unwrap_or_default(),
        ranking.unwrap_or_default(),
        chosen_step.map(|step| format!("{step:?}")).unwrap_or_default(),
    ))
}

/// Returns a line with its digest and line ending.
fn bound(row: &str) -> String {
    format!("{row},{}\n", digest(HEADER, row))
}

/// Returns sixteen hexadecimal digits that change when anything in the line or the meaning of its columns changes. They
/// detect damage and mistakes, not intent: anyone can compute them for other numbers.
pub(super) fn digest(header: &str, row: &str) -> String {
    let hash = Sha256::new().chain_update(header).chain_update("\n").chain_update(row).finalize();
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the columns of a linear model: data, algorithm, loss, λ, privacy, tuning, passes, batch size, step, rows.
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

/// Parses the key and the outcome from a line without its digest.
fn parse(row: &str) -> Option<(String, Outcome)> {
    let cells: Vec<&str> = row.split(',').collect();
    if cells.len() + 1 != HEADER.split(',').count() {
        return None;
    }
    let [key, .., accuracy, objective, seconds, reads, coverage, ranking, chosen_step] = cells[..] else { return None };
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if key.len() != 16 || !key.bytes().all(is_digit) {
        return None;
    }
    let number = |text: &str| text.parse::<f64>().ok();
    let outcome = Outcome {
        accuracy: number(accuracy)?,
        objective: number(objective)?,
        seconds: number(seconds)?,
        reads: number(reads)?,
        coverage: separated(coverage)?,
        ranked: separated(ranking)?.map(Ranked::from_array),
        chosen_step: separated(chosen_step)?.map(|[step]: [f64; 1]| step),
    };
    Some((key.to_owned(), outcome))
}

/// Joins numbers in one cell.
fn joined<const N: usize>(numbers: [f64; N]) -> String {
    numbers.map(|number| format!("{number:?}")).join(" ")
}

/// The inverse: no numbers for an empty cell, and `None` for anything but `N` numbers.
fn separated<const N: usize>(cell: &str) -> Option<Option<[f64; N]>> {
    if cell.is_empty() {
        return Some(None);
    }
    let numbers: Option<Vec<f64>> = cell.split(' ').map(|number| number.parse().ok()).collect();
    Some(Some(numbers?.try_into().ok()?))
}
