//! Columns of Python as a table of typed cells.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dp_data::DataError;
use dp_data::encode::Cell;
use dp_data::table::{Batch, Batches, ROWS_OF_A_BATCH, Table, TableColumn};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::failure::{Class, Failure};

/// Number of cells that are taken from Python at a time.
const CELLS: usize = 1 << 18;

/// Maximum number of rows that are taken from Python at a time.
const ROWS: usize = 4096;

/// A column: its name, and a function that returns the cells from one row to another, with what they are.
pub(crate) type NamedColumn = (String, Py<PyAny>);

/// Columns of Python objects of the same length.
pub(crate) struct Columns {
    columns: Vec<NamedColumn>,
    rows: usize,
    raised: Raised,
}

/// An exception of a column on the thread that reads it.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Returns the exception, if there was one, in place of the error that it led to.
    pub(crate) fn or(&self, error: impl Into<Failure>) -> PyErr {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| error.into().into())
    }
}

/// Cells of one column.
enum Cells {
    Numbers(Vec<f64>),
    Booleans(Vec<bool>),
    /// Times since 1970-01-01, and their number in a second; the smallest integer is a missing one.
    Times(Vec<i64>, i64),
    Objects(Vec<Object>),
}

/// A cell of any type.
enum Object {
    Missing,
    Number(f64),
    Whole(i128),
    Boolean(bool),
    Text(String),
    Date(i32),
    Time(i64),
}

/// The missing time of numpy.
const NOT_A_TIME: i64 = i64::MIN;

/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// The ordinal of 1970-01-01 in Python's calendar.
const EPOCH: i32 = 719_163;

impl Columns {
    pub(crate) fn new(columns: Vec<NamedColumn>, rows: usize) -> Self {
        Self { columns, rows, raised: Raised::default() }
    }

    /// Returns the place of exceptions.
    pub(crate) fn raised(&self) -> Raised {
        self.raised.clone()
    }

    /// Returns the table, whose reader stops once the flag is set.
    pub(crate) fn table(self, cancelled: Arc<AtomicBool>) -> Table {
        let named = self.columns.iter().map(|(name, _)| TableColumn { name: name.clone(), unreadable: None }).collect();
        Table::new("the table", named, move |used, batches| self.send(used, batches, &cancelled))
    }

    fn send(&self, used: &[usize], batches: &mut Batches, cancelled: &AtomicBool) -> Result<(), DataError> {
        let rows = (CELLS / used.len().max(1)).clamp(1, ROWS);
        for start in (0..self.rows).step_by(rows) {
            if cancelled.load(Ordering::Relaxed) {
                return Err(DataError::of_table("the reading was ended"));
            }
            let stop = self.rows.min(start + rows);
            let taken = Python::attach(|py| {
                let of = |position: &usize| match self.columns.get(*position) {
                    Some((name, column)) => taken(column.bind(py), name, start, stop),
                    None => Ok(Cells::Objects(Vec::new())),
                };
                used.iter().map(of).collect::<PyResult<Vec<Cells>>>()
            });
            let taken = taken.map_err(|error| {
                self.raised.put(error);
                DataError::of_table("a column cannot be read")
            })?;
            for first in (0..stop - start).step_by(ROWS_OF_A_BATCH) {
                let rows = first..(stop - start).min(first + ROWS_OF_A_BATCH);
                let mut batch = Batch::new(used.len());
                for (place, cells) in taken.iter().enumerate() {
                    match cells {
                        Cells::Numbers(values) => batch.push_numbers(place, &values[rows.clone()])?,
                        cells => rows.clone().try_for_each(|row| push(&mut batch, place, cells, row))?,
                    }
                }
                batches.send(batch)?;
            }
        }
        Ok(())
    }
}

/// Returns the cells of a column from row `start` to before row `stop`.
fn taken(column: &Bound<'_, PyAny>, name: &str, start: usize, stop: usize) -> PyResult<Cells> {
    let (kind, values): (String, Bound<'_, PyAny>) = column.call1((start, stop))?.extract()?;
    let cells = match kind.as_str() {
        "number" => Cells::Numbers(values.extract::<PyReadonlyArray1<'_, f64>>()?.as_array().to_vec()),
        "boolean" => Cells::Booleans(values.extract::<PyReadonlyArray1<'_, bool>>()?.as_array().to_vec()),
        "time" => {
            let (times, in_second): (PyReadonlyArray1<'_, i64>, i64) = values.extract()?;
            Cells::Times(times.as_array().to_vec(), in_second)
        }
        _ => {
            let mut objects = Vec::with_capacity(stop - start);
            for (row, value) in (start..).zip(values.try_iter()?) {
                objects.push(object(&value?, name, row)?);
            }
            Cells::Objects(objects)
        }
    };
    let length = match &cells {
        Cells::Numbers(values) => values.len(),
        Cells::Booleans(values) => values.len(),
        Cells::Times(values, _) => values.len(),
        Cells::Objects(values) => values.len(),
    };
    if length == stop - start {
        return Ok(cells);
    }
    // Another thread may have changed it since its length was checked.
    Err(Failure::argument("X", format!("column `{name}` changed its length")).into())
}

fn object(value: &Bound<'_, PyAny>, name: &str, row: usize) -> PyResult<Object> {
    if value.is_none() {
        return Ok(Object::Missing);
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str().map_err(|_| {
            let message = format!("column `{name}`, row {row} holds half of a surrogate pair");
            Failure { class: Class::Data, ..Failure::argument("X", message).expecting("text that UTF-8 can hold") }
        })?;
        return Ok(Object::Text(text.to_owned()));
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Object::Boolean(value.is_true()));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(if number.value().is_nan() { Object::Missing } else { Object::Number(number.value()) });
    }
    if let Ok(number) = value.cast::<PyInt>() {
        let text = || Ok::<_, PyErr>(Object::Text(number.str()?.to_str()?.to_owned()));
        return number.extract().map(Object::Whole).or_else(|_| text());
    }
    let kind = value.get_type().name()?.to_string();
    match kind.as_str() {
        "NAType" | "NaTType" => return Ok(Object::Missing),
        "Decimal" => return Ok(Object::Text(value.str()?.to_str()?.to_owned())),
        "date" => return Ok(Object::Date(value.call_method0("toordinal")?.extract::<i32>()? - EPOCH)),
        "datetime" | "Timestamp" => {
            if !value.getattr("tzinfo")?.is_none() {
                let message = format!("column `{name}`, row {row} holds a time with a time zone");
                return Err(Failure::argument("X", message).expecting("times without a time zone").into());
            }
            let days = i64::from(value.call_method0("toordinal")?.extract::<i32>()? - EPOCH);
            let part = |name: &str| value.getattr(name)?.extract::<i64>();
            let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
            return Ok(Object::Time((days * 86_400 + seconds) * MICROSECONDS + part("microsecond")?));
        }
        _ => {}
    }
    // Numbers of numpy.
    if let Ok(plain) = value.call_method0("item")
        && !plain.get_type().is(value.get_type())
    {
        return object(&plain, name, row);
    }
    let message = format!("column `{name}`, row {row} holds a {kind}");
    Err(Failure::argument("X", message).expecting("numbers, texts, Booleans, dates or missing values").into())
}

fn push(batch: &mut Batch, place: usize, cells: &Cells, row: usize) -> Result<(), DataError> {
    let number = |number: f64| if number.is_nan() { Cell::Missing } else { Cell::Number(number) };
    match cells {
        Cells::Numbers(values) => batch.push(place, number(values[row])),
        Cells::Booleans(values) => batch.push(place, Cell::Boolean(values[row])),
        Cells::Times(values, _) if values[row] == NOT_A_TIME => batch.push(place, Cell::Missing),
        Cells::Times(values, in_second) => batch.push_moment(place, values[row], *in_second, 0),
        Cells::Objects(values) => match &values[row] {
            Object::Missing => batch.push(place, Cell::Missing),
            Object::Number(value) => batch.push(place, number(*value)),
            Object::Whole(value) => batch.push_whole(place, *value),
            Object::Boolean(value) => batch.push(place, Cell::Boolean(*value)),
            Object::Text(text) => batch.push_text(place, text.as_bytes()),
            Object::Date(day) => batch.push(place, Cell::Date(*day)),
            Object::Time(time) => batch.push_moment(place, *time, MICROSECONDS, 0),
        },
    }
}
