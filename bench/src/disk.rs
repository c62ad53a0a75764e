//! The disk: syncs per second of small writes, and what a folder takes.

use crate::Result;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Microseconds of a 4 KB write with fdatasync: to a growing file, and to a preallocated one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncTimes {
    pub(crate) growing_us: f64,
    pub(crate) preallocated_us: f64,
}

pub(crate) fn sync_times(folder: &Path) -> Result<SyncTimes> {
    let growing_us = median_us(&folder.join("growing"), 0)?;
    let preallocated_us = median_us(&folder.join("preallocated"), 16 << 20)?;
    Ok(SyncTimes { growing_us, preallocated_us })
}

fn median_us(path: &Path, preallocated: usize) -> Result<f64> {
    let block = [7u8; 4096];
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    file.write_all(&vec![0; preallocated])?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) && times.len() < 4000 {
        let sent = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    std::fs::remove_file(path)?;
    Ok(times[times.len() / 2])
}

/// Bytes of all files below a folder.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { folder_bytes(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}
