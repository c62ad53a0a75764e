//! A document that may be stored: its id and its own time to live are checked.

use model::limits::ID_BYTES_MAX;
use model::{PropertyRule, RequestFault};
use value::{Document, ValueRef};

/// Properties that the server owns: dropped from requests, added to answers.
pub const SYSTEM_PROPERTIES: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];

/// Most seconds of a document's own time to live.
const TTL_SECONDS_MAX: u32 = 0x7FFF_FFFF;

/// A document's own time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The default of the container applies.
    Inherit,
    /// The document never expires.
    Never,
    /// Seconds from its last write to its expiry.
    Seconds(u32),
}

/// A document with a valid id and a valid time to live.
#[derive(Clone, Debug)]
pub struct Item {
    id: String,
    ttl: Ttl,
    document: Document,
}

impl Item {
    /// Checks the rules that the service has for every item. System properties must have been dropped before.
    pub fn new(document: Document) -> Result<Item, RequestFault> {
        let root = document.root();
        let id = checked_id(root.member("id"))?.to_owned();
        let ttl = checked_ttl(root.member("ttl"))?;
        Ok(Item { id, ttl, document })
    }

    /// The id, unique in its logical partition.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The document's own time to live.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// The document.
    pub fn document(&self) -> &Document {
        &self.document
    }
}

fn checked_id(id: Option<ValueRef<'_>>) -> Result<&str, RequestFault> {
    let bad = |rule| RequestFault::BadProperty { property: "id", rule };
    let id = id.ok_or(bad(PropertyRule::Required))?;
    let id = id.as_str().ok_or(bad(PropertyRule::String))?;
    if id.is_empty() {
        return Err(bad(PropertyRule::NotEmpty));
    }
    if id.len() > ID_BYTES_MAX {
        return Err(bad(PropertyRule::Length { bytes_max: ID_BYTES_MAX }));
    }
    Ok(id)
}

fn checked_ttl(ttl: Option<ValueRef<'_>>) -> Result<Ttl, RequestFault> {
    let Some(ttl) = ttl else {
        return Ok(Ttl::Inherit);
    };
    match ttl.as_i64() {
        Some(-1) => Ok(Ttl::Never),
        Some(seconds) if (1..=i64::from(TTL_SECONDS_MAX)).contains(&seconds) => {
            Ok(Ttl::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX)))
        }
        Some(_) | None => Err(RequestFault::BadProperty {
            property: "ttl",
            rule: PropertyRule::TimeToLive { seconds_max: TTL_SECONDS_MAX },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(json: &str) -> Result<Item, RequestFault> {
        Item::new(Document::from_json(json.as_bytes()).unwrap())
    }

    #[test]
    fn ids_are_checked_on_both_sides_of_the_bound() {
        assert_eq!(item(r#"{"id":"a b"}"#).unwrap().id(), "a b");
        assert!(item(&format!(r#"{{"id":"{}"}}"#, "x".repeat(1023))).is_ok());
        assert!(item(&format!(r#"{{"id":"{}"}}"#, "x".repeat(1024))).is_err());
        assert_eq!(item(r#"{"id":"a?/\\#\n"}"#).unwrap().id(), "a?/\\#\n");
        for json in [r#"{}"#, r#"{"id":1}"#, r#"{"id":null}"#, r#"{"id":""}"#] {
            assert!(item(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_time_to_live_is_minus_one_or_positive() {
        let ttl = |text: &str| item(&format!(r#"{{"id":"a","ttl":{text}}}"#)).map(|item| item.ttl());
        assert_eq!(ttl("-1").unwrap(), Ttl::Never);
        assert_eq!(ttl("5.0").unwrap(), Ttl::Seconds(5));
        assert_eq!(ttl("2147483647").unwrap(), Ttl::Seconds(2_147_483_647));
        for text in ["0", "-2", "2147483648", "1.5", "\"1\"", "true", "[]", "null"] {
            assert!(ttl(text).is_err(), "{text}");
        }
    }
}
