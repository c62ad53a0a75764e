//! Edm types: their values, their texts and how a document stores them.
//!
//! Values are those of `value`: each Edm type is one kind, so a stored property keeps its type.
//!
//! | Edm type | kind | text in JSON |
//! |---|---|---|
//! | `Edm.String` | string | string |
//! | `Edm.Boolean` | Boolean | `true`, `false` |
//! | `Edm.Int32` | 32-bit integer | digits |
//! | `Edm.Int64` | 64-bit integer | string of digits |
//! | `Edm.Double` | double | number with a point or an exponent, `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `Edm.DateTime` | ticks of 100 ns | `"2024-02-03T04:05:06.7890000Z"` |
//! | `Edm.Guid` | GUID | string |
//! | `Edm.Binary` | binary of subtype 0 | base64 |

mod date_time;
pub(crate) mod document;
mod edm_type;
mod names;
pub(crate) mod texts;

pub use date_time::{TICKS_MAX, TICKS_MIN, TICKS_MIN_STORAGE, parse_date_time, write_date_time};
pub use document::{
    ENTITY_BYTES_MAX, ENTITY_BYTES_MAX_COSMOS, EntityTooLarge, PARTITION_KEY, PROPERTIES_MAX, ROW_KEY,
    TIMESTAMP, document_id, entity_bytes, is_property, merged, properties_count,
};
pub use edm_type::EdmType;
pub use names::{member_name, property_name};
pub use texts::{parse_guid, parse_text};
