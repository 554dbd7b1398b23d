//! Reading query lists from LETOR (SVMlight) text and from CSV, plain or compressed.
//!
//! Inputs are opened by [`dp_data::read::Input`]. Rows of a query need not be contiguous: they are joined in the order of the
//! rows, and lists are in the order of their first rows. [`Loaded::split_lists`] counts the lists whose rows were not contiguous,
//! which often means that two users share a name; [`SplitLists::Refuse`] makes that an error.

mod csv;
mod error;
mod gather;
mod letor;

pub use csv::{CsvColumns, load_csv};
pub use error::{Column, Problem, ReadError};
pub use letor::load_letor;

use crate::lists::QueryLists;

/// The treatment of queries whose rows are not contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitLists {
    /// Join the rows into one list.
    #[default]
    Join,
    /// Refuse the file at the first row that is not contiguous.
    Refuse,
}

/// Public facts about the lists, and the strictness of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// The number of features; `None` uses the largest index in the file, which is a public value too.
    pub features: Option<usize>,
    /// The largest grade that a document can have. Declared, never derived from the grades.
    pub largest_grade: u32,
    /// The treatment of queries whose rows are not contiguous.
    pub split_lists: SplitLists,
    /// True if every document must have a grade. If false, as for lists that are only scored, a LETOR line may begin with its
    /// query and a CSV file may lack the grade column; the grade is then 0.
    pub grades_needed: bool,
}

impl Default for ListOptions {
    /// LETOR's grades, 0 to 2.
    fn default() -> Self {
        Self { features: None, largest_grade: 2, split_lists: SplitLists::Join, grades_needed: true }
    }
}

/// Lists that were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The lists, in the order of their first rows.
    pub lists: QueryLists,
    /// The number of lists whose rows were not contiguous.
    pub split_lists: usize,
}

#[cfg(test)]
mod tests;
