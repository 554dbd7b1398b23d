//! The file of a network: model, certificate and the hashes that bind them, as for other models ([`crate::sealed`]).

mod checkpoint;
mod training;

pub use checkpoint::Checkpoint;
pub use training::{Method, NetworkPlan, NetworkStep, NetworkTrainError, NetworkTraining};

use dp_accountant::certificate::{Assumption, Derivation};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_data::{Images, Workers, memory};
use dp_losses::Model as _;
use dp_nets::{Architecture, Float, Initial, Network, Pixels, Scaling, Views};
use dp_optim::FloatKind;
use dp_optim::recipes::{ModelDerivation, NonPrivateSgd};
use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::error::{Error, ErrorKind};
use crate::protection;
use crate::sealed::{self, Content, to_value};

/// The format of the model member.
pub const SCHEMA: &str = "dp.network/1";

/// A released network of images, with everything needed to classify new ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkModel {
    /// [`SCHEMA`].
    pub schema: String,
    /// The layers.
    pub architecture: Architecture,
    /// The label of each class, as in the files of training.
    pub labels: Vec<u8>,
    /// The map from a byte of an image to a number.
    pub scaling: Scaling,
    /// The views of an image over which losses and logits are averaged.
    #[serde(default, skip_serializing_if = "Views::is_one")]
    pub views: Views,
    /// The distribution of the public start.
    pub initial: Initial,
    /// The seed of the public start.
    pub seed: u64,
    /// The floating-point type of the weights.
    pub float: FloatKind,
    /// The released weights, layer by layer: [`dp_nets::Network`].
    pub weights: Vec<f64>,
}

impl NetworkModel {
    /// Returns the SHA-256 of the canonical form.
    ///
    /// # Errors
    /// A weight that JSON cannot hold.
    pub fn sha256(&self) -> Result<String, Error> {
        Ok(canonical::sha256(&to_value(self)?))
    }

    /// Returns the names of the classes: their labels.
    pub fn classes(&self) -> Vec<String> {
        self.labels.iter().map(u8::to_string).collect()
    }

    /// Checks that the parts are consistent.
    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err("the network is of another format".to_owned());
        }
        check_labels(&self.architecture, &self.labels).map_err(|error| error.to_string())?;
        let parameters = self.architecture.parameters().map_err(|error| error.to_string())?;
        if parameters != self.weights.len() {
            return Err(format!("{} weights for an architecture of {parameters} parameters", self.weights.len()));
        }
        let is_single = |&weight: &f64| f64::from(weight as f32) == weight;
        if self.float == FloatKind::F32 && !self.weights.iter().all(is_single) {
            return Err("a weight is no number in single precision".to_owned());
        }
        Ok(())
    }

    /// Passes the logits of each image to `each`, in the order of the images. [`winner`](crate::metrics::winner) gives the class,
    /// [`softmax`](crate::metrics::softmax) the probabilities. They are the same on any number of threads.
    ///
    /// # Errors
    /// [`ErrorKind::OtherKind`] for images of another shape or number of classes, [`ErrorKind::NotFinite`] for logits that are not
    /// finite numbers, [`ErrorKind::Memory`], and errors of `each`.
    pub fn logits<E: From<Error>>(
        &self,
        images: &Images,
        workers: Workers,
        each: impl FnMut(&[f64]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.float {
            FloatKind::F32 => self.logits_in::<f32, E>(images, workers, each),
            FloatKind::F64 => self.logits_in::<f64, E>(images, workers, each),
        }
    }

    fn logits_in<F: Float, E: From<Error>>(
        &self,
        images: &Images,
        workers: Workers,
        mut each: impl FnMut(&[f64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let unfit = |error: dp_nets::Error| Error::new(ErrorKind::OtherKind, error.to_string());
        let pixels = Pixels::new(self.scaling).with_views(self.views);
        let network = Network::<F, _>::new(self.architecture.clone(), pixels).map_err(unfit)?;
        network.check_images(images).map_err(unfit)?;
        let weights = self.weights.iter().map(|&weight| F::narrow(weight));
        let weights: Vec<F> = memory::collect(weights, "the weights of the network").map_err(Error::from)?;
        let positions = memory::collect(0..images.len() as u32, "the positions of the images").map_err(Error::from)?;
        let most = network.recommended_microbatch();
        let of_part = |pass: &mut _, part: &[u32]| {
            network.forward(&weights, images.choose(part), pass);
            pass.logits().iter().map(|logit| logit.wide()).collect::<Vec<f64>>()
        };
        let ahead = 2 * workers.threads();
        workers.for_each(
            positions.chunks(most),
            ahead,
            || network.pass(most),
            of_part,
            |logits| {
                if logits.iter().any(|logit| !logit.is_finite()) {
                    let message = "the network's logits for an image are not finite numbers";
                    return Err(E::from(Error::new(ErrorKind::NotFinite, message)));
                }
                logits.chunks_exact(network.classes()).try_for_each(&mut each)
            },
        )
    }
}

/// Checks that every class has one label of its own.
fn check_labels(architecture: &Architecture, labels: &[u8]) -> Result<(), NetworkTrainError> {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    let classes = architecture.classes()?;
    if classes != labels.len() || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(NetworkTrainError::Labels { classes, labels: labels.len() });
    }
    Ok(())
}

/// The training of a network as its certificate states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkDerivation {
    /// DP-SGD, with public numbers from which the noise follows.
    DpSgd(ModelDerivation),
    /// SGD without noise.
    NonPrivate(NonPrivateSgd),
}

impl NetworkDerivation {
    /// Returns the floating-point type of training.
    pub fn float(&self) -> FloatKind {
        match self {
            Self::DpSgd(private) => private.recipe.float,
            Self::NonPrivate(recipe) => recipe.float,
        }
    }
}

impl Derivation for NetworkDerivation {
    type Error = dp_optim::Error;

    fn event(&self) -> Result<DpEvent, dp_optim::Error> {
        match self {
            Self::DpSgd(private) => private.event(),
            Self::NonPrivate(_) => Ok(DpEvent::NonPrivate),
        }
    }

    fn adjacency(&self) -> AdjacencyKind {
        match self {
            Self::DpSgd(private) => private.adjacency(),
            Self::NonPrivate(_) => AdjacencyKind::ReplaceOne,
        }
    }

    fn assumptions(&self) -> Vec<Assumption> {
        match self {
            Self::DpSgd(private) => private.assumptions(),
            Self::NonPrivate(_) => Vec::new(),
        }
    }
}

/// The file of a network.
pub type NetworkFile = sealed::File<NetworkModel, NetworkDerivation>;

impl Content for NetworkModel {
    const SCHEMA: &'static str = SCHEMA;

    fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn checked(&self) -> Result<(), Error> {
        self.check().map_err(|why| sealed::malformed(why, SCHEMA).at("model"))
    }
}

impl NetworkFile {
    /// Returns the warnings about an epsilon or delta that promises little.
    pub fn warnings(&self) -> Vec<String> {
        let n = match &self.certificate.derivation {
            NetworkDerivation::DpSgd(private) => Some(private.n),
            NetworkDerivation::NonPrivate(_) => None,
        };
        protection::warnings_of(&self.certificate, n)
    }
}

#[cfg(test)]
mod tests;
