//! Service properties, statistics, CORS, verbs and sizes.

use crate::client::{Call, Client, Signing, code};

const CORS: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://page</AllowedOrigins>\
                    <AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds>\
                    <ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-*,accept</AllowedHeaders></CorsRule>\
                    </Cors></StorageServiceProperties>";

fn properties(verb: &str) -> Call {
    Call::new(verb, "?restype=service&comp=properties")
}

#[tokio::test]
async fn properties_are_stored_section_by_section() {
    let client = Client::empty().await;
    let defaults = client.send(properties("GET")).await.expect(200);
    assert!(
        defaults.text().contains("<Logging><Version>1.0</Version><Delete>false</Delete>"),
        "{defaults:?}"
    );
    let hours = "<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>true</Enabled>\
                 <IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy>\
                 </HourMetrics></StorageServiceProperties>";
    client.send(properties("PUT").body("application/xml", hours)).await.expect(202);
    client.send(properties("PUT").body("application/xml", CORS)).await.expect(202);
    let stored = client.send(properties("GET")).await.expect(200);
    assert!(stored.text().contains("<Days>5</Days>") && stored.text().contains("http://page"), "{stored:?}");
    let refused = client.refusal(properties("PUT").body("application/xml", "<x/>")).await;
    assert_eq!(refused, code(400, "InvalidXmlDocument"));
    let refused = client.refusal(properties("PUT").cosmos().body("application/xml", CORS)).await;
    assert_eq!(refused, code(501, "NotImplemented"));
    client.send(properties("GET").cosmos()).await.expect(200);
}

#[tokio::test]
async fn pages_of_listed_origins_may_read_answers() {
    let client = Client::with_table().await;
    let preflight = |origin: &str, method: &str, headers: &str| {
        Call::new("OPTIONS", "people()")
            .signing(Signing::None)
            .header("origin", origin)
            .header("access-control-request-method", method)
            .header("access-control-request-headers", headers)
    };
    let refused = client.refusal(preflight("http://page", "GET", "accept")).await;
    assert_eq!(refused, code(403, "CorsPreflightFailure"));
    client.send(properties("PUT").body("application/xml", CORS)).await.expect(202);
    let allowed = client.send(preflight("http://page", "GET", "x-ms-date, accept")).await.expect(200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("http://page"));
    assert_eq!(allowed.header("access-control-max-age"), Some("60"));
    for (origin, method, headers) in [
        ("http://other", "GET", "accept"),
        ("http://page", "DELETE", "accept"),
        ("http://page", "GET", "cookie"),
    ] {
        let refused = client.refusal(preflight(origin, method, headers)).await;
        assert_eq!(refused, code(403, "CorsPreflightFailure"), "{origin} {method} {headers}");
    }
    let answer = client.send(Call::get("people()").header("origin", "http://page")).await.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://page"));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("x-ms-request-id"));
    let other = client.send(Call::get("people()").header("origin", "http://other")).await.expect(200);
    assert_eq!(other.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn statistics_say_that_there_is_no_second_region() {
    let client = Client::empty().await;
    let answer = client.send(Call::get("?restype=service&comp=stats")).await.expect(200);
    assert!(answer.text().contains("<Status>unavailable</Status>"), "{answer:?}");
}

#[tokio::test]
async fn verbs_and_paths_that_mean_nothing_are_refused() {
    let client = Client::with_table().await;
    for (verb, path, expected) in [
        ("GET", "", code(400, "InvalidUri")),
        ("GET", "?restype=service&comp=other", code(400, "InvalidUri")),
        ("DELETE", "?restype=service&comp=properties", code(405, "UnsupportedHttpVerb")),
        ("PUT", "Tables", code(405, "UnsupportedHttpVerb")),
        ("POST", "Tables('people')", code(405, "UnsupportedHttpVerb")),
        ("DELETE", "people", code(405, "UnsupportedHttpVerb")),
        ("POST", "people?comp=acl", code(405, "UnsupportedHttpVerb")),
        ("POST", "people(PartitionKey='p',RowKey='r')", code(405, "UnsupportedHttpVerb")),
        ("GET", "people(PartitionKey='p')", code(400, "InvalidUri")),
        ("GET", "people(PartitionKey='p',RowKey='r'", code(400, "InvalidUri")),
        ("GET", "people%zz", code(400, "InvalidUri")),
    ] {
        assert_eq!(client.refusal(Call::new(verb, path)).await, expected, "{verb} {path}");
    }
    let tunnel = Call::new("POST", "people(PartitionKey='p',RowKey='r')").header("x-http-method", "BREW");
    assert_eq!(client.refusal(tunnel).await, code(405, "UnsupportedHttpVerb"));
}

#[tokio::test]
async fn headers_and_bodies_have_limits() {
    let client = Client::with_table().await;
    let large = |bytes: usize| Call::get("people()").header("x-large", "x".repeat(bytes));
    client.send(large(47_000)).await.expect(200);
    assert_eq!(client.refusal(large(49_200)).await, code(400, "InvalidUri"));
    let body = |bytes: usize| Call::new("POST", "people").json(&" ".repeat(bytes));
    assert_eq!(client.refusal(body(4 << 20)).await, code(400, "InvalidInput"));
    assert_eq!(client.refusal(body((4 << 20) + 1)).await, code(413, "RequestBodyTooLarge"));
}
