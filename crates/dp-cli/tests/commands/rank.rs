//! `dp rank`: training, verification, evaluation, scoring and cross-validation of rankers, on generated lists.

use crate::support::lists::{FEATURES, draw, letor, place};
use crate::support::{Run, Workplace, gzip, one_value, reseal};
use serde_json::Value;

const BUDGET: [&str; 4] = ["--epsilon", "3", "--delta", "1e-4"];
const LINEAR: [&str; 4] = ["--loss", "bayesrank", "--model", "linear"];

fn train(place: &Workplace, more: &[&[&str]]) -> Run {
    place.dp(&[&["rank", "train"][..], &more.concat(), &["--out", "r.json", "--force", "--json"]].concat())
}

fn evaluate(place: &Workplace, data: &str) -> Value {
    place.dp(&["rank", "evaluate", "--model", "r.json", "--data", data, "--json"]).json()
}

fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

#[test]
fn from_lists_to_a_private_ranker_and_its_figures() {
    let place = place();
    for (data, test, columns) in [
        ("train.txt", "test.txt", &[][..]),
        ("train.txt.gz", "test.txt", &[]),
        ("train.csv", "test.csv.gz", &["--query", "user", "--label", "clicks"]),
    ] {
        let result = train(&place, &[&["--data", data], &LINEAR, &BUDGET, columns]).json();
        assert_eq!((&result["schema"], &result["n"]), (&"dp.rank-train/1".into(), &200.into()), "{result}");
        assert_eq!((&result["adjacency"], &result["unit"]), (&"change-list-labels".into(), &"list".into()));
        assert_eq!((&result["dim"], &result["private"]), (&FEATURES.into(), &true.into()));
        assert!((2.9..=3.0).contains(&number(&result, "/epsilon")), "{result}");
        let model = &place.json("r.json")["model"];
        assert_eq!((&model["schema"], &model["loss"]["k"]), (&"dp.ranker/1".into(), &1.into()));
        let verified = place.dp(&["verify", "r.json", "--json"]).json();
        assert_eq!((&verified["holds"], &verified["adjacency"]), (&true.into(), &"change-list-labels".into()));
        assert!((number(&verified, "/epsilon") - number(&result, "/epsilon")).abs() < 1e-6);
        let measured = evaluate(&place, test);
        assert_eq!((&measured["metrics"], &measured["n"]), (&"letor".into(), &60.into()));
        assert_eq!((&measured["publishable"], &measured["private_release"]), (&false.into(), &false.into()));
        // Random orders reach about 0.55.
        assert!(number(&measured, "/map") > 0.75, "{data}: {measured}");
        for k in ["1", "2", "4", "8", "10"] {
            for metric in ["ndcg", "precision", "err"] {
                assert!((0.0..=1.0).contains(&number(&measured, &format!("/{metric}/{k}"))), "{metric} {measured}");
            }
        }
    }
    let text = place.dp(&["verify", "r.json"]).ok();
    assert!(text.contains("for one list") && text.contains("grades of one list"), "{text}");
}

/// Verification of a ranker reports a delta that protects no one.
#[test]
fn a_delta_that_allows_whole_lists_is_loud() {
    let place = place();
    train(&place, &[&["--data", "train.txt"], &LINEAR, &["--epsilon", "3", "--delta", "0.02"]]).json();
    let said = "delta = 0.02 is not below 1/n = 1/200: publishing 4 of the 200 lists";
    let verified = place.dp(&["verify", "r.json", "--json"]).json();
    assert!(verified["warnings"][0].as_str().unwrap().starts_with(said), "{verified}");
    train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET]).json();
    assert!(!place.dp(&["verify", "r.json"]).ok().contains("WARNING"));
}

#[test]
fn both_definitions_of_ndcg_and_public_lists() {
    let place = place();
    train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET]).json();
    let base = ["rank", "evaluate", "--model", "r.json", "--data", "test.txt"];
    let letor = place.dp(&[&base[..], &["--json"]].concat()).json();
    let standard = place.dp(&[&base[..], &["--metrics", "standard", "--public-data", "--json"]].concat()).json();
    // LETOR's tool assigns 0 to lists of fewer than 10 documents.
    assert!(number(&letor, "/ndcg/10") + 0.2 < number(&standard, "/ndcg/10"), "{letor} {standard}");
    assert_eq!(
        (letor["map"].clone(), letor["ndcg"]["1"].clone()),
        (standard["map"].clone(), standard["ndcg"]["1"].clone())
    );
    assert_eq!((&standard["metrics"], &standard["publishable"]), (&"standard".into(), &true.into()));
    let text = place.dp(&base).ok();
    assert!(
        text.contains("NDCG") && text.contains("NOT publishable") && text.contains("no\nprivate release"),
        "{text}"
    );
}

/// Figures computed by hand: one list, ordered by its first feature.
#[test]
fn the_figures_are_those_of_the_definitions() {
    let place = Workplace::new();
    place.write("t.txt", "0 qid:a 1:0.9\n2 qid:a 1:0.5\n1 qid:a 1:0.1\n0 qid:b 1:1\n0 qid:b 1:2\n");
    place.write("train.txt", "2 qid:1 1:1\n0 qid:1 1:0\n2 qid:2 1:1\n1 qid:2 1:0\n");
    train(&place, &[&["--data", "train.txt", "--non-private"], &LINEAR]).json();
    assert!(number(&place.json("r.json"), "/model/weights/0") > 0.0);
    let base = ["rank", "evaluate", "--model", "r.json", "--data", "t.txt", "--json"];
    let letor = place.dp(&base).json();
    let standard = place.dp(&[&base[..], &["--metrics", "standard"]].concat()).json();
    // The second list has no relevant document and counts as 0 in every mean.
    let near = |found: f64, list: f64| assert!((found - list / 2.0).abs() < 1e-12, "{found} {list}");
    near(number(&letor, "/map"), (0.5 + 2.0 / 3.0) / 2.0);
    near(number(&letor, "/mrr"), 0.5);
    near(number(&letor, "/precision/2"), 0.5);
    near(number(&letor, "/ndcg/1"), 0.0);
    near(number(&letor, "/ndcg/2"), 3.0 / 4.0);
    near(number(&letor, "/ndcg/4"), 0.0);
    let log3 = 3f64.log2();
    near(number(&standard, "/ndcg/2"), (3.0 / log3) / (3.0 + 1.0 / log3));
    near(number(&standard, "/ndcg/10"), (3.0 / log3 + 0.5) / (3.0 + 1.0 / log3));
    near(number(&standard, "/err/1"), 0.0);
    near(number(&standard, "/err/10"), 0.75 / 2.0 + 0.25 * 0.25 / 3.0);
}

#[test]
fn networks_and_every_loss() {
    let place = place();
    for (loss, more) in [
        (&["--loss", "bayesrank", "--k", "2"][..], &["--normalise", "always"][..]),
        (&["--loss", "listnet"], &["--activation", "tanh", "--normalise", "above-one"]),
        (&["--loss", "listmle"], &["--normalise-features"]),
    ] {
        let network = ["--data", "train.txt", "--model", "mlp", "--hidden", "7", "--updates", "50"];
        let result = train(&place, &[&network, loss, more, &BUDGET]).json();
        assert_eq!(result["parameters"], 7 * (FEATURES + 2), "{loss:?}: {result}");
        let model = place.json("r.json")["model"].clone();
        assert_eq!((&model["scorer"]["kind"], &model["scorer"]["hidden"]), (&"mlp".into(), &7.into()));
        assert_eq!(model["normalise_features"], more == ["--normalise-features"]);
        place.dp(&["verify", "r.json"]).ok();
        assert!(number(&evaluate(&place, "test.txt"), "/map") > 0.3, "{loss:?}");
    }
    // A weight matrix that is projected to norm 1 after every update has norm 1.
    let network = ["--data", "train.txt", "--loss", "listnet", "--model", "mlp", "--hidden", "1", "--updates", "20"];
    train(&place, &[&network, &["--normalise", "always"], &BUDGET]).json();
    let weights = place.json("r.json")["model"]["weights"].clone();
    let norm: f64 = (0..FEATURES).map(|j| weights[j].as_f64().unwrap().powi(2)).sum();
    assert!((norm - 1.0).abs() < 1e-6, "{weights}");
}

/// ListMLE breaks ties by the order of documents. If all grades are equal, the order in the file is all that it could learn.
#[test]
fn listmle_does_not_learn_the_order_of_a_file() {
    let place = Workplace::new();
    let document = |list: usize, at: usize| format!("0 qid:{list} 1:{}\n", 1.0 - at as f64 / 8.0);
    let lists: String = (0..300).flat_map(|list| (0..8).map(move |at| document(list, at))).collect();
    place.write("sorted.txt", &lists);
    for budget in [&BUDGET[..], &["--non-private"]] {
        train(&place, &[&["--data", "sorted.txt", "--loss", "listmle", "--model", "linear"], budget]).json();
        // With the order of the file, the weight is 12 without privacy.
        let weight = number(&place.json("r.json"), "/model/weights/0");
        assert!(weight.abs() < 1.0, "{weight}");
    }
}

/// Default step sizes follow from epsilon.
#[test]
fn first_steps_are_in_proportion_to_epsilon() {
    let place = place();
    let weights = |epsilon: &str, more: &[&str]| {
        let budget = ["--epsilon", epsilon, "--delta", "1e-4", "--seed", "7"];
        train(&place, &[&["--data", "train.txt"], &LINEAR, &budget, more]).json();
        place.json("r.json")["model"]["weights"].clone()
    };
    for (epsilon, step, other) in [("0.5", "0.5", "1"), ("3", "3", "1"), ("50", "4", "50")] {
        let usual = weights(epsilon, &[]);
        assert_eq!(usual, weights(epsilon, &["--step", step]), "{epsilon}");
        assert_ne!(usual, weights(epsilon, &["--step", other]), "{epsilon}");
    }
}

#[test]
fn noise_is_fresh_and_a_seed_is_no_privacy() {
    let place = place();
    let weights = |more: &[&str]| {
        let run = train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET, more]);
        let said = run.stderr.clone();
        (run.json(), said, place.json("r.json")["model"]["weights"].clone())
    };
    let (_, said, one) = weights(&[]);
    let (_, _, two) = weights(&[]);
    assert_ne!(one, two);
    assert!(!said.contains("NOT PRIVATE"), "{said}");
    let (result, said, three) = weights(&["--seed", "7"]);
    assert_eq!((&result["private"], &result["epsilon"]), (&false.into(), &"inf".into()));
    assert!(said.contains("NOT PRIVATE"), "{said}");
    assert_eq!(weights(&["--seed", "7"]).2, three);
    place.dp(&["verify", "r.json"]).fails(5, "verify.not_private");
}

#[test]
fn training_without_privacy_says_so() {
    let place = place();
    let run = train(&place, &[&["--data", "train.txt", "--non-private"], &LINEAR]);
    run.says("NOT PRIVATE");
    let result = run.json();
    assert_eq!((&result["private"], &result["epsilon"]), (&false.into(), &"inf".into()));
    let certificate = &place.json("r.json")["certificate"];
    assert_eq!(
        (&certificate["private"], &certificate["derivation"]["recipe"]),
        (&false.into(), &"non-private-ranking".into())
    );
    place.dp(&["verify", "r.json"]).fails(5, "verify.not_private").says("without privacy");
    assert!(number(&evaluate(&place, "test.txt"), "/map") > 0.85);
    let public = ["rank", "evaluate", "--model", "r.json", "--data", "test.txt", "--public-data", "--json"];
    assert_eq!(place.dp(&public).json()["publishable"], false);
    // The file cannot be edited to claim privacy.
    let mut file = place.json("r.json");
    file["certificate"]["private"] = true.into();
    file["certificate"]["reached"] = serde_json::json!({ "epsilon": 1.0, "delta": 1e-6 });
    reseal(&mut file);
    place.write("claims.json", file.to_string());
    assert_eq!(place.dp(&["verify", "claims.json"]).code, 5);
}

#[test]
fn every_edit_of_a_ranker_is_found_out() {
    let place = place();
    train(&place, &[&["--data", "train.csv", "--query", "user", "--label", "clicks"], &LINEAR, &BUDGET]).json();
    let file = place.json("r.json");
    let verify = |file: &Value| {
        place.write("edited.json", file.to_string());
        place.dp(&["verify", "edited.json"])
    };
    verify(&file).ok();
    for (pointer, code) in [
        ("/model/weights/3", "verify.model_hash"),
        ("/model/width", "verify.model_hash"),
        ("/model/input/features/0", "verify.model_hash"),
        ("/certificate/reached/epsilon", "verify.certificate_hash"),
        ("/certificate/derivation/std_dev", "verify.certificate_hash"),
    ] {
        let mut edited = file.clone();
        let leaf = edited.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}"));
        *leaf = match leaf.as_f64() {
            Some(number) => (number + 0.5).into(),
            None => "other".into(),
        };
        verify(&edited).fails(5, code);
    }
    // Inconsistent numbers are detected although the seals are repaired.
    for (pointer, value) in [
        ("/certificate/reached/epsilon", 0.5.into()),
        ("/certificate/derivation/lists", 2000.into()),
        ("/certificate/derivation/parameters", 4.into()),
        ("/certificate/derivation/batch_size", 4.into()),
        ("/certificate/derivation/updates", 40.into()),
        ("/certificate/derivation/clipping", 0.01.into()),
        ("/certificate/derivation/std_dev", 10.0.into()),
        ("/certificate/derivation/exact_noise", false.into()),
        ("/certificate/noise", "rounded".into()),
        ("/certificate/adjacency", "replace-one".into()),
        ("/certificate/unit", "record".into()),
        ("/certificate/assumptions/0", serde_json::json!({ "assumption": "one_row_per_unit" })),
    ] {
        let mut edited = file.clone();
        let leaf = edited.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}"));
        assert_ne!(*leaf, value, "{pointer}");
        *leaf = value;
        reseal(&mut edited);
        let run = verify(&edited);
        assert_eq!(run.code, 5, "{pointer}: {run:#?}");
    }
    let mut dropped = file.clone();
    dropped["certificate"]["assumptions"].as_array_mut().unwrap().remove(0);
    reseal(&mut dropped);
    verify(&dropped).fails(5, "verify.assumption");
    // Weights that do not fit the scorer, and members without meaning.
    let mut short = file.clone();
    short["model"]["weights"].as_array_mut().unwrap().pop();
    reseal(&mut short);
    verify(&short).fails(3, "model.format").says("dp.ranker/1");
    let mut more = file;
    more["model"]["remark"] = "private".into();
    reseal(&mut more);
    verify(&more).fails(3, "model.format");
}

#[test]
fn scores_of_documents() {
    let place = place();
    train(&place, &[&["--data", "train.csv", "--query", "user", "--label", "clicks"], &LINEAR, &BUDGET]).json();
    let weights: Vec<f64> =
        place.json("r.json")["model"]["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
    // Columns in another order, a column unknown to the ranker, and a query that needs quotes.
    place.write(
        "new.csv",
        "clicks,extra,e,d,c,b,a,user\n0,9,5,4,3,2,1,\"x,y\"\n7,9,0,0,0,0,1,\"x,y\"\n0,9,0,0,0,1,0,z\n",
    );
    let predict = ["rank", "predict", "--model", "r.json", "--data", "new.csv"];
    let result = place.dp(&[&predict[..], &["--out", "scores.csv", "--json"]].concat()).json();
    assert_eq!((&result["n"], &result["documents"]), (&2.into(), &3.into()));
    let text = place.read("scores.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "query,document,score");
    let first: f64 = lines[1].strip_prefix("\"x,y\",1,").unwrap().parse().unwrap();
    let expected: f64 = weights.iter().zip([1.0, 2.0, 3.0, 4.0, 5.0]).map(|(w, x)| w * x).sum();
    assert!((first - expected).abs() < 1e-12, "{first} {expected}");
    assert_eq!(lines[2], format!("\"x,y\",2,{:?}", weights[0]));
    assert_eq!(lines[3], format!("z,1,{:?}", weights[1]));
    assert_eq!(place.dp(&predict).ok(), text);
    place.dp(&[&predict[..], &["--out", "scores.csv"]].concat()).fails(1, "output.exists");
    assert_eq!(place.dp(&[&predict[..], &["--json"]].concat()).code, 2);
    // From standard input.
    let stream = ["rank", "predict", "--model", "r.json", "--data", "-", "--format", "csv"];
    assert_eq!(place.dp_with_input(&stream, place.read("new.csv").as_bytes()).ok(), text);
}

#[test]
fn features_are_normalised_as_in_training() {
    let place = place();
    let normalised = ["--data", "train.txt", "--normalise-features", "--non-private"];
    train(&place, &[&normalised, &LINEAR]).json();
    let weights = place.json("r.json")["model"]["weights"].clone();
    place.write("new.txt", "0 qid:1 1:10\n0 qid:1 1:30\n0 qid:1 1:20\n");
    let scores = place.dp(&["rank", "predict", "--model", "r.json", "--data", "new.txt"]).ok();
    let scores: Vec<f64> =
        scores.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
    let first = weights[0].as_f64().unwrap();
    assert_eq!(scores, [0.0, first, first / 2.0]);
}

fn parts(place: &Workplace) -> [&'static str; 5] {
    let names = ["S1.txt", "S2.txt", "S3.txt", "S4.txt", "S5.txt.gz"];
    for (number, name) in names.iter().enumerate() {
        let text = letor(&draw(40, 10 + number as u64));
        place.write(name, if name.ends_with(".gz") { gzip(text.as_bytes()) } else { text.into_bytes() });
    }
    names
}

#[test]
fn five_parts_in_turn() {
    let place = Workplace::new();
    let parts = parts(&place);
    let cv = |more: &[&[&str]]| {
        place.dp(&[&["rank", "cv", "--parts"][..], &parts, &LINEAR, &more.concat(), &["--json"]].concat()).json()
    };
    let before = place.files();
    let private = cv(&[&BUDGET, &["--repetitions", "2"]]);
    assert_eq!((&private["schema"], &private["private_release"]), (&"dp.rank-cv/1".into(), &false.into()));
    assert_eq!((&private["metrics"], &private["adjacency"]), (&"letor".into(), &"change-list-labels".into()));
    assert!((2.9..=3.0).contains(&number(&private, "/epsilon")) && number(&private, "/delta") == 1e-4);
    assert!(number(&private, "/seconds") >= number(&private, "/training_seconds"));
    let folds = private["folds"].as_array().unwrap();
    assert_eq!(folds.len(), 5);
    assert!(folds.iter().all(|fold| fold["n"] == 120), "{private}");
    for pointer in ["/map", "/ndcg/1", "/ndcg/8"] {
        let mean: f64 = folds.iter().map(|fold| number(fold, &format!("/test{pointer}"))).sum::<f64>() / 5.0;
        assert!((mean - number(&private, pointer)).abs() < 1e-12, "{pointer}");
    }
    // Each part is used once for testing and once for validation, by different rankers.
    assert!((number(&private, "/map") - number(&private, "/validation/map")).abs() > 0.0);
    assert!(number(&private, "/map") > 0.6, "{private}");
    let again = cv(&[&BUDGET, &["--repetitions", "2"]]);
    assert_eq!((&again["folds"], &again["ndcg"]), (&private["folds"], &private["ndcg"]));
    assert_ne!(cv(&[&BUDGET, &["--seed", "9"]])["folds"], private["folds"]);
    let plain = cv(&[&["--non-private", "--metrics", "standard"]]);
    assert_eq!((&plain["epsilon"], &plain["metrics"]), (&"inf".into(), &"standard".into()));
    assert!(number(&plain, "/map") > number(&private, "/map"), "{plain}");
    let text = place.dp(&[&["rank", "cv", "--parts"][..], &parts, &LINEAR, &BUDGET].concat()).ok();
    assert!(text.contains("no private release") && text.contains("NDCG"), "{text}");
    assert_eq!(place.files(), before);
}

/// The test part of fold 1 is the fifth: the figures follow from `train` and `evaluate` with the same seed.
#[test]
fn a_fold_is_a_training_on_three_parts() {
    let place = Workplace::new();
    let parts = parts(&place);
    let cv = [&["rank", "cv", "--parts"][..], &parts, &LINEAR, &BUDGET, &["--seed", "5", "--json"]].concat();
    let folds = place.dp(&cv).json()["folds"].clone();
    train(&place, &[&["--data", "S1.txt", "S2.txt", "S3.txt", "--seed", "5"], &LINEAR, &BUDGET]).json();
    assert_eq!(evaluate(&place, "S5.txt.gz")["ndcg"], folds[0]["test"]["ndcg"]);
    assert_eq!(evaluate(&place, "S4.txt")["ndcg"], folds[0]["validation"]["ndcg"]);
}

#[test]
fn parts_must_be_five_different_ones() {
    let place = Workplace::new();
    let parts = parts(&place);
    let cv = |parts: &[&str]| place.dp(&[&["rank", "cv", "--parts"][..], parts, &LINEAR, &BUDGET].concat());
    assert_eq!(cv(&parts[..4]).code, 2);
    cv(&["S1.txt", "S2.txt", "S3.txt", "S4.txt", "./S1.txt"]).fails(2, "usage.conflict").says("same file");
    // A query in two parts would be used for training and testing.
    place.write("S4.txt", place.read("S2.txt"));
    cv(&parts).fails(3, "lists.split").says("two files");
}

#[test]
fn a_dry_run_reads_no_list_and_writes_nothing() {
    let place = place();
    place.write("broken.txt", "this is no list\n");
    let before = place.files();
    let dry = ["rank", "train", "--data", "broken.txt", "--out", "d.json", "--dry-run"];
    let foreseen =
        place.dp(&[&dry[..], &LINEAR, &BUDGET, &["--n", "200", "--features", "5", "--json"]].concat()).json();
    assert_eq!((&foreseen["dry_run"], &foreseen["writes"][0]), (&true.into(), &"d.json".into()));
    assert!((2.9..=3.0).contains(&number(&foreseen, "/epsilon")), "{foreseen}");
    train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET]).json();
    let derivation = place.json("r.json")["certificate"]["derivation"].clone();
    let multiplier = number(&derivation, "/std_dev") / (2.0 * number(&derivation, "/clipping"));
    assert!((multiplier - number(&foreseen, "/noise_multiplier")).abs() < 1e-9, "{derivation} {foreseen}");
    std::fs::remove_file(place.path("r.json")).unwrap();
    let text = place.dp(&[&dry[..], &LINEAR, &BUDGET].concat()).ok();
    assert!(text.contains("at most what was asked for"), "{text}");
    assert_eq!(place.files(), before);
    train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET]).json();
    let predict = ["rank", "predict", "--model", "r.json", "--data", "broken.txt", "--out", "s.csv", "--dry-run"];
    let foreseen = place.dp(&[&predict[..], &["--json"]].concat()).json();
    assert_eq!(foreseen["writes"][0], "s.csv");
    assert!(!place.path("s.csv").exists());
    place.write("d.json", "mine");
    place.dp(&[&dry[..], &LINEAR, &BUDGET].concat()).fails(1, "output.exists");
    assert_eq!(place.read("d.json"), "mine");
}

/// Trains on `content` and checks that nothing is left behind.
fn attempt(name: &str, content: impl AsRef<[u8]>, more: &[&str]) -> Run {
    let place = Workplace::new();
    place.write(name, content);
    let run =
        place.dp(&[&["rank", "train", "--data", name], &LINEAR[..], &BUDGET, more, &["--out", "r.json"]].concat());
    if run.code != 0 {
        assert_eq!(place.files(), [name]);
    }
    run
}

/// Checks the error of a LETOR file: code, line and finding; with `--json` line and cell are private.
#[track_caller]
fn refused(lines: &str, more: &[&str], code: &str, line: u64, found: &str) {
    let content = format!("1 qid:a 1:0.5 2:1\n0 qid:a 1:0.25\n{lines}");
    attempt("lists.txt", &content, more).fails(3, code).says("lists.txt").says(&format!("line {line}")).says(found);
    let json = one_value(&attempt("lists.txt", &content, &[more, &["--json", "--show-private"]].concat()).stdout);
    let quiet = attempt("lists.txt", &content, &[more, &["--json"]].concat());
    assert!(!quiet.stdout.contains(found) && quiet.stderr.contains(found), "{quiet:#?}");
    let mut error = json["error"].clone();
    assert_eq!((&error["code"], &error["where"]["file"]), (&code.into(), &"lists.txt".into()));
    assert!(error["expected"].is_string() && error["help"].is_string(), "{error}");
    let private = error.as_object_mut().unwrap().remove("private").unwrap();
    assert_eq!(private["line"], line);
    assert!(private["detail"].as_str().unwrap().contains(found), "{private}");
    assert!(!error.to_string().contains(found), "{error}");
}

#[test]
fn bad_lines_are_refused_with_their_place() {
    refused("1 1:0.5\n", &[], "lists.query", 3, "character 3");
    refused("qid:b 1:0.5\n", &[], "lists.grade", 3, "character 1");
    refused("1.5 qid:b 1:0.5\n", &[], "lists.grade", 3, "`1.5` at character 1");
    refused("-1 qid:b 1:0.5\n", &[], "lists.grade", 3, "`-1`");
    refused("good qid:b 1:0.5\n", &[], "lists.grade", 3, "`good`");
    refused("\n3 qid:b 1:0.5\n", &[], "lists.grade", 4, "`3`");
    refused("1 qid:b 47:0.5\n", &["--features", "46"], "lists.width", 3, "`47`");
    refused("1 qid:b 0:0.5\n", &[], "lists.width", 3, "`0`");
    refused("1 qid:b 7:0.5 7:0.25\n", &[], "lists.feature", 3, "`7` at character 15");
    refused("1 qid:b word\n", &[], "lists.feature", 3, "`word`");
    refused("1 qid:b 1:nan\n", &[], "lists.value", 3, "`nan`");
    refused("1 qid:b 1:0.5\n2 qid:a 1:0.75\n", &[], "lists.split", 4, "query `a`");
}

#[test]
fn the_remedies_that_messages_name_are_remedies() {
    let split = "1 qid:a 1:0.5\n0 qid:b 1:0.25\n2 qid:a 1:0.75\n0 qid:b 1:1\n";
    attempt("lists.txt", split, &[]).fails(3, "lists.split").says("--split-lists join");
    let joined = attempt("lists.txt", split, &["--split-lists", "join", "--json"]);
    joined.says("2 lists did not lie together");
    assert_eq!(joined.json()["n"], 2);
    attempt("lists.txt", "3 qid:a 1:1\n", &[]).fails(3, "lists.grade").says("--largest-grade");
    attempt("lists.txt", "3 qid:a 1:1\n", &["--largest-grade", "4"]).ok();
}

#[test]
fn lists_of_one_document_are_lists() {
    let result = attempt("lists.txt", "1 qid:a 1:0.5\n0 qid:b 1:0.25\n", &["--json"]).json();
    assert_eq!((&result["n"], &result["documents"]), (&2.into(), &2.into()));
}

#[test]
fn bad_files_are_refused() {
    attempt("lists.txt", "", &[]).fails(3, "lists.empty");
    attempt("lists.txt", "# nothing\n\n", &[]).fails(3, "lists.empty");
    let packed = gzip(letor(&draw(300, 3)).as_bytes());
    attempt("lists.txt.gz", &packed[..packed.len() / 2], &[]).fails(3, "file.truncated").says("ends before");
    Workplace::new()
        .dp(&[&["rank", "train", "--data", "none.txt", "--out", "r.json"], &LINEAR[..], &BUDGET].concat())
        .fails(1, "file.open");
    // For CSV, the column is named.
    let columns = ["--query", "user", "--label", "clicks"];
    let good = "user,clicks,age\nann,1,3\nann,0,4\n";
    attempt("lists.csv", good, &columns).ok();
    attempt("lists.csv", good, &columns[..2]).fails(2, "usage.missing").says("--label");
    attempt("lists.csv", good, &columns[2..]).fails(2, "usage.missing").says("--query");
    attempt("lists.csv", good, &["--query", "user", "--label", "stars"]).fails(3, "csv.missing_column").says("stars");
    attempt("lists.csv", good, &["--query", "user", "--label", "user"]).fails(2, "usage.conflict");
    attempt("lists.csv", good, &[&columns[..], &["--features", "2"]].concat()).fails(3, "lists.width");
    for more in [&[][..], &["--dry-run", "--n", "100"]] {
        let flags = [&columns[..], more].concat();
        attempt("lists.csv", "user,clicks\nann,1\nann,0\n", &flags).fails(3, "lists.width").says("holds a feature");
    }
    let with = |row: &str| attempt("lists.csv", format!("{good}{row}\n"), &columns);
    with(",1,3").fails(3, "lists.query").says("line 4, column `user`");
    with("bob,0.5,3").fails(3, "lists.grade").says("line 4, column `clicks`").says("`0.5`");
    with("bob,1,").fails(3, "lists.value").says("line 4, column `age`");
    with("bob,1").fails(3, "csv.ragged").says("line 4");
    with("bob,1,3\nann,1,1").fails(3, "lists.split").says("line 5");
    attempt("lists.txt", letor(&draw(2, 1)), &columns).fails(2, "usage.conflict").says("--query");
    for flag in [["--delimiter", ";"], ["--header", "false"], ["--encoding", "latin1"]] {
        attempt("lists.txt", letor(&draw(2, 1)), &flag).fails(2, "usage.conflict").says(flag[0]);
    }
}

#[test]
fn documents_without_grades_are_scored_and_not_measured() {
    let place = place();
    train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET]).json();
    let with = |command: &str, data: &str, more: &[&str]| {
        place.dp(&[&["rank", command, "--model", "r.json", "--data", data][..], more].concat())
    };
    let graded = "2 qid:a 1:0.5\n0 qid:a 2:0.5\n1 qid:b 3:1\n";
    place.write("graded.txt", graded);
    place.write("bare.txt", graded.lines().map(|line| format!("{}\n", &line[2..])).collect::<String>());
    let scores = with("predict", "bare.txt", &[]).ok();
    assert_eq!((scores.lines().count(), &scores), (4, &with("predict", "graded.txt", &[]).ok()));
    with("evaluate", "graded.txt", &[]).ok();
    with("evaluate", "bare.txt", &[]).fails(3, "lists.grade").says("line 1").says("dp rank predict");
    train(&place, &[&["--data", "train.csv", "--query", "user", "--label", "clicks"], &LINEAR, &BUDGET]).json();
    place.write("bare.csv", "user,e,d,c,b,a\nx,1,2,3,4,5\nx,5,4,3,2,1\n");
    assert_eq!(with("predict", "bare.csv", &[]).ok().lines().count(), 3);
    with("evaluate", "bare.csv", &[]).fails(3, "csv.missing_column").says("clicks");
    with("predict", "bare.csv", &["--label", "clicks"]).fails(3, "csv.missing_column").says("clicks");
}

#[test]
fn orders_without_end_are_announced() {
    let place = Workplace::new();
    let long: String = (0..150).map(|i| format!("{} qid:a 1:{}\n", i % 3, i % 7)).collect();
    place.write("long.txt", &long);
    let data = ["--data", "long.txt", "--loss", "listnet", "--model", "linear", "--updates", "1"];
    let said = train(&place, &[&data, &["--k", "2"], &BUDGET]);
    said.says("22350 orders");
    assert!(!said.stderr.contains("for your eyes only"), "{}", said.stderr);
    said.json();
    // If whole lists are protected, so are their lengths.
    let said = train(&place, &[&data, &["--k", "2", "--protect", "lists", "--features", "1"], &BUDGET]);
    said.says("22350 orders").says("for your eyes only");
    let said = train(&place, &[&data, &BUDGET]);
    assert!(!said.stderr.contains("orders"), "{}", said.stderr);
}

#[test]
fn a_ranker_reads_what_it_was_trained_on() {
    let place = place();
    train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET]).json();
    let with = |command: &str, data: &str| place.dp(&["rank", command, "--model", "r.json", "--data", data]);
    with("evaluate", "train.csv").fails(3, "model.mismatch").says("LETOR");
    place.write("wide.txt", "1 qid:a 6:1\n");
    with("evaluate", "wide.txt").fails(3, "lists.width");
    with("predict", "wide.txt").fails(3, "lists.width");
    place.write("huge.txt", "1 qid:a 1:1e308 2:-1e308 3:1e308 4:-1e308 5:1e308\n1 qid:a 1:1\n");
    let run = with("evaluate", "huge.txt");
    assert!(run.code == 0 || run.code == 3, "{run:#?}");
    // A classifier is not a ranker, nor vice versa.
    place.dp(&["predict", "--model", "r.json", "--data", "train.csv"]).fails(3, "model.format").says("dp rank predict");
    place.write("people.csv", crate::support::people(200, 1));
    let people = ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    place.dp(&[&people[..], &["--epsilon", "1", "--out", "m.json"]].concat()).ok();
    place
        .dp(&["rank", "evaluate", "--model", "m.json", "--data", "test.txt"])
        .fails(3, "model.format")
        .says("linear model");
    place.dp(&["rank", "evaluate", "--model", "none.json", "--data", "test.txt"]).fails(1, "model.read");
}

#[test]
fn flags_that_make_no_sense() {
    let place = place();
    let base = ["rank", "train", "--data", "train.txt", "--out", "r.json"];
    let before = place.files();
    let refused = |more: &[&[&str]], code: &str, word: &str| {
        place.dp(&[&base[..], &more.concat()].concat()).fails(2, code).says(word);
    };
    refused(&[&LINEAR], "usage.missing", "--epsilon");
    refused(&[&LINEAR, &["--epsilon", "1"]], "usage.missing", "--delta");
    refused(&[&LINEAR, &["--non-private", "--epsilon", "1"]], "usage.conflict", "--epsilon");
    refused(&[&LINEAR, &["--non-private", "--clip", "1"]], "usage.conflict", "--clip");
    for (flag, value) in
        [("--epsilon", "0"), ("--epsilon", "-1"), ("--epsilon", "NaN"), ("--delta", "0"), ("--delta", "1")]
    {
        let other = if flag == "--epsilon" { ["--delta", "1e-4"] } else { ["--epsilon", "1"] };
        refused(&[&LINEAR, &other, &[flag, value]], "usage.value", flag);
    }
    for (flag, value) in [
        ("--k", "0"),
        ("--clip", "0"),
        ("--clip", "inf"),
        ("--step", "-1"),
        ("--step", "NaN"),
        ("--batch-size", "0"),
        ("--updates", "0"),
        ("--updates", "1e15"),
        ("--features", "0"),
        ("--features", "1e12"),
        ("--largest-grade", "0"),
        ("--largest-grade", "53"),
    ] {
        refused(&[&LINEAR, &BUDGET, &[flag, value]], "usage.value", flag);
    }
    for flag in [&["--hidden", "3"][..], &["--activation", "tanh"], &["--normalise", "always"]] {
        refused(&[&LINEAR, &BUDGET, flag], "usage.conflict", flag[0]);
    }
    refused(&[&["--loss", "listmle", "--model", "linear", "--k", "2"], &BUDGET], "usage.conflict", "--k");
    refused(&[&["--loss", "listnet", "--model", "mlp", "--hidden", "0"], &BUDGET], "usage.value", "--hidden");
    assert_eq!(place.files(), before);
    let over = ["rank", "train", "--data", "train.txt", "--out", "train.txt", "--force"];
    place.dp(&[&over[..], &LINEAR, &BUDGET].concat()).fails(2, "usage.conflict").says("same file");
    place.dp(&["rank", "evaluate", "--model", "-", "--data", "-"]).fails(2, "usage.stdin_twice");
    train(&place, &[&["--data", "train.txt"], &LINEAR, &["--epsilon", "1", "--delta", "0.01"]]).says("delta = 0.01");
    place.dp(&[&base[..], &LINEAR, &BUDGET].concat()).fails(1, "output.exists");
    // A diverging step size gives an error message.
    let away = train(&place, &[&["--data", "train.txt"], &LINEAR, &BUDGET, &["--step", "1e308"]]);
    assert_ne!(away.code, 101, "{away:#?}");
}

#[test]
fn the_help_says_what_is_protected_and_what_is_not_chosen() {
    let place = place();
    let help = |arguments: &[&str]| place.dp(arguments).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    let rank = help(&["rank", "--help"]);
    for word in ["train", "evaluate", "predict", "cv", "change-list-labels", "grades of one list"] {
        assert!(rank.contains(word), "{word}: {rank}");
    }
    let cv = help(&["rank", "cv", "--help"]);
    assert!(cv.contains("Nothing is chosen on the validation part") && cv.contains("would cost privacy"), "{cv}");
    assert!(help(&["rank", "train", "--help"]).contains("--split-lists"));
    assert!(help(&["rank", "evaluate", "--help"]).contains("no private release"));
    assert!(help(&["rank", "predict", "--help"]).contains("Grades play no role here and may be absent"));
    // The examples of `dp rank` run as printed.
    place.write("new.txt", place.read("test.txt"));
    let text = place.dp(&["rank", "--help"]).ok();
    // Long lines are wrapped.
    let section = text.lines().skip_while(|line| !line.starts_with("Examples:")).skip(1);
    let section: Vec<&str> = section.take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let joined = section.join(" ").replace(" dp ", "\ndp ");
    let examples: Vec<&str> = joined.lines().collect();
    assert_eq!(examples.len(), 4, "{text}");
    for example in examples {
        place.dp(&example.split_whitespace().skip(1).collect::<Vec<_>>()).ok();
    }
}

#[test]
fn progress_and_silence() {
    let place = place();
    let run = train(&place, &[&["--data", "train.txt", "--progress", "json"], &LINEAR, &BUDGET]);
    let lines: Vec<Value> = run.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(lines.iter().any(|line| line["phase"] == "train" && line["updates"] == 400), "{run:#?}");
    assert!(lines.iter().all(|line| line.get("loss").is_none()));
    let run = train(&place, &[&["--data", "train.txt", "--quiet", "--non-private"], &LINEAR]);
    assert_eq!(run.stderr, "");
}

#[test]
fn a_limit_on_planning_gives_more_noise_and_a_ranker_that_verifies() {
    let place = place();
    let lists = ["--data", "train.txt", "--protect", "lists", "--features", &FEATURES.to_string(), "--batch-size", "1"];
    let steps = ["--updates", "2000", "--epsilon", "1", "--delta", "1e-6"];
    let noise = |more: &[&str]| {
        let run = train(&place, &[&lists, &LINEAR, &steps, more]);
        let told = run.stderr.clone();
        run.json();
        assert!(place.dp(&["verify", "r.json"]).ok().contains("holds"));
        (number(&place.json("r.json")["certificate"]["derivation"], "/std_dev"), told)
    };
    let (whole, quiet) = noise(&[]);
    let (more, told) = noise(&["--limit", "0.001"]);
    assert!(more > whole && !quiet.contains("limit"), "{more} {whole} {quiet}");
    assert!(
        told.contains("the limit on work was reached: the noise suffices, and --limit 0.01 may find less"),
        "{told}"
    );
    let nothing = ["rank", "train", "--out", "none.json", "--limit", "-1"];
    place.dp(&[&nothing[..], &lists, &LINEAR, &steps].concat()).fails(2, "usage.value");
}
