//! Where rows come from.
#![forbid(unsafe_code)]

pub mod block;
#[cfg(feature = "files")]
pub mod draft;
#[cfg(feature = "schema")]
pub mod encode;
#[cfg(feature = "schema")]
pub mod error;
pub mod examples;
#[cfg(feature = "files")]
pub mod read;
#[cfg(feature = "schema")]
pub mod schema;
pub mod source;

pub use block::{Block, Rows};
#[cfg(feature = "schema")]
pub use encode::{Encoder, Encoding};
#[cfg(feature = "schema")]
pub use error::DataError;
pub use examples::{DenseBuilder, Examples, SparseBuilder};
#[cfg(feature = "schema")]
pub use schema::Schema;
pub use source::{Description, Order, PassReceipt, PassRequest, PassSource, RowStream, SourceError};
