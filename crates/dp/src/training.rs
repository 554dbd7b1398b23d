//! Training on a table, which gives a released model with its certificate.

use std::collections::BTreeMap;

use dp_accountant::certificate::{Assumption, Certificate, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Delta, Epsilon, Repetitions, ReplaceOne, ZeroOut};
use dp_data::encode::{Encoding, FeatureMap, Stored};
use dp_data::read::{CsvOptions, CuratorWarning, Input};
use dp_data::schema::{Label, LabelKind, Schema};
use dp_data::spool::{Held, HeldCoordinates, Room};
use dp_data::{DataError, Encoder, Examples, RowSource, UnitBound, Workers};
use dp_losses::{LogCosh, LossKind, Real, Softmax};
use dp_mechanisms::rng::{LentRng, OsSeeded, Purpose, ReleaseRng, SeededRng};
use dp_optim::catalogue::{self, Advice, Built, Entry, Request, Settings};
use dp_optim::engine::Control;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{
    AnyDerivation, AnyPlan, AnyRecipe, AtBaseRate, Budget, Compiled, OneVsAll, PerUnit, Recipe, Share, TrainsAny,
    train_without_privacy,
};
use dp_optim::tuning::{Portions, RandomStopping};
use dp_optim::{DerivesModel as _, FloatKind, MemorySource};

use crate::error::Error;
use crate::model::{Model, ModelFile};

/// The half width of smoothed regression losses: a quarter of the range of targets.
pub const REGRESSION_WIDTH: f64 = 0.5;

/// The largest delta that is suggested.
pub const LARGEST_SUGGESTED_DELTA: f64 = 1e-6;

/// The purpose of the key for drawing the rows of a unit that are used.
pub const ROWS_OF_UNITS: Purpose = Purpose::Custom(u32::from_be_bytes(*b"unit"));

/// A private training on a table. All settings are public and chosen before a record is read.
///
/// By default the algorithm is `auto`, which chooses by public numbers alone; the neighbouring relation is the default of the
/// algorithm, the loss is [`usual_loss`] of the label, the encoding is [`Encoding::default`], and `auto` chooses the functions
/// of numeric columns.
///
/// # Examples
/// ```
/// use dp_data::{Schema, read::Input};
///
/// let schema = Schema::parse("schema.toml", r#"
/// [label]
/// column = "buys"
/// positive = "yes"
/// negative = "no"
///
/// [columns.visits]
/// type = "numeric"
/// min = 0
/// max = 30
/// "#)?;
/// let mut table = "visits,buys\n".to_owned();
/// for i in 0..2000 {
///     table.push_str(&format!("{},{}\n", i % 31, if i % 31 > 15 { "yes" } else { "no" }));
/// }
/// let file = dp::Training::new(1.0, 1e-6)?.on_csv(&schema, Input::from_bytes("people.csv", table.into_bytes()))?;
/// assert!(dp::verify::model(&file, dp::verify::WORK)?.epsilon <= 1.0);
/// assert_eq!(dp::ModelFile::parse(file.to_text()?.as_bytes())?, file);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Training {
    algorithm: &'static Entry,
    settings: Settings,
    epsilon: Epsilon,
    delta: Option<Delta>,
    relation: Option<AdjacencyKind>,
    loss: Option<LossKind>,
    one_vs_all: Option<Share>,
    at_base_rate: bool,
    noise: NoiseMode,
    float: FloatKind,
    sums: bool,
    encoding: Encoding,
    map: Option<FeatureMap>,
    workers: Workers,
    room: Room,
    unit: Option<(String, u64)>,
    seed: Option<u64>,
    choice: Option<Choice>,
    versions: BTreeMap<String, String>,
}

/// A private choice among settings, which is part of the release.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The combinations to choose among.
    pub grid: Vec<Settings>,
    /// The method.
    pub method: ChoiceMethod,
}

/// The method of a private choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChoiceMethod {
    /// On disjoint portions of the records, one for each combination and one to compare them.
    Portions,
    /// The best of a random number of trainings.
    RandomStopping(Repetitions),
}

impl Choice {
    /// Returns the shape of the records that one combination is trained on.
    pub fn shape_of_one(&self, shape: Shape) -> Shape {
        match self.method {
            ChoiceMethod::Portions => Shape { n: Portions::records_of_portion(shape.n, self.grid.len()), ..shape },
            ChoiceMethod::RandomStopping(_) => shape,
        }
    }

    /// Returns the recipe that chooses among the candidates.
    pub fn recipe(&self, candidates: Vec<AnyRecipe>) -> AnyRecipe {
        match self.method {
            ChoiceMethod::Portions => Portions::new(candidates).into(),
            ChoiceMethod::RandomStopping(repetitions) => {
                RandomStopping { candidates, repetitions, score_share: RandomStopping::SCORE_SHARE }.into()
            }
        }
    }
}

/// The expected loss from which a model is useless: half of the possible gain.
pub const USELESS: f64 = 0.5;

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

/// What is to be learnt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// The loss of one model.
    pub loss: LossKind,
    /// Number of classes of the label, which is the number of models in one-vs-rest classification; otherwise it does not matter.
    pub classes: u32,
}

/// A model that was trained.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The model and its certificate.
    pub file: ModelFile,
    /// Number of records, null records included.
    pub n: u64,
    /// The reason for the chosen algorithm and the expected loss, if the algorithm was chosen by public numbers.
    pub advice: Option<Advice>,
    /// Warnings for the curator only.
    pub warnings: Vec<CuratorWarning>,
}

/// The reason why a training was refused or failed. Nothing was released.
///
/// # Privacy
/// The text of [`Data`](Self::Data) is for the curator: it may quote a cell. [`DataError::public_message`] does not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Unknown name of an algorithm; [`catalogue::ALGORITHMS`] lists the known ones.
    #[error("there is no algorithm `{0}`")]
    Algorithm(String),
    /// The algorithm has no proof under this relation.
    #[error("{algorithm} has no proof under {relation}")]
    Relation {
        /// The algorithm.
        algorithm: &'static str,
        /// The relation.
        relation: AdjacencyKind,
    },
    /// The recipe rejects the settings, or training failed.
    #[error(transparent)]
    Recipe(#[from] dp_optim::Error),
    /// Error in the schema or the records.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The released model is unusable or cannot be written.
    #[error(transparent)]
    Model(#[from] Error),
}

impl From<dp_accountant::Error> for TrainError {
    fn from(error: dp_accountant::Error) -> Self {
        Self::Recipe(error.into())
    }
}

impl From<dp_mechanisms::Error> for TrainError {
    fn from(error: dp_mechanisms::Error) -> Self {
        Self::Recipe(error.into())
    }
}

impl Training {
    /// Creates a training with the budget `epsilon` and `delta`; without a delta, that of [`suggested_delta`].
    ///
    /// # Errors
    /// An epsilon that is not positive and finite, or a delta outside `[0, 1)`.
    pub fn new(epsilon: f64, delta: impl Into<Option<f64>>) -> Result<Self, TrainError> {
        let (epsilon, delta) = (Epsilon::new(epsilon)?, delta.into().map(Delta::new).transpose()?);
        Ok(Self::of(epsilon, delta))
    }

    /// Creates a training with this budget.
    pub fn of_budget(budget: Budget) -> Self {
        Self::of(budget.epsilon, Some(budget.delta))
    }

    fn of(epsilon: Epsilon, delta: Option<Delta>) -> Self {
        Self {
            algorithm: catalogue::AUTO,
            settings: Settings::default(),
            epsilon,
            delta,
            relation: None,
            loss: None,
            one_vs_all: None,
            at_base_rate: false,
            noise: NoiseMode::Exact,
            float: FloatKind::F64,
            sums: false,
            encoding: Encoding::default(),
            map: None,
            workers: Workers::ONE,
            room: Room::default(),
            unit: None,
            seed: None,
            choice: None,
            versions: versions(),
        }
    }

    /// Sets the algorithm.
    #[must_use]
    pub fn by_entry(self, algorithm: &'static Entry) -> Self {
        Self { algorithm, ..self }
    }

    /// Sets the [algorithm](catalogue::ALGORITHMS) by name.
    ///
    /// # Errors
    /// [`TrainError::Algorithm`].
    pub fn by(self, algorithm: &str) -> Result<Self, TrainError> {
        let found = catalogue::find(algorithm).ok_or_else(|| TrainError::Algorithm(algorithm.to_owned()))?;
        Ok(Self { algorithm: found, ..self })
    }

    /// Sets the settings of the algorithm.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Sets the loss.
    #[must_use]
    pub fn with_loss(self, loss: LossKind) -> Self {
        Self { loss: Some(loss), ..self }
    }

    /// Trains one model for each of several classes, against all others, with a budget that they share.
    #[must_use]
    pub fn one_against_the_rest(self, share: Share) -> Self {
        Self { one_vs_all: Some(share), ..self }
    }

    /// Releases the base rate of two classes too, at which the model then decides.
    #[must_use]
    pub fn at_base_rate(self) -> Self {
        Self { at_base_rate: true, ..self }
    }

    /// Sets the noise mode; [`NoiseMode::Exact`] by default.
    #[must_use]
    pub fn with_noise(self, noise: NoiseMode) -> Self {
        Self { noise, ..self }
    }

    /// Sets the floating-point type of training; double precision by default.
    #[must_use]
    pub fn in_float(self, float: FloatKind) -> Self {
        Self { float, ..self }
    }

    /// Restricts the algorithm to sums over all records, for rows that stay at their source.
    #[must_use]
    pub fn on_sums(self) -> Self {
        Self { sums: true, ..self }
    }

    /// Draws noise from a generator with this seed: the model is reproducible, and its certificate claims no guarantee, because
    /// whoever guesses the seed can subtract the noise.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Chooses privately among settings, in place of [`with_settings`](Self::with_settings).
    #[must_use]
    pub fn choosing(self, choice: Choice) -> Self {
        Self { choice: Some(choice), ..self }
    }

    /// Sets what the certificate names as the programs that made it, by version; this crate by default.
    #[must_use]
    pub fn made_by(self, versions: BTreeMap<String, String>) -> Self {
        Self { versions, ..self }
    }

    /// Sets the encoding of rows. Its map is that of [`with_map`](Self::with_map), or the choice of the algorithm.
    #[must_use]
    pub fn with_encoding(self, encoding: Encoding) -> Self {
        Self { encoding, ..self }
    }

    /// Sets the functions of numeric columns for which the schema states none.
    #[must_use]
    pub fn with_map(self, map: FeatureMap) -> Self {
        Self { map: Some(map), ..self }
    }

    /// Sets the threads; one by default. The model does not depend on their number.
    #[must_use]
    pub fn with_workers(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    /// Sets the memory for the rows of a file, and the folder for rows that exceed it; [`Room::default`] by default. The
    /// threads are those of [`with_workers`](Self::with_workers). The model does not depend on them.
    #[must_use]
    pub fn with_room(self, room: Room) -> Self {
        Self { room, ..self }
    }

    /// Protects all rows of a unit together, such as those of one patient: rows with one value of `column`, of which at most `most` are
    /// used.
    ///
    /// # Examples
    /// ```
    /// use dp_data::{Schema, read::Input};
    /// # let schema = Schema::parse("schema.toml", "label = { column = 'well', positive = 'yes', negative = 'no' }\n\
    /// #     columns.dose = { type = 'numeric', min = 0, max = 30 }")?;
    /// let mut visits = "patient,dose,well\n".to_owned();
    /// for i in 0..6000 {
    ///     visits.push_str(&format!("{},{},{}\n", i * 7 % 2000, i % 31, if i % 31 > 15 { "yes" } else { "no" }));
    /// }
    /// let input = Input::from_bytes("visits.csv", visits.into_bytes());
    /// let file = dp::Training::new(1.0, 1e-6)?.per_unit("patient", 3).on_csv(&schema, input)?;
    /// let verified = dp::verify::model(&file, dp::verify::WORK)?;
    /// assert_eq!(verified.unit, "all records of one patient");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn per_unit(self, column: &str, most: u64) -> Self {
        Self { unit: Some((column.to_owned(), most)), ..self }
    }

    /// Sets the neighbouring relation: [`AdjacencyKind::ReplaceOne`] or [`AdjacencyKind::ZeroOut`].
    #[must_use]
    pub fn under(self, relation: AdjacencyKind) -> Self {
        Self { relation: Some(relation), ..self }
    }

    /// Trains on a CSV file, with noise from the system's random generator.
    ///
    /// # Privacy
    /// The certificate covers everything in the returned file, provided that nothing in the schema was taken from the
    /// records. Whether training fails may depend on them: on a cell that the schema treats as an error.
    ///
    /// # Errors
    /// A schema without review, errors in the records, and settings that the recipe rejects.
    pub fn on_csv(&self, schema: &Schema, input: Input) -> Result<ModelFile, TrainError> {
        self.on_input(schema, input, None, &mut Control::default()).map(|trained| trained.file)
    }

    /// Trains on the records of any table. `rows` is their number if it is known, which saves memory where the algorithm chooses
    /// the functions of columns. `control` can end the training; its threads are those of [`with_workers`](Self::with_workers).
    ///
    /// # Privacy
    /// As [`on_csv`](Self::on_csv).
    ///
    /// # Errors
    /// As [`on_csv`](Self::on_csv).
    pub fn on_input(
        &self,
        schema: &Schema,
        input: Input,
        rows: Option<u64>,
        control: &mut Control<'_>,
    ) -> Result<Trained, TrainError> {
        match self.float {
            FloatKind::F64 => self.load_and_train::<f64>(schema, input, rows, control),
            FloatKind::F32 => self.load_and_train::<f32>(schema, input, None, control),
        }
    }

    fn load_and_train<F: Real + Stored>(
        &self,
        schema: &Schema,
        input: Input,
        rows: Option<u64>,
        control: &mut Control<'_>,
    ) -> Result<Trained, TrainError>
    where
        ZeroOut: TrainsAny<F>,
        ReplaceOne: TrainsAny<F>,
    {
        schema.check_reviewed()?;
        let encoder = Encoder::new(schema, self.encoding.with_map(self.map.unwrap_or_default()))?;
        let task = self.task(encoder.label())?;
        let input = input.with_workers(self.workers);
        let mut room = self.room.clone();
        room.spool.workers = self.workers;
        let options = CsvOptions::default();
        let bound = match &self.unit {
            None => None,
            Some((column, most)) => {
                let key = match self.seed {
                    Some(seed) => SeededRng::new(seed).derive_key(ROWS_OF_UNITS),
                    None => OsSeeded::new()?.derive_key(ROWS_OF_UNITS),
                };
                Some(UnitBound { column: column.clone(), most: *most, key })
            }
        };
        let chooses = self.map.is_none() && self.algorithm.chooses_cosines();
        let (encoder, rows, warnings) = match rows.filter(|_| self.unit.is_none()) {
            None if chooses => {
                let (coordinates, warnings) =
                    HeldCoordinates::<F>::read_units(input, &encoder, &options, &room, bound.as_ref())?;
                let encoder = self.mapped(task, &encoder, coordinates.len())?;
                let rows = coordinates.encode(&encoder, self.workers, &room)?;
                (encoder, rows, warnings)
            }
            known => {
                let encoder = match known {
                    Some(n) if chooses => self.mapped(task, &encoder, n)?,
                    _ => encoder,
                };
                let (rows, warnings) = Held::<F>::read_units(input, &encoder, &options, &room, bound.as_ref())?;
                (encoder, rows, warnings)
            }
        };
        let records = Records { encoder, rows };
        let trained = match self.seed {
            Some(seed) => self.on_records(records, &mut SeededRng::new(seed), control)?,
            None => self.on_records(records, &mut OsSeeded::new()?, control)?,
        };
        Ok(Trained { warnings, ..trained })
    }

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
        let budget = self.budget_of_a_record(n)?;
        let budget = match self.one_vs_all {
            Some(share) => share.budget_of_each(task.classes, budget)?,
            None => budget,
        };
        let shape = Shape::new(encoder, n);
        let shape = self.choice.as_ref().map_or(shape, |choice| choice.shape_of_one(shape));
        with_chosen_map(self.algorithm, &self.request(task.loss, budget, shape)?, encoder)
    }

    /// Returns the recipe that protects a record.
    ///
    /// # Errors
    /// Settings that the recipe rejects.
    pub fn recipe_of_a_record(&self, task: Task, shape: Shape) -> Result<Built, TrainError> {
        let budget = self.budget_of_a_record(shape.n)?;
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

    /// Returns a recipe that protects the unit of this training, from one that protects a record.
    pub fn protecting(&self, recipe: AnyRecipe) -> AnyRecipe {
        match &self.unit {
            None => recipe,
            Some((column, most)) => PerUnit::new(recipe, *most, column).into(),
        }
    }

    /// Trains on records encoded by `encoder`. Under [`per_unit`](Self::per_unit) each unit has its number of records, one after
    /// the other, null records among them.
    ///
    /// # Privacy
    /// As [`on_csv`](Self::on_csv). With a generator that is not secret there is no guarantee, and the certificate says so.
    ///
    /// # Errors
    /// Settings that the recipe rejects.
    pub fn on_examples<R: ReleaseRng>(
        &self,
        encoder: Encoder,
        examples: Examples<f64>,
        rng: &mut R,
    ) -> Result<ModelFile, TrainError> {
        let records = Records { encoder, rows: Held::Memory(examples) };
        self.on_records(records, rng, &mut Control::default()).map(|trained| trained.file)
    }

    fn on_records<F: Real + Stored, R: ReleaseRng>(
        &self,
        records: Records<F>,
        rng: &mut R,
        control: &mut Control<'_>,
    ) -> Result<Trained, TrainError>
    where
        ZeroOut: TrainsAny<F>,
        ReplaceOne: TrainsAny<F>,
    {
        let shape = Shape::new(&records.encoder, records.rows.len());
        let Shape { n, dim, .. } = shape;
        let task = self.task(records.encoder.label())?;
        let Built { recipe, advice } = match &self.choice {
            None => self.recipe_of_a_record(task, shape)?,
            Some(choice) => {
                let of_one = choice.shape_of_one(shape);
                // The records of all combinations decide a delta that is suggested.
                let whole = Self { delta: Some(self.budget(n)?.delta), choice: None, ..self.clone() };
                let of_settings = |settings: &Settings| {
                    let built = whole.clone().with_settings(settings.clone()).recipe_of_a_record(task, of_one)?;
                    Ok::<_, TrainError>(built.recipe)
                };
                choice.recipe(choice.grid.iter().map(of_settings).collect::<Result<_, _>>()?).into()
            }
        };
        let (recipe, budget, relation) = (self.protecting(recipe), self.budget(n)?, self.relation()?);
        control.workers = self.workers;
        control.gradients = control.gradients.or(self.settings.gradients);
        let versions = self.versions.clone();
        let released = match relation {
            AdjacencyKind::ReplaceOne => {
                let plan = recipe.plan_copies::<ReplaceOne>(n, dim, budget, 1)?;
                control.check()?;
                records.train(&plan, Vec::new(), versions, &mut rng.lend(), control)?
            }
            AdjacencyKind::ZeroOut => {
                let plan = recipe.plan_copies::<ZeroOut>(n, dim, budget, 1)?;
                control.check()?;
                records.train(&plan, Vec::new(), versions, &mut rng.lend(), control)?
            }
            _ => return Err(TrainError::Relation { algorithm: self.algorithm.name, relation }),
        };
        Ok(Trained { file: released.seal()?, n, advice, warnings: Vec::new() })
    }
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

/// Encoded records, ready for training: the separate steps of [`Training`], for callers with their own plans, generators and
/// progress.
#[derive(Debug)]
pub struct Records<F> {
    /// The encoder, which becomes part of the model.
    pub encoder: Encoder,
    /// The rows and their targets.
    pub rows: Held<F>,
}

/// A released model and its certificate, not yet combined.
#[derive(Debug, Clone, PartialEq)]
pub struct Released {
    /// The model.
    pub model: Model,
    /// Its certificate.
    pub certificate: Certificate<AnyDerivation>,
}

impl Released {
    /// Combines them.
    ///
    /// # Errors
    /// Those of [`ModelFile::seal`].
    pub fn seal(self) -> Result<ModelFile, Error> {
        ModelFile::seal(self.model, self.certificate)
    }
}

/// Passes the rows to `train` as a source with the encoder's bounds.
fn on_source<F: Stored, T>(rows: Held<F>, encoder: &Encoder, train: impl FnOnce(&mut dyn RowSource<F>) -> T) -> T {
    match rows {
        Held::Memory(examples) => train(&mut MemorySource::new(examples, encoder.row_bound(), encoder.target_bound())),
        Held::Spool(mut spool) => train(&mut *spool),
        Held::Elsewhere(mut source, _) => train(&mut *source),
    }
}

impl<F: Real + Stored> Records<F> {
    /// Trains by a plan. The certificate states the assumptions of the model's encoder, and `further` ones.
    ///
    /// # Privacy
    /// As [`Planned::train`](dp_optim::recipes::Planned::train).
    ///
    /// # Errors
    /// Those of [`Planned::train`](dp_optim::recipes::Planned::train); weights that are not finite.
    pub fn train<A: TrainsAny<F>>(
        self,
        plan: &AnyPlan<A>,
        further: Vec<Assumption>,
        versions: BTreeMap<String, String>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Released, TrainError> {
        let Self { encoder, rows } = self;
        let trained = on_source(rows, &encoder, |source| A::train_any(plan, source, rng, control))?;
        let weights = trained.weights.get().iter().map(|weight| weight.widen()).collect();
        let model = Model::of_release(encoder, &trained.derivation.model_terms(), weights)?;
        let assumptions = model.assumptions().into_iter().chain(further).collect();
        let certificate = trained.certificate(trained.derivation.unit(), assumptions, model.sha256()?, versions);
        Ok(Released { model, certificate })
    }

    /// Trains without privacy, as a baseline. The certificate claims nothing.
    ///
    /// # Errors
    /// Those of [`train_without_privacy`]; weights that are not finite.
    pub fn train_without_privacy(
        self,
        recipe: NonPrivateDerivation,
        key: [u8; 32],
        versions: BTreeMap<String, String>,
        control: &mut Control<'_>,
    ) -> Result<Released, TrainError>
    where
        F: Compiled,
    {
        let Self { encoder, rows } = self;
        let weights = on_source(rows, &encoder, |source| train_without_privacy(&recipe, source, key, control))?;
        let weights = weights.expose_without_any_guarantee().into_iter().map(|weight| weight.widen()).collect();
        let model = Model::new(encoder, recipe.loss, weights)?;
        let certificate =
            Certificate::without_guarantee(AdjacencyKind::ReplaceOne, Unit::Record, AnyDerivation::NonPrivate(recipe))
                .assuming(model.assumptions())
                .of_model(model.sha256()?, versions);
        Ok(Released { model, certificate })
    }
}

/// Returns the version of this crate, for certificates.
pub(crate) fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([(env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
}

#[cfg(test)]
mod tests {
    use dp_data::read::load_csv;
    use dp_data::schema::Others;

    use super::*;
    use crate::error::ErrorKind;
    use crate::model::Prediction;
    use crate::verify;

    const SCHEMA: &str = r#"
        [label]
        column = "buys"
        positive = "yes"
        negative = "no"
        [columns.visits]
        type = "numeric"
        min = 0
        max = 30
    "#;

    fn table() -> Input {
        let row = |i: u32| format!("{},{}\n", i % 31, if i % 31 > 15 { "yes" } else { "no" });
        let rows: String = (0..3000).map(row).collect();
        Input::from_bytes("people.csv", format!("visits,buys\n{rows}").into_bytes())
    }

    fn schema() -> Schema {
        Schema::parse("schema.toml", SCHEMA).unwrap()
    }

    #[test]
    fn every_listed_algorithm_trains_and_verifies_or_says_why_not() {
        let mut refused = Vec::new();
        for entry in catalogue::ALGORITHMS {
            let training = Training::new(3.0, 1e-6).unwrap().by(entry.name).unwrap();
            match training.on_csv(&schema(), table()) {
                Ok(file) => {
                    let verified = verify::model(&file, verify::WORK).unwrap();
                    assert!(verified.epsilon <= 3.0 && verified.delta <= 1e-6, "{}: {verified:?}", entry.name);
                    let reread = ModelFile::parse(file.to_text().unwrap().as_bytes()).unwrap();
                    assert_eq!(reread, file);
                }
                Err(TrainError::Recipe(error)) => refused.push(format!("{}: {error}", entry.name)),
                Err(error) => panic!("{}: {error}", entry.name),
            }
        }
        assert_eq!(refused, [""; 0]);
    }

    /// Rows that are spooled give the model of rows in memory bit for bit, under a seed, for every algorithm: dense and sparse
    /// rows of several blocks and buckets, some of them null records.
    #[test]
    fn spooled_rows_train_the_same_models() {
        let towns: Vec<String> = (0..40).map(|i| format!("'t{i}'")).collect();
        let columns = format!("{SCHEMA}\n[columns.town]\ntype = 'categorical'\ncategories = [{}]", towns.join(", "));
        for (text, sparse) in [(SCHEMA, false), (&columns, true)] {
            let text = text.replace("max = 30", "max = 30\non_missing = 'neutral'");
            let encoder = Encoder::new(&Schema::parse("schema.toml", &text).unwrap(), Encoding::default()).unwrap();
            assert_eq!(encoder.prefers_sparse(), sparse);
            let row = |i: u32| {
                let visits = if i % 50 == 7 { String::new() } else { (i % 31).to_string() };
                format!("{visits},{},t{}\n", if i % 31 > 15 { "yes" } else { "no" }, i % 40)
            };
            let rows: String = (0..20_000).map(row).collect();
            let table = format!("visits,buys,town\n{rows}");
            let records = |memory| {
                let input = Input::from_bytes("people.csv", table.clone().into_bytes());
                let room = Room { memory, ..Room::default() };
                let (rows, _) = Held::<f64>::read(input, &encoder, &CsvOptions::default(), &room).unwrap();
                assert_eq!(matches!(rows, Held::Spool(_)), memory == 0);
                Records { encoder: encoder.clone(), rows }
            };
            for entry in catalogue::ALGORITHMS {
                let training = Training::new(3.0, 1e-6).unwrap().by(entry.name).unwrap();
                let [memory, spool] = [u64::MAX, 0].map(|memory| {
                    let control = &mut Control::default();
                    training.on_records(records(memory), &mut SeededRng::new(1), control).unwrap().file
                });
                assert_eq!(memory, spool, "{} {sparse}", entry.name);
            }
        }
    }

    /// The class depends on whether a number is in the middle of its range, which no line tells.
    #[test]
    fn auto_makes_curves_and_a_stated_map_is_used() {
        let row = |i: u32| format!("{},{}\n", i % 31, if (10..21).contains(&(i % 31)) { "yes" } else { "no" });
        let table = format!("visits,buys\n{}", (0..3000).map(row).collect::<String>());
        let right = |training: &Training| {
            let input = Input::from_bytes("people.csv", table.clone().into_bytes());
            let file = training.on_csv(&schema(), input).unwrap();
            assert!(verify::model(&file, verify::WORK).unwrap().epsilon <= 3.0);
            let mut row = dp_data::encode::RowBuffer::new(&file.model.encoder);
            let mut predicted = |visits: u32| {
                file.model
                    .encoder
                    .encode_row(|_| dp_data::encode::Cell::Number(visits.into()), None, &mut row)
                    .unwrap();
                matches!(file.model.predict(&row), Some(Prediction::Class { name: "yes", .. }))
            };
            let right = (0..31).filter(|visits| predicted(*visits) == (10..21).contains(visits)).count();
            (file.model.encoder.encoding().map.cosines, right)
        };
        let auto = Training::new(3.0, 1e-6).unwrap();
        let (cosines, right_by_curves) = right(&auto);
        assert!(cosines == 6 && right_by_curves >= 28, "{cosines} {right_by_curves}");
        let (cosines, right_by_a_line) = right(&auto.clone().with_map(FeatureMap::LINEAR));
        assert!(cosines == 0 && right_by_a_line <= 24, "{cosines} {right_by_a_line}");
        let stated = auto.by("dp-sgd").unwrap().with_map(FeatureMap::curves(3));
        assert_eq!(right(&stated).0, 3);
    }

    #[test]
    fn a_model_predicts() {
        let file = Training::new(3.0, 1e-6).unwrap().on_csv(&schema(), table()).unwrap();
        let mut row = dp_data::encode::RowBuffer::new(&file.model.encoder);
        let mut predicted = |visits: &str| {
            file.model.encoder.encode_row(|_| visits.as_bytes(), None, &mut row).unwrap();
            match file.model.predict(&row) {
                Some(Prediction::Class { name, .. }) => name.to_owned(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([predicted("0"), predicted("30")], ["no", "yes"]);
    }

    #[test]
    fn what_is_refused_is_named() {
        assert!(matches!(Training::new(-1.0, 0.0), Err(TrainError::Recipe(_))));
        let training = Training::new(1.0, 1e-6).unwrap();
        assert!(matches!(training.clone().by("nonesuch"), Err(TrainError::Algorithm(name)) if name == "nonesuch"));
        let lists = training.clone().under(AdjacencyKind::ChangeListLabels).on_csv(&schema(), table());
        assert!(matches!(lists, Err(TrainError::Relation { .. })));
        let unreviewed = Schema::parse("schema.toml", &format!("{SCHEMA}\nreviewed = false")).unwrap();
        assert!(matches!(training.on_csv(&unreviewed, table()), Err(TrainError::Data(_))));
    }

    #[test]
    fn a_seeded_run_claims_nothing() {
        let encoder = Encoder::new(&schema(), Encoding::default()).unwrap();
        let examples = load_csv::<f64>(table(), &encoder, &CsvOptions::default()).unwrap().examples;
        let rng = &mut SeededRng::new(1);
        let file = Training::new(1.0, 1e-6).unwrap().on_examples(encoder, examples, rng).unwrap();
        let refused = verify::model(&file, verify::WORK).unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (ErrorKind::NotPrivate, "verify.not_private"));
    }

    #[test]
    fn losses_fit_their_labels() {
        let two = Label::two_classes("y", vec!["1".into()], vec!["0".into()], Others::Error);
        let several = Label::classes("y", ["a", "b", "c"].map(String::from).to_vec());
        let number = Label::number("y", dp_data::schema::LabelRange { min: 0.0, max: 1.0 });
        for (label, classes) in [(two, Some(2)), (several, Some(3)), (number, None)] {
            assert_eq!(usual_loss(&label).unwrap().classes(), classes);
        }
    }
}
