//! The body of a write: JSON text of an entity to a document.
//!
//! A property has the type of its annotation `Name@odata.type`. Without one, a number with a point or an exponent is
//! a Double, a whole number an Int32 and refused if it is none, a string a String. Null properties are dropped, and so are `Timestamp` and
//! everything whose name begins with `odata.`.

use super::names::check_name;
use super::{EntityFault, check_key};
use crate::account::EntityLimits;
use crate::edm::document::{check_size, utf16_len};
use crate::edm::{
    EdmType, EntityTooLarge, PARTITION_KEY, PROPERTIES_MAX, ROW_KEY, TIMESTAMP, document_id, member_name,
    parse_text,
};
use value::{Decoded, Document, DocumentBuilder, JsonErrorKind, Kind, Value, ValueRef};

/// Longest text in UTF-16 units.
pub const TEXT_UNITS_MAX: usize = 32 * 1024;
/// Longest binary in bytes.
pub const BINARY_BYTES_MAX: usize = 64 * 1024;

const ANNOTATION: &str = "@odata.";
const TYPE_ANNOTATION: &str = "@odata.type";
const METADATA: &str = "odata.";

/// An entity that may be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Its PartitionKey.
    pub partition_key: String,
    /// Its RowKey.
    pub row_key: String,
    /// Its document, with `id` and both keys.
    pub document: Document,
}

/// Where the keys of an entity come from.
#[derive(Clone, Copy, Debug)]
pub enum EntityKeys<'a> {
    /// The body must have them.
    InBody,
    /// The address has them; the body may repeat them.
    InAddress {
        /// PartitionKey.
        partition_key: &'a str,
        /// RowKey.
        row_key: &'a str,
    },
}

/// Reads the JSON text of an entity within `limits`.
pub fn read_entity(text: &[u8], keys: EntityKeys<'_>, limits: EntityLimits) -> Result<Entity, EntityFault> {
    let body = Document::from_json_distinct(text).map_err(|error| {
        let offset = error.offset;
        let is_repeated = error.kind == JsonErrorKind::RepeatedName;
        if is_repeated { EntityFault::RepeatedProperty { offset } } else { EntityFault::Json(error) }
    })?;
    let root = body.root();
    let (address_partition_key, address_row_key) = match keys {
        EntityKeys::InBody => (None, None),
        EntityKeys::InAddress { partition_key, row_key } => (Some(partition_key), Some(row_key)),
    };
    let partition_key = key((PARTITION_KEY, limits), root, address_partition_key)?;
    let row_key = key((ROW_KEY, limits), root, address_row_key)?;
    let mut builder = DocumentBuilder::with_capacity(text.len() + 64);
    let id = Value::String(document_id(row_key).into_owned());
    builder.member("id", id.as_ref());
    builder.member(PARTITION_KEY, Value::from(partition_key).as_ref());
    builder.member(ROW_KEY, Value::from(row_key).as_ref());
    let annotations = annotations(root);
    let mut count = 0;
    for (name, given) in root.members() {
        let is_metadata = name.starts_with(METADATA) || name.contains(ANNOTATION);
        if is_metadata || [PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name) {
            continue;
        }
        check_name(name)?;
        if given.is_null() {
            continue;
        }
        count += 1;
        if count > PROPERTIES_MAX {
            continue;
        }
        let annotation = annotations.iter().find(|(property, _)| *property == name).map(|(_, given)| *given);
        add_property(name, given, annotation, limits.ticks_min, &mut builder)?;
    }
    if count > PROPERTIES_MAX {
        return Err(EntityFault::TooManyProperties { count });
    }
    let too_large = |_| EntityFault::EntityTooLarge { bytes: text.len() };
    let document = builder.finish().map_err(too_large)?;
    check_size(&document, limits.bytes_max)?;
    Ok(Entity { partition_key: partition_key.to_owned(), row_key: row_key.to_owned(), document })
}

impl From<EntityTooLarge> for EntityFault {
    fn from(fault: EntityTooLarge) -> EntityFault {
        match fault {
            EntityTooLarge::Properties { count } => EntityFault::TooManyProperties { count },
            EntityTooLarge::Bytes { bytes } => EntityFault::EntityTooLarge { bytes },
        }
    }
}

/// The checked key, from the address if it has one.
fn key<'a>(
    (key, limits): (&'static str, EntityLimits),
    root: ValueRef<'a>,
    in_address: Option<&'a str>,
) -> Result<&'a str, EntityFault> {
    let in_body = root.member(key).filter(|found| !found.is_null());
    let in_body = in_body.map(|found| found.as_str().ok_or(EntityFault::KeyNotText { key })).transpose()?;
    let text = match (in_address, in_body) {
        (Some(address), Some(body)) if address != body => return Err(EntityFault::KeyDiffers { key }),
        (Some(text), _) | (None, Some(text)) => text,
        (None, None) => return Err(EntityFault::KeyMissing { key }),
    };
    check_key(key, text, limits.key_units_max)?;
    Ok(text)
}

/// The type annotations: the name of the property and the given type.
fn annotations(root: ValueRef<'_>) -> Vec<(&str, ValueRef<'_>)> {
    let annotation = |(name, given): (_, _)| Some((str::strip_suffix(name, TYPE_ANNOTATION)?, given));
    root.members().filter_map(annotation).collect()
}

fn add_property(
    name: &str,
    given: ValueRef<'_>,
    annotation: Option<ValueRef<'_>>,
    ticks_min: i64,
    builder: &mut DocumentBuilder,
) -> Result<(), EntityFault> {
    let property = || name.to_owned();
    let edm_type = match annotation {
        None => None,
        Some(annotation) => {
            let known = annotation.as_str().and_then(EdmType::from_name);
            Some(known.ok_or_else(|| EntityFault::UnknownType { property: property() })?)
        }
    };
    if matches!(given.kind(), Kind::Array | Kind::Object) {
        return Err(EntityFault::NotPrimitive { property: property() });
    }
    let (converted, edm_type) = match edm_type {
        None => (without_annotation(given), EdmType::Int32),
        Some(edm_type) => (with_annotation(given, edm_type), edm_type),
    };
    let not_of_type = || EntityFault::NotOfType { property: property(), edm_type };
    let converted = converted.ok_or_else(not_of_type)?;
    let stored = match &converted {
        Converted::Given => given,
        Converted::New(value) => value.as_ref(),
    };
    if matches!(stored.decode(), Decoded::Ticks(ticks) if ticks < ticks_min) {
        return Err(not_of_type());
    }
    let (size, size_max) = if let Decoded::String(text) = stored.decode() {
        (utf16_len(text), TEXT_UNITS_MAX)
    } else if let Decoded::Binary { bytes, .. } = stored.decode() {
        (bytes.len(), BINARY_BYTES_MAX)
    } else {
        (0, 0)
    };
    if size > size_max {
        return Err(EntityFault::ValueTooLarge { property: property(), size });
    }
    builder.member(&member_name(name), stored);
    Ok(())
}

/// A value as it was given, or another one.
enum Converted {
    Given,
    New(Value),
}

/// The value with the type of its form; `None` for a whole number that is no Int32.
fn without_annotation(given: ValueRef<'_>) -> Option<Converted> {
    // Integers above those of an Int64 are decimals; beyond 64 bits they are doubles, whose spelling is not kept.
    if !matches!(given.kind(), Kind::Int64 | Kind::Decimal) {
        return Some(Converted::Given);
    }
    let integer = i32::try_from(given.as_i64()?).ok()?;
    Some(Converted::New(Value::Int32(integer)))
}

fn nearest_double(given: ValueRef<'_>) -> Converted {
    given.as_f64().map_or(Converted::Given, |double| Converted::New(Value::Double(double)))
}

/// The value with the type of its annotation; `None` if it has no such value.
fn with_annotation(given: ValueRef<'_>, edm_type: EdmType) -> Option<Converted> {
    match (given.decode(), edm_type) {
        (Decoded::String(_), EdmType::String)
        | (Decoded::Bool(_), EdmType::Boolean)
        | (Decoded::Double(_), EdmType::Double)
        | (Decoded::Int64(_), EdmType::Int64) => Some(Converted::Given),
        (Decoded::String(text), _) => parse_text(edm_type, text).map(Converted::New),
        (Decoded::Int64(integer), EdmType::Int32) => {
            i32::try_from(integer).ok().map(|integer| Converted::New(Value::Int32(integer)))
        }
        (Decoded::Int64(_) | Decoded::Decimal(_), EdmType::Double) => Some(nearest_double(given)),
        _ => None,
    }
}
