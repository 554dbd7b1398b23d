//! Training on columns of Python.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dp::Training;
use dp::model::ModelKind;
use dp::training::{Choice, ChoiceMethod, LARGEST_SUGGESTED_DELTA, REGRESSION_WIDTH, USELESS};
use dp::words;
use dp_accountant::{AdjacencyKind, Delta};
use dp_data::encode::{Encoding, FeatureMap, FourierFeatures, RowNorm};
use dp_data::read::Input;
use dp_data::schema::Schema;
use dp_losses::LossKind;
use dp_optim::FloatKind;
use dp_optim::catalogue::{self, Kind, PARAMETERS, Settings, Value};
use dp_optim::engine::Control;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{Failure, with_arguments};
use crate::interrupt::interruptible;
use crate::model::{Model, described};
use crate::options::{Options, unusable};
use crate::table::{Columns, NamedColumn};

/// Trains a model on columns. Returns it with warnings for whoever holds the data, and the
/// reason for the algorithm that was chosen, with a warning if public numbers call the model useless.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a tuple is what Python takes apart")]
pub(crate) fn train(
    py: Python<'_>,
    schema: &str,
    columns: Vec<NamedColumn>,
    rows: usize,
    options: &Bound<'_, PyDict>,
) -> PyResult<(Model, Vec<String>, Option<(String, Option<String>)>)> {
    let options = Options(options);
    let mut schema = Schema::parse("the schema", schema).map_err(Failure::from)?;
    let assumed = options.get::<Vec<String>>("assume_public")?.unwrap_or_default();
    schema.assume_public(&assumed).map_err(Failure::from)?;
    let training = training(&schema, &options)?;
    let columns = Columns::new(columns, rows);
    let raised = columns.raised();
    let trained = interruptible(py, move |cancelled: &Arc<AtomicBool>| {
        let input = Input::from_table(columns.table(Arc::clone(cancelled)));
        let mut control = Control { cancelled: Some(cancelled), ..Control::default() };
        training.on_input(&schema, input, Some(rows as u64), &mut control)
    })?
    .map_err(|error| raised.or(error))?;
    let advice = trained.advice.map(|advice| {
        let warning = (advice.expected_loss >= USELESS).then(|| {
            let [low, high] = advice.expected_loss_range.map(|share| 100.0 * share);
            format!(
                "expect a useless model: {:.0}% of the possible gain are lost ({low:.0}% to {high:.0}%), by public numbers \
                 alone; use more records, a larger epsilon or fewer columns",
                100.0 * advice.expected_loss
            )
        });
        (advice.reason, warning)
    });
    let warnings = trained.warnings.iter().map(|warning| with_arguments(&warning.to_string())).collect();
    Ok((Model::new(trained.file), warnings, advice))
}

/// Returns the names of all private algorithms.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<&'static str> {
    catalogue::ALGORITHMS.iter().map(|entry| entry.name).collect()
}

/// Returns the column of a schema's label, what it holds (`two-classes`, `classes` or `number`), and the classes: of two, the
/// negative one first.
#[pyfunction]
pub(crate) fn label_of_schema(schema: &str) -> PyResult<(String, &'static str, Vec<String>)> {
    let schema = Schema::parse("the schema", schema).map_err(Failure::from)?;
    let label = schema.label();
    let (kind, classes) = described(&ModelKind::of(label).map_err(Failure::from)?);
    Ok((label.column.clone(), kind, classes))
}

fn training(schema: &Schema, options: &Options<'_, '_>) -> PyResult<Training> {
    let number = |name: &str| options.get::<f64>(name);
    let missing = || Failure { code: "usage.missing", ..Failure::argument("epsilon", "epsilon is missing") };
    let epsilon = number("epsilon")?.ok_or_else(missing)?;
    let name = options.get::<String>("algorithm")?.unwrap_or_else(|| catalogue::AUTO.name.to_owned());
    let algorithm = catalogue::find(&name).ok_or_else(|| {
        let known: Vec<_> = catalogue::ALGORITHMS.iter().map(|entry| format!("'{}'", entry.name)).collect();
        Failure::argument("algorithm", format!("there is no algorithm {name:?}")).expecting(known.join(", "))
    })?;
    // As the program: only `auto` suggests a delta; other algorithms are pure without one.
    let delta = match number("delta")? {
        None if name != catalogue::AUTO.name => Some(0.0),
        delta => delta,
    };
    let is_tried = options.get("fourier_if_better")?.unwrap_or(false);
    let encoding = encoding(options)?;
    let [tried, fourier] = [true, false].map(|of| encoding.fourier.filter(|_| is_tried == of));
    let mut training = Training::new(epsilon, delta)
        .map_err(|error| Failure { field: Some("epsilon".to_owned()), ..Failure::from(error) })?
        .by_entry(algorithm)
        .with_settings(options.get("settings")?.as_ref().map(settings).transpose()?.unwrap_or_default())
        .with_encoding(Encoding { fourier, ..encoding })
        .made_by(BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())]));
    if let Some(fourier) = tried {
        training = training.trying_fourier(fourier);
    }
    if let Some(choice) = choice(options, delta)? {
        training = training.choosing(choice);
    }
    if let Some(map) = feature_map(options)? {
        training = training.with_map(map);
    }
    if let Some(loss) = options.get::<String>("loss")? {
        // As the program: a wide part in which gradients are those of the squared loss.
        let is_wide = ["log-cosh", "huber-regression"].contains(&loss.as_str());
        let loss = if is_wide { format!("{loss}:{REGRESSION_WIDTH}") } else { loss };
        let loss: LossKind =
            loss.parse().map_err(|error: dp_losses::Error| Failure::argument("loss", error.to_string()))?;
        training = training.with_loss(loss);
    }
    let relations = [("add-remove", AdjacencyKind::ZeroOut), ("replace-one", AdjacencyKind::ReplaceOne)];
    if let Some(relation) = options.word("adjacency", &relations)? {
        training = training.under(relation);
    }
    if let Some(share) = options.one_of("one_vs_rest", words::SHARE)? {
        training = training.one_against_the_rest(share);
    }
    if options.word("threshold", &[("half", false), ("base-rate", true)])? == Some(true) {
        training = training.at_base_rate();
    }
    if let Some(noise) = options.one_of("noise", words::NOISE)? {
        training = training.with_noise(noise);
    }
    if let Some(float) = options.word("dtype", &[("float64", FloatKind::F64), ("float32", FloatKind::F32)])? {
        training = training.in_float(float);
    }
    if let Some(unit) = options.get::<String>("unit")? {
        let most = options.get::<u64>("max_rows")?.filter(|most| *most > 0).ok_or_else(|| Failure {
            code: "usage.missing",
            ..Failure::argument("max_rows", "max_rows is missing: the most rows of a unit that are used")
        })?;
        training = training.per_unit(&unit, most);
    } else if options.has("max_rows")? {
        let failure =
            Failure::argument("max_rows", "max_rows is given without a unit, so that each row is protected by itself");
        return Err(Failure { code: "usage.conflict", ..failure }
            .expecting("unit: the column that names a unit")
            .into());
    }
    if let Some(seed) = options.get::<u64>("seed")? {
        training = training.seeded(seed);
    }
    let training = training.with_workers(options.workers()?);
    training.relation().map_err(Failure::from)?;
    training.task(schema.label()).map_err(Failure::from)?;
    Ok(training)
}

/// Returns the private choice among settings, if there is one.
fn choice(options: &Options<'_, '_>, delta: Option<f64>) -> PyResult<Option<Choice>> {
    let Some(grid) = options.get::<Vec<Bound<'_, PyDict>>>("grid")? else { return Ok(None) };
    let grid = grid.iter().map(settings).collect::<PyResult<Vec<_>>>()?;
    let at = |name: &str| {
        let name = name.to_owned();
        move |error: dp_optim::Error| Failure { field: Some(name), ..Failure::from(error) }
    };
    let methods = [
        ("portions", Some(ChoiceMethod::Portions)),
        ("composition", Some(ChoiceMethod::Composition)),
        ("random-stopping", None),
    ];
    let method = if let Some(method) = options.word("method", &methods)?.unwrap_or(Some(ChoiceMethod::Portions)) {
        method
    } else {
        let law = options.one_of("trial_law", words::TRIAL_LAW)?.unwrap_or_default();
        let trials = options.get::<f64>("trials")?;
        // Without a delta, one above 0 is suggested.
        let delta = Delta::new(delta.unwrap_or(LARGEST_SUGGESTED_DELTA)).map_err(|error| at("delta")(error.into()))?;
        ChoiceMethod::random_stopping(law, trials, grid.len(), delta).map_err(at("trials"))?
    };
    Ok(Some(Choice::new(grid, method).map_err(at("param_grid"))?))
}

fn settings(given: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let mut settings = Settings::default();
    for (name, value) in given {
        let name: String = name.extract()?;
        let known = PARAMETERS.iter().find(|parameter| parameter.name == name.replace('_', "-"));
        let parameter = known.ok_or_else(|| {
            let names: Vec<_> = PARAMETERS.iter().map(|one| format!("'{}'", one.name.replace('-', "_"))).collect();
            Failure::argument("settings", format!("there is no setting '{name}'")).expecting(names.join(", "))
        })?;
        if value.is_none() {
            continue;
        }
        let refused =
            |expected: &str| Ok::<_, PyErr>(unusable(&format!("settings[{name:?}]"), &value)?.expecting(expected));
        let value = match parameter.kind {
            Kind::Number(range) => match value.extract() {
                Ok(number) => Value::Number(number),
                Err(_) => return Err(refused(range.in_words())?.into()),
            },
            Kind::Count { .. } => match value.extract() {
                Ok(count) => Value::Count(count),
                Err(_) => return Err(refused("a whole number")?.into()),
            },
            Kind::OneOf(names) => match value.extract::<String>() {
                Ok(word) if names().iter().any(|(name, _)| *name == word) => Value::Name(word),
                _ => {
                    let words: Vec<_> = names().iter().map(|(name, _)| format!("'{name}'")).collect();
                    return Err(refused(&words.join(", "))?.into());
                }
            },
            Kind::Flag => match value.extract() {
                Ok(true) => Value::Flag,
                Ok(false) => continue,
                Err(_) => return Err(refused("True or False")?.into()),
            },
            Kind::Penalty => match value.extract::<String>().ok().and_then(|text| text.parse().ok()) {
                Some(penalty) => Value::Penalty(penalty),
                None => return Err(refused("'l1:NUMBER', 'elastic-net:NUMBER:RIDGE' or another penalty")?.into()),
            },
        };
        parameter
            .set(&mut settings, value)
            .map_err(|error| Failure { field: Some(format!("settings[{name:?}]")), ..Failure::from(error) })?;
    }
    Ok(settings)
}

fn encoding(options: &Options<'_, '_>) -> PyResult<Encoding> {
    let unit_scale = options.word("scale", &[("unit-rows", false), ("unit", true)])?.unwrap_or(false);
    let row_norm = options.one_of("row_norm", words::ROW_NORM)?;
    let fourier = match options.get::<u32>("fourier")? {
        None => None,
        Some(features) => {
            let usual = FourierFeatures::new(features);
            let bandwidth = options.get("fourier_bandwidth")?.unwrap_or(usual.bandwidth);
            Some(FourierFeatures { bandwidth, seed: options.get("fourier_seed")?.unwrap_or(usual.seed), ..usual })
        }
    };
    match (unit_scale, row_norm) {
        (true, row_norm) => Ok(Encoding { fourier, ..Encoding::unit_scale(row_norm.unwrap_or(RowNorm::Clip)) }),
        (false, None) => Ok(Encoding { fourier, ..Encoding::UNIT_ROWS }),
        (false, Some(_)) => {
            let message = "scale='unit-rows' makes every row of norm 1 already";
            Err(Failure::argument("row_norm", message).expecting("scale='unit', or no row_norm").into())
        }
    }
}

/// Returns the stated functions of numeric columns; `None` leaves them to the algorithm.
fn feature_map(options: &Options<'_, '_>) -> PyResult<Option<FeatureMap>> {
    let scale = options.one_of("coordinate", words::COORDINATE)?;
    let Some(curves) = options.get::<u32>("curves")? else {
        return Ok(scale.map(|scale| FeatureMap { scale, ..FeatureMap::curves(0) }));
    };
    let map = FeatureMap::curves(curves);
    Ok(Some(FeatureMap { scale: scale.unwrap_or(map.scale), pairs: options.get("pairs")?.unwrap_or(false), ..map }))
}
