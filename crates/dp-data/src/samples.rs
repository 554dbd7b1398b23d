//! Records of any kind in memory, chosen by their positions.

/// Records in memory of which any can be chosen: images, lists, rows of any layout.
///
/// Rows of a table are read through [`RowSource`](crate::RowSource), which also streams them from files. This trait is for all
/// other records: an engine draws positions, and a model reads the chosen records microbatch by microbatch.
///
/// # Examples
/// ```
/// use dp_data::{Images, Samples, images::Shape};
///
/// let shape = Shape { height: 1, width: 2, channels: 1 };
/// let images = Images::new(shape, vec![0, 10, 20, 30, 40, 50], vec![1, 0, 1], 2)?;
/// let batch = images.choose(&[0, 2]);
/// assert_eq!((batch.len(), batch.pixels(1), batch.label(1)), (2, &[40, 50][..], 1));
/// # Ok::<(), dp_data::images::ImagesError>(())
/// ```
pub trait Samples: Sync {
    /// Chosen records, as a model reads them.
    type Batch<'a>: Copy
    where
        Self: 'a;

    /// Returns the number of records, null ones included. It is public.
    fn count(&self) -> u64;

    /// Returns whether record `position` is null: under zero-out, the record of somebody who does not take part. An engine omits
    /// null records from what it has drawn. By default none is.
    fn is_null(&self, position: u32) -> bool {
        let _ = position;
        false
    }

    /// Returns the records at `positions`, in this order.
    ///
    /// # Panics
    /// It may panic, then or when the batch is read, for positions that are not below [`count`](Self::count). An engine passes
    /// none.
    fn choose<'a>(&'a self, positions: &'a [u32]) -> Self::Batch<'a>;
}
