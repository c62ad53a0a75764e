//! Client encryption keys: data keys that only clients can unwrap. The server stores and returns them.

use crate::{
    DecodeFault, Decoder, DefinitionPart, DefinitionRule, Encoder, Opaque, OpaqueMembers, RequestFault,
    checked_name,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// A wrapped data key and what a client needs to unwrap it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEncryptionKeyDefinition {
    id: String,
    algorithm: String,
    /// In base64, as sent.
    wrapped_key: String,
    /// Type, name, value and algorithm of the wrapping key, as sent.
    metadata: OpaqueMembers,
}

/// Required fields of the metadata.
const METADATA_FIELDS: [&str; 4] = ["type", "name", "value", "algorithm"];

impl ClientEncryptionKeyDefinition {
    /// A key that was wrapped with the key that `metadata` describes.
    pub fn new(
        id: &str,
        algorithm: &str,
        wrapped_key: &str,
        metadata: OpaqueMembers,
    ) -> Result<ClientEncryptionKeyDefinition, RequestFault> {
        let id = checked_name(id)?.to_owned();
        if algorithm.is_empty() {
            return Err(DefinitionPart::EncryptionAlgorithm.violates(DefinitionRule::NotEmpty));
        }
        let bytes = BASE64_STANDARD
            .decode(wrapped_key)
            .map_err(|_| DefinitionPart::WrappedKey.violates(DefinitionRule::Base64))?;
        if bytes.is_empty() {
            return Err(DefinitionPart::WrappedKey.violates(DefinitionRule::NotEmpty));
        }
        for name in METADATA_FIELDS {
            match metadata.get(name) {
                Some(Opaque::Text(text)) if !text.is_empty() => {}
                Some(_) | None => {
                    return Err(DefinitionPart::WrapMetadata.violates(DefinitionRule::MissingText { name }));
                }
            }
        }
        let (algorithm, wrapped_key) = (algorithm.to_owned(), wrapped_key.to_owned());
        Ok(ClientEncryptionKeyDefinition { id, algorithm, wrapped_key, metadata })
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The encryption algorithm that clients use with it.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// The wrapped key in base64.
    pub fn wrapped_key(&self) -> &str {
        &self.wrapped_key
    }

    /// The description of the wrapping key.
    pub fn metadata(&self) -> &OpaqueMembers {
        &self.metadata
    }
}

impl ClientEncryptionKeyDefinition {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.text(&self.id);
        out.text(&self.algorithm);
        out.text(&self.wrapped_key);
        self.metadata.encode(out);
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<ClientEncryptionKeyDefinition, DecodeFault> {
        Ok(ClientEncryptionKeyDefinition {
            id: input.text("name of an encryption key")?,
            algorithm: input.text("algorithm of an encryption key")?,
            wrapped_key: input.text("wrapped key")?,
            metadata: OpaqueMembers::decode(input, "metadata of an encryption key")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_bytes_and_the_key_that_wrapped_it() {
        let metadata = |missing: &str| -> OpaqueMembers {
            let names = METADATA_FIELDS.into_iter().filter(|name| *name != missing);
            names.map(|name| (name.to_owned(), Opaque::Text(name.to_owned()))).collect()
        };
        let is_good = |id, algorithm, key, missing| {
            ClientEncryptionKeyDefinition::new(id, algorithm, key, metadata(missing)).is_ok()
        };
        assert!(is_good("k", "A", "AQIDBA==", ""));
        assert!(!is_good("a/b", "A", "AQIDBA==", "") && !is_good("k", "", "AQIDBA==", ""));
        assert!(!is_good("k", "A", "***", "") && !is_good("k", "A", "", ""));
        for missing in METADATA_FIELDS {
            assert!(!is_good("k", "A", "AQIDBA==", missing), "{missing}");
        }
    }
}
