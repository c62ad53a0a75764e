//! From a document version to its terms: the logical key, a code for every value at an indexed path, tuples, cells.
//!
//! Says which terms there are; knows nothing of the pieces they end up in.

use crate::index::code::{TUPLE_CUT, TUPLE_WHOLE, write_code, write_tuple_member};
use crate::index::path::{LOGICAL_PATH, PathCode};
use crate::index::rules::{Place, Rules, TIME};
use crate::index::spatial;
use bytes::Bytes;
use model::DocumentNumber;
use plan::SYSTEM_PROPERTIES;
use value::{Document, JSON_DEPTH_MAX, Kind, Value, ValueRef};

/// A document version that is to be indexed.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) number: DocumentNumber,
    /// Effective key and partition key code: what its record's key begins with behind the container.
    pub(crate) logical: Bytes,
    pub(crate) ts: u64,
    pub(crate) document: Document,
}

/// Walks documents and hands each of their terms, path and code, to `take`.
pub(crate) struct TermWalker<'a> {
    rules: &'a Rules,
    path: PathCode,
    code: Vec<u8>,
}

impl<'a> TermWalker<'a> {
    pub(crate) fn new(rules: &'a Rules) -> TermWalker<'a> {
        TermWalker { rules, path: PathCode::default(), code: Vec::new() }
    }

    /// All terms of a version, some perhaps several times.
    pub(crate) fn walk(&mut self, version: &Version, mut take: impl FnMut(&[u8], &[u8])) {
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
        self.composites(version, ts.as_ref(), &mut take);
        for index in self.rules.spatial() {
            spatial::walk(index, version.document.root(), &mut take);
        }
    }

    fn member(&mut self, place: Place, name: &str, value: ValueRef<'_>, take: &mut impl FnMut(&[u8], &[u8])) {
        let back = self.path.enter_name(name);
        self.value(self.rules.member(place, name), value, JSON_DEPTH_MAX, take);
        self.path.leave(back);
    }

    fn value(
        &mut self,
        place: Place,
        value: ValueRef<'_>,
        levels_left: usize,
        take: &mut impl FnMut(&[u8], &[u8]),
    ) {
        let kind = value.kind();
        if self.path.is_too_long() || levels_left == 0 {
            return;
        }
        if self.rules.is_indexed(place) {
            self.code.clear();
            write_code(value, kind, &mut self.code);
            take(self.path.closed(), &self.code);
        }
        let is_container = kind == Kind::Array || kind == Kind::Object;
        if !is_container || !self.rules.leads_on(place) {
            return;
        }
        if kind == Kind::Array {
            let back = self.path.enter_elements();
            let below = self.rules.elements(place);
            for element in value.elements() {
                self.value(below, element, levels_left - 1, take);
            }
            self.path.leave(back);
        } else {
            for (name, member) in value.members() {
                let back = self.path.enter_name(name);
                self.value(self.rules.member(place, name), member, levels_left - 1, take);
                self.path.leave(back);
            }
        }
    }

    /// One tuple per composite index; a missing member is undefined, and its tuple is indexed too.
    fn composites(&mut self, version: &Version, ts: ValueRef<'_>, take: &mut impl FnMut(&[u8], &[u8])) {
        for (path, index) in self.rules.composites() {
            self.code.clear();
            let cut = index.paths.iter().any(|member| {
                let is_time = member.path.segments().eq([TIME]);
                let value = if is_time { Some(ts) } else { version.document.get(&member.path) };
                write_tuple_member(value, member.descending, &mut self.code)
            });
            self.code.push(if cut { TUPLE_CUT } else { TUPLE_WHOLE });
            take(path.code(), &self.code);
        }
    }
}
