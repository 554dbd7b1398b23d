//! A private algorithm with its settings, for records of a given shape.

use dp::planning::smallest;
use dp::training::{Shape, Task, Training, USELESS};
use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{AdjacencyKind, DpEvent, Epsilon, ReplaceOne, ZeroOut};
use dp_data::Encoder;
use dp_optim::catalogue::{self, Advice, Built, Entry, Settings};
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{AnyRecipe, Budget, Planned, Recipe, RecordAdjacency, Summary};

use super::config::TrainConfig;
use super::outcome::expectation;
use super::privacy::Method;
use super::refusal::refusal;
use super::tuning::Tuning;
use crate::args::{Adjacency, word};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::conflict;

/// Returns the training of a configuration.
fn training(config: &TrainConfig, algorithm: &'static Entry, budget: Budget, relation: AdjacencyKind) -> Training {
    let training = Training::of_budget(budget)
        .by_entry(algorithm)
        .with_settings(config.settings.clone())
        .under(relation)
        .with_encoding(config.encoding)
        .with_noise(config.noise)
        .in_float(config.float);
    let training = if config.sums.is_some() { training.on_sums() } else { training };
    let training = if config.at_base_rate { training.at_base_rate() } else { training };
    let training = match config.one_vs_all {
        Some(models) => training.one_against_the_rest(models.share),
        None => training,
    };
    let training = match config.tuning.as_ref().and_then(Tuning::choice) {
        Some(choice) => training.choosing(choice),
        None => training,
    };
    let training = match config.tried {
        Some(fourier) => training.trying_fourier(fourier),
        None => training,
    };
    match &config.unit {
        Some(unit) => training.per_unit(&unit.column, unit.most),
        None => training,
    }
}

/// Returns what is to be learnt.
fn task(config: &TrainConfig) -> Task {
    Task { loss: config.loss, classes: config.one_vs_all.map_or(2, |models| models.classes) }
}

/// Returns the derivation of the baseline without privacy.
pub(super) fn non_private(config: &TrainConfig, shape: Shape) -> Result<NonPrivateDerivation, Failure> {
    let TrainConfig { settings, loss, float, .. } = config;
    catalogue::non_private(settings, *loss, *float, shape.sparse, shape.n).map_err(|error| refusal(&error))
}

/// Returns the encoder with the functions of numeric columns that the algorithm chooses for `n` records.
pub(super) fn mapped(config: &TrainConfig, encoder: &Encoder, n: u64) -> Result<Encoder, Failure> {
    let Method::Private { algorithm, budget, adjacency } = config.method else { return Ok(encoder.clone()) };
    let training = training(config, algorithm.0, budget, algorithm.relation(adjacency)?);
    Ok(training.mapped(task(config), encoder, n)?)
}

/// Rejects a flag that the algorithm `name` does not take; `taken` are its flags.
pub(in crate::commands) fn check_flags(name: &str, taken: &[&str], settings: &Settings) -> Result<(), Failure> {
    let Some(setting) = settings.given().find(|setting| !taken.contains(setting)) else { return Ok(()) };
    let flag = format!("--{setting}");
    let taken = match taken {
        [] => "none of --lambda, --passes and the like".to_owned(),
        _ => taken.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(", "),
    };
    Err(conflict(&flag, format!("{flag} is no setting of {name}"))
        .expected(format!("of the flags that depend on the algorithm: {taken}"))
        .help(format!("omit {flag}, or choose another --algorithm")))
}

/// The expected loss of a model that is worth its cost.
const WORTH: f64 = 0.2;
/// The largest epsilon that is advised.
const LARGEST_ADVISED: f64 = 10.0;
/// The largest number of units that is advised, as a multiple.
const MOST_TIMES: f64 = 1e6;

/// The facts about a release that are known before data is read.
pub(super) struct Foreseen {
    pub(super) event: DpEvent,
    pub(super) reached: EpsilonDelta,
    pub(super) summary: Summary,
    pub(super) advice: Option<Advice>,
}

/// A private algorithm.
#[derive(Debug, Clone, Copy)]
pub struct PrivateAlgorithm(pub &'static Entry);

impl PrivateAlgorithm {
    /// Returns its name as typed.
    pub(super) fn name(self) -> String {
        self.0.name.to_owned()
    }

    /// Returns the default relation.
    pub(super) fn usual_relation(self) -> Adjacency {
        typed(self.0.usual_relation())
    }

    /// Returns the recipe for records of this shape, and the relation that it is proved under.
    pub(super) fn recipe(
        self,
        config: &TrainConfig,
        budget: Budget,
        adjacency: Adjacency,
        shape: Shape,
    ) -> Result<(Built, AdjacencyKind), Failure> {
        let relation = self.relation(adjacency)?;
        Ok((training(config, self.0, budget, relation).recipe(task(config), shape)?, relation))
    }

    /// Returns the best combination of settings by `choose`, which gets the recipe of each and the budget of one record, as a
    /// recipe that protects the unit of the configuration.
    pub(super) fn chosen(
        self,
        config: &TrainConfig,
        budget: Budget,
        relation: AdjacencyKind,
        shape: Shape,
        grid: &[Settings],
        choose: impl FnOnce(&[AnyRecipe], Budget) -> Result<usize, Failure>,
    ) -> Result<(AnyRecipe, usize), Failure> {
        let training = training(config, self.0, budget, relation);
        let mut candidates = training.candidates(grid, task(config), shape)?;
        let position = choose(&candidates, training.budget_of_a_record(shape.n)?)?;
        if position >= candidates.len() {
            return Err(Failure::new(ExitStatus::Failed, "train.failed", "there is nothing to train"));
        }
        Ok((training.protecting(candidates.swap_remove(position)), position))
    }

    /// Plans the release for records of this shape.
    pub(super) fn foresee(
        self,
        config: &TrainConfig,
        budget: Budget,
        adjacency: Adjacency,
        shape: Shape,
    ) -> Result<Foreseen, Failure> {
        let (built, relation) = self.recipe(config, budget, adjacency, shape)?;
        match relation {
            AdjacencyKind::ZeroOut => foresee::<ZeroOut>(built, budget, shape),
            AdjacencyKind::ReplaceOne => foresee::<ReplaceOne>(built, budget, shape),
            _ => Err(self.no_proof()),
        }
    }

    /// Refuses a training whose model will be useless according to public numbers, and says what would help.
    ///
    /// # Errors
    /// `train.useless`.
    pub(super) fn check_worth(
        self,
        config: &TrainConfig,
        budget: Budget,
        adjacency: Adjacency,
        shape: Shape,
        advice: &Advice,
    ) -> Result<(), Failure> {
        if advice.expected_loss < USELESS || config.anyway {
            return Ok(());
        }
        let is_worth = |budget: Budget, shape: Shape| {
            let built = self.recipe(config, budget, adjacency, shape).ok().map(|built| built.0);
            built.and_then(|built| built.advice).is_some_and(|advice| advice.expected_loss <= WORTH)
        };
        let units = config.units(shape.n) as f64;
        let records =
            |units: f64| Shape { n: (units as u64).saturating_mul(shape.n / config.units(shape.n).max(1)), ..shape };
        let rows = smallest(units, MOST_TIMES * units, |units| {
            let shape = records(units);
            // A suggested delta falls with the number.
            let Method::Private { budget: of_records, .. } = config.for_records(shape.n).method else { return false };
            is_worth(Budget { delta: of_records.delta, ..budget }, shape)
        });
        let epsilon = smallest(budget.epsilon.get(), LARGEST_ADVISED, |epsilon| {
            Epsilon::new(epsilon).is_ok_and(|epsilon| is_worth(Budget { epsilon, ..budget }, shape))
        });
        let helps = [
            rows.map(|units| format!("about {units} {}", config.units_are_called())),
            epsilon.map(|epsilon| format!("--epsilon {epsilon}")),
            Some("fewer features".to_owned()),
            config.tried.map(|_| "no --fourier-if-better".to_owned()),
        ];
        let helps: Vec<String> = helps.into_iter().flatten().collect();
        Err(Failure::new(
            ExitStatus::Privacy,
            "train.useless",
            format!("the model would be useless: expect it {}", expectation(advice, &config.loss.to_string())),
        )
        .expected("a loss below one half, from public numbers alone")
        .help(format!(
            "for a loss of about {:.0}% use {}; --anyway trains all the same. Nothing was released",
            100.0 * WORTH,
            helps.join(", or ")
        )))
    }

    /// Rejects, before any record is read, a configuration that is wrong for every number of records.
    pub(super) fn check(self, config: &TrainConfig, budget: Budget, adjacency: Adjacency) -> Result<(), Failure> {
        let check = |config: &TrainConfig| {
            let (n, dim) = self.0.shape_to_check(&config.settings);
            let n = n.saturating_mul(config.unit.as_ref().map_or(1, |unit| unit.most));
            self.foresee(config, budget, adjacency, Shape { n, dim, sparse: false }).map(drop)
        };
        match &config.tuning {
            // Each is checked alone: the cost of the selection does not depend on the number of records.
            Some(tuning) => tuning.grid.iter().try_for_each(|settings| check(&config.for_settings(settings))),
            None => check(&TrainConfig { tried: None, ..config.clone() }),
        }
    }

    /// Returns the requested relation, if there is a proof under it. `dp train` publishes the number of records.
    pub(in crate::commands) fn relation(self, adjacency: Adjacency) -> Result<AdjacencyKind, Failure> {
        let proved = self.0.relations.iter().find(|relation| typed(**relation) == adjacency);
        proved.copied().ok_or_else(|| self.no_proof())
    }

    pub(super) fn no_proof(self) -> Failure {
        let mut proved: Vec<String> = self.0.relations.iter().map(|relation| word(&typed(*relation))).collect();
        if let Some(usual) = proved.first_mut() {
            usual.push_str(" (the default)");
        }
        Failure::new(
            ExitStatus::Privacy,
            "privacy.adjacency",
            format!("{} has no proof under this neighbouring relation", self.0.name),
        )
        .at_flag("--adjacency")
        .expected(proved.join(" or "))
        .help("choose what is proved, or another --algorithm; nothing was read or released")
    }
}

/// Returns a relation of algorithms as typed.
fn typed(relation: AdjacencyKind) -> Adjacency {
    if relation == AdjacencyKind::ZeroOut { Adjacency::AddRemove } else { Adjacency::ReplaceOne }
}

fn foresee<A: RecordAdjacency>(built: Built, budget: Budget, shape: Shape) -> Result<Foreseen, Failure> {
    let plan = built.recipe.plan::<A>(shape.n, shape.dim, budget).map_err(|error| refusal(&error))?;
    Ok(Foreseen { event: plan.event(), reached: plan.reached(), summary: plan.summary(), advice: built.advice })
}
