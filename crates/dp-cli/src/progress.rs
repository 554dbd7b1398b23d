//! Progress of long work on stderr: a bar on a terminal, or one JSON object per line, or nothing.
//!
//! It shows rows, passes, speed and time left; never a loss or anything else that is computed from records.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Console;

/// How to show progress.
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

/// Shortest time between two reports.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long work must last before a bar appears.
const PATIENCE: Duration = Duration::from_millis(400);

/// The progress of one phase of work.
#[derive(Debug)]
pub struct Progress {
    phase: &'static str,
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
    /// Starts `phase`, which has `total` rows to go where that is known.
    pub fn start(mode: ProgressMode, console: &Console, phase: &'static str, total: Option<u64>) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let display = match mode {
            ProgressMode::Json => Display::Json,
            ProgressMode::Auto if !console.quiet && !dumb && std::io::stderr().is_terminal() => Display::Bar(None),
            ProgressMode::Auto | ProgressMode::None => Display::Nothing,
        };
        Self { phase, total, started: Instant::now(), reported: None, display }
    }

    /// Says that `rows` rows are done, in pass `pass` (from 1) of the work where it has passes.
    pub fn update(&mut self, rows: u64, pass: Option<u64>) {
        let now = Instant::now();
        match self.reported {
            Some(last) if now.duration_since(last) < INTERVAL => return,
            None if matches!(self.display, Display::Bar(_)) && now.duration_since(self.started) < PATIENCE => return,
            _ => self.reported = Some(now),
        }
        match &mut self.display {
            Display::Nothing => {}
            Display::Json => self.write_json(rows, pass, false),
            Display::Bar(bar) => {
                let (phase, total) = (self.phase, self.total);
                let bar = bar.get_or_insert_with(|| new_bar(phase, total));
                bar.set_position(rows);
                if let Some(pass) = pass {
                    bar.set_message(format!("pass {pass}"));
                }
            }
        }
    }

    /// Ends the phase after `rows` rows.
    pub fn finish(mut self, rows: u64) {
        match &mut self.display {
            Display::Json => self.write_json(rows, None, true),
            Display::Bar(Some(bar)) => bar.finish_and_clear(),
            Display::Bar(None) | Display::Nothing => {}
        }
    }

    fn write_json(&self, rows: u64, pass: Option<u64>, done: bool) {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut line = serde_json::json!({
            "schema": "dp.progress/1",
            "phase": self.phase,
            "rows": rows,
            "seconds": seconds,
            "rows_per_second": if seconds > 0.0 { rows as f64 / seconds } else { 0.0 },
            "done": done,
        });
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

fn new_bar(phase: &'static str, total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match total {
        Some(_) => "{prefix} [{bar:30}] {human_pos}/{human_len} rows {msg} {per_sec} {eta} left",
        None => "{prefix} {spinner} {human_pos} rows {msg} {per_sec}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(phase);
    bar
}
