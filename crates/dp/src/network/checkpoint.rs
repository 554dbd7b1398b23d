//! The file from which an interrupted training of a network goes on.
//!
//! # Format
//! One line of JSON, the numbers of the state (little-endian, in the float of training), and the SHA-256 of all of that.

use dp_data::memory;
use dp_nets::Float;
use dp_optim::FloatKind;
use dp_optim::engine::RunState;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{NetworkDerivation, NetworkModel};
use crate::error::{Error, ErrorKind};

/// The format of a checkpoint.
pub const SCHEMA: &str = "dp.checkpoint/1";

/// Number of bytes of a SHA-256.
const HASH: usize = 32;

/// The state of a training between two steps. It holds weights, what the optimiser keeps and the number of steps, but no key and
/// no image.
///
/// # Privacy
/// Its weights are as private as the network that the training will release. If the training was ended at a given time, the number
/// of steps depends on their speed, and so on the sizes of drawn batches: keep it as the curator's. A copy must not be used twice:
/// each training that goes on from it spends the steps that are left.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The trained object.
    pub(super) training: Described,
    pub(super) state: State,
    /// Number of steps that may have begun.
    begun: u64,
}

/// A training, for comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Described {
    /// Without weights.
    pub(super) network: NetworkModel,
    pub(super) n: u64,
    pub(super) derivation: NetworkDerivation,
}

/// A state in one of the floating-point types.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    Single(RunState<f32>),
    Double(RunState<f64>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: String,
    training: Described,
    /// Steps that are over, steps of these that were lost, and steps that may have begun.
    over: u64,
    lost: u64,
    begun: u64,
    secret_noise: bool,
    /// The sum of the averaging weights.
    weight: f64,
    /// The factors on step sizes that a line search has chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chosen: Vec<f64>,
    /// The factor on the first clipping norm that an adaptive norm has reached.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    norm_scale: f64,
    /// Number of vectors and of the numbers of each.
    vectors: usize,
    parameters: usize,
}

fn one() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(scale: &f64) -> bool {
    *scale == 1.0
}

impl Checkpoint {
    pub(super) fn new(training: Described, state: State, begun: u64) -> Self {
        Self { training, state, begun }
    }

    /// Returns the number of steps that are over, those that were lost included.
    pub fn over(&self) -> u64 {
        match &self.state {
            State::Single(state) => state.updates,
            State::Double(state) => state.updates,
        }
    }

    /// Returns the number of steps that may have begun. A training that goes on counts them and makes only those that follow.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Returns the number of steps that were lost.
    pub fn lost(&self) -> u64 {
        match &self.state {
            State::Single(state) => state.lost,
            State::Double(state) => state.lost,
        }
    }

    /// Counts all steps that may have begun as over: those that left no result are lost.
    pub fn after_loss(self) -> Self {
        let state = match self.state {
            State::Single(state) => State::Single(state.losing(self.begun)),
            State::Double(state) => State::Double(state.losing(self.begun)),
        };
        Self { state, ..self }
    }

    /// Returns the same checkpoint for a training in which all steps up to `begun` may begin.
    pub fn allowing_until(self, begun: u64) -> Self {
        Self { begun: begun.max(self.begun), ..self }
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// A number that JSON cannot hold, and [`ErrorKind::Memory`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        match &self.state {
            State::Single(state) => self.bytes_of(state, f32::to_le_bytes),
            State::Double(state) => self.bytes_of(state, f64::to_le_bytes),
        }
    }

    fn bytes_of<F: Copy, const N: usize>(&self, state: &RunState<F>, of: fn(F) -> [u8; N]) -> Result<Vec<u8>, Error> {
        let RunState { updates: over, lost, secret_noise, weight, chosen, norm_scale, vectors } = state;
        let header = Header {
            schema: SCHEMA.to_owned(),
            training: self.training.clone(),
            over: *over,
            lost: *lost,
            begun: self.begun,
            secret_noise: *secret_noise,
            weight: *weight,
            chosen: chosen.clone(),
            norm_scale: *norm_scale,
            vectors: vectors.len(),
            parameters: vectors.first().map_or(0, Vec::len),
        };
        let unwritable = |error: serde_json::Error| Error::new(ErrorKind::Unwritable, error.to_string());
        let line = serde_json::to_string(&header).map_err(unwritable)?;
        let numbers: usize = vectors.iter().map(Vec::len).sum();
        let mut out = memory::with_capacity(line.len() + 1 + N * numbers + HASH, "the checkpoint")?;
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        vectors.iter().flatten().for_each(|&number| out.extend_from_slice(&of(number)));
        let hash = Sha256::digest(&out);
        out.extend_from_slice(&hash);
        Ok(out)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ErrorKind::Checkpoint`] for a file that is none, or that was changed or cut off.
    pub fn parse(file: &[u8]) -> Result<Self, Error> {
        let damaged = |what: &str| Error::new(ErrorKind::Checkpoint, format!("{what}; it cannot be used"));
        let none = || damaged(&format!("the file is no checkpoint of format {SCHEMA}"));
        let (body, hash) = file.split_last_chunk::<HASH>().ok_or_else(none)?;
        let end = body.iter().position(|&byte| byte == b'\n').ok_or_else(none)?;
        let header: serde_json::Value = serde_json::from_slice(&body[..end]).map_err(|_| none())?;
        if header["schema"] != SCHEMA {
            return Err(none());
        }
        if Sha256::digest(body).as_slice() != hash {
            return Err(damaged("the checkpoint was changed or cut off"));
        }
        let header: Header = serde_json::from_value(header).map_err(|error| damaged(&error.to_string()))?;
        let (begun, training) = (header.begun, header.training.clone());
        let state = match training.derivation.float() {
            FloatKind::F32 => header.state(&body[end + 1..], f32::from_le_bytes).map(State::Single),
            FloatKind::F64 => header.state(&body[end + 1..], f64::from_le_bytes).map(State::Double),
        };
        Ok(Self { training, state: state.map_err(damaged)?, begun })
    }
}

impl Header {
    /// Returns the state with these numbers.
    fn state<F, const N: usize>(self, numbers: &[u8], of: fn([u8; N]) -> F) -> Result<RunState<F>, &'static str> {
        let Self { over, lost, begun, secret_noise, weight, chosen, norm_scale, vectors, parameters, .. } = self;
        if !(lost <= over && over <= begun && weight >= 0.0) {
            return Err("the numbers of steps contradict each other");
        }
        if vectors.checked_mul(parameters).and_then(|count| count.checked_mul(N)) != Some(numbers.len()) {
            return Err("the numbers of the state are too few or too many");
        }
        let vectors = read(numbers, parameters, of);
        Ok(RunState { updates: over, lost, secret_noise, weight, chosen, norm_scale, vectors })
    }
}

fn read<F, const N: usize>(bytes: &[u8], parameters: usize, of: fn([u8; N]) -> F) -> Vec<Vec<F>> {
    let (numbers, _) = bytes.as_chunks::<N>();
    numbers.chunks(parameters.max(1)).map(|vector| vector.iter().map(|&number| of(number)).collect()).collect()
}

impl Described {
    /// Returns what differs from another training; `None` if nothing does.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let (network, of_other) = (&self.network, &other.network);
        let differences = [
            (network.architecture != of_other.architecture, "the layers"),
            (network.labels != of_other.labels, "the classes"),
            ((network.scaling, network.views) != (of_other.scaling, of_other.views), "the views of an image"),
            ((network.initial, network.seed) != (of_other.initial, of_other.seed), "the initial weights"),
            (self.n != other.n, "the number of images"),
            (self != other, "the budget or a setting"),
        ];
        differences.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }
}

/// A floating-point type of checkpoints.
pub(super) trait Kept: Float {
    fn keep(state: RunState<Self>) -> State;

    /// Returns the state if it is of this type.
    fn kept(state: State) -> Option<RunState<Self>>;
}

impl Kept for f32 {
    fn keep(state: RunState<Self>) -> State {
        State::Single(state)
    }

    fn kept(state: State) -> Option<RunState<Self>> {
        if let State::Single(state) = state { Some(state) } else { None }
    }
}

impl Kept for f64 {
    fn keep(state: RunState<Self>) -> State {
        State::Double(state)
    }

    fn kept(state: State) -> Option<RunState<Self>> {
        if let State::Double(state) = state { Some(state) } else { None }
    }
}
