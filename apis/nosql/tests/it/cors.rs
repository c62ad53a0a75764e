//! CORS headers in answers to browsers.

use crate::client::{Answer, Call, Client, DOCS, container};
use http::{Method, StatusCode};
use nosql::{CorsPolicy, NosqlOptions};
use serde_json::json;

const HERE: &str = "https://app.example";
const ELSEWHERE: &str = "https://evil.example";

async fn client(policy: Option<&str>) -> Client {
    let cors = policy.map(|text| CorsPolicy::parse(text).unwrap());
    Client::with_options(NosqlOptions { cors, ..NosqlOptions::default() }).await
}

/// A preflight as browsers send it: without a credential.
fn preflight(origin: &str) -> Call {
    Call::new(Method::OPTIONS, DOCS)
        .omit("authorization")
        .omit("x-ms-date")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,x-ms-date, X-MS-Version,x-evil,content-type")
}

/// All CORS headers of an answer.
fn cors_headers(answer: &Answer) -> Vec<&str> {
    answer
        .headers
        .keys()
        .map(http::HeaderName::as_str)
        .filter(|name| name.starts_with("access-control-"))
        .collect()
}

#[tokio::test]
async fn a_preflight_of_a_listed_origin_needs_no_credential() {
    let client = client(Some("https://app.example,http://localhost:3000")).await;
    let answer = client.send(preflight(HERE)).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(answer.header("access-control-allow-origin"), Some(HERE));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, PUT, PATCH, DELETE"));
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("authorization, x-ms-date, X-MS-Version, content-type")
    );
    assert_eq!(answer.header("access-control-max-age"), Some("7200"));
    assert!(answer.header("vary").unwrap().contains("Origin"));
    assert_eq!(answer.header("access-control-allow-private-network"), None);
    let private = preflight(HERE).header("access-control-request-private-network", "true");
    let answer = client.send(private).await;
    assert_eq!(answer.header("access-control-allow-private-network"), Some("true"));
}

#[tokio::test]
async fn nobody_else_learns_anything() {
    for (policy, origin) in [
        (Some(HERE), ELSEWHERE),
        (Some(HERE), "null"),
        (Some(HERE), "https://app.example.evil"),
        (None, HERE),
    ] {
        let client = client(policy).await;
        let answer = client.send(preflight(origin)).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{origin}");
        assert_eq!(cors_headers(&answer), Vec::<&str>::new(), "{origin}");
        let answer = client.send(Call::get("/dbs").header("origin", origin)).await;
        assert_eq!(answer.status, StatusCode::OK, "{origin}");
        assert_eq!(cors_headers(&answer), Vec::<&str>::new(), "{origin}");
        assert_eq!(answer.header("vary"), policy.map(|_| "Origin"));
    }
}

#[tokio::test]
async fn options_without_the_question_of_a_browser_is_a_verb_like_any_other() {
    let client = client(Some("*")).await;
    let call = preflight(HERE).without_header("access-control-request-method");
    assert_eq!(client.send(call).await.status, StatusCode::METHOD_NOT_ALLOWED);
    let call = preflight(HERE).without_header("origin");
    assert_eq!(client.send(call).await.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_page_reads_every_header_of_every_answer() {
    let client = client(Some("*")).await;
    let calls = [
        Call::post("/dbs").json(&json!({ "id": "d" })),
        Call::post("/dbs/d/colls").json(&container("c")),
        Call::post(DOCS).key(&json!(["k"])).json(&json!({ "id": "1", "pk": "k" })),
        Call::post(DOCS).key(&json!(["k"])).json(&json!({ "id": "2", "pk": "k" })),
        Call::get("/dbs/d/colls/c/docs/1").key(&json!(["k"])),
        Call::get(DOCS).header("x-ms-max-item-count", "1"),
        Call::get("/dbs/d/colls/c/pkranges"),
        Call::get("/offers"),
        Call::get("/"),
        Call::get("/dbs/none/colls/c/docs/1").key(&json!(["k"])),
        Call::delete("/dbs/d/colls/c/docs/1").key(&json!(["k"])),
        Call::get("/dbs").header("authorization", "type=master"),
    ];
    // The headers that every browser exposes by default.
    let always =
        ["cache-control", "content-type", "access-control-allow-origin", "access-control-expose-headers"];
    for call in calls {
        let name = format!("{} {}", call.verb, call.path);
        let answer = client.send(call.header("origin", HERE)).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{name}");
        let exposed: Vec<&str> =
            answer.header("access-control-expose-headers").unwrap().split(", ").collect();
        for header in answer.headers.keys().map(http::HeaderName::as_str) {
            assert!(always.contains(&header) || exposed.contains(&header), "{name}: {header}");
        }
    }
}
