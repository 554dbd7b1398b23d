//! A program that answers lines.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::of_runner;
use crate::sums::Failed;

/// Largest length of an answer in bytes.
const LONGEST: u64 = 1 << 20;
/// Time for a program to end by itself.
const FAREWELL: Duration = Duration::from_secs(5);

/// The program that runs, and whether no other may be started.
#[derive(Default)]
pub(super) struct Running {
    ended: AtomicBool,
    child: Mutex<Option<Child>>,
}

impl Running {
    /// Ends the program, for good. Usable on any thread.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.stop(Duration::ZERO);
    }

    /// Ends the program unless it ends by itself within this time.
    fn stop(&self, patience: Duration) {
        let Some(mut child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        if !ends_within(&mut child, patience) && (!ask_to_end(&child) || !ends_within(&mut child, FAREWELL)) {
            kill(&mut child);
        }
        // It leaves no entry in the system's table.
        let _ = child.wait();
    }
}

fn ends_within(child: &mut Child, patience: Duration) -> bool {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(None) if start.elapsed() < patience => thread::sleep(Duration::from_millis(10)),
            ended => return matches!(ended, Ok(Some(_))),
        }
    }
}

/// Asks the program, and what it started, to end. Its process identifier is not reused, as nobody has waited for its end yet.
#[cfg(unix)]
fn ask_to_end(child: &Child) -> bool {
    use rustix::process::{Pid, Signal, kill_process_group};
    kill_process_group(Pid::from_child(child), Signal::TERM).is_ok()
}

#[cfg(not(unix))]
fn ask_to_end(_: &Child) -> bool {
    false
}

#[cfg(unix)]
fn kill(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(not(unix))]
fn kill(child: &mut Child) {
    let _ = child.kill();
}

/// A program that runs; it ends when this is dropped.
pub(super) struct Process {
    running: Arc<Running>,
    questions: Option<Sender<String>>,
    answers: Receiver<io::Result<String>>,
}

impl Process {
    /// Starts a program, in a group of its own, so that a signal to this one does not reach it first.
    pub(super) fn start(words: &[String], running: Arc<Running>) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let (stdin, stdout) = {
            // Whoever ends it waits until it is known.
            let mut known = running.child.lock().unwrap_or_else(PoisonError::into_inner);
            if running.ended.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let mut child = command.spawn()?;
            let pipes = (child.stdin.take(), child.stdout.take());
            *known = Some(child);
            pipes
        };
        let (questions, asked) = mpsc::channel::<String>();
        let (answer, answers) = mpsc::channel();
        // A program that reads nothing does not block its caller.
        thread::spawn(move || {
            let Some(mut stdin) = stdin else { return };
            for question in asked {
                if writeln!(stdin, "{question}").and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || {
            let Some(stdout) = stdout else { return };
            let mut stdout = BufReader::new(stdout);
            loop {
                let line = next_line(&mut stdout);
                let is_last = !matches!(line, Ok(Some(_)));
                if line.transpose().is_none_or(|line| answer.send(line).is_err()) || is_last {
                    return;
                }
            }
        });
        Ok(Self { running, questions: Some(questions), answers })
    }

    pub(super) fn send(&self, line: String) {
        // A program that has ended shows at its answer.
        let _ = self.questions.as_ref().map(|questions| questions.send(line));
    }

    /// Returns the next line.
    pub(super) fn receive(&self, patience: Duration) -> Result<String, Failed> {
        let failed = |what: &str, may_pass: bool| Err(Failed { error: of_runner(what), may_pass });
        match self.answers.recv_timeout(patience) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(_)) => failed("its answer is not one of the protocol", false),
            Err(RecvTimeoutError::Disconnected) => {
                failed("it ended before it answered", !self.running.ended.load(Ordering::SeqCst))
            }
            Err(RecvTimeoutError::Timeout) => {
                // It would not end by itself.
                self.running.stop(Duration::ZERO);
                failed(&format!("it gave no answer for {} s", patience.as_secs()), true)
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends it, within a statement too.
        self.questions = None;
        self.running.stop(FAREWELL);
    }
}

/// Returns a line; `None` at the end of the input, also for a line that it cuts off.
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    reader.take(LONGEST).read_line(&mut line)?;
    if line.len() as u64 >= LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(line.ends_with('\n').then_some(line))
}
