//! A source of several classes, presented as one class against all others.

use dp_data::{Block, Description, PassReceipt, PassRequest, RowSource, RowStream, SourceError};
use dp_losses::{Real, Softmax};

/// The rows of a source with targets +1 for one class and -1 for all others.
///
/// Rows are borrowed, never copied. A null record stays null, and a record whose target is no class index becomes null: it
/// keeps its place and contributes nothing.
///
/// The source's own [`finish`](RowSource::finish) is not called, since other classes are still to be read.
///
/// # Examples
/// ```
/// use dp_data::{Examples, RowSource};
/// use dp_losses::Softmax;
/// use dp_optim::MemorySource;
/// use dp_optim::recipes::one_vs_all::OneAgainstRest;
///
/// let examples = Examples::dense(vec![0.1, 0.2, 0.3], vec![0.0, 2.0, 1.5], 1)?;
/// let mut source = MemorySource::new(examples, 1.0, 2.0);
/// let mut second = OneAgainstRest::new(&mut source, Softmax::new(3)?, 2);
/// let block = second.gather(&[0, 1, 2])?;
/// assert_eq!(&block.targets[..2], &[-1.0, 1.0]);
/// assert_eq!(block.valid, Some(&[true, true, false][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OneAgainstRest<'s, F, S: ?Sized> {
    source: &'s mut S,
    relabel: Relabel<F>,
}

/// A buffer of targets that replace a block's own.
struct Relabel<F> {
    classes: Softmax,
    class: usize,
    targets: Vec<F>,
    valid: Vec<bool>,
}

impl<'s, F, S: ?Sized> OneAgainstRest<'s, F, S> {
    /// Presents `class` of `classes` against all others.
    pub fn new(source: &'s mut S, classes: Softmax, class: usize) -> Self {
        Self { source, relabel: Relabel { classes, class, targets: Vec::new(), valid: Vec::new() } }
    }
}

impl<F: Real> Relabel<F> {
    fn block<'a>(&'a mut self, block: Block<'a, F>) -> Block<'a, F> {
        let Self { classes, class, targets, valid } = self;
        targets.clear();
        valid.clear();
        for (i, &target) in block.targets.iter().enumerate() {
            let counts = block.valid.is_none_or(|valid| valid.get(i).is_some_and(|&valid| valid));
            let index = if counts { classes.class_index(target) } else { None };
            valid.push(index.is_some());
            targets.push(match index {
                Some(index) if index == *class => F::one(),
                Some(_) => -F::one(),
                None => F::zero(),
            });
        }
        let all = valid.iter().fold(true, |all, &valid| all & valid);
        Block { rows: block.rows, targets, valid: if all { None } else { Some(valid) } }
    }
}

impl<F: Real, S: RowSource<F> + ?Sized> RowSource<F> for OneAgainstRest<'_, F, S> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description { target_bound: 1.0, ..self.source.describe()? })
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        let stream = self.source.open_pass(request)?;
        Ok(Box::new(Relabelled { stream, relabel: &mut self.relabel }))
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        Ok(self.relabel.block(self.source.gather(positions)?))
    }
}

struct Relabelled<'a, F> {
    stream: Box<dyn RowStream<F> + 'a>,
    relabel: &'a mut Relabel<F>,
}

impl<F: Real> RowStream<F> for Relabelled<'_, F> {
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError> {
        let Self { stream, relabel } = self;
        Ok(stream.next_block()?.map(|block| relabel.block(block)))
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        self.stream.receipt()
    }
}
