//! Detection of rows that share the values of a column that looks like an identifier, such as that of a patient.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::FxHasher;

/// Nouns for the owners of rows.
const OWNERS: [&str; 18] = [
    "account",
    "beneficiary",
    "client",
    "customer",
    "employee",
    "household",
    "insured",
    "member",
    "mrn",
    "participant",
    "patient",
    "person",
    "pid",
    "respondent",
    "student",
    "subject",
    "uid",
    "user",
];

/// Endings of the names of identifiers.
const ENDS: [&str; 11] = ["id", "uuid", "guid", "key", "no", "nr", "num", "number", "code", "mail", "email"];

/// A column with fewer values holds categories.
const FEWEST: usize = 30;

/// Returns whether a column has the name of an identifier: `patient`, `customer_id`, `PatientNumber`, `userid`, `e-mail`.
pub(crate) fn is_identifier(name: &str) -> bool {
    let words = words(name);
    let is_owner = |word: &str| OWNERS.contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["id" | "uuid" | "guid" | "email" | "mail"] => true,
        [word] => {
            is_owner(word) || ENDS.iter().any(|end| word.strip_suffix(end).is_some_and(|owner| OWNERS.contains(&owner)))
        }
        [.., "id" | "uuid" | "guid" | "email"] | [.., "e", "mail"] => true,
        [ref of @ .., last] => ENDS.contains(&last) && of.iter().any(|word| is_owner(word)),
    }
}

/// Returns the words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in name.chars() {
        let starts = !before.is_alphanumeric() || (letter.is_uppercase() && before.is_lowercase());
        if letter.is_alphanumeric() {
            if starts {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
        before = letter;
    }
    words
}

/// The rows of each value of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Owners {
    /// By a hash of the value: a collision can only make a hint wrong.
    rows: HashMap<u64, u32, BuildHasherDefault<FxHasher>>,
}

impl Owners {
    /// Adds a row; an empty value has no owner.
    pub(crate) fn see(&mut self, value: &[u8]) {
        if !value.is_empty() {
            let rows = self.rows.entry(self.rows.hasher().hash_one(value)).or_insert(0);
            *rows = rows.saturating_add(1);
        }
    }

    /// Adds the rows of others.
    pub(crate) fn append(&mut self, other: &Self) {
        for (value, count) in &other.rows {
            let rows = self.rows.entry(*value).or_insert(0);
            *rows = rows.saturating_add(*count);
        }
    }

    /// Returns the largest number of rows with one value; 1 if all differ, `None` if there are too few values for an identifier.
    pub(crate) fn most(&self) -> Option<u32> {
        if self.rows.len() < FEWEST { None } else { self.rows.values().copied().max() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_known_by_their_names() {
        for name in [
            "id",
            "ID",
            "patient",
            "Patient",
            "patient_id",
            "PatientID",
            "userid",
            "customer number",
            "MRN",
            "Member No",
            "visit.id",
            "E-Mail",
            "email",
            "customer e-mail",
            "ContactEmail",
        ] {
            assert!(is_identifier(name), "{name}");
        }
        for name in [
            "",
            "age",
            "customer_age",
            "humid",
            "paid",
            "code",
            "postcode",
            "number",
            "patients",
            "rapid",
            "key",
            "member_since",
            "mailing list",
            "email opened",
        ] {
            assert!(!is_identifier(name), "{name}");
        }
    }

    #[test]
    fn rows_of_a_value_are_counted() {
        let mut owners = Owners::default();
        (0..29u8).for_each(|value| owners.see(&[value]));
        owners.see(b"");
        assert_eq!(owners.most(), None);
        owners.see(&[29]);
        assert_eq!(owners.most(), Some(1));
        let mut more = owners.clone();
        more.see(&[3]);
        owners.append(&more);
        assert_eq!(owners.most(), Some(3));
    }
}
