//! File handles: every connection needs one, and the default limit is lower than the allowed maximum.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Handles needed in addition to those of connections: files of the store, logs, listeners.
const OTHER_HANDLES: u64 = 512;

/// Handles reserved for listeners, logs and the small files of the store.
const SMALL_FILES_HANDLES: u64 = 128;

/// Most tables of the store kept open: 100 GB have some 3,000, and each handle takes kernel memory.
const OPEN_TABLES_MAX: u64 = 16_384;

/// Tables of the store that may be kept open: what connections leave, but at least a quarter of all handles.
pub(crate) fn open_tables_max(connections_max: usize) -> usize {
    let handles = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = u64::try_from(connections_max).unwrap_or(u64::MAX);
    usize::try_from(tables_share(handles, connections)).unwrap_or(usize::MAX)
}

fn tables_share(handles: u64, connections: u64) -> u64 {
    let left = handles.saturating_sub(connections).saturating_sub(SMALL_FILES_HANDLES);
    let shared = if connections < handles { handles - connections } else { handles };
    left.max(shared / 4).min(OPEN_TABLES_MAX)
}

/// Raises the soft limit to the hard one. Returns how many connections may be open: `connections_max`, or what the limit
/// leaves without the handles of the store. Clients without credentials must not be able to use those up: the store
/// accepts no write without them.
pub(crate) fn raise_limit(connections_max: usize) -> usize {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if before.current != before.maximum
        && let Err(cause) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(event = "file_limit_kept", %cause, "the limit of open files could not be raised");
    }
    let Some(handles) = getrlimit(Resource::Nofile).current else { return connections_max };
    let allowed = usize::try_from(connections_allowed(handles)).unwrap_or(usize::MAX);
    if allowed < connections_max {
        tracing::warn!(
            event = "file_limit_low",
            handles,
            connections_max,
            allowed,
            "the limit of open files is lower than connections-max needs, so fewer connections are accepted: raise \
             `ulimit -n`"
        );
    }
    connections_max.min(allowed)
}

/// Connections for which there are handles, at least a quarter of all.
fn connections_allowed(handles: u64) -> u64 {
    handles.saturating_sub(OTHER_HANDLES).max(handles / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_its_handles_whatever_connections_are_wanted() {
        assert_eq!([1_048_576, 1_024, 150].map(connections_allowed), [1_048_064, 512, 37]);
        for handles in [150, 600, 1_024, 20_000] {
            let connections = connections_allowed(handles);
            let left = handles - connections - tables_share(handles, connections);
            assert!(left >= SMALL_FILES_HANDLES.min(handles / 2), "{handles} handles leave {left}");
        }
    }

    #[test]
    fn tables_get_what_connections_leave() {
        assert_eq!(tables_share(1_048_576, 10_000), OPEN_TABLES_MAX);
        assert_eq!(tables_share(20_000, 10_000), 9_872);
        assert_eq!(tables_share(1_024, 10_000), 256);
        assert_eq!(tables_share(64, 10_000), 16);
    }
}
