//! Cache of parsed queries by text: an application sends few different texts, with varying parameters.
//!
//! A tree depends only on its text, so entries never become stale.

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sql::ast::Query;
use std::sync::Arc;

/// Approximate bytes of all trees.
const BYTES_MAX: u64 = 4 << 20;
/// Bytes of a tree per byte of its text, including the text itself.
const BYTES_PER_BYTE: u64 = 16;
/// Longer texts are not cached: they are generated, with the values in the text.
const TEXT_BYTES_MAX: usize = 4096;
/// Initial capacity in texts.
const TEXTS_EXPECTED: usize = 128;

/// A cache of syntax trees by query text.
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

    /// The tree of a text, parsed or from the cache.
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
