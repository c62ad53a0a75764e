//! The policies of a container, one file each: typed, with their defaults, checks and stored form.
//!
//! A policy says what is wanted, not how it is executed. Anyone can build one; its `check` refuses invalid values with
//! the field and the reason. The wire format is in the API crates.

mod change_feed;
mod check;
mod computed;
mod conflict;
mod encryption;
mod full_text;
mod geospatial;
mod index_path;
mod indexing;
mod special_indexes;
mod time_to_live;
mod unique;
mod vector;

pub use change_feed::ChangeFeedPolicy;
pub use computed::ComputedProperty;
pub use conflict::ConflictResolution;
pub use encryption::{ClientEncryptionPolicy, EncryptedPath};
pub use full_text::{FullTextPath, FullTextPolicy, Language};
pub use geospatial::GeospatialType;
pub use index_path::{IndexEnd, IndexSegment, PolicyPath};
pub use indexing::{IndexedPath, IndexingMode, IndexingPolicy};
pub use special_indexes::{
    BoundingBox, CompositeIndex, CompositePath, Quantizer, SpatialIndex, SpatialType, VectorIndex,
    VectorIndexKind,
};
pub use time_to_live::{AnalyticalTtl, DefaultTtl};
pub use unique::{UniqueKey, UniqueKeyPolicy};
pub use vector::{DistanceFunction, VectorDataType, VectorEmbedding, VectorEmbeddingPolicy};

use crate::{DecodeFault, Decoder, DefinitionPart, Encoder, IndexRule, PartitionKeyDefinition, RequestFault};

/// All policies of a container that do not affect how documents are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    /// The indexing policy.
    pub indexing: IndexingPolicy,
    /// The conflict resolution policy.
    pub conflicts: ConflictResolution,
    /// The coordinate system of spatial data.
    pub geospatial: GeospatialType,
    /// The change feed policy.
    pub change_feed: Option<ChangeFeedPolicy>,
    /// Properties that queries see but documents do not store.
    pub computed: Vec<ComputedProperty>,
    /// The vector policy.
    pub vectors: Option<VectorEmbeddingPolicy>,
    /// The full-text policy.
    pub full_text: Option<FullTextPolicy>,
    /// The client encryption policy.
    pub encryption: Option<ClientEncryptionPolicy>,
    /// How long the analytical store keeps documents.
    pub analytical_ttl: Option<AnalyticalTtl>,
}

impl Policies {
    /// Checks each policy, and the dependencies between them.
    pub(crate) fn check(&self, partition_key: &PartitionKeyDefinition) -> Result<(), RequestFault> {
        self.indexing.check()?;
        self.conflicts.check()?;
        self.change_feed.map_or(Ok(()), ChangeFeedPolicy::check)?;
        ComputedProperty::check_all(&self.computed, partition_key)?;
        self.vectors.as_ref().map_or(Ok(()), VectorEmbeddingPolicy::check)?;
        self.full_text.as_ref().map_or(Ok(()), FullTextPolicy::check)?;
        self.encryption.as_ref().map_or(Ok(()), |policy| policy.check(partition_key))?;
        self.check_indexes()
    }

    /// Refuses indexes without the policy that they depend on.
    fn check_indexes(&self) -> Result<(), RequestFault> {
        let embeddings = self.vectors.as_ref().map_or(&[][..], |policy| &policy.embeddings);
        for index in &self.indexing.vectors {
            index.check_embedding(embeddings)?;
        }
        let texts = self.full_text.as_ref().map_or(&[][..], |policy| &policy.paths);
        for path in &self.indexing.full_texts {
            if !texts.iter().any(|text| text.path == *path) {
                return Err(DefinitionPart::Indexing.violates(IndexRule::MissingFullText(path.to_string())));
            }
        }
        for index in &self.indexing.spatial {
            index.check_box(self.geospatial)?;
        }
        Ok(())
    }

    /// Refuses changes of what is fixed when a container is created.
    pub(crate) fn check_replacement(&self, new: &Policies) -> Result<(), RequestFault> {
        let fixed = |property: &str, same: bool| match same {
            true => Ok(()),
            false => Err(RequestFault::ImmutableProperty { property: property.to_owned() }),
        };
        fixed("conflictResolutionPolicy", self.conflicts == new.conflicts)?;
        fixed("clientEncryptionPolicy", self.encryption == new.encryption)?;
        // Embeddings can be added and removed, but not all of them; an existing one cannot be changed.
        let old = self.vectors.as_ref().map_or(&[][..], |policy| &policy.embeddings);
        let replacement = new;
        let new = new.vectors.as_ref().map_or(&[][..], |policy| &policy.embeddings);
        let altered = |embedding: &VectorEmbedding| {
            new.iter().any(|other| other.path == embedding.path && other != embedding)
        };
        let is_turned_off = !old.is_empty() && new.is_empty();
        fixed("vectorEmbeddingPolicy", !is_turned_off && !old.iter().any(altered))?;
        self.check_vector_indexes(&replacement.indexing)
    }

    /// Vector indexes can be added and removed; an existing one cannot be changed.
    fn check_vector_indexes(&self, new: &IndexingPolicy) -> Result<(), RequestFault> {
        let altered =
            |index: &VectorIndex| new.vectors.iter().any(|other| other.path == index.path && other != index);
        match self.indexing.vectors.iter().any(altered) {
            true => Err(DefinitionPart::Indexing.violates(IndexRule::ChangedVectorIndex)),
            false => Ok(()),
        }
    }
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
