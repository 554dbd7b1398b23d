//! `dp account`: the cost of a release, or what a budget allows: computes epsilon, delta, noise, sampling rate or steps from
//! the others.
//!
//! A command line and a line of a batch become the same request, whose question [`dp::accounting`] answers. Nothing here reads
//! data.

pub mod batch;
pub mod compare;
pub mod curve;
pub mod picture;
pub mod request;

use dp::accounting::{Accountant, Answer, Choice as _, Question, Refusal, RefusalKind, SCHEMA, Unknown, solve};

use super::dry_run::Foreseen;
use crate::args::{AccountArgs, AccountJob, Curve, GlobalArgs, QuestionArgs};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::conflict;
use crate::limit::{self, Limited};
use crate::output::Console;

/// Answers and prints.
///
/// # Errors
/// `usage.*`, `privacy.*`, `account.*`, or output that cannot be written. Errors in lines of a batch count as answers.
pub fn execute(args: &AccountArgs, global: &GlobalArgs, console: &Console) -> Result<ExitStatus, Failure> {
    if let AccountJob::Batch(args) = &args.job {
        return batch::execute(args, global.workers(), console);
    }
    let Some((mut request, asked)) = request::from_args(&args.job)? else { return Ok(ExitStatus::Success) };
    if matches!(asked.curve, Some(Curve::EpsilonDelta | Curve::TradeOff)) && request.epsilon.is_none() {
        // The curve covers all deltas; a given small delta is its left end.
        request.delta = request.delta.or(Some(0.0));
    }
    let question = Question::new(request).map_err(|refusal| at_flag(refusal.into(), asked))?;
    let unsolved = matches!(question.unknown, Unknown::Epsilon | Unknown::Delta);
    if unsolved && asked.epsilon.is_some() && asked.curve.is_some() {
        return Err(conflict("--epsilon", "a curve has no use for it, unless another number follows from it"));
    }
    let printed = if let Some(curve) = asked.curve {
        curve::execute(&question, curve, asked, global.progress, console).map_err(|failure| at_flag(failure, asked))
    } else if asked.dry_run {
        limit::check(asked.limit)?;
        Foreseen::new(SCHEMA, &[], &[], false)?.print(console)
    } else if asked.compare {
        let all = || compare::run(&question, asked.limit);
        let found = limit::within(asked.limit, Accountant::ALL.len() as f64, global.progress, console, all)?;
        let comparison = found.value.map_err(|failure| at_flag(failure, asked))?;
        console.result(&comparison, &comparison.text(&question))
    } else {
        let Limited { value, is_short, .. } = limit::within(asked.limit, 1.0, global.progress, console, || {
            let solution = solve::solve(&question)?;
            let semantics = asked.semantics.then(|| solve::meaning(&question, &solution)).transpose()?;
            Ok::<_, Refusal>(Answer { semantics, ..Answer::new(&question, &solution) })
        })?;
        let answer =
            value.map_err(|refusal| at_flag(refusal.into(), asked))?.noted(is_short, || limit::note(asked.limit));
        console.result(&answer, &answer.text())
    };
    printed.map(|()| ExitStatus::Success)
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let exit = match refusal.kind {
            RefusalKind::Text => ExitStatus::Input,
            RefusalKind::Privacy => ExitStatus::Privacy,
            RefusalKind::Unproved => ExitStatus::Verification,
            _ => ExitStatus::Usage,
        };
        let mut failure = Self::new(exit, refusal.code, refusal.message);
        failure.details.location.field = refusal.field;
        failure.details.expected = refusal.expected;
        failure.details.help = refusal.help;
        failure
    }
}

/// Converts a field of a question to the flag of the command line; a secret number of records may be a field of the file.
fn at_flag(mut failure: Failure, asked: &QuestionArgs) -> Failure {
    if failure.code == "account.unsupported" {
        failure = failure.help("leave the accountant to be chosen (`auto`), or compare all (`--compare`)");
    }
    if let Some(field) = failure.details.location.field.take() {
        if field == "event" || field == "n_public" && !asked.secret_n {
            failure.details.location.field = Some(field);
        } else if field == "n_public" {
            failure.details.location.flag = Some("--secret-n".to_owned());
        } else {
            failure.details.location.flag = Some(format!("--{}", field.replace('_', "-")));
        }
    }
    failure
}
