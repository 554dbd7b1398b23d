//! Texts for guarantees, relations and names, shared by terminal and report.
//!
//! A privacy parameter is never rounded down.

use dp_data::encode::{Encoding, FeatureMap};
use dp_data::schema::Scale;

/// Number of significant digits of epsilon.
const DIGITS: i32 = 6;

/// Formats a guarantee in one line: `epsilon = 0.5, delta = 1e-8, replace-one, for one record`.
pub fn guarantee(epsilon: f64, delta: f64, adjacency: &str, unit: &str) -> String {
    format!("epsilon = {}, delta = {}, {adjacency}, for {}", self::epsilon(epsilon), self::delta(delta), one(unit))
}

/// Names one unit: `one record`, or `all records of one patient`.
pub fn one(unit: &str) -> String {
    let unit = one_line(unit);
    if of_several_rows(&unit) { unit } else { format!("one {unit}") }
}

/// Returns whether a unit, as [`Unit`](dp_accountant::guarantee::Unit) formats it, has several records.
fn of_several_rows(unit: &str) -> bool {
    unit.starts_with("all records of one ")
}

/// Formats epsilon to six digits, rounded up.
pub fn epsilon(epsilon: f64) -> String {
    rounded_up(epsilon, DIGITS)
}

/// Formats delta with all digits: 0 as such, small ones with an exponent.
pub fn delta(delta: f64) -> String {
    plain(delta)
}

/// Describes in a sentence what a relation covers. Under both relations of `dp train` the number of records is public.
pub fn relation(adjacency: &str, n_public: bool) -> &'static str {
    match (adjacency, n_public) {
        ("replace-one", _) => "It covers the change of one record to any other; the number of records is public.",
        ("add-remove", true) => {
            "It covers whether one record is present or replaced by a null record (zero-out); the number of records is public."
        }
        ("add-remove", false) => "It covers one record being present or absent; the number of records is secret.",
        ("change-list-labels", _) => {
            "It covers the change of all grades of one list; documents, features and the number of lists are public."
        }
        _ => "It covers the change that its neighbouring relation names.",
    }
}

/// Describes in a sentence what a relation covers of a unit; for a unit other than a record, includes its definition.
pub fn covers(adjacency: &str, n_public: bool, unit: &str) -> &'static str {
    match (adjacency, n_public, unit) {
        ("add-remove", true, "list") => {
            "It covers one list being present, with its documents, features, grades and length, or empty; the number of \
             lists is public."
        }
        ("replace-one", _, "list") => {
            "It covers the change of one list to any other, with its documents, features, grades and length; the number of \
             lists is public."
        }
        ("add-remove", true, unit) if of_several_rows(unit) => {
            "It covers whether all rows of one unit are present or replaced by null records (zero-out); the number of units is \
             public, their numbers of rows are not."
        }
        ("replace-one", _, unit) if of_several_rows(unit) => {
            "It covers the change of all rows of one unit to any others; the number of units is public, their numbers of rows \
             are not."
        }
        ("replace-one", _, "document") => {
            "It covers the change of one document of one list to any other, with its features and its grade; the number of \
             lists and their lengths are public."
        }
        _ => relation(adjacency, n_public),
    }
}

/// Formats external names on one line without control characters.
pub fn names(names: &[String]) -> String {
    names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
}

/// Largest number of features that are listed by name.
const MOST_FEATURES: usize = 10;

/// Describes the features that a model uses.
pub fn selected(selected: &[String], of: u64) -> String {
    let few = names(&selected[..selected.len().min(MOST_FEATURES)]);
    let more = match selected.len().saturating_sub(MOST_FEATURES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let colon = if selected.is_empty() { "" } else { ": " };
    format!("{} of {of} features{colon}{few}{more}", selected.len())
}

/// Describes the functions of columns, unless they are lines.
pub fn functions(encoding: &Encoding) -> Option<String> {
    let joint = encoding.fourier.map(|fourier| format!("{} random Fourier features of all columns", fourier.features));
    let parts: Vec<String> = map(&encoding.map).into_iter().chain(joint).collect();
    (!parts.is_empty()).then(|| parts.join(", and "))
}

fn map(map: &FeatureMap) -> Option<String> {
    let scale = match map.scale {
        Scale::Log => "on a logarithmic scale",
        Scale::ByRange => "on a logarithmic scale where the range spans orders of magnitude",
        _ => "on a linear scale",
    };
    let functions = match (map.cosines, map.scale) {
        (0, Scale::Linear) if map.pairs => "the numeric columns".to_owned(),
        (0, Scale::Linear) => return None,
        (0, _) => format!("each numeric column {scale}"),
        (1, _) => format!("1 cosine of each numeric column, {scale}"),
        (cosines, _) => format!("{cosines} cosines of each numeric column, {scale}"),
    };
    Some(functions + if map.pairs { ", and products of pairs of them" } else { "" })
}

/// Returns the shortest number with at most `digits` significant digits that is not below `value`, for an upper bound.
pub fn rounded_up(value: f64, digits: i32) -> String {
    rounded(value, digits, 1.0, |shown| shown >= value)
}

/// Returns the largest number with at most `digits` significant digits that is not above `value`, for a lower bound.
pub fn rounded_down(value: f64, digits: i32) -> String {
    rounded(value, digits, -1.0, |shown| shown <= value)
}

/// Returns the nearest number with at most `digits` significant digits on the right side. Searches in steps of the last
/// digit: the nearest of all, or the next one if rounding or the division went the other way.
fn rounded(value: f64, digits: i32, direction: f64, is_right: impl Fn(f64) -> bool) -> String {
    if !(value.is_finite() && value > 0.0) {
        return value.to_string();
    }
    let exponent = value.log10().floor() as i32 + 1 - digits;
    // Dividing twice, since one power of ten could overflow or underflow.
    let scaled = value / 10f64.powi(exponent / 2) / 10f64.powi(exponent - exponent / 2);
    let nearest = scaled.round();
    (0..3)
        .filter_map(|step| format!("{}e{exponent}", nearest + direction * f64::from(step)).parse::<f64>().ok())
        .find(|&shown| is_right(shown))
        .map_or_else(|| plain(value), plain)
}

/// Formats a number, with an exponent if it is very small or very large.
pub fn plain(value: f64) -> String {
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) { format!("{value}") } else { format!("{value:e}") }
}

/// Formats external text (names of columns, cells) on one line without control characters, so that it cannot control a
/// terminal or forge a second message.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_direction_mark(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns whether a character is invisible and reverses the reading direction of the following text.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, shown) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (0.25, "0.25"),
            (800.0, "800"),
            (4e-7, "4e-7"),
            (1e300, "1e300"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(epsilon(value), shown);
        }
        assert_eq!(epsilon(f64::INFINITY), "inf");
        assert_eq!([0.0, 1e-320, 1e-8, 0.999].map(delta), ["0", "1e-320", "1e-8", "0.999"]);
    }

    #[test]
    fn what_is_shown_is_never_below_what_holds() {
        assert_eq!(epsilon(1.000_000_4), "1.00001");
        assert_eq!(epsilon(0.999_999_999), "1");
        assert_eq!(rounded_up(7.389_056, 4), "7.39");
        let mut value = 1e-15;
        while value < 1e300 {
            for near in [value, value * (1.0 + 1e-15), value * 0.999_999_96] {
                let shown: f64 = epsilon(near).parse().unwrap();
                assert!(shown >= near && shown <= near * (1.0 + 1.1e-5), "{near:?} is shown as {shown:?}");
            }
            value *= 7.3;
        }
    }

    #[test]
    fn lower_bounds_are_never_above_what_holds() {
        assert_eq!(rounded_down(0.999_999_999, 6), "0.999999");
        assert_eq!((rounded_down(0.25, 6), rounded_down(0.0, 6)), ("0.25".to_owned(), "0".to_owned()));
        let mut value = 1e-15;
        while value < 1e300 {
            for near in [value, value * (1.0 + 1e-15), value * 0.999_999_96] {
                let shown: f64 = rounded_down(near, 6).parse().unwrap();
                assert!(shown <= near && shown >= near * (1.0 - 1.1e-5), "{near:?} is shown as {shown:?}");
            }
            value *= 7.3;
        }
    }

    #[test]
    fn names_cannot_break_out_of_their_line() {
        assert_eq!(names(&["a\nb".to_owned(), "c\u{1b}[31m".to_owned()]), "a\u{fffd}b, c\u{fffd}[31m");
    }
}
