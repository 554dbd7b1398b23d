use super::*;

use crate::table::{Table, TableColumn};

const MEANINGS: [Meaning; 5] = [Meaning::Boolean, Meaning::Whole, Meaning::Real, Meaning::Text, Meaning::AsText];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The stream of these rows: their fields, `None` for NULL.
fn stream(rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
    // The header has an extension, which is skipped.
    let mut bytes = [SIGNATURE.as_slice(), &[0, 0, 0, 0], &[0, 0, 0, 3], b"ext"].concat();
    for row in rows {
        bytes.extend((row.len() as i16).to_be_bytes());
        for field in *row {
            bytes.extend(field.map_or(-1, |field| field.len() as i32).to_be_bytes());
            bytes.extend(field.unwrap_or_default());
        }
    }
    bytes.extend((-1i16).to_be_bytes());
    bytes
}

/// What a table of these columns reads from such pieces: the cells of each row as text.
fn read(bytes: &[u8], piece: usize) -> Result<Vec<String>, DataError> {
    let columns = NAMES.map(|name| TableColumn { name: name.to_owned(), unreadable: None }).to_vec();
    let pieces: Vec<Vec<u8>> = bytes.chunks(piece).map(<[u8]>::to_vec).collect();
    let table = Table::new("t", columns, move |_, batches| {
        let mut tuples = Tuples::new(&MEANINGS, &NAMES, batches);
        pieces.iter().try_for_each(|piece| tuples.take(piece))?;
        tuples.end()
    });
    let mut rows = table.start(vec![0, 1, 2, 3, 4])?;
    let mut read = Vec::new();
    while rows.advance()? {
        read.push((0..5).map(|column| format!("{:?}", rows.cell(column))).collect::<Vec<_>>().join(" "));
    }
    Ok(read)
}

fn number(value: f64) -> [u8; 8] {
    value.to_be_bytes()
}

/// A stream gives the same cells wherever its pieces end.
#[test]
fn cells_do_not_depend_on_where_pieces_end() {
    let (pi, nan, large) = (number(3.25), number(f64::NAN), (1i64 << 60).to_be_bytes());
    let long = vec![b'x'; 3000];
    let rows: [&[Option<&[u8]>]; 4] = [
        &[Some(&[1]), Some(&[0xff, 0xfe]), Some(&pi), Some("zwölf".as_bytes()), Some(b"1.50")],
        &[None, None, None, None, None],
        &[Some(&[0]), Some(&[0x80, 0, 0, 0]), Some(&[0x3f, 0x80, 0, 0]), Some(b""), Some(&long)],
        &[Some(&[1]), Some(&large), Some(&nan), Some(b"-"), Some(b"NaN")],
    ];
    let bytes = stream(&rows);
    let whole = read(&bytes, bytes.len()).unwrap();
    assert!(whole[0].starts_with("Boolean(true) Number(-2.0) Number(3.25) Text("), "{}", whole[0]);
    assert_eq!(whole[1], "Missing ".repeat(5).trim_end());
    assert!(whole[2].starts_with("Boolean(false) Number(-2147483648.0) Number(1.0)"), "{}", whole[2]);
    let digits = format!("{:?}", Cell::Text(b"1152921504606846976"));
    assert!(whole[3].contains(&digits) && whole[3].contains("NaN"), "{}", whole[3]);
    for piece in [1, 2, 3, 7, 19, 64, 1000] {
        assert_eq!(read(&bytes, piece).unwrap(), whole, "pieces of {piece} bytes");
    }
}

/// Many rows fill several batches, in order.
#[test]
fn rows_keep_their_order() {
    let values: Vec<[u8; 4]> = (0..2000i32).map(i32::to_be_bytes).collect();
    let fields: Vec<[Option<&[u8]>; 5]> =
        values.iter().map(|value| [None, Some(value.as_slice()), None, None, None]).collect();
    let rows: Vec<&[Option<&[u8]>]> = fields.iter().map(<[_; 5]>::as_slice).collect();
    let read = read(&stream(&rows), 100).unwrap();
    assert_eq!(read.len(), 2000);
    assert!(read.iter().enumerate().all(|(i, row)| row.contains(&format!("Number({i}.0)"))));
}

proptest::proptest! {
    /// No stream makes the reader panic or allocate what a length promises.
    #[test]
    fn any_bytes_are_rows_or_an_error(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), piece in 1usize..50) {
        let header = &stream(&[])[..SIGNATURE.len() + 11];
        let _ = read(&bytes, piece);
        let _ = read(&[header, &[0, 5], &bytes].concat(), piece);
    }
}

/// Streams that are cut, go on after their end, or are something else are errors, and no shorter tables.
#[test]
fn damaged_streams_are_errors() {
    let row: &[Option<&[u8]>] = &[Some(&[1]), Some(&[0, 1]), None, Some(b"text"), None];
    let bytes = stream(&[row, row]);
    for cut in 0..bytes.len() {
        assert_eq!(read(&bytes[..cut], 5).unwrap_err().code(), "table.read", "cut at {cut}");
    }
    let start = SIGNATURE.len() + 11;
    let mut changed = vec![("after the end", [bytes.as_slice(), &[0]].concat())];
    for (what, place, value) in [
        ("signature", 3, 0),
        ("flag of identifiers", SIGNATURE.len() + 1, 1),
        ("length of the extension", SIGNATURE.len() + 4, 0x80),
        ("number of fields", start + 1, 6),
        ("length of a field", start + 2, 0x80),
        ("size of an integer", start + 2 + 4 + 1 + 3, 3),
    ] {
        let mut bytes = bytes.clone();
        bytes[place] = value;
        changed.push((what, bytes));
    }
    for (what, bytes) in changed {
        assert_eq!(read(&bytes, bytes.len()).unwrap_err().code(), "table.read", "{what}");
    }
    let not_text: &[Option<&[u8]>] = &[None, None, None, Some(&[0xff]), None];
    // Of a database without an encoding.
    assert_eq!(read(&stream(&[row, not_text]), 1000).unwrap()[1], "Missing Missing Missing Text([255]) Missing");
}

#[test]
fn dates_are_counted_from_2000() {
    let cell = |meaning, bytes: &[u8]| {
        let mut batch = Batch::new(1);
        push_cell(&mut batch, 0, meaning, bytes)
            .map(|()| format!("{:?}", batch.cell(0, 0)))
            .map_err(|error| error.code())
    };
    let date = |days: i32| cell(Meaning::Date, &days.to_be_bytes());
    let moment = |micros: i64| cell(Meaning::Moment, &micros.to_be_bytes());
    let text = |text: &[u8]| Ok(format!("{:?}", Cell::Text(text)));
    assert_eq!((date(0), date(-1)), (Ok("Date(10957)".into()), Ok("Date(10956)".into())));
    assert_eq!(moment(-6 * 3_600_000_000), Ok("DateTime { day: 10956, nanoseconds: 64800000000000 }".into()));
    assert_eq!((date(i32::MAX), date(i32::MIN)), (text(b"infinity"), text(b"-infinity")));
    assert_eq!((moment(i64::MAX), moment(i64::MIN)), (text(b"infinity"), text(b"-infinity")));
    // The server's latest timestamp, in the year 294276, does not end the stream: its column decides how it counts.
    assert_eq!(
        moment(9_223_371_331_199_999_999),
        Ok("DateTime { day: 106762939, nanoseconds: 86399999999000 }".into())
    );
    assert_eq!(cell(Meaning::Date, &[0, 0]), Err("table.read"));
}
