//! Tables and lines read in chunks on several threads: the same records, rows, warnings and errors.

use std::io;

use proptest::prelude::*;

use super::*;
use crate::encode::Stored;
use crate::error::{DataError, DataErrorKind};
use crate::workers::Workers;

fn workers(threads: usize) -> Workers {
    Workers::new(threads.try_into().unwrap())
}

/// The cells of each record, and the error after them. With chunks, the records before an error in its chunk are missing.
type Found = (Vec<Vec<Vec<u8>>>, Option<String>);

fn records(reader: &mut CsvReader) -> Result<Vec<Vec<Vec<u8>>>, DataError> {
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record.cells().map(<[u8]>::to_vec).collect());
    }
    Ok(records)
}

fn read(text: &[u8], step: usize, fails: bool, threads: usize, line_ends: bool) -> Result<Found, DataError> {
    let error = fails.then_some(io::ErrorKind::Other);
    let source = Dribble { bytes: text.to_vec(), given: 0, step, error };
    let input = Input::from_reader("a.csv", source)?.with_workers(workers(threads));
    let mut reader = CsvReader::new(input, CsvOptions::default())?;
    if !line_ends {
        reader.refuse_line_ends(|_| false);
    }
    let mut found = Vec::new();
    let outcome = reader.for_each_chunk(
        |reader| reader,
        records,
        |records, _| {
            found.extend(records);
            Ok::<_, DataError>(())
        },
    );
    let outcome = outcome.and_then(|()| {
        loop {
            match reader.next_record() {
                Ok(Some(record)) => found.push(record.cells().map(<[u8]>::to_vec).collect()),
                Ok(None) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    });
    Ok((found, outcome.err().map(|error| error.to_string())))
}

/// Asserts that chunks give the records and the error of a reader without.
fn assert_same(text: &[u8], step: usize, fails: bool, line_ends: bool) {
    let expected = read(text, usize::MAX, fails, 1, line_ends);
    for threads in [2, 3] {
        match (read(text, step, fails, threads, line_ends), &expected) {
            (Ok((records, error)), Ok((all, expected))) => {
                assert_eq!(&error, expected, "{:?}", String::from_utf8_lossy(text));
                let compared = if error.is_some() { records.len() } else { all.len() };
                assert_eq!(records, all[..compared], "{:?}", String::from_utf8_lossy(text));
            }
            (found, expected) => {
                let text_of = |found: Result<(), &DataError>| found.err().map(|error| error.to_string());
                let found = text_of(found.as_ref().map(|_| ()));
                assert_eq!(found, text_of(expected.as_ref().map(|_| ())), "{:?}", String::from_utf8_lossy(text));
            }
        }
    }
}

fn piece() -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![
        8 => prop::sample::select(vec![&b"1,2\n"[..], b"a,\"b\"\n", b"\"x\ny\",2\r\n", b"\"q\"\"q\",\",\"\n"]),
        1 => prop::sample::select(vec![
            &b","[..], b"\n", b"\r\n", b"\r", b"\"", b"\"\"", b"a", b"a\"b", b" \"", "é".as_bytes(), b"\xff", b"1,2,3\n",
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn chunks_have_the_records_and_errors_of_the_file(
        pieces in prop::collection::vec(piece(), 0..40),
        (step, fails, line_ends) in (1_usize..60, any::<bool>(), any::<bool>()),
    ) {
        let text = [b"x,y\n", &pieces.concat()[..]].concat();
        assert_same(&text, step, fails, line_ends);
    }
}

#[test]
fn text_that_cannot_be_cut_is_read_to_its_end() {
    let long = "1".repeat(500);
    let rows = |end: &str| format!("x,y{end}{}", format!("{long},2{end}").repeat(3000));
    let quoted = |text: &str| format!("x,y\n1,2\n\"{}\",{text}\n3,4\n", format!("{long}\n").repeat(3000));
    let irregular = format!("{}\"1\"2,3\n4,5\n", rows("\n"));
    for text in [rows("\n"), rows("\r"), rows("\r\n"), quoted("2"), quoted("2,3"), irregular, "x,y\n\"1,2\n".into()] {
        for line_ends in [false, true] {
            assert_same(text.as_bytes(), 1 << 17, false, line_ends);
        }
    }
}

/// A schema and rows of which some are clamped, replaced, null, constant and quoted, whose cells vary late in the file only.
fn table(rows: usize) -> (Encoder, String) {
    let schema = "missing = ['', 'NA']\n\
        label = { column = 'y', type = 'numeric', min = 0, max = 9 }\n\
        columns.age = { type = 'numeric', min = 0, max = 100, on_missing = 'neutral', on_unreadable = 'neutral' }\n\
        columns.pay = { type = 'numeric', min = 0, max = 50, on_missing = { value = 7 } }\n\
        columns.same = { type = 'indicator' }\n\
        columns.late = { type = 'numeric', min = 0, max = 1 }\n\
        columns.city = { type = 'categorical', categories = ['Rome', 'Oslo', 'other'], on_unknown = 'other' }";
    let encoder = Encoder::new(&Schema::parse("s.toml", schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let mut text = "age,pay,same,late,city,y,unused\n".to_owned();
    for i in 0..rows {
        let age = if i % 131 == 5 {
            "NA".into()
        } else if i % 151 == 7 {
            "old".into()
        } else {
            (i % 120).to_string()
        };
        let pay = if i % 61 == 3 { String::new() } else { format!("{}.{}", i % 60, i % 7) };
        let (late, city) = (i32::from(i + 3 > rows), ["Rome", "\"Oslo\"", "Bern"][i % 3]);
        text += &format!("{age},{pay},1,{late},{city},{},x\n", i % 11);
    }
    (encoder, text)
}

fn input(text: &str, step: usize, threads: usize) -> Input {
    let source = Dribble { bytes: text.as_bytes().to_vec(), given: 0, step, error: None };
    Input::from_reader("a.csv", source).unwrap().with_workers(workers(threads))
}

#[test]
fn rows_and_warnings_are_the_same_on_any_number_of_threads() {
    fn same<F: Stored>(encoder: &Encoder, text: &str, bits: impl Fn(&Examples<F>) -> Bits) {
        let load = |step, threads| {
            let input = || input(text, step, threads);
            let rows = load_csv::<F>(input(), encoder, &CsvOptions::default()).unwrap();
            let (coordinates, warnings) = load_coordinates::<F>(input(), encoder, &CsvOptions::default()).unwrap();
            assert_eq!(warnings, rows.warnings);
            let later = coordinates.encode(encoder, Workers::ONE).unwrap();
            (bits(&rows.examples), bits(&later), rows.warnings)
        };
        let expected = load(usize::MAX, 1);
        assert!(expected.2.len() > 5, "{:?}", expected.2);
        for (step, threads) in [(500, 2), (4000, 3), (1 << 20, 2), (3000, 8)] {
            assert!(load(step, threads) == expected, "{threads} threads, {step} bytes at a time");
        }
    }
    let (encoder, text) = table(2000);
    same::<f64>(&encoder, &text, bits);
    same::<f32>(&encoder, &text, |examples| {
        let Rows::Dense { values, .. } = examples.block().rows else { panic!("dense") };
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value).to_bits()).collect();
        (vec![], vec![], wide(values), wide(examples.targets()), examples.block().valid.map(<[bool]>::to_vec))
    });
}

#[test]
fn parts_of_records_are_the_same_on_any_number_of_threads() {
    let (encoder, text) = table(3000);
    let read = |text: &str, step, threads| {
        let mut reader = RecordReader::new(input(text, step, threads), &encoder, &CsvOptions::default(), true).unwrap();
        let of_part = |part: &mut RecordReader<'_>| {
            let mut rows = Vec::new();
            while let Some(record) = part.next_record()? {
                let cells: Vec<String> = record.cells().map(str::to_owned).collect();
                rows.push((cells, record.row().values().to_vec(), record.row().target()));
            }
            Ok(rows)
        };
        let mut rows = Vec::new();
        let outcome = reader.for_each_part(of_part, |part| {
            rows.extend(part);
            Ok::<_, DataError>(())
        });
        (rows, outcome.err().map(|error| error.to_string()), reader.warnings())
    };
    let expected = read(&text, usize::MAX, 1);
    let clamps = expected
        .2
        .iter()
        .any(|warning| matches!(warning, CuratorWarning::Clamped { column, values: 101.. } if column == "y"));
    assert_eq!((expected.0.len(), &expected.1, clamps), (3000, &None, true), "{:?}", expected.2);
    let unreadable = text.replacen(",1,0,Rome,8,", ",1,none,Rome,8,", 30).replacen("none", "0", 29);
    let refused = read(&unreadable, usize::MAX, 1).1;
    assert!(refused.as_ref().is_some_and(|error| error.contains("none")), "{refused:?}");
    for (step, threads) in [(700, 2), (5000, 3), (1 << 20, 4)] {
        assert!(read(&text, step, threads) == expected, "{threads} threads, {step} bytes at a time");
        assert_eq!(read(&unreadable, step, threads).1, refused, "{threads} threads, {step} bytes at a time");
    }
}

/// A thread that leaves a chunk because of an error may go on with another one before the error is seen.
#[test]
fn what_is_left_of_a_part_is_not_in_the_next_one() {
    let (encoder, _) = table(0);
    let rows = (0..4000).map(|i| format!("{},1,1,0,Rome,1,{i}\n", i % 120)).collect::<String>();
    let text = format!("age,pay,same,late,city,y,unused\n{rows}");
    for threads in [1, 2, 3] {
        let mut reader =
            RecordReader::new(input(&text, 3000, threads), &encoder, &CsvOptions::default(), true).unwrap();
        let first_three = |part: &mut RecordReader<'_>| {
            let mut numbers = Vec::new();
            while let (true, Some(record)) = (numbers.len() < 3, part.next_record()?) {
                numbers.push(record.cells().last().unwrap().parse::<u32>().unwrap());
            }
            Ok(numbers)
        };
        let mut parts = Vec::new();
        let add = |part: Vec<u32>| {
            parts.push(part);
            if parts.len() < 20 { Ok(()) } else { Err(DataError::new(DataErrorKind::CsvEmpty, "enough")) }
        };
        assert!(reader.for_each_part(first_three, add).is_err());
        for part in &parts {
            assert_eq!(part[..], [part[0], part[0] + 1, part[0] + 2], "{parts:?}");
        }
        assert!(parts.windows(2).all(|pair| pair[0][2] < pair[1][0]), "{parts:?}");
    }
}

/// What a libsvm file gives: the width, the stored bits and the warnings, or the error.
fn libsvm(text: &[u8], step: usize, fails: bool, threads: usize) -> Result<(usize, Bits, String), String> {
    let error = fails.then_some(io::ErrorKind::Other);
    let source = Dribble { bytes: text.to_vec(), given: 0, step, error };
    let loaded = Input::from_reader("a.libsvm", source).and_then(|input| {
        load_libsvm::<f64>(input.with_workers(workers(threads)), &LibsvmFormat::default(), Encoding::UNIT_ROWS)
    });
    let (encoder, loaded) = loaded.map_err(|error| format!("{error} {:?}", error.line()))?;
    Ok((encoder.dim(), bits(&loaded.examples), format!("{:?}", loaded.warnings)))
}

fn assert_same_lines(text: &[u8], step: usize, fails: bool) {
    let expected = libsvm(text, usize::MAX, fails, 1);
    for threads in [2, 3] {
        assert_eq!(libsvm(text, step, fails, threads), expected, "{:?}", String::from_utf8_lossy(text));
    }
}

fn line() -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![
        20 => prop::sample::select(vec![
            &b"+1 1:2 3:-4e-1\n"[..], b"-1\n", b"0 2:1\r\n", b" +1\t7:.5 # 1:1\n", b"# all\n", b"\n", b" \r\n",
        ]),
        1 => prop::sample::select(vec![
            &b"2 1:1\n"[..], b"+1 3:1 2:1\n", b"-1 0:1\n", b"+1 a\n", b"+1 4:nan\n", b"-1 5:1", b"\xef\xbb\xbf-1 1:1\n",
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn chunks_of_lines_have_the_rows_and_errors_of_the_file(
        lines in prop::collection::vec(line(), 0..60),
        (step, fails, mark) in (1_usize..80, any::<bool>(), any::<bool>()),
    ) {
        let mark = if mark { BYTE_ORDER_MARK } else { b"" };
        assert_same_lines(&[mark, &lines.concat()[..]].concat(), step, fails);
    }
}

#[test]
fn lines_that_are_not_cut_are_read_to_their_end() {
    let long = format!("-1{}\n", (1..300_000).map(|index| format!(" {index}:1")).collect::<String>());
    let short = "+1 1:1\n".repeat(50_000);
    for text in [format!("{short}{long}{short}"), format!("{long}{long}"), format!("{short}+1 x:1\n{long}")] {
        assert_same_lines(text.as_bytes(), 1 << 17, false);
    }
    // The last line of a chunk is not that of the file.
    assert_eq!(
        libsvm(format!("{short}+1 x:1\n{short}").as_bytes(), 1 << 16, false, 2).unwrap_err().matches("50001").count(),
        2
    );
}

#[test]
fn the_line_of_a_record_is_the_one_after_blank_lines() {
    for (text, line) in [("x,y\n\r\r\na\"b\n", 3), ("x,y\n\r\r\n\r\r\na,\"b\"c\n", 4), ("x,y\n\r\r\n\"a", 3)] {
        let mut reader = CsvReader::new(Input::from_bytes("a.csv", text.into()), CsvOptions::default()).unwrap();
        assert_eq!(reader.next_record().err().and_then(|error| error.line()), Some(line), "{text:?}");
    }
}
