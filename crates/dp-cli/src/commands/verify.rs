//! `dp verify`: recomputes the guarantee from a model, or from a certificate, alone. [`dp::verify`] documents the checks.

use dp::signature::{PublicKey, STATEMENT};
use dp::verify::Verification;
use dp::wording::{self, one_line};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::atomic;
use crate::failure::Failure;
use crate::files;
use crate::input::conflict;
use crate::output::Console;
use crate::signature;

/// The result of a successful verification.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `dp.verify/1`.
    pub schema: &'static str,
    /// Always true: otherwise the command fails.
    pub holds: bool,
    /// The guarantee.
    #[serde(flatten)]
    pub verified: Verification,
    /// The statement signed by the holder of the given key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<&'static str>,
}

/// Verifies and prints.
///
/// # Errors
/// `model.*`, `key.*`, `signature.*`, `verify.*`, or standard output that cannot be written.
pub fn execute(args: &VerifyArgs, console: &Console) -> Result<(), Failure> {
    let key = args.key.as_deref().map(signature::public_key).transpose()?;
    let verified = dp::verify::sealed(files::sealed(&args.model)?, args.work)
        .map_err(|error| Failure::from(error).at_file(&args.model))?;
    let signed = key.map(|key| check_signature(args, &verified.certificate_sha256, &key)).transpose()?;
    let outcome = Outcome { schema: "dp.verify/1", holds: true, verified, signed };
    console.result(&outcome, &text(&outcome, &args.model))
}

/// Requires a signature of the certificate under this key, and returns its statement.
fn check_signature(args: &VerifyArgs, certificate_sha256: &str, key: &PublicKey) -> Result<&'static str, Failure> {
    let file = match &args.signature {
        Some(file) => file.clone(),
        None if &*args.model == "-" => {
            return Err(conflict("--signature", "a model from standard input has no name to find a signature beside")
                .help("name the file of the signature: --signature model.json.sig"));
        }
        None => signature::beside(&args.model),
    };
    let at_file = |error| Failure::from(error).at_file(atomic::shown(&file));
    signature::detached(&file)?.check(certificate_sha256, key).map_err(at_file)?;
    Ok(STATEMENT)
}

fn text(outcome: &Outcome, model: &str) -> String {
    let verified = &outcome.verified;
    let mut lines = vec![
        format!("{} holds", one_line(model)),
        format!(
            "guarantee  {}",
            wording::guarantee(verified.epsilon, verified.delta, verified.adjacency, &verified.unit)
        ),
        format!("           {}", wording::covers(verified.adjacency, verified.n_public, &verified.unit)),
    ];
    lines.extend(verified.warnings.iter().map(|warning| format!("WARNING    {warning}")));
    lines.extend([format!("theorem    {}", verified.theorem), "on trust".to_owned()]);
    lines.extend(verified.assumptions.iter().map(|assumption| format!("  - {}", one_line(assumption))));
    lines.push(format!("certificate SHA-256 {}", verified.certificate_sha256));
    lines.extend(
        verified.weights_sha256.iter().map(|hash| format!("weights     SHA-256 {hash}, which those in use must have")),
    );
    lines.extend(outcome.signed.map(|statement| format!("signed     {statement}")));
    lines.join("\n")
}
