//! Queries: filters, order, pages.

use crate::client::{Answer, Call, Client, code};
use serde_json::json;

async fn filled() -> Client {
    let client = Client::with_table().await;
    for partition in ["b", "a", "c"] {
        for row in 0..10 {
            let body = json!({ "PartitionKey": partition, "RowKey": format!("r{}", 9 - row), "n": row });
            client.insert(&body.to_string()).await;
        }
    }
    client
}

fn keys(answer: &Answer) -> Vec<String> {
    let body = answer.json();
    let rows = body["value"].as_array().unwrap().iter();
    rows.map(|row| format!("{}{}", row["PartitionKey"].as_str().unwrap(), row["RowKey"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn pages_follow_the_order_of_the_keys() {
    let client = filled().await;
    let all = client.send(Call::get("people()")).await.expect(200);
    let mut sorted = keys(&all);
    sorted.sort();
    assert_eq!((keys(&all).len(), &keys(&all)), (30, &sorted));
    assert!(all.header("x-ms-continuation-NextPartitionKey").is_none());
    let (mut seen, mut query, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = client.send(Call::get(format!("people()?$top=7{query}"))).await.expect(200);
        assert!(keys(&page).len() <= 7);
        seen.extend(keys(&page));
        pages += 1;
        assert!(pages < 10);
        let Some(next) = page.header("x-ms-continuation-NextPartitionKey") else { break };
        let row = page.header("x-ms-continuation-NextRowKey").unwrap();
        query = format!("&NextPartitionKey={next}&NextRowKey={row}");
    }
    assert_eq!((seen, pages), (sorted, 5));
}

#[tokio::test]
async fn filters_select() {
    let client = filled().await;
    for (filter, expected) in [
        ("PartitionKey eq 'a' and RowKey eq 'r3'", vec!["ar3"]),
        ("PartitionKey eq 'a' and RowKey eq 'absent'", vec![]),
        ("PartitionKey eq 'b' and n ge 8", vec!["br0", "br1"]),
        ("n eq 5 and PartitionKey ne 'b'", vec!["ar4", "cr4"]),
        ("NOT (n lt 9) OR RowKey eq 'r9' and PartitionKey gt 'b'", vec!["ar0", "br0", "cr0", "cr9"]),
        ("n eq 'x'", vec![]),
        ("Timestamp lt datetime'2000-01-01T00:00:00Z'", vec![]),
        ("Timestamp gt datetime'2000-01-01T00:00:00Z' and n eq 1", vec!["ar8", "br8", "cr8"]),
    ] {
        let path = format!("people()?$filter={}", filter.replace(' ', "%20"));
        let found = client.send(Call::get(path)).await.expect(200);
        assert_eq!(keys(&found), expected, "{filter}");
    }
    assert_eq!(keys(&client.send(Call::get("people()?$filter=")).await).len(), 30);
    let selected =
        client.send(Call::get("people()?$select=n&$top=1&$format=application/json;odata=nometadata")).await;
    assert_eq!(selected.json(), json!({ "value": [{ "n": 9 }] }));
}

#[tokio::test]
async fn bad_queries_are_refused() {
    let client = filled().await;
    let deep = format!("$filter={}n%20eq%201{}", "(".repeat(10_000), ")".repeat(10_000));
    for (query, expected) in [
        ("$filter=n%20eq", "InvalidInput"),
        ("$filter=n%20eq%20'x", "InvalidInput"),
        ("$filter=startswith(n,'x')", "NotImplemented"),
        (deep.as_str(), "InvalidInput"),
        ("$top=0", "InvalidInput"),
        ("$top=1001", "InvalidInput"),
        ("$top=-1", "InvalidInput"),
        ("$select=,", "InvalidInput"),
        ("NextPartitionKey=x&NextRowKey=1", "InvalidQueryParameterValue"),
        ("NextPartitionKey=1!8!YQ--", "InvalidQueryParameterValue"),
        ("$filter=%zz", "InvalidQueryParameterValue"),
        ("comp=list", "InvalidQueryParameterValue"),
    ] {
        let (_, found) = client.refusal(Call::get(format!("people()?{query}"))).await;
        assert_eq!(found, expected, "{query}");
    }
    assert_eq!(client.send(Call::get("people()?$top=1000")).await.status.as_u16(), 200);
    let long = format!("people()?$filter=s%20eq%20'{}'", "x".repeat(60_000));
    assert_eq!(client.refusal(Call::get(long)).await, code(400, "InvalidUri"));
    let long = format!("people()?$filter=s%20eq%20'{}'", "x".repeat(40_000));
    client.send(Call::get(long)).await.expect(200);
    let atom = Call::get("people()").header("accept", "application/atom+xml");
    assert_eq!(client.refusal(atom).await, code(415, "AtomFormatNotSupported"));
    assert_eq!(client.refusal(Call::get("people()?$orderby=n")).await, code(501, "NotImplemented"));
    let other = Call::get("people()?$format=application/other");
    assert_eq!(client.refusal(other).await, code(415, "MediaTypeNotSupported"));
}
