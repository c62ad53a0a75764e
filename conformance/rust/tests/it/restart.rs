//! What is left after the server was stopped or killed; the client goes on with what it knew.

use azure_data_cosmos::FeedScope;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use conformance::fixture::{Fixture, RUNTIME, all, create, pages};
use conformance::good;
use conformance::server::Server;
use futures::StreamExt;
use serde_json::{Value, json};

fn check(scheme: &'static str, end: fn(&mut Server)) {
    let mut server = Server::start_new();
    RUNTIME.block_on(async {
        let f = Fixture::new(&server, scheme).await;
        for number in 0..20 {
            let key = format!("k{}", number % 5);
            let item = json!({ "id": number.to_string(), "pk": key });
            good(201, create(&f.container, key, item).await);
        }
        good(
            200,
            f.container.replace_item("k3", "3", json!({ "id": "3", "pk": "k3", "v": "new" }), None).await,
        );
        good(204, f.container.delete_item("k4", "4", None).await);
        let before = all(&f.container).await;
        let six =
            || QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(6.try_into().unwrap()));
        let query =
            f.container.query_items::<Value>("SELECT * FROM c", FeedScope::full_container(), Some(six()));
        let mut iterator = query.await.unwrap().into_pages();
        let mut seen = iterator.next().await.unwrap().unwrap().into_items();
        let token = iterator.to_continuation_token().unwrap();
        end(&mut server);
        server.start();
        assert_eq!(all(&f.container).await, before);
        assert_eq!(before.len(), 19);
        let rest =
            pages(&f.container, FeedScope::full_container(), six().with_continuation_token(token)).await;
        seen.extend(rest.concat());
        assert_eq!(seen, before);
        good(201, create(&f.container, "a", json!({ "id": "new", "pk": "a" })).await);
    });
}

fn stop(server: &mut Server) {
    assert!(server.stop());
}

#[test]
fn everything_is_there_after_a_stop_over_http() {
    check("http", stop);
}

#[test]
fn everything_is_there_after_a_stop_over_https() {
    check("https", stop);
}

#[test]
fn everything_is_there_after_a_kill_over_http() {
    check("http", Server::kill);
}

#[test]
fn everything_is_there_after_a_kill_over_https() {
    check("https", Server::kill);
}
