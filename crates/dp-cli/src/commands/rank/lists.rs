//! Reading of lists: format, files and errors.

use std::error::Error as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use dp::ranker::ListForm;
use dp::wording::one_line;
use dp_data::read::{CsvOptions, CsvReader};
use dp_data::{DataError, Workers};
use dp_rank::QueryLists;
use dp_rank::read::{Column, CsvColumns, ListOptions, Problem, ReadError, SplitLists, load_csv, load_letor};

use crate::args::{FileName, GlobalArgs, ListFormat, ListsArgs};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::{Repeatable, check_distinct, check_stdin, conflict, csv_options, meaningless, missing};
use crate::output::Console;
use crate::progress::{Counted, Progress, ProgressMode};

/// The lists to read, and their format.
#[derive(Debug, Clone)]
pub(super) struct ListsConfig {
    pub(super) files: Vec<FileName>,
    format: Option<ListFormat>,
    query: Option<String>,
    label: Option<String>,
    csv: CsvOptions,
    split_lists: SplitLists,
    progress: ProgressMode,
    workers: Workers,
}

/// The declared facts about lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declared<'a> {
    /// The format that the ranker was trained on.
    pub(super) form: Option<&'a ListForm>,
    /// The number of features.
    pub(super) features: Option<usize>,
    /// The largest grade.
    pub(super) largest_grade: u32,
    /// True if documents must have grades.
    pub(super) grades_needed: bool,
}

/// The lists of each file.
#[derive(Debug)]
pub(super) struct ReadLists {
    pub(super) form: ListForm,
    pub(super) parts: Vec<QueryLists>,
}

impl ListsConfig {
    /// Checks the flags; `flag` is the one that names the files.
    pub(super) fn new(
        flag: &'static str,
        files: &[FileName],
        args: &ListsArgs,
        global: &GlobalArgs,
    ) -> Result<Self, Failure> {
        let streams: Vec<_> = files.iter().map(|file| (flag, Some(&**file))).collect();
        check_stdin(&streams)?;
        let paths: Vec<_> = files.iter().map(|file| (flag, Path::new(file))).collect();
        check_distinct(&paths)?;
        if args.query.is_some() && args.query == args.label {
            return Err(conflict("--label", "--query and --label name the same column"));
        }
        Ok(Self {
            files: files.to_vec(),
            format: args.format.or_else(|| files.first().and_then(|file| by_name(file))),
            query: args.query.clone(),
            label: args.label.clone(),
            csv: csv_options(&args.text)?,
            split_lists: args.split_lists,
            progress: global.progress,
            workers: global.workers(),
        })
    }

    /// Reads each file into lists of its own, all of the same width.
    pub(super) fn read_each(&self, declared: Declared<'_>, console: &Console) -> Result<ReadLists, Failure> {
        let inputs: Vec<Repeatable> = self.files.iter().map(Repeatable::new).collect::<Result<_, _>>()?;
        let form = self.form(inputs.first(), declared.form)?;
        let options = |features| ListOptions {
            features,
            largest_grade: declared.largest_grade,
            split_lists: self.split_lists,
            // A column given by flag must exist.
            grades_needed: declared.grades_needed || self.label.is_some(),
        };
        let read = |input: &Repeatable, features| self.read_one(input, &form, &options(features), console);
        let mut parts: Vec<QueryLists> =
            inputs.iter().map(|input| read(input, declared.features)).collect::<Result<_, _>>()?;
        // The largest index in any file is the width of all: features are public.
        let width = parts.iter().map(QueryLists::width).max();
        for (part, input) in parts.iter_mut().zip(&inputs) {
            if Some(part.width()) != width {
                *part = read(input, width)?;
            }
        }
        Ok(ReadLists { form, parts })
    }

    /// Reads all files into one set of lists.
    pub(super) fn read(&self, declared: Declared<'_>, console: &Console) -> Result<(ListForm, QueryLists), Failure> {
        let ReadLists { form, parts } = self.read_each(declared, console)?;
        let shown: Vec<&str> = self.files.iter().map(|file| &**file).collect();
        let mut parts = parts.into_iter().zip(&self.files);
        let Some((mut lists, _)) = parts.next() else { return Err(nothing(&shown.join(", "))) };
        for (part, file) in parts {
            extend(&mut lists, &part, file)?;
        }
        Ok((form, lists))
    }

    fn read_one(
        &self,
        input: &Repeatable,
        form: &ListForm,
        options: &ListOptions,
        console: &Console,
    ) -> Result<QueryLists, Failure> {
        let opened =
            input.open_metered(|total| Progress::start(self.progress, console, "read", Counted::Bytes, total))?;
        let loaded = match form {
            ListForm::Letor {} => load_letor(opened.with_workers(self.workers), options),
            ListForm::Csv { query, label, features } => {
                let columns =
                    CsvColumns { query: query.clone(), grade: label.clone(), features: Some(features.clone()) };
                load_csv(opened, &columns, &self.csv, options)
            }
        };
        let loaded = loaded.map_err(|error| refused(&error))?;
        if loaded.split_lists > 0 {
            console.warn(&format!(
                "the rows of {} lists did not lie together and were joined; if two users share a name, they now share \
                 one list",
                loaded.split_lists
            ));
        }
        Ok(loaded.lists)
    }

    /// Determines the format: from the flags, the ranker, the file name or the first bytes.
    fn form(&self, first: Option<&Repeatable>, trained_on: Option<&ListForm>) -> Result<ListForm, Failure> {
        let file = self.files.first().map_or("", |file| file);
        let format = match (self.format, first) {
            (Some(format), _) => format,
            (None, Some(input)) => by_first_line(input)?,
            (None, None) => ListFormat::Letor,
        };
        if let Some(trained_on) = trained_on {
            let same = matches!(
                (trained_on, format),
                (ListForm::Letor {}, ListFormat::Letor) | (ListForm::Csv { .. }, ListFormat::Csv)
            );
            if !same {
                let message = format!("the ranker reads {}, and these lists are of another form", trained_on.name());
                return Err(Failure::new(ExitStatus::Input, "model.mismatch", message)
                    .at_file(file)
                    .expected(format!("{}, as in training", trained_on.name()))
                    .help(format!("if it is {}, say so with --format", trained_on.name())));
            }
        }
        match format {
            ListFormat::Letor => {
                let CsvOptions { delimiter, header, encoding, .. } = self.csv;
                let flags = [
                    ("--query", self.query.is_some()),
                    ("--label", self.label.is_some()),
                    ("--delimiter", delimiter.is_some()),
                    ("--header", header.is_some()),
                    ("--encoding", encoding.is_some()),
                ];
                meaningless(&flags, "for LETOR, whose format is fixed")
                    .map_err(|failure| failure.help("omit it, or add --format csv"))?;
                Ok(ListForm::Letor {})
            }
            ListFormat::Csv => self.csv_form(first, trained_on),
        }
    }

    fn csv_form(&self, first: Option<&Repeatable>, trained_on: Option<&ListForm>) -> Result<ListForm, Failure> {
        let (mut query, mut label, mut features) = (self.query.clone(), self.label.clone(), None);
        if let Some(ListForm::Csv { query: of_query, label: of_label, features: names }) = trained_on {
            query = query.or_else(|| Some(of_query.clone()));
            label = label.or_else(|| Some(of_label.clone()));
            features = Some(names.clone());
        }
        let unnamed = |flag: &str, what: &str| {
            missing(flag, format!("which column holds {what} was not said"))
                .expected("the name of a column of the CSV file")
                .help(format!("add {flag} COLUMN"))
        };
        let query = query.ok_or_else(|| unnamed("--query", "the queries"))?;
        let label = label.ok_or_else(|| unnamed("--label", "the grades"))?;
        let features = match (features, first) {
            (Some(features), _) => features,
            (None, None) => Vec::new(),
            (None, Some(input)) => {
                let from_data = |error: DataError| Failure::from_data(&error);
                let reader = CsvReader::new(input.open()?, self.csv).map_err(from_data)?;
                reader.position(&query).map_err(from_data)?;
                reader.position(&label).map_err(from_data)?;
                let features: Vec<_> =
                    reader.header().iter().filter(|name| **name != query && **name != label).cloned().collect();
                if features.is_empty() {
                    return Err(Failure::new(ExitStatus::Input, "lists.width", "no column holds a feature")
                        .at_file(reader.file())
                        .expected(format!("columns besides {query} and {label}"))
                        .help("name the columns of the queries and the grades with --query and --label"));
                }
                features
            }
        };
        Ok(ListForm::Csv { query, label, features })
    }

    /// Returns the number of features if a header states it. Reads no list and does not touch standard input.
    pub(super) fn header_width(&self) -> Result<Option<usize>, Failure> {
        let Some(file) = self.files.first().filter(|file| &***file != "-") else { return Ok(None) };
        Ok(match self.form(Some(&Repeatable::once(file)), None)? {
            ListForm::Csv { features, .. } => Some(features.len()),
            ListForm::Letor {} => None,
        })
    }
}

/// Appends the lists of `file`.
pub(super) fn extend(lists: &mut QueryLists, part: &QueryLists, file: &str) -> Result<(), Failure> {
    lists.extend(part).map_err(|error| {
        let found = match &error {
            dp_rank::Error::DuplicateQuery { id } => format!("query `{}`", one_line(id)),
            other => other.to_string(),
        };
        Failure::new(ExitStatus::Input, "lists.split", "a query has lists in two files")
            .at_file(file)
            .expected("all documents of a query in one file: a list is what is protected, and a query has one")
            .help("put its rows into one file, or give the lists of different users different names")
            .private(None, found)
    })
}

fn nothing(file: &str) -> Failure {
    Failure::new(ExitStatus::Input, "lists.empty", "there is no document in the file")
        .at_file(file)
        .help("check that this is the right file")
}

/// Guesses the format from the name of a file.
fn by_name(file: &str) -> Option<ListFormat> {
    let name = file.to_ascii_lowercase();
    let stem = [".gz", ".xz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let is = |ends: &[&str]| ends.iter().any(|end| stem.ends_with(end));
    if is(&[".csv", ".tsv"]) {
        Some(ListFormat::Csv)
    } else if is(&[".letor", ".svm", ".svmlight", ".libsvm"]) {
        Some(ListFormat::Letor)
    } else {
        None
    }
}

/// Largest number of bytes of a file that are read to detect its format.
const LOOKED_AT: u64 = 1 << 16;

/// Detects the format from the first line: a LETOR line contains `qid:` or starts with a number.
fn by_first_line(input: &Repeatable) -> Result<ListFormat, Failure> {
    let mut reader = BufReader::new(input.open()?.take(LOOKED_AT));
    let mut line = Vec::new();
    loop {
        line.clear();
        // The reader that follows reports read errors.
        if reader.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return Ok(ListFormat::Letor);
        }
        let content = line.split(|&byte| byte == b'#').next().unwrap_or_default();
        let text = String::from_utf8_lossy(content);
        let Some(first) = text.split_whitespace().next() else { continue };
        let letor = text.contains("qid:") || first.parse::<f64>().is_ok() || !text.contains([',', ';', '\t']);
        return Ok(if letor { ListFormat::Letor } else { ListFormat::Csv });
    }
}

/// Converts an error of the readers to a failure.
fn refused(error: &ReadError) -> Failure {
    if let Some(data) = error.source().and_then(|source| source.downcast_ref::<DataError>()) {
        return Failure::from_data(data);
    }
    let problem = error.problem();
    let (code, expected, help) = match problem {
        Problem::NoRows => return nothing(error.file()),
        Problem::MissingQuery => (
            "lists.query",
            "the query that the document belongs to: `grade qid:ID index:value …`, or a cell of the column of queries",
            "add it; documents without a query cannot be ranked",
        ),
        Problem::MissingGrade => (
            "lists.grade",
            "a grade at the beginning of the line: `grade qid:ID index:value …`",
            "add it; documents without grades can only be scored (`dp rank predict`)",
        ),
        Problem::BadGrade { .. } => (
            "lists.grade",
            "a whole number from 0 to the declared largest grade",
            "fix the cell; a finer scale has to be mapped to whole grades beforehand",
        ),
        Problem::GradeTooLarge { .. } => (
            "lists.grade",
            "a whole number from 0 to the declared largest grade",
            "fix the cell, or declare the largest grade in training: --largest-grade",
        ),
        Problem::BadIndex { .. } => (
            "lists.width",
            "a feature number from 1 to the declared number of features",
            "fix the file, or train with another number of --features",
        ),
        Problem::BadFeature { .. } | Problem::DuplicateFeature { .. } => {
            ("lists.feature", "index:value, each index once in a line", "fix the line")
        }
        Problem::BadValue { .. } => ("lists.value", "a finite number", "fill in missing values beforehand"),
        Problem::SplitList { .. } => (
            "lists.split",
            "the rows of a query one after another",
            "sort the file by query; or add --split-lists join, if all rows of a query are one user's",
        ),
        Problem::Options(declared) => {
            return Failure::new(ExitStatus::Input, "lists.width", declared.to_string())
                .at_file(error.file())
                .expected("as many features as were declared")
                .help("check --features and --largest-grade against the file");
        }
        Problem::Cut => {
            ("file.truncated", "a whole compressed file", "fetch the file again and compare its size or checksum")
        }
        Problem::Damaged => {
            ("file.corrupt", "a whole compressed file", "fetch the file again and compare its checksum")
        }
        _ => ("lists.unreadable", "a whole text file, plain, .gz or .xz", "fetch the file again"),
    };
    let found = match problem {
        Problem::BadGrade { found }
        | Problem::GradeTooLarge { found, .. }
        | Problem::BadFeature { found }
        | Problem::BadIndex { found, .. }
        | Problem::DuplicateFeature { found }
        | Problem::BadValue { found } => found.clone(),
        Problem::SplitList { query } => format!("query {query}"),
        Problem::Unreadable(text) => text.clone(),
        Problem::Cut => "the end of the file".to_owned(),
        _ => "nothing".to_owned(),
    };
    let failure = Failure::new(ExitStatus::Input, code, error.public_message())
        .at_file(error.file())
        .expected(expected)
        .help(help);
    match error.column() {
        Some(Column::At(byte)) => failure.private(error.line(), format!("{found} at character {byte} of the line")),
        Some(Column::Named(name)) => failure.at_column(name).private(error.line(), found),
        None => failure.private(error.line(), found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_name_and_first_line() {
        assert_eq!(by_name("views.CSV.gz"), Some(ListFormat::Csv));
        assert_eq!(by_name("fold1/train.letor.xz"), Some(ListFormat::Letor));
        assert_eq!(by_name("S1.txt.xz"), None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lists");
        for (text, format) in [
            ("# comment\n\n2 qid:1 1:3\n", ListFormat::Letor),
            ("2 1:3\n", ListFormat::Letor),
            ("x qid:1 1:3\n", ListFormat::Letor),
            ("", ListFormat::Letor),
            ("user,clicks,age\n", ListFormat::Csv),
            ("user;clicks\n", ListFormat::Csv),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(by_first_line(&Repeatable::once(&path.to_str().unwrap().into())).unwrap(), format, "{text:?}");
        }
    }
}
