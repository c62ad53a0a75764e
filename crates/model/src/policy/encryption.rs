//! The client encryption policy: which properties clients encrypt. The server only sees the outcome.

use super::reader::{Reader, bad, name_of, repeated};
use crate::{DecodeFault, Decoder, Encoder, PartitionKeyDefinition, RequestFault};
use serde_json::{Value as Json, json};
use value::PropertyPath;

const POLICY: &str = "clientEncryptionPolicy";
const ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";

/// What clients encrypt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEncryptionPolicy {
    /// The properties.
    pub paths: Vec<EncryptedPath>,
    version: u32,
}

/// A property that clients encrypt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedPath {
    path: PropertyPath,
    /// The name of the key in the database.
    pub key_id: String,
    /// Whether equal values look equal.
    deterministic: bool,
}

const TYPES: [(&str, bool); 2] = [("Deterministic", true), ("Randomized", false)];

impl ClientEncryptionPolicy {
    pub(super) fn from_json(
        json: &Json,
        partition_key: &PartitionKeyDefinition,
    ) -> Result<ClientEncryptionPolicy, RequestFault> {
        let reader = Reader::new(POLICY, "it", json)?;
        reader.only(&["includedPaths", "policyFormatVersion"])?;
        let version = reader.whole("policyFormatVersion", 1, 2)?;
        let version = version.ok_or_else(|| reader.bad("it needs a \"policyFormatVersion\""))?;
        let paths = reader.list("includedPaths")?.iter().map(EncryptedPath::from_json);
        let paths: Vec<EncryptedPath> = paths.collect::<Result<_, _>>()?;
        let places: Vec<_> = paths.iter().map(|path| &path.path).collect();
        if let Some(path) = repeated(&places) {
            return Err(bad(POLICY, format!("the path \"{path}\" is given twice")));
        }
        for path in &paths {
            path.check(version, partition_key)?;
        }
        Ok(ClientEncryptionPolicy { paths, version })
    }

    pub(super) fn to_json(&self) -> Json {
        let paths: Vec<Json> = self.paths.iter().map(EncryptedPath::to_json).collect();
        json!({ "includedPaths": paths, "policyFormatVersion": self.version })
    }
}

impl EncryptedPath {
    fn from_json(json: &Json) -> Result<EncryptedPath, RequestFault> {
        let reader = Reader::new(POLICY, "an included path", json)?;
        reader.only(&["path", "clientEncryptionKeyId", "encryptionType", "encryptionAlgorithm"])?;
        let path = reader.path("path")?;
        if path.segments().len() != 1 {
            return Err(reader.bad(format!("the path \"{path}\" must be of a top-level property")));
        }
        if reader.required_text("encryptionAlgorithm")? != ALGORITHM {
            return Err(reader.bad(format!("\"encryptionAlgorithm\" must be {ALGORITHM}")));
        }
        let deterministic = reader.choice("encryptionType", &TYPES)?;
        let deterministic = deterministic.ok_or_else(|| reader.bad("a path needs an \"encryptionType\""))?;
        let key_id = reader.required_text("clientEncryptionKeyId")?.to_owned();
        Ok(EncryptedPath { path, key_id, deterministic })
    }

    /// Documents are found by id and partition key, so these can be encrypted in one way only, and not at first.
    fn check(&self, version: u32, partition_key: &PartitionKeyDefinition) -> Result<(), RequestFault> {
        let name = self.path.segments().next();
        let is_key = partition_key.paths().iter().any(|path| path.segments().next() == name);
        if name != Some("id") && !is_key {
            return Ok(());
        }
        match (version, self.deterministic) {
            (1, _) => Err(bad(
                POLICY,
                format!("\"{}\" can be encrypted from \"policyFormatVersion\" 2 on only", self.path),
            )),
            (_, false) => Err(bad(POLICY, format!("\"{}\" must be encrypted deterministically", self.path))),
            (_, true) => Ok(()),
        }
    }

    fn to_json(&self) -> Json {
        json!({
            "path": self.path.to_string(),
            "clientEncryptionKeyId": self.key_id,
            "encryptionType": name_of(&TYPES, &self.deterministic),
            "encryptionAlgorithm": ALGORITHM,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: u32, path: &str, kind: &str) -> Result<Json, RequestFault> {
        let key = PartitionKeyDefinition::from_json(&json!({ "paths": ["/pk"] })).unwrap();
        let included = json!({
            "path": path,
            "clientEncryptionKeyId": "k",
            "encryptionType": kind,
            "encryptionAlgorithm": ALGORITHM,
        });
        let json = json!({ "includedPaths": [included], "policyFormatVersion": version });
        ClientEncryptionPolicy::from_json(&json, &key).map(|policy| policy.to_json())
    }

    #[test]
    fn properties_that_find_a_document_are_encrypted_in_one_way_only() {
        assert_eq!(
            read(1, "/secret", "randomized").unwrap()["includedPaths"][0]["encryptionType"],
            "Randomized"
        );
        assert!(read(1, "/id", "Deterministic").is_err() && read(2, "/id", "Deterministic").is_ok());
        assert!(read(2, "/pk", "Randomized").is_err() && read(2, "/pk", "Deterministic").is_ok());
        assert!(read(3, "/secret", "Randomized").is_err());
        assert!(read(1, "/a/b", "Randomized").is_err());
        assert!(read(1, "/secret", "Twice").is_err());
    }
}
