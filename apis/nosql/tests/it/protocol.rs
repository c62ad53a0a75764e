//! Rules for every request: credentials, activity ids, sizes, verbs, features that are not implemented.

use crate::client::{Call, Client, DOCS, KEY, NOW, date_at};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Frame};
use nosql::NosqlOptions;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[tokio::test]
async fn a_stranger_learns_nothing_about_what_exists() {
    let client = Client::with_container().await;
    let mut answers = Vec::new();
    for path in ["/dbs/d", "/dbs/nothing", "/dbs/d/colls/c/docs/1", "/dbs/nothing/colls/c/docs/1"] {
        let unsigned = client.send(Call::get(path).omit("authorization")).await;
        assert_eq!(unsigned.code(), (401, 0), "{path}");
        assert_eq!(unsigned.header("x-ms-request-charge"), Some("0.00"));
        let wrong = client.send(Call::get(path).signed_as("dbs", "elsewhere")).await;
        assert_eq!(wrong.code(), (401, 0), "{path}");
        answers.push(unsigned.json()["code"].clone());
    }
    assert!(answers.iter().all(|code| code == "Unauthorized"));
}

#[tokio::test]
async fn dates_are_checked_with_the_signature() {
    let client = Client::empty().await;
    let at = |date: &str| Call::get("/").header("x-ms-date", date);
    assert_eq!(client.send(at(&date_at(NOW - 899))).await.status, StatusCode::OK);
    let late = client.send(at(&date_at(NOW + 901))).await;
    assert_eq!(late.code(), (403, 0));
    assert!(late.message().contains(&date_at(NOW)), "{late:?}");
    assert_eq!(client.send(at("today")).await.code(), (401, 0));
}

#[tokio::test]
async fn an_activity_id_comes_back_when_it_is_one() {
    let client = Client::empty().await;
    let id = "6d3f0000-1111-2222-3333-0123456789ab";
    let answer = client.send(Call::get("/dbs/x").header("x-ms-activity-id", id)).await;
    assert_eq!(answer.header("x-ms-activity-id"), Some(id));
    assert!(answer.message().contains(&format!("\r\nActivityId: {id}")));
    let answer = client.send(Call::get("/").header("x-ms-activity-id", "<script>")).await;
    assert_eq!(answer.header("x-ms-activity-id").unwrap().len(), 36);
}

#[tokio::test]
async fn unknown_paths_and_verbs_are_told_apart() {
    let client = Client::with_container().await;
    for path in ["/x", "/dbs/d/x", "/dbs/d/colls/c/docs/1/attachments/a", "/dbs//colls", "/%ff", "/dbs/%zz"] {
        assert_eq!(client.send(Call::get(path)).await.code(), (404, 0), "{path}");
    }
    for (verb, path) in [
        (Method::PUT, "/dbs"),
        (Method::PUT, "/dbs/d"),
        (Method::POST, "/"),
        (Method::HEAD, DOCS),
        (Method::OPTIONS, "/dbs/d/colls/c"),
        (Method::DELETE, "/dbs/d/colls/c/pkranges"),
        (Method::from_bytes(b"BREW").unwrap(), "/"),
    ] {
        let answer = client.send(Call::new(verb, path)).await;
        assert_eq!(answer.code(), (405, 0), "{path}");
        assert_eq!(answer.json()["code"], "MethodNotAllowed");
    }
}

#[tokio::test]
async fn what_is_not_built_says_so() {
    let client = Client::with_container().await;
    client.create("/dbs/d/colls/c/sprocs", json!({ "id": "s", "body": "function () {}" })).await;
    let query = json!({ "query": "SELECT VALUE 1 FROM c" });
    for call in [
        Call::post("/offers").json(&json!({ "id": "x" })),
        Call::post("/dbs/d/colls/c/conflicts").json(&json!({ "id": "x" })),
        Call::post("/dbs").header("x-ms-cosmos-is-query-plan-request", "True").json(&query),
        Call::post("/dbs/d/colls/c/sprocs/s").key(&json!(["a"])).json(&json!([])),
    ] {
        let path = call.path.clone();
        assert_eq!(client.send(call.clone().omit("authorization")).await.code(), (401, 0), "{path}");
        let answer = client.send(call).await;
        assert_eq!(answer.code(), (400, 0), "{path}");
        assert!(answer.message().contains("is not supported"), "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn consistency_may_be_weaker_but_not_stronger() {
    let client = Client::with_container().await;
    let level = |text: &str| Call::get("/dbs/d").header("x-ms-consistency-level", text);
    assert_eq!(client.send(level("Eventual")).await.status, StatusCode::OK);
    assert_eq!(client.send(level("Strong")).await.code(), (400, 0));
    assert_eq!(client.send(level("Whatever")).await.code(), (400, 0));
}

/// Announces a length and sends something else, or never anything.
struct OddBody {
    announced: u64,
    pieces: usize,
    piece: usize,
    hangs: bool,
}

impl Body for OddBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.pieces == 0 {
            return if self.hangs { Poll::Pending } else { Poll::Ready(None) };
        }
        self.pieces -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b' '; self.piece])))))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        let mut hint = hyper::body::SizeHint::new();
        hint.set_lower(self.announced);
        hint
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_are_bounded_in_size_and_time() {
    let client = Client::with_container().await;
    let post = || Call::post(DOCS).key(&json!(["a"]));
    let announced = OddBody { announced: 1 << 30, pieces: 1, piece: 1, hangs: true };
    let answer = client.send_body(post(), announced).await;
    assert_eq!(answer.code(), (413, 0));
    assert_eq!(answer.header("connection"), Some("close"));
    let endless = OddBody { announced: 0, pieces: usize::MAX, piece: 64 * 1024, hangs: true };
    let answer = client.send_body(post(), endless).await;
    assert_eq!(answer.code(), (413, 0));
    assert_eq!(answer.header("connection"), Some("close"));
    let slow = OddBody { announced: 100, pieces: 1, piece: 1, hangs: true };
    let answer = client.send_body(post(), slow).await;
    assert_eq!(answer.code(), (400, 0));
    assert_eq!(answer.header("connection"), Some("close"));
    // The body of an unauthenticated caller is discarded on arrival, and the connection can be used again.
    let small = Full::new(Bytes::from_static(b"{}"));
    let answer = client.send_body(post().omit("authorization"), small).await;
    assert_eq!(answer.code(), (401, 0));
    assert_eq!(answer.header("connection"), None);
}

/// A body that arrives in pieces.
struct Pieces(Vec<&'static str>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
    }
}

#[tokio::test]
async fn a_body_in_pieces_is_put_together() {
    let client = Client::with_container().await;
    let body = Pieces(vec!["\"pk\":\"a\"}", "\"1\",", "{\"id\":"]);
    let answer = client.send_body(Call::post(DOCS).key(&json!(["a"])), body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let unsigned = Call::post(DOCS).omit("authorization");
    let answer = client.send_body(unsigned, Pieces(vec!["}", "{"])).await;
    assert_eq!((answer.code(), answer.header("connection")), ((401, 0), None));
}

#[tokio::test]
async fn headers_that_decide_about_access_come_once() {
    let client = Client::with_container().await;
    let read = || Call::get("/dbs/d/colls/c/docs/1").key(&json!(["a"]));
    for (name, value) in [
        ("authorization", "type%3dmaster"),
        ("x-ms-date", "Thu, 27 Apr 2017 00:51:12 GMT"),
        ("x-ms-documentdb-partitionkey", "[\"b\"]"),
        ("host", "other.example"),
        ("if-match", "*"),
    ] {
        let mut call = read().header("if-match", "*");
        call.headers.push((name.to_owned(), value.as_bytes().to_vec()));
        if name == "authorization" || name == "x-ms-date" || name == "host" {
            call.headers.push((name.to_owned(), value.as_bytes().to_vec()));
        }
        let answer = client.send(call).await;
        assert_eq!(answer.code(), (400, 0), "{name}");
        assert!(answer.message().contains(name) && answer.message().contains("more than once"), "{name}");
    }
    let mut harmless = read();
    harmless.headers.extend([("x-other".to_owned(), b"1".to_vec()), ("x-other".to_owned(), b"2".to_vec())]);
    assert_eq!(client.send(harmless).await.code(), (404, 0));
}

#[tokio::test]
async fn answers_are_kept_by_nobody_and_repeat_no_endless_host() {
    let client = Client::with_container().await;
    let account = |length: usize| Call::get("/").header("host", format!("{}:1", "h".repeat(length - 2)));
    let answer = client.send(account(255)).await;
    assert_eq!((answer.status, answer.header("cache-control")), (StatusCode::OK, Some("no-store")));
    assert_eq!(client.send(account(256)).await.code(), (400, 0));
    client.put_item("1", "a").await;
    for call in [Call::get("/dbs/d/colls/c/docs/1").key(&json!(["a"])), Call::get("/dbs/none")] {
        assert_eq!(client.send(call).await.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn headers_are_bounded() {
    let client =
        Client::with_options(NosqlOptions { body_timeout: Duration::from_secs(1), ..Default::default() })
            .await;
    assert_eq!(
        client.send(Call::get("/").header("x-filler", "x".repeat(30 * 1024))).await.status,
        StatusCode::OK
    );
    assert_eq!(client.send(Call::get("/").header("x-filler", "x".repeat(33 * 1024))).await.code(), (413, 0));
}

#[tokio::test]
async fn slashes_in_front_of_a_path_do_not_count() {
    let client = Client::with_container().await;
    client.put_item("1", "a").await;
    for path in ["//", "//dbs", "//dbs/d/", "///dbs/d/colls/c", "//dbs/d/colls/c/docs/"] {
        assert_eq!(client.send(Call::get(path)).await.status, StatusCode::OK, "{path}");
    }
    let read = Call::get("//dbs/d/colls/c/docs/1/").key(&json!(["a"]));
    assert_eq!(client.send(read).await.status, StatusCode::OK);
    assert_eq!(
        client.send(Call::post("//dbs/").json(&json!({ "id": "e" }))).await.status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn a_client_in_direct_mode_is_told_to_use_gateway_mode() {
    let client = Client::with_container().await;
    let query =
        "$resolveFor=dbs%2Fd%2Fcolls%2Fc%2Fdocs&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0";
    for path in [format!("/addresses/?{query}"), format!("//addresses/?{query}"), "/addresses".to_owned()] {
        let answer = client.send(Call::get(&path).signed_as("docs", "dbs/d/colls/c")).await;
        assert_eq!(answer.code(), (400, 0), "{path}");
        let message = answer.message();
        assert!(message.contains("gatewayMode()") && message.contains("ConnectionMode.Gateway"), "{message}");
    }
}

#[tokio::test]
async fn a_path_behind_an_offer_is_refused_as_such() {
    let client = Client::with_container().await;
    assert_eq!(client.send(Call::put("/offers/offers/AQAA/").json(&json!({}))).await.code(), (400, 0));
}

/// A token as clients make it for the emulator: the third part is the text of the key.
fn key_token(key: &[u8]) -> String {
    let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let header = text(br#"{"typ":"JWT","alg":"RS256","x5t":"CosmosEmulatorPrimaryMaster","kid":"CosmosEmulatorPrimaryMaster"}"#);
    let claims = text(br#"{"aud":"https://localhost.localhost","iss":"https://sts.fake-issuer.net/x"}"#);
    let token = format!("{header}.{claims}.{}", text(BASE64_STANDARD.encode(key).as_bytes()));
    format!("type%3Daad%26ver%3D1.0%26sig%3D{token}")
}

#[tokio::test]
async fn the_emulator_s_own_tokens_are_accepted_where_they_are_allowed() {
    let options = NosqlOptions { takes_key_tokens: true, ..NosqlOptions::default() };
    let allowed = Client::with_options(options).await;
    let by = |token: String| Call::post("/dbs").json(&json!({ "id": "d" })).header("authorization", token);
    let other = BASE64_STANDARD.encode(b"another key");
    for wrong in [key_token(other.as_bytes()), key_token(b""), key_token(KEY).replace('.', "")] {
        assert_eq!(allowed.send(by(wrong)).await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(allowed.send(by(key_token(KEY))).await.status, StatusCode::CREATED);
    let refused = Client::empty().await;
    assert_eq!(refused.send(by(key_token(KEY))).await.code(), (401, 5002));
}
