//! The store of a data folder through the program: missing or damaged files are refused by name, checks change nothing,
//! and a damaged journal is truncated on request.

use crate::process::{Server, run, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::SystemTime;
use tempfile::TempDir;

/// Exit code when the data folder cannot be used.
const CANNOT_USE_DATA: Option<i32> = Some(74);

const PARTITION_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"a\"]");

/// How the server that created a data folder ended.
#[derive(Clone, Copy)]
enum End {
    Stopped,
    Killed,
}

/// A data folder with a container of documents.
fn data_folder(end: End) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let client = server.client();
    let create = |link: &str, body: &str| {
        let headers: &[(&str, &str)] = if link.ends_with("/docs") { &[PARTITION_KEY] } else { &[] };
        let answer = client.send("POST", link, headers, body.as_bytes());
        assert_eq!(answer.status, 201, "{}", answer.text());
    };
    create("/dbs", r#"{"id":"d"}"#);
    create("/dbs/d/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#);
    for number in 0..20 {
        create("/dbs/d/colls/c/docs", &format!(r#"{{"id":"{number}","pk":"a","t":"text {number}."}}"#));
    }
    match end {
        End::Stopped => drop(server.stop()),
        End::Killed => drop(server),
    }
    folder
}

fn start(data: &Path) -> Server {
    Server::start(&["dev", "--nosql", "127.0.0.1:0", "--data", text(data)])
}

/// Number of documents in the container.
fn documents(server: &Server) -> usize {
    let read = |number: &usize| {
        let link = format!("/dbs/d/colls/c/docs/{number}");
        let answer = server.client().send("GET", &link, &[PARTITION_KEY], b"");
        assert!([200, 404].contains(&answer.status), "{}", answer.text());
        answer.status == 200
    };
    (0..20).filter(read).count()
}

fn dev(data: &Path) -> Output {
    run(&["dev", "--nosql", "127.0.0.1:0", "--data", text(data)])
}

fn verify(data: &Path) -> Output {
    run(&["verify", "--data", text(data)])
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_store_that_lacks_a_file_is_refused_by_start_and_verify() {
    let folder = data_folder(End::Stopped);
    let engine = folder.path().join("store/engine");
    let journals = fs::read_dir(&engine).unwrap().map(|entry| entry.unwrap().path());
    let journal = journals.into_iter().find(|path| path.extension().is_some_and(|end| end == "jnl")).unwrap();
    let currents = (0..=9).map(|number| engine.join(format!("keyspaces/{number}/current")));
    let needed = [engine.join("version"), journal];
    let kept = folder.path().join("kept");
    for path in needed.into_iter().chain(currents) {
        fs::rename(&path, &kept).unwrap();
        let before = stamps(&folder.path().join("store"));
        let name = path.strip_prefix(folder.path().join("store")).unwrap().to_str().unwrap();
        for output in [dev(folder.path()), verify(folder.path())] {
            assert_eq!(output.status.code(), CANNOT_USE_DATA, "{name}: {}", printed(&output));
            assert!(printed(&output).contains(name), "{name}: {}", printed(&output));
        }
        assert_eq!(stamps(&folder.path().join("store")), before, "{name}");
        fs::rename(&kept, &path).unwrap();
    }
    let server = start(folder.path());
    assert_eq!(documents(&server), 20);
}

#[test]
fn the_message_for_a_lost_synced_file_names_its_repair() {
    let folder = data_folder(End::Stopped);
    let synced = folder.path().join("store/SYNCED");
    let lost: [fn(&Path); 2] =
        [|file| fs::remove_file(file).unwrap(), |file| fs::write(file, "junk").unwrap()];
    for lose in lost {
        lose(&synced);
        for output in [dev(folder.path()), verify(folder.path())] {
            assert_eq!(output.status.code(), CANNOT_USE_DATA);
            assert!(printed(&output).contains("perihelion repair --data"), "{}", printed(&output));
        }
        let repaired = run(&["repair", "--data", text(folder.path())]);
        assert!(repaired.status.success(), "{}", printed(&repaired));
    }
    assert_eq!(documents(&start(folder.path())), 20);
}

#[test]
fn a_damaged_format_file_is_named() {
    let folder = data_folder(End::Stopped);
    fs::write(folder.path().join("store/FORMAT"), "junk\n").unwrap();
    for output in [dev(folder.path()), verify(folder.path())] {
        assert_eq!(output.status.code(), CANNOT_USE_DATA);
        assert!(printed(&output).contains("store/FORMAT\" is damaged"), "{}", printed(&output));
    }
}

#[test]
fn a_store_that_is_gone_is_no_empty_store() {
    let folder = data_folder(End::Stopped);
    let store = folder.path().join("store");
    fs::rename(&store, folder.path().join("elsewhere")).unwrap();
    for output in [dev(folder.path()), verify(folder.path())] {
        assert_eq!(output.status.code(), CANNOT_USE_DATA);
        assert!(printed(&output).contains("it had a store"), "{}", printed(&output));
    }
    assert!(!store.exists());
    fs::rename(folder.path().join("elsewhere"), &store).unwrap();
    assert_eq!(documents(&start(folder.path())), 20);
}

/// A damaged manifest, at which the engine panics.
#[test]
fn a_flipped_bit_is_a_message_and_no_panic() {
    let folder = data_folder(End::Stopped);
    let keyspace = folder.path().join("store/engine/keyspaces/0");
    let current = fs::read(keyspace.join("current")).unwrap();
    let manifest = keyspace.join(format!("v{}", current[0]));
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[8] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    for output in [dev(folder.path()), verify(folder.path())] {
        assert_eq!(output.status.code(), CANNOT_USE_DATA);
        let text = printed(&output);
        assert!(text.contains("is damaged") && !text.contains("panicked"), "{text}");
    }
}

#[test]
fn verify_changes_nothing() {
    for end in [End::Stopped, End::Killed] {
        let folder = data_folder(end);
        let before = stamps(folder.path());
        let output = verify(folder.path());
        assert!(output.status.success(), "{}", printed(&output));
        assert!(printed(&output).contains("d/c: 20 documents, sound"), "{}", printed(&output));
        assert_eq!(stamps(folder.path()), before);
    }
}

#[test]
fn verify_finds_a_flipped_bit_in_a_table() {
    let folder = data_folder(End::Stopped);
    let tables = stamps(folder.path()).into_iter().map(|stamp| stamp.0);
    let table = tables.into_iter().find(|path| path.parent().unwrap().ends_with("tables")).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[3] ^= 1;
    fs::write(&table, bytes).unwrap();
    let output = verify(folder.path());
    assert_eq!(output.status.code(), CANNOT_USE_DATA);
    assert!(printed(&output).contains("does not match"), "{}", printed(&output));
}

#[test]
fn repair_cuts_a_damaged_journal_and_says_what() {
    let folder = data_folder(End::Killed);
    let repair = || run(&["repair", "--data", text(folder.path())]);
    let sound = repair();
    assert!(sound.status.success() && printed(&sound).contains("nothing was changed"), "{}", printed(&sound));
    let journals = stamps(folder.path()).into_iter().map(|stamp| stamp.0);
    let journal = journals.into_iter().find(|path| path.extension().is_some_and(|end| end == "jnl")).unwrap();
    let mut bytes = fs::read(&journal).unwrap();
    // In the middle of the documents, so before acknowledged commits.
    let position = (0..bytes.len()).find(|start| bytes[*start..].starts_with(b"text 10.")).unwrap();
    bytes[position] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let refused = dev(folder.path());
    assert_eq!(refused.status.code(), CANNOT_USE_DATA);
    assert!(printed(&refused).contains("perihelion repair --data"), "{}", printed(&refused));

    let repaired = repair();
    let words = printed(&repaired);
    assert!(repaired.status.success(), "{words}");
    assert!(words.contains("cut at byte") && words.contains("store.cut-1"), "{words}");
    assert!(words.contains("continue far after the last ones"), "{words}");
    let saved = fs::read_dir(folder.path().join("store.cut-1")).unwrap().next().unwrap().unwrap().path();
    let (_, cut_at) = saved.to_str().unwrap().rsplit_once("from-").unwrap();
    let saved = fs::read(&saved).unwrap();
    assert!(bytes[cut_at.parse().unwrap()..].starts_with(&saved) && !saved.is_empty());
    let verified = verify(folder.path());
    assert!(verified.status.success(), "{}", printed(&verified));
    let server = start(folder.path());
    assert_eq!(documents(&server), 10);
    let locked = repair();
    assert_eq!(locked.status.code(), CANNOT_USE_DATA);
    assert!(printed(&locked).contains("another server is using it"), "{}", printed(&locked));
}

/// Names, lengths, times and bytes of all files below a folder.
fn stamps(folder: &Path) -> Vec<(PathBuf, u64, SystemTime, Vec<u8>)> {
    let mut stamps = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let (path, metadata) = {
                let entry = entry.unwrap();
                (entry.path(), entry.metadata().unwrap())
            };
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                stamps.push((path, metadata.len(), metadata.modified().unwrap(), bytes));
            }
        }
    }
    stamps.sort();
    stamps
}
