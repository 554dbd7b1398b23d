//! Drafting a schema from a CSV file, to be reviewed by a person.

mod column;
#[cfg(test)]
mod tests;

use column::{ColumnSurvey, LabelSurvey};

use crate::error::{DataError, DataErrorKind};
use crate::read::{CsvOptions, CsvReader, Input};
use crate::schema::{Label, Others, Review, Schema};

/// What a draft should take as given.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DraftOptions {
    /// The column to predict. `None`: the last one.
    pub label: Option<String>,
    /// The value of the positive class. `None`: of two numbers the larger, of two texts the rarer.
    pub positive: Option<String>,
    /// The value of the negative class, every other value being positive when `positive` is `None`.
    pub negative: Option<String>,
    /// The most categories of a column; a column with more is dropped.
    pub max_categories: usize,
    /// Whether to set `log1p` where it would suit, rather than to suggest it in a comment.
    pub apply_log1p: bool,
}

impl DraftOptions {
    /// The usual: this label column, up to 100 categories, `log1p` only suggested.
    pub fn new(label: &str) -> Self {
        Self { label: Some(label.to_owned()), ..Self::default() }
    }
}

impl Default for DraftOptions {
    fn default() -> Self {
        Self { label: None, positive: None, negative: None, max_categories: 100, apply_log1p: false }
    }
}

/// A schema taken from data, with remarks for the person who reviews it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The schema; every part of it is [`Review::Unreviewed`].
    pub schema: Schema,
    /// Remarks on single columns.
    pub notes: Vec<DraftNote>,
}

/// A remark on a column of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftNote {
    /// The column.
    pub column: String,
    /// The remark.
    pub text: String,
}

impl Draft {
    /// The schema as TOML, the remarks as comments.
    pub fn to_toml(&self) -> String {
        self.schema.to_toml_with_comments(&|name| {
            let notes: Vec<_> = self.notes.iter().filter(|note| note.column == name).map(|note| &*note.text).collect();
            if notes.is_empty() { None } else { Some(notes.join("\n")) }
        })
    }
}

/// Drafts a schema: a column is numeric if (nearly) all its cells are numbers, else categorical if it has few enough
/// values, else dropped; columns with a single value and row numbers are dropped.
///
/// The positive class is what the options say; of two numbers the larger, of two texts the rarer one.
///
/// # Privacy
/// The result is a function of the records and must not be published or used as if it were public: every part is
/// marked unreviewed, and [`Schema::check_reviewed`] refuses it until a person has replaced what was found by what is
/// publicly known, or has declared it public by name.
///
/// # Errors
/// `csv.*` and `file.*`; `label.undecided` when the classes are not clear; `schema.columns` when no column is usable.
///
/// # Examples
/// ```
/// use dp_data::{draft::{DraftOptions, draft}, read::Input};
///
/// let file = Input::from_bytes("a.csv", b"age,city,y\n41,Rome,no\n17,Oslo,no\n90,Rome,yes\n".to_vec());
/// let mut drafted = draft(file, &DraftOptions::new("y"), &Default::default())?;
/// assert_eq!(drafted.schema.label().positive, ["yes"]);
/// assert_eq!(drafted.schema.unreviewed(), ["y", "age", "city"]);
/// drafted.schema.assume_public(&["y", "age", "city"])?;
/// assert!(drafted.schema.check_reviewed().is_ok());
/// # Ok::<(), dp_data::DataError>(())
/// ```
pub fn draft(input: Input, options: &DraftOptions, csv: &CsvOptions) -> Result<Draft, DataError> {
    let mut reader = CsvReader::new(input, *csv)?;
    let header = reader.header().to_vec();
    let file = reader.file().to_owned();
    let label_position = match &options.label {
        Some(name) => reader.position(name)?,
        None => header.len() - 1,
    };
    let mut columns: Vec<_> = header.iter().map(|_| ColumnSurvey::new(options.max_categories)).collect();
    let mut label = LabelSurvey::default();
    let mut rows = 0_u64;
    while let Some(record) = reader.next_record()? {
        for (position, (survey, cell)) in columns.iter_mut().zip(record.cells()).enumerate() {
            if position == label_position {
                label.see(cell);
            } else {
                survey.see(cell, rows);
            }
        }
        rows += 1;
    }
    if rows == 0 {
        return Err(DataError::new(DataErrorKind::CsvNoRows, "the file holds a header and no rows")
            .in_file(&file)
            .expected("rows to draft a schema from"));
    }
    let label_name = &header[label_position];
    let mut notes = Vec::new();
    let mut note = |column: &str, text: String| notes.push(DraftNote { column: column.to_owned(), text });
    let (label, remark) = decide_label(label_name, &label, options).map_err(|error| error.in_file(&file))?;
    note(label_name, remark);
    let mut drafted = Vec::with_capacity(header.len());
    for (position, (name, survey)) in header.iter().zip(columns).enumerate() {
        if position != label_position {
            let (column, remarks) = survey.draft(name, options);
            drafted.push(column);
            remarks.into_iter().for_each(|text| note(name, text));
        }
    }
    let schema = Schema::new(drafted, label, vec![String::new()]).map_err(|error| error.in_file(&file))?;
    Ok(Draft { schema, notes })
}

fn decide_label(name: &str, survey: &LabelSurvey, options: &DraftOptions) -> Result<(Label, String), DataError> {
    let undecided = |message: String, help: &str| {
        DataError::new(DataErrorKind::LabelUndecided, message).at_column(name).found(survey.describe()).help(help)
    };
    let label = |positive: Vec<String>, negative: Vec<String>, others| Label {
        column: name.to_owned(),
        positive,
        negative,
        others,
        missing_is_neutral: false,
        review: Review::Unreviewed,
    };
    // Where both classes are named, records of one of them alone are no reason to fail: that would be an answer.
    let named: Vec<&String> = options.positive.iter().chain(&options.negative).collect();
    let one_is_there = named.len() == 2 && named.iter().any(|value| survey.holds(value));
    for value in named {
        if !survey.holds(value) && !one_is_there {
            return Err(undecided(
                format!("no row of column `{name}` holds the label `{value}`"),
                "check the spelling of the class and the name of the label column",
            ));
        }
    }
    let values = survey.values();
    match (&options.positive, &options.negative, values.as_deref()) {
        (Some(positive), Some(negative), _) => Ok((
            label(vec![positive.clone()], vec![negative.clone()], Others::Error),
            "Both classes as asked for.".into(),
        )),
        (Some(positive), None, Some([a, b])) => {
            let negative = if survey.same(a, positive) { b } else { a };
            Ok((label(vec![positive.clone()], vec![negative.clone()], Others::Error), "Positive as asked for.".into()))
        }
        (Some(positive), None, _) => Ok((
            label(vec![positive.clone()], vec![], Others::Negative),
            "Positive as asked for; every other value is negative.".into(),
        )),
        (None, Some(negative), _) => Ok((
            label(vec![], vec![negative.clone()], Others::Positive),
            "Negative as asked for; every other value is positive.".into(),
        )),
        (None, None, Some([a, b])) => {
            let (positive, why) = survey.likely_positive(a, b);
            let negative = if positive == a { b } else { a };
            Ok((
                label(vec![positive.clone()], vec![negative.clone()], Others::Error),
                format!("Positive was guessed: {why}."),
            ))
        }
        (None, None, _) => Err(undecided(
            format!("the classes of the label column `{name}` are not clear, because it does not have two values"),
            "name the label column with --label and the positive value with --positive",
        )
        .expected("two values")),
    }
}
