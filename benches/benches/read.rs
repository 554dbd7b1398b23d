//! Reading a CSV file into examples, compared with bare splitting by `csv-core` of the same bytes in the same run.
//!
//! The relevant ratios are `load` over `split`, the cost of finding columns, reading numbers, scaling, bounding the norm and
//! storing beside that of finding the cells alone; and two threads over one.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use csv_core::ReadRecordResult;
use dp_data::read::{CsvOptions, CsvReader, Input, load_csv};
use dp_data::{Encoder, Encoding, Schema, Workers};

const ROWS: usize = 20_000;
/// The table of two threads is this many times as long: they read chunks.
const TIMES: usize = 4;

/// A small linear congruential generator: the bench needs varied digits, not randomness.
struct Digits(u64);

impl Digits {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// 54 numeric columns: 20 with four decimals, 20 whole numbers, 14 flags; and the label.
fn numeric() -> (Vec<u8>, Encoder) {
    let mut digits = Digits(1);
    let mut schema = String::from("label = { column = 'y', positive = '1', negative = '0' }\n");
    let mut text = String::new();
    for column in 0..54 {
        let (min, max) = if column < 20 {
            (-1000, 1000)
        } else if column < 40 {
            (0, 4000)
        } else {
            (0, 1)
        };
        let _ = writeln!(schema, "columns.f{column} = {{ type = 'numeric', min = {min}, max = {max} }}");
        let _ = write!(text, "f{column},");
    }
    text.push_str("y\n");
    for _ in 0..ROWS {
        for _ in 0..20 {
            let _ = write!(text, "{}.{:04},", digits.below(2000) as i64 - 1000, digits.below(10_000));
        }
        for _ in 0..20 {
            let _ = write!(text, "{},", digits.below(4000));
        }
        for _ in 0..14 {
            let _ = write!(text, "{},", digits.below(2));
        }
        let _ = writeln!(text, "{}", digits.below(2));
    }
    (text.into_bytes(), encoder(&schema))
}

/// Six numeric and eight categorical columns, about a hundred categories: stored sparse.
fn mixed() -> (Vec<u8>, Encoder) {
    let mut digits = Digits(2);
    let mut schema = String::from("label = { column = 'y', positive = '1', negative = '0' }\n");
    let mut text = String::new();
    for column in 0..14 {
        if column < 6 {
            let _ = writeln!(schema, "columns.f{column} = {{ type = 'numeric', min = 0, max = 99999 }}");
        } else {
            let list: Vec<_> = (0..13).map(|category| format!("'category-{category}'")).collect();
            let _ =
                writeln!(schema, "columns.f{column} = {{ type = 'categorical', categories = [{}] }}", list.join(","));
        }
        let _ = write!(text, "f{column},");
    }
    text.push_str("y\n");
    for _ in 0..ROWS {
        for _ in 0..6 {
            let _ = write!(text, "{},", digits.below(100_000));
        }
        for _ in 0..8 {
            let _ = write!(text, "category-{},", digits.below(13));
        }
        let _ = writeln!(text, "{}", digits.below(2));
    }
    (text.into_bytes(), encoder(&schema))
}

/// The numeric table, each of its lines rewritten by `form`.
fn numeric_as(form: impl Fn(&str) -> String) -> (Vec<u8>, Encoder) {
    let (bytes, encoder) = numeric();
    let text = String::from_utf8(bytes).expect("a text");
    let (header, rows) = text.split_once('\n').expect("a header");
    let rows: String = rows.lines().map(form).collect();
    (format!("{header}\n{rows}").into_bytes(), encoder)
}

/// The first twenty cells with thirteen more digits.
fn with_long_decimals(line: &str) -> String {
    let cells = line.split(',').enumerate().map(|(column, cell)| match column {
        0..20 => format!("{cell}1234567890123"),
        _ => cell.to_owned(),
    });
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// The mixed table with quotes around its categories.
fn quoted() -> (Vec<u8>, Encoder) {
    let (bytes, encoder) = mixed();
    let text = String::from_utf8(bytes).expect("a text");
    let mut cells: Vec<String> = Vec::new();
    for cell in text.split_inclusive([',', '\n']) {
        let (content, end) = cell.split_at(cell.len() - 1);
        cells.push(if content.starts_with("category") { format!("\"{content}\"{end}") } else { cell.to_owned() });
    }
    (cells.concat().into_bytes(), encoder)
}

/// The numeric table, of whose cells every twentieth is empty.
fn with_missing() -> (Vec<u8>, Encoder) {
    let digits = std::cell::RefCell::new(Digits(3));
    let empty = |column: usize, cell: &str| column < 54 && !cell.is_empty() && digits.borrow_mut().below(20) == 0;
    let (bytes, _) = numeric_as(|line| {
        let cells = line.split(',').enumerate();
        cells.map(|(column, cell)| if empty(column, cell) { "" } else { cell }).collect::<Vec<_>>().join(",") + "\n"
    });
    let mut schema = String::from("missing = ['']\nlabel = { column = 'y', positive = '1', negative = '0' }\n");
    for column in 0..54 {
        let range = "type = 'numeric', min = -1000, max = 4000, on_missing = { value = 0.0 }";
        let _ = writeln!(schema, "columns.f{column} = {{ {range} }}");
    }
    (bytes, encoder(&schema))
}

fn encoder(schema: &str) -> Encoder {
    let schema = Schema::parse("bench", schema).expect("a valid schema");
    Encoder::new(&schema, Encoding::UNIT_ROWS).expect("a valid encoding")
}

/// The baseline: finds every cell and discards it.
fn split(bytes: &[u8]) -> usize {
    let mut reader = csv_core::Reader::new();
    let (mut output, mut ends) = (vec![0; 1 << 16], vec![0; 1 << 10]);
    let (mut rest, mut cells) = (bytes, 0);
    loop {
        let (result, read, _, ended) = reader.read_record(rest, &mut output, &mut ends);
        rest = &rest[read..];
        cells += ended;
        if result == ReadRecordResult::End {
            return cells;
        }
    }
}

fn read(c: &mut Criterion) {
    for (name, (bytes, encoder)) in [
        ("numeric54", numeric()),
        ("mixed14", mixed()),
        ("crlf", numeric_as(|line| format!("{line}\r\n"))),
        ("long decimals", numeric_as(with_long_decimals)),
        ("missing", with_missing()),
        ("quoted", quoted()),
    ] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(20);
        group.bench_with_input(BenchmarkId::new("split", "csv-core"), &bytes, |b, bytes| {
            b.iter(|| split(black_box(bytes)))
        });
        group.bench_with_input(BenchmarkId::new("split", "dp-data"), &bytes, |b, bytes| {
            b.iter(|| {
                let input = Input::from_bytes("bench", bytes.clone());
                let mut reader = CsvReader::new(input, CsvOptions::default()).expect("a header");
                let mut cells = 0;
                while let Some(record) = reader.next_record().expect("a record") {
                    cells += record.len();
                }
                cells
            });
        });
        let load = |bytes: &[u8], workers| {
            let input = Input::from_bytes("bench", bytes.to_vec()).with_workers(workers);
            load_csv::<f64>(input, &encoder, &CsvOptions::default()).expect("a table").examples.len()
        };
        group.bench_with_input(BenchmarkId::new("load", "f64"), &bytes, |b, bytes| {
            b.iter(|| load(bytes, Workers::ONE));
        });
        let first_row = 1 + bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
        let long = [&bytes[..first_row], &bytes[first_row..].repeat(TIMES)].concat();
        group.throughput(Throughput::Bytes(long.len() as u64));
        for threads in [1, 2] {
            let workers = Workers::new(threads.try_into().expect("not 0"));
            group.bench_with_input(BenchmarkId::new("load of chunks, threads", threads), &long, |b, long| {
                b.iter(|| load(long, workers));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, read);
criterion_main!(benches);
