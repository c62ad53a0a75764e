//! The most memory that the worker has had resident, as the kernel knows it.
//!
//! Where there is no memory for an error, the engine throws null, and has freed what the script used by the time that the
//! worker sees it. The peak tells this null from one of the script. The two files are opened before the worker gives up its
//! rights.

use rustix::fs::{Mode, OFlags, open};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Duration;

/// Faster than any script fills its memory with objects that are smaller than an error: one of 48 bytes in 22 ns.
const FILLED_BYTES_PER_SECOND_MAX: u32 = 2 << 30;

/// How much faster a script raises the peak with one large object, which the system library fills.
const RAISED_FACTOR: u32 = 16;

/// Longer than the part of `status` up to the peak.
const STATUS_BYTES: usize = 4096;

/// What makes the kernel forget the peak.
const RESET: &[u8] = b"5";

static PEAK: OnceLock<Peak> = OnceLock::new();

struct Peak {
    status: OwnedFd,
    reset: OwnedFd,
}

/// Opens the files; returns their numbers: that to read and that to write.
pub(super) fn open_files() -> Result<(RawFd, RawFd), rustix::io::Errno> {
    let status = open("/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let reset = open("/proc/self/clear_refs", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let peak = PEAK.get_or_init(|| Peak { status, reset });
    Ok((peak.status.as_raw_fd(), peak.reset.as_raw_fd()))
}

/// Whether a call that has run for this time may have had a heap of this size.
pub(super) fn may_have_filled(heap_bytes: u64, ran: Duration) -> bool {
    may_fill(heap_bytes, ran) && resident_bytes().is_none_or(|peak| peak >= heap_bytes)
}

/// Forgets the peak after a call that may have raised it.
pub(super) fn forget(heap_bytes: u64, ran: Duration) {
    if may_fill(heap_bytes, ran * RAISED_FACTOR)
        && let Some(peak) = PEAK.get()
    {
        // The peak then belongs to a call before: a null of a script may be taken for used-up memory.
        let _ = rustix::io::pwrite(&peak.reset, RESET, 0);
    }
}

fn may_fill(heap_bytes: u64, ran: Duration) -> bool {
    ran >= Duration::from_secs(heap_bytes) / FILLED_BYTES_PER_SECOND_MAX
}

/// The peak, if the kernel says it. It is more than a full heap, since it includes the program.
fn resident_bytes() -> Option<u64> {
    let mut buffer = [0; STATUS_BYTES];
    let count = rustix::io::pread(&PEAK.get()?.status, &mut buffer, 0).ok()?;
    let text = String::from_utf8_lossy(&buffer[..count]);
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}
