//! `dp rank` for each protected unit: grades, whole lists, documents.

use crate::support::lists::{FEATURES, place};
use crate::support::{Run, Workplace};
use dp::canonical;
use serde_json::Value;

const RANKER: [&str; 12] = [
    "--loss",
    "bayesrank",
    "--model",
    "linear",
    "--features",
    "5",
    "--epsilon",
    "3",
    "--delta",
    "1e-4",
    "--updates",
    "100",
];

fn train(place: &Workplace, more: &[&str]) -> Run {
    let base = ["rank", "train", "--data", "train.txt", "--out", "r.json", "--force"];
    place.dp(&[&base[..], &RANKER, more].concat())
}

fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

/// The protected unit by flags: relation, whether numbers of documents are printed, unit, words, distance over C.
type Mode<'a> = (&'a [&'a str], &'a str, &'a str, &'a str, &'a str, f64);

const MODES: [Mode<'static>; 6] = [
    (&[], "change-list-labels", "list", "grades", "all grades of one list", 2.0),
    (
        &["--protect", "grades", "--adjacency", "change-list-labels"],
        "change-list-labels",
        "list",
        "grades",
        "grades of",
        2.0,
    ),
    (&["--protect", "lists"], "add-remove", "list", "list-presence", "one list being present", 1.0),
    (&["--protect", "lists", "--adjacency", "add-remove"], "add-remove", "list", "list-presence", "or empty", 1.0),
    (
        &["--protect", "lists", "--adjacency", "replace-one"],
        "replace-one",
        "list",
        "whole-list",
        "one list to any other",
        2.0,
    ),
    (&["--protect", "documents"], "replace-one", "document", "document", "one document of one list", 2.0),
];

#[test]
fn each_mode_trains_is_certified_and_verified() {
    let place = place();
    for (flags, adjacency, unit, protects, words, distance) in MODES {
        let result = train(&place, &[flags, &["--normalise-features", "--json"]].concat()).json();
        assert_eq!((&result["adjacency"], &result["unit"]), (&adjacency.into(), &unit.into()), "{result}");
        assert!((2.9..=3.0).contains(&number(&result, "/epsilon")), "{flags:?}: {result}");
        // The number of documents is not printed if lengths are protected.
        assert_eq!(result.get("documents").is_some(), unit == "document" || protects == "grades", "{result}");
        let certificate = place.json("r.json")["certificate"].clone();
        assert_eq!((&certificate["adjacency"], &certificate["unit"]), (&adjacency.into(), &unit.into()));
        assert_eq!(certificate["derivation"]["protects"], protects);
        let verified = place.dp(&["verify", "r.json", "--json"]).json();
        assert_eq!((&verified["adjacency"], &verified["unit"]), (&adjacency.into(), &unit.into()));
        assert!((number(&verified, "/epsilon") - number(&result, "/epsilon")).abs() < 1e-6);
        let text = place.dp(&["verify", "r.json"]).ok();
        assert!(text.contains(words) && text.contains(&format!("for one {unit}")), "{flags:?}: {text}");
        // A dry run predicts the same noise and prints the same text.
        let dry = train(&place, &[flags, &["--dry-run", "--n", "200", "--json"]].concat()).json();
        assert_eq!((&dry["adjacency"], &dry["unit"]), (&adjacency.into(), &unit.into()));
        let derivation = &certificate["derivation"];
        let multiplier = number(derivation, "/std_dev") / (distance * number(derivation, "/clipping"));
        assert!((multiplier / number(&dry, "/noise_multiplier") - 1.0).abs() < 1e-9, "{flags:?}: {dry}");
        let figures = place.dp(&["rank", "evaluate", "--model", "r.json", "--data", "test.txt", "--json"]).json();
        // Random orders reach about 0.55.
        assert!(number(&figures, "/map") > 0.65, "{flags:?}: {figures}");
    }
}

/// A certificate cannot be passed off as one of another mode, with or without repaired seals.
#[test]
fn modes_cannot_be_exchanged() {
    let place = place();
    for (flags, _, _, protects, _, _) in MODES {
        train(&place, flags).ok();
        let file = place.json("r.json");
        for (_, adjacency, unit, other, _, _) in MODES {
            let mut edited = file.clone();
            edited["certificate"]["adjacency"] = adjacency.into();
            edited["certificate"]["unit"] = unit.into();
            for derivation in [protects, other] {
                edited["certificate"]["derivation"]["protects"] = derivation.into();
                edited["certificate_sha256"] = canonical::sha256(&edited["certificate"]).into();
                place.write("edited.json", edited.to_string());
                let run = place.dp(&["verify", "edited.json"]);
                assert_eq!(run.code, if edited == file { 0 } else { 5 }, "{protects} as {other}: {run:#?}");
            }
        }
    }
}

#[test]
fn nothing_is_read_off_protected_features() {
    let place = place();
    let base = ["rank", "train", "--data", "train.txt", "--out", "r.json"];
    let ranker = ["--loss", "listnet", "--model", "linear", "--epsilon", "3", "--delta", "1e-4"];
    for protect in ["lists", "documents"] {
        place.dp(&[&base[..], &ranker, &["--protect", protect]].concat()).fails(2, "usage.missing").says("--features");
    }
    // The declared width holds for all lists.
    place.dp(&[&base[..], &ranker, &["--protect", "lists", "--features", "9"]].concat()).ok();
    let model = place.json("r.json")["model"].clone();
    assert_eq!((&model["width"], model["weights"].as_array().map(Vec::len)), (&9.into(), Some(9)));
    assert!(!place.read("r.json").contains("q1-0"), "the name of a query");
    place
        .dp(&[&base[..], &ranker, &["--protect", "lists", "--features", "3", "--force"]].concat())
        .fails(3, "lists.width");
    // The same for CSV; its column names are those of the ranker's input.
    let columns = ["rank", "train", "--data", "train.csv", "--query", "user", "--label", "clicks", "--out", "c.json"];
    let lists = ["--protect", "lists", "--features"];
    place.dp(&[&columns[..], &ranker, &lists[..2]].concat()).fails(2, "usage.missing").says("--features");
    place.dp(&[&columns[..], &ranker, &lists, &["5"]].concat()).ok();
    place.dp(&["verify", "c.json"]).ok();
    assert_eq!(place.json("c.json")["model"]["width"], FEATURES);
}

#[test]
fn relations_that_a_mode_does_not_have() {
    let place = place();
    for (protect, adjacency) in [
        ("grades", "add-remove"),
        ("grades", "replace-one"),
        ("lists", "change-list-labels"),
        ("documents", "add-remove"),
        ("documents", "change-list-labels"),
    ] {
        train(&place, &["--protect", protect, "--adjacency", adjacency]).fails(2, "usage.conflict").says("--adjacency");
    }
    let plain = ["rank", "train", "--data", "train.txt", "--out", "r.json", "--loss", "listnet", "--model", "linear"];
    for flag in [["--protect", "lists"], ["--adjacency", "add-remove"]] {
        place.dp(&[&plain[..], &["--non-private"], &flag].concat()).fails(2, "usage.conflict").says(flag[0]);
    }
}

#[test]
fn cross_validation_says_what_it_protects() {
    let place = place();
    let parts = ["S1.txt", "S2.txt", "S3.txt", "S4.txt", "S5.txt"];
    for (part, name) in parts.iter().enumerate() {
        place.write(name, crate::support::lists::letor(&crate::support::lists::draw(20, part as u64 + 10)));
    }
    let cv = [&["rank", "cv", "--parts"][..], &parts, &RANKER, &["--json"]].concat();
    let result = place.dp(&[&cv[..], &["--protect", "documents"]].concat()).json();
    assert_eq!((&result["adjacency"], &result["unit"]), (&"replace-one".into(), &"document".into()));
    let of_lists = place.dp(&[&cv[..], &["--protect", "lists"]].concat()).json();
    assert_eq!((&of_lists["adjacency"], &of_lists["unit"]), (&"add-remove".into(), &"list".into()));
}

#[test]
fn the_help_tells_the_modes_apart() {
    let help = Workplace::new().dp(&["rank", "train", "--help"]).ok();
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("--protect <WHAT>") && words.contains("features are public"), "{words}");
    assert!(words.contains("--adjacency <RELATION>") && words.contains("has to be declared (--features)"), "{words}");
}
