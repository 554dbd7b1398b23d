use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::*;
use crate::encode::Cell;
use crate::read::{CsvOptions, Input, load};
use crate::table::Rows;
use crate::{Encoder, Encoding, Schema, Workers};

const MESSAGE: &str = "message people {
    optional int32 age;
    required double income;
    optional binary town (UTF8);
    required boolean member;
    optional int64 account;
    required int32 share (DECIMAL(9, 2));
    required fixed_len_byte_array(5) worth (DECIMAL(11, 1));
    required float height;
    required int32 born (DATE);
    optional group words (LIST) { repeated group list { optional binary element (UTF8); } }
    required int32 count (UINT_32);
}";

/// Writes `rows` rows in groups of 3000; every fifth age is missing, every seventh town.
fn write(path: &Path, message: &str, rows: usize, compression: Compression) {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let leaves: Vec<String> =
        SchemaDescriptor::new(Arc::clone(&schema)).columns().iter().map(|column| column.path().string()).collect();
    let properties = WriterProperties::builder().set_compression(compression).set_data_page_row_count_limit(700);
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties.build())).unwrap();
    for start in (0..rows).step_by(3000) {
        let rows = start..rows.min(start + 3000);
        let present = |step: usize| rows.clone().map(|i| i16::from(i % step != 0)).collect::<Vec<_>>();
        let kept = |step: usize| rows.clone().filter(move |i| i % step != 0);
        let (mut group, mut names) = (writer.next_row_group().unwrap(), leaves.iter());
        while let Some(mut column) = group.next_column().unwrap() {
            macro_rules! put {
                ($kind:ty, $values:expr, $levels:expr) => {{
                    let (values, levels): (Vec<_>, Option<Vec<i16>>) = ($values.collect(), $levels);
                    column.typed::<$kind>().write_batch(&values, levels.as_deref(), None).unwrap();
                }};
            }
            match names.next().unwrap().as_str() {
                "age" => put!(Int32Type, kept(5).map(|i| (i % 90) as i32), Some(present(5))),
                "income" => put!(DoubleType, rows.clone().map(|i| i as f64 * 1.25), None),
                "town" => {
                    put!(ByteArrayType, kept(7).map(|i| ByteArray::from(["Rome", "Oslo"][i % 2])), Some(present(7)))
                }
                "member" => put!(BoolType, rows.clone().map(|i| i % 3 == 0), None),
                "account" => put!(Int64Type, kept(2).map(|i| i64::MAX - i as i64), Some(present(2))),
                "share" => put!(Int32Type, rows.clone().map(|i| i as i32 - 50), None),
                "worth" => put!(
                    FixedLenByteArrayType,
                    rows.clone().map(|i| {
                        let bytes = (7 - i as i64).to_be_bytes()[3..].to_vec();
                        FixedLenByteArray::from(bytes)
                    }),
                    None
                ),
                "height" => put!(FloatType, rows.clone().map(|i| i as f32 / 8.0), None),
                "born" => put!(Int32Type, rows.clone().map(|i| i as i32), None),
                "words.list.element" => {
                    let levels: Vec<i16> = rows.clone().map(|_| 0).collect();
                    column.typed::<ByteArrayType>().write_batch(&[], Some(&levels), Some(&levels)).unwrap();
                }
                "count" => put!(Int32Type, rows.clone().map(|i| -1 - i as i32), None),
                other => panic!("{other}"),
            }
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn rows(table: Table, names: &[&str]) -> Result<Rows, DataError> {
    let used = names.iter().map(|name| table.position(name)).collect::<Result<Vec<_>, _>>()?;
    table.start(used)
}

#[test]
fn cells_have_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.parquet");
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())] {
        write(&path, MESSAGE, 7000, compression);
        let table = open(&path).unwrap();
        let unreadable: Vec<_> = table.columns().iter().filter_map(|column| column.unreadable.clone()).collect();
        let of_type = [Unreadable::Date("DATE".to_owned()), Unreadable::Type("record or list".to_owned())];
        assert_eq!((table.columns().len(), unreadable), (11, of_type.to_vec()));
        let names = ["town", "age", "income", "member", "account", "share", "worth", "height", "count"];
        let mut rows = rows(table, &names).unwrap();
        for i in 0..7000usize {
            assert!(rows.advance().unwrap());
            assert_eq!(rows.number(), i as u64 + 1);
            let text = |text: String| text.into_bytes();
            let (account, share) =
                (text((i64::MAX - i as i64).to_string()), text(format!("{}", (i as f64 - 50.0) / 100.0)));
            let worth = text(format!("{}", (7 - i as i64) as f64 / 10.0));
            let expected = [
                if i % 7 == 0 { Cell::Missing } else { Cell::Text([b"Rome", b"Oslo"][i % 2]) },
                if i % 5 == 0 { Cell::Missing } else { Cell::Number((i % 90) as f64) },
                Cell::Number(i as f64 * 1.25),
                Cell::Boolean(i % 3 == 0),
                if i % 2 == 0 { Cell::Missing } else { Cell::Text(&account) },
                Cell::Text(&share),
                Cell::Text(&worth),
                Cell::Number(i as f64 / 8.0),
                Cell::Number(f64::from(u32::MAX) - i as f64),
            ];
            for (place, cell) in expected.into_iter().enumerate() {
                assert_eq!(rows.cell(place), cell, "{} of row {i}", names[place]);
            }
        }
        assert!(!rows.advance().unwrap() && !rows.advance().unwrap());
    }
}

/// One error of each kind that only files have.
pub(crate) fn one_of_each() -> [DataError; 2] {
    let folder = tempfile::tempdir().unwrap();
    for (name, message) in
        [("a", "message m { required double income; }"), ("b", "message m { required float income; }")]
    {
        write(&folder.path().join(name).with_extension("parquet"), message, 0, Compression::SNAPPY);
    }
    [open(folder.path().join("none.parquet")).unwrap_err(), open(folder.path()).unwrap_err()]
}

const SCHEMA: &str = "label = { column = 'member', positive = 'true', negative = 'false' }\n\
    columns.age = { type = 'numeric', min = 0, max = 90, on_missing = 'neutral' }\n\
    columns.income = { type = 'numeric', min = 0, max = 10000 }\n\
    columns.town = { type = 'categorical', categories = ['Rome', 'Oslo'], on_missing = 'category' }\n";

/// The same records have the same bits from a CSV file and from Parquet files, on any number of threads.
#[test]
fn the_same_records_have_the_same_encoding() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.parquet"), MESSAGE, 4000, Compression::SNAPPY);
    write(&folder.path().join("b.parquet"), MESSAGE, 2500, Compression::GZIP(Default::default()));
    std::fs::write(folder.path().join("_SUCCESS"), "").unwrap();
    std::fs::write(folder.path().join(".a.parquet"), "not read").unwrap();
    let mut csv = String::from("age,income,town,member\n");
    for i in (0..4000usize).chain(0..2500) {
        let age = if i % 5 == 0 { String::new() } else { (i % 90).to_string() };
        let town = if i % 7 == 0 { "" } else { ["Rome", "Oslo"][i % 2] };
        csv.push_str(&format!("{age},{},{town},{}\n", i as f64 * 1.25, i % 3 == 0));
    }
    let encoder = Encoder::new(&Schema::parse("s.toml", SCHEMA).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let bits = |input: Input| {
        let loaded = load::<f64>(input, &encoder, &CsvOptions::default()).unwrap();
        let block = loaded.examples.block();
        let crate::Rows::Dense { values, .. } = block.rows else { panic!("dense") };
        let values: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        (values, block.targets.to_vec(), block.valid.map(<[bool]>::to_vec))
    };
    let expected = bits(Input::from_bytes("a.csv", csv.into_bytes()));
    for path in [folder.path().to_owned(), folder.path().join("?.parquet")] {
        for workers in [Workers::ONE, Workers::new(3.try_into().unwrap())] {
            let found = bits(Input::from_table(open(&path).unwrap()).with_workers(workers));
            assert!(found == expected, "{path:?} {workers:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let refused = |path: &Path| open(path).unwrap_err();
    assert_eq!(refused(&path("none.parquet")).code(), "table.open");
    assert_eq!(refused(folder.path()).code(), "table.open");
    std::fs::write(path("text.parquet"), "age,income\n1,2\n").unwrap();
    assert_eq!(refused(&path("text.parquet")).code(), "table.open");
    std::fs::remove_file(path("text.parquet")).unwrap();
    write(&path("a.parquet"), MESSAGE, 10, Compression::SNAPPY);
    let table = || open(path("a.parquet")).unwrap();
    for (name, code) in [("born", "table.type"), ("words", "table.type"), ("nothing", "csv.missing_column")] {
        let error = table().position(name).unwrap_err();
        assert_eq!((error.code(), error.column()), (code, Some(name)));
    }
    // Another file with other types, and one with fewer columns.
    for (message, column) in [
        (MESSAGE.replace("required double income", "optional double income"), "income"),
        (MESSAGE.replace("required int32 count (UINT_32);", ""), "count"),
    ] {
        write(&path("b.parquet"), &message, 0, Compression::SNAPPY);
        let error = refused(folder.path());
        assert_eq!((error.code(), error.column()), ("table.schema", Some(column)));
        assert!(error.file().unwrap().ends_with("b.parquet"));
    }
    // A binary column without rows can be opened.
    write(&path("c.parquet"), "message m { required binary t; }".replace('t', "town").as_str(), 0, Compression::SNAPPY);
    assert!(open(path("c.parquet")).is_ok());
}

/// Every damaged byte gives the same cells, an error, or other cells where it is in a value; never a panic that escapes.
#[test]
fn damaged_files_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    write(&path, MESSAGE, 300, Compression::SNAPPY);
    let whole = std::fs::read(&path).unwrap();
    let read = || -> Result<u64, DataError> {
        let table = open(&path)?;
        let mut rows = rows(table, &["age", "income", "town", "account", "worth"])?;
        let mut count = 0;
        while rows.advance()? {
            count += 1;
        }
        Ok(count)
    };
    assert_eq!(read().unwrap(), 300);
    for length in (0..whole.len()).step_by(97) {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(read().is_err(), "{length}");
    }
    let mut errors = 0;
    for at in (0..whole.len()).step_by(13) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&path, &bytes).unwrap();
        match read() {
            Ok(count) => assert!(count <= 300),
            Err(error) => {
                assert!(["table.open", "table.read", "csv.missing_column", "table.type"].contains(&error.code()));
                errors += 1;
            }
        }
    }
    assert!(errors > 20, "{errors}");
}

#[test]
fn a_file_that_changes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "b.parquet"] {
        write(&folder.path().join(name), MESSAGE, 20_000, Compression::UNCOMPRESSED);
    }
    // Another file is put in the place of the next one, or the one that is being read is written to.
    let next = || {
        write(&folder.path().join("b.parquet"), "message m { required double income; }", 5, Compression::UNCOMPRESSED)
    };
    let current = || {
        let mut file = File::options().append(true).open(folder.path().join("a.parquet")).unwrap();
        std::io::Write::write_all(&mut file, b"more").unwrap();
    };
    for (path, change) in [(folder.path().to_owned(), &next as &dyn Fn()), (folder.path().join("a.parquet"), &current)]
    {
        let mut rows = rows(open(path).unwrap(), &["income"]).unwrap();
        assert!(rows.advance().unwrap());
        change();
        let error = loop {
            match rows.advance() {
                Ok(true) => {}
                Ok(false) => panic!("it was not noticed"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), "file.changed");
    }
}

/// Dates and times are encoded as their texts in a CSV file, bit for bit, and drafted as what they are.
#[test]
fn dates_are_those_of_their_texts() {
    const DATES: &str = "message visits {
        required int32 day (DATE);
        required int64 a (TIMESTAMP_MILLIS);
        required int64 b (TIMESTAMP(MICROS, true));
        optional int64 c (TIMESTAMP(NANOS, false));
        required int32 y;
    }";
    const ROWS: i64 = 3000;
    // From the year 1895 on, at odd times.
    let millis = |i: i64| i * 1_234_567_891 - 2_345_678_901_000 + i % 1000;
    let (folder, mut csv) = (tempfile::tempdir().unwrap(), "day,a,b,c,y\n".to_owned());
    let path = folder.path().join("visits.parquet");
    let schema = Arc::new(parse_message_type(DATES).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut position = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        let days: Vec<i32> =
            (0..ROWS).map(|i| if position == 0 { (i * 17 - 27_000) as i32 } else { (i % 2) as i32 }).collect();
        let unit = [1, 1, 1000, 1_000_000][position.min(3)];
        let moments: Vec<i64> = (0..ROWS).map(|i| millis(i) * unit).collect();
        let levels = vec![1; ROWS as usize];
        match position {
            0 | 4 => column.typed::<Int32Type>().write_batch(&days, None, None).unwrap(),
            3 => column.typed::<Int64Type>().write_batch(&moments, Some(&levels), None).unwrap(),
            _ => column.typed::<Int64Type>().write_batch(&moments, None, None).unwrap(),
        };
        column.close().unwrap();
        position += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
    for i in 0..ROWS {
        let day = jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(i * 17 - 27_000)).unwrap();
        let moment = jiff::civil::datetime(1970, 1, 1, 0, 0, 0, 0) + jiff::SignedDuration::from_millis(millis(i));
        csv += &format!("{day},{moment:.3},{moment:.3},{moment:.3},{}\n", i % 2);
    }
    let time = "format = '%Y-%m-%dT%H:%M:%S%.f', min = 1850-01-01, max = 2100-01-01";
    let toml = format!(
        "label = {{ column = 'y', positive = '1', negative = '0' }}\n\
         columns.day = {{ type = 'date', format = '%Y-%m-%d', min = 1850-01-01, max = 2100-01-01 }}\n\
         columns.weekday = {{ type = 'weekday', column = 'day', format = '%Y-%m-%d' }}\n\
         columns.month = {{ type = 'month', column = 'b', format = '%Y-%m-%dT%H:%M:%S%.f' }}\n\
         columns.hour = {{ type = 'hour', column = 'c', format = '%Y-%m-%dT%H:%M:%S%.f' }}\n\
         columns.a = {{ type = 'date', {time} }}\n\
         columns.b = {{ type = 'date', {time} }}\n\
         columns.c = {{ type = 'date', {time} }}"
    );
    let encoder = Encoder::new(&Schema::parse("s.toml", &toml).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let of = |input: Input| load::<f64>(input, &encoder, &CsvOptions::default()).unwrap().examples;
    let text = of(Input::from_bytes("visits.csv", csv.clone().into_bytes()));
    let typed = of(Input::from_table(open(&path).unwrap()));
    let bits = |examples: &crate::Examples<f64>| -> Vec<u64> {
        match examples.block().rows {
            crate::Rows::Dense { values, .. } => values.iter().map(|value| value.to_bits()).collect(),
            crate::Rows::Sparse { values, indices, .. } => {
                values.iter().map(|value| value.to_bits()).chain(indices.iter().map(|&index| index.into())).collect()
            }
        }
    };
    assert!(bits(&typed) == bits(&text) && typed.targets() == text.targets());
    // A date that marks missing values does so with either type, for numbers and for categories.
    let marked = toml.replace(
        "{ type = 'date', format = '%Y-%m-%d',",
        "{ type = 'date', format = '%Y-%m-%d', on_missing = 'neutral', missing = ['1896-03-03'],",
    );
    let marked = marked.replace("column = 'day',", "column = 'day', on_missing = 'neutral', missing = ['1896-02-15'],");
    let encoder = Encoder::new(&Schema::parse("s.toml", &marked).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let nulls = |input: Input| -> Vec<usize> {
        let examples = load::<f64>(input, &encoder, &CsvOptions::default()).unwrap().examples;
        let valid = examples.block().valid.unwrap_or_default();
        (0..valid.len()).filter(|&i| !valid[i]).collect()
    };
    assert_eq!(nulls(Input::from_table(open(&path).unwrap())), [1, 2]);
    assert_eq!(nulls(Input::from_bytes("visits.csv", csv.clone().into_bytes())), [1, 2]);

    let drafted =
        crate::draft::draft(Input::from_table(open(&path).unwrap()), &Default::default(), &CsvOptions::default());
    let drafted = drafted.unwrap();
    let dates: Vec<&str> =
        drafted.schema.columns().iter().filter(|column| column.is_date()).map(|column| &*column.name).collect();
    assert_eq!(dates, ["day", "a", "b", "c"], "{}", drafted.to_toml());
    // A number is not made of a date, nor a category.
    for kind in ["type = 'numeric', min = 0, max = 1", "type = 'categorical', categories = ['1970-01-01']"] {
        let toml = format!("label = {{ column = 'y', positive = '1', negative = '0' }}\ncolumns.day = {{ {kind} }}");
        let encoder = Encoder::new(&Schema::parse("s.toml", &toml).unwrap(), Encoding::UNIT_ROWS).unwrap();
        let error = load::<f64>(Input::from_table(open(&path).unwrap()), &encoder, &CsvOptions::default()).unwrap_err();
        assert_eq!((error.code(), error.column()), ("table.type", Some("day")));
    }
}
