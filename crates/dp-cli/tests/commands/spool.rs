//! Rows beyond the memory that `--memory` allows: the same models, and no file that outlives the process.

use std::process::Stdio;

use crate::support::{Dice, Workplace, gzip, people};

const PRIVATE: [&str; 6] = ["--epsilon", "1", "--delta", "1e-6", "--out", "m.json"];

/// Tables, sparse lines, images and classes, of a few blocks each.
fn place() -> Workplace {
    let place = Workplace::new();
    std::fs::create_dir(place.path("spool")).unwrap();
    place.write("people.csv", people(20_000, 4));
    place.write("people.csv.gz", gzip(people(20_000, 4).as_bytes()));
    let mut dice = Dice(7);
    let line = |dice: &mut Dice| {
        let (a, b) = (1 + dice.below(30), 31 + dice.below(30));
        format!("{} {a}:0.5 {b}:{:.2}\n", if a < 12 { "+1" } else { "-1" }, dice.unit())
    };
    place.write("lines.libsvm", (0..20_000).map(|_| line(&mut dice)).collect::<String>());
    place
}

fn train(place: &Workplace, arguments: &str, more: &[&str]) -> String {
    let words = arguments.split(' ').chain(["--seed", "3", "--force"]);
    let all: Vec<&str> = ["train"].into_iter().chain(words).chain(PRIVATE).chain(more.iter().copied()).collect();
    let run = place.dp(&all);
    let spools = more.contains(&"--memory");
    assert_eq!(run.stderr.contains("temporary file in"), spools, "{run:?}");
    run.ok();
    place.read("m.json")
}

#[test]
fn models_have_the_same_bits_in_memory_and_beyond() {
    let place = place();
    let table = "--data people.csv --label earns --schema-from-data";
    for (arguments, spool) in [
        (format!("{table} --algorithm auto"), &["--memory", "10kB"][..]),
        (format!("{table} --algorithm auto --curves 3 --threads 2"), &["--memory", "1MiB"]),
        (format!("{table} --algorithm bolt-on-convex"), &["--memory", "0"]),
        (format!("{table} --algorithm dp-sgd --float f32"), &["--memory", "100kB", "--spool-encrypted"]),
        (format!("{table} --algorithm dp-gd --project gaussian:5 --project-seed 1"), &["--memory", "100kB"]),
        ("--data lines.libsvm --algorithm auto".to_owned(), &["--memory", "100kB"]),
        ("--data lines.libsvm --dim 70 --algorithm scs13".to_owned(), &["--memory", "100kB"]),
    ] {
        let in_memory = train(&place, &arguments, &[]);
        let spooled = train(&place, &arguments, &[spool, &["--spool", "spool"]].concat());
        assert!(in_memory == spooled, "{arguments}");
        assert!(std::fs::read_dir(place.path("spool")).unwrap().next().is_none());
    }
    let from_gzip =
        train(&place, &format!("{} --algorithm auto", table.replace(".csv", ".csv.gz")), &["--memory", "0"]);
    assert!(from_gzip == train(&place, &format!("{table} --algorithm auto"), &[]));
}

#[test]
fn tuned_models_too() {
    let place = place();
    place.write("public.csv", people(3000, 9));
    for method in [
        "--method portions",
        "--method composition",
        "--method random-stopping --trials 2",
        "--method public --public public.csv",
    ] {
        let tune = |more: &[&str]| {
            let arguments = "tune --data people.csv --label earns --schema-from-data --algorithm bolt-on-convex --passes 1,3 \
                             --seed 3 --force ";
            let arguments = format!("{arguments}{method}");
            let all: Vec<&str> = arguments.split(' ').chain(PRIVATE).chain(more.iter().copied()).collect();
            place.dp(&all).ok();
            place.read("m.json")
        };
        assert!(tune(&[]) == tune(&["--memory", "20kB"]), "{method}");
    }
}

#[test]
fn what_cannot_be_spooled_is_said() {
    let place = place();
    let before = place.files();
    fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["train", "--data", "people.csv", "--label", "earns", "--schema-from-data"], &PRIVATE[..], more].concat()
    }
    place.dp(&with(&["--spool", "nowhere"])).fails(1, "spool.folder").says("--spool").says("nowhere");
    place.dp(&with(&["--spool", "people.csv"])).fails(1, "spool.folder");
    for size in ["--memory=much", "--memory=-1", "--memory=4 GiBs"] {
        let run = place.dp(&with(&[size]));
        assert!(run.code == 2 && run.stderr.contains("--memory"), "{run:?}");
    }
    // The folder of the system is asked only if it is needed.
    let elsewhere = |more: &[&str]| {
        let mut command = place.command(&with(more));
        command.env("TMPDIR", place.path("nowhere")).output().unwrap()
    };
    assert_eq!(elsewhere(&[]).status.code(), Some(0));
    let refused = elsewhere(&["--memory", "1kB", "--force"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("error[spool.folder]"), "{refused:?}");
    std::fs::remove_file(place.path("m.json")).unwrap();
    assert_eq!(place.files(), before);
}

/// A full disk: a limit on the size of files.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let place = place();
    if !crate::support::has("bash") {
        eprintln!("SKIPPED: no bash to limit the size of files");
        return;
    }
    let before = place.files();
    // Blocks of 1024 bytes: not enough for the rows.
    let script = "ulimit -f 500; exec \"$0\" train --data people.csv --label earns --schema-from-data --memory 1kB --spool spool \
                  --epsilon 1 --delta 1e-6 --out m.json --algorithm bolt-on-convex";
    place.in_bash(script, &[]).fails(1, "spool.write").says("`spool`");
    assert_eq!(place.files(), before);
    assert!(std::fs::read_dir(place.path("spool")).unwrap().next().is_none());
}

/// A process that is killed while its spool is being filled leaves no file.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_process_leaves_nothing() {
    use std::io::Write as _;
    let place = place();
    place.write(
        "schema.toml",
        "label = { column = 'earns', positive = 'yes', negative = 'no' }\n\
         columns.age = { type = 'numeric', min = 18, max = 78 }\n\
         columns.hours = { type = 'numeric', min = 10, max = 60 }\n\
         columns.trade = { type = 'categorical', categories = ['baker', 'clerk', 'smith'] }\n",
    );
    let before = place.files();
    let arguments = "train --data - --schema schema.toml --memory 1kB --spool spool";
    let words: Vec<&str> = arguments.split(' ').collect();
    let mut command = place.command(&[&words[..], &PRIVATE].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(people(20_000, 4).as_bytes()).unwrap();
    input.flush().unwrap();
    // Open files without a name are listed by the system.
    let folder = format!("/proc/{}/fd", child.id());
    let has_file = || {
        std::fs::read_dir(&folder).is_ok_and(|mut files| {
            files.any(|file| {
                let target = file.and_then(|file| std::fs::read_link(file.path()));
                target.is_ok_and(|target| target.to_string_lossy().contains("/spool/"))
            })
        })
    };
    let started = std::time::Instant::now();
    while !has_file() && started.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(has_file(), "no temporary file was opened: {:?}", child.try_wait());
    assert!(std::fs::read_dir(place.path("spool")).unwrap().next().is_none(), "it has no name");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.files(), before);
    assert!(std::fs::read_dir(place.path("spool")).unwrap().next().is_none());
}
