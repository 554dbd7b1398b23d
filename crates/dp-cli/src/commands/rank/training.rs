//! One training, private or not, of the scorer and with the loss that were asked for.

use std::collections::BTreeMap;

use dp_accountant::AdjacencyKind;
use dp_accountant::DpEvent;
use dp_accountant::certificate::{Assumption, Certificate, EpsilonDelta, NoiseMode, SCHEMA};
use dp_accountant::guarantee::Unit;
use dp_mechanisms::rng::{OsSeeded, Purpose, ReleaseRng as _, SeededRng};
use dp_optim::recipes::Budget;
use dp_rank::QueryLists;
use dp_rank::scorer::Scorer as _;
use dp_rank::train::{TrainError, TrainedRanker};

use super::AnyScorer;
use super::settings::{Method, Settings};
use crate::commands::train::refusal;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::Console;
use crate::ranker_file::{PlainRanking, RankerDerivation};

/// Where random numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The system: what is released is private.
    Secret,
    /// A seed: what comes out can be had again, and is not private.
    Seed(u64),
}

/// What training gives.
#[derive(Debug)]
pub(super) struct Fitted {
    pub(super) scorer: AnyScorer,
    pub(super) weights: Vec<f64>,
    /// The private release; `None` without privacy.
    released: Option<TrainedRanker>,
    plain: PlainRanking,
}

/// Trains on `lists`; `start` is the public seed of a network's initial weights.
pub(super) fn fit(
    settings: &Settings,
    lists: &QueryLists,
    source: Source,
    start: u64,
    observer: &mut dyn FnMut(u64),
) -> Result<Fitted, Failure> {
    let parameters = settings.parameters(lists.width())? as u64;
    let scorer = settings.shape.scorer(lists.width()).map_err(|error| refused(&error.into()))?;
    let start = scorer.start(start);
    let observer = &mut |update: u64, _: &[f64]| observer(update);
    let m = lists.len() as u64;
    let (weights, released, (batch_size, updates)) = match settings.method {
        Method::Private(recipe, budget) => {
            let plan = recipe.plan(m, parameters, budget).map_err(|error| refused(&error))?;
            let trained = match source {
                Source::Secret => plan.train(&scorer, start, lists, &mut secret()?, observer),
                Source::Seed(seed) => plan.train(&scorer, start, lists, &mut SeededRng::new(seed), observer),
            };
            let trained = trained.map_err(|error| refused(&error))?;
            (trained.weights.get().clone(), Some(trained), (recipe.batch_size, recipe.descent.updates))
        }
        Method::NonPrivate(recipe) => {
            let key = match source {
                Source::Secret => secret()?.derive_key(Purpose::Permutation),
                Source::Seed(seed) => SeededRng::new(seed).derive_key(Purpose::Permutation),
            };
            let weights = recipe.train(&scorer, start, lists, key, observer).map_err(|error| refused(&error))?;
            (weights, None, (recipe.batch_size, recipe.descent.updates))
        }
    };
    if !weights.iter().all(|weight| weight.is_finite()) {
        return Err(Failure::new(
            ExitStatus::Failed,
            "train.failed",
            "training diverged: a weight is no finite number",
        )
        .at_flag("--step")
        .help("take a shorter --step, or add --normalise-features; nothing was written"));
    }
    let plain = PlainRanking { lists: m, parameters, batch_size, updates };
    debug_assert_eq!(scorer.parameters(), weights.len());
    Ok(Fitted { scorer, weights, released, plain })
}

impl Fitted {
    /// The guarantee, where there is one; of a seeded run what it would be.
    pub(super) fn reached(&self) -> Option<EpsilonDelta> {
        self.released.as_ref().map(|released| released.reached)
    }

    /// The certificate of a ranker with this hash.
    pub(super) fn certificate(&self, model_sha256: String) -> Certificate<RankerDerivation> {
        let versions = BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
        match &self.released {
            Some(released) => {
                let of_ranking = released.certificate(Vec::new(), model_sha256, versions);
                Certificate {
                    schema: of_ranking.schema,
                    adjacency: of_ranking.adjacency,
                    unit: of_ranking.unit,
                    private: of_ranking.private,
                    requested: of_ranking.requested,
                    reached: of_ranking.reached,
                    event: of_ranking.event,
                    noise: of_ranking.noise,
                    derivation: RankerDerivation::PrivateRanking(of_ranking.derivation),
                    assumptions: of_ranking.assumptions,
                    model_sha256: of_ranking.model_sha256,
                    versions: of_ranking.versions,
                }
            }
            None => Certificate {
                schema: SCHEMA.to_owned(),
                adjacency: AdjacencyKind::ChangeListLabels,
                unit: Unit::List,
                private: false,
                requested: None,
                reached: None,
                event: DpEvent::NonPrivate,
                noise: NoiseMode::None,
                derivation: RankerDerivation::NonPrivateRanking(self.plain),
                assumptions: vec![Assumption::EarlierRunsNotAccounted],
                model_sha256,
                versions,
            },
        }
    }
}

fn secret() -> Result<OsSeeded, Failure> {
    OsSeeded::new().map_err(|error| refusal(&error.into()))
}

/// A refusal of the training in the words of the command line.
pub(super) fn refused(error: &TrainError) -> Failure {
    let message = error.to_string();
    match error {
        TrainError::Ranking(_) => {
            Failure::new(ExitStatus::Failed, "train.failed", message).help("nothing was released")
        }
        TrainError::Mechanism(dp_mechanisms::Error::RandomSource(_)) => {
            Failure::new(ExitStatus::Failed, "train.failed", message)
                .help("the system gives no random numbers, so there can be no noise; nothing was released")
        }
        TrainError::Batches(error) => refusal(error),
        _ => Failure::new(ExitStatus::Privacy, "privacy.refused", message).help(
            "the message names what has to change: --epsilon, --delta, --clip or --updates; nothing was released",
        ),
    }
}

/// Says that a delta is worth nothing.
pub(super) fn warn_delta(budget: Budget, lists: u64, console: &Console) {
    let delta = budget.delta.get();
    if lists > 0 && delta > 1.0 / lists as f64 {
        console.warn(&format!(
            "delta = {delta} is larger than one over the number of lists = {:.3e}\npublishing one list's grades at random \
             would satisfy such a guarantee; choose delta far below it",
            1.0 / lists as f64
        ));
    }
}
