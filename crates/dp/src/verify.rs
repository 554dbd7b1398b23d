//! Recomputes the guarantee of a model, or a ranker, from its file alone.
//!
//! There are four layers, each detecting what the previous one cannot. The hashes detect any edit that does not recompute them.
//! The recipe's derivation detects any number that does not follow from the public parameters, even if the hashes were
//! recomputed. The comparison of model and certificate detects missing assumptions, and superfluous ones. The weights must lie
//! on the grid of the recipe's noise and in its ball, which detects weights that were never released.
//!
//! # Limits
//! A certificate is a statement, not a signature. Without a key, an editor who recomputes both hashes can still
//! - replace weights by others that the recipe could have released ([`dp_optim::lattice`] documents them for each recipe),
//!   ranges or names: a worse model under the same arithmetic, which needs no record;
//! - state a weaker requested guarantee, another version number of a crate, or settings that do not influence the sensitivity
//!   of this recipe (the guarantee stays the same);
//! - leave out a candidate of a private choice that was not released, whose training then seems to cost nothing;
//! - invent a whole run: another number of records with the noise that would follow from it, noise that was never drawn,
//!   rounded noise called exact, a seeded run called unseeded, columns called reviewed.
//!
//! Only the curator can exclude the last kind, by a signature (`dp sign`). Edits by others are detected with the signature or
//! with the SHA-256 of the certificate, as published by the curator.

use dp_accountant::certificate::{Assumption, Certificate, Derivation, NoiseMode, Verified, VerifyError};
use dp_accountant::guarantee::Unit;
use dp_optim::DerivesModel as _;
use dp_optim::tuning::MOST_CANDIDATES;
use serde::Serialize;

use crate::error::{Error, ErrorKind};
use crate::metrics::released::{self, MetricsFile};
use crate::model::ModelFile;
use crate::ranker::{self, RankerDerivation, RankerFile};
use crate::report;
use crate::sealed::Sealed;
use crate::steps::{self, StepsFile};
use crate::wording::one_line;

/// A verified guarantee.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// The recomputed epsilon.
    pub epsilon: f64,
    /// The stated delta.
    pub delta: f64,
    /// The neighbouring relation.
    pub adjacency: &'static str,
    /// True if the number of records is public; distinguishes the two relations called `add-remove`.
    pub n_public: bool,
    /// The unit of privacy.
    pub unit: String,
    /// The theorem behind epsilon.
    pub theorem: String,
    /// The reasons why the guarantee, although valid, promises little; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The assumptions of the guarantee, in words.
    pub assumptions: Vec<String>,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
    /// SHA-256 of the weights, if the file does not contain them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights_sha256: Option<String>,
}

/// Verifies a file of any kind with valid seals, in at most about `work` steps.
///
/// # Errors
/// [`ErrorKind::Format`], and those of [`model`] and [`ranker`](self::ranker()).
pub fn sealed(sealed: Sealed, work: u64) -> Result<Verification, Error> {
    match sealed.format() {
        Some(ranker::SCHEMA) => RankerFile::from_sealed(sealed).and_then(|file| ranker(&file)),
        Some(released::SCHEMA) => MetricsFile::from_sealed(sealed).and_then(|file| metrics(&file)),
        #[cfg(feature = "networks")]
        Some(crate::network::SCHEMA) => {
            crate::network::NetworkFile::from_sealed(sealed).and_then(|file| network(&file))
        }
        Some(steps::SCHEMA) => StepsFile::from_sealed(sealed).and_then(|file| steps(&file)),
        _ => ModelFile::from_sealed(sealed).and_then(|file| model(&file, work)),
    }
}

/// Default limit on the steps of a verification, about twenty seconds.
pub const WORK: u64 = 1 << 32;

/// Verifies a model file with valid seals, in at most about `work` steps.
///
/// # Errors
/// [`ErrorKind::Work`], `NotPrivate`, `Guarantee`, `Assumption`, `Weights`.
pub fn model(file: &ModelFile, work: u64) -> Result<Verification, Error> {
    check_private(&file.certificate)?;
    check_size(file, work)?;
    let verified = recompute(&file.certificate)?;
    check_model(file)?;
    let implied = file.model.implied_assumptions();
    let verified = Verification::new(&file.certificate, &verified, &file.certificate_sha256, &implied);
    Ok(Verification { warnings: file.warnings(), ..verified })
}

/// Verifies the file of a ranker with valid seals.
///
/// # Errors
/// [`ErrorKind::NotPrivate`], `Guarantee`, `Assumption`.
pub fn ranker(file: &RankerFile) -> Result<Verification, Error> {
    let certificate = &file.certificate;
    let mismatch = |message: &str, field: &str| Err(Error::new(ErrorKind::Guarantee, message).at(field));
    check_private(certificate)?;
    let RankerDerivation::PrivateRanking(derivation) = &certificate.derivation else {
        return mismatch("the recipe gives no guarantee", "certificate.derivation");
    };
    let recipe = &derivation.ranking;
    // Checked before anything of that size is allocated.
    if recipe.parameters != file.model.weights.len() as u64 {
        return mismatch("the certificate is for another number of weights", "certificate.derivation");
    }
    let verified = recompute(certificate)?;
    if certificate.unit != recipe.unit() {
        return mismatch("the recipe protects another unit than the certificate states", "certificate.unit");
    }
    let noise = if recipe.exact_noise { NoiseMode::Exact } else { NoiseMode::Rounded };
    if certificate.noise != noise {
        return mismatch("the recipe draws its noise in another way than the certificate says", "certificate.noise");
    }
    if let Some(trained) = &derivation.model
        && !trained.is_of(&file.model)
    {
        return mismatch(
            "the certificate is for a ranker that was trained in another way",
            "certificate.derivation.model",
        );
    }
    check_assumptions(certificate, &[], &[Assumption::EveryRecordConforms])?;
    check_versions(certificate)?;
    let verified =
        Verification::new(certificate, &verified, &file.certificate_sha256, &[Assumption::EveryRecordConforms]);
    Ok(Verification { warnings: file.warnings(), ..verified })
}

/// Verifies the file of a network with valid seals.
///
/// # Errors
/// [`ErrorKind::NotPrivate`], `Guarantee`, `Assumption`.
#[cfg(feature = "networks")]
pub fn network(file: &crate::network::NetworkFile) -> Result<Verification, Error> {
    let crate::network::NetworkFile { model, certificate, certificate_sha256 } = file;
    let mismatch = |message: &str, field: &str| Err(Error::new(ErrorKind::Guarantee, message).at(field));
    check_private(certificate)?;
    let crate::network::NetworkDerivation::DpSgd(derivation) = &certificate.derivation else {
        return mismatch("the recipe adds no noise", "certificate.derivation");
    };
    if derivation.parameters != model.weights.len() as u64 {
        return mismatch("the certificate is for another number of weights", "certificate.derivation.parameters");
    }
    let verified = recompute(certificate)?;
    if certificate.unit != Unit::Record {
        return mismatch("the steps protect a record", "certificate.unit");
    }
    if certificate.noise != derivation.recipe.noise_mode {
        return mismatch("the recipe draws its noise in another way than the certificate says", "certificate.noise");
    }
    if derivation.recipe.float != model.float {
        return mismatch("the network was trained in another floating-point type", "model.float");
    }
    check_assumptions(certificate, &[], &[Assumption::EveryRecordConforms])?;
    check_versions(certificate)?;
    let verified = Verification::new(certificate, &verified, certificate_sha256, &[Assumption::EveryRecordConforms]);
    Ok(Verification { warnings: file.warnings(), ..verified })
}

/// Verifies the file of released metrics with valid seals. It does not contain the evaluated model, which has a guarantee of
/// its own.
///
/// # Errors
/// [`ErrorKind::NotPrivate`], `Guarantee`, `Assumption`.
pub fn metrics(file: &MetricsFile) -> Result<Verification, Error> {
    let MetricsFile { model: counts, certificate, certificate_sha256 } = file;
    let mismatch = |message: &str, field: &str| Err(Error::new(ErrorKind::Guarantee, message).at(field));
    check_private(certificate)?;
    if certificate.derivation.cells != counts.counts.iter().map(|counts| counts.len() as u64).sum::<u64>() {
        return mismatch("the certificate is for another number of counts", "certificate.derivation.cells");
    }
    let verified = recompute(certificate)?;
    if certificate.unit != Unit::Record {
        return mismatch("counts protect a record", "certificate.unit");
    }
    if certificate.noise != NoiseMode::Exact {
        return mismatch("counts have exact noise", "certificate.noise");
    }
    // Files of before omit the second.
    let may_be_listed = [Assumption::EveryRecordConforms, Assumption::OneRowPerUnit];
    check_assumptions(certificate, &[], &may_be_listed)?;
    check_versions(certificate)?;
    Ok(Verification::new(certificate, &verified, certificate_sha256, &may_be_listed))
}

/// Verifies the certificate of a training that another program ran, in a file with valid seals. It does not contain the weights:
/// whoever holds them compares their hash.
///
/// # Errors
/// [`ErrorKind::NotPrivate`], `Guarantee`, `Assumption`.
pub fn steps(file: &StepsFile) -> Result<Verification, Error> {
    let StepsFile { model: weights, certificate, certificate_sha256 } = file;
    let mismatch = |message: &str, field: &str| Err(Error::new(ErrorKind::Guarantee, message).at(field));
    check_private(certificate)?;
    let verified = recompute(certificate)?;
    if weights.steps_taken > certificate.derivation.steps {
        return mismatch("more steps were taken than were paid for", "model.steps_taken");
    }
    if certificate.unit != Unit::Record {
        return mismatch("the steps protect a record", "certificate.unit");
    }
    if certificate.noise != NoiseMode::Exact {
        return mismatch("the steps have exact noise", "certificate.noise");
    }
    check_assumptions(certificate, &[], &[])?;
    check_versions(certificate)?;
    let verified = Verification::new(certificate, &verified, certificate_sha256, &[]);
    Ok(Verification { weights_sha256: Some(weights.weights_sha256.clone()), ..verified })
}

/// Rejects a certificate that states that there is no guarantee.
fn check_private<D>(certificate: &Certificate<D>) -> Result<(), Error> {
    if !certificate.private {
        return Err(Error::new(
            ErrorKind::NotPrivate,
            match certificate.noise {
                NoiseMode::None => "the model was trained without privacy: there is no guarantee",
                _ => "the noise came from a seed and can be drawn again: there is no guarantee",
            },
        ));
    }
    Ok(())
}

/// Recomputes the guarantee of a certificate.
fn recompute<D: Derivation>(certificate: &Certificate<D>) -> Result<Verified, Error> {
    certificate.verify().map_err(|error| {
        let kind = match error {
            VerifyError::NotPrivate | VerifyError::NoNoise => ErrorKind::NotPrivate,
            VerifyError::MissingAssumption { .. } => ErrorKind::Assumption,
            _ => ErrorKind::Guarantee,
        };
        Error::new(kind, error.to_string()).advising("do not rely on this model's guarantee; ask for the original file")
    })
}

impl Verification {
    fn new<D>(
        certificate: &Certificate<D>,
        verified: &Verified,
        certificate_sha256: &str,
        implied: &[Assumption],
    ) -> Self {
        let unsaid = implied.iter().filter(|assumption| !certificate.assumptions.contains(assumption));
        Self {
            epsilon: verified.recomputed_epsilon,
            delta: verified.delta,
            adjacency: certificate.adjacency.as_str(),
            n_public: certificate.adjacency.n_public(),
            unit: certificate.unit.to_string(),
            theorem: verified.theorem.to_string(),
            warnings: Vec::new(),
            assumptions: report::all_in_words(certificate.assumptions.iter().chain(unsaid)),
            certificate_sha256: certificate_sha256.to_owned(),
            weights_sha256: None,
        }
    }
}

/// Rejects, before recomputation, a derivation whose number of weights differs from the file, and one that takes too long: an
/// untrusted file must not determine the running time.
fn check_size(file: &ModelFile, work: u64) -> Result<(), Error> {
    let derivation = &file.certificate.derivation;
    if let Some(derivation) = derivation.private()
        && derivation.model_terms().weights != file.model.released().len() as u64
    {
        let message = "the certificate is for another number of weights";
        return Err(Error::new(ErrorKind::Guarantee, message).at("certificate.derivation"));
    }
    let needed = derivation.work();
    if needed > work {
        let message = format!("to recompute this certificate takes about {needed} steps, and {work} are allowed for");
        return Err(Error::new(ErrorKind::Work { needed }, message).at("certificate.derivation"));
    }
    Ok(())
}

/// Compares the model with its certificate.
fn check_model(file: &ModelFile) -> Result<(), Error> {
    let (model, certificate) = (&file.model, &file.certificate);
    let mismatch = |message: &str, field: &str| Err(Error::new(ErrorKind::Guarantee, message).at(field));
    let Some(derivation) = certificate.derivation.private() else {
        return mismatch("the recipe gives no guarantee", "certificate.derivation");
    };
    let terms = derivation.model_terms();
    if certificate.unit != derivation.unit() {
        return mismatch("the recipe protects another unit than the certificate states", "certificate.unit");
    }
    if terms.models != model.models() {
        return mismatch("the certificate is for another number of models", "certificate.derivation");
    }
    if terms.has_threshold != model.threshold.is_some() {
        return mismatch("the certificate is for a model that decides at another threshold", "certificate.derivation");
    }
    if terms.loss != model.loss {
        return mismatch("the certificate is for another loss", "certificate.derivation.recipe.loss");
    }
    if !(model.encoder.row_bound() <= terms.row_norm) {
        return mismatch("the encoder's rows are longer than the recipe allows", "certificate.derivation");
    }
    if !(model.encoder.target_bound() <= terms.target_bound) {
        return mismatch("the encoder's targets are larger than the recipe allows", "certificate.derivation");
    }
    if certificate.noise != terms.noise_mode {
        return mismatch("the recipe draws its noise in another way than the certificate says", "certificate.noise");
    }
    check_assumptions(certificate, &model.required_assumptions(), &model.implied_assumptions())?;
    check_versions(certificate)?;
    check_weights(file)
}

/// Checks that the recipe can have released the weights.
fn check_weights(file: &ModelFile) -> Result<(), Error> {
    let lattice = file.certificate.derivation.release_lattice();
    let lattice =
        lattice.map_err(|error| Error::new(ErrorKind::Guarantee, error.to_string()).at("certificate.derivation"))?;
    lattice.check(&file.model.released()).map_err(|error| {
        Error::new(ErrorKind::Weights, error.to_string())
            .at("model.weights")
            .expecting("weights as the recipe of the certificate releases them")
            .advising("do not rely on this model's guarantee: its weights are not what was released; ask for the original file")
    })
}

/// The crates that may appear in a certificate.
const CRATES: [&str; 9] =
    ["dp", "dp-accountant", "dp-cli", "dp-data", "dp-losses", "dp-mechanisms", "dp-optim", "dp-python", "dp-rank"];

/// Checks that `versions` contains only crate names and version numbers.
fn check_versions<D>(certificate: &Certificate<D>) -> Result<(), Error> {
    let is_number = |part: &str| {
        let short = !part.is_empty() && part.len() <= 6;
        short && part.bytes().all(|byte| byte.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'))
    };
    let is_version = |text: &str| text.split('.').count() == 3 && text.split('.').all(is_number);
    let unknown =
        certificate.versions.iter().find(|(name, version)| !CRATES.contains(&name.as_str()) || !is_version(version));
    match unknown {
        None => Ok(()),
        Some((name, version)) => Err(Error::new(
            ErrorKind::Guarantee,
            format!("`{}` {} is no version of a crate that makes certificates", one_line(name), one_line(version)),
        )
        .at("certificate.versions")
        .expecting(format!("{} with a version such as {}", CRATES.join(", "), env!("CARGO_PKG_VERSION")))
        .advising("do not rely on this model's guarantee; ask for the original file")),
    }
}

/// Requires exactly the assumptions of the statement: a missing one hides a risk, a superfluous one (a reassuring sentence, a
/// bound that is not enforced) has no basis.
///
/// Assumptions `implied` by the model may be missing, as in certificates of earlier versions; they are reported nevertheless.
/// The selection of settings on public records is known only to the curator; it may be listed.
fn check_assumptions<D: Derivation>(
    certificate: &Certificate<D>,
    of_model: &[Assumption],
    implied: &[Assumption],
) -> Result<(), Error> {
    let unfit = |message: &str| Error::new(ErrorKind::Assumption, message).at("certificate.assumptions");
    if let Some(missing) = of_model.iter().find(|needed| !certificate.assumptions.contains(needed)) {
        return Err(unfit("the certificate lacks an assumption that the model's encoder requires")
            .expecting(report::in_words(missing)));
    }
    let mut needed = certificate.derivation.assumptions();
    needed.push(Assumption::EarlierRunsNotAccounted);
    needed.extend_from_slice(of_model);
    needed.extend_from_slice(implied);
    for (i, assumption) in certificate.assumptions.iter().enumerate() {
        let known = needed.contains(assumption) || is_choice(assumption) || is_of_source(assumption);
        if !known || certificate.assumptions[..i].contains(assumption) {
            return Err(unfit("the certificate lists an assumption that its guarantee does not rest on")
                .expecting(format!("nothing about `{}`", one_line(&assumption.name()))));
        }
    }
    Ok(())
}

/// The settings that may be selected on public records, as named in certificates.
pub const TUNED_SETTINGS: [&str; 3] = ["lambda", "passes", "batch_size"];

/// Returns whether the assumption is about the source of the rows: another engine computed the sums, or the rows are a query's
/// result. It only adds an assumption, so any certificate may state it.
fn is_of_source(assumption: &Assumption) -> bool {
    matches!(assumption, Assumption::EngineArithmetic { bits: ..=40 } | Assumption::QueryRows)
}

/// Returns whether the assumption is a selection among settings and contains nothing else.
fn is_choice(assumption: &Assumption) -> bool {
    let Assumption::ChosenOnPublic { grid } = assumption else { return false };
    let rising = |values: &[f64]| {
        let finite = values.iter().all(|value| value.is_finite() && *value >= 0.0);
        finite && !values.is_empty() && values.len() <= MOST_CANDIDATES && values.is_sorted_by(|a, b| a < b)
    };
    !grid.is_empty() && grid.iter().all(|(name, values)| TUNED_SETTINGS.contains(&name.as_str()) && rising(values))
}
