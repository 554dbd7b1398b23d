//! Images in IDX files: training on two and on several classes, predictions, and mismatched files.

use crate::support::{Dice, Workplace, gzip, idx};
use serde_json::Value;

/// Creates images of 4 by 3 pixels; those of class `c` below 4 are bright in row `c`, the others nowhere.
fn digits(images: u32, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut dice = Dice(seed);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..images {
        let class = dice.below(10) as u8;
        labels.push(class);
        for row in 0..4 {
            pixels.extend((0..3).map(|_| if row == class { 200 + dice.below(56) as u8 } else { dice.below(20) as u8 }));
        }
    }
    (idx(&[images, 4, 3], &pixels), idx(&[images], &labels))
}

fn place() -> Workplace {
    let place = Workplace::new();
    let (images, labels) = digits(3000, 1);
    place.write("train-images.idx3-ubyte.gz", gzip(&images));
    place.write("train-labels.idx1-ubyte.gz", gzip(&labels));
    let (images, labels) = digits(500, 2);
    place.write("test-images", images);
    place.write("test-labels", labels);
    place
}

const TRAIN: [&str; 5] = ["train", "--data", "train-images.idx3-ubyte.gz", "--labels", "train-labels.idx1-ubyte.gz"];
const TEST: [&str; 6] = ["--model", "m.json", "--data", "test-images", "--labels", "test-labels"];

fn train(place: &Workplace, more: &[&str]) -> Value {
    place.dp(&[&TRAIN[..], more, &["--out", "m.json", "--force", "--json"]].concat()).json()
}

#[test]
fn one_digit_against_the_others() {
    let place = place();
    let result = train(&place, &["--positive", "2", "--epsilon", "4"]);
    assert_eq!((&result["n"], &result["dim"]), (&3000.into(), &13.into()));
    let model = &place.json("m.json")["model"];
    assert_eq!((&model["features"][5], &model["features"][12]), (&"pixel[1,2]".into(), &"<intercept>".into()));
    place.dp(&["verify", "m.json"]).ok();
    // Images are recognised by their first bytes; the name gives no hint.
    let measured = place.dp(&[&["evaluate"][..], &TEST, &["--json"]].concat()).json();
    assert_eq!(measured["n"], 500);
    assert!(measured["auc"].as_f64().unwrap() > 0.9, "{measured}");
    let scores = place.dp(&["predict", "--model", "m.json", "--data", "test-images"]).ok();
    assert_eq!(scores.lines().count(), 501);
    assert!(scores.lines().skip(1).all(|line| line.ends_with(",2") || line.ends_with(",other")));
    // A projection removes the names of the pixels.
    let result = train(&place, &["--positive", "2", "--epsilon", "4", "--project", "gaussian:6"]);
    assert_eq!(result["dim"], 7);
    place.dp(&["verify", "m.json"]).ok();
    place.dp(&[&["evaluate"][..], &TEST].concat()).ok();
}

/// The labels come through a pipe, which the test opens after the images have been opened.
#[cfg(unix)]
#[test]
fn images_that_are_cut_while_they_are_read_give_no_model() {
    use std::io::Write;
    let place = place();
    if !crate::support::has("mkfifo") {
        eprintln!("SKIPPED: no mkfifo");
        return;
    }
    assert!(std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let arguments = ["train", "--data", "test-images", "--labels", "pipe", "--epsilon", "1", "--out", "m.json"];
    let child = place.command(&arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let labels = std::fs::read(place.path("test-labels")).unwrap();
    let mut pipe = std::fs::File::options().write(true).open(place.path("pipe")).unwrap();
    // Cuts off a hundred images.
    let images = std::fs::File::options().write(true).open(place.path("test-images")).unwrap();
    images.set_len(images.metadata().unwrap().len() - 1200).unwrap();
    pipe.write_all(&labels).unwrap();
    drop(pipe);
    let run: crate::support::Run = child.wait_with_output().unwrap().into();
    run.fails(1, "file.changed").says("test-images");
    assert!(!place.path("m.json").exists());
}

#[test]
fn the_images_can_come_from_standard_input() {
    let place = place();
    let seeded = ["--positive", "1", "--epsilon", "1", "--seed", "3"];
    train(&place, &seeded);
    let from_file = place.json("m.json");
    let input = std::fs::read(place.path("train-images.idx3-ubyte.gz")).unwrap();
    let stream =
        ["train", "--data", "-", "--format", "idx", "--labels", "train-labels.idx1-ubyte.gz", "--out", "s.json"];
    place.dp_with_input(&[&stream[..], &seeded].concat(), &input).ok();
    assert_eq!(place.json("s.json"), from_file);
}

#[test]
fn a_dry_run_reads_the_headers() {
    let place = place();
    let dry = [&TRAIN[..], &["--positive", "1", "--epsilon", "1", "--out", "m.json", "--dry-run"]].concat();
    let foreseen = place.dp(&[&dry[..], &["--n", "3000", "--json"]].concat()).json();
    assert_eq!(foreseen["dim"], 13);
    place.write("train-labels.idx1-ubyte.gz", idx(&[2], &[1, 2]));
    place.dp(&dry).fails(3, "idx.counts");
    assert!(!place.path("m.json").exists());
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let place = place();
    let (images, labels) = digits(50, 3);
    let before = place.files();
    let run = |images: &[u8], labels: &[u8]| {
        place.write("i.idx", images);
        place.write("l.idx", labels);
        let run = place.dp(&[
            "train",
            "--data",
            "i.idx",
            "--labels",
            "l.idx",
            "--positive",
            "1",
            "--epsilon",
            "1",
            "--out",
            "m.json",
        ]);
        std::fs::remove_file(place.path("i.idx")).unwrap();
        std::fs::remove_file(place.path("l.idx")).unwrap();
        run
    };
    run(b"label,pixel\n1,2\n", &labels).fails(3, "idx.syntax").says("i.idx");
    run(&images, b"1\n2\n").fails(3, "idx.syntax").says("l.idx");
    run(&images[..images.len() - 1], &labels).fails(3, "idx.length").says("i.idx");
    run(&images, &[&labels[..], &[0]].concat()).fails(3, "idx.length").says("l.idx");
    run(&images, &idx(&[49], &labels[8..57])).fails(3, "idx.counts").says("49 labels for 50 images");
    run(&idx(&[0, 4, 3], &[]), &idx(&[0], &[])).fails(3, "idx.empty");
    run(&gzip(&images)[..60], &labels).fails(3, "file.truncated");
    run(&idx(&[50], &[0; 50]), &labels).fails(3, "schema.columns");
    assert_eq!(place.files(), before);
}

#[test]
fn labels_outside_the_classes_are_for_the_curator_alone() {
    let place = Workplace::new();
    let (images, mut labels) = digits(50, 3);
    labels[8 + 17] = 211;
    place.write("i.idx", images);
    place.write("l.idx", labels);
    let train = ["train", "--data", "i.idx", "--labels", "l.idx", "--epsilon", "1", "--out", "m.json"];
    let run = place.dp(&[&train[..], &["--positive", "1", "--negative", "2", "--json"]].concat());
    assert!(run.code == 3 && !run.stdout.contains("211"), "{run:#?}");
    let mut error = crate::support::one_value(&run.stdout);
    assert_eq!(error["error"]["code"], "label.unknown");
    error["error"].as_object_mut().unwrap().remove("private");
    assert!(!error.to_string().contains("211"), "{error}");
}

#[test]
fn a_model_reads_what_it_was_trained_on() {
    let place = place();
    train(&place, &["--positive", "2", "--epsilon", "4"]);
    place.write("wide.idx", idx(&[2, 3, 4], &[0; 24]));
    place.dp(&["predict", "--model", "m.json", "--data", "wide.idx"]).fails(3, "idx.shape").says("[4, 3]");
    place.write("people.csv", "a,b\n1,2\n");
    place.dp(&["predict", "--model", "m.json", "--data", "people.csv"]).fails(3, "model.mismatch").says("IDX images");
    place.dp(&["evaluate", "--model", "m.json", "--data", "test-images"]).fails(2, "usage.missing").says("--labels");
}

#[test]
fn flags_that_have_no_meaning_for_images() {
    let place = place();
    let refused = |arguments: &[&str], code: &str, word: &str| {
        let run = place.dp(&[arguments, &["--epsilon", "1", "--out", "m.json"]].concat());
        run.fails(2, code).says(word);
    };
    refused(&TRAIN[..3], "usage.missing", "--labels");
    for flag in [
        &["--dim", "12"][..],
        &["--schema", "s.toml"],
        &["--schema-from-data"],
        &["--label", "digit"],
        &["--zero-based"],
        &["--delimiter", ";"],
    ] {
        refused(&[&TRAIN[..], flag].concat(), "usage.conflict", flag[0]);
    }
    place.write("people.csv", "a,b\n1,2\n");
    let csv = ["train", "--data", "people.csv", "--labels", "test-labels", "--label", "b", "--schema-from-data"];
    refused(&csv, "usage.conflict", "--labels");
    let twice = ["train", "--data", "-", "--format", "idx", "--labels", "-"];
    refused(&twice, "usage.stdin_twice", "--labels");
    let same = ["train", "--data", "test-images", "--labels", "test-images"];
    refused(&same, "usage.conflict", "same file");
    assert!(!place.path("m.json").exists());
}

#[test]
fn a_public_maximum_of_pixels_is_part_of_the_model() {
    let place = place();
    train(&place, &["--positive", "2", "--epsilon", "4", "--pixel-max", "128"]);
    assert_eq!(place.json("m.json")["model"]["encoder"]["input"]["images"]["max"], 128);
    place.dp(&["verify", "m.json"]).ok();
    let measured = place.dp(&[&["evaluate"][..], &TEST, &["--json"]].concat()).json();
    assert!(measured["auc"].as_f64().unwrap() > 0.9, "{measured}");
    let zero = place.dp(&[&TRAIN[..], &["--epsilon", "4", "--pixel-max", "0", "--out", "n.json"]].concat());
    assert!(zero.code == 2 && zero.stderr.contains("--pixel-max"), "{zero:?}");
    place.write("t.csv", "a,y\n1,2\n");
    let csv = ["train", "--data", "t.csv", "--label", "y", "--schema-from-data", "--epsilon", "1", "--out", "n.json"];
    place.dp(&[&csv[..], &["--pixel-max", "3"]].concat()).fails(2, "usage.conflict").says("--pixel-max");
}
