//! The definition of a container: name, partition key, time to live, unique keys and policies.
//!
//! Anyone can build a draft. [`ContainerDraft::checked`] turns it into a definition, the only form that the catalog
//! accepts; a definition is immutable. Its wire format is in the API crates.

use crate::limits::NAME_CHARS_MAX;
use crate::policy::{DefaultTtl, Policies, UniqueKeyPolicy};
use crate::{DecodeFault, Decoder, Encoder, NameRule, PartitionKeyDefinition, RequestFault};
use std::ops::Deref;

/// The wanted definition of a container, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerDraft {
    /// Its name.
    pub id: String,
    /// The paths of the partition key.
    pub partition_key: PartitionKeyDefinition,
    /// When documents expire.
    pub default_ttl: DefaultTtl,
    /// Which values must be unique in a logical partition.
    pub unique_keys: UniqueKeyPolicy,
    /// All other policies.
    pub policies: Policies,
    /// The order of values.
    pub order: ValueOrder,
}

/// The definition of a container: a checked draft. It dereferences to the draft.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerDefinition {
    checked: ContainerDraft,
}

/// The order of values of different kinds, in key codes and results. Fixed when a container is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOrder {
    /// The order of the NoSQL API.
    NoSql,
}

impl ContainerDraft {
    /// A container with the defaults of the service.
    pub fn new(id: impl Into<String>, partition_key: PartitionKeyDefinition) -> ContainerDraft {
        ContainerDraft {
            id: id.into(),
            partition_key,
            default_ttl: DefaultTtl::default(),
            unique_keys: UniqueKeyPolicy::default(),
            policies: Policies::default(),
            order: ValueOrder::NoSql,
        }
    }

    /// Checks the draft and returns the definition.
    pub fn checked(self) -> Result<ContainerDefinition, RequestFault> {
        checked_name(&self.id)?;
        self.policies.check(&self.partition_key)?;
        self.default_ttl.check()?;
        self.unique_keys.check()?;
        Ok(ContainerDefinition { checked: self })
    }
}

impl Deref for ContainerDefinition {
    type Target = ContainerDraft;

    fn deref(&self) -> &ContainerDraft {
        &self.checked
    }
}

impl ContainerDefinition {
    /// A draft that starts as a copy of this definition.
    pub fn draft(&self) -> ContainerDraft {
        self.checked.clone()
    }

    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.byte(self.order.tag());
        out.text(&self.id);
        self.partition_key.encode(out);
        self.default_ttl.encode(out);
        self.unique_keys.encode(out);
        self.policies.encode(out);
    }

    /// Reads its encoding. Stored definitions are not checked again, because the rules for new definitions may change.
    pub fn decode(input: &mut Decoder<'_>) -> Result<ContainerDefinition, DecodeFault> {
        let checked = ContainerDraft {
            order: input.choice("value order", [ValueOrder::NoSql], ValueOrder::tag)?,
            id: input.text("name of a container")?,
            partition_key: PartitionKeyDefinition::decode(input)?,
            default_ttl: DefaultTtl::decode(input)?,
            unique_keys: UniqueKeyPolicy::decode(input)?,
            policies: Policies::decode(input)?,
        };
        Ok(ContainerDefinition { checked })
    }
}

/// A replacement of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerChange {
    /// The wanted definition.
    pub wanted: ContainerDraft,
    /// Properties that keep their current value, whatever is wanted: clients omit what cannot be changed.
    pub kept: Vec<KeptProperty>,
}

/// A property of a container that a change can omit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptProperty {
    /// The partition key.
    PartitionKey,
    /// The unique keys.
    UniqueKeys,
    /// The conflict resolution policy.
    ConflictResolution,
    /// The client encryption policy.
    ClientEncryption,
    /// The vector embeddings.
    VectorEmbeddings,
}

impl From<ContainerDraft> for ContainerChange {
    /// A change that omits nothing.
    fn from(wanted: ContainerDraft) -> ContainerChange {
        ContainerChange { wanted, kept: Vec::new() }
    }
}

impl ContainerChange {
    /// Applies the change to `current`. Immutable properties must be kept or wanted unchanged.
    pub fn applied(self, current: &ContainerDefinition) -> Result<ContainerDefinition, RequestFault> {
        let ContainerChange { mut wanted, kept } = self;
        wanted.order = current.order;
        for property in kept {
            match property {
                KeptProperty::PartitionKey => wanted.partition_key = current.partition_key.clone(),
                KeptProperty::UniqueKeys => wanted.unique_keys = current.unique_keys.clone(),
                KeptProperty::ConflictResolution => {
                    wanted.policies.conflicts = current.policies.conflicts.clone();
                }
                KeptProperty::ClientEncryption => {
                    wanted.policies.encryption = current.policies.encryption.clone();
                }
                KeptProperty::VectorEmbeddings => wanted.policies.vectors = current.policies.vectors.clone(),
            }
        }
        if wanted.partition_key == current.partition_key {
            // Also what is the same and only written differently.
            wanted.partition_key = current.partition_key.clone();
        }
        let new = wanted.checked()?;
        for (property, same) in [
            ("id", new.id == current.id),
            ("partitionKey", new.partition_key == current.partition_key),
            ("uniqueKeyPolicy", new.unique_keys == current.unique_keys),
        ] {
            if !same {
                return Err(RequestFault::ImmutableProperty { property: property.to_owned() });
            }
        }
        current.policies.check_replacement(&new.policies)?;
        Ok(new)
    }
}

impl ValueOrder {
    fn tag(self) -> u8 {
        match self {
            ValueOrder::NoSql => 0,
        }
    }
}

/// Checks the name of a database, container, user or permission against the published rules and returns it.
pub fn checked_name(name: &str) -> Result<&str, RequestFault> {
    checked(name, char::is_control)
}

/// Checks the name of a script, which may contain control characters, and returns it.
pub fn checked_script_name(name: &str) -> Result<&str, RequestFault> {
    checked(name, |_| false)
}

/// Checks a name that must not contain `forbidden` characters besides those with a meaning in paths.
fn checked(name: &str, forbidden: impl Fn(char) -> bool) -> Result<&str, RequestFault> {
    let bad = |rule| Err(RequestFault::BadName { name: name.to_owned(), rule });
    if name.is_empty() {
        return bad(NameRule::NotEmpty);
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return bad(NameRule::Length { chars_max: NAME_CHARS_MAX });
    }
    let is_forbidden =
        |character: &char| matches!(character, '/' | '\\' | '#' | '?') || forbidden(*character);
    if let Some(character) = name.chars().find(is_forbidden) {
        return bad(NameRule::Character(character));
    }
    if name.ends_with(' ') {
        return bad(NameRule::FinalSpace);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{
        ClientEncryptionPolicy, ConflictResolution, FullTextPath, FullTextPolicy, VectorEmbedding,
        VectorEmbeddingPolicy, VectorIndex, VectorIndexKind,
    };
    use crate::{OpaqueMembers, PartitionKeyKind, UniqueKey};
    use value::PropertyPath;

    type Alter = fn(&mut ContainerDraft);

    fn path(text: &str) -> PropertyPath {
        PropertyPath::parse(text).unwrap()
    }

    fn key(text: &str) -> PartitionKeyDefinition {
        PartitionKeyDefinition::new(PartitionKeyKind::HashV2, [text]).unwrap()
    }

    fn draft() -> ContainerDraft {
        let unique_keys = UniqueKeyPolicy { keys: vec![UniqueKey::over(&["/a", "/b/c"]).unwrap()] };
        let default_ttl = DefaultTtl::Seconds(60);
        ContainerDraft { default_ttl, unique_keys, ..ContainerDraft::new("c", key("/pk")) }
    }

    fn vectors(text: &str, dimensions: u32) -> Option<VectorEmbeddingPolicy> {
        let embedding = VectorEmbedding { dimensions, ..VectorEmbedding::new(path(text)) };
        Some(VectorEmbeddingPolicy { embeddings: vec![embedding] })
    }

    #[test]
    fn a_change_need_not_repeat_what_cannot_be_changed() {
        let current = draft().checked().unwrap();
        let wanted = ContainerDraft::new("c", key("/other"));
        let kept = vec![KeptProperty::PartitionKey, KeptProperty::UniqueKeys];
        let replaced = ContainerChange { wanted, kept }.applied(&current).unwrap();
        assert_eq!(replaced.unique_keys, current.unique_keys);
        assert_eq!(replaced.partition_key, current.partition_key);
        assert_eq!(replaced.default_ttl, DefaultTtl::Off);
    }

    #[test]
    fn a_change_of_what_is_fixed_names_it() {
        let mut old = draft();
        old.policies.vectors = vectors("/v", 3);
        let old = old.checked().unwrap();
        let changes: [(&str, Alter); 8] = [
            ("id", |draft| draft.id = "d".to_owned()),
            ("partitionKey", |draft| draft.partition_key = key("/other")),
            ("uniqueKeyPolicy", |draft| draft.unique_keys = UniqueKeyPolicy::default()),
            ("conflictResolutionPolicy", |draft| {
                draft.policies.conflicts = ConflictResolution::Custom(String::new());
            }),
            ("vectorEmbeddingPolicy", |draft| draft.policies.vectors = vectors("/v", 4)),
            ("vectorEmbeddingPolicy", |draft| draft.policies.vectors = None),
            ("vectorEmbeddingPolicy", |draft| {
                draft.policies.vectors = Some(VectorEmbeddingPolicy { embeddings: Vec::new() });
            }),
            ("clientEncryptionPolicy", |draft| {
                draft.policies.encryption = Some(ClientEncryptionPolicy { paths: Vec::new(), version: 1 });
            }),
        ];
        for (property, change) in changes {
            let mut wanted = old.draft();
            change(&mut wanted);
            let expected = RequestFault::ImmutableProperty { property: property.to_owned() };
            assert_eq!(ContainerChange::from(wanted).applied(&old), Err(expected));
        }
        let mut added = old.draft();
        added.policies.vectors = vectors("/w", 5);
        assert!(ContainerChange::from(added).applied(&old).is_ok());
    }

    #[test]
    fn indexes_rest_on_their_policies() {
        let mut draft = draft();
        draft.policies.indexing.vectors = vec![VectorIndex::new(path("/v"), VectorIndexKind::Flat)];
        draft.policies.indexing.full_texts = vec![path("/t")];
        let message = |draft: &ContainerDraft| draft.clone().checked().unwrap_err().to_string();
        assert!(message(&draft).contains("/v"));
        draft.policies.vectors = vectors("/v", 506);
        assert!(message(&draft).contains("505"));
        draft.policies.vectors = vectors("/v", 505);
        assert!(message(&draft).contains("/t"));
        let text = FullTextPath { path: path("/t"), language: None, others: OpaqueMembers::default() };
        draft.policies.full_text = Some(FullTextPolicy { paths: vec![text], ..FullTextPolicy::default() });
        assert!(draft.checked().is_ok());
    }

    #[test]
    fn every_part_of_a_draft_is_checked() {
        let wrong: [(&str, Alter); 5] = [
            ("a/b", |draft| draft.id = "a/b".to_owned()),
            ("DefaultTtl", |draft| draft.default_ttl = DefaultTtl::Seconds(0)),
            ("UniqueKeys", |draft| draft.unique_keys.keys = vec![UniqueKey { paths: Vec::new() }]),
            ("Indexing", |draft| draft.policies.indexing.mode = crate::policy::IndexingMode::None),
            ("Conflicts", |draft| {
                draft.policies.conflicts = ConflictResolution::LastWriterWins("a".to_owned());
            }),
        ];
        for (named, change) in wrong {
            let mut draft = draft();
            change(&mut draft);
            let message = draft.checked().unwrap_err().to_string();
            assert!(message.contains(named), "{named}: {message}");
        }
    }

    #[test]
    fn names_follow_the_rules_on_both_sides_of_the_bound() {
        assert!(checked_name(&"n".repeat(255)).is_ok());
        assert!(checked_name(&"n".repeat(256)).is_err());
        assert!(checked_name("").is_err() && checked_name("a ").is_err() && checked_name("a\tb").is_err());
        assert!(checked_name("é ü").is_ok());
    }
}
