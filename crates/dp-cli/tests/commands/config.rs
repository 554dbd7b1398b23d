//! `--config` and `--print-config`: flags from a file.

use serde_json::Value;

use crate::support::{Workplace, people};

const CONFIG: &str = "\
json = true

[train]
data = 'people.csv'
label = 'earns'
positive = 'yes'
schema-from-data = true
epsilon = 1
delta = 1e-6
algorithm = 'dp-sgd'
batch-size = 50
out = 'm.json'
force = true

[predict]
id = ['age', 'trade']

[account.dpsgd]
noise-multiplier = 1.1
sampling-rate = 0.01
steps = 100
delta = 1e-5
";

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("people.csv", people(600, 4));
    place.write("dp.toml", CONFIG);
    place
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn a_file_gives_the_flags_that_are_not_typed() {
    let place = place();
    let trained = place.dp(&words("train --config dp.toml")).json();
    assert_eq!((&trained["algorithm"], &trained["delta"]), (&"dp-sgd".into(), &1e-6.into()));
    assert_eq!(place.json("m.json")["certificate"]["derivation"]["recipe"]["batch_size"], 50);
    // A flag wins, wherever `--config` stands.
    for typed in
        ["train --config dp.toml --algorithm bolt-on-convex", "--config dp.toml train --algorithm bolt-on-convex"]
    {
        assert_eq!(place.dp(&words(typed)).json()["algorithm"], "bolt-on-convex");
    }
    // Lists and flags of commands below commands.
    place.dp(&words("train --config dp.toml --out p.json")).json();
    let lines = place.dp(&words("predict --model p.json --data people.csv --out s.csv --config dp.toml")).json();
    assert_eq!(lines["n"], 600);
    assert!(place.read("s.csv").starts_with("age,trade,score,"));
    let epsilon = |more: &str| {
        let typed = format!("account dpsgd --config dp.toml{more}");
        place.dp(&words(&typed)).json()["epsilon"].as_f64().unwrap()
    };
    assert!(epsilon(" --steps 200") > epsilon(""));
    // What contradicts a flag is left out: the schema of the command line in place of that from the data.
    let draft = place.dp(&words("schema people.csv --label earns --positive yes")).ok();
    place.write("s.toml", draft.replace("reviewed = false", "reviewed = true"));
    let reviewed = place.dp(&words("train --config dp.toml --schema s.toml")).json();
    assert_eq!(reviewed["assumed_public"], Value::Array(Vec::new()));
    // Nothing behind `--` is a flag.
    assert_eq!(place.dp(&["train", "--config", "dp.toml", "--", "more"]).code, 2);
}

#[test]
fn a_printed_file_repeats_the_run() {
    let place = place();
    let typed = "train --data people.csv --label earns --positive yes --schema-from-data --epsilon 0.5 --seed 3 \
                 --algorithm bolt-on-convex --passes 2 --json --out a.json";
    place.dp(&words(typed)).json();
    let printed = place.dp(&words(&format!("{typed} --print-config"))).json();
    assert_eq!(printed["schema"], "dp.config/1");
    let text = printed["text"].as_str().unwrap();
    assert!(text.contains("[train]") && text.contains("epsilon = 0.5") && !text.contains("print-config"), "{text}");
    place.write("again.toml", text);
    place.dp(&words("train --config again.toml --out b.json")).json();
    assert_eq!(place.json("a.json"), place.json("b.json"));
    // Printing it again changes nothing, and neither runs nor writes.
    let again = place.dp(&words("train --config again.toml --print-config")).json();
    assert_eq!(again["text"].as_str().unwrap(), text);
    assert!(place.dp(&words("train --config again.toml --out c.json --print-config")).code == 0);
    // Help has no flags of its own, and is shown.
    let help = place.dp(&words("help train")).ok();
    assert_eq!(place.dp(&words("help train --print-config")).ok(), help);
    assert!(!place.files().contains(&"c.json".to_owned()));
    // Texts that look like numbers stay texts.
    let label = place.dp(&words("train --config again.toml --positive 1.0 --negative 007 --print-config")).json();
    let text = label["text"].as_str().unwrap();
    assert!(text.contains("positive = \"1.0\"") && text.contains("negative = \"007\""), "{text}");
}

#[test]
fn a_wrong_file_is_refused_with_its_line_or_key() {
    let place = place();
    for (text, code, says) in [
        ("epsilom = 1", "config.key", "epsilom"),
        ("epsilon = 1", "config.key", "put it below the table of its command: "),
        ("[account]\nnoise-multiplier = 1", "config.key", ": [account.dpsgd]"),
        ("[train]\nepsilom = 1", "config.key", "did you mean `epsilon`?"),
        ("[trian]\nepsilon = 1", "config.key", "did you mean `train`?"),
        ("[train]\nconfig = 'x'", "config.key", "train.config"),
        ("[predict]\nepsilon = 1", "config.key", "predict.epsilon"),
        ("help = true", "config.key", "there is no flag `help`"),
        ("[train]\nepsilon = 1\nx = [", "config.syntax", "line 3"),
        ("[train]\nforce = 'yes'", "config.value", "true or false"),
        ("[train]\nepsilon = { a = 1 }", "config.value", "train.epsilon"),
        ("[train]\nout = 1979-05-27", "config.value", "out"),
        ("verbose = 1000", "config.value", "from 0 to 9"),
    ] {
        place.write("wrong.toml", text);
        let run = place.dp(&words("train --config wrong.toml --data people.csv"));
        run.fails(2, code).says(says);
    }
    place.write("wrong.toml", b"a = '\xff'");
    place.dp(&words("train --config wrong.toml")).fails(2, "config.syntax").says("UTF-8");
    place.dp(&words("train --config nowhere.toml")).fails(2, "config.read").says("nowhere.toml");
    place.dp(&words("train --config -")).fails(2, "config.read").says("standard input");
    let json = place.dp(&words("train --config nowhere.toml --json"));
    let error: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.code, &error["error"]["code"]), (2, &"config.read".into()));
    // A value that the flag does not take is one of the file, unless the flag is typed.
    place.write("wrong.toml", "[train]\nepsilon = 'much'");
    let run = place.dp(&words("train --config wrong.toml --data people.csv --out m.json"));
    run.fails(2, "config.value").says("wrong.toml").says("--epsilon");
    // Of the environment, beside a file.
    place.write("right.toml", "[train]\nepsilon = 1");
    let mut of_environment = place.command(&words("train --config right.toml --data people.csv --out m.json"));
    let run = of_environment.env("DP_THREADS", "many").output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.code() == Some(2) && said.contains("--threads") && !said.contains("right.toml"), "{said}");
    let typed = place.dp(&words("train --config wrong.toml --data people.csv --out m.json --epsilon many"));
    assert!(typed.code == 2 && typed.stderr.contains("'many'") && !typed.stderr.contains("wrong.toml"), "{typed:?}");
}

/// TOML holds no name that is not UTF-8: another would be printed.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_not_printed() {
    use std::os::unix::ffi::OsStrExt;
    let place = place();
    let name = std::ffi::OsStr::from_bytes(b"rows\xff.csv");
    let mut command = place.command(&["train", "--epsilon", "1", "--out", "m.json", "--print-config", "--data"]);
    let run: crate::support::Run = command.arg(name).output().unwrap().into();
    run.fails(2, "config.value").says("--data");
    assert_eq!(run.stdout, "");
}
