//! PostgreSQL as the peer: JSONB with a GIN index, synchronous commit, its server on core 0.

mod load;

use crate::Result;
use crate::process::{self, SERVER_CORE, Switches};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

/// Where Debian installs the server's programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// Settings of the server, for a dedicated machine with a fast disk: commits are durable, checkpoints are rare, full
/// pages are compressed, and short statements are not compiled.
pub(crate) const SETTINGS: [&str; 14] = [
    "synchronous_commit=on",
    "fsync=on",
    "shared_buffers=2GB",
    "effective_cache_size=8GB",
    "work_mem=64MB",
    "maintenance_work_mem=512MB",
    "wal_buffers=64MB",
    "wal_compression=lz4",
    "min_wal_size=2GB",
    "max_wal_size=8GB",
    "checkpoint_timeout=15min",
    "random_page_cost=1.1",
    "effective_io_concurrency=200",
    "jit=off",
];

/// The operator class of the GIN index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorClass {
    /// `jsonb_path_ops`: one entry per path and value, the usual choice for containment.
    PathOps,
    /// `jsonb_ops`, the default: one entry per key and one per value.
    Default,
}

impl OperatorClass {
    pub(crate) const ALL: [OperatorClass; 2] = [OperatorClass::PathOps, OperatorClass::Default];

    pub(crate) fn name(self) -> &'static str {
        match self {
            OperatorClass::PathOps => "jsonb_path_ops",
            OperatorClass::Default => "jsonb_ops",
        }
    }
}

/// A database server in a temporary folder.
pub(crate) struct Postgres {
    folder: PathBuf,
    /// The process that starts all others.
    postmaster: u32,
    _keep: tempfile::TempDir,
}

impl Postgres {
    /// Creates and starts a server; `None` if the package is not installed.
    pub(crate) fn start() -> Result<Option<Postgres>> {
        if !Path::new(PROGRAMS).exists() {
            return Ok(None);
        }
        let keep = tempfile::tempdir()?;
        let folder = keep.path().join("pg");
        std::fs::create_dir(&folder)?;
        run(Command::new("chmod").args(["755"]).arg(keep.path()))?;
        run(Command::new("chown").arg("postgres").arg(&folder))?;
        let data = folder.join("data");
        run(as_postgres().arg(format!("{PROGRAMS}/initdb")).args(["-A", "trust", "-D"]).arg(&data))?;
        let mut settings = format!("-c listen_addresses='' -c unix_socket_directories={}", folder.display());
        for setting in SETTINGS {
            settings.push_str(&format!(" -c {setting}"));
        }
        let log = folder.join("log");
        run(as_postgres()
            .args(["taskset", "-c", SERVER_CORE])
            .arg(format!("{PROGRAMS}/pg_ctl"))
            .arg("-D")
            .arg(&data)
            .arg("-l")
            .arg(log)
            .args(["-w", "-o", &settings, "start"]))?;
        let pid_file = std::fs::read_to_string(data.join("postmaster.pid"))?;
        let postmaster = pid_file.lines().next().ok_or("postmaster.pid is empty")?.trim().parse()?;
        Ok(Some(Postgres { folder, postmaster, _keep: keep }))
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        let settings = format!("host={} user=postgres dbname=postgres", self.folder.display());
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(client)
    }

    /// CPU time of the postmaster and all its processes, running and ended.
    ///
    /// The running ones are read from schedstat: with 64 short-lived processes, ticks of 10 ms would lose a fifth.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let ended = process::ended_children_cpu(self.postmaster)?;
        let mut cpu = ended + process::main_thread_cpu(self.postmaster)?;
        for child in self.children()? {
            // One that has ended since is included in the ended ones next time.
            cpu += process::main_thread_cpu(child).unwrap_or_default();
        }
        Ok(cpu)
    }

    /// Context switches of its running processes so far.
    pub(crate) fn switches(&self) -> Result<Switches> {
        let mut sum = Switches::of(self.postmaster)?;
        for child in self.children()? {
            let switches = Switches::of(child).unwrap_or_default();
            sum.voluntary += switches.voluntary;
            sum.involuntary += switches.involuntary;
        }
        Ok(sum)
    }

    fn children(&self) -> Result<Vec<u32>> {
        let text = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.postmaster))?;
        Ok(text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?)
    }

    /// Recreates the table with an index of this class, and flushes the dirty pages of earlier cases.
    pub(crate) async fn reset(&self, class: OperatorClass) -> Result<()> {
        let create = format!("CREATE INDEX docs_gin ON docs USING gin (doc {});", class.name());
        let client = self.connect().await?;
        client.batch_execute("DROP TABLE IF EXISTS docs").await?;
        client.batch_execute("CHECKPOINT").await?;
        let table = "CREATE TABLE docs (pk text, id text, doc jsonb, PRIMARY KEY (pk, id)); ";
        Ok(client.batch_execute(&format!("{table}{create}")).await?)
    }

    /// Recreates the table with `count` documents and the indexes for the queries.
    pub(crate) async fn filled(&self, class: OperatorClass, count: usize) -> Result<()> {
        self.reset(class).await?;
        self.fill(count).await?;
        let client = self.connect().await?;
        let top = "CREATE INDEX docs_top ON docs ((doc->>'category'), ((doc->>'score')::float8) DESC)";
        for statement in [top, "VACUUM ANALYZE docs", "CHECKPOINT"] {
            client.batch_execute(statement).await?;
        }
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.folder.join("data");
        let stop = as_postgres()
            .arg(format!("{PROGRAMS}/pg_ctl"))
            .arg("-D")
            .arg(data)
            .args(["-m", "immediate", "stop"])
            .output();
        drop(stop);
    }
}

fn as_postgres() -> Command {
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]);
    command
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.current_dir("/").output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
