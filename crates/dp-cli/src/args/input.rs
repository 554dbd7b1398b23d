//! Flags that say which records to read, and in which form.

use clap::{Args, ValueEnum};

/// The form of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// Sparse text: `label index:value index:value …`.
    Libsvm,
}

/// Flags that say which records to read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub struct InputArgs {
    /// The records: CSV with a header or libsvm, plain, .gz or .xz; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub data: String,
    /// The form of the records [default: by the file's name, else csv]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The character between cells (CSV); `tab` for a tabulator
    #[arg(long, value_name = "CHAR", default_value = ",")]
    pub delimiter: String,
    /// Feature numbers start at 0 (libsvm)
    #[arg(long)]
    pub zero_based: bool,
}

impl InputArgs {
    /// The form that was named, else the one of the file's name.
    pub fn format(&self) -> Format {
        self.format.unwrap_or_else(|| {
            let name = self.data.to_ascii_lowercase();
            let stem = [".gz", ".xz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
            let is = |ends: &[&str]| ends.iter().any(|end| stem.ends_with(end));
            if is(&[".libsvm", ".svm", ".svmlight"]) { Format::Libsvm } else { Format::Csv }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(data: &str) -> Format {
        InputArgs { data: data.to_owned(), format: None, delimiter: ",".to_owned(), zero_based: false }.format()
    }

    #[test]
    fn format_follows_the_name() {
        assert_eq!(format("a9a.libsvm.gz"), Format::Libsvm);
        assert_eq!(format("A9A.SVM"), Format::Libsvm);
        assert_eq!(format("people.csv.xz"), Format::Csv);
        assert_eq!(format("-"), Format::Csv);
    }
}
