//! `--threads` and `DP_THREADS`: what they accept, and that no bit of a model depends on them.

use crate::support::{Dice, Workplace};

const SCHEMA: &str = "\
[label]
column = 'y'
classes = ['a', 'b', 'c']
[columns.u]
type = 'numeric'
min = 0
max = 1
[columns.v]
type = 'numeric'
min = 0
max = 1
[columns.w]
type = 'numeric'
min = 0
max = 1
";

/// Enough records for several threads: the large blocks of training have 2^18 numbers and more.
fn place() -> Workplace {
    let place = Workplace::new();
    let mut dice = Dice(5);
    let mut text = "u,v,w,y\n".to_owned();
    for _ in 0..12_000 {
        let [u, v, w] = [(); 3].map(|()| dice.unit());
        let class = if dice.unit() < 0.1 || (u - 0.5).abs() < 0.2 {
            'a'
        } else if v > w {
            'b'
        } else {
            'c'
        };
        text += &format!("{u:.3},{v:.3},{w:.3},{class}\n");
    }
    place.write("train.csv", text);
    place.write("schema.toml", SCHEMA);
    place.write("two.toml", SCHEMA.replace("classes = ['a', 'b', 'c']", "positive = 'a'\nnegative = ['b', 'c']"));
    place
}

#[test]
fn models_have_the_same_bits_on_any_number_of_threads() {
    let place = place();
    let train = |schema: &str, algorithm: &str, threads: &str| {
        let arguments = "train --data train.csv --curves 8 --seed 3 --out m.json --force";
        let mut arguments: Vec<&str> = arguments.split(' ').collect();
        if algorithm != "non-private" {
            arguments.extend(["--epsilon", "1", "--delta", "1e-6"]);
        }
        arguments.extend(["--schema", schema, "--algorithm", algorithm, "--threads", threads]);
        place.dp(&arguments).ok();
        place.read("m.json")
    };
    for (schema, algorithm) in [
        ("two.toml", "auto"),
        ("two.toml", "obj-pert"),
        ("two.toml", "non-private"),
        ("two.toml", "noisy-moments"),
        ("two.toml", "dp-gd"),
        ("two.toml", "dp-newton"),
        ("schema.toml", "auto"),
        ("schema.toml", "dp-gd"),
    ] {
        let one = train(schema, algorithm, "1");
        for threads in ["2", "3", "8"] {
            assert!(train(schema, algorithm, threads) == one, "{algorithm} {schema} on {threads} threads");
        }
    }
}

/// Trainings that run side by side, of rows in memory and of a temporary file.
#[test]
fn several_models_have_the_same_bits_on_any_number_of_threads() {
    let place = place();
    let train = |arguments: &str, threads: &str| {
        let usual = "--data train.csv --seed 3 --out m.json --force --epsilon 2 --delta 1e-6 --threads";
        let arguments: Vec<&str> = arguments.split(' ').chain(usual.split(' ')).chain([threads]).collect();
        place.dp(&arguments).ok();
        place.read("m.json")
    };
    for arguments in [
        "train --schema schema.toml --algorithm dp-sgd --one-vs-all composed --batch-size 100",
        "train --schema schema.toml --algorithm obj-pert --one-vs-all split",
        "train --schema schema.toml --algorithm bolt-on-convex --one-vs-all joint",
        "tune --schema two.toml --algorithm dp-sgd --batch-size 50,100,200",
        "tune --schema two.toml --algorithm bolt-on-strongly-convex --lambda 0.1,0.01 --method random-stopping",
        "tune --schema two.toml --algorithm bolt-on-strongly-convex --lambda 0.1,0.01 --method composition",
    ] {
        let one = train(arguments, "1");
        for threads in ["2", "3", "8"] {
            assert!(train(arguments, threads) == one, "{arguments} on {threads} threads");
        }
        let beyond = format!("{arguments} --memory 100kB");
        assert!(train(&beyond, "3") == one, "{beyond}");
    }
}

#[test]
fn scores_and_figures_are_the_same_on_any_number_of_threads() {
    let place = place();
    let train =
        "train --data train.csv --schema two.toml --epsilon 1 --delta 1e-6 --algorithm auto --curves none --out m.json";
    place.dp(&train.split(' ').collect::<Vec<_>>()).ok();
    let (header, rows) = place.read("train.csv").split_once('\n').map(|(a, b)| (a.to_owned(), b.repeat(4))).unwrap();
    place.write("new.csv", format!("{header}\n{rows}"));
    let run = |command: &str, threads: &str| {
        let arguments = [command, "--model", "m.json", "--data", "new.csv", "--threads", threads];
        place.dp(&arguments).ok()
    };
    for command in ["predict", "evaluate"] {
        let one = run(command, "1");
        assert!(command != "predict" || one.lines().count() == 48_001);
        for threads in ["2", "3"] {
            assert!(run(command, threads) == one, "{command} on {threads} threads");
        }
    }
}

#[test]
fn a_number_of_threads_is_checked_wherever_it_comes_from() {
    let place = Workplace::new();
    for threads in ["0", "-1", "1025", "two", "1.5", ""] {
        let run = place.dp(&["schema", "t.csv", "--threads", threads]);
        assert!(run.code == 2 && run.stderr.contains("--threads"), "{run:?}");
        let mut command = place.command(&["schema", "t.csv"]);
        let run = command.env("DP_THREADS", threads).output().unwrap();
        let errors = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.code() == Some(2) && errors.contains("--threads"), "{errors}");
    }
    let run = place.command(&["schema", "t.csv"]).env("DP_THREADS", "2").output().unwrap();
    assert!(String::from_utf8(run.stderr).unwrap().contains("t.csv"), "the missing file is the error");
}
