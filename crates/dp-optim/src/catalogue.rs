//! All algorithms by name, with their settings and neighbouring relations, and the construction of recipes from settings.
//!
//! A front end (a command, a grid search, a binding to another language) takes its help from [`ALGORITHMS`] and
//! [`PARAMETERS`], and the recipe from [`Entry::build`].
//!
//! # Examples
//! ```
//! use dp_accountant::{AdjacencyKind, ZeroOut};
//! use dp_losses::LossKind;
//! use dp_optim::catalogue::{self, Request, Settings};
//! use dp_optim::recipes::{Budget, Planned, Recipe};
//!
//! let settings = Settings { batch_size: Some(200), ..Settings::default() };
//! let budget = Budget::new(1.0, 1e-6)?;
//! let request = Request::new(&settings, LossKind::Logistic, budget, AdjacencyKind::ZeroOut, 10_000, 20);
//! let dp_sgd = catalogue::find("dp-sgd").ok_or("no such algorithm")?;
//! let plan = dp_sgd.build(&request)?.recipe.plan::<ZeroOut>(10_000, 20, budget)?;
//! assert!(plan.reached().epsilon <= 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod model;
mod non_private;
mod obj_pert;
mod phased;
mod rsgd_ar;
mod scs13;
mod searched;
mod settings;
mod steps;
mod without_gradients;

pub use choice::{
    Average, BatchSampling, Choice, ClipRule, CurvatureSource, LineSearch, NoiseLaw, Order, Steps, Stop, Variant,
};
pub use model::{FOR_MODELS, MODEL_DEFAULTS, MODEL_SETTINGS, ModelRequest, non_private_model};
pub use non_private::{NON_PRIVATE, non_private};
pub use settings::{Kind, PARAMETERS, Parameter, Range, Settings, Value};

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, Delta, Epsilon, ReplaceOne, ZeroOut};
use dp_losses::{LossKind, Penalty};

use crate::error::Error;
use crate::float::FloatKind;
use crate::growth::Arithmetic;
use crate::recipes::{AnyRecipe, Budget, Recipe as _};
use crate::schedule::Schedule;

/// The inputs of a recipe: the given settings, and public numbers.
#[derive(Debug, Clone, Copy)]
pub struct Request<'s> {
    /// The given settings.
    pub settings: &'s Settings,
    /// The loss.
    pub loss: LossKind,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training.
    pub float: FloatKind,
    /// True if the last feature is an intercept.
    pub intercept: bool,
    /// True if rows are stored sparse, which follows from the schema.
    pub sparse: bool,
    /// True if rows stay at their source, so that only sums over all of them are available.
    pub sums: bool,
    /// The privacy budget.
    pub budget: Budget,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of records, public.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
}

impl<'s> Request<'s> {
    /// Creates a request for dense rows without an intercept, exact noise, double precision.
    pub fn new(
        settings: &'s Settings,
        loss: LossKind,
        budget: Budget,
        relation: AdjacencyKind,
        n: u64,
        dim: u64,
    ) -> Self {
        let (noise_mode, float) = (NoiseMode::Exact, FloatKind::F64);
        Self {
            settings,
            loss,
            noise_mode,
            float,
            intercept: false,
            sparse: false,
            sums: false,
            budget,
            relation,
            n,
            dim,
        }
    }

    /// Returns the requested schedule; `None` uses the recipe's default.
    fn schedule(&self, lambda: f64) -> Result<Option<Schedule>, Error> {
        steps::schedule(self.settings, self.loss, self.n, lambda)
    }

    /// Returns the representation of the iterate: in two parts if the rounding of so many updates would be significant.
    fn private_arithmetic(&self, passes: u64, batch_size: u64, radius: Option<f64>) -> Arithmetic {
        let projected = radius.map(|_| self.loss.parameters(self.dim));
        arithmetic(self.sparse).for_records(self.n, passes, batch_size, projected)
    }
}

/// A private algorithm by name.
#[derive(Debug)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// A description with the source.
    pub about: &'static str,
    /// The source of its module, which begins with its documentation.
    docs: &'static str,
    /// The relations under which it is proved; the first is the default.
    pub relations: &'static [AdjacencyKind],
    /// The names of its [`PARAMETERS`].
    pub settings: &'static [&'static str],
    /// True if the running time depends on the records: training ends when its minimiser is certified, or may.
    pub data_dependent_time: bool,
    records_to_check: fn(&Settings) -> u64,
    build: fn(&Request<'_>) -> Result<Built, Error>,
}

/// A recipe, with advice on its choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The recipe.
    pub recipe: AnyRecipe,
    /// The advice, for an algorithm chosen by public numbers.
    pub advice: Option<Advice>,
}

/// The choice with its reason, and the expected cost of privacy: from public numbers alone.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Advice {
    /// The choice and its reason.
    pub reason: String,
    /// Expected fraction lost of the possible gain over the majority class, or over the mean label.
    pub expected_loss: f64,
    /// Range of most measured losses.
    pub expected_loss_range: [f64; 2],
}

impl<R: Into<AnyRecipe>> From<R> for Built {
    fn from(recipe: R) -> Self {
        Self { recipe: recipe.into(), advice: None }
    }
}

/// The algorithm that is chosen by public numbers.
pub static AUTO: &Entry = &auto::AUTO;

/// The private algorithms, in display order.
pub static ALGORITHMS: &[&Entry] = &[
    &auto::AUTO,
    &bolt_on::CONVEX,
    &bolt_on::STRONGLY_CONVEX,
    &bst14::CONVEX,
    &bst14::STRONGLY_CONVEX,
    &dp_sgd::DP_SGD,
    &dp_gd::DP_GD,
    &dp_ftrl::DP_FTRL,
    &dp_newton::DP_NEWTON,
    &adam::DP_ADAM,
    &adam::DP_ADAMBC,
    &admm::SS_ADMM,
    &admm::MP_ADMM,
    &admm::DP_ADMM,
    &dp_svrg::DP_SVRG,
    &obj_pert::NOISY_MOMENTS,
    &obj_pert::OBJ_PERT,
    &obj_pert::AMP,
    &obj_pert::ADMM_OBJ_PERT,
    &phased::SGD,
    &phased::ERM,
    &last_iterate::PNSGD,
    &last_iterate::SNOWBALL_SGD,
    &rsgd_ar::RSGD_AR,
    &rsgd_ar::NSGD,
    &rsgd_ar::OUT_PERT_GD,
    &without_gradients::PRIV_GENE,
    &without_gradients::MAJORITY,
    &searched::DP_BLGD,
    &searched::DP_BLSGD,
    &searched::DP_BLSGD_AC,
    &searched::DP_AGD,
    &scs13::SCS13,
];

/// Returns the private algorithm of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALGORITHMS.iter().find(|entry| entry.name == name).copied()
}

impl Entry {
    /// Builds the recipe. A setting that is not given has the value that is recommended for these public numbers.
    ///
    /// # Errors
    /// [`Error::Setting`] for a setting that the algorithm does not take, or not in this combination; errors of the recipe.
    pub fn build(&self, request: &Request<'_>) -> Result<Built, Error> {
        if let Some(name) = request.settings.given().find(|name| !self.settings.contains(name)) {
            return Err(conflict(name, "this algorithm has no such setting"));
        }
        (self.build)(request)
    }

    /// Returns the documentation of its module: formula, proof sketch, references, as Markdown without links.
    ///
    /// # Examples
    /// ```
    /// let scs13 = dp_optim::catalogue::find("scs13").ok_or("no such algorithm")?;
    /// assert!(scs13.theory().contains("Song, Chaudhuri, Sarwate"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn theory(&self) -> String {
        let lines = self.docs.lines().map_while(|line| line.strip_prefix("//!"));
        let text: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        without_links(text.join("\n").trim_end())
    }

    /// Returns whether it trains this loss at this delta, with its usual settings; decided by a plan for 2,000 records.
    pub fn supports(&self, loss: LossKind, delta: Delta) -> bool {
        const SHAPE: (u64, u64) = (2000, 3);
        let Ok(epsilon) = Epsilon::new(1.0) else { return false };
        let (settings, budget, relation) = (Settings::default(), Budget { epsilon, delta }, self.usual_relation());
        let request = Request::new(&settings, loss, budget, relation, SHAPE.0, SHAPE.1);
        let plans = |recipe: AnyRecipe| match relation {
            AdjacencyKind::ZeroOut => recipe.plan::<ZeroOut>(SHAPE.0, SHAPE.1, budget).is_ok(),
            _ => recipe.plan::<ReplaceOne>(SHAPE.0, SHAPE.1, budget).is_ok(),
        };
        self.build(&request).is_ok_and(|built| plans(built.recipe))
    }

    /// Returns whether it chooses the functions of numeric columns.
    pub fn chooses_cosines(&self) -> bool {
        self.name == auto::AUTO.name
    }

    /// Returns the number of cosines that it chooses for each of `numeric` columns by public numbers, 0 for lines; the
    /// dimension of `request` is the one with lines.
    ///
    /// # Errors
    /// Public numbers and settings out of range.
    pub fn cosines(&self, request: &Request<'_>, numeric: u64) -> Result<u32, Error> {
        if self.chooses_cosines() { auto::cosines(request, numeric) } else { Ok(0) }
    }

    /// Returns a number of records and of features with which settings can be checked before the records are read: enough that
    /// no check fails because of them, but quick to plan.
    pub fn shape_to_check(&self, settings: &Settings) -> (u64, u64) {
        let dim = match settings.any_penalty() {
            Some(Penalty::Group { sizes, .. }) => sizes.iter().fold(1, |sum, &size| sum + u64::from(size)),
            _ => 1,
        };
        ((self.records_to_check)(settings), dim)
    }

    /// Returns the default relation.
    pub fn usual_relation(&self) -> AdjacencyKind {
        self.relations.first().copied().unwrap_or(AdjacencyKind::ReplaceOne)
    }

    /// Returns whether its predictions depend on no feature but the intercept.
    pub fn is_constant(&self) -> bool {
        self.name == without_gradients::MAJORITY.name
    }

    /// Returns whether the running time of a training with these settings depends on the records.
    pub fn time_depends_on_records(&self, settings: &Settings) -> bool {
        self.data_dependent_time || settings.stop == Some(Stop::Certified)
    }
}

/// Returns Markdown with the text of each link in place of the link.
fn without_links(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let (before, link) = rest.split_at(start);
        found.push_str(before);
        // `[text](target)` and the links of the documentation, `[`item`]`; other brackets are those of formulas.
        let inner = link.find(']').map(|end| (&link[1..end], &link[end + 1..]));
        rest = match inner {
            Some((label, after)) if after.starts_with('(') && after.contains(')') => {
                found.push_str(label);
                &after[after.find(')').map_or(0, |end| end + 1)..]
            }
            Some((label, after)) if label.starts_with('`') && label.ends_with('`') => {
                found.push_str(label);
                after
            }
            _ => {
                found.push('[');
                &link[1..]
            }
        };
    }
    found + rest
}

/// Returns the representation of the iterate: scaled for sparse rows.
fn arithmetic(sparse: bool) -> Arithmetic {
    if sparse { Arithmetic::Scaled } else { Arithmetic::Buffered }
}

/// Returns the error for a setting that contradicts the algorithm or another setting.
fn conflict(name: &'static str, why: &'static str) -> Error {
    Error::Setting { name, why, expected: None, help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_taken_by_an_algorithm_and_every_name_is_a_setting() {
        let of_entries = ALGORITHMS.iter().flat_map(|entry| entry.settings);
        let taken: Vec<&str> = of_entries.chain(NON_PRIVATE).chain(MODEL_SETTINGS).copied().collect();
        for parameter in PARAMETERS {
            assert!(taken.contains(&parameter.name), "nothing takes {}", parameter.name);
        }
        for name in taken {
            assert!(PARAMETERS.iter().any(|parameter| parameter.name == name), "{name} is no setting");
        }
    }

    /// A recipe with a certified minimiser runs as long as the records require, and its entry must state this.
    #[test]
    fn every_recipe_with_a_certified_minimiser_is_said_to_take_data_dependent_time() {
        let settings = Settings::default();
        let budget = Budget::new(1.0, 1e-6).unwrap();
        let mut certified = 0;
        for entry in ALGORITHMS {
            for n in [100, 10_000, 1 << 20] {
                let request = Request::new(&settings, LossKind::Logistic, budget, entry.usual_relation(), n, 10);
                let goes_on = match entry.build(&request).unwrap().recipe {
                    AnyRecipe::ObjPert(_) | AnyRecipe::AdmmObjPert(_) | AnyRecipe::PhasedErm(_) => true,
                    AnyRecipe::BoltOn(recipe) => recipe.stopping != crate::recipes::Stopping::Passes,
                    _ => false,
                };
                certified += u32::from(goes_on);
                assert!(!goes_on || entry.time_depends_on_records(&settings), "{} of {n} records", entry.name);
            }
        }
        assert!(certified >= 12, "{certified}");
        let certified = Settings { stop: Some(Stop::Certified), ..Settings::default() };
        assert!(find("bolt-on-convex").unwrap().time_depends_on_records(&certified));
    }

    #[test]
    fn names_are_told_apart_and_every_algorithm_has_a_relation() {
        for (i, entry) in ALGORITHMS.iter().enumerate() {
            assert!(!entry.relations.is_empty() && !entry.about.is_empty(), "{}", entry.name);
            assert!(ALGORITHMS[..i].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert_eq!(find(entry.name).map(|found| found.about), Some(entry.about));
        }
        assert!(find("dp-magic").is_none());
    }

    #[test]
    fn every_algorithm_has_its_theory() {
        for entry in ALGORITHMS {
            let theory = entry.theory();
            assert!(theory.lines().count() >= 5, "{}: {theory}", entry.name);
            assert!(!theory.contains("](") && !theory.contains("//!") && !theory.contains("[`"), "{}", entry.name);
        }
        assert_eq!(without_links("a [b](c) [`d`] [0, 1] x[i] [e"), "a b `d` [0, 1] x[i] [e");
    }

    #[test]
    fn what_is_supported_is_what_can_be_planned() {
        let delta = Delta::new(1e-6).unwrap();
        let supports = |name: &str, loss: &str, delta| find(name).unwrap().supports(loss.parse().unwrap(), delta);
        for (name, loss, approximate, pure) in [
            ("auto", "hinge", true, true),
            ("bolt-on-convex", "logistic", true, true),
            ("bolt-on-convex", "hinge", false, false),
            ("dp-sgd", "hinge", true, false),
            ("dp-newton", "softmax:3", false, false),
        ] {
            assert_eq!(supports(name, loss, delta), approximate, "{name} {loss}");
            assert_eq!(supports(name, loss, Delta::ZERO), pure, "{name} {loss}");
        }
        assert!(ALGORITHMS.iter().all(|entry| entry.supports(LossKind::Logistic, delta)));
    }

    #[test]
    fn what_an_algorithm_does_not_take_is_refused_by_name() {
        let settings = Settings { bands: Some(3), ..Settings::default() };
        let budget = Budget::new(1.0, 1e-6).unwrap();
        let request = Request::new(&settings, LossKind::Logistic, budget, AdjacencyKind::ZeroOut, 1000, 3);
        for entry in ALGORITHMS {
            let refused = matches!(entry.build(&request), Err(Error::Setting { name: "bands", .. }));
            assert_eq!(refused, !entry.settings.contains(&"bands"), "{}", entry.name);
        }
    }

    #[test]
    fn values_out_of_range_and_of_other_kinds_are_refused() {
        let set = |name: &str, value: Value| {
            let parameter = PARAMETERS.iter().find(|parameter| parameter.name == name).unwrap();
            let mut settings = Settings::default();
            parameter.set(&mut settings, value).map(|()| (parameter.is_given(&settings), settings))
        };
        assert_eq!(set("lambda", Value::Number(0.0)).unwrap().1.lambda, Some(0.0));
        assert!(set("schedule", Value::Name("halving".to_owned())).unwrap().0);
        for (name, value) in [
            ("lambda", Value::Number(-1.0)),
            ("lambda", Value::Number(f64::NAN)),
            ("radius", Value::Number(0.0)),
            ("centre-share", Value::Number(1.0)),
            ("full-share", Value::Number(0.0)),
            ("curvature-share", Value::Number(1e-7)),
        ] {
            assert!(matches!(set(name, value), Err(Error::OutOfRange { .. })), "{name}");
        }
        assert!(matches!(set("passes", Value::Count(0)), Err(Error::Count { name: "passes", .. })));
        assert!(set("gradients", Value::Count(0)).is_ok());
        assert!(matches!(set("schedule", Value::Name("sideways".to_owned())), Err(Error::Setting { .. })));
        assert!(matches!(set("lambda", Value::Flag), Err(Error::Setting { name: "lambda", .. })));
    }
}
