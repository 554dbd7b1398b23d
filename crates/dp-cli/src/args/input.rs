//! Flags that select the records and their format.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use clap::{Args, ValueEnum};
use dp_data::read::{looks_like_idx, matching};
use dp_data::table::postgres;

use super::FileName;

/// The format of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// CSV with a header.
    Csv,
    /// Sparse text: `label index:value index:value …`.
    Libsvm,
    /// Images as bytes (MNIST), their labels in a second file.
    Idx,
    /// Colour images with labels, in the binary format of CIFAR-10; for networks.
    Cifar10,
    /// Parquet: a file, a folder of files, or a pattern of names.
    Parquet,
    /// A sheet of an Excel workbook.
    Xlsx,
    /// A SQLite database.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
    /// A command that runs SQL in an engine, for --sums (DATABASES.md).
    Runner,
}

impl Format {
    /// Returns whether records have named columns.
    pub fn is_table(self) -> bool {
        !matches!(self, Self::Libsvm | Self::Idx | Self::Cifar10)
    }

    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::Libsvm => "libsvm",
            Self::Idx => "IDX images",
            Self::Cifar10 => "CIFAR-10 images",
            Self::Parquet => "Parquet",
            Self::Xlsx => "Excel",
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Runner => "a runner",
        }
    }
}

/// The records to read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub struct InputArgs {
    /// The records: CSV with a header, libsvm or images (IDX or CIFAR-10), plain, .gz or .xz; `-` for standard input; Parquet
    /// files, a folder of them or a quoted pattern, which names images of networks too; an Excel workbook (.xlsx); `sqlite:FILE`;
    /// `postgres://HOST/DATABASE`; with --format runner a command
    #[arg(long, value_name = "FILE")]
    pub data: FileName,
    /// The flags for reading them
    #[command(flatten)]
    pub form: FormArgs,
}

/// The format of a table's text.
#[derive(Debug, Clone, Default, Args)]
pub struct TextArgs {
    /// Delimiter (CSV); `tab` for a tab [default: the schema's, or a comma; `dp schema` detects it]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,
    /// Encoding (CSV), such as windows-1252 (latin1) or utf-16le [default: the schema's, or UTF-8; `dp schema` detects it]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// The first row names the columns (CSV); else they are column1, column2, ... [default: the schema's, else yes]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, value_parser = clap::builder::BoolishValueParser::new())]
    pub header: Option<bool>,
}

impl TextArgs {
    /// Returns the flags that are given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--delimiter", self.delimiter.is_some()),
            ("--encoding", self.encoding.is_some()),
            ("--header", self.header.is_some()),
        ];
        flags.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}

/// Flags for reading records.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub struct FormArgs {
    /// Format of the records [default: by file name or first bytes, otherwise csv]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Table or view of the database, or sheet of the workbook, also `SHEET!A3:F200` [default: the only one]
    #[arg(long, value_name = "NAME", conflicts_with = "query")]
    pub table: Option<String>,
    /// Query whose result is the table; the guarantee is for one row of the result
    #[arg(long, value_name = "SQL")]
    pub query: Option<String>,
    /// The labels of the images (IDX)
    #[arg(long, value_name = "FILE")]
    pub labels: Option<FileName>,
    /// The flags for reading text
    #[command(flatten)]
    pub text: TextArgs,
    /// Feature indices start at 0 (libsvm)
    #[arg(long)]
    pub zero_based: bool,
}

impl FormArgs {
    /// Returns the given format, else that of the file name, else that of the first bytes.
    pub fn format(&self, data: &FileName) -> Format {
        self.format.unwrap_or_else(|| Format::of(data))
    }
}

impl Format {
    /// Returns the format of a file by its name, else by its first bytes; CSV if neither tells.
    pub(crate) fn of(data: &FileName) -> Self {
        // Of a pattern, the first file tells.
        let first = || matching(data).ok()?.into_iter().next();
        by_name(data).or_else(|| by_content(&first()?)).unwrap_or(Self::Csv)
    }
}

/// Guesses the format from the first bytes of a file; those of a stream cannot be read twice.
fn by_content(path: &Path) -> Option<Format> {
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.is_dir() {
        return Some(Format::Parquet);
    }
    if !metadata.is_file() {
        return None;
    }
    if looks_like_idx(path) {
        return Some(Format::Idx);
    }
    let mut head = [0; 4096];
    let read = File::open(path).and_then(|mut file| file.read(&mut head)).ok()?;
    let starts_with = |magic: &[u8]| head[..read].starts_with(magic);
    let holds = |name: &[u8]| head[..read].windows(name.len()).any(|part| part == name);
    if starts_with(b"PK\x03\x04") && holds(b"xl/") {
        Some(Format::Xlsx)
    } else if starts_with(b"PAR1") {
        Some(Format::Parquet)
    } else if starts_with(b"SQLite format 3") {
        Some(Format::Sqlite)
    } else {
        None
    }
}

/// The beginning of a SQLite database's name.
pub(crate) const SQLITE: &str = "sqlite:";

/// Guesses the format from the name of a file.
fn by_name(data: &str) -> Option<Format> {
    if data.starts_with(SQLITE) {
        return Some(Format::Sqlite);
    }
    if postgres::is_address(data) {
        return Some(Format::Postgres);
    }
    let name = data.to_ascii_lowercase();
    let stem = [".gz", ".xz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let is = |ends: &[&str]| ends.iter().any(|end| stem.ends_with(end));
    let numbered = |end: &str| {
        let shorter = stem.strip_suffix("-ubyte").unwrap_or(stem).trim_end_matches(|c: char| c.is_ascii_digit());
        shorter.ends_with(end)
    };
    if is(&[".libsvm", ".svm", ".svmlight"]) {
        Some(Format::Libsvm)
    } else if numbered(".idx") || numbered("-idx") {
        Some(Format::Idx)
    } else if is(&[".bin"]) && ["cifar", "_batch"].iter().any(|part| stem.contains(part)) {
        Some(Format::Cifar10)
    } else if [".parquet", ".pq"].iter().any(|end| name.ends_with(end)) {
        Some(Format::Parquet)
    } else if [".xlsx", ".xlsm"].iter().any(|end| name.ends_with(end)) {
        Some(Format::Xlsx)
    } else if is(&[".csv", ".tsv"]) {
        Some(Format::Csv)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(data: &str) -> Format {
        Format::of(&FileName::from(data))
    }

    #[test]
    fn format_follows_the_name() {
        assert_eq!(format("a9a.libsvm.gz"), Format::Libsvm);
        assert_eq!(format("A9A.SVM"), Format::Libsvm);
        assert_eq!(format("people.csv.xz"), Format::Csv);
        assert_eq!(format("-"), Format::Csv);
        assert_eq!(format("train-images-idx3-ubyte.gz"), Format::Idx);
        assert_eq!(format("t10k-images.idx3-ubyte"), Format::Idx);
        assert_eq!(format("images.idx.xz"), Format::Idx);
        assert_eq!(format("midx.csv"), Format::Csv);
        assert_eq!(format("cifar/data_batch_*.bin"), Format::Cifar10);
        assert_eq!(format("CIFAR10-train.bin.gz"), Format::Cifar10);
        assert_eq!(format("train-images-part?-idx3-ubyte.gz"), Format::Idx);
        assert_eq!(format("rows/*.parquet"), Format::Parquet);
        assert_eq!(format("Visits.XLSX"), Format::Xlsx);
        assert_eq!(format("sqlite:people.csv"), Format::Sqlite);
        assert_eq!(format("postgres:///people.csv"), Format::Postgres);
        assert_eq!(format("postgresql://db.example/people"), Format::Postgres);
        // Of a pattern, the first file tells.
        let folder = tempfile::tempdir().unwrap();
        for part in 0..2 {
            std::fs::write(folder.path().join(format!("part{part}")), [0, 0, 8, 1, 0, 0, 0, 1, 7]).unwrap();
        }
        assert_eq!(format(&folder.path().join("part*").display().to_string()), Format::Idx);
    }
}
