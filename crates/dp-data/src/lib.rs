//! Where rows come from.
#![forbid(unsafe_code)]

pub mod block;
pub mod examples;
pub mod source;

pub use block::{Block, Rows};
pub use examples::{DenseBuilder, Examples, SparseBuilder};
pub use source::{Description, Order, PassReceipt, PassRequest, PassSource, RowStream, SourceError};
