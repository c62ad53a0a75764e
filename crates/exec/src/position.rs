//! Positions: byte strings whose order is the order of a result, whatever the access path or the partitions.
//!
//! ```text
//! rows                number:8 · row:4
//! ordered rows        code of each key (complemented where it descends) · number:8 (complemented where the first
//!                     key descends and is no score) · row:4
//! distinct results    hash of the result's key code:16
//! the same, ordered   position of the first row that has the result
//! groups              hash of the keys' code:16
//! the same, ordered   code of each key · hash of the keys' code:16
//! ```
//!
//! Positions of rows without an order are compared inside a range; ranges are read one after the other, by their lower
//! bounds (`ranges`). All other positions, and those of the rows of a nested query, are compared over all ranges.
//!
//! Numbers are big-endian; `row` counts the rows of one document. If the input of a query is another query
//! instead of documents, the positions of the input rows replace the number and are never complemented. No key code is
//! a prefix of another, so codes can be concatenated.

use eval::{EvalFault, MatchedRow};
use plan::StoredDocument;
use plan::query::{Order, SortKey};
use value::{encode_key, encode_key_descending, encode_undefined};

/// The origin of a row.
#[derive(Clone, Copy)]
pub(crate) struct RowSource<'a> {
    /// Decides between rows with equal keys; of the same length for all rows of one query.
    pub(crate) tie: &'a [u8],
    /// The document, if it is one.
    pub(crate) stored: Option<&'a StoredDocument>,
    /// The codes of its sort keys, if an index has provided them.
    pub(crate) keys: Option<&'a [u8]>,
}

/// Writes the position of a row.
pub(crate) fn write_row(
    order: &Order,
    row: MatchedRow<'_>,
    source: RowSource<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EvalFault> {
    out.clear();
    match order {
        Order::None => {}
        Order::Keys(keys) => match source.keys {
            Some(codes) => out.extend_from_slice(codes),
            None => write_keys(keys, row, out)?,
        },
        Order::Rank(_) => return Err(EvalFault::RankWithoutStatistics),
    }
    if order.turns_ties() && source.stored.is_some() {
        out.extend(source.tie.iter().map(|byte| !byte));
    } else {
        out.extend_from_slice(source.tie);
    }
    out.extend_from_slice(&row.index.to_be_bytes());
    Ok(())
}

/// The number of the document of the row at a position or origin.
pub(crate) fn number_of(order: &Order, place: &[u8]) -> Option<u64> {
    let (rest, _) = place.split_last_chunk::<4>()?;
    let number = u64::from_be_bytes(*rest.last_chunk::<8>()?);
    // An origin consists only of a number and a row.
    let is_turned = rest.len() > 8 && order.turns_ties();
    Some(if is_turned { !number } else { number })
}

/// Writes the origin of a row: its position regardless of any order.
pub(crate) fn write_origin(row: MatchedRow<'_>, source: RowSource<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(source.tie);
    out.extend_from_slice(&row.index.to_be_bytes());
}

/// Appends the codes of sort keys.
pub(crate) fn write_keys(keys: &[SortKey], row: MatchedRow<'_>, out: &mut Vec<u8>) -> Result<(), EvalFault> {
    for key in keys {
        let value = row.evaluate(&key.expression)?;
        let value = value.as_ref().map(eval::Computed::as_ref);
        match (value, key.is_backwards()) {
            (value, true) => encode_key_descending(value, out),
            (Some(value), false) => encode_key(value, out),
            (None, false) => encode_undefined(out),
        }
    }
    Ok(())
}
