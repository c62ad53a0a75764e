//! The server's TLS identity: the user's certificate, or one from the local authority.
//!
//! The authority is created once and kept with the data, so that a client trusts it once. The server's certificate is
//! issued again at every start (a fraction of a millisecond) and long before it expires, and contains every name of
//! this machine. The user's certificate is reloaded when its file changes, as renewal tools expect.

use crate::failure::Failure;
use crate::files::{self, WatchedFiles};
use crate::settings::CertificateFiles;
use arc_swap::ArcSwap;
use model::Ambient;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;

/// Validity of the authority.
const AUTHORITY_DAYS: i64 = 3650;
/// Validity of a server certificate: the longest that clients accept.
const LEAF_DAYS: i64 = 397;
/// Renewal interval of the server certificate.
const LEAF_RENEWAL: Duration = Duration::from_secs(60 * 24 * 60 * 60);
/// Certificates are backdated a little, for clients whose clock is slow.
const BACKDATED_DAYS: i64 = 1;
/// Poll interval of the user's files.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) enum CertificateSource {
    Files(CertificateFiles),
    /// The local authority, kept in a folder or, without one, in memory. `names` are added to the names of this
    /// machine.
    Authority {
        folder: Option<PathBuf>,
        names: Vec<String>,
    },
}

/// The TLS configuration of the listener, and the certificates that clients must trust.
pub(crate) struct Tls {
    /// Replaced with the certificate; a connection keeps the configuration it started with.
    pub(crate) config: ArcSwap<ServerConfig>,
    /// Certificates for clients to trust.
    pub(crate) trust_pem: String,
    source: CertificateSource,
    /// The user's files in their state before they were read.
    watched: WatchedFiles,
    /// The authority's private key, PEM; empty with the user's certificate.
    authority_key: String,
}

impl Tls {
    /// Creates or reads the server's identity.
    pub(crate) fn prepare(source: CertificateSource, ambient: &dyn Ambient) -> Result<Tls, Failure> {
        let now = calendar_time(ambient)?;
        let watched = match &source {
            CertificateSource::Files(files) => {
                WatchedFiles::new([files.certificate.clone(), files.key.clone()])
            }
            CertificateSource::Authority { .. } => WatchedFiles::new([]),
        };
        let (trust_pem, authority_key, config) = match &source {
            CertificateSource::Files(files) => (read(&files.certificate)?, String::new(), from_files(files)?),
            CertificateSource::Authority { folder, names } => {
                let (certificate, key) = match folder {
                    Some(folder) => load_or_make(folder, now)?,
                    None => make_authority(now).map_err(failed)?,
                };
                let config = from_authority(&key, names, now)?;
                (certificate, key, config)
            }
        };
        Ok(Tls { config: ArcSwap::from_pointee(config), trust_pem, source, watched, authority_key })
    }

    /// Renews or reloads the certificate until cancelled. An invalid file changes nothing.
    pub(crate) async fn watch(&self, ambient: &dyn Ambient) {
        match &self.source {
            CertificateSource::Files(files) => {
                let mut watched = self.watched.clone();
                loop {
                    tokio::time::sleep(POLL_INTERVAL).await;
                    if watched.changed() {
                        self.replace(from_files(files));
                    }
                }
            }
            CertificateSource::Authority { names, .. } => loop {
                tokio::time::sleep(LEAF_RENEWAL).await;
                self.replace(
                    calendar_time(ambient).and_then(|now| from_authority(&self.authority_key, names, now)),
                );
            },
        }
    }

    fn replace(&self, config: Result<ServerConfig, Failure>) {
        match config {
            Ok(config) => {
                self.config.store(Arc::new(config));
                tracing::info!(event = "certificate_reloaded", "the TLS certificate was reloaded");
            }
            // Renewal tools write two files; the second change will be seen too.
            Err(failure) => {
                tracing::warn!(event = "certificate_rejected", %failure, "the changed TLS certificate is invalid; the old one stays in use")
            }
        }
    }
}

fn calendar_time(ambient: &dyn Ambient) -> Result<OffsetDateTime, Failure> {
    let now = i64::try_from(ambient.now_seconds()).ok();
    let now = now.and_then(|now| OffsetDateTime::from_unix_timestamp(now).ok());
    now.ok_or_else(|| Failure::Failed("the system clock is outside the supported range".to_owned()))
}

/// The configuration with the user's certificate.
fn from_files(files: &CertificateFiles) -> Result<ServerConfig, Failure> {
    let wrong = |path: &Path, cause: &dyn std::fmt::Display| {
        Failure::Configuration(format!("\"{}\" cannot be used for TLS: {cause}", path.display()))
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(read(&files.certificate)?.as_bytes()).collect();
    let chain = chain.map_err(|cause| wrong(&files.certificate, &cause))?;
    if chain.is_empty() {
        return Err(wrong(&files.certificate, &"it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(read(&files.key)?.as_bytes())
        .map_err(|cause| wrong(&files.key, &cause))?;
    server_config(chain, key).map_err(|cause| wrong(&files.certificate, &cause))
}

fn load_or_make(folder: &Path, now: OffsetDateTime) -> Result<(String, String), Failure> {
    let certificate = folder.join("authority.pem");
    let key = folder.join("authority-key.pem");
    if certificate.exists() && key.exists() {
        check_authority(folder, CertificateFiles { certificate: certificate.clone(), key: key.clone() })?;
        return Ok((read(&certificate)?, read(&key)?));
    }
    let (certificate_pem, key_pem) = make_authority(now).map_err(failed)?;
    files::make_private_folder(folder)?;
    files::write_private(&key, &key_pem)?;
    files::write_private(&certificate, &certificate_pem)?;
    Ok((certificate_pem, key_pem))
}

/// Refuses an authority whose files are damaged or do not fit together: no client could trust the server.
fn check_authority(folder: &Path, files: CertificateFiles) -> Result<(), Failure> {
    match from_files(&files) {
        Ok(_) => Ok(()),
        Err(Failure::Configuration(cause)) => Err(Failure::Configuration(format!(
            "{cause}; restore it from a backup, or remove the folder \"{}\" to have a new authority made, which \
             clients must trust anew",
            folder.display()
        ))),
        Err(failure) => Err(failure),
    }
}

/// The authority's certificate parameters; a signer created from them again has the same name.
fn authority_params(now: OffsetDateTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name = named("Perihelion local authority");
    set_validity(&mut params, now, AUTHORITY_DAYS);
    params
}

fn make_authority(now: OffsetDateTime) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    Ok((authority_params(now).self_signed(&key)?.pem(), key.serialize_pem()))
}

/// The configuration with a new certificate of the local authority.
fn from_authority(
    authority_key: &str,
    names: &[String],
    now: OffsetDateTime,
) -> Result<ServerConfig, Failure> {
    let authority_key = KeyPair::from_pem(authority_key).map_err(failed)?;
    let issuer = Issuer::new(authority_params(now), authority_key);
    let mut params = CertificateParams::new(host_names(names)).map_err(failed)?;
    params.distinguished_name = named("localhost");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, now, LEAF_DAYS);
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    server_config(vec![certificate.der().clone()], key).map_err(failed)
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// All host names of this machine.
fn host_names(others: &[String]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    for name in std::iter::once(host.trim()).chain(others.iter().map(String::as_str)) {
        if !name.is_empty() && names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished_name = DistinguishedName::new();
    distinguished_name.push(DnType::CommonName, name);
    distinguished_name.push(DnType::OrganizationName, "Perihelion");
    distinguished_name
}

fn set_validity(params: &mut CertificateParams, now: OffsetDateTime, days: i64) {
    params.not_before = now - time::Duration::days(BACKDATED_DAYS);
    params.not_after = now + time::Duration::days(days - BACKDATED_DAYS);
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|cause| files::failed("read", path, &cause))
}

fn failed(cause: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("cannot prepare TLS: {cause}"))
}
