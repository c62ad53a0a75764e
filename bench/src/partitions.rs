//! Partitions at work: what a split, the change feed and a container of many partitions cost.

use crate::cases::{READERS, WRITERS, fill, measure_alternately, measure_once, rate};
use crate::client::{Answer, Client};
use crate::load::{self, Figures, Target, Work};
use crate::process::Server;
use crate::questions::Question;
use crate::report::{Goal, Row};
use crate::signature::{EMULATOR_KEY, Signer};
use crate::{Options, Result};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Throughput that gives a container 64 partitions.
pub(crate) const SIXTY_FOUR_PARTITIONS: u64 = 64 * 6_000;
/// Documents of the containers with one and with 64 partitions.
const DOCUMENTS: usize = 100_000;
/// First number of created documents, and the distance between those of two measurements.
const CREATED_FIRST: usize = 10_000_000;
/// Documents per page of a query or of the change feed.
const PAGE: usize = 1000;
/// How long a partition may take to be separated from its sibling.
const SEPARATION_MAX: Duration = Duration::from_secs(600);
/// Time between two looks at the partitions.
const LOOK: Duration = Duration::from_millis(200);
/// Turns of creates before the split, and after it: the store grows, and creates become slower by that alone.
const NORMAL_TURNS: usize = 10;
/// Normal load before the split, so that the figures of a turn with a split contain both.
const BEFORE_SPLIT: Duration = Duration::from_secs(1);

/// Runs the requested parts.
pub(crate) async fn run(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if options.wants(&["split"]) {
        rows.extend(split(options).await?);
    }
    if options.wants(&["feed"]) {
        rows.extend(feed(options).await?);
    }
    if options.wants(&["many"]) {
        rows.extend(many(options).await?);
    }
    Ok(rows)
}

/// Splits a container of `options.large` documents: one without other load, and one while documents are created.
#[allow(clippy::print_stdout)] // what the command is for
async fn split(options: &Options) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&options.server, &folder.path().join("data"), &[])?;
    let process = &server.process;
    let before = process.cpu()?;
    fill(server.address, "quiet", options.large).await?;
    process.at_rest().await?;
    let written = process.cpu()? - before;

    let before = process.cpu()?;
    let control = Control { address: server.address, container: "quiet" };
    let pause = control.split_and_measure_pause().await?;
    control.wait_for_separation().await?;
    process.at_rest().await?;
    let separated = process.cpu()? - before;
    let share = separated.as_secs_f64() / written.as_secs_f64();
    let figures = format!("{:.1} s of {:.1} s", separated.as_secs_f64(), written.as_secs_f64());
    let mut rows = vec![
        pause_row("pause of writes, without load, over 50 ms", pause),
        row("split", "processor time of a split over that of writing", figures, share, Goal::AtMost(0.3)),
    ];

    fill(server.address, "busy", options.large).await?;
    process.at_rest().await?;
    let target = Target { address: server.address, secure: false, connections: WRITERS };
    let create = |turn: usize| Work::Create { container: "busy".to_owned(), first: CREATED_FIRST * turn };
    let mut normal = Vec::new();
    for turn in 0..NORMAL_TURNS {
        normal.push(measure_once(options, process, target, &create(1 + turn)).await?);
    }
    let control = Control { address: server.address, container: "busy" };
    let first_turn = create(1 + NORMAL_TURNS);
    let (during, pause) =
        tokio::join!(measure_once(options, process, target, &first_turn), control.split_later());
    let (mut turns, pause) = (vec![during?], pause?);
    while control.is_separating().await? {
        let work = create(1 + NORMAL_TURNS + turns.len());
        turns.push(measure_once(options, process, target, &work).await?);
    }
    for turn in 0..NORMAL_TURNS {
        let work = create(1 + NORMAL_TURNS + turns.len() + turn);
        normal.push(measure_once(options, process, target, &work).await?);
    }
    rows.push(pause_row("pause of writes, under load, over 50 ms", pause));
    for (when, turns) in [("before and after a split", &normal), ("during a split", &turns)] {
        for turn in turns {
            println!("creates {when}: {:.0}/s, p99 {:.0} µs", turn.rate, turn.p99_us);
        }
    }
    let (normal, during) = (Turns::of(&normal), Turns::of(&turns));
    let figures = format!("{} of {}", during.rates(), normal.rates());
    let mut compared = |what, figures, ratio, goal| rows.push(row("split", what, figures, ratio, goal));
    let ratio = during.median / normal.median;
    compared("creates during a split, median of the turns", figures.clone(), ratio, Goal::AtLeast(0.8));
    let ratio = during.slowest / normal.slowest;
    compared("creates during a split, slowest turn", figures, ratio, Goal::AtLeast(0.8));
    let figures = format!("{:.0} of {:.0} µs", during.p99_us, normal.p99_us);
    compared("their p99, median of the turns", figures, during.p99_us / normal.p99_us, Goal::AtMost(3.0));
    let figures = format!("{:.0} of {:.0} µs", during.p99_longest_us, normal.p99_longest_us);
    let ratio = during.p99_longest_us / normal.p99_longest_us;
    compared("their p99, longest of the turns", figures, ratio, Goal::AtMost(3.0));
    Ok(rows)
}

/// Turns of the same load, summed up.
struct Turns {
    count: usize,
    slowest: f64,
    median: f64,
    p99_us: f64,
    p99_longest_us: f64,
}

impl Turns {
    fn of(turns: &[Figures]) -> Turns {
        let sorted = |figure: fn(&Figures) -> f64| {
            let mut figures: Vec<f64> = turns.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let (rates, p99s) = (sorted(|turn| turn.rate), sorted(|turn| turn.p99_us));
        let middle = turns.len() / 2;
        Turns {
            count: turns.len(),
            slowest: rates[0],
            median: rates[middle],
            p99_us: p99s[middle],
            p99_longest_us: p99s[p99s.len() - 1],
        }
    }

    fn rates(&self) -> String {
        format!("median {:.0}/s, slowest {:.0}/s of {} turns", self.median, self.slowest, self.count)
    }
}

fn pause_row(what: &str, pause: Duration) -> Row {
    let milliseconds = pause.as_secs_f64() * 1e3;
    row("split", what, format!("{milliseconds:.1} ms"), milliseconds / 50.0, Goal::AtMost(1.0))
}

fn row(case: &'static str, what: &str, figures: String, ratio: f64, goal: Goal) -> Row {
    Row { case, what: what.to_owned(), figures, ratio, goal: Some(goal) }
}

/// Reads a container of `options.large` documents by the change feed and by a query, and follows creates with one
/// reader.
async fn feed(options: &Options) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&options.server, &folder.path().join("data"), &[])?;
    fill(server.address, "read", options.large).await?;
    server.process.at_rest().await?;
    let mut pairs = Vec::new();
    for _ in 0..=options.repeats {
        let mut rates = Vec::new();
        for pages in [Pages::Feed, Pages::Query] {
            let mut reader = Reader::connect(server.address, "read", pages).await?;
            let begun = Instant::now();
            while reader.next_page().await? > 0 {}
            if reader.documents < options.large {
                return Err(format!("{} of {} documents were read", reader.documents, options.large).into());
            }
            rates.push(reader.documents as f64 / begun.elapsed().as_secs_f64());
        }
        pairs.push((rates[0], rates[1]));
    }
    pairs.remove(0);
    pairs.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let (by_feed, by_query) = pairs[pairs.len() / 2];
    let figures = format!("{by_feed:.0}/s of {by_query:.0}/s");
    let what = "documents by the feed from its beginning over SELECT *";
    let mut rows = vec![row("feed", what, figures, by_feed / by_query, Goal::AtLeast(0.9))];

    load::create_container(server.address, "followed", 400, "").await?;
    let target = Target { address: server.address, secure: false, connections: WRITERS };
    let work = Work::Create { container: "followed".to_owned(), first: CREATED_FIRST };
    let mut reader = Reader::connect(server.address, "followed", Pages::Feed).await?;
    let duration = Duration::from_secs(options.seconds);
    let (created, followed) =
        tokio::join!(load::run(target, &work, duration), reader.follow(Instant::now() + duration));
    let (created, followed) = (created?, followed?);
    let figures = format!("{followed} of {} documents, {}", created.requests, rate(&created));
    let share = followed as f64 / created.requests as f64;
    rows.push(row("feed", "documents followed while they are created", figures, share, Goal::AtLeast(0.8)));
    Ok(rows)
}

/// Compares a container of 64 partitions with one of one partition.
async fn many(options: &Options) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&options.server, &folder.path().join("data"), &[])?;
    for (container, throughput) in [("one", 400), ("many", SIXTY_FOUR_PARTITIONS)] {
        load::create_container(server.address, container, throughput, "").await?;
        load::fill(server.address, container, DOCUMENTS).await?;
    }
    server.process.at_rest().await?;
    let compare = async |connections: usize, work: &dyn Fn(&str) -> Work| -> Result<(Figures, Figures)> {
        let target = Target { address: server.address, secure: false, connections };
        let (many, one) = (work("many"), work("one"));
        measure_alternately(options, (&server.process, target, &many), (&server.process, target, &one)).await
    };
    let read = |container: &str| Work::Read { container: container.to_owned(), count: DOCUMENTS };
    let top = |container: &str| Work::Query {
        container: container.to_owned(),
        question: Question::Top,
        count: DOCUMENTS,
    };
    let (reads, reads_one) = compare(READERS, &read).await?;
    let (tops, tops_one) = compare(READERS, &top).await?;
    // Creates last: they change the containers.
    let target = Target { address: server.address, secure: false, connections: WRITERS };
    let mut pairs = Vec::new();
    for turn in 0..options.repeats {
        let create = |container: &str| Work::Create {
            container: container.to_owned(),
            first: CREATED_FIRST * (1 + turn),
        };
        let many = measure_once(options, &server.process, target, &create("many")).await?;
        pairs.push((many, measure_once(options, &server.process, target, &create("one")).await?));
    }
    pairs.sort_by(|a, b| (a.0.rate / a.1.rate).total_cmp(&(b.0.rate / b.1.rate)));
    let (creates, creates_one) = &pairs[pairs.len() / 2];
    let over = |many: &Figures, one: &Figures| format!("{} of {}", rate(many), rate(one));
    Ok(vec![
        row(
            "many",
            "point reads over 64 partitions, over one",
            over(&reads, &reads_one),
            reads.rate / reads_one.rate,
            Goal::AtLeast(0.9),
        ),
        row(
            "many",
            "durable creates over 64 partitions, over one",
            over(creates, creates_one),
            creates.rate / creates_one.rate,
            Goal::AtLeast(0.9),
        ),
        row(
            "many",
            "time of top 20 over 64 partitions, over one",
            over(&tops, &tops_one),
            tops_one.rate / tops.rate,
            Goal::AtMost(4.0),
        ),
    ])
}

/// How documents are read page by page.
#[derive(Clone, Copy, Debug)]
enum Pages {
    Feed,
    Query,
}

/// A reader of all documents of a container.
struct Reader {
    client: Client,
    signer: Signer,
    link: String,
    pages: Pages,
    /// Where the next page begins, as the server named it; `None` after the last page of a query.
    position: Option<String>,
    documents: usize,
}

impl Reader {
    async fn connect(address: SocketAddr, container: &str, pages: Pages) -> Result<Reader> {
        Ok(Reader {
            client: Client::connect(address, false).await?,
            signer: Signer::new()?,
            link: format!("dbs/bench/colls/{container}"),
            pages,
            position: Some(String::new()),
            documents: 0,
        })
    }

    /// Reads a page and returns the number of its documents, 0 at the end.
    async fn next_page(&mut self) -> Result<usize> {
        let Some(position) = &self.position else { return Ok(0) };
        let request = match self.pages {
            Pages::Feed => self.feed_request(position),
            Pages::Query => self.query_request(position),
        };
        let answer = self.client.send(request.as_bytes()).await?;
        if answer.status != 200 && answer.status != 304 {
            return Err(format!("{:?}: {} {}", self.pages, answer.status, self.client.body(&answer)).into());
        }
        let header = |name| self.client.header(&answer, name);
        let count = match header("x-ms-item-count") {
            Some(count) => count.parse()?,
            None => 0,
        };
        self.position = match self.pages {
            Pages::Feed => header("etag"),
            Pages::Query => header("x-ms-continuation"),
        };
        self.documents += count;
        Ok(count)
    }

    /// Reads until `until` and returns the number of documents.
    async fn follow(&mut self, until: Instant) -> Result<usize> {
        while Instant::now() < until {
            self.next_page().await?;
        }
        Ok(self.documents)
    }

    fn feed_request(&self, position: &str) -> String {
        let condition = match position {
            "" => String::new(),
            etag => format!("if-none-match: {etag}\r\n"),
        };
        self.request("GET", &format!("a-im: Incremental feed\r\n{condition}"), "")
    }

    fn query_request(&self, position: &str) -> String {
        let continuation = match position {
            "" => String::new(),
            text => format!("x-ms-continuation: {text}\r\n"),
        };
        let headers = format!(
            "x-ms-documentdb-query-enablecrosspartition: True\r\nx-perihelion-compatibility: relaxed\r\n\
             x-ms-documentdb-isquery: True\r\ncontent-type: application/query+json\r\n{continuation}"
        );
        self.request("POST", &headers, r#"{"query":"SELECT * FROM c"}"#)
    }

    fn request(&self, verb: &str, headers: &str, body: &str) -> String {
        let authorization = self.signer.authorization(&verb.to_ascii_lowercase(), "docs", &self.link);
        format!(
            "{verb} /{}/docs HTTP/1.1\r\nhost: localhost\r\nx-ms-date: {}\r\nx-ms-version: 2020-07-15\r\n\
             authorization: {authorization}\r\nx-ms-max-item-count: {PAGE}\r\n{headers}content-length: {}\r\n\r\n{body}",
            self.link,
            self.signer.date,
            body.len()
        )
    }
}

/// The control API for one container.
struct Control {
    address: SocketAddr,
    container: &'static str,
}

impl Control {
    /// Splits the first partition and returns how long it accepted no writes.
    async fn split_and_measure_pause(&self) -> Result<Duration> {
        let before = self.pauses().await?;
        let path = format!("/_control/dbs/bench/colls/{}/partitions/0/split", self.container);
        let answer = self.send("POST", &path).await?;
        if !answer.contains("children") {
            return Err(answer.into());
        }
        Ok(self.pauses().await? - before)
    }

    /// The same after a while.
    async fn split_later(&self) -> Result<Duration> {
        tokio::time::sleep(BEFORE_SPLIT).await;
        self.split_and_measure_pause().await
    }

    async fn is_separating(&self) -> Result<bool> {
        let path = format!("/_control/dbs/bench/colls/{}/partitions", self.container);
        let answer = self.send("GET", &path).await?;
        Ok(answer.contains("separating") || answer.contains("splitting"))
    }

    async fn wait_for_separation(&self) -> Result<()> {
        let deadline = Instant::now() + SEPARATION_MAX;
        while self.is_separating().await? {
            if Instant::now() > deadline {
                return Err("the partitions are not separated".into());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Sum of all pauses of splits so far.
    async fn pauses(&self) -> Result<Duration> {
        let text = self.send("GET", "/metrics").await?;
        let line =
            text.lines().find_map(|line| line.strip_prefix("perihelion_partition_split_pause_seconds_sum "));
        Ok(Duration::from_secs_f64(line.map_or(Ok(0.0), str::parse)?))
    }

    async fn send(&self, verb: &str, path: &str) -> Result<String> {
        let mut client = Client::connect(self.address, false).await?;
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {EMULATOR_KEY}\r\n\
             content-length: 0\r\n\r\n"
        );
        let answer: Answer = client.send(request.as_bytes()).await?;
        Ok(client.body(&answer))
    }
}
