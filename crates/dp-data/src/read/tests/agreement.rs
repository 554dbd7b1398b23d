//! Agreement of the different ways of reading the same content.

use std::fs;

use proptest::prelude::*;

use super::*;

/// Returns all records by `csv-core` alone, the reference for the splitter: cells with the line breaks of CSV resolved.
fn reference(bytes: &[u8], options: CsvOptions) -> Vec<Vec<Vec<u8>>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv_core::ReaderBuilder::new()
        .delimiter(options.delimiter.unwrap_or(b','))
        .quote(options.quote.unwrap_or(b'"'))
        .build();
    let _ = reader.read_record(b"\n", &mut [0; 1], &mut [0; 1]);
    let (mut output, mut ends) = (vec![0; bytes.len() + 1], vec![0; bytes.len() + 1]);
    let (mut records, mut at) = (Vec::new(), 0);
    let (mut written, mut cells) = (0, 0);
    loop {
        let (result, read, added, ended) = reader.read_record(&bytes[at..], &mut output[written..], &mut ends[cells..]);
        (at, written, cells) = (at + read, written + added, cells + ended);
        match result {
            csv_core::ReadRecordResult::InputEmpty => {}
            csv_core::ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends[..cells].iter().copied());
                records.push(starts.zip(&ends[..cells]).map(|(start, &end)| output[start..end].to_vec()).collect());
                (written, cells) = (0, 0);
            }
            csv_core::ReadRecordResult::End => return records,
            full => panic!("{full:?} with room for everything"),
        }
    }
}

/// Returns the records of the reader, header first, until an error; and its code.
fn records(input: Input, options: CsvOptions) -> (Vec<Vec<Vec<u8>>>, Option<&'static str>) {
    let mut reader = match CsvReader::new(input, options) {
        Ok(reader) => reader,
        Err(error) => return (vec![], Some(error.code())),
    };
    let mut records = vec![reader.header().iter().map(|name| name.clone().into_bytes()).collect()];
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record.cells().map(<[u8]>::to_vec).collect()),
            Ok(None) => return (records, None),
            Err(error) => return (records, Some(error.code())),
        }
    }
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-z0-9]{0,3}".prop_map(String::into_bytes),
        6 => Just(b",".to_vec()),
        3 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        2 => Just(b"\"".to_vec()),
        1 => Just(b"\"\"".to_vec()),
        1 => Just("ü".into()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_splitter_agrees_with_csv_core(bytes in pieces(), step in 1_usize..20) {
        let expected = reference(&bytes, CsvOptions::default());
        let input = Input::from_reader("f", Dribble { bytes, given: 0, step, error: None }).unwrap();
        let (found, refusal) = records(input, CsvOptions::default());
        match refusal {
            None => prop_assert_eq!(found, expected),
            // The records before the refusal are the same, and the refusal has its reason.
            Some("csv.ragged") => {
                prop_assert_eq!(&found[..], &expected[..found.len()]);
                prop_assert_ne!(expected[found.len()].len(), expected[0].len());
            }
            // Content that csv-core reads without error; the individual cases are tested separately.
            Some("csv.after_quote") => prop_assert!(found.is_empty() || found[..] == expected[..found.len()]),
            Some("csv.unclosed_quote") => prop_assert_eq!(&found[..], &expected[..found.len()]),
            Some("csv.empty") => prop_assert!(expected.is_empty()),
            Some("csv.duplicate_column") => {
                let header = &expected[0];
                prop_assert!((1..header.len()).any(|i| header[..i].contains(&header[i])));
            }
            Some(other) => prop_assert!(false, "refused with {}", other),
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        magic in prop_oneof![Just(&b""[..]), Just(&b"\x1f\x8b\x08\x00"[..]), Just(&b"\xfd7zXZ\x00"[..]), Just(&b"y,age,city\n"[..]), Just(&b"1 1:"[..])],
    ) {
        let bytes = [magic, &bytes].concat();
        let _ = load_csv::<f32>(Input::from_bytes("f", bytes.clone()), &encoder(), &CsvOptions::default());
        let _ = load_libsvm::<f64>(Input::from_bytes("f", bytes.clone()), &LibsvmFormat::default(), Encoding::UNIT_ROWS);
        let _ = crate::draft::draft(Input::from_bytes("f", bytes), &Default::default(), &CsvOptions::default());
    }

    #[test]
    fn libsvm_and_csv_of_one_table_agree(rows in proptest::collection::vec((any::<bool>(), -1.0..1.0_f64, -1.0..1.0_f64), 1..20)) {
        let schema = Schema::parse("s", "label = { column = 'y', positive = '1', negative = '-1' }\n\
            columns.a = { type = 'numeric', min = -1, max = 1 }\ncolumns.b = { type = 'numeric', min = -1, max = 1 }").unwrap();
        let (mut csv, mut libsvm) = ("a,b,y\n".to_owned(), String::new());
        for (positive, a, b) in rows {
            let label = if positive { 1 } else { -1 };
            csv += &format!("{a:?},{b:?},{label}\n");
            // The range [-1, 1] maps a number to itself, up to the rounding of two operations.
            libsvm += &format!("{label} 1:{a:?} 2:{b:?}\n");
        }
        let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
        let format = LibsvmFormat { features: Some(2), ..Default::default() };
        let table = load_csv::<f64>(Input::from_bytes("c", csv.into()), &encoder, &CsvOptions::default()).unwrap();
        let (_, lines) = load_libsvm::<f64>(Input::from_bytes("l", libsvm.into()), &format, Encoding::UNIT_ROWS).unwrap();
        prop_assert_eq!(table.examples.targets(), lines.examples.targets());
        let (Rows::Dense { values, dim }, Rows::Sparse { offsets, indices, values: sparse, .. }) =
            (table.examples.block().rows, lines.examples.block().rows) else { panic!("a dense and a sparse table") };
        for (row, bounds) in values.chunks(dim).zip(offsets.windows(2)) {
            for k in bounds[0]..bounds[1] {
                prop_assert!((row[indices[k] as usize] - sparse[k]).abs() < 1e-15);
            }
        }
    }
}

/// Returns a file larger than every buffer, with some quotes.
fn large() -> String {
    let mut text = String::from("note,age,city,y\n");
    for i in 0..30_000 {
        let note = if i % 97 == 0 { "\"two\nlines, \"\"quoted\"\"\"" } else { "plain" };
        let label = if i % 3 == 0 { "yes" } else { "no" };
        text += &format!("{note},{}.5,{},{label}\n", i % 100, ["Rome", "Oslo"][i % 2]);
    }
    text
}

#[test]
fn plain_gz_xz_folder_and_stream_agree_bit_for_bit() {
    let text = large();
    let plain = text.as_bytes();
    let expected = load_text(&text).unwrap().examples;
    assert_eq!(expected.len(), 30_000);
    let folder = tempfile::tempdir().unwrap();
    let members = [gz(&plain[..1000]), gz(&plain[1000..])].concat();
    let crlf = text.replace('\n', "\r\n").replace("two\r\nlines", "two\nlines");
    let marked = [b"\xef\xbb\xbf", plain].concat();
    for (name, bytes) in [
        ("plain.csv", plain.to_vec()),
        ("named-otherwise.csv", gz(plain)),
        ("two-members.gz", members),
        ("a.csv.xz", xz(plain)),
        ("crlf.csv", crlf.into_bytes()),
        ("byte-order-mark.csv", marked),
        ("no-last-line-end.csv", plain[..plain.len() - 1].to_vec()),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let options = CsvOptions::default();
        let file = load_csv(Input::open(path.to_str().unwrap()).unwrap(), &encoder(), &options).unwrap();
        let memory = load_csv(Input::from_bytes(name, bytes.clone()), &encoder(), &options).unwrap();
        let dribble = Dribble { bytes, given: 0, step: 4099, error: None };
        let stream = load_csv(Input::from_reader("stream", dribble).unwrap(), &encoder(), &options).unwrap();
        for loaded in [file, memory, stream] {
            assert!(bits(&loaded.examples) == bits(&expected), "{name} differs");
        }
    }
    let other = CsvOptions { delimiter: Some(b';'), quote: Some(b'\''), ..CsvOptions::default() };
    let swapped: String = text.replace("two\nlines, \"\"quoted\"\"", "two").replace('"', "'").replace(',', ";");
    let loaded = load_csv(Input::from_bytes("semicolons", swapped.into()), &encoder(), &other).unwrap();
    assert!(bits(&loaded.examples) == bits(&expected));
}

#[test]
fn records_and_examples_agree() {
    let encoder = encoder();
    let expected = load_text(PEOPLE).unwrap().examples;
    let input = || Input::from_bytes("people.csv", PEOPLE.into());
    let mut reader = RecordReader::new(input(), &encoder, &CsvOptions::default(), true).unwrap();
    assert_eq!(reader.header(), ["city", "age", "note", "y"]);
    let Rows::Dense { values, dim } = expected.block().rows else { panic!("dense") };
    let mut dense = vec![f64::NAN; dim];
    let mut lines = Vec::new();
    for (row, target) in values.chunks(dim).zip(expected.targets()) {
        let record = reader.next_record().unwrap().unwrap();
        record.row().write_dense(&mut dense);
        assert_eq!((&dense[..], record.row().target()), (row, Some(*target)));
        assert!(
            (record.row().dot(&[1.0, 2.0, 3.0, 4.0, 5.0])
                - row.iter().zip(1..).map(|(value, k)| value * f64::from(k)).sum::<f64>())
            .abs()
                < 1e-15
        );
        lines.push((record.line(), record.cells().next().unwrap().to_owned()));
    }
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(lines, [(2, "Rome".into()), (4, "São Paulo, SP".into()), (5, "Oslo".into())]);

    let unlabelled = Input::from_bytes("new.csv", b"age,city\n1,Rome\n".to_vec());
    let mut reader = RecordReader::new(unlabelled, &encoder, &CsvOptions::default(), false).unwrap();
    assert_eq!(reader.next_record().unwrap().unwrap().row().target(), None);
    let unlabelled = Input::from_bytes("new.csv", b"age,city\n1,Rome\n".to_vec());
    let needed = RecordReader::new(unlabelled, &encoder, &CsvOptions::default(), true);
    assert_eq!(needed.err().unwrap().code(), "csv.missing_column");
}
