//! `dp reproduce list`.

use core::fmt::Write;
use std::collections::BTreeSet;

use dp_reproduce::dataset;
use dp_reproduce::figures;
use serde_json::json;

use super::effort;
use crate::args::ReproduceListArgs;
use crate::failure::Failure;
use crate::output::Console;

pub(super) fn run(args: &ReproduceListArgs, console: &Console) -> Result<(), Failure> {
    let figures = figures::all(effort(args.quick));
    let mut text = String::new();
    let mut listed = Vec::new();
    let mut sets = BTreeSet::new();
    for figure in &figures {
        let data = figure.data_sets();
        let keys: BTreeSet<String> = figure.cells(figure.repetitions).iter().map(|cell| cell.key()).collect();
        let _ = writeln!(text, "{:12} {:5} runs  {}", figure.id, keys.len(), figure.title);
        listed.push(json!({
            "name": figure.id,
            "title": figure.title,
            "about": figure.description,
            "runs": keys.len(),
            "repetitions": figure.repetitions,
            "data": data.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }));
        sets.extend(data);
    }
    let files = dataset::missing(std::path::Path::new(""), sets.iter().copied());
    let absent = args.data.as_ref().map(|folder| dataset::missing(folder, sets));
    text.push_str("\nFiles of the data sets:\n");
    let mut of_files = Vec::new();
    for file in &files {
        let missing = absent.as_ref().map(|absent| absent.contains(file));
        let state = match missing {
            None => "",
            Some(true) => "  MISSING",
            Some(false) => "  there",
        };
        let _ = writeln!(text, "  {:36} {:>13}{state}  {}", file.name, file.size(), file.origin);
        of_files.push(json!({"name": file.name, "bytes": file.bytes, "origin": file.origin, "missing": missing}));
    }
    console.result(&json!({"schema": "dp.reproduce-list/1", "figures": listed, "files": of_files}), &text)
}
