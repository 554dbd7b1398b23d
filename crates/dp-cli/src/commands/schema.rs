//! `dp schema`: drafts a schema from a table, for review.

use std::path::{Path, PathBuf};

use dp::wording::{self, one_line};
use dp_data::Workers;
use dp_data::draft::{self, DraftOptions};
use dp_data::read::{CsvOptions, CsvReader, Input};
use serde::Serialize;

use super::dry_run::Foreseen;
use crate::args::{FileName, Format, GlobalArgs, SchemaArgs};
use crate::atomic;
use crate::failure::Failure;
use crate::input::{TypedTable, check_distinct, conflict, csv_options, label_hint};
use crate::output::Console;

/// The configuration of `dp schema`.
#[derive(Debug, Clone)]
pub struct SchemaConfig {
    /// The table; `-` for standard input.
    pub data: FileName,
    /// The table, if its cells have types.
    pub typed: Option<TypedTable>,
    /// The CSV dialect.
    pub csv: CsvOptions,
    /// The label column and its known facts.
    pub options: DraftOptions,
    /// The output file; `None` for standard output.
    pub out: Option<PathBuf>,
    /// True if an existing file is replaced.
    pub force: bool,
    /// The threads that read the file.
    pub workers: Workers,
}

/// The result of drafting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.schema/1`.
    pub schema: &'static str,
    /// The draft as TOML.
    pub draft: String,
    /// The file that it was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The columns to review, including the label.
    pub unreviewed: Vec<String>,
}

impl SchemaConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.value`, `usage.conflict`.
    pub fn new(args: &SchemaArgs, global: &GlobalArgs) -> Result<Self, Failure> {
        let mut options = DraftOptions::default();
        options.label = args.label.clone();
        options.positive = args.positive.clone();
        options.negative = args.negative.clone();
        options.hint = label_hint(&args.classes, &args.label_range)?;
        if options.positive.is_some() && options.positive == options.negative {
            return Err(conflict("--negative", "--positive and --negative are the same value"));
        }
        let out = args.out.clone().filter(|out| out.as_os_str() != "-");
        let format = Some(Format::of(&args.data)).filter(|format| format.is_table()).unwrap_or(Format::Csv);
        let typed = TypedTable::new(&args.data, format, args.table.as_deref(), args.query.as_deref())?;
        if let Some(out) = &out {
            let data = typed.as_ref().map_or(Some(Path::new(&args.data)), TypedTable::path);
            let data = data.map(|data| ("FILE", data));
            check_distinct(&data.into_iter().chain([("--out", out.as_path())]).collect::<Vec<_>>())?;
        }
        options.written_to = typed.as_ref().is_some_and(TypedTable::is_database);
        let (csv, workers) = (csv_options(&args.text)?, global.workers());
        Ok(Self { data: args.data.clone(), typed, csv, options, out, force: args.force, workers })
    }
}

/// Drafts, writes and prints.
///
/// # Errors
/// Errors in the file, and output that cannot be written.
pub fn execute(args: &SchemaArgs, global: &GlobalArgs, console: &Console) -> Result<(), Failure> {
    let config = SchemaConfig::new(args, global)?;
    if args.dry_run {
        return dry_run(&config)?.print(console);
    }
    let outcome = run(&config, console)?;
    let text = match &outcome.file {
        Some(file) => format!(
            "drafted {file}: review {} entries, then set `reviewed = true` at each\nnext: dp train --data {}{} --schema \
             {file} --epsilon 1 --out model.json",
            outcome.unreviewed.len(),
            args.data,
            args.table
                .as_ref()
                .map_or_else(String::new, |table| format!(" --table '{}'", table.replace('\'', "'\\''"))),
        ),
        None => outcome.draft.clone(),
    };
    console.result(&outcome, &text)
}

/// Checks the header and the output.
///
/// # Errors
/// Errors in the header of the file, and output that cannot be written.
pub fn dry_run(config: &SchemaConfig) -> Result<Foreseen, Failure> {
    let from_data = |error: dp_data::DataError| Failure::from_data(&error);
    let label = config.options.label.as_deref();
    match &config.typed {
        Some(table) => {
            let table = table.open()?;
            label.map(|label| table.position(label)).transpose().map_err(from_data)?;
        }
        None => {
            let mut input = Input::open(&config.data).map_err(from_data)?;
            let csv = draft::csv_options(&mut input, config.csv).map_err(from_data)?;
            let reader = CsvReader::new(input, csv).map_err(from_data)?;
            label.map(|label| reader.position(label)).transpose().map_err(from_data)?;
        }
    }
    let writes: Vec<&Path> = config.out.as_deref().into_iter().collect();
    Foreseen::new("dp.schema/1", &[&config.data], &writes, config.force)
}

/// Drafts and writes.
///
/// # Errors
/// Errors in the file, and output that cannot be written.
pub fn run(config: &SchemaConfig, console: &Console) -> Result<Outcome, Failure> {
    if let Some(out) = &config.out {
        atomic::check(out, config.force)?;
    }
    let from_data = |error: dp_data::DataError| Failure::from_data(&error);
    let input = match &config.typed {
        Some(table) => Input::from_table(table.open()?),
        None => Input::open(&config.data).map_err(from_data)?,
    };
    let input = input.with_workers(config.workers);
    let drafted = draft::draft(input, &config.options, &config.csv).map_err(from_data)?;
    let toml = drafted.to_toml();
    let unreviewed: Vec<String> = drafted.schema.unreviewed().into_iter().map(str::to_owned).collect();
    console.warn(&format!(
        "ranges, categories and label values were TAKEN FROM THE DATA and must be reviewed before training\n\
         replace them by what is publicly known to hold for everyone (a range of ages, a list of trades), then set\n\
         `reviewed = true`; what you leave as it is would be published with the model\n\
         to review: {}",
        wording::names(&unreviewed)
    ));
    for note in drafted.notes.iter().filter(|note| note.is_open) {
        console.warn(&format!("column `{}`: {}", one_line(&note.column), one_line(&note.text)));
    }
    if let Some(out) = &config.out {
        atomic::write(out, config.force, toml.as_bytes())?;
    }
    Ok(Outcome { schema: "dp.schema/1", draft: toml, file: config.out.as_deref().map(atomic::shown), unreviewed })
}
