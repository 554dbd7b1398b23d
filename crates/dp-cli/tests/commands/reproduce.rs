//! `dp reproduce` on generated data: lists, runs, stores and draws, and its errors.

use crate::support::{Workplace, idx};

/// The only figure that needs no files.
const SPHERE: [&str; 6] = ["reproduce", "thesis-6", "--quick", "--out", "out", "--json"];

#[test]
fn figures_and_files_are_listed() {
    let place = Workplace::new();
    let list = place.dp(&["reproduce", "list", "--data", ".", "--json"]).json();
    assert_eq!(list["schema"], "dp.reproduce-list/1");
    let figures = list["figures"].as_array().unwrap();
    assert!(figures.iter().all(|figure| figure["runs"].as_u64().unwrap() > 0));
    assert!(figures.iter().any(|figure| figure["name"] == "bolt-on-3"));
    let files = list["files"].as_array().unwrap();
    assert!(files.len() > 8 && files.iter().all(|file| file["missing"] == true));
    let text = place.dp(&["reproduce", "list", "--data", "."]).ok();
    assert!(text.contains("thesis-6") && text.contains("covertype_93k.csv.gz") && text.contains("MISSING"));
    assert!(place.files().is_empty());
}

#[test]
fn figures_of_the_dissertation_are_listed_with_their_data() {
    let place = Workplace::new();
    let list = place.dp(&["reproduce", "list", "--quick", "--json"]).json();
    let figures = list["figures"].as_array().unwrap();
    let data = |name: &str| {
        let figure = figures.iter().find(|figure| figure["name"] == name);
        figure.unwrap_or_else(|| panic!("{name}"))["data"].clone()
    };
    assert_eq!(data("renyi-3-1"), serde_json::json!(["adult", "bank"]));
    assert_eq!(data("renyi-3-3"), serde_json::json!(["kddcup99"]));
    assert_eq!(data("renyi-4-4"), serde_json::json!(["sparse-model"]));
    assert_eq!(data("renyi-5-2"), serde_json::json!(["adult"]));
    assert_eq!(data("renyi-table").as_array().unwrap().len(), 7);
    let files: Vec<&str> =
        list["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert!(files.contains(&"a9a_train.libsvm.gz") && files.contains(&"bank33.csv.gz"), "{files:?}");
    // The figure of simulated data needs no file.
    let dry = place.dp(&["reproduce", "renyi-4-4", "--quick", "--out", "o", "--dry-run", "--json"]).json();
    assert_eq!(dry["reads"], serde_json::json!([]));
}

#[test]
fn a_figure_is_run_kept_and_drawn_and_not_run_again() {
    let place = Workplace::new();
    let first = place.dp(&SPHERE).json();
    assert_eq!((&first["schema"], &first["private_release"]), (&"dp.reproduce/1".into(), &false.into()));
    let claims = first["figures"][0]["claims"].as_array().unwrap();
    assert!(claims.iter().all(|claim| claim["verdict"] != "not measured" && claim["compared"].as_u64().unwrap() > 0));
    for end in ["-runs.csv", "-summary.csv", ".md", ".svg"] {
        assert!(place.read(&format!("out/thesis-6{end}")).len() > 100, "{end}");
    }
    let png = std::fs::read(place.path("out/thesis-6.png"));
    assert!(png.map_or(!cfg!(feature = "png"), |png| png.starts_with(b"\x89PNG")));
    let (runs, picture) = (place.read("out/runs.csv"), place.read("out/thesis-6.svg"));
    // The same runs from scratch with another number of threads agree in all but the time.
    let elsewhere = ["reproduce", "thesis-6", "--quick", "--out", "elsewhere", "--threads", "3", "--json"];
    assert_eq!(place.dp(&elsewhere).json()["figures"][0]["claims"], first["figures"][0]["claims"]);
    // A torn last line is repeated, the other runs are not.
    std::fs::write(place.path("out/runs.csv"), &runs[..runs.len() - 3]).unwrap();
    place.dp(&SPHERE).json();
    let again = place.read("out/runs.csv");
    let kept = runs.len() - runs.lines().last().unwrap().len() - 1;
    assert_eq!((&again[..kept], again.lines().count()), (&runs[..kept], runs.lines().count()));
    assert_eq!(place.read("out/thesis-6.svg"), picture);
}

#[test]
fn a_dry_run_reads_and_writes_nothing() {
    let place = Workplace::new();
    let value = place.dp(&["reproduce", "bolt-on-8", "--data", "d", "--out", "o", "--dry-run", "--json"]).json();
    assert_eq!(value["dry_run"], true);
    assert!(value["reads"].as_array().unwrap().iter().any(|file| file.as_str().unwrap().contains("kddcup99")));
    assert!(value["writes"].as_array().unwrap().iter().any(|file| file.as_str().unwrap().ends_with("bolt-on-8.svg")));
    assert!(place.files().is_empty());
}

#[test]
fn refusals_say_what_is_missing() {
    let place = Workplace::new();
    place.dp(&["reproduce", "bolt-on-99"]).fails(2, "usage.value").says("dp reproduce list");
    let missing = place.dp(&["reproduce", "all", "--out", "out"]);
    missing.fails(3, "reproduce.data").says("mnist-train-images-idx3-ubyte.gz").says("1913291 bytes");
    assert!(place.files().is_empty());
    std::fs::create_dir(place.path("out")).unwrap();
    place.write("out/runs.csv", "my notes\n");
    place.dp(&SPHERE[..5]).fails(3, "reproduce.record");
    assert_eq!(place.read("out/runs.csv"), "my notes\n");
    place.dp(&["reproduce", "export", "--out", "x", "--set", "nothing"]).fails(2, "usage.value");
    place.dp(&["reproduce", "renyi-table", "--set", "nothing"]).fails(2, "usage.value").says("banknote");
    place.dp(&["reproduce", "renyi-table", "--set", "mnist"]).fails(2, "usage.value").says("banknote");
    place.dp(&["reproduce", "renyi-table", "--algorithm", "nothing"]).fails(2, "usage.value").says("dp-blsgd-ac");
    place.dp(&["reproduce", "table", "--algorithm", "dp-adam"]).fails(2, "usage.value").says("phased-sgd");
    let one = place.dp(&["reproduce", "renyi-table", "--set", "banknote", "--out", "one"]);
    one.fails(3, "reproduce.data").says("banknote.csv.gz").says("1 of the data sets' files");
    assert!(!place.path("one").exists());
}

#[test]
fn two_runs_at_once_do_not_share_a_folder() {
    let place = Workplace::new();
    std::fs::create_dir(place.path("out")).unwrap();
    let file = std::fs::File::create(place.path("out/runs.csv")).unwrap();
    file.lock().unwrap();
    place.dp(&SPHERE[..5]).fails(1, "reproduce.busy").says("runs.csv");
    assert_eq!(place.read("out/runs.csv"), "");
}

#[test]
fn prepared_rows_are_exported() {
    let place = Workplace::new();
    let value = place.dp(&["reproduce", "export", "--out", "folds", "--set", "sphere", "--json"]).json();
    assert_eq!(value["files"].as_array().unwrap().len(), 2);
    let text = place.read("folds/sphere-train.csv");
    let mut lines = text.lines();
    assert_eq!((lines.next(), text.lines().count()), (Some("target,x0,x1,x2,x3,x4"), 10_001));
    let cells: Vec<f64> = lines.next().unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
    let norm: f64 = cells[1..].iter().map(|x| x * x).sum();
    assert!(cells[0].abs() == 1.0 && (norm - 1.0).abs() < 1e-12);
}

#[test]
fn only_the_algorithms_that_were_asked_for_are_run() {
    let place = Workplace::new();
    let some = ["reproduce", "thesis-6", "--quick", "--repetitions", "1", "--out", "out", "--algorithm", "noiseless"];
    place.dp(&some).ok();
    let count = |name: &str| place.read("out/runs.csv").lines().filter(|line| line.contains(name)).count();
    let (lines, noiseless) = (place.read("out/runs.csv").lines().count(), count(",noiseless,"));
    assert!(noiseless > 0 && lines == noiseless + 1, "{noiseless} of {lines} lines");
    // The other runs are added; none is repeated.
    place.dp(&some[..7]).ok();
    assert!(count(",noiseless,") == noiseless && place.read("out/runs.csv").lines().count() > lines);
}

/// The networks of chapter 5: images of three data sets, and pictures of what was run.
#[test]
fn networks_are_run_on_images() {
    let place = Workplace::new();
    let list = place.dp(&["reproduce", "list", "--json"]).json();
    let figures = list["figures"].as_array().unwrap();
    let data = |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap()["data"].clone();
    assert_eq!(data("renyi-5-5"), serde_json::json!(["mnist-images", "fashion-images"]));
    assert_eq!(data("renyi-5-6"), serde_json::json!(["cifar10"]));
    let missing = place.dp(&["reproduce", "renyi-5-6", "--out", "out"]);
    missing.fails(3, "reproduce.data").says("cifar-10-batches-bin/test_batch.bin (30730000 bytes");
    place.dp(&["reproduce", "export", "--out", "x", "--set", "cifar10"]).fails(2, "usage.value").says("rows");

    // Images of another shape than the networks of the figure have.
    for name in ["train", "t10k"] {
        let labels: Vec<u8> = (0..40).map(|i| i % 10).collect();
        place.write(&format!("mnist-{name}-images-idx3-ubyte.gz"), idx(&[40, 6, 6], &[7; 40 * 36]));
        place.write(&format!("mnist-{name}-labels-idx1-ubyte.gz"), idx(&[40], &labels));
    }
    let run = ["reproduce", "renyi-5-5", "--set", "mnist-images", "--quick", "--repetitions", "1", "--out", "out"];
    place.dp(&run).fails(3, "reproduce.data").says("28 x 28 x 1");
}

/// Chapter 6: MQ2007 has no known size, generated lists need no file, and one training serves both rows of panels.
#[test]
fn rankers_are_run_on_lists_that_need_no_file() {
    let place = Workplace::new();
    let list = place.dp(&["reproduce", "list", "--json"]).json();
    let figures = list["figures"].as_array().unwrap();
    let figure = |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap().clone();
    assert_eq!(figure("renyi-6-1")["data"], serde_json::json!(["mq2007"]));
    assert_eq!(figure("renyi-6-2")["data"], serde_json::json!(["mq2008"]));
    assert_eq!(figure("renyi-6-3")["data"], serde_json::json!(["mq2007", "mq2008", "made-up-784-lists"]));
    let files = list["files"].as_array().unwrap();
    let file = |name: &str| files.iter().find(|file| file["name"] == name).unwrap()["bytes"].clone();
    assert_eq!((file("mq2007/S1.txt"), file("mq2008/S1.txt.xz")), (serde_json::Value::Null, 229_520.into()));
    assert!(place.dp(&["reproduce", "list"]).ok().contains("size unknown"));

    let missing = place.dp(&["reproduce", "renyi-6-1", "--out", "out"]);
    missing.fails(3, "reproduce.data").says("mq2007/S5.txt (size unknown");
    place.dp(&["reproduce", "export", "--out", "x", "--set", "mq2008"]).fails(2, "usage.value").says("rows");
    let dry = place.dp(&["reproduce", "renyi-6-2", "--quick", "--dry-run", "--json"]).json();
    assert_eq!(dry["reads"].as_array().unwrap().len(), 5);
    assert!(place.files().is_empty());

    let some = ["reproduce", "renyi-6-3", "--set", "made-up-784-lists", "--repetitions", "1", "--out", "out", "--json"];
    let value = place.dp(&some).json();
    let claims = value["figures"][0]["claims"].as_array().unwrap();
    // Claims on linear rankers have one of three data sets, those on networks none.
    assert!(claims.iter().any(|claim| claim["compared"].as_u64().unwrap() > 0));
    assert!(claims.iter().any(|claim| claim["verdict"] == "not measured"));
    let runs = place.read("out/runs.csv");
    // A random order, four rankers without noise, and three with noise at three budgets.
    assert_eq!(runs.lines().count(), 1 + 1 + 4 + 3 * 3);
    assert!(
        runs.contains("made-up-784-lists,ranker linear,bayes-rank,0,epsilon 1 delta 0.0001 clipped at 0.1,"),
        "{runs}"
    );
    let page = place.read("out/renyi-6-3.md");
    assert!(page.contains("Made-up lists: NDCG@8 (NDCG@8)") && page.contains("| linear BayesRank |"), "{page}");
    assert_eq!(place.dp(&some).json()["figures"], value["figures"]);
    assert_eq!(place.read("out/runs.csv"), runs);
}
