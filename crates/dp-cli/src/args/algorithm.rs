//! The name of an algorithm, as typed.

use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use dp::words::Words;
use dp_optim::catalogue::{self, Entry};

/// The baseline's name.
const NON_PRIVATE: &str = "non-private";

/// An algorithm of `dp train`.
#[derive(Debug, Clone, Copy)]
pub enum Algorithm {
    /// A private one.
    Private(&'static Entry),
    /// The baseline.
    NonPrivate,
}

impl Algorithm {
    /// The one that chooses by public numbers.
    pub fn auto() -> Self {
        Self::Private(catalogue::AUTO)
    }

    /// The one whose settings `dp tune` chooses by default.
    pub fn tuned() -> Self {
        catalogue::find("bolt-on-convex").map_or_else(Self::auto, Self::Private)
    }

    /// Its name as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private(entry) => entry.name,
            Self::NonPrivate => NON_PRIVATE,
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Private(entry) => entry.about,
            Self::NonPrivate => "No privacy at all: for comparison, never for release",
        }
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// Names with their help, as flags.
pub(super) fn named(names: impl IntoIterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    names.into_iter().map(|(name, help)| PossibleValue::new(name).help(with_dashes(help))).collect::<Vec<_>>().into()
}

/// Parses one of these words.
pub(super) fn words<T: Copy + Send + Sync + 'static>(words: Words<T>) -> impl TypedValueParser<Value = T> {
    named(words.iter().map(|&(_, name, help)| (name, help)))
        .try_map(move |word| dp::words::named(words, &word).ok_or_else(|| format!("there is no {word}")))
}

impl ValueEnum for Algorithm {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Algorithm>> = LazyLock::new(|| {
            catalogue::ALGORITHMS.iter().map(|entry| Algorithm::Private(entry)).chain([Algorithm::NonPrivate]).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(with_dashes(self.about())))
    }
}

/// The library's text with names of settings as flags: `` `batch-size` `` is `--batch-size`. Other names stay as they are.
pub fn with_dashes(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(i, part)| {
        let setting = part.split(' ').next().unwrap_or(part);
        let known = catalogue::PARAMETERS.iter().any(|parameter| parameter.name == setting)
            || ["float", "noise"].contains(&setting);
        match i % 2 {
            0 => part.to_owned(),
            _ if known => format!("--{part}"),
            _ => format!("`{part}`"),
        }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_flags_and_other_names_stay() {
        assert_eq!(with_dashes("`stop certified` needs `lambda`"), "--stop certified needs --lambda");
        assert_eq!(with_dashes("for `snowball-sgd`; omit `float`"), "for `snowball-sgd`; omit --float");
    }
}
