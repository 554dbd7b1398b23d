//! The audit report: claims, results, and the command line that repeats them.

use dp::report::escaped;

use super::outcome::{HEAD, Outcome};

/// Returns the report in Markdown. It contains no time and no path; the seed is that of an experiment, not of a release.
pub(super) fn markdown(outcome: &Outcome) -> String {
    let mut text = String::from("# An audit of differential privacy\n\n");
    let mut line = |sentence: &str| {
        text.push_str(sentence);
        text.push('\n');
    };
    line(&format!("**{}**\n", capitalised(&outcome.verdict())));
    line(
        "Each claim was attacked on two neighbouring inputs: half of the runs chose a test, the other half bounded epsilon",
    );
    line(
        "from below. A bound above the claim refutes it. A bound below it shows how tight the analysis or how strong the",
    );
    line("attack is, and no more: another attack may reach further.\n");
    line(&format!("| {} |", HEAD.join(" | ")));
    line(&format!("|{}", "---|".repeat(HEAD.len())));
    for row in outcome.rows() {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        line(&format!("| {} |", cells.join(" | ")));
    }
    line(
        "\n`claimed` is the certified upper bound of epsilon at delta, `at least` what was reached with confidence, `of",
    );
    line(
        "epsilon` the second over the first. For Gaussian claims read `of mu`, which compares whole curves: at a small delta",
    );
    line(
        "their epsilon depends on outcomes too rare to observe, so that `of epsilon` stays low however good the attack.",
    );
    line("`noise-free` is the largest distance of two models trained without noise, over the claimed sensitivity.\n");
    line("## Each audit\n");
    for finding in &outcome.findings {
        for sentence in finding.statement().lines() {
            line(&format!("    {sentence}"));
        }
        line("");
    }
    line("## How to repeat this\n");
    line(&format!("    {}\n", outcome.rerun));
    line(
        "The same seed gives the same numbers on any machine and with any number of threads; only the seconds differ.",
    );
    text
}

fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
