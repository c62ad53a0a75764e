//! The FROM clause: the source of each slot.

use super::{Lowering, Role};
use crate::ast::{self, Collection, Step};
use crate::fault::{FaultKind, Span};
use crate::lower::scope::Resolved;
use plan::query::{Expression, PathStep, Source};
use value::Value;

impl<'query> Lowering<'query> {
    /// Lowers the sources and adds their names to the scope, so that each sees those before it.
    pub(super) fn sources(&mut self, query: &'query ast::Query, role: Role) -> Vec<Source> {
        let written = query.from.as_ref().map(|from| from.sources.as_slice()).unwrap_or_default();
        let mut sources = Vec::with_capacity(written.len());
        for (position, source) in written.iter().enumerate() {
            let is_root = position == 0 && role != Role::Inner;
            sources.push(self.source(source, is_root));
            let name = name_of(source);
            if !self.frame().add(name) {
                let name = name.unwrap_or_default().to_owned();
                self.fault(FaultKind::DuplicateAlias { name }, source.span);
            }
        }
        sources
    }

    fn source(&mut self, source: &'query ast::Source, is_root: bool) -> Source {
        match &source.collection {
            Collection::Subquery(query) => {
                let role = if is_root { Role::FirstSource } else { Role::Inner };
                let query = Box::new(self.query(query, role));
                if source.elements { Source::RowElements(query) } else { Source::Rows(query) }
            }
            Collection::Path { steps, .. } if is_root => {
                let path = steps.iter().map(path_step).collect();
                if source.elements { Source::ContainerElements { path } } else { Source::Container { path } }
            }
            Collection::Path { root, steps, span } => {
                let base = self.source_root(root, *span);
                let value = steps.iter().fold(base, follow);
                if source.elements { Source::Elements(value) } else { Source::Value(value) }
            }
        }
    }

    fn source_root(&mut self, name: &str, span: Span) -> Expression {
        match self.resolve(name) {
            Resolved::Slot(slot) => Expression::Slot(slot),
            Resolved::Grouped | Resolved::Unknown => {
                let written = ast::Expression { kind: ast::ExpressionKind::Name(name.to_owned()), span };
                self.refuse_name(name, span, &written);
                Expression::Undefined
            }
        }
    }
}

/// The name of a source: its alias, or the last name of its path.
pub fn name_of(source: &ast::Source) -> Option<&str> {
    if let Some(alias) = &source.alias {
        return Some(alias);
    }
    match &source.collection {
        Collection::Subquery(_) => None,
        Collection::Path { root, steps, .. } => match steps.last() {
            None => Some(root),
            Some(Step::Name(name)) => Some(name),
            Some(Step::Position(_)) => None,
        },
    }
}

fn path_step(step: &Step) -> PathStep {
    match step {
        Step::Name(name) => PathStep::Name(name.clone()),
        Step::Position(position) => PathStep::Position(*position),
    }
}

fn follow(base: Expression, step: &Step) -> Expression {
    match step {
        Step::Name(name) => Expression::Member(Box::new(base), name.clone()),
        Step::Position(position) => {
            // Positions are parsed with 63 bits.
            let position = Value::Int64(i64::try_from(*position).unwrap_or(i64::MAX));
            Expression::Index(Box::new(base), Box::new(Expression::Constant(position)))
        }
    }
}
