//! A diary: five messy tables, each from the file to a verified model, a report and predictions, with no edit outside its schema.
//! The commands, edits and messages are in `DIARY.md`; `DP_WRITE_DIARY=1` writes them anew, `DP_DIARY_FILES=FOLDER` also the tables.

mod messy;

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use crate::support::Workplace;

/// What an analyst does.
enum Step {
    /// Runs a command, which exits with this code and says lines that begin like this.
    Run(&'static str, i32, &'static [&'static str]),
    /// Evaluates a model by this command: a metric is at least (or, below 0, the negated one) this number.
    Evaluate(&'static str, &'static str, f64),
    /// Replaces a piece of the schema.
    Edit(&'static str, &'static str),
    /// Confirms the rest of the schema.
    Review,
}
use Step::{Edit, Evaluate, Review, Run};

struct Table {
    title: &'static str,
    what: &'static str,
    /// The name of the schema's file.
    schema: &'static str,
    steps: &'static [Step],
}

const TABLES: [Table; 5] = [
    Table {
        title: "Visits to a hospital",
        what: "`visits.csv` of 4,000 patients with one to five visits each: semicolons, Windows-1252, decimal commas, euros, German \
               dates, notes over several lines, four markers of missing values, a label in two spellings. The model is used on the next \
               year's export, which has a new ward.",
        schema: "visits.toml",
        steps: &[
            Run(
                "dp schema visits.csv --label 'wieder da' --positive ja --out visits.toml",
                0,
                &["warning: column `Patient`", "drafted"],
            ),
            Edit("min = 2024-01-01\nmax = 2024-12-31", "min = 2020-01-01\nmax = 2029-12-31"),
            Edit("min = 1930\nmax = 2019", "min = 1920\nmax = 2029"),
            Edit("min = 35.5\nmax = 41.4", "min = 34\nmax = 43"),
            Edit("min = 150.65\nmax = 9649.29", "min = 0\nmax = 20000"),
            Edit("min = 8\nmax = 42", "min = 0\nmax = 60"),
            Review,
            Run(
                "dp check --data visits.csv --schema visits.toml",
                0,
                &["12095 rows", "csv.missing_value in `Körperfett`"],
            ),
            Run(
                "dp plan --rows 12000 --units 4000 --max-rows 3 --schema visits.toml",
                0,
                &["epsilon  ", "0.5  ", "1  ", "2  "],
            ),
            Run(
                "dp train --data visits.csv --schema visits.toml --unit Patient --max-rows 3 --epsilon 1 --out visits.json --report visits.md",
                0,
                &["expect", "guarantee"],
            ),
            Run("dp verify visits.json", 0, &["visits.json holds", "guarantee"]),
            Run("dp explain-model visits.json --out visits.svg", 0, &["contributions"]),
            Run(
                "dp check --data visits-2025.csv --schema visits.toml",
                0,
                &["csv.unknown_category", "cells: `Tagesklinik"],
            ),
            Evaluate("dp evaluate --model visits.json --data visits-2025.csv --on-unknown other", "auc", 0.84),
            Run(
                "dp predict --model visits.json --data visits-2025.csv --id Patient --on-unknown other --out scores.csv",
                0,
                &[],
            ),
        ],
    },
    Table {
        title: "A payroll",
        what: "`payroll.xlsx` of 5,000 people: a workbook with a sheet of notes, a title above the header, pay as text with a currency, \
               percentages, dates, formulas, and a row of totals that is not a person. It predicts who leaves within a year, and is \
               used on the next year's workbook.",
        schema: "payroll.toml",
        steps: &[
            Run(
                "dp schema payroll.xlsx --label 'Left within a year' --positive Yes --out payroll.toml",
                1,
                &["error[table.open]", "expected:", "do:"],
            ),
            Run(
                "dp schema payroll.xlsx --table 'Payroll 2026' --label 'Left within a year' --positive Yes --out payroll.toml",
                3,
                &["error[table.layout]", "do:"],
            ),
            Run(
                "dp schema payroll.xlsx --table 'Payroll 2026!A3:I1048576' --label 'Left within a year' --positive Yes --out payroll.toml",
                0,
                &["drafted"],
            ),
            Edit("min = 2004-11-02\nmax = 2023-12-31", "min = 1980-01-01\nmax = 2029-12-31"),
            Edit("min = 28001.94\nmax = 1234567890", "min = 0\nmax = 200000"),
            Edit("min = 0\nmax = 29.9", "min = 0\nmax = 50"),
            Edit("min = 0\nmax = 59", "min = 0\nmax = 100"),
            Edit("type = \"numeric\"\nmin = 19600\nmax = 82590\non_missing = \"neutral\"", "type = \"drop\""),
            Review,
            Run(
                "dp check --data payroll.xlsx --table 'Payroll 2026!A3:I1048576' --schema payroll.toml",
                0,
                &["5001 rows", "label.missing"],
            ),
            Run(
                "dp train --data payroll.xlsx --table 'Payroll 2026!A3:I1048576' --schema payroll.toml --epsilon 1 --out payroll.json \
                 --report payroll.md",
                0,
                &["expect", "guarantee"],
            ),
            Run("dp verify payroll.json", 0, &["payroll.json holds", "guarantee"]),
            Run("dp explain-model payroll.json --out payroll.svg", 0, &["contributions"]),
            Evaluate(
                "dp evaluate --model payroll.json --data payroll-2027.xlsx --table 'Payroll 2026!A3:I1048576'",
                "auc",
                0.85,
            ),
            Run(
                "dp predict --model payroll.json --data payroll-2027.xlsx --table 'Payroll 2026!A3:I1048576' --id 'Employee no.' \
                 --out leaving.csv",
                0,
                &[],
            ),
        ],
    },
    Table {
        title: "A survey with free text",
        what: "`survey.csv` of 8,000 answers: questions as column names, ages in groups, several choices in one cell, free text with \
               quotes and line breaks, answers left empty, hours as `about 40`. It predicts which of three answers someone gives.",
        schema: "survey.toml",
        steps: &[
            Run("dp schema survey.csv --label 'How satisfied are you overall?' --out survey.toml", 0, &["drafted"]),
            Edit(
                "type = \"date\"\nformat = \"%Y/%m/%d %I:%M:%S %p\"\nmin = 2026-03-11T00:00:14\nmax = 2026-03-19T23:59:32\non_missing = \"neutral\"",
                "type = \"drop\"",
            ),
            Edit("min = 15\nmax = 59", "min = 0\nmax = 80"),
            Review,
            Run(
                "dp check --data survey.csv --schema survey.toml --fix-schema survey-2.toml",
                3,
                &["csv.bad_number", "cells: `about 40`", "`How many hours"],
            ),
            Edit("min = 0\nmax = 80", "min = 0\nmax = 80\non_unreadable = \"neutral\""),
            Run(
                "dp train --data survey.csv --schema survey.toml --epsilon 1 --out survey.json --report survey.md",
                0,
                &["expect", "guarantee"],
            ),
            Run("dp verify survey.json", 0, &["survey.json holds", "guarantee"]),
            Run("dp explain-model survey.json --out survey.svg", 0, &["contributions"]),
            Evaluate("dp evaluate --model survey.json --data survey-2.csv", "accuracy", 0.75),
            Run("dp predict --model survey.json --data survey-2.csv --out answers.csv", 0, &[]),
        ],
    },
    Table {
        title: "A log of sensors",
        what: "`log.tsv` of 12,000 lines from 3,000 wearers: no header, tabs, times with a time zone, numbers with exponents, `-999` and \
               `ERR` where a sensor failed. It predicts a pulse, with the hour as another feature of the time.",
        schema: "log.toml",
        steps: &[
            Run("dp schema log.tsv --label column6 --out log.toml", 3, &["error[csv.header]", "do:"]),
            Run("dp schema log.tsv --header no --label column6 --out log.toml", 0, &["drafted"]),
            Edit("min = 39.4\nmax = 123", "min = 30\nmax = 200"),
            Edit(
                "type = \"date\"\nformat = \"%Y-%m-%dT%H:%M:%SZ\"\nmin = 2024-01-01T00:01:16\nmax = 2024-02-29T23:56:58",
                "type = \"hour\"\nformat = \"%Y-%m-%dT%H:%M:%SZ\"",
            ),
            Edit("min = 0\nmax = 1999", "min = 0\nmax = 3000"),
            Edit("min = 30\nmax = 36", "min = 25\nmax = 45\non_unreadable = \"neutral\""),
            Review,
            Run("dp check --data log.tsv --schema log.toml", 0, &["csv.bad_number", "csv.missing_value"]),
            Run(
                "dp train --data log.tsv --schema log.toml --unit column2 --max-rows 4 --epsilon 1 --out log.json --report log.md",
                0,
                &["guarantee"],
            ),
            Run("dp verify log.json", 0, &["log.json holds", "guarantee"]),
            Run("dp explain-model log.json --out log.svg", 0, &["contributions"]),
            Evaluate("dp evaluate --model log.json --data log-2.tsv", "mae", -4.0),
            Run("dp predict --model log.json --data log-2.tsv --id column2 --out pulses.csv", 0, &[]),
        ],
    },
    Table {
        title: "Orders of a shop",
        what: "`orders.csv` of 3,000 customers with one to 25 orders: amounts as `USD 1,224.27`, American dates with AM and PM, e-mail \
               addresses, addresses of pages, a coupon that most orders lack. It predicts returns, and is used on the next year's \
               orders, some from a new country.",
        schema: "orders.toml",
        steps: &[
            Run(
                "dp schema orders.csv --label returned --positive TRUE --out orders.toml",
                0,
                &["warning: column `customer e-mail`", "drafted"],
            ),
            Edit("min = 2025-01-01T00:07:00\nmax = 2025-12-31T23:52:00", "min = 2020-01-01\nmax = 2029-12-31"),
            Edit("min = 9.04\nmax = 4007", "min = 0\nmax = 10000"),
            Edit("min = 1\nmax = 9", "min = 1\nmax = 20"),
            Review,
            Run("dp check --data orders.csv --schema orders.toml", 0, &["17164 rows"]),
            Run(
                "dp train --data orders.csv --schema orders.toml --unit 'customer e-mail' --max-rows 4 --epsilon 1 --out orders.json \
                 --report orders.md",
                0,
                &["expect", "guarantee"],
            ),
            Run("dp verify orders.json", 0, &["orders.json holds", "guarantee"]),
            Run("dp explain-model orders.json --out orders.svg", 0, &["contributions"]),
            Run("dp check --data orders-2026.csv --schema orders.toml", 0, &["csv.unknown_category", "cells: `FR"]),
            Evaluate("dp evaluate --model orders.json --data orders-2026.csv --on-unknown other", "auc", 0.75),
            Run(
                "dp predict --model orders.json --data orders-2026.csv --id 'order id' --on-unknown other --out returns.csv",
                0,
                &[],
            ),
        ],
    },
];

/// Returns the words of a command as a shell would.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

/// Breaks a text into lines of at most 120 characters.
fn wrapped(text: &str) -> String {
    let (mut wrapped, mut length) = (String::new(), 0);
    for word in text.split(' ') {
        let (blank, more) = (length > 0, word.chars().count() + usize::from(length > 0));
        if length + more > 120 {
            wrapped.push('\n');
            length = word.chars().count();
        } else {
            if blank {
                wrapped.push(' ');
            }
            length += more;
        }
        wrapped += word;
    }
    wrapped
}

/// Plays a table and returns its chapter. The bounds on metrics are at least 7 standard deviations from the mean of 60 trainings.
fn play(table: &Table, place: &Workplace) -> String {
    let mut text = format!("\n## {}\n\n{}\n", table.title, wrapped(table.what));
    let mut edits = Vec::new();
    let flush = |edits: &mut Vec<String>, text: &mut String| {
        if !edits.is_empty() {
            let _ = write!(text, "\nIn `{}`:\n\n```diff\n{}```\n", table.schema, edits.drain(..).collect::<String>());
        }
    };
    for step in table.steps {
        match step {
            Run(command, code, shown) => {
                flush(&mut edits, &mut text);
                let words = words(command);
                let run = place.dp(&words.iter().skip(1).map(String::as_str).collect::<Vec<_>>());
                assert_eq!(run.code, *code, "{command}: {run:#?}");
                let said = format!("{}{}", run.stderr, run.stdout);
                let _ = write!(text, "\n```console\n$ {command}\n");
                for start in *shown {
                    let line = said.lines().find(|line| line.trim_start().starts_with(start));
                    let line = line.unwrap_or_else(|| panic!("{command} says nothing like {start}: {said}"));
                    let _ = writeln!(text, "{}", line.trim_end());
                }
                text += "```\n";
            }
            Evaluate(command, metric, least) => {
                flush(&mut edits, &mut text);
                let words = words(&format!("{command} --json"));
                let found = place.dp(&words.iter().skip(1).map(String::as_str).collect::<Vec<_>>()).json();
                let value = found[metric].as_f64().unwrap_or_else(|| panic!("{metric}: {found}"));
                assert!(value.copysign(*least) >= *least, "{command}: {metric} {value}");
                let bound = if *least < 0.0 { "at most" } else { "at least" };
                let _ = write!(text, "\n```console\n$ {command}\n```\n\n`{metric}` is {bound} {}.\n", least.abs());
            }
            Edit(from, to) => {
                let schema = place.read(table.schema);
                assert_eq!(schema.matches(from).count(), 1, "{from} in {schema}");
                place.write(table.schema, schema.replace(from, to));
                let lines =
                    |sign: char, lines: &str| lines.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
                edits.push(lines('-', from) + &lines('+', to));
            }
            Review => {
                let schema = place.read(table.schema);
                place.write(table.schema, schema.replace("reviewed = false", "reviewed = true"));
                edits.push("-reviewed = false\n+reviewed = true (everywhere)\n".to_owned());
            }
        }
    }
    flush(&mut edits, &mut text);
    text
}

#[test]
fn five_messy_tables_become_models_without_an_editor_outside_their_schemas() {
    let place = Workplace::new();
    place.write("visits.csv", messy::visits(4000, false, 1));
    place.write("visits-2025.csv", messy::visits(1000, true, 2));
    messy::payroll(5000, 3, &place.path("payroll.xlsx"));
    messy::payroll(1500, 7, &place.path("payroll-2027.xlsx"));
    place.write("survey.csv", messy::survey(8000, 4));
    place.write("survey-2.csv", messy::survey(1000, 8));
    place.write("log.tsv", messy::sensors(12_000, 5));
    place.write("log-2.tsv", messy::sensors(2000, 9));
    place.write("orders.csv", messy::orders(3000, false, 6));
    place.write("orders-2026.csv", messy::orders(800, true, 10));
    if let Ok(folder) = std::env::var("DP_DIARY_FILES") {
        for name in place.files() {
            fs::copy(place.path(&name), std::path::Path::new(&folder).join(name)).unwrap();
        }
    }
    let mut diary = String::from(
        "# A diary of five messy tables\n\n\
         Five generated tables (`tests/commands/diary/messy.rs`), each from the file to a verified model, a report and predictions. The\n\
         only edits are in the drafted schema. `cargo test -p dp-cli --test commands diary` runs every command, compares this file with\n\
         what they say, and prints the seconds with `-- --nocapture`; `DP_DIARY_FILES=FOLDER` leaves the tables in a folder. With\n\
         `--release` on two cores the commands of a table take 0.2 to 7 s, most of it the accounting for several rows of a person. Of\n\
         the output, only some lines are shown; figures that depend on the noise are given as bounds that the test checks.\n",
    );
    for table in &TABLES {
        let start = Instant::now();
        diary += &play(table, &place);
        #[expect(clippy::print_stdout, reason = "shown with --nocapture")]
        {
            println!("{}: {:.1} s", table.title, start.elapsed().as_secs_f64());
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("DIARY.md");
    if std::env::var_os("DP_WRITE_DIARY").is_some() {
        fs::write(&path, &diary).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), diary, "write it anew with DP_WRITE_DIARY=1");
}
