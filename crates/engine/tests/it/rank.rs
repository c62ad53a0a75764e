//! `ORDER BY RANK`: scores of texts and vectors, alone and fused, over several partitions.

use crate::harness::Harness;
use crate::query::drain;
use engine::{Container, Scope};
use serde_json::json;
use std::sync::Arc;

async fn filled(harness: &Harness, documents: &[String]) -> Arc<Container> {
    let container = harness.container(|_| {}, 18_000).await;
    for document in documents {
        harness.create(&container, document).await.unwrap();
    }
    container
}

/// Ids in the order of a query, with pages of two sizes.
async fn ids(harness: &Harness, container: &Container, order: &str) -> Vec<String> {
    let sql = format!("SELECT TOP 50 VALUE c.id FROM c ORDER BY RANK {order}");
    let rows = drain(harness, container, &sql, Scope::Container, 100).await;
    assert_eq!(rows, drain(harness, container, &sql, Scope::Container, 3).await);
    rows.iter().map(|row| row.trim_matches('"').to_owned()).collect()
}

#[tokio::test]
async fn texts_come_by_their_words() {
    let harness = Harness::new().await;
    let texts = [
        ("none", "a red house"),
        ("once", "a bicycle shop in a quiet street near the old harbour"),
        ("twice", "bicycles and more bicycles"),
        ("short", "bicycle shop"),
    ];
    let mut documents: Vec<String> =
        texts.iter().map(|(id, text)| json!({ "id": id, "pk": id, "text": text }).to_string()).collect();
    documents.push(json!({ "id": "number", "pk": "n", "text": 5 }).to_string());
    let container = filled(&harness, &documents).await;
    let found = ids(&harness, &container, "FullTextScore(c.text, 'bicycle')").await;
    assert_eq!(found[..3], ["twice", "short", "once"]);
    assert_eq!(found.len(), 5, "rows without a hit follow");
    let found = ids(&harness, &container, "FullTextScore(c.text, ['quiet street', 'house'])").await;
    assert_eq!(found[..2], ["none", "once"]);
}

/// The orders that were observed in the service for these scores.
#[tokio::test]
async fn ranks_are_fused_as_the_service_does() {
    let harness = Harness::new().await;
    let falling = [61, 51, 49, 54, 75, 24, 77, 76, 80, 22];
    let mut documents = Vec::new();
    for (place, id) in falling.iter().enumerate() {
        documents.push(json!({ "id": id.to_string(), "pk": id.to_string(), "a": [0], "b": [100 - place] }));
    }
    for id in [2, 57, 85] {
        documents
            .push(json!({ "id": id.to_string(), "pk": id.to_string(), "a": [i32::from(id == 2)], "b": [0] }));
    }
    let documents: Vec<String> = documents.iter().map(ToString::to_string).collect();
    let container = filled(&harness, &documents).await;
    let score =
        |path: &str| format!(r#"VectorDistance(c.{path}, [1], false, {{"distanceFunction":"dotproduct"}})"#);
    let (a, b) = (score("a"), score("b"));
    let first = ["61", "51", "49", "54", "75", "24", "77", "76", "80", "2", "22"];
    for weights in ["", ", [1, 1]", ", [10, 10]", ", [0.1, 0.1]"] {
        let found = ids(&harness, &container, &format!("RRF({a}, {b}{weights})")).await;
        assert_eq!(found[..11], first, "{weights}");
        assert_eq!(found.len(), 13);
    }
    let found = ids(&harness, &container, &format!("RRF({a}, {b}, [-1, -1])")).await;
    assert_eq!(found[4..], ["80", "76", "77", "24", "75", "54", "49", "51", "61"]);
    let found = ids(&harness, &container, &format!("RRF({a}, FullTextScore(c.nothing, 'x'))")).await;
    assert_eq!(found[0], "2");
}
