//! One of several readers of the same examples in memory.

use dp_data::examples::Feature;
use dp_data::{
    Block, BlockBuffer, Description, Examples, KeyedOrder, Order, PassReceipt, PassRequest, Reader, RowSource,
    RowStream, Selection, SourceError,
};

use super::{MemoryPass, arranged, number, outside};
use crate::engine::gathered_rows;
use crate::engine::rows::copy_rows;

/// A reader of examples that stay where they are: a pass in a keyed order copies some at a time.
struct MemoryReader<'s, F> {
    /// In their declared order.
    examples: &'s Examples<F>,
    description: Description,
    /// The keyed order of the last pass that had one.
    order: Vec<u32>,
    arranged: (Order, u32),
    gathered: BlockBuffer<F>,
}

impl<'s, F: Feature> MemoryReader<'s, F> {
    fn new(examples: &'s Examples<F>, description: Description) -> Self {
        let (order, arranged) = (Vec::new(), (Order::Declared, 0));
        Self { examples, description, order, arranged, gathered: BlockBuffer::default() }
    }
}

impl<F: Feature> RowSource<F> for MemoryReader<'_, F> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(self.description.clone())
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        let (n, arranged) = (number(self.examples)?, arranged(request));
        let Some(order) = KeyedOrder::of_pass(n, request) else {
            return Ok(Box::new(MemoryPass { block: Some(self.examples.block()), rows: 0 }));
        };
        if self.arranged != arranged {
            self.order = order.positions()?;
            self.arranged = arranged;
        }
        let Self { examples, order, gathered, .. } = self;
        Ok(Box::new(KeyedPass { examples, left: order, gathered, rows: 0 }))
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, F>, SourceError> {
        gather(self.examples, positions, &mut self.gathered)
    }

    fn select<'a>(&'a mut self, positions: &'a [u32]) -> Result<Option<Selection<'a, F>>, SourceError> {
        self.examples.select(positions).map(Some).map_err(outside)
    }

    fn readers(&mut self, readers: usize) -> Result<Option<Vec<Reader<'_, F>>>, SourceError> {
        Ok(Some(of(self.examples, &self.description, readers)))
    }
}

/// Returns `number` readers of examples in their declared order.
pub(super) fn of<'s, F: Feature>(
    examples: &'s Examples<F>,
    description: &Description,
    number: usize,
) -> Vec<Reader<'s, F>> {
    let reader = || Box::new(MemoryReader::new(examples, description.clone())) as Reader<'s, F>;
    (0..number).map(|_| reader()).collect()
}

/// Returns the examples at `positions`: a single one where it is, several copied into `buffer`.
pub(super) fn gather<'a, F: Feature>(
    examples: &'a Examples<F>,
    positions: &[u32],
    buffer: &'a mut BlockBuffer<F>,
) -> Result<Block<'a, F>, SourceError> {
    let chosen = examples.select(positions).map_err(outside)?;
    if let &[position] = positions {
        let position = position as usize;
        return Ok(examples.block().slice(position..position + 1));
    }
    copy_rows(&chosen, buffer)?;
    Ok(buffer.block(examples.dim()))
}

struct KeyedPass<'a, F> {
    examples: &'a Examples<F>,
    left: &'a [u32],
    gathered: &'a mut BlockBuffer<F>,
    rows: u64,
}

impl<F: Feature> RowStream<F> for KeyedPass<'_, F> {
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError> {
        let (now, later) = self.left.split_at(self.left.len().min(gathered_rows(self.examples.dim())));
        if now.is_empty() {
            return Ok(None);
        }
        self.left = later;
        self.rows += now.len() as u64;
        gather(self.examples, now, self.gathered).map(Some)
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.rows })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use dp_data::{Rows, Workers};

    use super::*;
    use crate::memory::tests::Copied;
    use crate::memory::{ExpandingSource, MemorySource};

    type Contents = (Vec<usize>, Vec<u32>, Vec<f64>, Vec<f64>, Vec<bool>);

    /// Appends the records of a block.
    fn add(contents: &mut Contents, block: &Block<'_, f64>) {
        let (lengths, columns, numbers, targets, marks) = contents;
        match block.rows {
            Rows::Dense { values, dim } => {
                lengths.extend(vec![dim; block.len()]);
                numbers.extend_from_slice(values);
            }
            Rows::Sparse { offsets, indices, values, .. } => {
                lengths.extend(offsets.windows(2).map(|ends| ends[1] - ends[0]));
                let stored = offsets[0]..offsets[offsets.len() - 1];
                columns.extend_from_slice(&indices[stored.clone()]);
                numbers.extend_from_slice(&values[stored]);
            }
        }
        targets.extend_from_slice(block.targets);
        marks.extend((0..block.len()).map(|i| block.valid.is_none_or(|valid| valid[i])));
    }

    fn pass(source: &mut dyn RowSource<f64>, request: &PassRequest) -> Contents {
        let mut contents = Contents::default();
        let mut stream = source.open_pass(request).unwrap();
        while let Some(block) = stream.next_block().unwrap() {
            add(&mut contents, &block);
        }
        assert_eq!(stream.receipt().unwrap().rows as usize, contents.3.len());
        contents
    }

    fn gathered(source: &mut dyn RowSource<f64>, positions: &[u32]) -> Contents {
        let mut contents = Contents::default();
        add(&mut contents, &source.gather(positions).unwrap());
        contents
    }

    /// Every reader delivers what the source itself does, in any order of requests, also while others read.
    #[test]
    fn readers_deliver_the_records_of_the_source() {
        // More than are copied at a time.
        let n = 9001;
        let numbers: Vec<f64> = (0..3 * n).map(|i| f64::from(i) / 1e5).collect();
        let targets: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let marks = (0..n).map(|i| i % 7 != 3).collect();
        let dense = Examples::dense(numbers.clone(), targets.clone(), 3).unwrap();
        let offsets = (0..=n as usize).map(|i| i / 4 * 6 + [0, 1, 3, 6][i % 4]).collect::<Vec<_>>();
        let stored = offsets[n as usize];
        let indices = (0..n as usize).flat_map(|i| 0..(offsets[i + 1] - offsets[i]) as u32).collect();
        let sparse = Examples::sparse(offsets, indices, numbers[..stored].to_vec(), targets, 3).unwrap();
        let keyed = |key, fresh_each_pass| Order::Keyed { key: [key; 32], fresh_each_pass };
        let requests = [
            (0, keyed(1, false)),
            (1, keyed(1, false)),
            (0, Order::Declared),
            (2, keyed(1, true)),
            (3, keyed(1, true)),
            (3, keyed(2, false)),
        ]
        .map(|(pass, order)| PassRequest { pass, order });
        let positions = [9000, 0, 17, 17, 4];
        for examples in [dense.clone().with_valid(marks).unwrap(), dense, sparse] {
            let mut source = MemorySource::new(examples.clone(), 1.0, 1.0);
            let described = source.describe().unwrap();
            let passes = requests.map(|request| pass(&mut source, &request));
            let chosen = [&positions[..], &positions[2..3], &[]].map(|positions| gathered(&mut source, positions));
            // Positions are those of the declared order, in which the source is not any more.
            pass(&mut source, &requests[0]);
            let readers = source.readers(3).unwrap().unwrap();
            assert_eq!(readers.len(), 3);
            thread::scope(|scope| {
                for mut reader in readers {
                    let (described, passes, chosen) = (&described, &passes, &chosen);
                    scope.spawn(move || {
                        assert_eq!(reader.describe().unwrap(), *described);
                        for (request, expected) in requests.iter().zip(passes) {
                            assert!(pass(&mut *reader, request) == *expected, "{request:?}");
                            assert_eq!(reader.select(&positions).unwrap().unwrap().len(), 5);
                        }
                        for (positions, expected) in [&positions[..], &positions[2..3], &[]].iter().zip(chosen) {
                            assert!(gathered(&mut *reader, positions) == *expected);
                        }
                        assert!(reader.gather(&[9001]).is_err() && reader.select(&[9001]).is_err());
                    });
                }
            });
        }
    }

    #[test]
    fn features_are_expanded_for_all_readers() {
        let examples = Examples::dense(vec![0.1, 0.2, 0.3, 0.4], vec![1.0, -1.0], 2).unwrap();
        let mut source = ExpandingSource::new(Copied(examples), 1.0, 1.0, Workers::ONE);
        let mut readers = source.readers(2).unwrap().unwrap();
        assert_eq!(gathered(&mut *readers[1], &[1, 0]).2, [0.3, 0.4, 0.1, 0.2]);
        drop(readers);
        assert!(source.unexpanded().is_none());
    }
}
