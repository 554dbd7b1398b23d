//! `dp check`: all that is wrong with a table under its schema, and a schema that mends it.

use std::fmt::Write as _;
use std::path::Path;

use dp::wording::{self, one_line};
use dp_data::check::{self, Change, Consequence, Findings, Problem};
use dp_data::error::DataErrorKind;
use dp_data::{DataError, Schema};
use serde::Serialize;

use super::dry_run::Foreseen;
use crate::args::{CheckArgs, GlobalArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::input::{InputConfig, Repeatable, check_distinct, check_stdin, conflict};
use crate::output::Console;

/// The configuration of `dp check`.
#[derive(Debug, Clone)]
pub struct CheckConfig {
    /// The flags as given.
    pub args: CheckArgs,
    /// The table.
    pub input: InputConfig,
}

/// The result of a check. All of it depends on the records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.check/1`.
    pub schema: &'static str,
    /// Always false.
    pub publishable: bool,
    /// True if training refuses the records.
    pub refused: bool,
    /// Number of rows that were read.
    pub rows: u64,
    /// The problems: first those for which the records are refused.
    pub problems: Vec<Found>,
    /// Findings that are unusual but used.
    pub notes: Vec<String>,
    /// Columns of the schema that training refuses until they are reviewed.
    pub unreviewed: Vec<String>,
    /// The proposed schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposed>,
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// The code of the error, or `value.clamped`.
    pub code: &'static str,
    /// The column; absent for rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// `refused`, `neutral`, `replaced` or `clamped`; `stopped` if the rest of the table could not be read.
    pub consequence: &'static str,
    /// Number of cells or rows.
    pub count: u64,
    /// The lines of the first of them; of typed cells the numbers of the rows.
    pub lines: Vec<u64>,
    /// The most frequent texts of the cells.
    pub texts: Vec<TextCount>,
    /// The fault.
    pub message: String,
    /// The expected form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// A text and the number of its cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextCount {
    /// The text.
    pub text: String,
    /// Number of cells.
    pub count: u64,
}

/// A proposed schema.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposed {
    /// The file that it was written to.
    pub file: String,
    /// The changes.
    pub changes: Vec<Change>,
    /// The problems for which the records are still refused under it.
    pub left: Vec<Found>,
}

/// Number of texts of a problem that are shown.
const TEXTS: usize = 5;

impl Found {
    fn of(problem: &Problem) -> Self {
        let message = match problem.error() {
            Some(error) => error.public_message().to_owned(),
            None => "values outside the public range".to_owned(),
        };
        // An empty cell says nothing.
        let texts = problem.texts.iter().filter(|(text, _)| !text.is_empty()).take(TEXTS);
        // What the schema provides for needs no advice.
        let error = problem.error().filter(|_| problem.consequence == Consequence::Refused);
        Self {
            code: problem.code(),
            column: problem.column.clone(),
            consequence: match problem.consequence {
                Consequence::Refused => "refused",
                Consequence::Neutral => "neutral",
                Consequence::Replaced => "replaced",
                _ => "clamped",
            },
            count: problem.count,
            lines: problem.examples.iter().map(|example| example.line).collect(),
            texts: texts.map(|(text, count)| TextCount { text: text.clone(), count: *count }).collect(),
            message,
            expected: error.and_then(DataError::expected_text).map(str::to_owned),
            help: error.and_then(DataError::help_text).map(str::to_owned),
        }
    }

    fn of_stop(error: &DataError) -> Self {
        Self {
            code: error.code(),
            column: error.column().map(str::to_owned),
            consequence: "stopped",
            count: 1,
            lines: error.line().into_iter().collect(),
            texts: Vec::new(),
            message: error.public_message().to_owned(),
            expected: error.expected_text().map(str::to_owned),
            help: error.help_text().map(str::to_owned),
        }
    }

    fn all(findings: &Findings) -> Vec<Self> {
        let stopped = findings.stopped.as_ref().map(Self::of_stop);
        stopped.into_iter().chain(findings.problems.iter().map(Self::of)).collect()
    }

    fn is_refusal(&self) -> bool {
        matches!(self.consequence, "refused" | "stopped")
    }
}

impl CheckConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.value`, `usage.conflict`.
    pub fn new(args: &CheckArgs) -> Result<Self, Failure> {
        let input = InputConfig::new(&args.input.data, &args.input.form)?;
        if !input.format.is_table() {
            let name = input.format.name();
            return Err(conflict("--data", format!("{name} has no columns to check"))
                .expected("a table: CSV, Parquet, Excel or a database"));
        }
        check_stdin(&[("--data", Some(&args.input.data)), ("--schema", Some(&args.schema))])?;
        if let Some(fix) = &args.fix_schema {
            let named = input.named().chain([("--schema", Path::new(&args.schema)), ("--fix-schema", fix)]);
            check_distinct(&named.collect::<Vec<_>>())?;
        }
        Ok(Self { args: args.clone(), input })
    }
}

/// Checks and prints; the status tells whether training would refuse the records.
///
/// # Errors
/// Records or a schema that cannot be read, output that cannot be written.
pub fn execute(args: &CheckArgs, global: &GlobalArgs, console: &Console) -> Result<ExitStatus, Failure> {
    let config = CheckConfig::new(args)?;
    if args.dry_run {
        let writes: Vec<&Path> = config.args.fix_schema.as_deref().into_iter().collect();
        files::schema(&config.args.schema)?;
        let reads = [&*config.input.data, &*config.args.schema];
        Foreseen::new("dp.check/1", &reads, &writes, config.args.force)?.print(console)?;
        return Ok(ExitStatus::Success);
    }
    let outcome = run(&config, global)?;
    console.result(&outcome, &text(&outcome, &config))?;
    Ok(if outcome.refused { ExitStatus::Input } else { ExitStatus::Success })
}

/// Checks, and writes the proposal.
///
/// # Errors
/// Records or a schema that cannot be read, output that cannot be written.
pub fn run(config: &CheckConfig, global: &GlobalArgs) -> Result<Outcome, Failure> {
    let schema: Schema = files::schema(&config.args.schema)?;
    if let Some(fix) = &config.args.fix_schema {
        atomic::check(fix, config.args.force)?;
    }
    let records = Repeatable::of(&config.input, config.args.fix_schema.is_some())?;
    let open = || Ok::<_, Failure>(records.open()?.with_workers(global.workers()));
    let from_data = |error: DataError| Failure::from_data(&error);
    let proposal = match &config.args.fix_schema {
        None => None,
        Some(fix) => {
            let proposal = check::propose(open, &schema, &config.input.csv)?;
            atomic::write(fix, config.args.force, proposal.to_toml().as_bytes())?;
            Some((proposal, atomic::shown(fix)))
        }
    };
    let unreviewed = schema.unreviewed().into_iter().map(str::to_owned).collect();
    let findings = check::check(open()?, &schema, &config.input.csv).map_err(|error| {
        let failure = from_data(error);
        let found = proposal.as_ref().map(|(_, file)| format!("see the proposed schema, {file}"));
        found.into_iter().fold(failure, Failure::help)
    })?;
    Ok(Outcome {
        schema: "dp.check/1",
        publishable: false,
        refused: findings.is_refused(),
        rows: findings.rows,
        problems: Found::all(&findings),
        notes: findings.notes,
        unreviewed,
        proposal: proposal.map(|(proposal, file)| Proposed {
            file,
            changes: proposal.changes,
            left: Found::all(&proposal.left).into_iter().filter(Found::is_refusal).collect(),
        }),
    })
}

fn text(outcome: &Outcome, config: &CheckConfig) -> String {
    let mut out = String::new();
    let line = if config.input.typed.is_some() { "row" } else { "line" };
    let verdict = if outcome.refused { "training refuses them" } else { "training accepts them" };
    let (rows, data, schema) = (outcome.rows, one_line(&config.input.data), one_line(&config.args.schema));
    let _ =
        writeln!(out, "{rows} rows of {data} under {schema}: {verdict} (for your eyes only: this depends on the data)");
    for (consequence, title) in [
        ("stopped", "the rest cannot be read"),
        ("refused", "refused"),
        ("neutral", "records without influence, as the schema says"),
        ("replaced", "replaced, as the schema says"),
        ("clamped", "clamped to the public range"),
    ] {
        let mut of_kind = outcome.problems.iter().filter(|found| found.consequence == consequence).peekable();
        if of_kind.peek().is_some() {
            let _ = writeln!(out, "\n{title}");
        }
        write_problems(&mut out, line, of_kind);
    }
    if !outcome.notes.is_empty() {
        out.push_str("\nnotes\n");
        outcome.notes.iter().for_each(|note| out.push_str(&format!("  {}\n", one_line(note))));
    }
    if !outcome.unreviewed.is_empty() {
        let names = wording::names(&outcome.unreviewed);
        let _ = writeln!(out, "\nto review before training\n  {}", one_line(&names));
    }
    if let Some(proposal) = &outcome.proposal {
        write_proposal(&mut out, line, proposal);
    }
    out
}

/// Writes problems; columns that the table does not have become one.
fn write_problems<'f>(out: &mut String, line: &str, problems: impl Iterator<Item = &'f Found>) {
    let (missing, others): (Vec<_>, Vec<_>) =
        problems.partition(|found| found.code == DataErrorKind::CsvMissingColumn.code());
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().filter_map(|found| found.column.clone()).collect();
        let _ = writeln!(out, "  {}: the table lacks {}", missing[0].code, one_line(&wording::names(&names)));
        let _ = writeln!(out, "    do: check the spelling and the delimiter");
    }
    others.into_iter().for_each(|found| write_problem(out, line, found));
}

fn write_problem(out: &mut String, line: &str, found: &Found) {
    let column = found.column.as_ref().map_or_else(String::new, |column| format!(" in `{}`", one_line(column)));
    let lines: Vec<String> = found.lines.iter().map(u64::to_string).collect();
    let more = if found.count > lines.len() as u64 { ", ..." } else { "" };
    let lines = match &lines[..] {
        [] => String::new(),
        [one] if more.is_empty() => format!(", {line} {one}"),
        lines => format!(", {line}s {}{more}", lines.join(", ")),
    };
    let _ = writeln!(out, "  {}{column}: {}{lines}", found.code, found.count);
    let sentence = match &found.expected {
        Some(expected) => format!("{}; expected {expected}", found.message),
        None => found.message.clone(),
    };
    let _ = writeln!(out, "    {}", one_line(&sentence));
    if !found.texts.is_empty() {
        let texts: Vec<String> = found
            .texts
            .iter()
            .map(|TextCount { text, count }| {
                let short: String = text.chars().take(40).collect();
                let cut = if short.len() < text.len() { "…" } else { "" };
                format!("`{}{cut}` {count}", short.escape_debug())
            })
            .collect();
        let _ = writeln!(out, "    cells: {}", texts.join(", "));
    }
    if let Some(help) = &found.help {
        let _ = writeln!(out, "    do: {}", one_line(help));
    }
}

fn write_proposal(out: &mut String, line: &str, proposal: &Proposed) {
    let _ = writeln!(out, "\nproposed in {}", one_line(&proposal.file));
    for Change { column, text } in &proposal.changes {
        let _ = writeln!(out, "  `{}`: {}", one_line(column), one_line(text));
    }
    if proposal.changes.is_empty() {
        out.push_str("  nothing: the schema stays as it is\n");
    }
    if proposal.left.is_empty() {
        out.push_str("  training accepts the records under it, once what changed is reviewed\n");
    } else {
        out.push_str("  still refused under it\n");
        write_problems(out, line, proposal.left.iter());
    }
}
