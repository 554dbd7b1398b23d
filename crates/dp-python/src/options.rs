//! Named options of a call.

use std::num::NonZeroUsize;

use dp::words::Words;
use dp_data::Workers;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::Failure;

/// Reads the members of a dictionary by name.
pub(crate) struct Options<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

impl<'py> Options<'_, 'py> {
    /// Returns the member, if it is given and not None.
    pub(crate) fn get<T: for<'a> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<Option<T>> {
        match self.0.get_item(name)? {
            Some(value) if !value.is_none() => match value.extract() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(unusable(name, &value)?.into()),
            },
            _ => Ok(None),
        }
    }

    /// Returns whether the member is there and not None.
    pub(crate) fn has(&self, name: &str) -> PyResult<bool> {
        Ok(self.0.get_item(name)?.is_some_and(|value| !value.is_none()))
    }

    /// Returns the member as one of these words, in which hyphens may be underscores.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> PyResult<Option<T>> {
        let Some(word) = self.get::<String>(name)? else { return Ok(None) };
        let hyphened = word.replace('_', "-");
        let found = words.iter().find(|(known, _)| *known == hyphened).map(|(_, value)| *value);
        let known: Vec<_> = words.iter().map(|(known, _)| format!("'{known}'")).collect();
        let refused = || Failure::argument(name, format!("{name} is {word:?}")).expecting(known.join(", "));
        Ok(Some(found.ok_or_else(refused)?))
    }

    /// Returns the member as one of the library's words.
    pub(crate) fn one_of<T: Copy>(&self, name: &str, words: Words<T>) -> PyResult<Option<T>> {
        self.word(name, &words.iter().map(|&(value, word, _)| (word, value)).collect::<Vec<_>>())
    }

    /// Returns the threads: `threads`, or all.
    pub(crate) fn workers(&self) -> PyResult<Workers> {
        match self.get::<usize>("threads")? {
            None => Ok(Workers::available()),
            Some(threads) => {
                let refused = || Failure::argument("threads", "threads = 0").expecting("a number of threads, or None");
                Ok(Workers::new(NonZeroUsize::new(threads).ok_or_else(refused)?))
            }
        }
    }
}

/// Returns the error for a value of another type.
pub(crate) fn unusable(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Failure> {
    Ok(Failure::argument(name, format!("{name} = {} cannot be used", value.repr()?)))
}
