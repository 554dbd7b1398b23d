//! Bad inputs of every kind: one clear message with its location, the right exit code, and no file left behind.

use crate::support::{Run, Workplace, gzip, one_value, people, xz};

const SCHEMA: &str = r#"
[label]
column = "earns"
positive = "yes"
negative = "no"

[columns.age]
type = "numeric"
min = 0
max = 120

[columns.trade]
type = "categorical"
categories = ["baker", "clerk"]
"#;

const HEADER: &str = "age,trade,earns\n";
const GOOD: &str = "40,baker,yes\n50,clerk,no\n";

/// Trains on `data` with `schema` and checks that nothing is left behind.
fn train(data: &[u8], schema: &str, extra: &[&str]) -> Run {
    let place = Workplace::new();
    place.write("people.csv", data);
    place.write("schema.toml", schema);
    let mut arguments = vec![
        "train",
        "--anyway",
        "--data",
        "people.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
        "--out",
        "model.json",
    ];
    arguments.extend(extra);
    let run = place.dp(&arguments);
    if run.code != 0 {
        assert_eq!(place.files(), ["people.csv", "schema.toml"]);
    }
    run
}

fn csv(rows: &str) -> Vec<u8> {
    format!("{HEADER}{GOOD}{rows}").into_bytes()
}

#[track_caller]
fn refused(rows: &str, code: &str, line: u64) {
    let run = train(&csv(rows), SCHEMA, &[]);
    run.fails(3, code).says("people.csv").says(&format!("line {line}"));
    let shown = one_value(&train(&csv(rows), SCHEMA, &["--json", "--show-private"]).stdout);
    assert_eq!((&shown["error"]["code"], &shown["error"]["private"]["line"]), (&code.into(), &line.into()), "{shown}");
    // By default the record is identified to the curator on standard error only.
    let json = train(&csv(rows), SCHEMA, &["--json"]);
    let error = one_value(&json.stdout);
    assert_eq!(error["error"]["code"], code);
    assert!(error["error"].get("private").is_none() && !json.stdout.contains(&format!("line {line}")), "{error}");
    json.says("for your eyes only").says(&format!("line {line}"));
}

#[test]
fn text_after_a_closing_quote() {
    refused("\"4\"5,baker,yes\n", "csv.after_quote", 4);
    train(&csv("\"4\"5,baker,yes\n"), SCHEMA, &[]).says("column `age`");
}

/// The released weights decide whether it is finite.
#[test]
fn a_model_that_is_not_finite() {
    let newton = ["--algorithm", "dp-newton", "--delta", "1e-6", "--lambda"];
    train(&csv(""), SCHEMA, &[&newton[..], &["1"]].concat()).ok();
    train(&csv(""), SCHEMA, &[&newton[..], &["1.7e308"]].concat()).fails(1, "train.not_finite");
}

#[test]
fn a_file_that_is_no_libsvm_gets_no_scores() {
    let place = Workplace::new();
    place.write("train.svm", "+1 1:0.5\n-1 2:0.5\n".repeat(50));
    place.dp(&["train", "--anyway", "--data", "train.svm", "--dim", "2", "--epsilon", "1", "--out", "m.json"]).ok();
    place.write("new.svm", "0 1:1\n+1 2:1\n");
    assert_eq!(place.dp(&["predict", "--model", "m.json", "--data", "new.svm"]).ok().lines().count(), 3);
    for text in ["age,income\n41,low\n", "hello\n", "1:1 2:1\n"] {
        place.write("other.svm", text);
        let run = place.dp(&["predict", "--model", "m.json", "--data", "other.svm", "--out", "scores.csv"]);
        run.fails(3, "libsvm.syntax").says("other.svm, line 1");
        assert!(!place.path("scores.csv").exists());
    }
}

/// Some programs write a byte order mark before any UTF-8 text.
#[test]
fn a_byte_order_mark_is_no_part_of_any_input() {
    let place = Workplace::new();
    let marked = |text: &str| format!("\u{feff}{text}");
    place.write("people.csv", marked(&format!("{HEADER}{GOOD}")));
    place.write("schema.toml", marked(SCHEMA));
    place.write("train.svm", marked("+1 1:0.5\n-1 2:0.5\n"));
    let train = |data: &[&str]| {
        place.dp(&[&["train", "--anyway", "--epsilon", "1", "--force", "--out", "m.json"], data].concat())
    };
    train(&["--data", "train.svm", "--dim", "2"]).ok();
    train(&["--data", "people.csv", "--schema", "schema.toml"]).ok();
    place.dp(&["sign", "new-key", "key"]).ok();
    place.dp(&["sign", "model", "m.json", "--key", "key"]).ok();
    for name in ["m.json", "m.json.sig", "key", "key.pub"] {
        place.write(name, marked(&place.read(name)));
    }
    place.dp(&["verify", "m.json", "--key", "key.pub"]).ok();
    place.dp(&["sign", "model", "m.json", "--key", "key", "--out", "again.sig"]).ok();
    place.dp(&["predict", "--model", "m.json", "--data", "people.csv"]).ok();
}

/// File names on Unix are arbitrary bytes.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let place = Workplace::new();
    let name = |end: &str| OsString::from_vec([b"l\xe4nder", end.as_bytes()].concat());
    for (end, text) in [
        (".csv", csv("")),
        (".toml", SCHEMA.into()),
        (".jsonl", b"{\"job\":\"laplace\",\"noise_multiplier\":3}\n".into()),
    ] {
        std::fs::write(place.path("").join(name(end)), text).unwrap();
    }
    let dp = |arguments: &[(&str, &str)]| -> Run {
        let mut command = place.command(&[]);
        for &(flag, end) in arguments {
            command.args(flag.split_whitespace());
            if !end.is_empty() {
                command.arg(name(end));
            }
        }
        command.output().unwrap().into()
    };
    let data = ("--data", ".csv");
    dp(&[("train --anyway --epsilon 1", ""), data, ("--schema", ".toml"), ("--out", ".json")]).ok();
    dp(&[("verify", ".json")]).ok();
    dp(&[("evaluate", ""), data, ("--model", ".json")]).ok();
    dp(&[("predict", ""), data, ("--model", ".json")]).ok();
    dp(&[("schema --label earns", ".csv")]).ok();
    dp(&[("account batch", ".jsonl")]).ok();
    dp(&[("sign new-key", ".key")]).ok();
    dp(&[("sign model", ".json"), ("--key", ".key")]).ok();
    dp(&[("verify", ".json"), ("--key", ".key.pub")]).ok();
    dp(&[("predict", ""), ("--data", ".none"), ("--model", ".json")]).fails(1, "file.open").says("nder.none");
}

#[test]
fn a_schema_of_another_encoding() {
    let place = Workplace::new();
    place.write("people.csv", csv(""));
    place.write("schema.toml", [SCHEMA.as_bytes(), b"# Geh\xe4lter\n"].concat());
    let run = place.dp(&[
        "train",
        "--anyway",
        "--data",
        "people.csv",
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
        "--out",
        "m.json",
    ]);
    run.fails(3, "schema.syntax").says(&format!("schema.toml, line {}", SCHEMA.lines().count() + 1));
}

#[test]
fn an_epsilon_above_ten_is_said_to_promise_little() {
    let said = "promises little";
    let place = Workplace::new();
    place.write("people.csv", people(300, 1));
    let data =
        ["train", "--anyway", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data"];
    for (epsilon, little) in [("10", false), ("12", true)] {
        let run = place.dp(&[&data[..], &["--epsilon", epsilon, "--out", "m.json", "--force", "--json"]].concat());
        assert_eq!(run.stderr.contains(said), little, "{run:?}");
        assert_eq!(run.json()["warnings"][0].as_str().is_some_and(|warning| warning.contains(said)), little);
        assert_eq!(place.dp(&["verify", "m.json"]).ok().contains(said), little);
    }
}

#[test]
fn the_good_rows_are_good() {
    train(&csv("60,baker,yes\n"), SCHEMA, &[]).ok();
}

#[test]
fn cells_that_cannot_be_read() {
    refused("60,baker,yes\nNaN,baker,yes\n", "csv.bad_number", 5);
    refused("inf,baker,yes\n", "csv.bad_number", 4);
    refused("1e999,baker,yes\n", "csv.bad_number", 4);
    refused("old,baker,yes\n", "csv.bad_number", 4);
    refused(",baker,yes\n", "csv.missing_value", 4);
    refused("60,,yes\n", "csv.missing_value", 4);
    refused("60,smith,yes\n", "csv.unknown_category", 4);
    refused("60,baker,maybe\n", "label.unknown", 4);
    refused("60,baker,\n", "label.missing", 4);
    refused("60,baker\n", "csv.ragged", 4);
    refused("60,baker,yes,really\n", "csv.ragged", 4);
}

#[test]
fn the_value_of_a_cell_is_only_in_the_private_part() {
    let run = train(&csv("60,secretsmith,yes\n"), SCHEMA, &["--json"]);
    assert!(!run.stdout.contains("secretsmith") && run.stderr.contains("secretsmith"), "{run:#?}");
    let run = train(&csv("60,secretsmith,yes\n"), SCHEMA, &["--json", "--show-private"]);
    assert!(run.stderr.is_empty(), "{run:#?}");
    let mut error = one_value(&run.stdout);
    assert!(error["error"]["private"].to_string().contains("secretsmith"), "{error}");
    error["error"].as_object_mut().unwrap().remove("private");
    assert!(!error.to_string().contains("secretsmith"), "{error}");
}

/// A stray quote merges the rest of its row with the next into one cell. It is detected if the schema declares no line ends,
/// even if any category and any cell is allowed.
#[test]
fn a_stray_quote_does_not_swallow_the_next_row() {
    refused("60,baker,yes\n61,\"baker,yes\n62,baker\",yes\n", "csv.line_end", 5);
    refused("60,\"baker,yes\n61,baker,yes\n62,clerk,\"\"no\"\"\n63,\",no\n", "csv.line_end", 4);
    let lax = SCHEMA.replace("\"clerk\"]", "\"clerk\", \"other\"]");
    assert_ne!(lax, SCHEMA);
    let swallowed = csv("60,\"baker,yes\n61,baker\",yes\n");
    train(&swallowed, &lax, &[]).fails(3, "csv.line_end").says("line 4").says("column `trade`");
    // A schema allows line ends in cells by a column setting or by a category that contains one.
    train(&swallowed, &format!("{lax}line_ends = true\n"), &[]).ok();
    let category = lax.replace("\"other\"]", "\"other\", \"two\\nlines\"]");
    train(&csv("60,\"two\nlines\",yes\n"), &category, &[]).ok();
    // Neither in a draft, nor in a column that the schema does not name.
    let place = Workplace::new();
    place.write("people.csv", swallowed);
    let draft = ["schema", "people.csv", "--label", "earns", "--positive", "yes", "--out", "schema.toml"];
    place.dp(&draft).fails(3, "csv.line_end").says("line 4");
    place.write("people.csv", "age,trade,note,earns\n40,baker,a,yes\n30,clerk,\"b,no\n41,baker,c\",yes\n");
    place.write("schema.toml", &lax);
    let train =
        ["train", "--anyway", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "m.json"];
    place.dp(&train).fails(3, "csv.line_end").says("line 3").says("column `note`");
    place.write("schema.toml", format!("{lax}\n[columns.note]\ntype = \"drop\"\nline_ends = true\n"));
    place.dp(&train).ok();
}

#[test]
fn files_that_are_no_tables() {
    train(b"", SCHEMA, &[]).fails(3, "csv.empty");
    train(HEADER.as_bytes(), SCHEMA, &[]).fails(3, "csv.no_rows");
    train(b"age,earns\n40,yes\n", SCHEMA, &[]).fails(3, "csv.missing_column").says("trade");
    train(b"age,age,trade,earns\n1,1,baker,yes\n", SCHEMA, &[]).fails(3, "csv.duplicate_column").says("age");
    train(b"age;trade;earns\n1;baker;yes\n", SCHEMA, &[]).fails(3, "csv.missing_column");
    train(&[HEADER.as_bytes(), b"40,bak\xffer,yes\n"].concat(), SCHEMA, &[]).fails(3, "csv.not_utf8");
    train(&csv("60,\"baker,yes\n"), SCHEMA, &[]).fails(3, "csv.unclosed_quote");
    train(&csv(""), SCHEMA, &["--delimiter", "\""]).fails(2, "usage.value");
}

#[test]
fn files_that_are_not_there_or_cut() {
    let place = Workplace::new();
    place.write("schema.toml", SCHEMA);
    let run = |data: &str| {
        place.dp(&[
            "train",
            "--anyway",
            "--data",
            data,
            "--schema",
            "schema.toml",
            "--epsilon",
            "1",
            "--out",
            "model.json",
        ])
    };
    run("nobody.csv").fails(1, "file.open").says("nobody.csv");
    let text = csv(&"60,baker,yes\n".repeat(5000));
    for (name, packed) in [("cut.csv.gz", gzip(&text)), ("cut.csv.xz", xz(&text))] {
        place.write(name, &packed[..packed.len() / 2]);
        run(name).fails(3, "file.truncated").says(name);
        let mut broken = packed.clone();
        let middle = broken.len() / 2;
        broken[middle..middle + 16].fill(0x55);
        place.write(name, broken);
        assert_eq!(run(name).code, 3, "{name}");
        std::fs::remove_file(place.path(name)).unwrap();
    }
    let mut checksum = gzip(&text);
    let end = checksum.len() - 6;
    checksum[end] ^= 0xff;
    place.write("bad.csv.gz", checksum);
    run("bad.csv.gz").fails(3, "file.corrupt");
    std::fs::remove_file(place.path("bad.csv.gz")).unwrap();
    assert_eq!(place.files(), ["schema.toml"]);
}

#[test]
fn what_only_depends_on_values_is_a_warning() {
    let one_class = train(format!("{HEADER}40,baker,yes\n50,clerk,yes\n").as_bytes(), SCHEMA, &[]);
    one_class.says("every label").says("for your eyes only");
    assert_eq!(one_class.code, 0, "{one_class:#?}");
    let constant = train(format!("{HEADER}40,baker,yes\n40,clerk,no\n").as_bytes(), SCHEMA, &["--json"]);
    constant.says("`age`");
    assert_eq!(constant.code, 0, "{constant:#?}");
    let value = one_value(&constant.stdout);
    assert!(!value.to_string().contains("constant"), "content is not part of the result: {value}");
    let both = train(&csv(""), SCHEMA, &[]);
    assert!(!both.stderr.contains("every label") && !both.stderr.contains("same value"), "{both:#?}");
    let silent = train(format!("{HEADER}40,baker,yes\n40,clerk,yes\n").as_bytes(), SCHEMA, &["-q"]);
    assert_eq!((silent.code, silent.stderr.as_str()), (0, ""));
}

/// Both classes are declared on the command line: a missing class must not stop the run.
#[test]
fn a_single_class_of_two_named_ones_is_a_warning_even_where_the_schema_is_drafted() {
    let place = Workplace::new();
    place.write("one.csv", "age,earns\n41,yes\n29,yes\n41,yes\n");
    let train =
        ["train", "--anyway", "--data", "one.csv", "--label", "earns", "--schema-from-data", "--epsilon", "1", "--out"];
    for (out, named) in
        [("a.json", ["--positive", "yes", "--negative", "no"]), ("b.json", ["--positive", "no", "--negative", "yes"])]
    {
        let run = place.dp(&[&train[..], &[out], &named[..]].concat());
        run.says("every label");
        run.ok();
        assert_eq!(
            place.json(out)["model"]["classes"],
            serde_json::json!({ "positive": named[1], "negative": named[3] })
        );
    }
    place.dp(&[&train[..], &["c.json", "--positive", "no"]].concat()).fails(3, "label.undecided");
    place.dp(&[&train[..], &["c.json", "--positive", "a", "--negative", "b"]].concat()).fails(3, "label.undecided");
    place.dp(&[&train[..], &["c.json", "--positive", "yes", "--negative", "yes"]].concat()).fails(2, "usage.conflict");
}

#[test]
fn a_negative_class_can_be_named() {
    let place = Workplace::new();
    place.write("p.csv", "age,trade,earns\n1,a,low\n2,b,high\n3,a,top\n9,b,low\n");
    let schema = place.dp(&["schema", "p.csv", "--label", "earns", "--negative", "low"]).ok();
    assert!(schema.contains("negative = \"low\"") && schema.contains("others = \"positive\""), "{schema}");
    place.write("s.toml", schema.replace("= false", "= true"));
    let train = ["train", "--anyway", "--data", "p.csv", "--schema", "s.toml", "--epsilon", "1", "--out"];
    place.dp(&[&train[..], &["m.json", "--negative", "low", "--positive", "top"]].concat()).ok();
    place.dp(&[&train[..], &["n.json", "--negative", "high"]].concat()).fails(2, "usage.conflict").says("--negative");
    place.write("l.libsvm", "3 1:1\n1 2:1\n2 1:1\n");
    let sparse = ["train", "--anyway", "--data", "l.libsvm", "--dim", "2", "--epsilon", "1", "--out"];
    place.dp(&[&sparse[..], &["o.json", "--negative", "1"]].concat()).ok();
    place.dp(&[&sparse[..], &["p.json", "--negative", "1", "--positive", "3"]].concat()).fails(3, "label.unknown");
}

#[cfg(unix)]
#[test]
fn a_stray_index_or_a_width_without_memory_is_a_message_and_no_abort() {
    let place = Workplace::new();
    place.write("a.libsvm", "+1 4294967294:1\n-1 1:1\n");
    place.write("b.libsvm", "+1 60000000:1\n-1 1:1\n");
    place
        .dp(&["train", "--anyway", "--data", "a.libsvm", "--epsilon", "1", "--out", "m.json"])
        .fails(3, "libsvm.bad_index");
    let limited = "ulimit -v 4000000 && exec \"$0\" train --data b.libsvm --epsilon 1 --out m.json";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_dp")]).current_dir(place.path("."));
    let run: Run = shell.output().unwrap().into();
    run.fails(1, "memory.exhausted").says("--dim");
    assert_eq!(place.files(), ["a.libsvm", "b.libsvm"]);
}

#[test]
fn one_row_is_enough() {
    train(format!("{HEADER}40,baker,yes\n").as_bytes(), SCHEMA, &[]).ok();
}

#[test]
fn huge_numbers_are_clamped_to_the_public_range() {
    train(&csv("1e308,baker,yes\n-1e308,clerk,no\n123456789012345678901234567890,clerk,no\n"), SCHEMA, &[]).ok();
}

#[test]
fn names_and_cells_cannot_drive_the_terminal() {
    let run = train(&csv("\u{1b}[2J60,baker,yes\n"), SCHEMA, &[]);
    assert_eq!(run.code, 3);
    assert!(!run.stderr.contains('\u{1b}'), "{run:#?}");
    let schema = SCHEMA.replace("[columns.age]", "[columns.\"a\\u001bge\"]");
    let run = train(&csv(""), &schema, &[]);
    assert_eq!(run.code, 3);
    assert!(!run.stderr.contains('\u{1b}'), "{run:#?}");
}

#[test]
fn schemas_that_are_refused() {
    let replaced = |from: &str, to: &str| SCHEMA.replace(from, to);
    for (schema, code) in [
        ("[label".to_owned(), "schema.syntax"),
        (replaced("min = 0\nmax = 120", ""), "bounds.missing"),
        (replaced("max = 120", "max = -1"), "bounds.order"),
        (replaced("max = 120", "max = inf"), "bounds.not_finite"),
        (replaced("max = 120", "max = \"old\""), "schema.type"),
        (replaced("max = 120", "max = 120\nmaxx = 1"), "schema.unknown_key"),
        (replaced("type = \"numeric\"\n", ""), "schema.missing_key"),
        (replaced("[\"baker\", \"clerk\"]", "[]"), "schema.categories"),
        (replaced("[\"baker\", \"clerk\"]", "[\"baker\", \"baker\"]"), "schema.categories"),
        (replaced("max = 120", "max = 120\non_missing = { value = 500 }"), "schema.on_missing"),
        (replaced("[\"baker\", \"clerk\"]", "[\"baker\", \"clerk\"]\non_unknown = \"other\""), "schema.on_unknown"),
        (replaced("min = 0", "min = -5\nlog1p = true"), "schema.log1p"),
        (replaced("max = 120", "max = 120\ncosines = 65"), "schema.cosines"),
        (replaced("max = 120", "max = 120\ncosines = 1.5"), "schema.type"),
        (replaced("max = 120", "max = 120\nscale = \"square\""), "schema.type"),
        (replaced("negative = \"no\"", "negative = \"yes\""), "schema.label"),
        (replaced("[columns.age]", "[columns.earns]"), "schema.columns"),
        (replaced("max = 120", "max = 120\nreviewed = false"), "schema.unreviewed"),
    ] {
        let run = train(&csv(""), &schema, &[]);
        run.fails(3, code).says("schema.toml");
    }
    let mut latin = SCHEMA.as_bytes().to_vec();
    latin.extend(b"# caf\xe9\n");
    let place = Workplace::new();
    place.write("people.csv", csv(""));
    place.write("latin.toml", latin);
    place
        .dp(&[
            "train",
            "--anyway",
            "--data",
            "people.csv",
            "--schema",
            "latin.toml",
            "--epsilon",
            "1",
            "--out",
            "m.json",
        ])
        .fails(3, "schema.syntax");
    for extra in [["--label", "age"], ["--positive", "no"]] {
        train(&csv(""), SCHEMA, &extra).fails(2, "usage.conflict").says(extra[0]);
    }
    train(&csv(""), SCHEMA, &["--label", "earns", "--positive", "yes"]).ok();
    train(&csv(""), SCHEMA, &["--assume-public", "agee"]).fails(3, "schema.unknown_column").says("agee");
    let run = train(&csv(""), SCHEMA, &["--assume-public", "age"]);
    run.says("`age` is reviewed: --assume-public changes nothing");
    run.ok();
    let place = Workplace::new();
    place.write("people.csv", csv(""));
    place
        .dp(&[
            "train",
            "--anyway",
            "--data",
            "people.csv",
            "--schema",
            "none.toml",
            "--epsilon",
            "1",
            "--out",
            "m.json",
        ])
        .fails(1, "file.open");
}

/// Messages name what was typed: the flag that is missing or does not fit, not a part of the algorithm.
#[test]
fn what_is_not_proved_names_the_flag() {
    for algorithm in ["dp-gd", "amp"] {
        let run = train(&csv(""), SCHEMA, &["--algorithm", algorithm]);
        run.fails(4, "privacy.refused").says("--> --delta").says("add --delta, such as --delta 1e-6");
        assert!(!run.stderr.contains("dp-sgd") && !run.stderr.contains("obj-pert"), "{run:?}");
    }
    let three = SCHEMA.replace("positive = \"yes\"\nnegative = \"no\"", "classes = [\"yes\", \"no\", \"maybe\"]");
    for algorithm in ["dp-blgd", "dp-newton"] {
        let run = train(&csv(""), &three, &["--algorithm", algorithm, "--delta", "1e-6"]);
        run.fails(4, "privacy.refused").says("add --one-vs-all composed");
    }
    let run = train(&csv(""), SCHEMA, &["--threshold", "base-rate", "--loss", "huber-svm", "--delta", "1e-6"]);
    run.fails(4, "privacy.refused").says("--> --threshold");
}

#[test]
fn unreviewed_columns_need_to_be_named() {
    let schema = SCHEMA.replace("max = 120", "max = 120\nreviewed = false");
    let run = train(&csv(""), &schema, &[]);
    run.fails(3, "schema.unreviewed").says("age").says("--assume-public");
    let run = train(&csv(""), &schema, &["--assume-public", "age"]);
    run.ok();
}

#[test]
fn drafts_that_cannot_be_made() {
    let place = Workplace::new();
    place.write("one.csv", "age,earns\n1,yes\n2,yes\n");
    place.dp(&["schema", "one.csv", "--label", "earns"]).fails(3, "label.undecided");
    let run = place.dp(&["schema", "one.csv", "--label", "earns", "--classes", "1,2,3"]);
    run.says("column `earns`: Classes as listed. No label of the file is one of them.");
    run.ok();
    place.write("two.csv", csv(""));
    let run = place.dp(&["schema", "two.csv", "--label", "earns", "--classes", "no, yes"]);
    assert!(!run.stderr.contains("No label"), "{run:?}");
    assert!(run.ok().contains("classes = [\"no\", \"yes\"]"));
    place.write("three.csv", "age,earns\n1,yes\n2,no\n3,perhaps\n");
    place.dp(&["schema", "three.csv"]).fails(3, "label.undecided").says("--label");
    place.dp(&["schema", "three.csv", "--label", "nothing"]).fails(3, "csv.missing_column");
    assert_eq!(place.files(), ["one.csv", "three.csv", "two.csv"]);
}

#[test]
fn libsvm_lines_that_cannot_be_read() {
    let place = Workplace::new();
    for (line, code) in [
        ("+1 1:2 x", "libsvm.syntax"),
        ("+1 0:1", "libsvm.bad_index"),
        ("+1 9:1", "libsvm.bad_index"),
        ("+1 2:1 1:1", "libsvm.index_order"),
        ("+1 1:1 1:2", "libsvm.index_order"),
        ("+1 1:nan", "libsvm.bad_value"),
        ("+1 1:inf", "libsvm.bad_value"),
        ("+7 1:1", "label.unknown"),
    ] {
        place.write("x.libsvm", format!("+1 1:1\n-1 2:1\n{line}\n"));
        let run = place.dp(&[
            "train",
            "--anyway",
            "--data",
            "x.libsvm",
            "--dim",
            "3",
            "--epsilon",
            "1",
            "--out",
            "model.json",
        ]);
        run.fails(3, code).says("line 3");
        assert_eq!(place.files(), ["x.libsvm"], "{line}");
    }
    place.write("x.libsvm", "");
    place
        .dp(&["train", "--anyway", "--data", "x.libsvm", "--dim", "3", "--epsilon", "1", "--out", "model.json"])
        .fails(3, "libsvm.empty");
}

#[test]
fn records_must_fit_the_model() {
    let place = Workplace::new();
    place.write("people.csv", people(100, 5));
    place.write("x.libsvm", "+1 1:1\n");
    let train = [
        "train",
        "--data",
        "people.csv",
        "--label",
        "earns",
        "--positive",
        "yes",
        "--schema-from-data",
        "--epsilon",
        "1",
        "--out",
        "model.json",
    ];
    place.dp(&train).ok();
    for command in ["evaluate", "predict"] {
        place.dp(&[command, "--model", "model.json", "--data", "x.libsvm"]).fails(3, "model.mismatch");
        place.write("other.csv", "a,b\n1,2\n");
        place.dp(&[command, "--model", "model.json", "--data", "other.csv"]).fails(3, "csv.missing_column");
        place.dp(&[command, "--model", "none.json", "--data", "people.csv"]).fails(1, "model.read");
    }
    let mut edited = place.json("model.json");
    edited["model"]["weights"][0] = 1.25.into();
    place.write("edited.json", edited.to_string());
    place.dp(&["evaluate", "--model", "edited.json", "--data", "people.csv"]).fails(5, "verify.model_hash");
}

/// Every code listed by `dp explain` is triggered by a test in this folder.
#[test]
fn every_code_is_triggered_somewhere() {
    let sources = [
        include_str!("account.rs"),
        include_str!("algorithms.rs"),
        include_str!("account_batch.rs"),
        include_str!("audit.rs"),
        include_str!("bad_input.rs"),
        include_str!("check.rs"),
        include_str!("checkpoints.rs"),
        include_str!("config.rs"),
        include_str!("curves.rs"),
        include_str!("edits.rs"),
        include_str!("evaluate.rs"),
        include_str!("images.rs"),
        include_str!("labels.rs"),
        include_str!("memory.rs"),
        include_str!("mess.rs"),
        include_str!("networks.rs"),
        include_str!("outputs.rs"),
        include_str!("plan.rs"),
        include_str!("projection.rs"),
        include_str!("rank.rs"),
        include_str!("rank_modes.rs"),
        include_str!("reproduce.rs"),
        include_str!("shell.rs"),
        include_str!("sign.rs"),
        include_str!("spool.rs"),
        include_str!("tables.rs"),
        include_str!("predict_sql.rs"),
        include_str!("train.rs"),
        include_str!("unit.rs"),
        include_str!("tune.rs"),
        include_str!("usage.rs"),
        include_str!("verify.rs"),
    ]
    .concat();
    // Not reachable by a test from outside: a disk that fails during reading (of a file, or of the spool), a row of more than 64 MiB, a source that
    // changes between two passes, an accountant that panics, a system without threads, a training that fails for a reason
    // other than memory; and errors that flags cannot express.
    let out_of_reach = [
        "account.failed",
        "audit.failed",
        "file.read",
        "csv.long_record",
        "csv.options",
        "encoding.invalid",
        // The command says of which kind images are.
        "images.kind",
        "lists.unreadable",
        "reproduce.failed",
        "sign.random",
        "spool.read",
        "train.failed",
    ];
    let place = Workplace::new();
    let codes = place.dp(&["explain", "--json"]).json();
    let missing: Vec<&str> = codes["codes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|code| code.as_str().unwrap())
        .filter(|code| !out_of_reach.contains(code) && !sources.contains(&format!("\"{code}\"")))
        .collect();
    assert!(missing.is_empty(), "no test triggers {missing:?}");
}
