//! `clientEncryptionPolicy`

use super::name_in;
use super::reader::Reader;
use crate::faults::NosqlFault;
use model::PartitionKeyDefinition;
use model::policy::{ClientEncryptionPolicy, EncryptedPath};
use serde_json::{Value as Json, json};

const POLICY: &str = "clientEncryptionPolicy";
const ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";

/// Whether equal values have equal ciphertexts.
const TYPES: [(&str, bool); 2] = [("Deterministic", true), ("Randomized", false)];

pub(super) fn read(
    json: &Json,
    partition_key: &PartitionKeyDefinition,
) -> Result<ClientEncryptionPolicy, NosqlFault> {
    let reader = Reader::new(POLICY, "it", json)?;
    reader.only(&["includedPaths", "policyFormatVersion"])?;
    let version = reader.whole("policyFormatVersion", ClientEncryptionPolicy::VERSIONS)?;
    let version = version.ok_or_else(|| reader.bad("it needs a \"policyFormatVersion\""))?;
    let paths = reader.list("includedPaths")?.iter().map(read_path).collect::<Result<_, _>>()?;
    let policy = ClientEncryptionPolicy { paths, version };
    policy.check(partition_key)?;
    Ok(policy)
}

fn read_path(json: &Json) -> Result<EncryptedPath, NosqlFault> {
    let reader = Reader::new(POLICY, "an included path", json)?;
    reader.only(&["path", "clientEncryptionKeyId", "encryptionType", "encryptionAlgorithm"])?;
    let path = reader.path("path")?;
    EncryptedPath::check_path(&path)?;
    if reader.required_text("encryptionAlgorithm")? != ALGORITHM {
        return Err(reader.bad(format!("\"encryptionAlgorithm\" must be {ALGORITHM}")));
    }
    let deterministic = reader.choice("encryptionType", &TYPES)?;
    let deterministic = deterministic.ok_or_else(|| reader.bad("a path needs an \"encryptionType\""))?;
    let key_id = reader.required_text("clientEncryptionKeyId")?.to_owned();
    Ok(EncryptedPath { path, key_id, deterministic })
}

pub(super) fn write(policy: &ClientEncryptionPolicy) -> Json {
    let paths: Vec<Json> = policy.paths.iter().map(write_path).collect();
    json!({ "includedPaths": paths, "policyFormatVersion": policy.version })
}

fn write_path(path: &EncryptedPath) -> Json {
    json!({
        "path": path.path.to_string(),
        "clientEncryptionKeyId": path.key_id,
        "encryptionType": name_in(&TYPES, &path.deterministic),
        "encryptionAlgorithm": ALGORITHM,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PartitionKeyKind;

    fn read(version: u32, path: &str, kind: &str) -> Result<Json, NosqlFault> {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV1, ["/pk"]).unwrap();
        let included = json!({
            "path": path,
            "clientEncryptionKeyId": "k",
            "encryptionType": kind,
            "encryptionAlgorithm": ALGORITHM,
        });
        let json = json!({ "includedPaths": [included], "policyFormatVersion": version });
        super::read(&json, &key).map(|policy| write(&policy))
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
