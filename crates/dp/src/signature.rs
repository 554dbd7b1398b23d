//! Detached signatures: a curator confirms what no computation can prove.
//!
//! ```json
//! { "schema": "dp.signature/1", "certificate_sha256": "…", "statement": "…", "public_key": "…", "signature": "…" }
//! ```
//! Keys and signatures are Ed25519 (RFC 8032), in hexadecimal here and in PEM in their own files (RFC 8410). The signed text
//! is the following, with a newline at the end of each line:
//! ```text
//! dp.signature/1
//! certificate_sha256 <64 hexadecimal digits>
//! <the statement>
//! ```
//! The certificate's hash binds the certificate, and through it the model. The public key in the file only identifies the
//! key; trust comes from the key that the verifier holds.
//!
//! # Examples
//! ```
//! use dp::signature::{Detached, SecretKey};
//!
//! let certificate_sha256 = "ab".repeat(32);
//! let key = SecretKey::generate()?;
//! let text = Detached::new(&certificate_sha256, &key).to_text()?;
//! Detached::parse(&text)?.check(&certificate_sha256, &key.public_key())?;
//! # Ok::<(), dp::Error>(())
//! ```

use core::fmt;

use ed25519_dalek::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _};
use ed25519_dalek::{SECRET_KEY_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey};
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::canonical;
use crate::error::{Error, ErrorKind};

/// The format of a signature file.
pub const SCHEMA: &str = "dp.signature/1";

/// The statement that the curator signs.
pub const STATEMENT: &str = "The noise of this release was drawn once, from the system's generator.";

/// A signing key. Its memory is overwritten on drop.
#[derive(Debug)]
pub struct SecretKey(SigningKey);

/// A key that verifies signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// The content of a signature file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detached {
    /// [`SCHEMA`].
    pub schema: String,
    /// SHA-256 of the canonical certificate.
    pub certificate_sha256: String,
    /// [`STATEMENT`].
    pub statement: String,
    /// The public key of the signing key.
    pub public_key: String,
    /// The signature.
    pub signature: String,
}

impl SecretKey {
    /// Generates a key with the system's random generator.
    ///
    /// # Errors
    /// [`ErrorKind::Random`].
    pub fn generate() -> Result<Self, Error> {
        let mut secret = Zeroizing::new([0; SECRET_KEY_LENGTH]);
        SysRng.try_fill_bytes(secret.as_mut()).map_err(|error| {
            Error::new(ErrorKind::Random, format!("the system gives no random numbers: {error}"))
                .advising("no key was made")
        })?;
        Ok(Self(SigningKey::from_bytes(&secret)))
    }

    /// Parses PEM.
    ///
    /// # Errors
    /// [`ErrorKind::Key`].
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        SigningKey::from_pkcs8_pem(text).map(Self).map_err(|_| {
            let public = VerifyingKey::from_public_key_pem(text).is_ok();
            let message =
                if public { "this is a public key, and only a secret one signs" } else { "this is no secret key" };
            Error::new(ErrorKind::Key, message).expecting("a secret Ed25519 key in PEM")
        })
    }

    /// Returns the key as PEM.
    ///
    /// # Errors
    /// [`ErrorKind::Unwritable`].
    pub fn to_pem(&self) -> Result<Zeroizing<String>, Error> {
        self.0.to_pkcs8_pem(Default::default()).map_err(|error| unwritable(&error))
    }

    /// Returns the public key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }
}

impl PublicKey {
    /// Parses PEM.
    ///
    /// # Errors
    /// [`ErrorKind::Key`]; [`ErrorKind::WeakKey`], for which one signature is valid for many texts.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let key = VerifyingKey::from_public_key_pem(text).map_err(|_| {
            let secret = SigningKey::from_pkcs8_pem(text).is_ok();
            let message = if secret {
                "this is a secret key, which nobody should have to hand over"
            } else {
                "this is no public key"
            };
            Error::new(ErrorKind::Key, message).expecting("a public Ed25519 key in PEM")
        })?;
        if key.is_weak() {
            return Err(Error::new(ErrorKind::WeakKey, "this key is weak: anybody can sign for it"));
        }
        Ok(Self(key))
    }

    /// Returns the key as PEM.
    ///
    /// # Errors
    /// [`ErrorKind::Unwritable`].
    pub fn to_pem(&self) -> Result<String, Error> {
        self.0.to_public_key_pem(Default::default()).map_err(|error| unwritable(&error))
    }
}

/// Formats the key in hexadecimal.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(self.0.as_bytes()))
    }
}

impl Detached {
    /// Signs the hash of a certificate.
    pub fn new(certificate_sha256: &str, key: &SecretKey) -> Self {
        let signature = key.0.sign(message(certificate_sha256).as_bytes());
        Self {
            schema: SCHEMA.to_owned(),
            certificate_sha256: certificate_sha256.to_owned(),
            statement: STATEMENT.to_owned(),
            public_key: key.public_key().to_string(),
            signature: hexadecimal(&signature.to_bytes()),
        }
    }

    /// Returns the text of the file.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_text(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| Error::new(ErrorKind::Unwritable, format!("no JSON: {error}")))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// [`ErrorKind::SignatureFormat`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let malformed = |message: String| {
            Error::new(ErrorKind::SignatureFormat, message).expecting(format!("a signature of format {SCHEMA}"))
        };
        let value = canonical::parse(text).map_err(|error| malformed(error.to_string()))?;
        let read: Self = Self::deserialize(value).map_err(|error| malformed(error.to_string()))?;
        if read.schema != SCHEMA {
            return Err(malformed("the signature is of another format".to_owned()));
        }
        Ok(read)
    }

    /// Checks that the holder of `key` signed this certificate with the statement.
    ///
    /// # Errors
    /// [`ErrorKind::Signature`].
    pub fn check(&self, certificate_sha256: &str, key: &PublicKey) -> Result<(), Error> {
        let refused = |message: &str| {
            Err(Error::new(ErrorKind::Signature, message)
                .advising("do not take the curator's word for this model: ask for the signature and the key again"))
        };
        if self.statement != STATEMENT {
            return refused("the signature is for another statement than this version knows");
        }
        if self.certificate_sha256 != certificate_sha256 {
            return refused("the signature is for another certificate");
        }
        if self.public_key != key.to_string() {
            return refused("the signature is by another key");
        }
        let signature = bytes(&self.signature).map(|bytes| Signature::from_bytes(&bytes));
        let text = message(certificate_sha256);
        let holds = signature.is_some_and(|signature| key.0.verify_strict(text.as_bytes(), &signature).is_ok());
        if holds { Ok(()) } else { refused("the signature does not hold") }
    }
}

/// Returns the signed text.
fn message(certificate_sha256: &str) -> String {
    format!("{SCHEMA}\ncertificate_sha256 {certificate_sha256}\n{STATEMENT}\n")
}

fn unwritable(error: &dyn fmt::Display) -> Error {
    Error::new(ErrorKind::Unwritable, format!("the key cannot be written as PEM: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_one_certificate_and_one_key() {
        let [one, other] = [7, 8].map(|byte| SecretKey(SigningKey::from_bytes(&[byte; 32])));
        let hash = "ab".repeat(32);
        let signed = Detached::new(&hash, &one);
        signed.check(&hash, &one.public_key()).unwrap();
        let refused = |signed: &Detached, hash: &str, key: &SecretKey| {
            assert_eq!(signed.check(hash, &key.public_key()).unwrap_err().kind(), ErrorKind::Signature);
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
        // Signed by another key, under the name of the first.
        let forged = Detached { public_key: signed.public_key.clone(), ..Detached::new(&hash, &other) };
        refused(&forged, &hash, &one);
    }
}
