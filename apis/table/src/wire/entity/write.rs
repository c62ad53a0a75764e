//! Entities in answers, written from the encoded document.

use super::Select;
use crate::edm::{EdmType, PARTITION_KEY, ROW_KEY, TIMESTAMP, property_name, write_date_time};
use model::Ticks;
use value::{Decoded, ValueRef, write_json_string};

const TICKS_PER_MS: i64 = 10_000;

/// How much an answer says about types and addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataLevel {
    /// Properties only.
    None,
    /// ETags, and types that JSON does not show.
    Minimal,
    /// All types and addresses.
    Full,
}

/// What the entities of an answer have in common.
#[derive(Clone, Copy, Debug)]
pub struct EntityFrame<'a> {
    /// What is written besides the properties.
    pub level: MetadataLevel,
    /// The address of the service, without a slash at its end.
    pub base: &'a str,
    /// The account.
    pub account: &'a str,
    /// The table.
    pub table: &'a str,
    /// The selected properties.
    pub select: &'a Select,
}

/// A stored entity.
#[derive(Clone, Copy, Debug)]
pub struct EntityRow<'a> {
    /// Its document.
    pub document: ValueRef<'a>,
    /// Its time.
    pub timestamp: Ticks,
    /// Its ETag, as in the header.
    pub etag: &'a str,
}

/// Appends an answer of one entity.
pub fn write_entity(frame: &EntityFrame<'_>, row: &EntityRow<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut members = MemberWriter { out, is_first: true };
    if frame.level >= MetadataLevel::Minimal {
        members.name("odata.metadata");
        members.text(&format!("{}/$metadata#{}/@Element", frame.base, frame.table));
    }
    write_members(frame, row, &mut members);
    out.push(b'}');
}

/// Appends an answer of many entities.
pub fn write_page<'a>(
    frame: &EntityFrame<'_>,
    rows: impl IntoIterator<Item = EntityRow<'a>>,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    if frame.level >= MetadataLevel::Minimal {
        let mut members = MemberWriter { out, is_first: true };
        members.name("odata.metadata");
        members.text(&format!("{}/$metadata#{}", frame.base, frame.table));
        out.push(b',');
    }
    out.extend_from_slice(br#""value":["#);
    for (index, row) in rows.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'{');
        write_members(frame, &row, &mut MemberWriter { out, is_first: true });
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

/// The address of an entity below the service: `table(PartitionKey='p',RowKey='r')`, percent-encoded.
pub fn entity_address(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut address = format!("{table}(PartitionKey='");
    push_key(partition_key, &mut address);
    address.push_str("',RowKey='");
    push_key(row_key, &mut address);
    address.push_str("')");
    address
}

fn push_key(key: &str, address: &mut String) {
    for byte in key.bytes() {
        match byte {
            b'\'' => address.push_str("%27%27"),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                address.push(char::from(byte))
            }
            _ => {
                let digit =
                    |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0').to_ascii_uppercase();
                address.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

fn write_members(frame: &EntityFrame<'_>, row: &EntityRow<'_>, members: &mut MemberWriter<'_>) {
    let key = |name: &str| row.document.member(name).and_then(ValueRef::as_str);
    if frame.level == MetadataLevel::Full {
        let (partition_key, row_key) = (key(PARTITION_KEY), key(ROW_KEY));
        let address =
            entity_address(frame.table, partition_key.unwrap_or_default(), row_key.unwrap_or_default());
        members.name("odata.type");
        members.text(&format!("{}.{}", frame.account, frame.table));
        members.name("odata.id");
        members.text(&format!("{}/{address}", frame.base));
        members.name("odata.etag");
        members.text(row.etag);
        members.name("odata.editLink");
        members.text(&address);
    } else if frame.level == MetadataLevel::Minimal {
        members.name("odata.etag");
        members.text(row.etag);
    }
    for name in [PARTITION_KEY, ROW_KEY] {
        if let (true, Some(text)) = (frame.select.contains(name), key(name)) {
            members.name(name);
            members.text(text);
        }
    }
    if frame.select.contains(TIMESTAMP) {
        if frame.level == MetadataLevel::Full {
            members.annotation(TIMESTAMP, EdmType::DateTime);
        }
        members.name(TIMESTAMP);
        members.date_time(i64::try_from(row.timestamp.0).unwrap_or(i64::MAX));
    }
    for (member, value) in row.document.members() {
        let Some(name) = property_name(member) else {
            continue;
        };
        if [PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name) || !frame.select.contains(name) {
            continue;
        }
        let Some(edm_type) = EdmType::of(value) else {
            continue;
        };
        if needs_annotation(frame.level, edm_type, value) {
            members.annotation(name, edm_type);
        }
        members.name(name);
        members.value(value);
    }
}

fn needs_annotation(level: MetadataLevel, edm_type: EdmType, value: ValueRef<'_>) -> bool {
    let is_shown = match edm_type {
        EdmType::String | EdmType::Boolean | EdmType::Int32 => true,
        EdmType::Double => value.as_f64().is_some_and(f64::is_finite),
        EdmType::Int64 | EdmType::DateTime | EdmType::Guid | EdmType::Binary => false,
    };
    match level {
        MetadataLevel::None => false,
        MetadataLevel::Minimal => !is_shown,
        MetadataLevel::Full => true,
    }
}

/// Writes members of an object with commas between them.
struct MemberWriter<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl MemberWriter<'_> {
    fn name(&mut self, name: &str) {
        self.separate();
        write_json_string(name, self.out);
        self.out.push(b':');
    }

    fn annotation(&mut self, name: &str, edm_type: EdmType) {
        self.separate();
        write_json_string(name, self.out);
        // The closing quote moves behind the suffix.
        self.out.pop();
        self.out.extend_from_slice(br#"@odata.type":""#);
        self.out.extend_from_slice(edm_type.name().as_bytes());
        self.out.push(b'"');
    }

    fn text(&mut self, text: &str) {
        write_json_string(text, self.out);
    }

    fn date_time(&mut self, ticks: i64) {
        self.out.push(b'"');
        write_date_time(ticks, self.out);
        self.out.push(b'"');
    }

    fn value(&mut self, value: ValueRef<'_>) {
        match value.decode() {
            Decoded::Null
            | Decoded::Bool(_)
            | Decoded::Int32(_)
            | Decoded::Double(_)
            | Decoded::String(_)
            | Decoded::Binary { .. }
            | Decoded::Ticks(_)
            | Decoded::Guid(_)
            | Decoded::ObjectId(_) => value.write_json(self.out),
            Decoded::Int64(integer) => {
                self.out.push(b'"');
                self.out.extend_from_slice(integer.to_string().as_bytes());
                self.out.push(b'"');
            }
            Decoded::Decimal(decimal) => value::Value::Double(decimal.to_f64()).as_ref().write_json(self.out),
            Decoded::Date(milliseconds) => self.date_time(milliseconds.saturating_mul(TICKS_PER_MS)),
            Decoded::Array(_) | Decoded::Object(_) => {
                let mut text = Vec::new();
                value.write_json(&mut text);
                self.text(&String::from_utf8_lossy(&text));
            }
        }
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }
}
