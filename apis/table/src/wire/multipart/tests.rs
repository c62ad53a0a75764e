//! Batches as clients send them, broken ones, and answers.

use super::*;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use proptest::prelude::*;

const CONTENT_TYPE: &str = "multipart/mixed; boundary=batch_1";

fn read(body: &str) -> Result<Batch, MultipartFault> {
    read_batch(CONTENT_TYPE, &Bytes::copy_from_slice(body.as_bytes()))
}

fn part(request: &str) -> String {
    format!(
        "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{request}\r\n"
    )
}

fn batch_of(parts: &[String]) -> String {
    format!(
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n{}--changeset_1--\r\n--batch_1--\r\n",
        parts.concat()
    )
}

fn changeset(requests: &[&str]) -> String {
    let parts: Vec<String> = requests.iter().map(|request| part(request)).collect();
    batch_of(&parts)
}

#[track_caller]
fn requests(body: &str) -> Vec<PartRequest> {
    match read(body).unwrap() {
        Batch::Changeset(requests) => requests,
        Batch::Retrieval(request) => panic!("{request:?}"),
    }
}

#[test]
fn a_changeset_is_read() {
    let body = changeset(&[
        "POST http://127.0.0.1:10002/account/t HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n{\"a\":1}\r\n",
        "DELETE /account/t(PartitionKey='p',RowKey='r%20s') HTTP/1.1\r\nIf-Match: *\r\n\r\n",
        "MERGE t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nContent-ID: 3\r\nContent-Type: application/json\r\n\r\n{}",
    ]);
    let found = requests(&body);
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].method, Method::POST);
    assert_eq!(found[0].address, "http://127.0.0.1:10002/account/t");
    assert_eq!(found[0].headers["accept"], "application/json;odata=minimalmetadata");
    assert_eq!(found[0].body, "{\"a\":1}");
    assert_eq!(found[1].method, Method::DELETE);
    assert_eq!(found[1].address, "/account/t(PartitionKey='p',RowKey='r%20s')");
    assert_eq!((found[1].body.as_ref(), found[1].content_id.as_deref()), (&b""[..], None));
    assert_eq!(found[2].method, Method::from_bytes(b"MERGE").unwrap());
    assert_eq!(found[2].content_id.as_deref(), Some("3"));
    // The same with other line ends, text around the parts, and a number in the part's own headers.
    let lines = body.replace("\r\n", "\n");
    assert_eq!(requests(&lines), found);
    assert_eq!(requests(&format!("before\r\n{body}after")), found);
    let quoted = body.replace("boundary=changeset_1", "charset=utf-8; boundary=\"changeset_1\"");
    assert_eq!(requests(&quoted), found);
    let numbered = body.replacen("Content-Transfer-Encoding: binary", "content-id: 7", 1);
    assert_eq!(requests(&numbered)[0].content_id.as_deref(), Some("7"));
}

#[test]
fn a_query_stands_alone() {
    let query = "--batch_1\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\nGET http://host/t(PartitionKey='p',RowKey='r')?$select=a HTTP/1.1\nAccept: application/json\n\n--batch_1--";
    let Batch::Retrieval(request) = read(query).unwrap() else { panic!("no query") };
    assert_eq!(request.address, "http://host/t(PartitionKey='p',RowKey='r')?$select=a");
    assert_eq!(request.headers["accept"], "application/json");
    assert_eq!(read(&query.replace("GET", "PUT")), Err(MultipartFault::WriteOutsideChangeset));
    let twice = query.replace("--batch_1--", query);
    assert_eq!(read(&twice), Err(MultipartFault::SeveralParts));
}

#[test]
fn broken_batches_are_refused() {
    let good = changeset(&["PUT /t HTTP/1.1\r\nA: b\r\n\r\n{}", "PUT /t HTTP/1.1\r\n\r\n{}"]);
    requests(&good);
    for (from, to, expected) in [
        ("--batch_1--", "", MultipartFault::Unterminated),
        ("--changeset_1--", "", MultipartFault::Unterminated),
        ("--batch_1--", "--batch_1--x", MultipartFault::MalformedBoundary { offset: good.len() - 13 }),
        ("multipart/mixed; boundary=changeset_1", "multipart/mixed", MultipartFault::ContentType),
        ("multipart/mixed; boundary=changeset_1", "text/plain", MultipartFault::PartContentType { part: 0 }),
        ("Content-Type: application/http", "X: y", MultipartFault::PartContentType { part: 0 }),
        ("application/http", "multipart/mixed; boundary=c", MultipartFault::NestedChangeset { part: 0 }),
        ("PUT /t HTTP/1.1", "GET /t HTTP/1.1", MultipartFault::QueryInChangeset { part: 0 }),
        ("PUT /t HTTP/1.1", "PUT /t", MultipartFault::MalformedRequestLine { part: 0 }),
        ("PUT /t HTTP/1.1", "PUT", MultipartFault::MalformedRequestLine { part: 0 }),
        ("PUT /t HTTP/1.1", "P@T /t HTTP/1.1", MultipartFault::MalformedRequestLine { part: 0 }),
        ("PUT /t HTTP/1.1", "PUT /t x HTTP/1.1", MultipartFault::MalformedRequestLine { part: 0 }),
        ("PUT /t HTTP/1.1", "PUT  HTTP/1.1", MultipartFault::MalformedRequestLine { part: 0 }),
        ("A: b", "no header", MultipartFault::MalformedHeader { part: 0 }),
        ("A: b", "A b: c", MultipartFault::MalformedHeader { part: 0 }),
    ] {
        assert_eq!(read(&good.replacen(from, to, 1)), Err(expected), "{from} -> {to}");
    }
    let second = good.replace("PUT /t HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n");
    assert_eq!(read(&second), Err(MultipartFault::MalformedRequestLine { part: 1 }));
    assert_eq!(read(""), Err(MultipartFault::Unterminated));
    assert_eq!(read("--batch_1--"), Err(MultipartFault::Empty));
    assert_eq!(read(&changeset(&[])), Err(MultipartFault::Empty));
    assert_eq!(read(&changeset(&[""])), Err(MultipartFault::MalformedRequestLine { part: 0 }));
    let twice = format!("{}{good}", good.replace("--batch_1--\r\n", ""));
    assert_eq!(read(&twice), Err(MultipartFault::SeveralParts));
    for content_type in ["", "application/json", "multipart/mixed", "multipart/mixed; boundary=\"\""] {
        assert_eq!(read_batch(content_type, &Bytes::from(good.clone())), Err(MultipartFault::ContentType));
    }
}

#[test]
fn limits_hold_on_both_sides() {
    let many = |count: usize| read(&changeset(&vec!["PUT /t HTTP/1.1\r\n\r\n{}"; count]));
    assert!(matches!(many(BATCH_OPERATIONS_MAX), Ok(Batch::Changeset(requests)) if requests.len() == 100));
    let fault = MultipartFault::TooManyOperations { count_max: BATCH_OPERATIONS_MAX };
    assert_eq!(many(BATCH_OPERATIONS_MAX + 1), Err(fault));
    let headers = |count: usize| {
        let headers: String = (0..count).map(|index| format!("h{index}: v\r\n")).collect();
        read(&changeset(&[&format!("PUT /t HTTP/1.1\r\n{headers}\r\n{{}}")]))
    };
    assert!(headers(HEADERS_MAX).is_ok());
    assert_eq!(headers(HEADERS_MAX + 1), Err(MultipartFault::TooManyHeaders { part: 0 }));
    let sized = |bytes: usize| {
        let empty = changeset(&["PUT /t HTTP/1.1\r\n\r\n"]).len();
        read(&changeset(&[&format!("PUT /t HTTP/1.1\r\n\r\n{}", "x".repeat(bytes - empty))]))
    };
    assert!(sized(BATCH_BYTES_MAX).is_ok());
    let bytes = BATCH_BYTES_MAX + 1;
    assert_eq!(sized(bytes), Err(MultipartFault::TooLarge { bytes, bytes_max: BATCH_BYTES_MAX }));
}

fn response(status: StatusCode, content_id: Option<&str>, body: &str) -> PartResponse {
    let mut headers = HeaderMap::new();
    headers.insert("etag", HeaderValue::from_static("W/\"x\""));
    headers.insert("data-service-version", HeaderValue::from_static("1.0;"));
    headers.insert("x-ms-request-id", HeaderValue::from_static("7"));
    PartResponse {
        status,
        headers,
        content_id: content_id.map(str::to_owned),
        body: body.as_bytes().to_vec(),
    }
}

#[test]
fn answers_are_written() {
    let mut out = Vec::new();
    let responses =
        [response(StatusCode::NO_CONTENT, Some("1"), ""), response(StatusCode::CREATED, None, "{}")];
    write_changeset("batchresponse_a", "changesetresponse_b", &responses, &mut out);
    let expected = "--batchresponse_a\r\n\
        Content-Type: multipart/mixed; boundary=changesetresponse_b\r\n\r\n\
        --changesetresponse_b\r\n\
        Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
        HTTP/1.1 204 No Content\r\nContent-ID: 1\r\n\
        ETag: W/\"x\"\r\nData-Service-Version: 1.0;\r\nx-ms-request-id: 7\r\n\r\n\r\n\
        --changesetresponse_b\r\n\
        Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
        HTTP/1.1 201 Created\r\n\
        ETag: W/\"x\"\r\nData-Service-Version: 1.0;\r\nx-ms-request-id: 7\r\n\r\n{}\r\n\
        --changesetresponse_b--\r\n\
        --batchresponse_a--\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let mut out = Vec::new();
    write_retrieval("b", &response(StatusCode::OK, None, "{}"), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("--b\r\nContent-Type: application/http\r\n"));
    assert!(text.ends_with("\r\n\r\n{}\r\n--b--\r\n"));
    assert_eq!(batch_content_type("b"), "multipart/mixed; boundary=b");
}

proptest! {
    #[test]
    fn requests_come_back(
        bodies in prop::collection::vec("[ -~é]{0,30}", 1..6),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let texts: Vec<String> = bodies.iter().map(|body| format!("PUT /t HTTP/1.1\r\n\r\n{body}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = requests(&changeset(&texts).replace("\r\n", line_end));
        let found: Vec<&[u8]> = found.iter().map(|request| request.body.as_ref()).collect();
        prop_assert_eq!(found, bodies.iter().map(String::as_bytes).collect::<Vec<_>>());
    }

    #[test]
    fn damaged_batches_are_read_or_refused(place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut body = changeset(&["PUT /t HTTP/1.1\r\nA: b\r\n\r\n{}", "DELETE /t HTTP/1.1\r\n\r\n"]).into_bytes();
        let place = place.index(body.len());
        if cut { body.truncate(place) } else { body[place] = byte }
        let _ = read_batch(CONTENT_TYPE, &Bytes::from(body));
    }
}
