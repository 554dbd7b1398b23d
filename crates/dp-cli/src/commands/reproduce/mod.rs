//! `dp reproduce`: repeats experiments of the literature; stores, tabulates and draws the results.

mod export;
mod list;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use dp_reproduce::claim::Finding;
use dp_reproduce::figures::{self, Effort, MADE_UP_LISTS, table};
use dp_reproduce::report::{self, Document};
use dp_reproduce::{Cell, DataSet, Error, Figure, Results, Runner, Store, dataset};
use serde_json::json;

use super::dry_run::Foreseen;
use crate::args::{GlobalArgs, ReproduceArgs, ReproduceJob, ReproduceRunArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::{Failure, out_of_memory};
use crate::output::{Console, write_failure};
use crate::progress::{Counted, Progress};

const SCHEMA: &str = "dp.reproduce/1";

/// The record of finished runs in the output folder.
const RUNS: &str = "runs.csv";

/// Runs, writes and prints.
///
/// # Errors
/// `usage.value` for an unknown figure, `reproduce.*`, or output that cannot be written.
pub fn execute(args: &ReproduceArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    match &args.job {
        Some(ReproduceJob::List(args)) => list::run(args, console),
        Some(ReproduceJob::Export(args)) => export::run(args, console),
        Some(ReproduceJob::Table(args)) => run_table(args, global, console),
        None => run_figures(&args.figures, &args.run, global, console),
    }
}

const fn effort(quick: bool) -> Effort {
    if quick { Effort::Quick } else { Effort::Full }
}

fn run_figures(
    names: &[String],
    args: &ReproduceRunArgs,
    global: &GlobalArgs,
    console: &Console,
) -> Result<(), Failure> {
    let figures = figures::named(names, effort(args.quick)).map_err(|error| failure(&error))?;
    let repetitions = |figure: &Figure| args.repetitions.unwrap_or(figure.repetitions);
    let cells = figures.iter().flat_map(|figure| figure.cells(repetitions(figure))).collect();
    let cells = chosen(cells, args)?;
    let name = |figure: &Figure| report::ENDS.iter().map(|end| format!("{}{end}", figure.id)).collect::<Vec<_>>();
    let files = figures.iter().flat_map(name).collect();
    let Some(store) = run_cells(&cells, files, args, global, console)? else { return Ok(()) };
    let (mut written, mut text, mut of_figures) = (Vec::new(), String::new(), Vec::new());
    for figure in &figures {
        let repetitions = repetitions(figure);
        let results = Results::collect(figure, &store, repetitions);
        let documents = report::documents(&results, &store, repetitions).map_err(|error| failure(&error))?;
        let files = write(&args.out, &documents)?;
        let findings = report::findings(&results);
        text.push_str(&describe(figure, &findings, &args.out));
        of_figures.push(json!({
            "figure": figure.id,
            "title": figure.title,
            "files": files,
            "claims": findings.iter().map(finding_json).collect::<Vec<_>>(),
        }));
        written.extend(files);
    }
    let value = json!({
        "schema": SCHEMA,
        "runs": atomic::shown(&args.out.join(RUNS)),
        "figures": of_figures,
        "files": written,
        "private_release": false,
    });
    console.result(&value, &text)
}

fn run_table(args: &ReproduceRunArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let effort = effort(args.quick);
    let repetitions = args.repetitions.unwrap_or(table::repetitions(effort));
    let files = vec![format!("{}.md", table::ID), format!("{}.csv", table::ID)];
    let cells = chosen(table::cells(effort, repetitions), args)?;
    let Some(store) = run_cells(&cells, files, args, global, console)? else {
        return Ok(());
    };
    let rows = table::rows(effort, &store, repetitions);
    // Keep only the refusals of requested experiments.
    let asked: BTreeSet<String> = cells.iter().map(|cell| cell.experiment.to_string()).collect();
    let mut without_result = table::without_result(effort, &rows);
    without_result.retain(|setting| asked.contains(&setting.to_string()));
    let markdown = table::markdown(&rows, &without_result);
    let documents = [
        Document { name: format!("{}.md", table::ID), content: markdown.clone().into_bytes() },
        Document { name: format!("{}.csv", table::ID), content: table::csv(&rows).into_bytes() },
    ];
    let written = write(&args.out, &documents)?;
    let of_rows = rows.iter().map(|row| {
        let of_sample = |sample: dp_reproduce::Sample| json!({"mean": sample.mean, "std_error": sample.std_error()});
        json!({
            "setting": row.setting.to_string(),
            "n": row.accuracy.n,
            "accuracy": of_sample(row.accuracy),
            "objective": of_sample(row.objective),
            "seconds": of_sample(row.seconds),
        })
    });
    let value = json!({
        "schema": "dp.reproduce-table/1",
        "rows": of_rows.collect::<Vec<_>>(),
        "without_result": without_result.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "files": written,
        "private_release": false,
    });
    console.result(&value, &markdown)
}

/// Returns the data sets that have a name.
fn known() -> impl Iterator<Item = DataSet> {
    DataSet::FROM_FILES.into_iter().chain([DataSet::Sphere, DataSet::SparseModel, MADE_UP_LISTS])
}

/// Returns the data sets of these names.
///
/// # Errors
/// `usage.value` for an unknown name.
fn named(names: &[String]) -> Result<Vec<DataSet>, Failure> {
    let find = |name: &String| {
        known().find(|set| set.to_string() == *name).ok_or_else(|| {
            let names: Vec<String> = known().map(|set| set.to_string()).collect();
            Failure::usage("--set", format!("there is no data set `{name}`")).expected(names.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// Returns the runs of the requested algorithms on the requested data sets; an empty request selects all.
///
/// # Errors
/// `usage.value` for a name that is unknown or not among the runs.
fn chosen(mut cells: Vec<Cell>, args: &ReproduceRunArgs) -> Result<Vec<Cell>, Failure> {
    let sets = named(&args.set)?;
    if !sets.is_empty() {
        let there = cells.iter().map(|cell| cell.experiment.data()).collect();
        all_among(&sets, &there, "--set", "the data sets of what is to be run")?;
        cells.retain(|cell| sets.contains(&cell.experiment.data()));
    }
    if !args.algorithm.is_empty() {
        let there = cells.iter().map(|cell| cell.experiment.algorithm()).collect();
        all_among(&args.algorithm, &there, "--algorithm", "the algorithms of what is to be run")?;
        cells.retain(|cell| args.algorithm.contains(&cell.experiment.algorithm()));
    }
    Ok(cells)
}

/// Rejects a name that is not in `there`.
fn all_among<T: Ord + ToString>(
    names: &[T],
    there: &BTreeSet<T>,
    flag: &'static str,
    what: &str,
) -> Result<(), Failure> {
    names.iter().find(|&name| !there.contains(name)).map_or(Ok(()), |missing| {
        let names: Vec<String> = there.iter().map(ToString::to_string).collect();
        Err(Failure::usage(flag, format!("`{}` is not among {what}", missing.to_string())).expected(names.join(", ")))
    })
}

/// Runs what is missing in the record of the output folder; `None` after a dry run, which has printed its result.
fn run_cells(
    cells: &[Cell],
    mut files: Vec<String>,
    args: &ReproduceRunArgs,
    global: &GlobalArgs,
    console: &Console,
) -> Result<Option<Store>, Failure> {
    let sets: BTreeSet<DataSet> = cells.iter().map(|cell| cell.experiment.data()).collect();
    if args.dry_run {
        let names: BTreeSet<&str> = sets.iter().flat_map(|set| set.files()).map(|file| file.name).collect();
        let reads: Vec<String> = names.iter().map(|name| atomic::shown(&args.data.join(name))).collect();
        files.insert(0, RUNS.to_owned());
        let paths: Vec<PathBuf> = files.iter().map(|name| args.out.join(name)).collect();
        let mut foreseen = Foreseen::new(SCHEMA, &reads.iter().map(String::as_str).collect::<Vec<_>>(), &[], true)?;
        foreseen.writes = paths.iter().map(|path| atomic::shown(path)).collect();
        foreseen.print(console)?;
        return Ok(None);
    }
    refuse_missing(&args.data, sets)?;
    std::fs::create_dir_all(&args.out).map_err(|error| write_failure(&error, &atomic::shown(&args.out)))?;
    let mut store = Store::open(&args.out.join(RUNS)).map_err(|error| failure(&error))?;
    if store.unbound() > 0 {
        console.note(&format!(
            "{} runs of an older record were taken over; their lines had no digests, so changes made to them before now \
             cannot be seen",
            store.unbound()
        ));
    }
    let distinct: BTreeSet<String> = cells.iter().filter(|cell| store.get(cell).is_none()).map(Cell::key).collect();
    let total = distinct.len() as u64;
    if total > 0 {
        console.detail(&format!("{total} runs to do, {} done before", store.len()));
    }
    let threads = global.workers().threads();
    let mut shown = Progress::start(global.progress, console, "reproduce", Counted::Runs, Some(total));
    // An interrupt ends the process; every finished run is on disk.
    let cancelled = AtomicBool::new(false);
    let progress = &mut |progress: dp_reproduce::runner::Progress| shown.update(progress.finished, None);
    let mut runner = Runner { folder: &args.data, threads, cancelled: &cancelled, progress };
    let result = runner.run(cells, &mut store);
    shown.finish(total);
    let refused = result.map_err(|error| failure(&error))?;
    if let Some(first) = refused.first() {
        console.warn(&format!(
            "{} runs have no result, because the algorithm refused their numbers; the first is\n{}: {}",
            refused.len(),
            first.run,
            first.reason
        ));
    }
    Ok(Some(store))
}

/// Reports all missing files at once.
fn refuse_missing(folder: &Path, sets: impl IntoIterator<Item = DataSet>) -> Result<(), Failure> {
    let missing = dataset::missing(folder, sets);
    let Some(first) = missing.first() else { return Ok(()) };
    let lines: Vec<String> =
        missing.iter().map(|file| format!("{} ({}; {})", file.name, file.size(), file.origin)).collect();
    Err(Failure::new(
        ExitStatus::Input,
        "reproduce.data",
        format!("{} of the data sets' files are missing", missing.len()),
    )
    .at_file(atomic::shown(&folder.join(first.name)))
    .expected(lines.join("; "))
    .help("put them into the folder that --data names; other compressions of the same content do as well"))
}

/// Writes the documents of a figure, replacing earlier ones.
fn write(folder: &Path, documents: &[Document]) -> Result<Vec<String>, Failure> {
    let paths: Vec<PathBuf> = documents.iter().map(|document| folder.join(&document.name)).collect();
    let files: Vec<(&Path, &[u8])> =
        paths.iter().zip(documents).map(|(path, document)| (path.as_path(), document.content.as_slice())).collect();
    atomic::write_together(&files, true)?;
    Ok(paths.iter().map(|path| atomic::shown(path)).collect())
}

fn describe(figure: &Figure, findings: &[Finding], folder: &Path) -> String {
    let mut text = format!("{}\n", figure.title);
    for finding in findings {
        text.push_str(&format!("  - {}\n", finding.sentence.replace("**", "")));
    }
    text.push_str(&format!("  {}\n\n", atomic::shown(&folder.join(format!("{}.md", figure.id)))));
    text
}

fn finding_json(finding: &Finding) -> serde_json::Value {
    json!({
        "verdict": finding.verdict.to_string(),
        "confirmed": finding.confirmed,
        "compared": finding.compared,
        "sentence": finding.sentence,
    })
}

/// Converts an error of the experiments to a failure.
fn failure(error: &Error) -> Failure {
    let of = |exit, code| Failure::new(exit, code, error.to_string());
    match error {
        Error::UnknownFigure { .. } => {
            Failure::usage("FIGURE", error.to_string()).help("`dp reproduce list` shows them; `all` stands for all")
        }
        Error::MissingFile { path, .. } => of(ExitStatus::Input, "reproduce.data").at_file(atomic::shown(path)),
        Error::Data { file, .. } => of(ExitStatus::Input, "reproduce.data").at_file(file.clone()),
        Error::Record { path, .. } => of(ExitStatus::Input, "reproduce.record")
            .at_file(atomic::shown(path))
            .help("name another folder with --out, or remove the file if its runs are not needed"),
        Error::InUse { path } => of(ExitStatus::Failed, "reproduce.busy")
            .at_file(atomic::shown(path))
            .help("wait until the other run has ended, or name another folder with --out"),
        Error::File { path, source } if source.kind() == ErrorKind::OutOfMemory => {
            out_of_memory("there is no memory for the file").at_file(atomic::shown(path))
        }
        Error::File { path, source } => write_failure(source, &atomic::shown(path))
            .help("runs that had finished are kept; see to the folder, then run the command again"),
        _ => of(ExitStatus::Failed, "reproduce.failed"),
    }
}
