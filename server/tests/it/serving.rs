//! The two modes: addresses, accepted keys, and how keys are changed while the server runs.

use crate::client::Client;
use crate::process::{EMULATOR_KEY, Server, run, text};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

fn keys(command: &[&str], data: &Path) -> Output {
    run(&[&["keys"], command, &["--data", text(data)]].concat())
}

fn key(name: &str, data: &Path) -> String {
    let output = keys(&["show", name], data);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn serve(data: &Path) -> Server {
    Server::start(&["serve", "--data", text(data), "--nosql", "127.0.0.1:0"])
}

#[test]
fn the_first_start_makes_four_keys_that_only_the_owner_reads() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = serve(&data);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("account-keys.toml")), 0o600);
    assert_eq!(mode(&data.join("tls/authority-key.pem")), 0o600);
    let names = ["primary", "secondary", "primary-readonly", "secondary-readonly"];
    let all = names.map(|name| key(name, &data));
    for (name, key) in names.iter().zip(&all) {
        let client = Client::new(server.address(), key);
        assert_eq!(client.send("GET", "/dbs", &[], b"").status, 200, "{name}");
        let create = client.send("POST", "/dbs", &[], format!(r#"{{"id":"{name}"}}"#).as_bytes());
        assert_eq!(create.status, if name.ends_with("readonly") { 403 } else { 201 }, "{name}: {create:?}");
    }
    assert_eq!(server.client().send("GET", "/dbs", &[], b"").status, 401, "the well-known key");
    let printed = server.stop();
    assert!(printed.contains("account-keys.toml, made now"), "{printed}");
    assert!(all.iter().all(|key| !printed.contains(key.as_str())), "{printed}");
    let listed = String::from_utf8(keys(&["list"], &data).stdout).unwrap();
    assert_eq!(listed.lines().filter(|line| line.ends_with("just now")).count(), 4, "{listed}");
    let again = serve(&data);
    assert_eq!(names.map(|name| key(name, &data)), all, "keys stay");
    assert!(!again.stop().contains("made now"));
    let dev = Server::start(&["dev", "--data", text(&data), "--nosql", "127.0.0.1:0"]);
    let printed = dev.stop();
    assert!(printed.contains("it opens data that have keys of their own"), "{printed}");
}

/// All files and folders below a folder.
fn tree(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { [tree(&path), vec![path]].concat() } else { vec![path] })
        .collect()
}

#[test]
fn documents_are_private_in_a_folder_that_anybody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    std::fs::create_dir(&store).unwrap();
    for path in [folder.path(), &store] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let server = serve(folder.path());
    let client = Client::new(server.address(), &key("primary", folder.path()));
    assert_eq!(client.send("POST", "/dbs", &[], br#"{"id":"d"}"#).status, 201);
    server.stop();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.path()), mode(&store)), (0o755, 0o700), "the folder of others stays as it was");
    let files = tree(folder.path());
    assert!(files.iter().any(|path| path.starts_with(&store) && path.is_file()));
    for path in files {
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn a_key_is_changed_while_the_server_runs_and_the_other_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let status = |key: &str| Client::new(server.address(), key).send("GET", "/dbs", &[], b"").status;
    let (old, other) = (key("primary", folder.path()), key("secondary", folder.path()));
    assert_eq!((status(&old), status(&other)), (200, 200));
    assert!(keys(&["rotate", "primary"], folder.path()).status.success());
    let new = key("primary", folder.path());
    assert_ne!(old, new);
    server.wait_until("the new key", |_| {
        assert_eq!(status(&other), 200);
        status(&new) == 200
    });
    assert_eq!(status(&old), 401);
    let metrics = server.client().unsigned("GET", "/metrics").text();
    assert!(
        metrics.contains("perihelion_account_key_last_used_seconds{key=\"secondary-readonly\""),
        "{metrics}"
    );
}

#[test]
fn commands_refuse_what_makes_no_sense() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(keys(&["list"], folder.path()).status.code(), Some(74));
    assert_eq!(keys(&["rotate", "primary"], folder.path()).status.code(), Some(74));
    assert_eq!(keys(&["rotate", "tertiary"], folder.path()).status.code(), Some(2));
    assert!(keys(&["create"], folder.path()).status.success());
    let first = key("primary", folder.path());
    assert!(keys(&["create"], folder.path()).status.success());
    assert_eq!(key("primary", folder.path()), first);
    let file = folder.path().join("account-keys.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(keys(&["list"], folder.path()).status.code(), Some(78));
}

#[test]
fn the_well_known_key_stays_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    assert!(keys(&["create"], folder.path()).status.success());
    let file = folder.path().join("account-keys.toml");
    let known = key("secondary", folder.path());
    let planted = std::fs::read_to_string(&file).unwrap().replace(&known, EMULATOR_KEY);
    std::fs::write(&file, planted).unwrap();
    let data = text(folder.path());
    let exposed = run(&["serve", "--data", data, "--nosql", "0.0.0.0:0"]);
    assert_eq!(exposed.status.code(), Some(78));
    let message = String::from_utf8(exposed.stderr).unwrap();
    assert!(message.contains("perihelion keys rotate secondary"), "{message}");
    assert!(!message.contains(EMULATOR_KEY));
    let dev = run(&["dev", "--memory", "--nosql", "0.0.0.0:0"]);
    assert_eq!(dev.status.code(), Some(78));
    let local = serve(folder.path());
    assert_eq!(local.client().send("GET", "/dbs", &[], b"").status, 200);
}

#[test]
fn a_server_for_others_listens_where_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["serve", "--data", text(folder.path()), "--nosql", "0.0.0.0:0"]);
    let port = server.address().port();
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    assert_eq!(Client::new(here, EMULATOR_KEY).unsigned("GET", "/ready").status, 200);
}

#[test]
fn a_certificate_needs_its_key_and_must_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = text(folder.path());
    let file = folder.path().join("no.pem");
    std::fs::write(&file, "nothing").unwrap();
    let start =
        |more: &[&str]| run(&[&["serve", "--data", data, "--nosql", "127.0.0.1:0"], more].concat()).status;
    assert_eq!(start(&["--tls-certificate", text(&file)]).code(), Some(78));
    assert_eq!(start(&["--tls-key", text(&file)]).code(), Some(78));
    assert_eq!(start(&["--tls-certificate", text(&file), "--tls-key", text(&file)]).code(), Some(78));
    assert_eq!(start(&["--memory"]).code(), Some(78));
    assert_eq!(start(&["--cors", "app.example"]).code(), Some(78));
}

#[test]
fn development_in_memory_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::dev(&["--data", text(&data)]);
    server.client().make_container();
    for path in ["/ready", "/health/ready", "/health/live", "/_explorer/emulator.pem"] {
        assert_eq!(server.client().unsigned("GET", path).status, 200, "{path}");
    }
    server.stop();
    assert!(!data.exists());
}

#[test]
fn the_server_leaves_merging_to_clients_unless_it_is_relaxed() {
    for (arguments, status) in [(&[][..], 400), (&["--compatibility", "relaxed"], 200)] {
        let server = Server::dev(arguments);
        let client = server.client();
        client.make_container();
        let headers = [
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-documentdb-query-enablecrosspartition", "True"),
            ("content-type", "application/query+json"),
        ];
        let count = br#"{"query":"SELECT VALUE COUNT(1) FROM c"}"#;
        let answer = client.send("POST", "/dbs/d/colls/c/docs", &headers, count);
        assert_eq!(answer.status, status, "{}", answer.text());
        server.stop();
    }
}

/// Every metric is documented, and every documented metric exists.
#[test]
fn metrics_are_those_of_their_document() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let client = Client::new(server.address(), &key("primary", folder.path()));
    assert_eq!(client.send("POST", "/dbs", &[], br#"{"id":"d"}"#).status, 201);
    let container = br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    assert_eq!(client.send("POST", "/dbs/d/colls", &[], container).status, 201);
    let key = [("x-ms-documentdb-partitionkey", r#"["a"]"#)];
    let document = br#"{"id":"1","pk":"a"}"#;
    assert_eq!(client.send("POST", "/dbs/d/colls/c/docs", &key, document).status, 201);
    assert_eq!(client.send("POST", "/dbs/d/colls/c/docs", &key, document).status, 409);
    assert_eq!(client.send("GET", "/dbs/d/colls/c/docs/1", &key, b"").status, 200);
    let query = [("x-ms-documentdb-isquery", "True"), ("x-ms-documentdb-query-enablecrosspartition", "True")];
    let query = [&query[..], &[("content-type", "application/query+json")]].concat();
    let text = br#"{"query":"SELECT * FROM c WHERE c.pk = 'a'"}"#;
    assert_eq!(client.send("POST", "/dbs/d/colls/c/docs", &query, text).status, 200);
    let resumed = [&query[..], &[("x-ms-continuation", "broken")]].concat();
    assert_eq!(client.send("POST", "/dbs/d/colls/c/docs", &resumed, text).status, 400);

    let metrics = client.unsigned("GET", "/metrics").text();
    let shown: BTreeSet<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
    let document = std::fs::read_to_string("../docs/metrics.md").unwrap();
    let documented: BTreeSet<&str> =
        document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(shown, documented);

    let partition = r#"{database="d",container="c",partition="0"}"#;
    let value = |name: &str| {
        let name = format!("{name}{partition} ");
        metrics
            .lines()
            .find_map(|line| line.strip_prefix(&name))
            .unwrap_or_else(|| panic!("{name} in {metrics}"))
    };
    assert_eq!(value("perihelion_partition_requests_total"), "5");
    assert_eq!(value("perihelion_partition_requests_refused_total"), "2");
    assert_eq!(value("perihelion_partition_documents"), "1");
    // A create, a read, a query that reads one document, and two refusals.
    assert_eq!(value("perihelion_request_units_total"), "10.47");
}
