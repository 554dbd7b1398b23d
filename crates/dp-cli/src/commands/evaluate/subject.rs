//! The model that is evaluated, and its scores of labelled records.

use dp::ModelFile;
use dp::metrics::Measure;
use dp::metrics::released::Counted as Counts;
use dp::network::NetworkFile;
use dp::wording::one_line;
use dp_accountant::certificate::Assumption;
use dp_accountant::guarantee::Unit;
use dp_data::Encoder;
use dp_data::read::RecordReader;
use dp_data::schema::{Label, LabelKind, Others};

use super::{EvaluateConfig, curves};
use crate::commands::network::{ImageFiles, check_fit};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::files::{self, AnyModel};
use crate::input::conflict;
use crate::output::Console;
use crate::progress::{Counted, Progress};

/// A model with its reading of records.
pub(super) struct Subject {
    kind: Kind,
    /// The reason why its guarantee does not hold, if it does not.
    pub(super) guarantee: Result<(), dp::Error>,
    /// Its unit of privacy.
    pub(super) unit: Unit,
    /// The hash of the published model, from which this one differs in the threshold only.
    published: String,
}

enum Kind {
    /// A linear model.
    Linear(Box<ModelFile>, Box<Encoder>),
    /// A network.
    Network(Box<NetworkFile>, ImageFiles),
}

impl Subject {
    /// Reads the model, verifies it and checks that it fits the flags and the kind of records.
    ///
    /// # Errors
    /// `model.*`, `usage.*`.
    pub(super) fn new(config: &EvaluateConfig) -> Result<Self, Failure> {
        match files::any_model(&config.args.model)? {
            AnyModel::Linear(own) => {
                let guarantee = dp::verify::model(&own, dp::verify::WORK).map(drop);
                let (published, unit) = (own.model.sha256()?, own.certificate.unit.clone());
                let file = files::deciding_at(*own, &config.args.model, config.args.threshold)?;
                let encoder = files::encoder_for(&file, &config.input, config.args.on_unknown)?;
                Ok(Self { kind: Kind::Linear(Box::new(file), Box::new(encoder)), guarantee, unit, published })
            }
            AnyModel::Network(file) => {
                if config.args.on_unknown.is_some() {
                    return Err(conflict("--on-unknown", "images have no categories"));
                }
                if config.args.threshold.is_some() {
                    return Err(files::no_threshold(&config.args.model));
                }
                let images = ImageFiles::of_network(&config.input, &file)?;
                let guarantee = dp::verify::network(&file).map(drop);
                let (published, unit) = (file.model.sha256()?, file.certificate.unit.clone());
                Ok(Self { kind: Kind::Network(file, images), guarantee, unit, published })
            }
        }
    }

    /// Returns whether there are curves over thresholds.
    pub(super) fn has_curves(&self) -> bool {
        matches!(&self.kind, Kind::Linear(file, _) if curves::suit(&file.model.kind))
    }

    /// Returns empty metrics.
    pub(super) fn measure(&self) -> Measure {
        match &self.kind {
            Kind::Linear(file, _) => Measure::new(&file.model),
            Kind::Network(file, _) => Measure::of_classes(file.model.classes()),
        }
    }

    /// Returns empty counts for a release.
    ///
    /// # Errors
    /// `model.mismatch` for a model without classes, or with too many.
    pub(super) fn counts(&self, config: &EvaluateConfig) -> Result<Counts, Failure> {
        let published = self.published.clone();
        let counts = match &self.kind {
            Kind::Linear(file, _) => Counts::new(&file.model, published),
            Kind::Network(file, _) => {
                Counts::of_classes(file.model.classes(), published, vec![Assumption::EveryRecordConforms])
            }
        };
        counts.ok_or_else(|| {
            Failure::new(ExitStatus::Input, "model.mismatch", "only metrics of classes are released with noise")
                .at_file(&config.args.model)
                .expected("a model of classes")
                .help("omit --epsilon")
        })
    }

    /// Passes the scores and the label of each record with a label to `push`.
    ///
    /// # Errors
    /// Errors in the records, and those of `push`.
    pub(super) fn for_each_record(
        &self,
        config: &EvaluateConfig,
        console: &Console,
        push: &mut Push<'_>,
    ) -> Result<Read, Failure> {
        match &self.kind {
            Kind::Linear(file, encoder) => of_table(config, file, encoder, console, push),
            Kind::Network(file, images) => of_images(config, file, images, console, push),
        }
    }
}

/// Describes the labels that the model knows, if it does not know all.
fn labels(label: &Label) -> String {
    let listed = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| format!("`{}`", one_line(text))).collect::<Vec<_>>().join(", ")
    };
    match &label.kind {
        LabelKind::TwoClasses { others: Others::Positive | Others::Negative, .. } => String::new(),
        LabelKind::TwoClasses { positive, negative, .. } => {
            " that is one of ".to_owned() + &listed(&mut positive.iter().chain(negative))
        }
        LabelKind::Classes { classes, .. } => " that is one of ".to_owned() + &listed(&mut classes.iter()),
        _ => " that is a number".to_owned(),
    }
}

/// The records that were read.
pub(super) struct Read {
    /// The name of the input.
    pub(super) name: String,
    /// Number of rows.
    pub(super) rows: u64,
}

/// Takes the scores and the label of a record.
type Push<'p> = dyn FnMut(&[f64], f64) -> Result<(), Failure> + 'p;

/// Passes the scores and the label of each record with a label to `push`.
fn of_table(
    config: &EvaluateConfig,
    file: &ModelFile,
    encoder: &Encoder,
    console: &Console,
    push: &mut Push<'_>,
) -> Result<Read, Failure> {
    let input = config.input.open()?.with_workers(config.workers);
    let name = input.name().to_owned();
    let mut reader = RecordReader::new(input, encoder, &config.input.csv, true)?;
    let mut progress = Progress::start(config.progress, console, "evaluate", Counted::Rows, None);
    let outputs = file.model.kind.outputs();
    let of_part = |records: &mut RecordReader<'_>| {
        // The scores of each record with a label, and the label.
        let (mut scores, mut targets, mut rows) = (Vec::new(), Vec::new(), 0_u64);
        while let Some(record) = records.next_record()? {
            rows += 1;
            if let Some(target) = record.row().target() {
                let start = scores.len();
                scores.resize(start + outputs, 0.0);
                file.model.score(record.row(), &mut scores[start..]);
                targets.push(target);
            }
        }
        Ok((scores, targets, rows))
    };
    let (mut rows, mut null) = (0, 0);
    reader.for_each_part(of_part, |(scores, targets, of_part)| {
        for (scores, &target) in scores.chunks(outputs).zip(&targets) {
            push(scores, target).map_err(|failure| failure.at_file(&name))?;
        }
        rows += of_part;
        null += of_part - targets.len() as u64;
        progress.update(rows, None);
        Ok::<_, Failure>(())
    })?;
    progress.finish(rows);
    reader.warnings().iter().for_each(|warning| console.warn_curator(&one_line(&warning.to_string())));
    if null > 0 {
        let labels = labels(encoder.label());
        console.warn_curator(&format!("{null} of {rows} records were left out: no usable cells, or no label{labels}"));
    }
    Ok(Read { name, rows })
}

fn of_images(
    config: &EvaluateConfig,
    file: &NetworkFile,
    files: &ImageFiles,
    console: &Console,
    push: &mut Push<'_>,
) -> Result<Read, Failure> {
    let images = files.load()?;
    check_fit(&images, file, &config.input.data)?;
    let mut progress = Progress::start(config.progress, console, "evaluate", Counted::Rows, Some(images.len() as u64));
    let mut rows = 0;
    file.model.logits(&images, config.workers, |logits| {
        push(logits, images.label(rows) as f64)?;
        rows += 1;
        progress.update(rows as u64, None);
        Ok::<_, Failure>(())
    })?;
    progress.finish(rows as u64);
    Ok(Read { name: config.input.data.to_string(), rows: rows as u64 })
}
