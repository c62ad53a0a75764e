//! The local certificate authority and the server's certificate.
//!
//! The authority is made once and kept with the data, so that a client trusts it once. The server's certificate is
//! made anew at every start (a fraction of a millisecond) and names every way to reach this machine.

use crate::failure::Failure;
use model::Ambient;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use time::OffsetDateTime;

/// How long the authority is valid.
const AUTHORITY_DAYS: i64 = 3650;
/// How long a server certificate is valid: the most that clients accept.
const LEAF_DAYS: i64 = 397;
/// Certificates begin a little earlier, for clients whose clock is behind.
const BACKDATED_DAYS: i64 = 1;

/// What the listener needs, and what clients may fetch to trust it.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) authority_pem: String,
}

/// Makes the server's TLS identity. Without a folder the authority lives as long as the process.
pub(crate) fn prepare(folder: Option<&Path>, ambient: &dyn Ambient) -> Result<Tls, Failure> {
    let now = i64::try_from(ambient.now_seconds())
        .ok()
        .and_then(|now| OffsetDateTime::from_unix_timestamp(now).ok());
    let now = now.ok_or_else(|| Failure::Failed("the system clock is beyond all calendars".to_owned()))?;
    let (authority_pem, key_pem) = match folder {
        Some(folder) => load_or_make(folder, now)?,
        None => make_authority(now).map_err(failed)?,
    };
    let key = KeyPair::from_pem(&key_pem).map_err(failed)?;
    let issuer = Issuer::new(authority_params(now), key);
    let config = server_config(&issuer, now)?;
    Ok(Tls { config: Arc::new(config), authority_pem })
}

fn load_or_make(folder: &Path, now: OffsetDateTime) -> Result<(String, String), Failure> {
    let certificate = folder.join("authority.pem");
    let key = folder.join("authority-key.pem");
    if certificate.exists() && key.exists() {
        return Ok((read(&certificate)?, read(&key)?));
    }
    let (certificate_pem, key_pem) = make_authority(now).map_err(failed)?;
    std::fs::create_dir_all(folder).map_err(|cause| io("create folder", folder, &cause))?;
    write_private(&key, &key_pem)?;
    std::fs::write(&certificate, &certificate_pem).map_err(|cause| io("write", &certificate, &cause))?;
    Ok((certificate_pem, key_pem))
}

/// What the authority says of itself; a signer made from it again has the same name.
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

fn server_config(issuer: &Issuer<'_, KeyPair>, now: OffsetDateTime) -> Result<ServerConfig, Failure> {
    let mut params = CertificateParams::new(host_names()).map_err(failed)?;
    params.distinguished_name = named("localhost");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, now, LEAF_DAYS);
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, issuer).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .map_err(failed)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Every name under which this machine can be called.
fn host_names() -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if !host.is_empty() && host != "localhost" {
        names.push(host.to_owned());
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
    std::fs::read_to_string(path).map_err(|cause| io("read", path, &cause))
}

/// Writes a file that only its owner can read, from the first byte on.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|cause| io("write", path, &cause))
}

fn io(attempt: &str, path: &Path, cause: &std::io::Error) -> Failure {
    Failure::Io { what: format!("cannot {attempt} \"{}\"", path.display()), cause: cause.to_string() }
}

fn failed(cause: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("cannot prepare TLS: {cause}"))
}
