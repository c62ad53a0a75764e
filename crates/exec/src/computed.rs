//! Computed properties: wherever a query refers to `c.name`, the name is replaced by its expression.
//!
//! A computed property hides a member of the document with its name. `SELECT *` shows documents as they are stored,
//! without computed properties.

use eval::{EXPRESSION_DEPTH_MAX, EvalFault};
use model::Fault;
use plan::query::{Expression, Order, Projection, Query, SlotId, Source};
use value::Value;

use crate::fault::refused;

/// The name of a computed property and its parsed query.
pub type ParsedProperty = (String, Query);

/// Substitutes computed properties in a query whose first source is the container.
pub(crate) fn insert(query: &mut Query, computed: &[ParsedProperty]) -> Result<(), Fault> {
    let computed: Vec<(&str, &Expression)> = computed
        .iter()
        .map(|(name, query)| Ok((&**name, value_of(name, query)?)))
        .collect::<Result<_, Fault>>()?;
    if let Order::Keys(keys) = &mut query.order {
        // The index has at this path the member that the computed property hides.
        for key in keys {
            let top = key.path.as_ref().and_then(|path| path.segments().next());
            if top.is_some_and(|top| computed.iter().any(|(name, _)| *name == top)) {
                key.path = None;
            }
        }
    }
    Insertion { computed: &computed }.insert_in_query(query, 0, EXPRESSION_DEPTH_MAX)
}

/// The expression of a computed property: `SELECT VALUE expression FROM c` and nothing else.
fn value_of<'q>(name: &str, query: &'q Query) -> Result<&'q Expression, Fault> {
    let odd = || refused(EvalFault::ComputedForm { name: name.to_owned() });
    query.plain_value().ok_or_else(odd)
}

/// The member of the document that an expression refers to, if any.
pub(crate) fn document_member(expression: &Expression) -> Option<&str> {
    if let Expression::Member(base, name) = expression {
        return is_document(base).then_some(name);
    }
    if let Expression::Index(base, name) = expression
        && let Expression::Constant(Value::String(name)) = &**name
    {
        return is_document(base).then_some(name);
    }
    None
}

/// Whether an expression is the document itself.
pub(crate) fn is_document(expression: &Expression) -> bool {
    *expression == Expression::Slot(SlotId::DOCUMENT)
}

struct Insertion<'a> {
    computed: &'a [(&'a str, &'a Expression)],
}

impl Insertion<'_> {
    /// `scope` is the number of slots that are filled when the query begins.
    fn insert_in_query(&self, query: &mut Query, scope: usize, levels_left: usize) -> Result<(), Fault> {
        for (index, source) in query.sources.iter_mut().enumerate() {
            match source {
                Source::Container { .. } | Source::ContainerElements { .. } => {}
                Source::Value(expression) | Source::Elements(expression) => {
                    self.insert_in(expression, scope + index, levels_left)?;
                }
                Source::Rows(query) | Source::RowElements(query) => {
                    self.insert_in_query(query, scope + index, one_less(levels_left)?)?;
                }
            }
        }
        let scope = scope + query.sources.len();
        query.expressions_mut().into_iter().try_for_each(|part| self.insert_in(part, scope, levels_left))
    }

    fn insert_in(&self, place: &mut Expression, scope: usize, levels_left: usize) -> Result<(), Fault> {
        let levels_left = one_less(levels_left)?;
        let named =
            document_member(place).and_then(|name| self.computed.iter().find(|(known, _)| *known == name));
        if let Some((_, expression)) = named {
            *place = (*expression).clone();
            return move_slots(place, scope, levels_left);
        }
        if let Expression::Subquery(_, query) = place {
            return self.insert_in_query(query, scope, levels_left);
        }
        place.children_mut().into_iter().try_for_each(|child| self.insert_in(child, scope, levels_left))
    }
}

/// Subqueries of a computed property use the slots after the document; here they use the slots after all slots in use.
fn move_slots(place: &mut Expression, scope: usize, levels_left: usize) -> Result<(), Fault> {
    let levels_left = one_less(levels_left)?;
    if let Expression::Slot(slot) = place {
        if *slot != SlotId::DOCUMENT {
            let moved = usize::from(slot.0) + scope.saturating_sub(1);
            *slot = SlotId(u16::try_from(moved).map_err(|_| refused(EvalFault::TooManySources))?);
        }
        return Ok(());
    }
    if let Expression::Subquery(_, query) = place {
        return move_slots_of(query, scope, levels_left);
    }
    place.children_mut().into_iter().try_for_each(|child| move_slots(child, scope, levels_left))
}

fn move_slots_of(query: &mut Query, scope: usize, levels_left: usize) -> Result<(), Fault> {
    for source in &mut query.sources {
        match source {
            Source::Container { .. } | Source::ContainerElements { .. } => {}
            Source::Value(expression) | Source::Elements(expression) => {
                move_slots(expression, scope, levels_left)?;
            }
            Source::Rows(query) | Source::RowElements(query) => {
                move_slots_of(query, scope, one_less(levels_left)?)?;
            }
        }
    }
    if let Projection::Row(slot) = &mut query.projection {
        let mut place = Expression::Slot(*slot);
        move_slots(&mut place, scope, levels_left)?;
        query.projection = Projection::Value(place);
    }
    query.expressions_mut().into_iter().try_for_each(|part| move_slots(part, scope, levels_left))
}

fn one_less(levels_left: usize) -> Result<usize, Fault> {
    levels_left
        .checked_sub(1)
        .ok_or_else(|| refused(EvalFault::ComputedTooDeep { depth_max: EXPRESSION_DEPTH_MAX }))
}
