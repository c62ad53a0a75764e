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
    left.max(handles / 4).min(OPEN_TABLES_MAX)
}

/// Raises the soft limit to the hard one; warns if that is too low for `connections_max`.
pub(crate) fn raise_limit(connections_max: usize) {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if before.current != before.maximum
        && let Err(cause) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(event = "file_limit_kept", %cause, "the limit of open files could not be raised");
    }
    let Some(handles) = getrlimit(Resource::Nofile).current else { return };
    let wanted = u64::try_from(connections_max).unwrap_or(u64::MAX).saturating_add(OTHER_HANDLES);
    if handles < wanted {
        tracing::warn!(
            event = "file_limit_low",
            handles,
            wanted,
            "the limit of open files is lower than connections-max needs: raise `ulimit -n`"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_get_what_connections_leave() {
        assert_eq!(tables_share(1_048_576, 10_000), OPEN_TABLES_MAX);
        assert_eq!(tables_share(20_000, 10_000), 9_872);
        assert_eq!(tables_share(1_024, 10_000), 256);
        assert_eq!(tables_share(64, 10_000), 16);
    }
}
