//! Every kind of credential, and an account that accepts them.

use crate::client::{Call, Client, KEY, NOW, Still, date_at};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::{
    AccountKey, Assignee, Engine, EngineOptions, Identity, IdentityOptions, KeyName, RoleAssignment,
    RoleTable,
};
use kv::{CommitMode, Store};
use partition::keyspace::SPACES;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use std::sync::Arc;

/// The credential of a caller.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    /// No credential.
    Nothing,
    /// An authorization header with this text.
    Text(&'static str),
    /// A signature with this key, made this number of seconds ago.
    Signed(&'static [u8], u64),
    /// A token for this principal that expires in this number of seconds.
    Token(&'static str, i64),
}

/// Name, role and scope of every principal with a role; the roles of one principal add up.
pub(super) const ASSIGNMENTS: [(&str, &str, &str); 9] = [
    ("reader of all", "reader", "/"),
    ("contributor to all", "contributor", "/"),
    ("item reader of all", "item reader", "/"),
    ("reader of d", "reader", "/dbs/d"),
    ("contributor to d", "contributor", "/dbs/d"),
    ("reader of d/c", "reader", "/dbs/d/colls/c"),
    ("contributor to d/c", "contributor", "/dbs/d/colls/c"),
    ("contributor to d/other", "contributor", "/dbs/d/colls/other"),
    ("contributor to e", "contributor", "/dbs/e"),
];

pub(super) const SECONDARY: &[u8] = b"the secondary key";
pub(super) const PRIMARY_READ: &[u8] = b"the first key that only reads";
pub(super) const SECONDARY_READ: &[u8] = b"the second key that only reads";

/// An account and the issuer whose tokens it accepts.
pub(super) struct Account {
    pub(super) client: Client,
    issuer: EcdsaKeyPair,
}

impl Account {
    pub(super) async fn new() -> Account {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let issuer =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let keys = vec![
            AccountKey::new(KEY),
            AccountKey::named(KeyName::Secondary, SECONDARY),
            AccountKey::named(KeyName::PrimaryReadOnly, PRIMARY_READ),
            AccountKey::named(KeyName::SecondaryReadOnly, SECONDARY_READ),
        ];
        let options = EngineOptions { keys, ..EngineOptions::default() };
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let engine = Engine::open(store, options, Arc::new(Still::default())).await.unwrap();
        engine.access().replace_identity(Some(identity(issuer.public_key().as_ref())));
        Account { client: Client::over(engine), issuer }
    }

    /// The request with the credential.
    pub(super) fn shown(&self, call: Call, shown: Shown) -> Call {
        match shown {
            Shown::Nothing => call.omit("authorization"),
            Shown::Text(text) => call.header("authorization", text),
            Shown::Signed(key, seconds_ago) => {
                let date = date_at(NOW - seconds_ago);
                let authorization = call.authorization_by(key, &date);
                call.header("x-ms-date", date).header("authorization", authorization)
            }
            Shown::Token(principal, seconds) => {
                let token = self.token(principal, seconds);
                call.omit("x-ms-date")
                    .header("authorization", format!("type%3Daad%26ver%3D1.0%26sig%3D{token}"))
            }
        }
    }

    fn token(&self, principal: &str, seconds: i64) -> String {
        let expires = NOW.checked_add_signed(seconds).unwrap();
        let header = json!({ "alg": "ES256", "kid": "1" });
        let claims =
            json!({ "iss": "issuer", "aud": "account", "exp": expires, "nbf": NOW - 1000, "oid": principal });
        let text = format!("{}.{}", url(header.to_string().as_bytes()), url(claims.to_string().as_bytes()));
        let signature = self.issuer.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", url(signature.as_ref()))
    }
}

fn url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn identity(point: &[u8]) -> Identity {
    let key =
        json!({ "kty": "EC", "kid": "1", "crv": "P-256", "x": url(&point[1..33]), "y": url(&point[33..]) });
    let role = |name: &str, action: &str| {
        let action = format!("Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/{action}");
        nosql::role(name.to_owned(), &[action]).unwrap()
    };
    let mut roles = nosql::built_in_roles();
    roles.extend([role("item reader", "read"), role("item creator", "create")]);
    let creator = ("item creator of all", "item creator", "/");
    let assignments = ASSIGNMENTS.into_iter().chain([creator]);
    let assignments = assignments.map(|(principal, role, scope)| RoleAssignment {
        assignee: Assignee::Principal(principal.to_owned()),
        role: role.to_owned(),
        scope: nosql::role_scope(scope).unwrap(),
    });
    let options = IdentityOptions {
        issuer: "issuer".to_owned(),
        audiences: vec!["account".to_owned()],
        algorithms: vec!["ES256".to_owned()],
        key_set: json!({ "keys": [key] }).to_string().into_bytes(),
        leeway_seconds: 0,
        roles: RoleTable::new(roles, assignments.collect()).unwrap(),
    };
    Identity::new(options).unwrap()
}
