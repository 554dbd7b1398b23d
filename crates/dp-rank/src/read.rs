//! Reading query lists from LETOR (SVMlight) text and from CSV, plain or compressed.
//!
//! Inputs are opened by [`dp_data::read::Input`]. Rows of a query may lie apart in a file: they are joined in the order
//! of the rows, lists in the order in which their first rows appear, and [`Loaded::split_lists`] says how many were
//! apart, which often means that two users share a name. [`SplitLists::Refuse`] makes that an error.

mod csv;
mod error;
mod gather;
mod letor;

pub use csv::{CsvColumns, load_csv};
pub use error::{Column, Problem, ReadError};
pub use letor::load_letor;

use crate::lists::QueryLists;

/// What to do when the rows of one query do not lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitLists {
    /// Join them into one list.
    #[default]
    Join,
    /// Stop at the first row that comes too late.
    Refuse,
}

/// What is publicly known of the lists, and how strictly a file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// The number of features; `None` takes the largest index in the file, which is a public value too.
    pub features: Option<usize>,
    /// The largest grade that a document can have. Declared, never read off the grades.
    pub largest_grade: u32,
    /// What to do when the rows of one query do not lie together.
    pub split_lists: SplitLists,
    /// Whether every document must have a grade. Where it need not, as when lists are only scored, a LETOR line may begin
    /// with its query, a CSV file may lack the column of grades, and the grade is 0 then.
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
    /// The lists, in the order in which their first rows appear.
    pub lists: QueryLists,
    /// How many lists' rows did not lie together.
    pub split_lists: usize,
}

#[cfg(test)]
mod tests;
