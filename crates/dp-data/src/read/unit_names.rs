//! The units of the rows that are read, such as patients.

use crate::memory::{OutOfMemory, reserve};

/// The words for names of units in error messages.
pub(crate) const NAMES_OF_UNITS: &str = "the units of the rows";

/// The unit of each row.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnitNames {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl UnitNames {
    /// Adds the unit of the next row; blanks around it do not count.
    pub(crate) fn push(&mut self, name: &str) -> Result<(), OutOfMemory> {
        let name = name.trim().as_bytes();
        reserve(&mut self.text, name.len(), NAMES_OF_UNITS).map_err(OutOfMemory::without_sizes)?;
        reserve(&mut self.ends, 1, NAMES_OF_UNITS).map_err(OutOfMemory::without_sizes)?;
        self.text.extend_from_slice(name);
        self.ends.push(self.text.len());
        Ok(())
    }

    /// Adds the units of the rows that follow.
    pub(crate) fn append(&mut self, next: &Self) -> Result<(), OutOfMemory> {
        let before = self.text.len();
        reserve(&mut self.text, next.text.len(), NAMES_OF_UNITS).map_err(OutOfMemory::without_sizes)?;
        reserve(&mut self.ends, next.ends.len(), NAMES_OF_UNITS).map_err(OutOfMemory::without_sizes)?;
        self.text.extend_from_slice(&next.text);
        self.ends.extend(next.ends.iter().map(|end| before + end));
        Ok(())
    }

    /// Returns the number of rows.
    #[cfg(feature = "spool")]
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the unit of a row; empty if it names none.
    #[cfg(feature = "spool")]
    pub(crate) fn name(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[row]]
    }
}
