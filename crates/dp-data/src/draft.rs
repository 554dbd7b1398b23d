//! Drafting a schema from a table, for review by a person.

mod column;
mod dates;
mod families;
mod flags;
mod label;
mod sniff;
#[cfg(test)]
mod tests;
mod written;

use std::collections::HashMap;

use column::ColumnSurvey;
pub(crate) use column::USUAL_MARKERS;
use label::LabelSurvey;
pub use sniff::csv_options;
pub(crate) use sniff::file_format;
#[cfg(feature = "xlsx")]
pub(crate) use sniff::is_record;
use written::Marks;

use crate::encode::TextBuffer;
use crate::error::DataError;
use crate::read::{Chunk, CsvOptions, CsvReader, Input, ReadsChunks, line_end, missing_column, no_rows};
use crate::schema::{Column, ColumnKind, LabelKind, LabelRange, Schema};
use crate::table::{Table, Unreadable};

/// Options of a draft.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DraftOptions {
    /// The label column. `None`: the last one.
    pub label: Option<String>,
    /// The value of the positive class. `None`: the larger of two numbers, the rarer of two texts.
    pub positive: Option<String>,
    /// The value of the negative class; if `positive` is `None`, every other value is positive.
    pub negative: Option<String>,
    /// The kind of the label, if it is not two classes and cannot be derived from the values.
    pub hint: Option<LabelHint>,
    /// Maximum number of categories of a column; a column with more is dropped.
    pub max_categories: usize,
    /// True to set `log1p` where it is suitable, false to suggest it in a comment only.
    pub apply_log1p: bool,
    /// True if others write to the table, as in a database: a value that is not a number, such as NaN, then makes its record a
    /// null record instead of an error.
    pub written_to: bool,
    /// The column that names the unit of a row, such as a patient: it is dropped.
    pub unit: Option<String>,
}

impl DraftOptions {
    /// Creates the usual options: this label column, up to 100 categories, `log1p` only suggested.
    pub fn new(label: &str) -> Self {
        Self { label: Some(label.to_owned()), ..Self::default() }
    }
}

impl Default for DraftOptions {
    fn default() -> Self {
        Self {
            label: None,
            positive: None,
            negative: None,
            hint: None,
            max_categories: 100,
            apply_log1p: false,
            written_to: false,
            unit: None,
        }
    }
}

/// The kind of a label, as stated by a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LabelHint {
    /// These classes, in this order.
    Classes(Vec<String>),
    /// A number in this range.
    Number(LabelRange),
}

/// A schema taken from data, with notes for the reviewer.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The schema; every part of it is [`Review::Unreviewed`](crate::schema::Review::Unreviewed), except a label that is fully
    /// given by [`DraftOptions::hint`].
    pub schema: Schema,
    /// Notes on single columns.
    pub notes: Vec<DraftNote>,
}

/// A note on a column of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftNote {
    /// The column.
    pub column: String,
    /// The text of the note.
    pub text: String,
    /// True if a person has to decide something before the column can be used.
    pub is_open: bool,
}

impl Draft {
    /// Returns the schema as TOML, with the notes as comments.
    pub fn to_toml(&self) -> String {
        let mut notes: HashMap<&str, Vec<&str>> = HashMap::new();
        for note in &self.notes {
            notes.entry(&note.column).or_default().push(&note.text);
        }
        self.schema.to_toml_with_comments(&|name| notes.get(name).map(|notes| notes.join("\n")))
    }
}

impl From<LabelHint> for LabelKind {
    fn from(hint: LabelHint) -> Self {
        match hint {
            LabelHint::Classes(classes) => Self::Classes { classes, others_are_neutral: false },
            LabelHint::Number(range) => Self::Number(range),
        }
    }
}

/// Drafts a schema: a column is numeric if (nearly) all its cells are numbers, otherwise categorical if it has few enough values,
/// otherwise dropped; columns with a single value and row numbers are dropped.
///
/// The label is determined by the options. Otherwise two values are two classes, with the larger of two numbers or the rarer of
/// two texts positive. For a label named by the options, numbers with fractions or with more than 20 values are a numeric label,
/// and other values, if there are few enough, classes.
///
/// # Privacy
/// The result is a function of the records and must not be published or used as if it were public. Every part is marked
/// unreviewed, and [`Schema::check_reviewed`] refuses it until a person has replaced the values found by publicly known ones, or
/// has declared the part public by name.
///
/// # Errors
/// `csv.*` and `file.*`; `label.undecided` if the kind of the label is unclear; `schema.columns` if no column is usable.
///
/// # Examples
/// ```
/// use dp_data::{draft::{DraftOptions, draft}, read::Input, schema::LabelKind};
///
/// let file = Input::from_bytes("a.csv", b"age,city,y\n41,Rome,no\n17,Oslo,no\n90,Rome,yes\n".to_vec());
/// let mut drafted = draft(file, &DraftOptions::new("y"), &Default::default())?;
/// assert!(matches!(&drafted.schema.label().kind, LabelKind::TwoClasses { positive, .. } if positive == &["yes"]));
/// assert_eq!(drafted.schema.unreviewed(), ["y", "age", "city"]);
/// drafted.schema.assume_public(&["y", "age", "city"])?;
/// assert!(drafted.schema.check_reviewed().is_ok());
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn draft(mut input: Input, options: &DraftOptions, csv: &CsvOptions) -> Result<Draft, DataError> {
    if let Some(table) = input.take_table() {
        return of_table(table, options);
    }
    let given = *csv;
    let csv = csv_options(&mut input, given)?;
    let format = file_format(given, csv);
    let mut reader = CsvReader::new(input, csv)?;
    let header = reader.header().to_vec();
    let file = reader.file().to_owned();
    let label_position = match &options.label {
        Some(name) => reader.position(name)?,
        None => header.len() - 1,
    };
    let empty = || Survey::new(&header, label_position, options);
    let mut all = empty();
    let of_chunk = |OfThread { reader, survey }: &mut OfThread| {
        survey.read(reader)?;
        Ok(survey.take_part())
    };
    reader.for_each_chunk(
        |reader| OfThread { reader, survey: empty() },
        of_chunk,
        |survey, lines| {
            all.append(&survey, lines);
            Ok::<_, DataError>(())
        },
    )?;
    all.read(&mut reader)?;
    let drafted = all.draft(&header, &file, options, Vec::new(), Vec::new())?;
    Ok(Draft { schema: drafted.schema.with_file(format)?, ..drafted })
}

/// Drafts a schema of typed cells. Columns whose cells cannot be read are dropped.
fn of_table(table: Table, options: &DraftOptions) -> Result<Draft, DataError> {
    let file = table.name().to_owned();
    let label = match (&options.label, table.columns().last()) {
        (Some(name), _) => name.clone(),
        (None, Some(last)) => last.name.clone(),
        (None, None) => return Err(missing_column("", std::iter::empty()).in_file(&file)),
    };
    let label = table.position(&label)?;
    let (mut used, mut header, mut dropped, mut notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut label_position = 0;
    for (position, column) in table.columns().iter().enumerate() {
        let why = column.unreadable.as_ref().filter(|why| !matches!(why, Unreadable::Date(_)));
        if let Some(why) = why {
            dropped.push(Column::new(&column.name, ColumnKind::Drop));
            let text = match why {
                Unreadable::Type(kind) | Unreadable::Date(kind) => {
                    format!("dropped: cells of type {kind} cannot be read; convert them in a query or a view")
                }
                Unreadable::Denied => "dropped: the role may not read it".to_owned(),
            };
            notes.push(DraftNote { column: column.name.clone(), text, is_open: true });
            continue;
        }
        // A name that occurs twice is refused.
        table.find(&column.name, true)?;
        if position == label {
            label_position = used.len();
        }
        used.push(position);
        header.push(column.name.clone());
    }
    let mut all = Survey::new(&header, label_position, options);
    let mut rows = table.start(used)?;
    while rows.advance().map_err(|error| error.in_file(&file))? {
        let (line, mut buffer) = (rows.number(), TextBuffer::default());
        for (position, column) in all.columns.iter_mut().enumerate() {
            let cell = rows.cell(position);
            if position == label_position {
                all.label.see(cell.text(&mut buffer), line);
            } else {
                column.see_cell(cell, line);
            }
        }
        all.rows += 1;
    }
    all.draft(&header, &file, options, dropped, notes)
}

impl Survey {
    /// Drafts the schema of these columns; `drafted` are further columns, which are dropped.
    fn draft(
        self,
        header: &[String],
        file: &str,
        options: &DraftOptions,
        mut drafted: Vec<Column>,
        mut notes: Vec<DraftNote>,
    ) -> Result<Draft, DataError> {
        let Self { columns, label: survey, rows, label_position } = self;
        if rows == 0 {
            return Err(no_rows().in_file(file));
        }
        let label_name = &header[label_position];
        let mut note = |column: &str, text: String, is_open: bool| {
            notes.push(DraftNote { column: column.to_owned(), text, is_open });
        };
        if let Some(line) = columns[label_position].line_end() {
            return Err(line_end(line, Some(label_name)).in_file(file));
        }
        let mut marks = Marks::default();
        columns.iter().for_each(|column| column.add_marks(&mut marks));
        let (label, remark, is_open) =
            label::decide(label_name, &survey, options, marks).map_err(|error| error.in_file(file))?;
        note(label_name, remark, is_open);
        for (position, (name, survey)) in header.iter().zip(columns).enumerate() {
            if options.unit.as_ref() == Some(name) {
                drafted.push(Column::new(name, ColumnKind::Drop));
                note(name, "names the unit of a row".to_owned(), false);
            } else if position != label_position {
                let line = survey.line_end();
                let (column, remarks) = survey.draft(name, options, marks);
                // Used columns have cells of one line, unless a person states otherwise.
                if let Some(line) = line
                    && column.kind != ColumnKind::Drop
                {
                    return Err(line_end(line, Some(name)).in_file(file));
                }
                drafted.push(column);
                for text in remarks {
                    let is_open = text.starts_with(column::UNDECIDED);
                    note(name, text, is_open);
                }
            }
        }
        let schema = Schema::new(drafted, label, vec![String::new()]).map_err(|error| error.in_file(file))?;
        Ok(Draft { schema, notes })
    }
}

/// A thread's reader, and the statistics of the cells that it read.
struct OfThread {
    reader: CsvReader,
    survey: Survey,
}

impl ReadsChunks for OfThread {
    fn load(&mut self, chunk: Chunk) -> Vec<u8> {
        self.reader.load(chunk)
    }

    fn lines(&self) -> u64 {
        self.reader.lines()
    }
}

/// Statistics of the cells of a table.
struct Survey {
    columns: Vec<ColumnSurvey>,
    label_position: usize,
    label: LabelSurvey,
    rows: u64,
}

impl Survey {
    fn new(header: &[String], label_position: usize, options: &DraftOptions) -> Self {
        let columns = header.iter().map(|name| ColumnSurvey::new(name, options.max_categories)).collect();
        Self { columns, label_position, label: LabelSurvey::default(), rows: 0 }
    }

    /// Reads all records.
    fn read(&mut self, reader: &mut CsvReader) -> Result<(), DataError> {
        let delimiter = reader.delimiter();
        while let Some(record) = reader.next_record()? {
            for (position, (column, cell)) in self.columns.iter_mut().zip(record.cells()).enumerate() {
                if position == self.label_position {
                    self.label.see(cell, record.line());
                } else {
                    column.see(cell, record.line());
                }
            }
            for (position, line) in record.swallowing(self.columns.len(), delimiter) {
                self.columns[position].see_line_end(line);
            }
            self.rows += 1;
        }
        Ok(())
    }

    /// Returns the statistics of the records since the last part; values of earlier parts may be omitted.
    fn take_part(&mut self) -> Self {
        Self {
            columns: self.columns.iter_mut().map(ColumnSurvey::take_part).collect(),
            label_position: self.label_position,
            label: core::mem::take(&mut self.label),
            rows: core::mem::take(&mut self.rows),
        }
    }

    /// Adds the next records, whose line numbers do not count the `lines` lines before them.
    fn append(&mut self, next: &Self, lines: u64) {
        self.columns.iter_mut().zip(&next.columns).for_each(|(column, next)| column.append(next, lines));
        self.label.append(&next.label, lines);
        self.rows += next.rows;
    }
}
