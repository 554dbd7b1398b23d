//! Automatic choice of an algorithm and its hyper-parameters from public numbers alone.
//!
//! # Formula
//! | | delta > 0 | delta = 0 |
//! |---|---|---|
//! | logistic | objective perturbation: [`ObjPert`], around a centre up to 500 features | the same, mostly around 0 |
//! | log-cosh | the same, around 0 | the same, around 0 |
//! | softmax, Huber regression | accelerated descent, Gaussian noise: [`DpSgd`] | objective perturbation, around 0 |
//! | Huber SVM | the same | output perturbation: [`BoltOn`], convex, by [`Defaults`] |
//! | hinge, absolute, squared | the same | accelerated descent, noise of the L2 Laplace ball: [`Scs13`] |
//!
//! With few features (about twenty at the usual deltas) the noise that needs no delta is smaller. The logistic loss and
//! log-cosh then use it for delta > 0 too; the logistic loss then has a centre up to ten features, if `n ε >= 40 D` for its
//! `D = d(d+3)/2` moments. A given number of passes, a radius or single precision excludes objective perturbation, which
//! supports none of them. A table with so many records (about 10⁹) that the noise on the minimiser would be visible in
//! predictions excludes it too.
//!
//! Accelerated descent releases a noisy sum of *all* gradients at each step, and returns the mean of the second half of the
//! iterates. With `p` parameters, `Δ` the sensitivity of the sum under the relation and `z` the Gaussian's noise multiplier,
//! ```text
//! q = (Δ/n) · z √p                     norm of one release's noise on the mean gradient; √(p (p+1)) / ε for the ball
//! γ = a q^{3/2}                        regularisation, in place of a search for λ
//! γ = q/(2√p)                          for softmax with delta > 0, if it is smaller: half the noise on one coordinate
//! η = 1 / (β + λ)                      β the loss's curvature; at most 1/2 for margins with kinks
//! T = 2 √(c / (ηγ)), at most 200       √κ steps are what accelerated descent needs: every step is paid for
//! m = (1 - √(4c/T²)) / (1 + √(4c/T²))  momentum that T steps make use of
//! ```
//! A given `λ` larger than γ replaces γ; a smaller one is used as it is, and γ only determines the number of steps, so that
//! the run stops early instead.
//!
//! | loss | β | a | c |
//! |---|---|---|---|
//! | logistic | 1/4 | 0.3 | 1 |
//! | softmax | 1/2 | 0.3 | 1 |
//! | Huber SVM, hinge | 1/(2h), at most 1/2 | 0.3 | 1/2 |
//! | Huber regression, absolute, squared (gradients clipped to 1) | 1/h, 1, 1 | 1 | 1/2 |
//!
//! Under pure differential privacy T releases cost T times the noise, not √T times: `a` is doubled and `c` divided by eight,
//! and output perturbation is better if the loss allows it.
//!
//! # Measurements
//! Held-out accuracy (for regression the explained fraction of the variance), under add-remove. The tables are made by
//! ```text
//! cargo run --release -p benches --bin auto -- [--data FILE LABEL POSITIVE]... [--libsvm FILE]... --rows 50000
//! ```
//! The logistic loss: **auto**, then accelerated descent ([`choose_descent`](Auto::choose_descent)), then `bolt-on-convex`
//! with recommended settings, the same at both deltas except for its noise. Standard errors are .001 to .003, on Banknote at
//! 0.1 .009, on Higgs up to .010.
//!
//! | data | delta | 0.1 | 0.4 | 1.6 |
//! |---|---|---|---|---|
//! | banknote | 1e-8 | **.911** .831 .811 | **.966** .940 .901 | **.979** .978 .955 |
//! | banknote | 0 | **.911** .758 .811 | **.966** .887 .901 | **.979** .951 .955 |
//! | occupancy | 1e-8 | **.961** .954 .904 | **.982** .982 .937 | **.986** .986 .965 |
//! | occupancy | 0 | **.961** .905 .904 | **.982** .954 .937 | **.986** .978 .965 |
//! | adult | 1e-8 | **.830** .830 .816 | **.840** .839 .832 | **.849** .846 .838 |
//! | adult | 0 | **.819** .764 .813 | **.836** .815 .830 | **.845** .822 .836 |
//! | a9a | 1e-8 | **.831** .834 .812 | **.840** .840 .835 | **.844** .846 .842 |
//! | a9a | 0 | **.809** .760 .791 | **.835** .818 .829 | **.844** .829 .841 |
//! | bank33 | 1e-8 | **.890** .889 .883 | **.897** .898 .888 | **.900** .900 .893 |
//! | bank33 | 0 | **.891** .880 .885 | **.899** .874 .888 | **.898** .881 .893 |
//! | covertype | 1e-8 | **.728** .718 .673 | **.751** .749 .712 | **.754** .753 .737 |
//! | covertype | 0 | **.707** .608 .605 | **.747** .690 .675 | **.753** .729 .717 |
//! | higgs | 1e-8 | **.521** .517 .522 | **.565** .550 .537 | **.612** .617 .560 |
//! | higgs | 0 | **.530** .508 .511 | **.576** .516 .523 | **.623** .535 .555 |
//!
//! Other losses, on synthetic tables: accelerated descent, objective perturbation around 0, `bolt-on-convex`; the choice of
//! auto is bold. Standard errors are .001 to .004 for two classes, up to .014 for five and .011 for regression.
//!
//! | data | loss | delta | 0.1 | 0.4 | 1.6 |
//! |---|---|---|---|---|---|
//! | two classes | huber-svm:0.1 | 1e-8 | **.887** .829 - | **.901** .895 - | **.902** .900 - |
//! | two classes | huber-svm:0.1 | 0 | .857 .823 **.880** | .888 .895 **.896** | .899 .900 **.901** |
//! | five classes | softmax:5 | 1e-8 | **.747** .745 - | **.890** .885 - | **.967** .942 - |
//! | five classes | softmax:5 | 0 | .567 **.662** .617 | .691 **.862** .758 | .845 **.935** .874 |
//! | numbers | huber-regression:0.5 | 1e-8 | **.859** .850 - | **.885** .882 - | **.886** .886 - |
//! | numbers | huber-regression:0.5 | 0 | .814 **.852** .804 | .834 **.882** .880 | .883 **.886** .885 |
//! | numbers | log-cosh:0.5 | 1e-8 | .857 **.879** - | .885 **.886** - | .887 **.887** - |
//! | numbers | log-cosh:0.5 | 0 | .793 **.879** .775 | .834 **.886** .879 | .883 **.887** .885 |
//!
//! Images, accuracy on the test sets (`dp train` and `dp evaluate`, delta 1e-6): MNIST .848, .890 and .908. Where `nε` is below the
//! number of parameters, regularisation by the norm of all noise was .08 less accurate on MNIST and Fashion-MNIST, and .14 on
//! 1,400 images of 64 pixels at 0.4.
//!
//! So auto is better or equal, up to a standard error or two, nearly everywhere; it loses .003 to accelerated descent on a9a
//! at 0.1, .002 at 1.6.
//!
//! # Curves
//! [`Auto::cosines`] chooses how many cosines of each numeric column become features; the tables above are for features without
//! cosines (lines). `cargo run --release -p benches --bin curves -- --data FILE LABEL POSITIVE` prints the accuracy of lines
//! and curves.
//!
//! # Privacy
//! The choice depends on no record: it is as public as `n`, `dim` and the budget. The result is an ordinary recipe, whose
//! certificate need not state how it was chosen.
//!
//! # References
//! Nesterov, "Introductory lectures on convex optimization", 2004, section 2.2; Bassily, Smith, Thakurta, FOCS 2014, for
//! noise in every step of a full gradient. The constants are measured.

mod cosines;
mod methods;

pub use cosines::{COST_OF_A_CURVE, COST_OF_CURVES_FOR_NUMBERS, MOST_COSINES};
pub use methods::{Forecast, Method};

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{AdjacencyKind, gaussian};
use dp_losses::{Domain, L2, LossKind};
use dp_mechanisms::clip::ClippingNorm;

use crate::averaging::Averaging;
use crate::defaults::Defaults;
use crate::descent::Descent;
use crate::error::{Error, non_negative, positive};
use crate::float::FloatKind;
use crate::recipes::obj_pert::UNSEEN;
use crate::recipes::scs13::StepLaw;
use crate::recipes::{AnyRecipe, BoltOn, Budget, Convexity, DpSgd, ObjPert, OutputNoise, Sampling, Scs13};
use crate::schedule::Schedule;

const RECIPE: &str = "auto";

/// Maximum number of steps of accelerated descent: beyond it accuracy did not improve, and each is a pass over the records.
pub const MOST_STEPS: u64 = 200;
/// Maximum number of features for a centre with Gaussian noise: beyond it the noise on the moments is too large.
pub const CENTRED_FEATURES: u64 = 500;
/// The same for noise that needs no delta, whose norm grows with the number of moments.
pub const CENTRED_FEATURES_WHEN_PURE: u64 = 10;
/// Minimum of `n ε` per moment for a centre with noise that needs no delta.
const RECORDS_OF_A_MOMENT: f64 = 40.0;
/// Lower bound of a given λ, as a fraction of the noise on the mean gradient.
const LEAST_OF_THE_USERS: f64 = 0.2;
/// `a`: regularisation over `q^{3/2}`, for classification losses.
pub const BALANCE: f64 = 0.3;
/// Maximum regularisation for softmax with delta > 0, over the standard deviation of the noise on a coordinate of the mean gradient.
/// Unlike `q` it does not grow with the number of classes and features. Fitted on images and tables of 4 to 11 classes.
pub const BALANCE_OF_CLASSES: f64 = 0.5;
/// The same for regression losses.
pub const BALANCE_OF_NUMBERS: f64 = 1.0;
/// The curvature that determines the steps for losses with kinks or nearly so.
pub const CURVATURE_OF_KINKS: f64 = 0.5;
/// Factor on `a` if noise is composed without delta.
const BALANCE_WHEN_PURE: f64 = 2.0;
/// Factor on `c` in that case.
const LENGTH_WHEN_PURE: f64 = 0.125;
/// Minimum and maximum of γ, which keep steps and momentum within the range of doubles.
const CONVEXITY_RANGE: (f64, f64) = (1e-12, 1e12);
/// `4 √p (q/(L√p))^{2/3}`: cost of output perturbation. On the tables of the module's documentation with a gain above 0.15, the
/// measured costs are 0.4 to 3.2 times this; on generated tables they are less.
const COST_ON_THE_MODEL: f64 = 4.0;
/// Most measured costs lie within this factor of the expected one.
pub const COST_FACTOR: f64 = 3.0;

/// The given parameters of a training; all others are chosen.
///
/// # Examples
/// ```
/// use dp_accountant::{AdjacencyKind, ZeroOut};
/// use dp_losses::LossKind;
/// use dp_optim::Auto;
/// use dp_optim::recipes::{AnyRecipe, Budget, Planned, Recipe};
///
/// let budget = Budget::new(0.4, 1e-8)?;
/// let choice = Auto::new(LossKind::Logistic).choose(40_000, 100, budget, AdjacencyKind::ZeroOut)?;
/// let AnyRecipe::ObjPert(recipe) = &choice.recipe else { panic!("{choice:?}") };
/// assert_eq!(recipe.centre_share, 0.1);
/// // About a twentieth of the features' gain over predicting the majority class.
/// assert!(choice.expected_cost.share > 0.02 && choice.expected_cost.share < 0.1);
/// let plan = choice.recipe.plan_copies::<ZeroOut>(40_000, 100, budget, 1)?;
/// assert!(plan.reached().epsilon <= 0.4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Auto {
    /// The loss, with or without kinks.
    pub loss: LossKind,
    /// λ, if given.
    pub lambda: Option<f64>,
    /// T, if given: each step is a pass.
    pub passes: Option<u64>,
    /// R: radius of the ball onto which every iterate is projected.
    pub radius: Option<f64>,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training.
    pub float: FloatKind,
    /// Bound on the rows' L2 norm, enforced by the source.
    pub row_norm: f64,
    /// Bound on the targets' absolute value, enforced by the source.
    pub target_bound: f64,
}

/// The result of the choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The recipe.
    pub recipe: AnyRecipe,
    /// Where it adds noise.
    pub method: Method,
    /// The reason, as a sentence.
    pub reason: String,
    /// The expected cost of privacy.
    pub expected_cost: ExpectedCost,
}

/// The expected cost of privacy, from public numbers: the fraction of the features' predictive gain that is lost.
///
/// # Formula
/// ```text
/// share = 2 q √p / L               Gaussian noise; L bounds one record's gradient
///         2 q √p √T / L            the Laplace ball in each of T steps
///         4 √p (q / (L √p))^{2/3}  noise on the model, q of the Laplace ball or the Gaussian, whichever is smaller
/// ```
/// at most 1, for the λ that follows from the noise: one that is given can cost more. For objective perturbation the smaller of the
/// first and the last (it was never less accurate than output perturbation, also on 20,000 sparse rows of up to 20,000 features),
/// plus the standard deviation in a prediction of the noise on the minimiser. For delta = 1e-8 the first is about `10 p/(nε)`. For
/// two classes it is a fraction of the accuracy gained over the majority class, for regression of the explained variance. Most
/// measured fractions lie within a factor of [`COST_FACTOR`] of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedCost {
    /// The expected fraction, in [0, 1].
    pub share: f64,
}

impl ExpectedCost {
    fn new(share: f64) -> Self {
        Self { share: share.min(1.0) }
    }

    /// Returns the range of most measured fractions.
    pub fn range(&self) -> (f64, f64) {
        (self.share / COST_FACTOR, (self.share * COST_FACTOR).min(1.0))
    }
}

struct Character {
    /// Bound on one record's gradient, by clipping if the loss has none.
    bound: f64,
    clipping: Option<ClippingNorm>,
    /// Bound on the distance of two records' gradients.
    difference: f64,
    curvature: f64,
    balance: f64,
    length: f64,
}

struct Terms {
    n: u64,
    dim: u64,
    budget: Budget,
    relation: AdjacencyKind,
    character: Character,
    /// Δ
    change: f64,
    /// q
    noise: f64,
    /// p
    parameters: f64,
    /// True if delta is 0.
    pure: bool,
}

impl Terms {
    /// Returns q with noise of a Laplace ball.
    fn of_ball(&self) -> f64 {
        let per_unit = (self.parameters * (self.parameters + 1.0)).sqrt() / self.budget.epsilon.get();
        self.change / self.n as f64 * per_unit
    }

    /// Returns the cost of output perturbation.
    fn cost_on_the_model(&self) -> f64 {
        let of_a_coordinate = self.noise.min(self.of_ball()) / (self.character.bound * self.parameters.sqrt());
        COST_ON_THE_MODEL * self.parameters.sqrt() * of_a_coordinate.powf(2.0 / 3.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Pace {
    /// q
    noise: f64,
    lambda: f64,
    step: f64,
    passes: u64,
    descent: Descent,
}

impl Auto {
    /// Creates a request without given parameters: exact noise, double precision, rows of norm at most 1.
    pub fn new(loss: LossKind) -> Self {
        Self {
            loss,
            lambda: None,
            passes: None,
            radius: None,
            noise_mode: NoiseMode::Exact,
            float: FloatKind::F64,
            row_norm: 1.0,
            target_bound: loss.usual_target_bound(),
        }
    }

    /// Chooses a recipe for `n` records of `dim` features, a budget and a relation.
    ///
    /// # Errors
    /// No records, no features, a relation without a public number of records, and parameters outside their range. Further
    /// errors are returned by the recipe's plan.
    pub fn choose(&self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Choice, Error> {
        let terms = self.terms(n, dim, budget, relation)?;
        if self.supports_objective_perturbation(&terms) {
            let choice = self.perturb_objective(&terms)?;
            return choice.map_or_else(|| self.descend(&terms), Ok);
        }
        if self.perturbs_output(&terms) { self.perturb_output(&terms) } else { self.descend(&terms) }
    }

    /// Chooses accelerated descent with noise in every step, even if output perturbation is expected to be better.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub fn choose_descent(&self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Choice, Error> {
        self.descend(&self.terms(n, dim, budget, relation)?)
    }

    fn descend(&self, terms: &Terms) -> Result<Choice, Error> {
        let &Terms { n, ref character, noise, parameters, pure, .. } = terms;
        let pace = self.pace(terms)?;
        let composed = if pure { (pace.passes as f64).sqrt() } else { 1.0 };
        Ok(Choice {
            recipe: if pure { self.laplace(character, &pace, n) } else { self.gaussian(character, &pace, n) },
            method: Method::AcceleratedDescent,
            reason: self.reason_of_steps(&pace, pure),
            expected_cost: ExpectedCost::new(2.0 * noise / character.bound * parameters.sqrt() * composed),
        })
    }

    /// Returns whether objective perturbation supports the given parameters and is the most accurate for the loss.
    fn supports_objective_perturbation(&self, terms: &Terms) -> bool {
        let suits = match self.loss {
            LossKind::Logistic | LossKind::LogCosh(_) => true,
            LossKind::Softmax(_) | LossKind::HuberRegression(_) => terms.pure,
            _ => false,
        };
        suits && self.passes.is_none() && self.radius.is_none() && self.float == FloatKind::F64
    }

    /// Returns objective perturbation; `None` if the noise on the minimiser would be visible in predictions.
    fn perturb_objective(&self, terms: &Terms) -> Result<Option<Choice>, Error> {
        let &Terms { n, dim, budget, relation, .. } = terms;
        let (records, features, parameters) = (n as f64, dim as f64, terms.parameters);
        let of_ball = terms.of_ball();
        let ball = terms.pure || of_ball < terms.noise;
        let noise = of_ball.min(terms.noise);
        let lambda = match self.lambda {
            // A smaller value costs more than it gains.
            Some(lambda) => Some(non_negative("lambda", lambda)?.max(LEAST_OF_THE_USERS * noise)),
            None => None,
        };
        let centred = lambda.is_none()
            && self.loss == LossKind::Logistic
            && if ball {
                let moments = 0.5 * features * (features + 3.0);
                dim <= CENTRED_FEATURES_WHEN_PURE
                    && records * budget.epsilon.get() * terms.character.bound
                        >= RECORDS_OF_A_MOMENT * moments * terms.change
            } else {
                dim <= CENTRED_FEATURES
            };
        let recipe = ObjPert {
            lambda,
            law: if ball { OutputNoise::LaplaceBall } else { OutputNoise::Gaussian },
            noise_mode: self.noise_mode,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            ..ObjPert::new(self.loss)
        };
        let recipe = if centred { recipe.centred() } else { recipe };
        // The plan returns its own errors.
        let on_the_minimiser = recipe.noise_on_the_minimiser(n, dim, budget, relation).unwrap_or(0.0);
        if on_the_minimiser > 1.01 * UNSEEN {
            return Ok(None);
        }
        let (law, needs) = match (ball, terms.pure) {
            (true, true) => ("noise of a Laplace ball", "the most accurate where delta = 0"),
            (true, false) => ("noise of a Laplace ball", "less than Gaussian noise for so few features"),
            (false, _) => ("Gaussian noise", "the most accurate on most tables where delta > 0"),
        };
        let on_gradients = format!("noise of norm {noise:.2e} on the mean gradient");
        let lambda = match (self.lambda, lambda) {
            (Some(given), Some(used)) if used > given => {
                format!("lambda {used:.2e} in place of {given:.2e}: less costs more than it gains with {on_gradients}")
            }
            (Some(given), _) => format!("lambda {given:.2e} as given, with {on_gradients}; {OF_OWN_LAMBDA}"),
            (None, _) => format!("lambda follows from {on_gradients}"),
        };
        let around = if centred { "least squares on noisy moments" } else { "0" };
        Ok(Some(Choice {
            recipe: recipe.into(),
            method: Method::ObjectivePerturbation,
            reason: format!(
                "obj-pert, {law} once, in the objective, with the regulariser centred at {around}: {needs}; {lambda}"
            ),
            expected_cost: ExpectedCost::new(
                (2.0 * noise / terms.character.bound * parameters.sqrt()).min(terms.cost_on_the_model())
                    + on_the_minimiser,
            ),
        }))
    }

    /// Checks the public numbers, and computes q.
    fn terms(&self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Terms, Error> {
        for (name, value) in [("number of records", n), ("dimension", dim), ("passes", self.passes.unwrap_or(1))] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        let pure = !(budget.delta.get() > 0.0);
        let character = self.character()?;
        let change = match relation {
            AdjacencyKind::ZeroOut => character.bound,
            AdjacencyKind::ReplaceOne => character.difference,
            adjacency => return Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        };
        let parameters = self.loss.parameters(dim) as f64;
        let per_unit = if pure {
            (parameters * (parameters + 1.0)).sqrt() / budget.epsilon.get()
        } else {
            gaussian::noise_multiplier(budget.epsilon, budget.delta)?.get() * parameters.sqrt()
        };
        let noise = change * per_unit / n as f64;
        Ok(Terms { n, dim, budget, relation, character, change, noise, parameters, pure })
    }

    /// Returns the constants of the loss, and the values measured for it.
    fn character(&self) -> Result<Character, Error> {
        let mut domain = Domain::unit_rows().with_row_norm(self.row_norm)?.with_target_bound(self.target_bound)?;
        if let Some(radius) = self.radius {
            domain = domain.with_radius(positive("radius", radius)?)?;
        }
        let constants = self.loss.constants(L2::NONE, &domain);
        let bounded = constants.data_lipschitz.is_finite();
        // For targets of size 1 and predictions that start at 0, the gradients of most records are never clipped.
        let clip = self.row_norm * self.target_bound.max(f64::MIN_POSITIVE);
        let clipping = if bounded { None } else { Some(ClippingNorm::new(clip)?) };
        let (curvature, balance, length) = match self.loss {
            LossKind::Logistic | LossKind::Softmax(_) => (constants.smoothness, BALANCE, 1.0),
            LossKind::HuberSvm(_) | LossKind::Hinge => (constants.smoothness.min(CURVATURE_OF_KINKS), BALANCE, 0.5),
            _ => (constants.smoothness, BALANCE_OF_NUMBERS, 0.5),
        };
        Ok(Character {
            bound: if bounded { constants.data_lipschitz } else { clip },
            difference: if bounded { constants.gradient_difference } else { 2.0 * clip },
            clipping,
            curvature: if curvature.is_finite() { curvature } else { 1.0 },
            balance,
            length,
        })
    }

    fn reason_of_steps(&self, pace: &Pace, pure: bool) -> String {
        let (recipe, noise, needs) =
            if pure { ("scs13", "noise of a Laplace ball", "= 0") } else { ("dp-sgd", "Gaussian noise", "> 0") };
        let on_gradients = format!("noise of norm {:.2e} on the mean gradient", pace.noise);
        let follows = match self.lambda {
            Some(given) => {
                format!("lambda {given:.2e} as given; the steps follow from {on_gradients}; {OF_OWN_LAMBDA}")
            }
            None => format!("lambda {:.2e} and the steps follow from {on_gradients}", pace.lambda),
        };
        format!(
            "{recipe}, {noise} on each of {} accelerated steps over all records: the most accurate where delta {needs}; {follows}",
            pace.passes
        )
    }

    fn pace(&self, terms: &Terms) -> Result<Pace, Error> {
        let &Terms { ref character, noise, parameters, pure, .. } = terms;
        let Character { mut balance, mut length, .. } = *character;
        if pure {
            (balance, length) = (BALANCE_WHEN_PURE * balance, LENGTH_WHEN_PURE * length);
        }
        let by_norm = balance * noise.powf(1.5);
        let balanced = match self.loss {
            LossKind::Softmax(_) if !pure => by_norm.min(BALANCE_OF_CLASSES * noise / parameters.sqrt()),
            _ => by_norm,
        };
        let balanced = balanced.clamp(CONVEXITY_RANGE.0, CONVEXITY_RANGE.1);
        let lambda = match self.lambda {
            Some(lambda) => non_negative("lambda", lambda)?,
            None => balanced,
        };
        let convexity = balanced.max(lambda);
        let step = 1.0 / (character.curvature + convexity);
        let chosen = (2.0 * (length / (step * convexity)).sqrt()).round().clamp(1.0, MOST_STEPS as f64) as u64;
        let passes = self.passes.unwrap_or(chosen);
        let descent = Descent::suited_to(4.0 * length / (passes as f64).powi(2));
        Ok(Pace { noise, lambda, step, passes, descent })
    }

    /// Returns whether output perturbation is better than descent.
    fn perturbs_output(&self, terms: &Terms) -> bool {
        terms.pure && self.loss.is_smooth() && terms.character.clipping.is_none()
    }

    fn perturb_output(&self, terms: &Terms) -> Result<Choice, Error> {
        let &Terms { n, dim, budget, relation, .. } = terms;
        let defaults = Defaults::new(self.loss, n, dim, budget, relation)?;
        let recipe = defaults.recipe(Convexity::Convex)?;
        let lambda = non_negative("lambda", self.lambda.unwrap_or(recipe.lambda))?;
        let passes = self.passes.unwrap_or(recipe.passes);
        let recipe = BoltOn {
            lambda,
            passes,
            schedule: Some(defaults.schedule(passes, recipe.batch_size, lambda)?),
            radius: self.radius,
            noise_mode: self.noise_mode,
            float: self.float,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            ..recipe
        };
        Ok(Choice {
            reason: reason_on_the_model(recipe.passes, terms.noise),
            method: Method::OutputPerturbation,
            recipe: recipe.into(),
            expected_cost: ExpectedCost::new(terms.cost_on_the_model()),
        })
    }

    /// Returns the recipe with all records at each step.
    fn gaussian(&self, character: &Character, pace: &Pace, n: u64) -> AnyRecipe {
        DpSgd {
            lambda: pace.lambda,
            sampling: Sampling::Passes,
            batch_size: n,
            passes: pace.passes,
            schedule: Some(Schedule::Constant { step: pace.step }),
            clipping: character.clipping,
            radius: self.radius,
            averaging: second_half(pace.passes),
            descent: pace.descent,
            noise_mode: self.noise_mode,
            float: self.float,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            ..DpSgd::new(self.loss)
        }
        .into()
    }

    /// Returns the same with noise for pure differential privacy.
    fn laplace(&self, character: &Character, pace: &Pace, n: u64) -> AnyRecipe {
        Scs13 {
            lambda: pace.lambda,
            passes: pace.passes,
            batch_size: n,
            schedule: Some(Schedule::Constant { step: pace.step }),
            radius: self.radius,
            clipping: character.clipping,
            averaging: second_half(pace.passes),
            descent: pace.descent,
            law: StepLaw::LaplaceBall,
            noise_mode: self.noise_mode,
            float: self.float,
            row_norm: self.row_norm,
            target_bound: self.target_bound,
            ..Scs13::new(self.loss)
        }
        .into()
    }
}

/// Returns the mean of the last `⌈T/2⌉` iterates.
fn second_half(passes: u64) -> Averaging {
    Averaging::Suffix { updates: passes.div_ceil(2) }
}

/// Said where λ is given.
const OF_OWN_LAMBDA: &str = "the expected cost is that of the lambda that would follow from it";

fn reason_on_the_model(passes: u64, noise: f64) -> String {
    format!(
        "bolt-on-convex, noise of a Laplace ball once, on the model after {passes} passes: the most accurate where delta = 0 \
         and the loss is smooth; the steps follow from noise of norm {noise:.2e} on the mean gradient"
    )
}

#[cfg(test)]
mod tests;
