//! Detached signatures: a curator vouches for what no arithmetic can show.
//!
//! ```json
//! { "schema": "dp.signature/1", "certificate_sha256": "…", "statement": "…", "public_key": "…", "signature": "…" }
//! ```
//! Keys and signatures are Ed25519 (RFC 8032), in hexadecimal here and in PEM in their own files (RFC 8410). What is signed
//! is this text, each line with a newline at its end:
//! ```text
//! dp.signature/1
//! certificate_sha256 <64 hexadecimal digits>
//! <the statement>
//! ```
//! The certificate's hash binds the certificate, and through it the model. The public key in the file says which key to ask
//! for; trust comes from the key that `dp verify --key` is given.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dp::canonical;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _};
use ed25519_dalek::{SECRET_KEY_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey};
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use crate::args::FileName;
use crate::atomic::{self, PendingFile};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// The format of a signature's file.
pub const SCHEMA: &str = "dp.signature/1";

/// What a curator vouches for.
pub const STATEMENT: &str = "The noise of this release was drawn once, from the system's generator.";

/// Longer files are no keys and no signatures.
const LONGEST: u64 = 1 << 16;

/// The content of a signature's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detached {
    /// [`SCHEMA`].
    pub schema: String,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
    /// [`STATEMENT`].
    pub statement: String,
    /// The public half of the key that signed.
    pub public_key: String,
    /// The signature.
    pub signature: String,
}

/// What is signed.
fn message(certificate_sha256: &str) -> String {
    format!("{SCHEMA}\ncertificate_sha256 {certificate_sha256}\n{STATEMENT}\n")
}

/// `NAME.sig`, where a model's signature lies unless another file is named.
pub fn beside(model: &FileName) -> PathBuf {
    AsRef::<Path>::as_ref(&model.with_end(".sig")).to_owned()
}

/// Makes a key pair: `path`, readable by its owner alone, and `path.pub`. Neither replaces a file.
///
/// # Errors
/// `sign.random`, `output.exists`, `output.write`, `output.full`.
pub fn new_key(path: &Path) -> Result<(PathBuf, String), Failure> {
    let mut secret = Zeroizing::new([0; SECRET_KEY_LENGTH]);
    SysRng.try_fill_bytes(secret.as_mut()).map_err(|error| {
        Failure::new(ExitStatus::Failed, "sign.random", format!("the system gives no random numbers: {error}"))
            .help("no key was made")
    })?;
    let key = SigningKey::from_bytes(&secret);
    let unwritable = |error: &dyn core::fmt::Display| {
        Failure::new(ExitStatus::Failed, "output.write", format!("the key cannot be written as PEM: {error}"))
    };
    let private = key.to_pkcs8_pem(Default::default()).map_err(|error| unwritable(&error))?;
    let public = key.verifying_key().to_public_key_pem(Default::default()).map_err(|error| unwritable(&error))?;
    let mut of_public = path.as_os_str().to_owned();
    of_public.push(".pub");
    let of_public = PathBuf::from(of_public);
    let files = [
        PendingFile::create_secret(path)?.with(private.as_bytes())?,
        PendingFile::create(&of_public, false)?.with(public.as_bytes())?,
    ];
    atomic::commit_together(files.into())?;
    Ok((of_public, hexadecimal(key.verifying_key().as_bytes())))
}

/// Reads a secret key; says whether others than its owner may read the file.
///
/// # Errors
/// `key.read`, `key.format`.
pub fn secret_key(path: &Path) -> Result<(SigningKey, bool), Failure> {
    let text = Zeroizing::new(read(path, "key.read", "the key")?);
    let key = SigningKey::from_pkcs8_pem(&text).map_err(|_| {
        let public = VerifyingKey::from_public_key_pem(&text).is_ok();
        let message =
            if public { "this is a public key, and only a secret one signs" } else { "this is no secret key" };
        bad_key(path, message, "a secret Ed25519 key in PEM, as `dp sign new-key` writes it")
    })?;
    Ok((key, is_open(path)))
}

/// Reads a public key.
///
/// # Errors
/// `key.read`, `key.format`.
pub fn public_key(path: &Path) -> Result<VerifyingKey, Failure> {
    let mut text = read(path, "key.read", "the key")?;
    let key = VerifyingKey::from_public_key_pem(&text).map_err(|_| {
        let secret = SigningKey::from_pkcs8_pem(&text).is_ok();
        let message = if secret {
            "this is a secret key, which nobody should have to hand over"
        } else {
            "this is no public key"
        };
        bad_key(path, message, "a public Ed25519 key in PEM: the file whose name ends in .pub")
    });
    text.zeroize();
    let key = key?;
    // Under such a key one signature holds for many texts.
    if key.is_weak() {
        return Err(bad_key(path, "this key is weak: anybody can sign for it", "a key that `dp sign new-key` made"));
    }
    Ok(key)
}

impl Detached {
    /// Signs the hash of a certificate.
    pub fn new(certificate_sha256: &str, key: &SigningKey) -> Self {
        let signature = key.sign(message(certificate_sha256).as_bytes());
        Self {
            schema: SCHEMA.to_owned(),
            certificate_sha256: certificate_sha256.to_owned(),
            statement: STATEMENT.to_owned(),
            public_key: hexadecimal(key.verifying_key().as_bytes()),
            signature: hexadecimal(&signature.to_bytes()),
        }
    }

    /// The text of the file.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_text(&self) -> Result<String, Failure> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n")
            .map_err(|error| Failure::new(ExitStatus::Failed, "output.write", format!("no JSON: {error}")))
    }

    /// Reads a signature's file.
    ///
    /// # Errors
    /// `signature.read`, `signature.format`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let text = read(path, "signature.read", "the signature")?;
        let malformed = |message: String| {
            Failure::new(ExitStatus::Input, "signature.format", message)
                .at_file(atomic::shown(path))
                .expected(format!("a signature of format {SCHEMA}, as `dp sign model` writes it"))
        };
        let value = canonical::parse(&text).map_err(|error| malformed(error.to_string()))?;
        let read: Self = Self::deserialize(value).map_err(|error| malformed(error.to_string()))?;
        if read.schema != SCHEMA {
            return Err(malformed("the signature is of another format".to_owned()));
        }
        Ok(read)
    }

    /// Checks that the holder of `key` signed this certificate with the statement.
    ///
    /// # Errors
    /// `verify.signature`.
    pub fn check(&self, certificate_sha256: &str, key: &VerifyingKey) -> Result<(), Failure> {
        let refused = |message: &str| {
            Err(Failure::new(ExitStatus::Verification, "verify.signature", message)
                .help("do not take the curator's word for this model: ask for the signature and the key again"))
        };
        if self.statement != STATEMENT {
            return refused("the signature is for another statement than this version knows");
        }
        if self.certificate_sha256 != certificate_sha256 {
            return refused("the signature is for another certificate");
        }
        if self.public_key != hexadecimal(key.as_bytes()) {
            return refused("the signature is by another key");
        }
        let signature = bytes(&self.signature).map(|bytes| Signature::from_bytes(&bytes));
        let holds = signature.is_some_and(|it| key.verify_strict(message(certificate_sha256).as_bytes(), &it).is_ok());
        if holds { Ok(()) } else { refused("the signature does not hold") }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn bad_key(path: &Path, message: &str, expected: &str) -> Failure {
    Failure::new(ExitStatus::Input, "key.format", message)
        .at_file(atomic::shown(path))
        .at_flag("--key")
        .expected(expected)
}

/// The text of a small file.
fn read(path: &Path, code: &'static str, what: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let all = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    let all = all.and_then(|_| match text.len() as u64 > LONGEST {
        true => Err(io::Error::other("it is longer than 64 KiB")),
        false => Ok(()),
    });
    all.map_err(|error| {
        Failure::new(ExitStatus::Failed, code, format!("cannot read {what}: {error}")).at_file(atomic::shown(path))
    })?;
    // A byte order mark is no part of the text.
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Whether others than the owner may read a file.
fn is_open(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = fs::metadata(path);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_one_certificate_and_one_key() {
        let (one, other) = (SigningKey::from_bytes(&[7; 32]), SigningKey::from_bytes(&[8; 32]));
        let hash = "ab".repeat(32);
        let signed = Detached::new(&hash, &one);
        signed.check(&hash, &one.verifying_key()).unwrap();
        let refused = |signed: &Detached, hash: &str, key: &SigningKey| {
            assert_eq!(signed.check(hash, &key.verifying_key()).unwrap_err().code, "verify.signature");
        };
        refused(&signed, &hash, &other);
        refused(&signed, &"ac".repeat(32), &one);
        let edits: [fn(&mut Detached); 5] = [
            |signed| signed.statement.push('x'),
            |signed| signed.signature.replace_range(..1, if signed.signature.starts_with('0') { "1" } else { "0" }),
            |signed| signed.signature.push_str("00"),
            |signed| signed.signature = signed.signature.to_uppercase(),
            |signed| signed.certificate_sha256 = "ac".repeat(32),
        ];
        for edit in edits {
            let mut edited = signed.clone();
            edit(&mut edited);
            refused(&edited, &hash, &one);
        }
        // By another key under the name of the first.
        let forged = Detached { public_key: signed.public_key.clone(), ..Detached::new(&hash, &other) };
        refused(&forged, &hash, &one);
    }
}
