//! An identity provider for tests: one key, its key set, and tokens signed with it.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use azure_core::base64::encode_url_safe;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::{Duration, OffsetDateTime};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

const NAME: &str = "https://issuer.example";
const AUDIENCE: &str = "https://cosmos.example";
/// A public key is told as a point: one byte for its form, then both coordinates.
const COORDINATE_BYTES: usize = 32;

#[derive(Debug)]
pub struct Issuer {
    pair: EcdsaKeyPair,
}

impl Issuer {
    pub fn new() -> Arc<Issuer> {
        Arc::new(Issuer { pair: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap() })
    }

    /// Writes what the server reads of this issuer, with these lines about roles, and answers the file's path.
    pub fn settings(&self, folder: &tempfile::TempDir, assignments: &str) -> PathBuf {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(COORDINATE_BYTES);
        let (x, y) = (encode_url_safe(x), encode_url_safe(y));
        let key = json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": "1", "x": x, "y": y });
        std::fs::write(folder.path().join("keys.json"), json!({ "keys": [key] }).to_string()).unwrap();
        let file = folder.path().join("identity.toml");
        let text = format!(
            "issuer = \"{NAME}\"\naudiences = [\"{AUDIENCE}\"]\njwks-file = \"keys.json\"\nalgorithms = [\"ES256\"]\n\
             assignments = [{assignments}]\n"
        );
        std::fs::write(&file, text).unwrap();
        file
    }

    /// What a client of this principal asks for tokens.
    pub fn credential(self: &Arc<Self>, principal: &'static str) -> Arc<dyn TokenCredential> {
        Arc::new(Holder { issuer: self.clone(), principal })
    }

    fn token(&self, principal: &str, now: OffsetDateTime, expiry: OffsetDateTime) -> String {
        let header = json!({ "typ": "JWT", "alg": "ES256", "kid": "1" });
        let (not_before, expiry) = (now.unix_timestamp() - 5, expiry.unix_timestamp());
        let claims =
            json!({ "iss": NAME, "aud": AUDIENCE, "oid": principal, "nbf": not_before, "exp": expiry });
        let text = format!("{}.{}", encode_url_safe(header.to_string()), encode_url_safe(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", encode_url_safe(signature))
    }
}

#[derive(Debug)]
struct Holder {
    issuer: Arc<Issuer>,
    principal: &'static str,
}

#[async_trait::async_trait]
impl TokenCredential for Holder {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let now = OffsetDateTime::now_utc();
        let expiry = now + Duration::hours(1);
        Ok(AccessToken::new(self.issuer.token(self.principal, now, expiry), expiry))
    }
}
