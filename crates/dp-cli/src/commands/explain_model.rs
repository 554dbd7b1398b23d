//! `dp explain-model`: the contribution of each column to the score of a model, as text, JSON or a picture.

mod picture;

use dp::shapes::{Shapes, shapes};
use dp::wording::one_line;
use dp::{ModelKind, verify};
use serde::Serialize;

use super::evaluate::table;
use crate::args::ExplainModelArgs;
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::input::check_picture;
use crate::output::Console;

/// The result of an explanation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.explain-model/1`.
    pub schema: &'static str,
    /// The contributions.
    #[serde(flatten)]
    pub shapes: Shapes,
    /// True if the guarantee of the model holds, so that all of this may be published with it.
    pub publishable: bool,
    /// The file that holds the picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
}

/// Explains and prints.
///
/// # Errors
/// `model.*`, `usage.*` for a class that the model does not have, and output that cannot be written.
pub fn execute(args: &ExplainModelArgs, console: &Console) -> Result<(), Failure> {
    check_picture("--out", args.out.as_deref())?;
    if let Some(out) = &args.out {
        atomic::check(out, args.force)?;
    }
    let file = files::model(&args.model)?;
    let class = class(args, &file.model.kind)?;
    let shapes = shapes(&file, class).ok_or_else(|| {
        Failure::new(ExitStatus::Input, "model.mismatch", "the model is not a sum over the columns of a table")
            .at_file(&args.model)
            .expected("a model of a CSV file without --project")
            .help("see `features` and `weights` in the model file")
    })?;
    let publishable = verify::model(&file, verify::WORK).is_ok();
    if let Some(out) = &args.out {
        atomic::write(out, args.force, picture::svg(&shapes)?.as_bytes())?;
    }
    let picture = args.out.as_deref().map(atomic::shown);
    let outcome = Outcome { schema: "dp.explain-model/1", shapes, publishable, picture };
    console.result(&outcome, &text(&outcome))
}

/// Returns the position of the requested class, the first by default.
fn class(args: &ExplainModelArgs, kind: &ModelKind) -> Result<usize, Failure> {
    let Some(name) = &args.class else { return Ok(0) };
    let classes: &[String] = match kind {
        ModelKind::MultiClassLinear { classes } => classes,
        ModelKind::LinearClassifier { classes } => std::slice::from_ref(&classes.positive),
        ModelKind::LinearRegression { .. } => &[],
    };
    classes.iter().position(|class| class == name).ok_or_else(|| {
        let expected = match classes {
            [] => "no --class: the model predicts a number".to_owned(),
            classes => dp::wording::names(classes),
        };
        Failure::usage("--class", format!("the model has no score of class `{}`", one_line(name))).expected(expected)
    })
}

fn text(outcome: &Outcome) -> String {
    let Shapes { class, columns, has_pairs, has_fourier, has_standard_errors, .. } = &outcome.shapes;
    let score = class.as_ref().map_or("the prediction".to_owned(), |class| format!("the score of {}", one_line(class)));
    let has_lines = columns.iter().any(|shape| shape.per_unit.is_some());
    let with_errors = *has_standard_errors;
    let row = |[column, effect, error, per_unit, its_error, low, high]: [String; 7]| {
        let errors = |cell| if with_errors { Some(cell) } else { None };
        let lines = |cell| if has_lines { Some(cell) } else { None };
        let cells = [Some(column), Some(effect), errors(error), lines(per_unit), lines(its_error).and_then(errors)];
        cells.into_iter().chain([Some(low), Some(high)]).flatten().collect::<Vec<_>>()
    };
    let header = ["column", "effect", "standard error", "per unit", "standard error", "least at", "most at"];
    let mut rows = vec![row(header.map(str::to_owned))];
    rows.extend(columns.iter().map(|shape| {
        let (low, high) = shape.points.extremes();
        let [low, high] = [low, high].map(|position| one_line(&shape.points.label(position)));
        let (value, its_error) = shape.per_unit.map_or((String::new(), None), |coefficient| {
            (format!("{:.2e}", coefficient.value), coefficient.standard_error)
        });
        let noise = if shape.is_within_noise == Some(true) { " (noise)" } else { "" };
        let effect = format!("{:.3}{noise}", shape.effect);
        let of_effect = shape.standard_error.map_or_else(String::new, |error| format!("{error:.3}"));
        let of_unit = its_error.map_or_else(String::new, |error: f64| format!("{error:.2e}"));
        row([one_line(&shape.column), effect, of_effect, value, of_unit, low, high])
    }));
    let mut lines = vec![
        format!(
            "contributions of {} to {score}, the largest effect first",
            if columns.len() == 1 { "1 column".to_owned() } else { format!("{} columns", columns.len()) }
        ),
        table(&rows).trim_end().to_owned(),
    ];
    if *has_pairs {
        lines.push("products of pairs of columns contribute too and are not shown".to_owned());
    }
    if *has_fourier {
        lines.push("random Fourier features of all columns contribute too and are not shown".to_owned());
    }
    lines.push(
        match has_standard_errors {
            true => "standard errors are those of the privacy noise, not of the sample; (noise): noise alone may give such an effect",
            false => {
                "no standard errors: the effect of this algorithm's noise on the weights is not known (--algorithm \
                 bolt-on-strongly-convex adds its noise to them)"
            }
        }
        .to_owned(),
    );
    if !outcome.publishable {
        lines.push("the guarantee of the model does not hold (`dp verify` says why): do not publish this".to_owned());
    }
    lines.extend(outcome.picture.as_ref().map(|picture| format!("written {picture}")));
    lines.join("\n")
}
