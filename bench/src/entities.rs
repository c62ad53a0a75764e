//! The Table API compared with the reference, with the NoSQL API of the same server, and with Azurite.

use crate::cases::{READERS, WRITERS, fill, measure_alternately, measure_once, rate, start_reference};
use crate::client::Client;
use crate::documents;
use crate::load::{self, Figures, Target, Work, scattered};
use crate::npm;
use crate::process::{Process, Server};
use crate::report::{self, Goal, Row};
use crate::signature::{STORAGE_ACCOUNT, Signer};
use crate::{Options, Result};
use std::net::SocketAddr;
use std::time::Instant;

/// Entities of the table that is read, as many as the reference has documents.
const MEDIUM: usize = 100_000;
/// Entities of the small table, and of Azurite's.
const SMALL: usize = 10_000;
/// Operations of a group transaction.
const GROUP: usize = 100;
/// First number of inserted entities, and the distance between those of two measurements.
const INSERTED_FIRST: usize = 10_000_000;
/// Connections that ask for pages.
const PAGERS: usize = 4;
/// Entities of a page.
const PAGE: usize = 1000;
const BOUNDARY: &str = "batch_0";
const CHANGESET: &str = "changeset_0";

/// A request of the Table API, in path style.
#[derive(Clone, Debug)]
pub(crate) enum EntityWork {
    /// Read entities of a table that holds `count`.
    Read { table: String, count: usize },
    /// Insert entities from number `first` on.
    Insert { table: String, first: usize },
    /// Insert entities in transactions of `size` from number `first` on.
    Group { table: String, first: usize, size: usize },
    /// Read pages of entities in the order of their keys, from scattered partition keys on.
    Page { table: String },
    /// Insert the entities of one chunk of a logical partition: for filling a table.
    Chunk { table: String, count: usize },
}

impl EntityWork {
    /// Whether it changes the table.
    pub(crate) fn is_write(&self) -> bool {
        match self {
            EntityWork::Insert { .. } | EntityWork::Group { .. } | EntityWork::Chunk { .. } => true,
            EntityWork::Read { .. } | EntityWork::Page { .. } => false,
        }
    }

    /// Writes the request with this number.
    pub(crate) fn write(&self, out: &mut Vec<u8>, signer: &Signer, number: usize) {
        match self {
            EntityWork::Read { table, count } => {
                let number = scattered(number, *count);
                let (partition, row) = (documents::partition_key(number), documents::id(number));
                let path = format!("/{STORAGE_ACCOUNT}/{table}(PartitionKey='{partition}',RowKey='{row}')");
                head(out, signer, "GET", &path, "");
                out.extend_from_slice(b"\r\n");
            }
            EntityWork::Insert { table, first } => {
                let path = format!("/{STORAGE_ACCOUNT}/{table}");
                head(out, signer, "POST", &path, "");
                body(out, "application/json", &json(first + number));
            }
            EntityWork::Group { table, first, size } => {
                let base = first + number * size;
                // All entities of a group share a key, so their numbers must be equal modulo the partitions.
                group(
                    out,
                    signer,
                    table,
                    (0..*size).map(|step| base + step * documents::PARTITIONS * 1_000_003),
                );
            }
            EntityWork::Page { table } => {
                // At least a fifth of the table follows the largest of these keys.
                let query =
                    format!("?$filter=PartitionKey%20ge%20'p{}'&$top={PAGE}", 100 + scattered(number, 700));
                head(out, signer, "GET", &format!("/{STORAGE_ACCOUNT}/{table}()"), &query);
                out.extend_from_slice(b"\r\n");
            }
            EntityWork::Chunk { table, count } => {
                let first = number % documents::PARTITIONS
                    + number / documents::PARTITIONS * GROUP * documents::PARTITIONS;
                let numbers = (first..*count).step_by(documents::PARTITIONS).take(GROUP);
                group(out, signer, table, numbers);
            }
        }
    }
}

/// Chunks of a table with `count` entities: every partition has as many.
fn chunks(count: usize) -> usize {
    count.div_ceil(documents::PARTITIONS * GROUP) * documents::PARTITIONS
}

fn head(out: &mut Vec<u8>, signer: &Signer, verb: &str, path: &str, query: &str) {
    let authorization = signer.shared_key_lite(path);
    for part in [
        verb,
        " ",
        path,
        query,
        " HTTP/1.1\r\nhost: 127.0.0.1\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\nx-ms-date: ",
        &signer.date,
        "\r\nauthorization: ",
        &authorization,
        "\r\naccept: application/json;odata=minimalmetadata\r\nprefer: return-no-content\r\n",
    ] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn body(out: &mut Vec<u8>, kind: &str, text: &str) {
    out.extend_from_slice(
        format!("content-type: {kind}\r\ncontent-length: {}\r\n\r\n", text.len()).as_bytes(),
    );
    out.extend_from_slice(text.as_bytes());
}

/// A group transaction that inserts entities.
fn group(out: &mut Vec<u8>, signer: &Signer, table: &str, numbers: impl Iterator<Item = usize>) {
    let mut text = format!("--{BOUNDARY}\r\nContent-Type: multipart/mixed; boundary={CHANGESET}\r\n\r\n");
    for number in numbers {
        let entity = json(number);
        text.push_str(&format!(
            "--{CHANGESET}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST http://127.0.0.1/{STORAGE_ACCOUNT}/{table} HTTP/1.1\r\nContent-Type: application/json\r\n\
             Accept: application/json;odata=minimalmetadata\r\nPrefer: return-no-content\r\n\
             DataServiceVersion: 3.0\r\nContent-Length: {}\r\n\r\n{entity}\r\n",
            entity.len()
        ));
    }
    text.push_str(&format!("--{CHANGESET}--\r\n--{BOUNDARY}--\r\n"));
    head(out, signer, "POST", &format!("/{STORAGE_ACCOUNT}/$batch"), "");
    body(out, &format!("multipart/mixed; boundary={BOUNDARY}"), &text);
}

/// The document of the same number as a flat entity, of about the same size.
fn json(number: usize) -> String {
    let document = documents::json(number);
    let (_, text) = document.rsplit_once("\"text\":").unwrap_or_default();
    format!(
        r#"{{"PartitionKey":"{}","RowKey":"{}","category":"c{}","price":{}.5,"lot":{},"active":{},"name":"user {}","age":{},"mail":"u{number}@example.org","tag0":"t{}","tag1":"t{}","tag2":"t{}","created@odata.type":"Edm.DateTime","created":"2024-01-{:02}T10:00:00Z","score":{:?},"city":"city {}","text":{text}"#,
        documents::partition_key(number),
        documents::id(number),
        number % 20,
        number % 1000,
        number / documents::LOT,
        number.is_multiple_of(2),
        number % 5000,
        number % 90,
        number % 7,
        number % 11,
        number % 13,
        number % 28 + 1,
        number as f64 / 7.0,
        number % 300,
    )
}

/// Runs all cases and prints each row as it is measured.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&options.server, &folder.path().join("data"), &["--table", "127.0.0.1:0"])?;
    let table = server.table.ok_or("the server has no Table API")?;
    report::show_heading();
    for (name, count) in [("medium", MEDIUM), ("small", SMALL), ("large", options.large)] {
        let begun = Instant::now();
        fill_table(table, name, count).await?;
        let filled = count as f64 / begun.elapsed().as_secs_f64();
        show(
            &format!("entities inserted into the table {name} of {count}"),
            format!("{filled:.0}/s"),
            1.0,
            None,
        );
    }
    create_table(table, "written").await?;
    fill(server.address, "medium", MEDIUM).await?;
    load::create_container(server.address, "written", 400, "").await?;
    server.process.at_rest().await?;
    read(options, &server, table).await?;
    write(options, &server, table).await?;
    pages(options, &server.process, table).await?;
    drop(server);
    match npm::AZURITE.install() {
        Ok(installed) => azurite(options, &installed.start()?).await?,
        Err(reason) => show("Azurite is left out", reason, 0.0, None),
    }
    Ok(())
}

async fn read(options: &Options, server: &Server, table: SocketAddr) -> Result<()> {
    let reference = start_reference()?;
    let entity = Work::Entity(EntityWork::Read { table: "medium".to_owned(), count: MEDIUM });
    let item = Work::Read { container: "medium".to_owned(), count: MEDIUM };
    let (ours, limit) = measure_alternately(
        options,
        (&server.process, at(table, READERS), &entity),
        (&reference.process, at(reference.plain, READERS), &item),
    )
    .await?;
    show_compared("point read of an entity, over the reference", &ours, &limit, Some(Goal::AtLeast(0.5)));
    let (again, nosql) = measure_alternately(
        options,
        (&server.process, at(table, READERS), &entity),
        (&server.process, at(server.address, READERS), &item),
    )
    .await?;
    show_compared("the same over a point read of the NoSQL API", &again, &nosql, None);
    Ok(())
}

async fn write(options: &Options, server: &Server, table: SocketAddr) -> Result<()> {
    let (mut inserts, mut groups) = (Vec::new(), Vec::new());
    for turn in 1..=options.repeats {
        let first = INSERTED_FIRST * turn;
        let insert = Work::Entity(EntityWork::Insert { table: "written".to_owned(), first });
        let create = Work::Create { container: "written".to_owned(), first };
        let one = measure_once(options, &server.process, at(table, WRITERS), &insert).await?;
        inserts
            .push((one, measure_once(options, &server.process, at(server.address, WRITERS), &create).await?));
        let first = INSERTED_FIRST * (100 + turn);
        let group = Work::Entity(EntityWork::Group { table: "written".to_owned(), first, size: GROUP });
        let batch = Work::Batch { container: "written".to_owned(), first, size: GROUP };
        let one = measure_once(options, &server.process, at(table, PAGERS), &group).await?;
        groups.push((one, measure_once(options, &server.process, at(server.address, PAGERS), &batch).await?));
    }
    let (insert, create) = median(inserts);
    let (group, batch) = median(groups);
    let goal = Some(Goal::AtLeast(0.8));
    show_compared("durable insert of an entity, over a create of the NoSQL API", &insert, &create, goal);
    show_compared("group transaction of 100 entities, over a batch of the NoSQL API", &group, &batch, goal);
    Ok(())
}

/// The time of a page must not grow with the table.
async fn pages(options: &Options, process: &Process, table: SocketAddr) -> Result<()> {
    let page = |table: &str| Work::Entity(EntityWork::Page { table: table.to_owned() });
    let (large, small) = (page("large"), page("small"));
    let target = at(table, PAGERS);
    let (large, small) =
        measure_alternately(options, (process, target, &large), (process, target, &small)).await?;
    let figures = format!("{} of {}", rate(&large), rate(&small));
    let what = format!("time of a page of 1,000 entities in key order, {} over 10 k entities", options.large);
    show(&what, figures, small.rate / large.rate, Some(Goal::AtMost(1.3)));
    Ok(())
}

/// The same requests to Azurite, with fewer entities.
async fn azurite(options: &Options, server: &Server) -> Result<()> {
    let Server { process, address, .. } = server;
    fill_table(*address, "small", SMALL).await?;
    create_table(*address, "written").await?;
    let works = [
        ("point read", READERS, EntityWork::Read { table: "small".to_owned(), count: SMALL }),
        ("insert", WRITERS, EntityWork::Insert { table: "written".to_owned(), first: INSERTED_FIRST }),
        ("page of 1,000 entities", PAGERS, EntityWork::Page { table: "small".to_owned() }),
    ];
    for (what, connections, work) in works {
        let found = measure_once(options, process, at(*address, connections), &Work::Entity(work)).await?;
        show(&format!("Azurite: {what}, 10 k entities"), rate(&found), 1.0, None);
    }
    Ok(())
}

fn at(address: SocketAddr, connections: usize) -> Target {
    Target { address, secure: false, connections }
}

fn median(mut pairs: Vec<(Figures, Figures)>) -> (Figures, Figures) {
    pairs.sort_by(|a, b| (a.0.rate / a.1.rate).total_cmp(&(b.0.rate / b.1.rate)));
    let middle = pairs.len() / 2;
    pairs.swap_remove(middle)
}

fn show_compared(what: &str, one: &Figures, other: &Figures, goal: Option<Goal>) {
    show(what, format!("{} of {}", rate(one), rate(other)), one.rate / other.rate, goal);
}

fn show(what: &str, figures: String, ratio: f64, goal: Option<Goal>) {
    report::show_row(&Row { case: "table", what: what.to_owned(), figures, ratio, goal });
}

async fn create_table(address: SocketAddr, name: &str) -> Result<()> {
    let mut client = Client::connect(address, false).await?;
    let mut request = Vec::new();
    head(&mut request, &Signer::new()?, "POST", &format!("/{STORAGE_ACCOUNT}/Tables"), "");
    body(&mut request, "application/json", &format!(r#"{{"TableName":"{name}"}}"#));
    let answer = client.send(&request).await?;
    if answer.status < 300 {
        return Ok(());
    }
    Err(format!("table {name}: {} {}", answer.status, client.body(&answer)).into())
}

/// Creates a table with `count` entities, by group transactions.
async fn fill_table(address: SocketAddr, name: &str, count: usize) -> Result<()> {
    create_table(address, name).await?;
    let work = Work::Entity(EntityWork::Chunk { table: name.to_owned(), count });
    load::run_exactly(address, &work, PAGERS, 0..chunks(count)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_contain_every_entity_once() {
        let signer = Signer::new().unwrap();
        let count = 250_000;
        let work = EntityWork::Chunk { table: "t".to_owned(), count };
        let mut out = Vec::new();
        let mut rows = 0;
        for number in 0..chunks(count) {
            out.clear();
            work.write(&mut out, &signer, number);
            rows += String::from_utf8_lossy(&out).matches("\"RowKey\"").count();
        }
        assert_eq!(rows, count);
    }

    #[test]
    fn entities_are_about_as_large_as_documents() {
        for number in [0, 7, 999_999] {
            let length = json(number).len();
            assert!(length.abs_diff(documents::DOCUMENT_BYTES) < 100, "{length}");
        }
    }
}
