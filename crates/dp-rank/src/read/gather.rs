//! Grouping of rows into lists, shared by all readers.

use std::collections::HashMap;

use dp_data::encode::parse_number;
use dp_data::memory::{self, OutOfMemory, reserve};

use super::error::{Column, Problem, ReadError, quote};
use super::{ListOptions, Loaded, SplitLists};
use crate::error::Error;
use crate::lists::QueryLists;

/// Rows of one query, features as (index from 0, value).
struct Rows {
    id: String,
    grades: Vec<u32>,
    entries: Vec<(u32, f64)>,
    ends: Vec<usize>,
    split: bool,
}

/// The name of the data in memory errors.
const LISTS: &str = "the lists";

impl Rows {
    /// Reserves memory for a row of this many features.
    fn reserve(&mut self, entries: usize) -> Result<(), OutOfMemory> {
        reserve(&mut self.grades, 1, LISTS)?;
        reserve(&mut self.entries, entries, LISTS)?;
        reserve(&mut self.ends, 1, LISTS)
    }
}

/// Collects rows by query, in the order of the file.
pub(super) struct Gather<'a> {
    file: String,
    options: &'a ListOptions,
    positions: HashMap<String, usize>,
    lists: Vec<Rows>,
    last: Option<usize>,
    /// The number of features that the rows need.
    needed: usize,
}

impl<'a> Gather<'a> {
    pub(super) fn new(file: &str, options: &'a ListOptions) -> Result<Self, ReadError> {
        // Refuses invalid declarations before the file is read.
        QueryLists::new(options.features.unwrap_or(1), options.largest_grade)
            .map_err(|error| ReadError::new(file, Problem::Options(error)))?;
        Ok(Self { file: file.to_owned(), options, positions: HashMap::new(), lists: Vec::new(), last: None, needed: 0 })
    }

    /// Adds a row; its features are distinct.
    pub(super) fn row(
        &mut self,
        query: &[u8],
        grade: u32,
        entries: &[(u32, f64)],
        place: impl FnOnce() -> (u64, Option<Column>),
    ) -> Result<(), ReadError> {
        let id = String::from_utf8_lossy(query);
        let list = match self.last.filter(|&last| self.lists[last].id == id) {
            Some(last) => last,
            None => match self.positions.get(&*id).copied() {
                Some(_) if self.options.split_lists == SplitLists::Refuse => {
                    let (line, column) = place();
                    let problem = Problem::SplitList { query: quote(query) };
                    return Err(ReadError::new(&self.file, problem).at(line, column));
                }
                Some(list) => {
                    self.lists[list].split = true;
                    list
                }
                None => {
                    let room = self.reserve_list();
                    let ids = room.and_then(|()| Ok((memory::text(&id, LISTS)?, memory::text(&id, LISTS)?)));
                    let (known, own) = match ids {
                        Ok(ids) => ids,
                        Err(error) => return Err(self.exhausted(error, place().0)),
                    };
                    self.positions.insert(known, self.lists.len());
                    self.lists.push(Rows {
                        id: own,
                        grades: Vec::new(),
                        entries: Vec::new(),
                        ends: Vec::new(),
                        split: false,
                    });
                    self.lists.len() - 1
                }
            },
        };
        self.last = Some(list);
        let rows = &mut self.lists[list];
        if let Err(error) = rows.reserve(entries.len()) {
            return Err(self.exhausted(error, place().0));
        }
        rows.grades.push(grade);
        rows.entries.extend_from_slice(entries);
        rows.ends.push(rows.entries.len());
        self.needed = entries.iter().map(|&(index, _)| index as usize + 1).fold(self.needed, usize::max);
        Ok(())
    }

    /// Reserves memory for one more list.
    fn reserve_list(&mut self) -> Result<(), OutOfMemory> {
        reserve(&mut self.lists, 1, LISTS)?;
        let full = self.positions.len() == self.positions.capacity();
        // A full map allocates a new table of twice the size beside the old one.
        let table = if full { self.positions.capacity().max(4) * 2 * (size_of::<(String, usize)>() + 1) } else { 0 };
        memory::check(table, LISTS)?;
        self.positions.try_reserve(1).map_err(|_| OutOfMemory { what: LISTS, held: 0, needed: table as u64 })
    }

    /// Frees the rows, so that there is memory for the error.
    fn exhausted(&mut self, error: OutOfMemory, line: u64) -> ReadError {
        (self.lists, self.positions) = (Vec::new(), HashMap::new());
        ReadError::exhausted(&self.file, error, Some(line))
    }

    pub(super) fn finish(self) -> Result<Loaded, ReadError> {
        if self.lists.is_empty() {
            return Err(ReadError::new(&self.file, Problem::NoRows));
        }
        let width = self.options.features.unwrap_or(self.needed).max(1);
        let refused = |error| match error {
            Error::Memory(error) => ReadError::exhausted(&self.file, error, None),
            error => ReadError::new(&self.file, Problem::Options(error)),
        };
        let mut lists = QueryLists::new(width, self.options.largest_grade).map_err(refused)?;
        let split_lists = self.lists.iter().filter(|rows| rows.split).count();
        let mut features = Vec::new();
        for rows in self.lists {
            features.clear();
            let length = rows.grades.len().saturating_mul(width);
            reserve(&mut features, length, LISTS).map_err(|error| refused(error.into()))?;
            features.resize(length, 0.0);
            let mut start = 0;
            for (row, &end) in features.chunks_exact_mut(width).zip(&rows.ends) {
                for &(index, value) in &rows.entries[start..end] {
                    row[index as usize] = value;
                }
                start = end;
            }
            lists.push(&rows.id, &features, &rows.grades).map_err(refused)?;
        }
        Ok(Loaded { lists, split_lists })
    }
}

/// Parses a grade: an integer from 0 to `largest`, possibly written as a decimal.
pub(super) fn parse_grade(cell: &[u8], largest: u32) -> Result<u32, Problem> {
    match parse_number(cell) {
        Some(number) if number >= 0.0 && number.fract() == 0.0 => {
            if number <= f64::from(largest) {
                Ok(number as u32)
            } else {
                Err(Problem::GradeTooLarge { found: quote(cell), limit: largest })
            }
        }
        _ => Err(Problem::BadGrade { found: quote(cell) }),
    }
}
