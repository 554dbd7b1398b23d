//! Arguments of `dp plan`.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::Args;

use super::{Adjacency, FileName, Loss};

/// Arguments of `dp plan`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  dp plan --rows 20000 --features 30
  dp plan --rows 20000 --schema schema.toml --out plan.svg
  dp plan --rows 6000 --features 12 --units 2000 --max-rows 5 --epsilon 0.5,1,2

Reads no record and spends nothing: everything follows from public numbers. The expected loss is the fraction of what can
be gained over the majority class (for numbers: over the mean) that privacy costs. It was measured on public tables:
most measured losses are within a factor of three of it.")]
pub struct PlanArgs {
    /// Number of rows
    #[arg(long, value_name = "NUMBER")]
    pub rows: NonZeroU64,
    /// Number of features: one for each numeric column, one for each category
    #[arg(long, value_name = "NUMBER", required_unless_present = "schema", conflicts_with = "schema")]
    pub features: Option<NonZeroU64>,
    /// Schema of the table, which gives features and loss; it need not be reviewed
    #[arg(long, value_name = "FILE")]
    pub schema: Option<FileName>,
    /// Number of classes of the label [default: the schema's, else 2]
    #[arg(long, value_name = "NUMBER", conflicts_with = "schema", value_parser = clap::value_parser!(u32).range(2..))]
    pub classes: Option<u32>,
    /// The loss [default: by the label: logistic for two classes, softmax for several, log-cosh for numbers]
    #[arg(long, value_enum, value_name = "NAME")]
    pub loss: Option<Loss>,
    /// Epsilons to compare
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "0.1,0.2,0.5,1,2,5",
        allow_hyphen_values = true
    )]
    pub epsilon: Vec<f64>,
    /// Delta [default: the largest power of ten that is at most 1e-6 and 1/(10 n)]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Neighbouring relation
    #[arg(long, value_enum, value_name = "RELATION", default_value = "add-remove")]
    pub adjacency: Adjacency,
    /// Largest number of rows used of each unit, such as a patient: protects units
    #[arg(long, value_name = "NUMBER")]
    pub max_rows: Option<NonZeroU32>,
    /// Number of units [default: each has as many rows as are used]
    #[arg(long, value_name = "NUMBER", requires = "max_rows")]
    pub units: Option<NonZeroU64>,
    /// Target expected loss, for which the needed rows are computed
    #[arg(long, value_name = "FRACTION", default_value_t = 0.05, allow_hyphen_values = true)]
    pub target_loss: f64,
    /// Output file of a picture (SVG)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing output file
    #[arg(long, requires = "out")]
    pub force: bool,
}
