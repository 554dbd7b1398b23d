//! The consistency rules of columns and label.

use std::collections::HashSet;

use super::format;
use super::{
    Column, ColumnKind, Fill, Label, LabelKind, LabelRange, MAX_CLASSES, OTHER_CATEGORY, OnMissing, OnUnknown, Others,
};
use crate::encode::MAX_COSINES;
use crate::error::{DataError, DataErrorKind};

/// Largest width of an encoding: a feature's position is stored in 32 bits.
const WIDEST: u64 = u32::MAX as u64;

pub(super) fn check(columns: &[Column], label: &Label) -> Result<(), DataError> {
    let mut names = HashSet::new();
    let mut width: u64 = 1;
    let mut used = 0_usize;
    for column in columns {
        format::check(column)?;
        let refuse = |message: String| {
            DataError::new(DataErrorKind::SchemaColumns, message).at_column(&column.name).at_field(field(column, ""))
        };
        if !names.insert(column.name.as_str()) {
            return Err(refuse(format!("column `{}` occurs twice", column.name)).expected("one entry per column"));
        }
        if column.source() == label.column && column.kind != ColumnKind::Drop {
            return Err(refuse(format!("column `{}` is both feature and label", column.source()))
                .help("remove it from the columns, or name another label"));
        }
        match &column.kind {
            ColumnKind::Numeric { min, max, log1p, scale, cosines, .. } => {
                check_range(column, *min, *max, *log1p)?;
                check_curve(column, *log1p && scale.is_some(), *cosines)?;
                used += 1;
                width += u64::from(cosines.unwrap_or(1).max(1));
            }
            ColumnKind::Indicator { .. } => {
                check_range(column, 0.0, 1.0, false)?;
                used += 1;
                width += 1;
            }
            ColumnKind::Categorical { categories, on_unknown } => {
                check_categories(column, categories, *on_unknown)?;
                used += 1;
                width += categories.len() as u64 + 1;
            }
            ColumnKind::Drop => {}
        }
    }
    if used == 0 || width > WIDEST {
        let why = if used == 0 { "no column is used as a feature" } else { "there are more features than fit" };
        return Err(DataError::new(DataErrorKind::SchemaColumns, why)
            .at_field("columns")
            .expected(format!("between 1 and {WIDEST} features")));
    }
    check_label(label)
}

fn check_range(column: &Column, min: f64, max: f64, log1p: bool) -> Result<(), DataError> {
    let name = &column.name;
    let refuse =
        |kind, key, message: String| DataError::new(kind, message).at_column(name).at_field(field(column, key));
    if !min.is_finite() || !max.is_finite() {
        let key = if min.is_finite() { "max" } else { "min" };
        return Err(refuse(DataErrorKind::BoundsNotFinite, key, format!("the range of column `{name}` is not finite"))
            .expected("finite numbers"));
    }
    if !(min <= max) {
        return Err(refuse(
            DataErrorKind::BoundsOrder,
            "min",
            format!("column `{name}` has min {min:?} above max {max:?}"),
        )
        .expected("min <= max"));
    }
    if log1p && !(min >= 0.0) {
        return Err(refuse(
            DataErrorKind::SchemaLog1p,
            "log1p",
            format!("column `{name}` has log1p and a range that starts at {min:?}"),
        )
        .expected("min >= 0"));
    }
    match &column.on_missing {
        OnMissing::Error | OnMissing::Neutral => Ok(()),
        OnMissing::Value(Fill::Number(value)) if (min..=max).contains(value) => Ok(()),
        OnMissing::Value(_) | OnMissing::Category => Err(refuse(
            DataErrorKind::SchemaOnMissing,
            "on_missing",
            format!("the policy for missing values of the numeric column `{name}` does not fit"),
        )
        .expected(format!("`error`, `neutral` or {{ value = a number from {min:?} to {max:?} }}"))),
    }
}

fn check_curve(column: &Column, two_scales: bool, cosines: Option<u32>) -> Result<(), DataError> {
    let name = &column.name;
    if two_scales {
        return Err(DataError::new(DataErrorKind::SchemaLog1p, format!("column `{name}` has log1p and a scale"))
            .at_column(name)
            .at_field(field(column, "scale"))
            .expected("one of the two"));
    }
    match cosines {
        Some(cosines) if cosines > MAX_COSINES => {
            Err(DataError::new(DataErrorKind::SchemaCosines, format!("column `{name}` has {cosines} cosines"))
                .at_column(name)
                .at_field(field(column, "cosines"))
                .expected(format!("between 0 and {MAX_COSINES}")))
        }
        _ => Ok(()),
    }
}

fn check_categories(column: &Column, categories: &[String], on_unknown: OnUnknown) -> Result<(), DataError> {
    let name = &column.name;
    let refuse =
        |kind, key, message: String| DataError::new(kind, message).at_column(name).at_field(field(column, key));
    if categories.is_empty() {
        return Err(refuse(
            DataErrorKind::SchemaCategories,
            "categories",
            format!("column `{name}` lists no categories"),
        )
        .expected("at least one category"));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = categories.iter().find(|category| !seen.insert(category.as_str())) {
        return Err(refuse(
            DataErrorKind::SchemaCategories,
            "categories",
            format!("column `{name}` lists the category `{twice}` twice"),
        )
        .expected("each category once"));
    }
    if on_unknown == OnUnknown::Other && !seen.contains(OTHER_CATEGORY) {
        return Err(refuse(
            DataErrorKind::SchemaOnUnknown,
            "on_unknown",
            format!("column `{name}` counts unknown values as `{OTHER_CATEGORY}`, which it does not list"),
        )
        .help(format!("add \"{OTHER_CATEGORY}\" to the categories")));
    }
    match &column.on_missing {
        OnMissing::Error | OnMissing::Neutral | OnMissing::Category => Ok(()),
        OnMissing::Value(Fill::Category(value)) if seen.contains(value.as_str()) => Ok(()),
        OnMissing::Value(_) => Err(refuse(
            DataErrorKind::SchemaOnMissing,
            "on_missing",
            format!("the policy for missing values of the categorical column `{name}` does not fit"),
        )
        .expected("`error`, `neutral`, `category` or { value = \"one of the categories\" }")),
    }
}

pub(super) fn check_label(label: &Label) -> Result<(), DataError> {
    if let Some(number) = &label.format {
        format::check_label(number, label)?;
    }
    let refuse_as = |kind, key: &str, message: String| {
        DataError::new(kind, message).at_column(&label.column).at_field(format!("label.{key}"))
    };
    let refuse = |key: &str, message: String| refuse_as(DataErrorKind::SchemaLabel, key, message);
    match &label.kind {
        LabelKind::TwoClasses { positive, negative, others } => {
            if positive.is_empty() && *others != Others::Positive {
                return Err(refuse("positive", "the positive class has no value".into())
                    .expected("a value or a list, or `others = \"positive\"`")
                    .help("a label of several classes lists them as `classes = [...]`"));
            }
            if negative.is_empty() && *others != Others::Negative {
                return Err(refuse("negative", "the negative class has no value".into())
                    .expected("a value or a list, or `others = \"negative\"`"));
            }
            match positive.iter().find(|value| negative.contains(value)) {
                Some(both) => Err(refuse("positive", format!("the value `{both}` is both positive and negative"))
                    .expected("values that are in one class only")),
                None => Ok(()),
            }
        }
        LabelKind::Classes { classes, .. } => {
            if !(2..=MAX_CLASSES).contains(&classes.len()) {
                return Err(refuse("classes", format!("the label lists {} classes", classes.len()))
                    .expected(format!("between 2 and {MAX_CLASSES} classes")));
            }
            let mut seen = HashSet::new();
            match classes.iter().find(|class| !seen.insert(class.as_str())) {
                Some(twice) => {
                    Err(refuse("classes", format!("the label lists the class `{twice}` twice"))
                        .expected("each class once"))
                }
                None => Ok(()),
            }
        }
        LabelKind::Number(LabelRange { min, max }) => {
            if !min.is_finite() || !max.is_finite() {
                let key = if min.is_finite() { "max" } else { "min" };
                let message = "the range of the label is not finite".to_owned();
                return Err(refuse_as(DataErrorKind::BoundsNotFinite, key, message).expected("finite numbers"));
            }
            // Half of the width is a divisor: it must not vanish even if `min < max`.
            if !(min < max && 0.5 * max - 0.5 * min > 0.0) {
                let message = format!("the label has min {min:?} and max {max:?}");
                return Err(refuse_as(DataErrorKind::BoundsOrder, "min", message).expected("min < max"));
            }
            Ok(())
        }
    }
}

fn field(column: &Column, key: &str) -> String {
    if key.is_empty() { format!("columns.{}", column.name) } else { format!("columns.{}.{key}", column.name) }
}
