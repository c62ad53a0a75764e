//! A query prepared for execution: computed properties are substituted, layers are separated, and the shape of each
//! layer is determined.
//!
//! `FROM (SELECT … FROM c)` makes two layers: the innermost reads documents, each other one reads the results of the
//! one below it. Does not know partitions.

use eval::{Context, EvalFault, MatchedRow, for_each_match, for_each_row};
use model::{Encoder, Fault};
use plan::query::{Order, Projection, Query, Source};
use plan::{StoredDocument, SystemProperties};
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::sync::Arc;
use value::ValueRef;

use crate::computed::{self, ParsedProperty};
use crate::fault::{query_fault, refused};
use crate::found::QueryRow;
use crate::needs::{Needs, gives_documents};
use crate::user_calls::CallPlaces;

/// Maximum number of nested layers.
const LAYERS_MAX: usize = 64;

/// A query prepared for execution.
#[derive(Debug)]
pub struct Program {
    /// The innermost one first; at least one.
    pub(crate) layers: Vec<Layer>,
    pub(crate) system: SystemProperties,
}

/// One query of a chain.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Its first source, if it has one, is the input of the layer.
    pub(crate) query: Arc<Query>,
    pub(crate) input: LayerInput,
    pub(crate) shape: Shape,
    pub(crate) needs: Needs,
    /// Whether results are documents as they are stored.
    pub(crate) gives_documents: bool,
    /// Where it calls user-defined functions.
    pub(crate) calls: CallPlaces,
}

/// The input of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerInput {
    /// Documents of the container.
    Documents,
    /// Results of the layer below.
    Rows,
    /// Nothing: its sources, if any, produce their rows themselves.
    Nothing,
}

/// The kind of results, which determines their identity and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Rows, by number or by keys.
    Rows,
    /// Distinct results, by hash.
    Distinct,
    /// Distinct results, by the keys of their first rows.
    DistinctOrdered,
    /// Groups by hash; a page needs only its own.
    Groups,
    /// Groups that must all be known before the first can be returned.
    AllGroups,
}

/// What is still to be checked on a document that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemainingCheck {
    /// Whether it passes the filter.
    Filter,
    /// Nothing: an index has answered the filter exactly.
    Nothing,
}

impl Program {
    /// Prepares a query.
    pub fn new(
        query: Arc<Query>,
        computed: &[ParsedProperty],
        system: SystemProperties,
    ) -> Result<Program, Fault> {
        let mut queries = Vec::with_capacity(1);
        let mut rest = query;
        loop {
            if queries.len() >= LAYERS_MAX {
                return Err(refused(EvalFault::TooManyLayers { layers_max: LAYERS_MAX }));
            }
            let below = take_first_query(&mut rest);
            let input = match (&below, rest.sources.first()) {
                (Some(_), _) => LayerInput::Rows,
                (None, Some(Source::Container { .. } | Source::ContainerElements { .. })) => {
                    LayerInput::Documents
                }
                (None, _) => LayerInput::Nothing,
            };
            queries.push((rest, input));
            match below {
                Some(below) => rest = Arc::new(below),
                None => break,
            }
        }
        let mut layers = Vec::with_capacity(queries.len());
        for (index, (query, input)) in queries.into_iter().enumerate().rev() {
            layers.push(Layer::new(query, input, index == 0, computed)?);
        }
        Ok(Program { layers, system })
    }

    /// A digest of what determines the position of a result among the others: equal for queries whose continuations are
    /// interchangeable. The layers below the outermost one determine its input, so they count with their filters.
    pub fn order_digest(&self) -> [u8; 32] {
        let mut out = Encoder::default();
        if let Some((last, inner)) = self.layers.split_last() {
            out.list(inner, |out, layer| layer.query.encode(out));
            last.query.encode_order(&mut out);
        }
        Sha256::digest(out.finish()).into()
    }

    /// The outermost query.
    pub(crate) fn last(&self) -> Option<&Layer> {
        self.layers.last()
    }
}

/// Removes the query from the first source, which then reads the results of that query.
fn take_first_query(query: &mut Arc<Query>) -> Option<Query> {
    let replacement = match query.sources.first()? {
        Source::Rows(_) => Source::Container { path: Vec::new() },
        Source::RowElements(_) => Source::ContainerElements { path: Vec::new() },
        Source::Container { .. }
        | Source::ContainerElements { .. }
        | Source::Value(_)
        | Source::Elements(_) => return None,
    };
    let first = Arc::make_mut(query).sources.first_mut()?;
    match std::mem::replace(first, replacement) {
        Source::Rows(below) | Source::RowElements(below) => Some(*below),
        Source::Container { .. }
        | Source::ContainerElements { .. }
        | Source::Value(_)
        | Source::Elements(_) => None,
    }
}

impl Layer {
    fn new(
        mut query: Arc<Query>,
        input: LayerInput,
        is_last: bool,
        computed: &[ParsedProperty],
    ) -> Result<Layer, Fault> {
        let reads_again = query
            .sources
            .iter()
            .skip(1)
            .any(|source| matches!(source, Source::Container { .. } | Source::ContainerElements { .. }));
        if reads_again {
            return Err(refused(EvalFault::ContainerNotFirst));
        }
        if input == LayerInput::Documents && !computed.is_empty() {
            computed::insert(Arc::make_mut(&mut query), computed)?;
        }
        let gives_documents = is_last && input == LayerInput::Documents && gives_documents(&query);
        let needs = match input {
            LayerInput::Documents => Needs::of(&query, gives_documents),
            LayerInput::Rows | LayerInput::Nothing => Needs { to_filter: false, to_finish: false },
        };
        let calls = CallPlaces::of(&query).map_err(refused)?;
        Ok(Layer { shape: shape(&query), query, input, needs, gives_documents, calls })
    }

    /// Calls `visit` for every row of a stored document that passes the filter; `check` says what is still to be
    /// checked.
    pub(crate) fn for_each_match(
        &self,
        context: &Context<'_>,
        system: &SystemProperties,
        (stored, check): (&StoredDocument, RemainingCheck),
        visit: &mut dyn FnMut(MatchedRow<'_>) -> Result<ControlFlow<()>, EvalFault>,
    ) -> Result<(), Fault> {
        let number = Some(stored.number.raw());
        if !self.needs.to_filter && !self.needs.to_finish {
            return self.for_each_row(context, stored.document.root(), number, check, visit);
        }
        if !self.needs.to_filter && self.query.filter.is_some() && check == RemainingCheck::Filter {
            let mut has_match = false;
            self.for_each_row(context, stored.document.root(), number, check, &mut |_| {
                has_match = true;
                Ok(ControlFlow::Break(()))
            })?;
            if !has_match {
                return Ok(());
            }
        }
        let extended = system.extend(stored).map_err(|error| Fault::Internal(error.to_string()))?;
        self.for_each_row(context, extended.root(), number, check, visit)
    }

    /// The same for a value in place of a document.
    pub(crate) fn for_each_row(
        &self,
        context: &Context<'_>,
        root: ValueRef<'_>,
        number: Option<u64>,
        check: RemainingCheck,
        visit: &mut dyn FnMut(MatchedRow<'_>) -> Result<ControlFlow<()>, EvalFault>,
    ) -> Result<(), Fault> {
        let root = (self.input != LayerInput::Nothing).then_some(root);
        let end = match check {
            RemainingCheck::Filter => for_each_match(context, &self.query, root, number, visit),
            RemainingCheck::Nothing => for_each_row(context, &self.query, root, number, visit),
        };
        end.map(|_| ()).map_err(query_fault)
    }

    /// The result of a row; `None` if it is undefined.
    pub(crate) fn result(
        &self,
        row: MatchedRow<'_>,
        stored: Option<&StoredDocument>,
    ) -> Result<Option<QueryRow>, EvalFault> {
        match stored {
            Some(stored) if self.gives_documents => Ok(Some(QueryRow::Document(stored.clone()))),
            Some(_) | None => {
                let value = row.project(&self.query.projection)?;
                Ok(value.map(|value| QueryRow::Value(value.into_value())))
            }
        }
    }

    /// Whether a document gives at most one row.
    pub(crate) fn has_one_row(&self) -> bool {
        matches!(self.query.sources[..], [Source::Container { .. }])
    }

    /// Whether every row has a result.
    pub(crate) fn always_has_result(&self) -> bool {
        match &self.query.projection {
            Projection::Object(_) => true,
            Projection::Row(_) | Projection::Value(_) => self.gives_documents,
        }
    }
}

fn shape(query: &Query) -> Shape {
    match (&query.grouping, query.distinct, &query.order) {
        (Some(_), false, Order::None) => Shape::Groups,
        (Some(_), ..) => Shape::AllGroups,
        (None, false, _) => Shape::Rows,
        (None, true, Order::None) => Shape::Distinct,
        (None, true, Order::Keys(_) | Order::Rank(_)) => Shape::DistinctOrdered,
    }
}
