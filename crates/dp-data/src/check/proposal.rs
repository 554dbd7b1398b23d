//! A schema under which a table is accepted, proposed for review.

use serde::Serialize;

use super::{Consequence, Findings, Problem, check};
use crate::draft::{Draft, DraftOptions, LabelHint, USUAL_MARKERS, csv_options, draft, file_format};
use crate::error::{DataError, DataErrorKind};
use crate::read::{CsvOptions, Input};
use crate::schema::{
    CellFormat, Column, ColumnKind, DateFormat, FILE, Label, LabelKind, LabelRange, NumberFormat, OTHER_CATEGORY,
    OnMissing, OnUnknown, OnUnreadable, Others, Review, Schema,
};

/// Number of checks; each may find what the previous one could not.
const ROUNDS: usize = 6;
/// Minimum number of cells of a new category.
const LEAST_CELLS: u64 = 10;
/// A new category has at least one cell in this many.
const CELLS_TO_ONE: u64 = 1000;
/// Maximum number of categories of a column.
const MOST_CATEGORIES: usize = 100;
/// Cells become records without influence if at most one in this many is affected.
const NEUTRAL_TO_ONE: u64 = 10;

/// One change of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The column, the label's column, or [`FILE`].
    pub column: String,
    /// The change and its reason.
    pub text: String,
}

/// A schema under which less of a table is refused, or nothing.
#[derive(Debug)]
pub struct Proposal {
    /// The schema. Whatever changed is unreviewed.
    pub schema: Schema,
    /// The changes.
    pub changes: Vec<Change>,
    /// The findings under it, including problems that no schema can mend.
    pub left: Findings,
}

impl Proposal {
    /// Returns the schema as TOML, with the changes as comments.
    pub fn to_toml(&self) -> String {
        self.schema.to_toml_with_comments(&|name| {
            let changes = self.changes.iter().filter(|change| change.column == name);
            let lines: Vec<String> = changes.map(|change| format!("Proposed: {}", change.text)).collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        })
    }
}

/// Proposes a schema under which a table is accepted, by checks and changes in turn. `open` returns the table from its beginning.
///
/// Ranges stay as they are. Formats, markers of missing values and frequent categories are taken from the data; cells that nothing
/// explains make their records null records, unless they are more than a tenth.
///
/// # Privacy
/// The proposal is a function of the records: what changed is unreviewed, as in a [draft](crate::draft).
///
/// # Errors
/// Those of [`check`], and of `open`.
///
/// # Examples
/// ```
/// use dp_data::{DataError, Schema, check::propose, read::Input};
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.pay = { type = 'numeric', min = 0, max = 9000 }",
/// )?;
/// let file = || Ok(Input::from_bytes("toy.csv", b"pay;y\n1.250,50;no\nn/a;yes\n812,00;no\n".to_vec()));
/// let proposal = propose::<DataError>(file, &schema, &Default::default())?;
/// assert!(!proposal.left.is_refused());
/// assert_eq!(proposal.schema.unreviewed(), ["pay", "<file>"]);
/// let toml = proposal.to_toml();
/// assert!(toml.contains("decimal = \",\"") && toml.contains("delimiter = \";\"") && toml.contains("\"n/a\""));
/// # Ok::<(), DataError>(())
/// ```
pub fn propose<E: From<DataError>>(
    mut open: impl FnMut() -> Result<Input, E>,
    schema: &Schema,
    csv: &CsvOptions,
) -> Result<Proposal, E> {
    let mut edit = Edit { schema: schema.clone(), changes: Vec::new() };
    let mut found = check(open()?, schema, csv);
    if found.as_ref().map_or_else(|error| error.kind() == DataErrorKind::CsvNotUtf8, is_of_another_file) {
        let mut input = open()?;
        if !input.is_table() && edit.read_as(&mut input, csv)? {
            found = check(open()?, &edit.schema, csv);
        }
    }
    let mut found = found?;
    // How a draft would read the columns, if the rows can be split at all.
    let mut drafted = None;
    let mut allows_line_ends = true;
    for _ in 1..ROUNDS {
        if mendable(&found).next().is_none() {
            break;
        }
        if drafted.is_none() {
            drafted = edit.draft(open()?, csv);
        }
        let mut next = edit.clone();
        next.mend(&found, drafted.as_ref(), allows_line_ends);
        if next.changes.len() == edit.changes.len() {
            break;
        }
        let left = check(open()?, &next.schema, csv)?;
        if allows_line_ends && has_stray_quotes(&left) {
            // Cells that seemed to hold line ends are rows that a quote swallowed.
            allows_line_ends = false;
            continue;
        }
        (edit, found) = (next, left);
    }
    let Edit { schema, changes } = edit;
    Ok(Proposal { schema, changes, left: found })
}

/// Returns whether a file seems to be split or decoded in the wrong way.
fn is_of_another_file(found: &Findings) -> bool {
    let kinds = [DataErrorKind::CsvMissingColumn, DataErrorKind::CsvNotUtf8];
    found.refusals().any(|problem| problem.kind().is_some_and(|kind| kinds.contains(&kind)))
}

/// Returns the problems for which a table is refused, and the undeclared categories whose records would have no influence.
fn mendable(found: &Findings) -> impl Iterator<Item = &Problem> {
    let is_new = |problem: &&Problem| {
        problem.consequence == Consequence::Neutral && problem.kind() == Some(DataErrorKind::CsvUnknownCategory)
    };
    found.refusals().chain(found.problems.iter().filter(is_new))
}

/// A schema that is being changed.
#[derive(Clone)]
struct Edit {
    schema: Schema,
    changes: Vec<Change>,
}

impl Edit {
    fn note(&mut self, column: &str, text: String) {
        self.changes.push(Change { column: column.to_owned(), text });
    }

    /// Finds delimiter and encoding; returns whether they differ from the schema's.
    fn read_as(&mut self, input: &mut Input, csv: &CsvOptions) -> Result<bool, DataError> {
        let given = CsvOptions { header: Some(csv.header.or(self.schema.file().header).unwrap_or(true)), ..*csv };
        let found = file_format(*csv, csv_options(input, given)?);
        let file = self.schema.file().clone();
        let format = crate::schema::FileFormat { header: file.header, ..found };
        if (&format.delimiter, &format.encoding) == (&file.delimiter, &file.encoding) {
            return Ok(false);
        }
        let delimiter = format.delimiter.filter(|_| format.delimiter != file.delimiter);
        let encoding = format.encoding.clone().filter(|_| format.encoding != file.encoding);
        let texts = [
            delimiter.map(|mark| format!("cells are separated by {mark:?}")),
            encoding.map(|name| format!("the text is written in {name}")),
        ];
        let text = texts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        self.note(FILE, if text.is_empty() { "cells are separated by commas, the text is UTF-8".into() } else { text });
        self.schema = self.schema.clone().with_file(format)?;
        Ok(true)
    }

    fn draft(&self, input: Input, csv: &CsvOptions) -> Option<Draft> {
        let range = match self.schema.label().kind {
            LabelKind::Number(range) => range,
            // Only the columns are of interest.
            _ => LabelRange { min: 0.0, max: 1.0 },
        };
        let mut options = DraftOptions::new(&self.schema.label().column);
        options.hint = Some(LabelHint::Number(range));
        let csv = csv.for_schema(&self.schema);
        draft(input, &options, &CsvOptions { header: Some(csv.header.unwrap_or(true)), ..csv }).ok()
    }

    /// Changes the schema for the refusals that were found.
    fn mend(&mut self, found: &Findings, drafted: Option<&Draft>, allows_line_ends: bool) {
        let (mut columns, mut label) = (self.schema.columns().to_vec(), self.schema.label().clone());
        let mut changes = Vec::new();
        for problem in mendable(found) {
            let Some(name) = &problem.column else { continue };
            let is_label = *name == label.column;
            let mend = match problem.kind() {
                Some(DataErrorKind::CsvLineEnd) if allows_line_ends => allow_line_ends(name, problem, &mut columns),
                Some(DataErrorKind::CsvLineEnd) => None,
                _ if is_label => mend_label(&mut label, &self.schema, problem, found, drafted),
                _ => match columns.iter_mut().find(|column| column.name == *name) {
                    Some(column) => mend_column(column, &self.schema, problem, found, drafted),
                    None => None,
                },
            };
            if let Some(text) = mend {
                changes.push(Change { column: if is_label { label.column.clone() } else { name.clone() }, text });
            }
        }
        let file = self.schema.file().clone();
        let schema =
            Schema::new(columns, label, self.schema.missing().to_vec()).and_then(|schema| schema.with_file(file));
        // A change that contradicts the rest of the schema is dropped.
        if let Ok(schema) = schema {
            self.schema = schema;
            self.changes.extend(changes);
        }
    }
}

/// Returns a name of the table that differs from `name` in capitals, blanks and signs only, and is used for nothing else.
fn similar_name(name: &str, found: &Findings, schema: &Schema) -> Option<String> {
    let is_used = |name: &str| schema.label().column == name || schema.columns().iter().any(|one| one.source() == name);
    let plain =
        |name: &str| name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let mut similar = found.header.iter().filter(|one| plain(one) == plain(name) && !is_used(one));
    match (similar.next(), similar.next()) {
        (Some(one), None) if !plain(one).is_empty() => Some(one.clone()),
        _ => None,
    }
}

fn is_rare(count: u64, found: &Findings) -> bool {
    count.saturating_mul(NEUTRAL_TO_ONE) <= found.rows
}

/// Returns the texts that usually represent a missing value.
fn markers(problem: &Problem) -> Vec<String> {
    let is_marker = |text: &str| USUAL_MARKERS.iter().any(|marker| marker.eq_ignore_ascii_case(text));
    let texts = problem.texts.iter().map(|(text, _)| text.trim().to_owned()).filter(|text| is_marker(text));
    let mut markers: Vec<String> = texts.collect();
    markers.sort_unstable();
    markers.dedup();
    markers
}

fn list(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
}

fn mend_column(
    column: &mut Column,
    schema: &Schema,
    problem: &Problem,
    found: &Findings,
    drafted: Option<&Draft>,
) -> Option<String> {
    let count = problem.count;
    let drafted = drafted.and_then(|draft| draft.schema.columns().iter().find(|one| one.name == column.source()));
    let text = match problem.kind() {
        Some(DataErrorKind::CsvMissingColumn) => match similar_name(column.source(), found, schema) {
            Some(name) => {
                let text = format!("the table names it {name:?}");
                column.source = Some(name);
                text
            }
            None => {
                let text = "the table does not have it, so that it cannot be used".to_owned();
                *column = Column::new(&column.name, ColumnKind::Drop);
                text
            }
        },
        Some(DataErrorKind::CsvMissingValue) => {
            column.on_missing = OnMissing::Neutral;
            format!(
                "{count} cells are missing; their records have no influence, unless on_missing is {{ value = ... }}"
            )
        }
        Some(DataErrorKind::CsvUnknownCategory) if column.format.is_none() => {
            let ColumnKind::Categorical { categories, on_unknown } = &mut column.kind else { return None };
            let is_frequent = |cells: u64| cells >= LEAST_CELLS && cells.saturating_mul(CELLS_TO_ONE) >= found.rows;
            let (mut new, mut cells) = (Vec::new(), 0);
            for (text, more) in problem.texts.iter().filter(|(_, more)| is_frequent(*more)) {
                let text = text.trim().to_owned();
                if categories.len() + new.len() < MOST_CATEGORIES && !categories.contains(&text) && !new.contains(&text)
                {
                    new.push(text);
                    cells += more;
                }
            }
            let has_other = categories.iter().any(|category| category == OTHER_CATEGORY);
            let rest = count - cells;
            let is_refused = problem.consequence == Consequence::Refused;
            let mut texts = Vec::new();
            if has_other && is_refused {
                *on_unknown = OnUnknown::Other;
                texts.push(format!("{count} cells hold undeclared categories; they count as \"{OTHER_CATEGORY}\""));
            } else {
                if !new.is_empty() {
                    texts.push(format!("categories {} of {cells} cells are new", list(&new)));
                    categories.extend(new);
                }
                if rest > 0 && is_refused && is_rare(rest, found) {
                    *on_unknown = OnUnknown::Neutral;
                    texts.push(format!("{rest} cells hold rare categories; their records have no influence"));
                }
            }
            if texts.is_empty() {
                return None;
            }
            texts.join("; ")
        }
        Some(DataErrorKind::CsvBadNumber | DataErrorKind::CsvBadDate | DataErrorKind::CsvUnknownCategory) => {
            mend_unreadable(column, schema, problem, found, drafted)?
        }
        _ => return None,
    };
    column.review = Review::Unreviewed;
    Some(text)
}

/// Changes the format of cells, the markers of missing values, or the treatment of the other cells.
fn mend_unreadable(
    column: &mut Column,
    schema: &Schema,
    problem: &Problem,
    found: &Findings,
    drafted: Option<&Column>,
) -> Option<String> {
    let count = problem.count;
    let (ColumnKind::Numeric { on_unreadable, .. } | ColumnKind::Indicator { on_unreadable }) = &mut column.kind else {
        // The days of dates.
        return None;
    };
    let format = match (&column.format, drafted.and_then(|drafted| drafted.format.clone())) {
        (Some(CellFormat::Date(DateFormat { part, .. })), Some(CellFormat::Date(found))) => {
            Some(CellFormat::Date(DateFormat { part: *part, ..found }))
        }
        (None | Some(CellFormat::Number(_)), Some(format @ CellFormat::Number(_)))
        | (None | Some(CellFormat::Flag { .. }), Some(format @ CellFormat::Flag { .. })) => Some(format),
        _ => None,
    };
    if let Some(format) = format.filter(|format| column.format.as_ref() != Some(format)) {
        let text = match &format {
            CellFormat::Number(format) => format!("its numbers are written as {}", format.example()),
            CellFormat::Date(format) => format!("its dates are written as {:?}", format.pattern),
            CellFormat::Flag { one, zero } => format!("{} stand for 1, {} for 0", list(one), list(zero)),
        };
        column.format = Some(format);
        return Some(text);
    }
    let markers = markers(problem);
    if !markers.is_empty() {
        let text = format!("{} mark missing values", list(&markers));
        let mut missing = schema.missing_of(column).to_vec();
        missing.extend(markers);
        column.missing = Some(missing);
        return Some(text);
    }
    if !is_rare(count, found) {
        return None;
    }
    *on_unreadable = OnUnreadable::Neutral;
    Some(format!("{count} other cells cannot be read; their records have no influence"))
}

fn mend_label(
    label: &mut Label,
    schema: &Schema,
    problem: &Problem,
    found: &Findings,
    drafted: Option<&Draft>,
) -> Option<String> {
    let count = problem.count;
    let written: Option<NumberFormat> = drafted.and_then(|draft| draft.schema.label().format.clone());
    let text = match (problem.kind(), &mut label.kind) {
        (Some(DataErrorKind::CsvMissingColumn), _) => {
            let name = similar_name(&label.column, found, schema)?;
            let text = format!("the table names the label {name:?}, not {:?}", label.column);
            label.column = name;
            text
        }
        (Some(DataErrorKind::LabelMissing), _) => {
            label.missing_is_neutral = true;
            format!("{count} labels are missing; their records have no influence")
        }
        (Some(DataErrorKind::LabelUnknown), LabelKind::TwoClasses { positive, negative, others }) => {
            let (mut texts, mut known) = (Vec::new(), 0);
            for (class, values) in [("positive", positive), ("negative", negative)] {
                let is_declared =
                    |text: &str| values.iter().any(|value| value.trim().to_lowercase() == text.trim().to_lowercase());
                let spellings = problem.texts.iter().filter(|(text, _)| is_declared(text));
                known += spellings.clone().map(|(_, count)| count).sum::<u64>();
                let mut new: Vec<String> = spellings.map(|(text, _)| text.trim().to_owned()).collect();
                new.sort_unstable();
                new.dedup();
                if !new.is_empty() {
                    texts.push(format!("{} are spellings of the {class} class", list(&new)));
                    values.extend(new);
                }
            }
            let rest = count - known;
            if rest > 0 && is_rare(rest, found) {
                *others = Others::Neutral;
                texts.push(format!("{rest} labels are of neither class; their records have no influence"));
            }
            if texts.is_empty() {
                return None;
            }
            texts.join("; ")
        }
        (Some(DataErrorKind::LabelUnknown), LabelKind::Classes { others_are_neutral, .. }) if is_rare(count, found) => {
            *others_are_neutral = true;
            format!("{count} labels are of no class; their records have no influence")
        }
        (Some(DataErrorKind::CsvBadNumber), LabelKind::Number(_)) => {
            if written.is_some() && written != label.format {
                label.format = written;
                "its numbers are written in this way".to_owned()
            } else if is_rare(count, found) {
                label.unreadable_is_neutral = true;
                format!("{count} labels are not numbers; their records have no influence")
            } else {
                return None;
            }
        }
        _ => return None,
    };
    label.review = Review::Unreviewed;
    Some(text)
}

/// Returns whether some rows cannot be split, for instance because of a stray quote.
fn has_stray_quotes(found: &Findings) -> bool {
    let stray = [DataErrorKind::CsvRagged, DataErrorKind::CsvAfterQuote];
    found.stopped.is_some() || found.refusals().any(|one| one.kind().is_some_and(|kind| stray.contains(&kind)))
}

/// Allows line ends in the cells of a column of the table.
fn allow_line_ends(name: &str, problem: &Problem, columns: &mut Vec<Column>) -> Option<String> {
    let first = problem.examples.first().map_or(0, |example| example.line);
    let text = format!(
        "{} quoted cells go on past the end of their line, the first on line {first}: look there for a stray quote, which would \
         swallow rows",
        problem.count
    );
    let mut is_found = false;
    for column in columns.iter_mut().filter(|column| column.source() == name) {
        (column.line_ends, column.review, is_found) = (true, Review::Unreviewed, true);
    }
    if !is_found {
        columns.push(Column { line_ends: true, review: Review::Unreviewed, ..Column::new(name, ColumnKind::Drop) });
    }
    Some(text)
}
