//! The table of algorithms, data sets and budgets: accuracy, objective and time of each.

use core::fmt::Write;

use super::Effort;
use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::setting::{Cell, Privacy, Setting};
use crate::statistics::{Sample, number};
use crate::store::Store;

/// The name of its files.
pub const ID: &str = "table";

/// λ of every run.
const LAMBDA: f64 = 1e-2;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// What was run.
    pub setting: Setting,
    /// Share of held-out rows that are classified rightly.
    pub accuracy: Sample,
    /// The regularised mean loss on the training rows.
    pub objective: Sample,
    /// Seconds of training.
    pub seconds: Sample,
}

/// Repetitions of every row.
pub fn repetitions(effort: Effort) -> u32 {
    effort.repetitions(10)
}

/// Logistic regression with λ = 0.01, delta = 1/n², ten passes, batches of 50: every algorithm on every data set; and Auto
/// without a delta, for comparison with others that need none.
pub fn settings(effort: Effort) -> Vec<Setting> {
    let sets =
        [DataSet::Mnist, DataSet::Covertype, DataSet::KddCup, DataSet::Higgs, DataSet::Occupancy, DataSet::Banknote];
    let approximate: fn(f64) -> Privacy = |epsilon| Privacy::Approximate { epsilon };
    let mut algorithms = [Algorithm::Noiseless, Algorithm::Ours].map(|algorithm| (algorithm, approximate)).to_vec();
    algorithms.extend(super::bolt_on::PER_STEP.iter().map(|&algorithm| (algorithm, approximate)));
    let of_today = [Algorithm::DpSgd, Algorithm::Pnsgd, Algorithm::SnowballSgd, Algorithm::PhasedSgd, Algorithm::Auto];
    algorithms.extend(of_today.map(|algorithm| (algorithm, approximate)));
    algorithms.push((Algorithm::Auto, |epsilon| Privacy::Pure { epsilon }));
    let mut settings = Vec::new();
    for data in sets {
        for &(algorithm, privacy) in &algorithms {
            for epsilon in effort.thin(&[0.05, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0]) {
                let setting = Setting::new(data, algorithm, privacy(epsilon));
                let setting = Setting { lambda: LAMBDA, timed: true, ..setting };
                if !settings.contains(&setting) {
                    settings.push(setting);
                }
            }
        }
    }
    settings
}

/// Every run of the table.
pub fn cells(effort: Effort, repetitions: u32) -> Vec<Cell> {
    let settings = settings(effort).into_iter();
    settings.flat_map(|setting| (0..repetitions).map(move |repetition| Cell { setting, repetition })).collect()
}

/// The rows that have been run.
pub fn rows(effort: Effort, store: &Store, repetitions: u32) -> Vec<Row> {
    let row = |setting| {
        let outcomes: Vec<_> =
            (0..repetitions).filter_map(|repetition| store.get(&Cell { setting, repetition }).copied()).collect();
        let sample =
            |value: fn(&crate::algorithm::Outcome) -> f64| Sample::of(&outcomes.iter().map(value).collect::<Vec<_>>());
        Some(Row {
            setting,
            accuracy: sample(|outcome| outcome.accuracy)?,
            objective: sample(|outcome| outcome.objective)?,
            seconds: sample(|outcome| outcome.seconds)?,
        })
    };
    settings(effort).into_iter().filter_map(row).collect()
}

/// Settings that no run has a result for: not run yet, or refused by their algorithm.
pub fn without_result(effort: Effort, rows: &[Row]) -> Vec<Setting> {
    settings(effort).into_iter().filter(|setting| !rows.iter().any(|row| row.setting == *setting)).collect()
}

/// The table for readers: means and standard errors; and which settings have no result.
pub fn markdown(rows: &[Row], without_result: &[Setting]) -> String {
    let mut text = format!(
        "Logistic regression, λ = {LAMBDA}, δ = 1/n², ten passes, batches of 50; mean ± standard error over repetitions.\n\n\
         | data | algorithm | ε | n | test accuracy | objective | seconds |\n|---|---|---|---|---|---|---|\n"
    );
    for Row { setting, accuracy, objective, seconds } in rows {
        let epsilon = setting.privacy.epsilon().map_or_else(|| "∞".to_owned(), number);
        let (data, algorithm, n) = (setting.data.title(), algorithm_of(setting), accuracy.n);
        let _ = writeln!(text, "| {data} | {algorithm} | {epsilon} | {n} | {accuracy} | {objective} | {seconds} |");
    }
    for setting in without_result {
        let epsilon = setting.privacy.epsilon().map_or_else(|| "∞".to_owned(), number);
        let (data, algorithm) = (setting.data.title(), algorithm_of(setting));
        let _ = writeln!(text, "| {data} | {algorithm} | {epsilon} | 0 | no result | | |");
    }
    text
}

/// The name of the algorithm, with its delta where that is not the table's.
fn algorithm_of(setting: &Setting) -> String {
    let title = setting.algorithm.title();
    if matches!(setting.privacy, Privacy::Pure { .. }) { format!("{title}, δ = 0") } else { title.to_owned() }
}

/// The table for programs.
pub fn csv(rows: &[Row]) -> String {
    let mut text = String::from("data,algorithm,privacy,epsilon,n");
    for measure in ["accuracy", "objective", "seconds"] {
        let _ = write!(text, ",{measure}_mean,{measure}_std_error");
    }
    text.push('\n');
    for row in rows {
        let epsilon = row.setting.privacy.epsilon().map_or_else(|| "inf".to_owned(), |epsilon| epsilon.to_string());
        let privacy = match row.setting.privacy {
            Privacy::None => "none",
            Privacy::Pure { .. } => "pure",
            Privacy::Approximate { .. } => "approximate",
        };
        let _ = write!(text, "{},{},{privacy},{epsilon},{}", row.setting.data, row.setting.algorithm, row.accuracy.n);
        for sample in [row.accuracy, row.objective, row.seconds] {
            let _ = write!(text, ",{:?},{:?}", sample.mean, sample.std_error());
        }
        text.push('\n');
    }
    text
}
