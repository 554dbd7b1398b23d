//! Trainings as black boxes for audits, and errors and warnings of trainings.

use std::sync::Arc;

use dp::RankerTrainError;
use dp::ranker::{AnyLoss, AnyScorer};
use dp::ranking::Method;
use dp_audit::Lineup;
use dp_audit_recipes::rank::black_box::{DIM, Family, Pairs};
use dp_optim::recipes::Budget;
use dp_rank::QueryLists;
use dp_rank::train::{Document, ListPresence, PrivateRanking, Protect, Protected, TrainError, WholeList};

use super::settings::Settings;
use crate::args::RankTrainArgs;
use crate::commands::train::refusal;
use crate::exit_code::ExitStatus;
use crate::failure::{Failure, out_of_memory};
use crate::output::Console;

/// Returns a training as a black box, on few lists of documents with few features.
///
/// # Errors
/// `usage.*`, and `privacy.*` if no guarantee is possible.
pub fn family(
    name: String,
    args: &RankTrainArgs,
    pairs: impl FnOnce(Protected, bool) -> Arc<Pairs>,
) -> Result<Box<dyn Lineup>, Failure> {
    let training = Settings::new(&args.model, &args.privacy)?.training;
    let Method::Private { recipe, budget, protects } = training.method else {
        return Err(Failure::usage("--non-private", "without privacy there is no claim"));
    };
    let scorer = training.scorer.scorer(DIM as usize).map_err(|error| refused(&error.into()))?;
    let pairs = pairs(protects, matches!(scorer, AnyScorer::Linear(_)));
    let family = match protects {
        Protected::Grades => lineup(name, recipe, budget, scorer, pairs),
        Protected::ListPresence => lineup(name, recipe.protecting(ListPresence), budget, scorer, pairs),
        Protected::WholeList => lineup(name, recipe.protecting(WholeList), budget, scorer, pairs),
        Protected::Document => lineup(name, recipe.protecting(Document), budget, scorer, pairs),
    };
    family.map_err(|error| refused(&error))
}

fn lineup<P: Protect>(
    name: String,
    recipe: PrivateRanking<AnyLoss, P>,
    budget: Budget,
    scorer: AnyScorer,
    pairs: Arc<Pairs>,
) -> Result<Box<dyn Lineup>, TrainError> {
    let family = Family::new(name, recipe, budget, scorer, scorer.start(0), pairs)?;
    // Documents are shuffled before a training.
    let shuffled = recipe.loss.named().depends_on_order();
    Ok(Box::new(if shuffled { family.shuffled() } else { family }))
}

impl From<RankerTrainError> for Failure {
    fn from(error: RankerTrainError) -> Self {
        match error {
            RankerTrainError::Recipe(error) => refused(&error),
            RankerTrainError::Ranker(error) => error.into(),
            RankerTrainError::Diverged => Self::new(ExitStatus::Failed, "train.failed", error.to_string())
                .at_flag("--step")
                .help("take a shorter --step, or add --normalise-features; nothing was written"),
            error => out_of_memory(error.to_string())
                .help("ask for fewer --hidden units or --features; nothing was released"),
        }
    }
}

/// Converts an error of training to a failure of the command line.
pub fn refused(error: &TrainError) -> Failure {
    let message = error.to_string();
    match error {
        TrainError::Ranking(_) => {
            Failure::new(ExitStatus::Failed, "train.failed", message).help("nothing was released")
        }
        TrainError::Mechanism(dp_mechanisms::Error::RandomSource(_)) => {
            Failure::new(ExitStatus::Failed, "train.failed", message)
                .help("the system gives no random numbers, so there can be no noise; nothing was released")
        }
        TrainError::Batches(error) => match refusal(error) {
            // A ranker has only one algorithm.
            failure if failure.details.location.flag.as_deref() == Some("--algorithm") => {
                failure.at_flag("--batch-size")
            }
            failure => failure,
        },
        _ => {
            let flag = match error {
                TrainError::Protected { .. } => "--protect",
                TrainError::UnknownImage => "--scaling",
                TrainError::OutOfRange { name: "step", .. } => "--step",
                _ => "--epsilon",
            };
            Failure::new(ExitStatus::Privacy, "privacy.refused", message).at_flag(flag).help(
                "the message names what has to change: --epsilon, --delta, --clip or --updates; nothing was released",
            )
        }
    }
}

/// Largest number of orders of a list that needs no warning.
const MANY_ORDERS: f64 = 1e4;

/// Warns that a loss will take long.
pub(super) fn warn_orders(settings: &Settings, lists: &QueryLists, console: &Console) {
    let (loss, longest) = (settings.training.loss(), lists.longest());
    let orders = loss.orders(longest);
    if let Some(k) = loss.k()
        && orders > MANY_ORDERS
    {
        let text = format!(
            "listnet with --k {k} goes through {orders} orders of a list of {longest} documents, in every update that \
             draws it\nuse --k 1, or bayesrank, which needs no orders"
        );
        // The length of a list may be protected.
        let public = settings.training.protects().has_public_lengths();
        if public { console.warn(&text) } else { console.warn_curator(&text) }
    }
}
