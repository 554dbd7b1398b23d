//! From settings and public numbers to a recipe.
//!
//! Each private algorithm is one [`PrivateAlgorithm`] in a file of its own: which flags it takes, under which
//! neighbouring relations it is proved, and how settings become its recipe. [`private`] names them all; everything else
//! (planning, training, certificates, dry runs) goes through [`AnyRecipe`].

mod adam;
mod admm;
mod auto;
mod bolt_on;
mod bst14;
mod choice;
mod dp_ftrl;
mod dp_gd;
mod dp_newton;
mod dp_sgd;
mod dp_svrg;
mod last_iterate;
mod non_private;
mod obj_pert;
mod one_vs_all;
mod phased;
mod refusal;
mod rsgd_ar;
mod scs13;
mod searched;
mod steps;

use clap::ValueEnum;
use dp_accountant::certificate::EpsilonDelta;
use dp_accountant::{AdjacencyKind, DpEvent, ReplaceOne, ZeroOut};
use dp_losses::Penalty;
use dp_optim::growth::Arithmetic;
use dp_optim::recipes::{AnyRecipe, Budget, Planned, Recipe, RecordAdjacency, Stopping, Summary};

pub use auto::Advice;
pub(super) use non_private::non_private;
pub(in crate::commands) use refusal::refusal;

use super::config::TrainConfig;
use super::settings::Settings;
use crate::args::{Adjacency, Algorithm};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::conflict;

/// The public shape of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) n: u64,
    pub(super) dim: u64,
    /// Whether rows are stored sparse, which follows from the schema.
    pub(super) sparse: bool,
}

/// The fewest features, intercept included, to which the settings can apply.
fn fewest_features(settings: &Settings) -> u64 {
    match settings.any_penalty() {
        Some(Penalty::Group { sizes, .. }) => sizes.iter().fold(1, |sum, &size| sum + u64::from(size)),
        _ => 1,
    }
}

/// What a recipe is made from: what was asked for, and public numbers.
#[derive(Clone, Copy)]
struct Request<'c> {
    config: &'c TrainConfig,
    budget: Budget,
    relation: AdjacencyKind,
    shape: Shape,
}

/// What the command line has to know of a private algorithm.
#[derive(Debug)]
pub struct PrivateAlgorithm {
    /// Its value of `--algorithm`.
    name: Algorithm,
    /// The relations that it has a proof under; the first is the default.
    relations: &'static [Adjacency],
    /// Flags that it takes, of those that not every algorithm takes (see [`Settings::given`]).
    flags: &'static [&'static str],
    /// A number of records with which its parameters can be checked before the records are read: no check may fail
    /// because they are too few, and planning has to be quick.
    records_to_check: fn(&Settings) -> u64,
    /// The recipe: what was asked for, and for the rest what is recommended for these public numbers.
    build: fn(&Request<'_>) -> Result<Built, Failure>,
}

/// A recipe, and what there is to say of how it was chosen.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) recipe: AnyRecipe,
    /// Of an algorithm that is chosen.
    pub(super) advice: Option<Advice>,
}

impl<R: Into<AnyRecipe>> From<R> for Built {
    fn from(recipe: R) -> Self {
        Self { recipe: recipe.into(), advice: None }
    }
}

/// The private algorithm of a name; `None` for the baseline.
pub(super) fn private(algorithm: Algorithm) -> Option<&'static PrivateAlgorithm> {
    match algorithm {
        Algorithm::Auto => Some(&auto::AUTO),
        Algorithm::BoltOnConvex => Some(&bolt_on::CONVEX),
        Algorithm::BoltOnStronglyConvex => Some(&bolt_on::STRONGLY_CONVEX),
        Algorithm::Bst14Convex => Some(&bst14::CONVEX),
        Algorithm::Bst14StronglyConvex => Some(&bst14::STRONGLY_CONVEX),
        Algorithm::DpSgd => Some(&dp_sgd::DP_SGD),
        Algorithm::DpGd => Some(&dp_gd::DP_GD),
        Algorithm::DpFtrl => Some(&dp_ftrl::DP_FTRL),
        Algorithm::DpNewton => Some(&dp_newton::DP_NEWTON),
        Algorithm::DpAdam => Some(&adam::DP_ADAM),
        Algorithm::DpAdambc => Some(&adam::DP_ADAMBC),
        Algorithm::SsAdmm => Some(&admm::SS_ADMM),
        Algorithm::MpAdmm => Some(&admm::MP_ADMM),
        Algorithm::DpAdmm => Some(&admm::DP_ADMM),
        Algorithm::DpSvrg => Some(&dp_svrg::DP_SVRG),
        Algorithm::NoisyMoments => Some(&obj_pert::NOISY_MOMENTS),
        Algorithm::ObjPert => Some(&obj_pert::OBJ_PERT),
        Algorithm::Amp => Some(&obj_pert::AMP),
        Algorithm::AdmmObjPert => Some(&obj_pert::ADMM_OBJ_PERT),
        Algorithm::PhasedSgd => Some(&phased::SGD),
        Algorithm::PhasedErm => Some(&phased::ERM),
        Algorithm::Pnsgd => Some(&last_iterate::PNSGD),
        Algorithm::DpBlgd => Some(&searched::DP_BLGD),
        Algorithm::DpBlsgd => Some(&searched::DP_BLSGD),
        Algorithm::DpBlsgdAc => Some(&searched::DP_BLSGD_AC),
        Algorithm::DpAgd => Some(&searched::DP_AGD),
        Algorithm::PrivGene => Some(&choice::PRIV_GENE),
        Algorithm::Majority => Some(&choice::MAJORITY),
        Algorithm::RsgdAr => Some(&rsgd_ar::RSGD_AR),
        Algorithm::Nsgd => Some(&rsgd_ar::NSGD),
        Algorithm::OutPertGd => Some(&rsgd_ar::OUT_PERT_GD),
        Algorithm::SnowballSgd => Some(&last_iterate::SNOWBALL_SGD),
        Algorithm::Scs13 => Some(&scs13::SCS13),
        Algorithm::NonPrivate => None,
    }
}

/// Refuses a flag that the algorithm does not take.
pub(super) fn check_flags(algorithm: Algorithm, settings: &Settings) -> Result<(), Failure> {
    let taken = private(algorithm).map_or(non_private::FLAGS, |private| private.flags);
    match settings.given().find(|flag| !taken.contains(flag)) {
        None => Ok(()),
        Some(flag) => {
            let name = name(algorithm);
            let taken =
                if taken.is_empty() { "none of --lambda, --passes and the like".to_owned() } else { taken.join(", ") };
            Err(conflict(flag, format!("{flag} is no setting of {name}"))
                .expected(format!("of the flags that depend on the algorithm: {taken}"))
                .help(format!("leave {flag} away, or choose another --algorithm")))
        }
    }
}

/// The name of an algorithm as typed.
pub(super) fn name(algorithm: Algorithm) -> String {
    algorithm.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What is known of a release before data is read.
pub(super) struct Foreseen {
    pub(super) event: DpEvent,
    pub(super) reached: EpsilonDelta,
    pub(super) summary: Summary,
    pub(super) advice: Option<Advice>,
}

impl PrivateAlgorithm {
    /// Its name as typed.
    pub(super) fn name(&self) -> String {
        name(self.name)
    }

    /// Whether how long a training takes tells of the records: it goes on until its minimiser is certified, or may.
    pub(super) fn takes_as_long_as_it_takes(&self, settings: &Settings) -> bool {
        matches!(
            self.name,
            Algorithm::Auto | Algorithm::ObjPert | Algorithm::Amp | Algorithm::AdmmObjPert | Algorithm::PhasedErm
        ) || matches!(settings.stopping, Some(Stopping::CertifiedMinimiser { .. }))
    }

    /// The relation unless another is asked for.
    pub(super) fn usual_relation(&self) -> Adjacency {
        self.relations.first().copied().unwrap_or(Adjacency::ReplaceOne)
    }

    /// The recipe for records of this shape, and the relation that it is proved under.
    pub(super) fn recipe(
        &self,
        config: &TrainConfig,
        budget: Budget,
        adjacency: Adjacency,
        shape: Shape,
    ) -> Result<(Built, AdjacencyKind), Failure> {
        let relation = self.relation(adjacency)?;
        let Some(tuning) = &config.tuning else {
            return Ok((self.one(&Request { config, budget, relation, shape })?, relation));
        };
        let recipe = tuning.recipe(self.candidates(config, budget, relation, shape)?);
        let none = || Failure::new(ExitStatus::Failed, "train.failed", "there is nothing to train");
        Ok((recipe.ok_or_else(none)?.into(), relation))
    }

    /// The recipe of each combination of settings to choose among; or of the settings, where there is no choice.
    pub(super) fn candidates(
        &self,
        config: &TrainConfig,
        budget: Budget,
        relation: AdjacencyKind,
        shape: Shape,
    ) -> Result<Vec<AnyRecipe>, Failure> {
        let Some(tuning) = &config.tuning else {
            return Ok(vec![self.one(&Request { config, budget, relation, shape })?.recipe]);
        };
        let shape = tuning.shape_of_one(shape);
        let of_settings = |settings| {
            let config = &config.for_settings(settings);
            Ok(self.one(&Request { config, budget, relation, shape })?.recipe)
        };
        tuning.grid.iter().map(of_settings).collect()
    }

    /// The recipe of one combination of settings.
    fn one(&self, request: &Request<'_>) -> Result<Built, Failure> {
        let Some(models) = request.config.one_vs_all else { return (self.build)(request) };
        // What is recommended for each model: for about the budget that is its own.
        let budget = one_vs_all::budget_of_each(models, request.budget)?;
        let Built { recipe, advice } = (self.build)(&Request { budget, ..*request })?;
        Ok(Built { recipe: one_vs_all::wrapped(models, recipe), advice })
    }

    /// Plans for records of this shape.
    pub(super) fn foresee(
        &self,
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

    /// Refuses, before any record is read, what no number of records would make right.
    pub(super) fn check(&self, config: &TrainConfig, budget: Budget, adjacency: Adjacency) -> Result<(), Failure> {
        let check = |config: &TrainConfig| {
            let (n, dim) = ((self.records_to_check)(&config.settings), fewest_features(&config.settings));
            let shape = Shape { n, dim, sparse: false };
            self.foresee(config, budget, adjacency, shape).map(drop)
        };
        match &config.tuning {
            // Each by itself: what the choice costs depends on no number of records.
            Some(tuning) => tuning.grid.iter().try_for_each(|settings| check(&config.for_settings(settings))),
            None => check(config),
        }
    }

    /// The relation that was asked for, if there is a proof under it. `dp train` publishes the number of records.
    pub(super) fn relation(&self, adjacency: Adjacency) -> Result<AdjacencyKind, Failure> {
        match adjacency {
            Adjacency::AddRemove if self.relations.contains(&adjacency) => Ok(AdjacencyKind::ZeroOut),
            Adjacency::ReplaceOne if self.relations.contains(&adjacency) => Ok(AdjacencyKind::ReplaceOne),
            _ => Err(self.no_proof()),
        }
    }

    pub(super) fn no_proof(&self) -> Failure {
        let name = self.name();
        let mut proved: Vec<String> = self
            .relations
            .iter()
            .filter_map(|relation| relation.to_possible_value())
            .map(|value| value.get_name().to_owned())
            .collect();
        if let Some(usual) = proved.first_mut() {
            usual.push_str(" (the default)");
        }
        Failure::new(
            ExitStatus::Privacy,
            "privacy.adjacency",
            format!("{name} has no proof under this neighbouring relation"),
        )
        .at_flag("--adjacency")
        .expected(proved.join(" or "))
        .help("choose what is proved, or another --algorithm; nothing was read or released")
    }
}

fn foresee<A: RecordAdjacency>(built: Built, budget: Budget, shape: Shape) -> Result<Foreseen, Failure> {
    let plan = built.recipe.plan_copies::<A>(shape.n, shape.dim, budget, 1).map_err(|error| refusal(&error))?;
    Ok(Foreseen { event: plan.event(), reached: plan.reached(), summary: plan.summary(), advice: built.advice })
}

/// How the iterate is carried: added to in place where rows are sparse.
fn arithmetic(shape: Shape) -> Arithmetic {
    if shape.sparse { Arithmetic::Scaled } else { Arithmetic::Buffered }
}

/// The same, or in two parts where so many updates round off too much to hide.
fn private_arithmetic(
    config: &TrainConfig,
    shape: Shape,
    passes: u64,
    batch_size: u64,
    radius: Option<f64>,
) -> Arithmetic {
    let projected = radius.map(|_| config.loss.parameters(shape.dim));
    arithmetic(shape).for_records(shape.n, passes, batch_size, projected)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// Flags of algorithms that all of them take, or whose own check says what they belong to.
    const OF_ALL: [&str; 5] = ["--algorithm", "--loss", "--one-vs-all", "--huber-width", "--float"];

    #[test]
    fn every_flag_of_algorithms_is_taken_by_one_that_says_so() {
        let cli = Cli::command();
        let train = cli.find_subcommand("train").unwrap();
        let of_algorithms: Vec<String> = train
            .get_arguments()
            .filter(|argument| argument.get_help_heading() == Some("Algorithm"))
            .map(|argument| format!("--{}", argument.get_long().unwrap()))
            .filter(|flag| !OF_ALL.contains(&flag.as_str()))
            .collect();
        assert!(of_algorithms.len() > 8);
        let known: Vec<&str> = Settings::default().flags().map(|(flag, _)| flag).collect();
        for flag in &of_algorithms {
            assert!(known.contains(&flag.as_str()), "{flag} is not among the settings");
        }
        assert_eq!(known.len(), of_algorithms.len(), "{known:?} against {of_algorithms:?}");
        for algorithm in Algorithm::value_variants() {
            let taken = private(*algorithm).map_or(non_private::FLAGS, |private| private.flags);
            for flag in taken {
                assert!(known.contains(flag), "{flag} of {}", name(*algorithm));
            }
        }
    }

    #[test]
    fn a_name_stands_for_its_algorithm() {
        for algorithm in Algorithm::value_variants() {
            if let Some(private) = private(*algorithm) {
                assert_eq!(private.name, *algorithm);
                assert!(!private.relations.is_empty());
            }
        }
    }
}
