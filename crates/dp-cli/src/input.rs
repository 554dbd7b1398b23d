//! Checked input configuration, and opening of the records as often as needed.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dp_data::draft::LabelHint;
use dp_data::memory::{self, Bytes};
use dp_data::read::{CsvOptions, Input, SteadyFile, TextEncoding, matching};
use dp_data::schema::{Label, LabelRange, Review};
use dp_data::table::{self, Relation, Table};

use crate::args::{FileName, FormArgs, Format, SQLITE, TextArgs};
use crate::atomic;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Metered, Progress};

/// The records to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputConfig {
    /// The file; `-` for standard input.
    pub data: FileName,
    /// The file format.
    pub format: Format,
    /// The file of the image labels.
    pub labels: Option<FileName>,
    /// The CSV dialect.
    pub csv: CsvOptions,
    /// True if feature numbers start at 0 (libsvm); `None` if not given.
    pub zero_based: Option<bool>,
    /// The table, if its cells have types.
    pub typed: Option<TypedTable>,
}

/// A table whose cells have types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypedTable {
    /// Parquet files.
    Parquet(FileName),
    /// A sheet of an Excel workbook, or a region of it.
    Xlsx(FileName, Option<String>),
    /// A table, a view or a query of a SQLite database.
    Sqlite(FileName, Relation),
    /// A table, a view or a query of a PostgreSQL server.
    Postgres(FileName, Relation),
    /// A table, a view or a query of an engine that this command asks.
    Runner(FileName, Relation),
}

impl TypedTable {
    /// Returns the table that `data` names in this format; `None` for text and images.
    ///
    /// # Errors
    /// `usage.conflict` for a table or query of something that is no database.
    pub fn new(
        data: &FileName,
        format: Format,
        table: Option<&str>,
        query: Option<&str>,
    ) -> Result<Option<Self>, Failure> {
        let relation = match (table, query) {
            (Some(table), _) => Relation::Table(table.to_owned()),
            (None, Some(query)) => Relation::Query(query.to_owned()),
            (None, None) => Relation::Only,
        };
        if format == Format::Xlsx && query.is_none() {
            return Ok(Some(Self::Xlsx(data.clone(), table.map(str::to_owned))));
        }
        if format == Format::Sqlite {
            let file = data.strip_prefix(SQLITE).map_or_else(|| data.clone(), FileName::from);
            return Ok(Some(Self::Sqlite(file, relation)));
        }
        if format == Format::Postgres {
            return Ok(Some(Self::Postgres(data.clone(), relation)));
        }
        if format == Format::Runner {
            if relation == Relation::Only {
                return Err(
                    missing("--table", "a runner has to be told what to read").help("add --table NAME or --query SQL")
                );
            }
            return Ok(Some(Self::Runner(data.clone(), relation)));
        }
        let flag = if table.is_some() { "--table" } else { "--query" };
        match relation {
            Relation::Only => Ok((format == Format::Parquet).then(|| Self::Parquet(data.clone()))),
            _ => Err(conflict(flag, format!("{flag} has no meaning for {}", format.name()))
                .expected("a database: --data sqlite:FILE or --data postgres://HOST/DATABASE")),
        }
    }

    /// Opens the table.
    ///
    /// # Errors
    /// `table.*`.
    pub fn open(&self) -> Result<Table, Failure> {
        let table = match self {
            Self::Parquet(files) => table::parquet::open(files),
            Self::Xlsx(file, sheet) => table::xlsx::open(file, sheet.as_deref()),
            Self::Sqlite(file, relation) => table::sqlite::open(file, relation),
            Self::Postgres(address, relation) => table::postgres::open(address, relation),
            Self::Runner(..) => {
                return Err(conflict("--format", "a runner answers with sums, not with rows")
                    .expected("dp train --sums, or another source of the same rows"));
            }
        }
        .map_err(|error| Failure::from_data(&error))?;
        if let Some(cancel) = table.cancel() {
            interrupt::cancel_at_end(cancel);
        }
        Ok(table)
    }

    /// Returns whether rows are those of a query's result.
    pub fn is_query(&self) -> bool {
        let (Self::Sqlite(_, relation) | Self::Postgres(_, relation) | Self::Runner(_, relation)) = self else {
            return false;
        };
        matches!(relation, Relation::Query(_))
    }

    /// Returns whether others may write to the table.
    pub fn is_database(&self) -> bool {
        !matches!(self, Self::Parquet(_) | Self::Xlsx(..))
    }

    /// Returns whether rows come from another machine, or may.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Postgres(..) | Self::Runner(..))
    }

    /// Returns the file or folder, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Parquet(file) | Self::Xlsx(file, _) | Self::Sqlite(file, _) => Some(Path::new(file)),
            Self::Postgres(..) | Self::Runner(..) => None,
        }
    }
}

impl InputConfig {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.value`, `usage.conflict`.
    pub fn new(data: &FileName, args: &FormArgs) -> Result<Self, Failure> {
        let format = args.format(data);
        let of_text = args.text.given().next();
        let flags = [
            ("--zero-based", format != Format::Libsvm && args.zero_based),
            (of_text.unwrap_or_default(), format != Format::Csv && of_text.is_some()),
            ("--labels", format != Format::Idx && args.labels.is_some()),
        ];
        meaningless(&flags, format_args!("for {}", format.name()))?;
        check_stdin(&[("--data", Some(data)), ("--labels", args.labels.as_deref())])?;
        Ok(Self {
            data: data.clone(),
            format,
            labels: args.labels.clone(),
            csv: csv_options(&args.text)?,
            zero_based: args.zero_based.then_some(true),
            typed: TypedTable::new(data, format, args.table.as_deref(), args.query.as_deref())?,
        })
    }
}

impl InputConfig {
    /// Requires labels: those of images are in a file of their own.
    ///
    /// # Errors
    /// `usage.missing`.
    pub fn with_labels(self) -> Result<Self, Failure> {
        if self.format == Format::Idx && self.labels.is_none() {
            return Err(missing("--labels", "the labels of the images were not named")
                .expected("an IDX file with one byte for each image")
                .help("add --labels FILE"));
        }
        Ok(self)
    }

    /// Opens the records, with the image labels if given.
    ///
    /// # Errors
    /// `file.open`, `file.read`.
    pub fn open(&self) -> Result<Input, Failure> {
        match &self.typed {
            Some(table) => Ok(Input::from_table(table.open()?)),
            None => self.and_labels(Input::open(&self.data).map_err(|error| Failure::from_data(&error))?),
        }
    }

    /// Adds the image labels to the records, if given.
    ///
    /// # Errors
    /// `file.open`, `file.read`.
    pub fn and_labels(&self, records: Input) -> Result<Input, Failure> {
        match &self.labels {
            None => Ok(records),
            Some(labels) => {
                let labels = Input::open(labels).map_err(|error| Failure::from_data(&error).at_flag("--labels"))?;
                Ok(records.with_labels(labels))
            }
        }
    }

    /// Returns every file that is read, with its flag.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let labels = self.labels.as_ref().map(|labels| ("--labels", Path::new(labels)));
        let data = self.typed.as_ref().map_or(Some(Path::new(&self.data)), TypedTable::path);
        data.map(|data| ("--data", data)).into_iter().chain(labels)
    }
}

/// Returns the CSV options as typed.
///
/// # Errors
/// `usage.value` unless the delimiter is `tab` or one ASCII character that can separate cells, and the encoding is known.
pub fn csv_options(args: &TextArgs) -> Result<CsvOptions, Failure> {
    let byte = |delimiter: &String| match delimiter.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'\n' | b'\r' | b'"' | 0) => {
            Ok(byte)
        }
        _ => Err(Failure::usage("--delimiter", format!("`{delimiter}` cannot stand between cells"))
            .expected("one ASCII character other than a letter, a digit, a quote or a line end, or `tab`")),
    };
    let encoding = |label: &String| {
        TextEncoding::of_label(label).ok_or_else(|| {
            Failure::usage("--encoding", format!("there is no encoding `{label}`"))
                .expected("a name such as windows-1252, latin1, utf-16le or shift_jis")
        })
    };
    Ok(CsvOptions {
        delimiter: args.delimiter.as_ref().map(byte).transpose()?,
        encoding: args.encoding.as_ref().map(encoding).transpose()?,
        header: args.header,
        quote: None,
    })
}

/// Returns the facts about the label given by `--classes` or `--label-range`.
///
/// # Errors
/// `usage.value`.
pub fn label_hint(classes: &[String], range: &[f64]) -> Result<Option<LabelHint>, Failure> {
    let hint = match (classes, range) {
        ([], []) => return Ok(None),
        ([], &[min, max]) => LabelHint::Number(LabelRange { min, max }),
        // Blanks after the commas are none of a class, as around a label.
        (classes, _) => LabelHint::Classes(classes.iter().map(|class| class.trim().to_owned()).collect()),
    };
    let (flag, expected) = match &hint {
        LabelHint::Number(_) => ("--label-range", "two finite numbers, the first below the second"),
        _ => ("--classes", "between 2 and 4096 classes, each once, divided by commas"),
    };
    let label = Label {
        column: String::new(),
        kind: hint.clone().into(),
        format: None,
        missing_is_neutral: false,
        unreadable_is_neutral: false,
        review: Review::Reviewed,
    };
    label.check().map_err(|error| Failure::usage(flag, error.public_message()).expected(expected))?;
    Ok(Some(hint))
}

/// Creates the failure for a flag that contradicts another.
pub(crate) fn conflict(flag: &str, message: impl Into<String>) -> Failure {
    Failure { code: "usage.conflict", ..Failure::usage(flag, message) }
}

/// Creates the failure for a flag that is needed.
pub(crate) fn missing(flag: &str, message: impl Into<String>) -> Failure {
    Failure { code: "usage.missing", ..Failure::usage(flag, message) }
}

/// Rejects the first given flag of these, which have no meaning `here`.
///
/// # Errors
/// `usage.conflict`, without advice.
pub(crate) fn meaningless(flags: &[(&str, bool)], here: impl Display) -> Result<(), Failure> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(conflict(flag, format!("{flag} has no meaning {here}"))),
        None => Ok(()),
    }
}

/// Rejects two inputs that are both standard input.
///
/// # Errors
/// `usage.stdin_twice`.
pub fn check_stdin(inputs: &[(&str, Option<&str>)]) -> Result<(), Failure> {
    let mut from_stdin = inputs.iter().filter(|(_, name)| *name == Some("-"));
    match (from_stdin.next(), from_stdin.next()) {
        (Some((one, _)), Some((two, _))) => Err(Failure {
            code: "usage.stdin_twice",
            ..Failure::usage(two, format!("{one} and {two} cannot both be standard input"))
        }
        .help("name a file for one of them")),
        _ => Ok(()),
    }
}

/// Rejects the name of a picture that does not end in `.svg`.
///
/// # Errors
/// `usage.value`.
pub fn check_picture(flag: &str, picture: Option<&Path>) -> Result<(), Failure> {
    let is_svg = |picture: &Path| picture.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    match picture {
        Some(picture) if !is_svg(picture) => {
            Err(Failure::usage(flag, "the picture is drawn as SVG").expected("a name that ends in .svg"))
        }
        _ => Ok(()),
    }
}

/// Rejects inputs and outputs that name the same file, however spelled: an output would replace an input. Each path comes
/// with its flag; `-` is not a file, and a pattern or a folder of data stands for its files.
///
/// # Errors
/// `usage.conflict`.
pub fn check_distinct(named: &[(&str, &Path)]) -> Result<(), Failure> {
    let files = named.iter().filter(|(_, path)| path.as_os_str() != "-");
    let all = |flag: &str, path: &Path| match flag {
        "--data" | "--labels" | "--public" | "FILE" => all_resolved(path),
        _ => BTreeSet::from([resolved(path)]),
    };
    let files: Vec<(&str, BTreeSet<PathBuf>)> = files.map(|(flag, path)| (*flag, all(flag, path))).collect();
    for (i, (flag, of_flag)) in files.iter().enumerate() {
        if let Some((earlier, of_earlier)) = files[..i].iter().find(|(_, of_earlier)| !of_earlier.is_disjoint(of_flag))
        {
            let message = match of_earlier.len() {
                1 => format!("{earlier} and {flag} are the same file"),
                _ => format!("{flag} is one of the files of {earlier}"),
            };
            return Err(conflict(flag, message));
        }
    }
    Ok(())
}

/// Resolves the files of a name; one that cannot be expanded is itself.
fn all_resolved(path: &Path) -> BTreeSet<PathBuf> {
    let files = match path.is_dir() {
        true => table::parquet::files(path).ok(),
        false => matching(path).ok(),
    };
    files.map_or_else(|| BTreeSet::from([resolved(path)]), |files| files.iter().map(|file| resolved(file)).collect())
}

/// Resolves the links of a path; for a missing file, those of its folder.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match (folder.canonicalize(), path.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => path.to_owned(),
        }
    })
}

/// Largest size of a schema in bytes.
pub(crate) const LARGEST_SCHEMA: u64 = 64 << 20;

/// Reads a whole file or standard input (`-`), holding at most `limit` bytes in memory. `unreadable` converts a failed read.
///
/// # Errors
/// `file.too_large`, `memory.exhausted`, and the error that `unreadable` returns.
pub(crate) fn read_whole(
    name: &FileName,
    limit: u64,
    unreadable: impl FnOnce(&io::Error) -> Failure,
) -> Result<Vec<u8>, Failure> {
    let is_stdin = &**name == "-";
    atomic::protect(name.as_ref());
    let shown: &str = if is_stdin { "standard input" } else { name };
    let too_large = |size: String| {
        Failure::new(ExitStatus::Input, "file.too_large", format!("the file has {size}"))
            .at_file(shown)
            .expected(format!("at most {}", Bytes(limit)))
            .help("check that the right file was named: data, for which there is no limit, have flags of their own")
    };
    let size = std::fs::metadata(name).ok().filter(|metadata| !is_stdin && metadata.is_file());
    if let Some(size) = size.map(|metadata| metadata.len()).filter(|&size| size > limit) {
        return Err(too_large(Bytes(size).to_string()));
    }
    match open(name).and_then(|reader| memory::read(reader, limit, "the file")) {
        Ok(bytes) if bytes.len() as u64 > limit => Err(too_large(format!("more than {}", Bytes(limit)))),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(match memory::of_io(&error) {
            Some(error) => Failure::from(error).at_file(shown).help("read it where there is more memory"),
            None => unreadable(&error).at_file(shown),
        }),
    }
}

/// Largest length of a line in bytes; a longer line ends the reading.
const LONGEST_LINE: usize = 64 << 20;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TextLine {
    /// The line without its line ending.
    Whole(Vec<u8>),
    /// A line longer than the limit, skipped.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads the next line of `name`, holding at most `limit` bytes in memory; its number is used in errors. `unreadable`
/// converts a failed read.
///
/// # Errors
/// `file.too_large` if no line ends within 64 MiB, `memory.exhausted`, and the error that `unreadable` returns.
pub(crate) fn read_line(
    reader: &mut impl BufRead,
    limit: usize,
    (name, number): (&str, u64),
    unreadable: impl FnOnce(&io::Error) -> Failure,
) -> Result<TextLine, Failure> {
    let mut line = Vec::new();
    // Room for a two-byte line ending.
    let read = memory::read_line(reader, limit + 2, &mut line).and_then(|mut length| {
        let kept = line.len();
        let mut ended = line.ends_with(b"\n") || kept < limit + 2;
        while !ended && length <= LONGEST_LINE {
            let (passed, end) = pass_over(reader)?;
            length += passed;
            ended = end;
        }
        Ok(ended)
    });
    let here = |mut failure: Failure| {
        failure.details.location.line = Some(number);
        failure.at_file(name)
    };
    let ended = read.map_err(|error| match memory::of_io(&error) {
        Some(error) => here(Failure::from(error)),
        None => unreadable(&error).at_file(name),
    })?;
    if !ended {
        let size = format!("a line has more than {}", Bytes(LONGEST_LINE as u64));
        return Err(
            here(Failure::new(ExitStatus::Input, "file.too_large", size)).help("check that the right file was named")
        );
    }
    if line.is_empty() {
        return Ok(TextLine::End);
    }
    if line.ends_with(b"\n") {
        line.pop();
    }
    if line.ends_with(b"\r") {
        line.pop();
    }
    Ok(if line.len() <= limit { TextLine::Whole(line) } else { TextLine::TooLong })
}

/// Skips the buffered part of a line; returns its length, and whether the line or the input ended.
fn pass_over(reader: &mut impl BufRead) -> io::Result<(usize, bool)> {
    let buffer = match reader.fill_buf() {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok((0, false)),
        buffer => buffer?,
    };
    let end = buffer.iter().position(|&byte| byte == b'\n');
    let passed = end.map_or(buffer.len(), |end| end + 1);
    reader.consume(passed);
    Ok((passed, end.is_some() || passed == 0))
}

fn open(name: &FileName) -> io::Result<Box<dyn Read>> {
    Ok(match &**name {
        "-" => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(name)?),
    })
}

/// Records that can be read repeatedly: a file is reopened and must be unchanged; a stream is kept in memory (compressed, if
/// it arrived so).
#[derive(Debug)]
pub struct Repeatable {
    name: String,
    content: Content,
}

/// The source of the records.
#[derive(Debug)]
enum Content {
    Stdin,
    File(SteadyFile),
    Kept(Kept),
    Typed(TypedTable),
}

/// Bytes in memory, shared without copying.
#[derive(Debug, Clone)]
struct Kept(Arc<Vec<u8>>);

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Repeatable {
    /// Wraps the records for reading at most once, or prepares them for `repeated` reading.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(input: &InputConfig, repeated: bool) -> Result<Self, Failure> {
        match &input.typed {
            Some(table) => Ok(Self { name: (&input.data).into(), content: Content::Typed(table.clone()) }),
            None if repeated => Self::new(&input.data),
            None => Ok(Self::once(&input.data)),
        }
    }

    /// Wraps `data` for reading at most once.
    pub fn once(data: &FileName) -> Self {
        match &**data {
            "-" => Self { name: "standard input".to_owned(), content: Content::Stdin },
            name => Self { name: name.to_owned(), content: Content::File(SteadyFile::new(data)) },
        }
    }

    /// Prepares `data` for repeated reading.
    ///
    /// # Errors
    /// `file.open`, `file.read`.
    pub fn new(data: &FileName) -> Result<Self, Failure> {
        let is_stream =
            &**data == "-" || std::fs::metadata(data).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if !is_stream {
            return Ok(Self::once(data));
        }
        let name = if &**data == "-" { "standard input" } else { data };
        let bytes =
            open(data).and_then(|reader| memory::read(reader, u64::MAX, "the file, which is read more than once"));
        let bytes = bytes.map_err(|error| match memory::of_io(&error) {
            Some(error) => Failure::from(error).at_file(name),
            None => Failure::new(ExitStatus::Failed, "file.read", format!("reading failed: {error}")).at_file(name),
        })?;
        Ok(Self { name: name.to_owned(), content: Content::Kept(Kept(Arc::new(bytes))) })
    }

    /// Opens the records from the beginning.
    ///
    /// # Errors
    /// `file.open`, `file.read`, and `file.changed` if the file has changed since it was first opened.
    pub fn open(&self) -> Result<Input, Failure> {
        match &self.content {
            Content::Stdin => Input::from_reader(&self.name, io::stdin()),
            Content::File(file) => file.input(),
            Content::Kept(bytes) => Input::from_reader(&self.name, Cursor::new(bytes.clone())),
            Content::Typed(table) => return Ok(Input::from_table(table.open()?)),
        }
        .map_err(|error| Failure::from_data(&error))
    }

    /// Opens the records with a progress display of the bytes read; `start` receives the total size if known.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_metered(&self, start: impl FnOnce(Option<u64>) -> Progress) -> Result<Input, Failure> {
        match &self.content {
            Content::Stdin => Input::from_reader(&self.name, Metered::new(io::stdin(), start(None))),
            Content::File(file) => file.open().and_then(|file| {
                let total = file.length();
                Input::from_reader(&self.name, Metered::new(file, start(total)))
            }),
            Content::Typed(table) => return Ok(Input::from_table(table.open()?)),
            Content::Kept(bytes) => {
                let progress = start(Some(bytes.0.len() as u64));
                Input::from_reader(&self.name, Metered::new(Cursor::new(bytes.clone()), progress))
            }
        }
        .map_err(|error| Failure::from_data(&error))
    }
}
