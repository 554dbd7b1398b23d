//! The table of algorithms, data sets and budgets: accuracy, objective and time of each.

use core::fmt::Write;

use super::Effort;
use crate::algorithm::Algorithm;
use crate::cell::Cell;
use crate::dataset::DataSet;
use crate::setting::{Privacy, Setting};
use crate::statistics::{Sample, number};
use crate::store::Store;

/// The name of its files.
pub const ID: &str = "table";

/// λ of every run.
const LAMBDA: f64 = 1e-2;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The setting.
    pub setting: Setting,
    /// Share of held-out rows that are classified correctly.
    pub accuracy: Sample,
    /// The regularised mean loss on the training rows.
    pub objective: Sample,
    /// Seconds of training.
    pub seconds: Sample,
}

/// Returns the repetitions of every row.
pub fn repetitions(effort: Effort) -> u32 {
    effort.repetitions(10)
}

/// Returns the settings: logistic regression with λ = 0.01, delta = 1/n², ten passes and batches of 50, for every algorithm on every
/// data set; and Auto with delta = 0, for comparison with algorithms that need no delta.
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

/// Returns every run of the table.
pub fn cells(effort: Effort, repetitions: u32) -> Vec<Cell> {
    let settings = settings(effort).into_iter();
    settings.flat_map(|setting| (0..repetitions).map(move |repetition| Cell::new(setting, repetition))).collect()
}

/// Returns the rows that have been run.
pub fn rows(effort: Effort, store: &Store, repetitions: u32) -> Vec<Row> {
    let row = |setting| {
        let outcomes: Vec<_> =
            (0..repetitions).filter_map(|repetition| store.get(&Cell::new(setting, repetition)).copied()).collect();
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

/// Returns the settings without a result: not run yet, or refused by their algorithm.
pub fn without_result(effort: Effort, rows: &[Row]) -> Vec<Setting> {
    settings(effort).into_iter().filter(|setting| !rows.iter().any(|row| row.setting == *setting)).collect()
}

/// Formats the table for readers: for each data set the means of accuracy and objective with their standard errors, the time
/// averaged over budgets, and the settings without a result.
pub fn markdown(rows: &[Row], without_result: &[Setting]) -> String {
    let mut text = format!(
        "Logistic regression, λ = {LAMBDA}, δ = 1/n², ten passes, batches of 50. Each cell is the test accuracy and, below, \
         the regularised training objective: means ± standard errors over repetitions. The seconds of training are averaged \
         over budgets.\n"
    );
    let mut sets: Vec<DataSet> = rows.iter().map(|row| row.setting.data).collect();
    sets.extend(without_result.iter().map(|setting| setting.data));
    // In the order of the settings.
    let mut seen = std::collections::BTreeSet::new();
    sets.retain(|set| seen.insert(*set));
    for data in sets {
        let of_data: Vec<&Row> = rows.iter().filter(|row| row.setting.data == data).collect();
        let mut budgets: Vec<f64> = of_data.iter().filter_map(|row| row.setting.privacy.epsilon()).collect();
        budgets.extend(without_result.iter().filter(|s| s.data == data).filter_map(|s| s.privacy.epsilon()));
        budgets.sort_by(f64::total_cmp);
        budgets.dedup();
        let mut names: Vec<String> = Vec::new();
        for setting in of_data.iter().map(|row| &row.setting).chain(without_result.iter().filter(|s| s.data == data)) {
            let name = algorithm_of(setting);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let _ = write!(text, "\n### {}\n\n| algorithm |", data.title());
        for epsilon in &budgets {
            let _ = write!(text, " ε = {epsilon} |");
        }
        text.push_str(" seconds |\n|---|");
        budgets.iter().for_each(|_| text.push_str("---|"));
        text.push_str("---|\n");
        for name in names {
            let of_algorithm: Vec<&&Row> = of_data.iter().filter(|row| algorithm_of(&row.setting) == name).collect();
            let _ = write!(text, "| {name} |");
            for epsilon in &budgets {
                // Without privacy, the row is the same at every budget.
                let row = of_algorithm.iter().find(|row| row.setting.privacy.epsilon().is_none_or(|at| at == *epsilon));
                match row {
                    Some(Row { accuracy, objective, .. }) => {
                        let _ = write!(text, " {}<br>{} |", plus_minus(accuracy), plus_minus(objective));
                    }
                    None => text.push_str(" no result |"),
                }
            }
            let seconds: Vec<f64> = of_algorithm.iter().map(|row| row.seconds.mean).collect();
            let _ =
                writeln!(text, " {} |", Sample::of(&seconds).map_or_else(String::new, |sample| number(sample.mean)));
        }
    }
    text
}

/// Formats a mean with its standard error, to four decimals.
fn plus_minus(sample: &Sample) -> String {
    format!("{:.4} ± {:.4}", sample.mean, sample.std_error())
}

/// Returns the name of the algorithm, with its delta if that differs from the table's.
fn algorithm_of(setting: &Setting) -> String {
    let title = setting.algorithm.title();
    if matches!(setting.privacy, Privacy::Pure { .. }) { format!("{title}, δ = 0") } else { title.to_owned() }
}

/// Formats the table as CSV.
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
            Privacy::Approximate { .. } | Privacy::WithDelta { .. } => "approximate",
        };
        let _ = write!(text, "{},{},{privacy},{epsilon},{}", row.setting.data, row.setting.algorithm, row.accuracy.n);
        for sample in [row.accuracy, row.objective, row.seconds] {
            let _ = write!(text, ",{:?},{:?}", sample.mean, sample.std_error());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Outcome;

    #[test]
    fn every_setting_has_a_cell_with_or_without_a_result() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("runs.csv")).unwrap();
        let all = settings(Effort::Quick);
        // All but BST14 with noise as published.
        for (i, setting) in all.iter().filter(|setting| setting.algorithm != Algorithm::Bst14AsPublished).enumerate() {
            for repetition in [0, 1] {
                let accuracy = 0.5 + 1e-4 * i as f64 + 0.01 * f64::from(repetition);
                let outcome = Outcome { accuracy, objective: 0.25, seconds: 2.0, ..Outcome::default() };
                store.append(&Cell::new(*setting, repetition), outcome).unwrap();
            }
        }
        let rows = rows(Effort::Quick, &store, 2);
        let missing = without_result(Effort::Quick, &rows);
        assert_eq!(missing.len(), 6 * 3);
        let text = markdown(&rows, &missing);
        // Six data sets, with a line for each of the eleven algorithms and for Auto without a delta.
        assert_eq!(text.matches("\n### ").count(), 6);
        assert_eq!(text.lines().filter(|line| line.starts_with("| ") && !line.contains("seconds")).count(), 6 * 12);
        assert_eq!(text.matches("| BST14, noise as printed | no result | no result | no result |  |").count(), 6);
        // The first setting, at each of its budgets: 0.5 and 0.51, on average 0.505 with a standard error of 0.005.
        assert!(text.contains("| Noiseless | 0.5050 ± 0.0050<br>0.2500 ± 0.0000 | 0.5050 ± 0.0050<br>"), "{text}");
        assert!(text.contains("| Auto, δ = 0 |") && text.contains(" ε = 0.05 | ε = 0.4 | ε = 4 | seconds |"), "{text}");
        let lines: Vec<String> = csv(&rows).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 1 + rows.len());
        assert_eq!(lines[1].split(',').count(), lines[0].split(',').count());
        assert!(lines.iter().any(|line| line.starts_with("mnist,auto,pure,0.05,2,")));
    }
}
