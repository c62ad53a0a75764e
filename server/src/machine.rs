//! The memory that this process may use: the machine's, or less where a control group says so.

use std::path::Path;

/// What is assumed where nothing can be found out.
const MEMORY_ASSUMED: u64 = 1 << 30;

/// Bytes of memory that this process may use.
pub(crate) fn memory_bytes() -> u64 {
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = limits.into_iter().filter_map(|file| read(file)?.trim().parse().ok()).min();
    let total = read("/proc/meminfo").and_then(|text| total_in(&text)).unwrap_or(MEMORY_ASSUMED);
    limit.map_or(total, |limit: u64| limit.min(total))
}

fn read(file: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

fn total_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[test]
fn the_total_is_found() {
    assert_eq!(total_in("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
    assert_eq!(total_in("MemFree: 1 kB\n"), None);
    assert!(memory_bytes() > 0);
}
