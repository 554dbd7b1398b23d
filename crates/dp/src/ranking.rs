//! Training of a ranker on lists, which gives a released ranker with its certificate.

mod settings;

use core::fmt;
use std::collections::BTreeMap;

use dp_accountant::certificate::{Assumption, Certificate, EpsilonDelta};
use dp_data::memory::{self, OutOfMemory};
use dp_mechanisms::rng::{LentRng, Purpose, ReleaseRng};
use dp_optim::recipes::Budget;
use dp_rank::QueryLists;
use dp_rank::scorer::Scorer as _;
use dp_rank::train::{
    Document, ListPresence, NonPrivateRanking, Observer, PrivateRanking, Protect, Protected, RankingDerivation,
    RankingPlan, TrainError, WholeList,
};

use crate::error::Error;
use crate::ranker::{
    AnyLoss, AnyScorer, ListForm, NamedLoss, PlainRanking, PrivateRanker, Ranker, RankerDerivation, RankerFile, SCHEMA,
    ScorerShape, TrainedModel, malformed,
};
use crate::sealed;

pub use settings::{MOST_UPDATES, RankerSettings, WIDEST};

/// The training of a ranker, as [`dp_rank::train::private`] describes it. All settings are public and chosen before a grade is
/// read.
///
/// # Examples
/// ```
/// use dp::RankerTraining;
/// use dp::ranker::{ListForm, NamedLoss, ScorerShape};
/// use dp_mechanisms::OsSeeded;
/// use dp_rank::{QueryLists, metrics};
///
/// // Each user has graded two documents of two features, and prefers the larger first feature.
/// let mut lists = QueryLists::new(2, 1)?;
/// for user in 0..300 {
///     let x = f64::from(user % 7) / 7.0;
///     lists.push(&format!("user {user}"), &[x, 0.5, x + 1.0, 0.5], &[0, 1])?;
/// }
/// let training = RankerTraining::new(NamedLoss::Bayesrank { k: 1 }, 1.0, 1e-4)?;
/// let file = training.on_lists(lists.clone(), ListForm::Letor {}, &mut OsSeeded::new()?)?;
/// assert!(dp::verify::ranker(&file)?.epsilon <= 1.0);
/// assert!(file.model.measure(&lists, metrics::ndcg)?.map > 0.9);
///
/// // A network instead of a weighted sum of features.
/// let training = RankerTraining { scorer: ScorerShape::mlp(), ..training };
/// assert!(training.plan(300, 2)?.cost().is_some_and(|cost| cost.reached.epsilon <= 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankerTraining {
    /// The scoring function of documents.
    pub scorer: ScorerShape,
    /// True if each list's features are mapped to [0, 1], in training and by the ranker.
    pub normalise_features: bool,
    /// The method of training.
    pub method: Method,
}

/// The method of training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Training with privacy.
    Private {
        /// The recipe; `protects` replaces the protected data that its type names.
        recipe: PrivateRanking<AnyLoss>,
        /// The budget.
        budget: Budget,
        /// The protected data.
        protects: Protected,
    },
    /// Training without privacy, as a baseline.
    NonPrivate(NonPrivateRanking<AnyLoss>),
}

/// The reason why a training was refused or failed. No ranker was released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RankerTrainError {
    /// The scorer has more parameters than a [file](sealed::LARGEST_MODEL) can hold.
    #[error("there is no room for a scorer of this size")]
    TooLarge,
    /// The scorer does not fit in memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The recipe rejects the settings or the lists, or training failed.
    #[error(transparent)]
    Recipe(#[from] TrainError),
    /// A weight is not finite, because steps were too long. With privacy, this depends on released weights alone.
    #[error("training diverged: a weight is no finite number")]
    Diverged,
    /// The ranker does not fit the format of its lists, or cannot be written.
    #[error(transparent)]
    Ranker(#[from] Error),
}

impl From<dp_rank::Error> for RankerTrainError {
    fn from(error: dp_rank::Error) -> Self {
        Self::Recipe(error.into())
    }
}

impl From<dp_accountant::Error> for RankerTrainError {
    fn from(error: dp_accountant::Error) -> Self {
        Self::Recipe(error.into())
    }
}

impl RankerTraining {
    /// Creates a private training of a weighted sum of features, with the budget `epsilon` and `delta` and the settings of
    /// [`PrivateRanking::for_epsilon`]. It protects the grades of one list.
    ///
    /// # Errors
    /// A loss with k = 0, an epsilon that is not positive and finite, or a delta outside `[0, 1)`.
    pub fn new(loss: NamedLoss, epsilon: f64, delta: f64) -> Result<Self, RankerTrainError> {
        let budget = Budget::new(epsilon, delta)?;
        let recipe = PrivateRanking::for_epsilon(checked(loss)?, budget.epsilon);
        Ok(Self::by(Method::Private { recipe, budget, protects: Protected::Grades }))
    }

    /// Creates a training without privacy, of a weighted sum of features. The certificate claims nothing.
    ///
    /// # Errors
    /// A loss with k = 0.
    pub fn without_privacy(loss: NamedLoss) -> Result<Self, RankerTrainError> {
        let mut recipe = NonPrivateRanking::new(checked(loss)?);
        // The gradients of ListMLE grow with the length of the lists.
        if loss == (NamedLoss::Listmle {}) {
            recipe.descent.step = 0.1;
        }
        Ok(Self::by(Method::NonPrivate(recipe)))
    }

    fn by(method: Method) -> Self {
        Self { scorer: ScorerShape::Linear {}, normalise_features: false, method }
    }

    /// Sets the protected data. Without privacy nothing is protected.
    #[must_use]
    pub fn protecting(mut self, protected: Protected) -> Self {
        if let Method::Private { protects, .. } = &mut self.method {
            *protects = protected;
        }
        self
    }

    /// Returns the protected data; without privacy, the grades, as the certificate then states.
    pub fn protects(&self) -> Protected {
        match self.method {
            Method::Private { protects, .. } => protects,
            Method::NonPrivate(_) => Protected::Grades,
        }
    }

    /// Returns the loss.
    pub fn loss(&self) -> NamedLoss {
        match self.method {
            Method::Private { recipe, .. } => recipe.loss.named(),
            Method::NonPrivate(recipe) => recipe.loss.named(),
        }
    }

    /// Trains on lists. `input` is the format of lists that the ranker will score.
    ///
    /// # Privacy
    /// The certificate covers everything in the returned file, provided that the number of features and the largest grade were
    /// declared, and not derived from protected data. With a generator that is not secret there is no guarantee, and the
    /// certificate says so.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan) and [`RankerPlan::train`].
    pub fn on_lists<R: ReleaseRng>(
        &self,
        lists: QueryLists,
        input: ListForm,
        rng: &mut R,
    ) -> Result<RankerFile, RankerTrainError> {
        let plan = self.plan(lists.len() as u64, lists.width())?;
        let file = plan.train(lists, input, 0, &mut rng.lend(), &mut |_, _| {})?;
        Ok(file.made_by(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))?)
    }

    /// Calibrates the noise for this many lists of documents with `width` features, before a list is read.
    ///
    /// # Errors
    /// A scorer that does not fit in memory or in a file; those of [`PrivateRanking::plan`].
    pub fn plan(&self, lists: u64, width: usize) -> Result<RankerPlan, RankerTrainError> {
        let parameters = self.parameters(width)?;
        let planned = match self.method {
            Method::Private { recipe, budget, protects } => {
                let plan: Box<dyn PrivatePlan> = match protects {
                    Protected::Grades => Box::new(recipe.plan(lists, parameters, budget)?),
                    Protected::ListPresence => {
                        Box::new(recipe.protecting(ListPresence).plan(lists, parameters, budget)?)
                    }
                    Protected::WholeList => Box::new(recipe.protecting(WholeList).plan(lists, parameters, budget)?),
                    Protected::Document => Box::new(recipe.protecting(Document).plan(lists, parameters, budget)?),
                };
                Planned::Private(recipe, plan)
            }
            Method::NonPrivate(recipe) => Planned::NonPrivate(recipe),
        };
        Ok(RankerPlan { training: *self, width, planned })
    }

    /// Returns the number of parameters; rejects a scorer that is too large before anything of its size is allocated.
    fn parameters(&self, width: usize) -> Result<u64, RankerTrainError> {
        // Weights, gradients, a sum on a grid and their JSON.
        const BYTES: usize = 256;
        let parameters = self.scorer.parameters(width).ok_or(RankerTrainError::TooLarge)?;
        if sealed::text_of(parameters as u64) > sealed::LARGEST_MODEL {
            return Err(RankerTrainError::TooLarge);
        }
        memory::check(parameters.saturating_mul(BYTES), "a scorer of this size")?;
        Ok(parameters as u64)
    }
}

/// Returns the loss of this name.
fn checked(loss: NamedLoss) -> Result<AnyLoss, dp_rank::Error> {
    loss.loss().ok_or(dp_rank::Error::ZeroCutoff)
}

/// A training whose noise is calibrated.
#[derive(Debug)]
pub struct RankerPlan {
    training: RankerTraining,
    width: usize,
    planned: Planned,
}

#[derive(Debug)]
enum Planned {
    Private(PrivateRanking<AnyLoss>, Box<dyn PrivatePlan>),
    NonPrivate(NonPrivateRanking<AnyLoss>),
}

/// The cost of a private training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The guarantee, at most the requested one.
    pub reached: EpsilonDelta,
    /// The standard deviation of the noise over the distance of neighbouring sums
    /// ([`RankingPlan::noise_multiplier`]).
    pub noise_multiplier: f64,
}

/// A private plan, for any protected data.
trait PrivatePlan: fmt::Debug + Send + Sync {
    fn cost(&self) -> Cost;

    /// Returns the weights, and a certificate that lacks the hash of the ranker.
    fn train(
        &self,
        scorer: &AnyScorer,
        start: Vec<f64>,
        lists: &QueryLists,
        rng: &mut LentRng<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<(Vec<f64>, Certificate<RankingDerivation>), TrainError>;
}

impl<P: Protect> PrivatePlan for RankingPlan<AnyLoss, P> {
    fn cost(&self) -> Cost {
        Cost { reached: self.reached(), noise_multiplier: self.noise_multiplier() }
    }

    fn train(
        &self,
        scorer: &AnyScorer,
        start: Vec<f64>,
        lists: &QueryLists,
        rng: &mut LentRng<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<(Vec<f64>, Certificate<RankingDerivation>), TrainError> {
        let trained = self.train(scorer, start, lists, rng, observer)?;
        // Malformed lists are an error, for every protected unit.
        let certificate = trained.certificate(vec![Assumption::EveryRecordConforms], String::new(), BTreeMap::new());
        Ok((trained.weights.into_inner(), certificate))
    }
}

impl RankerPlan {
    /// Returns the cost; `None` without privacy. With a generator that is not secret, it is that of the same training with a
    /// secret one.
    pub fn cost(&self) -> Option<Cost> {
        match &self.planned {
            Planned::Private(_, plan) => Some(plan.cost()),
            Planned::NonPrivate(_) => None,
        }
    }

    /// Trains on lists, whose features are mapped to [0, 1] if the training says so. `start` is the public seed of a network's
    /// initial weights and, for a loss that [depends on it](NamedLoss::depends_on_order), of the order of documents. The observer
    /// receives the number of updates and the weights, before the first and after every update.
    ///
    /// # Privacy
    /// As [`RankerTraining::on_lists`]; with privacy, the observer receives released weights.
    ///
    /// # Errors
    /// Lists of another number or width than planned, feature names of another number, and weights that are not finite.
    pub fn train(
        &self,
        mut lists: QueryLists,
        input: ListForm,
        start: u64,
        rng: &mut LentRng<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<RankerFile, RankerTrainError> {
        let Self { training, width, planned } = self;
        let RankerTraining { scorer: shape, normalise_features, .. } = *training;
        let scorer = &shape.scorer(*width)?;
        let (loss, largest_grade) = (training.loss(), lists.largest_grade());
        if normalise_features {
            lists.normalise_features();
        }
        if loss.depends_on_order() {
            lists.shuffle_documents(start);
        }
        let mut model = Ranker {
            schema: SCHEMA.to_owned(),
            scorer: shape,
            loss,
            input,
            width: *width,
            largest_grade,
            normalise_features,
            weights: scorer.start(start),
        };
        model.check().map_err(malformed)?;
        let start = model.weights.clone();
        let (weights, mut certificate) = match planned {
            Planned::Private(recipe, plan) => {
                let (weights, certificate) = plan.train(scorer, start, &lists, rng, observer)?;
                let (thin, normalise) = (recipe.thin, recipe.descent.normalise.map(Into::into));
                let model =
                    Some(TrainedModel { loss, scorer: shape, thin, largest_grade, normalise_features, normalise });
                let derivation = |ranking| RankerDerivation::PrivateRanking(PrivateRanker { ranking, model });
                (weights, certificate.map_derivation(derivation))
            }
            Planned::NonPrivate(recipe) => {
                let key = rng.derive_key(Purpose::Permutation);
                let weights = recipe.train(scorer, start, &lists, key, observer)?;
                let derivation = RankerDerivation::NonPrivateRanking(PlainRanking {
                    lists: lists.len() as u64,
                    parameters: scorer.parameters() as u64,
                    batch_size: recipe.batch_size,
                    updates: recipe.descent.updates,
                });
                let protects = training.protects();
                (weights, Certificate::without_guarantee(protects.adjacency(), protects.unit(), derivation))
            }
        };
        if !weights.iter().all(|weight| weight.is_finite()) {
            return Err(RankerTrainError::Diverged);
        }
        model.weights = weights;
        certificate.model_sha256 = model.sha256()?;
        Ok(RankerFile::seal(model, certificate)?)
    }
}

#[cfg(test)]
mod tests {
    use dp_mechanisms::rng::{OsSeeded, SeededRng};
    use dp_rank::synthetic::{self, FEATURES, Shape};
    use dp_rank::train::Scaling;

    use super::*;
    use crate::error::ErrorKind;
    use crate::ranker::NamedActivation;
    use crate::verify;

    const BAYESRANK: NamedLoss = NamedLoss::Bayesrank { k: 1 };
    const NETWORK: ScorerShape = ScorerShape::Mlp { hidden: 3, activation: NamedActivation::Tanh };

    fn lists(count: usize) -> QueryLists {
        synthetic::draw(Shape::Mq2008, count, 1).unwrap().lists
    }

    /// A training with few updates, changed by `change`.
    fn short(loss: NamedLoss, change: impl FnOnce(&mut PrivateRanking<AnyLoss>)) -> RankerTraining {
        let mut training = RankerTraining::new(loss, 3.0, 1e-4).unwrap();
        let Method::Private { recipe, .. } = &mut training.method else { unreachable!() };
        recipe.descent.updates = 20;
        change(recipe);
        training
    }

    fn seeded(training: &RankerTraining, lists: QueryLists, start: u64) -> Result<Ranker, RankerTrainError> {
        let plan = training.plan(lists.len() as u64, lists.width())?;
        let mut rng = SeededRng::new(5);
        Ok(plan.train(lists, ListForm::Letor {}, start, &mut rng.lend(), &mut |_, _| {})?.model)
    }

    #[test]
    fn every_protected_unit_costs_what_was_planned_and_verifies() {
        let lists = lists(60);
        for protects in [Protected::Grades, Protected::ListPresence, Protected::WholeList, Protected::Document] {
            for (loss, scorer) in [
                (BAYESRANK, NETWORK),
                (NamedLoss::Listnet { k: 1 }, ScorerShape::Linear {}),
                (NamedLoss::Listmle {}, ScorerShape::Linear {}),
            ] {
                let training = RankerTraining { scorer, ..short(loss, |_| {}).protecting(protects) };
                let cost = training.plan(60, FEATURES).unwrap().cost().unwrap();
                let file = training.on_lists(lists.clone(), ListForm::Letor {}, &mut OsSeeded::new().unwrap()).unwrap();
                assert_eq!((file.certificate.reached, file.certificate.private), (Some(cost.reached), true));
                let unit = (file.certificate.adjacency, &file.certificate.unit);
                assert_eq!(unit, (protects.adjacency(), &protects.unit()));
                let RankerDerivation::PrivateRanking(private) = &file.certificate.derivation else { unreachable!() };
                let apart = if protects == Protected::ListPresence { 0.1 } else { 0.2 };
                assert!((private.ranking.std_dev / apart / cost.noise_multiplier - 1.0).abs() < 1e-12, "{cost:?}");
                assert_eq!((file.model.loss, file.model.scorer, training.loss()), (loss, scorer, loss));
                let verified = verify::ranker(&file).unwrap();
                assert!(verified.epsilon <= 3.0 && (verified.epsilon / cost.reached.epsilon - 1.0).abs() < 1e-9);
                let reread = RankerFile::parse(file.to_text().unwrap().as_bytes());
                assert_eq!(reread.unwrap(), file);
            }
        }
    }

    #[test]
    fn nothing_is_certified_without_secret_noise() {
        let private = short(BAYESRANK, |_| {});
        for training in [private, RankerTraining::without_privacy(BAYESRANK).unwrap()] {
            let train = || training.on_lists(lists(20), ListForm::Letor {}, &mut SeededRng::new(7)).unwrap();
            let file = train();
            assert_eq!((&file, file.certificate.private, file.certificate.reached), (&train(), false, None));
            assert_eq!(verify::ranker(&file).unwrap_err().kind(), ErrorKind::NotPrivate);
            assert_eq!(training.plan(20, FEATURES).unwrap().cost().is_some(), training == private);
        }
    }

    /// A training that maps features to [0, 1] equals one on mapped features, and so do its scores.
    #[test]
    fn features_are_mapped_in_training_and_in_scoring() {
        let plain = short(BAYESRANK, |_| {});
        let mapping = RankerTraining { normalise_features: true, ..plain };
        let mut raw = QueryLists::new(FEATURES, 2).unwrap();
        for list in lists(30).iter() {
            let features: Vec<f64> = list.features().values().iter().map(|x| 3.0 * x - 1.0).collect();
            raw.push(list.id(), &features, list.grades()).unwrap();
        }
        let mut mapped = raw.clone();
        mapped.normalise_features();
        let (of_raw, of_mapped) =
            (seeded(&mapping, raw.clone(), 0).unwrap(), seeded(&plain, mapped.clone(), 0).unwrap());
        assert_eq!(of_raw.weights, of_mapped.weights);
        assert_ne!(of_raw.weights, seeded(&plain, raw.clone(), 0).unwrap().weights);
        let (mut scores, mut expected) = (of_raw.scores().unwrap(), of_mapped.scores().unwrap());
        for (raw, mapped) in raw.iter().zip(mapped.iter()) {
            assert_eq!(scores.of(raw).unwrap(), expected.of(mapped).unwrap());
        }
    }

    #[test]
    fn the_start_is_that_of_a_network_and_of_the_order_of_documents() {
        for (loss, scorer, differs) in [
            (BAYESRANK, NETWORK, true),
            (BAYESRANK, ScorerShape::Linear {}, false),
            (NamedLoss::Listmle {}, ScorerShape::Linear {}, true),
        ] {
            let training = RankerTraining { scorer, ..short(loss, |_| {}) };
            let weights = |start| seeded(&training, lists(20), start).unwrap().weights;
            assert_eq!(weights(1) != weights(2), differs, "{loss:?} {scorer:?}");
        }
    }

    #[test]
    fn a_scorer_must_fit() {
        for hidden in [1 << 30, usize::MAX] {
            let scorer = ScorerShape::Mlp { hidden, activation: NamedActivation::Relu };
            for training in [short(BAYESRANK, |_| {}), RankerTraining::without_privacy(BAYESRANK).unwrap()] {
                let training = RankerTraining { scorer, ..training };
                assert!(matches!(training.plan(60, FEATURES), Err(RankerTrainError::TooLarge)), "{hidden}");
            }
        }
        let none = ScorerShape::Mlp { hidden: 0, activation: NamedActivation::Relu };
        for training in [short(BAYESRANK, |_| {}), RankerTraining::without_privacy(BAYESRANK).unwrap()] {
            assert!(seeded(&RankerTraining { scorer: none, ..training }, lists(20), 0).is_err());
        }
    }

    #[test]
    fn lists_must_be_those_of_the_plan() {
        let training = short(BAYESRANK, |_| {});
        let attempt = |planned: u64, width: usize, input: ListForm| {
            let plan = training.plan(planned, width).unwrap();
            plan.train(lists(20), input, 0, &mut SeededRng::new(1).lend(), &mut |_, _| {}).unwrap_err()
        };
        let shape = |error| match error {
            RankerTrainError::Recipe(TrainError::Ranking(dp_rank::Error::Shape { what, .. })) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(shape(attempt(21, FEATURES, ListForm::Letor {})), "the lists");
        assert_eq!(shape(attempt(20, 3, ListForm::Letor {})), "a document");
        let csv = ListForm::Csv { query: "q".to_owned(), label: "y".to_owned(), features: vec!["x".to_owned()] };
        assert!(attempt(20, FEATURES, csv).to_string().contains("names of the features"));
    }

    #[test]
    fn weights_that_diverge_are_an_error() {
        let mut lists = QueryLists::new(1, 1).unwrap();
        (0..20).for_each(|list| lists.push(&list.to_string(), &[1e3, -1e3], &[0, 1]).unwrap());
        let mut without = RankerTraining::without_privacy(BAYESRANK).unwrap();
        let Method::NonPrivate(recipe) = &mut without.method else { unreachable!() };
        recipe.descent.step = f64::MAX;
        let private = short(BAYESRANK, |recipe| {
            recipe.descent.step = f64::MAX;
            recipe.clipping = 1e3;
        });
        for training in [without, private] {
            let trained = seeded(&training, lists.clone(), 0);
            assert!(matches!(trained, Err(RankerTrainError::Diverged)), "{training:?} {trained:?}");
        }
    }

    #[test]
    fn settings_without_a_proof_or_out_of_range_are_errors() {
        let refused = |training: RankerTraining| match training.plan(60, FEATURES) {
            Err(RankerTrainError::Recipe(error)) => error,
            other => panic!("{other:?}"),
        };
        let weights = short(BAYESRANK, |recipe| recipe.scaling = Scaling::WHOLE);
        weights.plan(60, FEATURES).unwrap();
        for protects in [Protected::ListPresence, Protected::WholeList, Protected::Document] {
            assert!(matches!(refused(weights.protecting(protects)), TrainError::Protected { .. }), "{protects:?}");
        }
        let unbounded = short(NamedLoss::Listmle {}, |recipe| recipe.scaling = Scaling::WHOLE);
        assert!(matches!(refused(unbounded), TrainError::UnknownImage));
        let still = short(BAYESRANK, |recipe| recipe.descent.updates = 0);
        assert!(refused(still).to_string().contains("updates"));
        for (epsilon, delta) in [(0.0, 1e-4), (f64::NAN, 1e-4), (1.0, 1.0), (1.0, -1e-4)] {
            assert!(RankerTraining::new(BAYESRANK, epsilon, delta).is_err(), "{epsilon} {delta}");
        }
        let exact = RankerTraining::new(BAYESRANK, 1.0, 0.0).unwrap();
        assert!(exact.plan(60, FEATURES).is_err(), "Gaussian noise needs a delta");
        for loss in [NamedLoss::Bayesrank { k: 0 }, NamedLoss::Listnet { k: 0 }] {
            assert!(RankerTraining::new(loss, 1.0, 1e-4).is_err() && RankerTraining::without_privacy(loss).is_err());
        }
    }
}
