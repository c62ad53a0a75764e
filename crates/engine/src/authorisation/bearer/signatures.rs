//! Signatures of tokens, verified by the cryptography library that TLS uses already.
//!
//! The token library leaves this to its user. Its own options would add a second implementation of everything, one of
//! them with C code and the other with an RSA that is not constant-time.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use signature::Verifier;

/// Registers this as the cryptography provider of the token library. There is one per process, and only this one is
/// registered.
pub(super) fn install() {
    // A second call changes nothing.
    let _ = PROVIDER.install_default();
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Tokens are verified here, never issued.
fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let check = SignatureCheck::of(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    Ok(Box::new(RingVerifier { algorithm: *algorithm, check, key: key.clone() }))
}

/// How a signature is verified.
#[derive(Clone, Copy)]
enum SignatureCheck {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

impl SignatureCheck {
    /// `None` for everything that is not a signature with a public key.
    fn of(algorithm: Algorithm) -> Option<SignatureCheck> {
        let checks = [
            (Algorithm::RS256, SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA256)),
            (Algorithm::RS384, SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA384)),
            (Algorithm::RS512, SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA512)),
            (Algorithm::PS256, SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA256)),
            (Algorithm::PS384, SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA384)),
            (Algorithm::PS512, SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA512)),
            (Algorithm::ES256, SignatureCheck::Curve(&ECDSA_P256_SHA256_FIXED)),
            (Algorithm::ES384, SignatureCheck::Curve(&ECDSA_P384_SHA384_FIXED)),
            (Algorithm::EdDSA, SignatureCheck::Curve(&ED25519)),
        ];
        checks.into_iter().find(|(known, _)| *known == algorithm).map(|(_, check)| check)
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    check: SignatureCheck,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (self.check, self.key.kind()) {
            (SignatureCheck::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (SignatureCheck::Curve(curve), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(curve, point).verify(message, signature)
            }
            (SignatureCheck::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (SignatureCheck::Curve(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                Err(ring::error::Unspecified)
            }
        };
        verified.map_err(|_| signature::Error::new())
    }
}
