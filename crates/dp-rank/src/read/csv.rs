//! CSV files with a column of queries and a column of grades.

use dp_data::encode::parse_number;
use dp_data::read::{CsvOptions, CsvReader, Input};

use super::error::{Column, Problem, ReadError, quote};
use super::gather::{Gather, parse_grade};
use super::{ListOptions, Loaded};

/// The roles of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvColumns {
    /// The column of the document's query; any text.
    pub query: String,
    /// The column of the grade; it may be absent unless [`ListOptions::grades_needed`].
    pub grade: String,
    /// The columns of the features, in this order; `None` uses all other columns, in the order of the file.
    pub features: Option<Vec<String>>,
}

/// Reads lists from a CSV file with a header, one document per row.
///
/// [`ListOptions::features`] is optional; if given, it must equal the number of feature columns.
///
/// # Errors
/// [`ReadError`], with file, line and column: a named column missing from the header, a row with another number of cells, an
/// empty query, a grade that is not an integer from 0 to [`ListOptions::largest_grade`], a value that is not a finite number
/// (including missing values: features are public, so impute them first), a split list under `SplitLists::Refuse`, no rows, or an
/// unreadable input.
///
/// # Examples
/// ```
/// use dp_data::read::Input;
/// use dp_rank::read::{CsvColumns, ListOptions, load_csv};
///
/// let text = "user,clicks,age,title\nann,1,3,0.5\nann,0,4,0.1\nbob,2,1,0.9\n";
/// let columns = CsvColumns { query: "user".into(), grade: "clicks".into(), features: None };
/// let input = Input::from_bytes("views.csv", text.into());
/// let loaded = load_csv(input, &columns, &Default::default(), &ListOptions::default())?;
/// assert_eq!((loaded.lists.len(), loaded.lists.width()), (2, 2));
/// assert_eq!(loaded.lists.list(0).features().row(1), [4.0, 0.1]);
/// # Ok::<(), dp_rank::read::ReadError>(())
/// ```
pub fn load_csv(
    input: Input,
    columns: &CsvColumns,
    csv: &CsvOptions,
    options: &ListOptions,
) -> Result<Loaded, ReadError> {
    let file = input.name().to_owned();
    let data = |error| ReadError::from_data(&file, error);
    let mut gather = Gather::new(&file, options)?;
    let mut reader = CsvReader::new(input, *csv).map_err(data)?;
    reader.refuse_line_ends(|_| false);
    let query_at = reader.position(&columns.query).map_err(data)?;
    let has_grades = options.grades_needed || reader.header().contains(&columns.grade);
    let grade_at = if has_grades { Some(reader.position(&columns.grade).map_err(data)?) } else { None };
    let features_at: Vec<usize> = match &columns.features {
        Some(names) => names.iter().map(|name| reader.position(name).map_err(data)).collect::<Result<_, _>>()?,
        None => (0..reader.header().len()).filter(|&at| at != query_at && Some(at) != grade_at).collect(),
    };
    let expected = options.features.unwrap_or(features_at.len()).max(1);
    if features_at.len() != expected {
        let error = crate::Error::Shape { what: "a row", found: features_at.len(), expected };
        return Err(ReadError::new(&file, Problem::Options(error)));
    }
    let header = reader.header().to_vec();
    let mut entries = Vec::with_capacity(features_at.len());
    while let Some(record) = reader.next_record().map_err(data)? {
        let refused = |at: usize, problem: Problem| {
            ReadError::new(&file, problem).at(record.line(), Some(Column::Named(header[at].clone())))
        };
        let query = record.cell(query_at).trim_ascii();
        if query.is_empty() {
            return Err(refused(query_at, Problem::MissingQuery));
        }
        let grade = match grade_at {
            Some(at) => parse_grade(record.cell(at), options.largest_grade).map_err(|problem| refused(at, problem))?,
            None => 0,
        };
        entries.clear();
        for (index, &at) in features_at.iter().enumerate() {
            let cell = record.cell(at);
            let value = parse_number(cell).ok_or_else(|| refused(at, Problem::BadValue { found: quote(cell) }))?;
            entries.push((index as u32, value));
        }
        let place = || (record.line(), Some(Column::Named(columns.query.clone())));
        gather.row(query, grade, &entries, place)?;
    }
    gather.finish()
}
