//! Rules of names and definitions, with the data of a violation. The texts are those of each API.

use super::RequestFault;
use crate::policy::SpatialType;
use value::PathError;

/// A rule that the name of a database or container violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// It is empty.
    NotEmpty,
    /// It is too long.
    Length {
        /// The most characters.
        chars_max: usize,
    },
    /// It contains a character that is not allowed.
    Character(char),
    /// It ends with a space.
    FinalSpace,
}

/// The part of a definition that violates a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is named after the part
pub enum DefinitionPart {
    PartitionKey,
    UniqueKeys,
    Indexing,
    Conflicts,
    ChangeFeed,
    ComputedProperties,
    Vectors,
    FullText,
    ClientEncryption,
    DefaultTtl,
    AnalyticalTtl,
    ScriptBody,
    /// The algorithm of a client encryption key.
    EncryptionAlgorithm,
    /// The wrapped client encryption key.
    WrappedKey,
    /// How the client encryption key is wrapped.
    WrapMetadata,
    /// The resource of a permission.
    PermissionResource,
    Throughput,
    ManualThroughput,
    AutoscaleThroughput,
}

impl DefinitionPart {
    /// The fault that this part violates a rule.
    pub fn violates(self, rule: impl Into<DefinitionRule>) -> RequestFault {
        RequestFault::BadDefinition { part: self, rule: Box::new(rule.into()) }
    }
}

/// A list in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is named after the list
pub enum DefinitionList {
    UniqueKeys,
    ComputedProperties,
    CompositeIndexes,
    IncludedPaths,
    ExcludedPaths,
    SpatialIndexes,
    VectorIndexes,
    FullTextIndexes,
}

/// A number in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is named after the number
pub enum DefinitionNumber {
    RetentionMinutes,
    EncryptionVersion,
    Dimensions,
    QuantizationBytes,
    SearchListSize,
}

/// What is wrong with a path of an indexing policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPathError {
    /// A name or the path does not start with a slash.
    MissingSlash,
    /// It ends with neither `/?` nor `/*`.
    MissingEnd,
    /// It is `/?`; the root is not a scalar.
    ScalarRoot,
    /// A name is empty.
    EmptyName,
    /// A wildcard is not at the end.
    Wildcard,
    /// A name with other characters than letters, digits and `_` is not quoted.
    Unquoted,
    /// A quote is not closed.
    UnclosedQuote,
}

/// A rule that a part of a definition violates. Paths are as the client wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionRule {
    /// It is empty.
    NotEmpty,
    /// It is not base64.
    Base64,
    /// It is too long.
    Length {
        /// Its bytes.
        bytes: usize,
        /// The most bytes.
        bytes_max: usize,
    },
    /// A required text is missing.
    MissingText {
        /// Its name.
        name: &'static str,
    },
    /// A number is out of bounds.
    Bounds {
        /// Which number.
        number: DefinitionNumber,
        /// The number given.
        given: i64,
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
    },
    /// A time to live is out of bounds.
    Seconds {
        /// The maximum.
        seconds_max: u32,
    },
    /// A list is too long.
    Count {
        /// Which list.
        list: DefinitionList,
        /// Its entries.
        given: usize,
        /// The maximum.
        max: usize,
    },
    /// A key, a constraint or an index has too few or too many paths.
    PathCount {
        /// Its paths.
        given: usize,
        /// The minimum.
        min: usize,
        /// The maximum.
        max: usize,
    },
    /// A path is not the path of a property.
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        error: PathError,
    },
    /// A path is not one of an indexing policy.
    PolicyPath {
        /// The path.
        path: String,
        /// What is wrong with it.
        error: PolicyPathError,
    },
    /// A path cannot be the path of a partition key.
    KeyPath {
        /// The path.
        path: String,
        /// The byte where it is wrong.
        position: usize,
    },
    /// A path is given twice.
    RepeatedPath(String),
    /// The resource is in another database.
    OtherDatabase,
    /// A rule of indexes.
    Index(IndexRule),
    /// A rule of computed properties.
    Computed(ComputedRule),
    /// A rule of client encryption.
    Encryption(EncryptionRule),
    /// A rule of throughput.
    Throughput(ThroughputRule),
}

/// A rule that the indexes of a definition violate. Paths are as the client wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexRule {
    /// A path is twice in one composite index.
    RepeatedCompositePath(String),
    /// A composite index is given twice.
    RepeatedComposite,
    /// A path has two indexes of one kind.
    RepeatedIndex(String),
    /// A spatial type is given twice for one path.
    RepeatedSpatialType(SpatialType),
    /// Without indexing, new documents cannot be indexed automatically.
    AutomaticWithoutIndexing,
    /// Without indexing there can be no paths.
    PathsWithoutIndexing,
    /// The spatial index at this path needs a bounding box, since a plane is unbounded.
    MissingBox(String),
    /// The spatial index at this path has a bounding box, but the earth is bounded.
    UnexpectedBox(String),
    /// The minimum of a bounding box is not below its maximum.
    EmptyBox,
    /// A flat vector index cannot be quantized.
    QuantizedFlat,
    /// Only a graph has a search list.
    SearchListWithoutGraph,
    /// A flat vector index cannot be sharded.
    ShardedFlat,
    /// The vector index at this path has no embedding.
    MissingEmbedding(String),
    /// A flat vector index has too many dimensions.
    FlatDimensions {
        /// Its path.
        path: String,
        /// The dimensions of its embedding.
        dimensions: u32,
        /// The maximum.
        max: u32,
    },
    /// A replacement changes an existing vector index.
    ChangedVectorIndex,
    /// The full-text index at this path has no entry in the full-text policy.
    MissingFullText(String),
}

/// A rule that computed properties violate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComputedRule {
    /// Two computed properties have this name.
    RepeatedName(String),
    /// The name of a computed property has a character that is not allowed, or none at all.
    NameCharacters(String),
    /// Documents already have a property with the name of a computed property.
    ReservedName(String),
    /// The query of the computed property with this name does not begin with SELECT VALUE.
    NotSelectValue(String),
    /// The query of a computed property cannot be parsed.
    Query {
        /// Its text.
        query: String,
    },
}

/// A rule that a client encryption policy violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncryptionRule {
    /// Only top-level properties can be encrypted, and this path is nested.
    Nested(String),
    /// Documents are looked up by the property at this path, so the policy needs a later version to encrypt it.
    Version(String),
    /// Documents are looked up by the property at this path, so it must be encrypted deterministically.
    NotDeterministic(String),
    /// The database has no client encryption key of this name.
    UnknownKey(String),
}

/// A rule that a throughput violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThroughputRule {
    /// It is autoscale and must be migrated first.
    IsAutoscale,
    /// It is manual and must be migrated first.
    IsManual,
    /// It is migrated to autoscale and is autoscale already.
    AlreadyAutoscale,
    /// It is migrated to manual and is manual already.
    AlreadyManual,
    /// It is out of bounds.
    Bounds {
        /// The requested request units per second.
        rate: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
        /// What it must be a multiple of.
        step: u64,
    },
}

impl From<IndexRule> for DefinitionRule {
    fn from(rule: IndexRule) -> DefinitionRule {
        DefinitionRule::Index(rule)
    }
}

impl From<ComputedRule> for DefinitionRule {
    fn from(rule: ComputedRule) -> DefinitionRule {
        DefinitionRule::Computed(rule)
    }
}

impl From<EncryptionRule> for DefinitionRule {
    fn from(rule: EncryptionRule) -> DefinitionRule {
        DefinitionRule::Encryption(rule)
    }
}

impl From<ThroughputRule> for DefinitionRule {
    fn from(rule: ThroughputRule) -> DefinitionRule {
        DefinitionRule::Throughput(rule)
    }
}
