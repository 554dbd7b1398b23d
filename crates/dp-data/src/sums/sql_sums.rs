//! Sums by the statements of an engine.

use std::thread;
use std::time::Duration;

use super::in_sql::SumSql;
use super::{IntegerSums, SumKind, SumRequest, SumSource};
use crate::encode::Encoder;
use crate::error::DataError;
use crate::read::CuratorWarning;
use crate::source::{Description, PassRequest, RowSource, RowStream, SourceError};
use crate::table::Cancel;

/// Number of times that a step's statements are sent if the engine goes away or gives way to others, and the shortest time in between.
const TRIALS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);

/// The error of a statement, and whether the same statement may succeed later.
pub(crate) struct Failed {
    pub(crate) error: DataError,
    pub(crate) may_pass: bool,
}

/// The cells of an answer's row, as text.
pub(crate) type Cells = Vec<Option<String>>;

/// An engine that runs statements.
pub(crate) trait Engine: Send {
    /// Runs statements, all over the same state of the table, and returns the first row of each.
    fn run(&mut self, statements: &[String]) -> Result<Vec<Cells>, Failed>;

    /// Gets ready to run statements again after some failed.
    fn recover(&mut self);
}

/// A table whose rows stay in an engine, which computes the sums itself; nothing is installed there.
///
/// Each request is one statement, or one for each part of the rows. Before the first, the same statement runs over 64 public
/// rows, and its answer is compared with the known one. A statement that is lost with its engine is sent again, unchanged.
///
/// # Privacy
/// Statements hold the weights of each step, which a log may keep. Algorithms that run on a [`SumSource`] compute the weights
/// from noisy sums alone, so that the weights may be published. Results of statements are not private: whoever can read the
/// engine's memory sees what they could compute themselves.
pub struct SqlSums {
    engine: Box<dyn Engine>,
    cancel: Cancel,
    sql: SumSql,
    /// The table or query after FROM.
    from: String,
    /// Which rows belong to each part.
    parts: Vec<Option<String>>,
    description: Description,
    /// Number of records without influence.
    neutral: u64,
    /// The kind of sums that was compared with known ones.
    checked: Option<SumKind>,
}

impl SqlSums {
    /// Creates the sums over the `n` records of `from`, of which `counting` count, in parts selected by these conditions.
    pub(crate) fn new(
        name: &'static str,
        (engine, cancel): (Box<dyn Engine>, Cancel),
        (encoder, sql): (&Encoder, SumSql),
        from: String,
        parts: Vec<Option<String>>,
        (n, counting): (u64, u64),
    ) -> Self {
        let description = Description {
            n,
            dim: encoder.dim(),
            row_norm: encoder.row_bound(),
            target_bound: encoder.target_bound(),
            engine: name,
        };
        Self { engine, cancel, sql, from, parts, description, neutral: n - counting, checked: None }
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.description.n
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns warnings for the curator, about the records as they were counted.
    pub fn warnings(&self) -> Vec<CuratorWarning> {
        (self.neutral > 0).then_some(CuratorWarning::Neutral { records: self.neutral }).into_iter().collect()
    }

    /// Returns a function that cancels the engine's work.
    pub fn cancel(&self) -> Cancel {
        Cancel::clone(&self.cancel)
    }

    /// Sends a request once; before the first of its kind, one with a known answer.
    fn ask(&mut self, request: &SumRequest<'_>) -> Result<IntegerSums, Failed> {
        let kind = request.kind;
        if self.checked != Some(kind) {
            let known = self.sql.known(kind, request.bits).map_err(for_good)?;
            let found = self.run(kind, core::slice::from_ref(&known.statement))?;
            known.check(&found).map_err(for_good)?;
            self.checked = Some(kind);
        }
        let statement = |part: &Option<String>| self.sql.statement(request, &self.from, part.as_deref());
        let statements: Vec<String> = self.parts.iter().map(statement).collect::<Result<_, _>>().map_err(for_good)?;
        self.run(kind, &statements)
    }

    fn run(&mut self, kind: SumKind, statements: &[String]) -> Result<IntegerSums, Failed> {
        let numbers = kind.numbers(self.description.dim);
        let mut total = IntegerSums { records: 0, steps: vec![0; numbers] };
        for row in self.engine.run(statements)? {
            let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
            let part = self.sql.answer(kind, &cells).map_err(for_good)?;
            let misfit = || for_good(DataError::of_table("parts of a sum do not fit together"));
            total = total.checked_add(&part).ok_or_else(misfit)?;
        }
        Ok(total)
    }
}

/// Returns a failure that would come again.
fn for_good(error: DataError) -> Failed {
    Failed { error, may_pass: false }
}

impl<F> RowSource<F> for SqlSums {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(self.description.clone())
    }

    fn open_pass(&mut self, _: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        Err(SourceError::SumsOnly { engine: self.description.engine })
    }

    fn sums(&mut self) -> Option<&mut dyn SumSource> {
        Some(self)
    }
}

impl SumSource for SqlSums {
    fn sums(&mut self, request: &SumRequest<'_>) -> Result<IntegerSums, SourceError> {
        let mut trial = 1;
        loop {
            let error = match self.ask(request) {
                Ok(sums) => return Ok(sums),
                Err(Failed { error, may_pass }) if !may_pass || trial == TRIALS => error,
                Err(_) => {
                    thread::sleep(PAUSE * trial);
                    trial += 1;
                    self.engine.recover();
                    // It may be another one.
                    self.checked = None;
                    continue;
                }
            };
            let help = error.help_text().map_or_else(String::new, |help| format!("; {help}"));
            let message = format!("{}{help}", error.public_message());
            return Err(SourceError::Engine { engine: self.description.engine, message });
        }
    }
}
