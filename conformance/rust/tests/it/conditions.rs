//! ETags as conditions, alone and in races.

use azure_core::http::Etag;
use azure_data_cosmos::options::{ItemReadOptions, ItemWriteOptions, Precondition};
use conformance::fixture::{SHARED, create};
use conformance::{good, over_both, refused};
use serde_json::{Value, json};

fn if_match(etag: &Etag) -> Option<ItemWriteOptions> {
    Some(ItemWriteOptions::default().with_precondition(Precondition::IfMatch(etag.clone())))
}

fn if_none_match(etag: &str) -> Option<ItemWriteOptions> {
    Some(
        ItemWriteOptions::default().with_precondition(Precondition::IfNoneMatch(Etag::from(etag.to_owned()))),
    )
}

fn item(v: i64) -> Value {
    json!({ "id": "1", "pk": "a", "v": v })
}

#[test]
fn an_unchanged_item_is_not_sent_again() {
    over_both(async |f| {
        let etag = f.create(item(1)).await.headers().etag().cloned().unwrap();
        let condition = ItemReadOptions::default().with_precondition(Precondition::IfNoneMatch(etag));
        let unchanged = f.container.read_item("a", "1", Some(condition.clone())).await.unwrap();
        assert_eq!(u16::from(unchanged.status().status_code()), 304);
        f.container.upsert_item("a", "1", item(2), None).await.unwrap();
        let changed = good(200, f.container.read_item("a", "1", Some(condition)).await);
        assert_eq!(changed.into_model::<Value>().unwrap()["v"], 2);
    });
}

#[test]
fn an_old_tag_stops_every_write() {
    over_both(async |f| {
        let old = f.create(item(1)).await.headers().etag().cloned().unwrap();
        let replaced = good(200, f.container.replace_item("a", "1", item(2), if_match(&old)).await);
        let current = replaced.headers().etag().cloned().unwrap();
        refused(412, 0, f.container.replace_item("a", "1", item(3), if_match(&old)).await);
        refused(412, 0, f.container.upsert_item("a", "1", item(3), if_match(&old)).await);
        refused(412, 0, f.container.delete_item("a", "1", if_match(&old)).await);
        assert_eq!(f.read("1").await.unwrap()["v"], 2);
        good(204, f.container.delete_item("a", "1", if_match(&current)).await);
    });
}

#[test]
fn a_star_means_that_the_item_must_exist() {
    over_both(async |f| {
        let star = Etag::from("*");
        refused(404, 0, f.container.replace_item("a", "1", item(1), if_match(&star)).await);
        f.create(item(1)).await;
        good(200, f.container.replace_item("a", "1", item(2), if_match(&star)).await);
    });
}

#[test]
fn an_upsert_may_be_told_not_to_replace() {
    over_both(async |f| {
        good(201, f.container.upsert_item("a", "1", item(1), if_none_match("*")).await);
        refused(412, 0, f.container.upsert_item("a", "1", item(2), if_none_match("*")).await);
    });
}

#[test]
fn one_of_two_clients_wins_each_race() {
    over_both(async |f| {
        let name = f.container.read(None).await.unwrap().into_model().unwrap().id.to_string();
        let other = SHARED.client(f.scheme).await.database_client(f.database.name().unwrap().to_owned());
        let mirror = other.container_client(name, None).await.unwrap();
        let mut etag = f.create(item(0)).await.headers().etag().cloned().unwrap();
        for round in 1..=20 {
            let (ours, theirs) = futures::future::join(
                f.container.replace_item("a", "1", item(round), if_match(&etag)),
                mirror.replace_item("a", "1", item(round), if_match(&etag)),
            )
            .await;
            let (won, lost) = if ours.is_ok() { (ours, theirs) } else { (theirs, ours) };
            etag = good(200, won).headers().etag().cloned().unwrap();
            refused(412, 0, lost);
            assert_eq!(f.read("1").await.unwrap()["v"], round);
        }
    });
}

#[test]
fn of_many_creates_of_an_id_one_succeeds() {
    over_both(async |f| {
        let racers = (0..20).map(|number| create(&f.container, "a", item(number)));
        let (won, lost): (Vec<_>, Vec<_>) =
            futures::future::join_all(racers).await.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        for answer in lost {
            refused(409, 0, answer);
        }
    });
}
