//! Query lists: the documents of a query, with public features and private grades.

use core::fmt;
use std::collections::HashSet;

use dp_data::memory::{self, OutOfMemory, reserve};

use crate::error::Error;
use crate::random::{Public, shuffle};
use crate::ranking::LARGEST_GRADE;

/// The features of one list's documents, row by row. Public.
///
/// # Shapes
/// `documents` rows of `width` numbers; a row is contiguous.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features<'a> {
    values: &'a [f64],
    width: usize,
}

impl<'a> Features<'a> {
    /// Takes contiguous rows.
    ///
    /// # Errors
    /// [`Error::Zero`] (width), [`Error::EmptyList`], [`Error::Shape`] (not whole rows), [`Error::FeatureNotFinite`].
    ///
    /// # Examples
    /// ```
    /// let features = dp_rank::Features::new(&[1.0, 2.0, 3.0, 4.0], 2)?;
    /// assert_eq!((features.documents(), features.row(1)), (2, &[3.0, 4.0][..]));
    /// # Ok::<(), dp_rank::Error>(())
    /// ```
    pub fn new(values: &'a [f64], width: usize) -> Result<Self, Error> {
        if width == 0 {
            return Err(Error::Zero { what: "the number of features" });
        }
        if values.is_empty() {
            return Err(Error::EmptyList);
        }
        if !values.len().is_multiple_of(width) {
            let expected = values.len().next_multiple_of(width);
            return Err(Error::Shape { what: "a list's features", found: values.len(), expected });
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(Error::FeatureNotFinite { document: at / width, feature: at % width }),
            None => Ok(Self { values, width }),
        }
    }

    /// Returns the number of documents, at least 1.
    pub fn documents(&self) -> usize {
        self.values.len() / self.width
    }

    /// Returns the number of features.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns one document's features.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn row(&self, document: usize) -> &'a [f64] {
        &self.values[document * self.width..(document + 1) * self.width]
    }

    /// Returns all rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [f64]> + use<'a> {
        self.values.chunks_exact(self.width)
    }

    /// Returns all numbers, row by row.
    pub fn values(&self) -> &'a [f64] {
        self.values
    }
}

/// One query's list, borrowed from [`QueryLists`].
///
/// `Debug` shows the query and the number of documents, but no grade.
#[derive(Clone, Copy)]
pub struct QueryList<'a> {
    id: &'a str,
    features: Features<'a>,
    grades: &'a [u32],
}

impl<'a> QueryList<'a> {
    /// Returns the query. Public.
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// Returns the documents' features. Public.
    pub fn features(&self) -> Features<'a> {
        self.features
    }

    /// Returns the documents' grades of relevance, from 0. **Private**: where grades are protected, the only private data.
    pub fn grades(&self) -> &'a [u32] {
        self.grades
    }

    /// Returns the number of documents. Public.
    pub fn documents(&self) -> usize {
        self.grades.len()
    }

    /// Returns the same documents with other grades, one for each document.
    pub(crate) fn with_grades<'b>(&self, grades: &'b [u32]) -> QueryList<'b>
    where
        'a: 'b,
    {
        debug_assert_eq!(grades.len(), self.grades.len());
        QueryList { grades, ..*self }
    }
}

impl fmt::Debug for QueryList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryList").field("id", &self.id).field("documents", &self.documents()).finish_non_exhaustive()
    }
}

/// The name of the data in memory errors.
const LISTS: &str = "the lists";

/// Lists of documents with grades, one list per query, in contiguous memory.
///
/// # Privacy
/// A list stands for one user. Where grades are protected, the number of lists, their order, the queries, the numbers of
/// documents and all features are public; the grades are not, and neighbouring data differ in the grades of one list. This is the
/// meaning of *public* here. Where whole lists or documents are [protected](crate::train::protect), only the data listed there
/// are public. The number of features and the largest grade are declared, not derived from the grades. `Debug` shows no grade.
///
/// # Examples
/// ```
/// use dp_rank::QueryLists;
///
/// let mut lists = QueryLists::new(2, 2)?;
/// lists.push("red apples", &[0.1, 0.9, 0.3, 0.3], &[0, 2])?;
/// lists.push("a pear", &[0.5, 0.5], &[1])?;
/// assert_eq!((lists.len(), lists.documents()), (2, 3));
/// assert_eq!(lists.list(0).features().row(1), [0.3, 0.3]);
/// assert!(lists.push("a plum", &[0.5, 0.5], &[3]).is_err());
/// # Ok::<(), dp_rank::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct QueryLists {
    width: usize,
    largest_grade: u32,
    values: Vec<f64>,
    grades: Vec<u32>,
    ids: Vec<String>,
    /// The end of each list, in documents.
    ends: Vec<usize>,
    known: HashSet<String>,
}

impl QueryLists {
    /// Creates an empty collection for documents with `width` features and grades from 0 to `largest_grade`.
    ///
    /// # Errors
    /// [`Error::Zero`]; [`Error::GradeTooLarge`] if `largest_grade` is above [`LARGEST_GRADE`].
    pub fn new(width: usize, largest_grade: u32) -> Result<Self, Error> {
        if width == 0 {
            return Err(Error::Zero { what: "the number of features" });
        }
        if largest_grade == 0 {
            return Err(Error::Zero { what: "the largest grade" });
        }
        if largest_grade > LARGEST_GRADE {
            return Err(Error::GradeTooLarge { document: 0, label: largest_grade, limit: LARGEST_GRADE });
        }
        Ok(Self {
            width,
            largest_grade,
            values: Vec::new(),
            grades: Vec::new(),
            ids: Vec::new(),
            ends: Vec::new(),
            known: HashSet::new(),
        })
    }

    /// Adds a list.
    ///
    /// # Shapes
    /// `grades[i]` belongs to `features[i * width .. (i + 1) * width]`.
    ///
    /// # Errors
    /// [`Error::EmptyList`], [`Error::Shape`], [`Error::FeatureNotFinite`], [`Error::GradeTooLarge`], [`Error::DuplicateQuery`],
    /// [`Error::Memory`]; the list is then not added.
    pub fn push(&mut self, id: &str, features: &[f64], grades: &[u32]) -> Result<(), Error> {
        if grades.is_empty() {
            return Err(Error::EmptyList);
        }
        let expected = grades.len() * self.width;
        if features.len() != expected {
            return Err(Error::Shape { what: "a list's features", found: features.len(), expected });
        }
        Features::new(features, self.width)?;
        if let Some(document) = grades.iter().position(|&grade| grade > self.largest_grade) {
            return Err(Error::GradeTooLarge { document, label: grades[document], limit: self.largest_grade });
        }
        if self.known.contains(id) {
            return Err(Error::DuplicateQuery { id: id.to_owned() });
        }
        self.reserve(features.len(), grades.len())?;
        let (known, own) = (memory::text(id, LISTS)?, memory::text(id, LISTS)?);
        self.known.insert(known);
        self.values.extend_from_slice(features);
        self.grades.extend_from_slice(grades);
        self.ids.push(own);
        self.ends.push(self.grades.len());
        Ok(())
    }

    /// Reserves memory for one more list.
    fn reserve(&mut self, features: usize, documents: usize) -> Result<(), OutOfMemory> {
        reserve(&mut self.values, features, LISTS)?;
        reserve(&mut self.grades, documents, LISTS)?;
        reserve(&mut self.ids, 1, LISTS)?;
        reserve(&mut self.ends, 1, LISTS)?;
        let needed = self.known.capacity().max(4) as u64 * 2 * (size_of::<String>() as u64 + 1);
        self.known.try_reserve(1).map_err(|_| OutOfMemory { what: LISTS, held: needed / 2, needed })
    }

    /// Adds all lists of `other`, for a training set in several parts.
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of features differ; otherwise as [`push`](Self::push). Lists before the refused one
    /// remain.
    pub fn extend(&mut self, other: &Self) -> Result<(), Error> {
        if other.width != self.width {
            return Err(Error::Shape { what: "a document", found: other.width, expected: self.width });
        }
        other.iter().try_for_each(|list| self.push(list.id, list.features.values, list.grades))
    }

    /// Returns the number of lists. Public.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of documents in all lists. Public.
    pub fn documents(&self) -> usize {
        self.grades.len()
    }

    /// Returns the number of features of a document. Public.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the declared largest grade. Public.
    pub fn largest_grade(&self) -> u32 {
        self.largest_grade
    }

    /// Returns the number of documents in the longest list, 0 if there is no list. Public.
    pub fn longest(&self) -> usize {
        (0..self.len()).map(|list| self.end(list) - self.start(list)).max().unwrap_or(0)
    }

    fn start(&self, list: usize) -> usize {
        list.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn end(&self, list: usize) -> usize {
        self.ends[list]
    }

    /// Returns a list.
    ///
    /// # Panics
    /// If there is no such list.
    pub fn list(&self, list: usize) -> QueryList<'_> {
        let (start, end) = (self.start(list), self.end(list));
        QueryList {
            id: &self.ids[list],
            features: Features { values: &self.values[start * self.width..end * self.width], width: self.width },
            grades: &self.grades[start..end],
        }
    }

    /// Returns all lists, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = QueryList<'_>> {
        (0..self.len()).map(|list| self.list(list))
    }

    /// Maps every feature of every list to `[0, 1]` by its least and largest value *in that list*; a feature that is constant in
    /// a list becomes 0. Uses public values only.
    ///
    /// # Formula
    /// ```text
    /// x_if <- (x_if - min_l x_lf) / (max_l x_lf - min_l x_lf)
    /// ```
    ///
    /// # References
    /// Qin, Liu, Xu and Li 2010, "LETOR: A benchmark collection for research on learning to rank": query-level
    /// normalisation.
    ///
    /// # Examples
    /// ```
    /// let mut lists = dp_rank::QueryLists::new(2, 2)?;
    /// lists.push("q", &[3.0, 7.0, 5.0, 7.0, 4.0, 7.0], &[0, 1, 2])?;
    /// lists.normalise_features();
    /// assert_eq!(lists.list(0).features().values(), [0.0, 0.0, 1.0, 0.0, 0.5, 0.0]);
    /// # Ok::<(), dp_rank::Error>(())
    /// ```
    pub fn normalise_features(&mut self) {
        for list in 0..self.len() {
            let (start, end) = (self.start(list) * self.width, self.end(list) * self.width);
            let values = &mut self.values[start..end];
            for feature in 0..self.width {
                let column = || (feature..end - start).step_by(self.width);
                // Halved, so that the width of the range does not overflow.
                let (least, largest) = column().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, largest), at| {
                    (least.min(values[at] / 2.0), largest.max(values[at] / 2.0))
                });
                let range = largest - least;
                for at in column() {
                    values[at] = if range > 0.0 { ((values[at] / 2.0 - least) / range).min(1.0) } else { 0.0 };
                }
            }
        }
    }

    /// Puts the documents of each list into a random order that depends on the seed and the list's query. Losses that break ties
    /// by the order of documents, such as [`ListMle`](crate::loss::ListMle), otherwise learn the order of the file: LETOR files
    /// sort documents by web site.
    ///
    /// # Privacy
    /// Neighbours stay neighbours: a list's order depends on its query and its number of documents alone, so changing, adding or
    /// removing one list does not reorder the others. Grades are not used.
    ///
    /// # Examples
    /// ```
    /// let mut lists = dp_rank::QueryLists::new(1, 2)?;
    /// lists.push("q", &[0.0, 1.0, 2.0, 3.0, 4.0], &[0, 1, 2, 0, 1])?;
    /// lists.shuffle_documents(7);
    /// let (features, grades) = (lists.list(0).features(), lists.list(0).grades());
    /// assert!(features.values() != [0.0, 1.0, 2.0, 3.0, 4.0]);
    /// assert!(features.values().iter().zip(grades).all(|(x, grade)| (*x as u32) % 3 == *grade));
    /// # Ok::<(), dp_rank::Error>(())
    /// ```
    pub fn shuffle_documents(&mut self, seed: u64) {
        for list in 0..self.len() {
            let (start, end) = (self.start(list), self.end(list));
            let mut order: Vec<usize> = (start..end).collect();
            shuffle(&mut order, Public::new(seed ^ fnv1a(self.ids[list].as_bytes())).generator());
            let values: Vec<f64> = order
                .iter()
                .flat_map(|document| &self.values[document * self.width..][..self.width])
                .copied()
                .collect();
            let grades: Vec<u32> = order.iter().map(|&document| self.grades[document]).collect();
            self.values[start * self.width..end * self.width].copy_from_slice(&values);
            self.grades[start..end].copy_from_slice(&grades);
        }
    }
}

/// Returns the 64-bit FNV-1a hash (Fowler, Noll and Vo). Public: a collision only makes two queries share their random numbers.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl fmt::Debug for QueryLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryLists")
            .field("lists", &self.len())
            .field("documents", &self.documents())
            .field("width", &self.width)
            .field("largest_grade", &self.largest_grade)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
