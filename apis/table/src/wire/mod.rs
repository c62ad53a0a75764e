//! What stands on the wire: entities as JSON, multipart bodies, headers, XML.

pub(crate) mod accept;
pub mod entity;
pub(crate) mod etag;
pub mod multipart;
pub(crate) mod names;
pub(crate) mod reply;
pub(crate) mod xml;
