//! The policies of a container, one file each: read, checked, defaulted and written as the service writes them.
//!
//! A policy says what is wanted; who acts on it is none of its business. What a definition cannot mean is refused
//! with the field and the reason.

mod change_feed;
mod computed;
mod conflict;
mod encryption;
mod full_text;
mod geospatial;
mod index_path;
mod indexing;
mod reader;
mod special_indexes;
mod time_to_live;
mod unique;
mod vector;

pub use change_feed::ChangeFeedPolicy;
pub use computed::ComputedProperty;
pub use conflict::ConflictResolution;
pub use encryption::{ClientEncryptionPolicy, EncryptedPath};
pub use full_text::{FullTextPath, FullTextPolicy};
pub use geospatial::GeospatialType;
pub use index_path::{IndexEnd, IndexPath, IndexSegment};
pub use indexing::{IndexedPath, IndexingMode, IndexingPolicy};
pub use special_indexes::{
    BoundingBox, CompositeIndex, CompositePath, SpatialIndex, SpatialType, VectorIndex, VectorIndexKind,
};
pub use time_to_live::{AnalyticalTtl, DefaultTtl};
pub use unique::{UniqueKey, UniqueKeyPolicy};
pub use vector::{DistanceFunction, VectorDataType, VectorEmbedding, VectorEmbeddingPolicy};

use crate::{DecodeFault, Decoder, Encoder, PartitionKeyDefinition, RequestFault};
use serde_json::{Map, Value as Json};

/// All policies of a container that do not decide how documents are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    /// What is indexed and how.
    pub indexing: IndexingPolicy,
    /// Which of two versions wins.
    pub conflicts: ConflictResolution,
    /// What coordinates mean.
    pub geospatial: GeospatialType,
    /// What the change feed keeps.
    pub change_feed: Option<ChangeFeedPolicy>,
    /// Properties that queries see and documents do not have.
    pub computed: Vec<ComputedProperty>,
    /// Where vectors are.
    pub vectors: Option<VectorEmbeddingPolicy>,
    /// Where text is.
    pub full_text: Option<FullTextPolicy>,
    /// What clients encrypt.
    pub encryption: Option<ClientEncryptionPolicy>,
    /// How long the analytical store keeps documents.
    pub analytical_ttl: Option<AnalyticalTtl>,
}

impl Policies {
    /// Reads the policies of a definition and checks those that depend on others.
    pub(crate) fn from_json(
        members: &Map<String, Json>,
        partition_key: &PartitionKeyDefinition,
    ) -> Result<Policies, RequestFault> {
        let policies = Policies {
            indexing: IndexingPolicy::from_json(given(members, "indexingPolicy"))?,
            conflicts: ConflictResolution::from_json(given(members, "conflictResolutionPolicy"))?,
            geospatial: GeospatialType::from_json(given(members, "geospatialConfig"))?,
            change_feed: given(members, "changeFeedPolicy").map(ChangeFeedPolicy::from_json).transpose()?,
            computed: computed::list_from_json(given(members, "computedProperties"), partition_key)?,
            vectors: given(members, "vectorEmbeddingPolicy")
                .map(VectorEmbeddingPolicy::from_json)
                .transpose()?,
            full_text: given(members, "fullTextPolicy").map(FullTextPolicy::from_json).transpose()?,
            encryption: given(members, "clientEncryptionPolicy")
                .map(|json| ClientEncryptionPolicy::from_json(json, partition_key))
                .transpose()?,
            analytical_ttl: given(members, "analyticalStorageTtl")
                .map(AnalyticalTtl::from_json)
                .transpose()?,
        };
        policies.check_indexes()?;
        Ok(policies)
    }

    /// Refuses indexes without the policy that they rest on.
    fn check_indexes(&self) -> Result<(), RequestFault> {
        let embeddings = self.vectors.as_ref().map_or(&[][..], |policy| &policy.embeddings);
        for index in &self.indexing.vectors {
            index.check(embeddings)?;
        }
        let texts = self.full_text.as_ref().map_or(&[][..], |policy| &policy.paths);
        for path in &self.indexing.full_texts {
            if !texts.iter().any(|text| text.path == *path) {
                let reason = format!("the full-text index on \"{path}\" has no path in the full-text policy");
                return Err(reader::bad("indexingPolicy", reason));
            }
        }
        for index in &self.indexing.spatial {
            index.check(self.geospatial)?;
        }
        Ok(())
    }

    /// Refuses what cannot be changed once a container is there.
    pub(crate) fn check_replacement(&self, new: &Policies) -> Result<(), RequestFault> {
        let fixed = |property: &str, same: bool| match same {
            true => Ok(()),
            false => Err(RequestFault::ImmutableProperty { property: property.to_owned() }),
        };
        fixed("conflictResolutionPolicy", self.conflicts == new.conflicts)?;
        fixed("clientEncryptionPolicy", self.encryption == new.encryption)?;
        // Embeddings come and go; one that is there stays as it is.
        let old = self.vectors.as_ref().map_or(&[][..], |policy| &policy.embeddings);
        let new = new.vectors.as_ref().map_or(&[][..], |policy| &policy.embeddings);
        let altered = |embedding: &VectorEmbedding| {
            new.iter().any(|other| other.path == embedding.path && other != embedding)
        };
        fixed("vectorEmbeddingPolicy", !old.iter().any(altered))
    }

    /// Appends the wire form.
    pub(crate) fn write(&self, json: &mut Map<String, Json>) {
        let mut put = |name: &str, value: Json| drop(json.insert(name.to_owned(), value));
        put("indexingPolicy", self.indexing.to_json());
        put("conflictResolutionPolicy", self.conflicts.to_json());
        put("geospatialConfig", self.geospatial.to_json());
        if let Some(policy) = &self.change_feed {
            put("changeFeedPolicy", policy.to_json());
        }
        if !self.computed.is_empty() {
            put("computedProperties", self.computed.iter().map(ComputedProperty::to_json).collect());
        }
        if let Some(policy) = &self.vectors {
            put("vectorEmbeddingPolicy", policy.to_json());
        }
        if let Some(policy) = &self.full_text {
            put("fullTextPolicy", policy.to_json());
        }
        if let Some(policy) = &self.encryption {
            put("clientEncryptionPolicy", policy.to_json());
        }
        if let Some(ttl) = self.analytical_ttl {
            put("analyticalStorageTtl", ttl.to_json());
        }
    }
}

/// A member that says something: null counts as absent.
fn given<'a>(members: &'a Map<String, Json>, name: &str) -> Option<&'a Json> {
    members.get(name).filter(|json| !json.is_null())
}

impl Policies {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        self.indexing.encode(out);
        self.conflicts.encode(out);
        self.geospatial.encode(out);
        out.option(self.change_feed, |out, policy| policy.encode(out));
        out.list(&self.computed, |out, property| property.encode(out));
        out.option(self.vectors.as_ref(), |out, policy| policy.encode(out));
        out.option(self.full_text.as_ref(), |out, policy| policy.encode(out));
        out.option(self.encryption.as_ref(), |out, policy| policy.encode(out));
        out.option(self.analytical_ttl, |out, ttl| ttl.encode(out));
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<Policies, DecodeFault> {
        Ok(Policies {
            indexing: IndexingPolicy::decode(input)?,
            conflicts: ConflictResolution::decode(input)?,
            geospatial: GeospatialType::decode(input)?,
            change_feed: input.option("change feed policy", ChangeFeedPolicy::decode)?,
            computed: input.list("computed properties", ComputedProperty::decode)?,
            vectors: input.option("vector policy", VectorEmbeddingPolicy::decode)?,
            full_text: input.option("full-text policy", FullTextPolicy::decode)?,
            encryption: input.option("encryption policy", ClientEncryptionPolicy::decode)?,
            analytical_ttl: input.option("analytical time to live", AnalyticalTtl::decode)?,
        })
    }
}
