//! `cargo xtask bench`: builds everything, installs PostgreSQL or valgrind if it is missing, runs the driver.

use crate::conformance::apt;
use crate::run::{self, cargo, command};
use std::path::Path;

/// The counts that later builds are compared with.
const COUNTS: &str = "bench/COUNTS";

/// Runs the cases selected by `arguments` and prints the table.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if arguments.first().is_some_and(|word| word == "count") {
        if !Path::new("/usr/bin/valgrind").exists() {
            apt(&["valgrind"])?;
        }
    } else if !Path::new("/usr/lib/postgresql/15/bin").exists()
        && let Err(message) = apt(&["postgresql"])
    {
        println!("PostgreSQL is missing, its ratios will be too: {message}");
    }
    run::plain(cargo(root, &["build", "--release", "-p", "perihelion", "-p", "perihelion-bench"]))?;
    let driver = root.join("target/release/perihelion-bench");
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words == ["count"] {
        words.extend(["--write", COUNTS]);
    }
    run::plain(command(driver, root, &words))
}
