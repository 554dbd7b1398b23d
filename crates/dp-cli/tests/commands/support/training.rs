//! A training that a signal ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::Workplace;

/// A running training, of which the standard error was read up to the first report of its progress.
pub struct Training {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

/// Returns the names of the signals that end a command. A background job of a script is started to ignore Ctrl-C, and so are its
/// children.
pub fn signals() -> &'static [&'static str] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    if ignored.is_some_and(|mask| mask & 2 != 0) { &["TERM"] } else { &["INT", "TERM"] }
}

/// Starts a training and waits until it has made a step.
pub fn start(place: &Workplace, train: &[&str]) -> Training {
    let mut command = place.command(&[train, &["--progress", "json", "--json"]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (mut line, mut all) = (String::new(), String::new());
    while !line.contains("\"phase\":\"train\"") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "training never started: {all}");
        all.push_str(&line);
    }
    Training { child, stderr }
}

impl Training {
    /// Sends a signal, and returns the exit status, standard output and the rest of standard error.
    pub fn end_by(mut self, signal: &str) -> (ExitStatus, String, String) {
        let kill = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let reader = std::thread::spawn(move || {
            let mut rest = String::new();
            self.stderr.read_to_string(&mut rest).unwrap();
            rest
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    self.child.kill().unwrap();
                    panic!("dp did not react to {signal}");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        (status, stdout, reader.join().unwrap())
    }
}
