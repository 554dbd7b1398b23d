//! Arguments of `dp sign`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FileName;

/// Arguments of `dp sign`.
#[derive(Debug, Clone, Args)]
pub struct SignArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub job: SignJob,
}

/// The subcommands of `dp sign`.
#[derive(Debug, Clone, Subcommand)]
pub enum SignJob {
    /// Make a key pair: FILE, to be kept secret, and FILE.pub, to be published
    NewKey(SignNewKeyArgs),
    /// Sign the certificate of a model, if it verifies
    Model(SignModelArgs),
}

/// Arguments of `dp sign new-key`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp sign new-key curator.key

The keys are Ed25519, in PEM (PKCS #8 and SPKI), which other tools read too. The secret key is readable by its owner alone;
neither file is ever replaced.")]
pub struct SignNewKeyArgs {
    /// The file of the secret key
    #[arg(value_name = "FILE")]
    pub key: PathBuf,
}

/// Arguments of `dp sign model`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  dp sign model model.json --key curator.key

Signs the hash of the certificate, which contains that of the model, with the statement that the noise was drawn once,
from the system's generator. Only whoever ran the training can know that: do not sign the model of somebody else, nor one
of several that were trained and looked at.")]
pub struct SignModelArgs {
    /// The model file; `-` for standard input
    #[arg(value_name = "MODEL")]
    pub model: FileName,
    /// The file of the secret key
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Output file of the signature [default: MODEL.sig]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing signature
    #[arg(long)]
    pub force: bool,
}
