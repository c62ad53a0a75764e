//! The stretch of an index that contains all documents of a lookup, for a walk in the order of sort keys.
//!
//! Values that a conjunction fixes for the first keys and a range of values for the next key are bounds of the walk;
//! these conditions need no lookup. A disjunction is bounded by the first and the last code of its members. If they
//! leave out nothing but values of other kinds, as `a > 1 OR (a = 1 AND b >= 2)`, it needs no lookup either, only the
//! check on the documents.
//!
//! Bounds are exact: a code is never the prefix of another, and a truncated one differs from a bound before the cut,
//! unless the bound is as long. Such a bound is cut, and the documents are checked.

use partition::index::{CODE_BYTES_MAX, IndexPath, Lookup};
use std::cmp::Ordering;
use std::ops::Bound;
use value::{Kind, Value, decode_key, key_kind_bytes};

use super::code_checks::CodeChecks;
use super::index_condition::tighter;

/// Nested conjunctions that are read.
const LEVELS_MAX: usize = 16;

/// A sort key as the terms contain it.
#[derive(Debug)]
pub(crate) struct OrderedMember {
    pub(crate) path: IndexPath,
    /// Whether the bytes of its codes are inverted.
    pub(crate) is_turned: bool,
}

impl OrderedMember {
    fn stored(&self, code: &[u8]) -> Vec<u8> {
        code.iter().map(|byte| if self.is_turned { !byte } else { *byte }).collect()
    }
}

/// Where the documents of a lookup are in an index.
#[derive(Debug)]
pub(crate) struct WalkBounds {
    stretch: Stretch,
    /// What must still be looked up; nothing if all documents within the bounds are wanted.
    pub(crate) rest: Option<Lookup>,
    /// The rest as ranges of later sort keys, if it is nothing else. Then it need not be looked up at once.
    pub(crate) checks: Option<CodeChecks>,
    /// Whether the documents within the bounds that the rest finds are those of the lookup.
    pub(crate) is_exact: bool,
    /// The conditions that are bounds, if they are explained.
    pub(crate) text: Option<String>,
}

impl WalkBounds {
    /// The bounds that a lookup sets for terms with these members; `None` if there are none.
    pub(crate) fn of(within: &Lookup, members: &[OrderedMember], is_explained: bool) -> Option<WalkBounds> {
        let parts = conjuncts(within);
        let mut reading = Reading::new(&parts, members);
        for (at, part) in parts.iter().enumerate() {
            if let Lookup::Or(alternatives) = part
                && let Some(hull) = Hull::of(alternatives, members)
            {
                reading.narrow(&hull.stretch);
                reading.uses[at] = if hull.is_tight { PartUse::Bound } else { PartUse::Hint };
                reading.is_exact &= !hull.is_tight;
            }
        }
        let Reading { stretch, uses, is_exact } = reading;
        let stretch = stretch?;
        let used = parts.iter().zip(&uses);
        let is_left = |used: &PartUse| matches!(used, PartUse::None | PartUse::Hint);
        let left: Vec<&Lookup> =
            used.clone().filter(|(_, used)| is_left(used)).map(|(part, _)| *part).collect();
        let checks = CodeChecks::of(&left, members);
        // Fixed values are looked up together with the rest, because they are quickly found and exclude many documents.
        let looked_up = used.clone().filter(|(_, used)| **used != PartUse::Bound);
        let mut looked_up: Vec<Lookup> = looked_up.map(|(part, _)| Lookup::clone(part)).collect();
        let rest = uses.iter().any(is_left).then(|| match looked_up.len() {
            1 => looked_up.swap_remove(0),
            _ => Lookup::And(looked_up),
        });
        let text = is_explained.then(|| {
            let bounds = used.filter(|(_, used)| **used != PartUse::None);
            bounds.map(|(part, _)| text_of(part)).collect::<Vec<_>>().join(" and ")
        });
        Some(WalkBounds { stretch, rest, checks, is_exact, text })
    }

    /// Whether no code is within the bounds.
    pub(crate) fn is_empty(&self) -> bool {
        self.stretch.high.as_ref().is_some_and(|high| self.stretch.low >= *high)
    }

    /// The bounds of a walk.
    pub(crate) fn ends(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let Stretch { low, high, .. } = &self.stretch;
        (Bound::Included(low.clone()), high.clone().map_or(Bound::Unbounded, Bound::Excluded))
    }
}

/// Codes from `low` on and before `high`.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) low: Vec<u8>,
    pub(super) high: Option<Vec<u8>>,
    /// Bytes that all codes share because their values are fixed.
    fixed_len: usize,
}

impl Stretch {
    /// All codes with a prefix.
    fn with_prefix(prefix: Vec<u8>) -> Stretch {
        Stretch { high: after_prefix(&prefix), fixed_len: prefix.len(), low: prefix }
    }

    pub(super) fn contains(&self, code: &[u8]) -> bool {
        code >= self.low.as_slice() && self.high.as_ref().is_none_or(|high| code < high.as_slice())
    }

    fn fixed(&self) -> &[u8] {
        &self.low[..self.fixed_len.min(self.low.len())]
    }

    /// Whether the codes between this stretch and a later one, if any, only have values of other kinds.
    fn is_next_to(&self, later: &Stretch) -> bool {
        let Some(high) = &self.high else { return true };
        if *high >= later.low {
            return true;
        }
        let is_kind_end =
            |code: &[u8], fixed: &[u8]| code.starts_with(fixed) && code.len() <= fixed.len() + 1;
        if self.fixed_len > later.fixed_len {
            is_kind_end(high, self.fixed()) && after_prefix(self.fixed()).as_ref() == Some(&later.low)
        } else {
            is_kind_end(&later.low, later.fixed()) && high == later.fixed()
        }
    }
}

/// The first code after all codes with a prefix.
pub(super) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut code = prefix[..=last].to_vec();
    code[last] += 1;
    Some(code)
}

/// How a member of a conjunction is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartUse {
    /// Not at all: it is looked up.
    None,
    /// It is looked up, and also narrows the bounds.
    Hint,
    /// It fixes a value.
    Fixed,
    /// It is a bound.
    Bound,
}

/// What a conjunction says about the codes of its documents.
struct Reading {
    stretch: Option<Stretch>,
    uses: Vec<PartUse>,
    is_exact: bool,
}

impl Reading {
    /// Fixed values and the range after them.
    fn new(parts: &[&Lookup], members: &[OrderedMember]) -> Reading {
        let mut uses = vec![PartUse::None; parts.len()];
        let mut prefix = Vec::new();
        let mut next = None;
        for member in members {
            let Some(value) = parts.iter().find_map(|part| fixed_code(part, &member.path)) else {
                next = Some(member);
                break;
            };
            prefix.extend(member.stored(value));
            for (used, part) in uses.iter_mut().zip(parts) {
                if fixed_code(part, &member.path) == Some(value) {
                    *used = PartUse::Fixed;
                }
            }
        }
        if let Some(member) = next
            && let Some((ends, ranged)) = RangeEnds::of(parts, &member.path)
            && let Some(stretch) = ends.stretch(&prefix, member)
        {
            ranged.into_iter().for_each(|at| uses[at] = PartUse::Bound);
            return Reading { stretch: Some(stretch), uses, is_exact: !ends.is_cut };
        }
        let stretch = (!prefix.is_empty()).then(|| Stretch::with_prefix(prefix));
        Reading { stretch, uses, is_exact: true }
    }

    /// Narrows the bounds.
    fn narrow(&mut self, other: &Stretch) {
        let Some(stretch) = &mut self.stretch else {
            self.stretch = Some(other.clone());
            return;
        };
        if other.low > stretch.low {
            stretch.low.clone_from(&other.low);
        }
        stretch.high = match (stretch.high.take(), &other.high) {
            (Some(one), Some(other)) => Some(one.min(other.clone())),
            (one, other) => one.or_else(|| other.clone()),
        };
    }
}

/// The bounds of a disjunction.
struct Hull {
    stretch: Stretch,
    /// Whether it contains few other codes, namely those with values of other kinds.
    is_tight: bool,
}

impl Hull {
    /// `None` if one of the alternatives has no bounds.
    fn of(alternatives: &[Lookup], members: &[OrderedMember]) -> Option<Hull> {
        let mut is_tight = true;
        let mut stretches = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            let Reading { stretch, uses, .. } = Reading::new(&conjuncts(alternative), members);
            is_tight &= uses.iter().all(|used| matches!(used, PartUse::Fixed | PartUse::Bound));
            stretches.push(stretch?);
        }
        stretches.sort_by(|left, right| left.low.cmp(&right.low));
        let mut stretches = stretches.into_iter();
        let mut stretch = stretches.next()?;
        for later in stretches {
            is_tight &= stretch.is_next_to(&later);
            let high = match (stretch.high, later.high) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (None, _) | (_, None) => None,
            };
            stretch = Stretch { low: stretch.low, high, fixed_len: stretch.fixed_len };
        }
        Some(Hull { stretch, is_tight })
    }
}

/// The ends of a range of values; both are codes or prefixes of codes.
pub(super) struct RangeEnds {
    low: RangeEnd,
    high: RangeEnd,
    /// Whether an end is cut, so that values outside are inside the range.
    is_cut: bool,
}

struct RangeEnd {
    code: Vec<u8>,
    /// Whether values whose codes begin with this one are inside.
    is_inside: bool,
}

impl RangeEnds {
    /// The intersection of all ranges of values at a path, and which parts these are.
    pub(super) fn of(parts: &[&Lookup], wanted: &IndexPath) -> Option<(RangeEnds, Vec<usize>)> {
        let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
        let mut ranged = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if let Lookup::Range { path, low: first, high: last } = part
                && path == wanted
            {
                low = tighter(&low, first, Ordering::Greater);
                high = tighter(&high, last, Ordering::Less);
                ranged.push(at);
            }
        }
        let ((low, is_low_cut), (high, is_high_cut)) = (range_end(&low)?, range_end(&high)?);
        Some((RangeEnds { low, high, is_cut: is_low_cut || is_high_cut }, ranged))
    }

    /// The codes of tuples with this prefix and then a value within the range.
    pub(super) fn stretch(&self, prefix: &[u8], member: &OrderedMember) -> Option<Stretch> {
        let (first, last) = if member.is_turned { (&self.high, &self.low) } else { (&self.low, &self.high) };
        let whole = |end: &RangeEnd| [prefix, &member.stored(&end.code)].concat();
        let low = if first.is_inside { whole(first) } else { after_prefix(&whole(first))? };
        let high = if last.is_inside { after_prefix(&whole(last)) } else { Some(whole(last)) };
        Some(Stretch { low, high, fixed_len: prefix.len() })
    }
}

/// An end of a range, and whether it is cut; `None` if there is none or if terms do not have its order.
fn range_end(bound: &Bound<Vec<u8>>) -> Option<(RangeEnd, bool)> {
    let (code, is_inside) = match bound {
        Bound::Included(code) => (code, true),
        Bound::Excluded(code) => (code, false),
        Bound::Unbounded => return None,
    };
    if is_container(code) && code.len() > 1 {
        return None;
    }
    Some(match code.get(..CODE_BYTES_MAX) {
        Some(cut) if cut.len() < code.len() => (RangeEnd { code: cut.to_vec(), is_inside: true }, true),
        Some(_) | None => (RangeEnd { code: code.clone(), is_inside }, false),
    })
}

/// Whether it is the code of an array or object: terms contain only a mark.
fn is_container(code: &[u8]) -> bool {
    let is_of = |kind| code.first().is_some_and(|first| key_kind_bytes(kind).contains(first));
    is_of(Kind::Array) || is_of(Kind::Object)
}

/// The code of the value that a lookup fixes at a path, if terms contain it untruncated.
fn fixed_code<'l>(lookup: &'l Lookup, wanted: &IndexPath) -> Option<&'l [u8]> {
    match lookup {
        Lookup::Term { path, code } if path == wanted => {
            (code.len() <= CODE_BYTES_MAX && !is_container(code)).then_some(code)
        }
        Lookup::All
        | Lookup::Present(_)
        | Lookup::Term { .. }
        | Lookup::Range { .. }
        | Lookup::Tested { .. }
        | Lookup::Logical(_)
        | Lookup::Effective(_)
        | Lookup::And(_)
        | Lookup::Or(_)
        | Lookup::Without(_) => None,
    }
}

/// The members of a conjunction, also of those inside.
fn conjuncts(lookup: &Lookup) -> Vec<&Lookup> {
    fn gather<'l>(lookup: &'l Lookup, levels_left: usize, found: &mut Vec<&'l Lookup>) {
        match (lookup, levels_left.checked_sub(1)) {
            (Lookup::And(parts), Some(left)) => parts.iter().for_each(|part| gather(part, left, found)),
            (other, _) => found.push(other),
        }
    }
    let mut found = Vec::new();
    gather(lookup, LEVELS_MAX, &mut found);
    found
}

/// A condition that is used as a bound, as text.
fn text_of(lookup: &Lookup) -> String {
    match lookup {
        Lookup::Term { path, code } => {
            decoded(code).map_or_else(|| path.to_string(), |value| format!("{path} = {}", value.to_json()))
        }
        Lookup::Range { path, low, high } => {
            let ends = [end_text(path, low, '>'), end_text(path, high, '<')];
            let known: Vec<String> = ends.into_iter().flatten().collect();
            if known.is_empty() { format!("a range of {path}") } else { known.join(" and ") }
        }
        Lookup::And(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join(" and "),
        Lookup::Or(parts) => format!("({})", parts.iter().map(text_of).collect::<Vec<_>>().join(" or ")),
        Lookup::Present(path) | Lookup::Tested { path, .. } => path.to_string(),
        Lookup::Without(part) => format!("not {}", text_of(part)),
        Lookup::All | Lookup::Logical(_) | Lookup::Effective(_) => "a scope".to_owned(),
    }
}

/// One end of a range as text; `None` if it is that of a kind.
fn end_text(path: &IndexPath, bound: &Bound<Vec<u8>>, sign: char) -> Option<String> {
    let (code, equal) = match bound {
        Bound::Included(code) => (code, "="),
        Bound::Excluded(code) => (code, ""),
        Bound::Unbounded => return None,
    };
    let value = decoded(code).filter(|value| !matches!(value, Value::Double(number) if number.is_nan()))?;
    Some(format!("{path} {sign}{equal} {}", value.to_json()))
}

/// The value of a complete code.
fn decoded(code: &[u8]) -> Option<Value> {
    decode_key(code).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}
