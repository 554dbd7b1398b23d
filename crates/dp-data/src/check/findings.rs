//! The findings of a check.

use std::collections::BTreeMap;

use crate::encode::{ColumnTally, Inspected};
use crate::error::{DataError, DataErrorKind};
use crate::read::{ClassCounts, CuratorWarning, no_rows};
use crate::schema::{LabelKind, Schema};

/// Number of examples of a problem that are kept.
const EXAMPLES: usize = 5;
/// Number of texts of a problem that are counted; further ones are not distinguished.
const TEXTS: usize = 200;
/// Number of characters of a text that are kept.
const SHOWN: usize = 60;
/// The code of a number that is not used unchanged.
const CLAMPED: &str = "value.clamped";

/// The treatment of the records with a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Consequence {
    /// The file is refused.
    Refused,
    /// The record becomes a null record, which has no influence.
    Neutral,
    /// The schema's value, category or nothing replaces the cell.
    Replaced,
    /// The nearest number of the public range replaces the cell.
    Clamped,
}

/// One cell or row with a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The line on which its record starts, from 1, including the header; for typed cells the number of the row.
    pub line: u64,
    /// The text of the cell, shortened; for a row, what was found.
    pub text: String,
}

/// A problem of one kind in one column, or of rows.
#[derive(Debug)]
pub struct Problem {
    /// The column of the schema; `None` for rows.
    pub column: Option<String>,
    /// The treatment of the records.
    pub consequence: Consequence,
    /// Number of cells, or of rows.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<Example>,
    /// The texts of the cells with their numbers, the most frequent first; at most 200 different ones.
    pub texts: Vec<(String, u64)>,
    /// True if there are more texts.
    pub has_more_texts: bool,
    /// The error at the first of them; `None` for a number outside the range.
    error: Option<DataError>,
}

impl Problem {
    /// Returns the code of the error, or `value.clamped`.
    pub fn code(&self) -> &'static str {
        self.error.as_ref().map_or(CLAMPED, DataError::code)
    }

    /// Returns the kind of error; `None` for a number outside the range.
    pub fn kind(&self) -> Option<DataErrorKind> {
        self.error.as_ref().map(DataError::kind)
    }

    /// Returns the error at the first of them, as training would report it; `None` for a number outside the range.
    pub fn error(&self) -> Option<&DataError> {
        self.error.as_ref()
    }

    fn new(column: Option<String>, consequence: Consequence, error: Option<DataError>) -> Self {
        let (examples, texts) = (Vec::new(), Vec::new());
        Self { column, consequence, count: 0, examples, texts, has_more_texts: false, error }
    }

    fn add(&mut self, example: Example) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example);
        }
    }
}

/// All that is wrong with a table under its schema. For the curator.
#[derive(Debug, Default)]
pub struct Findings {
    /// Number of rows that were read.
    pub rows: u64,
    /// The names of the columns of the table.
    pub header: Vec<String>,
    /// The problems: first those for which the file is refused, then the others in the order of the schema, rows before
    /// columns.
    pub problems: Vec<Problem>,
    /// Findings that are unusual but used: columns with one value, classes without records, columns that the schema does not name.
    pub notes: Vec<String>,
    /// The error that ended the reading before the end of the table.
    pub stopped: Option<DataError>,
    /// Names of the columns of the schema, and the label's.
    names: Vec<String>,
    /// The problems while records are read, by column, error and consequence; the label comes after the columns.
    found: BTreeMap<(Option<usize>, &'static str, Consequence), Counted>,
    tallies: Vec<ColumnTally>,
    classes: Option<ClassCounts>,
}

/// A problem with all its texts.
#[derive(Debug)]
struct Counted {
    problem: Problem,
    texts: BTreeMap<Box<[u8]>, u64>,
}

impl Findings {
    pub(super) fn new(schema: &Schema) -> Self {
        let columns = schema.columns().iter().map(|column| column.name.clone());
        let names: Vec<String> = columns.chain([schema.label().column.clone()]).collect();
        Self {
            tallies: vec![ColumnTally::default(); names.len()],
            names,
            classes: Some(ClassCounts::new(schema.label())),
            ..Self::default()
        }
    }

    /// Returns whether training refuses the table.
    pub fn is_refused(&self) -> bool {
        self.stopped.is_some() || self.refusals().next().is_some()
    }

    /// Returns the problems for which the table is refused.
    pub fn refusals(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.consequence == Consequence::Refused)
    }

    /// Adds a row that cannot be split, or a column that is not there.
    pub(super) fn add_error(&mut self, error: DataError) {
        // These errors are about rows: their column need not be one of the schema.
        let column = match error.kind() {
            DataErrorKind::CsvRagged | DataErrorKind::CsvNotUtf8 => None,
            _ => error.column().map(str::to_owned),
        };
        let text = error.content().unwrap_or_default().to_owned();
        let example = error.line().map(|line| Example { line, text });
        let problem = self.problems.iter_mut().find(|one| one.kind() == Some(error.kind()) && one.column == column);
        let problem = match problem {
            Some(problem) => problem,
            None => {
                let new = Problem::new(column, Consequence::Refused, Some(error));
                self.problems.push(new);
                let last = self.problems.len() - 1;
                &mut self.problems[last]
            }
        };
        match example {
            Some(example) => problem.add(example),
            None => problem.count += 1,
        }
    }

    /// Adds a cell of a column of the schema, or a label.
    #[inline]
    pub(super) fn see(
        &mut self,
        column: Option<usize>,
        inspected: Inspected,
        text: &[u8],
        line: u64,
        of_error: impl Fn(DataErrorKind) -> DataError,
    ) {
        let place = column.unwrap_or(self.tallies.len() - 1);
        let (kind, consequence) = match inspected {
            Inspected::Value(value) => {
                self.tallies[place].see(value);
                if let (None, Some(classes)) = (column, &mut self.classes) {
                    classes.count(value);
                }
                return;
            }
            Inspected::Clamped(value) => {
                self.tallies[place].see(value);
                (None, Consequence::Clamped)
            }
            Inspected::Replaced(kind) => (Some(kind), Consequence::Replaced),
            Inspected::Neutral(kind) => (Some(kind), Consequence::Neutral),
            Inspected::Refused(kind) => (Some(kind), Consequence::Refused),
        };
        let names = &self.names;
        let counted = self.found.entry((Some(place), kind.map_or(CLAMPED, DataErrorKind::code), consequence));
        let counted = counted.or_insert_with(|| {
            let error = kind.map(|kind| of_error(kind).at_line(line));
            Counted { problem: Problem::new(Some(names[place].clone()), consequence, error), texts: BTreeMap::new() }
        });
        counted.problem.count += 1;
        if counted.problem.examples.len() < EXAMPLES {
            counted.problem.examples.push(Example { line, text: shortened(text) });
        }
        counted.count_text(text, 1);
    }

    /// Adds the findings of the next records, whose line numbers do not count the `lines` lines before them.
    pub(super) fn append(&mut self, next: Self, lines: u64) {
        self.rows += next.rows;
        for problem in next.problems {
            let later = Problem { error: problem.error.map(|error| error.after_lines(lines)), ..problem };
            match self.problems.iter_mut().find(|one| one.kind() == later.kind() && one.column == later.column) {
                Some(one) => one.append(later, lines),
                None => self.problems.push(Problem { examples: moved(later.examples, lines), ..later }),
            }
        }
        for (key, Counted { problem, texts }) in next.found {
            let later = Problem { error: problem.error.map(|error| error.after_lines(lines)), ..problem };
            let counted = match self.found.entry(key) {
                std::collections::btree_map::Entry::Occupied(one) => {
                    let one = one.into_mut();
                    one.problem.append(later, lines);
                    one
                }
                std::collections::btree_map::Entry::Vacant(free) => {
                    let problem = Problem { examples: moved(later.examples, lines), ..later };
                    free.insert(Counted { problem, texts: BTreeMap::new() })
                }
            };
            texts.into_iter().for_each(|(text, count)| counted.count_text(&text, count));
        }
        self.tallies.iter_mut().zip(&next.tallies).for_each(|(tally, next)| tally.append(next));
        if let (Some(classes), Some(next)) = (&mut self.classes, &next.classes) {
            classes.append(next);
        }
        self.stopped = next.stopped.map(|error| error.after_lines(lines)).or(self.stopped.take());
    }

    /// Sorts the problems and adds the notes.
    pub(super) fn finish(mut self, schema: &Schema) -> Self {
        if self.rows == 0 && self.stopped.is_none() {
            self.add_error(no_rows());
        }
        let place = |names: &[String], column: &Option<String>| {
            column.as_ref().map(|column| names.iter().position(|name| name == column).unwrap_or(names.len()))
        };
        for (_, Counted { mut problem, texts }) in std::mem::take(&mut self.found) {
            problem.texts =
                texts.iter().map(|(text, &count)| (String::from_utf8_lossy(text).into_owned(), count)).collect();
            // Equally frequent texts stay in their order.
            problem.texts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
            problem.has_more_texts = problem.texts.iter().map(|(_, count)| count).sum::<u64>() < problem.count;
            self.problems.push(problem);
        }
        let names = &self.names;
        self.problems.sort_by_key(|problem| (problem.consequence, place(names, &problem.column), problem.code()));
        let label = self.names.len().saturating_sub(1);
        for (position, _) in self.tallies.iter().enumerate().filter(|(_, tally)| tally.is_constant()) {
            let column = self.names[position].clone();
            let warning = if position != label {
                CuratorWarning::ConstantColumn { column }
            } else if matches!(schema.label().kind, LabelKind::Number(_)) {
                CuratorWarning::ConstantLabel { column }
            } else {
                // Counted as a class.
                continue;
            };
            self.notes.push(warning.to_string());
        }
        if let Some(warning) = self.classes.as_ref().and_then(|classes| classes.warning(schema.label())) {
            self.notes.push(warning.to_string());
        }
        self
    }
}

impl Problem {
    /// Adds the cells of later records, whose line numbers do not count the `lines` lines before them.
    fn append(&mut self, later: Self, lines: u64) {
        self.count += later.count;
        let room = EXAMPLES - self.examples.len();
        self.examples.extend(moved(later.examples, lines).into_iter().take(room));
    }
}

impl Counted {
    /// Counts a text. The first texts in lexicographic order are kept, so that the order of the records does not matter.
    fn count_text(&mut self, text: &[u8], more: u64) {
        if let Some(count) = self.texts.get_mut(text) {
            *count += more;
            return;
        }
        // A long text would take the memory of many.
        if text.len() > 4 * SHOWN {
            return;
        }
        if self.texts.len() >= TEXTS {
            match self.texts.last_key_value() {
                Some((last, _)) if text < &**last => drop(self.texts.pop_last()),
                _ => return,
            }
        }
        self.texts.insert(text.into(), more);
    }
}

fn moved(examples: Vec<Example>, lines: u64) -> Vec<Example> {
    examples.into_iter().map(|example| Example { line: example.line + lines, ..example }).collect()
}

fn shortened(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
