//! Signs requests with the emulator keys, as the official SDKs do.

use crate::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::time::SystemTime;

pub(crate) const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The account of the storage emulators, and its key.
pub(crate) const STORAGE_ACCOUNT: &str = "devstoreaccount1";
const STORAGE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A signer with its keys prepared and its date fixed: valid for fifteen minutes.
#[derive(Clone)]
pub(crate) struct Signer {
    mac: Hmac<Sha256>,
    storage_mac: Hmac<Sha256>,
    pub(crate) date: String,
}

impl Signer {
    #[allow(clippy::disallowed_methods)] // a client's clock
    pub(crate) fn new() -> Result<Signer> {
        let mac = Hmac::new_from_slice(&STANDARD.decode(EMULATOR_KEY)?)?;
        let storage_mac = Hmac::new_from_slice(&STANDARD.decode(STORAGE_KEY)?)?;
        Ok(Signer { mac, storage_mac, date: httpdate::fmt_http_date(SystemTime::now()) })
    }

    /// The same keys at another date.
    pub(crate) fn at(&self, date: &str) -> Signer {
        Signer { date: date.to_owned(), ..self.clone() }
    }

    /// The value of the authorization header of a Table request to `path`, which begins with the account.
    pub(crate) fn shared_key_lite(&self, path: &str) -> String {
        let mut mac = self.storage_mac.clone();
        for part in [&self.date, "\n/", STORAGE_ACCOUNT, path] {
            mac.update(part.as_bytes());
        }
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        format!("SharedKeyLite {STORAGE_ACCOUNT}:{signature}")
    }

    /// The base64 signature of a request.
    pub(crate) fn sign(&self, verb: &str, resource_type: &str, link: &str) -> String {
        let mut mac = self.mac.clone();
        let date = self.date.to_ascii_lowercase();
        for part in [verb, "\n", resource_type, "\n", link, "\n", &date, "\n\n"] {
            mac.update(part.as_bytes());
        }
        STANDARD.encode(mac.finalize().into_bytes())
    }

    /// The value of the authorization header.
    pub(crate) fn authorization(&self, verb: &str, resource_type: &str, link: &str) -> String {
        let signature = self.sign(verb, resource_type, link);
        let mut text = String::with_capacity(120);
        text.push_str("type%3Dmaster%26ver%3D1.0%26sig%3D");
        for character in signature.chars() {
            match character {
                '+' => text.push_str("%2B"),
                '/' => text.push_str("%2F"),
                '=' => text.push_str("%3D"),
                other => text.push(other),
            }
        }
        text
    }
}
