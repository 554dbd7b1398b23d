//! Encoded records, and their training by a plan.

use std::collections::BTreeMap;

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::{Assumption, Certificate};
use dp_accountant::guarantee::Unit;
use dp_data::encode::{FourierFeatures, Stored};
use dp_data::read::{CsvOptions, CuratorWarning, Input};
use dp_data::spool::{Held, HeldCoordinates, Room};
use dp_data::{Alternatives, DataError, Encoder, RowSource, UnitBound, Workers};
use dp_losses::Real;
use dp_mechanisms::rng::{LentRng, OsSeeded, Purpose, ReleaseRng as _, SeededRng};
use dp_optim::engine::Control;
use dp_optim::recipes::non_private::NonPrivateDerivation;
use dp_optim::recipes::{AnyDerivation, AnyPlan, Compiled, TrainsAny, train_without_privacy};
use dp_optim::{DerivesModel as _, ExpandingSource, MemorySource};

use super::TrainError;
use crate::model::{Model, ModelFile};

/// The purpose of the key for drawing the rows of a unit that are used.
const ROWS_OF_UNITS: Purpose = Purpose::Custom(u32::from_be_bytes(*b"unit"));

/// Encoded records, ready for training: the separate steps of [`Training`](super::Training), for callers with their own plans,
/// generators and progress.
#[derive(Debug)]
pub struct Records<F> {
    /// The encoder, which becomes part of the model.
    pub encoder: Encoder,
    /// The rows and their targets.
    pub rows: Held<F>,
    /// The same records with the Fourier features that are [tried](super::Training::trying_fourier).
    pub tried: Option<Box<Tried<F>>>,
}

/// Records with the Fourier features that are [tried](super::Training::trying_fourier).
#[derive(Debug)]
pub struct Tried<F> {
    /// Their encoder, which becomes part of the model if they are better.
    pub encoder: Encoder,
    /// The rows and their targets.
    pub rows: Held<F>,
}

/// Passes the rows to `train` as a source with the encoder's bounds.
fn on_source<F: Stored, T>(
    rows: Held<F>,
    encoder: &Encoder,
    workers: Workers,
    train: impl FnOnce(&mut dyn RowSource<F>) -> T,
) -> T {
    let (row_bound, target_bound) = (encoder.row_bound(), encoder.target_bound());
    match rows {
        Held::Memory(examples) => train(&mut MemorySource::new(examples, row_bound, target_bound)),
        Held::Curves(rows) => train(&mut ExpandingSource::new(*rows, row_bound, target_bound, workers)),
        Held::Spool(mut spool) => train(&mut *spool),
        Held::Elsewhere(mut source, _) => train(&mut *source),
    }
}

/// Returns the key that draws the rows of a unit that are used; from a seed it is reproducible, and not secret.
///
/// # Errors
/// The system's generator fails.
pub fn key_of_units(seed: Option<u64>) -> Result<[u8; 32], dp_mechanisms::Error> {
    Ok(match seed {
        Some(seed) => SeededRng::new(seed).derive_key(ROWS_OF_UNITS),
        None => OsSeeded::new()?.derive_key(ROWS_OF_UNITS),
    })
}

impl<F: Stored> Records<F> {
    /// Reads a file with labels in the input format of `encoder`; returns warnings for the curator too. `room` states the threads
    /// and the memory. With `map`, which gets the number of records, the functions of columns are chosen once all records are
    /// there; in single precision they then start from rounded coordinates. With `tried` they are encoded a second time.
    ///
    /// # Errors
    /// Those of [`Held::read_units`] and of `map`.
    pub fn read<E: From<DataError>>(
        input: Input,
        encoder: Encoder,
        options: &CsvOptions,
        room: &Room,
        bound: Option<&UnitBound>,
        map: Option<impl FnOnce(&Encoder, u64) -> Result<Encoder, E>>,
        tried: Option<FourierFeatures>,
    ) -> Result<(Self, Vec<CuratorWarning>), E> {
        if map.is_none() && tried.is_none() {
            let (rows, warnings) = Held::read_units(input, &encoder, options, room, bound)?;
            return Ok((Self { encoder, rows, tried: None }, warnings));
        }
        let (mut coordinates, warnings) = HeldCoordinates::read_units(input, &encoder, options, room, bound)?;
        let encoder = map.map_or(Ok(encoder.clone()), |map| map(&encoder, coordinates.len()))?;
        let Some(tried) = tried else {
            let rows = coordinates.encode(&encoder, room.spool.workers, room)?;
            return Ok((Self { encoder, rows, tried: None }, warnings));
        };
        let with = encoder.with_fourier(Some(tried))?;
        // Each encoding takes its part of the memory, by its number of features.
        let part = |dim: usize| {
            let share = dim as f64 / (encoder.dim() + with.dim()) as f64;
            Room { memory: (share * room.memory as f64) as u64, ..room.clone() }
        };
        let rows = coordinates.encode(&encoder, room.spool.workers, &part(encoder.dim()))?;
        let rows_with = coordinates.encode(&with, room.spool.workers, &part(with.dim()))?;
        Ok((Self { encoder, rows, tried: Some(Box::new(Tried { encoder: with, rows: rows_with })) }, warnings))
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
    ) -> Result<ModelFile, TrainError> {
        let Self { encoder, rows, tried } = self;
        let (mut encoder, workers) = (encoder, control.workers);
        let trained = match tried {
            None => on_source(rows, &encoder, workers, |source| A::train_any(plan, source, rng, control))?,
            Some(tried) => {
                let Tried { encoder: with, rows: rows_with } = *tried;
                let trained = on_source(rows_with, &with, workers, |other| {
                    on_source(rows, &encoder, workers, |source| {
                        A::train_any(plan, &mut Alternatives::new(source, vec![other]), rng, control)
                    })
                })?;
                // They differ in their number of features.
                if trained.derivation.model_terms().dim() == with.dim() as u64 {
                    encoder = with;
                }
                trained
            }
        };
        let weights = trained.weights.get().iter().map(|weight| weight.widen()).collect();
        let model = Model::of_release(encoder, &trained.derivation.model_terms(), weights)?;
        let assumptions = model.assumptions().into_iter().chain(further).collect();
        let certificate = trained.certificate(trained.derivation.unit(), assumptions, model.sha256()?, versions);
        Ok(ModelFile::seal(model, certificate)?)
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
    ) -> Result<ModelFile, TrainError>
    where
        F: Compiled,
    {
        let Self { encoder, rows, .. } = self;
        let workers = control.workers;
        let weights =
            on_source(rows, &encoder, workers, |source| train_without_privacy(&recipe, source, key, control))?;
        let weights = weights.expose_without_any_guarantee().into_iter().map(|weight| weight.widen()).collect();
        let model = Model::new(encoder, recipe.loss, weights)?;
        let certificate =
            Certificate::without_guarantee(AdjacencyKind::ReplaceOne, Unit::Record, AnyDerivation::NonPrivate(recipe))
                .assuming(model.assumptions())
                .of_model(model.sha256()?, versions);
        Ok(ModelFile::seal(model, certificate)?)
    }
}
