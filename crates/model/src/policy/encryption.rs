//! The client encryption policy: which properties clients encrypt. The server only sees the ciphertext.

use super::check::{repeated, within};
use crate::{
    DecodeFault, Decoder, DefinitionNumber, DefinitionPart, DefinitionRule, Encoder, EncryptionRule,
    PartitionKeyDefinition, RequestFault,
};
use value::PropertyPath;

const PART: DefinitionPart = DefinitionPart::ClientEncryption;

/// The properties that clients encrypt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEncryptionPolicy {
    /// The properties.
    pub paths: Vec<EncryptedPath>,
    /// The version of the policy's format.
    pub version: u32,
}

/// A property that clients encrypt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedPath {
    /// The property; it must be at the top level of the document.
    pub path: PropertyPath,
    /// The name of the key in the database.
    pub key_id: String,
    /// Whether equal values have equal ciphertexts.
    pub deterministic: bool,
}

impl ClientEncryptionPolicy {
    /// The supported versions of the format.
    pub const VERSIONS: std::ops::RangeInclusive<u32> = 1..=2;

    /// Refuses what clients could not decrypt or the server could not look up.
    pub fn check(&self, partition_key: &PartitionKeyDefinition) -> Result<(), RequestFault> {
        within(PART, DefinitionNumber::EncryptionVersion, self.version, ClientEncryptionPolicy::VERSIONS)?;
        let places: Vec<_> = self.paths.iter().map(|path| &path.path).collect();
        if let Some(path) = repeated(&places) {
            return Err(PART.violates(DefinitionRule::RepeatedPath(path.to_string())));
        }
        self.paths.iter().try_for_each(|path| path.check(self.version, partition_key))
    }
}

impl EncryptedPath {
    /// Refuses a nested path: only whole top-level properties are encrypted.
    pub fn check_path(path: &PropertyPath) -> Result<(), RequestFault> {
        match path.segments().len() {
            1 => Ok(()),
            _ => Err(PART.violates(EncryptionRule::Nested(path.to_string()))),
        }
    }

    /// Documents are looked up by id and partition key, so these need deterministic encryption and a later format
    /// version.
    fn check(&self, version: u32, partition_key: &PartitionKeyDefinition) -> Result<(), RequestFault> {
        EncryptedPath::check_path(&self.path)?;
        let name = self.path.segments().next();
        let is_key = partition_key.paths().iter().any(|path| path.segments().next() == name);
        if name != Some("id") && !is_key {
            return Ok(());
        }
        match (version, self.deterministic) {
            (1, _) => Err(PART.violates(EncryptionRule::Version(self.path.to_string()))),
            (_, false) => Err(PART.violates(EncryptionRule::NotDeterministic(self.path.to_string()))),
            (_, true) => Ok(()),
        }
    }
}

impl ClientEncryptionPolicy {
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.number(self.version);
        out.list(&self.paths, |out, path| path.encode(out));
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<ClientEncryptionPolicy, DecodeFault> {
        Ok(ClientEncryptionPolicy {
            version: input.number("version of the encryption policy")?,
            paths: input.list("encrypted paths", EncryptedPath::decode)?,
        })
    }
}

impl EncryptedPath {
    fn encode(&self, out: &mut Encoder) {
        out.path(&self.path);
        out.text(&self.key_id);
        out.flag(self.deterministic);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<EncryptedPath, DecodeFault> {
        Ok(EncryptedPath {
            path: input.path("encrypted path")?,
            key_id: input.text("key of an encrypted path")?,
            deterministic: input.flag("encryption type")?,
        })
    }
}
