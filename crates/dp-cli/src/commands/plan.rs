//! `dp plan`: the expected cost of privacy from public numbers, before data is collected or read.

mod picture;

use dp::planning::{Columns, Forecast, Planning};
use dp::wording::{self, rounded_up};
use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{AdjacencyKind, Delta};
use dp_data::encode::MAX_FEATURES;
use dp_data::{Encoder, Encoding};
use dp_losses::LossKind;
use dp_optim::auto::Method;
use dp_optim::recipes::per_unit::MOST_ROWS;
use serde::Serialize;

use super::evaluate::table;
use super::train::{AskedLoss, percent};
use crate::args::{Adjacency, PlanArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::input::check_picture;
use crate::output::Console;

/// Largest number of rows for which a training is planned.
const MOST_ROWS_OF_TABLE: u64 = 1_000_000_000_000;

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.plan/1`.
    pub schema: &'static str,
    /// Number of rows.
    pub n: u64,
    /// Largest number of rows of a unit, if units are protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_of_unit: Option<u64>,
    /// Number of units, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    /// The loss.
    pub loss: String,
    /// The neighbouring relation.
    pub adjacency: &'static str,
    /// True if the number of records is public.
    pub n_public: bool,
    /// The expected loss for which rows are computed.
    pub target_loss: f64,
    /// One forecast for each epsilon.
    pub forecasts: Vec<Planned>,
    /// The file that holds the picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
}

/// The forecast for one epsilon.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planned {
    /// The expected loss.
    #[serde(flatten)]
    pub forecast: Forecast,
    /// Rows for the target loss; absent if no number is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_needed: Option<u64>,
    /// The guarantee of two such releases together; absent for a training of this size that cannot be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two_releases: Option<EpsilonDelta>,
}

/// Plans and prints.
///
/// # Errors
/// `usage.*`, errors in the schema, `privacy.*` for a budget that no noise meets, and output that cannot be written.
pub fn execute(args: &PlanArgs, console: &Console) -> Result<(), Failure> {
    check_picture("--out", args.out.as_deref())?;
    if let Some(out) = &args.out {
        atomic::check(out, args.force)?;
    }
    let planning = planning(args)?;
    if !(args.target_loss > 0.0 && args.target_loss <= 1.0) {
        return Err(Failure::usage("--target-loss", format!("{} is no fraction", args.target_loss))
            .expected("a number above 0, at most 1"));
    }
    let n = args.rows.get();
    let mut epsilons = args.epsilon.clone();
    epsilons.sort_by(f64::total_cmp);
    epsilons.dedup();
    if let Some(epsilon) = epsilons.iter().find(|epsilon| !(**epsilon > 0.0 && epsilon.is_finite())) {
        return Err(Failure::usage("--epsilon", format!("epsilon is {epsilon}")).expected("a finite number above 0"));
    }
    let forecasts = epsilons.iter().map(|&epsilon| {
        Ok(Planned {
            forecast: planning.at(n, epsilon)?,
            rows_needed: planning.records_needed(epsilon, args.target_loss)?,
            two_releases: planning.of_two(n, epsilon).ok(),
        })
    });
    let outcome = Outcome {
        schema: "dp.plan/1",
        n,
        rows_of_unit: args.max_rows.map(|rows| rows.get().into()),
        units: planning.units,
        loss: planning.loss.to_string(),
        adjacency: planning.relation.as_str(),
        n_public: planning.relation.n_public(),
        target_loss: args.target_loss,
        forecasts: forecasts.collect::<Result<_, Failure>>()?,
        picture: args.out.as_deref().map(atomic::shown),
    };
    if let Some(out) = &args.out {
        atomic::write(out, args.force, picture::svg(&planning, n, &epsilons)?.as_bytes())?;
    }
    console.result(&outcome, &text(&outcome))
}

/// Checks the flags.
fn planning(args: &PlanArgs) -> Result<Planning, Failure> {
    let asked = AskedLoss::new(args.loss, None)?;
    let (columns, loss) = match (&args.schema, args.features) {
        (Some(file), _) => {
            let mut schema = files::schema(file)?;
            // Nothing is released: an unreviewed range is as good as any.
            schema.assume_all_public();
            let loss = asked.for_label(schema.label())?;
            let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).map_err(|error| Failure::from_data(&error))?;
            (Columns::Encoded(Box::new(encoder)), loss)
        }
        // The intercept is one more.
        (None, Some(features)) if features.get() <= MAX_FEATURES as u64 => {
            (Columns::Features(features.get() + 1), asked.without_label(args.classes)?)
        }
        (None, Some(features)) => {
            return Err(Failure::usage("--features", format!("--features is {features}"))
                .expected(format!("at most {MAX_FEATURES}")));
        }
        (None, None) => return Err(Failure::usage("--features", "the number of features is not known")),
    };
    if args.rows.get() > MOST_ROWS_OF_TABLE {
        return Err(Failure::usage("--rows", format!("--rows is {}", args.rows)).expected("at most 10^12"));
    }
    let delta = match args.delta.map(Delta::new) {
        None => None,
        Some(Ok(delta)) => Some(delta),
        Some(Err(error)) => {
            return Err(Failure::usage("--delta", error.to_string()).expected("a number in [0, 1), far below 1/n"));
        }
    };
    let records_of_unit = args.max_rows.map_or(1, |rows| rows.get().into());
    if records_of_unit > MOST_ROWS {
        return Err(Failure::usage("--max-rows", format!("{records_of_unit} rows of a unit need too much noise"))
            .expected(format!("at most {MOST_ROWS}")));
    }
    let units = args.units.map(std::num::NonZeroU64::get);
    if let Some(units) = units.filter(|&units| args.rows.get() > units.saturating_mul(records_of_unit)) {
        let most = units.saturating_mul(records_of_unit);
        return Err(Failure::usage(
            "--rows",
            format!("{units} units of at most {records_of_unit} rows have no more than {most}"),
        )
        .help("count only the rows that are used: at most --max-rows of each unit"));
    }
    if let Some(units) = units.filter(|&units| args.rows.get() < units) {
        return Err(Failure::usage("--rows", format!("{units} units have at least one row each"))
            .expected(format!("at least {units}")));
    }
    let relation = match args.adjacency {
        Adjacency::AddRemove => AdjacencyKind::ZeroOut,
        Adjacency::ReplaceOne => AdjacencyKind::ReplaceOne,
        Adjacency::ChangeListLabels => {
            return Err(Failure::new(
                ExitStatus::Privacy,
                "privacy.adjacency",
                "auto has no proof under this neighbouring relation",
            )
            .at_flag("--adjacency")
            .expected("add-remove or replace-one"));
        }
    };
    Ok(Planning { columns, loss, relation, delta, records_of_unit, units })
}

/// A column of the table: its name and its cell.
type TextColumn = (String, Box<dyn Fn(&Planned) -> String>);

fn text(outcome: &Outcome) -> String {
    let Outcome { n, forecasts, .. } = outcome;
    let Some(Planned { forecast: first, .. }) = forecasts.first() else { return String::new() };
    let has_one_dim = forecasts.iter().all(|planned| planned.forecast.dim == first.dim);
    let methods: Vec<Method> = first.methods.iter().map(|method| method.method).collect();
    let names = methods.iter().map(|method| method.name());
    let mut columns: Vec<TextColumn> = vec![
        ("epsilon".to_owned(), Box::new(|planned| planned.forecast.epsilon.to_string())),
        ("expected loss".to_owned(), Box::new(|planned| percent(planned.forecast.expected_loss))),
        ("range".to_owned(), Box::new(|planned| planned.forecast.expected_loss_range.map(percent).join(" to "))),
    ];
    for (&method, name) in methods.iter().zip(names.clone()) {
        let of_method = move |planned: &Planned| {
            let found = planned.forecast.methods.iter().find(|forecast| forecast.method == method);
            found.map_or("-".to_owned(), |forecast| percent(forecast.expected_loss))
        };
        let short = name.split(' ').find(|word| !matches!(*word, "accelerated" | "perturbation"));
        columns.push((short.unwrap_or(name).to_owned(), Box::new(of_method)));
    }
    if forecasts.iter().any(|planned| planned.forecast.delta > 0.0) {
        let pure = |planned: &Planned| percent(planned.forecast.expected_loss_without_delta);
        columns.push(("delta = 0".to_owned(), Box::new(pure)));
    }
    let needed = |planned: &Planned| planned.rows_needed.map_or("-".to_owned(), |rows| rows.to_string());
    columns.push((format!("rows for {}%", rounded_up(100.0 * outcome.target_loss, 3)), Box::new(needed)));
    let both = |planned: &Planned| {
        planned.two_releases.map_or("-".to_owned(), |two_releases| rounded_up(two_releases.epsilon, 3))
    };
    columns.push(("two releases".to_owned(), Box::new(both)));
    if !has_one_dim {
        columns.push(("features".to_owned(), Box::new(|planned| planned.forecast.dim.to_string())));
    }
    let header = columns.iter().map(|(name, _)| name.clone()).collect();
    let rows = forecasts.iter().map(|planned| columns.iter().map(|(_, cell)| cell(planned)).collect());
    let rows: Vec<Vec<String>> = [header].into_iter().chain(rows).collect();
    let unit = match (outcome.units, outcome.rows_of_unit) {
        (Some(units), Some(rows)) => format!(" of {units} units with at most {rows} each"),
        (None, Some(rows)) => format!(" of units with {rows} each"),
        _ => String::new(),
    };
    let features = if has_one_dim { format!(", {} features with the intercept", first.dim) } else { String::new() };
    let of = match outcome.loss.parse::<LossKind>().ok().and_then(|loss| loss.classes()) {
        Some(_) => "of what can be gained over the majority class",
        None => "of what the features explain",
    };
    let deltas = || forecasts.iter().map(|planned| planned.forecast.delta);
    let at_most = if deltas().all(|delta| delta == first.delta) { "" } else { "at most " };
    let delta = at_most.to_owned() + &wording::delta(deltas().fold(0.0, f64::max));
    let mut lines = vec![
        format!("{n} rows{unit}{features}; {} loss, delta {delta}, {}", outcome.loss, outcome.adjacency),
        table(&rows).trim_end().to_owned(),
        String::new(),
        format!("expected loss  {of}, by `dp train` (auto: {})", first.method.name()),
        format!("by method      {}", names.collect::<Vec<_>>().join(", ")),
        "two releases   epsilon of two such models together, at twice the delta".to_owned(),
    ];
    lines.extend(outcome.picture.as_ref().map(|picture| format!("written        {picture}")));
    lines.join("\n")
}
