//! The files of a figure: every run, a summary, the claims, the pictures.

use core::fmt::Write;

use crate::cell::Cell;
use crate::claim::Finding;
use crate::error::Error;
use crate::picture;
use crate::results::Results;
use crate::statistics::number;
use crate::store::Store;

/// The ends of the names of a figure's [`documents`], after its identifier.
pub const ENDS: &[&str] = &[
    "-runs.csv",
    "-summary.csv",
    ".md",
    ".svg",
    #[cfg(feature = "png")]
    ".png",
];

/// Magnification of the PNG relative to the SVG's units.
#[cfg(feature = "png")]
const PNG_SCALE: f32 = 2.0;

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name in the output folder.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// Judges all claims of a figure.
pub fn findings(results: &Results<'_>) -> Vec<Finding> {
    results.figure.claims.iter().map(|claim| claim.judge(results)).collect()
}

/// Returns all files of a figure: runs, summary, claims, picture; with the feature `png` the picture as a bitmap too.
///
/// # Errors
/// [`Error::Drawing`].
pub fn documents(results: &Results<'_>, store: &Store, repetitions: u32) -> Result<Vec<Document>, Error> {
    let id = results.figure.id;
    let svg = picture::svg(results)?;
    let contents = [
        runs_csv(results, store, repetitions).into_bytes(),
        summary_csv(results).into_bytes(),
        markdown(results).into_bytes(),
        svg.clone().into_bytes(),
        #[cfg(feature = "png")]
        picture::png(&svg, PNG_SCALE)?,
    ];
    Ok(ENDS.iter().zip(contents).map(|(end, content)| Document { name: format!("{id}{end}"), content }).collect())
}

/// Formats every run of the figure, one line each.
pub fn runs_csv(results: &Results<'_>, store: &Store, repetitions: u32) -> String {
    let mut text = String::from("panel,series,x,repetition,setting,accuracy,objective,seconds,measure,value\n");
    for panel in &results.figure.panels {
        for series in &panel.series {
            for point in &series.points {
                for (setting, repetition) in
                    point.settings.iter().flat_map(|s| (0..repetitions).map(move |repetition| (s, repetition)))
                {
                    let Some(outcome) = store.get(&Cell::new(*setting, repetition)) else { continue };
                    let (measure, value) = (panel.measure.label(), panel.measure.of(outcome));
                    let (panel, series) = (quoted(&panel.title), quoted(&series.name));
                    let setting = quoted(&setting.to_string());
                    let (accuracy, objective, seconds) = (outcome.accuracy, outcome.objective, outcome.seconds);
                    let x = point.x;
                    let _ = writeln!(
                        text,
                        "{panel},{series},{x},{repetition},{setting},{accuracy:?},{objective:?},{seconds:?},\
                         {measure},{value:?}"
                    );
                }
            }
        }
    }
    text
}

/// Formats mean and spread of every point, one line each.
pub fn summary_csv(results: &Results<'_>) -> String {
    let mut text = String::from("panel,series,x,measure,n,mean,std_dev,std_error,setting\n");
    for (panel, measured) in results.figure.panels.iter().zip(&results.measured) {
        for (series, measured) in panel.series.iter().zip(measured) {
            for (point, measured) in series.points.iter().zip(measured) {
                let Some(measured) = measured else { continue };
                let (sample, setting) = (measured.sample, quoted(&measured.setting.to_string()));
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{:?},{:?},{:?},{setting}",
                    quoted(&panel.title),
                    quoted(&series.name),
                    point.x,
                    panel.measure.label(),
                    sample.n,
                    sample.mean,
                    sample.std_dev,
                    sample.std_error(),
                );
            }
        }
    }
    text
}

/// Formats the page of the figure: picture, claims, tables.
pub fn markdown(results: &Results<'_>) -> String {
    let figure = results.figure;
    let mut text =
        format!("# {}\n\n{}\n\n![{}]({}.svg)\n\n", figure.title, figure.description, figure.title, figure.id);
    if !figure.claims.is_empty() {
        text.push_str("## What becomes of the claims\n\n");
        for finding in findings(results) {
            let _ = writeln!(text, "- {}", finding.sentence);
        }
        text.push('\n');
    }
    text.push_str("## Means and standard errors\n");
    for (panel, measured) in figure.panels.iter().zip(&results.measured) {
        let mut xs: Vec<f64> = panel.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let _ = write!(text, "\n### {} ({})\n\n| {} |", panel.title, panel.measure.label(), panel.x.label);
        for series in &panel.series {
            let _ = write!(text, " {} |", series.name);
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(panel.series.len()));
        for x in xs {
            let _ = write!(text, "| {} |", number(x));
            for (series, measured) in panel.series.iter().zip(measured) {
                let point = series.points.iter().position(|point| point.x == x);
                match point.and_then(|point| measured[point].as_ref()) {
                    Some(measured) => {
                        let _ = write!(text, " {} |", measured.sample);
                    }
                    // An algorithm may refuse its numbers, and a series may lack points.
                    None if point.is_some() => text.push_str(" no result |"),
                    None => text.push_str(" |"),
                }
            }
            text.push('\n');
        }
    }
    text.push_str(
        "\nRuns are seeded by their names and can be repeated by anyone: they are reproductions, not private releases.\n",
    );
    text
}

/// Quotes a CSV cell.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
