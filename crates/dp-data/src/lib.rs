//! Sources of rows, for learning from people's records with differential privacy.
//!
//! An optimiser reads rows through two small traits, [`RowSource`] and [`RowStream`], which lend it [`Block`]s of consecutive
//! examples, dense or sparse ([`Rows`]). [`Examples`] holds them in memory. Records of other kinds, such as [`Images`], are
//! [`Samples`]: chosen by their positions. This part depends on `thiserror` alone.
//!
//! With the feature `schema`, [`Schema`] states the *public* properties of a table (ranges, categories, classes) and [`Encoder`]
//! converts its records to vectors whose exact Euclidean norm is at most 1, on which the sensitivities of private training rest.
//! With `files`, [`read`] loads CSV and libsvm files into examples in one pass, or streams their records for prediction, and loads
//! images; [`draft`] drafts a schema for review by a person. [`check`] finds all that is wrong with a table under a schema.
//!
//! Data flows in one direction: file, schema, encoder, examples, training. Errors in the input are [`DataError`]s, with a
//! detailed message for the curator and a public one without rows and values.
//!
//! ```
//! # #[cfg(feature = "files")] {
//! use dp_data::{Encoder, Encoding, Rows, Schema, read};
//!
//! let schema = Schema::parse(
//!     "people.toml",
//!     r#"
//!     label = { column = "income", positive = "high", negative = "low" }
//!     columns.age = { type = "numeric", min = 0, max = 120 }
//!     columns.work = { type = "categorical", categories = ["private", "public", "other"] }
//!     "#,
//! )?;
//! schema.check_reviewed()?;
//! let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
//!
//! let file = read::Input::from_bytes("people.csv", b"age,work,income\n90,public,high\n".to_vec());
//! let loaded = read::load_csv::<f64>(file, &encoder, &read::CsvOptions::default())?;
//! let Rows::Dense { values, .. } = loaded.examples.block().rows else { unreachable!() };
//! // Age 90 of 0..120 is 0.5 of -1..1; then (0.5, 0, 1, 0, 1) is divided by its norm, 1.5.
//! assert!((values[0] - 1.0 / 3.0).abs() < 1e-14 && (values[4] - 2.0 / 3.0).abs() < 1e-14);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! - `schema`: [`Schema`], [`Encoder`], [`DataError`] (serde, toml, fast-float2, chacha20, jiff, rustc-hash).
//! - `files`: [`read`], [`draft`] and [`check`] (csv-core, encoding_rs, memchr, pulp, rustix, flate2, liblzma); implies `schema`.
//! - `parquet`, `xlsx`, `sqlite`: [`table::parquet`], [`table::xlsx`] and [`table::sqlite`], tables of typed cells; each implies
//!   `files`.
//! - `postgres`: [`table::postgres`] and [`sums::postgres`] (tokio-postgres, rustls); `runner`: [`sums::runner`] (serde_json, shlex).
//! - `order`: [`KeyedOrder`], the order of a pass under a key (chacha20, rand).
//! - `spool`: [`spool`], rows in a temporary file (crc32fast, tempfile); implies `files` and `order`.
#![cfg_attr(not(feature = "spool"), allow(rustdoc::broken_intra_doc_links))]
#![deny(unsafe_code)]

pub mod block;
pub mod block_buffer;
#[cfg(feature = "files")]
pub mod check;
#[cfg(feature = "files")]
pub mod draft;
#[cfg(feature = "schema")]
pub mod encode;
#[cfg(feature = "schema")]
pub mod error;
pub mod examples;
pub mod images;
#[cfg(feature = "order")]
pub mod keyed_order;
pub mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "files")]
pub mod read;
pub mod samples;
#[cfg(feature = "schema")]
pub mod schema;
pub mod selection;
pub mod source;
#[cfg(feature = "spool")]
pub mod spool;
#[cfg(feature = "schema")]
pub mod sql;
pub mod sums;
#[cfg(feature = "files")]
pub mod table;
#[cfg(feature = "spool")]
pub mod units;
pub mod workers;

pub use block::{Block, Rows};
pub use block_buffer::BlockBuffer;
#[cfg(feature = "schema")]
pub use encode::{Encoder, Encoding};
#[cfg(feature = "schema")]
pub use error::DataError;
pub use examples::{DenseBuilder, Examples, SparseBuilder};
pub use images::{ImageBatch, Images};
#[cfg(feature = "order")]
pub use keyed_order::KeyedOrder;
pub use memory::OutOfMemory;
pub use samples::Samples;
#[cfg(feature = "schema")]
pub use schema::Schema;
pub use selection::Selection;
pub use source::{
    Alternatives, Description, Order, PassReceipt, PassRequest, Reader, RowSource, RowStream, SourceError, Unexpanded,
};
#[cfg(feature = "spool")]
pub use units::UnitBound;
pub use workers::Workers;

/// The README's example, run as a test.
#[cfg(all(doctest, feature = "files"))]
#[doc = include_str!("../README.md")]
struct Readme;
