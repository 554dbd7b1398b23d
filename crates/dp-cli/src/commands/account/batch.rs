//! `dp account batch`: JSON lines in, JSON lines out, in order, on all cores, in bounded memory.
//!
//! One thread reads, several answer, and this one writes. Each line takes a place in a bounded queue before it is answered,
//! and the writer takes the places in order. So a slow answer blocks neither the other workers nor, beyond the length of the
//! queue, the memory. If no threads can be started, this thread does everything.

use dp::accounting::{Line, Question, Refusal, solve};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use dp_data::Workers;
use serde_json::Value;

use crate::args::BatchArgs;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::{TextLine, read_line};
use crate::interrupt;
use crate::limit::{self, Limited};
use crate::output::{Console, STANDARD_OUTPUT, write_failure};

/// Largest length of a line in bytes.
pub const LONGEST_LINE: usize = 4 << 20;

/// Number of queued lines per thread.
const AHEAD: usize = 16;

/// The reply to one line.
struct Reply {
    text: String,
    answered: bool,
}

/// A line with its number and the channel for its answer.
struct Task {
    number: u64,
    bytes: Option<Vec<u8>>,
    place: SyncSender<Reply>,
}

/// An element of the queue: the place of a numbered line's answer, or the error that ended the input.
type Place = Result<(u64, Receiver<Reply>), Failure>;

/// Answers all lines.
///
/// # Errors
/// Input that cannot be read, or standard output that cannot be written.
pub fn execute(args: &BatchArgs, workers: Workers, console: &Console) -> Result<ExitStatus, Failure> {
    limit::check(args.limit)?;
    let input: Box<dyn Read + Send> = match &*args.file {
        "-" => Box::new(io::stdin()),
        name => Box::new(File::open(&args.file).map_err(|error| unreadable(&error).at_file(name))?),
    };
    let name = if &*args.file == "-" { "standard input".to_owned() } else { String::from(&args.file) };
    let threads = workers.threads().min(64);
    interrupt::await_json(false);
    let (answered, failed) = match start(input, name, threads, args.limit) {
        Ok(places) => write_all(&places)?,
        Err(lines) => answer_alone(lines, args.limit)?,
    };
    if failed == 0 {
        return Ok(ExitStatus::Success);
    }
    let all = answered + failed;
    console.warn(&format!("{failed} of {all} questions were answered with an error"));
    Ok(ExitStatus::Input)
}

/// Starts the threads that read and answer. Returns the places of the answers in the order of the lines, or the lines if no
/// threads could be started.
///
/// The threads end when the input ends or when the receiver of the answers is dropped.
fn start(input: Box<dyn Read + Send>, name: String, threads: usize, limit: f64) -> Result<Receiver<Place>, Lines> {
    let (place, places) = sync_channel(threads * AHEAD);
    let (task, tasks) = channel();
    let tasks = Arc::new(Mutex::new(tasks));
    // A value moved to a thread that fails to start is lost.
    let lines = Arc::new(Mutex::new(Some(Lines::new(input, name))));
    let take = |lines: &Mutex<Option<Lines>>| lines.lock().unwrap_or_else(PoisonError::into_inner).take();
    let work_on = |tasks: Arc<Mutex<_>>| thread::Builder::new().spawn(move || work(&tasks, limit)).is_ok();
    let any = (0..threads).map(|_| work_on(Arc::clone(&tasks))).take_while(|started| *started).count() > 0;
    let moved = Arc::clone(&lines);
    let reading = move || {
        if let Some(lines) = take(&moved) {
            read(lines, &place, &task);
        }
    };
    if any && thread::Builder::new().spawn(reading).is_ok() {
        return Ok(places);
    }
    take(&lines).map_or(Ok(places), Err)
}

/// Reads the lines and requests an answer for each.
fn read(lines: Lines, places: &SyncSender<Place>, tasks: &Sender<Task>) {
    for line in lines {
        let (number, bytes) = match line {
            Ok(line) => line,
            Err(failure) => {
                // Fails only if the receiver is gone.
                let _ = places.send(Err(failure));
                return;
            }
        };
        let (place, reply) = sync_channel(1);
        if places.send(Ok((number, reply))).is_err() || tasks.send(Task { number, bytes, place }).is_err() {
            return;
        }
    }
}

/// The non-blank lines with their numbers; a line that is too long comes without content. An error ends the iteration.
struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    name: String,
    number: u64,
    ended: bool,
}

impl Lines {
    fn new(input: Box<dyn Read + Send>, name: String) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, input), name, number: 0, ended: false }
    }
}

impl Iterator for Lines {
    type Item = Result<(u64, Option<Vec<u8>>), Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let place = (self.name.as_str(), self.number + 1);
            let bytes = match read_line(&mut self.reader, LONGEST_LINE, place, unreadable) {
                Ok(TextLine::End) => break,
                Ok(TextLine::Whole(bytes)) => Some(bytes),
                Ok(TextLine::TooLong) => None,
                Err(failure) => {
                    self.ended = true;
                    return Some(Err(failure));
                }
            };
            self.number += 1;
            let bytes = bytes.map(|bytes| if self.number == 1 { without_mark(bytes) } else { bytes });
            if !bytes.as_ref().is_some_and(|bytes| bytes.trim_ascii().is_empty()) {
                return Some(Ok((self.number, bytes)));
            }
        }
        self.ended = true;
        None
    }
}

/// Strips the byte order mark from the first line.
fn without_mark(bytes: Vec<u8>) -> Vec<u8> {
    bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes)
}

/// Answers tasks until none are left.
fn work(tasks: &Mutex<Receiver<Task>>, limit: f64) {
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Task { number, bytes, place }) = task else { return };
        // Fails only if the writer has stopped after a closed pipe.
        let _ = place.send(reply(number, bytes.as_deref(), limit));
    }
}

/// Answers line by line on this thread, each before reading the next.
fn answer_alone(lines: Lines, limit: f64) -> Result<(u64, u64), Failure> {
    let mut out = io::stdout().lock();
    let (mut answered, mut failed) = (0, 0);
    for line in lines {
        let (number, bytes) = line?;
        let reply = reply(number, bytes.as_deref(), limit);
        *(if reply.answered { &mut answered } else { &mut failed }) += 1;
        out.write_all(format!("{}\n", reply.text).as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| write_failure(&error, STANDARD_OUTPUT))?;
    }
    Ok((answered, failed))
}

/// Returns the answer to a line. A panic in one question does not affect the others.
fn reply(number: u64, bytes: Option<&[u8]>, limit: f64) -> Reply {
    catch_unwind(AssertUnwindSafe(|| answer(number, bytes, limit))).unwrap_or_else(|_| lost(number))
}

fn answer(number: u64, bytes: Option<&[u8]>, limit: f64) -> Reply {
    let Some(bytes) = bytes else {
        let failure = Refusal::of_line("the line is longer than 4 MiB").help("use `self-composed` for what repeats");
        return failed(number, None, failure.into());
    };
    let Line { id, request } = Line::parse(bytes);
    let answered = request.and_then(Question::new).map_err(Failure::from).and_then(|question| {
        let Limited { value, is_short, .. } = limit::silently(limit, || solve::answer(&question))?;
        Ok(value?.noted(is_short, || limit::note(limit)))
    });
    match answered {
        Err(failure) => failed(number, id, failure),
        Ok(mut answer) => {
            answer.id = id.clone();
            match serde_json::to_string(&answer) {
                Ok(text) => Reply { text, answered: true },
                Err(error) => failed(number, id, Refusal::of_line(format!("no JSON: {error}")).into()),
            }
        }
    }
}

/// Returns the error object of a line.
fn failed(number: u64, id: Option<Value>, mut failure: Failure) -> Reply {
    failure.details.location.line = Some(number);
    let body = failure.to_json(false);
    let text = match (id, body.strip_prefix('{')) {
        (Some(id), Some(members)) => format!("{{\"id\":{id},{members}"),
        _ => body,
    };
    Reply { text, answered: false }
}

/// Returns the error object of a line whose answer was lost.
fn lost(number: u64) -> Reply {
    let failure = Failure::new(ExitStatus::Failed, "account.failed", "the accountant failed on this question");
    failed(number, None, failure.help("please report the question; the other lines are not affected"))
}

/// Writes the answers as they come; returns the numbers of answered and failed questions.
fn write_all(places: &Receiver<Place>) -> Result<(u64, u64), Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let written = |error: io::Error| write_failure(&error, STANDARD_OUTPUT);
    let (mut answered, mut failed) = (0, 0);
    loop {
        let place = match places.try_recv() {
            Ok(place) => place,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                // No answer is ready: flush those that are written.
                out.flush().map_err(written)?;
                match places.recv() {
                    Ok(place) => place,
                    Err(_) => break,
                }
            }
        };
        let reply = match place {
            Ok((number, reply)) => match reply.try_recv() {
                Ok(reply) => reply,
                Err(_) => {
                    out.flush().map_err(written)?;
                    reply.recv().unwrap_or_else(|_| lost(number))
                }
            },
            Err(failure) => {
                out.flush().map_err(written)?;
                return Err(failure);
            }
        };
        *(if reply.answered { &mut answered } else { &mut failed }) += 1;
        out.write_all(reply.text.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(written)?;
    }
    out.flush().map_err(written)?;
    Ok((answered, failed))
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::new(ExitStatus::Failed, "account.read", format!("cannot read: {error}"))
        .help("name a file of questions, one JSON object per line, or `-` for standard input")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with its number; `None` where it was too long.
    type Line = Result<(u64, Option<Vec<u8>>), Failure>;

    fn lines(text: impl Read + Send + 'static) -> Vec<Line> {
        let lines = Lines::new(Box::new(text), "test".to_owned());
        Lines { reader: BufReader::with_capacity(7, lines.reader.into_inner()), ..lines }.collect()
    }

    #[test]
    fn lines_end_as_they_like() {
        let read = |text: &'static [u8]| lines(text).into_iter().map(Result::unwrap).collect::<Vec<_>>();
        let expected = [(1, &b"a"[..]), (3, b"b\rc"), (4, b"d")].map(|(n, line)| (n, Some(line.to_vec())));
        assert_eq!(read(b"a\r\n\nb\rc\nd"), expected);
        assert_eq!(read(b"\xef\xbb\xbfa\r\n \nb\rc\nd\n"), expected);
        assert_eq!(read(b""), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        for length in [LONGEST_LINE, LONGEST_LINE + 1, LONGEST_LINE + 2, LONGEST_LINE + 3, 3 * LONGEST_LINE] {
            for end in [&b"\n"[..], b"\r\n"] {
                let mut text = vec![b'x'; length];
                text.extend_from_slice(end);
                text.extend_from_slice(b"next");
                let found: Vec<_> = lines(io::Cursor::new(text)).into_iter().map(Result::unwrap).collect();
                assert_eq!(found.len(), 2, "{length}");
                assert_eq!(found[0].1.is_some(), length <= LONGEST_LINE, "{length}");
                assert_eq!(found[1], (2, Some(b"next".to_vec())), "{length}");
            }
        }
    }

    #[test]
    fn a_line_that_does_not_end_ends_the_batch() {
        let question = br#"{"job":"gdp","mu":1,"delta":1e-6}"#;
        let text = question.chain(&b"\n"[..]).chain(io::repeat(b'x'));
        let found: Vec<_> = Lines::new(Box::new(text), "test".to_owned()).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Ok((1, Some(question.to_vec()))));
        let failure = found[1].as_ref().unwrap_err();
        assert_eq!(
            (failure.code, failure.exit, failure.details.location.line),
            ("file.too_large", ExitStatus::Input, Some(2))
        );
    }

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let mut text = String::from("\u{feff}");
        for i in 0..200 {
            let delta = if i % 3 == 0 { "oops" } else { "1e-6" };
            text.push_str(&format!("{{\"id\":{i},\"job\":\"gdp\",\"mu\":{},\"delta\":{delta}}}\r\n\n", 1 + i % 7));
        }
        let places = start(Box::new(io::Cursor::new(text.into_bytes())), "test".to_owned(), 3, 1.0).ok().unwrap();
        let mut count = 0;
        while let Ok(place) = places.recv() {
            let reply = place.unwrap().1.recv().unwrap();
            let value: Value = serde_json::from_str(&reply.text).unwrap();
            assert_eq!(reply.answered, count % 3 != 0, "{}", reply.text);
            if reply.answered {
                assert_eq!(value["id"], count);
            } else {
                assert_eq!(value["error"]["where"]["line"], 2 * count + 1);
            }
            count += 1;
        }
        assert_eq!(count, 200);
    }
}
