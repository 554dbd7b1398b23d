//! Training of a network on images, which gives a released network with its certificate.

use dp_accountant::certificate::{Assumption, Certificate, EpsilonDelta};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Delta, Epsilon, ReplaceOne, ZeroOut};
use dp_data::Images;
use dp_mechanisms::ReleaseRng;
use dp_nets::{Architecture, Float, Initial, Network, Pixels, Scaling};
use dp_optim::engine::Control;
use dp_optim::recipes::{Budget, ModelDerivation, ModelPlan, ModelSgd, NonPrivateSgd, RecordAdjacency};
use dp_optim::{FloatKind, Trained};

use super::{NetworkDerivation, NetworkFile, NetworkModel, SCHEMA, check_labels};
use crate::error::Error;
use crate::training::versions;

/// Microbatches of so many samples cost less than 1% of noise in single precision.
const MOST_ROUNDED: usize = 256;

/// What sees each step.
type Observer<'o> = dyn FnMut(u64, &mut dyn Iterator<Item = f64>) + 'o;

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
        let budget = Budget { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? };
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
/// let file = training.on(&images, &mut OsSeeded::new()?, &mut Control::default(), &mut |_, _| ())?;
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
    /// How a byte of an image becomes a number.
    pub scaling: Scaling,
    /// The distribution of the start.
    pub initial: Initial,
    /// The public seed of the start.
    pub seed: u64,
    /// How it is trained.
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
    /// Creates a training by this method, with labels from 0 and pixels scaled to `[0, 1]`.
    ///
    /// # Errors
    /// Layers that do not fit each other.
    pub fn new(method: Method, architecture: Architecture) -> Result<Self, NetworkTrainError> {
        let labels = (0..=u8::MAX).take(architecture.classes()?).collect();
        let (scaling, initial, seed) = (Scaling::Unit, Initial::Uniform, 1);
        Ok(Self { architecture, labels, scaling, initial, seed, method })
    }

    /// Returns the largest microbatch for training this network: fast, and with little noise for rounding.
    ///
    /// # Errors
    /// Layers that do not fit each other.
    pub fn recommended_microbatch(&self) -> Result<u64, NetworkTrainError> {
        fn of<F: Float>(training: &NetworkTraining) -> Result<usize, dp_nets::Error> {
            let network = Network::<F, _>::new(training.architecture.clone(), Pixels::new(training.scaling))?;
            Ok(network.recommended_microbatch())
        }
        let microbatch = match self.method.float() {
            FloatKind::F32 => of::<f32>(self)?,
            FloatKind::F64 => of::<f64>(self)?,
        };
        Ok(microbatch.min(MOST_ROUNDED) as u64)
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
        Ok(NetworkPlan { training: self, plan })
    }

    /// Plans and trains, as [`NetworkPlan::train`].
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
        self.plan(images.len() as u64)?.train(images, rng, control, observer)
    }
}

/// A planned training of a network: noise and guarantee, from public numbers alone.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkPlan {
    training: NetworkTraining,
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

    /// Trains on `images` and releases the network. After each step the observer sees its number, from 1, and the weights.
    ///
    /// # Privacy
    /// As [`ModelPlan::train`]. Without privacy the weights may reveal anything about the images, and the file says so.
    ///
    /// # Errors
    /// Images that do not fit the network, another number of them than planned, an interrupted training, and weights that are
    /// not finite.
    pub fn train(
        &self,
        images: &Images,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<NetworkFile, NetworkTrainError> {
        match self.training.method.float() {
            FloatKind::F32 => self.train_in::<f32>(images, rng, control, observer),
            FloatKind::F64 => self.train_in::<f64>(images, rng, control, observer),
        }
    }

    fn train_in<F: Float>(
        &self,
        images: &Images,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<NetworkFile, NetworkTrainError> {
        let NetworkTraining { architecture, scaling, initial, seed, .. } = &self.training;
        let network = Network::<F, _>::new(architecture.clone(), Pixels::new(*scaling))?;
        network.check_images(images)?;
        let see = &mut |step: u64, weights: &[F]| observer(step, &mut weights.iter().map(|weight| weight.wide()));
        let start = network.initial(*initial, *seed);
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
        let NetworkTraining { architecture, labels, scaling, initial, seed, method } = &self.training;
        let weights: Vec<f64> = weights.iter().map(|weight| weight.wide()).collect();
        super::check_finite(&weights)?;
        Ok(NetworkModel {
            schema: SCHEMA.to_owned(),
            architecture: architecture.clone(),
            labels: labels.clone(),
            scaling: *scaling,
            initial: *initial,
            seed: *seed,
            float: method.float(),
            weights,
        })
    }
}
