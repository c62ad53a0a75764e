//! Syntax tree to plan: resolves names to slots, binds parameters, checks the rules that need no documents.
//!
//! Continues after a fault where possible, so that all faults of a query are reported together. The placeholder for a
//! faulty expression is never visible, because a query with faults has no plan.
//!
//! | file | holds |
//! |---|---|
//! | `scope` | which names are visible where |
//! | `from` | sources and their slots |
//! | `select` | projection, output names, counts |
//! | `group` | GROUP BY, aggregates, what groups may refer to |
//! | `order` | ORDER BY, ORDER BY RANK |
//! | `expression`, `constant` | expressions, constant folding |
//! | `call` | functions: which, with how many arguments, allowed where |

mod call;
mod constant;
mod expression;
mod from;
mod group;
mod order;
mod scope;
mod select;

pub(crate) use call::canonical_function_name;
pub use from::name_of as name_of_source;
pub use group::{aggregate_kind, holds_aggregate};
pub use select::output_names;

use crate::ast;
use crate::fault::{FaultKind, Span, SqlFault, SqlFaults};
use crate::limits::FAULTS_MAX;
use crate::parameters::Parameters;
use plan::query::{Grouping, Query};
use scope::{Clause, QueryFrame};

pub(crate) fn lower(query: &ast::Query, parameters: &Parameters) -> Result<Query, SqlFaults> {
    let mut lowering = Lowering { parameters, frames: Vec::new(), faults: Vec::new(), user_calls: 0 };
    let plan = lowering.query(query, Role::Outermost);
    if lowering.faults.is_empty() { Ok(plan) } else { Err(SqlFaults(lowering.faults)) }
}

/// The relation of a query to the query around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is the outermost query.
    Outermost,
    /// The first source of the outermost query: there is no row yet, so its own first source is the container.
    FirstSource,
    /// Any other query; the rows of the outer queries are in scope.
    Inner,
}

/// The state of a lowering.
struct Lowering<'query> {
    parameters: &'query Parameters,
    /// The current queries, outermost first.
    frames: Vec<QueryFrame<'query>>,
    faults: Vec<SqlFault>,
    user_calls: usize,
}

impl<'query> Lowering<'query> {
    fn fault(&mut self, kind: FaultKind, span: Span) {
        if self.has_room() {
            self.faults.push(SqlFault { kind, span });
        }
    }

    /// Whether another fault would be reported; if not, it need not be computed.
    fn has_room(&self) -> bool {
        self.faults.len() < FAULTS_MAX
    }

    /// The frame of the current query.
    fn frame(&mut self) -> &mut QueryFrame<'query> {
        self.frames.last_mut().expect("clauses are lowered inside a query")
    }

    fn query(&mut self, query: &'query ast::Query, role: Role) -> Query {
        let first_slot = self.frames.last().map_or(0, QueryFrame::next_slot);
        self.frames.push(QueryFrame::new(first_slot));
        if role != Role::Outermost {
            self.refuse_in_subquery(query);
        }
        let sources = self.sources(query, role);
        self.frame().clause = Clause::Where;
        let filter = query.filter.as_ref().map(|filter| self.expression(filter));
        let keys = self.group_keys(query);
        let order = self.order(query, role, &sources);
        if keys.is_some() {
            self.frame().grouped_by = Some(&query.group_by);
        }
        self.frame().clause = Clause::Select;
        let projection = self.projection(query);
        let (offset, limit) = self.counts(query);
        let frame = self.frames.pop();
        let aggregates = frame.map(|frame| frame.aggregates).unwrap_or_default();
        let grouping = keys.map(|keys| Grouping { keys, aggregates });
        let distinct = query.select.distinct;
        Query { sources, filter, grouping, order, projection, distinct, offset, limit }
    }

    fn refuse_in_subquery(&mut self, query: &ast::Query) {
        match &query.order_by {
            Some(ast::OrderBy::Keys(keys)) => {
                let span = keys.first().map_or(query.select.span, |key| key.expression.span);
                self.fault(FaultKind::OrderByInSubquery, span);
            }
            // ORDER BY RANK has its own fault.
            Some(ast::OrderBy::Rank(_)) | None => {}
        }
        if let Some(top) = &query.select.top {
            self.fault(FaultKind::TopInSubquery, top.span);
        }
        if let Some(offset_limit) = &query.offset_limit {
            let span = offset_limit.offset.span.to(offset_limit.limit.span);
            self.fault(FaultKind::OffsetLimitInSubquery, span);
        }
    }
}
