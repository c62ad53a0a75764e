//! Tokens of an identity provider against a running server, with keys and roles that change meanwhile.

use crate::client::{Answer, Client};
use crate::process::{Server, text};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use std::path::Path;

const KEY: [(&str, &str); 1] = [("x-ms-documentdb-partitionkey", "[\"k\"]")];

/// An issuer with one key, whose id is its name.
pub(crate) struct Issuer {
    name: &'static str,
    key: EcdsaKeyPair,
}

impl Issuer {
    pub(crate) fn new(name: &'static str) -> Issuer {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Issuer { name, key }
    }

    pub(crate) fn write_key_set(&self, folder: &Path) {
        let point = self.key.public_key().as_ref();
        let key = json!({ "kty": "EC", "kid": self.name, "crv": "P-256", "x": url(&point[1..33]), "y": url(&point[33..]) });
        std::fs::write(folder.join("keys.json"), json!({ "keys": [key] }).to_string()).unwrap();
    }

    /// The header value of a token for `subject`, valid during the test.
    fn credential(&self, subject: &str) -> String {
        format!("type%3Daad%26ver%3D1.0%26sig%3D{}", self.token(subject))
    }

    /// A token for `subject`.
    pub(crate) fn token(&self, subject: &str) -> String {
        let header = json!({ "alg": "ES256", "kid": self.name });
        let claims =
            json!({ "iss": "test", "aud": "db", "exp": 4_000_000_000_u64, "nbf": 0, "oid": subject });
        let text = format!("{}.{}", url(header.to_string().as_bytes()), url(claims.to_string().as_bytes()));
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", url(signature.as_ref()))
    }
}

fn url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn write_identity(folder: &Path, reader: &str) {
    let text = format!(
        "issuer = \"test\"\naudiences = [\"db\"]\njwks-file = \"keys.json\"\nalgorithms = [\"ES256\"]\n\
         [[assignments]]\nprincipal = \"{reader}\"\nrole = \"reader\"\nscope = \"/\"\n\
         [[assignments]]\nprincipal = \"writer\"\nrole = \"contributor\"\nscope = \"/dbs/d/colls/c\"\n"
    );
    std::fs::write(folder.join("identity.toml"), text).unwrap();
}

fn send(client: &Client, credential: &str, verb: &str, path: &str, body: &str) -> Answer {
    let length = body.len();
    client.raw(&format!(
        "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {credential}\r\n{}: {}\r\n\
         content-length: {length}\r\n\r\n{body}",
        KEY[0].0, KEY[0].1
    ))
}

fn code(answer: &Answer) -> (u16, u32) {
    (answer.status, answer.header("x-ms-substatus").map_or(0, |text| text.parse().unwrap()))
}

#[test]
fn roles_decide_and_changed_files_are_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (Issuer::new("first"), Issuer::new("second"));
    first.write_key_set(folder.path());
    write_identity(folder.path(), "reader");
    let server = Server::dev(&["--identity", text(&folder.path().join("identity.toml"))]);
    let client = server.client();
    client.make_container();
    let item = r#"{"id":"1","pk":"k"}"#;
    let (docs, one) = ("/dbs/d/colls/c/docs", "/dbs/d/colls/c/docs/1");
    let ask = |credential: &str, verb: &str, path: &str, body: &str| {
        code(&send(&client, credential, verb, path, body))
    };
    let (reader, writer, nobody) =
        (first.credential("reader"), first.credential("writer"), first.credential("eve"));
    assert_eq!(ask(&reader, "POST", docs, item), (403, 5302));
    assert_eq!(ask(&writer, "POST", docs, item), (201, 0));
    for credential in [&reader, &writer] {
        assert_eq!(ask(credential, "GET", "/", ""), (200, 0));
        assert_eq!(ask(credential, "GET", one, ""), (200, 0));
        assert_eq!(ask(credential, "POST", "/dbs", r#"{"id":"x"}"#), (403, 5300));
    }
    assert_eq!(ask(&reader, "GET", "/dbs", ""), (200, 0));
    assert_eq!(ask(&writer, "GET", "/dbs", ""), (403, 5301));
    let refused = send(&client, &nobody, "GET", "/", "");
    assert_eq!(code(&refused), (403, 5301));
    assert!(
        refused.text().contains("principal [eve]")
            && refused.text().contains("readMetadata] on resource [/]")
    );
    // The issuer changes its key.
    let renewed = second.credential("reader");
    assert_eq!(ask(&renewed, "GET", one, ""), (401, 5200));
    second.write_key_set(folder.path());
    server.wait_until("the new key", |_| ask(&renewed, "GET", one, "") == (200, 0));
    assert_eq!(ask(&reader, "GET", one, ""), (401, 5200), "tokens of the old key");
    // The operator removes a role.
    write_identity(folder.path(), "another");
    server.wait_until("the new roles", |_| ask(&renewed, "GET", one, "") == (403, 5302));
    // A damaged file changes nothing.
    std::fs::write(folder.path().join("identity.toml"), "damaged").unwrap();
    let writer = second.credential("writer");
    assert_eq!(ask(&writer, "GET", one, ""), (200, 0));
}

#[test]
fn without_an_identity_file_no_token_is_taken() {
    let server = Server::dev(&[]);
    let answer = send(&server.client(), &Issuer::new("any").credential("reader"), "GET", "/", "");
    assert_eq!(code(&answer), (401, 5002));
}
