//! Public numbers of a training: its task, budget and recipe, before a record is read.

use dp_accountant::{AdjacencyKind, Delta, Epsilon};
use dp_data::Encoder;
use dp_data::encode::{Encoding, FeatureMap, FourierFeatures};
use dp_data::schema::{Label, LabelKind};
use dp_losses::{LogCosh, LossKind, Softmax};
use dp_optim::catalogue::{Advice, Built, Entry, Request, Settings};
use dp_optim::recipes::{AnyRecipe, AtBaseRate, Budget, OneVsAll, PerUnit};
use dp_optim::tuning::Composition;
use dp_optim::tuning::composition::{Alternative, Candidate};

use super::{TrainError, Training};

/// The half width of smoothed regression losses: a quarter of the range of targets.
pub const REGRESSION_WIDTH: f64 = 0.5;

/// The largest delta that is suggested.
pub const LARGEST_SUGGESTED_DELTA: f64 = 1e-6;

/// The expected loss from which a model is useless: half of the possible gain.
pub const USELESS: f64 = 0.5;

/// An intercept that is 1 in every scaled row, as the other features of a row round away beside it.
const CONSTANT: f64 = (1u64 << 50) as f64;

/// Epsilon of a model without and of one with the Fourier features that are [tried](Training::trying_fourier), in proportion: noise
/// harms the smaller model less.
const WITHOUT_AND_WITH: [f64; 2] = [0.65, 1.0];

/// The public shape of encoded records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of records.
    pub n: u64,
    /// Number of features, intercept included.
    pub dim: u64,
    /// True if rows are stored sparse, as the schema determines.
    pub sparse: bool,
}

impl Shape {
    /// Returns the shape of `n` records of an encoder.
    pub fn new(encoder: &Encoder, n: u64) -> Self {
        Self { n, dim: encoder.dim() as u64, sparse: encoder.prefers_sparse() }
    }
}

/// The learning task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// The loss of one model.
    pub loss: LossKind,
    /// Number of classes of the label, which is the number of models in one-vs-rest classification; otherwise it does not matter.
    pub classes: u32,
}

impl Training {
    /// Returns the relation.
    ///
    /// # Errors
    /// [`TrainError::Relation`].
    pub fn relation(&self) -> Result<AdjacencyKind, TrainError> {
        let relation = self.relation.unwrap_or(self.algorithm.usual_relation());
        if self.algorithm.relations.contains(&relation) {
            return Ok(relation);
        }
        Err(TrainError::Relation { algorithm: self.algorithm.name, relation })
    }

    /// Returns the loss for a label, and its number of classes.
    ///
    /// # Errors
    /// A number of classes that softmax does not support; one-vs-rest classification of a label that has no list of classes.
    pub fn task(&self, label: &Label) -> Result<Task, TrainError> {
        let classes = match &label.kind {
            LabelKind::Classes { classes, .. } => Some(classes.len() as u32),
            _ => None,
        };
        let loss = match (self.loss, self.one_vs_all, classes) {
            (_, Some(_), None) => {
                let why = "it needs a label whose classes are listed";
                return Err(dp_optim::Error::Setting { name: "one-vs-all", why, expected: None, help: None }.into());
            }
            (Some(loss), ..) => loss,
            (None, Some(_), Some(_)) => LossKind::Logistic,
            (None, None, _) => usual_loss(label)?,
        };
        Ok(Task { loss, classes: classes.unwrap_or(2) })
    }

    /// Returns the training of one of the two models, without and with the Fourier features that are tried, at roughly its part of
    /// the budget, and the number of its records.
    fn without_or_with(&self, position: usize, n: u64) -> Result<(Self, u64), TrainError> {
        let of_training = n.saturating_sub(Composition::records_of_choice(n));
        if of_training == 0 {
            let range = "2 or more: one for training and one for the choice";
            return Err(dp_optim::Error::Count { name: "number of records", value: n, range }.into());
        }
        let both = Composition::new(WITHOUT_AND_WITH.map(|weight| Candidate { weight, ..Candidate::new(()) }));
        let Budget { epsilon, delta } = both.budget_of(WITHOUT_AND_WITH[position], self.budget(n)?)?;
        Ok((Self { epsilon, delta: Some(delta), tried: None, ..self.clone() }, of_training))
    }

    /// Refuses Fourier features that are tried where models cannot be compared.
    pub(super) fn check_trial(&self, task: Task) -> Result<(), TrainError> {
        let why = match () {
            () if self.tried.is_none() => return Ok(()),
            () if self.choice.is_some() => "they are tried in a choice of their own, not beside one among settings",
            () if self.at_base_rate => "models are compared by their mistakes at the threshold 0.5",
            () if self.sums => "rows that stay at their source have one encoding",
            () if task.loss.classes().is_none() => "models are compared by their mistakes: the label must have classes",
            () => return Ok(()),
        };
        Err(dp_optim::Error::Setting { name: "fourier", why, expected: None, help: None }.into())
    }

    /// Returns the recipe that trains without and with the `tried` Fourier features, and chooses.
    fn trying(&self, tried: FourierFeatures, task: Task, shape: Shape) -> Result<Built, TrainError> {
        let dim = shape.dim + u64::from(tried.features);
        let alternative = Alternative { number: 0, dim };
        let (training, n) = self.without_or_with(0, shape.n)?;
        let without = training.recipe_of_a_record(task, Shape { n, ..shape })?;
        let (training, n) = self.without_or_with(1, shape.n)?;
        let with = training.recipe_of_a_record(task, Shape { n, dim, sparse: false })?;
        let [weight, weight_with] = WITHOUT_AND_WITH;
        let candidates = [
            Candidate { weight, ..Candidate::new(without.recipe) },
            Candidate { recipe: with.recipe, weight: weight_with, encoding: Some(alternative) },
        ];
        let advice = without.advice.map(|advice| Advice {
            reason: format!(
                "the better of two models, without and with {} random Fourier features, on a tenth of the records; without them, by \
                 public numbers alone: {}",
                tried.features, advice.reason
            ),
            ..advice
        });
        Ok(Built { recipe: Composition::new(candidates).into(), advice })
    }

    /// Returns the number of units of which there are `n` records.
    pub fn units(&self, n: u64) -> u64 {
        self.unit.as_ref().map_or(n, |(_, most)| n / most.max(&1))
    }

    /// Returns the budget for `n` records.
    ///
    /// # Errors
    /// As [`suggested_delta`].
    pub fn budget(&self, n: u64) -> Result<Budget, TrainError> {
        let delta = self.delta.map_or_else(|| suggested_delta(self.units(n)), Ok)?;
        Ok(Budget { epsilon: self.epsilon, delta })
    }

    /// Returns the budget of one record, by which the algorithm chooses.
    ///
    /// # Errors
    /// A unit with too many records.
    pub fn budget_of_a_record(&self, n: u64) -> Result<Budget, TrainError> {
        let budget = self.budget(n)?;
        Ok(match self.unit {
            None => budget,
            Some((_, most)) => PerUnit::budget_of_a_record(budget, most)?,
        })
    }

    fn request(&self, loss: LossKind, budget: Budget, shape: Shape) -> Result<Request<'_>, TrainError> {
        Ok(Request {
            noise_mode: self.noise,
            float: self.float,
            intercept: self.encoding.intercept > 0.0,
            sparse: shape.sparse,
            sums: self.sums,
            ..Request::new(&self.settings, loss, budget, self.relation()?, shape.n, shape.dim)
        })
    }

    /// Returns the encoder with the functions of numeric columns that the algorithm chooses for `n` records.
    ///
    /// # Errors
    /// Those of [`Entry::cosines`], and of an encoder with that many features.
    pub fn mapped(&self, task: Task, encoder: &Encoder, n: u64) -> Result<Encoder, TrainError> {
        if self.tried.is_some() {
            let (training, n) = self.without_or_with(0, n)?;
            return training.mapped(task, encoder, n);
        }
        let budget = self.budget_of_a_record(n)?;
        let budget = match self.one_vs_all {
            Some(share) => share.budget_of_each(task.classes, budget)?,
            None => budget,
        };
        let shape = self.shape_of_one(Shape::new(encoder, n));
        with_chosen_map(self.algorithm, &self.request(task.loss, budget, shape)?, encoder)
    }

    /// Returns the recipe that protects a record.
    ///
    /// # Errors
    /// Settings that the recipe rejects.
    pub fn recipe_of_a_record(&self, task: Task, shape: Shape) -> Result<Built, TrainError> {
        let most = self.unit.as_ref().map_or(1, |(_, most)| *most);
        let (with_delta, pure) = budgets_of_a_record(self.budget(shape.n)?, most)?;
        let built = self.recipe_within(with_delta, task, shape)?;
        let (Some(pure), Some(advice)) = (pure, &built.advice) else { return Ok(built) };
        let of_pure = self.recipe_within(pure, task, shape)?;
        let is_better = of_pure.advice.as_ref().is_some_and(|of_pure| of_pure.expected_loss < advice.expected_loss);
        Ok(if is_better { of_pure } else { built })
    }

    /// Returns the recipe for this budget of a record.
    fn recipe_within(&self, budget: Budget, task: Task, shape: Shape) -> Result<Built, TrainError> {
        let build = |budget| Ok::<_, TrainError>(self.algorithm.build(&self.request(task.loss, budget, shape)?)?);
        if self.at_base_rate {
            let epsilon = Epsilon::new(budget.epsilon.get() * (1.0 - AtBaseRate::<AnyRecipe>::SHARE))?;
            let Built { recipe, advice } = build(Budget { epsilon, ..budget })?;
            return Ok(Built { recipe: AtBaseRate::new(recipe).into(), advice });
        }
        let Some(share) = self.one_vs_all else { return build(budget) };
        // Recommendations use the approximate budget of each model.
        let Built { recipe, advice } = build(share.budget_of_each(task.classes, budget)?)?;
        let recipe = OneVsAll { recipe: Box::new(recipe), classes: task.classes, share }.into();
        Ok(Built { recipe, advice })
    }

    /// Returns the recipe: that of the settings or of the choice among them, which protects the unit of this training.
    ///
    /// # Errors
    /// As [`recipe_of_a_record`](Self::recipe_of_a_record).
    pub fn recipe(&self, task: Task, shape: Shape) -> Result<Built, TrainError> {
        self.check_trial(task)?;
        let Built { recipe, advice } = match (&self.choice, self.tried) {
            (None, None) => self.recipe_of_a_record(task, shape)?,
            (None, Some(tried)) => self.trying(tried, task, shape)?,
            (Some(choice), _) => choice.recipe(self.candidates(&choice.grid, task, shape)?).into(),
        };
        Ok(Built { recipe: self.protecting(recipe), advice })
    }

    /// Returns the recipe of each combination of settings, which protects a record.
    ///
    /// # Errors
    /// As [`recipe_of_a_record`](Self::recipe_of_a_record).
    pub fn candidates(&self, grid: &[Settings], task: Task, shape: Shape) -> Result<Vec<AnyRecipe>, TrainError> {
        // All records decide a delta that is suggested.
        let delta = Some(self.budget(shape.n)?.delta);
        let shape = self.shape_of_one(shape);
        let of_settings = |settings: &Settings| {
            let one = Self { delta, choice: None, settings: settings.clone(), ..self.clone() };
            one.recipe_of_a_record(task, shape).map(|built| built.recipe)
        };
        grid.iter().map(of_settings).collect()
    }

    /// Returns the shape of the records that one combination of settings is trained on.
    fn shape_of_one(&self, shape: Shape) -> Shape {
        self.choice.as_ref().map_or(shape, |choice| choice.shape_of_one(shape))
    }

    /// Returns a recipe that protects the unit of this training, from one that protects a record.
    pub fn protecting(&self, recipe: AnyRecipe) -> AnyRecipe {
        match &self.unit {
            None => recipe,
            Some((column, most)) => PerUnit::new(recipe, *most, column).into(),
        }
    }
}

/// Returns the budgets of one record that give a unit its budget, the second without delta: for few features it allows less noise.
/// `None` for records, where it never does, and for a budget without delta.
pub(crate) fn budgets_of_a_record(budget: Budget, most: u64) -> Result<(Budget, Option<Budget>), TrainError> {
    let pure = Budget { delta: Delta::ZERO, ..budget };
    let pure = (most > 1 && budget != pure).then(|| PerUnit::budget_of_a_record(pure, most)).transpose()?;
    Ok((PerUnit::budget_of_a_record(budget, most)?, pure))
}

/// Returns `encoder` with the functions of numeric columns that the algorithm chooses by the public numbers of `request`, whose
/// dimension does not matter. Only `auto` chooses any. [`Training::mapped`] does so for a training.
///
/// # Errors
/// Those of [`Entry::cosines`], and of an encoder with that many features.
pub fn with_chosen_map(entry: &Entry, request: &Request<'_>, encoder: &Encoder) -> Result<Encoder, TrainError> {
    let cosines = entry.cosines(request, encoder.free_columns() as u64)?;
    let map = if cosines == 0 { FeatureMap::LINEAR } else { FeatureMap::curves(cosines) };
    Ok(encoder.with_map(map)?)
}

/// Returns the encoding with which the algorithm trains: a constant prediction needs an intercept of the same size in every row.
pub fn encoding_of(entry: &Entry, encoding: Encoding) -> Encoding {
    if entry.is_constant() && encoding.intercept > 0.0 { encoding.with_intercept(CONSTANT) } else { encoding }
}

/// Returns the largest power of ten that is at most 1e-6 and `1/(10 n)`: well below `1/n`.
///
/// # Errors
/// None for any `n`.
///
/// # Examples
/// ```
/// use dp::training::suggested_delta;
/// assert_eq!(suggested_delta(50_000)?.get(), 1e-6);
/// assert_eq!(suggested_delta(2_000_000)?.get(), 1e-8);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn suggested_delta(n: u64) -> Result<Delta, dp_accountant::Error> {
    let digits = n.saturating_sub(1).checked_ilog10().map_or(0, |digits| digits + 1);
    // Parsed, because a product of tenths is not the double nearest to the power.
    Delta::new(format!("1e-{}", (digits + 1).max(6)).parse().unwrap_or(0.0))
}

/// Returns the default loss for a label: logistic for two classes, softmax for several, log-cosh for a number, whose
/// gradients are bounded so that no radius is needed.
///
/// # Errors
/// A number of classes that softmax does not support.
pub fn usual_loss(label: &Label) -> Result<LossKind, dp_optim::Error> {
    Ok(match &label.kind {
        LabelKind::TwoClasses { .. } => LossKind::Logistic,
        LabelKind::Classes { classes, .. } => LossKind::Softmax(Softmax::new(classes.len() as u32)?),
        _ => LossKind::LogCosh(LogCosh::new(REGRESSION_WIDTH)?),
    })
}
