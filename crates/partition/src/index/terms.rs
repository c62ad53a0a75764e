//! The terms of a document version: the logical key, a code for every value at an indexed path, tuples, cells.
//!
//! Knows nothing of the pieces that contain the terms.

use crate::index::code::{TUPLE_CUT, TUPLE_WHOLE, write_code, write_tuple_member};
use crate::index::computed::Calculator;
use crate::index::path::{LOGICAL_PATH, PathCode};
use crate::index::rules::{PolicyCursor, Rules, TIME};
use crate::index::spatial;
use bytes::Bytes;
use model::DocumentNumber;
use plan::SYSTEM_PROPERTIES;
use value::{Document, JSON_DEPTH_MAX, Kind, PropertyPath, Value, ValueRef, WALK_DEPTH_MAX};

/// A document version to be indexed.
#[derive(Clone, Debug)]
pub(crate) struct DocumentVersion {
    pub(crate) number: DocumentNumber,
    /// Effective key and partition key code: the record key after the container and before the id.
    pub(crate) logical: Bytes,
    pub(crate) ts: u64,
    pub(crate) document: Document,
}

/// Walks documents and calls `take` with each of their terms, path and code.
pub(crate) struct TermWalker<'a> {
    rules: &'a Rules,
    path: PathCode,
    code: Vec<u8>,
    calculator: Calculator,
}

impl<'a> TermWalker<'a> {
    pub(crate) fn new(rules: &'a Rules) -> TermWalker<'a> {
        TermWalker { rules, path: PathCode::default(), code: Vec::new(), calculator: Calculator::new() }
    }

    /// All terms of a version; some may be repeated.
    pub(crate) fn walk(&mut self, version: &DocumentVersion, mut take: impl FnMut(&[u8], &[u8])) {
        take(LOGICAL_PATH, &version.logical);
        if !self.rules.indexes() {
            return;
        }
        let root = self.rules.root();
        let ts = Value::Int64(i64::try_from(version.ts).unwrap_or(i64::MAX));
        self.member(root, TIME, ts.as_ref(), &mut take);
        for (name, value) in version.document.root().members() {
            if !SYSTEM_PROPERTIES.contains(&name) {
                self.member(root, name, value, &mut take);
            }
        }
        let computed = self.computed(version, &mut take);
        self.composites(version, ts.as_ref(), &computed, &mut take);
        for index in self.rules.spatial() {
            spatial::walk(index, version.document.root(), &mut take);
        }
    }

    fn member(
        &mut self,
        cursor: PolicyCursor,
        name: &str,
        value: ValueRef<'_>,
        take: &mut impl FnMut(&[u8], &[u8]),
    ) {
        let back = self.path.enter_name(name);
        self.value(self.rules.member(cursor, name), value, JSON_DEPTH_MAX, take);
        self.path.leave(back);
    }

    fn value(
        &mut self,
        cursor: PolicyCursor,
        value: ValueRef<'_>,
        levels_left: usize,
        take: &mut impl FnMut(&[u8], &[u8]),
    ) {
        let kind = value.kind();
        if self.path.is_too_long() || levels_left == 0 {
            return;
        }
        if self.rules.is_indexed(cursor) {
            self.code.clear();
            write_code(value, kind, &mut self.code);
            take(self.path.closed(), &self.code);
        }
        let is_container = kind == Kind::Array || kind == Kind::Object;
        if !is_container || !self.rules.may_index_below(cursor) {
            return;
        }
        if kind == Kind::Array {
            let back = self.path.enter_elements();
            let below = self.rules.elements(cursor);
            for element in value.elements() {
                self.value(below, element, levels_left - 1, take);
            }
            self.path.leave(back);
        } else {
            for (name, member) in value.members() {
                let back = self.path.enter_name(name);
                self.value(self.rules.member(cursor, name), member, levels_left - 1, take);
                self.path.leave(back);
            }
        }
    }

    /// The terms of computed properties. Returns their values in the order of the rules.
    fn computed(
        &mut self,
        version: &DocumentVersion,
        take: &mut impl FnMut(&[u8], &[u8]),
    ) -> Vec<Option<Value>> {
        let rules = self.rules;
        let mut values = Vec::with_capacity(rules.computed().len());
        for (property, cursor) in rules.computed() {
            let value = self.calculator.value(property, version.document.root());
            if let Some(value) = &value {
                let back = self.path.enter_computed(&property.name);
                // A computed value can be nested deeper than a stored one.
                self.value(*cursor, value.as_ref(), WALK_DEPTH_MAX, take);
                self.path.leave(back);
            }
            values.push(value);
        }
        values
    }

    /// One tuple per composite index; a missing member is undefined, and its tuple is indexed too.
    fn composites(
        &mut self,
        version: &DocumentVersion,
        ts: ValueRef<'_>,
        computed: &[Option<Value>],
        take: &mut impl FnMut(&[u8], &[u8]),
    ) {
        for index in self.rules.composites() {
            self.code.clear();
            let cut = index.members.iter().any(|member| {
                let path = &member.path.path;
                let value = match member.computed {
                    Some(property) => below(computed.get(property).and_then(Option::as_ref), path),
                    None if path.segments().eq([TIME]) => Some(ts),
                    None => version.document.get(path),
                };
                write_tuple_member(value, member.path.descending, &mut self.code)
            });
            self.code.push(if cut { TUPLE_CUT } else { TUPLE_WHOLE });
            take(index.path.code(), &self.code);
        }
    }
}

/// The value at a path that starts with a computed property.
fn below<'v>(value: Option<&'v Value>, path: &PropertyPath) -> Option<ValueRef<'v>> {
    path.segments().skip(1).try_fold(value?.as_ref(), ValueRef::member)
}
