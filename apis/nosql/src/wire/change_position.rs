//! The position of a reader of the change feed, as an ETag.
//!
//! ```text
//! "42"             one partition, or several at the same LSN
//! "42;0:50,3:61"   LSN 50 in partition 0, 61 in partition 3 and in those they are split into, 42 in all others
//! "42;0:50;3"      the same, where partition 3 is read first
//! ```
//!
//! It is text that anyone can write: it gives access to nothing that another start would not give.

use super::pieces::{cut_once, pieces};
use engine::ChangePosition;
use model::{ContinuationFault, Lsn, PartitionOrdinal, RequestFault};
use std::fmt::Write as _;

/// The text of a position, in quotes.
pub(crate) fn text(position: &ChangePosition) -> String {
    let mut text = format!("\"{}", position.base.0);
    for (index, (ordinal, lsn)) in position.named.iter().enumerate() {
        let separator = if index == 0 { ';' } else { ',' };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{ordinal}:{}", lsn.0);
    }
    if let Some(first) = position.first {
        let separator = if position.named.is_empty() { ";;" } else { ";" };
        let _ = write!(text, "{separator}{first}");
    }
    text.push('"');
    text
}

/// Parses a position, with or without quotes.
pub(crate) fn parse(text: &str) -> Result<ChangePosition, RequestFault> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    read(inner).ok_or(RequestFault::BadContinuation(ContinuationFault::Form))
}

fn read(text: &str) -> Option<ChangePosition> {
    let mut parts = pieces(text, b';');
    let base = number(parts.next()?).map(Lsn)?;
    let (named, first) = (parts.next(), parts.next());
    let named = match named {
        None => Vec::new(),
        Some("") if first.is_some() => Vec::new(),
        Some(list) => pieces(list, b',').map(read_named).collect::<Option<_>>()?,
    };
    let first = match first {
        None => None,
        Some(text) => Some(ordinal(text)?),
    };
    parts.next().is_none().then_some(ChangePosition { base, named, first })
}

fn read_named(text: &str) -> Option<(PartitionOrdinal, Lsn)> {
    let (partition, lsn) = cut_once(text, b':')?;
    Some((ordinal(partition)?, Lsn(number(lsn)?)))
}

fn ordinal(text: &str) -> Option<PartitionOrdinal> {
    u32::try_from(number(text)?).ok().map(PartitionOrdinal)
}

/// Digits only: the parser of the language accepts a sign too.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back() {
        let at = |ordinal, lsn| (PartitionOrdinal(ordinal), Lsn(lsn));
        for (named, first, expected) in [
            (vec![], None, "\"42\""),
            (vec![at(0, 50), at(3, 61)], None, "\"42;0:50,3:61\""),
            (vec![at(0, 50)], Some(PartitionOrdinal(3)), "\"42;0:50;3\""),
            (vec![], Some(PartitionOrdinal(3)), "\"42;;3\""),
        ] {
            let position = ChangePosition { base: Lsn(42), named, first };
            assert_eq!(text(&position), expected);
            assert_eq!(parse(expected), Ok(position.clone()));
            assert_eq!(parse(expected.trim_matches('"')), Ok(position));
        }
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in [
            "",
            "\"\"",
            "\"",
            "x",
            "-1",
            "+1",
            "1.5",
            " 1",
            "\"1",
            "18446744073709551616",
            "1;",
            "1;;",
            "1;0",
            "1;0:",
            "1;0:1,",
            "1;,0:1",
            "1;0:1;",
            "1;0:1;x",
            "1;0:1;2;3",
            "1;4294967296:1",
            "1;0:1:2",
            "\"00000000-0000-0000-0000-000000000000\"",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
