//! Writing of a schema as commented TOML.

use std::fmt::Write as _;

use super::format::{date_of_text, date_text};
use super::{
    CellFormat, Column, ColumnKind, DatePart, FILE, FileFormat, Fill, LabelKind, NumberFormat, OnMissing, OnUnknown,
    OnUnreadable, Others, Review, Scale, Schema,
};

const HEAD: &str = "\
# What is publicly known about the table. Ranges, categories and classes decide how records are encoded, so they must
# be known without looking at the records. Fields marked `reviewed = false` were taken from the data: replace them by
# what is publicly known and set `reviewed = true`. Until then training refuses this schema.
";

pub(super) fn to_toml(schema: &Schema, comment: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::from(HEAD);
    line(&mut out, "missing", &strings(&schema.missing));
    write_file(&mut out, &schema.file, comment(FILE));
    let label = &schema.label;
    out.push_str("\n[label]\n");
    comments(&mut out, comment(&label.column));
    line(&mut out, "column", &quoted(&label.column));
    let question = write_label_kind(&mut out, &label.kind);
    if let Some(format) = &label.format {
        write_number_format(&mut out, format);
    }
    if label.missing_is_neutral {
        line(&mut out, "on_missing", "\"neutral\"");
    }
    if label.unreadable_is_neutral {
        line(&mut out, "on_unreadable", "\"neutral\"");
    }
    review(&mut out, label.review, question);
    for column in &schema.columns {
        write_column(&mut out, column, comment(&column.name));
    }
    out
}

fn write_file(out: &mut String, file: &FileFormat, comment: Option<String>) {
    if file.is_usual() {
        return;
    }
    out.push_str("\n[file]\n");
    comments(out, comment);
    if let Some(delimiter) = file.delimiter {
        line(out, "delimiter", &quoted(&delimiter.to_string()));
    }
    if let Some(encoding) = &file.encoding {
        line(out, "encoding", &quoted(encoding));
    }
    if let Some(header) = file.header {
        line(out, "header", if header { "true" } else { "false" });
    }
    review(out, file.review, "are all such files written in this way?");
}

/// Writes the label's kind, and returns the question for its reviewer.
fn write_label_kind(out: &mut String, kind: &LabelKind) -> &'static str {
    match kind {
        LabelKind::TwoClasses { positive, negative, others } => {
            for (key, values) in [("positive", positive), ("negative", negative)] {
                match values.as_slice() {
                    [] => {}
                    [one] => line(out, key, &quoted(one)),
                    many => line(out, key, &strings(many)),
                }
            }
            match others {
                Others::Error => {}
                Others::Positive => line(out, "others", "\"positive\""),
                Others::Negative => line(out, "others", "\"negative\""),
                Others::Neutral => line(out, "others", "\"neutral\""),
            }
            "are these the classes, and is the positive one the one to predict?"
        }
        LabelKind::Classes { classes, others_are_neutral } => {
            line(out, "classes", &strings(classes));
            if *others_are_neutral {
                line(out, "others", "\"neutral\"");
            }
            "which classes are publicly known to be possible?"
        }
        LabelKind::Number(range) => {
            line(out, "type", "\"numeric\"");
            line(out, "min", &number(range.min));
            line(out, "max", &number(range.max));
            "which range holds for everyone?"
        }
    }
}

fn write_column(out: &mut String, column: &Column, comment: Option<String>) {
    let _ = writeln!(out, "\n[columns.{}]", key(&column.name));
    comments(out, comment);
    let part = match &column.format {
        Some(CellFormat::Date(format)) => {
            if let Some((word, _)) = DatePart::WORDS.iter().find(|(_, part)| *part == format.part) {
                line(out, "type", &quoted(word));
            }
            Some((format, format.part))
        }
        _ => None,
    };
    if let Some(source) = &column.source {
        line(out, "column", &quoted(source));
    }
    if let Some((format, _)) = part {
        line(out, "format", &quoted(&format.pattern));
    }
    let question = match &column.kind {
        ColumnKind::Numeric { scale, cosines, on_unreadable, .. }
            if part.is_some_and(|(_, part)| part == DatePart::Hour) =>
        {
            write_curve(out, *scale, *cosines);
            write_on_unreadable(out, *on_unreadable);
            "is it a time for everyone?"
        }
        ColumnKind::Categorical { on_unknown, .. } if part.is_some() => {
            if *on_unknown == OnUnknown::Neutral {
                line(out, "on_unreadable", "\"neutral\"");
            }
            "is it a date for everyone?"
        }
        ColumnKind::Numeric { min, max, scale, cosines, on_unreadable, .. } if part.is_some() => {
            line(out, "min", &date(*min));
            line(out, "max", &date(*max));
            write_curve(out, *scale, *cosines);
            write_on_unreadable(out, *on_unreadable);
            "between which days does it lie for everyone?"
        }
        ColumnKind::Numeric { min, max, log1p, scale, cosines, on_unreadable } => {
            line(out, "type", "\"numeric\"");
            line(out, "min", &number(*min));
            line(out, "max", &number(*max));
            if let Some(CellFormat::Number(format)) = &column.format {
                write_number_format(out, format);
            }
            if *log1p {
                line(out, "log1p", "true");
            }
            write_curve(out, *scale, *cosines);
            write_on_unreadable(out, *on_unreadable);
            "which range holds for everyone?"
        }
        ColumnKind::Indicator { on_unreadable } => {
            line(out, "type", "\"indicator\"");
            if let Some(CellFormat::Flag { one, zero }) = &column.format {
                line(out, "one", &strings(one));
                line(out, "zero", &strings(zero));
            }
            write_on_unreadable(out, *on_unreadable);
            "is it 0 or 1 for everyone?"
        }
        ColumnKind::Categorical { categories, on_unknown } => {
            line(out, "type", "\"categorical\"");
            line(out, "categories", &strings(categories));
            let policy = match on_unknown {
                OnUnknown::Error => "\"error\"",
                OnUnknown::Other => "\"other\"",
                OnUnknown::Neutral => "\"neutral\"",
            };
            line(out, "on_unknown", policy);
            "which values are publicly known to be possible?"
        }
        ColumnKind::Drop => {
            line(out, "type", "\"drop\"");
            "is this column not to be used?"
        }
    };
    if let Some(missing) = &column.missing {
        line(out, "missing", &strings(missing));
    }
    if column.line_ends {
        line(out, "line_ends", "true");
    }
    match &column.on_missing {
        OnMissing::Error => {}
        OnMissing::Neutral => line(out, "on_missing", "\"neutral\""),
        OnMissing::Category => line(out, "on_missing", "\"category\""),
        OnMissing::Value(Fill::Number(value)) => {
            let value = if matches!(part, Some((_, DatePart::Days))) { date(*value) } else { number(*value) };
            line(out, "on_missing", &format!("{{ value = {value} }}"));
        }
        OnMissing::Value(Fill::Category(value)) => {
            line(out, "on_missing", &format!("{{ value = {} }}", quoted(value)));
        }
    }
    review(out, column.review, question);
}

fn write_number_format(out: &mut String, format: &NumberFormat) {
    if format.decimal != '.' || *format == NumberFormat::default() {
        line(out, "decimal", &quoted(&format.decimal.to_string()));
    }
    if let Some(mark) = format.thousands {
        line(out, "thousands", &quoted(&mark.to_string()));
    }
    match format.units.as_slice() {
        [] => {}
        [one] => line(out, "unit", &quoted(one)),
        many => line(out, "unit", &strings(many)),
    }
}

fn write_curve(out: &mut String, scale: Option<Scale>, cosines: Option<u32>) {
    if let Some((word, _)) = Scale::WORDS.iter().find(|(_, one)| Some(*one) == scale) {
        line(out, "scale", &quoted(word));
    }
    if let Some(cosines) = cosines {
        line(out, "cosines", &cosines.to_string());
    }
}

fn write_on_unreadable(out: &mut String, on_unreadable: OnUnreadable) {
    match on_unreadable {
        OnUnreadable::Error => {}
        OnUnreadable::Neutral => line(out, "on_unreadable", "\"neutral\""),
        OnUnreadable::Missing => line(out, "on_unreadable", "\"missing\""),
    }
}

// Writing to a string cannot fail, so the results of `writeln!` are dropped.
fn line(out: &mut String, key: &str, value: &str) {
    let _ = writeln!(out, "{key} = {value}");
}

fn comments(out: &mut String, comment: Option<String>) {
    for text in comment.iter().flat_map(|comment| comment.lines()) {
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(out, "# {clean}");
    }
}

fn review(out: &mut String, review: Review, question: &str) {
    match review {
        Review::Reviewed => {}
        Review::Unreviewed => {
            let _ = writeln!(out, "reviewed = false # REVIEW: {question}");
        }
        Review::AssumedPublic => line(out, "reviewed", "\"assumed-public\""),
    }
}

fn strings(list: &[String]) -> String {
    format!("[{}]", list.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { name.to_owned() } else { quoted(name) }
}

/// Returns a basic string, always on one line, for keys and values alike.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns integers as such, everything else with the fewest digits that read back as the same number.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 && !(value == 0.0 && value.is_sign_negative()) {
        format!("{value:.0}")
    } else {
        format!("{value:?}")
    }
}

/// Returns a day, or a number of days where a day and a time do not give it back.
fn date(value: f64) -> String {
    let text = date_text(value);
    if date_of_text(&text) == Some(value) { text } else { number(value) }
}
