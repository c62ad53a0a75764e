//! Entities as JSON: reading bodies, writing answers.

mod fault;
mod keys;
mod names;
mod read;
mod select;
mod write;

#[cfg(test)]
mod tests;

pub use fault::EntityFault;
pub use keys::{KEY_UNITS_MAX, KEY_UNITS_MAX_COSMOS, PARTITION_KEY_BYTES_MAX, check_key};
pub use names::NAME_UNITS_MAX;
pub use read::{BINARY_BYTES_MAX, Entity, EntityKeys, TEXT_UNITS_MAX, read_entity};
pub use select::{SELECT_NAMES_MAX, Select};
pub use write::{EntityFrame, EntityRow, MetadataLevel, entity_address, write_entity, write_page};
