//! Runs the binary in its own folder and captures standard output, standard error and exit code separately.
#![allow(dead_code)] // each test program uses a part

pub mod engine;
pub mod lists;
#[cfg(unix)]
pub mod postgres;
#[cfg(unix)]
pub mod training;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A temporary folder, and the `dp` that runs in it.
pub struct Workplace {
    folder: tempfile::TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Workplace {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a file in the temporary folder");
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the file")
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }

    /// Returns the names of all files, including hidden ones.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Returns the command, run in the folder with an environment that is the same on all machines.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dp"));
        command.current_dir(self.folder.path()).args(arguments);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a script of bash with the binary as `$0` and these arguments.
    pub fn in_bash(&self, script: &str, arguments: &[&str]) -> Run {
        let mut bash = Command::new("bash");
        bash.current_dir(self.path("")).args(["-c", script, env!("CARGO_BIN_EXE_dp")]).args(arguments);
        bash.stdin(Stdio::null()).output().expect("bash").into()
    }

    pub fn dp(&self, arguments: &[&str]) -> Run {
        self.command(arguments).stdin(Stdio::null()).output().expect("dp runs").into()
    }

    /// Runs with `input` on standard input.
    pub fn dp_with_input(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("dp runs");
        // Written on another thread, so that a full output pipe cannot block both sides. dp may stop reading early.
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("dp ends");
        writer.join().expect("the writer");
        output.into()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }
}

impl Run {
    /// Checks success and returns standard output.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:#?}");
        self.stdout
    }

    /// Checks success and returns the one JSON value on standard output.
    #[track_caller]
    pub fn json(self) -> Value {
        assert_eq!(self.code, 0, "{self:#?}");
        one_value(&self.stdout)
    }

    /// Checks a failure in text form: nothing on standard output, the code in brackets on standard error.
    #[track_caller]
    pub fn fails(&self, exit: i32, code: &str) -> &Self {
        assert_eq!(self.code, exit, "{self:#?}");
        assert!(self.stderr.contains(&format!("error[{code}]: ")), "expected error[{code}]: {self:#?}");
        assert!(self.stdout.is_empty(), "{self:#?}");
        assert!(code != "privacy.refused" || self.stderr.contains("\n  --> "), "it does not say where: {self:#?}");
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "stderr lacks {text:?}: {self:#?}");
        self
    }
}

/// Checks that the text is exactly one JSON value on one line.
#[track_caller]
pub fn one_value(stdout: &str) -> Value {
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert!(stdout.ends_with('\n'));
    serde_json::from_str(stdout).expect("one JSON value")
}

/// The random generator for test data: splitmix64.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws uniformly from [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Generates people with age, hours, trade and whether they earn well; a logistic model explains most of the label.
pub fn people(rows: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::from("age,hours,trade,earns\n");
    for _ in 0..rows {
        let age = 18 + dice.below(60);
        let hours = 10.0 + (dice.unit() * 500.0).round() / 10.0;
        let trade = ["baker", "clerk", "smith"][dice.below(3) as usize];
        let odds = (age as f64 - 45.0) / 8.0 + (hours - 35.0) / 8.0 + if trade == "smith" { 2.0 } else { -1.0 };
        let earns = dice.unit() < 1.0 / (1.0 + (-odds).exp());
        text.push_str(&format!("{age},{hours},{trade},{}\n", if earns { "yes" } else { "no" }));
    }
    text
}

pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

pub fn xz(content: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

/// Recomputes both hashes of a model or ranker, as someone hiding an edit would.
pub fn reseal(file: &mut Value) {
    file["certificate"]["model_sha256"] = dp::canonical::sha256(&file["model"]).into();
    file["certificate_sha256"] = dp::canonical::sha256(&file["certificate"]).into();
}

/// Returns a model file without the assumption that only a query has, and without the hash that covers it.
#[track_caller]
pub fn but_for_the_query(file: &str, source: &[&str]) -> Value {
    let mut file: Value = serde_json::from_str(file).expect("a model file");
    let assumptions = file["certificate"]["assumptions"].as_array_mut().expect("a list");
    let all = assumptions.len();
    assumptions.retain(|assumption| !assumption.to_string().contains("query_rows"));
    assert_eq!(all - assumptions.len(), usize::from(source.contains(&"--query")), "{source:?}");
    file["certificate_sha256"] = Value::Null;
    file
}

/// Says that a test does not run, past the capture of a test's output.
pub fn say_skipped(name: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
}

/// Returns whether a program is installed, for tests that need it.
pub fn has(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder: PathBuf| is_file(&folder.join(program))))
}

fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Returns an IDX file of bytes: its dimensions, then its content.
pub fn idx(lengths: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, lengths.len() as u8];
    lengths.iter().for_each(|length| file.extend(length.to_be_bytes()));
    file.extend(bytes);
    file
}
