//! A source of records together with other encodings of the same records.

use super::{Description, PassRequest, RowSource, RowStream, SourceError, Unexpanded};
use crate::block::Block;
use crate::selection::Selection;
use crate::sums::SumSource;

/// A source whose [alternatives](RowSource::alternative) are other sources, which hold the same records in other encodings.
///
/// # Privacy
/// The caller vouches that position `i` is the same record in every source. Each source keeps its own bounds. Numbers of records
/// that differ are noticed by whoever trains.
///
/// # Examples
/// ```
/// use dp_data::{Alternatives, RowSource};
/// # use dp_data::{Block, Description, PassReceipt, PassRequest, RowStream, Rows, SourceError};
/// # struct Ones(usize);
/// # impl RowSource<f64> for Ones {
/// #     fn describe(&mut self) -> Result<Description, SourceError> {
/// #         Ok(Description { n: 10, dim: self.0, row_norm: 1.0, target_bound: 1.0, engine: "ones" })
/// #     }
/// #     fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
/// #         Err(SourceError::Engine { engine: "ones", message: String::new() })
/// #     }
/// # }
/// # let (mut lines, mut curves) = (Ones(2), Ones(8));
/// // Ten records with two features, and the same ones with eight.
/// let mut source = Alternatives::new(&mut lines, vec![&mut curves]);
/// assert_eq!(source.describe()?.dim, 2);
/// assert_eq!(source.alternative(0).ok_or("none")?.describe()?.dim, 8);
/// assert!(source.alternative(1).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Alternatives<'s, F> {
    source: &'s mut dyn RowSource<F>,
    others: Vec<&'s mut dyn RowSource<F>>,
}

impl<'s, F> Alternatives<'s, F> {
    /// Creates the source from that of the first encoding and those of the others.
    pub fn new(source: &'s mut dyn RowSource<F>, others: Vec<&'s mut dyn RowSource<F>>) -> Self {
        Self { source, others }
    }
}

impl<F> RowSource<F> for Alternatives<'_, F> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.source.describe()
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        self.source.open_pass(request)
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        self.source.gather(positions)
    }

    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, F>>, SourceError> {
        self.source.select(positions)
    }

    fn alternative(&mut self, number: usize) -> Option<&mut dyn RowSource<F>> {
        // The coercion inside the closure shortens the lifetime of the trait object.
        self.others.get_mut(number).map(|other| &mut **other as &mut dyn RowSource<F>)
    }

    fn unexpanded(&mut self) -> Option<&dyn Unexpanded<F>> {
        self.source.unexpanded()
    }

    fn sums(&mut self) -> Option<&mut dyn SumSource> {
        self.source.sums()
    }

    fn finish(&mut self) -> Result<(), SourceError> {
        self.source.finish()?;
        self.others.iter_mut().try_for_each(|other| other.finish())
    }
}
