//! Encryption as `sslmode` asks for it.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;
use x509_cert::der::Decode as _;

use super::settings::Settings;
use crate::error::{DataError, DataErrorKind};

/// The connector of encrypted connections.
pub(crate) type Tls = MakeRustlsConnect;

/// The proof that a server must give.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Proof {
    /// That it has the key of the certificate that it shows.
    None,
    /// That the certificate is signed by an authority.
    Authority,
    /// That it is also for the host's name.
    Name,
}

/// Returns whether connections are encrypted, and how.
///
/// # Errors
/// `table.open`: a mode that does not exist, or a certificate that cannot be read.
pub(super) fn of(settings: &Settings) -> Result<(SslMode, Tls), DataError> {
    let modes = [
        ("disable", (SslMode::Disable, Proof::None)),
        // Encryption is preferred here too, which is stronger.
        ("allow", (SslMode::Prefer, Proof::None)),
        ("prefer", (SslMode::Prefer, Proof::None)),
        ("require", (SslMode::Require, Proof::None)),
        ("verify-ca", (SslMode::Require, Proof::Authority)),
        ("verify-full", (SslMode::Require, Proof::Name)),
    ];
    let authorities = settings.get("sslrootcert");
    let by_system = authorities == Some("system");
    // The system's authorities sign for anyone, so that only the name proves something.
    let default = if by_system { modes[5].1 } else { modes[2].1 };
    let (mode, mut proof) = settings.word("sslmode", &modes, default)?;
    if by_system && proof != Proof::Name {
        return Err(wrong("`sslrootcert` is `system`, which needs `sslmode` to be `verify-full`"));
    }
    if mode == SslMode::Require && proof == Proof::None && authorities.is_some() {
        proof = Proof::Authority;
    }
    let provider = Arc::new(ring::default_provider());
    let authority = match proof {
        Proof::None => None,
        Proof::Authority | Proof::Name => Some(Authority::new(authorities, &provider)?),
    };
    let verifier = Verifier { provider: Arc::clone(&provider), authority, named: proof == Proof::Name };
    let failed = |error: rustls::Error| wrong(format!("encryption cannot be set up: {error}"));
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match (settings.get("sslcert"), settings.get("sslkey")) {
        (Some(certificate), Some(key)) if mode != SslMode::Disable => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("sslkey", key, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(failed)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok((mode, MakeRustlsConnect::new(config)))
}

fn wrong(message: impl Into<String>) -> DataError {
    DataError::new(DataErrorKind::TableOpen, message)
}

fn unreadable(name: &str, file: &str, error: &dyn std::fmt::Display) -> DataError {
    wrong(format!("`{name}`: {file} cannot be read: {error}")).expected("a file in PEM format")
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, DataError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    read.map_err(|error| unreadable("a certificate", file, &error))
}

/// The certificates that are trusted.
#[derive(Debug)]
struct Authority {
    /// Verifies certificates that they signed.
    signed: Arc<WebPkiServerVerifier>,
    /// Those of the file: a server may show one of them itself.
    own: Vec<CertificateDer<'static>>,
}

impl Authority {
    fn new(file: Option<&str>, provider: &Arc<CryptoProvider>) -> Result<Self, DataError> {
        let file = file.ok_or_else(|| {
            wrong("the server's certificate cannot be verified: no authority is known")
                .expected("~/.postgresql/root.crt, or `sslrootcert` with a file or `system`")
        })?;
        let (all, own) = match file {
            "system" => (rustls_native_certs::load_native_certs().certs, Vec::new()),
            file => certificates(file).map(|read| (read.clone(), read))?,
        };
        let mut roots = RootCertStore::empty();
        if roots.add_parsable_certificates(all).0 == 0 {
            return Err(wrong(format!("`sslrootcert`: {file} holds no certificate of an authority")));
        }
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
        let failed = |error| wrong(format!("encryption cannot be set up: {error}"));
        Ok(Self { signed: signed.map_err(failed)?, own })
    }

    /// Verifies a certificate, and that it is for the server's name if `named`.
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        named: bool,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        // A self-signed certificate is also that of an authority, which the verifier does not accept from a server.
        if self.own.contains(end_entity) {
            is_valid_at(end_entity, now)?;
            return if named { verify_server_name(&ParsedCertificate::try_from(end_entity)?, name) } else { Ok(()) };
        }
        match self.signed.verify_server_cert(end_entity, intermediates, name, &[], now) {
            // Names are compared after everything else.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !named => Ok(()),
            verified => verified.map(|_| ()),
        }
    }
}

/// Compares a certificate's dates with the clock.
fn is_valid_at(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    let bad = || rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
    let validity = x509_cert::Certificate::from_der(certificate).map_err(|_| bad())?.tbs_certificate.validity;
    let (from, until) = (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
    let now = Duration::from_secs(now.as_secs());
    match (now < from, now > until) {
        (true, _) => Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYet)),
        (_, true) => Err(rustls::Error::InvalidCertificate(CertificateError::Expired)),
        _ => Ok(()),
    }
}

/// Verifies as much as requested, and always that the server has the key of its certificate.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    authority: Option<Authority>,
    named: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(authority) = &self.authority {
            authority.verify(end_entity, intermediates, server_name, self.named, now)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
