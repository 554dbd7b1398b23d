//! Tables as people write them: from a messy file to a model, and no value is changed without a word.

use std::fmt::Write as _;

use crate::support::{Dice, Workplace};

/// Visits to a hospital as a German office program exports them: semicolons, decimal commas, Latin-1, dates, padded cells, several
/// markers of missing values; and the same visits in plain numbers.
fn visits(rows: usize, seed: u64) -> (Vec<u8>, String) {
    let mut random = Dice(seed);
    let mut messy = "Aufnahme;Kosten;Fieber;Raucher;Körperfett;Station;Notiz;wieder da\n".to_owned();
    let mut plain = "Aufnahme,Kosten,Fieber,Raucher,Körperfett,Station,Notiz,wieder da\n".to_owned();
    for i in 0..rows {
        let day = 19_700 + random.below(400);
        let cents = random.below(900_000);
        let (fever, fat) = (350 + random.below(70), random.below(45));
        let (smokes, station) = (random.below(3) == 0, ["Süd", "Nord", "Privat"][random.below(3) as usize]);
        let score = (fever as f64 - 385.0) / 10.0 + if smokes { 1.0 } else { -0.5 } + random.unit() * 2.0 - 1.0;
        let again = if score > 0.0 { "ja" } else { "nein" };
        let date = dp_data::schema::date_text(day as f64);
        let (year, month, of_month) = (&date[..4], &date[5..7], &date[8..]);
        let euros = cents / 100;
        let euros = if euros >= 1000 { format!("{}.{:03}", euros / 1000, euros % 1000) } else { euros.to_string() };
        let missing = i % 97 == 3;
        let fat_text = if missing { ["", "k.A.", "-"][i % 3].replace("k.A.", "N/A") } else { format!("{fat} %") };
        let smoker = [["Ja", "nein"], ["ja", "Nein"]][i % 2][usize::from(!smokes)];
        let _ = writeln!(
            messy,
            "{}.{}.{year};{euros},{:02} €;{},{}; {smoker};{fat_text};{station} ;\"zwei\nZeilen {i}\";{again}",
            of_month.trim_start_matches('0'),
            month.trim_start_matches('0'),
            cents % 100,
            fever / 10,
            fever % 10,
        );
        let fat = if missing { String::new() } else { fat.to_string() };
        let _ = writeln!(
            plain,
            "{day},{}.{:02},{}.{},{},{fat},{station},{i},{again}",
            cents / 100,
            cents % 100,
            fever / 10,
            fever % 10,
            u8::from(smokes),
        );
    }
    let latin1 = messy.chars().map(|c| if c == '€' { 0x80 } else { u8::try_from(u32::from(c)).unwrap() });
    (latin1.collect(), plain)
}

const SEEDS: [&str; 2] = ["--seed", "7"];

/// Drafts a schema and marks it reviewed.
fn draft(place: &Workplace, data: &str, schema: &str, more: &[&str]) -> String {
    place
        .dp(&[&["schema", data, "--out", schema, "--force", "--label", "wieder da", "--positive", "ja"], more].concat())
        .ok();
    let text = place.read(schema);
    place.write(schema, text.replace("reviewed = false", "reviewed = true"));
    text
}

#[test]
fn a_messy_file_is_drafted_trained_on_and_scored_like_a_plain_one() {
    let place = Workplace::new();
    let (messy, plain) = visits(3000, 5);
    place.write("messy.csv", messy);
    place.write("plain.csv", plain);
    let text = draft(&place, "messy.csv", "messy.toml", &[]);
    for expected in [
        "[file]\ndelimiter = \";\"\nencoding = \"windows-1252\"\nreviewed = false # REVIEW",
        "type = \"date\"\nformat = \"%d.%m.%Y\"\nmin = 2023-12-09\nmax = 2025-01-11\n",
        "decimal = \",\"\nthousands = \".\"\nunit = \"€\"\n",
        "# Written as 1.234,5 €: 3000 of 3000 cells.",
        "unit = \"%\"",
        "type = \"indicator\"\none = [\"Ja\", \"ja\"]\nzero = [\"Nein\", \"nein\"]\n",
        "categories = [\"Nord\", \"Privat\", \"Süd\"]",
        "missing = [\"\", \"N/A\", \"-\"]",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // A record may have decided the encoding: without a review it is an assumption.
    let unreviewed = place.read("messy.toml").replacen("\nreviewed = true", "\nreviewed = false", 1);
    place.write("open.toml", unreviewed);
    let open = ["train", "--data", "messy.csv", "--schema", "open.toml", "--epsilon", "1", "--out", "open.json"];
    place.dp(&open).fails(3, "schema.unreviewed").says("<file>");
    place.dp(&[&open[..], &["--assume-public", "<file>"]].concat()).ok();
    let assumptions = place.json("open.json")["certificate"]["assumptions"].to_string();
    assert!(assumptions.contains("<file>"), "{assumptions}");
    place.dp(&["verify", "open.json"]).ok();
    draft(&place, "plain.csv", "plain.toml", &[]);
    let train = |data: &str, schema: &str, out: &str| {
        let train = ["train", "--data", data, "--schema", schema, "--epsilon", "1", "--out", out, "--force"];
        place.dp(&[&train[..], &SEEDS].concat()).ok();
    };
    train("messy.csv", "messy.toml", "messy.json");
    train("plain.csv", "plain.toml", "plain.json");
    let (messy, plain) = (place.json("messy.json"), place.json("plain.json"));
    assert_eq!(messy["model"]["weights"], plain["model"]["weights"]);
    place
        .dp(&["train", "--data", "messy.csv", "--schema", "messy.toml", "--epsilon", "1", "--out", "private.json"])
        .ok();
    place.dp(&["verify", "private.json"]).ok();
    // The model reads its kind of file by itself.
    let predict = |model: &str, data: &str| {
        let scores = place.dp(&["predict", "--model", model, "--data", data]).ok();
        scores.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let scores = predict("messy.json", "messy.csv");
    assert_eq!(scores, predict("plain.json", "plain.csv"));
    assert_eq!(scores.len(), 3000);
}

#[test]
fn files_without_a_header_have_numbered_columns() {
    let place = Workplace::new();
    let (_, plain) = visits(400, 8);
    let body = plain.split_once('\n').unwrap().1.to_owned();
    place.write("body.csv", &body);
    let drafted = |more: &[&str]| place.dp(&[&["schema", "body.csv", "--out", "s.toml", "--force"], more].concat());
    drafted(&["--label", "column8"]).fails(3, "csv.header").says("--header no");
    drafted(&["--label", "column8", "--header", "no"]).ok();
    let text = place.read("s.toml");
    assert!(text.contains("[file]\nheader = false\n") && text.contains("[columns.column3]"), "{text}");
    place.write("s.toml", text.replace("reviewed = false", "reviewed = true"));
    let train = |more: &[&str]| {
        let train =
            ["train", "--data", "body.csv", "--schema", "s.toml", "--epsilon", "1", "--out", "m.json", "--force"];
        place.dp(&[&train[..], more].concat())
    };
    let outcome = train(&["--json"]).json();
    assert_eq!(outcome["n"], 400, "the first row is a record: {outcome}");
    train(&["--header", "yes"]).fails(3, "csv.duplicate_column");
    // A cell of the first record is on line 1.
    place.write("body.csv", body.replacen("19", "x19", 1));
    train(&[]).fails(3, "csv.bad_number").says("body.csv, line 1,");
}

#[test]
fn what_is_written_otherwise_than_the_schema_says_is_an_error_with_its_place() {
    let place = Workplace::new();
    let (messy, _) = visits(300, 9);
    place.write("messy.csv", &messy);
    draft(&place, "messy.csv", "s.toml", &[]);
    let text: String = messy.iter().map(|&byte| if byte == 0x80 { '€' } else { char::from(byte) }).collect();
    let latin1 = |text: &str| -> Vec<u8> {
        text.chars().map(|c| if c == '€' { 0x80 } else { u8::try_from(u32::from(c)).unwrap() }).collect()
    };
    let train = |text: &str| {
        place.write("other.csv", latin1(text));
        place.dp(&["train", "--data", "other.csv", "--schema", "s.toml", "--epsilon", "1", "--out", "m.json"])
    };
    let second = text.lines().nth(1).unwrap();
    let cells: Vec<&str> = second.split(';').collect();
    for (place_of, cell, code) in [
        (0, "31.2.2024", "csv.bad_date"),
        (0, "2024-01-31", "csv.bad_date"),
        (0, "1.2.24", "csv.bad_date"),
        (1, "12.5 €", "csv.bad_number"),
        (1, "1.23,5 €", "csv.bad_number"),
        (1, "12,5 $", "csv.bad_number"),
        (1, "12,5", "csv.bad_number"),
        (2, "38.5", "csv.bad_number"),
        (2, "hoch", "csv.bad_number"),
        (3, "manchmal", "csv.unknown_category"),
    ] {
        let mut changed = cells.clone();
        changed[place_of] = cell;
        train(&text.replacen(second, &changed.join(";"), 1)).fails(3, code).says("other.csv, line 2,").says(cell);
    }
    assert!(!place.path("m.json").exists());
    // In the encoding of another file.
    let run = ["train", "--data", "messy.csv", "--schema", "s.toml", "--epsilon", "1", "--out", "m.json", "--encoding"];
    place.dp(&[&run[..], &["utf-8"]].concat()).fails(3, "csv.not_utf8").says("windows-1252");
    place.dp(&[&run[..], &["big5"]].concat()).fails(3, "csv.encoding");
    place.dp(&[&run[..], &["klingon"]].concat()).fails(2, "usage.value").says("--encoding");
    place.write("t.toml", place.read("s.toml").replace("windows-1252", "klingon"));
    place
        .dp(&[&run[..3], &["--schema", "t.toml", "--epsilon", "1", "--out", "m.json"]].concat())
        .fails(3, "schema.format");
}

#[test]
fn files_of_another_kind_are_named() {
    let place = Workplace::new();
    place.write(
        "s.toml",
        "label = { column = 'y', positive = '1', negative = '0' }\ncolumns.x = { type = 'indicator' }\n",
    );
    let archive = |name: &str| [b"PK\x03\x04\x14\0\0\0\x08\0", name.as_bytes(), &[0; 40]].concat();
    for (name, bytes, says) in [
        ("a.docx", archive("[Content_Types].xml"), "Office"),
        ("a.zip", archive("people.csv"), "ZIP"),
        ("a.pdf", b"%PDF-1.7\n".to_vec(), "PDF"),
        ("a.json", b"[{\"x\": 1, \"y\": 0}]\n".to_vec(), "JSON"),
        ("a.csv", b"\xff\xfex\0,\0y\0\n\0".to_vec(), "utf-16le"),
        ("b.csv", b"x,\0y\n1,0\n".to_vec(), "binary"),
    ] {
        place.write(name, bytes);
        let train = ["train", "--data", name, "--schema", "s.toml", "--epsilon", "1", "--out", "m.json"];
        place.dp(&train).fails(3, "file.kind").says(says).says(name);
        if says != "utf-16le" {
            place.dp(&["schema", name]).fails(3, "file.kind").says(says);
        }
    }
    let wide: Vec<u8> = "\u{feff}x,z,y\n1,3,0\n0,4,1\n1,7,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    place.write("wide.csv", wide);
    assert!(place.dp(&["schema", "wide.csv"]).ok().contains("encoding = \"utf-16le\""));
}

#[test]
fn a_column_that_can_be_read_in_two_ways_is_not_used_in_silence() {
    let place = Workplace::new();
    let rows: String =
        (0..200).map(|i| format!("\"{},{:03}\",{},{}\n", i % 9 + 1, i * 31 % 1000, i % 7, i % 2)).collect();
    place.write("a.csv", format!("pay,x,y\n{rows}"));
    let run = place.dp(&["schema", "a.csv"]);
    run.says("column `pay`: Dropped, as its numbers can be read with a decimal point or with a decimal comma");
    let text = run.ok();
    assert!(text.contains("[columns.pay]\n# Dropped, as"), "{text}");
    let train = ["train", "--data", "a.csv", "--label", "y", "--schema-from-data", "--epsilon", "1", "--out", "m.json"];
    place.dp(&train).says("`pay`: Dropped, as its numbers");
}

#[test]
fn parts_of_dates_are_features() {
    let place = Workplace::new();
    let row = |i: u64| {
        let day = 19_700 + i % 365;
        // Readmissions on weekends.
        let label = if (day + 3) % 7 > 4 { "yes" } else { "no" };
        format!("{} {:02}:30:00,{label}\n", dp_data::schema::date_text(day as f64), i % 24)
    };
    place.write("a.csv", format!("when,y\n{}", (0..700).map(row).collect::<String>()));
    let format = "format = '%Y-%m-%d %H:%M:%S'";
    place.write(
        "s.toml",
        format!(
            "label = {{ column = 'y', positive = 'yes', negative = 'no' }}\n\
             columns.day = {{ type = 'date', column = 'when', {format}, min = 2023-01-01, max = 2025-12-31 }}\n\
             columns.weekday = {{ type = 'weekday', column = 'when', {format} }}\n\
             columns.month = {{ type = 'month', column = 'when', {format} }}\n\
             columns.hour = {{ type = 'hour', column = 'when', {format} }}\n"
        ),
    );
    let train = ["train", "--data", "a.csv", "--schema", "s.toml", "--epsilon", "1000", "--out", "m.json"];
    let train = [&train[..], &["--algorithm", "bolt-on-convex", "--json"]].concat();
    place.dp(&train).ok();
    let found = place.dp(&["evaluate", "--model", "m.json", "--data", "a.csv", "--json"]).json();
    assert!(found["accuracy"].as_f64().unwrap() > 0.95, "{found}");
    let shown = place.dp(&["explain-model", "m.json"]).ok();
    assert!(shown.contains("2023-01-01") && (shown.contains("Sat") || shown.contains("Sun")), "{shown}");
    // In SQL, the columns of the same cells share their time.
    let query = place.dp(&["predict", "--model", "m.json", "--sql", "duckdb", "--table", "t"]).ok();
    assert_eq!(query.matches("epoch(\"when\")").count(), 1, "{query}");
}

#[test]
fn a_new_category_does_not_strand_a_model() {
    let place = Workplace::new();
    let rows: String = (0..300).map(|i| format!("{},{},{}\n", ["a", "b", "other"][i % 3], i % 7, i % 2)).collect();
    place.write("a.csv", format!("town,x,y\n{rows}"));
    let schema = |categories: &str, policy: &str| {
        format!(
            "label = {{ column = 'y', positive = '1', negative = '0' }}\n\
             columns.town = {{ type = 'categorical', categories = [{categories}], on_unknown = '{policy}' }}\n\
             columns.x = {{ type = 'numeric', min = 0, max = 6 }}\n"
        )
    };
    place.write("new.csv", "town,x,y\na,1,1\nc,1,0\n b ,2,1\n");
    for (name, categories) in [("with", "'a', 'b', 'other'"), ("without", "'a', 'b'")] {
        place.write("s.toml", schema(categories, "error"));
        place
            .write("t.csv", format!("town,x,y\n{}", rows.replace("other", if name == "with" { "other" } else { "a" })));
        let model = format!("{name}.json");
        place.dp(&["train", "--data", "t.csv", "--schema", "s.toml", "--epsilon", "1", "--out", &model]).ok();
        let predict = |more: &[&str]| place.dp(&[&["predict", "--model", &model, "--data", "new.csv"], more].concat());
        predict(&["--out", "p.csv"]).fails(3, "csv.unknown_category").says("--on-unknown other");
        predict(&["--out", "p.csv", "--on-unknown", "error"]).fails(3, "csv.unknown_category");
        let scores = |more: &[&str]| -> Vec<String> { predict(more).ok().lines().skip(1).map(str::to_owned).collect() };
        let skipped = scores(&["--on-unknown", "skip"]);
        assert_eq!((skipped.len(), skipped[1].trim_matches(',')), (3, ""), "{skipped:?}");
        let scored = scores(&["--on-unknown", "other"]);
        assert_eq!((&scored[0], &scored[2]), (&skipped[0], &skipped[2]));
        if name == "with" {
            place.write("other.csv", "town,x,y\nother,1,1\n");
            let other = place.dp(&["predict", "--model", &model, "--data", "other.csv"]).ok();
            assert_eq!(Some(scored[1].as_str()), other.lines().nth(1));
        } else {
            // Neither `a` nor `b`: the score of the other features alone.
            let weights: Vec<f64> = place.json(&model)["model"]["weights"]
                .as_array()
                .unwrap()
                .iter()
                .map(|w| w.as_f64().unwrap())
                .collect();
            let (x, intercept) = (2.0 / 6.0 - 1.0, 1.0);
            let score = (weights[2] * x + weights[3] * intercept) / f64::hypot(x, intercept);
            let found: f64 = scored[1].split(',').next().unwrap().parse().unwrap();
            assert!((found - score).abs() < 1e-9, "{found} {score}");
        }
        let evaluate = ["evaluate", "--model", &model, "--data", "new.csv", "--json", "--on-unknown"];
        assert_eq!(place.dp(&[&evaluate[..], &["other"]].concat()).json()["n"], 3);
        assert_eq!(place.dp(&[&evaluate[..], &["skip"]].concat()).json()["n"], 2);
    }
}
