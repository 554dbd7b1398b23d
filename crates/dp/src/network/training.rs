//! Training of a network on images, which gives a released network with its certificate.

use dp_accountant::certificate::{Assumption, Certificate, EpsilonDelta};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Delta, Epsilon, ReplaceOne, ZeroOut};
use dp_data::Images;
use dp_mechanisms::ReleaseRng;
use dp_mechanisms::clip::ClippingNorm;
use dp_nets::{Architecture, Float, Initial, Network, Pixels, Scaling};
use dp_optim::FloatKind;
use dp_optim::engine::Control;
use dp_optim::recipes::{Budget, ModelDerivation, ModelPlan, ModelSgd, RecordAdjacency};

use super::{NetworkFile, NetworkModel, SCHEMA, check_labels};
use crate::error::Error;
use crate::training::versions;

/// Microbatches of so many samples cost less than 1% of noise in single precision.
const MOST_ROUNDED: usize = 256;

/// What sees each step.
type Observer<'o> = dyn FnMut(u64, &mut dyn Iterator<Item = f64>) + 'o;

/// A private training of a network by DP-SGD ([`ModelSgd`]). All settings are public and chosen before an image is read.
///
/// # Examples
/// ```
/// use dp::metrics::winner;
/// use dp::network::{NetworkFile, NetworkTraining};
/// use dp_data::{Images, Workers, images::Shape};
/// use dp_mechanisms::OsSeeded;
/// use dp_nets::{Activation, Architecture};
/// use dp_optim::engine::Control;
///
/// // 1000 images that are bright in one half.
/// let shape = Shape { height: 4, width: 4, channels: 1 };
/// let pixels = (0..16_000).map(|j| if (j % 4 < 2) == (j / 16 % 2 == 0) { 220 } else { (j % 60) as u8 }).collect();
/// let images = Images::new(shape, pixels, (0..1000).map(|i| (i % 2) as u8).collect(), 2)?;
///
/// let mut training = NetworkTraining::new(2.0, 1e-5, Architecture::mlp(shape, &[8], 2, Activation::Tanh))?;
/// (training.recipe.batch_size, training.recipe.steps) = (100, 60);
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
    /// The steps, their clipping and their noise mode.
    pub recipe: ModelSgd,
    /// The budget.
    pub budget: Budget,
    /// The neighbouring relation: [`AdjacencyKind::ZeroOut`] or [`AdjacencyKind::ReplaceOne`].
    pub relation: AdjacencyKind,
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
    /// Creates a training with the budget `epsilon` and `delta`, add-remove with a public number of images, labels from 0, and
    /// the settings of [`ModelSgd::new`] with clipping norm 0.1.
    ///
    /// # Errors
    /// An epsilon that is not positive and finite, a delta outside `[0, 1)`, and layers that do not fit each other.
    pub fn new(epsilon: f64, delta: f64, architecture: Architecture) -> Result<Self, NetworkTrainError> {
        let classes = architecture.classes()?;
        let norm = ClippingNorm::new(0.1).map_err(dp_optim::Error::from)?;
        Ok(Self {
            architecture,
            labels: (0..=u8::MAX).take(classes).collect(),
            scaling: Scaling::Unit,
            initial: Initial::Uniform,
            seed: 1,
            recipe: ModelSgd::new(norm),
            budget: Budget { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? },
            relation: AdjacencyKind::ZeroOut,
        })
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
        let microbatch = match self.recipe.float {
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
        let plan = match self.relation {
            AdjacencyKind::ReplaceOne => Planned::ReplaceOne(self.recipe.plan(n, parameters, self.budget)?),
            AdjacencyKind::ZeroOut => Planned::ZeroOut(self.recipe.plan(n, parameters, self.budget)?),
            adjacency => return Err(dp_optim::Error::Adjacency { recipe: "network", adjacency }.into()),
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
}

impl NetworkPlan {
    /// Returns the training.
    pub fn training(&self) -> &NetworkTraining {
        &self.training
    }

    /// Returns the reached guarantee, at most the budget.
    pub fn reached(&self) -> EpsilonDelta {
        match &self.plan {
            Planned::ReplaceOne(plan) => plan.reached(),
            Planned::ZeroOut(plan) => plan.reached(),
        }
    }

    /// Returns the standard deviation of the noise over the clipping norm.
    pub fn noise_multiplier(&self) -> f64 {
        match &self.plan {
            Planned::ReplaceOne(plan) => plan.noise_multiplier(),
            Planned::ZeroOut(plan) => plan.noise_multiplier(),
        }
    }

    /// Trains on `images` and releases the network. After each step the observer sees its number, from 1, and the released weights.
    ///
    /// # Privacy
    /// As [`ModelPlan::train`].
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
        match (self.training.recipe.float, &self.plan) {
            (FloatKind::F32, Planned::ReplaceOne(plan)) => {
                self.train_in::<f32, _>(plan, images, rng, control, observer)
            }
            (FloatKind::F32, Planned::ZeroOut(plan)) => self.train_in::<f32, _>(plan, images, rng, control, observer),
            (FloatKind::F64, Planned::ReplaceOne(plan)) => {
                self.train_in::<f64, _>(plan, images, rng, control, observer)
            }
            (FloatKind::F64, Planned::ZeroOut(plan)) => self.train_in::<f64, _>(plan, images, rng, control, observer),
        }
    }

    fn train_in<F: Float, A: RecordAdjacency>(
        &self,
        plan: &ModelPlan<A>,
        images: &Images,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<NetworkFile, NetworkTrainError> {
        let NetworkTraining { architecture, labels, scaling, initial, seed, recipe, .. } = &self.training;
        let network = Network::<F, _>::new(architecture.clone(), Pixels::new(*scaling))?;
        network.check_images(images)?;
        let wide = |weights: &[F]| -> Vec<f64> { weights.iter().map(|weight| weight.wide()).collect() };
        let mut see = |step: u64, weights: &[F]| observer(step, &mut weights.iter().map(|weight| weight.wide()));
        let start = network.initial(*initial, *seed);
        let trained = plan.train(&network, images, start, rng, control, &mut see)?;
        let model = NetworkModel {
            schema: SCHEMA.to_owned(),
            architecture: architecture.clone(),
            labels: labels.clone(),
            scaling: *scaling,
            initial: *initial,
            seed: *seed,
            float: recipe.float,
            weights: wide(trained.weights.get()),
        };
        super::check_finite(&model.weights)?;
        let certificate: Certificate<ModelDerivation> =
            trained.certificate(Unit::Record, vec![Assumption::EveryRecordConforms], model.sha256()?, versions());
        Ok(NetworkFile::seal(model, certificate)?)
    }
}
