//! Key and signature files. [`dp::signature`] defines the signed statement.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dp::ErrorKind;
use dp::signature::{Detached, PublicKey, SCHEMA, SecretKey};
use zeroize::Zeroizing;

use crate::args::FileName;
use crate::atomic::{self, PendingFile};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// Largest size in bytes of a key or signature file.
const LONGEST: u64 = 1 << 16;

/// Returns `NAME.sig`, the default signature file of a model.
pub fn beside(model: &FileName) -> PathBuf {
    AsRef::<Path>::as_ref(&model.with_end(".sig")).to_owned()
}

/// Returns `path.pub`, the file of the public key beside that of the secret one.
pub fn of_public(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    PathBuf::from(name)
}

/// Creates a key pair: `path`, readable by its owner alone, and `path.pub`. Neither replaces a file.
///
/// # Errors
/// `sign.random`, `output.exists`, `output.write`, `output.full`.
pub fn new_key(path: &Path) -> Result<(PathBuf, PublicKey), Failure> {
    let key = SecretKey::generate()?;
    let public = key.public_key();
    let of_public = of_public(path);
    // A key that is lost cannot be made again.
    for file in [path, &of_public] {
        atomic::check_name(file, false).map_err(|failure| failure.help("choose another name: no key is replaced"))?;
    }
    let files = [
        PendingFile::create_secret(path)?.with(key.to_pem()?.as_bytes())?,
        PendingFile::create(&of_public, false)?.with(public.to_pem()?.as_bytes())?,
    ];
    atomic::commit_together(files.into())?;
    Ok((of_public, public))
}

/// Reads a secret key and returns whether users other than its owner may read the file.
///
/// # Errors
/// `key.read`, `key.format`.
pub fn secret_key(path: &Path) -> Result<(SecretKey, bool), Failure> {
    let text = read(path, "key.read", "the key")?;
    let key = SecretKey::from_pem(&text)
        .map_err(|error| bad_key(path, error, "a secret Ed25519 key in PEM, as `dp sign new-key` writes it"))?;
    Ok((key, is_open(path)))
}

/// Reads a public key.
///
/// # Errors
/// `key.read`, `key.format`.
pub fn public_key(path: &Path) -> Result<PublicKey, Failure> {
    let text = read(path, "key.read", "the key")?;
    PublicKey::from_pem(&text).map_err(|error| {
        let expected = match error.kind() {
            ErrorKind::WeakKey => "a key that `dp sign new-key` made",
            _ => "a public Ed25519 key in PEM: the file whose name ends in .pub",
        };
        bad_key(path, error, expected)
    })
}

/// Reads a signature file.
///
/// # Errors
/// `signature.read`, `signature.format`.
pub fn detached(path: &Path) -> Result<Detached, Failure> {
    Detached::parse(&read(path, "signature.read", "the signature")?).map_err(|error| {
        Failure::from(error)
            .at_file(atomic::shown(path))
            .expected(format!("a signature of format {SCHEMA}, as `dp sign model` writes it"))
    })
}

fn bad_key(path: &Path, error: dp::Error, expected: &str) -> Failure {
    Failure::from(error).at_file(atomic::shown(path)).at_flag("--key").expected(expected)
}

/// Reads a small text file, which may hold a secret.
fn read(path: &Path, code: &'static str, what: &str) -> Result<Zeroizing<String>, Failure> {
    atomic::protect(path);
    let mut text = Zeroizing::new(String::new());
    let all = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    let all = all.and_then(|_| match text.len() as u64 > LONGEST {
        true => Err(io::Error::other("it is longer than 64 KiB")),
        false => Ok(()),
    });
    all.map_err(|error| {
        Failure::new(ExitStatus::Failed, code, format!("cannot read {what}: {error}")).at_file(atomic::shown(path))
    })?;
    // A byte order mark is not part of the text.
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Returns whether users other than the owner may read a file.
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
