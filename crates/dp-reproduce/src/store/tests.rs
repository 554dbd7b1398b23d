use super::*;
use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::ranker::{Loss, Method, Ranked, RankerSetting, Shape};
use crate::setting::{Privacy, Setting};

fn cell(repetition: u32) -> Cell {
    let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Approximate { epsilon: 0.1 });
    Cell::new(setting, repetition)
}

const OUTCOME: Outcome = Outcome {
    accuracy: 0.1 + 0.2,
    objective: 1e-9,
    seconds: 1.5,
    reads: 7.25,
    coverage: Some([0.5, 0.1, 0.7, 1.0]),
    ranked: None,
    chosen_step: Some(0.3),
};

#[test]
fn what_was_appended_is_there_again_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let mut store = Store::open(&path).unwrap();
    assert!(store.is_empty() && store.get(&cell(0)).is_none());
    store.append(&cell(0), OUTCOME).unwrap();
    store.append(&cell(1), Outcome { objective: f64::INFINITY, ..OUTCOME }).unwrap();
    drop(store);
    let again = Store::open(&path).unwrap();
    assert_eq!((again.len(), again.get(&cell(0))), (2, Some(&OUTCOME)));
    assert_eq!(again.get(&cell(1)).unwrap().objective, f64::INFINITY);
    assert!(again.get(&cell(2)).is_none());
}

#[test]
fn an_older_record_is_completed_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let first = format!("{},sphere,bolt-on,logistic,0,epsilon,given,10,50,usual,,0,0.5,0.25,1.5", cell(0).key());
    let plain = Outcome { accuracy: 0.5, objective: 0.25, seconds: 1.5, ..Outcome::default() };
    let covered = Outcome { reads: 7.25, coverage: OUTCOME.coverage, ..plain };
    for (i, (lacking, line, expected)) in [
        (",reads,coverage,ranking,chosen_step,digest", first.clone(), plain),
        (",ranking,chosen_step,digest", format!("{first},0.0,"), plain),
        (",ranking,chosen_step,digest", format!("{first},7.25,0.5 0.1 0.7 1.0"), covered),
        (",chosen_step,digest", format!("{first},7.25,0.5 0.1 0.7 1.0,"), covered),
    ]
    .into_iter()
    .enumerate()
    {
        let old = format!("{}\n{line}\n{}", format::HEADER.strip_suffix(lacking).unwrap(), &line[..20]);
        std::fs::write(&path, &old).unwrap();
        // Another name of the same file: the record is replaced, and never truncated in place.
        let before = folder.path().join(format!("before {i}"));
        std::fs::hard_link(&path, &before).unwrap();
        let mut store = Store::open(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&before).unwrap(), old);
        assert_eq!((store.len(), store.unbound(), store.get(&cell(0))), (1, 1, Some(&expected)));
        assert!(matches!(Store::open(&path), Err(Error::InUse { .. })));
        store.append(&cell(1), OUTCOME).unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        assert_eq!((again.unbound(), again.get(&cell(0)), again.get(&cell(1))), (0, Some(&expected), Some(&OUTCOME)));
        drop(again);
        std::fs::remove_file(&path).unwrap();
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().all(|entry| !entry.unwrap().path().ends_with(".part")));
}

/// The lines of a record with digests and without chosen steps are bound, and stay so.
#[test]
fn a_record_before_chosen_steps_is_completed_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let header = format::HEADER.replace(",chosen_step", "");
    let row = format!(
        "{},sphere,bolt-on,logistic,0,epsilon,given,10,50,usual,,0,0.5,0.25,1.5,7.25,0.5 0.1 0.7 1.0,",
        cell(0).key()
    );
    let digest = format::digest(&header, &row);
    std::fs::write(&path, format!("{header}\n{row},{digest}\n")).unwrap();
    let expected = Outcome { accuracy: 0.5, objective: 0.25, seconds: 1.5, chosen_step: None, ..OUTCOME };
    for _ in 0..2 {
        let store = Store::open(&path).unwrap();
        assert_eq!((store.len(), store.unbound(), store.get(&cell(0))), (1, 0, Some(&expected)));
    }
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&format!("{}\n{row},,", format::HEADER)));
    std::fs::write(&path, format!("{header}\n{},{digest}\n", row.replace("0.25", "0.24"))).unwrap();
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("digest"), "{error}");
}

#[cfg(unix)]
#[test]
fn an_older_record_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    std::fs::write(&path, format!("{}\n", format::HEADER.strip_suffix(",chosen_step,digest").unwrap())).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    Store::open(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

/// Every byte of a record is replaced by several others, deleted or doubled, and lines are joined, swapped and doubled: the
/// record is rejected, or read as the original measurements.
#[test]
fn a_changed_record_is_refused_or_says_the_same() {
    let written = [OUTCOME, Outcome { accuracy: 0.733, coverage: None, ..OUTCOME }];
    let lines = [0, 1].map(|i| format::line(&cell(i as u32), &written[i]));
    let text = format!("{}\n{}{}", format::HEADER, lines[0], lines[1]);
    let check = |bytes: &[u8]| {
        let Ok(content) = format::read(bytes) else { return 0 };
        assert!(content.renewed.is_none());
        for (i, outcome) in written.iter().enumerate() {
            let found = content.runs.get(&cell(i as u32).key());
            assert!(found.is_none_or(|found| found == outcome), "{}", String::from_utf8_lossy(bytes));
        }
        assert!(content.runs.len() <= 2);
        1
    };
    let mut accepted = 0;
    for at in 0..text.len() {
        for byte in [text.as_bytes()[at] ^ 1, text.as_bytes()[at] ^ 0x80, b'0', b'9', b',', b' ', b'\n', 0] {
            let mut changed = text.clone().into_bytes();
            changed[at] = byte;
            accepted += check(&changed);
        }
        let (before, after) = (&text.as_bytes()[..at], &text.as_bytes()[at..]);
        check(&[before, &after[1..]].concat());
        check(&[before, &after[..1], after].concat());
    }
    // Bytes replaced by themselves, and a deleted final line ending.
    assert!(accepted < text.len(), "{accepted}");
    let header = format!("{}\n", format::HEADER);
    assert_eq!(check(format!("{header}{}{}", lines[1], lines[0]).as_bytes()), 1);
    assert_eq!(check(format!("{text}{}", lines[0]).as_bytes()), 1);
    assert_eq!(check(format!("{text}{text}").as_bytes()), 0);
}

#[test]
fn a_record_is_held_by_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let mut store = Store::open(&path).unwrap();
    store.append(&cell(0), OUTCOME).unwrap();
    assert!(matches!(Store::open(&path), Err(Error::InUse { .. })));
    drop(store);
    assert_eq!(Store::open(&path).unwrap().len(), 1);
}

#[test]
fn what_could_not_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let mut store = Store::open(&path).unwrap();
    store.append(&cell(0), OUTCOME).unwrap();
    let file = std::mem::replace(&mut store.file, File::open(&path).unwrap());
    assert!(matches!(store.append(&cell(1), OUTCOME), Err(Error::File { .. })));
    assert_eq!(store.len(), 1);
    store.file = file;
    // An incomplete line that could not be truncated.
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"half a li").unwrap();
    store.append(&cell(1), OUTCOME).unwrap();
    drop(store);
    assert_eq!(Store::open(&path).unwrap().len(), 2);
}

#[test]
fn points_of_a_ranker_are_kept_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let setting = RankerSetting::new(DataSet::Mq2008, Shape::Linear, Method::NonPrivate(Loss::ListNet));
    let cells = [50, 400].map(|after| Cell::new(RankerSetting { after, ..setting }, 3));
    let mut store = Store::open(&path).unwrap();
    for (cell, map) in cells.iter().zip([0.1 + 0.2, 0.5]) {
        let ranked = Some(Ranked { map, ndcg: [0.25, 1e-17, 1.0, 0.0] });
        let nothing = Outcome { accuracy: f64::NAN, objective: f64::NAN, ..Outcome::default() };
        store.append(cell, Outcome { ranked, ..nothing }).unwrap();
    }
    drop(store);
    let again = Store::open(&path).unwrap();
    for (cell, map) in cells.iter().zip([0.1 + 0.2, 0.5]) {
        let outcome = again.get(cell).unwrap();
        assert_eq!(outcome.ranked, Some(Ranked { map, ndcg: [0.25, 1e-17, 1.0, 0.0] }));
        assert!(outcome.accuracy.is_nan() && outcome.objective.is_nan() && outcome.coverage.is_none());
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(",mq2008,ranker linear,list-net,0,none,given,50,10,1,,3,NaN,NaN,"), "{text}");
}

#[test]
fn a_torn_line_is_forgotten_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let mut store = Store::open(&path).unwrap();
    store.append(&cell(0), OUTCOME).unwrap();
    let whole = std::fs::read(&path).unwrap().len();
    store.append(&cell(1), OUTCOME).unwrap();
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    for cut in 0..bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.get(&cell(0)).is_some(), cut >= whole, "{cut}");
        assert!(store.get(&cell(1)).is_none());
        store.append(&cell(1), OUTCOME).unwrap();
        drop(store);
        let again = Store::open(&path).unwrap();
        assert_eq!(again.len(), if cut >= whole { 2 } else { 1 }, "{cut}");
    }
}

#[test]
fn another_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let (header, old) = (format::HEADER, format::HEADER.strip_suffix(",chosen_step,digest").unwrap());
    let own = format::line(&cell(0), &OUTCOME);
    let files: [Vec<u8>; 9] = [
        b"my notes".to_vec(),
        b"my notes\nmore\n".to_vec(),
        b"my notes\nmore".to_vec(),
        b"key,data\n1,2\ncut of".to_vec(),
        b"\xff\xfek\0e\0y\0\n\0".to_vec(),
        format!("{own}cut off").into_bytes(),
        format!("{header}\nabc,1,2\n").into_bytes(),
        [header.as_bytes(), b"\n", own.as_bytes(), b"\xff\n", &own.as_bytes()[..30]].concat(),
        format!("{old}\nabc,1,2\ncut off").into_bytes(),
    ];
    for content in files {
        std::fs::write(&path, &content).unwrap();
        let shown = String::from_utf8_lossy(&content);
        assert!(matches!(Store::open(&path), Err(Error::Record { .. })), "{shown}");
        assert_eq!(std::fs::read(&path).unwrap(), content, "{shown}");
    }
}
