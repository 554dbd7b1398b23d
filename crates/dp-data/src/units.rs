//! The rows of units, such as the visits of patients: a bounded number of each, filled up with null records.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use core::hash::Hasher;
use rand::seq::index;
use rustc_hash::FxHasher;

use crate::error::DataError;
use crate::memory::{OutOfMemory, collect, with_capacity};
use crate::read::{CuratorWarning, NAMES_OF_UNITS, UnitNames};

/// The number of rows of a unit that are used.
///
/// # Privacy
/// After [`Held::read_units`](crate::spool::Held::read_units) every unit has exactly [`most`](Self::most) records, one after the other,
/// some of them null; the units come in the order of their first rows. So two tables that differ in one unit differ in `most` records
/// at the same places, and the number of records is `most` times that of the units. Which rows of a unit are kept depends on the
/// key, the unit's name and the number of its rows: neither on what rows hold nor on other units. A row that names no unit has no
/// influence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitBound {
    /// The column that names the unit.
    pub column: String,
    /// Largest number of rows of a unit, at least 1.
    pub most: u64,
    /// The key that draws which rows of a unit are kept.
    pub key: [u8; 32],
}

/// Returns the rows that are kept, in blocks of one unit each.
pub(crate) fn select(names: &UnitNames, bound: &UnitBound) -> Result<Selected, DataError> {
    let too_many = || OutOfMemory { what: "the records of all units", held: 0, needed: 0 };
    let rows = u32::try_from(names.len()).map_err(|_| too_many())?;
    let most = usize::try_from(bound.most.max(1)).unwrap_or(usize::MAX);
    let mut order = collect(0..rows, NAMES_OF_UNITS).map_err(OutOfMemory::without_sizes)?;
    let name = |row: u32| names.name(row as usize);
    order.sort_unstable_by(|&one, &other| name(one).cmp(name(other)).then(one.cmp(&other)));
    // The rows of each unit stand together; which units come first depends on the row in which they do.
    let mut units: Vec<&mut [u32]> = order.chunk_by_mut(|one, other| name(*one) == name(*other)).collect();
    let unnamed = units.first().filter(|rows| name(rows[0]).is_empty()).map_or(0, |rows| rows.len());
    units.retain(|rows| !name(rows[0]).is_empty());
    units.sort_unstable_by_key(|rows| rows[0]);
    let records =
        units.len().checked_mul(most).filter(|&records| u32::try_from(records).is_ok()).ok_or_else(too_many)?;
    let mut slots = with_capacity(records, NAMES_OF_UNITS).map_err(OutOfMemory::without_sizes)?;
    let mut dropped = 0;
    for rows in units {
        if rows.len() > most {
            let mut kept = index::sample(&mut generator(bound.key, name(rows[0])), rows.len(), most).into_vec();
            kept.sort_unstable();
            slots.extend(kept.into_iter().map(|place| Some(rows[place])));
            dropped += (rows.len() - most) as u64;
        } else {
            slots.extend(rows.iter().map(|&row| Some(row)));
            slots.extend(core::iter::repeat_n(None, most - rows.len()));
        }
    }
    let unnamed = unnamed as u64;
    let warning = CuratorWarning::RowsOfUnits { column: bound.column.clone(), dropped, unnamed };
    Ok(Selected { slots, warning: (dropped + unnamed > 0).then_some(warning) })
}

/// The generator for one unit. Two units may have the same: no unit's rows depend on those of another.
fn generator(key: [u8; 32], name: &[u8]) -> ChaCha20Rng {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    let mut generator = ChaCha20Rng::from_seed(key);
    generator.set_stream(hasher.finish());
    generator
}

/// The records of all units.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selected {
    /// The row of each record; `None` for a null record.
    pub(crate) slots: Vec<Option<u32>>,
    pub(crate) warning: Option<CuratorWarning>,
}

#[cfg(test)]
mod tests;
