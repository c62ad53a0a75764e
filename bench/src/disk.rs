//! The disk: syncs per second of small writes, and the size of a folder.

use crate::Result;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Microseconds of one write with fdatasync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncTime {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// Time of a sync: of 4 KB in a growing and in a preallocated file, and of a full group of creates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncTimes {
    pub(crate) growing: SyncTime,
    pub(crate) preallocated: SyncTime,
    pub(crate) group: SyncTime,
}

/// Bytes of a group: 64 documents of 1 KB.
const GROUP_BYTES: usize = 64 << 10;
const BLOCK_BYTES: usize = 4 << 10;
/// A measurement ends after this many syncs, or this much time.
const SYNCS_MAX: usize = 4000;
const MEASURED_MAX: Duration = Duration::from_secs(2);

pub(crate) fn sync_times(folder: &Path) -> Result<SyncTimes> {
    Ok(SyncTimes {
        growing: sync_time(&folder.join("growing"), 0, BLOCK_BYTES)?,
        preallocated: sync_time(&folder.join("preallocated"), SYNCS_MAX * BLOCK_BYTES, BLOCK_BYTES)?,
        group: sync_time(&folder.join("group"), 0, GROUP_BYTES)?,
    })
}

fn sync_time(path: &Path, preallocated: usize, bytes: usize) -> Result<SyncTime> {
    let block = vec![7u8; bytes];
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    file.write_all(&vec![0; preallocated])?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < MEASURED_MAX && times.len() < SYNCS_MAX {
        let sent = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    std::fs::remove_file(path)?;
    Ok(SyncTime { p50_us: times[times.len() / 2], p99_us: times[times.len() * 99 / 100] })
}

/// Bytes of all files below a folder; files removed meanwhile count as 0.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(about) if about.is_dir() => folder_bytes(&entry.path())?,
            Ok(about) => about.len(),
            Err(fault) if fault.kind() == ErrorKind::NotFound => 0,
            Err(fault) => return Err(fault.into()),
        };
    }
    Ok(bytes)
}
