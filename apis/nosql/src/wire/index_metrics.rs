//! Index metrics of a query as a header: `x-ms-cosmos-index-utilization`.
//!
//! There are two forms. The first is JSON in base64, read by most clients; some of them reject unknown members. The
//! second is percent-encoded JSON, and contains the impact of an index only if the index is missing.

use super::headers;
use super::names;
use super::percent;
use super::request_headers::RequestHeaders;
use crate::faults::WireFault;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::{Impact, IndexUse, Indexes, SingleIndex};
use model::policy::{CompositeIndex, IndexSegment};
use serde_json::{Value as Json, json};

/// Maximum bytes of JSON in the header. Clients accept 8 or 16 KB of headers in total, and the header is somewhat
/// longer than the JSON; what does not fit is omitted.
const JSON_BYTES_MAX: usize = 3 * 1024;
/// Bytes of JSON around the path of an index.
const INDEX_BYTES: usize = 120;

/// The form of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexMetricsForm {
    /// The older form.
    First,
    /// The newer form.
    Second,
}

impl IndexMetricsForm {
    /// The form that a client requests, if any.
    pub(crate) fn asked(headers: &RequestHeaders) -> Result<Option<IndexMetricsForm>, WireFault> {
        let first = headers::flag(headers, &names::POPULATE_INDEX_METRICS)?;
        Ok(if headers::flag(headers, &names::POPULATE_INDEX_METRICS_V2)? {
            Some(IndexMetricsForm::Second)
        } else {
            first.then_some(IndexMetricsForm::First)
        })
    }

    /// The text of the header.
    pub(crate) fn text(self, mut indexes: IndexUse) -> String {
        shorten(&mut indexes);
        match self {
            IndexMetricsForm::First => BASE64_STANDARD.encode(first_form(&indexes).to_string()),
            IndexMetricsForm::Second => percent::strictly_encoded(&second_form(&indexes).to_string()),
        }
    }
}

/// Removes what does not fit, from the least important lists first.
fn shorten(indexes: &mut IndexUse) {
    let mut room = JSON_BYTES_MAX;
    let mut fits = |size: usize| {
        let left = room.checked_sub(size + INDEX_BYTES);
        room = left.unwrap_or(0);
        left.is_some()
    };
    for indexes in [&mut indexes.used, &mut indexes.missing] {
        indexes.singles.retain(|single| fits(json_size(&path_text(&single.path))));
        indexes
            .composites
            .retain(|composite| fits(composite_texts(composite).iter().map(|text| json_size(text)).sum()));
    }
}

/// Approximate bytes of a text as JSON.
fn json_size(text: &str) -> usize {
    text.len() + 4
}

fn first_form(indexes: &IndexUse) -> Json {
    let single = |single: &SingleIndex| {
        json!({
            "FilterExpression": "",
            "IndexSpec": path_text(&single.path),
            "FilterPreciseSet": true,
            "IndexPreciseSet": true,
            "IndexImpactScore": impact_text(single.impact),
        })
    };
    let composite = |composite: &CompositeIndex| {
        json!({
            "IndexSpecs": composite_texts(composite),
            "IndexPreciseSet": false,
            "IndexImpactScore": impact_text(Impact::High),
        })
    };
    let singles = |indexes: &Indexes| indexes.singles.iter().map(single).collect::<Json>();
    let composites = |indexes: &Indexes| indexes.composites.iter().map(composite).collect::<Json>();
    json!({
        "UtilizedSingleIndexes": singles(&indexes.used),
        "PotentialSingleIndexes": singles(&indexes.missing),
        "UtilizedCompositeIndexes": composites(&indexes.used),
        "PotentialCompositeIndexes": composites(&indexes.missing),
    })
}

fn second_form(indexes: &IndexUse) -> Json {
    let scored = |mut index: Json, impact: Option<Impact>| {
        if let Some(impact) = impact {
            index["IndexImpactScore"] = impact_text(impact).into();
        }
        index
    };
    let group = |indexes: &Indexes, has_scores: bool| {
        let single = |single: &SingleIndex| {
            scored(json!({ "IndexSpec": path_text(&single.path) }), has_scores.then_some(single.impact))
        };
        let composite = |composite: &CompositeIndex| {
            scored(json!({ "IndexSpecs": composite_texts(composite) }), has_scores.then_some(Impact::High))
        };
        json!({
            "SingleIndexes": indexes.singles.iter().map(single).collect::<Json>(),
            "CompositeIndexes": indexes.composites.iter().map(composite).collect::<Json>(),
        })
    };
    json!({
        "UtilizedIndexes": group(&indexes.used, false),
        "PotentialIndexes": group(&indexes.missing, true),
    })
}

fn impact_text(impact: Impact) -> &'static str {
    match impact {
        Impact::Low => "Low",
        Impact::High => "High",
    }
}

/// `/name/[]/?` as in an indexing policy.
fn path_text(path: &[IndexSegment]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            IndexSegment::Name(name) => push_name(name, &mut text),
            IndexSegment::Elements => text.push_str("/[]"),
        }
    }
    text + "/?"
}

/// `/name ASC` for each path.
fn composite_texts(composite: &CompositeIndex) -> Vec<String> {
    let text = |path: &model::policy::CompositePath| {
        let mut text = String::new();
        path.path.segments().for_each(|name| push_name(name, &mut text));
        text + if path.descending { " DESC" } else { " ASC" }
    };
    composite.paths.iter().map(text).collect()
}

/// Appends a name of a path, quoted if it has characters other than letters, digits and `_`.
fn push_name(name: &str, text: &mut String) {
    text.push('/');
    if !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || character == '_') {
        return text.push_str(name);
    }
    text.push('"');
    for character in name.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<IndexSegment> {
        let step = |name: &&str| match *name {
            "[]" => IndexSegment::Elements,
            name => IndexSegment::Name(name.to_owned()),
        };
        names.iter().map(step).collect()
    }

    #[test]
    fn paths_are_written_as_policies_write_them() {
        for (path, expected) in [
            (&["name"][..], "/name/?"),
            (&["tags", "[]", "id"], "/tags/[]/id/?"),
            (&["ı"], "/ı/?"),
            (&["two words"], "/\"two words\"/?"),
            (&["a\"b\\c"], "/\"a\\\"b\\\\c\"/?"),
        ] {
            let text = path_text(&names(path));
            assert_eq!(text, expected);
            let read = model::policy::PolicyPath::parse(&text).unwrap();
            assert_eq!(read.segments, names(path));
        }
    }

    #[test]
    fn what_does_not_fit_in_a_header_is_left_out() {
        let mut indexes = IndexUse::default();
        for number in 0..1000 {
            let path = names(&[&format!("a name of some length {number}")]);
            indexes.used.singles.push(SingleIndex { path, impact: Impact::High });
        }
        for form in [IndexMetricsForm::First, IndexMetricsForm::Second] {
            let size = form.text(indexes.clone()).len();
            assert!((1024..10 * 1024).contains(&size), "{size}");
        }
        indexes.used.singles.truncate(1);
        indexes.used.singles[0].path = names(&[&"n".repeat(100_000)]);
        let empty = IndexMetricsForm::Second.text(IndexUse::default());
        assert_eq!(IndexMetricsForm::Second.text(indexes), empty);
    }

    #[test]
    fn percent_signs_stand_for_all_that_is_not_plain() {
        assert_eq!(percent::strictly_encoded("a b+ß\"~"), "a%20b%2B%C3%9F%22~");
    }
}
