//! Training of a network on images, which gives a released network with its certificate.

use dp_accountant::certificate::{Assumption, Certificate, EpsilonDelta};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_data::Images;
use dp_mechanisms::ReleaseRng;
use dp_nets::{Architecture, Float, Initial, Network, Pixels, Scaling, Views};
use dp_optim::engine::{AfterUpdate, Control, RunState, Start};
use dp_optim::recipes::{Budget, ModelDerivation, ModelPlan, ModelSgd, NonPrivateSgd, RecordAdjacency};
use dp_optim::{FloatKind, Trained};

use super::checkpoint::{Checkpoint, Described, Kept, State};
use super::{NetworkDerivation, NetworkFile, NetworkModel, SCHEMA, check_labels};
use crate::error::{Error, ErrorKind};
use crate::model::check_finite;
use crate::training::versions;

/// Microbatches of so many samples cost less than 1% of noise in single precision.
const MOST_ROUNDED: usize = 256;

/// The observer of each step.
type Observer<'o> = dyn FnMut(&NetworkStep<'_>) + 'o;

/// A training after one of its steps.
pub struct NetworkStep<'s> {
    /// The number of the step, from 1.
    pub number: u64,
    weights: &'s dyn Fn() -> Vec<f64>,
    state: &'s dyn Fn() -> Option<State>,
    plan: &'s NetworkPlan,
}

impl NetworkStep<'_> {
    /// Copies the weights.
    pub fn weights(&self) -> Vec<f64> {
        (self.weights)()
    }

    /// Returns a checkpoint after which all steps up to `begun` may begin. It must be on disk before the next one does.
    pub fn checkpoint(&self, begun: u64) -> Option<Checkpoint> {
        Some(Checkpoint::new(self.plan.described(), (self.state)()?, begun.max(self.number)))
    }
}

/// The training of a network, private or not.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// DP-SGD.
    Private {
        /// The steps, their clipping and their noise mode.
        recipe: ModelSgd,
        /// The budget.
        budget: Budget,
        /// The neighbouring relation: [`AdjacencyKind::ZeroOut`] or [`AdjacencyKind::ReplaceOne`].
        relation: AdjacencyKind,
    },
    /// SGD, for comparison.
    NonPrivate(NonPrivateSgd),
}

impl Method {
    /// Creates a private method with this budget, add-remove with a public number of images.
    ///
    /// # Errors
    /// An epsilon that is not positive and finite, and a delta outside `[0, 1)`.
    pub fn private(recipe: ModelSgd, epsilon: f64, delta: f64) -> Result<Self, NetworkTrainError> {
        let budget = Budget::new(epsilon, delta)?;
        Ok(Self::Private { recipe, budget, relation: AdjacencyKind::ZeroOut })
    }

    /// Returns the floating-point type.
    pub fn float(&self) -> FloatKind {
        match self {
            Self::Private { recipe, .. } => recipe.float,
            Self::NonPrivate(recipe) => recipe.float,
        }
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> u64 {
        match self {
            Self::Private { recipe, .. } => recipe.steps,
            Self::NonPrivate(recipe) => recipe.steps,
        }
    }

    /// Returns the number of images of a step, for Poisson batches the mean.
    pub fn batch_size(&self) -> u64 {
        match self {
            Self::Private { recipe, .. } => recipe.batch_size,
            Self::NonPrivate(recipe) => recipe.batch_size,
        }
    }
}

/// A training of a network. All settings are public and chosen before an image is read.
///
/// # Examples
/// ```
/// use dp::metrics::winner;
/// use dp::network::{Method, NetworkFile, NetworkTraining};
/// use dp_data::{Images, Workers, images::Shape};
/// use dp_mechanisms::OsSeeded;
/// use dp_mechanisms::clip::ClippingNorm;
/// use dp_nets::{Activation, Architecture};
/// use dp_optim::engine::Control;
/// use dp_optim::recipes::ModelSgd;
///
/// // 1000 images that are bright in one half.
/// let shape = Shape { height: 4, width: 4, channels: 1 };
/// let pixels = (0..16_000).map(|j| if (j % 4 < 2) == (j / 16 % 2 == 0) { 220 } else { (j % 60) as u8 }).collect();
/// let images = Images::new(shape, pixels, (0..1000).map(|i| (i % 2) as u8).collect(), 2)?;
///
/// let recipe = ModelSgd { batch_size: 100, steps: 60, ..ModelSgd::new(ClippingNorm::new(0.1)?) };
/// let layers = Architecture::mlp(shape, &[8], 2, Activation::Tanh);
/// let training = NetworkTraining::new(Method::private(recipe, 2.0, 1e-5)?, layers)?; // epsilon, delta
/// let file = training.on(&images, &mut OsSeeded::new()?, &mut Control::default(), &mut |_| ())?;
/// assert!(dp::verify::network(&file)?.epsilon <= 2.0);
/// assert_eq!(NetworkFile::parse(file.to_text()?.as_bytes())?, file);
///
/// let mut hits = 0;
/// let mut classes = (0..1000).map(|i| i % 2);
/// file.model.logits(&images, Workers::ONE, |logits| {
///     hits += i32::from(Some(winner(logits)) == classes.next());
///     Ok::<_, dp::Error>(())
/// })?;
/// assert!(hits > 900);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkTraining {
    /// The layers.
    pub architecture: Architecture,
    /// The label of each class, as it is in the files of images: one for each unit of the last layer.
    pub labels: Vec<u8>,
    /// The map from a byte of an image to a number.
    pub scaling: Scaling,
    /// The views of an image over which losses and logits are averaged.
    pub views: Views,
    /// The distribution of the start.
    pub initial: Initial,
    /// The public seed of the start.
    pub seed: u64,
    /// Its training.
    pub method: Method,
}

/// The reason why a training was refused or failed. No network was released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkTrainError {
    /// The layers do not fit each other, or the images.
    #[error(transparent)]
    Network(#[from] dp_nets::Error),
    /// Every class needs one label, of a byte, of its own.
    #[error(
        "{labels} labels for the {classes} classes of the network: expected one of its own for each, of at most 256"
    )]
    Labels {
        /// Number of classes of the network.
        classes: usize,
        /// Number of labels.
        labels: usize,
    },
    /// The recipe rejects the settings, or training failed.
    #[error(transparent)]
    Recipe(#[from] dp_optim::Error),
    /// The network cannot be written, because steps were too long. This depends on released weights alone.
    #[error(transparent)]
    Model(#[from] Error),
}

impl From<dp_accountant::Error> for NetworkTrainError {
    fn from(error: dp_accountant::Error) -> Self {
        Self::Recipe(error.into())
    }
}

impl NetworkTraining {
    /// Creates a training by this method, with labels from 0, pixels scaled to `[0, 1]` and one view of each image.
    ///
    /// # Errors
    /// Layers that do not fit each other.
    pub fn new(method: Method, architecture: Architecture) -> Result<Self, NetworkTrainError> {
        let labels = (0..=u8::MAX).take(architecture.classes()?).collect();
        let (scaling, views, initial, seed) = (Scaling::Unit, Views::One, Initial::Uniform, 1);
        Ok(Self { architecture, labels, scaling, views, initial, seed, method })
    }

    /// Returns the largest microbatch for training this network: fast, and with little noise for rounding.
    ///
    /// # Errors
    /// Layers that do not fit each other.
    pub fn recommended_microbatch(&self) -> Result<u64, NetworkTrainError> {
        let microbatch = match self.method.float() {
            FloatKind::F32 => self.network::<f32>()?.recommended_microbatch(),
            FloatKind::F64 => self.network::<f64>()?.recommended_microbatch(),
        };
        Ok(microbatch.min(MOST_ROUNDED) as u64)
    }

    fn network<F: Float>(&self) -> Result<Network<F, Pixels<F>>, dp_nets::Error> {
        Network::new(self.architecture.clone(), Pixels::new(self.scaling).with_views(self.views))
    }

    /// Plans a training on `n` images, before one is read.
    ///
    /// # Errors
    /// Settings that the recipe rejects, and labels that are not those of the classes.
    pub fn plan(self, n: u64) -> Result<NetworkPlan, NetworkTrainError> {
        check_labels(&self.architecture, &self.labels)?;
        let parameters = self.architecture.parameters()? as u64;
        let plan = match &self.method {
            Method::NonPrivate(recipe) => Planned::NonPrivate(recipe.clone()),
            Method::Private { recipe, budget, relation: AdjacencyKind::ReplaceOne } => {
                Planned::ReplaceOne(recipe.plan(n, parameters, *budget)?)
            }
            Method::Private { recipe, budget, relation: AdjacencyKind::ZeroOut } => {
                Planned::ZeroOut(recipe.plan(n, parameters, *budget)?)
            }
            Method::Private { relation: adjacency, .. } => {
                return Err(dp_optim::Error::Adjacency { recipe: "network", adjacency: *adjacency }.into());
            }
        };
        Ok(NetworkPlan { training: self, n, plan })
    }

    /// Plans and trains, as [`NetworkPlan::train`] from the initial weights.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan) and [`NetworkPlan::train`].
    pub fn on(
        self,
        images: &Images,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<NetworkFile, NetworkTrainError> {
        self.plan(images.len() as u64)?.train(images, None, rng, control, observer)
    }
}

/// A planned training of a network: noise and guarantee, from public numbers alone.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkPlan {
    training: NetworkTraining,
    n: u64,
    plan: Planned,
}

#[derive(Debug, Clone, PartialEq)]
enum Planned {
    ReplaceOne(ModelPlan<ReplaceOne>),
    ZeroOut(ModelPlan<ZeroOut>),
    NonPrivate(NonPrivateSgd),
}

impl NetworkPlan {
    /// Returns the training.
    pub fn training(&self) -> &NetworkTraining {
        &self.training
    }

    /// Returns the reached guarantee, at most the budget; `None` without privacy.
    pub fn reached(&self) -> Option<EpsilonDelta> {
        match &self.plan {
            Planned::ReplaceOne(plan) => Some(plan.reached()),
            Planned::ZeroOut(plan) => Some(plan.reached()),
            Planned::NonPrivate(_) => None,
        }
    }

    /// Returns the standard deviation of the noise over the clipping norm; `None` without privacy.
    pub fn noise_multiplier(&self) -> Option<f64> {
        match &self.plan {
            Planned::ReplaceOne(plan) => Some(plan.noise_multiplier()),
            Planned::ZeroOut(plan) => Some(plan.noise_multiplier()),
            Planned::NonPrivate(_) => None,
        }
    }

    fn described(&self) -> Described {
        let derivation = match &self.plan {
            Planned::ReplaceOne(plan) => NetworkDerivation::DpSgd(plan.derivation().clone()),
            Planned::ZeroOut(plan) => NetworkDerivation::DpSgd(plan.derivation().clone()),
            Planned::NonPrivate(recipe) => NetworkDerivation::NonPrivate(recipe.clone()),
        };
        Described { network: self.network(Vec::new()), n: self.n, derivation }
    }

    /// Returns the checkpoint of a training before its first step, in which all steps up to `begun` may begin.
    pub fn initial_checkpoint(&self, begun: u64) -> Checkpoint {
        let state = match self.training.method.float() {
            FloatKind::F32 => State::Single(RunState::initial()),
            FloatKind::F64 => State::Double(RunState::initial()),
        };
        Checkpoint::new(self.described(), state, begun)
    }

    /// Checks that a checkpoint is of this training.
    ///
    /// # Errors
    /// [`ErrorKind::OtherTraining`](crate::ErrorKind::OtherTraining).
    pub fn check_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let difference = match self.described().difference(&checkpoint.training) {
            Some(what) => what,
            None if checkpoint.begun() > self.training.method.steps() => "the number of steps",
            None => return Ok(()),
        };
        let message = format!("the checkpoint is of another training: {difference} differ");
        Err(Error::new(ErrorKind::OtherTraining, message))
    }

    /// Trains on `images` and releases the network. After each step the observer sees the training. From a checkpoint, the
    /// training makes the steps that had not begun: those that had begun and left no result are paid for and lost.
    ///
    /// # Privacy
    /// As [`ModelPlan::train`]. Without privacy the weights may reveal anything about the images, and the file says so.
    ///
    /// # Errors
    /// Images that do not fit the network, another number of them than planned, a checkpoint of another training, an interrupted
    /// training, and weights that are not finite.
    pub fn train(
        &self,
        images: &Images,
        resumed: Option<Checkpoint>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<NetworkFile, NetworkTrainError> {
        resumed.as_ref().map_or(Ok(()), |checkpoint| self.check_checkpoint(checkpoint))?;
        match self.training.method.float() {
            FloatKind::F32 => self.train_in::<f32>(images, resumed, rng, control, observer),
            FloatKind::F64 => self.train_in::<f64>(images, resumed, rng, control, observer),
        }
    }

    fn train_in<F: Kept>(
        &self,
        images: &Images,
        resumed: Option<Checkpoint>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<NetworkFile, NetworkTrainError> {
        let network = self.training.network::<F>()?;
        network.check_images(images)?;
        let see = &mut |moment: &AfterUpdate<'_, F>| {
            observer(&NetworkStep {
                number: moment.update,
                weights: &|| moment.iterate.iter().map(|weight| weight.wide()).collect(),
                state: &|| moment.state().map(F::keep),
                plan: self,
            });
        };
        let other_type = || Error::new(ErrorKind::OtherTraining, "the checkpoint is of another floating-point type");
        let state = |checkpoint: Checkpoint| F::kept(checkpoint.after_loss().state).ok_or_else(other_type);
        let resumed = resumed.map(state).transpose()?;
        let start = Start { parameters: network.initial(self.training.initial, self.training.seed), resumed };
        match &self.plan {
            Planned::ReplaceOne(plan) => self.sealed(plan.train(&network, images, start, rng, control, see)?),
            Planned::ZeroOut(plan) => self.sealed(plan.train(&network, images, start, rng, control, see)?),
            Planned::NonPrivate(recipe) => {
                let weights = recipe.train(&network, images, start, rng, control, see)?;
                let model = self.model(&weights.expose_without_any_guarantee())?;
                let derivation = NetworkDerivation::NonPrivate(recipe.clone());
                let certificate = Certificate::without_guarantee(AdjacencyKind::ReplaceOne, Unit::Record, derivation);
                let certificate = certificate.of_model(model.sha256()?, versions());
                Ok(NetworkFile::seal(model, certificate)?)
            }
        }
    }

    /// Combines what was released with its certificate.
    fn sealed<F: Float, A: RecordAdjacency>(
        &self,
        trained: Trained<F, A, ModelDerivation>,
    ) -> Result<NetworkFile, NetworkTrainError> {
        let model = self.model(trained.weights.get())?;
        let hash = model.sha256()?;
        let certificate = trained.map_derivation(NetworkDerivation::DpSgd);
        let certificate =
            certificate.certificate(Unit::Record, vec![Assumption::EveryRecordConforms], hash, versions());
        Ok(NetworkFile::seal(model, certificate)?)
    }

    fn model<F: Float>(&self, weights: &[F]) -> Result<NetworkModel, Error> {
        let weights: Vec<f64> = weights.iter().map(|weight| weight.wide()).collect();
        check_finite(&weights)?;
        Ok(self.network(weights))
    }

    fn network(&self, weights: Vec<f64>) -> NetworkModel {
        let NetworkTraining { architecture, labels, scaling, views, initial, seed, method } = &self.training;
        NetworkModel {
            schema: SCHEMA.to_owned(),
            architecture: architecture.clone(),
            labels: labels.clone(),
            scaling: *scaling,
            views: *views,
            initial: *initial,
            seed: *seed,
            float: method.float(),
            weights,
        }
    }
}
