//! Values in a definition that are not interpreted: settings of newer clients, metadata of wrapped keys.
//!
//! They are stored and returned as they were given. Members keep their order; two objects with the same members are
//! equal in any order.

use crate::{DecodeFault, Decoder, Encoder};
use std::collections::{BTreeMap, HashMap};

/// Most levels of lists and objects; the request parsers allow fewer.
const LEVELS_MAX: usize = 256;

/// A value that is stored and returned without being interpreted.
#[derive(Clone, Debug, PartialEq)]
pub enum Opaque {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that fits into an i64.
    Signed(i64),
    /// An integer above `i64::MAX`.
    Unsigned(u64),
    /// Any other number. It is finite.
    Double(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Opaque>),
    /// An object.
    Members(OpaqueMembers),
}

/// Equality is total: no number is NaN.
impl Eq for Opaque {}

/// The members of an object, in the given order. No name occurs twice.
#[derive(Clone, Debug, Default)]
pub struct OpaqueMembers {
    members: Vec<(String, Opaque)>,
}

impl OpaqueMembers {
    /// The member with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Opaque> {
        self.members.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// All members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Opaque)> {
        self.members.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn by_name(&self) -> BTreeMap<&str, &Opaque> {
        self.iter().collect()
    }
}

impl PartialEq for OpaqueMembers {
    fn eq(&self, other: &OpaqueMembers) -> bool {
        self.by_name() == other.by_name()
    }
}

impl Eq for OpaqueMembers {}

impl FromIterator<(String, Opaque)> for OpaqueMembers {
    /// If a name occurs twice, the later value wins.
    fn from_iter<I: IntoIterator<Item = (String, Opaque)>>(given: I) -> OpaqueMembers {
        let mut members: Vec<(String, Opaque)> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        for (name, value) in given {
            match positions.get(&name) {
                Some(position) => members[*position].1 = value,
                None => {
                    positions.insert(name.clone(), members.len());
                    members.push((name, value));
                }
            }
        }
        OpaqueMembers { members }
    }
}

impl Opaque {
    /// Appends its encoding.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        match self {
            Opaque::Null => out.byte(0),
            Opaque::Bool(flag) => out.byte(1 + u8::from(*flag)),
            Opaque::Signed(number) => {
                out.byte(3);
                out.signed(*number);
            }
            Opaque::Unsigned(number) => {
                out.byte(4);
                out.number(*number);
            }
            Opaque::Double(number) => {
                out.byte(5);
                out.double(*number);
            }
            Opaque::Text(text) => {
                out.byte(6);
                out.text(text);
            }
            Opaque::List(items) => {
                out.byte(7);
                out.list(items, |out, item| item.encode(out));
            }
            Opaque::Members(members) => {
                out.byte(8);
                members.encode(out);
            }
        }
    }

    /// Reads its encoding.
    pub(crate) fn decode(input: &mut Decoder<'_>, what: &'static str) -> Result<Opaque, DecodeFault> {
        Opaque::decode_within(input, what, LEVELS_MAX)
    }

    fn decode_within(
        input: &mut Decoder<'_>,
        what: &'static str,
        levels_left: usize,
    ) -> Result<Opaque, DecodeFault> {
        match input.byte(what)? {
            0 => Ok(Opaque::Null),
            1 => Ok(Opaque::Bool(false)),
            2 => Ok(Opaque::Bool(true)),
            3 => input.signed(what).map(Opaque::Signed),
            4 => input.number(what).map(Opaque::Unsigned),
            5 => {
                let number = input.double(what)?;
                number.is_finite().then_some(Opaque::Double(number)).ok_or_else(|| input.invalid(what))
            }
            6 => input.text(what).map(Opaque::Text),
            7 => {
                let below = levels_left.checked_sub(1).ok_or_else(|| input.invalid(what))?;
                input.list(what, |input| Opaque::decode_within(input, what, below)).map(Opaque::List)
            }
            8 => {
                let below = levels_left.checked_sub(1).ok_or_else(|| input.invalid(what))?;
                OpaqueMembers::decode_within(input, what, below).map(Opaque::Members)
            }
            tag => Err(input.unknown(what, tag)),
        }
    }
}

impl OpaqueMembers {
    /// Appends their encoding.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.list(&self.members, |out, (name, value)| {
            out.text(name);
            value.encode(out);
        });
    }

    /// Reads their encoding.
    pub(crate) fn decode(input: &mut Decoder<'_>, what: &'static str) -> Result<OpaqueMembers, DecodeFault> {
        OpaqueMembers::decode_within(input, what, LEVELS_MAX)
    }

    fn decode_within(
        input: &mut Decoder<'_>,
        what: &'static str,
        levels_left: usize,
    ) -> Result<OpaqueMembers, DecodeFault> {
        let member = |input: &mut Decoder<'_>| {
            Ok((input.text(what)?, Opaque::decode_within(input, what, levels_left)?))
        };
        input.list(what, member).map(|members| members.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(list: &[(&str, Opaque)]) -> OpaqueMembers {
        list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn values_round_trip_and_their_depth_is_bounded() {
        let inner = members(&[("b", Opaque::List(vec![Opaque::Signed(1)])), ("a", Opaque::Null)]);
        let value = Opaque::List(vec![
            Opaque::Null,
            Opaque::Bool(true),
            Opaque::Bool(false),
            Opaque::Signed(-1),
            Opaque::Unsigned(u64::MAX),
            Opaque::Double(0.1),
            Opaque::Text("ä".to_owned()),
            Opaque::List(Vec::new()),
            Opaque::Members(OpaqueMembers::default()),
            Opaque::Members(inner),
        ]);
        let mut encoder = Encoder::default();
        value.encode(&mut encoder);
        let bytes = encoder.finish();
        let back = Opaque::decode(&mut Decoder::new(&bytes), "").unwrap();
        assert_eq!(format!("{back:?}"), format!("{value:?}"), "in the same order");
        let deep = [7, 1].repeat(LEVELS_MAX + 1);
        let decoded = Opaque::decode(&mut Decoder::new(&deep), "o");
        assert!(matches!(decoded, Err(DecodeFault::Invalid { .. })));
        let infinite = [&[5][..], &f64::INFINITY.to_bits().to_be_bytes()].concat();
        assert!(Opaque::decode(&mut Decoder::new(&infinite), "o").is_err());
    }

    #[test]
    fn members_are_equal_in_any_order_and_have_each_name_once() {
        let (one, two) = (Opaque::Signed(1), Opaque::Signed(2));
        let first = members(&[("a", one.clone()), ("b", two.clone())]);
        assert_eq!(first, members(&[("b", two.clone()), ("a", one.clone())]));
        assert_ne!(first, members(&[("b", one.clone()), ("a", two.clone())]));
        let twice = members(&[("a", one.clone()), ("b", two.clone()), ("a", two.clone())]);
        assert_eq!((twice.iter().len(), twice.get("a")), (2, Some(&two)));
    }
}
