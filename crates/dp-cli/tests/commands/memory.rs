//! Exhausted memory and oversized files: exit code, one JSON value, and nothing left behind.
//!
//! Every reader runs under an address space limit, fed by an endless pipe or a sparse file.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]

use std::fs::File;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::support::{Run, Workplace};
use serde_json::Value;

#[cfg(not(target_os = "linux"))]
#[test]
fn limits_of_memory_are_tried_on_linux_alone() {
    eprintln!("SKIPPED: no reader was run without memory");
}

/// Address space in KiB that suffices for a run on few records.
const LITTLE: u32 = 100_000;

/// The same for two threads, for each of which the allocator sets 64 MiB of addresses aside.
const LITTLE_FOR_TWO: u32 = 3 * LITTLE;

const SCHEMA: &str = "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
    columns.a = { type = 'numeric', min = 0, max = 1 }\n\
    columns.b = { type = 'categorical', categories = ['u', 'v', 'w'] }\n";

const PRIVATE: [&str; 8] = ["--epsilon", "1", "--delta", "1e-8", "--out", "model.json", "--json", "--quiet"];

fn with_memory(place: &Workplace, kib: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &kib.to_string(), env!("CARGO_BIN_EXE_dp")]);
    command.args(arguments).current_dir(place.path("")).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn dp(place: &Workplace, kib: u32, arguments: &[&str]) -> Run {
    with_memory(place, kib, arguments).output().expect("sh runs").into()
}

/// Runs with `head` and then endless `line`s on standard input, until the command stops reading.
fn dp_without_end(place: &Workplace, kib: u32, arguments: &[&str], head: &str, line: impl Fn(u64) -> String) -> Run {
    let mut child = with_memory(place, kib, arguments).stdin(Stdio::piped()).spawn().expect("sh runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut send = |text: &str| input.write_all(text.as_bytes()).is_ok();
    let mut listens = send(head);
    let mut number = 0;
    while listens {
        let chunk: String = (number..number + 1000).map(&line).collect();
        number += 1000;
        listens = send(&chunk);
    }
    drop(input);
    child.wait_with_output().expect("an end").into()
}

/// Checks how a run ended, and that the folder is unchanged.
fn assert_ends(place: &Workplace, before: &[String], run: &Run, code: i32, error: &str) {
    let json: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("no JSON: {run:?}"));
    assert_eq!((run.code, json["error"]["code"].as_str()), (code, Some(error)), "{run:?}");
    assert_eq!(place.files(), before, "{run:?}");
}

fn assert_exhausted(place: &Workplace, before: &[String], run: &Run) {
    assert_ends(place, before, run, 1, "memory.exhausted");
}

/// Checks that the readers themselves reported the error, not the last-resort handler.
fn assert_noticed(run: &Run, what: &str) {
    assert!(run.stdout.contains(what) && !run.stdout.contains("was aborted where it was"), "{run:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn tables_beyond_memory() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    let before = place.files();
    let line =
        |i: u64| format!("0.{},{},{}\n", i % 1000, ["u", "v", "w"][i as usize % 3], ["yes", "no"][i as usize % 2]);
    let run = |kib: u32, threads: &str, arguments: &[&str]| {
        let arguments = [&["train", "--data", "-", "--threads", threads], arguments, &PRIVATE].concat();
        dp_without_end(&place, kib, &arguments, "a,b,y\n", line)
    };
    for float in ["f64", "f32"] {
        let run = run(LITTLE, "1", &["--schema", "s.toml", "--float", float]);
        assert_exhausted(&place, &before, &run);
        assert_noticed(&run, "there is no memory for the ");
    }
    let run_by_two = run(LITTLE_FOR_TWO, "2", &["--schema", "s.toml"]);
    assert_exhausted(&place, &before, &run_by_two);
    assert_noticed(&run_by_two, "there is no memory for ");
    assert!(!run_by_two.stdout.contains("held"), "a chunk's rows depend on the records: {run_by_two:?}");
    // Whichever thread notices it.
    assert_exhausted(&place, &before, &run(LITTLE, "2", &["--schema", "s.toml"]));
    // Drafted, then read again: input from a pipe is kept in memory.
    let run = run(LITTLE, "1", &["--schema-from-data", "--label", "y"]);
    assert_exhausted(&place, &before, &run);
    assert_noticed(&run, "read more than once");
}

#[cfg(target_os = "linux")]
#[test]
fn compressed_tables_beyond_memory() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    let rows = format!("a,b,y\n{}", "0.5,u,yes\n0.25,v,no\n".repeat(700_000));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(rows.as_bytes()).unwrap();
    place.write("rows.csv.gz", gzip.finish().unwrap());
    let before = place.files();
    let run = |threads: &str| {
        let given = ["train", "--data", "rows.csv.gz", "--schema", "s.toml", "--threads", threads];
        dp(&place, LITTLE, &[&given, &PRIVATE[..]].concat())
    };
    let run_by_one = run("1");
    assert_exhausted(&place, &before, &run_by_one);
    assert_noticed(&run_by_one, "rows.csv.gz");
    assert_exhausted(&place, &before, &run("2"));
}

#[cfg(target_os = "linux")]
#[test]
fn sparse_rows_beyond_memory() {
    let place = Workplace::new();
    let before = place.files();
    let line =
        |i: u64| format!("{} {}:0.5 30:1 31:2 32:3 33:4\n", if i.is_multiple_of(2) { "+1" } else { "-1" }, 1 + i % 20);
    let given = |threads| ["train", "--data", "-", "--format", "libsvm", "--threads", threads];
    for (kib, threads) in [(LITTLE, "1"), (LITTLE_FOR_TWO, "2")] {
        for width in [&["--dim", "40"][..], &[]] {
            let run = dp_without_end(&place, kib, &[&given(threads), width, &PRIVATE].concat(), "", line);
            assert_exhausted(&place, &before, &run);
            assert_noticed(&run, "standard input");
            assert!(threads == "1" || !run.stdout.contains("held"), "a chunk's rows depend on the records: {run:?}");
        }
    }
    // Whichever thread notices it.
    assert_exhausted(&place, &before, &dp_without_end(&place, LITTLE, &[&given("2"), &PRIVATE[..]].concat(), "", line));
    // An endless line of finite features.
    for threads in ["1", "2"] {
        let arguments = [&given(threads), &PRIVATE[..]].concat();
        let run = dp_without_end(&place, LITTLE * 4 / 5, &arguments, "+1", |i| format!(" {}:1", i + 1));
        assert_exhausted(&place, &before, &run);
        assert_noticed(&run, "one row of the file");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn images_beyond_memory() {
    let place = Workplace::new();
    let count = 300_000_u32;
    let idx = |name: &str, header: &[u8], length: u64| {
        let mut file = File::create(place.path(name)).unwrap();
        file.write_all(header).unwrap();
        file.set_len(header.len() as u64 + length).unwrap();
    };
    let images = [&[0, 0, 8, 3][..], &count.to_be_bytes(), &[0, 0, 0, 28, 0, 0, 0, 28]].concat();
    idx("images", &images, u64::from(count) * 784);
    idx("labels", &[&[0, 0, 8, 1][..], &count.to_be_bytes()].concat(), count.into());
    let before = place.files();
    let given = ["train", "--data", "images", "--labels", "labels", "--format", "idx", "--loss", "softmax"];
    let run = dp(&place, LITTLE, &[&given, &PRIVATE[..]].concat());
    assert_exhausted(&place, &before, &run);
    assert_noticed(&run, "images");
}

#[cfg(target_os = "linux")]
#[test]
fn lists_beyond_memory() {
    let place = Workplace::new();
    let before = place.files();
    let given = ["rank", "train", "--data", "-", "--loss", "bayesrank", "--model", "linear", "--epsilon", "1"];
    let given = [&given[..], &["--delta", "1e-4", "--out", "ranker.json", "--json", "--quiet"]].concat();
    let letor = |i: u64| format!("{} qid:{} 1:0.5 2:0.25 3:1\n", i % 3, i / 5);
    for (kib, threads) in [(LITTLE, "1"), (LITTLE_FOR_TWO, "2")] {
        let given = [&given[..], &["--format", "letor", "--threads", threads]].concat();
        let run = dp_without_end(&place, kib, &given, "", letor);
        assert_exhausted(&place, &before, &run);
        assert_noticed(&run, "there is no memory for ");
    }
    let csv = |i: u64| format!("{},{},0.5,0.25,1\n", i / 5, i % 3);
    let columns = ["--format", "csv", "--query", "q", "--label", "g"];
    let run = dp_without_end(&place, LITTLE, &[&given[..], &columns].concat(), "q,g,a,b,c\n", csv);
    assert_exhausted(&place, &before, &run);
    // Each row is short, but a table of all would be wide.
    place.write("wide.txt", (0..100).map(|i| format!("1 qid:{} {}:1\n", i / 5, 1_000_000 - i)).collect::<String>());
    let before = place.files();
    let given: Vec<_> = given.iter().map(|&word| if word == "-" { "wide.txt" } else { word }).collect();
    let run = dp(&place, LITTLE, &given);
    assert_exhausted(&place, &before, &run);
    assert_noticed(&run, "wide.txt");
    assert!(!run.stdout.contains("needed"), "how much is held depends on the lists: {run:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn rows_without_end() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    let before = place.files();
    let given = [&["train", "--data", "-", "--schema", "s.toml"], &PRIVATE[..]].concat();
    // The header: limited by memory, or by the limit of a row.
    let run = dp_without_end(&place, LITTLE * 4 / 5, &given, "a,b,y", |i| format!(",c{i}"));
    assert_exhausted(&place, &before, &run);
    assert_noticed(&run, "standard input");
    let run = dp_without_end(&place, 4 * LITTLE, &given, "a,b,y", |_| format!(",{}", "column".repeat(100)));
    assert_ends(&place, &before, &run, 3, "csv.long_record");
    // An unclosed quote. The largest row just fits in this memory or does not, depending on where the system puts it.
    let run = dp_without_end(&place, LITTLE, &given, "a,b,y\n0.5,u,\"", |_| "no end in sight, no end\n".repeat(10));
    let (code, error) = if run.code == 3 { (3, "csv.long_record") } else { (1, "memory.exhausted") };
    assert_ends(&place, &before, &run, code, error);
    place.write("line", "[0,".repeat(20_000_000));
    let before = place.files();
    // Enough to reach the limit of a line, regardless of the threads.
    let run = dp(&place, 2 * LITTLE, &["account", "batch", "line", "--quiet"]);
    assert_ends(&place, &before, &run, 3, "account.line");
}

/// Creates a sparse file of this size.
fn hollow(place: &Workplace, name: &str, size: u64) {
    File::create(place.path(name)).unwrap().set_len(size).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_are_too_large() {
    let place = Workplace::new();
    place.write("rows.csv", "a,b,y\n0.5,u,yes\n");
    hollow(&place, "huge", 5 << 30);
    let before = place.files();
    let train = |schema| [&["train", "--data", "rows.csv", "--schema", schema], &PRIVATE[..]].concat();
    let predict = |model| vec!["predict", "--model", model, "--data", "rows.csv", "--out", "scores.csv", "--json"];
    let rank = |model| vec!["rank", "predict", "--model", model, "--data", "rows.csv", "--out", "scores.csv", "--json"];
    let event = |file| vec!["account", "event", file, "--delta", "1e-5", "--json"];
    let verify = |model| vec!["verify", model, "--json"];
    for arguments in [train("huge"), predict("huge"), rank("huge"), event("huge"), verify("huge")] {
        let run = dp(&place, LITTLE, &arguments);
        assert_ends(&place, &before, &run, 3, "file.too_large");
        assert!(run.stdout.contains("5.0 GiB") && run.stdout.contains("\"file\":\"huge\""), "{run:?}");
    }
    // At most the limit is kept of a pipe; if the limit exceeds the memory, memory runs out first.
    let line = |_| "# what is this?\n".to_owned();
    for arguments in [train("-"), event("-")] {
        let run = dp_without_end(&place, 3 * LITTLE, &arguments, "", line);
        assert_ends(&place, &before, &run, 3, "file.too_large");
    }
    // An endless line is skipped up to the limit of a row; the questions before it are answered.
    let question = r#"{"job":"gdp","mu":1,"delta":1e-6}"#;
    let run = dp_without_end(&place, 3 * LITTLE, &["account", "batch", "--json"], &format!("{question}\n"), |_| {
        "x".repeat(1 << 10)
    });
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, answers.len()), (3, 2), "{run:?}");
    assert!(answers[0]["epsilon"].is_number(), "{run:?}");
    assert_eq!(
        (&answers[1]["error"]["code"], &answers[1]["error"]["where"]["line"]),
        (&"file.too_large".into(), &2.into())
    );
    for arguments in [predict("-"), rank("-"), verify("-")] {
        let run = dp_without_end(&place, LITTLE, &arguments, "", line);
        assert_exhausted(&place, &before, &run);
        assert_noticed(&run, "standard input");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_grow_when_they_are_read() {
    let place = Workplace::new();
    place.write("rows.csv", "a,b,y\n0.5,u,yes\n");
    place.write("model.json", format!("{{\"model\":[0{}]}}", ",0".repeat(3_000_000)));
    let categories: String = (0..300_000).map(|i| format!("'c{i}',")).collect();
    place.write("wide.toml", SCHEMA.replace("'u',", &categories));
    let before = place.files();
    let run = dp(&place, 2 * LITTLE, &["verify", "model.json", "--json"]);
    assert_exhausted(&place, &before, &run);
    assert_noticed(&run, "model.json");
    let given =
        ["train", "--data", "rows.csv", "--schema", "wide.toml", "--epsilon", "1", "--out", "new.json", "--json"];
    let run = dp(&place, LITTLE, &given);
    assert_exhausted(&place, &before, &run);
    assert_noticed(&run, "wide.toml");
}

#[cfg(target_os = "linux")]
#[test]
fn sizes_that_flags_ask_for() {
    let place = Workplace::new();
    place.write("rows.txt", "+1 1:0.5\n-1 2:0.5\n".repeat(50));
    place.write("lists.txt", "1 qid:1 1:0.5\n0 qid:1 2:0.5\n");
    let before = place.files();
    let svm = ["train", "--data", "rows.txt", "--format", "libsvm"];
    let rank = ["rank", "train", "--data", "lists.txt", "--format", "letor", "--loss", "bayesrank"];
    for (given, more) in [
        (&svm[..], &["--dim", "60000000"][..]),
        (&svm, &["--dim", "1000000", "--project", "gaussian:60"]),
        (&svm, &["--dim", "100000", "--algorithm", "noisy-moments"]),
        (&svm, &["--dim", "8000", "--algorithm", "dp-newton"]),
        (&rank, &["--features", "1000000", "--model", "mlp", "--hidden", "1000000"]),
    ] {
        let run = dp(&place, LITTLE, &[given, more, &PRIVATE].concat());
        assert_exhausted(&place, &before, &run);
        assert_noticed(&run, "there is no ");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn whatever_the_memory_a_run_ends_with_one_value() {
    let place = Workplace::new();
    let header: Vec<String> = (0..60_000).map(|i| format!("column-{i}")).collect();
    place.write("wide.csv", format!("y,{}\nyes{}\nno{}\n", header.join(","), ",1".repeat(60_000), ",2".repeat(60_000)));
    let before = place.files();
    let mut last_resorts = 0;
    for kib in (50_000..=170_000).step_by(10_000) {
        let run = dp(&place, kib, &["schema", "wide.csv", "--label", "y", "--positive", "yes", "--json", "--quiet"]);
        if run.code == 0 {
            assert!(serde_json::from_str::<Value>(&run.stdout).is_ok(), "{kib}");
        } else {
            assert_exhausted(&place, &before, &run);
            last_resorts += u32::from(run.stdout.contains("was aborted where it was"));
        }
    }
    assert!(last_resorts > 0, "each limit was noticed in time, which leaves the end of last resort untried");
}

/// Waits until the run has created its file, besides `others`.
fn await_file(place: &Workplace, child: &mut Child, others: usize) {
    while place.files().len() <= others {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_abort_leaves_nothing_and_says_so() {
    let place = Workplace::new();
    place.write("rows.txt", "+1 1:0.5\n-1 2:0.5\n".repeat(50));
    let trained =
        place.dp(&[&["train", "--data", "rows.txt", "--format", "libsvm", "--dim", "2"], &PRIVATE[..]].concat());
    assert_eq!(trained.code, 0, "{trained:?}");
    let before = place.files();
    let given = ["predict", "--model", "model.json", "--data", "-", "--format", "libsvm", "--out", "scores.csv"];
    for json in [true, false] {
        let arguments = [&given[..], if json { &["--json"] } else { &[] }].concat();
        let mut child = with_memory(&place, 10 * LITTLE, &arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut input: ChildStdin = child.stdin.take().unwrap();
        input.write_all(b"+1 1:0.5\n").unwrap();
        await_file(&place, &mut child, before.len());
        // The file is there a moment before it is known as one to remove; no allocation fails between.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let killed = Command::new("kill").args(["-ABRT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let run: Run = child.wait_with_output().unwrap().into();
        drop(input);
        if json {
            assert_exhausted(&place, &before, &run);
        } else {
            assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
            assert!(run.stderr.contains("error[memory.exhausted]"), "{run:?}");
            assert_eq!(place.files(), before);
        }
    }
}
