//! The stored form of definitions: every definition round-trips, and no bytes make the decoder panic.

use model::policy::{
    AnalyticalTtl, BoundingBox, ChangeFeedPolicy, ClientEncryptionPolicy, CompositeIndex, ComputedProperty,
    ConflictResolution, DistanceFunction, EncryptedPath, FullTextPath, FullTextPolicy, GeospatialType,
    IndexedPath, IndexingMode, IndexingPolicy, Language, Policies, PolicyPath, Quantizer, SpatialIndex,
    SpatialType, VectorDataType, VectorEmbedding, VectorEmbeddingPolicy, VectorIndex, VectorIndexKind,
};
use model::{
    ClientEncryptionKeyDefinition, ContainerDefinition, ContainerDraft, DecodeFault, Decoder, DefaultTtl,
    Encoder, KeyComponent, LetterCase, Opaque, OpaqueMembers, PartitionKey, PartitionKeyDefinition,
    PartitionKeyKind, PermissionDefinition, PermissionMode, ScriptDefinition, Throughput, TriggerOperation,
    TriggerTime, UniqueKey, UniqueKeyPolicy,
};
use proptest::collection::vec;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use value::PropertyPath;

fn encoded(definition: &ContainerDefinition) -> Vec<u8> {
    let mut out = Encoder::default();
    definition.encode(&mut out);
    out.finish()
}

fn decoded(bytes: &[u8]) -> Result<ContainerDefinition, DecodeFault> {
    let mut input = Decoder::new(bytes);
    let definition = ContainerDefinition::decode(&mut input)?;
    input.finish()?;
    Ok(definition)
}

fn path(text: &str) -> PropertyPath {
    PropertyPath::parse(text).unwrap()
}

fn index_path(text: &str) -> PolicyPath {
    PolicyPath::parse(text).unwrap()
}

fn members<const N: usize>(members: [(&str, Opaque); N]) -> OpaqueMembers {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn text(text: &str) -> Opaque {
    Opaque::Text(text.to_owned())
}

fn vectors() -> VectorEmbeddingPolicy {
    let source = members([
        ("paths", Opaque::List(vec![text("/t")])),
        ("deep", Opaque::List(vec![Opaque::Members(members([("x", Opaque::Double(1.5))]))])),
    ]);
    let first = VectorEmbedding {
        data_type: VectorDataType::Float16,
        dimensions: 3,
        distance: DistanceFunction::Euclidean,
        source: Some(source),
        ..VectorEmbedding::new(path("/v1"))
    };
    let second = VectorEmbedding {
        data_type: VectorDataType::Int8,
        dimensions: 500,
        distance: DistanceFunction::DotProduct,
        ..VectorEmbedding::new(path("/v2"))
    };
    let third = VectorEmbedding { data_type: VectorDataType::Uint8, ..VectorEmbedding::new(path("/v3")) };
    VectorEmbeddingPolicy { embeddings: vec![first, second, third] }
}

fn full_text() -> FullTextPolicy {
    let others = members([("other", Opaque::Bool(true))]);
    FullTextPolicy {
        default_language: Language::German,
        paths: vec![
            FullTextPath { path: path("/text"), language: Some(Language::French), others },
            FullTextPath { path: path("/title"), language: None, others: OpaqueMembers::default() },
        ],
        others: members([("more", Opaque::List(vec![Opaque::Signed(1), Opaque::Null]))]),
    }
}

fn encryption() -> ClientEncryptionPolicy {
    let encrypted =
        |text, deterministic| EncryptedPath { path: path(text), key_id: "key".to_owned(), deterministic };
    ClientEncryptionPolicy { paths: vec![encrypted("/secret", false), encrypted("/a", true)], version: 2 }
}

fn indexing() -> IndexingPolicy {
    let corners = [-1.25, 0.0, 10.0, 20.5];
    let spatial = SpatialIndex {
        bounding_box: Some(BoundingBox { corners }),
        ..SpatialIndex::new(index_path("/s/*"), &[SpatialType::Polygon, SpatialType::Point])
    };
    let quantized = VectorIndex {
        quantization_bytes: Some(9),
        quantizer: Some(Quantizer::Product),
        ..VectorIndex::new(path("/v2"), VectorIndexKind::QuantizedFlat)
    };
    let graph = VectorIndex {
        search_list_size: Some(50),
        shard_key: Some(path("/tenant")),
        ..VectorIndex::new(path("/v3"), VectorIndexKind::DiskAnn)
    };
    let mut policy = IndexingPolicy {
        mode: IndexingMode::Consistent,
        automatic: true,
        included: vec![
            IndexedPath { path: index_path("/*") },
            IndexedPath { path: index_path("/p/\"q r\"/[]/?") },
        ],
        excluded: vec![index_path("/z/*")],
        composite: vec![CompositeIndex::over(&[("/m", true), ("/n/o", false)]).unwrap()],
        spatial: vec![spatial],
        vectors: vec![VectorIndex::new(path("/v1"), VectorIndexKind::Flat), quantized, graph],
        full_texts: vec![path("/text")],
    };
    policy.complete_paths();
    policy
}

/// One definition with every feature.
fn everything() -> ContainerDefinition {
    let key = PartitionKeyDefinition::new(PartitionKeyKind::MultiHash, ["/a", "/\"b c\"/d", "/e"]).unwrap();
    let unique = [UniqueKey::over(&["/u", "/v/w"]).unwrap(), UniqueKey::over(&["/x"]).unwrap()];
    let draft = ContainerDraft {
        default_ttl: DefaultTtl::Seconds(77),
        unique_keys: UniqueKeyPolicy { keys: unique.to_vec() },
        policies: Policies {
            indexing: indexing(),
            conflicts: ConflictResolution::Custom("dbs/d/colls/c/sprocs/s".to_owned()),
            geospatial: GeospatialType::Geometry,
            change_feed: Some(ChangeFeedPolicy { retention_minutes: 90 }),
            computed: vec![ComputedProperty::new("lower", "SELECT VALUE LOWER(c.name) FROM c")],
            vectors: Some(vectors()),
            full_text: Some(full_text()),
            encryption: Some(encryption()),
            analytical_ttl: Some(AnalyticalTtl::new(-1).unwrap()),
        },
        ..ContainerDraft::new("everything", key)
    };
    draft.checked().unwrap()
}

fn encryption_key() -> ClientEncryptionKeyDefinition {
    let metadata = members([
        ("type", text("t")),
        ("name", text("n")),
        ("value", text("v")),
        ("algorithm", text("a")),
        ("more", Opaque::Double(1.0)),
    ]);
    ClientEncryptionKeyDefinition::new("k", "A", "AQID", metadata).unwrap()
}

#[test]
fn a_definition_with_every_feature_comes_back() {
    assert_eq!(decoded(&encoded(&everything())), Ok(everything()));
}

/// The bytes of stored rows: other bytes would be another format with another version.
#[test]
fn the_stored_bytes_do_not_change() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let bytes = encoded(&everything());
    assert_eq!(bytes.len(), 456);
    let digest = "38dd10e87f2cbaf77938c7af72d6985f02dfbafb98306ee143f06f5d94a67e8f";
    assert_eq!(hex(&Sha256::digest(&bytes)), digest);
    let mut out = Encoder::default();
    encryption_key().encode(&mut out);
    let trigger = Some((TriggerTime::Post, TriggerOperation::Upsert));
    ScriptDefinition::new("t", "x", trigger).unwrap().encode(&mut out);
    let expected = "016b01410441514944050474797065060174046e616d6506016e0576616c75650601760961\
                    6c676f726974686d060161046d6f7265053ff000000000000001740178010105";
    assert_eq!(hex(&out.finish()), expected);
}

#[test]
fn every_kind_of_partition_key_comes_back() {
    let key = |kind, paths: &[&str]| PartitionKeyDefinition::new(kind, paths.iter().copied()).unwrap();
    for key in [
        key(PartitionKeyKind::HashV1, &["/pk"]),
        key(PartitionKeyKind::HashV2, &["/pk/\"quoted name\""]),
        key(PartitionKeyKind::MultiHash, &["/a", "/b"]),
        key(PartitionKeyKind::HashV1, &["/pk"]).with_stated_version(),
        key(PartitionKeyKind::HashV1, &["/_partitionKey"]).marked_as_system(),
        PartitionKeyDefinition::system(),
    ] {
        let states_version = key.states_version();
        let definition = ContainerDraft::new("c", key).checked().unwrap();
        let read = decoded(&encoded(&definition)).unwrap();
        assert_eq!(read.partition_key.states_version(), states_version);
        assert_eq!(read, definition);
    }
}

#[test]
fn an_unknown_value_order_is_refused() {
    let mut bytes = encoded(&everything());
    assert_eq!(bytes[0], 0);
    bytes[0] = 1;
    let unknown = DecodeFault::Unknown { what: "value order", found: "1".to_owned(), at: 1 };
    assert_eq!(decoded(&bytes), Err(unknown));
}

#[test]
fn small_definitions_come_back() {
    let check = |encode: &dyn Fn(&mut Encoder), same: &dyn Fn(&mut Decoder<'_>) -> bool| {
        let mut out = Encoder::default();
        encode(&mut out);
        let bytes = out.finish();
        let mut input = Decoder::new(&bytes);
        assert!(same(&mut input));
        input.finish().unwrap();
    };
    let autoscale = |increment_percent| Throughput::Autoscale { max: 1_000_000, increment_percent };
    for throughput in [Throughput::Manual(400), autoscale(0), autoscale(100)] {
        check(&|out| throughput.encode(out), &|input| Throughput::decode(input) == Ok(throughput));
    }
    for trigger in [None, Some((TriggerTime::Post, TriggerOperation::Upsert))] {
        let script = ScriptDefinition::new("t", "x", trigger).unwrap();
        let script =
            if trigger.is_some() { script.spelled(LetterCase::Lower, LetterCase::Capital) } else { script };
        check(&|out| script.encode(out), &|input| ScriptDefinition::decode(input).as_ref() == Ok(&script));
    }
    let key = Some(r#"["a",{}]"#.to_owned());
    let permission = PermissionDefinition::new("p", PermissionMode::All, "dbs/d", key).unwrap();
    for mode_case in [LetterCase::Capital, LetterCase::Lower] {
        let permission = PermissionDefinition { mode_case, ..permission.clone() };
        check(&|out| permission.encode(out), &|input| {
            PermissionDefinition::decode(input).as_ref() == Ok(&permission)
        });
    }
    let key = encryption_key();
    check(&|out| key.encode(out), &|input| ClientEncryptionKeyDefinition::decode(input).as_ref() == Ok(&key));
    let components = vec![
        KeyComponent::Undefined,
        KeyComponent::Null,
        KeyComponent::Bool(true),
        KeyComponent::Bool(false),
        KeyComponent::Number(-0.5),
        KeyComponent::String("ä".to_owned()),
    ];
    let key = PartitionKey { components };
    check(&|out| key.encode(out), &|input| PartitionKey::decode(input).as_ref() == Ok(&key));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = decoded(&bytes);
    }

    /// Most random bytes are rejected at the first tag; damaged ones get further.
    #[test]
    fn no_damage_panics(damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()) {
        let mut bytes = encoded(&everything());
        prop_assert!(decoded(&bytes[..cut.index(bytes.len())]).is_err());
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(definition) = decoded(&bytes) {
            prop_assert_eq!(decoded(&encoded(&definition)).unwrap(), definition);
        }
    }
}
