//! User-defined functions in a query: which of its expressions call them, and the calls of many rows at once.

use eval::{
    Context, EXPRESSION_DEPTH_MAX, EvalFault, MatchedRow, UserCall, UserCallResult, UserCalls,
    UserFunctionFault,
};
use model::{Fault, QueryFault};
use plan::StoredDocument;
use plan::query::{Expression, Function, Grouping, Order, Projection, Query, Source};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::pin::Pin;

use crate::collect::EndedGroups;
use crate::fault::query_fault;
use crate::picks::Pick;
use crate::position;
use crate::program::{Layer, Program, RemainingCheck};
use crate::select::LayerRow;
use crate::task::Task;

/// Calls that are made at once.
const CALLS_AT_ONCE: usize = 2_048;
/// Bytes of arguments after which the calls so far are made.
const CALL_BYTES_AT_ONCE: usize = 1 << 20;
/// How often rows are evaluated in advance. Calls that depend on each other need one time each; the calls of one query
/// text are fewer.
const ROUNDS_MAX: usize = 16;

/// The user-defined functions of a container.
pub trait UserFunctions: Debug + Send + Sync {
    /// Makes calls and returns the results of the first ones in the same order, at least one: as many as are there within
    /// a short time and a few megabytes.
    fn call<'a>(&'a self, calls: &'a [UserCall]) -> PendingCalls<'a>;
}

/// Calls that are being made. A fault of one function is a result; another fault ends the query.
pub type PendingCalls<'a> = Pin<Box<dyn Future<Output = Result<Vec<UserCallResult>, Fault>> + Send + 'a>>;

/// Executes no user-defined function.
#[derive(Debug, Clone, Copy)]
pub struct NoUserFunctions;

impl UserFunctions for NoUserFunctions {
    fn call<'a>(&'a self, calls: &'a [UserCall]) -> PendingCalls<'a> {
        let refused = |_| Err(UserFunctionFault::NotExecuted);
        Box::pin(std::future::ready(Ok(calls.iter().map(refused).collect())))
    }
}

/// Where a layer calls user-defined functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallPlaces {
    /// To make rows, to filter them, or for their results.
    pub(crate) anywhere: bool,
    /// In what is evaluated for a row that passed the filter.
    after_filter: bool,
    /// In the results of groups.
    pub(crate) of_groups: bool,
}

impl CallPlaces {
    /// Refuses random numbers beside calls: rows are evaluated twice, with the same calls.
    pub(crate) fn of(query: &Query) -> Result<CallPlaces, EvalFault> {
        let mut finder = CallFinder::default();
        finder.of_results(query, EXPRESSION_DEPTH_MAX);
        let in_results = finder.takes_found();
        if let Some(grouping) = &query.grouping {
            finder.of_grouping(grouping, EXPRESSION_DEPTH_MAX);
        }
        let in_grouping = finder.takes_found();
        finder.of_sources(query, EXPRESSION_DEPTH_MAX);
        let anywhere = finder.takes_found() || in_results || in_grouping;
        if anywhere && finder.has_random {
            return Err(EvalFault::RandomWithUserFunctions);
        }
        let is_grouped = query.grouping.is_some();
        let after_filter = if is_grouped { in_grouping } else { in_results };
        Ok(CallPlaces { anywhere, after_filter, of_groups: is_grouped && in_results })
    }
}

impl Program {
    /// Whether the query calls user-defined functions.
    pub fn calls_functions(&self) -> bool {
        self.layers.iter().any(|layer| layer.calls.anywhere)
    }

    /// The names of all user-defined functions that the query calls.
    pub fn user_functions(&self) -> BTreeSet<String> {
        let mut finder = CallFinder::default();
        for layer in self.layers.iter().filter(|layer| layer.calls.anywhere) {
            finder.of_query(&layer.query, EXPRESSION_DEPTH_MAX);
        }
        finder.names
    }
}

/// Finds calls. The depth of a lowered query is bounded, so none is beyond the levels that are searched.
#[derive(Default)]
struct CallFinder {
    names: BTreeSet<String>,
    has_random: bool,
}

impl CallFinder {
    /// Whether something was found since the last time.
    fn takes_found(&mut self) -> bool {
        !std::mem::take(&mut self.names).is_empty()
    }

    fn at(&mut self, expression: &Expression, levels_left: usize) {
        let Some(levels_left) = levels_left.checked_sub(1) else { return };
        if let Expression::UserCall(name, _) = expression {
            self.names.insert(name.clone());
        }
        if let Expression::Subquery(_, query) = expression {
            self.of_query(query, levels_left);
        }
        self.has_random |= matches!(expression, Expression::Call(Function::Rand, _));
        self.at_all(expression.children(), levels_left);
    }

    fn at_all<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expression>, levels_left: usize) {
        expressions.into_iter().for_each(|expression| self.at(expression, levels_left));
    }

    fn of_query(&mut self, query: &Query, levels_left: usize) {
        let Some(levels_left) = levels_left.checked_sub(1) else { return };
        self.of_sources(query, levels_left);
        if let Some(grouping) = &query.grouping {
            self.of_grouping(grouping, levels_left);
        }
        self.of_results(query, levels_left);
    }

    fn of_sources(&mut self, query: &Query, levels_left: usize) {
        for source in &query.sources {
            match source {
                Source::Container { .. } | Source::ContainerElements { .. } => {}
                Source::Value(value) | Source::Elements(value) => self.at(value, levels_left),
                Source::Rows(query) | Source::RowElements(query) => self.of_query(query, levels_left),
            }
        }
        self.at_all(&query.filter, levels_left);
    }

    fn of_grouping(&mut self, grouping: &Grouping, levels_left: usize) {
        self.at_all(&grouping.keys, levels_left);
        self.at_all(grouping.aggregates.iter().map(|aggregate| &aggregate.argument), levels_left);
    }

    fn of_results(&mut self, query: &Query, levels_left: usize) {
        match &query.order {
            Order::None => {}
            Order::Keys(keys) => self.at_all(keys.iter().map(|key| &key.expression), levels_left),
            Order::Rank(ranking) => self.at_all(&ranking.scores, levels_left),
        }
        match &query.projection {
            Projection::Row(_) => {}
            Projection::Value(value) => self.at(value, levels_left),
            Projection::Object(members) => {
                self.at_all(members.iter().map(|(_, member)| member), levels_left);
            }
        }
    }
}

impl Layer {
    /// Turns to a document or row of those whose calls were made.
    #[inline]
    pub(crate) fn turn_to(&self, context: &Context<'_>, index: usize) {
        if let Some(calls) = context.user_calls.as_ref().filter(|_| self.calls.anywhere) {
            calls.turn_to(index);
        }
    }

    /// Evaluates what a row that passed the filter needs.
    fn rehearse(&self, row: MatchedRow<'_>) -> Result<ControlFlow<()>, EvalFault> {
        if !self.calls.after_filter {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(grouping) = &self.query.grouping {
            let arguments = grouping.aggregates.iter().map(|aggregate| &aggregate.argument);
            for expression in grouping.keys.iter().chain(arguments) {
                row.evaluate(expression)?;
            }
            return Ok(ControlFlow::Continue(()));
        }
        if let Order::Keys(keys) = &self.query.order {
            position::write_keys(keys, row, &mut Vec::new())?;
        }
        if !self.gives_documents {
            row.project(&self.query.projection)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Makes the calls that the rows of documents need. Each document is then evaluated after a turn to its index.
pub(crate) async fn foresee_documents(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    (documents, check): (&[StoredDocument], RemainingCheck),
) -> Result<(), Fault> {
    let rehearse = |index: usize| match documents.get(index) {
        Some(stored) => rehearse_document(task, layer, context, (stored, check)),
        None => Ok(()),
    };
    foresee(task, context, documents.len(), rehearse).await
}

/// The same for documents that indexes have found in order; some may no longer exist.
pub(crate) async fn foresee_picks(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    picks: &[Pick],
    documents: &[Option<StoredDocument>],
) -> Result<(), Fault> {
    let rehearse = |index: usize| match (picks.get(index), documents.get(index)) {
        (Some(pick), Some(Some(stored))) => {
            rehearse_document(task, layer, context, (stored, pick.document.check))
        }
        (Some(_) | None, Some(None) | None) | (None, Some(Some(_))) => Ok(()),
    };
    foresee(task, context, picks.len(), rehearse).await
}

fn rehearse_document(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    document: (&StoredDocument, RemainingCheck),
) -> Result<(), Fault> {
    layer.for_each_match(context, &task.program.system, document, &mut |row| layer.rehearse(row))
}

/// The same for values in place of documents.
pub(crate) async fn foresee_values(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    rows: &[LayerRow],
) -> Result<(), Fault> {
    let rehearse = |index: usize| match rows.get(index) {
        Some((_, value)) => {
            let check = RemainingCheck::Filter;
            layer.for_each_row(context, value.as_ref(), None, check, &mut |row| layer.rehearse(row))
        }
        None => Ok(()),
    };
    foresee(task, context, rows.len(), rehearse).await
}

/// The same for the results of groups.
pub(crate) async fn foresee_groups(
    task: &Task,
    layer: &Layer,
    context: &Context<'_>,
    groups: &EndedGroups,
) -> Result<(), Fault> {
    let rehearse = |index| groups.rehearse(layer, context, index).map_err(query_fault);
    foresee(task, context, groups.count(), rehearse).await
}

/// Evaluates rows in advance until all their calls are made. `rehearse` evaluates the row with an index.
async fn foresee(
    task: &Task,
    context: &Context<'_>,
    rows: usize,
    rehearse: impl Fn(usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(calls) = &context.user_calls else { return Ok(()) };
    calls.begin(context.budget.holding());
    let mut unsettled: Vec<usize> = (0..rows).collect();
    for _ in 0..ROUNDS_MAX {
        let mut stopped = Vec::new();
        for row in unsettled {
            calls.turn_to(row);
            match rehearse(row) {
                Err(Fault::Query(QueryFault::Evaluation(EvalFault::CallPending))) => stopped.push(row),
                // Any fault counts when the row is actually evaluated, if it ever is.
                Ok(()) | Err(_) => task.meter.check().map_err(query_fault)?,
            }
            let (count, bytes) = calls.wanted();
            if count >= CALLS_AT_ONCE || bytes >= CALL_BYTES_AT_ONCE {
                obtain(task, context, calls).await?;
            }
        }
        obtain(task, context, calls).await?;
        unsettled = stopped;
        if unsettled.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Makes the calls that are wanted.
async fn obtain(task: &Task, context: &Context<'_>, calls: &UserCalls) -> Result<(), Fault> {
    let wanted = calls.take_wanted();
    let mut rest = &wanted[..];
    while !rest.is_empty() {
        let results = task.user_functions.call(rest).await?;
        context.check_time().map_err(query_fault)?;
        task.meter.check().map_err(query_fault)?;
        let later = match rest.get(results.len()..) {
            Some(later) if !results.is_empty() => later,
            Some(_) | None => {
                return Err(Fault::Internal("functions gave a wrong number of results".to_owned()));
            }
        };
        calls.add_results(results).map_err(query_fault)?;
        rest = later;
    }
    Ok(())
}
