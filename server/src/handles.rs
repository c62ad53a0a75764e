//! File handles: every connection needs one, and systems give a program fewer than it may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Handles that are needed besides those of connections: files of the store, logs, listeners.
const OTHER_HANDLES: u64 = 512;

/// Raises the soft limit to the hard one; warns when that is still too little for the connections wanted.
pub(crate) fn raise_limit(connections_max: usize) {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if before.current != before.maximum
        && let Err(cause) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%cause, "cannot raise the limit of open files");
    }
    let Some(handles) = getrlimit(Resource::Nofile).current else { return };
    let wanted = u64::try_from(connections_max).unwrap_or(u64::MAX).saturating_add(OTHER_HANDLES);
    if handles < wanted {
        tracing::warn!(
            handles,
            wanted,
            "fewer open files are allowed than connections-max needs; raise `ulimit -n`"
        );
    }
}
