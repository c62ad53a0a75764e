//! What a query needs of a document: its own members, or also the system properties, which are not stored with it.
//!
//! Most filters refer to ordinary members only and are evaluated on the stored bytes. A document is extended only for
//! an expression that refers to a system property or to the whole document, and only when that expression is evaluated.

use eval::EXPRESSION_DEPTH_MAX;
use plan::ADDED_PROPERTIES;
use plan::query::{
    AggregateKind, Expression, Function, Grouping, Order, PathStep, Projection, Query, SlotId, Source,
};

use crate::computed::{document_member, is_document};

/// Where a query needs system properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// To make rows and to filter them.
    pub(crate) to_filter: bool,
    /// For the results of rows that passed.
    pub(crate) to_finish: bool,
}

impl Needs {
    /// What a query needs whose first source is the container. Documents that are returned unchanged need nothing.
    pub(crate) fn of(query: &Query, gives_documents: bool) -> Needs {
        let has_document =
            matches!(query.sources.first(), Some(Source::Container { path }) if path.is_empty());
        let finder = SystemPropertyFinder { has_document };
        let filter = query.filter.iter().any(|filter| finder.at(filter, EXPRESSION_DEPTH_MAX));
        let to_filter = filter || finder.at_sources(&query.sources, EXPRESSION_DEPTH_MAX);
        let to_finish = finder.at_folding(query, EXPRESSION_DEPTH_MAX)
            || !gives_documents && finder.at_projection(query, EXPRESSION_DEPTH_MAX);
        Needs { to_filter, to_finish }
    }

    /// As text, for an explanation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Needs { to_filter: true, .. } => "with system properties",
            Needs { to_filter: false, to_finish: true } => {
                "as stored, with system properties after the filter"
            }
            Needs { to_filter: false, to_finish: false } => "as stored",
        }
    }
}

/// Whether the projection is the document itself, which is then not rebuilt.
pub(crate) fn gives_documents(query: &Query) -> bool {
    let is_document = match &query.projection {
        Projection::Row(slot) => *slot == SlotId::DOCUMENT,
        Projection::Value(value) => *value == Expression::Slot(SlotId::DOCUMENT),
        Projection::Object(_) => false,
    };
    let is_root = matches!(query.sources.first(), Some(Source::Container { path }) if path.is_empty());
    is_document && is_root && query.grouping.is_none() && !query.distinct
}

/// Finds system properties; at the maximum depth it assumes that there are some, which is never wrong.
struct SystemPropertyFinder {
    has_document: bool,
}

impl SystemPropertyFinder {
    fn at(&self, expression: &Expression, levels_left: usize) -> bool {
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return true;
        };
        if self.has_document
            && let Some(name) = document_member(expression)
        {
            return ADDED_PROPERTIES.contains(&name);
        }
        if let Expression::Slot(slot) = expression {
            return self.has_document && *slot == SlotId::DOCUMENT;
        }
        if let Expression::Subquery(_, query) = expression {
            return self.at_query(query, levels_left);
        }
        let asks_for_kind =
            matches!(expression, Expression::Call(function, _) if only_asks_for_kind(*function));
        let is_harmless = |child: &Expression| asks_for_kind && is_document(child);
        expression.children().into_iter().any(|child| !is_harmless(child) && self.at(child, levels_left))
    }

    fn at_query(&self, query: &Query, levels_left: usize) -> bool {
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return true;
        };
        query.filter.iter().any(|filter| self.at(filter, levels_left))
            || self.at_sources(&query.sources, levels_left)
            || self.at_folding(query, levels_left)
            || self.at_projection(query, levels_left)
    }

    fn at_sources(&self, sources: &[Source], levels_left: usize) -> bool {
        sources.iter().any(|source| match source {
            Source::Container { path } | Source::ContainerElements { path } => match path.first() {
                Some(PathStep::Name(name)) => ADDED_PROPERTIES.contains(&name.as_str()),
                Some(PathStep::Position(_)) | None => false,
            },
            Source::Value(expression) | Source::Elements(expression) => self.at(expression, levels_left),
            Source::Rows(query) | Source::RowElements(query) => self.at_query(query, levels_left),
        })
    }

    fn at_projection(&self, query: &Query, levels_left: usize) -> bool {
        match &query.projection {
            Projection::Row(slot) => self.has_document && *slot == SlotId::DOCUMENT,
            Projection::Value(value) => self.at(value, levels_left),
            Projection::Object(members) => members.iter().any(|(_, member)| self.at(member, levels_left)),
        }
    }

    /// In grouping and order.
    fn at_folding(&self, query: &Query, levels_left: usize) -> bool {
        let any = |parts: &[Expression]| parts.iter().any(|part| self.at(part, levels_left));
        let ordered = match &query.order {
            Order::None => false,
            Order::Keys(keys) => keys.iter().any(|key| self.at(&key.expression, levels_left)),
            Order::Rank(ranking) => any(&ranking.scores),
        };
        let grouped = |grouping: &Grouping| {
            let aggregated = grouping.aggregates.iter().any(|aggregate| {
                let only_counts = aggregate.kind == AggregateKind::Count && is_document(&aggregate.argument);
                !only_counts && self.at(&aggregate.argument, levels_left)
            });
            aggregated || any(&grouping.keys)
        };
        ordered || query.grouping.as_ref().is_some_and(grouped)
    }
}

/// Whether a function depends only on the kind of its argument.
fn only_asks_for_kind(function: Function) -> bool {
    matches!(
        function,
        Function::IsDefined
            | Function::IsObject
            | Function::IsArray
            | Function::IsBool
            | Function::IsNull
            | Function::IsNumber
            | Function::IsString
            | Function::IsPrimitive
            | Function::DocumentId
    )
}
