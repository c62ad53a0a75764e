//! From a path to an operation.

use crate::PREFIX;
use crate::faults::ControlFault;
use http::Method;
use http::request::Parts;
use model::PartitionOrdinal;
use percent_encoding::percent_decode_str;
use std::time::Duration;

/// Longest pause of a partition.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What is requested, and of which container.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) database: String,
    pub(crate) container: String,
    pub(crate) operation: Operation,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    List,
    Split(PartitionOrdinal),
    Pause(PartitionOrdinal, Duration),
}

impl Route {
    pub(crate) fn of(request: &Parts) -> Result<Route, ControlFault> {
        let path = request.uri.path().strip_prefix(PREFIX).ok_or(ControlFault::NoRoute)?;
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let ["dbs", database, "colls", container, "partitions", rest @ ..] = &segments[..] else {
            return Err(ControlFault::NoRoute);
        };
        let (verb, operation) = match rest {
            [] => (Method::GET, Operation::List),
            [id, "split"] => (Method::POST, Operation::Split(ordinal(id)?)),
            [id, "throttle"] => (Method::POST, Operation::Pause(ordinal(id)?, time(request)?)),
            _ => return Err(ControlFault::NoRoute),
        };
        if request.method != verb {
            return Err(ControlFault::Verb { allowed: verb });
        }
        Ok(Route { database: decoded(database)?, container: decoded(container)?, operation })
    }
}

fn ordinal(text: &str) -> Result<PartitionOrdinal, ControlFault> {
    let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.map(PartitionOrdinal).ok_or_else(|| ControlFault::Partition { id: text.to_owned() })
}

/// The time in the query part of the address.
fn time(request: &Parts) -> Result<Duration, ControlFault> {
    let text = request.uri.query().and_then(|query| query.strip_prefix("milliseconds="));
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let time = digits.and_then(|text| text.parse().ok()).map(Duration::from_millis);
    time.filter(|time| *time <= PAUSE_MAX).ok_or(ControlFault::Milliseconds { max: PAUSE_MAX })
}

fn decoded(segment: &str) -> Result<String, ControlFault> {
    let text = percent_decode_str(segment).decode_utf8().map_err(|_| ControlFault::NoRoute)?;
    if text.is_empty() { Err(ControlFault::NoRoute) } else { Ok(text.into_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(verb: Method, address: &str) -> Result<Route, ControlFault> {
        let request = http::Request::builder().method(verb).uri(address).body(()).unwrap();
        Route::of(&request.into_parts().0)
    }

    fn found(operation: Operation) -> Result<Route, ControlFault> {
        Ok(Route { database: "d b".to_owned(), container: "c".to_owned(), operation })
    }

    #[test]
    fn paths_are_operations() {
        let list = "/_control/dbs/d%20b/colls/c/partitions";
        assert_eq!(route(Method::GET, list), found(Operation::List));
        let split = route(Method::POST, &format!("{list}/7/split"));
        assert_eq!(split, found(Operation::Split(PartitionOrdinal(7))));
        let pause = route(Method::POST, &format!("{list}/0/throttle?milliseconds=1500"));
        assert_eq!(pause, found(Operation::Pause(PartitionOrdinal(0), Duration::from_millis(1500))));
    }

    #[test]
    fn others_are_refused_with_their_reason() {
        let list = "/_control/dbs/d/colls/c/partitions";
        assert_eq!(route(Method::POST, list), Err(ControlFault::Verb { allowed: Method::GET }));
        let split = format!("{list}/7/split");
        assert_eq!(route(Method::GET, &split), Err(ControlFault::Verb { allowed: Method::POST }));
        for path in
            ["/_control/", "/_control/dbs/d", "/_control/dbs//colls/c/partitions", &format!("{list}/7")]
        {
            assert_eq!(route(Method::GET, path), Err(ControlFault::NoRoute), "{path}");
        }
        for id in ["x", "-1", "+1", "99999999999", "%20"] {
            let found = route(Method::POST, &format!("{list}/{id}/split"));
            assert_eq!(found, Err(ControlFault::Partition { id: id.to_owned() }));
        }
        for query in
            ["", "?milliseconds=", "?milliseconds=x", "?milliseconds=60001", "?milliseconds=+5", "?seconds=1"]
        {
            let found = route(Method::POST, &format!("{list}/0/throttle{query}"));
            assert_eq!(found, Err(ControlFault::Milliseconds { max: PAUSE_MAX }), "{query}");
        }
    }
}
