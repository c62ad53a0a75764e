//! Compatibility modes: where the service refuses what this server can answer.
//!
//! `strict` refuses it too, so that an application that works here works there. `relaxed` answers. The rules of the
//! service are not documented completely, so they are all in this file.
//!
//! | request | strict | relaxed |
//! |---|---|---|
//! | unknown API version | 400 | answered |
//! | ORDER BY VectorDistance with ASC or DESC | 400 | the direction is ignored |
//! | ORDER BY several paths without a composite index for it | 400 | sorted |
//! | query over all partition keys that needs a merge | 400/1004 with the plan for the client | merged by the server |
//! | query over all partition keys that needs no merge | a page ends where a range ends | pages are filled |

use crate::faults::WireFault;
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{headers, names};
use model::policy::CompositeIndex;
use plan::query::{Order, Query, SortKey, Source};
use sql::ast::{ExpressionKind, OrderBy};
use std::str::FromStr;
use thiserror::Error;

/// Ends the message of every refusal that is a matter of the mode.
pub(crate) const HINT: &str = "(Only strict compatibility refuses this: start the server with --compatibility \
     relaxed, or send the header x-perihelion-compatibility: relaxed.)";

/// Ends the message of a refusal of a query that this client cannot merge, or no client.
pub(crate) const MERGE_HINT: &str = "(The server merges such a query itself with --compatibility relaxed, or with the \
     header x-perihelion-compatibility: relaxed, if the client does not ask for a plan.)";

/// The API versions of the service, from its version table and from the SDKs.
const VERSIONS: [&str; 19] = [
    "2020-07-15",
    "2020-11-05",
    "2018-12-31",
    "2014-08-21",
    "2015-04-08",
    "2015-06-03",
    "2015-08-06",
    "2015-12-16",
    "2016-05-30",
    "2016-07-11",
    "2016-11-14",
    "2017-01-19",
    "2017-02-22",
    "2017-05-03",
    "2017-11-15",
    "2018-06-18",
    "2018-08-31",
    "2018-09-17",
    "2019-10-14",
];

/// Whether requests are refused that only the service refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compatibility {
    /// They are refused.
    #[default]
    Strict,
    /// They are answered.
    Relaxed,
}

impl FromStr for Compatibility {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Compatibility, &'static str> {
        match text {
            "strict" => Ok(Compatibility::Strict),
            "relaxed" => Ok(Compatibility::Relaxed),
            _ => Err("it must be strict or relaxed"),
        }
    }
}

/// A refusal in strict mode only.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum StrictFault {
    #[error("The API version '{given}' of the header x-ms-version is not supported.")]
    Version { given: String },
    #[error("Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.")]
    DistanceDirection,
    #[error("The order by query does not have a corresponding composite index that it can be served from.")]
    CompositeIndex,
    /// The client must merge the results of the ranges, by this plan.
    #[error(
        "The provided cross partition query can not be directly served by the gateway. This is a first chance \
         (internal) exception that all newer clients will know how to handle gracefully. This exception is traced, \
         but unless you see it bubble up as an exception (which only happens on older SDK clients), then you can \
         safely ignore this message."
    )]
    NeedsMerge { plan: String },
}

/// The mode of a request: that of its header, otherwise that of the server.
pub(crate) fn mode(headers: &RequestHeaders, configured: Compatibility) -> Result<Compatibility, WireFault> {
    match headers::text(headers, &names::COMPATIBILITY)? {
        None => Ok(configured),
        Some(text) => text.parse().map_err(|reason| headers::bad(&names::COMPATIBILITY, text, reason)),
    }
}

/// The API version of a request that strict mode refuses.
pub(crate) fn unknown_version(headers: &RequestHeaders) -> Option<StrictFault> {
    let given = headers.get(&names::VERSION).filter(|given| !given.is_empty())?;
    if VERSIONS.iter().any(|version| version.as_bytes() == given.as_bytes()) {
        return None;
    }
    Some(StrictFault::Version { given: String::from_utf8_lossy(given.as_bytes()).into_owned() })
}

/// A query with what decides whether the service would answer it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedQuery<'a> {
    pub(crate) tree: &'a sql::ast::Query,
    pub(crate) query: &'a Query,
    /// The composite indexes of the container.
    pub(crate) composites: &'a [CompositeIndex],
    /// Whether headers name a key or a range, or the filter pins a complete key. If the container has no partition key
    /// of its own, this holds for every query.
    pub(crate) is_addressed: bool,
}

/// How a query is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Completely, in pages that are as full as possible.
    Answer,
    /// Completely, in pages that end where a range ends.
    AnswerByRange,
    /// With the plan by which the client merges ranges.
    RefuseWithPlan,
}

/// Decides how a query over documents is answered.
pub(crate) fn verdict(mode: Compatibility, asked: AskedQuery<'_>) -> Result<Verdict, StrictFault> {
    match mode {
        Compatibility::Relaxed => Ok(Verdict::Answer),
        Compatibility::Strict => {
            if has_directed_distance(asked.tree) {
                return Err(StrictFault::DistanceDirection);
            }
            // The gateway of the service decides this before a partition looks for an index.
            if !asked.is_addressed && needs_merge(asked.query) {
                return Ok(Verdict::RefuseWithPlan);
            }
            if !has_index(asked.query, asked.composites) {
                return Err(StrictFault::CompositeIndex);
            }
            Ok(if asked.is_addressed { Verdict::Answer } else { Verdict::AnswerByRange })
        }
    }
}

fn has_directed_distance(tree: &sql::ast::Query) -> bool {
    let keys = match &tree.order_by {
        Some(OrderBy::Keys(keys)) => keys.as_slice(),
        Some(OrderBy::Rank(_)) | None => &[],
    };
    keys.iter().any(|key| {
        let is_distance =
            matches!(&key.expression.kind, ExpressionKind::Call(name, _) if name == "VectorDistance");
        is_distance && key.has_direction
    })
}

/// Whether the results of two ranges cannot simply be concatenated.
fn needs_merge(query: &Query) -> bool {
    let is_ordered = match &query.order {
        Order::None => false,
        Order::Keys(_) | Order::Rank(_) => true,
    };
    let is_input_merged = match query.sources.first() {
        // There is one row, whatever the ranges.
        None => return false,
        Some(Source::Rows(inner) | Source::RowElements(inner)) => needs_merge(inner),
        Some(
            Source::Container { .. }
            | Source::ContainerElements { .. }
            | Source::Value(_)
            | Source::Elements(_),
        ) => false,
    };
    let is_counted = query.offset > 0 || query.limit.is_some();
    is_ordered || is_counted || query.distinct || query.grouping.is_some() || is_input_merged
}

/// Whether the order is by one path, or a composite index has exactly its paths in the same directions or in all the
/// opposite ones. An index of more paths does not serve it.
fn has_index(query: &Query, composites: &[CompositeIndex]) -> bool {
    let keys = match &query.order {
        Order::Keys(keys) if keys.len() > 1 && query.grouping.is_none() => keys,
        Order::Keys(_) | Order::None | Order::Rank(_) => return true,
    };
    if keys.iter().any(|key| key.path.is_none()) {
        return true;
    }
    composites.iter().any(|index| serves(index, keys))
}

fn serves(index: &CompositeIndex, keys: &[SortKey]) -> bool {
    let mut pairs = index.paths.iter().zip(keys);
    let turned = || index.paths.iter().zip(keys).map(|(path, key)| path.descending != key.descending);
    index.paths.len() == keys.len()
        && pairs.all(|(path, key)| key.path.as_ref() == Some(&path.path))
        && (turned().all(|is_turned| is_turned) || !turned().any(|is_turned| is_turned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    fn verdict_of(
        mode: Compatibility,
        text: &str,
        composites: &[CompositeIndex],
        is_addressed: bool,
    ) -> Result<Verdict, StrictFault> {
        let tree = sql::parse(text).unwrap();
        let query = sql::lower(&tree, &sql::Parameters::none()).unwrap();
        verdict(mode, AskedQuery { tree: &tree, query: &query, composites, is_addressed })
    }

    #[test]
    fn a_query_that_needs_a_merge_is_left_to_the_client() {
        for (text, needs_merge) in [
            ("SELECT * FROM c", false),
            ("SELECT c.a FROM c JOIN t IN c.tags WHERE t = 1", false),
            ("SELECT VALUE x FROM (SELECT VALUE c.a FROM c) AS x", false),
            ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c", false),
            ("SELECT TOP 1 VALUE 1", false),
            ("SELECT * FROM c ORDER BY c.a", true),
            ("SELECT VALUE COUNT(1) FROM c", true),
            ("SELECT COUNT(1) FROM c", true),
            ("SELECT c.a FROM c GROUP BY c.a", true),
            ("SELECT DISTINCT c.a FROM c", true),
            ("SELECT TOP 1 * FROM c", true),
            ("SELECT * FROM c OFFSET 0 LIMIT 1", true),
            ("SELECT * FROM c ORDER BY VectorDistance(c.v, [1])", true),
            ("SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", true),
            ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", true),
            ("SELECT VALUE x FROM (SELECT VALUE COUNT(1) FROM c) AS x", true),
        ] {
            let expected = if needs_merge { Verdict::RefuseWithPlan } else { Verdict::AnswerByRange };
            assert_eq!(verdict_of(Compatibility::Strict, text, &[], false), Ok(expected), "{text}");
            assert_eq!(verdict_of(Compatibility::Strict, text, &[], true), Ok(Verdict::Answer), "{text}");
            assert_eq!(verdict_of(Compatibility::Relaxed, text, &[], false), Ok(Verdict::Answer), "{text}");
        }
    }

    #[test]
    fn an_order_of_several_paths_needs_exactly_its_composite_index() {
        let index = |paths: &[(&str, bool)]| CompositeIndex::over(paths).unwrap();
        let two = [index(&[("/z", false), ("/y", false)]), index(&[("/a", false), ("/b", true)])];
        let three = [index(&[("/a", false), ("/b", false), ("/c", false)])];
        for (order, composites, is_served) in [
            ("c.a", &[][..], true),
            ("c.a, c.b", &[], false),
            ("c.a, c.b DESC", &two, true),
            ("c.a DESC, c.b ASC", &two, true),
            ("c.a, c.b", &two, false),
            ("c.a DESC, c.b DESC", &two, false),
            ("c.b DESC, c.a", &two, false),
            ("c.a, c.b", &three, false),
            ("c.a, c.b, c.c", &three, true),
            ("c.a, c.b DESC, c.c", &two, false),
        ] {
            let text = format!("SELECT * FROM c ORDER BY {order}");
            let expected = if is_served { Ok(Verdict::Answer) } else { Err(StrictFault::CompositeIndex) };
            assert_eq!(verdict_of(Compatibility::Strict, &text, composites, true), expected, "{order}");
            let relaxed = verdict_of(Compatibility::Relaxed, &text, composites, true);
            assert_eq!(relaxed, Ok(Verdict::Answer), "{order}");
        }
    }

    #[test]
    fn a_distance_has_no_direction() {
        for (direction, is_refused) in [("", false), (" ASC", true), (" DESC", true)] {
            let text = format!("SELECT TOP 2 * FROM c ORDER BY VectorDistance(c.v, [1]){direction}");
            let strict = verdict_of(Compatibility::Strict, &text, &[], true);
            assert_eq!(strict == Err(StrictFault::DistanceDirection), is_refused, "{text}");
            assert_eq!(verdict_of(Compatibility::Relaxed, &text, &[], true), Ok(Verdict::Answer));
        }
    }

    #[test]
    fn versions_of_the_service_are_known_and_an_absent_one_is_accepted() {
        let with = |version: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(&names::VERSION, HeaderValue::from_static(version));
            unknown_version(&headers.into())
        };
        for version in VERSIONS.into_iter().chain([""]) {
            assert_eq!(with(version), None, "{version}");
        }
        for version in ["abc", "2099-01-01", "2020-07-16", "2020-07-15 "] {
            assert_eq!(with(version), Some(StrictFault::Version { given: version.to_owned() }));
        }
        assert_eq!(unknown_version(&RequestHeaders::default()), None);
    }

    #[test]
    fn the_header_overrides_the_setting() {
        for configured in [Compatibility::Strict, Compatibility::Relaxed] {
            assert_eq!(mode(&RequestHeaders::default(), configured), Ok(configured));
        }
        let asked = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(&names::COMPATIBILITY, HeaderValue::from_static(text));
            RequestHeaders::from(headers)
        };
        assert_eq!(mode(&asked("relaxed"), Compatibility::Strict), Ok(Compatibility::Relaxed));
        assert_eq!(mode(&asked("strict"), Compatibility::Relaxed), Ok(Compatibility::Strict));
        assert!(mode(&asked("lenient"), Compatibility::Strict).is_err());
    }
}
