//! Atomic outputs: existing files, read-only folders, full disks, interrupts, pipes.

use std::io::Read;
use std::process::Stdio;

#[cfg(unix)]
use crate::support::training;
use crate::support::{Workplace, people};

const TRAIN: [&str; 8] =
    ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];

fn with<'a>(extra: &[&'a str]) -> Vec<&'a str> {
    TRAIN.iter().copied().chain(["--epsilon", "1"]).chain(extra.iter().copied()).collect()
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("people.csv", people(300, 2));
    place
}

#[test]
fn an_existing_output_is_kept_unless_forced() {
    let place = place();
    place.write("model.json", "precious");
    place.dp(&with(&["--out", "model.json"])).fails(1, "output.exists").says("--force");
    assert_eq!(place.read("model.json"), "precious");
    place.dp(&with(&["--out", "model.json", "--force"])).ok();
    place.dp(&["verify", "model.json"]).ok();
    assert_eq!(place.files(), ["model.json", "people.csv"]);
}

/// With --force an output would replace its input, and the records would be lost.
#[test]
fn an_output_never_replaces_an_input_however_it_is_spelled() {
    let place = place();
    place.dp(&with(&["--out", "model.json"])).ok();
    let (people, model) = (place.read("people.csv"), place.read("model.json"));
    let here = place.path("people.csv");
    let here = here.to_str().unwrap();
    for out in ["people.csv", "./people.csv", here] {
        place.dp(&with(&["--out", out, "--force"])).fails(2, "usage.conflict").says("same file");
        place.dp(&with(&["--out", "x.json", "--report", out, "--force"])).fails(2, "usage.conflict");
        place.dp(&["schema", "people.csv", "--out", out, "--force"]).fails(2, "usage.conflict");
        let predict = ["predict", "--model", "model.json", "--data", "people.csv", "--force", "--out"];
        place.dp(&[&predict[..], &[out]].concat()).fails(2, "usage.conflict");
        place.dp(&[&predict[..], &["./model.json"]].concat()).fails(2, "usage.conflict");
    }
    place.dp(&with(&["--out", "x.json", "--report", "./x.json"])).fails(2, "usage.conflict");
    assert_eq!((place.read("people.csv"), place.read("model.json")), (people, model));
    assert_eq!(place.files(), ["model.json", "people.csv"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_an_input_is_that_input() {
    let place = place();
    std::os::unix::fs::symlink(place.path("people.csv"), place.path("link.csv")).unwrap();
    place.dp(&with(&["--out", "link.csv", "--force"])).fails(2, "usage.conflict");
}

#[test]
fn a_report_is_a_file() {
    let place = place();
    place.dp(&with(&["--out", "model.json", "--report", "-"])).fails(2, "usage.value");
    assert_eq!(place.files(), ["people.csv"]);
}

#[test]
fn a_dry_run_foresees_an_output_that_is_in_the_way() {
    let place = place();
    place.write("model.json", "precious");
    place.write(
        "schema.toml",
        place.dp(&["schema", "people.csv", "--label", "earns"]).ok().replace("= false", "= true"),
    );
    let dry = ["train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--dry-run", "--out"];
    place.dp(&[&dry[..], &["model.json"]].concat()).fails(1, "output.exists");
    place.dp(&[&dry[..], &["model.json", "--force"]].concat()).ok();
    assert_eq!(place.read("model.json"), "precious");
}

#[test]
fn the_report_counts_as_an_output() {
    let place = place();
    place.write("model.md", "precious");
    place.dp(&with(&["--out", "model.json", "--report", "model.md"])).fails(1, "output.exists");
    assert_eq!(place.files(), ["model.md", "people.csv"]);
}

/// What a command reads is not replaced by what it writes, even with `--force`: parts of data, databases, keys, models, schemas.
#[test]
fn no_output_replaces_an_input() {
    let place = place();
    std::fs::create_dir(place.path("parts")).unwrap();
    for part in ["parts/a.csv", "parts/b.csv"] {
        std::fs::copy(place.path("people.csv"), place.path(part)).unwrap();
    }
    let draft = place.dp(&["schema", "people.csv", "--label", "earns", "--positive", "yes"]).ok();
    place.write("s.toml", draft.replace("reviewed = false", "reviewed = true"));
    place.dp(&with(&["--out", "model.json"])).ok();
    place.dp(&["sign", "new-key", "k"]).ok();
    let inputs = ["people.csv", "parts/a.csv", "parts/b.csv", "s.toml", "model.json", "k", "k.pub"];
    let all = || inputs.map(|name| place.read(name));
    let before = all();
    let refused = |command: &str| {
        place.dp(&command.split(' ').collect::<Vec<_>>()).fails(2, "usage.conflict");
        assert!(all() == before, "{command}");
    };
    refused("sign model model.json --key k --out k --force");
    refused("sign model model.json --key k --out model.json --force");
    refused("predict --model model.json --data parts/*.csv --out parts/a.csv --force");
    refused("check --data people.csv --schema s.toml --fix-schema s.toml --force");
    refused("schema parts/*.csv --label earns --out parts/b.csv --force");
    let database = rusqlite::Connection::open(place.path("t.db")).unwrap();
    database
        .execute_batch("CREATE TABLE t (age INT, earns TEXT); INSERT INTO t VALUES (30, 'yes'), (40, 'no')")
        .unwrap();
    let kept = std::fs::read(place.path("t.db")).unwrap();
    refused("schema sqlite:t.db --label earns --positive yes --out t.db --force");
    assert!(std::fs::read(place.path("t.db")).unwrap() == kept);
    let new_key = place.dp(&["sign", "new-key", "k"]);
    new_key.fails(1, "output.exists").says("no key is replaced");
    assert!(!new_key.stderr.contains("--force"));
}

#[test]
fn a_folder_that_is_not_there_is_found_out_before_training() {
    let place = place();
    place.dp(&with(&["--out", "nowhere/model.json"])).fails(1, "output.write");
    place.dp(&with(&["--out", ".", "--force"])).fails(1, "output.write");
    assert_eq!(place.files(), ["people.csv"]);
}

#[cfg(unix)]
#[test]
fn a_folder_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let folder = place.path("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        eprintln!("SKIPPED: this user may write anywhere (root)");
        return;
    }
    place.dp(&with(&["--out", "locked/model.json"])).fails(1, "output.write");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing() {
    let place = place();
    if !crate::support::has("bash") {
        eprintln!("SKIPPED: no bash to limit the size of files");
        return;
    }
    // A file may have at most one block. A larger write fails, whether or not the caller ignores the signal.
    for ignored in ["", "trap '' XFSZ; "] {
        let run = place.in_bash(&format!("{ignored}ulimit -f 1; exec \"$0\" \"$@\""), &with(&["--out", "model.json"]));
        run.fails(1, "output.full").says("model.json");
        assert_eq!(place.files(), ["people.csv"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_that_nobody_receives_is_an_error() {
    let place = place();
    if !crate::support::has("bash") {
        eprintln!("SKIPPED: no bash to close standard output");
        return;
    }
    let train = with(&["--out", "-", "--report", "report.md"]);
    place.in_bash("exec \"$0\" \"$@\" >&-", &train).fails(1, "output.closed_pipe");
    let unread = "{ sleep 0.2; exec \"$0\" \"$@\"; } | exec true; exit ${PIPESTATUS[0]}";
    place.in_bash(unread, &train).fails(1, "output.closed_pipe");
    assert_eq!(place.files(), ["people.csv"]);
    // The output is discarded on purpose, or is only a summary of a file.
    place.in_bash("exec \"$0\" \"$@\" >/dev/null", &train).ok();
    place.in_bash(unread, &with(&["--out", "model.json"])).ok();
    assert_eq!(place.files(), ["model.json", "people.csv", "report.md"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_hang_up_that_was_to_be_ignored_is_ignored() {
    let place = place();
    if !crate::support::has("bash") {
        eprintln!("SKIPPED: no bash");
        return;
    }
    // As under nohup; the batch waits for its next question.
    let script = "trap '' HUP; mkfifo pipe; \"$0\" account batch pipe & exec 3>pipe; kill -HUP $!; sleep 0.2; \
                  exec 3>&-; wait $!";
    place.in_bash(script, &[]).ok();
}

/// Threads with this stack size cannot be started.
#[test]
fn everything_is_done_without_threads() {
    let place = place();
    place.write("q.jsonl", "{\"job\":\"laplace\",\"noise_multiplier\":3}\nnonsense\n");
    place.write("packed.csv.gz", crate::support::gzip(place.read("people.csv").as_bytes()));
    let alone = |arguments: &[&str]| -> crate::support::Run {
        place.command(arguments).env("RUST_MIN_STACK", "1125899906842624").output().unwrap().into()
    };
    let batch = ["account", "batch", "q.jsonl"];
    let (found, expected) = (alone(&batch), place.dp(&batch));
    assert_eq!((found.code, found.stdout), (3, expected.stdout));
    alone(&["audit", "recipe", "--algorithm", "bolt-on-convex", "--trials", "1000", "--pairs", "20"]).ok();
    let sphere = ["reproduce", "thesis-6", "--quick", "--repetitions", "1", "--algorithm", "noiseless", "--out", "o"];
    alone(&sphere).ok();
    let train = ["train", "--data", "packed.csv.gz", "--schema-from-data", "--label", "earns"];
    alone(&[&train[..], &["--epsilon", "1", "--out", "model.json"]].concat()).ok();
    let tune = ["tune", "--data", "people.csv", "--schema-from-data", "--label", "earns", "--lambda", "0.1,0.01"];
    let tune =
        [&tune[..], &["--algorithm", "bolt-on-strongly-convex", "--epsilon", "1", "--seed", "1", "--threads", "3"]]
            .concat();
    alone(&[&tune[..], &["--out", "alone.json"]].concat()).ok();
    place.dp(&[&tune[..], &["--out", "threads.json"]].concat()).ok();
    assert_eq!(place.read("alone.json"), place.read("threads.json"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let place = place();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run: crate::support::Run =
        place.command(&["explain"]).stdout(full).stderr(Stdio::piped()).output().unwrap().into();
    run.fails(1, "output.full");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing() {
    let place = place();
    interrupted(&place, &with(&["--out", "model.json", "--algorithm", "bolt-on-convex", "--passes", "2000000"]));
}

#[cfg(unix)]
#[test]
fn an_interrupted_network_leaves_nothing() {
    let place = Workplace::new();
    place.write("i.idx", crate::support::idx(&[100, 2, 2], &[7; 400]));
    place.write("l.idx", crate::support::idx(&[100], &[1; 100]));
    let train = [
        "train",
        "--data",
        "i.idx",
        "--labels",
        "l.idx",
        "--model",
        "mlp:4",
        "--steps",
        "20000000",
        "--step-size",
        "1e-9",
    ];
    interrupted(&place, &[&train[..], &["--epsilon", "1", "--out", "model.json", "--report", "report.md"]].concat());
}

/// Interrupts a training that would take long.
#[cfg(unix)]
fn interrupted(place: &Workplace, train: &[&str]) {
    let before = place.files();
    for signal in training::signals() {
        let (status, stdout, _) = training::start(place, train).end_by(signal);
        assert_eq!(status.code(), Some(130), "{signal}");
        assert_eq!(crate::support::one_value(&stdout)["error"]["code"], "run.interrupted", "{signal}");
        assert_eq!(place.files(), before, "{signal}");
    }
}

#[test]
fn a_model_on_standard_output_is_whole() {
    let place = place();
    let model = place.dp(&with(&["--out", "-"])).ok();
    let run = place.dp_with_input(&["verify", "-"], model.as_bytes());
    run.ok();
    assert_eq!(place.files(), ["people.csv"]);
}

#[cfg(unix)]
#[test]
fn predictions_end_quietly_when_the_reader_goes() {
    let place = place();
    place.dp(&with(&["--out", "model.json"])).ok();
    place.write("many.csv", people(20_000, 3));
    let mut child = place
        .command(&["predict", "--model", "model.json", "--data", "many.csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 24];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(&first, b"score,probability,class\n");
}
