//! Rows that stray quotes would swallow.

use crate::read::{CsvReader, Input};

/// Returns the number of records; `None` if some are refused.
fn records(text: Vec<u8>) -> Option<usize> {
    let mut reader = CsvReader::new(Input::from_bytes("t.csv", text), Default::default()).ok()?;
    reader.refuse_line_ends(|_| false);
    let mut records = 0;
    while reader.next_record().ok()?.is_some() {
        records += 1;
    }
    Some(records)
}

/// Two quotes at any two places of any of these tables: either every record is still there, or the file is refused.
#[test]
fn no_two_quotes_swallow_a_row() {
    let mut accepted = 0;
    for rows in ["1,2\n3,4\n5,6\n", "1,,3\n4,5,6\n,8,9\n1,2,3", "1,\"2,\n\",3\n4,5,6\n7,8,\"9\"\n"] {
        let width = rows.lines().next().map_or(0, |row| row.split(',').count());
        let head = ["a", "b", "c"][..width].join(",") + "\n";
        let whole = records(format!("{head}{rows}").into_bytes());
        assert!(whole.is_some());
        for first in 0..=rows.len() {
            for second in first..=rows.len() {
                let (before, middle, after) = (&rows[..first], &rows[first..second], &rows[second..]);
                let text = format!("{head}{before}\"{middle}\"{after}");
                if let Some(found) = records(text.clone().into_bytes()) {
                    accepted += 1;
                    assert_eq!(Some(found), whole, "{text}");
                }
            }
        }
    }
    assert!(accepted > 50, "{accepted}");
}
