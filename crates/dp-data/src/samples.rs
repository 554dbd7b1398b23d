//! Records of any kind in memory, chosen by their positions.

/// Records in memory of which any can be chosen: images, lists, rows of any layout.
///
/// Rows of a table are read through [`RowSource`](crate::RowSource), which also streams them from files. This trait is for all
/// other records: an engine draws positions, and a model reads the chosen records microbatch by microbatch.
pub trait Samples: Sync {
    /// Returns the number of records, null ones included. It is public.
    fn count(&self) -> u64;

    /// Returns whether record `position` is null: under zero-out, the record of somebody who does not take part. An engine omits
    /// null records from what it has drawn. By default none is.
    fn is_null(&self, position: u32) -> bool {
        let _ = position;
        false
    }
}
