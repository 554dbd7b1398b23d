//! `dp reproduce export`: writes the prepared rows as CSV, so that other programs can train on the same data.

use std::io::Write;
use std::path::PathBuf;

use dp_data::{Examples, Rows};
use dp_reproduce::{DataSet, Records, dataset};
use serde_json::json;

use super::{failure, known, named, refuse_missing};
use crate::args::ReproduceExportArgs;
use crate::atomic::{self, PendingFile};
use crate::commands::dry_run::Foreseen;
use crate::failure::Failure;
use crate::output::{Console, write_failure};

const SCHEMA: &str = "dp.reproduce-export/1";

pub(super) fn run(args: &ReproduceExportArgs, console: &Console) -> Result<(), Failure> {
    let sets = chosen(args)?;
    let path = |set: DataSet, part: &str| args.out.join(format!("{set}-{part}.csv"));
    let paths: Vec<PathBuf> = sets.iter().flat_map(|&set| [path(set, "train"), path(set, "test")]).collect();
    if args.dry_run {
        let names: Vec<String> =
            paths.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
        let mut foreseen = Foreseen::in_folder(SCHEMA, &args.out, &names, args.force)?;
        let files = sets.iter().flat_map(|set| set.files());
        foreseen.reads = files.map(|file| atomic::shown(&args.data.join(file.name))).collect();
        return foreseen.print(console);
    }
    std::fs::create_dir_all(&args.out).map_err(|error| write_failure(&error, &atomic::shown(&args.out)))?;
    for path in &paths {
        atomic::check(path, args.force)?;
    }
    for &set in &sets {
        let prepared = set.load(&args.data).map_err(|error| failure(&error))?;
        for (part, examples) in [("train", &prepared.train), ("test", prepared.held_out())] {
            write(examples, path(set, part), args.force)?;
        }
    }
    let written: Vec<String> = paths.iter().map(|path| atomic::shown(path)).collect();
    let text: String = written.iter().map(|file| format!("{file}\n")).collect();
    console.result(&json!({ "schema": SCHEMA, "files": written }), &text)
}

/// Returns the requested data sets, or all whose files exist.
fn chosen(args: &ReproduceExportArgs) -> Result<Vec<DataSet>, Failure> {
    if args.set.is_empty() {
        let with_rows = known().filter(|set| set.records() == Records::Rows);
        return Ok(with_rows.filter(|&set| dataset::missing(&args.data, [set]).is_empty()).collect());
    }
    let chosen = named(&args.set)?;
    if let Some(set) = chosen.iter().find(|set| set.records() != Records::Rows) {
        return Err(Failure::usage("--set", format!("`{set}` does not consist of rows"))
            .expected("a data set of rows")
            .help("other programs read its files themselves"));
    }
    chosen.iter().try_for_each(|&set| refuse_missing(&args.data, [set]))?;
    Ok(chosen)
}

/// Writes one line per row: the target, then the features.
fn write(examples: &Examples<f64>, path: PathBuf, force: bool) -> Result<(), Failure> {
    let mut file = PendingFile::create(&path, force)?;
    let block = examples.block();
    let failed = |error: std::io::Error| write_failure(&error, &atomic::shown(&path));
    if let Rows::Dense { values, dim } = block.rows {
        let header: Vec<String> = (0..dim).map(|i| format!("x{i}")).collect();
        writeln!(file, "target,{}", header.join(",")).map_err(failed)?;
        for (row, target) in values.chunks_exact(dim).zip(block.targets) {
            write!(file, "{target}").map_err(failed)?;
            for value in row {
                write!(file, ",{value}").map_err(failed)?;
            }
            writeln!(file).map_err(failed)?;
        }
    }
    file.commit()
}
