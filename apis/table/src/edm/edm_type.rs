//! The types of properties.

use value::{Kind, ValueRef};

/// The type of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the Edm type of the same name
pub enum EdmType {
    String,
    Boolean,
    Int32,
    Int64,
    Double,
    DateTime,
    Guid,
    Binary,
}

impl EdmType {
    /// All types.
    pub const ALL: [EdmType; 8] = [
        EdmType::String,
        EdmType::Boolean,
        EdmType::Int32,
        EdmType::Int64,
        EdmType::Double,
        EdmType::DateTime,
        EdmType::Guid,
        EdmType::Binary,
    ];

    /// Its name in annotations.
    pub fn name(self) -> &'static str {
        match self {
            EdmType::String => "Edm.String",
            EdmType::Boolean => "Edm.Boolean",
            EdmType::Int32 => "Edm.Int32",
            EdmType::Int64 => "Edm.Int64",
            EdmType::Double => "Edm.Double",
            EdmType::DateTime => "Edm.DateTime",
            EdmType::Guid => "Edm.Guid",
            EdmType::Binary => "Edm.Binary",
        }
    }

    /// The type of this name.
    pub fn from_name(name: &str) -> Option<EdmType> {
        EdmType::ALL.into_iter().find(|edm_type| edm_type.name() == name)
    }

    /// The type under which a stored value is shown; `None` for null, which an entity does not have.
    ///
    /// The Table API stores only values of the eight types. Documents that were written through another API may have
    /// others: decimals are shown as the nearest double, dates in milliseconds as `Edm.DateTime`, everything else as
    /// its JSON text in an `Edm.String`.
    pub fn of(value: ValueRef<'_>) -> Option<EdmType> {
        Some(match value.kind() {
            Kind::Null => return None,
            Kind::Bool => EdmType::Boolean,
            Kind::Int32 => EdmType::Int32,
            Kind::Int64 => EdmType::Int64,
            Kind::Double | Kind::Decimal => EdmType::Double,
            Kind::String | Kind::ObjectId | Kind::Array | Kind::Object => EdmType::String,
            Kind::Binary => EdmType::Binary,
            Kind::Date | Kind::Ticks => EdmType::DateTime,
            Kind::Guid => EdmType::Guid,
        })
    }
}

#[test]
fn names_are_read_back() {
    for edm_type in EdmType::ALL {
        assert_eq!(EdmType::from_name(edm_type.name()), Some(edm_type));
    }
    for name in ["", "Edm.Byte", "edm.string", "String"] {
        assert_eq!(EdmType::from_name(name), None);
    }
}
