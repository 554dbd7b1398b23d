//! Runs one case in a folder of its own and reports how it ended wrongly.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use dp_cli::commands::explain;
use serde_json::Value;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A panic, or an internal error.
    Panic,
    /// The process was killed by a signal that was not sent to it.
    Crash,
    /// The process continued after it was asked to end.
    Hang,
    /// An exit code that `dp help exit-codes` does not list, or the wrong one for the outcome.
    WrongExit,
    /// With `--json`, a failure without its one JSON value, or with a code unknown to `dp explain`.
    BadJson,
    /// A file wrongly changed, left or missing, or only partly written.
    Torn,
    /// Content of a record on standard output, or changed content that was accepted.
    Believed,
}

impl Fault {
    pub const ALL: [(Self, &str); 7] = [
        (Self::Panic, "panics"),
        (Self::Crash, "crashes"),
        (Self::Hang, "hangs"),
        (Self::WrongExit, "exits"),
        (Self::BadJson, "JSON"),
        (Self::Torn, "torn"),
        (Self::Believed, "believed"),
    ];
}

/// The ending of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Exit code 0.
    Succeeded,
    /// An error.
    Refused,
    /// An end on request.
    Interrupted,
    /// A kill.
    Killed,
}

/// The outcome of a case.
#[derive(Debug)]
pub struct Verdict {
    pub ending: Ending,
    pub faults: Vec<(Fault, String)>,
}

/// A run of `dp`.
#[derive(Debug, Default, Clone)]
pub struct Case {
    /// The program and arguments that `dp` is run under.
    pub under: Vec<String>,
    pub arguments: Vec<String>,
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files and folders that a success may leave.
    pub outputs: Vec<String>,
    /// Text that must not appear on standard output if the run fails.
    pub secret: Option<String>,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// True if the run was asked to end by a signal that can be caught.
    pub asked: bool,
    /// True if it did not end when asked to.
    pub hung: bool,
}

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

/// A signal and its time.
#[derive(Debug, Clone, Copy)]
pub struct Signal {
    pub after: Duration,
    /// `KILL`, `TERM`, `INT` or `HUP`.
    pub name: &'static str,
}

/// A folder in which cases run one after another.
pub struct Place {
    root: tempfile::TempDir,
    dp: PathBuf,
}

/// Time that a run may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(20);

impl Place {
    pub fn new(dp: &Path) -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        Self { root, dp: dp.to_owned() }
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Puts the files of a case into the emptied folder.
    pub fn prepare(&self, files: &BTreeMap<String, Vec<u8>>) {
        let work = self.work();
        if work.exists() {
            fs::remove_dir_all(&work).expect("the folder goes");
        }
        fs::create_dir(&work).expect("a folder");
        for (name, content) in files {
            let path = work.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
    }

    /// Returns all files in the folder.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        gather(&self.work(), "", &mut found);
        found
    }

    /// Runs in the folder as it is. Without a `signal`, a run is asked to end after `patience`.
    pub fn run(&self, under: &[String], arguments: &[String], signal: Option<Signal>, patience: Duration) -> Ran {
        let mut words = under.iter().map(String::as_str).chain([self.dp.to_str().expect("a path in UTF-8")]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).args(arguments).current_dir(self.work());
        command.env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", command.get_program()));
        // Read on other threads, so that a full pipe does not block.
        let stdout = reader(child.stdout.take().expect("a pipe"));
        let stderr = reader(child.stderr.take().expect("a pipe"));
        let signal = signal.unwrap_or(Signal { after: patience, name: "TERM" });
        let (mut asked, mut hung) = (false, false);
        let status = wait(&mut child, signal.after).unwrap_or_else(|| {
            if signal.name == "KILL" {
                child.kill().expect("a process to kill");
                return child.wait().expect("the process ends");
            }
            asked = send(&child, signal.name);
            wait(&mut child, GRACE).unwrap_or_else(|| {
                hung = true;
                child.kill().expect("a process to kill");
                child.wait().expect("the process ends")
            })
        });
        let all = |reader: std::thread::JoinHandle<Vec<u8>>| reader.join().expect("the reader");
        Ran { status, stdout: all(stdout), stderr: all(stderr), asked, hung }
    }

    /// Runs a case and judges it.
    pub fn judge(&self, case: &Case, patience: Duration) -> (Ran, Verdict) {
        self.prepare(&case.files);
        let ran = self.run(&case.under, &case.arguments, None, patience);
        let mut faults = how_it_ended(&ran);
        faults.extend(json(case, &ran));
        faults.extend(self.left(case, &ran));
        if let Some(secret) = &case.secret
            && ran.code() != Some(0)
            && contains(&ran.stdout, secret)
        {
            faults.push((Fault::Believed, format!("stdout holds the cell {secret}")));
        }
        let said = format!("{} {}", case.under.join(" "), case.arguments.join(" "));
        faults.iter_mut().for_each(|fault| fault.1 = format!("{} [{}]", fault.1, said.trim_start()));
        let ending = ending(&ran);
        (ran, Verdict { ending, faults })
    }

    /// Returns the faults in the files that a case left.
    fn left(&self, case: &Case, ran: &Ran) -> Vec<(Fault, String)> {
        let now = self.files();
        let mut faults = Vec::new();
        for (name, content) in &case.files {
            let output = case.outputs.contains(name) && ran.code() == Some(0);
            match now.get(name) {
                None => faults.push((Fault::Torn, format!("{name} is gone"))),
                Some(found) if found != content && !output => faults.push((Fault::Torn, format!("{name} has changed"))),
                Some(_) => {}
            }
        }
        for name in now.keys().filter(|name| !case.files.contains_key(*name)) {
            let expected = case.outputs.iter().any(|output| output == name || name.starts_with(&format!("{output}/")));
            if ran.code() != Some(0) || !expected {
                faults.push((Fault::Torn, format!("{name} was left, exit {:?}", ran.code())));
            }
        }
        faults
    }

    /// Keeps the folder of a failed case.
    pub fn keep(&self, to: &Path) {
        let _ = fs::remove_dir_all(to);
        for (name, content) in self.files() {
            let path = to.join(name);
            let _ = fs::create_dir_all(path.parent().expect("a folder")).and_then(|()| fs::write(path, content));
        }
    }
}

/// Reads a pipe to its end, on its own thread.
fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe that can be read");
        bytes
    })
}

fn gather(folder: &Path, before: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            gather(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, fs::read(entry.path()).unwrap_or_default());
        }
    }
}

fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait().expect("a process to wait for") {
            return Some(status);
        }
        let left = patience.checked_sub(start.elapsed())?;
        std::thread::sleep(pause.min(left));
        pause = (2 * pause).min(Duration::from_millis(10));
    }
}

/// Sends a signal, if the process still exists.
fn send(child: &Child, signal: &str) -> bool {
    let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    kill.is_ok_and(|status| status.success())
}

pub fn contains(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part == word.as_bytes())
}

pub fn ending(ran: &Ran) -> Ending {
    match ran.code() {
        Some(0) => Ending::Succeeded,
        Some(130) if ran.asked => Ending::Interrupted,
        None => Ending::Killed,
        Some(_) => Ending::Refused,
    }
}

/// Returns panics, crashes, hangs and unknown exit codes.
pub fn how_it_ended(ran: &Ran) -> Vec<(Fault, String)> {
    let stderr = String::from_utf8_lossy(&ran.stderr);
    let panic = stderr.lines().find(|line| line.contains("panicked at"));
    if let Some(line) = panic {
        return vec![(Fault::Panic, line.to_owned())];
    }
    let wrong = ["account.failed", "audit.failed"].iter().find(|code| {
        contains(&ran.stdout, &format!("\"code\":\"{code}\"")) || stderr.contains(&format!("error[{code}]"))
    });
    if let Some(code) = wrong {
        return vec![(Fault::Panic, format!("{code}: the program says that it is wrong"))];
    }
    if ran.hung {
        return vec![(Fault::Hang, "it did not end when it was asked to".to_owned())];
    }
    match ran.code() {
        Some(0..=5) => vec![],
        Some(130) if ran.asked => vec![],
        Some(code) => vec![(Fault::WrongExit, format!("exit code {code}"))],
        None => vec![(Fault::Crash, format!("{}", ran.status))],
    }
}

/// Checks that with `--json` a failure is one JSON value with a known code.
fn json(case: &Case, ran: &Ran) -> Option<(Fault, String)> {
    static CODES: LazyLock<HashSet<&str>> = LazyLock::new(|| explain::pages().iter().map(|page| page.code).collect());
    let asked = case.arguments.iter().any(|word| word == "--json");
    let has_results = |word: &str| matches!(word, "batch" | "verify" | "audit");
    if !asked || !matches!(ran.code(), Some(1..=5 | 130)) || case.arguments.iter().any(|word| has_results(word)) {
        return None;
    }
    let fault = |what: String| Some((Fault::BadJson, what));
    match serde_json::from_slice::<Value>(&ran.stdout) {
        Err(error) => fault(format!("stdout is not one JSON value: {error}")),
        Ok(value) => match value["error"]["code"].as_str() {
            Some(code) if CODES.contains(code) => None,
            code => fault(format!("`dp explain` does not know the code {code:?}")),
        },
    }
}
