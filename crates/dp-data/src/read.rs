//! Reading CSV and libsvm, plain or compressed, in one pass and with about the memory of what is kept.

mod background;
mod csv;
mod input;
mod libsvm;
mod load;
mod records;
#[cfg(test)]
mod tests;
mod warning;

pub use csv::{CsvOptions, CsvReader, Record};
pub use input::Input;
pub(crate) use input::read_error;
pub use load::{Loaded, load, load_csv, load_libsvm};
pub use records::{EncodedRecord, RecordReader};
pub use warning::CuratorWarning;
