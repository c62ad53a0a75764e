//! Names of properties and of the members that store them.
//!
//! A property is stored in the member of the same name, unless a document has a use of its own for that name: then the
//! member's name begins with `$`, which no property name may contain.

use plan::SYSTEM_PROPERTIES;

/// Names that a document uses itself, besides the system properties.
const RESERVED: [&str; 2] = ["id", "ttl"];

/// Precedes the name of a property that a document cannot have under its own name.
const ESCAPE: char = '$';

/// The name of the member that stores a property.
pub fn member_name(property: &str) -> std::borrow::Cow<'_, str> {
    if is_reserved(property) { format!("{ESCAPE}{property}").into() } else { property.into() }
}

/// The name of the property that a member stores; `None` for members that are not properties of the entity.
pub fn property_name(member: &str) -> Option<&str> {
    match member.strip_prefix(ESCAPE) {
        Some(property) if is_reserved(property) => Some(property),
        // Annotations are not properties; another API may have stored members of such names.
        Some(_) | None => (!is_reserved(member) && !is_annotation(member)).then_some(member),
    }
}

fn is_annotation(name: &str) -> bool {
    name.starts_with("odata.") || name.contains("@odata.")
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || SYSTEM_PROPERTIES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_stored_under_others_and_read_back() {
        assert_eq!(member_name("id"), "$id");
        assert_eq!(member_name("_ts"), "$_ts");
        for property in ["id", "ttl", "_ts", "_rid", "Id", "ID", "name", "_", "PartitionKey"] {
            assert_eq!(property_name(&member_name(property)), Some(property));
        }
        assert_eq!(property_name("id"), None);
        assert_eq!(property_name("_etag"), None);
        assert_eq!(property_name("$x"), Some("$x"));
        assert_eq!(property_name("odata.etag"), None);
        assert_eq!(property_name("x@odata.type"), None);
    }
}
