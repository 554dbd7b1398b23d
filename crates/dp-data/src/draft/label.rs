//! The choice of a draft's label kind.

mod survey;

use std::collections::BTreeMap;

pub(super) use self::survey::LabelSurvey;
use super::flags::with_spellings;
use super::written::Marks;
use super::{DraftOptions, LabelHint};
use crate::error::{DataError, DataErrorKind};
use crate::schema::{Label, LabelKind, LabelRange, NumberFormat, Others, Review};

/// Maximum number of integer values that become classes; more are a quantity.
const MOST_NUMBERED_CLASSES: usize = 20;

/// Returns the label, and a note for its reviewer with whether it tells of a contradiction.
pub(super) fn decide(
    name: &str,
    survey: &LabelSurvey,
    options: &DraftOptions,
    marks: Marks,
) -> Result<(Label, String, bool), DataError> {
    let written = || survey.range(marks).and_then(|(.., format)| format);
    let contradiction = options.hint.as_ref().and_then(|hint| contradiction(hint, survey, marks));
    let (kind, review, remark) = match &options.hint {
        Some(hint) => {
            let remark = match hint {
                LabelHint::Classes(_) => "Classes as listed.",
                LabelHint::Number(_) => "Range as given.",
            };
            let remark = [remark].into_iter().chain(contradiction).collect::<Vec<_>>().join(" ");
            (hint.clone().into(), Review::Reviewed, remark)
        }
        None => {
            let (kind, remark) = match (&options.positive, &options.negative) {
                (None, None) => from_values(name, survey, options, marks)?,
                _ => from_named(name, survey, options)?,
            };
            (kind, Review::Unreviewed, remark)
        }
    };
    let mut kind = kind;
    if let LabelKind::TwoClasses { positive, negative, .. } = &mut kind {
        let classes = [&mut *positive, &mut *negative].map(core::mem::take);
        [*positive, *negative] = with_spellings(classes);
    }
    if options.written_to {
        match &mut kind {
            LabelKind::TwoClasses { others: others @ Others::Error, .. } => *others = Others::Neutral,
            LabelKind::Classes { others_are_neutral, .. } => *others_are_neutral = true,
            _ => {}
        }
    }
    let unreadable_is_neutral = options.written_to && matches!(kind, LabelKind::Number(_));
    let format: Option<NumberFormat> = if let LabelKind::Number(_) = kind { written() } else { None };
    let remark = match &format {
        Some(format) => format!("{remark} Written as {}.", format.example()),
        None => remark,
    };
    Ok((
        Label { column: name.to_owned(), kind, format, missing_is_neutral: true, unreadable_is_neutral, review },
        remark,
        contradiction.is_some(),
    ))
}

/// Returns how the labels of the file contradict what is known of them.
fn contradiction(hint: &LabelHint, survey: &LabelSurvey, marks: Marks) -> Option<&'static str> {
    match hint {
        LabelHint::Classes(classes) => {
            (!classes.iter().any(|class| survey.holds(class))).then_some("No label of the file is one of them.")
        }
        LabelHint::Number(LabelRange { min, max }) => match survey.range(marks) {
            None => Some("Some labels of the file are no numbers."),
            Some((least, largest, _)) => (largest < *min || least > *max).then_some("No label of the file lies in it."),
        },
    }
}

fn undecided(name: &str, survey: &LabelSurvey, message: String, help: &str) -> DataError {
    DataError::new(DataErrorKind::LabelUndecided, message).at_column(name).found(survey.describe()).help(help)
}

/// Returns two classes, one or both of which are named.
fn from_named(name: &str, survey: &LabelSurvey, options: &DraftOptions) -> Result<(LabelKind, String), DataError> {
    // If both classes are named, the absence of one of them must not be an error, which would reveal data.
    let named: Vec<&String> = options.positive.iter().chain(&options.negative).collect();
    let one_is_there = named.len() == 2 && named.iter().any(|value| survey.holds(value));
    if let Some(value) = named.iter().find(|value| !survey.holds(value) && !one_is_there) {
        return Err(undecided(
            name,
            survey,
            format!("no row of column `{name}` holds the label `{value}`"),
            "check the spelling of the class and the name of the label column",
        ));
    }
    let values = survey.values();
    let classes = classes(values.as_deref().unwrap_or_default());
    let spellings = |class: &String| {
        let of_class = classes.iter().find(|values| values.contains(class)).filter(|values| {
            // Two values that are named are two classes.
            !named.iter().any(|other| *other != class && values.contains(other))
        });
        let others = of_class.into_iter().flatten().filter(|value| *value != class);
        [class].into_iter().chain(others).cloned().collect::<Vec<String>>()
    };
    Ok(match (&options.positive, &options.negative) {
        (Some(positive), Some(negative)) => {
            let (positive, negative) = (spellings(positive), spellings(negative));
            (LabelKind::TwoClasses { positive, negative, others: Others::Neutral }, "Both classes as asked for.".into())
        }
        (positive, negative) => {
            let one: Vec<String> = positive.iter().chain(negative).flat_map(&spellings).collect();
            let is_one = |value: &&String| one.iter().any(|one| survey.same(one, value));
            let others: Vec<&String> = values.iter().flatten().filter(|value| !is_one(value)).collect();
            let are_one = others.first().is_some_and(|first| spellings(first).len() == others.len());
            let other = if are_one { others.iter().map(|&other| other.clone()).collect() } else { Vec::new() };
            let is_positive = positive.is_some();
            let [named, unnamed] = if is_positive { ["Positive", "negative"] } else { ["Negative", "positive"] };
            let remark = match &others[..] {
                _ if are_one => format!("{named} as asked for."),
                [] => format!("{named} as asked for; every other value is {unnamed}."),
                [..] => {
                    let shown: Vec<String> = others.iter().take(5).map(|value| format!("{value:?}")).collect();
                    let more = if others.len() > shown.len() { ", ..." } else { "" };
                    format!("{named} as asked for; all others are {unnamed}: {}{more}.", shown.join(", "))
                }
            };
            let others = match (are_one, is_positive) {
                (true, _) => Others::Neutral,
                (false, true) => Others::Negative,
                (false, false) => Others::Positive,
            };
            let (positive, negative) = if is_positive { (one, other) } else { (other, one) };
            (LabelKind::TwoClasses { positive, negative, others }, remark)
        }
    })
}

/// Returns the classes by their values: those that differ in capitals and a full stop alone are one class, unless all would be.
fn classes(values: &[String]) -> Vec<Vec<String>> {
    let mut classes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for value in values {
        let plain = value.trim_end_matches('.').trim_end().to_lowercase();
        classes.entry(plain).or_default().push(value.clone());
    }
    match classes.len() {
        1 => values.iter().map(|value| vec![value.clone()]).collect(),
        _ => classes.into_values().collect(),
    }
}

/// Chooses the kind from the values: two are two classes, few are classes, many numbers are a number.
fn from_values(
    name: &str,
    survey: &LabelSurvey,
    options: &DraftOptions,
    marks: Marks,
) -> Result<(LabelKind, String), DataError> {
    let values = survey.values();
    if let [a, b] = &classes(values.as_deref().unwrap_or_default())[..] {
        let (is_a, why) = survey.is_likely_positive(a, b);
        let (positive, negative) = if is_a { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
        let kind = LabelKind::TwoClasses { positive, negative, others: Others::Neutral };
        return Ok((kind, format!("Positive was guessed: {why}.")));
    }
    let one_value = values.as_ref().is_some_and(|values| values.len() < 2);
    if options.label.is_none() && !one_value {
        return Err(undecided(
            name,
            survey,
            format!("the last column `{name}` has more than two values, so it may not be the label"),
            "name the label column with --label",
        )
        .expected("two values, or a label that is named"));
    }
    if let Some((min, max, _)) = survey.range(marks)
        && min < max
        && values.as_ref().is_none_or(|values| values.len() > MOST_NUMBERED_CLASSES || !survey.is_whole())
    {
        let mut remark =
            String::from("Many numbers: a number to be predicted. List `classes` instead if it is a code.");
        if survey.has_markers() {
            remark
                .push_str(" Some labels stand for a missing number: declare them under `missing` and set on_missing.");
        }
        return Ok((LabelKind::Number(LabelRange { min, max }), remark));
    }
    match values {
        Some(classes) if (3..=options.max_categories).contains(&classes.len()) => {
            let remark = if survey.is_plain() {
                "Few whole numbers: classes. Set `type = \"numeric\"` with `min` and `max` instead if it is a quantity."
            } else {
                "Few values: classes."
            };
            Ok((LabelKind::Classes { classes, others_are_neutral: true }, remark.into()))
        }
        _ => Err(undecided(
            name,
            survey,
            format!("the values of the label column `{name}` are neither few classes nor numbers"),
            "name the label column with --label, and what it holds with --positive, --classes or --label-range",
        )
        .expected(format!("at least two values: up to {} classes, or numbers", options.max_categories))),
    }
}
