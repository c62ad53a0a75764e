//! Every kind of small damage to every file of a store: it is refused with its cause, or opens with correct data.
//!
//! The long variant, `cargo xtask damage`, sets a variable and takes all files instead of the small ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kv::{Batch, Direction, Durability, KeyRange, OpenFault, ReadFault, Space, Store, StoreCopy};
use tempfile::TempDir;

use crate::stores::{ALL_ROWS, INDEX, META, RECORDS, SPACES, commit, options, put, run};

/// Set for the long variant.
const ALL_FILES_VARIABLE: &str = "KV_DAMAGE_ALL_FILES";

/// Files up to this length have every bit flipped in the short variant.
const SMALL_FILE_BYTES: usize = 256;

/// The row of the last commit of a store that was not closed. A broken last commit cannot be distinguished from a torn
/// one.
const LAST_KEY: &str = "last";

type Rows = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

/// Files of a store with their bytes, without the zeros at the end of journals.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A store with rows in tables, an ingest, and, unless it is closed, rows in the journal.
struct Specimen {
    files: Files,
    rows: Rows,
}

fn specimen(is_closed: bool) -> Specimen {
    let folder = tempfile::tempdir().unwrap();
    let rows = run(async {
        for round in 0..2 {
            let store = Store::open(options(&folder)).unwrap();
            for space in [RECORDS, INDEX, META] {
                commit(&store, put(space, &format!("a-{round}"), "in a table")).await.unwrap();
            }
            let ingested = vec![(format!("run-{round}").into(), "ingested".into())];
            let ingest = store.ingest(INDEX, ingested).await.unwrap();
            let mut batch = put(META, "runs", &round.to_string());
            batch.name_ingest(ingest);
            // Puts the marker of the space.
            batch.delete(RECORDS, "absent");
            commit(&store, batch).await.unwrap();
            store.close().await.unwrap();
        }
        let store = Store::open(options(&folder)).unwrap();
        if !is_closed {
            for space in [RECORDS, META] {
                commit(&store, put(space, "b", "in the journal")).await.unwrap();
            }
            commit(&store, put(RECORDS, LAST_KEY, "in the journal")).await.unwrap();
        }
        let rows = rows(&store).await.unwrap();
        if is_closed {
            store.close().await.unwrap();
        }
        rows
    });
    Specimen { files: read_files(folder.path()), rows }
}

async fn rows(store: &Store) -> Result<Rows, ReadFault> {
    let view = store.view().await?;
    let mut rows = Rows::new();
    for space in (0..).take(SPACES.len()) {
        let found = view.scan(Space(space), KeyRange::all(), Direction::Forward, ALL_ROWS).await?;
        rows.extend(found.rows.iter().map(|(key, value)| ((space, key.to_vec()), value.to_vec())));
    }
    Ok(rows)
}

fn read_files(store: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(store.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                let mut bytes = fs::read(entry.path()).unwrap();
                if path.extension().is_some_and(|extension| extension == "jnl") {
                    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                }
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// A temporary folder, in memory if possible, as thousands of stores are opened.
fn new_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn write_files(files: &Files) -> TempDir {
    let folder = new_folder();
    for (path, bytes) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    // Empty folders belong to a store too.
    for keyspace in fs::read_dir(folder.path().join("engine/keyspaces")).into_iter().flatten() {
        fs::create_dir_all(keyspace.unwrap().path().join("tables")).unwrap();
    }
    folder
}

/// Result of opening a damaged store.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Outcome {
    Refused,
    Right,
    /// The last commit is missing, which looks like one that was never finished.
    RightWithoutLast,
    Unreadable,
}

/// Opens a store made of `files` and compares its rows with the expected ones.
#[track_caller]
fn check(what: &str, files: &Files, rows_expected: &Rows) -> Outcome {
    check_in(&write_files(files), what, rows_expected)
}

/// The same for files that are already in place.
#[track_caller]
fn check_in(folder: &TempDir, what: &str, rows_expected: &Rows) -> Outcome {
    run(async {
        let store = match Store::open(options(folder)) {
            Ok(store) => store,
            Err(fault) => {
                let text = fault.to_string();
                assert!(!text.contains("gave up"), "{what}: the engine panicked: {text}");
                assert!(!text.is_empty(), "{what}");
                return Outcome::Refused;
            }
        };
        let found = match rows(&store).await {
            Ok(found) => found,
            Err(ReadFault::Damaged { .. } | ReadFault::Io { .. }) => return Outcome::Unreadable,
            Err(fault) => panic!("{what}: {fault}"),
        };
        let mut without_last = rows_expected.clone();
        without_last.remove(&(RECORDS.0, LAST_KEY.as_bytes().to_vec()));
        match found {
            found if found == *rows_expected => Outcome::Right,
            found if found == without_last => Outcome::RightWithoutLast,
            found => panic!("{what}: wrong rows, {} instead of {}", found.len(), rows_expected.len()),
        }
    })
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jnl")
}

#[test]
fn a_missing_or_emptied_file_is_named_or_not_needed() {
    for is_closed in [true, false] {
        let Specimen { files, rows } = specimen(is_closed);
        assert_eq!(check("as it was", &files, &rows), Outcome::Right);
        for (path, bytes) in &files {
            let mut damaged = files.clone();
            damaged.remove(path);
            let outcome = check(&format!("without {}, closed {is_closed}", path.display()), &damaged, &rows);
            assert!(matches!(outcome, Outcome::Refused | Outcome::Right), "{outcome:?}");
            if !bytes.is_empty() {
                damaged.insert(path.clone(), Vec::new());
                let outcome =
                    check(&format!("{} emptied, closed {is_closed}", path.display()), &damaged, &rows);
                assert!(matches!(outcome, Outcome::Refused | Outcome::Right), "{outcome:?}");
            }
        }
    }
}

#[test]
fn the_parts_that_a_store_needs_are_named_when_they_are_missing() {
    let Specimen { files, .. } = specimen(true);
    let number = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let journal = number(files.keys().find(|path| is_journal(path)).unwrap());
    let needed = ["engine/version".to_owned(), format!("engine/{journal}.jnl")];
    let current = (0..5).map(|keyspace| format!("engine/keyspaces/{keyspace}/current"));
    let tables = files.keys().filter(|path| path.parent().is_some_and(|folder| folder.ends_with("tables")));
    let tables: Vec<String> = tables.map(|path| path.to_str().unwrap().to_owned()).collect();
    assert!(tables.len() >= 4, "{tables:?}");
    for name in needed.into_iter().chain(current).chain(tables) {
        let mut damaged = files.clone();
        assert!(damaged.remove(Path::new(&name)).is_some(), "{name}");
        let folder = write_files(&damaged);
        let before = read_files(folder.path());
        match Store::open(options(&folder)) {
            Err(OpenFault::Missing { missing, .. }) => assert_eq!(missing, [PathBuf::from(&name)]),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(read_files(folder.path()), before, "{name}: nothing was changed");
    }
    // Whole folders.
    for name in ["engine", "engine/keyspaces", "engine/keyspaces/2"] {
        let damaged: Files = files
            .iter()
            .filter(|(path, _)| !path.starts_with(name))
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect();
        let folder = write_files(&damaged);
        assert!(matches!(Store::open(options(&folder)), Err(OpenFault::Missing { .. })), "{name}");
        assert!(matches!(StoreCopy::of(folder.path()), Err(OpenFault::Missing { .. })), "{name}");
    }
}

#[test]
fn every_flipped_bit_of_a_small_file_is_noticed_or_harmless() {
    let takes_all = std::env::var_os(ALL_FILES_VARIABLE).is_some();
    for is_closed in [true, false] {
        let Specimen { files, rows } = specimen(is_closed);
        let mut counts = BTreeMap::new();
        for (path, bytes) in &files {
            let is_small = bytes.len() <= SMALL_FILE_BYTES;
            if !is_small && !takes_all {
                continue;
            }
            let mut folder = write_files(&files);
            for (position, byte) in bytes.iter().enumerate() {
                // In a large file, one bit of every byte; another one in the next byte.
                let bits = if is_small { 0..8 } else { position % 8..position % 8 + 1 };
                for bit in bits {
                    let mut damaged = bytes.clone();
                    damaged[position] = byte ^ (1 << bit);
                    fs::write(folder.path().join(path), damaged).unwrap();
                    let what = format!("{}, byte {position}, bit {bit}, closed {is_closed}", path.display());
                    let outcome = check_in(&folder, &what, &rows);
                    let is_allowed = match outcome {
                        Outcome::Refused | Outcome::Right => true,
                        Outcome::RightWithoutLast => is_journal(path),
                        // Tables are read on demand.
                        Outcome::Unreadable => !is_small,
                    };
                    assert!(is_allowed, "{what}: {outcome:?}");
                    *counts.entry(outcome).or_insert(0) += 1;
                    // A refused store is not changed, except for a journal with a torn tail.
                    if outcome != Outcome::Refused || is_journal(path) {
                        folder = write_files(&files);
                    }
                }
            }
        }
        eprintln!("closed {is_closed}: {counts:?}");
        assert!(counts[&Outcome::Refused] > 1000);
    }
}

/// A folder among the files, at which the engine panics.
#[test]
fn a_folder_in_the_wrong_place_is_named() {
    let Specimen { files, .. } = specimen(true);
    for name in ["engine/keyspaces/1/tables/99", "engine/keyspaces/other"] {
        let folder = write_files(&files);
        fs::create_dir_all(folder.path().join(name)).unwrap();
        match Store::open(options(&folder)) {
            Err(OpenFault::DamagedFile { path, .. }) => assert!(path.ends_with(name)),
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Files removed under a running store: commits are refused, and the next start too.
#[test]
fn files_removed_under_a_running_store_are_missed() {
    for name in ["engine/keyspaces", "engine", "FORMAT"] {
        let (folder, gone) = (new_folder(), new_folder());
        run(async {
            let store = Store::open(options(&folder)).unwrap();
            for space in [RECORDS, INDEX, META] {
                commit(&store, put(space, "a", "1")).await.unwrap();
            }
            store.close().await.unwrap();
            let store = Store::open(options(&folder)).unwrap();
            commit(&store, put(RECORDS, "b", "1")).await.unwrap();
            // Immediately, while the engine may be writing there.
            fs::rename(folder.path().join(name), gone.path().join("gone")).unwrap();
            // A check of the files is reused for a short time, so the first commits may still be accepted.
            let mut refused = None;
            for _ in 0..10_000 {
                match store.submit(&store.lane(), Batch::default(), Durability::Sync).await {
                    Ok(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
                    Err(fault) => {
                        refused = Some(fault);
                        break;
                    }
                }
            }
            let fault = refused.expect("commits should be refused");
            assert!(matches!(fault, kv::CommitFault::Poisoned { .. }), "{name}: {fault}");
            assert!(matches!(store.health(), kv::Health::Poisoned { .. }), "{name}");
        });
        assert!(Store::open(options(&folder)).is_err(), "{name}");
    }
}

/// A copy of a store can be opened and changed; the store itself is unchanged, including its file times.
#[test]
fn a_copy_leaves_the_store_as_it_is() {
    for is_closed in [true, false] {
        let Specimen { files, rows } = specimen(is_closed);
        let folder = new_folder();
        let store_path = folder.path().join("store");
        fs::rename(write_files(&files).keep(), &store_path).unwrap();
        let before = stamps(&store_path);
        run(async {
            let copy = StoreCopy::of(&store_path).unwrap();
            assert!(matches!(StoreCopy::of(&store_path), Err(OpenFault::Locked { .. })));
            let mut options = options(&folder);
            options.path = copy.path().to_path_buf();
            let store = Store::open(options).unwrap();
            assert_eq!(self::rows(&store).await.unwrap(), rows);
            commit(&store, put(RECORDS, "more", "x")).await.unwrap();
            store.close().await.unwrap();
        });
        assert_eq!(stamps(&store_path), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the copy is removed");
    }
}

#[test]
fn a_copy_reads_every_table() {
    let Specimen { files, .. } = specimen(true);
    let is_table = |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("tables"));
    for path in files.keys().filter(is_table) {
        let mut damaged = files.clone();
        let bytes = damaged.get_mut(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let folder = write_files(&damaged);
        match StoreCopy::of(folder.path()) {
            Err(OpenFault::DamagedFile { path: found, .. }) => assert!(found.ends_with(path)),
            other => panic!("{}: {other:?}", path.display()),
        }
    }
}

/// A start reads a part of every table only. If it finds damage there, it says in which one.
#[test]
fn a_table_that_cannot_be_opened_is_named() {
    let Specimen { files, .. } = specimen(true);
    let is_table = |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("tables"));
    let mut refused = 0;
    for (path, bytes) in files.iter().filter(|(path, _)| is_table(path)) {
        let folder = write_files(&files);
        for position in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1;
            fs::write(folder.path().join(path), damaged).unwrap();
            match Store::open(options(&folder)) {
                Ok(_) => {
                    // Opening may have changed other files.
                    for (path, bytes) in &files {
                        fs::write(folder.path().join(path), bytes).unwrap();
                    }
                }
                Err(OpenFault::DamagedFile { path: found, .. }) => {
                    assert!(found.ends_with(path));
                    refused += 1;
                }
                Err(other) => panic!("{}, byte {position}: {other:?}", path.display()),
            }
        }
    }
    assert!(refused > 0);
}

/// More than a commit of [`Writer`] takes in the journal.
const COMMIT_BYTES_MAX: usize = 10_000;

/// A store that was killed after its spaces were flushed up to different commits, and its rows after each commit.
struct Flushed {
    files: Files,
    states: Vec<Rows>,
}

/// Commits of the store, of which each changes a few rows of several spaces.
struct Writer {
    store: Store,
    draws: Draws,
    states: Vec<Rows>,
}

impl Writer {
    async fn commit(&mut self, batch: Batch, mut rows: Rows) {
        let mut batch = batch;
        for space in (0..).take(SPACES.len()) {
            // Rarely into the last one, so that its tables stay behind.
            if space == META.0 && self.draws.below(20) > 0 {
                continue;
            }
            let key = format!("k{}", self.draws.below(30)).into_bytes();
            if self.draws.below(4) == 0 {
                batch.delete(Space(space), key.clone());
                rows.remove(&(space, key));
            } else {
                let value = format!("{}-{}", self.states.len(), "x".repeat(self.draws.below(3000)));
                batch.put(Space(space), key.clone(), value.clone());
                rows.insert((space, key), value.into_bytes());
            }
        }
        let durability = if self.draws.below(2) == 0 { Durability::Sync } else { Durability::Buffered };
        self.store.submit(&self.store.lane(), batch, durability).await.unwrap();
        self.states.push(rows);
    }

    async fn commits(&mut self, count: usize) {
        for _ in 0..count {
            self.commit(Batch::default(), self.states.last().unwrap().clone()).await;
        }
    }

    /// Flushes the memtable of one space only.
    async fn ingest(&mut self) {
        let ingested = vec![("run".into(), "ingested".into())];
        let mut batch = Batch::default();
        batch.name_ingest(self.store.ingest(INDEX, ingested).await.unwrap());
        let mut rows = self.states.last().unwrap().clone();
        rows.insert((INDEX.0, b"run".to_vec()), b"ingested".to_vec());
        self.commit(batch, rows).await;
    }
}

fn flushed(seed: u64) -> Flushed {
    let folder = new_folder();
    let mut options = options(&folder);
    options.memtable_bytes = 100_000;
    let states = run(async {
        let store = Store::open(options).unwrap();
        let mut writer = Writer { store, draws: Draws(seed), states: vec![Rows::new()] };
        for _ in 0..10_000 {
            writer.commits(1).await;
            if folder.path().join("FLUSHED").exists() {
                break;
            }
        }
        let more = writer.draws.below(20);
        writer.commits(more).await;
        if seed.is_multiple_of(2) {
            writer.ingest().await;
            writer.commits(10).await;
        }
        writer.states
    });
    Flushed { files: read_files(folder.path()), states }
}

/// Draws numbers from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// What a repair of a damaged journal has done.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Mended {
    Whole,
    Cut,
    Refused,
}

/// Repairs a store in which a byte of a journal is changed. It is as after one of its commits, or refused and unchanged.
#[track_caller]
fn check_mended(what: &str, damaged_at: usize, files: &Files, states: &[Rows]) -> Mended {
    let folder = new_folder();
    let store = folder.path().join("store");
    fs::rename(write_files(files).keep(), &store).unwrap();
    let mended = match kv::repair(&store) {
        Ok(repair) if repair.cuts.is_empty() => Mended::Whole,
        Ok(_) => Mended::Cut,
        Err(OpenFault::CutTears { position, .. }) => {
            assert!(position.abs_diff(damaged_at) < COMMIT_BYTES_MAX, "{what}: named byte {position}");
            assert_eq!(read_files(&store), *files, "{what}: refused, but changed");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{what}");
            return Mended::Refused;
        }
        Err(fault) => panic!("{what}: {fault}"),
    };
    let mut options = options(&folder);
    options.path = store;
    let found = run(async { rows(&Store::open(options).unwrap()).await.unwrap() });
    let found_at = states.iter().rposition(|rows| *rows == found);
    let expected =
        if mended == Mended::Whole { found_at == Some(states.len() - 1) } else { found_at.is_some() };
    assert!(expected, "{what}: {mended:?}, as after {found_at:?} of {} commits", states.len() - 1);
    mended
}

/// A cut must not leave rows of lost commits in the tables of some spaces.
#[test]
fn a_repair_after_flushes_leaves_whole_commits() {
    let (seeds, damages) = if std::env::var_os(ALL_FILES_VARIABLE).is_some() { (60, 40) } else { (4, 8) };
    let mut counts = BTreeMap::new();
    for seed in 0..seeds {
        let Flushed { files, states } = flushed(seed);
        let mut draws = Draws(seed);
        let (path, bytes) = files.iter().rfind(|(path, _)| is_journal(path)).unwrap();
        for damage in 0..damages {
            // Half of them are near the end, where not all is in tables.
            let from = if damage % 2 == 0 { 0 } else { bytes.len() * 3 / 4 };
            let position = from + draws.below(bytes.len() - from);
            let mut damaged = files.clone();
            damaged.get_mut(path).unwrap()[position] ^= 1 << draws.below(8);
            let what = format!("seed {seed}, {}, byte {position} of {}", path.display(), bytes.len());
            *counts.entry(check_mended(&what, position, &damaged, &states)).or_insert(0) += 1;
        }
    }
    eprintln!("{counts:?}");
    assert_eq!(counts.len(), 3, "{counts:?}");
}

/// Names, lengths, times and bytes of all files of a store.
fn stamps(store: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime, Vec<u8>)> {
    let mut paths: Vec<PathBuf> = read_files(store).into_keys().collect();
    paths.sort();
    let stamp = |path: PathBuf| {
        let metadata = fs::metadata(store.join(&path)).unwrap();
        let bytes = fs::read(store.join(&path)).unwrap();
        (path, metadata.len(), metadata.modified().unwrap(), bytes)
    };
    paths.into_iter().map(stamp).collect()
}
