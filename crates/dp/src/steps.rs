//! Noise and batches for a training that another program runs, such as that of a network in PyTorch.
//!
//! ```text
//! batch ~ Poisson(b), each record by itself with probability q = 1 - e^(-b/n)
//! sum   = Σ_{i in batch} g_i,   ‖g_i‖ <= C                                       the other program's
//! noisy = sum + Z,              Z discrete Gaussian of standard deviation σ on the grid
//! ```
//! for each of T steps. The other program computes gradients, clips and adds them; [`Steps`] draws the batches and the noise,
//! pays for all steps when it starts, and writes the certificate of what was computed from the noisy sums.
//!
//! # Privacy
//! The cost is that of T Poisson-sampled Gaussian releases of sensitivity `C (1 + MARGIN)` under zero-out, and of two records at
//! once under replace-one. [`MARGIN`] covers the rounding of norms, factors and sums in single precision: two runs that differ in
//! a record differ in these as well. It was measured, not proved. What the library cannot see, the certificate states as
//! assumptions: that contributions were clipped, and that each step used its batch ([`Assumption::ClippedElsewhere`]). A sum that
//! is not finite is refused, which depends on a record ([`Assumption::EveryRecordConforms`]).
//!
//! # References
//! Abadi et al., "Deep learning with differential privacy", CCS 2016, Algorithm 1.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use dp_accountant::certificate::{Assumption, Certificate, Derivation, EpsilonDelta, Figures, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon, EventLog, ReplaceOne, ZeroOut, bound};
use dp_losses::Real;
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::rng::{LentRng, OsSeeded, Purpose, ReleaseRng as _, SeededRng};
use dp_mechanisms::steps::{NoisySteps, StepPlan};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, PrivacyEvent as _};
use dp_optim::engine::{BatchLaw, Sampler, StepBatches};
use dp_optim::recipes::{Budget, RecordAdjacency, least_scale};
use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::error::{Error, ErrorKind};
use crate::sealed::{self, Content, to_value};
use crate::training::{TrainError, versions};

#[cfg(test)]
mod tests;

/// The format of the file.
pub const SCHEMA: &str = "dp.steps/1";
/// The name of the derivation.
const RECIPE: &str = "noisy-steps";
/// Relative increase of the sensitivity for rounding in single precision. The sums of neighbours, each clipped and added up by
/// Opacus on a processor, are at most 1e-4 farther apart than the clipping norm for batches of 2,048, and 5e-3 for batches of
/// [`LARGEST_BATCH`], also where all gradients point in nearly one direction: `test_torch.py` of `dp-python`.
pub const MARGIN: f64 = 0.01;
/// The largest mean size of a batch, up to which [`MARGIN`] was measured.
pub const LARGEST_BATCH: u64 = 1 << 14;
/// Maximum length of the name of the other program.
const LONGEST_NAME: usize = 100;

/// The public numbers of a training, without its noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepsShape {
    /// n: number of records, public.
    pub n: u64,
    /// b: mean number of darts of a batch ([`BatchLaw::Poisson`]), slightly more than its mean size.
    pub batch_size: u64,
    /// T: number of steps.
    pub steps: u64,
    /// C: the largest L2 norm of a record's contribution to the sum of a step.
    pub clipping_norm: f64,
    /// The neighbouring relation: [`AdjacencyKind::ZeroOut`] or [`AdjacencyKind::ReplaceOne`].
    pub relation: AdjacencyKind,
}

impl StepsShape {
    /// Returns the event of all steps with noise of this standard deviation.
    fn event(&self, std_dev: f64) -> Result<DpEvent, dp_optim::Error> {
        let event = self.plan()?.event(self.noise(std_dev)?.event());
        match self.relation {
            AdjacencyKind::ZeroOut => Ok(event),
            AdjacencyKind::ReplaceOne => Ok(DpEvent::AddRemoveTwice { event: Box::new(event) }),
            _ => Err(dp_optim::Error::NotProved { recipe: RECIPE, why: "the number of records has to be public" }),
        }
    }

    fn law(&self) -> BatchLaw {
        BatchLaw::Poisson { mean_darts: self.batch_size }
    }

    /// Returns the mean number of records in a batch.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn mean_batch_size(&self) -> Result<f64, dp_optim::Error> {
        self.law().mean_size(self.n)
    }

    /// Returns how the steps use the records.
    ///
    /// # Errors
    /// A number out of its range.
    pub fn plan(&self) -> Result<StepPlan, dp_optim::Error> {
        let count = |name, value, range| Err(dp_optim::Error::Count { name, value, range });
        if self.batch_size > LARGEST_BATCH {
            let range = "at most 16384, up to which the rounding of sums in single precision was measured";
            return count("batch size", self.batch_size, range);
        }
        if !(1..1 << 48).contains(&self.steps) {
            return count("steps", self.steps, "1 or more, and below 2^48");
        }
        StepBatches::Drawn { n: self.n, law: self.law(), steps: self.steps }.plan()
    }

    /// Returns the L2 sensitivity of a step's sum to a record's presence, rounding included.
    fn sensitivity(&self) -> Result<L2Sensitivity<ZeroOut>, dp_optim::Error> {
        Ok(L2Sensitivity::new(ClippingNorm::new(self.clipping_norm)?.get() * (1.0 + MARGIN))?)
    }

    fn noise(&self, std_dev: f64) -> Result<Gaussian<ZeroOut>, dp_optim::Error> {
        Ok(Gaussian::from_std_dev(self.sensitivity()?, std_dev)?)
    }

    /// Returns the least standard deviation of a step's noise for a budget.
    ///
    /// # Errors
    /// A number out of its range, a delta of 0, and a budget that no noise can meet.
    pub fn least_std_dev(&self, epsilon: Epsilon, delta: Delta) -> Result<f64, dp_optim::Error> {
        if !(delta.get() > 0.0) {
            return Err(dp_optim::Error::NotProved { recipe: RECIPE, why: "Gaussian noise needs delta > 0" });
        }
        let sensitivity = self.sensitivity()?.get();
        self.event(sensitivity)?;
        let at = |multiplier: f64| self.event(multiplier * sensitivity).unwrap_or(DpEvent::NonPrivate);
        Ok(least_scale(Budget { epsilon, delta }, 1, at)? * sensitivity)
    }
}

/// The recipe of the certificate: everything from which the event follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepsDerivation {
    /// `noisy-steps`.
    pub recipe: String,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// n: number of records, public.
    pub n: u64,
    /// b: mean number of darts of a batch.
    pub batch_size: u64,
    /// T: number of steps that were paid for.
    pub steps: u64,
    /// C: the clipping norm.
    pub clipping_norm: f64,
    /// σ: standard deviation of the noise in each coordinate of a step's sum.
    pub std_dev: f64,
    /// The program that clipped.
    pub clipped_by: String,
    /// Tensors of the model that were not trained.
    pub public_tensors: Vec<String>,
}

impl StepsDerivation {
    fn shape(&self) -> StepsShape {
        let &Self { n, batch_size, steps, clipping_norm, relation, .. } = self;
        StepsShape { n, batch_size, steps, clipping_norm, relation }
    }
}

impl Derivation for StepsDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        let unproved = |message: &str| Error::new(ErrorKind::Guarantee, message).at("certificate.derivation");
        if self.recipe != RECIPE {
            return Err(unproved("the recipe of steps is `noisy-steps`"));
        }
        if self.clipped_by.is_empty() || self.clipped_by.len() > LONGEST_NAME {
            return Err(unproved("the program that clipped has no name, or a long one"));
        }
        self.shape().event(self.std_dev).map_err(|error| unproved(&error.to_string()))
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let public_tensors = Assumption::PublicTensors { names: self.public_tensors.clone() };
        // A gradient that is not finite, or is not clipped, ends the training.
        [Assumption::PublicN, Assumption::OneRowPerUnit, Assumption::EveryRecordConforms, Assumption::FloatSum]
            .into_iter()
            .chain([Assumption::ClippedElsewhere { program: self.clipped_by.clone() }])
            .chain((!self.public_tensors.is_empty()).then_some(public_tensors))
            .collect()
    }
}

/// The released weights, which the file holds as a hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleasedWeights {
    /// [`SCHEMA`].
    pub schema: String,
    /// SHA-256 of the weights, in hexadecimal, as their program defines it.
    pub weights_sha256: String,
    /// Number of coordinates of a step's sum.
    pub coordinates: u64,
    /// Number of steps that were taken, at most as many as were paid for.
    pub steps_taken: u64,
}

/// The file of a release: the hash of the weights and their certificate.
pub type StepsFile = sealed::File<ReleasedWeights, StepsDerivation>;

impl Content for ReleasedWeights {
    const SCHEMA: &'static str = SCHEMA;

    fn checked(&self) -> Result<(), Error> {
        self.check().map_err(|why| sealed::malformed(why, SCHEMA).at("model.weights_sha256"))
    }
}

/// Noise and batches of a training.
///
/// # Examples
/// ```
/// use dp::steps::{Steps, StepsShape};
/// use dp_accountant::{AdjacencyKind, Delta, Epsilon};
///
/// let shape = StepsShape {
///     n: 1000, batch_size: 50, steps: 20, clipping_norm: 1.0, relation: AdjacencyKind::ZeroOut,
/// };
/// let (epsilon, delta) = (Epsilon::new(2.0)?, Delta::new(1e-6)?);
/// let mut steps = Steps::start(shape, shape.least_std_dev(epsilon, delta)?, delta, None)?;
/// let mut weights = [0.0f32; 3];
/// while steps.left() > 0 {
///     // Another program sums the clipped gradients of these records.
///     let batch = steps.batch()?;
///     let mut sum = [0.5, 0.0, batch.len() as f32 * 0.0];
///     steps.add(&mut sum)?;
///     weights.iter_mut().zip(sum).for_each(|(weight, sum)| *weight -= 0.1 * sum / 50.0);
/// }
/// let sha256 = "0".repeat(64); // of the weights
/// let file = steps.finish(sha256, "my-program 1.0", Vec::new(), Default::default())?;
/// assert!(dp::verify::steps(&file)?.epsilon <= 2.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Steps {
    shape: StepsShape,
    std_dev: f64,
    delta: Delta,
    coordinates: Option<usize>,
    sampler: Sampler,
    drawn: u64,
    /// Number of records in the largest batch that was drawn.
    largest_batch: usize,
    /// A sum that no clipped and finite gradients have ended the training: that depends on records.
    is_broken: bool,
    noise: NoisySteps<ZeroOut>,
    log: EventLog<ZeroOut>,
    rng: Generator,
}

enum Generator {
    Secret(OsSeeded),
    Seeded(SeededRng),
}

impl Generator {
    fn lend(&mut self) -> LentRng<'_> {
        match self {
            Self::Secret(rng) => rng.lend(),
            Self::Seeded(rng) => rng.lend(),
        }
    }
}

impl core::fmt::Debug for Steps {
    // Batches are secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Steps").field("shape", &self.shape).field("noise", &self.noise).finish_non_exhaustive()
    }
}

impl Steps {
    /// Starts a training: from here on all its steps are paid for. `delta` is that at which the certificate states epsilon. With
    /// a seed batches and noise are reproducible, and there is no guarantee.
    ///
    /// # Privacy
    /// A fork copies the generator: two processes must not both go on with it.
    ///
    /// # Errors
    /// A number out of its range, a delta of 0, and no source of randomness.
    pub fn start(shape: StepsShape, std_dev: f64, delta: Delta, seed: Option<u64>) -> Result<Self, TrainError> {
        // Numbers for which nothing is proved are refused before anything is drawn.
        bound::epsilon(&shape.event(std_dev)?, delta)?;
        let mut rng = match seed {
            Some(seed) => Generator::Seeded(SeededRng::new(seed)),
            None => Generator::Secret(OsSeeded::new()?),
        };
        let sampler = Sampler::new(shape.law(), shape.n, rng.lend().derive_key(Purpose::Sampling))?;
        let mut log = EventLog::new();
        let noise = NoisySteps::start(shape.noise(std_dev)?.into(), shape.plan()?, &mut log, &mut rng.lend())?;
        Ok(Self {
            shape,
            std_dev,
            delta,
            coordinates: None,
            sampler,
            drawn: 0,
            largest_batch: 0,
            is_broken: false,
            noise,
            log,
            rng,
        })
    }

    /// Draws large noise on this many threads; the noise is the same for any number.
    pub fn set_threads(&mut self, threads: NonZeroUsize) {
        self.noise.set_threads(threads);
    }

    /// Draws the batch of the next step: positions of records, each once, in no particular order. It may be empty.
    ///
    /// # Privacy
    /// The batch is secret, and so is its size. A step on an empty batch is taken like any other, with a sum of zeros.
    ///
    /// # Errors
    /// More batches than steps; a training that a sum has ended; [`StuckGenerator`](dp_mechanisms::Error::StuckGenerator).
    pub fn batch(&mut self) -> Result<&[u32], TrainError> {
        self.check()?;
        if self.drawn == self.shape.steps {
            return Err(dp_mechanisms::Error::SessionOver { what: "batches", most: self.drawn }.into());
        }
        self.drawn += 1;
        let batch = self.sampler.draw()?;
        self.largest_batch = self.largest_batch.max(batch.len());
        Ok(batch)
    }

    fn check(&self) -> Result<(), TrainError> {
        let why = "a sum was not finite or longer than clipped gradients allow, which ended the training";
        if self.is_broken { Err(dp_optim::Error::NotProved { recipe: RECIPE, why }.into()) } else { Ok(()) }
    }

    /// Adds noise to the sum of a step's clipped contributions; the result may be published.
    ///
    /// # Errors
    /// More steps than the plan has, or than batches were drawn; another number of coordinates than before. In these cases the step
    /// is not taken. A number that is not finite, and a sum longer than the clipping norm times the largest batch that was drawn,
    /// end the training without a certificate. After [`StuckGenerator`](dp_mechanisms::Error::StuckGenerator) the sum must not be
    /// published.
    pub fn add<F: Real>(&mut self, sum: &mut [F]) -> Result<(), TrainError> {
        self.check()?;
        let taken = self.shape.steps - self.noise.steps_left();
        if taken == self.drawn && self.noise.steps_left() > 0 {
            let why = "a step was taken without a batch that was drawn for it";
            return Err(dp_optim::Error::NotProved { recipe: RECIPE, why }.into());
        }
        if let Some(coordinates) = self.coordinates.filter(|coordinates| *coordinates != sum.len()) {
            let (expected, found) = (coordinates as u64, sum.len() as u64);
            return Err(dp_mechanisms::Error::DimensionMismatch { expected, found }.into());
        }
        let length = sum.len();
        let longest = self.shape.clipping_norm * (1.0 + MARGIN) * self.largest_batch as f64;
        // NaN too.
        if self.noise.steps_left() > 0 && !(norm(sum) <= longest) {
            self.is_broken = true;
            self.check()?;
        }
        let bounded = Bounded::with_proven_sensitivity(sum, self.shape.sensitivity()?);
        self.noise.add(bounded, &mut self.rng.lend())?;
        self.coordinates = Some(length);
        Ok(())
    }

    /// Returns the number of steps left.
    pub fn left(&self) -> u64 {
        self.noise.steps_left()
    }

    /// Returns the number of batches that are not drawn yet.
    pub fn batches_left(&self) -> u64 {
        self.shape.steps - self.drawn
    }

    /// Ends the training and certifies weights computed from noisy sums and public numbers alone. Steps that were not taken stay
    /// paid for. `clipped_by` names the other program and its version, `public_tensors` parts of the model that were not trained.
    ///
    /// # Errors
    /// A name of more than 100 bytes, or none; a training that a sum has ended.
    pub fn finish(
        self,
        weights_sha256: String,
        clipped_by: &str,
        public_tensors: Vec<String>,
        made_by: BTreeMap<String, String>,
    ) -> Result<StepsFile, TrainError> {
        self.check()?;
        let Self { shape, std_dev, delta, coordinates, noise, mut log, .. } = self;
        let weights = ReleasedWeights {
            schema: SCHEMA.to_owned(),
            weights_sha256,
            coordinates: coordinates.unwrap_or_default() as u64,
            steps_taken: shape.steps - noise.steps_left(),
        };
        weights.check().map_err(|why| sealed::malformed(why, SCHEMA).at("weights_sha256"))?;
        let StepsShape { n, batch_size, steps, clipping_norm, relation } = shape;
        let (recipe, clipped_by) = (RECIPE.to_owned(), clipped_by.to_owned());
        let derivation = StepsDerivation {
            recipe,
            relation,
            n,
            batch_size,
            steps,
            clipping_norm,
            std_dev,
            clipped_by,
            public_tensors,
        };
        let event = derivation.event()?;
        let weights = noise.finish(weights, &mut log)?.into_inner();
        let reached = EpsilonDelta { epsilon: bound::epsilon(&event, delta)?.value, delta: delta.get() };
        let figures = Figures { requested: reached, reached };
        let (unit, mode) = (Unit::Record, NoiseMode::Exact);
        let certificate = match relation {
            AdjacencyKind::ReplaceOne => {
                Certificate::of_log(&ReplaceOne::from_null_records(log), unit, derivation, mode, figures)
            }
            _ => Certificate::of_log(&log, unit, derivation, mode, figures),
        };
        // The noise was given, not asked for.
        let certificate = Certificate { requested: None, ..certificate };
        let all_versions = versions().into_iter().chain(made_by).collect();
        let certificate = certificate.of_model(canonical::sha256(&to_value(&weights)?), all_versions);
        Ok(StepsFile::seal(weights, certificate)?)
    }
}

/// Returns the L2 norm; squares that overflow or underflow are avoided.
fn norm<F: Real>(values: &[F]) -> f64 {
    let values = || values.iter().map(|&value| -> f64 { value.to_subset_unchecked() });
    let square: f64 = values().map(|value| value * value).sum();
    if (1e-200..1e200).contains(&square) { square.sqrt() } else { values().fold(0.0, f64::hypot) }
}

impl ReleasedWeights {
    fn check(&self) -> Result<(), &'static str> {
        let is_hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.weights_sha256.len() != 64 || !self.weights_sha256.bytes().all(is_hexadecimal) {
            return Err("the hash of the weights is no SHA-256 in hexadecimal");
        }
        Ok(())
    }
}
