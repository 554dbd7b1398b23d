//! Tables, folds and accuracy for the accuracy benchmarks.

use std::error::Error;

use dp::metrics::winner;
use dp_data::draft::{DraftOptions, draft};
use dp_data::read::{CsvOptions, Input, load_csv};
use dp_data::schema::{Column, ColumnKind};
use dp_data::{Block, Encoder, Encoding, Examples, Rows, Schema};
use dp_losses::LossKind;

/// A table in memory, encoded.
pub struct Table {
    /// The encoded rows; targets are -1 and +1.
    pub examples: Examples<f64>,
}

impl Table {
    /// Reads a CSV file, taking ranges and categories from it.
    ///
    /// # Errors
    /// Errors in the file or its cells.
    pub fn load(
        path: &str,
        label: &str,
        positive: &str,
        drop: &[String],
        encoding: Encoding,
    ) -> Result<Self, Box<dyn Error>> {
        let mut options = DraftOptions::new(label);
        options.positive = Some(positive.to_owned());
        let drafted = draft(Input::open(path)?, &options, &CsvOptions::default())?.schema;
        let columns = drafted
            .columns()
            .iter()
            .cloned()
            .map(|column| match drop.contains(&column.name) {
                true => Column::new(&column.name, ColumnKind::Drop),
                false => column,
            })
            .collect();
        let mut schema = Schema::new(columns, drafted.label().clone(), drafted.missing().to_vec())?;
        schema.assume_all_public();
        let encoder = Encoder::new(&schema, encoding)?;
        let loaded = load_csv::<f64>(Input::open(path)?, &encoder, &CsvOptions::default())?;
        Ok(Self { examples: loaded.examples })
    }

    /// Returns the share of the larger class.
    pub fn majority(&self) -> f64 {
        let positive = self.examples.targets().iter().filter(|&&y| y > 0.0).count() as f64;
        let share = positive / self.examples.len() as f64;
        share.max(1.0 - share)
    }

    /// Returns the share of the examples that a linear model classifies correctly.
    pub fn accuracy(examples: &Examples<f64>, weights: &[f64]) -> f64 {
        let block = examples.block();
        let right = (0..block.len()).filter(|&i| (score(&block, i, weights) > 0.0) == (block.targets[i] > 0.0)).count();
        right as f64 / block.len() as f64
    }
}

/// Returns the accuracy of weights, class after class, or for numbers the explained share of variance.
pub fn quality(loss: LossKind, test: &Examples<f64>, weights: &[f64]) -> f64 {
    let block = test.block();
    let n = block.len();
    let scores = |i: usize| weights.chunks_exact(test.dim()).map(move |of_class| score(&block, i, of_class));
    match (loss.classes(), loss.outputs()) {
        (None, _) => {
            let mean = block.targets.iter().sum::<f64>() / n as f64;
            let variance: f64 = block.targets.iter().map(|y| (y - mean).powi(2)).sum();
            let error = |i: usize| scores(i).map(|s| (s.clamp(-1.0, 1.0) - block.targets[i]).powi(2)).sum::<f64>();
            1.0 - (0..n).map(error).sum::<f64>() / variance
        }
        (_, 1) => Table::accuracy(test, weights),
        _ => {
            let right = |i: &usize| winner(&scores(*i).collect::<Vec<f64>>()) as f64 == block.targets[*i];
            (0..n).filter(right).count() as f64 / n as f64
        }
    }
}

/// Returns the score of one example.
pub fn score(block: &Block<'_, f64>, i: usize, weights: &[f64]) -> f64 {
    match block.rows {
        Rows::Dense { values, dim } => values[i * dim..(i + 1) * dim].iter().zip(weights).map(|(x, w)| x * w).sum(),
        Rows::Sparse { offsets, indices, values, .. } => {
            let range = offsets[i]..offsets[i + 1];
            indices[range.clone()].iter().zip(&values[range]).map(|(&k, x)| x * weights[k as usize]).sum()
        }
    }
}

/// Training and test examples of one fold.
pub type Fold = (Examples<f64>, Examples<f64>);

/// Returns five folds: example i is tested in fold i mod 5.
///
/// # Errors
/// More examples than fit an index.
pub fn folds(examples: &Examples<f64>) -> Result<Vec<Fold>, Box<dyn Error>> {
    let n = u32::try_from(examples.len())?;
    (0..5)
        .map(|fold| {
            let (test, train): (Vec<u32>, Vec<u32>) = (0..n).partition(|i| i % 5 == fold);
            Ok((examples.gather(&train)?, examples.gather(&test)?))
        })
        .collect()
}

/// Returns the mean and its standard error.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}
