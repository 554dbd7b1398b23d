//! Trainings of networks that are interrupted and go on.

#[cfg(unix)]
use crate::support::training;
use crate::support::{Run, Workplace, idx};

/// 300 images of two classes, dark and bright.
fn place() -> Workplace {
    let place = Workplace::new();
    let pixels: Vec<u8> = (0..300 * 4).map(|j| if j / 4 % 2 == 0 { 20 } else { 230 }).collect();
    place.write("images.idx", idx(&[300, 2, 2], &pixels));
    place.write("labels.idx", idx(&[300], &[0, 1].repeat(150)));
    place
}

/// Batches of a fixed size, whose noise is found at once.
const TRAIN: [&str; 21] = [
    "train",
    "--data",
    "images.idx",
    "--labels",
    "labels.idx",
    "--classes",
    "0,1",
    "--model",
    "mlp:4",
    "--epsilon",
    "4",
    "--delta",
    "1e-5",
    "--sampling",
    "fixed",
    "--adjacency",
    "replace-one",
    "--out",
    "m.json",
    "--checkpoint",
    "c",
];

/// A training that takes a while.
const LONG: [&str; 4] = ["--steps", "100000", "--batch-size", "20"];

fn train(place: &Workplace, more: &[&str]) -> Run {
    place.dp(&[&TRAIN[..], more].concat())
}

/// The number after a word in a text.
fn number(text: &str, word: &str) -> u64 {
    let rest = &text[text.find(word).unwrap() + word.len()..];
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[cfg(unix)]
#[test]
fn a_training_that_a_signal_ends_goes_on_without_a_loss() {
    let place = place();
    for signal in training::signals() {
        let (status, stdout, stderr) = training::start(&place, &[&TRAIN[..], &LONG].concat()).end_by(signal);
        assert_eq!(status.code(), Some(130), "{signal}");
        let error = &crate::support::one_value(&stdout)["error"];
        assert_eq!(error["code"], "run.interrupted");
        assert!(error["help"].as_str().unwrap().contains("--resume"), "{error}");
        let over = number(&stderr, "interrupted after step ");
        assert!(over > 0 && over < 100_000, "{over}");
        assert_eq!(place.files(), ["c", "images.idx", "labels.idx"]);
        let result = train(&place, &[&LONG[..], &["--resume", "--json"]].concat()).json();
        assert_eq!((result.get("lost_steps"), &result["steps"]), (None, &100_000.into()));
        assert!(place.dp(&["verify", "m.json", "--json"]).json()["epsilon"].as_f64().unwrap() <= 4.0);
        assert!(!place.path("c").exists());
        std::fs::remove_file(place.path("m.json")).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_checkpoint_serves_one_training_at_a_time() {
    let place = place();
    let long = ["--steps", "2000000", "--batch-size", "20", "--step-size", "1e-9"];
    let running = training::start(&place, &[&TRAIN[..], &long].concat());
    for more in ["--resume", "--force"] {
        train(&place, &[&long[..], &[more]].concat()).fails(1, "checkpoint.used");
    }
    running.end_by("KILL");
    let third = train(&place, &["--steps", "7", "--batch-size", "50", "--force"]);
    assert_eq!(third.says("adds to this one").code, 0);
}

/// A training that is killed may have begun all steps up to its next checkpoint.
#[cfg(unix)]
#[test]
fn a_training_that_is_killed_loses_steps_and_does_not_make_them_again() {
    let place = place();
    let all = [&TRAIN[..], &LONG].concat();
    training::start(&place, &all).end_by("KILL");
    for (flag, value) in [("--lambda", "0.1"), ("--start-seed", "2"), ("--views", "flip")] {
        let other = train(&place, &[&LONG[..], &["--resume", flag, value]].concat());
        other.fails(3, "checkpoint.other").says("repeat the flags");
    }
    let first = train(&place, &[&LONG[..], &["--resume", "--json", "--force"]].concat()).json();
    assert_eq!(first["lost_steps"], 2000);
    place.dp(&["verify", "m.json"]).ok();
    // Twice: the second time with what the first one has lost.
    training::start(&place, &[&all[..], &["--force"]].concat()).end_by("KILL");
    training::start(&place, &[&all[..], &["--force", "--resume"]].concat()).end_by("KILL");
    let text = train(&place, &[&LONG[..], &["--resume", "--force"]].concat()).ok();
    assert!(text.contains("4000 of the steps were lost"), "{text}");
}

#[test]
fn a_training_that_ends_leaves_no_checkpoint() {
    let place = place();
    let short = ["--steps", "7", "--batch-size", "50"];
    for more in [&[][..], &["--algorithm", "dp-adam"], &["--averaging", "exponential"]] {
        train(&place, &[&short[..], more, &["--force"]].concat()).ok();
        assert!(!place.path("c").exists());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let place = place();
    let short = ["--steps", "7", "--batch-size", "50"];
    let with = |more: &[&str]| train(&place, &[&short[..], more, &["--force"]].concat());
    with(&["--resume"]).fails(1, "file.open").says("omit --resume");
    with(&["--seed", "1"]).fails(2, "usage.conflict").says("--checkpoint");
    place.dp(&[&TRAIN[..20], &["-"], &short].concat()).fails(2, "usage.value");
    place.dp(&[&TRAIN[..20], &["m.json"], &short].concat()).fails(2, "usage.conflict").says("same file");
    place.dp(&[&TRAIN[..19], &["--resume"], &short].concat()).says("--checkpoint <FILE>");
    for content in [&b""[..], b"{}", &[0; 100]] {
        place.write("c", content);
        with(&["--resume"]).fails(3, "checkpoint.format").says("counts, too");
    }
    train(&place, &short).fails(1, "output.exists").says("--resume");
    place.dp(&["explain", "checkpoint.format"]).ok();
    place.dp(&["explain", "checkpoint.other"]).ok();
}

/// The checkpoint that fits the disk stays, for a time when there is room.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_training() {
    let place = place();
    if !crate::support::has("bash") {
        eprintln!("SKIPPED: no bash to limit the size of files");
        return;
    }
    let few = ["--steps", "10", "--batch-size", "50"];
    place.in_bash("ulimit -f 1; exec \"$0\" \"$@\"", &[&TRAIN[..], &few].concat()).fails(1, "output.full").says("c");
    assert_eq!(place.files(), ["c", "images.idx", "labels.idx"]);
    let run = train(&place, &[&few[..], &["--resume", "--json"]].concat());
    run.says("1 of 10 steps were lost");
    assert_eq!(run.json()["lost_steps"], 1);
}
