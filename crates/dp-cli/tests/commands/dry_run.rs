//! `--dry-run` of the commands that write: reports their outputs and writes nothing.

use crate::support::{Workplace, people};

#[test]
fn nothing_is_written_and_outputs_are_checked() {
    let place = Workplace::new();
    place.write("people.csv", people(300, 1));
    place
        .dp(&[
            "train",
            "--data",
            "people.csv",
            "--label",
            "earns",
            "--schema-from-data",
            "--epsilon",
            "1",
            "--out",
            "m.json",
        ])
        .ok();
    let before = place.files();
    let cases: [(&[&str], &str, usize); 4] = [
        (&["schema", "people.csv", "--label", "earns", "--out", "s.toml"], "dp.schema/1", 1),
        (&["predict", "--model", "m.json", "--data", "people.csv", "--out", "scores.csv"], "dp.predict/1", 1),
        (&["man", "pages"], "dp.man/1", 11),
        (&["demo", "--dir", "here"], "dp.demo/1", 6),
    ];
    for (arguments, schema, outputs) in cases {
        let found = place.dp(&[arguments, &["--dry-run", "--json"]].concat()).json();
        assert_eq!((&found["schema"], &found["dry_run"]), (&schema.into(), &true.into()), "{found}");
        assert!(found["writes"].as_array().unwrap().len() >= outputs, "{found}");
        assert_eq!(place.files(), before, "{arguments:?}");
        place.dp(&[arguments, &["--dry-run"]].concat()).ok();
    }
    // An existing output is reported, and so is a missing column.
    place.write("s.toml", "mine");
    place.dp(&["schema", "people.csv", "--out", "s.toml", "--dry-run"]).fails(1, "output.exists");
    place.dp(&["schema", "people.csv", "--label", "nobody", "--dry-run"]).fails(3, "csv.missing_column");
    place.dp(&["predict", "--model", "m.json", "--data", "nobody.csv", "--dry-run"]).fails(1, "file.open");
}
