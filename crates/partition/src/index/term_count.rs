//! How many values of a document are indexed, without making their terms: writes are charged by it.
//!
//! Counted are the scalars at indexed paths, array elements included, and one entry for each composite index. The
//! count depends on the document and the policy only.

use crate::index::rules::{PolicyCursor, Rules};
use plan::SYSTEM_PROPERTIES;
use value::{Document, JSON_DEPTH_MAX, Kind, ValueRef};

/// The indexed values of a document.
pub(crate) fn term_count(rules: &Rules, document: &Document) -> u32 {
    if !rules.indexes() {
        return 0;
    }
    // Every create is counted: the first byte decides for most names.
    let is_system = |name: &str| name.starts_with('_') && SYSTEM_PROPERTIES.contains(&name);
    let members = document.root().members().filter(|(name, _)| !is_system(name));
    let scalars: u32 = if rules.indexes_everything() {
        members.map(|(_, value)| scalars(value, JSON_DEPTH_MAX)).sum()
    } else {
        let root = rules.root();
        members.map(|(name, value)| indexed(rules, rules.member(root, name), value, JSON_DEPTH_MAX)).sum()
    };
    scalars.saturating_add(u32::try_from(rules.composites().len()).unwrap_or(u32::MAX))
}

/// All scalars in a value: the usual policy indexes everything.
fn scalars(value: ValueRef<'_>, levels_left: usize) -> u32 {
    let Some(levels_left) = levels_left.checked_sub(1) else { return 0 };
    let kind = value.kind();
    if kind == Kind::Array {
        value.elements().map(|element| scalars(element, levels_left)).sum()
    } else if kind == Kind::Object {
        value.members().map(|(_, member)| scalars(member, levels_left)).sum()
    } else {
        1
    }
}

fn indexed(rules: &Rules, cursor: PolicyCursor, value: ValueRef<'_>, levels_left: usize) -> u32 {
    let Some(levels_left) = levels_left.checked_sub(1) else { return 0 };
    let kind = value.kind();
    if kind != Kind::Array && kind != Kind::Object {
        return u32::from(rules.is_indexed(cursor));
    }
    if !rules.may_index_below(cursor) {
        return 0;
    }
    if kind == Kind::Array {
        let elements = rules.elements(cursor);
        value.elements().map(|element| indexed(rules, elements, element, levels_left)).sum()
    } else {
        let member = |(name, member)| indexed(rules, rules.member(cursor, name), member, levels_left);
        value.members().map(member).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::policy::IndexingPolicy;

    #[track_caller]
    fn check(policy: &IndexingPolicy, expected: u32) {
        let json = br#"{"id":"1","a":{"b":1,"c":[1,[2,"x"],{}]},"t":[{"x":null},{"x":true}],"_etag":"e"}"#;
        let rules = Rules::of(policy, (&[], &[]), |_| None);
        assert_eq!(term_count(&rules, &Document::from_json(json).unwrap()), expected, "{policy:?}");
    }

    #[test]
    fn scalars_at_indexed_paths_count() {
        let policy = |included, excluded| IndexingPolicy::by_texts(included, excluded).unwrap();
        check(&policy(&[], &[]), 7);
        check(&policy(&["/*"], &["/nothing/?"]), 7);
        check(&policy(&["/*"], &["/a/*"]), 3);
        check(&policy(&["/t/[]/x/?"], &["/*"]), 3);
        check(&policy(&[], &["/*"]), 1);
        check(&IndexingPolicy::none(), 0);
    }
}
