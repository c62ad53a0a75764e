//! What stands on the wire: entities as JSON, multipart bodies, headers, XML.

pub mod entity;
pub mod multipart;
