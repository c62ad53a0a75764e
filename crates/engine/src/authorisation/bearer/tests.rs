//! Valid and invalid tokens, signed with keys made for these tests.

use super::*;
use crate::authorisation::roles::{Assignee, RoleAssignment, RoleDefinition};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value as Json, json};

/// A key without any use elsewhere: ring cannot generate RSA keys, so it was generated beforehand.
const RSA_KEY: &str = include_str!("rsa_key_of_tests.txt");
const NOW: u64 = 1_700_000_000;
const ISSUER: &str = "https://issuer.example/tenant/v2.0";
const AUDIENCE: &str = "https://cosmos.example";

/// The issuer with its two keys.
struct Issuer {
    rsa: RsaKeyPair,
    curve: EcdsaKeyPair,
}

impl Issuer {
    fn new() -> Issuer {
        let der = BASE64_STANDARD.decode(RSA_KEY.replace('\n', "")).unwrap();
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Issuer {
            rsa: RsaKeyPair::from_pkcs8(&der).unwrap(),
            curve: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random)
                .unwrap(),
        }
    }

    fn public_rsa(&self) -> PublicKeyComponents<Vec<u8>> {
        PublicKeyComponents::from(self.rsa.public())
    }

    fn key_set(&self) -> Json {
        let PublicKeyComponents { n, e } = self.public_rsa();
        let point = self.curve.public_key().as_ref();
        json!({ "keys": [
            { "kty": "RSA", "use": "sig", "kid": "rsa", "n": url(&n), "e": url(&e), "x5c": ["ignored"] },
            { "kty": "EC", "kid": "curve", "crv": "P-256", "x": url(&point[1..33]), "y": url(&point[33..]) },
            { "kty": "RSA", "use": "enc", "kid": "encryption", "n": url(&n), "e": url(&e) },
            { "kty": "RSA", "alg": "RS512", "kid": "only-512", "n": url(&n), "e": url(&e) },
            { "kty": "oct", "kid": "shared", "alg": "HS256", "k": url(b"shared secret of thirty-two bytes") },
            { "kty": "new", "kid": "unknown" },
        ]})
    }

    fn options(&self, algorithms: &[&str]) -> IdentityOptions {
        let role = RoleDefinition { name: "reader".to_owned(), actions: model::DataAction::ALL.to_vec() };
        let assignment = RoleAssignment {
            assignee: Assignee::Principal("ada".to_owned()),
            role: "reader".to_owned(),
            scope: model::ScopeName::Account,
        };
        IdentityOptions {
            issuer: ISSUER.to_owned(),
            audiences: vec!["https://other.example".to_owned(), AUDIENCE.to_owned()],
            algorithms: algorithms.iter().map(|name| (*name).to_owned()).collect(),
            key_set: self.key_set().to_string().into_bytes(),
            leeway_seconds: 60,
            roles: RoleTable::new(vec![role], vec![assignment]).unwrap(),
        }
    }

    fn sign_rsa(&self, header: &Json, claims: &Json) -> String {
        let text = unsigned(header, claims);
        let mut signature = vec![0; self.rsa.public().modulus_len()];
        self.rsa.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
        format!("{text}.{}", url(&signature))
    }

    fn sign_curve(&self, header: &Json, claims: &Json) -> String {
        let text = unsigned(header, claims);
        let signature = self.curve.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", url(signature.as_ref()))
    }
}

fn url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn unsigned(header: &Json, claims: &Json) -> String {
    format!("{}.{}", url(header.to_string().as_bytes()), url(claims.to_string().as_bytes()))
}

fn sign_secret(secret: &[u8], header: &Json, claims: &Json) -> String {
    let text = unsigned(header, claims);
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(text.as_bytes());
    format!("{text}.{}", url(&mac.finalize().into_bytes()))
}

fn rsa_header() -> Json {
    json!({ "typ": "JWT", "alg": "RS256", "kid": "rsa" })
}

fn claims() -> Json {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 3600, "nbf": NOW - 10, "iat": NOW - 10, "oid": "ada", "sub": "s" })
}

/// The claims with one of them changed; `null` removes it.
fn with(name: &str, value: Json) -> Json {
    let mut claims = claims();
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

#[test]
fn genuine_tokens_of_either_key_are_taken() {
    let issuer = Issuer::new();
    let identity = Identity::new(issuer.options(&["RS256", "ES256"])).unwrap();
    let tokens = [
        issuer.sign_rsa(&rsa_header(), &claims()),
        issuer.sign_curve(&json!({ "alg": "ES256", "kid": "curve" }), &claims()),
        issuer.sign_rsa(&rsa_header(), &with("aud", json!(["https://x.example", AUDIENCE]))),
        issuer.sign_rsa(&rsa_header(), &with("oid", Json::Null)),
    ];
    for token in tokens {
        let first = identity.verify(&token, NOW).unwrap();
        assert_eq!(identity.verify(&token, NOW).unwrap(), first, "the remembered one");
    }
}

#[test]
fn forged_and_foreign_tokens_are_refused_each_for_its_reason() {
    let issuer = Issuer::new();
    let stranger = Issuer { rsa: Issuer::new().rsa, curve: Issuer::new().curve };
    let identity = Identity::new(issuer.options(&["RS256", "ES256"])).unwrap();
    let rsa = |claims: &Json| issuer.sign_rsa(&rsa_header(), claims);
    let good = rsa(&claims());
    let (text, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = text.split_once('.').unwrap();
    let other_claims = url(with("oid", json!("root")).to_string().as_bytes());
    let public = issuer.public_rsa();
    let curve_header = json!({ "alg": "ES256", "kid": "curve" });
    let none = json!({ "alg": "none", "kid": "rsa" });
    let shared = json!({ "alg": "HS256", "kid": "rsa" });
    let cases = [
        (rsa(&with("iss", json!("https://evil.example"))), BearerFault::Issuer),
        (rsa(&with("iss", json!([ISSUER]))), BearerFault::Malformed),
        (rsa(&with("iss", Json::Null)), BearerFault::Malformed),
        (rsa(&with("aud", json!("https://evil.example"))), BearerFault::Audience),
        (rsa(&with("aud", json!([]))), BearerFault::Audience),
        (rsa(&with("aud", Json::Null)), BearerFault::Audience),
        (rsa(&with("exp", Json::Null)), BearerFault::Malformed),
        (rsa(&with("exp", json!("tomorrow"))), BearerFault::Malformed),
        (rsa(&with("exp", json!(-1))), BearerFault::Malformed),
        (rsa(&with("nbf", Json::Null)), BearerFault::Malformed),
        (issuer.sign_rsa(&json!({ "alg": "RS256", "kid": "other" }), &claims()), BearerFault::UnknownKey),
        (issuer.sign_rsa(&json!({ "alg": "RS256" }), &claims()), BearerFault::UnknownKey),
        (
            issuer.sign_rsa(&json!({ "alg": "RS256", "kid": "encryption" }), &claims()),
            BearerFault::UnknownKey,
        ),
        (issuer.sign_rsa(&json!({ "alg": "RS256", "kid": "only-512" }), &claims()), BearerFault::Algorithm),
        (issuer.sign_rsa(&json!({ "alg": "RS256", "kid": "curve" }), &claims()), BearerFault::Algorithm),
        (issuer.sign_rsa(&json!({ "alg": "RS512", "kid": "rsa" }), &claims()), BearerFault::Algorithm),
        (
            issuer.sign_rsa(&json!({ "alg": "RS256", "kid": "rsa", "crit": ["b64"] }), &claims()),
            BearerFault::Algorithm,
        ),
        (stranger.sign_curve(&curve_header, &claims()), BearerFault::Signature),
        (format!("{text}."), BearerFault::Signature),
        (format!("{header}.{other_claims}.{signature}"), BearerFault::Signature),
        (format!("{}.", unsigned(&none, &claims())), BearerFault::Malformed),
        (format!("{}.{signature}", unsigned(&none, &claims())), BearerFault::Malformed),
        (sign_secret(&public.n, &shared, &claims()), BearerFault::Algorithm),
        (sign_secret(RSA_KEY.as_bytes(), &shared, &claims()), BearerFault::Algorithm),
        (
            sign_secret(
                b"shared secret of thirty-two bytes",
                &json!({ "alg": "HS256", "kid": "shared" }),
                &claims(),
            ),
            BearerFault::Algorithm,
        ),
        (String::new(), BearerFault::Malformed),
        (text.to_owned(), BearerFault::Malformed),
        (format!("{good}.{signature}"), BearerFault::Malformed),
        ("..".to_owned(), BearerFault::Malformed),
        (good.repeat(100), BearerFault::Malformed),
    ];
    for (index, (token, expected)) in cases.iter().enumerate() {
        assert_eq!(identity.verify(token, NOW), Err(*expected), "case {index}");
        assert_eq!(identity.verify(token, NOW), Err(*expected), "case {index}, again");
    }
    let mut nobody = with("oid", Json::Null);
    nobody.as_object_mut().unwrap().remove("sub");
    assert_eq!(identity.verify(&rsa(&nobody), NOW), Err(BearerFault::Nobody));
    assert!(identity.verify(&good, NOW).is_ok());
}

#[test]
fn a_token_within_the_limit_of_size_is_taken_and_a_larger_one_is_not() {
    let issuer = Issuer::new();
    let identity = Identity::new(issuer.options(&["RS256"])).unwrap();
    let sized = |bytes: usize| issuer.sign_rsa(&rsa_header(), &with("filler", json!("x".repeat(bytes))));
    assert!(identity.verify(&sized(11_000), NOW).is_ok());
    assert_eq!(identity.verify(&sized(13_000), NOW), Err(BearerFault::Malformed));
}

#[test]
fn times_count_with_their_leeway_also_for_tokens_that_are_remembered() {
    let issuer = Issuer::new();
    let identity = Identity::new(issuer.options(&["RS256"])).unwrap();
    let token = issuer.sign_rsa(&rsa_header(), &claims());
    let at = |now| identity.verify(&token, now).map(drop);
    for _ in 0..2 {
        assert_eq!(at(NOW - 70), Ok(()));
        assert_eq!(at(NOW - 71), Err(BearerFault::NotYetValid { seconds_ahead: 61 }));
        assert_eq!(at(NOW + 3600 + 59), Ok(()));
        assert_eq!(at(NOW + 3600 + 60), Err(BearerFault::Expired { seconds_ago: 60 }));
    }
}

#[test]
fn memory_of_tokens_is_bounded() {
    let issuer = Issuer::new();
    let identity = Identity::new(issuer.options(&["ES256"])).unwrap();
    let header = json!({ "alg": "ES256", "kid": "curve" });
    for index in 0..=REMEMBERED_MAX {
        identity.verify(&issuer.sign_curve(&header, &with("jti", json!(index))), NOW).unwrap();
    }
    assert_eq!(identity.remembered.lock().unwrap().len(), 1);
}

#[test]
fn an_operator_s_mistake_is_told() {
    let issuer = Issuer::new();
    let wrong = |change: &dyn Fn(&mut IdentityOptions)| {
        let mut options = issuer.options(&["RS256"]);
        change(&mut options);
        Identity::new(options).unwrap_err()
    };
    for name in ["none", "HS256", "rs256", "ES512", ""] {
        assert!(
            wrong(&|options| options.algorithms = vec![name.to_owned()]).contains("no algorithm"),
            "{name}"
        );
    }
    assert!(wrong(&|options| options.algorithms.clear()).contains("algorithm"));
    assert!(wrong(&|options| options.algorithms = vec!["EdDSA".to_owned()]).contains("no key"));
    assert!(wrong(&|options| options.audiences.clear()).contains("audience"));
    assert!(wrong(&|options| options.issuer.clear()).contains("issuer"));
    assert!(wrong(&|options| options.key_set = b"{}".to_vec()).contains("key set"));
    let twice = issuer.key_set().to_string().replace("only-512", "rsa").into_bytes();
    assert!(wrong(&|options| options.key_set = twice.clone()).contains("two keys"));
}
