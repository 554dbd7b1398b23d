//! Networks of images: training, verification, evaluation and prediction, and everything that is wrong with their files.

use serde_json::Value;

use crate::support::{Dice, Run, Workplace, gzip, idx, xz};

/// Draws images of 6 by 6 pixels in three classes: bright in the upper rows, in the left columns, or on the diagonal.
fn digits(images: u32, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut dice = Dice(seed);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..images {
        let class = dice.below(3) as u8;
        labels.push(class);
        for (row, column) in (0..6).flat_map(|row| (0..6).map(move |column| (row, column))) {
            let is_bright = [row < 2, column < 2, row == column][usize::from(class)];
            pixels.push(if is_bright { 180 } else { 10 } + dice.below(70) as u8);
        }
    }
    (pixels, labels)
}

/// Records of CIFAR-10: each class bright in a colour of its own.
fn records(count: usize, seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let record = |_| {
        let class = dice.below(3) as u8;
        let planes = (0..3).flat_map(|plane| [if plane == class { 220 } else { 30 }; 1024]);
        std::iter::once(class).chain(planes).collect::<Vec<u8>>()
    };
    (0..count).flat_map(record).collect()
}

/// A place with 1500 images for training, in two files, and 300 for tests.
fn place() -> Workplace {
    let place = Workplace::new();
    let (pixels, labels) = digits(1500, 1);
    place.write("train1-images.idx3-ubyte.gz", gzip(&idx(&[1000, 6, 6], &pixels[..36_000])));
    place.write("train2-images.idx3-ubyte", idx(&[500, 6, 6], &pixels[36_000..]));
    place.write("train-labels.idx1-ubyte.xz", xz(&idx(&[1500], &labels)));
    let (pixels, labels) = digits(300, 2);
    place.write("test-images.idx", idx(&[300, 6, 6], &pixels));
    place.write("test-labels.idx", idx(&[300], &labels));
    place.write("layers.toml", LAYERS);
    place
}

const LAYERS: &str = r#"
input = [6, 6, 1]

[[layers]]
kind = "convolution"
channels = 4
kernel = [3, 3]

[[layers]]
kind = "tanh"

[[layers]]
kind = "average-pool"
size = [2, 2]

[[layers]]
kind = "linear"
units = 3
"#;

const TRAIN: [&str; 7] =
    ["train", "--data", "train*-images*", "--labels", "train-labels.idx1-ubyte.xz", "--format", "idx"];
const SMALL: [&str; 8] = ["--classes", "0,1,2", "--model", "mlp:8", "--passes", "8", "--batch-size", "100"];
const TEST: [&str; 6] = ["--model", "m.json", "--data", "test-images.idx", "--labels", "test-labels.idx"];

fn train(place: &Workplace, more: &[&str]) -> Run {
    place.dp(&[&TRAIN[..], &SMALL, &["--out", "m.json"], more].concat())
}

#[test]
fn a_network_is_trained_verified_evaluated_and_used() {
    let place = place();
    let result = train(&place, &["--epsilon", "4", "--report", "report.md", "--json"]).json();
    assert_eq!((&result["n"], &result["classes"], &result["private"]), (&1500.into(), &3.into(), &true.into()));
    assert_eq!((&result["parameters"], &result["steps"]), (&(37 * 8 + 9 * 3).into(), &120.into()));
    let verified = place.dp(&["verify", "m.json", "--json"]).json();
    assert_eq!((&verified["epsilon"], &verified["delta"]), (&result["epsilon"], &1e-6.into()));
    assert!(result["epsilon"].as_f64().unwrap() <= 4.0 && verified["adjacency"] == "add-remove");
    let report = place.read("report.md");
    assert!(report.contains("an image of 6 x 6 x 1 values") && report.contains("dp verify m.json"), "{report}");

    let measured = place.dp(&[&["evaluate"][..], &TEST, &["--public-data", "--json"]].concat()).json();
    assert_eq!((&measured["n"], &measured["publishable"]), (&300.into(), &true.into()));
    assert!(measured["accuracy"].as_f64().unwrap() > 0.9, "{measured}");
    assert!(measured["log_loss"].as_f64().unwrap() < 0.7 && measured["confusion"].as_array().unwrap().len() == 3);
    let text = place.dp(&[&["evaluate"][..], &TEST].concat()).ok();
    assert!(text.contains("NOT publishable") && text.contains("true \\ predicted"), "{text}");

    // No labels are needed, and predictions are the same on any number of threads.
    let predict = |threads: &str| {
        place.dp(&["predict", "--model", "m.json", "--data", "test-images.idx", "--threads", threads]).ok()
    };
    let lines = predict("1");
    assert_eq!(lines, predict("3"));
    assert_eq!(lines.lines().next(), Some("class,probability:0,probability:1,probability:2"));
    let (_, labels) = digits(300, 2);
    let mut right = 0;
    for (line, label) in lines.lines().skip(1).zip(&labels) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        assert!((cells[1..].iter().sum::<f64>() - 1.0).abs() < 1e-12, "{line}");
        assert!(cells[1..].iter().all(|p| *p <= cells[1 + cells[0] as usize]), "{line}");
        right += u32::from(cells[0] == f64::from(*label));
    }
    assert_eq!(f64::from(right) / 300.0, measured["accuracy"].as_f64().unwrap());
    place.dp(&["predict", "--model", "m.json", "--data", "test-images.idx", "--out", "scores.csv"]).ok();
    assert_eq!(place.read("scores.csv"), lines);

    // The metrics of private images, with noise and a certificate of their own.
    let release = ["--epsilon", "2", "--out", "metrics.json", "--json"];
    let noisy = place.dp(&[&["evaluate"][..], &TEST, &release].concat()).json();
    assert!((noisy["accuracy"]["value"].as_f64().unwrap() - f64::from(right) / 300.0).abs() < 0.1, "{noisy}");
    place.dp(&["verify", "metrics.json"]).ok();
}

#[test]
fn other_algorithms_clipping_rules_and_layers_are_trained() {
    let place = place();
    for more in [
        &["--model", "layers.toml", "--algorithm", "dp-adam", "--clip-rule", "per-layer"][..],
        &["--model", "layers.toml", "--algorithm", "dp-adambc", "--float", "f64", "--noise", "rounded"],
        &["--model", "mlp:5", "--algorithm", "dp-blsgd", "--clip-loss", "2"],
        &["--model", "mlp:5", "--clip-rule", "adaptive"],
        &["--model", "mlp:5", "--algorithm", "dp-blsgd", "--line-search", "selection", "--adjacency", "replace-one"],
        &["--model", "mlp:5,4", "--clip-rule", "automatic", "--momentum", "0", "--averaging", "exponential"],
        &["--model", "mlp:5", "--adjacency", "replace-one", "--sampling", "fixed", "--schedule", "inverse-sqrt"],
    ] {
        let settings =
            ["--classes", "0,1,2", "--steps", "4", "--batch-size", "50", "--epsilon", "3", "--delta", "1e-5"];
        place.dp(&[&TRAIN[..], &settings, more, &["--out", "m.json", "--force"]].concat()).ok();
        let verified = place.dp(&["verify", "m.json", "--json"]).json();
        assert!(verified["epsilon"].as_f64().unwrap() <= 3.0, "{more:?}: {verified}");
    }
}

/// The class is the half that is bright. A network of several views is taught and asked all of them: mirrored images, whose class
/// would be the other one, leave it nothing to tell the classes by.
#[test]
fn views_are_averaged_in_training_and_prediction() {
    let place = Workplace::new();
    let mut dice = Dice(3);
    let labels = [0, 1].repeat(500);
    let pixels: Vec<u8> = labels
        .iter()
        .flat_map(|&class| (0..36).map(move |j| (class, j % 6 < 3)))
        .map(|(class, is_left)| if is_left == (class == 0) { 200 } else { 5 } + dice.below(50) as u8)
        .collect();
    place.write("images.idx", idx(&[1000, 6, 6], &pixels));
    place.write("labels.idx", idx(&[1000], &labels));
    let data = ["--data", "images.idx", "--labels", "labels.idx"];
    let accuracy = |views: &[&str]| {
        let settings = ["--format", "idx", "--classes", "0,1", "--model", "mlp:8", "--epsilon", "4", "--force"];
        place.dp(&[&["train"][..], &data, &settings, &["--out", "m.json"], views].concat()).ok();
        place.dp(&["verify", "m.json"]).ok();
        let measured = place.dp(&[&["evaluate", "--model", "m.json", "--public-data", "--json"][..], &data].concat());
        measured.json()["accuracy"].as_f64().unwrap()
    };
    assert!(accuracy(&[]) > 0.95 && place.json("m.json")["model"].get("views").is_none());
    assert!(accuracy(&["--views", "shifts"]) > 0.95 && place.json("m.json")["model"]["views"] == "shifts");
    for views in ["flip", "shifts-and-flip"] {
        assert!(accuracy(&["--views", views]) < 0.7);
        assert_eq!(place.json("m.json")["model"]["views"], views);
    }
}

/// The noise of a seeded training is the same on any number of threads, and so is the network, which is not private.
#[test]
fn a_seeded_training_is_reproducible_and_not_private() {
    let place = place();
    let seeded = |file: &str, more: &[&str]| {
        let settings =
            ["--classes", "0,1,2", "--model", "layers.toml", "--steps", "5", "--epsilon", "2", "--seed", "7"];
        place.dp(&[&TRAIN[..], &settings, &["--out", file], more].concat());
        place.json(file)
    };
    let first = seeded("a.json", &["--threads", "1"]);
    assert_eq!(first, seeded("b.json", &["--threads", "3"]));
    assert_ne!(first, seeded("c.json", &["--start-seed", "2"]));
    let views = seeded("d.json", &["--views", "shifts-and-flip", "--threads", "1"]);
    assert_eq!(views, seeded("e.json", &["--views", "shifts-and-flip", "--threads", "3"]));
    assert_eq!(first["certificate"]["private"], false);
    place.dp(&["verify", "a.json"]).fails(5, "verify.not_private");
    let run = place.dp(&[&["evaluate"][..], &TEST[2..], &["--model", "a.json", "--public-data", "--json"]].concat());
    assert_eq!(run.json()["publishable"], false);
    let release = ["--model", "a.json", "--epsilon", "1", "--out", "metrics.json"];
    place.dp(&[&["evaluate"][..], &TEST[2..], &release].concat()).fails(4, "privacy.refused");
}

#[test]
fn the_baseline_is_not_private() {
    let place = place();
    let train = [&TRAIN[..], &["--classes", "0,1,2", "--model", "mlp:8", "--algorithm", "non-private"]].concat();
    let run = place.dp(&[&train[..], &["--out", "m.json", "--report", "report.md", "--json"]].concat());
    run.says("NOT PRIVATE");
    let result = run.json();
    assert_eq!((&result["epsilon"], &result["private"], &result["steps"]), (&"inf".into(), &false.into(), &120.into()));
    assert!(place.read("report.md").contains("WITHOUT privacy"));
    place.dp(&["verify", "m.json"]).fails(5, "verify.not_private");
    let measured = place.dp(&[&["evaluate"][..], &TEST, &["--public-data", "--json"]].concat()).json();
    assert_eq!(measured["publishable"], false);
    assert!(measured["accuracy"].as_f64().unwrap() > 0.98, "{measured}");
    let dry = place.dp(&[&train[..], &["--out", "n.json", "--dry-run", "--n", "1500"]].concat()).ok();
    assert!(dry.contains("no guarantee at all") && dry.contains("120 of about 128"), "{dry}");
    place.dp(&[&train[..], &["--out", "n.json", "--clip", "1"]].concat()).fails(2, "usage.conflict").says("--clip");
    place.dp(&[&train[..], &["--out", "n.json", "--step-size", "1e30"]].concat()).fails(1, "train.not_finite");
    assert!(!place.path("n.json").exists());
}

#[test]
fn colour_images_come_in_several_files() {
    let place = Workplace::new();
    place.write("data_batch_1.bin", records(90, 1));
    place.write("data_batch_2.bin.gz", gzip(&records(60, 2)));
    let train = ["train", "--data", "data_batch_*", "--format", "cifar10", "--model", "mlp:4", "--epsilon", "8"];
    let settings = ["--delta", "1e-3", "--steps", "10", "--batch-size", "60", "--out", "m.json", "--json"];
    let result = place.dp(&[&train[..], &settings].concat()).json();
    assert_eq!((&result["n"], &result["parameters"]), (&150.into(), &(3073 * 4 + 50).into()));
    place.dp(&["verify", "m.json"]).ok();
    let measured = place.dp(&["evaluate", "--model", "m.json", "--data", "data_batch_1.bin", "--json"]).json();
    assert_eq!(measured["n"], 90);
    let lines =
        place.dp(&["predict", "--model", "m.json", "--data", "data_batch_2.bin.gz", "--format", "cifar10"]).ok();
    assert_eq!(lines.lines().count(), 61);
    // Its own layers do not fit, and a linear model reads no colour images.
    let other = ["train", "--data", "data_batch_1.bin", "--epsilon", "8", "--out", "n.json"];
    place.dp(&[&other[..], &["--model", "small-cnn"]].concat()).fails(3, "network.shape").says("28 x 28 x 1");
    place.dp(&other).fails(2, "usage.conflict").says("--model");
}

/// Labels are what the files say; classes count from the first that is named.
#[test]
fn classes_have_any_labels() {
    let place = place();
    let (pixels, labels) = digits(400, 3);
    let letters: Vec<u8> = labels.iter().map(|class| [26, 1, 7][usize::from(*class)]).collect();
    place.write("images.idx", idx(&[400, 6, 6], &pixels));
    place.write("labels.idx", idx(&[400], &letters));
    let train = ["train", "--data", "images.idx", "--labels", "labels.idx", "--model", "mlp:6", "--epsilon", "8"];
    let classes = ["--delta", "1e-4", "--classes", "7,26,1", "--steps", "60", "--batch-size", "100"];
    place.dp(&[&train[..], &classes, &["--out", "m.json"]].concat()).ok();
    assert_eq!(place.json("m.json")["model"]["labels"], serde_json::json!([7, 26, 1]));
    let test = ["evaluate", "--model", "m.json", "--data", "images.idx", "--labels", "labels.idx", "--json"];
    let measured = place.dp(&test).json();
    assert!(measured["accuracy"].as_f64().unwrap() > 0.8, "{measured}");
    assert_eq!(measured["classes"][1]["class"], "26");
    let lines = place.dp(&["predict", "--model", "m.json", "--data", "images.idx"]).ok();
    let hits =
        lines.lines().skip(1).zip(&letters).filter(|(line, label)| line.split(',').next() == Some(&label.to_string()));
    assert!(hits.count() > 320);
    // A label that is no class: which one is for the curator alone.
    let run = place.dp(&[&train[..], &["--classes", "26,1", "--out", "n.json", "--json"]].concat());
    assert_eq!(run.code, 3, "{run:#?}");
    let mut error = crate::support::one_value(&run.stdout);
    assert_eq!(error["error"]["code"], "images.label");
    error["error"].as_object_mut().unwrap().remove("private");
    assert!(!error.to_string().contains('7'), "{error}");
    assert!(!place.path("n.json").exists());
}

#[test]
fn a_dry_run_states_the_cost_and_reads_no_image() {
    let place = place();
    // Nothing but the header.
    place.write("i.idx", &idx(&[1500, 6, 6], &[])[..16]);
    let dry = ["train", "--data", "i.idx", "--labels", "no-such-file", "--classes", "0,1,2", "--epsilon", "2"];
    let dry = [&dry[..], &["--out", "m.json", "--dry-run", "--model", "layers.toml"]].concat();
    let before = place.files();
    let foreseen = place.dp(&[&dry[..], &["--n", "1500", "--json"]].concat()).json();
    assert_eq!((&foreseen["parameters"], &foreseen["steps"]), (&(10 * 4 + 17 * 3).into(), &600.into()));
    assert!(foreseen["epsilon"].as_f64().unwrap() <= 2.0 && foreseen["noise_multiplier"].as_f64().unwrap() > 1.0);
    let text = place.dp(&dry).ok();
    assert!(text.contains("give the number of images") && text.contains("no image was read"), "{text}");
    assert_eq!(place.files(), before);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_left() {
    let place = place();
    place.write("unknown.toml", format!("depth = 3\n{LAYERS}"));
    place.write("kind.toml", LAYERS.replace("tanh", "swish"));
    place.write("batch.toml", LAYERS.replace("kind = \"tanh\"", "kind = \"batch-norm\""));
    place.write("value.toml", LAYERS.replace("channels = 4", "channels = \"four\""));
    place.write("large.toml", LAYERS.replace("kernel = [3, 3]", "kernel = [9, 9]"));
    place.write("classes.toml", LAYERS.replace("units = 3", "units = 4"));
    place.write("input.toml", LAYERS.replace("[6, 6, 1]", "[7, 6, 1]"));
    place.write("text.toml", [0xff, 0xfe]);
    place.write("table.csv", "a,b\n1,2\n");
    place.write("cut.bin", &records(2, 1)[..5000]);
    place.write("empty.bin", "");
    place.write("label.bin", [&records(1, 1)[..], &[77], &[0; 3072]].concat());
    let before = place.files();
    let of = |arguments: &[&str], exit: i32, code: &str, text: &str| {
        let run = place.dp(arguments);
        run.fails(exit, code).says(text);
        assert_eq!(place.files(), before, "{arguments:?}");
    };
    let files = [&TRAIN[..], &["--epsilon", "1", "--out", "m.json"]].concat();
    for flag in [&["--positive", "1"][..], &["--negative", "1"], &["--label-range", "0", "1"]] {
        of(&[&files[..], &["--model", "mlp:8"], flag].concat(), 2, "usage.conflict", flag[0]);
    }
    let base = [&files[..], &["--classes", "0,1,2"]].concat();
    for (more, exit, code, text) in [
        (&["--model", "unknown.toml"][..], 3, "network.syntax", "unknown.toml, line 1"),
        (&["--model", "kind.toml"], 3, "network.syntax", "swish"),
        (&["--model", "batch.toml"], 3, "network.syntax", "group-norm"),
        (&["--model", "value.toml"], 3, "network.syntax", "line 6"),
        (&["--model", "text.toml"], 3, "network.syntax", "UTF-8"),
        (&["--model", "large.toml"], 3, "network.shape", "layer 1 (convolution)"),
        (&["--model", "classes.toml"], 3, "network.shape", "4 classes"),
        (&["--model", "input.toml"], 3, "network.shape", "7 x 6 x 1"),
        (&["--model", "none.toml"], 1, "file.open", "none.toml"),
        (&["--model", "small-cnn"], 3, "network.shape", "28 x 28 x 1"),
        (&["--model", "cnn"], 2, "usage.value", "mlp:UNITS"),
        (&["--model", "mlp:0"], 3, "network.shape", "units"),
        (&["--model", "mlp:100000000"], 3, "network.shape", "units"),
        (&["--model", "mlp:8", "--schema", "s.toml"], 2, "usage.conflict", "--schema"),
        (&["--model", "mlp:8", "--dim", "36"], 2, "usage.conflict", "--dim"),
        (&["--model", "mlp:8", "--one-vs-all", "joint"], 2, "usage.conflict", "--one-vs-all"),
        (&["--model", "mlp:8", "--bands", "3"], 2, "usage.conflict", "--bands"),
        (&["--model", "mlp:8", "--algorithm", "bolt-on-convex"], 2, "usage.conflict", "does not train networks"),
        (&["--model", "mlp:8", "--algorithm", "non-private"], 2, "usage.conflict", "--epsilon"),
        (&["--model", "mlp:8", "--algorithm", "dp-adam", "--momentum", "0.5"], 2, "usage.conflict", "--momentum"),
        (&["--model", "mlp:8", "--momentum", "1"], 2, "usage.value", "--momentum"),
        (&["--model", "mlp:8", "--steps", "3", "--passes", "1"], 2, "usage.conflict", "--steps"),
        (&["--model", "mlp:8", "--schedule", "halving"], 2, "usage.conflict", "constant or inverse-sqrt"),
        (&["--model", "mlp:8", "--sampling", "fixed"], 4, "privacy.refused", "replace-one"),
        (&["--model", "mlp:8", "--adjacency", "change-list-labels"], 4, "privacy.adjacency", "add-remove"),
        (&["--model", "mlp:8", "--batch-size", "5000"], 4, "privacy.refused", "--batch-size"),
        (&["--model", "mlp:8", "--delta", "0"], 4, "privacy.refused", "delta"),
        (&["--model", "mlp:8", "--step-size", "1e35"], 4, "privacy.refused", "overflow"),
    ] {
        of(&[&base[..], more].concat(), exit, code, text);
    }
    for (arguments, exit, code, text) in [
        (&["--data", "table.csv"][..], 3, "model.mismatch", "does not read CSV"),
        (&["--data", "no-such*.idx", "--labels", "test-labels.idx"], 1, "file.open", "no name matches"),
        (&["--data", "test-labels.idx", "--labels", "test-images.idx"], 3, "idx.syntax", "test-labels.idx"),
        (&["--data", "test-images.idx", "--labels", "test-images.idx"], 2, "usage.conflict", "same file"),
        (&["--data", "test-images.idx", "--labels", "train-labels*", "--classes", "0,1,2"], 3, "idx.counts", "1500"),
        (&["--data", "test-images.idx"], 2, "usage.missing", "--labels"),
        (
            &["--data", "test-images.idx", "--labels", "test-labels.idx", "--classes", "0,1"],
            3,
            "images.label",
            "--classes",
        ),
        (&["--data", "test-images.idx", "--labels", "test-labels.idx", "--classes", "0,0"], 2, "usage.value", "twice"),
        (
            &["--data", "test-images.idx", "--labels", "test-labels.idx", "--classes", "a,b"],
            2,
            "usage.value",
            "0 to 255",
        ),
        (&["--data", "cut.bin", "--format", "cifar10"], 3, "cifar.length", "cut.bin"),
        (&["--data", "empty.bin", "--format", "cifar10"], 3, "images.number", "empty.bin"),
        (&["--data", "label.bin", "--format", "cifar10"], 3, "images.label", "label.bin"),
        (
            &["--data", "label.bin", "--format", "cifar10", "--labels", "test-labels.idx"],
            2,
            "usage.conflict",
            "--labels",
        ),
    ] {
        let rest = ["--model", "mlp:8", "--epsilon", "1", "--out", "m.json"];
        of(&[&["train"][..], arguments, &rest].concat(), exit, code, text);
    }
    // Flags of other models, each by its name.
    for flag in [
        &["--label", "y"][..],
        &["--schema-from-data"],
        &["--schema", "s.toml", "--assume-public", "y"],
        &["--pixel-max", "9"],
        &["--scale", "unit"],
        &["--curves", "2"],
        &["--coordinate", "log"],
        &["--row-norm", "unit"],
        &["--sums"],
        &["--memory", "1GB"],
        &["--spool", "."],
        &["--spool-encrypted"],
        &["--project", "gaussian:3"],
        &["--unit", "u", "--max-rows", "2"],
        &["--loss", "softmax"],
        &["--threshold", "base-rate"],
        &["--huber-width", "0.1"],
        &["--zero-based"],
        &["--delimiter", "tab"],
        &["--query", "SELECT 1"],
    ] {
        of(&[&base[..], &["--model", "mlp:8"], flag].concat(), 2, "usage.conflict", flag[0]);
    }
    // An output that a pattern of inputs matches.
    let out =
        ["--epsilon", "1", "--model", "mlp:8", "--classes", "0,1,2", "--force", "--out", "train2-images.idx3-ubyte"];
    of(&[&TRAIN[..], &out].concat(), 2, "usage.conflict", "same file");
    let tuned = ["--classes", "0,1,2", "--model", "mlp:8", "--passes", "1,2", "--epsilon", "1", "--out", "m.json"];
    of(&[&["tune"][..], &TRAIN[1..], &tuned].concat(), 2, "usage.conflict", "--model");
}

#[test]
fn what_a_network_does_not_do_is_said() {
    let place = place();
    train(&place, &["--epsilon", "2"]).ok();
    let evaluate = |more: &[&str]| place.dp(&[&["evaluate"][..], &TEST, more].concat());
    evaluate(&["--threshold", "0.3"]).fails(3, "model.mismatch");
    evaluate(&["--on-unknown", "skip"]).fails(2, "usage.conflict");
    evaluate(&["--curves", "c.svg"]).fails(3, "model.mismatch");
    let (pixels, labels) = digits(20, 4);
    place.write("wide.idx", idx(&[20, 4, 9], &pixels));
    place.write("wide-labels.idx", idx(&[20], &labels));
    place
        .dp(&["evaluate", "--model", "m.json", "--data", "wide.idx", "--labels", "wide-labels.idx"])
        .fails(3, "model.mismatch")
        .says("6 x 6 x 1");
    place.write("table.csv", "a\n1\n");
    place.dp(&["predict", "--model", "m.json", "--data", "table.csv"]).fails(3, "model.mismatch");
    place
        .dp(&["predict", "--model", "m.json", "--sql", "sqlite", "--table", "t"])
        .fails(3, "model.format")
        .says("networks");
    place.dp(&["explain-model", "m.json"]).fails(3, "model.format").says("linear model");
    let mut file: Value = place.json("m.json");
    file["model"]["weights"][0] = 0.125.into();
    place.write("edited.json", file.to_string());
    place.dp(&["verify", "edited.json"]).fails(5, "verify.model_hash");
    place.dp(&["predict", "--model", "edited.json", "--data", "test-images.idx"]).fails(5, "verify.model_hash");
}

#[test]
fn the_networks_have_a_page() {
    let place = Workplace::new();
    let text = place.dp(&["help", "networks"]).ok();
    for part in [
        "tempered-cnn: convolution 16 of 8 x 8 stride 2 x 2 padding 3 x 3, tanh, max-pool 2 x 2 stride 1 x 1, ",
        "max-pool 2 x 2, linear 256",
        "795010",
        "[[layers]]",
        "--clip-rule",
        "dp-adambc",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
