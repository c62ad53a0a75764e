//! What a container is: its name, partition key, time to live, unique keys and policies.
//!
//! A draft is put together by anybody. [`ContainerDraft::checked`] makes a definition of it, the only thing that the
//! catalog takes; a definition cannot be altered. How clients write definitions is known to their API.

use crate::limits::NAME_CHARS_MAX;
use crate::policy::{DefaultTtl, Policies, UniqueKeyPolicy};
use crate::{DecodeFault, Decoder, Encoder, PartitionKeyDefinition, RequestFault};
use std::ops::Deref;

/// What a container shall be, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerDraft {
    /// Its name.
    pub id: String,
    /// Where the partition key of its documents is.
    pub partition_key: PartitionKeyDefinition,
    /// When its documents expire.
    pub default_ttl: DefaultTtl,
    /// Which values may occur once only in a logical partition.
    pub unique_keys: UniqueKeyPolicy,
    /// All other policies.
    pub policies: Policies,
    /// How its values are ordered.
    pub order: ValueOrder,
}

/// The definition of a container: a draft that was checked. Its parts are read like those of the draft.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerDefinition {
    checked: ContainerDraft,
}

/// The order of values of different kinds, in key codes and results. It is fixed when a container is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOrder {
    /// That of the NoSQL API.
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

    /// The definition, unless something in the draft cannot be.
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
    /// The draft of another definition that begins as this one.
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

    /// Reads its encoding. What was accepted once is not judged again: rules for new definitions may change.
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
    /// What the container shall be.
    pub wanted: ContainerDraft,
    /// What stays as it is, whatever is wanted: clients leave out what cannot be changed.
    pub kept: Vec<KeptProperty>,
}

/// A property of a container that a change can leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptProperty {
    /// The partition key.
    PartitionKey,
    /// The unique keys.
    UniqueKeys,
    /// Which of two versions wins.
    ConflictResolution,
    /// What clients encrypt.
    ClientEncryption,
    /// Where vectors are.
    VectorEmbeddings,
}

impl From<ContainerDraft> for ContainerChange {
    /// A change that leaves out nothing.
    fn from(wanted: ContainerDraft) -> ContainerChange {
        ContainerChange { wanted, kept: Vec::new() }
    }
}

impl ContainerChange {
    /// What a container that is `current` becomes. What is fixed must be kept or wanted as it is.
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

/// Checks a name of a database or container against the published rules and gives it back.
pub fn checked_name(name: &str) -> Result<&str, RequestFault> {
    let bad = |reason: &str| Err(RequestFault::BadName { name: name.to_owned(), reason: reason.to_owned() });
    if name.is_empty() {
        return bad("it is empty");
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return bad("it has more than 255 characters");
    }
    if let Some(character) =
        name.chars().find(|character| matches!(character, '/' | '\\' | '#' | '?') || character.is_control())
    {
        return bad(&format!("the character {character:?} is not allowed"));
    }
    if name.ends_with(' ') {
        return bad("it ends with a space");
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
        let changes: [(&str, Alter); 6] = [
            ("id", |draft| draft.id = "d".to_owned()),
            ("partitionKey", |draft| draft.partition_key = key("/other")),
            ("uniqueKeyPolicy", |draft| draft.unique_keys = UniqueKeyPolicy::default()),
            ("conflictResolutionPolicy", |draft| {
                draft.policies.conflicts = ConflictResolution::Custom(String::new());
            }),
            ("vectorEmbeddingPolicy", |draft| draft.policies.vectors = vectors("/v", 4)),
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
            ("defaultTtl", |draft| draft.default_ttl = DefaultTtl::Seconds(0)),
            ("uniqueKeyPolicy", |draft| draft.unique_keys.keys = vec![UniqueKey { paths: Vec::new() }]),
            ("indexingPolicy", |draft| draft.policies.indexing.mode = crate::policy::IndexingMode::None),
            ("conflictResolutionPolicy", |draft| {
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
