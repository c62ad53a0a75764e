//! PostgreSQL as the peer: JSONB with a GIN index, synchronous commit, its server on core 0.

use crate::documents;
use crate::load::Figures;
use crate::questions::Question;
use crate::{Options, Result};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};

/// Where Debian puts the server's programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// A database server of its own in a temporary folder.
pub(crate) struct Postgres {
    folder: PathBuf,
    _keep: tempfile::TempDir,
}

impl Postgres {
    /// Makes and starts a server; `None` if the package is not installed.
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
        let settings = format!(
            "-c listen_addresses='' -c unix_socket_directories={} -c synchronous_commit=on -c shared_buffers=512MB",
            folder.display()
        );
        let log = folder.join("log");
        run(as_postgres()
            .args(["taskset", "-c", "0"])
            .arg(format!("{PROGRAMS}/pg_ctl"))
            .arg("-D")
            .arg(&data)
            .arg("-l")
            .arg(log)
            .args(["-w", "-o", &settings, "start"]))?;
        Ok(Some(Postgres { folder, _keep: keep }))
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        let settings = format!("host={} user=postgres dbname=postgres", self.folder.display());
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(client)
    }

    /// Makes the table anew.
    pub(crate) async fn reset(&self) -> Result<()> {
        let statements = "DROP TABLE IF EXISTS docs; \
             CREATE TABLE docs (pk text, id text, doc jsonb, PRIMARY KEY (pk, id)); \
             CREATE INDEX docs_gin ON docs USING gin (doc);";
        Ok(self.connect().await?.batch_execute(statements).await?)
    }

    /// Inserts documents on so many connections, `batch` per transaction. Tells documents per second.
    pub(crate) async fn creates(
        &self,
        options: &Options,
        connections: usize,
        batch: usize,
    ) -> Result<Figures> {
        self.reset().await?;
        let next = Rc::new(RefCell::new(0usize));
        let latencies = Rc::new(RefCell::new(Vec::<f64>::new()));
        let local = LocalSet::new();
        let until = Instant::now() + Duration::from_secs(options.seconds);
        let begun = Instant::now();
        for _ in 0..connections {
            let mut client = self.connect().await?;
            let (next, latencies) = (Rc::clone(&next), Rc::clone(&latencies));
            local.spawn_local(async move {
                let insert = client.prepare("INSERT INTO docs VALUES ($1, $2, $3::text::jsonb)").await?;
                while Instant::now() < until {
                    let first = next.replace_with(|number| *number + batch);
                    let sent = Instant::now();
                    let transaction = client.transaction().await?;
                    for number in first..first + batch {
                        let key = documents::partition_key(number);
                        transaction
                            .execute(&insert, &[&key, &documents::id(number), &documents::json(number)])
                            .await?;
                    }
                    transaction.commit().await?;
                    latencies.borrow_mut().push(sent.elapsed().as_secs_f64() * 1e6);
                }
                Ok::<_, tokio_postgres::Error>(())
            });
        }
        local.await;
        let elapsed = begun.elapsed().as_secs_f64();
        let mut latencies = latencies.take();
        latencies.sort_by(f64::total_cmp);
        let at = |percent: usize| latencies.get(latencies.len() * percent / 100).copied().unwrap_or_default();
        let rate = (latencies.len() * batch) as f64 / elapsed;
        Ok(Figures { rate, p50_us: at(50), p99_us: at(99), errors: 0, cpu_us: 0.0 })
    }

    /// Reads documents by key on so many connections.
    pub(crate) async fn reads(&self, options: &Options, connections: usize, count: usize) -> Result<Figures> {
        self.reset().await?;
        self.fill(count).await?;
        let done = Rc::new(RefCell::new(0usize));
        let local = LocalSet::new();
        let begun = Instant::now();
        let until = begun + Duration::from_secs(options.seconds);
        for start in 0..connections {
            let client = self.connect().await?;
            let done = Rc::clone(&done);
            local.spawn_local(async move {
                let select = client.prepare("SELECT doc::text FROM docs WHERE pk = $1 AND id = $2").await?;
                let mut number = start * 7919;
                while Instant::now() < until {
                    number = (number + 104_729) % count;
                    client
                        .query_one(&select, &[&documents::partition_key(number), &documents::id(number)])
                        .await?;
                    *done.borrow_mut() += 1;
                }
                Ok::<_, tokio_postgres::Error>(())
            });
        }
        local.await;
        Ok(Figures { rate: done.take() as f64 / begun.elapsed().as_secs_f64(), ..Figures::default() })
    }

    /// Makes the table anew with so many documents and the indexes that queries want.
    pub(crate) async fn filled(&self, count: usize) -> Result<()> {
        self.reset().await?;
        self.fill(count).await?;
        let statements = "CREATE INDEX docs_top ON docs ((doc->>'category'), ((doc->>'score')::float8) DESC); \
             VACUUM ANALYZE docs;";
        for statement in statements.split_inclusive(';') {
            self.connect().await?.batch_execute(statement).await?;
        }
        Ok(())
    }

    /// Asks a question on so many connections, of a table that was filled.
    pub(crate) async fn ask(
        &self,
        options: &Options,
        connections: usize,
        question: Question,
        count: usize,
    ) -> Result<Figures> {
        let done = Rc::new(RefCell::new(0usize));
        let local = LocalSet::new();
        let begun = Instant::now();
        let until = begun + Duration::from_secs(options.seconds);
        let mut workers = Vec::new();
        for start in 0..connections {
            let client = self.connect().await?;
            let done = Rc::clone(&done);
            workers.push(local.spawn_local(async move {
                let select = client.prepare(question.statement()).await?;
                let mut number = start * 7919;
                while Instant::now() < until {
                    number = (number + 104_729) % count;
                    let parameters = question.parameters(number);
                    let parameters: Vec<&(dyn ToSql + Sync)> =
                        parameters.iter().map(|text| text as &(dyn ToSql + Sync)).collect();
                    client.query(&select, &parameters).await?;
                    *done.borrow_mut() += 1;
                }
                Ok::<_, tokio_postgres::Error>(())
            }));
        }
        local.await;
        for worker in workers {
            worker.await??;
        }
        Ok(Figures { rate: done.take() as f64 / begun.elapsed().as_secs_f64(), ..Figures::default() })
    }

    async fn fill(&self, count: usize) -> Result<()> {
        let mut client = self.connect().await?;
        let transaction = client.transaction().await?;
        let insert = transaction.prepare("INSERT INTO docs VALUES ($1, $2, $3::text::jsonb)").await?;
        for number in 0..count {
            let key = documents::partition_key(number);
            transaction.execute(&insert, &[&key, &documents::id(number), &documents::json(number)]).await?;
        }
        Ok(transaction.commit().await?)
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
