//! Reading of CSV, libsvm, IDX and CIFAR-10 files, plain or compressed, in one pass and with little more memory than the result.

/// The mark that some programs write before UTF-8 text; it is not part of the text.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

mod background;
mod csv;
mod encoding;
mod foreign;
mod idx;
mod images;
mod input;
mod libsvm;
mod lines;
mod load;
mod owners;
mod records;
#[cfg(test)]
mod tests;
mod text;
mod unit_names;
mod warning;
mod watched;

pub use csv::{CsvOptions, CsvReader, Record};
pub(crate) use csv::{line_end, missing_column};
pub use encoding::TextEncoding;
pub use idx::{IdxHeader, looks_like_idx};
pub use images::{ImageKind, ImageLabels, ImageOptions, load_image_bytes};
pub(crate) use input::read_error;
pub use input::{Input, matching};
pub use lines::{Line, Lines};
pub use load::{Loaded, load, load_coordinates, load_csv, load_images, load_libsvm};
#[cfg(feature = "spool")]
pub(crate) use load::{ReadRows, provisional, read};
pub(crate) use load::{no_rows, unused_columns};
pub(crate) use owners::{Owners, is_identifier};
pub use records::{EncodedRecord, RecordReader};
pub(crate) use text::{Chunk, ReadsChunks};
#[cfg(feature = "spool")]
pub(crate) use unit_names::{NAMES_OF_UNITS, UnitNames};
pub(crate) use warning::ClassCounts;
pub use warning::CuratorWarning;
#[cfg(feature = "parquet")]
pub(crate) use watched::changed;
pub use watched::{SteadyFile, WatchedFile};
