//! `dp sign`: creates a curator's keys and signs models.

use dp::signature::{Detached, STATEMENT};
use dp::wording::one_line;
use serde::Serialize;

use crate::args::{SignArgs, SignJob, SignModelArgs, SignNewKeyArgs};
use crate::atomic;
use crate::failure::Failure;
use crate::files;
use crate::input::conflict;
use crate::output::Console;
use crate::signature;

/// A new key pair.
#[derive(Debug, Serialize)]
struct NewKey {
    schema: &'static str,
    secret_key_file: String,
    public_key_file: String,
    public_key: String,
}

/// A signature that was written.
#[derive(Debug, Serialize)]
struct Signed {
    schema: &'static str,
    certificate_sha256: String,
    statement: &'static str,
    public_key: String,
    signature_file: String,
}

/// Creates a key pair or signs a model.
///
/// # Errors
/// `key.*`, `sign.random`, `model.*`, `verify.*`, `output.*`.
pub fn execute(args: &SignArgs, console: &Console) -> Result<(), Failure> {
    match &args.job {
        SignJob::NewKey(args) => new_key(args, console),
        SignJob::Model(args) => sign(args, console),
    }
}

fn new_key(args: &SignNewKeyArgs, console: &Console) -> Result<(), Failure> {
    let (public, public_key) = signature::new_key(&args.key)?;
    let made = NewKey {
        schema: "dp.sign-new-key/1",
        secret_key_file: atomic::shown(&args.key),
        public_key_file: atomic::shown(&public),
        public_key: public_key.to_string(),
    };
    let text = format!(
        "secret key {} (keep it to yourself)\npublic key {} (publish it through another channel than the models)\n           {}",
        one_line(&made.secret_key_file),
        one_line(&made.public_key_file),
        made.public_key
    );
    console.result(&made, &text)
}

fn sign(args: &SignModelArgs, console: &Console) -> Result<(), Failure> {
    let out = match &args.out {
        Some(out) => out.clone(),
        None if &*args.model == "-" => {
            return Err(conflict("--out", "a model from standard input has no name to put a signature beside")
                .help("say where to write the signature: --out model.json.sig"));
        }
        None => signature::beside(&args.model),
    };
    let public = signature::of_public(&args.key);
    atomic::protect(&public);
    atomic::check_name(&out, args.force)?;
    let (key, open) = signature::secret_key(&args.key)?;
    if open {
        console.warn(&format!(
            "others may read {}\nwhoever can read a secret key can sign in your name: chmod 600",
            one_line(&atomic::shown(&args.key))
        ));
    }
    // Only a certificate that holds is signed.
    let outcome = dp::verify::sealed(files::sealed(&args.model)?, u64::MAX)
        .map_err(|error| Failure::from(error).at_file(&args.model))?;
    let signed = Detached::new(&outcome.certificate_sha256, &key);
    atomic::write(&out, args.force, signed.to_text()?.as_bytes())?;
    let signed = Signed {
        schema: "dp.sign/1",
        certificate_sha256: signed.certificate_sha256,
        statement: STATEMENT,
        public_key: signed.public_key,
        signature_file: atomic::shown(&out),
    };
    let mut text = format!(
        "signed     {}\nstatement  {STATEMENT}\nsignature  {}",
        signed.certificate_sha256,
        one_line(&signed.signature_file)
    );
    // Another model or key than those named cannot be guessed.
    if &*args.model != "-" && public.exists() {
        let key = atomic::shown(&public);
        text += &format!("\nnext       dp verify {} --key {}", one_line(&args.model), one_line(&key));
        if out != signature::beside(&args.model) {
            text += &format!(" --signature {}", one_line(&signed.signature_file));
        }
    }
    console.result(&signed, &text)
}
