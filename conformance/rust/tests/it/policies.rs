//! Policies that newer features brought.

use azure_data_cosmos::models::{
    ChangeFeedPolicy, ConflictResolutionMode, ConflictResolutionPolicy, ContainerProperties, FullTextIndex,
    FullTextPath, FullTextPolicy, IndexingMode, IndexingPolicy, SpatialIndex, SpatialType, VectorDataType,
    VectorDistanceFunction, VectorEmbedding, VectorEmbeddingPolicy, VectorIndex, VectorIndexType,
};
use conformance::fixture::unique;
use conformance::{over_both, refused};
use std::time::Duration;

fn indexing() -> IndexingPolicy {
    IndexingPolicy::default()
        .with_indexing_mode(IndexingMode::Consistent)
        .with_included_path("/*")
        .with_excluded_path("/\"_etag\"/?")
        .with_excluded_path("/v/*")
        .with_spatial_index(
            SpatialIndex::new("/loc/*").with_type(SpatialType::Point).with_type(SpatialType::Polygon),
        )
        .with_vector_index(VectorIndex::new("/v", VectorIndexType::QuantizedFlat))
        .with_full_text_index(FullTextIndex::new("/text"))
}

fn vectors(dimensions: u32) -> VectorEmbeddingPolicy {
    let data = VectorDataType::Float32;
    let embedding = VectorEmbedding::new("/v", data, dimensions, VectorDistanceFunction::Cosine);
    VectorEmbeddingPolicy::default().with_embedding(embedding)
}

fn texts() -> FullTextPolicy {
    FullTextPolicy::new("en-US").with_full_text_path(FullTextPath::new("/text").with_language("en-US"))
}

#[test]
fn vectors_texts_and_places_come_back_and_can_be_sent_again() {
    over_both(async |f| {
        let container = f
            .make(|properties| {
                properties
                    .with_indexing_policy(indexing())
                    .with_vector_embedding_policy(vectors(16))
                    .with_full_text_policy(texts())
            })
            .await;
        for _ in 0..2 {
            let kept = container.read(None).await.unwrap().into_model().unwrap();
            assert_eq!(kept.vector_embedding_policy, Some(vectors(16)));
            assert_eq!(kept.full_text_policy, Some(texts()));
            let policy = kept.indexing_policy.clone().unwrap();
            assert_eq!(policy.spatial_indexes, indexing().spatial_indexes);
            assert_eq!(policy.vector_indexes, indexing().vector_indexes);
            assert_eq!(policy.full_text_indexes, indexing().full_text_indexes);
            assert_eq!(policy.excluded_paths, indexing().excluded_paths);
            container.replace(kept.with_default_ttl(60), None).await.unwrap();
        }
    });
}

#[test]
fn policies_that_contradict_each_other_are_refused() {
    over_both(async |f| {
        let new = || ContainerProperties::new(unique("c"), "/pk".into()).with_indexing_policy(indexing());
        let wrong = [
            new().with_full_text_policy(texts()),
            new().with_vector_embedding_policy(vectors(16)),
            new().with_full_text_policy(texts()).with_vector_embedding_policy(vectors(0)),
        ];
        for properties in wrong {
            refused(400, 0, f.database.create_container(properties, None).await);
        }
    });
}

#[test]
fn conflicts_and_the_change_feed_have_their_policies() {
    over_both(async |f| {
        let conflicts = ConflictResolutionPolicy::new(ConflictResolutionMode::LastWriterWins)
            .with_resolution_path("/mine");
        let retention = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
        let container = f.make(|properties| {
            properties.with_conflict_resolution_policy(conflicts).with_change_feed_policy(retention.clone())
        });
        let kept = container.await.read(None).await.unwrap().into_model().unwrap();
        assert_eq!(kept.conflict_resolution_policy.unwrap().resolution_path, "/mine");
        assert_eq!(kept.change_feed_policy, Some(retention));
    });
}
