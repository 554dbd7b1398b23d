//! Reads records, and trains on them.

use dp_accountant::{AdjacencyKind, ReplaceOne, ZeroOut};
use dp_data::encode::{Encoding, Stored};
use dp_data::read::{CsvOptions, CuratorWarning, Input};
use dp_data::schema::Schema;
use dp_data::spool::Held;
use dp_data::{Encoder, Examples, UnitBound};
use dp_losses::Real;
use dp_mechanisms::rng::{OsSeeded, ReleaseRng, SeededRng};
use dp_optim::FloatKind;
use dp_optim::catalogue::{Advice, Built};
use dp_optim::engine::Control;
use dp_optim::recipes::{Recipe, TrainsAny};

use super::{Records, Shape, TrainError, Training, encoding_of, key_of_units};
use crate::model::ModelFile;

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

impl Training {
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
        let fourier = self.encoding.fourier.filter(|_| self.tried.is_none());
        let encoding =
            Encoding { fourier, map: self.map.unwrap_or_default(), ..encoding_of(self.algorithm, self.encoding) };
        let encoder = Encoder::new(schema, encoding)?;
        let task = self.task(encoder.label())?;
        self.check_trial(task)?;
        // Refused before the records are read.
        encoder.with_fourier(self.tried)?;
        let mut room = self.room.clone();
        room.spool.workers = self.workers;
        let bound = self.unit.as_ref().map(|(column, most)| {
            Ok::<_, TrainError>(UnitBound { column: column.clone(), most: *most, key: key_of_units(self.seed)? })
        });
        let bound = bound.transpose()?;
        let chooses = self.map.is_none() && self.algorithm.chooses_cosines();
        let map = |encoder: &Encoder, n| self.mapped(task, encoder, n);
        // With the number of records the map is chosen before they are read, so that they are held once.
        let (encoder, map) = match rows.filter(|_| self.unit.is_none() && chooses) {
            Some(n) => (map(&encoder, n)?, None),
            None => (encoder, chooses.then_some(map)),
        };
        let input = input.with_workers(self.workers);
        let (records, warnings) =
            Records::<F>::read(input, encoder, &CsvOptions::default(), &room, bound.as_ref(), map, self.tried)?;
        let trained = match self.seed {
            Some(seed) => self.on_records(records, &mut SeededRng::new(seed), control)?,
            None => self.on_records(records, &mut OsSeeded::new()?, control)?,
        };
        Ok(Trained { warnings, ..trained })
    }

    /// Trains on records encoded by `encoder`. Under [`per_unit`](Self::per_unit) each unit has its number of records, one after
    /// the other, null records among them.
    ///
    /// # Privacy
    /// As [`on_csv`](Self::on_csv). With a generator that is not secret there is no guarantee, and the certificate says so.
    ///
    /// # Errors
    /// Settings that the recipe rejects, and Fourier features that are to be tried.
    pub fn on_examples<R: ReleaseRng>(
        &self,
        encoder: Encoder,
        examples: Examples<f64>,
        rng: &mut R,
    ) -> Result<ModelFile, TrainError> {
        if self.tried.is_some() {
            let why = "examples have one encoding: train on a table";
            return Err(dp_optim::Error::Setting { name: "fourier", why, expected: None, help: None }.into());
        }
        let records = Records { encoder, rows: Held::Memory(examples), tried: None };
        self.on_records(records, rng, &mut Control::default()).map(|trained| trained.file)
    }

    pub(super) fn on_records<F: Real + Stored, R: ReleaseRng>(
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
        let Built { recipe, advice } = self.recipe(task, shape)?;
        let (budget, relation) = (self.budget(n)?, self.relation()?);
        control.workers = self.workers;
        control.gradients = control.gradients.or(self.settings.gradients);
        let versions = self.versions.clone();
        let file = match relation {
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
        Ok(Trained { file, n, advice, warnings: Vec::new() })
    }
}
