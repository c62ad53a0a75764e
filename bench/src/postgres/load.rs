//! Closed-loop load on PostgreSQL: prepared statements, one per connection.

use super::{OperatorClass, Postgres};
use crate::documents;
use crate::load::{Figures, figures};
use crate::process::server_core_busy;
use crate::questions::Question;
use crate::{Options, Result};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

/// One document: a statement that commits by itself, so one round trip.
const INSERT: &str = "INSERT INTO docs VALUES ($1, $2, $3::text::jsonb)";
/// Many documents in one statement and one round trip.
const INSERT_MANY: &str = "INSERT INTO docs SELECT pk, id, doc::jsonb FROM unnest($1::text[], $2::text[], $3::text[]) AS new (pk, id, doc)";
/// Documents per statement while a table is filled.
const FILL: usize = 500;

impl Postgres {
    /// Inserts documents into an empty table on `connections` connections, `batch` per transaction.
    ///
    /// The rate is in documents per second, and the CPU time per document.
    pub(crate) async fn creates(
        &self,
        options: &Options,
        class: OperatorClass,
        connections: usize,
        batch: usize,
    ) -> Result<Figures> {
        self.reset(class).await?;
        let statement = if batch == 1 { INSERT } else { INSERT_MANY };
        let mut found = self
            .drive(options, connections, statement, async move |client, insert, number| {
                if batch == 1 {
                    let (key, id) = (documents::partition_key(number), documents::id(number));
                    client.execute(insert, &[&key, &id, &documents::json(number)]).await?;
                } else {
                    insert_many(client, insert, number * batch..(number + 1) * batch).await?;
                }
                Ok(())
            })
            .await?;
        found.rate *= batch as f64;
        found.cpu_us /= batch as f64;
        self.reset(class).await?;
        Ok(found)
    }

    /// Reads documents by key from a filled table.
    pub(crate) async fn reads(&self, options: &Options, connections: usize, count: usize) -> Result<Figures> {
        let statement = "SELECT doc::text FROM docs WHERE pk = $1 AND id = $2";
        self.drive(options, connections, statement, async move |client, select, number| {
            let number = crate::load::scattered(number, count);
            client.query_one(select, &[&documents::partition_key(number), &documents::id(number)]).await?;
            Ok(())
        })
        .await
    }

    /// Runs a query against a filled table.
    pub(crate) async fn ask(
        &self,
        options: &Options,
        connections: usize,
        question: Question,
        count: usize,
    ) -> Result<Figures> {
        self.drive(options, connections, question.statement(), async move |client, select, number| {
            let parameters = question.parameters(crate::load::scattered(number, count));
            let parameters: Vec<&(dyn ToSql + Sync)> =
                parameters.iter().map(|text| text as &(dyn ToSql + Sync)).collect();
            client.query(select, &parameters).await?;
            Ok(())
        })
        .await
    }

    pub(super) async fn fill(&self, count: usize) -> Result<()> {
        let client = self.connect().await?;
        let insert = client.prepare(INSERT_MANY).await?;
        for first in (0..count).step_by(FILL) {
            insert_many(&client, &insert, first..(first + FILL).min(count)).await?;
        }
        Ok(())
    }

    /// Runs `operation` with 0, 1, 2, … in a closed loop on `connections` connections.
    async fn drive<O>(
        &self,
        options: &Options,
        connections: usize,
        statement: &'static str,
        operation: O,
    ) -> Result<Figures>
    where
        O: AsyncFn(&Client, &Statement, usize) -> std::result::Result<(), tokio_postgres::Error> + 'static,
    {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = self.connect().await?;
            let statement = client.prepare(statement).await?;
            clients.push((client, statement));
        }
        let next = Rc::new(RefCell::new(0usize));
        let latencies = Rc::new(RefCell::new(Vec::<u32>::with_capacity(1 << 20)));
        let operation = Rc::new(operation);
        let local = LocalSet::new();
        let (cpu, busy, switches) = (self.cpu()?, server_core_busy()?, self.switches()?);
        let begun = Instant::now();
        let until = begun + Duration::from_secs(options.seconds);
        let mut senders = Vec::new();
        for (client, statement) in clients {
            let (next, latencies) = (Rc::clone(&next), Rc::clone(&latencies));
            let operation = Rc::clone(&operation);
            senders.push(local.spawn_local(async move {
                while Instant::now() < until {
                    let number = next.replace_with(|number| *number + 1);
                    let sent = Instant::now();
                    operation(&client, &statement, number).await?;
                    let taken = u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX);
                    latencies.borrow_mut().push(taken);
                }
                // Kept open until the CPU time is read.
                Ok::<_, tokio_postgres::Error>(client)
            }));
        }
        local.await;
        let mut clients = Vec::new();
        for sender in senders {
            clients.push(sender.await??);
        }
        let elapsed = begun.elapsed();
        let (cpu, busy) = (self.cpu()?.saturating_sub(cpu), server_core_busy()?.saturating_sub(busy));
        let switches = self.switches()?.since(switches);
        let mut found = figures(latencies.take(), elapsed);
        found.add_cost(cpu, switches, busy, elapsed);
        Ok(found)
    }
}

async fn insert_many(
    client: &Client,
    insert: &Statement,
    numbers: std::ops::Range<usize>,
) -> std::result::Result<(), tokio_postgres::Error> {
    let keys: Vec<String> = numbers.clone().map(documents::partition_key).collect();
    let ids: Vec<String> = numbers.clone().map(documents::id).collect();
    let texts: Vec<String> = numbers.map(documents::json).collect();
    client.execute(insert, &[&keys, &ids, &texts]).await?;
    Ok(())
}
