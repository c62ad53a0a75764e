//! Entity group transactions: all or nothing, both sides of each limit.

use crate::client::{Answer, Call, Client, address, code};
use serde_json::json;

/// An operation of a changeset.
pub(crate) fn part(verb: &str, path: &str, headers: &str, body: &str) -> String {
    format!(
        "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         {verb} https://tables.example/storage/{path} HTTP/1.1\r\nContent-Type: application/json\r\n\
         Accept: application/json;odata=minimalmetadata\r\n{headers}\r\n{body}\r\n"
    )
}

fn insert(partition_key: &str, row_key: &str) -> String {
    let body = json!({ "PartitionKey": partition_key, "RowKey": row_key, "n": 1 }).to_string();
    part("POST", "people", "Prefer: return-no-content\r\n", &body)
}

pub(crate) fn batch(parts: &[String]) -> Call {
    let body = format!(
        "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n{}--changeset_c--\r\n--batch_b--\r\n",
        parts.concat()
    );
    Call::new("POST", "$batch").body("multipart/mixed; boundary=batch_b", &body)
}

/// The statuses of the parts of an answer.
pub(crate) fn statuses(answer: &Answer) -> Vec<&str> {
    let lines = answer.text().lines().filter_map(|line| line.strip_prefix("HTTP/1.1 "));
    lines.map(|line| line.split(' ').next().unwrap()).collect()
}

async fn count(client: &Client) -> usize {
    client.send(Call::get("people()")).await.json()["value"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_changeset_is_committed_as_a_whole() {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"merged","a":1}"#).await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"deleted"}"#).await;
    let echo = part("POST", "people", "", r#"{"PartitionKey":"p","RowKey":"echo","n":1}"#);
    let answer = client
        .send(batch(&[
            insert("p", "new"),
            echo,
            part("PATCH", &address("p", "merged"), "If-Match: *\r\n", r#"{"b":2}"#),
            part("PUT", &address("p", "put"), "", r#"{"c":3}"#),
            part("DELETE", &address("p", "deleted"), "If-Match: *\r\n", ""),
        ]))
        .await
        .expect(202);
    assert!(answer.header("content-type").unwrap().starts_with("multipart/mixed; boundary=batchresponse_"));
    assert_eq!(statuses(&answer), ["204", "201", "204", "204", "204"], "{answer:?}");
    assert_eq!(answer.text().matches("ETag: W/").count(), 4, "{answer:?}");
    assert!(answer.text().contains(r#""RowKey":"echo""#));
    let merged = client.entity("p", "merged").await.unwrap();
    assert_eq!((&merged["a"], &merged["b"]), (&json!(1), &json!(2)));
    assert!(client.entity("p", "deleted").await.is_none() && client.entity("p", "put").await.is_some());
}

#[tokio::test]
async fn a_refused_operation_refuses_all_and_has_its_index() {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"there"}"#).await;
    for (second, expected, refused_code) in [
        (insert("p", "there"), "409", "EntityAlreadyExists"),
        (part("PUT", &address("p", "absent"), "If-Match: *\r\n", "{}"), "404", "ResourceNotFound"),
        (
            part(
                "PUT",
                &address("p", "there"),
                "If-Match: W/\"datetime'2020-01-01T00%3A00%3A00Z'\"\r\n",
                "{}",
            ),
            "412",
            "UpdateConditionNotSatisfied",
        ),
        (part("DELETE", &address("p", "there"), "", ""), "400", "MissingRequiredHeader"),
        (insert("q", "other"), "400", "CommandsInBatchActOnDifferentPartitions"),
        (insert("p", "first"), "400", "InvalidDuplicateRow"),
        (part("POST", "others", "", r#"{"PartitionKey":"p","RowKey":"x"}"#), "400", "InvalidInput"),
        (part("POST", "Tables", "", r#"{"TableName":"xyz"}"#), "400", "InvalidInput"),
        (part("POST", "people", "", "{"), "400", "InvalidInput"),
        (part("POST", "people", "", r#"{"PartitionKey":"p","RowKey":"a/b"}"#), "400", "OutOfRangeInput"),
    ] {
        let answer = client
            .send(batch(&[insert("p", "first"), second.clone(), insert("p", "last")]))
            .await
            .expect(202);
        assert_eq!(statuses(&answer), [expected], "{second}: {answer:?}");
        assert!(answer.text().contains(refused_code), "{answer:?}");
        assert!(answer.text().contains(r#""value":"1:"#), "{answer:?}");
        assert_eq!(count(&client).await, 1, "{second}");
    }
}

/// What an insert shall answer is read before it is written.
#[tokio::test]
async fn an_answer_that_cannot_be_given_refuses_the_whole_changeset() {
    let client = Client::with_table().await;
    let atom =
        insert("p", "second").replace("application/json;odata=minimalmetadata", "application/atom+xml");
    let answer = client.send(batch(&[insert("p", "first"), atom])).await.expect(202);
    assert_eq!(statuses(&answer), ["415"], "{answer:?}");
    assert!(answer.text().contains(r#""value":"1:"#), "{answer:?}");
    assert_eq!(count(&client).await, 0);
}

#[tokio::test]
async fn a_batch_has_at_most_a_hundred_operations() {
    let client = Client::with_table().await;
    let parts = |count: usize| (0..count).map(|row| insert("p", &row.to_string())).collect::<Vec<_>>();
    let refused = client.send(batch(&parts(101))).await.expect(202);
    assert_eq!(statuses(&refused), ["400"]);
    assert!(refused.text().contains(r#""value":"100:"#), "{refused:?}");
    assert_eq!(count(&client).await, 0);
    let answer = client.send(batch(&parts(100))).await.expect(202);
    assert_eq!(statuses(&answer).len(), 100);
    assert_eq!(count(&client).await, 100);
}

#[tokio::test]
async fn a_batch_has_at_most_four_megabytes() {
    let client = Client::with_table().await;
    let large = |row: usize, bytes: usize| {
        let properties: Vec<String> =
            (0..bytes / 30_000).map(|index| format!(r#""s{index}":"{}""#, "x".repeat(29_980))).collect();
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{}}}"#, properties.join(","));
        part("POST", "people", "Prefer: return-no-content\r\n", &body)
    };
    let parts: Vec<String> = (0..8).map(|row| large(row, 480_000)).collect();
    let answer = client.send(batch(&parts)).await.expect(202);
    assert_eq!(statuses(&answer), ["204"; 8], "{answer:?}");
    let parts: Vec<String> = (10..20).map(|row| large(row, 480_000)).collect();
    assert_eq!(client.refusal(batch(&parts)).await, code(413, "RequestBodyTooLarge"));
    assert!(client.entity("p", "10").await.is_none());
}

#[tokio::test]
async fn broken_bodies_are_refused() {
    let client = Client::with_table().await;
    let whole = batch(&[insert("p", "r")]);
    let text = String::from_utf8(whole.body.clone()).unwrap();
    for broken in [
        String::new(),
        text.replace("--batch_b--", ""),
        text.replace("application/http", "text/plain"),
        text.replace("POST https", "POSThttps"),
        text.replace("multipart/mixed; boundary=changeset_c", "multipart/mixed"),
    ] {
        let call = Call::new("POST", "$batch").body("multipart/mixed; boundary=batch_b", &broken);
        assert_eq!(client.refusal(call).await.0, 400, "{broken}");
    }
    let call = Call::new("POST", "$batch").body("application/json", &text);
    assert_eq!(client.refusal(call).await, code(400, "InvalidInput"));
    assert_eq!(client.refusal(Call::get("$batch")).await, code(405, "UnsupportedHttpVerb"));
    assert_eq!(count(&client).await, 0);
}

#[tokio::test]
async fn a_batch_may_be_one_query() {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let query = |path: &str| {
        let body = format!(
            "--batch_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             GET https://tables.example/storage/{path} HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--batch_b--\r\n"
        );
        Call::new("POST", "$batch").body("multipart/mixed; boundary=batch_b", &body)
    };
    for path in [address("p", "r"), "people()?$filter=RowKey%20eq%20'r'".to_owned()] {
        let answer = client.send(query(&path)).await.expect(202);
        assert_eq!(statuses(&answer), ["200"], "{answer:?}");
        assert!(answer.text().contains(r#""RowKey":"r""#));
    }
    let absent = client.send(query(&address("p", "absent"))).await.expect(202);
    assert_eq!(statuses(&absent), ["404"], "{absent:?}");
    assert_eq!(statuses(&client.send(query("Tables")).await.expect(202)), ["400"]);
}

#[tokio::test]
async fn tables_that_differ_in_case_are_two_tables_in_accounts_of_cosmos() {
    let client = Client::with_table().await;
    client.send(Call::new("POST", "Tables").json(r#"{"TableName":"PEOPLE"}"#).cosmos()).await.expect(201);
    let other = part("POST", "PEOPLE", "", r#"{"PartitionKey":"p","RowKey":"2"}"#);
    let parts = [insert("p", "1"), other].map(|part| part.replace("/storage/", "/"));
    let answer = client.send(batch(&parts).cosmos()).await.expect(202);
    assert_eq!(statuses(&answer), ["400"], "{answer:?}");
    assert_eq!(count(&client).await, 0);
}

#[tokio::test]
async fn addresses_in_answers_are_those_of_the_outer_request() {
    let client = Client::with_table().await;
    let relative = insert("p", "1").replace("https://tables.example/", "/");
    let answer = client.send(batch(&[relative])).await.expect(202);
    assert!(answer.text().contains("Location: https://tables.example/storage/people("), "{answer:?}");
}

/// An address outside of a batch cannot be as long; one of 64 KB is not read.
#[tokio::test]
async fn a_query_in_a_batch_has_the_limits_of_filters() {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let query = |filter: &str| {
        let body = format!(
            "--batch_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             GET https://tables.example/storage/people()?$filter={filter} HTTP/1.1\r\nAccept: application/json\r\n\
             \r\n\r\n--batch_b--\r\n"
        );
        Call::new("POST", "$batch").body("multipart/mixed; boundary=batch_b", &body)
    };
    let text = |count: usize| format!("RowKey%20eq%20'{}'", "x".repeat(count));
    let comparisons = |count: usize| vec!["x%20eq%201"; count].join("%20or%20");
    let deep = format!("{}RowKey%20eq%20'r'{}", "(".repeat(10_000), ")".repeat(10_000));
    for (filter, status) in [("RowKey%20eq%20'r'".to_owned(), "200"), (text(50_000), "200"), (deep, "400")] {
        let answer = client.send(query(&filter)).await;
        assert_eq!(answer.status.as_u16(), 202, "{filter:.40}: {answer:?}");
        assert_eq!(statuses(&answer), [status], "{filter:.40}: {answer:?}");
        assert_eq!(
            answer.text().contains("\"code\":\"InvalidInput\""),
            status == "400",
            "{filter:.40}: {answer:?}"
        );
    }
    assert_eq!(client.refusal(query(&text(100_000))).await, code(400, "InvalidInput"));
    let many = client.send(query(&comparisons(3_000))).await;
    assert_eq!((many.status.as_u16(), statuses(&many)), (202, vec!["200"]), "{many:?}");
}
