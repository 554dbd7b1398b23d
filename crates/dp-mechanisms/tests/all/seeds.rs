//! The fuzzer's seeds, without the fuzzer: each mechanism is among them, released and refused.
#![cfg(feature = "serde")]

use std::collections::BTreeMap;
use std::path::Path;

#[path = "../../fuzz/read_and_release.rs"]
mod read_and_release;

use read_and_release::{Outcome, read_and_release};

fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/read_and_release");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(read).collect()
}

#[test]
fn every_seed_ends_as_its_name_says() {
    let mut kinds: BTreeMap<String, Vec<Outcome>> = BTreeMap::new();
    for (name, bytes) in seeds() {
        let outcome = read_and_release(&bytes);
        let expected = match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("released") => Outcome::Released,
            Some("refused") => Outcome::Refused,
            Some("unread") => Outcome::Unread,
            ending => panic!("{name}: {ending:?}"),
        };
        assert_eq!(outcome, expected, "{name}");
        let kind = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned();
        kinds.entry(kind).or_default().push(outcome);
    }
    let released = kinds.values().filter(|outcomes| outcomes.contains(&Outcome::Released)).count();
    assert_eq!(released, 13, "one seed at least for each kind: {kinds:?}");
}

/// A fuzzer's first mutations: a byte changed, omitted or doubled.
#[test]
fn seeds_with_one_byte_changed_are_read_or_not() {
    let mut released = 0;
    for (_, bytes) in seeds() {
        for place in 0..bytes.len() {
            for byte in [b'0', b'9', b'-', b'.', b'e', b'"', b'\n', 0xff] {
                let mut changed = bytes.clone();
                changed[place] = byte;
                released += u32::from(read_and_release(&changed) == Outcome::Released);
            }
            let mut shorter = bytes.clone();
            let byte = shorter.remove(place);
            released += u32::from(read_and_release(&shorter) == Outcome::Released);
            let mut longer = bytes.clone();
            longer.insert(place, byte);
            released += u32::from(read_and_release(&longer) == Outcome::Released);
        }
    }
    assert!(released > 100, "{released}");
}
