//! The catalogue of audits.

use dp::wording::one_line;
use dp_audit::Subject;
use dp_audit_recipes::{Parameters, RECIPES, Setting};
use serde::Serialize;

use super::config::Audited;
use crate::commands::{rank, train};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::Console;

/// A mechanism's pair of inputs, or a recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Entry {
    name: String,
    about: String,
}

/// The result of `dp audit list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Listing {
    schema: &'static str,
    mechanisms: Vec<Entry>,
    recipes: Vec<Entry>,
}

/// Returns names and descriptions of all recipes: first for training, then for rankers.
pub fn recipes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_training = RECIPES.iter().map(|recipe| (recipe.name, recipe.about));
    of_training.chain(dp_audit_recipes::rank::RECIPES.iter().map(|recipe| (recipe.name, recipe.about)))
}

/// Returns the settings that the named recipe has; `None` if there is no such recipe.
pub(super) fn settings(name: &str) -> Option<&'static [Setting]> {
    let of_training = dp_audit_recipes::recipe(name).map(|recipe| recipe.settings);
    of_training.or_else(|| dp_audit_recipes::rank::recipe(name).map(|recipe| recipe.settings))
}

/// Returns the audits of the named recipe under these parameters; `None` if there is no such recipe.
pub(super) fn recipe(name: &str, parameters: &Parameters) -> Option<Result<Vec<Audited>, Failure>> {
    if let Some(recipe) = dp_audit_recipes::recipe(name) {
        return Some(recipe.subjects(parameters).map(with_distance).map_err(|error| train::refusal(&error)));
    }
    let recipe = dp_audit_recipes::rank::recipe(name)?;
    Some(recipe.subjects(parameters).map(with_distance).map_err(|error| rank::refusal(&error)))
}

fn with_distance(all: Vec<dp_audit_recipes::Audited>) -> Vec<Audited> {
    all.into_iter().map(|audited| Audited { subject: audited.subject, distance: Some(audited.distance) }).collect()
}

/// Prints the catalogue.
///
/// # Errors
/// Standard output that cannot be written.
pub fn list(console: &Console) -> Result<(), Failure> {
    let mechanisms = all_mechanisms()?;
    let listing = Listing {
        schema: "dp.audit-list/1",
        mechanisms: mechanisms
            .iter()
            .map(|audited| Entry { name: audited.subject.name().to_owned(), about: audited.subject.pair().to_owned() })
            .collect(),
        recipes: recipes().map(|(name, about)| Entry { name: name.to_owned(), about: about.to_owned() }).collect(),
    };
    let mut text = String::from("mechanisms (dp audit mechanism NAME)\n");
    let width = listing.mechanisms.iter().chain(&listing.recipes).map(|entry| entry.name.len()).max().unwrap_or(0);
    let line = |entry: &Entry| format!("  {:width$}  {}\n", entry.name, one_line(&entry.about));
    text.extend(listing.mechanisms.iter().map(line));
    text.push_str("recipes (dp audit recipe --algorithm NAME)\n");
    text.extend(listing.recipes.iter().map(line));
    console.result(&listing, &text)
}

/// Returns the mechanisms' pairs whose name is one of `names` or starts with it at a word boundary, each once.
pub(super) fn mechanisms(names: &[String]) -> Result<Vec<Audited>, Failure> {
    let all = all_mechanisms()?;
    let stands_for = |name: &str, full: &str| {
        full.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ', ',', '(']))
    };
    for name in names {
        if !name.is_empty() && all.iter().any(|audited| stands_for(name, audited.subject.name())) {
            continue;
        }
        let failure = Failure::usage("NAME", format!("there is no mechanism `{}`", one_line(name)));
        return Err(match nearest(name, &all) {
            Some(near) => failure.help(format!("did you mean `{near}`? `dp audit list` shows them all")),
            None => failure.help("`dp audit list` shows them all"),
        });
    }
    Ok(all.into_iter().filter(|audited| names.iter().any(|name| stands_for(name, audited.subject.name()))).collect())
}

/// Wraps subjects of mechanisms, which have no training to compare.
pub(super) fn without_distance(subjects: Vec<Box<dyn Subject>>) -> Vec<Audited> {
    subjects.into_iter().map(|subject| Audited { subject, distance: None }).collect()
}

/// Returns mechanisms and recipes.
pub(super) fn everything() -> Result<Vec<Audited>, Failure> {
    let mut all = all_mechanisms()?;
    let parameters = Parameters::default();
    all.extend(with_distance(dp_audit_recipes::subjects(&parameters).map_err(|error| train::refusal(&error))?));
    all.extend(with_distance(dp_audit_recipes::rank::subjects(&parameters).map_err(|error| rank::refusal(&error))?));
    Ok(all)
}

fn all_mechanisms() -> Result<Vec<Audited>, Failure> {
    let subjects = dp_audit::mechanisms::subjects()
        .map_err(|error| Failure::new(ExitStatus::Failed, "audit.failed", error.to_string()))?;
    Ok(without_distance(subjects))
}

/// Returns the mechanism whose name shares the most with the argument, the shortest on ties.
fn nearest<'a>(name: &str, all: &'a [Audited]) -> Option<&'a str> {
    let common = |full: &str| full.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    all.iter()
        .map(|audited| audited.subject.name().split(['/', ' ', ',', '(']).next().unwrap_or_default())
        .max_by_key(|full| (common(full), std::cmp::Reverse(full.len())))
        .filter(|full| common(full) >= 3)
}
