//! Behaviour common to all commands: streams, exit codes, colours, help, completions, manual pages, error codes.

use crate::support::{Workplace, one_value};

#[test]
fn help_is_on_stdout_and_mistakes_are_on_stderr() {
    let place = Workplace::new();
    for arguments in [&["--help"][..], &["help"], &["train", "--help"], &["help", "train"], &["--version"]] {
        let run = place.dp(arguments);
        assert!(run.code == 0 && run.stderr.is_empty() && !run.stdout.is_empty(), "{arguments:?} {run:#?}");
    }
    for arguments in [&["trian"][..], &["train", "--epsilom", "1"], &["train"], &[]] {
        let run = place.dp(arguments);
        assert!(run.code == 2 && run.stdout.is_empty() && !run.stderr.is_empty(), "{arguments:?} {run:#?}");
    }
}

#[test]
fn mistakes_are_one_json_value_when_asked() {
    let place = Workplace::new();
    let run = place.dp(&["train", "--json", "--epsilom", "1"]);
    assert_eq!((run.code, run.stderr.as_str()), (2, ""));
    let error = one_value(&run.stdout);
    assert_eq!(error["error"]["code"], "usage.arguments");
    assert!(error["error"]["message"].as_str().unwrap().contains("--epsilom"));
}

#[test]
fn a_mistake_is_told_whole_in_json() {
    let place = Workplace::new();
    let message = |arguments: &[&str]| {
        let run = place.dp(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (2, ""), "{run:#?}");
        one_value(&run.stdout)["error"].clone()
    };
    let missing = message(&["train", "--json", "--data", "people.csv"]);
    assert!(missing["message"].as_str().unwrap().ends_with("not provided: --out <FILE>"), "{missing}");
    assert!(missing["help"].as_str().unwrap().starts_with("usage: dp train"), "{missing}");
    let typo = message(&["train", "--json", "--epsilom", "1"]);
    assert!(typo["help"].as_str().unwrap().contains("'--epsilon'"), "{typo}");
}

#[test]
fn help_version_and_completions_are_one_json_value_when_asked() {
    let place = Workplace::new();
    for arguments in [&["--help"][..], &["--version"], &["train", "-h"], &["help", "train"], &["completions", "bash"]] {
        let value = place.dp(&[arguments, &["--json"]].concat()).json();
        assert!(value["schema"].as_str().unwrap().starts_with("dp."), "{arguments:?}: {value}");
    }
}

#[test]
fn exit_codes_are_listed() {
    let place = Workplace::new();
    let text = place.dp(&["help", "exit-codes"]).ok();
    for number in ["0", "1", "2", "3", "4", "5", "130"] {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(number)), "{number}: {text}");
    }
    place.dp(&["help", "nonsense"]).fails(2, "usage.unknown_topic");
    place.dp(&["help", "train", "more"]).fails(2, "usage.unknown_topic").says("`train` has no subcommands");
}

#[test]
fn every_code_has_a_page() {
    let place = Workplace::new();
    let codes = place.dp(&["explain", "--json"]).json();
    let codes: Vec<&str> = codes["codes"].as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
    assert!(codes.len() > 20, "{codes:?}");
    for code in codes {
        let page = place.dp(&["explain", code]).ok();
        assert!(page.starts_with(code) && page.len() > code.len() + 60, "{page}");
    }
    place.dp(&["explain", "model.reed"]).fails(2, "usage.unknown_code").says("`model.read`");
    place.dp(&["explain", "csv ragged"]).fails(2, "usage.unknown_code").says("`csv.ragged`");
    assert!(place.dp(&["explain", "CSV.Ragged"]).ok().starts_with("csv.ragged"));
}

#[test]
fn completions_for_every_shell() {
    let place = Workplace::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.dp(&["completions", shell]).ok();
        assert!(script.contains("schema-from-data"), "{shell}");
    }
}

#[test]
fn manual_pages_are_written_and_kept() {
    let place = Workplace::new();
    let files = place.dp(&["man", "pages", "--json"]).json();
    let files = files["files"].as_array().unwrap();
    assert_eq!(files.len(), 46, "{files:?}");
    for file in files {
        let page = place.read(file.as_str().unwrap());
        assert!(page.contains(".TH") && page.contains(".SH SYNOPSIS"), "{file}");
        if crate::support::has("mandoc") {
            let lint = std::process::Command::new("mandoc")
                .args(["-Tlint", "-Wwarning"])
                .arg(place.path(file.as_str().unwrap()))
                .output()
                .unwrap();
            assert!(lint.stdout.is_empty(), "{}", String::from_utf8_lossy(&lint.stdout));
        } else {
            eprintln!("SKIPPED: no mandoc to check {file}");
        }
    }
    assert!(place.read("pages/dp.1").contains("130"), "exit codes are in the main page");
    place.dp(&["man", "pages"]).fails(1, "output.exists");
    place.dp(&["man", "pages", "--force"]).ok();
}

#[test]
fn colours_only_when_wanted() {
    let place = Workplace::new();
    let failing = ["explain", "no.such"];
    let escape = '\u{1b}';
    assert!(!place.dp(&failing).stderr.contains(escape), "not on a pipe");
    assert!(place.dp(&["explain", "no.such", "--color", "always"]).stderr.contains(escape));
    assert!(!place.dp(&["explain", "no.such", "--color", "never"]).stderr.contains(escape));
    let with = |name: &str| {
        let output = place.command(&failing).env(name, "1").output().unwrap();
        String::from_utf8(output.stderr).unwrap().contains(escape)
    };
    assert!(with("CLICOLOR_FORCE"));
    assert!(!with("NO_COLOR"));
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Workplace::new();
    let mut child = place
        .command(&["completions", "bash"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take()); // before a byte is read
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// The flags in a help text.
fn flags(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with('-') && !line.starts_with("- "));
    lines.filter_map(|line| line.split("--").nth(1)?.split([' ', '=', '[', '.']).next()).collect()
}

#[test]
fn help_shows_few_flags_and_dp_help_all() {
    let place = Workplace::new();
    let everywhere =
        ["config", "print-config", "json", "show-private", "quiet", "verbose", "color", "progress", "threads", "help"];
    for (command, most) in [("train", 24), ("tune", 40)] {
        let (short, long) = (place.dp(&[command, "--help"]).ok(), place.dp(&["help", command]).ok());
        let (shown, all) = (flags(&short), flags(&long));
        let own = shown.iter().filter(|flag| !everywhere.contains(flag)).count();
        assert!((15..=most).contains(&own), "{own}: {shown:?}");
        assert!(all.len() > 80 && shown.iter().all(|flag| all.contains(flag)), "{all:?}");
        for flag in ["epsilon", "schema", "algorithm", "out"] {
            assert!(shown.contains(&flag), "{flag}");
        }
        assert!(!shown.contains(&"curvature-share") && all.contains(&"curvature-share"));
        assert!(short.contains("dp help algorithms") && short.contains("Examples:"));
        // `-h` shows the same flags.
        assert_eq!(flags(&place.dp(&[command, "-h"]).ok()), shown);
    }
    // A hidden flag works, and a misspelt one is still suggested.
    place.dp(&["train", "--data", "x.csv", "--out", "m.json", "--curvature-shar", "0.2"]).says("--curvature-share");
}

#[test]
fn algorithms_have_a_table_and_a_page_each() {
    let place = Workplace::new();
    let table = place.dp(&["help", "algorithms"]).ok();
    let names: Vec<&str> =
        table.lines().skip(1).take_while(|line| !line.is_empty()).map(|line| line.split(' ').next().unwrap()).collect();
    assert!(names.len() > 30 && names[0] == "auto", "{names:?}");
    for name in names {
        let page = place.dp(&["help", "algorithm", name]).ok();
        assert!(
            page.starts_with(&format!("{name}: ")) && page.contains("Settings:") && page.contains("Theory:"),
            "{page}"
        );
        assert!(page.lines().count() > 15 && !page.contains("]("), "{page}");
    }
    let page = place.dp(&["help", "algorithm", "dp-ftrl"]).ok();
    assert!(
        page.contains("--bands <STEPS>") && page.contains("delta      needed") && page.contains("Kairouz"),
        "{page}"
    );
    place.dp(&["help", "algorithm", "magic"]).fails(2, "usage.unknown_topic").says("dp-ftrl");
    place.dp(&["help", "algorithm"]).fails(2, "usage.unknown_topic").says("algorithm NAME");
}

#[test]
fn terms_are_explained_under_all_their_names() {
    let place = Workplace::new();
    let terms = place.dp(&["explain", "--json"]).json()["terms"].as_array().unwrap().clone();
    assert!(terms.len() > 40, "{terms:?}");
    for term in &terms {
        let explained = place.dp(&["explain", term.as_str().unwrap(), "--json"]).json();
        assert_eq!(&explained["term"], term);
    }
    let text = place.dp(&["explain", "Zero-Out"]).ok();
    assert!(text.starts_with("add-remove (also zero-out)\n") && text.contains("null record"), "{text}");
    assert!(place.dp(&["explain"]).ok().contains("Terms: accountant, add-remove"));
    place.dp(&["explain", "magic"]).fails(2, "usage.unknown_code").says("codes and terms");
}
