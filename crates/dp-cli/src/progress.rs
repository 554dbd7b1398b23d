//! Progress of long work on standard error: a bar on a terminal, one JSON object per line, or nothing.
//!
//! It shows rows or runs, passes, speed and remaining time; never a loss or anything else computed from records.

use std::io::{IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Console;

/// The progress display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ProgressMode {
    /// A bar on a terminal, nothing elsewhere.
    #[default]
    Auto,
    /// One JSON object per line.
    Json,
    /// Nothing.
    None,
}

/// Minimum time between two reports.
const INTERVAL: Duration = Duration::from_millis(200);

/// Minimum duration of work before a bar appears.
const PATIENCE: Duration = Duration::from_millis(400);

/// The unit of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Records.
    Rows,
    /// Bytes of a file as stored on disk.
    Bytes,
    /// Runs of the audited mechanism.
    Runs,
    /// Updates of a model.
    Updates,
    /// Accountant work, in hundredths of its unit.
    Work,
}

/// The progress of one phase of work.
#[derive(Debug)]
pub struct Progress {
    phase: &'static str,
    counted: Counted,
    total: Option<u64>,
    started: Instant,
    reported: Option<Instant>,
    display: Display,
}

#[derive(Debug)]
enum Display {
    Bar(Option<ProgressBar>),
    Json,
    Nothing,
}

impl Progress {
    /// Starts `phase` with `total` units of work, if known.
    pub fn start(
        mode: ProgressMode,
        console: &Console,
        phase: &'static str,
        counted: Counted,
        total: Option<u64>,
    ) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let display = match mode {
            ProgressMode::Json => Display::Json,
            ProgressMode::Auto if !console.quiet && !dumb && std::io::stderr().is_terminal() => Display::Bar(None),
            ProgressMode::Auto | ProgressMode::None => Display::Nothing,
        };
        Self { phase, counted, total, started: Instant::now(), reported: None, display }
    }

    /// Reports `done` units, in pass `pass` (from 1) if the work has passes.
    pub fn update(&mut self, done: u64, pass: Option<u64>) {
        let now = Instant::now();
        match self.reported {
            Some(last) if now.duration_since(last) < INTERVAL => return,
            None if matches!(self.display, Display::Bar(_)) && now.duration_since(self.started) < PATIENCE => return,
            _ => self.reported = Some(now),
        }
        match &mut self.display {
            Display::Nothing => {}
            Display::Json => self.write_json(done, pass, false),
            Display::Bar(bar) => {
                let (phase, counted, total) = (self.phase, self.counted, self.total);
                let bar = bar.get_or_insert_with(|| new_bar(phase, counted, total));
                bar.set_position(done);
                if let Some(pass) = pass {
                    bar.set_message(format!("pass {pass}"));
                }
            }
        }
    }

    /// Ends the phase with `done` units.
    pub fn finish(mut self, done: u64) {
        match &mut self.display {
            Display::Json => self.write_json(done, None, true),
            Display::Bar(Some(bar)) => bar.finish_and_clear(),
            Display::Bar(None) | Display::Nothing => {}
        }
    }

    fn write_json(&self, count: u64, pass: Option<u64>, done: bool) {
        let seconds = self.started.elapsed().as_secs_f64();
        let (name, speed) = match self.counted {
            Counted::Rows => ("rows", "rows_per_second"),
            Counted::Bytes => ("bytes", "bytes_per_second"),
            Counted::Runs => ("runs", "runs_per_second"),
            Counted::Updates => ("updates", "updates_per_second"),
            Counted::Work => ("work", "work_per_second"),
        };
        let mut line = serde_json::json!({
            "schema": "dp.progress/1",
            "phase": self.phase,
            "seconds": seconds,
            "done": done,
        });
        line[name] = count.into();
        line[speed] = (if seconds > 0.0 { count as f64 / seconds } else { 0.0 }).into();
        if let Some(pass) = pass {
            line["pass"] = pass.into();
        }
        if let Some(total) = self.total {
            line["total"] = total.into();
        }
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Display::Bar(Some(bar)) = &self.display {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(phase: &'static str, counted: Counted, total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match (counted, total) {
        (Counted::Rows, Some(_)) => "{prefix} [{bar:30}] {human_pos}/{human_len} rows {msg} {per_sec} {eta} left",
        (Counted::Rows, None) => "{prefix} {spinner} {human_pos} rows {msg} {per_sec}",
        (Counted::Runs, _) => "{prefix} [{bar:30}] {human_pos}/{human_len} runs {msg} {per_sec} {eta} left",
        (Counted::Updates, _) => "{prefix} [{bar:30}] {human_pos}/{human_len} updates {per_sec} {eta} left",
        (Counted::Work, Some(_)) => "{prefix} [{bar:30}] {percent}% of the limit",
        (Counted::Work, None) => "{prefix} {spinner} {elapsed}",
        (Counted::Bytes, _) => "{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(phase);
    bar
}

/// A reader that reports its progress.
#[derive(Debug)]
pub struct Metered<R> {
    reader: R,
    bytes: u64,
    progress: Option<Progress>,
}

impl<R> Metered<R> {
    /// Reports `progress` while `reader` is read.
    pub fn new(reader: R, progress: Progress) -> Self {
        Self { reader, bytes: 0, progress: Some(progress) }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bytes += count as u64;
        if let Some(progress) = &mut self.progress {
            progress.update(self.bytes, None);
        }
        Ok(count)
    }
}

impl<R> Drop for Metered<R> {
    fn drop(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.finish(self.bytes);
        }
    }
}
