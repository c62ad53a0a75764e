//! Whether tables hold rows of commits that the journals do not have, or would not have after a cut.
//!
//! A commit writes rows of several spaces, and the spaces are flushed one after the other. Until all of them are, some
//! have rows of a commit in tables and others only in the journal. Without its end, the journal cannot complete these
//! commits, and nothing can take back what is in tables: the store would be torn.

use super::format::Format;
use super::table::{self, TableCommits, TableEntry};
use crate::fault::OpenFault;

/// Names of the spaces with a table that holds rows of commits after `commit`; of any commit, if that is `None`.
/// `is_evidence` says which tables count.
pub(super) fn spaces_after(
    commit: Option<u64>,
    tables: &[TableEntry],
    format: &Format,
    is_evidence: impl Fn(&TableCommits) -> bool,
) -> Result<Vec<String>, OpenFault> {
    let mut found = Vec::new();
    // The store's own rows are about the journal that they are in.
    for space in &format.spaces {
        let of_space = |table: &&TableEntry| space.keyspace == Some(table.keyspace);
        for table in tables.iter().filter(of_space) {
            let commits = table::commits(table)?;
            if is_evidence(&commits) && commit.is_none_or(|commit| commits.highest > commit) {
                found.push(space.name.clone());
                break;
            }
        }
    }
    Ok(found)
}

/// Names of the spaces with a table that proves that the journals once had commits after `commit`: the engine syncs
/// the journal before it flushes a memtable. An ingest is not in the journal, and merged tables may hold rows of one.
pub(super) fn spaces_flushed_after(
    commit: Option<u64>,
    tables: &[TableEntry],
    format: &Format,
) -> Result<Vec<String>, OpenFault> {
    match commit {
        None => Ok(Vec::new()),
        commit => spaces_after(commit, tables, format, |commits| commits.is_flushed),
    }
}
