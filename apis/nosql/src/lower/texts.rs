//! Queries that were read lately, by their text: an application asks few different ones, with other parameters.
//!
//! A tree depends on its text alone, so nothing here grows old.

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sql::ast::Query;
use std::sync::Arc;

/// Bytes that all trees take, about.
const BYTES_MAX: u64 = 4 << 20;
/// What a tree takes for each byte of its text, with the text itself.
const BYTES_PER_BYTE: u64 = 16;
/// Bytes of a text beyond which it is read again each time: it was made by a program, value by value.
const TEXT_BYTES_MAX: usize = 4096;
/// Texts that room is made for at once.
const TEXTS_EXPECTED: usize = 128;

/// See the file's head.
pub(crate) struct TextCache(Cache<String, Arc<Query>, ByText>);

#[derive(Clone)]
struct ByText;

impl Weighter<String, Arc<Query>> for ByText {
    fn weight(&self, text: &String, _tree: &Arc<Query>) -> u64 {
        (text.len() as u64 + 16) * BYTES_PER_BYTE
    }
}

impl TextCache {
    pub(crate) fn new() -> TextCache {
        TextCache(Cache::with_weighter(TEXTS_EXPECTED, BYTES_MAX, ByText))
    }

    /// The tree of a text.
    pub(crate) fn read(&self, text: &str) -> Result<Arc<Query>, sql::SqlFaults> {
        if text.len() > TEXT_BYTES_MAX {
            return sql::parse(text).map(Arc::new);
        }
        if let Some(tree) = self.0.get(text) {
            return Ok(tree);
        }
        let tree = Arc::new(sql::parse(text)?);
        self.0.insert(text.to_owned(), Arc::clone(&tree));
        Ok(tree)
    }
}

#[test]
fn a_text_is_read_once_and_a_bad_one_each_time() {
    let texts = TextCache::new();
    let first = texts.read("SELECT * FROM c").unwrap();
    assert!(Arc::ptr_eq(&first, &texts.read("SELECT * FROM c").unwrap()));
    for _ in 0..2 {
        assert!(texts.read("SELECT").is_err());
    }
    let long = format!("SELECT VALUE \"{}\"", "x".repeat(TEXT_BYTES_MAX));
    assert!(!Arc::ptr_eq(&texts.read(&long).unwrap(), &texts.read(&long).unwrap()));
}
