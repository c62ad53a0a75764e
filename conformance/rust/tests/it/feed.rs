//! Lists of items: pages, continuations, ranges. The SDK has them as queries; it plans the one for everything itself.

use azure_data_cosmos::FeedScope;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::ContinuationToken;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::{CreateContainerOptions, MaxItemCountHint, QueryOptions};
use conformance::fixture::{all, create, pages, unique};
use conformance::{Fixture, good, over_both};
use futures::StreamExt;
use serde_json::{Value, json};

/// A container of two ranges with 25 items under four keys.
async fn filled(f: &Fixture) -> ContainerClient {
    let name = unique("c");
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(12_000));
    let properties = ContainerProperties::new(name.clone(), "/pk".into());
    f.database.create_container(properties, Some(options)).await.unwrap();
    let container = f.database.container_client(name, None).await.unwrap();
    for number in 0..25 {
        let key = format!("key-{}", number % 4);
        good(201, create(&container, key.clone(), json!({ "id": number.to_string(), "pk": key })).await);
    }
    container
}

fn of_size(size: u32) -> QueryOptions {
    QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(size.try_into().unwrap()))
}

#[test]
fn pages_of_any_size_give_the_same_order() {
    over_both(async |f| {
        let container = filled(f).await;
        let whole = all(&container).await;
        assert_eq!(whole.len(), 25);
        for size in [1, 7, 24, 25, 26] {
            let pages = pages(&container, FeedScope::full_container(), of_size(size)).await;
            assert!(pages.iter().all(|page| page.len() <= size as usize));
            assert_eq!(pages.concat(), whole, "pages of {size}");
        }
    });
}

#[test]
fn a_continuation_goes_on_where_it_was() {
    over_both(async |f| {
        let container = filled(f).await;
        let query =
            container.query_items::<Value>("SELECT * FROM c", FeedScope::full_container(), Some(of_size(6)));
        let mut iterator = query.await.unwrap().into_pages();
        let mut seen = iterator.next().await.unwrap().unwrap().into_items();
        let token = iterator.to_continuation_token().unwrap();
        let token = ContinuationToken::from_string(token.as_str().to_owned());
        let options = of_size(5).with_continuation_token(token);
        seen.extend(pages(&container, FeedScope::full_container(), options).await.concat());
        assert_eq!(seen, all(&container).await);
    });
}

#[test]
fn the_items_of_one_key() {
    over_both(async |f| {
        let container = filled(f).await;
        let found = pages(&container, FeedScope::partition("key-1"), of_size(4)).await;
        assert!(found.len() > 1);
        assert_eq!(found.concat().len(), 6);
        assert!(found.concat().iter().all(|item| item["pk"] == "key-1"));
    });
}

#[test]
fn the_ranges_of_a_container_have_all_items_once() {
    over_both(async |f| {
        let container = filled(f).await;
        let ranges = container.read_feed_ranges(None).await.unwrap();
        assert_eq!(ranges.len(), 2);
        let mut seen = Vec::new();
        for range in ranges {
            seen.extend(pages(&container, FeedScope::range(range), of_size(7)).await.concat());
        }
        assert_eq!(seen, all(&container).await);
    });
}
