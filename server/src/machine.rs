//! The memory that this process may use: that of the machine, or less if a control group limits it.
//!
//! A limit of any ancestor group applies, so every level from the process's group up to the mount point is read.
//! Version 1 and version 2 hierarchies may both be mounted. In a container with its own namespace the group is "/" and
//! the mount point is the container's group, which the same walk covers.

use std::fmt;
use std::path::{Path, PathBuf};

/// Assumed memory if no limit can be read.
const MEMORY_ASSUMED: u64 = 1 << 30;

/// Memory that this process may use, and the source of that figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: u64,
    pub(crate) source: LimitSource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LimitSource {
    /// The size of the machine.
    Machine,
    /// The file of a control group.
    ControlGroup(PathBuf),
    /// No limit was found.
    Assumed,
}

impl fmt::Display for LimitSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitSource::Machine => formatter.write_str("memory of the machine"),
            LimitSource::ControlGroup(file) => write!(formatter, "control group limit {}", file.display()),
            LimitSource::Assumed => formatter.write_str("assumed because no limit could be read"),
        }
    }
}

/// The memory that this process may use.
pub(crate) fn memory_limit() -> MemoryLimit {
    memory_limit_below(Path::new("/"))
}

/// The same below another root folder, for tests.
fn memory_limit_below(root: &Path) -> MemoryLimit {
    let machine = read(&root.join("proc/meminfo")).and_then(|text| total_in(&text));
    let machine = match machine {
        Some(bytes) => MemoryLimit { bytes, source: LimitSource::Machine },
        None => MemoryLimit { bytes: MEMORY_ASSUMED, source: LimitSource::Assumed },
    };
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = read(&root.join("proc/self/mountinfo")).unwrap_or_default();
    let limits = mounts.lines().filter_map(Mount::parse).filter_map(|mount| {
        let group = mount.group_in(&groups)?;
        smallest_limit(root, &mount, &group)
    });
    limits
        .chain([machine])
        .min_by_key(|limit| limit.bytes)
        .unwrap_or(MemoryLimit { bytes: MEMORY_ASSUMED, source: LimitSource::Assumed })
}

/// A mounted control group hierarchy that limits memory.
struct Mount {
    /// The group at the mount point.
    group: PathBuf,
    point: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    /// Files with a limit. Above `memory.high` a process is throttled so much that it counts as a limit too.
    fn files(self) -> &'static [&'static str] {
        match self {
            Version::One => &["memory.limit_in_bytes"],
            Version::Two => &["memory.max", "memory.high"],
        }
    }
}

impl Mount {
    /// Parses a line of `mountinfo`: id, parent, device, root, mount point, options, optional fields, "-", type,
    /// source, options of the file system.
    fn parse(line: &str) -> Option<Mount> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (group, point) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let options = file_system.nth(1)?;
        let version = match kind {
            "cgroup2" => Version::Two,
            "cgroup" if options.split(',').any(|option| option == "memory") => Version::One,
            _ => return None,
        };
        Some(Mount { group: group.into(), point: point.into(), version })
    }

    /// The process's group in this hierarchy, below the mount point.
    fn group_in(&self, groups: &str) -> Option<PathBuf> {
        let path = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let is_this = match self.version {
                Version::One => controllers.split(',').any(|controller| controller == "memory"),
                Version::Two => id == "0" && controllers.is_empty(),
            };
            is_this.then_some(path)
        })?;
        // A group outside of the mount cannot be read; the limit of the mount point still applies.
        Some(Path::new(path).strip_prefix(&self.group).map(Path::to_path_buf).unwrap_or_default())
    }
}

/// The smallest limit between a group and the mount point.
fn smallest_limit(root: &Path, mount: &Mount, group: &Path) -> Option<MemoryLimit> {
    let group = group.strip_prefix("/").unwrap_or(group);
    let limits = group.ancestors().flat_map(|level| {
        mount.version.files().iter().filter_map(move |name| {
            let file = mount.point.join(level).join(name);
            let bytes = read(&below(root, &file))?.trim().parse().ok()?;
            Some(MemoryLimit { bytes, source: LimitSource::ControlGroup(file) })
        })
    });
    limits.min_by_key(|limit| limit.bytes)
}

fn below(root: &Path, file: &Path) -> PathBuf {
    root.join(file.strip_prefix("/").unwrap_or(file))
}

fn read(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

fn total_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
    const VERSION_1: (&str, &str) = (
        "proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
         36 31 0:33 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n",
    );
    const VERSION_2: (&str, &str) =
        ("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");

    /// Checks the limit found in a tree with these files.
    #[track_caller]
    fn check(files: &[(&str, &str)], bytes: u64, source: &LimitSource) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let limit = memory_limit_below(root.path());
        assert_eq!(limit, MemoryLimit { bytes, source: source.clone() });
    }

    fn group(file: &str) -> LimitSource {
        LimitSource::ControlGroup(file.into())
    }

    #[test]
    fn without_groups_the_machine_decides() {
        check(&[MEMINFO], 16 << 20, &LimitSource::Machine);
        check(&[], MEMORY_ASSUMED, &LimitSource::Assumed);
        check(&[("proc/meminfo", "MemFree: 1 kB\n")], MEMORY_ASSUMED, &LimitSource::Assumed);
        assert!(memory_limit().bytes > 0);
    }

    #[test]
    fn a_group_of_version_1_is_found_at_any_depth() {
        let mut files = vec![
            MEMINFO,
            VERSION_1,
            ("proc/self/cgroup", "4:memory:/a/b\n1:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        check(&files, 16 << 20, &LimitSource::Machine);
        files.push(("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n"));
        check(&files, 5_000_000, &group("/sys/fs/cgroup/memory/a/memory.limit_in_bytes"));
    }

    #[test]
    fn a_group_of_version_2_is_found_at_any_depth() {
        let mut files = vec![
            MEMINFO,
            VERSION_2,
            ("proc/self/cgroup", "0::/system.slice/db.service\n"),
            ("sys/fs/cgroup/system.slice/db.service/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "8000000\n"),
        ];
        check(&files, 8_000_000, &group("/sys/fs/cgroup/system.slice/memory.max"));
        files.push(("sys/fs/cgroup/system.slice/db.service/memory.high", "7000000\n"));
        check(&files, 7_000_000, &group("/sys/fs/cgroup/system.slice/db.service/memory.high"));
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount_point() {
        // With a namespace the group is "/"; without one the mount shows only the container's own group.
        for (mount, groups) in [
            ("30 24 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "0::/\n"),
            ("30 24 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "0::/docker/1f\n"),
            ("30 24 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup ro\n", "0::/elsewhere\n"),
        ] {
            let files = [
                MEMINFO,
                ("proc/self/mountinfo", mount),
                ("proc/self/cgroup", groups),
                ("sys/fs/cgroup/memory.max", "6000000\n"),
            ];
            check(&files, 6_000_000, &group("/sys/fs/cgroup/memory.max"));
        }
    }
}
