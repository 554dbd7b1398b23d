//! A source of examples in memory.

mod reader;

use dp_data::examples::{Feature, OrderError};
use dp_data::memory::{OutOfMemory, collect, filled};
use dp_data::{
    Block, BlockBuffer, Description, Examples, KeyedOrder, Order, PassReceipt, PassRequest, Reader, RowSource,
    RowStream, Selection, SourceError, Unexpanded, Workers,
};

use crate::engine::EXPANDED;

const ENGINE: &str = "memory";
/// The name of the buffer in error messages.
const ORDER: &str = "the order of the rows";

/// Examples held in memory, permuted in place into the order of a pass: each pass is one borrowed block.
///
/// A keyed order is a [`KeyedOrder`]. It depends on the key and on the original positions of the examples, never on their values,
/// and the same key gives the same order regardless of earlier requests.
///
/// # Privacy
/// Every sensitivity requires a bound on the rows' norms. [`MemorySource::new`] enforces it for any examples, and the source's
/// description states it: training refuses a source whose bounds are wider than the plan's.
///
/// # Examples
/// ```
/// use dp_data::{Examples, RowSource};
/// use dp_optim::MemorySource;
/// let examples = Examples::dense(vec![3.0, 4.0, 0.1, 0.0], vec![1.0, -1.0], 2)?;
/// let mut source = MemorySource::new(examples, 1.0, 1.0);
/// assert_eq!(source.describe()?.n, 2);
/// let dp_data::Rows::Dense { values, .. } = source.examples().block().rows else { unreachable!() };
/// assert!((values[0] - 0.6f64).abs() < 1e-12 && values[2] == 0.1); // clipped; unchanged
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemorySource<F> {
    examples: Examples<F>,
    row_norm: f64,
    target_bound: f64,
    /// `order[i]` is the original position of the example now at `i`. Empty: nothing has moved.
    order: Vec<u32>,
    /// The last requested order, and the pass if each has its own, so that passes with the same order do not draw it again.
    arranged: (Order, u32),
    /// The last gathered examples.
    gathered: BlockBuffer<F>,
}

impl<F: Feature> MemorySource<F> {
    /// Takes the examples and clips every row to L2 norm `row_norm` and every target to `[-target_bound, target_bound]`.
    ///
    /// A row or target that is not finite becomes a null record: it keeps its place and contributes nothing. Values within the
    /// bounds are unchanged. (An error instead would reveal something about a record.)
    pub fn new(mut examples: Examples<F>, row_norm: f64, target_bound: f64) -> Self {
        examples.enforce_bounds(row_norm, target_bound);
        let (order, arranged) = (Vec::new(), (Order::Declared, 0));
        Self { examples, row_norm, target_bound, order, arranged, gathered: BlockBuffer::default() }
    }

    /// Returns the examples in the order of the last pass.
    pub fn examples(&self) -> &Examples<F> {
        &self.examples
    }

    /// Returns the owned examples, in the order of the last pass.
    pub fn into_examples(self) -> Examples<F> {
        self.examples
    }

    /// Permutes the examples such that position `i` holds the example with original position `target[i]`.
    fn bring_into(&mut self, target: Vec<u32>) -> Result<(), OrderError> {
        if target == self.order {
            return Ok(());
        }
        if self.order.is_empty() {
            self.examples.permute(&target)?;
        } else {
            let mut now_at = filled(0u32, self.order.len(), ORDER)?;
            for (now, &given) in self.order.iter().enumerate() {
                now_at[given as usize] = now as u32;
            }
            let moves = collect(target.iter().map(|&given| now_at[given as usize]), ORDER)?;
            self.examples.permute(&moves)?;
        }
        self.order = target;
        Ok(())
    }

    /// Brings the examples into their declared order.
    fn declare_order(&mut self) -> Result<(), SourceError> {
        if self.arranged.0 != Order::Declared {
            let n = u32::try_from(self.examples.len()).unwrap_or(u32::MAX);
            self.bring_into(declared_order(n)?).map_err(misfit)?;
            self.arranged = (Order::Declared, 0);
        }
        Ok(())
    }
}

fn declared_order(n: u32) -> Result<Vec<u32>, OutOfMemory> {
    let mut order = filled(0, n as usize, ORDER)?;
    order.iter_mut().zip(0..).for_each(|(place, position)| *place = position);
    Ok(order)
}

/// Converts the error of a failed permutation.
fn misfit(error: OrderError) -> SourceError {
    match error {
        OrderError::Memory(error) => error.into(),
        _ => SourceError::Order { engine: ENGINE, why: "the order does not fit the examples" },
    }
}

/// Converts the error of a selection.
fn outside(_: OrderError) -> SourceError {
    SourceError::Shape { engine: ENGINE, what: "positions lie beyond its last row" }
}

/// Returns the number of examples.
fn number<F: Copy>(examples: &Examples<F>) -> Result<u32, SourceError> {
    u32::try_from(examples.len()).map_err(|_| SourceError::Order { engine: ENGINE, why: "more than 2^32 - 1 examples" })
}

/// Returns a name of the order of a pass: equal for equal orders.
fn arranged(request: &PassRequest) -> (Order, u32) {
    (request.order, if request.order.is_fresh() { request.pass } else { 0 })
}

impl<F: Feature> RowSource<F> for MemorySource<F> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description {
            n: self.examples.len() as u64,
            dim: self.examples.dim(),
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            engine: ENGINE,
        })
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        let (n, arranged) = (number(&self.examples)?, arranged(request));
        if self.arranged != arranged {
            let target = match KeyedOrder::of_pass(n, request) {
                Some(order) => order.positions()?,
                None => declared_order(n)?,
            };
            self.bring_into(target).map_err(misfit)?;
            self.arranged = arranged;
        }
        Ok(Box::new(MemoryPass { block: Some(self.examples.block()), rows: 0 }))
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        self.declare_order()?;
        reader::gather(&self.examples, positions, &mut self.gathered)
    }

    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, F>>, SourceError> {
        self.declare_order()?;
        self.examples.select(positions).map(Some).map_err(outside)
    }

    fn readers(&mut self, readers: usize) -> Result<Option<Vec<Reader<'_, F>>>, SourceError> {
        self.declare_order()?;
        let description = self.describe()?;
        Ok(Some(reader::of(&self.examples, &description, readers)))
    }
}

struct MemoryPass<'a, F> {
    block: Option<Block<'a, F>>,
    rows: u64,
}

impl<F> RowStream<F> for MemoryPass<'_, F> {
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError> {
        let block = self.block.take();
        self.rows += block.as_ref().map_or(0, |block| block.len() as u64);
        Ok(block)
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.rows })
    }
}

/// Records whose features are [computed when they are read](Unexpanded). The first pass or single record that is requested
/// computes the features of all records, which are kept from then on.
///
/// # Privacy
/// Every sensitivity rests on the bounds of rows and targets. While features are not stored, nobody enforces these bounds: the
/// records must keep them.
///
/// # Examples
/// ```
/// use core::ops::Range;
/// use dp_data::{Order, PassRequest, RowSource, Unexpanded, Workers};
/// use dp_optim::ExpandingSource;
///
/// /// Records of one number `x`, which is their target too, and two features `x` and `x²`.
/// struct Squares(Vec<f64>);
/// impl Unexpanded<f64> for Squares {
///     fn dim(&self) -> usize {
///         2
///     }
///     fn targets(&self) -> &[f64] {
///         &self.0
///     }
///     fn valid(&self) -> Option<&[bool]> {
///         None
///     }
///     fn expand(&self, range: Range<usize>, features: &mut Vec<f64>) {
///         *features = self.0[range].iter().flat_map(|x| [*x, x * x]).collect();
///     }
/// }
/// let mut source = ExpandingSource::new(Squares(vec![0.5, 0.25]), 1.0, 1.0, Workers::ONE);
/// assert!(source.unexpanded().is_some());
/// source.open_pass(&PassRequest { pass: 0, order: Order::Keyed { key: [1; 32], fresh_each_pass: false } })?;
/// assert!(source.unexpanded().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ExpandingSource<F, U> {
    rows: Kept<F, U>,
    row_norm: f64,
    target_bound: f64,
    workers: Workers,
}

enum Kept<F, U> {
    Unexpanded(U),
    Expanded(Box<MemorySource<F>>),
}

impl<F: Feature, U: Unexpanded<F>> ExpandingSource<F, U> {
    /// Takes records whose rows have norms of at most `row_norm`, and whose targets are within `[-target_bound, target_bound]`.
    /// The features of all are computed by `workers`.
    pub fn new(rows: U, row_norm: f64, target_bound: f64, workers: Workers) -> Self {
        Self { rows: Kept::Unexpanded(rows), row_norm, target_bound, workers }
    }

    /// Returns the source of all features.
    fn expanded(&mut self) -> Result<&mut MemorySource<F>, SourceError> {
        if let Kept::Unexpanded(rows) = &self.rows {
            let examples = expand_all(rows, self.workers)?;
            let source = MemorySource::new(examples, self.row_norm, self.target_bound);
            self.rows = Kept::Expanded(Box::new(source));
        }
        match &mut self.rows {
            Kept::Expanded(source) => Ok(source),
            Kept::Unexpanded(_) => Err(shape("rows are not stored")),
        }
    }
}

/// The contents, in error messages.
const FEATURES: &str = "the features of the rows";

fn shape(what: &'static str) -> SourceError {
    SourceError::Shape { engine: ENGINE, what }
}

fn expand_all<F: Feature>(rows: &impl Unexpanded<F>, workers: Workers) -> Result<Examples<F>, SourceError> {
    let (n, dim) = (rows.len(), rows.dim());
    if dim == 0 {
        return Err(shape("rows have no features"));
    }
    let mut values = filled(F::narrow(0.0), n.saturating_mul(dim), FEATURES)?;
    let parts = (0..n).step_by(EXPANDED).zip(values.chunks_mut(EXPANDED * dim));
    let of_part = |features: &mut Vec<F>, (start, places): (usize, &mut [F])| {
        rows.expand(start..start + places.len() / dim, features);
        places.copy_from_slice(features);
    };
    let done = |()| Ok::<_, OutOfMemory>(());
    workers.for_each(parts, 64 * workers.threads(), Vec::new, of_part, done)?;
    let targets = collect(rows.targets().iter().copied(), FEATURES)?;
    let valid = rows.valid().map(|valid| collect(valid.iter().copied(), FEATURES)).transpose()?;
    let examples = Examples::dense(values, targets, dim).and_then(|examples| match valid {
        Some(valid) => examples.with_valid(valid),
        None => Ok(examples),
    });
    examples.map_err(|_| shape("rows, targets and marks differ in number"))
}

impl<F: Feature, U: Unexpanded<F>> RowSource<F> for ExpandingSource<F, U> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        match &mut self.rows {
            Kept::Expanded(source) => source.describe(),
            Kept::Unexpanded(rows) => Ok(Description {
                n: rows.len() as u64,
                dim: rows.dim(),
                row_norm: self.row_norm,
                target_bound: self.target_bound,
                engine: ENGINE,
            }),
        }
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        self.expanded()?.open_pass(request)
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        self.expanded()?.gather(positions)
    }

    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, F>>, SourceError> {
        self.expanded()?.select(positions)
    }

    fn readers(&mut self, readers: usize) -> Result<Option<Vec<Reader<'_, F>>>, SourceError> {
        self.expanded()?.readers(readers)
    }

    fn unexpanded(&mut self) -> Option<&dyn Unexpanded<F>> {
        match &self.rows {
            Kept::Unexpanded(rows) => Some(rows),
            Kept::Expanded(_) => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use core::ops::Range;

    use dp_data::Rows;

    use super::*;

    /// Dense examples whose features are copied when they are read.
    pub(crate) struct Copied(pub(crate) Examples<f64>);

    impl Unexpanded<f64> for Copied {
        fn dim(&self) -> usize {
            self.0.dim()
        }

        fn targets(&self) -> &[f64] {
            self.0.targets()
        }

        fn valid(&self) -> Option<&[bool]> {
            self.0.block().valid
        }

        fn expand(&self, range: Range<usize>, features: &mut Vec<f64>) {
            let Rows::Dense { values, dim } = self.0.block().slice(range).rows else { unreachable!("dense examples") };
            assert_eq!(values.len() % dim, 0);
            *features = values.to_vec();
        }
    }

    /// A source whose records are expanded where they are read: any other reading fails.
    pub(crate) struct OnlyUnexpanded(pub(crate) Copied);

    impl RowSource<f64> for OnlyUnexpanded {
        fn describe(&mut self) -> Result<Description, SourceError> {
            let (n, dim) = (self.0.len() as u64, self.0.dim());
            Ok(Description { n, dim, row_norm: 1.0, target_bound: 1.0, engine: ENGINE })
        }

        fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
            panic!("a pass over all features")
        }

        fn unexpanded(&mut self) -> Option<&dyn Unexpanded<f64>> {
            Some(&self.0)
        }
    }

    /// Passes in any order, gathered and selected records are those of the features in memory, by any number of threads.
    #[test]
    fn features_are_expanded_when_they_are_needed() {
        let n = 1001;
        let values: Vec<f64> = (0..2 * n).map(|i| f64::from(i) / 3000.0).collect();
        let valid: Vec<bool> = (0..n).map(|i| i % 5 != 2).collect();
        let targets = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let examples = Examples::dense(values, targets, 2).unwrap();
        let keyed = Order::Keyed { key: [3; 32], fresh_each_pass: true };
        let flat = |block: Block<'_, f64>| {
            let Rows::Dense { values, .. } = block.rows else { unreachable!() };
            (values.to_vec(), block.targets.to_vec(), block.valid.map(<[bool]>::to_vec))
        };
        for examples in [examples.clone().with_valid(valid).unwrap(), examples] {
            for threads in [1, 3] {
                let workers = Workers::new(threads.try_into().unwrap());
                let source = || ExpandingSource::new(Copied(examples.clone()), 1.0, 1.0, workers);
                let mut memory = MemorySource::new(examples.clone(), 1.0, 1.0);
                for request in
                    [(0, Order::Declared), (0, keyed), (1, keyed)].map(|(pass, order)| PassRequest { pass, order })
                {
                    let mut kept = source();
                    assert_eq!(kept.describe().unwrap(), memory.describe().unwrap());
                    assert!(kept.unexpanded().is_some());
                    let found = flat(kept.open_pass(&request).unwrap().next_block().unwrap().unwrap());
                    assert_eq!(found, flat(memory.open_pass(&request).unwrap().next_block().unwrap().unwrap()));
                    assert!(kept.unexpanded().is_none());
                    assert_eq!(kept.describe().unwrap(), memory.describe().unwrap());
                }
                let positions = [3, 1000, 3, 0];
                assert_eq!(flat(source().gather(&positions).unwrap()), flat(memory.gather(&positions).unwrap()));
                let mut kept = source();
                assert_eq!(kept.select(&positions).unwrap().unwrap().len(), 4);
                assert!(kept.gather(&[1001]).is_err());
            }
        }
    }

    fn source(n: usize) -> MemorySource<f64> {
        let values = (0..n).map(|i| i as f64 / n as f64).collect();
        MemorySource::new(Examples::dense(values, vec![1.0; n], 1).unwrap(), 1.0, 1.0)
    }

    fn read(source: &mut MemorySource<f64>, pass: u32, order: Order) -> Vec<f64> {
        let mut stream = source.open_pass(&PassRequest { pass, order }).unwrap();
        let Rows::Dense { values, .. } = stream.next_block().unwrap().unwrap().rows else { unreachable!() };
        values.to_vec()
    }

    #[test]
    fn an_order_depends_on_the_key_alone() {
        let mut source_a = source(101);
        let keyed = |key, fresh_each_pass| Order::Keyed { key: [key; 32], fresh_each_pass };
        let first = read(&mut source_a, 0, keyed(1, false));
        assert_eq!(first, read(&mut source_a, 7, keyed(1, false)));
        let other = read(&mut source_a, 0, keyed(2, false));
        assert_ne!(first, other);
        let fresh: Vec<_> = (0..3).map(|pass| read(&mut source_a, pass, keyed(1, true))).collect();
        assert!(fresh[0] != fresh[1] && fresh[1] != fresh[2] && fresh[0] != first);
        let mut source_b = source(101);
        assert_eq!(fresh[2], read(&mut source_b, 2, keyed(1, true)), "whatever was asked for before");
        assert_eq!(first, read(&mut source_b, 0, keyed(1, false)));
        let given: Vec<f64> = (0..101).map(|i| f64::from(i) / 101.0).collect();
        assert_eq!(given, read(&mut source_a, 0, Order::Declared));
    }

    #[test]
    fn records_are_gathered_by_declared_position() {
        let mut source = source(11);
        let positions = [3, 0, 3, 10];
        for order in [Order::Declared, Order::Keyed { key: [9; 32], fresh_each_pass: false }, Order::Declared] {
            read(&mut source, 0, order);
            for positions in [&positions[..], &positions[..1], &[]] {
                let block = source.gather(positions).unwrap();
                let Rows::Dense { values, .. } = block.rows else { unreachable!() };
                let expected: Vec<f64> = positions.iter().map(|&i| f64::from(i) / 11.0).collect();
                assert_eq!((values, block.len()), (&expected[..], positions.len()));
            }
        }
        assert!(source.gather(&[11]).is_err() && source.gather(&[0, 11]).is_err());
    }

    #[test]
    fn sparse_records_are_gathered_as_single_ones_are() {
        // Rows of 0 to 6 stored values, and more positions than are fetched ahead.
        let ends: Vec<usize> = (0..50).map(|i| i % 7).collect();
        let offsets: Vec<usize> = std::iter::once(0)
            .chain(ends.iter().scan(0, |end, count| {
                *end += count;
                Some(*end)
            }))
            .collect();
        let stored = offsets[50];
        let indices = ends.iter().flat_map(|&count| 0..count as u32).collect();
        let values = (0..stored).map(|k| k as f64 / stored as f64).collect();
        let targets = (0..50).map(|i| f64::from(i) / 50.0).collect();
        let mut source = MemorySource::new(Examples::sparse(offsets, indices, values, targets, 6).unwrap(), 1.0, 1.0);
        let positions: Vec<u32> = (0..300).map(|k| k * 17 % 50).collect();
        let flat = |block: &Block<'_, f64>| {
            let Rows::Sparse { offsets, indices, values, .. } = block.rows else { panic!("sparse") };
            let row = |i: usize| (offsets[i]..offsets[i + 1]).map(|k| (indices[k], values[k])).collect::<Vec<_>>();
            (0..block.len()).map(|i| (row(i), block.targets[i])).collect::<Vec<_>>()
        };
        let together = flat(&source.gather(&positions).unwrap());
        let apart: Vec<_> = positions.iter().flat_map(|&position| flat(&source.gather(&[position]).unwrap())).collect();
        assert_eq!(together, apart);
    }
}
