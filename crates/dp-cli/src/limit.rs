//! `--limit`: the limit on computation for one question.
//!
//! It counts work, not seconds, so that a question has the same answer on every machine and at every load. One unit is about
//! one second of work; nearly every question needs far less.

use std::cell::RefCell;
use std::rc::Rc;

use dp::accounting::LIMITS;
use dp_accountant::work;
pub use dp_accountant::work::Limited;

use crate::failure::Failure;
use crate::output::Console;
use crate::progress::{Counted, Progress, ProgressMode};

/// Computes `f` with progress and within the limit, if given. `scale` multiplies the limit for work that is known to be long.
///
/// # Errors
/// `usage.value`.
pub fn within<T>(
    limit: impl Into<Option<f64>>,
    scale: f64,
    mode: ProgressMode,
    console: &Console,
    f: impl FnOnce() -> T,
) -> Result<Limited<T>, Failure> {
    let limit = limit.into();
    limit.map_or(Ok(()), check)?;
    let units = limit.map(|limit| limit * scale);
    let total = units.map(|units| (units * 100.0) as u64);
    let progress = Progress::start(mode, console, "accounting", Counted::Work, total);
    let shown = Rc::new(RefCell::new((progress, 0.0)));
    let tell = Rc::clone(&shown);
    let observer = Rc::new(move |spent: f64| {
        let (progress, total) = &mut *tell.borrow_mut();
        *total += spent;
        progress.update((*total / work::USUAL * 100.0) as u64, None);
    });
    Ok(work::observed(observer, || work::limited(units.map_or(f64::INFINITY, |units| units * work::USUAL), f)))
}

/// Computes `f` within the limit, if given, without progress.
///
/// # Errors
/// `usage.value`.
pub fn silently<T>(limit: impl Into<Option<f64>>, f: impl FnOnce() -> T) -> Result<Limited<T>, Failure> {
    let limit = limit.into();
    limit.map_or(Ok(()), check)?;
    Ok(work::limited(limit.map_or(f64::INFINITY, |limit| limit * work::USUAL), f))
}

/// Calibrates noise by `plan` within the limit, if given, with progress; a note tells where the limit was reached.
///
/// # Errors
/// `usage.value`, and those of `plan`.
pub fn planning<T>(
    limit: Option<f64>,
    mode: ProgressMode,
    console: &Console,
    plan: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let found = within(limit, 1.0, mode, console, plan)?;
    note_planning(found.is_short, limit, console);
    found.value
}

/// Notes that a limit on planning was reached, if it was.
pub fn note_planning(is_short: bool, limit: Option<f64>, console: &Console) {
    if let (true, Some(limit)) = (is_short, limit) {
        console.note(&format!(
            "the limit on work was reached: the noise suffices, and --limit {} may find less",
            10.0 * limit
        ));
    }
}

/// Checks that a limit is in the accepted range.
///
/// # Errors
/// `usage.value`.
pub fn check(limit: f64) -> Result<(), Failure> {
    let (least, largest) = LIMITS;
    if limit >= least && limit <= largest {
        return Ok(());
    }
    Err(Failure::usage("--limit", format!("{limit:?} is out of range"))
        .expected(format!("a number in [{least:?}, {largest:?}]")))
}

/// Returns the note for a reached limit.
pub fn note(limit: f64) -> String {
    let more = 10.0 * limit;
    format!("the limit on work was reached: what is certified is certain, and --limit {more} may bring it closer")
}
