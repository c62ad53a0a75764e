//! What can be wrong with the body of an entity.

use crate::edm::EdmType;
use thiserror::Error;
use value::JsonError;

/// A refused entity. The comment of each variant names the code of the service.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EntityFault {
    /// `InvalidInput`: the body is not the JSON text of an object.
    #[error("{0}")]
    Json(#[from] JsonError),
    /// `DuplicatePropertiesSpecified`: a name stands twice.
    #[error("a property is specified more than once at byte {offset}")]
    RepeatedProperty {
        /// The end of the object.
        offset: usize,
    },
    /// `PropertiesNeedValue`: a key is missing or null.
    #[error("property \"{key}\" needs a value")]
    KeyMissing {
        /// PartitionKey or RowKey.
        key: &'static str,
    },
    /// `InvalidInput`: a key is not a string.
    #[error("property \"{key}\" must be a string")]
    KeyNotText {
        /// PartitionKey or RowKey.
        key: &'static str,
    },
    /// `InvalidInput`: a key in the body differs from that in the address.
    #[error("property \"{key}\" differs from the address")]
    KeyDiffers {
        /// PartitionKey or RowKey.
        key: &'static str,
    },
    /// `KeyValueTooLarge`.
    #[error("property \"{key}\" is too long")]
    KeyTooLong {
        /// PartitionKey or RowKey.
        key: &'static str,
    },
    /// `OutOfRangeInput`: a key has a character that keys may not have.
    #[error("property \"{key}\" contains the character {character:?}")]
    KeyCharacter {
        /// PartitionKey or RowKey.
        key: &'static str,
        /// The character.
        character: char,
    },
    /// `PropertyNameInvalid`: a name that is not an identifier.
    #[error("property name {name:?} is invalid")]
    NameInvalid {
        /// The name.
        name: String,
    },
    /// `PropertyNameTooLong`.
    #[error("a property name of {units} characters")]
    NameTooLong {
        /// Its length in UTF-16 units.
        units: usize,
    },
    /// `InvalidInput`: an annotation with an unknown type.
    #[error("property \"{property}\" has an unknown type")]
    UnknownType {
        /// The property.
        property: String,
    },
    /// `InvalidInput`: a value that is not one of its type.
    #[error("property \"{property}\" is not an {}", edm_type.name())]
    NotOfType {
        /// The property.
        property: String,
        /// The type that the annotation says.
        edm_type: EdmType,
    },
    /// `InvalidInput`: an array or an object.
    #[error("property \"{property}\" is an array or an object")]
    NotPrimitive {
        /// The property.
        property: String,
    },
    /// `PropertyValueTooLarge`: a text or binary over its limit.
    #[error("property \"{property}\" is too large")]
    ValueTooLarge {
        /// The property.
        property: String,
        /// Its size: UTF-16 units of a text, bytes of binary.
        size: usize,
    },
    /// `TooManyProperties`.
    #[error("an entity with {count} properties")]
    TooManyProperties {
        /// Their number, without keys and Timestamp.
        count: usize,
    },
    /// `EntityTooLarge`.
    #[error("an entity of {bytes} bytes")]
    EntityTooLarge {
        /// Its size as the service counts it.
        bytes: usize,
    },
}
