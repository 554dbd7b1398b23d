//! A short report for the users of a model: the guarantee, its assumptions, and how to check it.
//!
//! Everything in it is in the model file already, except the reasons of an automatic choice; nothing is computed from
//! records. [`crate::protection`] states the meaning of the guarantee. The report contains no path, no time and no seed.

use dp_accountant::certificate::{Assumption, Certificate, NoiseMode};
use serde::Serialize;
use serde_json::Value;

use crate::model::{ModelFile, ModelKind};
use crate::protection::{self, Meaning};
use crate::wording::{self, one_line};

/// Returns the report in Markdown. `name` is the reader's name of the model file, `choice` the reasons for the algorithm.
pub fn markdown(file: &ModelFile, name: &str, choice: &[String]) -> String {
    let map = wording::functions(&file.model.encoder.encoding()).map(|map| format!("The features include {map}."));
    let subject = Subject {
        predicts: [predicts(file)].into_iter().chain(map).collect(),
        certificate: &file.certificate,
        certificate_sha256: &file.certificate_sha256,
        warnings: file.warnings(),
        choice,
        selected: file.selected_features().map(|names| wording::selected(&names, file.model.features.len() as u64)),
    };
    subject.markdown(name)
}

/// Returns the report of a network in Markdown. `name` is the reader's name of its file.
#[cfg(feature = "networks")]
pub fn of_network(file: &crate::network::NetworkFile, name: &str) -> String {
    let model = &file.model;
    let predicts = format!(
        "Which of {} classes an image of {} values is of ({}), by a network of {} layers with {} weights.",
        model.labels.len(),
        model.architecture.input,
        some(&model.classes()),
        model.architecture.layers.len(),
        model.weights.len()
    );
    let subject = Subject {
        predicts: vec![predicts],
        certificate: &file.certificate,
        certificate_sha256: &file.certificate_sha256,
        warnings: file.warnings(),
        choice: &[],
        selected: None,
    };
    subject.markdown(name)
}

/// The contents of a report.
struct Subject<'f, D> {
    /// The model's prediction, in paragraphs.
    predicts: Vec<String>,
    certificate: &'f Certificate<D>,
    certificate_sha256: &'f str,
    warnings: Vec<String>,
    choice: &'f [String],
    selected: Option<String>,
}

impl<D: Serialize> Subject<'_, D> {
    fn markdown(&self, name: &str) -> String {
        let Self { predicts, certificate, certificate_sha256, choice, selected, .. } = self;
        let mut text = String::new();
        let mut line = |sentence: &str| {
            text.push_str(sentence);
            text.push('\n');
        };
        let privacy = if certificate.private { "with differential privacy" } else { "WITHOUT privacy" };
        line(&format!("# A model {privacy}\n"));
        line("## What it predicts\n");
        for paragraph in predicts {
            line(&format!("{paragraph}\n"));
        }
        line("## What is promised\n");
        for sentence in self.promise() {
            line(&format!("- {sentence}"));
        }
        line("\n## What was taken on trust\n");
        for assumption in all_in_words(&certificate.assumptions) {
            line(&format!("- {}", escaped(&assumption)));
        }
        if !choice.is_empty() {
            line("\n## How the algorithm was chosen\n");
            for sentence in *choice {
                line(&format!("- {}", escaped(sentence)));
            }
        }
        if let Some(selected) = selected {
            line("\n## Which features it uses\n");
            line(&format!("{}\n", escaped(selected)));
            line("The weights of all others are zero. That is part of the released model, and costs nothing more.");
        }
        line("\n## Settings\n");
        for (name, value) in settings(&serde_json::to_value(&certificate.derivation).unwrap_or_default()) {
            line(&format!("- `{name}` = {}", escaped(&value)));
        }
        line(&format!("- noise: {}", noise_in_words(certificate.noise)));
        line("\n## How to check this\n");
        line(&format!("    dp verify {}\n", one_line(name)));
        line(
            "It derives the sensitivity again from the settings above, and epsilon from the noise, with no access to the",
        );
        line(&format!("records. SHA-256 of the certificate: `{certificate_sha256}`."));
        text
    }

    fn promise(&self) -> Vec<String> {
        let certificate = self.certificate;
        let (true, Some(reached)) = (certificate.private, certificate.reached) else {
            let nothing = "Nothing. The model may reveal the records that it was trained on; do not publish it.";
            return vec![nothing.to_owned()];
        };
        let (relation, unit) = (certificate.adjacency, certificate.unit.to_string());
        let mut sentences = vec![
            format!(
                "({}, {})-differential privacy under `{relation}`, for {}.",
                wording::epsilon(reached.epsilon),
                wording::delta(reached.delta),
                escaped(&wording::one(&unit))
            ),
            wording::covers(relation.as_str(), relation.n_public(), &unit).to_owned(),
        ];
        sentences.extend(self.warnings.iter().map(|sentence| format!("**WARNING: {sentence}**")));
        sentences.extend(Meaning::of_certificate(certificate).iter().flat_map(Meaning::short));
        sentences
    }
}

/// Largest number of classes that are listed by name.
const MOST_NAMED: usize = 20;

/// Lists classes by name, the first of many.
fn some(classes: &[String]) -> String {
    let named: Vec<String> = classes.iter().take(MOST_NAMED).map(|class| escaped(class)).collect();
    let more = match classes.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

/// Describes the model's predictions in a sentence.
fn predicts(file: &ModelFile) -> String {
    let model = &file.model;
    let column = escaped(&model.encoder.label().column);
    let features = model.features.len();
    match &model.kind {
        ModelKind::LinearClassifier { classes } => {
            let threshold = model.threshold.map_or(String::new(), |threshold| {
                let rate = 1.0 / (1.0 + (-threshold).exp());
                format!(" It predicts {} at probabilities above {rate:.3}.", escaped(&classes.positive))
            });
            format!(
                "Whether {column} is {} or {}, from {features} features.{threshold}",
                escaped(&classes.positive),
                escaped(&classes.negative)
            )
        }
        ModelKind::MultiClassLinear { classes } => {
            format!("Which of {} classes {column} is of ({}), from {features} features.", classes.len(), some(classes))
        }
        ModelKind::LinearRegression { range } => format!(
            "The number {column}, between {} and {}, from {features} features.",
            wording::plain(range.min),
            wording::plain(range.max)
        ),
    }
}

/// Describes the assumptions of a certificate, each in a sentence. Where each unit counts as so many records, the number of units
/// is what is public.
pub fn all_in_words<'a>(assumptions: impl IntoIterator<Item = &'a Assumption>) -> Vec<String> {
    let assumptions: Vec<&Assumption> = assumptions.into_iter().collect();
    let of_units = assumptions.iter().any(|assumption| matches!(assumption, Assumption::BoundedRows { .. }));
    let is_told = |assumption: &&Assumption| !(of_units && **assumption == Assumption::PublicN);
    assumptions.into_iter().filter(is_told).map(in_words).collect()
}

/// Describes an assumption of a certificate in a sentence.
pub fn in_words(assumption: &Assumption) -> String {
    match assumption {
        Assumption::PublicN => "The number of records is public.".to_owned(),
        Assumption::RowNorm { bound } => {
            format!("Each encoded row has norm at most {bound}; the encoder enforces it, whatever the record.")
        }
        Assumption::PublicSchema => {
            "The ranges, categories and label values of the schema are public knowledge, and were reviewed.".to_owned()
        }
        Assumption::AssumedPublic { columns } => format!(
            "RISK: the ranges or categories of these columns were taken from the data and declared public: {}. If \
             they were not public, they are revealed.",
            wording::names(columns)
        ),
        Assumption::OneRowPerUnit => {
            protection::SEVERAL_ROWS.to_owned()
        }
        Assumption::BoundedRows { column, most } => format!(
            "Rows with one value of `{}` are one unit. At most {most} of each were used, drawn at random independently of their \
             content; every unit counts as {most} records, and the number of units is public.",
            one_line(column)
        ),
        Assumption::QueryRows => {
            "The rows are the result of a query, which determines how many rows a person has: a join can make several."
                .to_owned()
        }
        Assumption::FloatTraining => {
            "Training ran in single precision; its rounding is covered by a margin that was measured, not proved."
                .to_owned()
        }
        Assumption::IdealisedFloat => {
            "Noise was drawn in double precision and rounded to a grid; the theorem is about real numbers.".to_owned()
        }
        Assumption::FloatSum => {
            "Contributions were clipped and added in floating point by another program; the rounding is covered by a margin \
             that was measured, not proved."
                .to_owned()
        }
        Assumption::MonotonicScores => {
            "One person's data moves all scores of a selection in the same direction.".to_owned()
        }
        Assumption::ClaimedByUser { mechanism } => format!(
            "The mechanism `{}` costs what its author says; the library has not proved it.",
            one_line(mechanism)
        ),
        Assumption::EngineArithmetic { bits } => format!(
            "The sums were computed by another engine. Its arithmetic is taken on trust: doubles after IEEE 754, correctly rounded, \
             and exact sums of integers, here of {bits} binary digits."
        ),
        Assumption::ClippedElsewhere { program } => format!(
            "The program `{}` clipped the contribution of each record to the stated norm, and took the records of each step \
             from the batches that were drawn for it; the library saw sums only.",
            one_line(program)
        ),
        Assumption::PublicTensors { names } => format!(
            "The following tensors of the model were not trained, and no record influenced them: {}.",
            one_line(&names.join(", "))
        ),
        Assumption::DeclaredOrder => {
            "The order of the rows does not depend on their values, as the curator states.".to_owned()
        }
        Assumption::PublicProjection => {
            "The features were mapped at random (a projection, Fourier features), and rows bounded after that; what determines \
             the map, its seed among it, is in the model and was chosen without looking at a record."
                .to_owned()
        }
        Assumption::PublicEncodings => {
            "The model is the best of models of several encodings of the records. What determines each encoding, the seeds of random \
             features among it, was chosen without looking at a record."
                .to_owned()
        }
        Assumption::EveryRecordConforms => {
            "Every record conforms to the schema, or the label of every image is one of the classes, and all gradients are finite, \
             so that no record could stop the training. Under replace-one this also holds for the record in its place."
                .to_owned()
        }
        Assumption::ChosenOnPublic { grid } => {
            let values = |values: &[f64]| values.iter().map(|value| wording::plain(*value)).collect::<Vec<_>>().join(", ");
            let settings: Vec<String> =
                grid.iter().map(|(setting, from)| format!("{} from {}", one_line(setting), values(from))).collect();
            format!(
                "RISK: settings were chosen on records that are believed to be public: {}. If they were not, or were among \
                 the private records, the choice leaks information about them.",
                settings.join("; ")
            )
        }
        Assumption::EarlierRunsNotAccounted => {
            "Other models or figures about the same people are not part of this statement.".to_owned()
        }
        Assumption::Other { text } => text.clone(),
        other => format!("{other:?}"),
    }
}

/// Escapes external text (names of columns) for Markdown: one line, without markup.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '#') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

fn noise_in_words(noise: NoiseMode) -> &'static str {
    match noise {
        NoiseMode::Exact => "drawn exactly, on a grid",
        NoiseMode::Rounded => "double precision, rounded to a grid",
        NoiseMode::None => "none",
        _ => "named in the certificate",
    }
}

/// Flattens nested objects to `a.b = value`.
pub fn settings(value: &Value) -> Vec<(String, String)> {
    fn walk(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(member, &path, found);
                }
            }
            Value::Array(items) if items.len() > 8 => {
                let what = if items.iter().all(Value::is_object) { "entries" } else { "numbers" };
                found.push((path.to_owned(), format!("({} {what})", items.len())));
            }
            // Candidates of a selection, each with its own settings.
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (i, item) in items.iter().enumerate() {
                    walk(item, &format!("{path}.{i}"), found);
                }
            }
            Value::Null => {}
            // More than any number of records stands for all of them.
            leaf if leaf.as_u64() == Some(u64::MAX) => found.push((path.to_owned(), "all".to_owned())),
            leaf => found.push((path.to_owned(), leaf.to_string())),
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_no_markup() {
        let columns = vec!["<img src=x onerror=alert(1)>".to_owned(), "a\n# b".to_owned(), "[c](d)".to_owned()];
        let text = escaped(&in_words(&Assumption::AssumedPublic { columns }));
        assert!(text.contains("\\<img src=x onerror=alert(1)\\>, a\u{fffd}\\# b, \\[c\\](d)."), "{text}");
    }

    #[test]
    fn of_units_their_number_is_what_is_public() {
        let of_units = Assumption::BoundedRows { column: "patient".to_owned(), most: 3 };
        let told = |assumptions: &[Assumption]| all_in_words(assumptions).join("\n");
        let records = told(&[Assumption::PublicN, Assumption::QueryRows]);
        assert!(records.contains("The number of records is public.") && records.lines().count() == 2, "{records}");
        let units = told(&[Assumption::PublicN, of_units, Assumption::QueryRows]);
        assert!(!units.contains("number of records is public") && units.lines().count() == 2, "{units}");
        assert!(units.contains("the number of units is public"), "{units}");
    }

    #[test]
    fn settings_are_flat() {
        let value =
            serde_json::json!({ "a": { "b": 1.5, "c": null }, "d": "x", "e": [{ "f": 1 }, { "f": 2 }], "g": [3] });
        let expected = [("a.b", "1.5"), ("d", "\"x\""), ("e.0.f", "1"), ("e.1.f", "2"), ("g", "[3]")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(settings(&value), expected);
    }
}
