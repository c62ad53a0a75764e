//! Resources as JSON, with their system properties.

use super::links::{self, ContainerLinks};
use super::{definition, json};
use engine::{Container, Database, Offer, PartitionRange};
use model::{Etag, Rid, Throughput};
use plan::StoredDocument;
use serde_json::{Map, Value as Json, json};

pub(crate) fn database(database: &Database) -> Json {
    let rid = database.rid().to_string();
    json!({
        "id": database.id(),
        "_self": format!("dbs/{rid}/"),
        "_rid": rid,
        "_etag": database.etag().to_string(),
        "_colls": "colls/",
        "_users": "users/",
        "_ts": database.ts(),
    })
}

/// A container: its definition and its system properties.
pub(crate) fn container(container: &Container) -> Json {
    let mut members = definition::container::write(container.definition());
    members.insert("_rid".to_owned(), container.rid().to_string().into());
    members.insert("_ts".to_owned(), container.ts().into());
    members.insert("_self".to_owned(), ContainerLinks::of(container).rid_path.as_str().into());
    members.insert("_etag".to_owned(), container.etag().to_string().into());
    for (name, path) in [
        ("_docs", "docs/"),
        ("_sprocs", "sprocs/"),
        ("_triggers", "triggers/"),
        ("_udfs", "udfs/"),
        ("_conflicts", "conflicts/"),
    ] {
        members.insert(name.to_owned(), path.into());
    }
    Json::Object(members)
}

/// A partition key range of `container`.
pub(crate) fn range(container: &Container, range: &PartitionRange) -> Json {
    let rid = range.rid.to_string();
    json!({
        "id": range.ordinal.to_string(),
        "_self": format!("{}pkranges/{rid}/", ContainerLinks::of(container).rid_path),
        "_rid": rid,
        "_etag": range.etag.to_string(),
        "_ts": range.ts,
        "minInclusive": range.range.min.to_hex(),
        "maxExclusive": range.range.max.to_hex(),
        "ridPrefix": range.ordinal.0,
        "throughputFraction": range.throughput_fraction,
        "status": "online",
        "parents": range.parents.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "_lsn": range.etag.stamp,
    })
}

/// The throughput of a database or container.
pub(crate) fn offer(offer: &Offer, scaled: u64) -> Json {
    let rid = offer.rid().to_string();
    json!({
        "id": rid,
        "_self": format!("offers/{rid}/"),
        "_rid": rid,
        "_etag": offer.etag().to_string(),
        "_ts": offer.ts(),
        "offerVersion": "V2",
        "offerType": "Invalid",
        "resource": links::offer_owner(offer.owner().rid),
        "offerResourceId": offer.owner().rid.to_string(),
        "content": offer_content(offer, scaled),
    })
}

/// `offerThroughput` is present for autoscale too, since clients read it after every change: the rate to which it is
/// scaled.
fn offer_content(offer: &Offer, scaled: u64) -> Json {
    let mut content = json!({
        "offerThroughput": scaled,
        "offerIsRUPerMinuteThroughputEnabled": false,
        "offerMinimumThroughputParameters": {
            "maxThroughputEverProvisioned": offer.highest(),
            "maxConsumedStorageEverInKB": 0,
        },
        "offerLastReplaceTimestamp": offer.ts(),
    });
    match offer.throughput() {
        Throughput::Manual(_) => {}
        Throughput::Autoscale { max, increment_percent } => {
            content["offerAutopilotSettings"] = json!({
                "tier": 0,
                "maximumTierThroughput": 0,
                "autoUpgrade": false,
                "maxThroughput": max,
                "autoUpgradePolicy": { "throughputPolicy": { "incrementPercent": increment_percent } },
            });
        }
    }
    content
}

/// A page of small resources: `{"_rid":…,"<envelope>":[…],"_count":n}`.
pub(crate) fn feed(parent_rid: &str, envelope: &str, resources: Vec<Json>) -> Vec<u8> {
    let mut members = Map::new();
    members.insert("_rid".to_owned(), parent_rid.into());
    let count = resources.len();
    members.insert(envelope.to_owned(), resources.into());
    members.insert("_count".to_owned(), count.into());
    text(&Json::Object(members))
}

/// The text of a small resource.
pub(crate) fn text(json: &Json) -> Vec<u8> {
    json.to_string().into_bytes()
}

/// Writes items of one container. Their links differ only in the last RID.
pub(crate) struct ItemWriter<'a> {
    container: &'a Container,
    links: &'a ContainerLinks,
}

impl ItemWriter<'_> {
    /// A writer for items of `container`.
    pub(crate) fn new(container: &Container) -> ItemWriter<'_> {
        ItemWriter { container, links: ContainerLinks::of(container) }
    }

    /// Appends one item with its LSN, as in the change feed.
    pub(crate) fn push_with_lsn(&self, stored: &StoredDocument, out: &mut Vec<u8>) {
        self.push_open(stored, out);
        out.extend_from_slice(b",\"_lsn\":");
        json::push_integer(stored.lsn.0, out);
        out.push(b'}');
    }

    /// Appends one item.
    pub(crate) fn push(&self, stored: &StoredDocument, out: &mut Vec<u8>) {
        self.push_open(stored, out);
        out.push(b'}');
    }

    /// Appends one item without the closing brace. Written by hand into one buffer: this is the hot path of reads.
    fn push_open(&self, stored: &StoredDocument, out: &mut Vec<u8>) {
        let (database, container) = (self.container.database().number(), self.container.number());
        let rid = Rid::Document(database, container, stored.number).text();
        if stored.document.write_json_open(out) {
            out.push(b',');
        }
        out.extend_from_slice(b"\"_rid\":\"");
        out.extend_from_slice(rid.as_bytes());
        out.extend_from_slice(b"\",\"_self\":\"");
        out.extend_from_slice(self.links.rid_path.as_bytes());
        out.extend_from_slice(b"docs/");
        out.extend_from_slice(rid.as_bytes());
        out.extend_from_slice(b"/\",\"_etag\":");
        push_etag(stored.etag, out);
        out.extend_from_slice(b",\"_attachments\":\"attachments/\",\"_ts\":");
        json::push_integer(stored.ts(), out);
    }
}

/// Appends an ETag as a JSON string; the quotes of the ETag are part of it.
pub(crate) fn push_etag(etag: Etag, out: &mut Vec<u8>) {
    let text = etag.text();
    let inner = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(&text);
    out.extend_from_slice(b"\"\\\"");
    out.extend_from_slice(inner);
    out.extend_from_slice(b"\\\"\"");
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PartitionOrdinal;

    #[test]
    fn an_etag_keeps_its_own_quotes_inside_the_string() {
        let etag = Etag { ordinal: PartitionOrdinal(2), stamp: 77 };
        let mut out = Vec::new();
        push_etag(etag, &mut out);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), etag.to_string());
    }
}
