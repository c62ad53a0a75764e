//! Bearer tokens of an identity provider: whether a token is valid and intended for this server, and who its holder is.
//!
//! A token is signed by its issuer with a key that the operator has put into a file; nothing is fetched. The operator
//! also chooses the accepted algorithms: what a token says about itself only selects among them. The rights of its
//! holder are not in the token but in [`super::roles`].

mod signatures;

use super::Principal;
use super::roles::{Claimant, RoleTable};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header, Validation};
use model::BearerFault;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Longest token that is accepted. Those of large organisations have some kilobytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of validated tokens that are cached. Clients send the same one for an hour.
const REMEMBERED_MAX: usize = 1024;

/// The operator's settings for the identity provider.
#[derive(Clone, Debug)]
pub struct IdentityOptions {
    /// The required issuer of a token.
    pub issuer: String,
    /// The accepted audiences: a token must name one of these.
    pub audiences: Vec<String>,
    /// Accepted signature algorithms, by the names of the standard.
    pub algorithms: Vec<String>,
    /// The issuer's public keys, a JSON Web Key Set.
    pub key_set: Vec<u8>,
    /// Allowed clock difference.
    pub leeway_seconds: u64,
    /// Roles and their assignments.
    pub roles: RoleTable,
}

/// An identity provider whose tokens are accepted.
pub struct Identity {
    validation: Validation,
    algorithms: Vec<Algorithm>,
    leeway_seconds: u64,
    issuer: String,
    keys: HashMap<String, IssuerKey>,
    roles: RoleTable,
    /// Validated tokens by the hash of their text. Their times are checked again at every use.
    remembered: Mutex<HashMap<[u8; 32], Genuine>>,
}

struct IssuerKey {
    key: DecodingKey,
    /// The algorithms of this key; a key for one algorithm is not accepted for another.
    algorithms: Vec<Algorithm>,
}

/// A token with valid signature, issuer and audience.
#[derive(Clone)]
struct Genuine {
    not_before: u64,
    expires: u64,
    principal: Principal,
}

/// The claims of a token that are read.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    exp: u64,
    nbf: u64,
    oid: Option<String>,
    sub: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    roles: Vec<String>,
}

impl Identity {
    /// Checks the operator's settings; the error says what is wrong.
    pub fn new(options: IdentityOptions) -> Result<Identity, String> {
        signatures::install();
        if options.issuer.is_empty() {
            return Err("the issuer is missing".to_owned());
        }
        if options.audiences.is_empty() || options.audiences.iter().any(String::is_empty) {
            return Err("at least one audience is needed, and none may be empty".to_owned());
        }
        let algorithms =
            options.algorithms.iter().map(|name| algorithm(name)).collect::<Result<Vec<_>, _>>()?;
        if algorithms.is_empty() {
            return Err("at least one algorithm is needed".to_owned());
        }
        let keys = issuer_keys(&options.key_set)?;
        let usable = |key: &IssuerKey| key.algorithms.iter().any(|known| algorithms.contains(known));
        if !keys.values().any(usable) {
            return Err("the key set holds no key for any of the algorithms".to_owned());
        }
        let mut validation = Validation::default();
        validation.set_issuer(&[&options.issuer]);
        validation.set_audience(&options.audiences);
        validation.set_required_spec_claims(&["exp", "nbf", "iss", "aud"]);
        // Times are compared below: the library would use the system's clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        Ok(Identity {
            validation,
            algorithms,
            leeway_seconds: options.leeway_seconds,
            issuer: options.issuer,
            keys,
            roles: options.roles,
            remembered: Mutex::new(HashMap::new()),
        })
    }

    /// The holder of `token`, which must be valid at `now_seconds`.
    pub(super) fn verify(&self, token: &str, now_seconds: u64) -> Result<Principal, BearerFault> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(BearerFault::Malformed);
        }
        let digest: [u8; 32] = Sha256::digest(token).into();
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        let genuine = match remembered {
            Some(genuine) => genuine,
            None => {
                let genuine = self.examine(token)?;
                self.remember(digest, genuine.clone());
                genuine
            }
        };
        if now_seconds >= genuine.expires.saturating_add(self.leeway_seconds) {
            return Err(BearerFault::Expired { seconds_ago: now_seconds - genuine.expires });
        }
        if genuine.not_before > now_seconds.saturating_add(self.leeway_seconds) {
            return Err(BearerFault::NotYetValid { seconds_ahead: genuine.not_before - now_seconds });
        }
        Ok(genuine.principal)
    }

    fn examine(&self, token: &str) -> Result<Genuine, BearerFault> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| BearerFault::Malformed)?;
        if !self.algorithms.contains(&header.alg) || has_critical(&header) {
            return Err(BearerFault::Algorithm);
        }
        let key = header.kid.as_ref().and_then(|id| self.keys.get(id)).ok_or(BearerFault::UnknownKey)?;
        if !key.algorithms.contains(&header.alg) {
            return Err(BearerFault::Algorithm);
        }
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let token =
            jsonwebtoken::decode::<Claims>(token, &key.key, &validation).map_err(|error| fault(&error))?;
        let claims = token.claims;
        // The library also accepts a list of issuers.
        if claims.iss != self.issuer {
            return Err(BearerFault::Issuer);
        }
        let id = claims.oid.or(claims.sub).filter(|id| !id.is_empty()).ok_or(BearerFault::Nobody)?;
        let claimant = Claimant { id, groups: claims.groups, roles: claims.roles };
        let principal = Principal::with_roles(self.roles.rights_of(claimant));
        Ok(Genuine { not_before: claims.nbf, expires: claims.exp, principal })
    }

    fn remember(&self, digest: [u8; 32], genuine: Genuine) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            // All are cleared, whether still in use or not: those in use return with their next request.
            remembered.clear();
        }
        remembered.insert(digest, genuine);
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Whether the token requires an extension to be understood. None is supported.
fn has_critical(header: &Header) -> bool {
    header.crit.is_some()
}

fn fault(error: &Error) -> BearerFault {
    let kind = error.kind();
    if matches!(kind, ErrorKind::InvalidSignature) {
        BearerFault::Signature
    } else if matches!(kind, ErrorKind::InvalidIssuer) {
        BearerFault::Issuer
    } else if matches!(kind, ErrorKind::InvalidAudience)
        || matches!(kind, ErrorKind::MissingRequiredClaim(claim) if claim == "aud")
    {
        BearerFault::Audience
    } else {
        BearerFault::Malformed
    }
}

/// An algorithm with a public key. Algorithms with a shared secret are not suitable for tokens of another issuer.
fn algorithm(name: &str) -> Result<Algorithm, String> {
    let known = [
        ("RS256", Algorithm::RS256),
        ("RS384", Algorithm::RS384),
        ("RS512", Algorithm::RS512),
        ("PS256", Algorithm::PS256),
        ("PS384", Algorithm::PS384),
        ("PS512", Algorithm::PS512),
        ("ES256", Algorithm::ES256),
        ("ES384", Algorithm::ES384),
        ("EdDSA", Algorithm::EdDSA),
    ];
    let found = known.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, algorithm)| algorithm).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        format!("\"{name}\" is no algorithm for tokens; known are {}", names.join(", "))
    })
}

/// The signing keys by their ids. Others in the set (for encryption, of unknown kinds) are skipped.
fn issuer_keys(key_set: &[u8]) -> Result<HashMap<String, IssuerKey>, String> {
    let set: JwkSet =
        serde_json::from_slice(key_set).map_err(|error| format!("the key set is invalid: {error}"))?;
    let mut keys = HashMap::new();
    for jwk in set.keys {
        let for_signatures = match &jwk.common.public_key_use {
            None | Some(PublicKeyUse::Signature) => true,
            Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_)) => false,
        };
        let (Some(id), algorithms) = (jwk.common.key_id.clone(), algorithms_of(&jwk)) else { continue };
        if !for_signatures || algorithms.is_empty() {
            continue;
        }
        let key =
            DecodingKey::from_jwk(&jwk).map_err(|error| format!("the key \"{id}\" is invalid: {error}"))?;
        if keys.insert(id.clone(), IssuerKey { key, algorithms }).is_some() {
            return Err(format!("the key set holds two keys \"{id}\""));
        }
    }
    Ok(keys)
}

/// The algorithms that a key can be used with: those of its kind, or the one that it names. A shared secret among
/// public keys is a mistake and is not used.
fn algorithms_of(jwk: &Jwk) -> Vec<Algorithm> {
    let family: &[Algorithm] = if let AlgorithmParameters::RSA(_) = &jwk.algorithm {
        AlgorithmFamily::Rsa.algorithms()
    } else if let AlgorithmParameters::EllipticCurve(key) = &jwk.algorithm {
        algorithms_on(&key.curve)
    } else if let AlgorithmParameters::OctetKeyPair(key) = &jwk.algorithm {
        algorithms_on(&key.curve)
    } else {
        &[]
    };
    let stated = jwk.common.key_algorithm;
    let can = |algorithm: &&Algorithm| stated.is_none_or(|stated| KeyAlgorithm::from(**algorithm) == stated);
    family.iter().filter(can).copied().collect()
}

/// The signature algorithms of a curve.
fn algorithms_on(curve: &EllipticCurve) -> &'static [Algorithm] {
    let known: [(EllipticCurve, &[Algorithm]); 3] = [
        (EllipticCurve::P256, &[Algorithm::ES256]),
        (EllipticCurve::P384, &[Algorithm::ES384]),
        (EllipticCurve::Ed25519, &[Algorithm::EdDSA]),
    ];
    known.into_iter().find(|(known, _)| known == curve).map_or(&[], |(_, algorithms)| algorithms)
}

#[cfg(test)]
mod tests;
