//! Bearer tokens of an identity provider: what each role may do, and that a caller outside its role learns nothing.

use crate::batches::{batch, part};
use crate::client::{Answer, Call, Client, NOW, Signing, address, code};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::{Assignee, Identity, IdentityOptions, RoleAssignment, RoleDefinition, RoleTable};
use model::{DataAction, ScopeName};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

/// An issuer of tokens, and an account with a table that accepts them.
struct Setting {
    client: Client,
    issuer: EcdsaKeyPair,
}

const READER: [DataAction; 4] =
    [DataAction::ReadMetadata, DataAction::ReadDocument, DataAction::Query, DataAction::ReadChangeFeed];

impl Setting {
    async fn new() -> Setting {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let issuer =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let client = Client::with_table().await;
        client.insert(r#"{"PartitionKey":"p","RowKey":"r","n":1}"#).await;
        client.send(Call::new("POST", "Tables").json(r#"{"TableName":"other"}"#)).await.expect(201);
        client.engine.access().replace_identity(Some(identity(issuer.public_key().as_ref())));
        Setting { client, issuer }
    }

    /// A token for this principal that expires in this number of seconds.
    fn token(&self, principal: &str, seconds: i64) -> Signing {
        let expires = NOW.checked_add_signed(seconds).unwrap();
        let header = json!({ "alg": "ES256", "kid": "1" });
        let claims =
            json!({ "iss": "issuer", "aud": "account", "exp": expires, "nbf": NOW - 1000, "oid": principal });
        let text = format!("{}.{}", url(header.to_string().as_bytes()), url(claims.to_string().as_bytes()));
        let signature = self.issuer.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        Signing::Header(format!("Bearer {text}.{}", url(signature.as_ref())))
    }

    async fn send(&self, principal: &str, call: Call) -> Answer {
        self.client.send(call.signing(self.token(principal, 60))).await
    }
}

fn url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn identity(point: &[u8]) -> Identity {
    let key =
        json!({ "kty": "EC", "kid": "1", "crv": "P-256", "x": url(&point[1..33]), "y": url(&point[33..]) });
    let role = |name: &str, actions: &[DataAction]| RoleDefinition {
        name: name.to_owned(),
        actions: actions.to_vec(),
    };
    let roles = vec![
        role("reader", &READER),
        role("contributor", &DataAction::ALL),
        role("creator", &[DataAction::CreateDocument]),
    ];
    let container = |name: &str| ScopeName::Container {
        database: table::DATABASE.to_owned(),
        container: name.to_owned(),
    };
    let assignments = [
        ("reader", "reader", ScopeName::Account),
        ("contributor", "contributor", ScopeName::Account),
        ("creator", "creator", ScopeName::Account),
        ("reader of people", "reader", container("people")),
        ("contributor to other", "contributor", container("other")),
        ("contributor elsewhere", "contributor", ScopeName::Database("elsewhere".to_owned())),
    ];
    let assignments = assignments.map(|(principal, role, scope)| RoleAssignment {
        assignee: Assignee::Principal(principal.to_owned()),
        role: role.to_owned(),
        scope,
    });
    let options = IdentityOptions {
        issuer: "issuer".to_owned(),
        audiences: vec!["account".to_owned()],
        algorithms: vec!["ES256".to_owned()],
        key_set: json!({ "keys": [key] }).to_string().into_bytes(),
        leeway_seconds: 0,
        roles: RoleTable::new(roles, assignments.to_vec()).unwrap(),
    };
    Identity::new(options).unwrap()
}

/// Requests on the data of `people` that succeed for a holder of the key, each as often as it is sent.
fn reads() -> Vec<Call> {
    let query = |filter: &str| Call::get(format!("people()?$filter={filter}"));
    vec![
        Call::get(address("p", "r")),
        Call::get("people()"),
        query("n%20eq%201"),
        query("PartitionKey%20eq%20'p'%20and%20RowKey%20eq%20'r'"),
    ]
}

fn writes() -> Vec<Call> {
    let insert = r#"{"PartitionKey":"p","RowKey":"new"}"#;
    let any = |call: Call| call.header("if-match", "*");
    vec![
        Call::new("POST", "people").json(insert),
        Call::new("PUT", address("p", "r")).json("{}"),
        Call::new("MERGE", address("p", "r")).json("{}"),
        any(Call::new("PUT", address("p", "r")).json("{}")),
        any(Call::new("MERGE", address("p", "r")).json("{}")),
        batch(&[part("PUT", &address("p", "s"), "", "{}")]),
        batch(&[part("DELETE", &address("p", "s"), "If-Match: *\r\n", "")]),
        any(Call::new("DELETE", address("p", "new"))),
    ]
}

fn changes_of_tables() -> Vec<Call> {
    vec![
        Call::new("POST", "Tables").json(r#"{"TableName":"more"}"#),
        Call::new("DELETE", "Tables('people')"),
        Call::new("PUT", "people?comp=acl")
            .body("application/xml", "<SignedIdentifiers></SignedIdentifiers>"),
    ]
}

const NOT_PERMITTED: (u16, &str) = (403, "AuthorizationPermissionMismatch");

#[track_caller]
fn check_not_permitted(answer: &Answer, about: &str) {
    let (status, expected) = NOT_PERMITTED;
    assert_eq!(answer.refusal(), code(status, expected), "{about}");
    for word in ["item", "document", "container", "database"] {
        assert!(!answer.text().contains(word), "{about}: {answer:?}");
    }
}

#[tokio::test]
async fn readers_read_and_contributors_change_entities_but_no_tables() {
    let setting = Setting::new().await;
    for reader in ["reader", "contributor", "reader of people"] {
        for call in reads() {
            let about = format!("{reader} {}", call.path);
            assert_eq!(setting.send(reader, call).await.status.as_u16(), 200, "{about}");
        }
    }
    for reader in ["reader", "reader of people"] {
        for call in writes().into_iter().chain(changes_of_tables()) {
            let about = format!("{reader} {} {}", call.verb, call.path);
            check_not_permitted(&setting.send(reader, call).await, &about);
        }
    }
    assert_eq!(setting.client.entity("p", "r").await.unwrap()["n"], 1, "nothing was written");
    for call in writes() {
        let about = format!("{} {}", call.verb, call.path);
        let answer = setting.send("contributor", call).await;
        assert!(answer.status.is_success(), "{about} {answer:?}");
        assert!(!answer.text().contains("HTTP/1.1 4"), "{about} {answer:?}");
    }
    for call in changes_of_tables() {
        let about = format!("contributor {} {}", call.verb, call.path);
        check_not_permitted(&setting.send("contributor", call).await, &about);
    }
    let tables = setting.send("contributor", Call::get("Tables")).await.expect(200).json();
    assert_eq!(tables["value"].as_array().unwrap().len(), 2);
    setting.send("reader", Call::get("Tables('people')")).await.expect(200);
}

#[tokio::test]
async fn who_may_only_create_inserts_and_does_not_replace() {
    let setting = Setting::new().await;
    let mut calls = writes().into_iter();
    setting.send("creator", calls.next().unwrap()).await.expect(201);
    let insert = part("POST", "people", "", r#"{"PartitionKey":"p","RowKey":"batch"}"#);
    setting.send("creator", batch(std::slice::from_ref(&insert))).await.expect(202);
    for call in calls.chain(reads()) {
        let about = format!("{} {}", call.verb, call.path);
        check_not_permitted(&setting.send("creator", call).await, &about);
    }
    // One operation that is not permitted refuses the whole group.
    let insert = insert.replace("batch", "second");
    let mixed = batch(&[insert, part("PUT", &address("p", "r"), "", "{}")]);
    check_not_permitted(&setting.send("creator", mixed).await, "mixed");
    assert!(setting.client.entity("p", "second").await.is_none());
}

#[tokio::test]
async fn outside_of_a_role_what_is_absent_looks_like_what_is_there() {
    let setting = Setting::new().await;
    for principal in ["nobody", "contributor to other", "contributor elsewhere"] {
        for call in reads().into_iter().chain(writes()) {
            let about = format!("{principal} {} {}", call.verb, call.path);
            let there = setting.send(principal, call.clone()).await;
            check_not_permitted(&there, &about);
            let mut elsewhere = call;
            elsewhere.path = elsewhere.path.replace("people", "absent");
            elsewhere.body = String::from_utf8(elsewhere.body).unwrap().replace("people", "absent").into();
            let absent = setting.send(principal, elsewhere).await;
            check_not_permitted(&absent, &about);
            let message = |answer: &Answer| {
                let json = answer.json();
                let text = json["odata.error"]["message"]["value"].as_str().unwrap();
                text.lines().next().unwrap().replace("absent", "people")
            };
            assert_eq!(message(&there), message(&absent), "{about}");
        }
    }
    setting.send("contributor to other", Call::get("other()")).await.expect(200);
    assert_eq!(setting.client.entity("p", "r").await.unwrap()["n"], 1, "nothing was written");
}

#[tokio::test]
async fn tokens_that_are_not_valid_authenticate_nobody() {
    let setting = Setting::new().await;
    let valid = setting.token("contributor", 60);
    let forged = match &valid {
        Signing::Header(text) => Signing::Header(format!("{}AA", &text[..text.len() - 2])),
        other @ (Signing::SharedKey | Signing::Lite | Signing::None) => other.clone(),
    };
    for (signing, name) in [(setting.token("contributor", -1), "expired"), (forged, "forged")] {
        for call in reads().into_iter().chain(writes()) {
            let about = format!("{name} {} {}", call.verb, call.path);
            let storage = setting.client.refusal(call.clone().signing(signing.clone())).await;
            assert_eq!(storage, code(403, "AuthenticationFailed"), "{about}");
            let cosmos = setting.client.refusal(call.cosmos().signing(signing.clone())).await;
            assert_eq!(cosmos, code(401, "AuthenticationFailed"), "{about}");
        }
    }
    assert_eq!(setting.client.entity("p", "r").await.unwrap()["n"], 1, "nothing was written");
    setting.client.send(Call::get("people()").signing(valid)).await.expect(200);
}
