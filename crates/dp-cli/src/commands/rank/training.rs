//! One training, private or not, with the requested scorer and loss.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use dp::ranker::{NamedLoss, PlainRanking, PrivateRanker, RankerDerivation, TrainedModel};
use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::{Assumption, Certificate, EpsilonDelta};
use dp_accountant::guarantee::Unit;
use dp_audit::Lineup;
use dp_mechanisms::rng::{OsSeeded, Purpose, ReleaseRng as _, SeededRng};
use dp_optim::recipes::Budget;
use dp_rank::QueryLists;
use dp_rank::audit::black_box::{DIM, Family, Pairs};
use dp_rank::scorer::Scorer;
use dp_rank::train::{
    Document, Grades, ListPresence, PrivateRanking, Protect, Protected, RankingDerivation, TrainError, TrainedRanker,
    WholeList,
};

use super::settings::{Method, Settings};
use super::{AnyLoss, AnyScorer};
use crate::args::RankTrainArgs;
use crate::commands::train::refusal;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::limit;
use crate::output::Console;

/// The source of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The system: the release is private.
    Secret,
    /// A seed: the result is reproducible and not private.
    Seed(u64),
}

/// The result of training.
pub(super) struct Fitted {
    pub(super) scorer: AnyScorer,
    pub(super) weights: Vec<f64>,
    /// The private release; `None` without privacy.
    released: Option<Box<dyn Certified>>,
    plain: PlainRanking,
    /// The description of the privately trained model.
    model: Option<TrainedModel>,
    /// True if a limit on planning was reached.
    pub(super) is_short: bool,
}

/// A private release, for any protected unit.
trait Certified {
    fn reached(&self) -> EpsilonDelta;
    fn weights(&self) -> &[f64];
    fn certificate(&self, model_sha256: String, versions: BTreeMap<String, String>) -> Certificate<RankingDerivation>;
}

impl<P: Protect> Certified for TrainedRanker<P> {
    fn reached(&self) -> EpsilonDelta {
        self.reached
    }

    fn weights(&self) -> &[f64] {
        self.weights.get()
    }

    fn certificate(&self, model_sha256: String, versions: BTreeMap<String, String>) -> Certificate<RankingDerivation> {
        // An input line that is not a list is an error, for every protected unit.
        self.certificate(vec![Assumption::EveryRecordConforms], model_sha256, versions)
    }
}

/// A private training to be planned for a given protected unit.
trait ForProtected {
    type Output;
    fn with<P: Protect>(self, protects: P) -> Self::Output;
}

fn under<T: ForProtected>(protected: Protected, training: T) -> T::Output {
    match protected {
        Protected::Grades => training.with(Grades),
        Protected::ListPresence => training.with(ListPresence),
        Protected::WholeList => training.with(WholeList),
        Protected::Document => training.with(Document),
    }
}

/// The cost of a training, known before any list is read.
pub(super) struct Foreseen {
    pub(super) reached: EpsilonDelta,
    pub(super) noise_multiplier: f64,
}

/// Plans for `lists` lists and the given number of parameters.
pub(super) fn foresee(
    protected: Protected,
    recipe: PrivateRanking<AnyLoss>,
    budget: Budget,
    lists: u64,
    parameters: u64,
) -> Result<Foreseen, Failure> {
    struct Plan(PrivateRanking<AnyLoss>, Budget, u64, u64);
    impl ForProtected for Plan {
        type Output = Result<Foreseen, TrainError>;
        fn with<P: Protect>(self, protects: P) -> Self::Output {
            let plan = self.0.protecting(protects).plan(self.2, self.3, self.1)?;
            Ok(Foreseen { reached: plan.reached(), noise_multiplier: plan.noise_multiplier() })
        }
    }
    under(protected, Plan(recipe, budget, lists, parameters)).map_err(|error| refused(&error))
}

/// Plans and trains.
struct Train<'a> {
    recipe: PrivateRanking<AnyLoss>,
    budget: Budget,
    limit: Option<f64>,
    scorer: &'a AnyScorer,
    start: Vec<f64>,
    lists: &'a QueryLists,
    source: Source,
    observer: &'a mut dyn FnMut(u64, &[f64]),
}

impl ForProtected for Train<'_> {
    type Output = Result<(Box<dyn Certified>, bool), Failure>;
    fn with<P: Protect>(self, protects: P) -> Self::Output {
        let Self { recipe, budget, limit, scorer, start, lists, source, observer } = self;
        let plan = || recipe.protecting(protects).plan(lists.len() as u64, scorer.parameters() as u64, budget);
        let planned = limit::silently(limit, plan)?;
        let plan = planned.value.map_err(|error| refused(&error))?;
        let trained = match source {
            Source::Secret => plan.train(scorer, start, lists, &mut secret()?, observer),
            Source::Seed(seed) => plan.train(scorer, start, lists, &mut SeededRng::new(seed), observer),
        };
        Ok((Box::new(trained.map_err(|error| refused(&error))?), planned.is_short))
    }
}

/// Returns a training as a black box, on few lists of documents with few features.
///
/// # Errors
/// `usage.*`, and `privacy.*` if no guarantee is possible.
pub fn family(
    name: String,
    args: &RankTrainArgs,
    pairs: impl FnOnce(Protected, bool) -> Arc<Pairs>,
) -> Result<Box<dyn Lineup>, Failure> {
    struct Build<F> {
        name: String,
        settings: Settings,
        recipe: PrivateRanking<AnyLoss>,
        budget: Budget,
        pairs: F,
    }
    impl<F: FnOnce(Protected, bool) -> Arc<Pairs>> ForProtected for Build<F> {
        type Output = Result<Box<dyn Lineup>, TrainError>;
        fn with<P: Protect>(self, protects: P) -> Self::Output {
            let Self { name, settings, recipe, budget, pairs } = self;
            let scorer = settings.shape.scorer(DIM as usize)?;
            let pairs = pairs(P::PROTECTED, matches!(scorer, AnyScorer::Linear(_)));
            let start = scorer.start(0);
            let family = Family::new(name, recipe.protecting(protects), budget, scorer, start, pairs)?;
            // Documents are shuffled before a training.
            let shuffled = matches!(settings.named_loss, NamedLoss::Listmle {});
            Ok(Box::new(if shuffled { family.shuffled() } else { family }))
        }
    }
    let settings = Settings::new(&args.model, &args.privacy)?;
    let Method::Private(recipe, budget) = settings.method else {
        return Err(Failure::usage("--non-private", "without privacy there is no claim"));
    };
    let build = Build { name, settings, recipe, budget, pairs };
    under(settings.protects, build).map_err(|error| refused(&error))
}

/// Trains on `lists`. `start` is the public seed of a network's initial weights and of the document order, for a loss that
/// depends on it.
pub(super) fn fit(
    settings: &Settings,
    lists: &QueryLists,
    source: Source,
    start: u64,
    observer: &mut dyn FnMut(u64),
) -> Result<Fitted, Failure> {
    let parameters = settings.parameters(lists.width())? as u64;
    let scorer = settings.shape.scorer(lists.width()).map_err(|error| refused(&error.into()))?;
    let lists = match settings.named_loss {
        // ListMLE breaks ties by the order in the file and would learn that order.
        NamedLoss::Listmle {} => {
            let mut shuffled = lists.clone();
            shuffled.shuffle_documents(start);
            &Cow::Owned(shuffled)
        }
        _ => &Cow::Borrowed(lists),
    };
    let start = scorer.start(start);
    let observer = &mut |update: u64, _: &[f64]| observer(update);
    let m = lists.len() as u64;
    let mut is_short = false;
    let (weights, released, (batch_size, updates)) = match settings.method {
        Method::Private(recipe, budget) => {
            let (scorer, protects) = (&scorer, settings.protects);
            let limit = settings.limit;
            let train = Train { recipe, budget, limit, scorer, start, lists, source, observer };
            let (released, short) = under(protects, train)?;
            is_short = short;
            (released.weights().to_vec(), Some(released), (recipe.batch_size, recipe.descent.updates))
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
    Ok(Fitted { scorer, weights, released, plain, model: settings.trained_model(), is_short })
}

impl Fitted {
    /// Returns the guarantee, if there is one; for a seeded run, the guarantee of an unseeded one.
    pub(super) fn reached(&self) -> Option<EpsilonDelta> {
        self.released.as_ref().map(|released| released.reached())
    }

    /// Returns the certificate of a ranker with this hash.
    pub(super) fn certificate(&self, model_sha256: String) -> Certificate<RankerDerivation> {
        let versions = BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
        match &self.released {
            Some(released) => released.certificate(model_sha256, versions).map_derivation(|ranking| {
                RankerDerivation::PrivateRanking(PrivateRanker { ranking, model: self.model })
            }),
            None => {
                let derivation = RankerDerivation::NonPrivateRanking(self.plain);
                Certificate::without_guarantee(AdjacencyKind::ChangeListLabels, Unit::List, derivation)
                    .of_model(model_sha256, versions)
            }
        }
    }
}

fn secret() -> Result<OsSeeded, Failure> {
    OsSeeded::new().map_err(|error| refusal(&error.into()))
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

/// Warns that a loss will take long: `n! / (n - k)!` orders of the longest list.
pub(super) fn warn_orders(settings: &Settings, lists: &QueryLists, console: &Console) {
    let NamedLoss::Listnet { k } = settings.named_loss else { return };
    let longest = lists.longest();
    let orders = dp_rank::plackett_luce::prefixes(longest, k);
    if k > 1 && orders > MANY_ORDERS {
        let text = format!(
            "listnet with --k {k} goes through {orders} orders of a list of {longest} documents, in every update that \
             draws it\nuse --k 1, or bayesrank, which needs no orders"
        );
        // The length of a list may be protected.
        if settings.protects.has_public_lengths() { console.warn(&text) } else { console.warn_curator(&text) }
    }
}
