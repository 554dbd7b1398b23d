//! Held-out accuracy of `auto` on feature maps: lines and curves of numeric columns.
//!
//! ```text
//! cargo run --release -p benches --bin curves -- [--data FILE LABEL POSITIVE | --label FILE LABEL]... [--drop COLUMN]...
//!     [--rows 50000] [--maps auto,linear:0,by-range:4+pairs] [--epsilons 0.1,0.5,2] [--deltas 1e-8] [--runs 5] [--wide 1]
//!     [--base-rate]
//! ```
//!
//! `+fourier:NUMBER` after a map, or after `auto`, adds random Fourier features; `auto+try:NUMBER` trains without and with them and
//! chooses privately (`dp train --fourier NUMBER --fourier-if-better`).
//! `--label` takes a label of several classes or a number, as a draft of the schema finds it.
//! `--drop` applies to the preceding file, `--rows` takes that many rows evenly spread over each. Ranges and categories come
//! from the table (assumed public); `--wide 3` makes each range three times as wide around its middle, or from 0 if it starts
//! there. Run `s` tests fold `s mod 5` of five. A line of the output is one cell: the table, epsilon, delta, the map, the
//! number of features, then means and standard errors of accuracy, AUC, log loss and balanced accuracy (two classes), of accuracy
//! (several), or of the explained share of variance (numbers). `--base-rate` decides at the noisy base rate instead of one half.
//! At the end, on standard error: the regret of `auto` in the first figure, against the best of the other maps of each cell in
//! hindsight and against lines.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;

use benches::cross_validation::{mean_and_error, quality, score};
use dp::metrics::ScoredLabels;
use dp_accountant::{AdjacencyKind, Epsilon, ZeroOut};
use dp_data::draft::{DraftOptions, draft};
use dp_data::encode::{Encoder, FeatureMap, FourierFeatures};
use dp_data::read::{CsvOptions, Input, load_coordinates};
use dp_data::schema::{Column, ColumnKind, LabelKind, Scale, Schema};
use dp_data::{Alternatives, Encoding, Examples, RowSource, Workers};
use dp_mechanisms::{ReleaseRng, SeededRng};
use dp_optim::catalogue::{self, Request, Settings};
use dp_optim::engine::Control;
use dp_optim::recipes::{AnyRecipe, AtBaseRate, Budget, Recipe, TrainsAny};
use dp_optim::{Auto, DerivesModel as _, MemorySource};

/// A file as named on the command line.
struct File {
    path: String,
    label: String,
    /// The positive class; `None` for several classes or a number.
    positive: Option<String>,
    drop: Vec<String>,
}

/// The functions of columns, with their name.
struct NamedMap {
    name: String,
    /// `None` is the choice of `auto`.
    map: Option<FeatureMap>,
    fourier: Option<FourierFeatures>,
    /// Fourier features that are tried, beside the choice of `auto`.
    tried: Option<FourierFeatures>,
}

struct Options {
    rows: usize,
    maps: Vec<NamedMap>,
    epsilons: Vec<f64>,
    deltas: Vec<f64>,
    runs: u64,
    wide: f64,
    base_rate: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: Vec<File> = Vec::new();
    let mut options = Options {
        rows: usize::MAX,
        maps: maps("auto,linear:0,by-range:2,by-range:4,by-range:6")?,
        epsilons: vec![0.1, 0.5, 2.0],
        deltas: vec![1e-8],
        runs: 5,
        wide: 1.0,
        base_rate: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let numbers = |text: String| text.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>();
        match argument.as_str() {
            "--data" => {
                files.push(File { path: value()?, label: value()?, positive: Some(value()?), drop: Vec::new() });
            }
            "--label" => files.push(File { path: value()?, label: value()?, positive: None, drop: Vec::new() }),
            "--drop" => files.last_mut().ok_or("--drop follows a file")?.drop.push(value()?),
            "--rows" => options.rows = value()?.parse()?,
            "--maps" => options.maps = maps(&value()?)?,
            "--epsilons" => options.epsilons = numbers(value()?)?,
            "--deltas" => options.deltas = numbers(value()?)?,
            "--runs" => options.runs = value()?.parse()?,
            "--wide" => options.wide = value()?.parse()?,
            "--base-rate" => options.base_rate = true,
            other => return Err(format!("{other} is not known; the source says what is").into()),
        }
    }
    println!(
        "table,n,columns,others,epsilon,delta,map,features,accuracy,error,auc,error,log_loss,error,balanced,error"
    );
    let mut cells = Vec::new();
    files.iter().try_for_each(|file| report(file, &options, &mut cells))?;
    regrets(&cells);
    Ok(())
}

/// The first figure of each map of a cell.
type Cell = Vec<(String, f64)>;

/// Prints mean and maximum regret of `auto`.
fn regrets(cells: &[Cell]) {
    let of = |cell: &Cell, against: &dyn Fn(&str) -> bool| -> Option<f64> {
        let (_, auto) = cell.iter().find(|(name, _)| name == "auto")?;
        let others = cell.iter().filter(|(name, _)| against(name)).map(|(_, figure)| *figure);
        Some(others.reduce(f64::max)? - auto)
    };
    for (against, is) in [
        ("the best other map", &(|name: &str| name != "auto") as &dyn Fn(&str) -> bool),
        ("lines", &|name: &str| name == "linear:0"),
    ] {
        let regrets: Vec<f64> = cells.iter().filter_map(|cell| of(cell, is)).collect();
        if !regrets.is_empty() {
            let (mean, error) = mean_and_error(&regrets);
            let most = regrets.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            eprintln!(
                "auto against {against}: mean regret {mean:.4} ({error:.4}), largest {most:.4}, {} cells",
                regrets.len()
            );
        }
    }
}

/// Parses maps such as `by-range:4+pairs`.
fn maps(text: &str) -> Result<Vec<NamedMap>, Box<dyn Error>> {
    text.split(',')
        .map(|text| {
            let (map, fourier) = match text.split_once("+fourier:") {
                Some((map, number)) => (map, Some(FourierFeatures::new(number.parse()?))),
                None => (text, None),
            };
            let name = text.to_owned();
            if let Some(number) = text.strip_prefix("auto+try:") {
                let tried = Some(FourierFeatures::new(number.parse()?));
                return Ok(NamedMap { name, map: None, fourier, tried });
            }
            if map == "auto" {
                return Ok(NamedMap { name, map: None, fourier, tried: None });
            }
            let (scale, functions) =
                map.split_once(':').ok_or("a map is auto, SCALE:COSINES or SCALE:COSINES+pairs")?;
            let scale = match scale {
                "linear" => Scale::Linear,
                "log" => Scale::Log,
                "by-range" => Scale::ByRange,
                other => return Err(format!("{other} is none of linear, log, by-range").into()),
            };
            let (cosines, pairs) = functions.strip_suffix("+pairs").map_or((functions, false), |rest| (rest, true));
            let map = Some(FeatureMap { scale, cosines: cosines.parse()?, pairs });
            Ok(NamedMap { name, map, fourier, tried: None })
        })
        .collect()
}

fn schema(file: &File, wide: f64) -> Result<Schema, Box<dyn Error>> {
    let mut options = DraftOptions::new(&file.label);
    options.positive = file.positive.clone();
    let drafted = draft(Input::open(&file.path)?, &options, &CsvOptions::default())?.schema;
    let widened = |mut column: Column| {
        if file.drop.contains(&column.name) {
            (column.kind, column.format) = (ColumnKind::Drop, None);
        }
        if let ColumnKind::Numeric { min, max, .. } = &mut column.kind
            && wide > 1.0
        {
            let extra = (*max - *min) * (wide - 1.0);
            if *min >= 0.0 && *min < 0.1 * *max {
                (*min, *max) = (0.0, *max + extra);
            } else {
                (*min, *max) = (*min - 0.5 * extra, *max + 0.5 * extra);
            }
        }
        column
    };
    let columns = drafted.columns().iter().cloned().map(widened).collect();
    let mut schema = Schema::new(columns, drafted.label().clone(), drafted.missing().to_vec())?;
    schema.assume_all_public();
    Ok(schema)
}

fn report(file: &File, options: &Options, cells: &mut Vec<Cell>) -> Result<(), Box<dyn Error>> {
    let name = file.path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
    let name = if file.positive.is_some() { name.to_owned() } else { format!("{name}:{}", file.label) };
    let schema = schema(file, options.wide)?;
    let two_classes = matches!(schema.label().kind, LabelKind::TwoClasses { .. });
    let plain = Encoder::new(&schema, Encoding::UNIT_ROWS)?;
    let (coordinates, _) = load_coordinates::<f64>(Input::open(&file.path)?, &plain, &CsvOptions::default())?;
    let columns = plain.free_columns();
    let other_features = plain.dim() - 1 - columns;
    let entry = catalogue::find("auto").ok_or("auto is in the catalogue")?;
    let settings = Settings::default();
    let loss = dp::training::usual_loss(plain.label())?;
    let n = coordinates.len().min(options.rows);
    for &epsilon in &options.epsilons {
        for &delta in &options.deltas {
            let budget = Budget::new(epsilon, delta)?;
            let mut cell = Cell::new();
            for NamedMap { name: map_name, map, fourier, tried } in &options.maps {
                if options.base_rate && tried.is_some() {
                    return Err("--base-rate is not for models that are compared".into());
                }
                let (train_n, dim) = ((n - n / 5) as u64, plain.dim() as u64);
                let request = Request::new(&settings, loss, budget, AdjacencyKind::ZeroOut, train_n, dim);
                let joint = Encoder::new(&schema, Encoding { fourier: *fourier, ..Encoding::UNIT_ROWS })?;
                let training = tried
                    .map(|tried| dp::Training::of_budget(budget).under(AdjacencyKind::ZeroOut).trying_fourier(tried));
                let encoder = match (map, &training) {
                    (Some(map), _) => joint.with_map(*map)?,
                    (None, None) => dp::training::with_chosen_map(entry, &request, &joint)?,
                    (None, Some(training)) => training.mapped(training.task(joint.label())?, &joint, train_n)?,
                };
                let encoded = |encoder: &Encoder| coordinates.clone().encode(encoder, Workers::available());
                let examples = encoded(&encoder)?;
                let others = match tried {
                    Some(_) => Some(encoded(&encoder.with_fourier(*tried)?)?),
                    None => None,
                };
                let taken =
                    |examples: &Examples<f64>, fold: u32, test: bool| -> Result<Examples<f64>, Box<dyn Error>> {
                        let places = (0..n as u64).filter(|i| (i % 5 == u64::from(fold)) == test);
                        let places = places.map(|i| u32::try_from(i * examples.len() as u64 / n as u64));
                        Ok(examples.gather(&places.collect::<Result<Vec<_>, _>>()?)?)
                    };
                let mut figures: [Vec<f64>; 4] = Default::default();
                for fold in 0..options.runs.min(5) as u32 {
                    let folds = |examples| {
                        Ok::<_, Box<dyn Error>>((taken(examples, fold, false)?, taken(examples, fold, true)?))
                    };
                    let fold_of_examples = folds(&examples)?;
                    let fold_of_others = others.as_ref().map(folds).transpose()?;
                    for run in (u64::from(fold)..options.runs).step_by(5) {
                        let of_both = training.as_ref().zip(fold_of_others.as_ref());
                        let found = train(encoder.label(), &fold_of_examples, of_both, budget, options.base_rate, run)?;
                        figures.iter_mut().zip(found).for_each(|(list, figure)| list.push(figure));
                    }
                }
                cell.push((map_name.clone(), mean_and_error(&figures[0]).0));
                let shown = figures.iter().take(if two_classes { 4 } else { 1 }).map(|values| {
                    let (mean, error) = mean_and_error(values);
                    format!("{mean:.4},{error:.4}")
                });
                println!(
                    "{name},{train_n},{columns},{other_features},{epsilon},{delta},{map_name},{},{}",
                    encoder.dim(),
                    shown.collect::<Vec<_>>().join(",")
                );
            }
            cells.push(cell);
        }
    }
    Ok(())
}

/// Records for training and for testing.
type Fold = (Examples<f64>, Examples<f64>);

/// Returns accuracy, AUC, log loss and balanced accuracy, where they are defined, or the explained share of variance.
fn train(
    label: &dp_data::schema::Label,
    (train, test): &Fold,
    of_both: Option<(&dp::Training, &Fold)>,
    budget: Budget,
    base_rate: bool,
    seed: u64,
) -> Result<[f64; 4], Box<dyn Error>> {
    let loss = dp::training::usual_loss(label)?;
    let (n, dim) = (train.len() as u64, train.dim() as u64);
    let choose =
        |budget| Ok::<_, dp_optim::Error>(Auto::new(loss).choose(n, dim, budget, AdjacencyKind::ZeroOut)?.recipe);
    let recipe: AnyRecipe = if let Some((training, _)) = of_both {
        let shape = dp::training::Shape { n, dim, sparse: false };
        training.recipe(training.task(label)?, shape)?.recipe
    } else if base_rate {
        let epsilon = Epsilon::new(budget.epsilon.get() * (1.0 - AtBaseRate::<AnyRecipe>::SHARE))?;
        AtBaseRate::new(choose(Budget { epsilon, ..budget })?).into()
    } else {
        choose(budget)?
    };
    let plan = recipe.plan_copies::<ZeroOut>(n, dim, budget, 1)?;
    let mut source = MemorySource::new(train.clone(), 1.0, loss.usual_target_bound());
    let (mut rng, mut control) =
        (SeededRng::new(1 + seed), Control { workers: Workers::available(), ..Control::default() });
    let source: &mut dyn RowSource<f64> = &mut source;
    let trained = match of_both {
        None => ZeroOut::train_any(&plan, source, &mut rng.lend(), &mut control)?,
        Some((_, (other, _))) => {
            let mut other = MemorySource::new(other.clone(), 1.0, loss.usual_target_bound());
            let both = &mut Alternatives::new(source, vec![&mut other]);
            ZeroOut::train_any(&plan, both, &mut rng.lend(), &mut control)?
        }
    };
    let mut weights: Vec<f64> = trained.weights.into_inner();
    let test = match of_both {
        Some((_, (_, other))) if trained.derivation.choice().is_some_and(|choice| choice.chosen == Some(1)) => other,
        _ => test,
    };
    let threshold = if base_rate { weights.pop() } else { None };
    if loss.classes() != Some(2) {
        return Ok([quality(loss, test, &weights), f64::NAN, f64::NAN, f64::NAN]);
    }
    let block = test.block();
    let mut scored = ScoredLabels::at(threshold.unwrap_or_default());
    for i in 0..block.len() {
        scored.push(score(&block, i, &weights), block.targets[i] > 0.0)?;
    }
    let metrics = scored.metrics().ok_or("no records")?;
    let defined = |figure: Option<f64>| figure.unwrap_or(f64::NAN);
    Ok([metrics.accuracy, defined(metrics.auc), metrics.log_loss, defined(metrics.balanced_accuracy)])
}
