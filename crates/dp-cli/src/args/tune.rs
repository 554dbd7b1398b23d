//! Flags of `dp tune`.

use clap::{Args, ValueEnum};
use dp::training::TrialLaw;

use super::algorithm::words;
use super::{FileName, TrainArgs};

/// The tuning method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TuningMethod {
    /// Each combination is trained on a portion of the records, and one more portion chooses (Wu et al. 2017, Algorithm
    /// 3). It costs as much as one training.
    #[default]
    Portions,
    /// Each combination is trained on the same nine tenths of the records, and the others choose; the costs of all trainings
    /// compose.
    Composition,
    /// The best of a random number of trainings on all records, of combinations at random (Papernot and Steinke 2022).
    RandomStopping,
    /// On public records, at no cost; then one training on the private ones.
    Public,
}

/// Arguments of `dp tune`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
--lambda, --passes and --batch-size take several values, divided by commas: every combination is tried. The errors of
the combinations are not released.

Examples:
  dp tune --data people.csv --schema schema.toml --epsilon 1 --algorithm bolt-on-strongly-convex \\
    --lambda 1e-4,1e-3,1e-2 --passes 5,10 --out model.json
  dp tune --data people.csv --schema schema.toml --epsilon 1 --delta 1e-6 --algorithm dp-sgd --batch-size 100,1000 \\
    --method random-stopping --trials 8 --out model.json
  dp tune --data people.csv --schema schema.toml --epsilon 1 --delta 1e-6 --lambda 1e-4,1e-2 --method composition \\
    --out model.json
  dp tune --data people.csv --schema schema.toml --epsilon 1 --lambda 0,1e-3 --method public --public survey.csv \\
    --out model.json")]
#[command(mut_arg("threshold", |arg| arg.hide(true)), mut_arg("fourier_if_better", |arg| arg.hide(true)))]
pub struct TuneArgs {
    /// The training, as in `dp train`.
    #[command(flatten)]
    pub train: TrainArgs,
    /// Tuning method
    #[arg(long, value_enum, value_name = "METHOD", default_value_t, help_heading = "Tuning")]
    pub method: TuningMethod,
    /// Public records of the same format, used for the choice and not protected
    #[arg(long, value_name = "FILE", help_heading = "Tuning")]
    pub public: Option<FileName>,
    /// The labels of the public images (IDX)
    #[arg(long, value_name = "FILE", requires = "public", help_heading = "Tuning")]
    pub public_labels: Option<FileName>,
    /// Mean number of trainings of random-stopping [default: twice the number of combinations]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, help_heading = "Tuning")]
    pub trials: Option<f64>,
    /// Distribution of that number [default: logarithmic]
    #[arg(long, value_parser = words(dp::words::TRIAL_LAW), value_name = "LAW", help_heading = "Tuning")]
    pub trial_law: Option<TrialLaw>,
}
