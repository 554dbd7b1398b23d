//! Converts flags to the audits and the command line that repeats them.

use dp::wording::{self, one_line};
use dp::words::{self, NOISE};
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon};
use dp_audit::{Claim, Claimed, Lineup, Subject};
use dp_audit_recipes::{Distance, Parameters, Setting};
use dp_mechanisms::OsSeeded;
use rand::Rng;

use super::table::{self, Table};
use super::{catalogue, parameters};
use crate::args::{
    self, AuditClaimArgs, AuditJob, AuditParameterArgs, AuditRecipeArgs, AuditRunArgs, AuditTableArgs, Loss, word,
};
use crate::atomic;
use crate::commands::train::AskedLoss;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::{check_distinct, check_picture, conflict};

/// Largest number of panels of a picture.
const MOST_PANELS: usize = 12;

/// Default number of runs on each input of a subject as cheap as releasing one number.
const USUAL_TRIALS: u64 = 1_000_000;
const USUAL_TRIALS_OF_ALL: u64 = 200_000;
const USUAL_TRIALS_OF_TABLE: u64 = 1_500_000;

/// The accepted numbers of runs.
const ACCEPTED_TRIALS: std::ops::RangeInclusive<u64> = 100..=100_000_000_000;

/// A subject of an audit with its noise-free check.
pub struct Audited {
    /// The subject.
    pub subject: Box<dyn Subject>,
    /// The distance of two models trained without noise, for recipes.
    pub distance: Option<Distance>,
}

/// The number of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effort {
    /// This number on each input.
    Trials(u64),
    /// About this number on each input of a subject as cheap as releasing one number, fewer for more expensive ones.
    About {
        /// The number of runs.
        trials: u64,
        /// The factor on it.
        times: u64,
    },
}

/// The checked configuration of `dp audit`.
pub struct AuditConfig {
    /// The flags of the run as given.
    pub args: AuditRunArgs,
    /// The subjects.
    pub audited: Vec<Audited>,
    /// The subjects whose pair of inputs is chosen by a pilot.
    pub lineups: Vec<Box<dyn Lineup>>,
    /// The number of runs.
    pub effort: Effort,
    /// The probability that no sound claim is refuted.
    pub confidence: f64,
    /// The seed of all runs.
    pub seed: u64,
    /// The command line that repeats the results.
    pub rerun: String,
    /// The rows of `dp audit table` that the audits belong to.
    pub table: Option<Table>,
}

impl AuditConfig {
    /// Checks the flags and builds the subjects; `None` for `dp audit list`.
    ///
    /// # Errors
    /// `usage.*`; `output.*` for outputs that cannot be written; `privacy.*` if the recipe gives no guarantee.
    pub fn new(job: &AuditJob) -> Result<Option<Self>, Failure> {
        let run = match job {
            AuditJob::List => return Ok(None),
            AuditJob::Mechanism(args) => &args.run,
            AuditJob::Recipe(args) => &args.run,
            AuditJob::Table(args) => &args.run,
            AuditJob::All(args) => &args.run,
        };
        check_files(run)?;
        // A single pair of inputs gets more runs than each of a hundred.
        let usual = match job {
            AuditJob::All(_) => USUAL_TRIALS_OF_ALL,
            AuditJob::Table(_) => USUAL_TRIALS_OF_TABLE,
            _ => USUAL_TRIALS,
        };
        let (effort, seed) = (effort(run, usual)?, seed(&run.seed)?);
        let confidence = confidence(run.confidence)?;
        for path in [&run.report, &run.picture].into_iter().flatten() {
            atomic::check(path, run.force)?;
        }
        // Done last: building searches for the most distant pair.
        let What { what, audited, lineups, table } = what_is_audited(job)?;
        let audits = audited.len() + lineups.len();
        if audits == 0 {
            let message = "nothing is audited: no audit applies to these settings";
            return Err(Failure::usage("--algorithm", message)
                .help("some recipes have audits with a delta above 0 only, or for other losses"));
        }
        if run.picture.is_some() && audits > MOST_PANELS {
            let message = format!("{audits} pairs of inputs are too many for one picture");
            return Err(conflict("--picture", &message).expected(format!("at most {MOST_PANELS}")));
        }
        Ok(Some(Self {
            args: run.clone(),
            effort,
            confidence,
            seed,
            rerun: format!("dp audit {what}{}", run_flags(run, seed)),
            audited,
            lineups,
            table,
        }))
    }
}

/// The subjects of an audit.
#[derive(Default)]
struct What {
    /// Their command line, without the flags common to all audits.
    what: String,
    audited: Vec<Audited>,
    lineups: Vec<Box<dyn Lineup>>,
    /// The rows of the table that the line-ups belong to.
    table: Option<Table>,
}

fn what_is_audited(job: &AuditJob) -> Result<What, Failure> {
    let of = |what: String, audited: Vec<Audited>| What { what, audited, ..What::default() };
    Ok(match job {
        AuditJob::List => What::default(),
        AuditJob::Mechanism(args) => {
            let claim = Reclaim::new(&args.claim)?;
            let audited = match parameters::subjects(&args.names, &args.of)? {
                Some(subjects) => catalogue::without_distance(subjects),
                None => catalogue::mechanisms(&args.names)?,
            };
            let names: Vec<String> = args.names.iter().map(|name| quoted(name)).collect();
            let what =
                format!("mechanism {}{}{}", names.join(" "), parameter_flags(&args.of), claim_flags(&args.claim));
            of(what, reclaimed(audited, claim))
        }
        AuditJob::Recipe(args) => {
            let claim = Reclaim::new(&args.claim)?;
            of(recipe_flags(args), reclaimed(recipe(args)?, claim))
        }
        AuditJob::Table(args) => {
            let claim = Reclaim::new(&args.claim)?;
            let (table, lineups) = table::of(&args.kind, &args.algorithm)?;
            let reclaimed = |lineup| -> Box<dyn Lineup> { Box::new(Reclaimed { lineup, claim }) };
            let lineups = lineups.into_iter().map(reclaimed).collect();
            What { what: table_flags(args), lineups, table: Some(table), ..What::default() }
        }
        AuditJob::All(_) => of("all".to_owned(), catalogue::everything()?),
    })
}

/// Checks the names of the outputs.
fn check_files(run: &AuditRunArgs) -> Result<(), Failure> {
    let named = [("--report", &run.report), ("--picture", &run.picture)];
    let named: Vec<_> = named.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?))).collect();
    check_distinct(&named)?;
    check_picture("--picture", run.picture.as_deref())
}

fn seed(text: &str) -> Result<u64, Failure> {
    if text == "random" {
        let mut source = OsSeeded::new().map_err(|error| {
            Failure::new(ExitStatus::Failed, "audit.failed", error.to_string()).help("choose a seed: --seed 1")
        })?;
        // Few enough digits for every JSON reader.
        return Ok(source.next_u64() >> 11);
    }
    text.parse().map_err(|_| {
        Failure::usage("--seed", format!("`{}` is no seed", one_line(text)))
            .expected("a whole number from 0 to 2^64 - 1, or `random`")
    })
}

fn effort(run: &AuditRunArgs, usual: u64) -> Result<Effort, Failure> {
    match run.trials {
        None => Ok(Effort::About { trials: usual, times: if run.long { 100 } else { 1 } }),
        Some(trials) if ACCEPTED_TRIALS.contains(&trials) => Ok(Effort::Trials(trials)),
        Some(trials) => Err(Failure::usage("--trials", format!("{trials} runs are too few or too many"))
            .expected(format!("from {} to {}", ACCEPTED_TRIALS.start(), ACCEPTED_TRIALS.end()))),
    }
}

fn confidence(value: f64) -> Result<f64, Failure> {
    if (0.5..=1.0 - 1e-12).contains(&value) {
        return Ok(value);
    }
    Err(Failure::usage("--confidence", format!("{value} is no confidence"))
        .expected("a number from 0.5 to 1 - 1e-12, such as 0.999"))
}

/// Refuses a setting that has no effect.
fn check_settings(args: &AuditRecipeArgs, settings: &[Setting]) -> Result<(), Failure> {
    let given = [
        ("--adjacency", Setting::Relation, args.adjacency.is_some()),
        ("--loss", Setting::Loss, args.loss.is_some()),
        ("--huber-width", Setting::Loss, args.huber_width.is_some()),
        ("--lambda", Setting::Lambda, args.lambda.is_some()),
        ("--passes", Setting::Passes, args.passes.is_some()),
        ("--batch-size", Setting::BatchSize, args.batch_size.is_some()),
        ("--radius", Setting::Radius, args.radius.is_some()),
    ];
    match given.into_iter().find(|(_, setting, is_given)| *is_given && !settings.contains(setting)) {
        Some((flag, ..)) => {
            Err(conflict(flag, format!("it has no effect on the audit of {}", args.algorithm))
                .help(format!("omit {flag}")))
        }
        None => Ok(()),
    }
}

fn recipe(args: &AuditRecipeArgs) -> Result<Vec<Audited>, Failure> {
    let unknown = || Failure::usage("--algorithm", "there is no such recipe").help("`dp audit list` shows them all");
    check_settings(args, catalogue::settings(&args.algorithm).ok_or_else(unknown)?)?;
    let usual = Parameters::default();
    let checked = |flag, result: Result<f64, dp_accountant::Error>| {
        result.map_err(|error| Failure::usage(flag, error.to_string()))
    };
    let parameters = Parameters {
        n: at_least_one("--n", args.n)?,
        dim: at_least_one("--dim", u64::from(args.dim))?,
        epsilon: checked("--epsilon", Epsilon::new(args.epsilon).map(Epsilon::get))?,
        delta: checked("--delta", Delta::new(args.delta).map(Delta::get))?,
        relation: match args.adjacency {
            Some(args::Adjacency::AddRemove) => AdjacencyKind::ZeroOut,
            Some(args::Adjacency::ReplaceOne) => AdjacencyKind::ReplaceOne,
            Some(args::Adjacency::ChangeListLabels) => AdjacencyKind::ChangeListLabels,
            None => usual.relation,
        },
        loss: AskedLoss::new(Some(args.loss.unwrap_or(Loss::HuberSvm)), args.huber_width)?.for_audit()?,
        lambda: number("--lambda", args.lambda, |lambda| lambda >= 0.0, "a finite number of at least 0")?,
        passes: at_least_one("--passes", args.passes.map_or(usual.passes, u64::from))?,
        batch_size: at_least_one("--batch-size", args.batch_size.unwrap_or(usual.batch_size))?,
        radius: number("--radius", args.radius, |radius| radius > 0.0, "a finite number greater than 0")?,
        noise_mode: args.noise,
        pairs: at_least_one("--pairs", args.pairs.into()).map(|_| args.pairs)?,
    };
    // The memory of the data sets is known beforehand: 8 bytes per number, twice.
    if parameters.n.saturating_mul(parameters.dim) > 1 << 28 {
        return Err(Failure::usage("--n", "data sets of this shape are too large to train on many times")
            .expected("n times dim of at most 2^28"));
    }
    catalogue::recipe(&args.algorithm, &parameters).ok_or_else(unknown)?
}

fn number(flag: &str, value: Option<f64>, fits: impl Fn(f64) -> bool, expected: &str) -> Result<Option<f64>, Failure> {
    match value {
        Some(value) if !(value.is_finite() && fits(value)) => {
            Err(Failure::usage(flag, format!("{value} cannot be used")).expected(expected))
        }
        value => Ok(value),
    }
}

fn at_least_one(flag: &str, value: u64) -> Result<u64, Failure> {
    if value > 0 { Ok(value) } else { Err(Failure::usage(flag, "0 is too few").expected("1 or more")) }
}

/// A claim supplied by the user.
#[derive(Debug, Clone, Copy)]
struct Reclaim {
    epsilon: f64,
    delta: Option<f64>,
}

impl Reclaim {
    fn new(args: &AuditClaimArgs) -> Result<Option<Self>, Failure> {
        let Some(epsilon) = args.claim_epsilon else { return Ok(None) };
        Epsilon::new(epsilon).map_err(|error| Failure::usage("--claim-epsilon", error.to_string()))?;
        if let Some(delta) = args.claim_delta {
            Delta::new(delta).map_err(|error| Failure::usage("--claim-delta", error.to_string()))?;
        }
        Ok(Some(Self { epsilon, delta: args.claim_delta }))
    }
}

fn reclaimed(audited: Vec<Audited>, claim: Option<Reclaim>) -> Vec<Audited> {
    let with_claim = |Audited { subject, distance }: Audited| Audited { subject: with_claim(subject, claim), distance };
    audited.into_iter().map(with_claim).collect()
}

/// Returns the subject with the user's claim, if there is one.
fn with_claim(subject: Box<dyn Subject>, claim: Option<Reclaim>) -> Box<dyn Subject> {
    let Some(Reclaim { epsilon, delta }) = claim else { return subject };
    let delta = delta.unwrap_or(subject.claim().delta);
    let event = if delta > 0.0 { DpEvent::ApproximateDp { epsilon, delta } } else { DpEvent::PureDp { epsilon } };
    Box::new(Claimed::new(subject, Claim { event, delta }))
}

/// A line-up with the user's claim, if there is one.
struct Reclaimed {
    lineup: Box<dyn Lineup>,
    claim: Option<Reclaim>,
}

impl Lineup for Reclaimed {
    fn pairs(&self) -> usize {
        self.lineup.pairs()
    }

    fn leading(&self) -> usize {
        self.lineup.leading()
    }

    fn subject(&self, pair: usize) -> Result<Box<dyn Subject>, dp_audit::Error> {
        Ok(with_claim(self.lineup.subject(pair)?, self.claim))
    }
}

/// Quotes a word of a command line if a shell would interpret it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=,:".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Formats ` --flag value`, if there is a value.
fn flag<T: std::fmt::Display>(name: &str, value: Option<T>) -> String {
    value.map_or_else(String::new, |value| format!(" --{name} {value}"))
}

fn claim_flags(claim: &AuditClaimArgs) -> String {
    flag("claim-epsilon", claim.claim_epsilon) + &flag("claim-delta", claim.claim_delta.map(wording::delta))
}

fn parameter_flags(of: &AuditParameterArgs) -> String {
    [
        flag("std-dev", of.std_dev.map(wording::plain)),
        flag("scale", of.scale.map(wording::plain)),
        flag("epsilon", of.epsilon.map(wording::plain)),
        flag("sensitivity", of.sensitivity.map(wording::plain)),
        flag("dim", of.dim),
        flag("buckets", of.buckets),
        flag("noise", of.noise.map(|noise| words::name(NOISE, noise))),
    ]
    .concat()
}

/// Formats ` --flag word word`, if there are words.
fn words_flag<T: clap::ValueEnum>(name: &str, values: &[T]) -> String {
    let words: String = values.iter().map(|value| format!(" {}", word(value))).collect();
    if words.is_empty() { words } else { format!(" --{name}{words}") }
}

fn run_flags(run: &AuditRunArgs, seed: u64) -> String {
    let long = if run.long { " --long" } else { "" };
    flag("trials", run.trials) + long + &flag("confidence", Some(run.confidence)) + &flag("seed", Some(seed))
}

fn table_flags(args: &AuditTableArgs) -> String {
    format!(
        "table{}{}{}",
        words_flag("kind", &args.kind),
        words_flag("algorithm", &args.algorithm),
        claim_flags(&args.claim)
    )
}

fn recipe_flags(args: &AuditRecipeArgs) -> String {
    [
        format!("recipe --algorithm {}", args.algorithm),
        flag("epsilon", Some(args.epsilon)),
        flag("delta", Some(wording::delta(args.delta))),
        flag("adjacency", args.adjacency.as_ref().map(word)),
        flag("loss", args.loss.as_ref().map(word)),
        flag("huber-width", args.huber_width),
        flag("lambda", args.lambda),
        flag("passes", args.passes),
        flag("batch-size", args.batch_size),
        flag("radius", args.radius),
        flag("noise", args.noise.map(|noise| words::name(NOISE, noise))),
        flag("n", Some(args.n)),
        flag("dim", Some(args.dim)),
        flag("pairs", Some(args.pairs)),
        claim_flags(&args.claim),
    ]
    .concat()
}
