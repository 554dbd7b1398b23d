//! Audits of the private training on worst-case canary lists, in each mode.
//!
//! All lists but one are empty, and the steps are so short that all gradients are those at the origin. All iterates may be
//! published, so the attacker sees every noisy sum. Each sum is noise about 0, or about the canary's contribution if the canary
//! was drawn. The score is the logarithm of the likelihood ratio of all sums.
//!
//! The audit runs the whole training, batches and noise included, against the event of its certificate.
//!
//! # Examples
//! ```
//! use dp_audit_recipes::Parameters;
//! for recipe in dp_audit_recipes::rank::RECIPES {
//!     for audited in recipe.subjects(&Parameters::default())? {
//!         // One list changes a sum by at most the claimed distance, and by nearly as much.
//!         assert!(audited.distance.holds() && audited.distance.ratio() > 0.99, "{}", audited.subject.name());
//!     }
//! }
//! # Ok::<(), dp_rank::train::TrainError>(())
//! ```

pub mod black_box;

use crate::scored::scored;
use crate::{Audited, Distance, Parameters, Setting, mode_name};
use dp_accountant::certificate::Derivation as _;
use dp_audit::{Claim, Side};
use dp_mechanisms::SeededRng;
use dp_optim::recipes::Budget;

use dp_rank::Error;
use dp_rank::QueryLists;
use dp_rank::audit;
use dp_rank::loss::BayesRank;
use dp_rank::scorer::{Linear, Scorer as _};
use dp_rank::train::{
    Descent, Document, Grades, ListPresence, PrivateRanking, Protect, Protected, Scaling, TrainError, WholeList,
};
use rand::RngExt as _;

/// A step too short to change any gradient.
const SHORT: f64 = 1e-7;

/// Costs of a step, of each coordinate of a step, and of the rest of a run, in units of releasing one number.
const COST_OF_A_STEP: f64 = 2.0;
const COST_OF_A_COORDINATE: f64 = 2.0;
const COST_OF_A_RUN: f64 = 10.0;

/// The largest number of documents of the lists that are drawn at random.
const MOST_DOCUMENTS: usize = 6;

/// A training that can be audited.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// The name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The settings that have an effect.
    pub settings: &'static [Setting],
    build: fn(&'static str, &Parameters) -> Result<Vec<Audited>, TrainError>,
}

impl Recipe {
    /// Returns the audited trainings: one for each noise mode; where grades are protected, one with clipping and one with public
    /// weights of thinned lists for each noise mode.
    /// Uses the parameters `n` (lists), `dim`, `epsilon`, `delta`, `passes`, `batch_size`, `noise_mode` and `pairs`. The
    /// neighbouring relation is the recipe's own. Without a delta the result is empty, as all noise is Gaussian.
    ///
    /// # Errors
    /// If the training refuses the parameters.
    pub fn subjects(&self, parameters: &Parameters) -> Result<Vec<Audited>, TrainError> {
        (self.build)(self.name, parameters)
    }
}

/// The training in each of its protection modes.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        name: "rank-grades",
        about: "a ranker's clipped or weighted gradients, the grades of one list changed (change-list-labels)",
        settings: &[Setting::Passes, Setting::BatchSize],
        build: |name, parameters| {
            let mut all = build(name, Grades, Form::Clipped, parameters)?;
            all.extend(build(name, Grades, Form::Thinned, parameters)?);
            Ok(all)
        },
    },
    Recipe {
        name: "rank-list-presence",
        about: "a ranker's clipped gradients, one whole list there or empty (add-remove)",
        settings: &[Setting::Passes, Setting::BatchSize],
        build: |name, parameters| build(name, ListPresence, Form::Clipped, parameters),
    },
    Recipe {
        name: "rank-lists",
        about: "a ranker's clipped gradients, one whole list replaced (replace-one)",
        settings: &[Setting::Passes, Setting::BatchSize],
        build: |name, parameters| build(name, WholeList, Form::Clipped, parameters),
    },
    Recipe {
        name: "rank-documents",
        about: "a ranker's clipped gradients, one document of one list replaced (replace-one)",
        settings: &[Setting::Passes, Setting::BatchSize],
        build: |name, parameters| build(name, Document, Form::Clipped, parameters),
    },
];

/// Returns the recipe of this name.
pub fn recipe(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name)
}

/// Returns all audited trainings of all recipes under these parameters.
///
/// # Errors
/// If a recipe refuses the parameters.
pub fn subjects(parameters: &Parameters) -> Result<Vec<Audited>, TrainError> {
    let mut all = Vec::new();
    for recipe in RECIPES {
        all.extend(recipe.subjects(parameters)?);
    }
    Ok(all)
}

/// The bound on a list's contribution.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Clipped,
    Thinned,
}

/// One list: features in one dimension, and grades.
#[derive(Debug, Clone, PartialEq)]
struct Canary {
    features: Vec<f64>,
    grades: Vec<u32>,
}

impl Canary {
    /// Returns a list that contributes 0.
    fn empty() -> Self {
        Self { features: vec![0.0], grades: vec![0] }
    }

    /// Returns the pair of versions with the largest distance, for a clipping norm of 1.
    fn pair(protected: Protected, form: Form) -> [Self; 2] {
        let list = |features: &[f64], grades: &[u32]| Self { features: features.to_vec(), grades: grades.to_vec() };
        match (protected, form) {
            // Opposite gradients, long enough to be clipped.
            (Protected::Grades, Form::Clipped) => [list(&[8.0, -8.0], &[2, 0]), list(&[8.0, -8.0], &[0, 2])],
            // One contribution of the largest norm; the other is collinear with it, at the largest distance.
            (Protected::Grades, Form::Thinned) => {
                let apart = std::f64::consts::SQRT_2;
                let features = [8.0, 8.0 * (1.0 - apart), 4.0 * (apart - 2.0), 4.0 * (apart - 2.0)];
                [list(&features, &[2, 0, 0, 0]), list(&features, &[1, 2, 0, 1])]
            }
            (Protected::ListPresence, _) => [Self::empty(), list(&[8.0, -8.0], &[2, 0])],
            (Protected::WholeList, _) => [list(&[8.0, -8.0], &[2, 0]), list(&[-9.0, 5.0, 9.0], &[1, 0, 0])],
            (Protected::Document, _) => [list(&[0.0, 16.0], &[0, 2]), list(&[0.0, -16.0], &[0, 1])],
        }
    }

    /// Two versions drawn at random.
    fn drawn(protected: Protected, dice: &mut SeededRng) -> [Self; 2] {
        let mut list = |documents: usize| {
            let scale = [0.3, 3.0, 30.0][dice.random_range(0..3)];
            let features = (0..documents).map(|_| scale * (2.0 * dice.random::<f64>() - 1.0)).collect();
            Self { features, grades: (0..documents).map(|_| dice.random_range(0..3) as u32).collect() }
        };
        // At least two documents, so that the ranking loss is not constant.
        let (one, other) = (list(MOST_DOCUMENTS), list(MOST_DOCUMENTS - 2));
        match protected {
            Protected::Grades => {
                let again = list(MOST_DOCUMENTS);
                [one.clone(), Self { grades: again.grades, ..one }]
            }
            Protected::ListPresence => [Self::empty(), one],
            Protected::WholeList => [one, other],
            Protected::Document => {
                let mut changed = one.clone();
                (changed.features[1], changed.grades[1]) = (other.features[0], other.grades[0]);
                [one, changed]
            }
        }
    }

    /// Returns `n` lists: this one and `n - 1` empty ones, each feature multiplied by `scale`, in the first of `dim` coordinates.
    fn among(&self, n: u64, dim: usize, scale: f64) -> Result<QueryLists, Error> {
        let mut lists = QueryLists::new(dim, 2)?;
        let empty = Self::empty();
        for list in 0..n {
            let Self { features, grades } = if list == 0 { self } else { &empty };
            let mut values = vec![0.0; features.len() * dim];
            values.iter_mut().step_by(dim).zip(features).for_each(|(value, feature)| *value = scale * feature);
            lists.push(&list.to_string(), &values, grades)?;
        }
        Ok(lists)
    }

    fn describe(&self) -> String {
        let documents = self.features.iter().zip(&self.grades).map(|(x, grade)| format!("{x:.3}: {grade}"));
        documents.collect::<Vec<_>>().join(", ")
    }
}

fn build<P: Protect>(
    name: &'static str,
    protects: P,
    form: Form,
    parameters: &Parameters,
) -> Result<Vec<Audited>, TrainError> {
    if !(parameters.delta > 0.0) {
        return Ok(Vec::new());
    }
    let &Parameters { n, passes, batch_size, pairs, .. } = parameters;
    let dim = usize::try_from(parameters.dim).unwrap_or(usize::MAX);
    let scorer = Linear::new(dim)?;
    let budget = Budget::new(parameters.epsilon, parameters.delta)?;
    let updates = passes.saturating_mul(n.checked_div(batch_size).unwrap_or(0).max(1));
    let mut all = Vec::new();
    for noise_mode in parameters.modes() {
        let recipe = PrivateRanking {
            batch_size,
            descent: Descent { updates, step: SHORT, falling: false, normalise: None },
            noise_mode,
            thin: form == Form::Thinned,
            scaling: if form == Form::Thinned { Scaling::THINNED } else { Scaling::Clip },
            ..PrivateRanking::new(BayesRank::TOP_1)
        };
        let plan = recipe.protecting(protects).plan(n, parameters.dim, budget)?;
        let clipping = recipe.clipping;
        let claimed = audit::sensitivity(&plan)?;
        // The first coordinate of a version's contribution; the others are 0.
        let adds = |canary: &Canary| -> Result<f64, TrainError> {
            let lists = canary.among(1, dim, clipping)?;
            let key = recipe.thin.then_some([0; 32]);
            let of_list = audit::contribution(&recipe, &scorer, key, &vec![0.0; dim], lists.list(0))[0];
            Ok(of_list.clamp(-clipping, clipping))
        };
        let worst = Canary::pair(P::PROTECTED, form);
        let added = [adds(&worst[0])?, adds(&worst[1])?];
        let mut reached = (added[0] - added[1]).abs();
        let mut dice = SeededRng::new(u64::from(pairs));
        for _ in 0..pairs {
            let [one, other] = Canary::drawn(P::PROTECTED, &mut dice);
            reached = reached.max((adds(&one)? - adds(&other)?).abs());
        }
        let derivation = plan.derivation();
        let event = derivation.event()?;
        let mode = mode_name(noise_mode);
        let form = match form {
            Form::Thinned => "thinned/",
            Form::Clipped if P::PROTECTED == Protected::Grades => "clipped/",
            Form::Clipped => "",
        };
        let [base, neighbour] = worst.each_ref().map(Canary::describe);
        let pair = format!("one list ({base}) against ({neighbour}), in clipping norms, all others empty");
        let claim = Claim { event, delta: parameters.delta };
        let cost = COST_OF_A_RUN + (COST_OF_A_STEP + COST_OF_A_COORDINATE * dim as f64) * updates as f64;
        let lists = [worst[0].among(n, dim, clipping)?, worst[1].among(n, dim, clipping)?];
        let (law, std_dev) = (audit::law(&plan), derivation.std_dev);
        // Steps divide by the mean batch size.
        let (rate, from_step) = (law.sampling_rate(n)?.get(), law.mean_size(n)? / SHORT);
        let subject = scored(format!("{name}/{form}{mode}"), pair, claim, cost, move |side, rng| {
            let lists = &lists[usize::from(side == Side::Neighbour)];
            let (mut score, mut before) = (0.0, 0.0);
            let mut observer = |update: u64, parameters: &[f64]| {
                if update > 0 {
                    let noisy = (before - parameters[0]) * from_step;
                    let [base, neighbour] = added.map(|added| log_ratio(noisy, added, rate, std_dev));
                    score += neighbour - base;
                }
                before = parameters[0];
            };
            plan.train(&scorer, vec![0.0; scorer.parameters()], lists, rng, &mut observer).map(|_| score)
        });
        all.push(Audited { subject, distance: Distance { reached, claimed, pairs: pairs.saturating_add(1) } });
    }
    Ok(all)
}

/// Returns the log-likelihood ratio of a noisy sum with and without the canary, `ln(1 - q + q e^t)`, where `q` is the sampling
/// rate and `t` the log-likelihood ratio given that the canary was drawn.
fn log_ratio(noisy: f64, added: f64, rate: f64, std_dev: f64) -> f64 {
    let t = added * (noisy - 0.5 * added) / (std_dev * std_dev);
    if t > 0.0 { t + (rate + (1.0 - rate) * (-t).exp()).ln() } else { (rate * t.exp_m1()).ln_1p() }
}
