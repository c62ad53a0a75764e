//! Paths of expressions: `c.a.b` as the names from a slot, or from the document, to a value.

use super::{Expression, PathStep, Query, SlotId, Source};

impl SlotId {
    /// The slot of the document in every query that reads a container.
    pub const DOCUMENT: SlotId = SlotId(0);
}

impl Expression {
    /// The slot at which a chain of members starts, and the names of the members, the outermost one first. `None` for
    /// an expression that computes something.
    pub fn slot_path(&self) -> Option<(SlotId, Vec<&str>)> {
        let mut names = Vec::new();
        let mut base = self;
        while let Expression::Member(inner, name) = base {
            names.push(name.as_str());
            base = inner;
        }
        let Expression::Slot(slot) = base else {
            return None;
        };
        names.reverse();
        Some((*slot, names))
    }

    /// The names from the first source to a value in it, at least one.
    pub fn document_path(&self) -> Option<Vec<&str>> {
        let (slot, names) = self.slot_path()?;
        (slot == SlotId::DOCUMENT && !names.is_empty()).then_some(names)
    }
}

impl Source {
    /// The names from the document to the one value that is the row of this source; `None` if a document has several
    /// rows, or if the path goes through an array.
    pub fn document_path(&self) -> Option<Vec<&str>> {
        let path = match self {
            Source::Container { path } => path,
            Source::ContainerElements { .. }
            | Source::Value(_)
            | Source::Elements(_)
            | Source::Rows(_)
            | Source::RowElements(_) => return None,
        };
        let names = path.iter().map(|step| match step {
            PathStep::Name(name) => Some(name.as_str()),
            PathStep::Position(_) => None,
        });
        names.collect()
    }
}

impl Query {
    /// The names from the document to the first source.
    pub fn root_path(&self) -> Option<Vec<&str>> {
        self.sources.first()?.document_path()
    }
}
