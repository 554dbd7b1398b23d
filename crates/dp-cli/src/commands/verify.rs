//! `dp verify`: recomputes the guarantee of a model from its file alone.
//!
//! Three layers, each finding out what the one before cannot. The seals find any edit. The recipe's derivation finds
//! any number that does not follow from the public parameters, even if the seals were repaired. The comparison of model
//! and certificate finds assumptions that were left out.

use dp_accountant::certificate::{Assumption, NoiseMode, VerifyError};
use dp_accountant::guarantee::Unit;
use dp_optim::Derivation;
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::model_file::ModelFile;
use crate::output::Console;
use crate::report;

/// What holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.verify/1`.
    pub schema: &'static str,
    /// Always true: what does not hold is a failure.
    pub holds: bool,
    /// Epsilon as recomputed.
    pub epsilon: f64,
    /// Delta of the statement.
    pub delta: f64,
    /// The neighbouring relation.
    pub adjacency: &'static str,
    /// The unit of privacy.
    pub unit: String,
    /// The theorem behind epsilon.
    pub theorem: String,
    /// What the statement rests on, in words.
    pub assumptions: Vec<String>,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
}

/// Verifies and prints.
///
/// # Errors
/// `model.*`, `verify.*`, or stdout cannot be written.
pub fn execute(args: &VerifyArgs, console: &Console) -> Result<(), Failure> {
    let file = ModelFile::open(&args.model)?;
    let outcome = run(&file).map_err(|failure| failure.at_file(&args.model))?;
    console.result(&outcome, &text(&outcome, &args.model))
}

/// Verifies a model file whose seals are intact.
///
/// # Errors
/// `verify.not_private`, `verify.guarantee`, `verify.assumption`.
pub fn run(file: &ModelFile) -> Result<Outcome, Failure> {
    let certificate = &file.certificate;
    if !certificate.private {
        return Err(Failure::new(
            ExitStatus::Verification,
            "verify.not_private",
            match certificate.noise {
                NoiseMode::None => "the model was trained without privacy: there is no guarantee",
                _ => "the noise came from a seed (--seed) and can be drawn again: there is no guarantee",
            },
        )
        .help("train again with privacy and without --seed"));
    }
    let verified = certificate.verify().map_err(|error| {
        let code = match error {
            VerifyError::NotPrivate | VerifyError::NoNoise => "verify.not_private",
            VerifyError::MissingAssumption { .. } => "verify.assumption",
            _ => "verify.guarantee",
        };
        Failure::new(ExitStatus::Verification, code, error.to_string())
            .help("do not rely on this model's guarantee; ask for the original file")
    })?;
    check_model(file)?;
    Ok(Outcome {
        schema: "dp.verify/1",
        holds: true,
        epsilon: verified.recomputed_epsilon,
        delta: verified.delta,
        adjacency: certificate.adjacency.as_str(),
        unit: certificate.unit.to_string(),
        theorem: verified.theorem.to_string(),
        assumptions: certificate.assumptions.iter().map(report::in_words).collect(),
        certificate_sha256: file.certificate_sha256.clone(),
    })
}

/// Compares the model with what its certificate speaks of.
fn check_model(file: &ModelFile) -> Result<(), Failure> {
    let (model, certificate) = (&file.model, &file.certificate);
    let mismatch = |message: &str, field: &str| {
        Err(Failure::new(ExitStatus::Verification, "verify.guarantee", message).at_field(field))
    };
    match &certificate.derivation {
        Derivation::BoltOn(derivation) => {
            if certificate.unit != Unit::Record {
                return mismatch(
                    "the recipe protects one record, the certificate states another unit",
                    "certificate.unit",
                );
            }
            if derivation.dim != model.weights.len() as u64 {
                return mismatch("the certificate is for another number of weights", "certificate.derivation.dim");
            }
            if derivation.recipe.loss != model.loss {
                return mismatch("the certificate is for another loss", "certificate.derivation.recipe.loss");
            }
            if !(model.encoder.row_bound() <= derivation.recipe.row_norm) {
                return mismatch("the encoder's rows are longer than the recipe allows", "certificate.derivation");
            }
        }
        _ => return mismatch("the recipe gives no guarantee", "certificate.derivation"),
    }
    // Exactly what the schema says of itself: an assumption left out hides a risk, one too many vouches for nothing.
    let of_schema =
        |assumption: &&Assumption| matches!(assumption, Assumption::PublicSchema | Assumption::AssumedPublic { .. });
    let stated: Vec<&Assumption> = certificate.assumptions.iter().filter(of_schema).collect();
    if stated != [&model.schema_assumption()] {
        return Err(Failure::new(
            ExitStatus::Verification,
            "verify.assumption",
            "the certificate does not say of the schema what the model's encoder says of itself",
        )
        .at_field("certificate.assumptions")
        .expected(report::in_words(&model.schema_assumption())));
    }
    Ok(())
}

fn text(outcome: &Outcome, model: &str) -> String {
    let mut lines = vec![
        format!("{model} holds"),
        format!(
            "guarantee  epsilon = {:.6}, delta = {}, {}, for one {}",
            outcome.epsilon,
            report::delta_in_words(outcome.delta),
            outcome.adjacency,
            outcome.unit
        ),
        format!("theorem    {}", outcome.theorem),
        "on trust".to_owned(),
    ];
    lines.extend(outcome.assumptions.iter().map(|assumption| format!("  - {assumption}")));
    lines.join("\n")
}
