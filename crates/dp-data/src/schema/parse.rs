//! Parsing of a schema from TOML. The tree is traversed by hand, so that messages can name the field, the line and the nearest
//! known key.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::format::date_of_text;
use super::{
    CellFormat, Column, ColumnKind, DateFormat, DatePart, FileFormat, Fill, Label, LabelKind, LabelRange, NumberFormat,
    OTHER_CATEGORY, OnMissing, OnUnknown, OnUnreadable, Others, Review, Scale, Schema,
};
use crate::error::{DataError, DataErrorKind};

pub(super) fn parse(text: &str) -> Result<Schema, DataError> {
    let document = DeTable::parse(text).map_err(|error| {
        let refused = DataError::new(DataErrorKind::SchemaSyntax, format!("not well-formed TOML: {}", error.message()))
            .help("`dp schema` drafts a schema");
        match error.span() {
            Some(span) => refused.at_line(line_of(text, span.start)),
            None => refused,
        }
    })?;
    let root = Section { text, path: String::new(), table: document.get_ref(), span: 0..0 };
    root.check_keys(&["label", "columns", "missing", "on_missing", "on_unreadable", "file"])?;
    let file = parse_file(&root)?;

    let missing = root.optional_strings("missing")?.unwrap_or_else(|| vec![String::new()]);
    let defaults = (root.on_missing()?.unwrap_or_default(), root.on_unreadable()?.unwrap_or_default());
    let label = parse_label(&root.required_section("label")?)?;
    let columns_section = root.required_section("columns")?;
    let mut columns = Vec::new();
    for name in columns_section.table.keys() {
        let section = columns_section.required_section(name.get_ref())?;
        columns.push(parse_column(name.get_ref(), &section, &defaults)?);
    }
    let schema = Schema::new(columns, label, missing).and_then(|schema| schema.with_file(file));
    schema.map_err(|error| {
        // Finding the line takes a pass through the text, which is made for one error and not for each column.
        let of_label = error.field().is_some_and(|field| field.starts_with("label."));
        let column = error.column().and_then(|name| columns_section.get(name));
        let of_file = error.field().is_some_and(|field| field.starts_with("file."));
        let others = || root.get("label").filter(|_| of_label).or_else(|| root.get("file").filter(|_| of_file));
        match column.or_else(others) {
            Some(value) => error.at_line(line_of(text, value.span().start)),
            None => error,
        }
    })
}

fn parse_file(root: &Section<'_>) -> Result<FileFormat, DataError> {
    if root.get("file").is_none() {
        return Ok(FileFormat::default());
    }
    let section = root.required_section("file")?;
    section.check_keys(&["delimiter", "encoding", "header", "reviewed"])?;
    Ok(FileFormat {
        delimiter: section.character("delimiter")?,
        encoding: section.string("encoding")?,
        header: section.boolean("header")?,
        review: section.review()?,
    })
}

fn parse_column(
    name: &str,
    section: &Section<'_>,
    (default, on_unreadable): &(OnMissing, OnUnreadable),
) -> Result<Column, DataError> {
    let kind_name = section.word("type", &TYPES)?.ok_or_else(|| {
        section
            .error(DataErrorKind::SchemaMissingKey, "type", format!("column `{name}` has no type"))
            .expected(in_backquotes(&TYPES))
    })?;
    let common = ["type", "column", "on_missing", "missing", "line_ends", "reviewed"];
    let own: &[&str] = match kind_name {
        "numeric" => &["min", "max", "decimal", "thousands", "unit", "log1p", "scale", "cosines", "on_unreadable"],
        "date" => &["format", "min", "max", "scale", "cosines", "on_unreadable"],
        "hour" => &["format", "scale", "cosines", "on_unreadable"],
        "weekday" | "month" => &["format", "on_unreadable"],
        "indicator" => &["one", "zero", "on_unreadable"],
        "categorical" => &["categories", "on_unknown"],
        _ => &[],
    };
    section.check_keys(&[&common[..], own].concat())?;
    let declared = section.on_missing()?;
    let on_unreadable = section.on_unreadable()?.unwrap_or(*on_unreadable);
    let part = DatePart::WORDS.iter().find(|(word, _)| *word == kind_name).map(|(_, part)| *part);
    let (kind, format) = match (kind_name, part) {
        (_, Some(part)) => parse_date(name, section, part, on_unreadable)?,
        ("numeric", _) => (
            parse_numeric(name, section, on_unreadable, DatePart::Days)?,
            parse_number_format(section)?.map(CellFormat::Number),
        ),
        ("indicator", _) => (ColumnKind::Indicator { on_unreadable }, parse_flag(section)?),
        ("categorical", _) => (parse_categorical(name, section)?, None),
        _ => (ColumnKind::Drop, None),
    };
    let on_missing = match declared {
        Some(on_missing) => on_missing,
        // The schema's default applies to all columns, so it is dropped where it is not applicable.
        None => match (default, &kind) {
            (OnMissing::Category, ColumnKind::Numeric { .. } | ColumnKind::Indicator { .. })
            | (_, ColumnKind::Drop) => OnMissing::Error,
            (default, _) => default.clone(),
        },
    };
    let missing = section.optional_strings("missing")?;
    let line_ends = section.boolean("line_ends")?.unwrap_or(false);
    let (source, review) = (section.string("column")?.filter(|source| source != name), section.review()?);
    Ok(Column { name: name.to_owned(), source, kind, format, on_missing, missing, line_ends, review })
}

/// The types of columns.
const TYPES: [&str; 8] = ["numeric", "indicator", "categorical", "date", "weekday", "month", "hour", "drop"];

fn parse_date(
    name: &str,
    section: &Section<'_>,
    part: DatePart,
    on_unreadable: OnUnreadable,
) -> Result<(ColumnKind, Option<CellFormat>), DataError> {
    let pattern = section.string("format")?.ok_or_else(|| {
        section
            .error(DataErrorKind::SchemaMissingKey, "format", format!("column `{name}` has no format"))
            .expected("how its cells are written, such as \"%Y-%m-%d\" or \"%d.%m.%Y %H:%M\"")
    })?;
    let kind = match part.categories() {
        None => parse_numeric(name, section, on_unreadable, part)?,
        Some(categories) => ColumnKind::Categorical {
            categories: categories.iter().map(|&category| category.to_owned()).collect(),
            on_unknown: match on_unreadable {
                OnUnreadable::Error => OnUnknown::Error,
                OnUnreadable::Neutral => OnUnknown::Neutral,
                OnUnreadable::Missing => {
                    return Err(section.wrong_type("on_unreadable", "`error` or `neutral`"));
                }
            },
        },
    };
    Ok((kind, Some(CellFormat::Date(DateFormat { pattern, part }))))
}

fn parse_number_format(section: &Section<'_>) -> Result<Option<NumberFormat>, DataError> {
    let (decimal, thousands) = (section.character("decimal")?, section.character("thousands")?);
    let units = section.optional_strings("unit")?;
    let is_declared = decimal.is_some() || thousands.is_some() || units.is_some();
    Ok(is_declared.then(|| NumberFormat {
        decimal: decimal.unwrap_or(NumberFormat::default().decimal),
        thousands,
        units: units.unwrap_or_default(),
    }))
}

fn parse_flag(section: &Section<'_>) -> Result<Option<CellFormat>, DataError> {
    let (one, zero) = (section.optional_strings("one")?, section.optional_strings("zero")?);
    let is_declared = one.is_some() || zero.is_some();
    let texts = |texts: Option<Vec<String>>| texts.unwrap_or_default();
    Ok(is_declared.then(|| CellFormat::Flag { one: texts(one), zero: texts(zero) }))
}

fn parse_numeric(
    name: &str,
    section: &Section<'_>,
    on_unreadable: OnUnreadable,
    part: DatePart,
) -> Result<ColumnKind, DataError> {
    let bound = |key: &str, of_hours: f64| match part {
        DatePart::Hour => Ok(of_hours),
        _ => section.bound(key, || format!("column `{name}` has no {key}")),
    };
    Ok(ColumnKind::Numeric {
        min: bound("min", 0.0)?,
        max: bound("max", 24.0)?,
        log1p: section.boolean("log1p")?.unwrap_or(false),
        scale: section
            .word("scale", &Scale::WORDS.map(|(word, _)| word))?
            .and_then(|found| Scale::WORDS.iter().find(|(word, _)| *word == found).map(|(_, scale)| *scale)),
        cosines: section.count("cosines")?,
        on_unreadable,
    })
}

fn parse_categorical(name: &str, section: &Section<'_>) -> Result<ColumnKind, DataError> {
    let categories = section.optional_strings("categories")?.ok_or_else(|| {
        section
            .error(DataErrorKind::SchemaMissingKey, "categories", format!("column `{name}` lists no categories"))
            .expected("the values that are publicly known to be possible")
    })?;
    let on_unknown = match section.word("on_unknown", &["error", "other", "neutral"])? {
        Some("other") => OnUnknown::Other,
        Some("neutral") => OnUnknown::Neutral,
        Some(_) => OnUnknown::Error,
        None if categories.iter().any(|category| category == OTHER_CATEGORY) => OnUnknown::Other,
        None => OnUnknown::Error,
    };
    Ok(ColumnKind::Categorical { categories, on_unknown })
}

fn parse_label(section: &Section<'_>) -> Result<Label, DataError> {
    // Without a type the keys determine the kind; two classes are the usual one.
    let kind_name = match section.word("type", &["two_classes", "classes", "numeric"])? {
        Some(name) => name,
        None if section.get("classes").is_some() => "classes",
        None => "two_classes",
    };
    let common = ["column", "type", "on_missing", "reviewed"];
    let own: &[&str] = match kind_name {
        "numeric" => &["min", "max", "decimal", "thousands", "unit", "on_unreadable"],
        "classes" => &["classes", "others"],
        _ => &["positive", "negative", "others"],
    };
    section.check_keys(&[&common[..], own].concat()).map_err(|error| match error.field() {
        Some("label.min" | "label.max") => error.help("a label that is a number has `type = \"numeric\"`"),
        _ => error,
    })?;
    let column = section.string("column")?.ok_or_else(|| {
        section
            .error(DataErrorKind::SchemaMissingKey, "column", "the label has no column")
            .expected("the name of the column to predict")
    })?;
    let kind = match kind_name {
        "numeric" => LabelKind::Number(LabelRange {
            min: section.bound("min", || "the label has no min".into())?,
            max: section.bound("max", || "the label has no max".into())?,
        }),
        "classes" => LabelKind::Classes {
            classes: section.optional_strings("classes")?.ok_or_else(|| {
                section
                    .error(DataErrorKind::SchemaMissingKey, "classes", "the label lists no classes")
                    .expected("the values that are publicly known to be possible")
            })?,
            others_are_neutral: section.word("others", &["error", "neutral"])? == Some("neutral"),
        },
        _ => LabelKind::TwoClasses {
            positive: section.optional_strings("positive")?.unwrap_or_default(),
            negative: section.optional_strings("negative")?.unwrap_or_default(),
            others: match section.word("others", &["error", "positive", "negative", "neutral"])? {
                Some("positive") => Others::Positive,
                Some("negative") => Others::Negative,
                Some("neutral") => Others::Neutral,
                _ => Others::Error,
            },
        },
    };
    let missing_is_neutral = section.word("on_missing", &["error", "neutral"])? == Some("neutral");
    let unreadable_is_neutral = section.word("on_unreadable", &["error", "neutral"])? == Some("neutral");
    let (format, review) = (parse_number_format(section)?, section.review()?);
    Ok(Label { column, kind, format, missing_is_neutral, unreadable_is_neutral, review })
}

/// A table with its path, for reading typed values from it.
struct Section<'a> {
    text: &'a str,
    path: String,
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Section<'a> {
    fn field(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    fn error(&self, kind: DataErrorKind, key: &str, message: impl Into<String>) -> DataError {
        let start = match self.get(key) {
            Some(value) => value.span().start,
            None => self.span.start,
        };
        DataError::new(kind, message).at_field(self.field(key)).at_line(line_of(self.text, start))
    }

    fn wrong_type(&self, key: &str, expected: impl Into<String>) -> DataError {
        let found = self.get(key).map_or("nothing", |value| value.get_ref().type_str());
        self.error(DataErrorKind::SchemaType, key, format!("`{key}` holds {found} that does not fit here"))
            .expected(expected)
    }

    fn check_keys(&self, known: &[&str]) -> Result<(), DataError> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let mut error = DataError::new(DataErrorKind::SchemaUnknownKey, format!("`{name}` has no meaning here"))
                .at_field(self.field(name))
                .at_line(line_of(self.text, key.span().start))
                .expected(format!("one of {}", known.join(", ")));
            if let Some(near) = nearest(name, known) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            return Err(error);
        }
        Ok(())
    }

    fn required_section(&self, key: &str) -> Result<Section<'a>, DataError> {
        let value = self.get(key).ok_or_else(|| {
            self.error(DataErrorKind::SchemaMissingKey, key, format!("the table [{}] is missing", self.field(key)))
        })?;
        let table = value.get_ref().as_table().ok_or_else(|| self.wrong_type(key, "a table"))?;
        Ok(Section { text: self.text, path: self.field(key), table, span: value.span() })
    }

    fn string(&self, key: &str) -> Result<Option<String>, DataError> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(text.clone().into_owned())),
            Some(_) => Err(self.wrong_type(key, "a string")),
        }
    }

    fn word(&self, key: &str, words: &[&'static str]) -> Result<Option<&'static str>, DataError> {
        let expected = || in_backquotes(words);
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::String(text)) => match words.iter().find(|word| **word == *text) {
                Some(word) => Ok(Some(word)),
                None => Err(self.wrong_type(key, format!("one of {}", expected()))),
            },
            Some(_) => Err(self.wrong_type(key, format!("one of {}", expected()))),
        }
    }

    /// Returns a string of one character.
    fn character(&self, key: &str) -> Result<Option<char>, DataError> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(one), None) => Ok(Some(one)),
            _ => Err(self.wrong_type(key, "one character")),
        }
    }

    fn boolean(&self, key: &str) -> Result<Option<bool>, DataError> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::Boolean(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong_type(key, "true or false")),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, DataError> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(value) => match number_of(value) {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong_type(key, "a number")),
            },
        }
    }

    fn count(&self, key: &str) -> Result<Option<u32>, DataError> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::Integer(number)) if number.radix() == 10 && number.as_str().parse::<u32>().is_ok() => {
                Ok(number.as_str().parse().ok())
            }
            Some(_) => Err(self.wrong_type(key, "a number such as 0 or 4")),
        }
    }

    /// Returns a required number.
    fn bound(&self, key: &str, missing: impl FnOnce() -> String) -> Result<f64, DataError> {
        self.number(key)?.ok_or_else(|| {
            self.error(DataErrorKind::BoundsMissing, key, missing())
                .expected("min and max that hold for everyone, known without looking at this data")
                .help("for instance `min = 0`, `max = 120` for an age")
        })
    }

    /// Returns a string, a number or a truth value as its text, or a list of such.
    fn optional_strings(&self, key: &str) -> Result<Option<Vec<String>>, DataError> {
        let expected = "a string or a list of strings";
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::Array(items)) => items
                .iter()
                .map(|item| text_of(item.get_ref()).ok_or_else(|| self.wrong_type(key, expected)))
                .collect::<Result<Vec<_>, _>>()
                .map(Some),
            Some(value) => match text_of(value) {
                Some(text) => Ok(Some(vec![text])),
                None => Err(self.wrong_type(key, expected)),
            },
        }
    }

    fn on_missing(&self) -> Result<Option<OnMissing>, DataError> {
        let key = "on_missing";
        match self.get(key).map(Spanned::get_ref) {
            Some(DeValue::Table(_)) => {
                let section = self.required_section(key)?;
                section.check_keys(&["value"])?;
                match section.get("value").map(Spanned::get_ref) {
                    Some(DeValue::String(text)) => {
                        Ok(Some(OnMissing::Value(Fill::Category(text.clone().into_owned()))))
                    }
                    Some(value) => match number_of(value) {
                        Some(number) => Ok(Some(OnMissing::Value(Fill::Number(number)))),
                        None => Err(section.wrong_type("value", "a number or a category")),
                    },
                    None => Err(section.error(
                        DataErrorKind::SchemaMissingKey,
                        "value",
                        "`on_missing` is a table without `value`",
                    )),
                }
            }
            _ => Ok(self.word(key, &["error", "neutral", "category"])?.map(|word| match word {
                "neutral" => OnMissing::Neutral,
                "category" => OnMissing::Category,
                _ => OnMissing::Error,
            })),
        }
    }

    fn on_unreadable(&self) -> Result<Option<OnUnreadable>, DataError> {
        Ok(self.word("on_unreadable", &["error", "neutral", "missing"])?.map(|word| match word {
            "neutral" => OnUnreadable::Neutral,
            "missing" => OnUnreadable::Missing,
            _ => OnUnreadable::Error,
        }))
    }

    fn review(&self) -> Result<Review, DataError> {
        match self.get("reviewed").map(Spanned::get_ref) {
            None | Some(DeValue::Boolean(true)) => Ok(Review::Reviewed),
            Some(DeValue::Boolean(false)) => Ok(Review::Unreviewed),
            Some(DeValue::String(text)) if *text == "assumed-public" => Ok(Review::AssumedPublic),
            Some(_) => Err(self.wrong_type("reviewed", "true, false or \"assumed-public\"")),
        }
    }
}

fn in_backquotes(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        // Days, as the numbers of a column of dates.
        DeValue::Datetime(when) => date_of_text(&when.to_string()),
        _ => None,
    }
}

fn line_of(text: &str, offset: usize) -> u64 {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1
}

/// Returns the known word with the fewest edits, if these are few.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|word| (edits(name, word), *word))
        .min()
        .filter(|(distance, _)| *distance <= 2)
        .map(|(_, word)| word)
}

/// Returns the Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
