//! Partition keys: their definition in a container and their value in a document.
//!
//! The hash of a key, the effective key, is computed in `effective`.

use crate::limits::{KEY_PATHS_MAX, KEY_STRING_BYTES_MAX};
use crate::{DecodeFault, Decoder, DefinitionPart, DefinitionRule, Encoder, RequestFault};
use value::{Document, Kind, PropertyPath, Value, ValueRef};

/// How the hash of a key is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionKeyKind {
    /// One path, first hash: 32 bits followed by the truncated value.
    HashV1,
    /// One path, second hash: 128 bits of the whole value.
    HashV2,
    /// One to three paths, hashed separately.
    MultiHash,
}

/// The partition key definition of a container: kind and paths.
#[derive(Clone, Debug)]
pub struct PartitionKeyDefinition {
    kind: PartitionKeyKind,
    paths: Vec<PropertyPath>,
    texts: Vec<String>,
    system_key: bool,
    states_version: bool,
}

/// Whether the first version was stated or implied makes no difference: a replacement may omit it.
impl PartialEq for PartitionKeyDefinition {
    fn eq(&self, other: &PartitionKeyDefinition) -> bool {
        (self.kind, &self.paths, &self.texts, self.system_key)
            == (other.kind, &other.paths, &other.texts, other.system_key)
    }
}

impl Eq for PartitionKeyDefinition {}

impl PartitionKeyDefinition {
    /// A key at these paths: one path, or up to three in a hierarchy.
    pub fn new<I>(kind: PartitionKeyKind, paths: I) -> Result<PartitionKeyDefinition, RequestFault>
    where
        I: IntoIterator<Item: Into<String>>,
    {
        let bad = |rule| DefinitionPart::PartitionKey.violates(rule);
        let texts: Vec<String> = paths.into_iter().map(Into::into).collect();
        let paths_max = if kind == PartitionKeyKind::MultiHash { KEY_PATHS_MAX } else { 1 };
        if texts.is_empty() || texts.len() > paths_max {
            return Err(bad(DefinitionRule::PathCount { given: texts.len(), min: 1, max: paths_max }));
        }
        let mut paths = Vec::with_capacity(texts.len());
        for text in &texts {
            let near = |position: usize| bad(DefinitionRule::KeyPath { path: text.clone(), position });
            check_characters(text).map_err(near)?;
            let path = PropertyPath::parse(text).map_err(|_| near(text.len()))?;
            if paths.contains(&path) {
                return Err(bad(DefinitionRule::RepeatedPath(text.clone())));
            }
            paths.push(path);
        }
        Ok(PartitionKeyDefinition { kind, paths, texts, system_key: false, states_version: false })
    }

    /// The same key, marked as the key of a container that was created without one.
    pub fn marked_as_system(self) -> PartitionKeyDefinition {
        PartitionKeyDefinition { system_key: true, ..self }
    }

    /// The same key of a client that has stated its version.
    pub fn with_stated_version(self) -> PartitionKeyDefinition {
        PartitionKeyDefinition { states_version: true, ..self }
    }

    /// Whether the client has stated the version and did not leave it to the server.
    pub fn states_version(&self) -> bool {
        self.states_version
    }

    /// The key of a container of an old client: a property that no document has, so all documents are in one partition.
    pub fn system() -> PartitionKeyDefinition {
        PartitionKeyDefinition {
            kind: PartitionKeyKind::HashV1,
            paths: PropertyPath::from_names(["_partitionKey"]).into_iter().collect(),
            texts: vec!["/_partitionKey".to_owned()],
            system_key: true,
            states_version: false,
        }
    }

    /// How values are hashed.
    pub fn kind(&self) -> PartitionKeyKind {
        self.kind
    }

    /// The paths, one per level.
    pub fn paths(&self) -> &[PropertyPath] {
        &self.paths
    }

    /// The paths as the client wrote them.
    pub fn path_texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether this is a container of an old client that was created without a key.
    pub fn is_system_key(&self) -> bool {
        self.system_key
    }

    /// The key of `document`: a missing property, an object and an array are undefined.
    pub fn extract(&self, document: &Document) -> Result<PartitionKey, RequestFault> {
        let component = |path: &PropertyPath| match document.get(path) {
            None => Ok(KeyComponent::Undefined),
            Some(value) if matches!(value.kind(), Kind::Object | Kind::Array) => Ok(KeyComponent::Undefined),
            Some(value) => KeyComponent::from_value(value)
                .ok_or_else(|| RequestFault::BadPartitionKeyValue { path: path.to_string() }),
        };
        let components = self.paths.iter().map(component).collect::<Result<_, _>>()?;
        self.check(PartitionKey { components })
    }

    /// The key with these components: one per path, or fewer for a prefix of a hierarchical key. An empty list is the
    /// key of a container that was created without one.
    pub fn key(&self, components: Vec<KeyComponent>) -> Result<PartitionKey, RequestFault> {
        if let Some(implied) = self.implied_key().filter(|_| components.is_empty()) {
            return Ok(implied);
        }
        if components.is_empty() || components.len() > self.paths.len() {
            return Err(RequestFault::PartitionKeyLength {
                given: components.len(),
                expected: self.paths.len(),
            });
        }
        self.check(PartitionKey { components })
    }

    /// The key of all documents of a container that was created without one.
    pub fn implied_key(&self) -> Option<PartitionKey> {
        self.system_key.then(|| PartitionKey { components: vec![KeyComponent::Undefined] })
    }

    /// Whether `key` has a value for every path, so that it identifies one logical partition.
    pub fn is_complete(&self, key: &PartitionKey) -> bool {
        key.components.len() == self.paths.len()
    }

    fn check(&self, key: PartitionKey) -> Result<PartitionKey, RequestFault> {
        let limit = KEY_STRING_BYTES_MAX;
        for component in &key.components {
            match component {
                KeyComponent::String(text) if text.len() > limit => {
                    return Err(RequestFault::PartitionKeyTooLong { bytes: text.len(), limit });
                }
                KeyComponent::Undefined
                | KeyComponent::Null
                | KeyComponent::Bool(_)
                | KeyComponent::Number(_)
                | KeyComponent::String(_) => {}
            }
        }
        Ok(key)
    }
}

/// Refuses signs and spaces outside of quotes, and returns the position of the first one.
fn check_characters(text: &str) -> Result<(), usize> {
    let is_valid = |character: char| character.is_alphanumeric() || "_-.:".contains(character);
    let mut rest = text;
    while !rest.is_empty() {
        let position = text.len() - rest.len();
        let name = rest.strip_prefix('/').ok_or(position)?;
        if let Some(quote @ ('"' | '\'')) = name.chars().next() {
            rest = after_quoted(&name[1..], quote);
            continue;
        }
        let end = name.find('/').unwrap_or(name.len());
        if let Some((at, _)) = name.char_indices().find(|(at, character)| *at < end && !is_valid(*character))
        {
            return Err(position + 1 + at);
        }
        rest = name.get(end..).unwrap_or_default();
    }
    Ok(())
}

/// What follows a name in quotes, after its opening quote. What is inside is checked with the path as a whole.
fn after_quoted(text: &str, quote: char) -> &str {
    let mut is_escaped = false;
    let end = text.find(|character| {
        let is_end = character == quote && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

/// The value of a partition key, one component per path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKey {
    /// The components, in the order of the definition's paths.
    pub components: Vec<KeyComponent>,
}

impl PartitionKey {
    /// Whether `other` is this key or, in a hierarchy, below it.
    pub fn includes(&self, other: &PartitionKey) -> bool {
        other.components.starts_with(&self.components)
    }

    /// Appends the order-preserving code of all components.
    pub fn encode_key(&self, out: &mut Vec<u8>) {
        for component in &self.components {
            match component {
                KeyComponent::Undefined => value::encode_undefined(out),
                KeyComponent::Null => value::encode_key_value(&Value::Null, out),
                KeyComponent::Bool(flag) => value::encode_key_value(&Value::Bool(*flag), out),
                KeyComponent::Number(number) => value::encode_key_value(&Value::Double(*number), out),
                KeyComponent::String(text) => value::encode_key_str(text, out),
            }
        }
    }
}

/// One level of a partition key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyComponent {
    /// The document has no such property.
    Undefined,
    /// null
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, always a double, so that `1` and `1.0` are the same key. Never NaN, never -0.
    Number(f64),
    /// A string.
    String(String),
}

/// Equality is total: no number here is NaN.
impl Eq for KeyComponent {}

impl KeyComponent {
    fn number(number: f64) -> Option<KeyComponent> {
        // Adding zero turns -0 into 0.
        (!number.is_nan()).then_some(KeyComponent::Number(number + 0.0))
    }

    /// The component of a document's value; `None` if the value cannot be a key.
    pub fn from_value(value: ValueRef<'_>) -> Option<KeyComponent> {
        match value.kind() {
            Kind::Null => Some(KeyComponent::Null),
            Kind::Bool => value.as_bool().map(KeyComponent::Bool),
            Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => {
                value.as_f64().and_then(KeyComponent::number)
            }
            Kind::String => value.as_str().map(|text| KeyComponent::String(text.to_owned())),
            Kind::Binary
            | Kind::Date
            | Kind::Ticks
            | Kind::Guid
            | Kind::ObjectId
            | Kind::Array
            | Kind::Object => None,
        }
    }
}

impl From<&str> for KeyComponent {
    fn from(text: &str) -> KeyComponent {
        KeyComponent::String(text.to_owned())
    }
}

impl PartitionKeyDefinition {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.byte(version_tag((self.kind, self.states_version)));
        out.list(&self.paths, Encoder::path);
        out.list(&self.texts, |out, text| out.text(text));
        out.flag(self.system_key);
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<PartitionKeyDefinition, DecodeFault> {
        let kinds = [
            (PartitionKeyKind::HashV1, false),
            (PartitionKeyKind::HashV2, false),
            (PartitionKeyKind::MultiHash, false),
            (PartitionKeyKind::HashV1, true),
        ];
        let (kind, states_version) = input.choice("partition key kind", kinds, version_tag)?;
        let definition = PartitionKeyDefinition {
            kind,
            states_version,
            paths: input.list("partition key paths", |input| input.path("partition key path"))?,
            texts: input.list("texts of partition key paths", |input| input.text("partition key path"))?,
            system_key: input.flag("system key")?,
        };
        // Hashing relies on this: there is at least one path.
        let count = definition.paths.len();
        let fits = (1..=KEY_PATHS_MAX).contains(&count) && definition.texts.len() == count;
        fits.then_some(definition).ok_or_else(|| input.invalid("partition key paths"))
    }
}

/// The tag of a kind. Only the first version can be left out, so only there it matters whether it was stated.
fn version_tag((kind, states_version): (PartitionKeyKind, bool)) -> u8 {
    match (kind, states_version) {
        (PartitionKeyKind::HashV1, false) => 0,
        (PartitionKeyKind::HashV2, _) => 1,
        (PartitionKeyKind::MultiHash, _) => 2,
        (PartitionKeyKind::HashV1, true) => 3,
    }
}

impl PartitionKey {
    /// Appends its encoding, which is not its key code and is not ordered.
    pub fn encode(&self, out: &mut Encoder) {
        out.list(&self.components, |out, component| component.encode(out));
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<PartitionKey, DecodeFault> {
        Ok(PartitionKey { components: input.list("partition key", KeyComponent::decode)? })
    }
}

impl KeyComponent {
    fn encode(&self, out: &mut Encoder) {
        match self {
            KeyComponent::Undefined => out.byte(0),
            KeyComponent::Null => out.byte(1),
            KeyComponent::Bool(flag) => out.byte(2 + u8::from(*flag)),
            KeyComponent::Number(number) => {
                out.byte(4);
                out.double(*number);
            }
            KeyComponent::String(text) => {
                out.byte(5);
                out.text(text);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<KeyComponent, DecodeFault> {
        match input.byte("component of a partition key")? {
            0 => Ok(KeyComponent::Undefined),
            1 => Ok(KeyComponent::Null),
            2 => Ok(KeyComponent::Bool(false)),
            3 => Ok(KeyComponent::Bool(true)),
            4 => {
                let number = input.double("number of a partition key")?;
                KeyComponent::number(number).ok_or_else(|| input.invalid("number of a partition key"))
            }
            5 => input.text("text of a partition key").map(KeyComponent::String),
            tag => Err(input.unknown("component of a partition key", tag)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_to_as_many_components_as_paths() {
        let definition = PartitionKeyDefinition::new(PartitionKeyKind::MultiHash, ["/a", "/b"]).unwrap();
        let given = |components: &[KeyComponent]| definition.key(components.to_vec());
        assert!(!definition.is_complete(&given(&["x".into()]).unwrap()));
        assert!(definition.is_complete(&given(&["x".into(), KeyComponent::Undefined]).unwrap()));
        for count in [0, 3] {
            let expected = RequestFault::PartitionKeyLength { given: count, expected: 2 };
            assert_eq!(given(&vec![KeyComponent::Null; count]), Err(expected));
        }
        let long = "x".repeat(KEY_STRING_BYTES_MAX + 1);
        assert!(matches!(given(&[long.as_str().into()]), Err(RequestFault::PartitionKeyTooLong { .. })));
    }

    #[test]
    fn objects_and_arrays_are_no_keys() {
        let definition = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/a"]).unwrap();
        for json in ["{}", "{\"a\":{\"b\":1}}", "{\"a\":[1]}", "{\"a\":{}}"] {
            let document = Document::from_json(json.as_bytes()).unwrap();
            let key = definition.extract(&document).unwrap();
            assert_eq!(key.components, [KeyComponent::Undefined], "{json}");
        }
    }

    #[test]
    fn paths_have_valid_characters_outside_of_quotes() {
        let check = |path: &str| PartitionKeyDefinition::new(PartitionKeyKind::HashV2, [path]);
        for path in ["/a", "/a/b_c", "/größe", "/a-b", "/\"a b*\"", "/a/\"b/c\"/d", "/'a b'", "/'a\\'b'/c"]
        {
            assert!(check(path).is_ok(), "{path}");
        }
        for (path, position) in [
            ("id", 0),
            ("/id ds", 3),
            ("/a*", 2),
            ("/a/?", 3),
            ("/a/", 3),
            ("/a@b", 2),
            ("/\"a\"/b*/\"c\"", 6),
        ] {
            let rule = DefinitionRule::KeyPath { path: path.to_owned(), position };
            assert_eq!(check(path), Err(DefinitionPart::PartitionKey.violates(rule)));
        }
    }

    #[test]
    fn a_key_has_one_path_or_up_to_three_different_ones() {
        let is_good = |kind, paths: &[&str]| PartitionKeyDefinition::new(kind, paths.iter().copied()).is_ok();
        use PartitionKeyKind::{HashV1, HashV2, MultiHash};
        assert!(is_good(HashV1, &["/a"]) && is_good(HashV2, &["/a/b"]));
        assert!(is_good(MultiHash, &["/a"]) && is_good(MultiHash, &["/a", "/b", "/c"]));
        assert!(!is_good(HashV2, &[]) && !is_good(HashV2, &["/a", "/b"]) && !is_good(HashV2, &["a"]));
        assert!(!is_good(MultiHash, &["/a", "/b", "/c", "/d"]) && !is_good(MultiHash, &["/a", "/\"a\""]));
    }
}
