//! The JSON text of a document that is read often: written once, then copied.
//!
//! All clones of a document share one. What it may hold is bounded by the document, so a cache can count it before it
//! is written.

use std::sync::OnceLock;

use crate::Document;
use crate::json::write;

/// The text of an object without its closing brace.
#[derive(Default)]
pub(crate) struct KeptText {
    /// `None` inside if it is too long to be kept.
    open: OnceLock<Option<Box<[u8]>>>,
}

impl KeptText {
    /// Appends the text of `document`; true when it has members.
    pub(crate) fn write_open(&self, document: &Document, out: &mut Vec<u8>) -> bool {
        if let Some(Some(text)) = self.open.get() {
            out.extend_from_slice(text);
            return text.len() > "{".len();
        }
        let start = out.len();
        let has_members = write::write_open(document.root().members(), out);
        self.open.get_or_init(|| {
            let text = out.get(start..)?;
            (text.len() <= document.text_bytes_max()).then(|| text.into())
        });
        has_members
    }
}
