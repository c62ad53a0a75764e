//! Syntax tree to plan: names become slots, parameters values, and the rules that need no documents are checked.
//!
//! Goes on behind a fault where it can, so that a query's faults are told together; what stands in the place of a
//! faulty expression is never seen, since a query with faults has no plan.
//!
//! | file | holds |
//! |---|---|
//! | `scope` | which names are seen where |
//! | `from` | sources and their slots |
//! | `select` | projection, output names, counts |
//! | `group` | GROUP BY, aggregates, what groups may refer to |
//! | `order` | ORDER BY, ORDER BY RANK |
//! | `expression`, `constant` | expressions, and those that are known already |
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
use crate::fault::{FaultKind, Place, SqlFault, SqlFaults};
use crate::limits::FAULTS_MAX;
use crate::parameters::Parameters;
use plan::query::{Grouping, Query};
use scope::{Clause, Frame};

/// What a query wants.
pub(crate) fn lower(query: &ast::Query, parameters: &Parameters) -> Result<Query, SqlFaults> {
    let mut lowering = Lowering { parameters, frames: Vec::new(), faults: Vec::new(), user_calls: 0 };
    let plan = lowering.query(query, Role::Outermost);
    if lowering.faults.is_empty() { Ok(plan) } else { Err(SqlFaults(lowering.faults)) }
}

/// What a query is to the query around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// There is none around it.
    Outermost,
    /// The first source of the outermost query: still no row is known, so its own first source is the container.
    FirstSource,
    /// Any other; the rows around it are known.
    Inner,
}

/// A lowering under way.
struct Lowering<'query> {
    parameters: &'query Parameters,
    /// The queries that are open, outermost first.
    frames: Vec<Frame<'query>>,
    faults: Vec<SqlFault>,
    user_calls: usize,
}

impl<'query> Lowering<'query> {
    fn fault(&mut self, kind: FaultKind, place: Place) {
        if self.has_room() {
            self.faults.push(SqlFault { kind, place });
        }
    }

    /// Whether another fault would be told; if not, nobody need work one out.
    fn has_room(&self) -> bool {
        self.faults.len() < FAULTS_MAX
    }

    /// The query that is being lowered.
    fn frame(&mut self) -> &mut Frame<'query> {
        self.frames.last_mut().expect("clauses are lowered inside a query")
    }

    fn query(&mut self, query: &'query ast::Query, role: Role) -> Query {
        let first_slot = self.frames.last().map_or(0, Frame::next_slot);
        self.frames.push(Frame::new(first_slot));
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
                let place = keys.first().map_or(query.select.place, |key| key.expression.place);
                self.fault(FaultKind::OrderByInSubquery, place);
            }
            // ORDER BY RANK has a fault of its own.
            Some(ast::OrderBy::Rank(_)) | None => {}
        }
        if let Some(top) = &query.select.top {
            self.fault(FaultKind::TopInSubquery, top.place);
        }
        if let Some(offset_limit) = &query.offset_limit {
            let place = offset_limit.offset.place.to(offset_limit.limit.place);
            self.fault(FaultKind::OffsetLimitInSubquery, place);
        }
    }
}
