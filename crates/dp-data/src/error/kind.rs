//! The closed list of error kinds, each with a stable code and an explanation.

/// Declares each kind once: its name, its code, its explanation.
macro_rules! kinds {
    ($($(#[doc = $summary:literal])+ $name:ident, $code:literal, $explanation:literal;)+) => {
        /// The kind of an error in a schema or a file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DataErrorKind {
            $($(#[doc = $summary])+ $name,)+
        }

        impl DataErrorKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the stable code, e.g. `csv.ragged`.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// Returns one paragraph: the meaning and the remedy.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => $explanation,)+ }
            }
        }

        /// Returns every code with its explanation.
        ///
        /// # Examples
        /// ```
        /// assert!(dp_data::error::codes().iter().any(|(code, _)| *code == "bounds.missing"));
        /// ```
        pub fn codes() -> &'static [(&'static str, &'static str)] {
            &[$(($code, $explanation),)+]
        }
    };
}

kinds! {
    /// A file cannot be opened.
    FileOpen, "file.open",
        "The file could not be opened: it does not exist, is a folder, or may not be read by this user. Check the path and the permissions; `-` reads standard input.";
    /// Reading failed part-way.
    FileRead, "file.read",
        "The operating system reported an error while the file was being read, for instance a removed disk or a lost network share. Nothing was kept of what had been read. Try again, or copy the file to a local disk first.";
    /// A file was changed while it was read.
    FileChanged, "file.changed",
        "The file was written to, or another was put in its place, while it was read: its length, its modification time or its identity differs from that at the first opening. What was read may mix old and new content, or be incomplete, so it was discarded and no model was written. Wait until nobody writes to the file, or read a copy. Pipes and standard input are read once as they come, and are not compared.";
    /// The file is no text.
    FileKind, "file.kind",
        "The first bytes of the file are those of another kind of file than text: an Excel workbook, a database, an archive, a document. The message says which, and what to do. Parquet files, Excel workbooks and SQLite databases are read as they are, with `--data x.parquet`, `--data x.xlsx` and `--data sqlite:FILE`; .gz and .xz are unpacked while they are read.";
    /// A compressed file ends too early.
    FileTruncated, "file.truncated",
        "A .gz or .xz file ends before its last block is complete, usually after an interrupted download or copy. A part of the rows would be missing without any sign of it in the text, so the file is refused. Fetch it again and compare its size or checksum.";
    /// A compressed file is damaged.
    FileCorrupt, "file.corrupt",
        "A .gz or .xz file fails its own checksum or holds something that is not compressed data. Fetch it again and compare its checksum.";
    /// Memory is exhausted.
    MemoryExhausted, "memory.exhausted",
        "Memory ran out: that of the machine, of a container (its control group) or of this process (`ulimit -v`). The message says what was being held and how much more was asked for, where that is known. Nothing was released and nothing half-written is left. Training holds the rows in memory if they fit there, 8 bytes for each number, otherwise in a temporary file: a lower --memory leaves more room for everything else, --float f32 takes half, and fewer columns take less. A program that is ended from outside with SIGABRT, and one whose stack is exhausted, report the same.";
    /// No temporary file can be created for rows that memory does not hold.
    SpoolFolder, "spool.folder",
        "The rows need more memory than --memory allows, or than half of what is free, and no temporary file can be created for them: the folder does not exist or may not be written by this user. Name another with --spool.";
    /// The temporary file cannot be written.
    SpoolWrite, "spool.write",
        "The disk that holds the temporary file of the rows is full, or failed. It needs 8 bytes for each number of a row (4 with --float f32), twice if the algorithm reads the rows in a random order, and for dense rows the message says how much was written. Nothing was released, and the file is gone. Name a folder on another disk with --spool, or give the rows more memory with --memory.";
    /// The temporary file cannot be read.
    SpoolRead, "spool.read",
        "The temporary file of the rows could not be read back, or what was read is not what was written: a disk that fails, or something that changes the files of other programs. Nothing was released. Name a folder on another disk with --spool.";
    /// A table cannot be opened.
    TableOpen, "table.open",
        "The Parquet file, the Excel workbook or the database could not be opened, or holds no such table: it does not exist, is of another format, may not be read by this user, or the query is wrong. For a server: it cannot be reached, refuses the role or its password, has another certificate than `sslmode` asks for, or row-level security would hide rows from the role. The message says which.";
    /// A table cannot be read to its end.
    TableRead, "table.read",
        "The table could be opened, but not read to its end: a damaged page of a Parquet file or part of a workbook, a database that another program has locked or replaced, or a server that ended the statement or went away. Of what a server says about rows, only its code (SQLSTATE) is shown, since its messages quote values. Nothing was kept of what had been read.";
    /// A column has a type that cannot be read.
    TableType, "table.type",
        "A column that the schema or the command line names has a type that cannot be read as it asks: a list or a record, or a date or time where the schema has no column of dates. Give a date `type = \"date\"` (or \"weekday\", \"month\", \"hour\") and a `format`; convert others where the data is, in a query or a view, or give the column `type = \"drop\"` in the schema.";
    /// A sheet is not one table.
    TableLayout, "table.layout",
        "A sheet of an Excel workbook is not one table: it has cells beside the columns with names, rows after an empty one (a total, a remark, a second table), merged cells among the records, or formulas whose results are not stored. They would be lost or counted as records or as missing, so the sheet is refused. Mend it, or name the region of the table: `--table 'SHEET!A1:F200'`.";
    /// The files of a table differ.
    TableSchema, "table.schema",
        "A table in several Parquet files needs the same columns, with the same types, in each of them. The message names the first file that differs. Read the files one by one, or write them again.";
    /// The file is empty.
    CsvEmpty, "csv.empty",
        "The file or sheet holds no header. A table starts with one row that names its columns.";
    /// The first row looks like a record.
    CsvHeader, "csv.header",
        "A schema is drafted from a file whose first row, which should name the columns, holds numbers: probably a record, which would be lost. If the file has no names, add --header no; the columns are then named column1, column2, ..., and the schema says `header = false` under `[file]`. If the names are numbers, such as years, add --header yes.";
    /// The file has a header and no row.
    CsvNoRows, "csv.no_rows",
        "The file holds a header and no rows, so there is nothing to learn from or to score.";
    /// A column of the schema is not in the header.
    CsvMissingColumn, "csv.missing_column",
        "A column that the schema or the command line names is not in the header of the file. Names are compared exactly, blanks and capitals included. Check the spelling, the delimiter (a wrong one makes a single column of the whole header), or give the column `type = \"drop\"` in the schema.";
    /// A column name occurs twice.
    CsvDuplicateColumn, "csv.duplicate_column",
        "Two columns of the header have the same name, so a name does not say which one is meant. Rename one of them.";
    /// A row has too few or too many cells.
    CsvRagged, "csv.ragged",
        "A row has more or fewer cells than the header. Usual causes are a delimiter inside a cell that is not quoted, a wrong --delimiter, or a row that was cut. Rows are never padded or shortened, because the cells would silently move into other columns.";
    /// The text is not UTF-8.
    CsvNotUtf8, "csv.not_utf8",
        "The file holds bytes that are not UTF-8 text. If it is written in another encoding, name it: `--encoding windows-1252` (also called latin1) for `dp schema`, which writes it into the schema, or `encoding` under `[file]` there. A byte order mark at the start is fine.";
    /// The text is not in the stated encoding.
    CsvEncoding, "csv.encoding",
        "The file holds bytes that are no text in the encoding that --encoding or the schema (`encoding` under `[file]`) names: it is written in another one, was damaged, or ends within a character.";
    /// A quoted cell never ends.
    CsvUnclosedQuote, "csv.unclosed_quote",
        "A cell starts with a quote and the file ends before the quote is closed: a stray quote, or a file that was cut. A quote inside a quoted cell is written twice.";
    /// A quoted cell continues after its closing quote.
    CsvAfterQuote, "csv.after_quote",
        "Something stands between the quote that closes a cell and the next delimiter, as in `\"1\"2`, which could be read as 1, as 12 or as a mistake. A quote inside a quoted cell is written twice; blanks do not stand outside the quotes.";
    /// A quoted cell may have swallowed rows.
    CsvLineEnd, "csv.line_end",
        "A quoted cell goes on over several lines and holds as many delimiters as a row, in a column for which the schema declares no line ends. Usually a stray quote has swallowed the rows up to the next quote, which would be missing without a sign; the line given is where the quote opens. If the cells of the column do hold such text, declare `line_ends = true` for it (with `type = \"drop\"` for a column that is not used).";
    /// A row is unreasonably long.
    CsvLongRecord, "csv.long_record",
        "A single row is longer than 64 MiB. Usually a quote that is never closed has swallowed the rest of the file; the line given is where the row starts.";
    /// The delimiter or quote is invalid.
    CsvOptions, "csv.options",
        "Delimiter and quote must be two different ASCII characters, and neither may end a line.";
    /// A cell of a numeric column is not a finite number.
    CsvBadNumber, "csv.bad_number",
        "A cell of a numeric column, or a label that is a number, does not hold a finite decimal number (NaN, inf and numbers beyond about 1.8e308 are refused too). Fix the cell, declare the text as a marker of missing values (`missing = [\"\", \"NA\"]`), or make the column categorical. A column whose numbers have thousands separators, a decimal comma, or units such as currency signs says so with `decimal`, `thousands` and `unit`; then every number of it is written that way. Such a cell is never taken for a missing one unless the schema says so: `on_unreadable = \"missing\"` treats it as `on_missing` says, and `on_unreadable = \"neutral\"` gives its record no influence.";
    /// A cell of a column of dates is not one.
    CsvBadDate, "csv.bad_date",
        "A cell of a column of dates or times is not written as the pattern of its column says (`format`), or there is no such day. Fix the cell, or the pattern: a column with several patterns is best fixed at its source. Years of two digits are read with `%y` only, and years before 1000 are not read. Such a cell is never taken for a missing one unless the schema says so with `on_unreadable`.";
    /// A cell is empty or contains a marker of missing values.
    CsvMissingValue, "csv.missing_value",
        "A cell is missing and its column declares `on_missing = \"error\"`, the default of a schema that says nothing. Fix the file, or declare what a missing value means: `on_missing = { value = 0 }` puts a fixed value there, `\"category\"` gives missing values a category of their own, `\"neutral\"` gives the whole record no influence.";
    /// A category that was not declared.
    CsvUnknownCategory, "csv.unknown_category",
        "A cell of a categorical column holds a value that the schema does not list. Add it to `categories` if it is publicly known to be possible, or declare `on_unknown = \"other\"` (with a category named `other`) or `on_unknown = \"neutral\"`. A model is used on records with new categories by `dp predict` and `dp evaluate` with --on-unknown: `other` counts them as that category, or as none if there is no such one, and `skip` gives their records no score.";
    /// A label value that was not declared.
    LabelUnknown, "label.unknown",
        "A label is not among the declared values: neither positive nor negative, or not one of the listed classes. Classes are declared, never taken from the data: add the value to `positive` or `negative`, or to `classes`, under `[label]` if it is publicly known to be possible, or say what all others mean with `others`.";
    /// A label is missing.
    LabelMissing, "label.missing",
        "The label cell of a row is empty or holds a marker of missing values. Fix the file, or declare `on_missing = \"neutral\"` under `[label]`, which gives such records no influence.";
    /// A draft cannot tell what the label holds.
    LabelUndecided, "label.undecided",
        "The schema cannot be drafted because it is not clear from the file what the label holds: its column has one value only or very many texts, it does not hold the class that was asked for, or it has more than two values and is the label only because it stands last. Name the column with --label, and what it holds with --positive, --classes or --label-range.";
    /// A libsvm line that cannot be read.
    LibsvmSyntax, "libsvm.syntax",
        "A line is not of the form `label index:value index:value ...`. A comment may follow after `#`.";
    /// A libsvm index out of range.
    LibsvmBadIndex, "libsvm.bad_index",
        "A feature index is not in the declared range. Indices start at 1 unless --zero-based is given, and end at the declared number of features.";
    /// libsvm indices that do not increase.
    LibsvmIndexOrder, "libsvm.index_order",
        "The feature indices of a line must strictly increase; the same index twice would be ambiguous.";
    /// A libsvm value that is not a finite number.
    LibsvmBadValue, "libsvm.bad_value",
        "A value or label is not a finite decimal number; nan and inf are refused, because one such value makes every weight of a model NaN.";
    /// A libsvm file without lines.
    LibsvmEmpty, "libsvm.empty",
        "The file holds no line with a label, so there is nothing to learn from or to score.";
    /// A format of numbers or dates that cannot be used.
    SchemaFormat, "schema.format",
        "The way in which the cells of a column are written is declared in a way that cannot be used: `decimal` and `thousands` are the same mark, a `unit` holds digits, the pattern of a date (`format`, as of strftime: `%d.%m.%Y`) gives no day, or years of two digits (`%y`) could be of several centuries.";
    /// The schema is not TOML.
    SchemaSyntax, "schema.syntax",
        "The schema is not well-formed TOML. `dp schema` drafts one that is.";
    /// A key that does not exist.
    SchemaUnknownKey, "schema.unknown_key",
        "A key of the schema has no meaning here. Misspelt keys are refused rather than ignored, because a range or a policy that is silently not applied is worse than an error.";
    /// A required key is missing.
    SchemaMissingKey, "schema.missing_key",
        "The schema lacks a key that is needed: every column has a `type`, a categorical one its `categories`, and `[label]` its `column` and what it holds.";
    /// A value of the wrong type.
    SchemaType, "schema.type",
        "A key of the schema holds a value of another type, or a word that is not among those it can hold.";
    /// The columns are contradictory.
    SchemaColumns, "schema.columns",
        "The columns of the schema contradict one another: a name occurs twice, the label is also a feature, there is no feature left, or there are more features than fit.";
    /// A list of categories that cannot be used.
    SchemaCategories, "schema.categories",
        "The list of categories is empty or names a category twice, or a policy names a category that is not in it.";
    /// A missing-value policy that does not fit its column.
    SchemaOnMissing, "schema.on_missing",
        "The policy for missing values does not fit the column: a numeric column takes `error`, `neutral` or `{ value = number within the range }`; a categorical one `error`, `neutral`, `category` or `{ value = \"a declared category\" }`.";
    /// A policy for unknown categories that cannot be applied.
    SchemaOnUnknown, "schema.on_unknown",
        "`on_unknown = \"other\"` counts every undeclared value as the category named `other`, which has to be among `categories`.";
    /// `log1p` on a range where it is not defined.
    SchemaLog1p, "schema.log1p",
        "`log1p = true` replaces a value v by log(1 + v), which needs a range that starts at 0 or above. It is a scale of its own, so that the column cannot have `scale` too.";
    /// A number of cosines out of range.
    SchemaCosines, "schema.cosines",
        "`cosines = K` makes K features of a numeric column, the cosines of its coordinate. K is at most 64; 0 stands for the coordinate itself.";
    /// The classes of the label contradict one another.
    SchemaLabel, "schema.label",
        "The classes under `[label]` contradict one another: a value is both positive and negative, one of the two classes has no value and is not what `others` stands for, or the list of `classes` is too short or names one twice.";
    /// Fields taken from the data are unreviewed.
    SchemaUnreviewed, "schema.unreviewed",
        "Ranges, categories and label values must be known without looking at the records. Those marked `reviewed = false` were taken from the data by a draft. Replace them by what is publicly known and set `reviewed = true`, or declare them public by name (--assume-public), which is recorded in the certificate.";
    /// A name that is not in the schema.
    SchemaUnknownColumn, "schema.unknown_column",
        "A column that was to be assumed public is not in the schema. Names are compared exactly; the name of the label column counts too.";
    /// A numeric column without a range.
    BoundsMissing, "bounds.missing",
        "A numeric column, or a label that is a number, needs `min` and `max` that hold for everyone and are known without looking at this data: values are scaled by them and clamped to them. A range taken from the data would itself be a release.";
    /// A range that is upside down.
    BoundsOrder, "bounds.order",
        "`min` must not be larger than `max`. Equal bounds are allowed for a column, which becomes a feature that is always 0, but not for a label.";
    /// A range that is not finite.
    BoundsNotFinite, "bounds.not_finite",
        "`min` and `max` must be finite numbers: values are scaled by the width of the range, which infinity does not have.";
    /// A file that is not IDX.
    IdxSyntax, "idx.syntax",
        "An IDX file starts with two zero bytes, the type of its numbers and the number of its dimensions, then the dimensions. Images are unsigned bytes (type 0x08) in at least two dimensions, the first counting the images; labels are unsigned bytes in one.";
    /// An IDX file whose length differs from its header.
    IdxLength, "idx.length",
        "The IDX file holds fewer or more bytes than its header promises, usually after an interrupted download or a cut copy. Fetch it again and compare its size or checksum.";
    /// Images and labels that do not belong together.
    IdxCounts, "idx.counts",
        "The file of labels does not hold as many labels as there are images, or was not given at all. Images and labels come in two files of the same order: name both.";
    /// Images of a different size.
    IdxShape, "idx.shape",
        "The images do not have the size that the encoder of the model was made for, or that of the images in the other files, or they have no pixels.";
    /// An IDX file without images.
    IdxEmpty, "idx.empty",
        "The file says that it holds no image, so there is nothing to learn from or to score.";
    /// Files of images of an unknown kind or of several.
    ImagesKind, "images.kind",
        "The first bytes are neither those of an IDX file nor those of CIFAR-10 records, the files of images are of several kinds, or labels were given for CIFAR-10 records, which contain theirs. Other images, such as PNG files, have to be converted.";
    /// No images, or too many.
    ImagesNumber, "images.number",
        "There is no file of images, a file of CIFAR-10 records is empty, or there are more images than the 2^32 - 1 that can be counted.";
    /// A label of an image that is not a class.
    ImagesLabel, "images.label",
        "A label is none of the classes. Labels are numbers, and those of the classes are declared, never taken from the data: 0 to 9 if nothing else is said (--classes). If they are right, the file is damaged or of another kind.";
    /// A file of CIFAR-10 that ends within a record.
    CifarLength, "cifar.length",
        "A file of CIFAR-10 images consists of records of 3073 bytes: a label, then 32 x 32 values of red, of green and of blue. This one ends within a record, usually after an interrupted download or a cut copy, or it is a file of another kind.";
    /// An invalid encoding.
    EncodingInvalid, "encoding.invalid",
        "The constant of the intercept must be a finite number that is not negative; 0 stands for no intercept.";
    /// An invalid feature map.
    EncodingMap, "encoding.map",
        "A feature map makes at most 64 cosines of a numeric column, and at most 2^20 features of all columns. Pairs of many columns are many features. Random Fourier features have a bandwidth above 0, up to 100, a seed below 2^53, and at most 2^26 frequencies: one for each feature and each column or category. Libsvm files and images have no columns to map.";
    /// An encoder that cannot be written as SQL.
    EncodingSql, "encoding.sql",
        "Only the encoder of a table can be written as SQL: there are no columns in libsvm files and images, and a random projection and random Fourier features mix all of them. In SQL, columns are plain numbers, categories, texts for 1 and 0, and dates: of a type of dates, in SQLite texts of numbers without offsets. Convert others in a view or in --query. Score such records with `dp predict --data`.";
    /// An invalid projection.
    ProjectionInvalid, "projection.invalid",
        "A random projection has to make at least one feature and at most as many as there are (the intercept is not counted), its seed is below 2^53, and the matrix of a Gaussian one has at most 2^26 entries.";
}
