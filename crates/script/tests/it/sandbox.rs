//! What the operating system lets a worker do.

use crate::fixture::program;
use std::process::Command;

#[test]
#[cfg(target_os = "linux")]
fn a_confined_process_has_no_files_sockets_processes_or_threads() {
    let output = Command::new(program().path).arg("probe").env_clear().output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "probed\n");
}
