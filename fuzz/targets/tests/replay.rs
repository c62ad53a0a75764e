//! Replays every kept input of every target, and some made on the spot.

use fuzz_targets::TARGETS;
use std::path::Path;

#[test]
fn kept_inputs_break_no_promise() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
        let mut count = 0;
        for entry in
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let data = std::fs::read(entry.unwrap().path()).unwrap();
            target(&data);
            count += 1;
        }
        assert!(count > 0, "{name} has no kept inputs");
    }
}

#[test]
fn kept_inputs_cut_short_break_no_promise() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let data = std::fs::read(entry.unwrap().path()).unwrap();
            for length in 0..data.len().min(64) {
                target(&data[..length]);
            }
        }
    }
}
