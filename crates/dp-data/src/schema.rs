//! The public properties of a table: its columns with their ranges and categories, and its label.
//!
//! Ranges and categories determine the encoding of a record, so they must not come from the records. The parts of a
//! [draft](crate::draft) taken from the data are marked [`Review::Unreviewed`] until a person has replaced or confirmed them, or
//! has declared them public by name, which the certificate then records.

mod format;
mod label;
mod parse;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

#[cfg(feature = "files")]
pub(crate) use format::is_blank;
pub use format::{CellFormat, DateFormat, DatePart, NumberFormat, date_text};
pub(crate) use format::{FIRST_DAY, LAST_DAY, date_of_text, days_of};
pub use label::{Label, LabelKind, LabelRange, MAX_CLASSES, Others};

use crate::error::{DataError, DataErrorKind};

/// The checked columns of a table and its label.
///
/// It is read from commented TOML with [`Schema::parse`] and written with [`Schema::to_toml`]; with serde it becomes part of a
/// model file.
///
/// # Privacy
/// Everything in it is public. Feature columns keep the order in which the schema lists them.
///
/// # Examples
/// ```
/// use dp_data::schema::Schema;
///
/// let schema = Schema::parse(
///     "people.toml",
///     r#"
///     [label]
///     column = "income"
///     positive = ">50K"
///     negative = "<=50K"
///
///     [columns.age]
///     type = "numeric"
///     min = 0
///     max = 120
///
///     [columns.work]
///     type = "categorical"
///     categories = ["private", "public", "other"]
///     "#,
/// )?;
/// assert_eq!(schema.columns().len(), 2);
/// assert!(schema.unreviewed().is_empty());
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SchemaRecord", into = "SchemaRecord")]
pub struct Schema {
    columns: Vec<Column>,
    label: Label,
    missing: Vec<String>,
    file: FileFormat,
}

/// The format of a table's text, if it is not UTF-8 with a header and commas between cells.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFormat {
    /// The ASCII character between cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// The encoding of the text by one of its names: `windows-1252` (also `latin1`), `utf-16le`, `shift_jis`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// False if the first row is a record; columns are then named `column1`, `column2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Its review, since a single record can decide the encoding that a draft finds. It is listed among the columns as
    /// [`FILE`].
    #[serde(default, skip_serializing_if = "Review::is_reviewed")]
    pub review: Review,
}

/// The name of a [`FileFormat`] among those of unreviewed columns and of those that are assumed public.
pub const FILE: &str = "<file>";

impl FileFormat {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self) -> Result<(), DataError> {
        let refuse = |key: &str, message: &str| {
            DataError::new(DataErrorKind::SchemaFormat, message).at_field(format!("file.{key}"))
        };
        if self
            .delimiter
            .is_some_and(|mark| !mark.is_ascii() || mark.is_ascii_alphanumeric() || "\n\r\"\0".contains(mark))
        {
            return Err(refuse("delimiter", "the delimiter cannot stand between cells")
                .expected("one ASCII character other than a letter, a digit, a quote or a line end"));
        }
        #[cfg(feature = "files")]
        if let Some(encoding) = &self.encoding
            && crate::read::TextEncoding::of_label(encoding).is_none()
        {
            return Err(refuse("encoding", "there is no such encoding")
                .expected("a name such as \"windows-1252\", \"latin1\", \"utf-16le\" or \"shift_jis\""));
        }
        Ok(())
    }
}

/// The serialised part of a schema; it is checked again when read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaRecord {
    label: Label,
    columns: Vec<Column>,
    missing: Vec<String>,
    #[serde(default, skip_serializing_if = "FileFormat::is_usual")]
    file: FileFormat,
}

impl From<Schema> for SchemaRecord {
    fn from(schema: Schema) -> Self {
        Self { label: schema.label, columns: schema.columns, missing: schema.missing, file: schema.file }
    }
}

impl TryFrom<SchemaRecord> for Schema {
    type Error = DataError;

    fn try_from(record: SchemaRecord) -> Result<Self, DataError> {
        Self::new(record.columns, record.label, record.missing)?.with_file(record.file)
    }
}

/// One column of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name, which is also that in the header unless `source` is another.
    pub name: String,
    /// The column of the table that it is taken from, if that has another name: several columns of a schema can share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its kind.
    pub kind: ColumnKind,
    /// The format of its cells. `None`: plain numbers, or the categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<CellFormat>,
    /// The treatment of a missing cell.
    #[serde(default)]
    pub on_missing: OnMissing,
    /// Markers of missing values of this column, instead of the schema's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
    /// True if quoted cells may contain line ends and as many delimiters as a row. Otherwise they are refused: a stray quote swallows
    /// the next rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub line_ends: bool,
    /// The review of its range or categories.
    #[serde(default)]
    pub review: Review,
}

impl Column {
    /// Creates a reviewed column of this kind, with the usual treatment of missing cells.
    ///
    /// # Examples
    /// ```
    /// use dp_data::schema::{Column, ColumnKind, OnMissing};
    /// let column = Column::new("notes", ColumnKind::Drop);
    /// assert_eq!((column.source(), &column.on_missing), ("notes", &OnMissing::Error));
    /// ```
    pub fn new(name: &str, kind: ColumnKind) -> Self {
        Self {
            name: name.to_owned(),
            source: None,
            kind,
            format: None,
            on_missing: OnMissing::default(),
            missing: None,
            line_ends: false,
            review: Review::Reviewed,
        }
    }

    /// Returns the name of its column in the table.
    pub fn source(&self) -> &str {
        self.source.as_deref().unwrap_or(&self.name)
    }

    /// Returns whether its numbers are days since 1970-01-01.
    pub fn is_date(&self) -> bool {
        matches!(&self.format, Some(CellFormat::Date(DateFormat { part: DatePart::Days, .. })))
    }

    /// Returns whether its cells may contain line ends: it is declared, or a declared category or marker of missing values has
    /// one.
    #[cfg(feature = "files")]
    pub(crate) fn has_line_ends(&self) -> bool {
        let categories = match &self.kind {
            ColumnKind::Categorical { categories, .. } => categories.as_slice(),
            _ => &[],
        };
        self.line_ends || categories.iter().chain(self.missing.iter().flatten()).any(|text| holds_line_end(text))
    }
}

impl Column {
    /// Returns whether some cell of it could stop the reading of its file.
    fn can_refuse(&self) -> bool {
        let missing = self.on_missing == OnMissing::Error;
        match &self.kind {
            ColumnKind::Drop => false,
            ColumnKind::Numeric { on_unreadable, .. } | ColumnKind::Indicator { on_unreadable } => {
                missing || *on_unreadable == OnUnreadable::Error
            }
            ColumnKind::Categorical { on_unknown, .. } => missing || *on_unknown == OnUnknown::Error,
        }
    }
}

/// Returns whether a text spans several lines.
#[cfg(feature = "files")]
pub(crate) fn holds_line_end(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// The kind of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ColumnKind {
    /// Numbers in a public range. Values outside are clamped to it.
    Numeric {
        /// The least possible value.
        min: f64,
        /// The greatest possible value.
        max: f64,
        /// True if `log(1 + value)` is used in place of the value, for ranges that span powers of ten.
        #[serde(default)]
        log1p: bool,
        /// The scale of its coordinate. `None`: that of the encoding.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scale: Option<Scale>,
        /// The number of its cosines. `None`: that of the encoding.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cosines: Option<u32>,
        /// The treatment of a cell that is not a number.
        #[serde(default = "OnUnreadable::of_older_files", skip_serializing_if = "OnUnreadable::is_of_older_files")]
        on_unreadable: OnUnreadable,
    },
    /// A number that is 0 or 1, such as a column that is one-hot already. It is used unchanged: unlike a numeric column it is not
    /// mapped to `[-1, 1]`, so that a row's many zeros stay zeros. Values outside `[0, 1]` are clamped.
    Indicator {
        /// The treatment of a cell that is not a number.
        #[serde(default = "OnUnreadable::of_older_files", skip_serializing_if = "OnUnreadable::is_of_older_files")]
        on_unreadable: OnUnreadable,
    },
    /// One of a public list of values.
    Categorical {
        /// The values.
        categories: Vec<String>,
        /// The treatment of any other value.
        on_unknown: OnUnknown,
    },
    /// The column is not used.
    Drop,
}

/// The scale of a numeric column's coordinate, a monotone map of its public range to `[0, 1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scale {
    /// `z = (x - min)/(max - min)`.
    #[default]
    Linear,
    /// `z = ln(1 + 100 u)/ln(1 + 100)` for `u` the linear coordinate, so that small values are told apart. If the range is
    /// below 0, the scale is mirrored; if the range contains 0, the scale applies to the size of `x` on both sides.
    Log,
    /// Logarithmic if the range spans orders of magnitude, that is, if one of `|min|` and `|max|` is below a tenth of the other;
    /// otherwise linear.
    ByRange,
}

impl Scale {
    /// Every scale by the word for it in a schema.
    pub(crate) const WORDS: [(&'static str, Self); 3] =
        [("linear", Self::Linear), ("log", Self::Log), ("by_range", Self::ByRange)];
}

/// The treatment of a missing cell: one that holds a marker of missing values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnMissing {
    /// The file is refused.
    #[default]
    Error,
    /// The record becomes a null record: it keeps its place and has no influence.
    Neutral,
    /// This value replaces it.
    Value(Fill),
    /// Missing is its own category (categorical columns only).
    Category,
}

/// The treatment of a cell of a numeric column that is neither a finite number nor a marker of missing values.
///
/// Such a cell usually shows that the file has another format than its reader expects: `12,345.60`, `12 kg`. A model file of a
/// version without this setting reads as [`Missing`](Self::Missing), as it was trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnUnreadable {
    /// The file is refused.
    #[default]
    Error,
    /// The record becomes a null record.
    Neutral,
    /// It counts as missing.
    Missing,
}

impl OnUnreadable {
    const fn of_older_files() -> Self {
        Self::Missing
    }

    fn is_of_older_files(&self) -> bool {
        *self == Self::of_older_files()
    }
}

/// The replacement of a missing value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fill {
    /// A number within the range of the column.
    Number(f64),
    /// A declared category.
    Category(String),
}

/// The treatment of a value that is not among the declared categories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnUnknown {
    /// The file is refused.
    #[default]
    Error,
    /// It counts as the declared category named `other`.
    Other,
    /// The record becomes a null record.
    Neutral,
}

/// The name of the category that represents all undeclared ones.
pub const OTHER_CATEGORY: &str = "other";

/// The review of a field of the schema, which may contain only public information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Review {
    /// A person wrote or confirmed it.
    #[default]
    Reviewed,
    /// It was taken from the data and is unreviewed.
    Unreviewed,
    /// It was taken from the data and declared public by name.
    AssumedPublic,
}

impl Review {
    fn is_reviewed(&self) -> bool {
        *self == Self::Reviewed
    }
}

impl Schema {
    /// Creates a schema of these columns and label; `missing` lists the markers of missing values (usually the empty string).
    ///
    /// # Errors
    /// [`DataError`] with a code of `schema.*` or `bounds.*` if they are contradictory.
    pub fn new(columns: Vec<Column>, label: Label, missing: Vec<String>) -> Result<Self, DataError> {
        validate::check(&columns, &label)?;
        Ok(Self { columns, label, missing, file: FileFormat::default() })
    }

    /// Sets how the text of the table is written.
    ///
    /// # Errors
    /// `schema.format`.
    pub fn with_file(self, file: FileFormat) -> Result<Self, DataError> {
        file.check()?;
        Ok(Self { file, ..self })
    }

    /// Returns how the text of the table is written.
    pub fn file(&self) -> &FileFormat {
        &self.file
    }

    /// Returns whether some record, well-formed as a row of cells, could stop the reading of its file: by a cell of a column with
    /// `error`, or by such a label.
    pub fn can_refuse_records(&self) -> bool {
        self.label.can_refuse() || self.columns.iter().any(Column::can_refuse)
    }

    /// Returns the columns of the table, including the label's, whose cells may contain line ends.
    #[cfg(feature = "files")]
    pub(crate) fn with_line_ends(&self) -> HashSet<&str> {
        let everywhere = self.missing.iter().any(|text| holds_line_end(text));
        let columns = self.columns.iter().filter(|column| everywhere || column.has_line_ends());
        let label = (everywhere || self.label.has_line_ends()).then_some(self.label.column.as_str());
        columns.map(Column::source).chain(label).collect()
    }

    /// Parses a schema from TOML; `file` is its name in messages.
    ///
    /// # Errors
    /// [`DataError`] with a code of `schema.*` or `bounds.*`, the field and, if known, the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, DataError> {
        // A byte order mark is not part of the text.
        parse::parse(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|error| error.in_file(file))
    }

    /// Returns the schema as TOML, with a `# REVIEW` comment at every unreviewed part.
    pub fn to_toml(&self) -> String {
        write::to_toml(self, &|_| None)
    }

    /// As [`to_toml`](Self::to_toml), with a comment above the columns for which `comment` returns one.
    pub fn to_toml_with_comments(&self, comment: &dyn Fn(&str) -> Option<String>) -> String {
        write::to_toml(self, comment)
    }

    /// Returns the feature columns, including dropped ones, in the order of the schema.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the label.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Returns the markers of missing values, for columns without their own.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Returns the markers of missing values of `column`.
    pub fn missing_of<'a>(&'a self, column: &'a Column) -> &'a [String] {
        column.missing.as_ref().unwrap_or(&self.missing)
    }

    /// Returns the names of columns, including the label's, whose public part was taken from the data and not reviewed.
    pub fn unreviewed(&self) -> Vec<&str> {
        self.names_in(Review::Unreviewed)
    }

    /// Returns the names of columns, including the label's, that were declared public; the certificate lists them.
    pub fn assumed_public(&self) -> Vec<&str> {
        self.names_in(Review::AssumedPublic)
    }

    /// Declares the unreviewed columns of these names public, including the label's if it is named.
    ///
    /// # Errors
    /// `schema.unknown_column` if a name is not in the schema; in this case nothing changes.
    pub fn assume_public<S: AsRef<str>>(&mut self, names: &[S]) -> Result<(), DataError> {
        let known: HashSet<&str> =
            self.columns.iter().map(|column| column.name.as_str()).chain([self.label.column.as_str(), FILE]).collect();
        for name in names.iter().map(AsRef::as_ref) {
            if !known.contains(name) {
                return Err(DataError::new(
                    DataErrorKind::SchemaUnknownColumn,
                    format!("there is no column `{name}` to assume public"),
                )
                .at_column(name)
                .expected("the name of a column or of the label"));
            }
        }
        let named: HashSet<&str> = names.iter().map(AsRef::as_ref).collect();
        self.assume_where(|name| named.contains(name));
        Ok(())
    }

    /// Declares everything unreviewed public.
    pub fn assume_all_public(&mut self) {
        self.assume_where(|_| true);
    }

    /// Refuses a schema with unreviewed parts; training calls this before any record is read.
    ///
    /// # Errors
    /// `schema.unreviewed`, naming the columns.
    pub fn check_reviewed(&self) -> Result<(), DataError> {
        let names = self.unreviewed();
        let Some(first) = names.first() else { return Ok(()) };
        let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(DataError::new(
            DataErrorKind::SchemaUnreviewed,
            format!("ranges, categories or classes were taken from the data and not reviewed: {list}"),
        )
        .at_column(*first)
        .expected("values known without looking at this data, marked `reviewed = true`")
        .help("edit the schema, or declare the columns public by name with --assume-public"))
    }

    /// Returns whether some record can become a null record under this schema.
    pub fn can_be_neutral(&self) -> bool {
        self.label.can_be_neutral()
            || self.columns.iter().any(|column| match &column.kind {
                ColumnKind::Drop => false,
                ColumnKind::Categorical { on_unknown: OnUnknown::Neutral, .. }
                | ColumnKind::Numeric { on_unreadable: OnUnreadable::Neutral, .. }
                | ColumnKind::Indicator { on_unreadable: OnUnreadable::Neutral } => true,
                _ => column.on_missing == OnMissing::Neutral,
            })
    }

    fn names_in(&self, review: Review) -> Vec<&str> {
        let label = (self.label.review == review).then_some(self.label.column.as_str());
        let columns = self.columns.iter().filter(|column| column.review == review).map(|column| column.name.as_str());
        let file = (self.file.review == review && !self.file.is_usual()).then_some(FILE);
        label.into_iter().chain(columns).chain(file).collect()
    }

    fn assume_where(&mut self, named: impl Fn(&str) -> bool) {
        let assume = |review: &mut Review| {
            if *review == Review::Unreviewed {
                *review = Review::AssumedPublic;
            }
        };
        if named(&self.label.column) {
            assume(&mut self.label.review);
        }
        if named(FILE) {
            assume(&mut self.file.review);
        }
        for column in self.columns.iter_mut().filter(|column| named(&column.name)) {
            assume(&mut column.review);
        }
    }
}
