//! `dp rank predict`: a score for each document of each list, in order.

use std::io::Write;
use std::path::Path;

use dp_rank::ranking::LARGEST_GRADE;
use serde::Serialize;

use super::evaluate::check_names;
use super::figures::unmeasured;
use super::lists::{Declared, ListsConfig};
use crate::args::{GlobalArgs, RankPredictArgs};
use crate::atomic::{self, PendingFile};
use crate::commands::dry_run::Foreseen;
use crate::commands::predict::csv_cell;
use crate::failure::Failure;
use crate::files;
use crate::input::conflict;
use crate::output::{Console, STANDARD_OUTPUT, write_failure};

const SCHEMA: &str = "dp.rank-predict/1";

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Outcome {
    schema: &'static str,
    /// Number of lists.
    n: u64,
    /// Number of scored documents.
    documents: u64,
    file: String,
}

/// Scores and prints.
pub(super) fn execute(args: &RankPredictArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let out = args.out.as_deref().filter(|out| out.as_os_str() != "-");
    check_names(&args.model, &args.data, out)?;
    if global.json && out.is_none() && !args.dry_run {
        return Err(conflict("--json", "the scores are CSV and would mix with JSON on standard output")
            .help("add --out FILE, or omit --json"));
    }
    let config = ListsConfig::new("--data", &args.data, &args.lists, global)?;
    let file = files::ranker(&args.model)?;
    if args.dry_run {
        let mut reads = vec![&*args.model];
        reads.extend(args.data.iter().map(|file| &**file));
        let writes: Vec<&Path> = out.into_iter().collect();
        return Foreseen::new(SCHEMA, &reads, &writes, args.force)?.print(console);
    }
    if let Some(out) = out {
        atomic::check(out, args.force)?;
    }
    let ranker = &file.model;
    // Grades are not used: any value is accepted.
    let declared = Declared {
        form: Some(&ranker.input),
        features: Some(ranker.width),
        largest_grade: LARGEST_GRADE,
        grades_needed: false,
    };
    let (_, lists) = config.read(declared, console)?;
    let write = |to: &mut dyn Write, target: &str| -> Result<(), Failure> {
        let written = |error: std::io::Error| write_failure(&error, target);
        writeln!(to, "query,document,score").map_err(written)?;
        let mut scores = ranker.scores().map_err(unmeasured)?;
        for list in lists.iter() {
            let query = csv_cell(list.id());
            for (document, score) in scores.of(list).map_err(unmeasured)?.iter().enumerate() {
                writeln!(to, "{query},{},{score:?}", document + 1).map_err(written)?;
            }
        }
        to.flush().map_err(written)
    };
    let Some(out) = out else {
        let mut stdout = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
        return write(&mut stdout, STANDARD_OUTPUT);
    };
    let mut pending = PendingFile::create(out, args.force)?;
    let shown = atomic::shown(out);
    write(&mut pending, &shown)?;
    pending.commit()?;
    let outcome = Outcome { schema: SCHEMA, n: lists.len() as u64, documents: lists.documents() as u64, file: shown };
    let text = format!("scored {} documents of {} lists: {}", outcome.documents, outcome.n, outcome.file);
    console.result(&outcome, &text)
}
