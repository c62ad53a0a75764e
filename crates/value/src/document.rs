//! A document: an encoded object, shared by reference from the store up to the socket.
//!
//! Knows nothing of ids, system properties or where a document is stored. `format` describes the bytes.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use crate::binary_json;
use crate::decoded::decode_bytes;
use crate::encode::{ContainerKind, EncodeError, ValueEncoder};
use crate::format::ContainerFrame;
use crate::json::{read, write};
use crate::kept_text::KeptText;
use crate::{Decoded, JSON_DEPTH_MAX, JsonError, Kind, PropertyPath, Value, ValueRef};

/// Stored bytes that no encoder wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("damaged encoding")]
pub struct Damaged;

/// A value that cannot be a document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// Documents are objects.
    #[error("a document must be an object, not {kind:?}")]
    NotAnObject {
        /// Kind of the value.
        kind: Kind,
    },
    /// More levels of arrays and objects than [`JSON_DEPTH_MAX`].
    #[error("value nested deeper than {JSON_DEPTH_MAX} levels")]
    TooDeep,
    /// More than 4 GiB in encoded form.
    #[error("value too large")]
    TooLarge,
}

impl From<EncodeError> for DocumentError {
    fn from(error: EncodeError) -> DocumentError {
        match error {
            EncodeError::TooLarge => DocumentError::TooLarge,
            EncodeError::TooDeep => DocumentError::TooDeep,
        }
    }
}

/// An encoded object. Cloning shares the bytes.
///
/// Equality is bytewise: same members in the same order with the same kinds.
#[derive(Clone)]
pub struct Document {
    bytes: Bytes,
    text: Option<Arc<KeptText>>,
}

impl PartialEq for Document {
    fn eq(&self, other: &Document) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Document {}

impl Document {
    fn of_encoded(bytes: Vec<u8>) -> Document {
        Document { bytes: Bytes::from(bytes), text: None }
    }

    /// Reads the JSON text of an object.
    pub fn from_json(text: &[u8]) -> Result<Document, JsonError> {
        Document::from_json_without(text, &[])
    }

    /// As [`from_json`](Self::from_json), without the root members named in `skip`.
    pub fn from_json_without(text: &[u8], skip: &[&str]) -> Result<Document, JsonError> {
        Ok(Document::of_encoded(read::encode_object(text, skip)?))
    }

    /// As [`from_json`](Self::from_json), but refuses text in which an object has a name twice.
    pub fn from_json_distinct(text: &[u8]) -> Result<Document, JsonError> {
        Ok(Document::of_encoded(read::encode_object_distinct(text)?))
    }

    /// Reads an object in binary JSON, without the root members named in `skip`.
    pub fn from_binary_json_without(buffer: &[u8], skip: &[&str]) -> Result<Document, JsonError> {
        Ok(Document::of_encoded(binary_json::read::encode_object(buffer, skip)?))
    }

    /// Encodes a tree. A repeated name in an object keeps its first position and its last value.
    pub fn from_value(value: &Value) -> Result<Document, DocumentError> {
        Document::from_value_ref(ValueRef::from(value))
    }

    /// Encodes any object, also a part of another document.
    pub fn from_value_ref(value: ValueRef<'_>) -> Result<Document, DocumentError> {
        if value.kind() != Kind::Object {
            return Err(DocumentError::NotAnObject { kind: value.kind() });
        }
        let mut encoder = ValueEncoder::with_capacity(value.encoded_bytes().map_or(256, <[u8]>::len));
        encoder.value(value, JSON_DEPTH_MAX)?;
        Ok(Document::of_encoded(encoder.into_bytes()))
    }

    /// Restores a document from its [`bytes`](Self::bytes).
    ///
    /// Checks only the outer frame, so that a read of one property stays cheap. Damage inside shows as a missing or
    /// null value, never as a panic; callers without a checksum over the bytes should also call
    /// [`validate`](Self::validate).
    pub fn from_stored(bytes: Bytes) -> Result<Document, Damaged> {
        match ContainerFrame::object(&bytes) {
            Some(frame) if frame.is_filled() => Ok(Document { bytes, text: None }),
            Some(_) | None => Err(Damaged),
        }
    }

    /// Checks every byte: frames, UTF-8, sizes of scalars, name hashes and depth.
    pub fn validate(&self) -> Result<(), Damaged> {
        validate(&self.bytes, JSON_DEPTH_MAX).ok_or(Damaged)
    }

    /// The same document with its own copy of the bytes, not a slice of a larger buffer.
    pub fn detached(&self) -> Document {
        Document { bytes: Bytes::copy_from_slice(&self.bytes), text: None }
    }

    /// The encoded bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The object itself.
    pub fn root(&self) -> ValueRef<'_> {
        ValueRef::encoded(&self.bytes)
    }

    /// The value at `path`, found without decoding the rest. Paths do not lead into arrays.
    pub fn get(&self, path: &PropertyPath) -> Option<ValueRef<'_>> {
        path.lookup(self.root())
    }

    /// The owned tree.
    pub fn to_value(&self) -> Value {
        self.root().to_value()
    }

    /// A copy without the root members in `names`.
    pub fn without(&self, names: &[&str]) -> Document {
        let mut builder = DocumentBuilder::with_capacity(self.bytes.len());
        for (name, value) in self.root().members().filter(|(name, _)| !names.contains(name)) {
            builder.member_encoded(name, value);
        }
        // Smaller than a document that was neither too large nor too deep.
        builder.finish().unwrap_or_else(|_| self.clone())
    }

    /// A copy with `members` appended. An existing name keeps its position and gets the new value.
    pub fn extended(&self, members: &[(&str, ValueRef<'_>)]) -> Result<Document, DocumentError> {
        let mut builder = DocumentBuilder::with_capacity(self.bytes.len() + 64 * members.len());
        for (name, value) in self.root().members() {
            builder.member_encoded(name, value);
        }
        for (name, value) in members {
            builder.member(name, *value);
        }
        builder.finish()
    }

    /// Appends the JSON text of the document.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.root().write_json(out);
    }

    /// Appends the JSON text of the document without its closing brace, so that members can be appended.
    ///
    /// Returns whether the object has members: if so, a comma must precede the first appended one. The caller ends with
    /// `}`:
    ///
    /// ```
    /// # let document = value::Document::from_json(br#"{"id":"1"}"#).unwrap();
    /// let mut text = Vec::new();
    /// if document.write_json_open(&mut text) {
    ///     text.push(b',');
    /// }
    /// text.extend_from_slice(br#""_ts":1}"#);
    /// assert_eq!(text, br#"{"id":"1","_ts":1}"#);
    /// ```
    pub fn write_json_open(&self, out: &mut Vec<u8>) -> bool {
        match &self.text {
            None => write::write_open(self.root().members(), out),
            Some(text) => text.write_open(self, out),
        }
    }

    /// Lets this document and its later clones keep the text of [`write_json_open`](Self::write_json_open) once it is
    /// written: copying it takes a fraction of the time of writing it. For documents that are likely to be read again.
    pub fn keep_text(&mut self) {
        self.text.get_or_insert_default();
    }

    /// Whether the text is kept once it is written.
    pub fn keeps_text(&self) -> bool {
        self.text.is_some()
    }

    /// Largest number of bytes of the document with its text, whether that is written already or not.
    pub fn bytes_with_text_max(&self) -> usize {
        self.bytes.len() + self.text.as_ref().map_or(0, |_| self.text_bytes_max())
    }

    /// Largest text that is kept. Nearly all are shorter: the structure takes about as many bytes in both forms.
    pub(crate) fn text_bytes_max(&self) -> usize {
        self.bytes.len() + self.bytes.len() / 2
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root().fmt(f)
    }
}

/// Builds a document member by member.
pub struct DocumentBuilder {
    encoder: ValueEncoder,
    error: Option<DocumentError>,
}

impl DocumentBuilder {
    /// A document without members.
    pub fn new() -> DocumentBuilder {
        DocumentBuilder::with_capacity(256)
    }

    /// A document without members, with room for about `size` bytes.
    pub fn with_capacity(size: usize) -> DocumentBuilder {
        let mut encoder = ValueEncoder::with_capacity(size);
        encoder.begin(ContainerKind::Object);
        DocumentBuilder { encoder, error: None }
    }

    /// Adds a member. An existing name keeps its position and gets the new value.
    pub fn member(&mut self, name: &str, value: ValueRef<'_>) -> &mut DocumentBuilder {
        self.encoder.name(name);
        if let Err(error) = self.encoder.value(value, JSON_DEPTH_MAX - 1) {
            self.error.get_or_insert(error.into());
        }
        self
    }

    /// Adds a member whose value comes from a document at the same depth, by copying its bytes.
    fn member_encoded(&mut self, name: &str, value: ValueRef<'_>) {
        match value.encoded_bytes() {
            Some(bytes) => {
                self.encoder.name(name);
                self.encoder.encoded(bytes);
            }
            None => {
                self.member(name, value);
            }
        }
    }

    /// The finished document, or the first error of a member.
    pub fn finish(mut self) -> Result<Document, DocumentError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.encoder.end().map_err(EncodeError::from)?;
        Ok(Document::of_encoded(self.encoder.into_bytes()))
    }
}

impl Default for DocumentBuilder {
    fn default() -> DocumentBuilder {
        DocumentBuilder::new()
    }
}

fn validate(value: &[u8], levels_left: usize) -> Option<()> {
    match decode_bytes(value)? {
        Decoded::Null | Decoded::Bool(_) => (value.len() == 1).then_some(()),
        Decoded::Int32(_)
        | Decoded::Int64(_)
        | Decoded::Double(_)
        | Decoded::Decimal(_)
        | Decoded::String(_)
        | Decoded::Binary { .. }
        | Decoded::Date(_)
        | Decoded::Ticks(_)
        | Decoded::Guid(_)
        | Decoded::ObjectId(_) => Some(()),
        Decoded::Array(_) => {
            let frame = ContainerFrame::array(value).filter(ContainerFrame::is_filled)?;
            let levels_left = levels_left.checked_sub(1)?;
            (0..frame.count()).try_for_each(|index| validate(frame.entry(index)?, levels_left))
        }
        Decoded::Object(_) => {
            let frame = ContainerFrame::object(value).filter(ContainerFrame::is_filled)?;
            let levels_left = levels_left.checked_sub(1)?;
            (0..frame.count()).try_for_each(|index| validate(frame.checked_member(index)?, levels_left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        let document = Document::from_json(text.as_bytes()).unwrap();
        document.validate().unwrap();
        assert_eq!(Document::from_stored(document.bytes().clone()).unwrap(), document);
        document
    }

    #[test]
    fn further_members_are_appended() {
        let more = [("b", Value::Int64(2)), ("c", Value::from("x"))];
        let more = [("b", more[0].1.as_ref()), ("c", more[1].1.as_ref())];
        let extended = document(r#"{"a":[1],"b":1}"#).extended(&more).unwrap();
        extended.validate().unwrap();
        assert_eq!(extended.to_value().to_json(), r#"{"a":[1],"b":2,"c":"x"}"#);
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut written = Vec::new();
        document(text).write_json(&mut written);
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn text_comes_back() {
        for text in
            ["{}", r#"{"a":1,"b":[true,false,null,{},[],""],"c":{"d":-1.5,"e":1e+300}}"#, r#"{"":{"":0}}"#]
        {
            check(text, text);
        }
    }

    #[test]
    fn a_kept_text_is_that_of_the_document() {
        // The last one has a text of six times its bytes, which is too long to be kept.
        let escaped = format!(r#"{{"a":"{}"}}"#, "\\u0001".repeat(100));
        for text in ["{}", r#"{"a":1,"b":[{"c":"d"}]}"#, escaped.as_str()] {
            let plain = document(text);
            let mut keeping = plain.clone();
            keeping.keep_text();
            assert_eq!(keeping, plain);
            for reader in [keeping.clone(), keeping.clone(), keeping, plain] {
                let mut written = b"before".to_vec();
                assert_eq!(reader.write_json_open(&mut written), text != "{}");
                written.push(b'}');
                assert_eq!(String::from_utf8(written).unwrap(), format!("before{text}"));
            }
        }
    }

    #[test]
    fn the_bytes_of_a_kept_text_are_counted_before_it_is_written() {
        let mut document = document(&format!(r#"{{"a":"{}"}}"#, "x".repeat(100)));
        let plain_bytes = document.bytes_with_text_max();
        assert_eq!(plain_bytes, document.bytes().len());
        document.keep_text();
        let bytes = document.bytes_with_text_max();
        let mut text = Vec::new();
        document.write_json_open(&mut text);
        assert!(bytes >= plain_bytes + text.len(), "{bytes}");
        assert_eq!(document.bytes_with_text_max(), bytes);
        assert!(!document.detached().keeps_text());
    }

    #[test]
    fn repeated_names_keep_first_place_and_last_value() {
        check(r#"{"a":1,"b":2,"a":[3],"c":4,"b":5}"#, r#"{"a":[3],"b":5,"c":4}"#);
        let many: Vec<String> = (0..100).chain(50..60).map(|name| format!(r#""n{name}":{name}"#)).collect();
        let document = document(&format!("{{{}}}", many.join(",")));
        assert_eq!(document.root().len(), 100);
        assert_eq!(document.root().member("n55").and_then(ValueRef::as_i64), Some(55));
    }

    #[test]
    fn repeated_names_can_be_refused() {
        let distinct = |text: &str| Document::from_json_distinct(text.as_bytes());
        let text = r#"{"a":1,"b":{"a":[{"a":2}]}}"#;
        assert_eq!(distinct(text).unwrap(), document(text));
        for text in [r#"{"a":1,"b":2,"a":1}"#, r#"{"b":{"a":1,"a":2}}"#, r#"{"x":[{"\u0061":1,"a":2}]}"#] {
            assert_eq!(distinct(text).unwrap_err().kind, crate::JsonErrorKind::RepeatedName, "{text}");
        }
        assert_eq!(distinct("[]").unwrap_err().kind, crate::JsonErrorKind::NotAnObject);
    }

    #[test]
    fn names_are_left_out_at_the_root_only() {
        let text = br#"{"_ts":{"x":[1]},"a":{"_ts":2},"_rid":"r","b":3}"#;
        let document = Document::from_json_without(text, &["_ts", "_rid"]).unwrap();
        assert_eq!(format!("{document:?}"), r#"{"a":{"_ts":2},"b":3}"#);
        assert_eq!(Document::from_json(text).unwrap().without(&["_ts", "_rid"]), document);
        assert_eq!(Document::from_json_without(br#"{"_ts":1}"#, &["_ts"]).unwrap().root().len(), 0);
    }

    #[test]
    fn an_open_object_can_be_continued() {
        let mut text = Vec::new();
        assert!(!document("{}").write_json_open(&mut text));
        assert_eq!(text, b"{");
        text.clear();
        assert!(document(r#"{"a":{}}"#).write_json_open(&mut text));
        assert_eq!(text, br#"{"a":{}"#);
    }

    #[test]
    fn trees_are_checked_before_they_become_documents() {
        assert_eq!(Document::from_value(&Value::Null), Err(DocumentError::NotAnObject { kind: Kind::Null }));
        let nested =
            |levels| (0..levels).fold(Value::Null, |inner, _| Value::Object(vec![("a".to_owned(), inner)]));
        assert!(Document::from_value(&nested(JSON_DEPTH_MAX)).is_ok());
        assert_eq!(Document::from_value(&nested(JSON_DEPTH_MAX + 1)), Err(DocumentError::TooDeep));
        let mut builder = DocumentBuilder::new();
        builder.member("deep", nested(JSON_DEPTH_MAX).as_ref());
        assert_eq!(builder.finish(), Err(DocumentError::TooDeep));
    }

    #[test]
    fn every_width_of_table_is_found_in() {
        for count in [0, 1, 40, 5_000, 20_000] {
            let members = (0..count).map(|index| (format!("name{index}"), Value::Int64(index))).collect();
            let document = Document::from_value(&Value::Object(members)).unwrap();
            document.validate().unwrap();
            for index in [0, count / 2, count - 1].into_iter().filter(|index| (0..count).contains(index)) {
                let found = document.root().member(&format!("name{index}"));
                assert_eq!(found.and_then(ValueRef::as_i64), Some(index));
            }
            assert!(document.root().member(&format!("name{count}")).is_none());
        }
    }

    #[test]
    fn damage_is_reported() {
        for bytes in
            [&b""[..], &[0], &[0x20], &[0x20, 1], &[0x10, 0], &[0x20, 7, 0], &[0x22, 0xff, 0xff, 0xff, 0xff]]
        {
            assert_eq!(Document::from_stored(Bytes::copy_from_slice(bytes)), Err(Damaged), "{bytes:?}");
        }
    }
}
