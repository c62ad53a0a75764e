//! `POST …/docs` as a query: a page of rows from a key, a range or the whole container.
//!
//! In relaxed mode the server merges the rows of all partitions. In strict mode it refuses a query over all of them that
//! needs a merge, with the plan by which clients merge themselves: they query range after range, in the forms of
//! `query_plan`.

use super::{Call, query_plan, scope};
use crate::compatibility::{self, AskedQuery, StrictFault, Verdict, verdict};
use crate::faults::{NosqlFault, NosqlQueryFault, Refusal};
use crate::lower::{LoweredQuery, advice};
use crate::route::ContainerPath;
use crate::wire::index_metrics::IndexMetricsForm;
use crate::wire::reply::Reply;
use crate::wire::resources::ItemWriter;
use crate::wire::{continuation, headers, json, names};
use engine::{Action, Container, QueryMetrics, QueryRequest, QueryRow, Scope, pinned_keys};
use http::{HeaderValue, StatusCode};
use model::Charge;
use plan::query::Query;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What clients need to know to resume after a row: rows with equal sort values are ordered by document number,
/// descending if the order is descending.
const EXECUTION_INFO: &str = r#"{"reverseRidEnabled":true,"reverseIndexScan":false}"#;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::QueryDocuments)?.resource;
    let page = call.page_request()?;
    let wants_metrics = headers::flag(call.headers(), &names::POPULATE_QUERY_METRICS)?;
    let index_metrics = IndexMetricsForm::asked(call.headers())?;
    let wants_advice = headers::flag(call.headers(), &names::POPULATE_QUERY_ADVICE)?;
    let session = headers::session(call.headers())?;
    let mode = compatibility::mode(call.headers(), call.options.compatibility)?;
    let begun = wants_metrics.then(Instant::now);
    let elapsed = |begun: Option<Instant>| begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    let LoweredQuery { tree, query } = call.query().await?;
    let compile = elapsed(begun);
    let (scope, is_addressed) = scope_of(call, &container, &query).await?;
    let pass = call.engine.access().query_documents(&call.principal, &container, scope)?;
    let is_explained = headers::flag(call.headers(), &names::EXPLAIN)?;
    let verdict = match is_explained {
        true => Verdict::Answer,
        false => {
            let composites = &container.definition().policies.indexing.composite;
            verdict(mode, AskedQuery { tree: &tree, query: &query, composites, is_addressed })?
        }
    };
    let ends_at_ranges = match verdict {
        Verdict::Answer => false,
        Verdict::AnswerByRange => true,
        Verdict::RefuseWithPlan => return Err(needs_merge(call, container, tree, query).await?.into()),
    };
    let request = QueryRequest {
        query,
        items_max: page.items_max,
        ends_at_ranges,
        continuation: page.continuation.map(continuation::token).transpose()?,
        session,
        text_bytes: call.body.len(),
    };
    if is_explained {
        let text = Box::pin(call.engine.explain(pass, &request)).await?;
        let body = serde_json::json!({ "explain": text }).to_string().into_bytes();
        return Ok(Reply::json(StatusCode::OK, Charge::MINIMUM, body));
    }
    let indexes = match index_metrics {
        Some(form) => Some(form.text(Box::pin(call.engine.index_use(&pass, &request)).await?)),
        None => None,
    };
    let page = call.engine.query(pass, &request).await?;
    let begun = wants_metrics.then(Instant::now);
    let mut reply = Reply::json(StatusCode::OK, page.charge, body(&container, &page.rows));
    let write = elapsed(begun);
    reply.number(&names::ITEM_COUNT, page.rows.len());
    reply.fixed(&names::QUERY_EXECUTION_INFO, const { HeaderValue::from_static(EXECUTION_INFO) });
    if wants_metrics {
        reply.text(&names::QUERY_METRICS, metrics(&page.metrics, ApiTimes { compile, write }));
    }
    if let Some(indexes) = indexes {
        reply.text(&names::INDEX_UTILIZATION, indexes);
    }
    // Like the service, advise only with the first page.
    if wants_advice && request.continuation.is_none() {
        let query = Arc::clone(&request.query);
        if let Some(advice) = call.compute(move || Ok(advice(&query))).await? {
            reply.text(&names::QUERY_ADVICE, advice);
        }
    }
    if let Some(continuation) = page.continuation {
        reply.text(&names::CONTINUATION, continuation::text(&continuation));
    }
    reply.sessions(&container, &page.session);
    Ok(reply)
}

/// The refusal with the plan by which a client merges ranges.
async fn needs_merge(
    call: &Call<'_>,
    container: Arc<Container>,
    tree: Arc<sql::ast::Query>,
    query: Arc<Query>,
) -> Result<StrictFault, NosqlFault> {
    let plan = move || query_plan::document(&container, &Scope::Container, &tree, &query);
    let (plan, _) = call.compute(plan).await?;
    Ok(StrictFault::NeedsMerge { plan })
}

/// Where the query runs: as the headers say, otherwise in the one key that its filter pins, otherwise everywhere. Also
/// whether that is a key or a range: the documents of any other scope may be in several ranges.
async fn scope_of(
    call: &Call<'_>,
    container: &Arc<Container>,
    query: &Arc<Query>,
) -> Result<(Scope, bool), NosqlFault> {
    if let Some(scope) = scope::of_headers(call, container)? {
        return Ok((scope, true));
    }
    let pinned = {
        let (query, container) = (Arc::clone(query), Arc::clone(container));
        call.compute(move || Ok(pinned_keys(&query, &container.definition().partition_key))).await?
    };
    let definition = &container.definition().partition_key;
    if let Some([key]) = pinned.as_deref() {
        return Ok((Scope::Key(key.clone()), definition.is_complete(key)));
    }
    let is_everywhere = headers::flag(call.headers(), &names::ENABLE_CROSS_PARTITION)?;
    // Containers of old clients have one key, and those clients know no other.
    if !is_everywhere && !definition.is_system_key() {
        return Err(NosqlQueryFault::CrossPartitionDisabled.into());
    }
    Ok((Scope::Container, definition.is_system_key()))
}

fn body(container: &Container, rows: &[QueryRow]) -> Vec<u8> {
    let size = rows.iter().map(|row| match row {
        QueryRow::Document(stored) => stored.document.bytes().len() * 5 / 4 + 256,
        QueryRow::Value(_) => 64,
    });
    let mut body = Vec::with_capacity(size.sum::<usize>() + 64);
    body.extend_from_slice(b"{\"_rid\":\"");
    body.extend_from_slice(container.rid().text().as_bytes());
    body.extend_from_slice(b"\",\"Documents\":[");
    let writer = ItemWriter::new(container);
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        match row {
            QueryRow::Document(stored) => writer.push(stored, &mut body),
            QueryRow::Value(value) => value.as_ref().write_json(&mut body),
        }
    }
    body.extend_from_slice(b"],\"_count\":");
    json::push_integer(rows.len(), &mut body);
    body.push(b'}');
    body
}

/// Times around the execution of a query, for its metrics.
#[derive(Clone, Copy, Debug, Default)]
struct ApiTimes {
    /// Parsing and lowering the text.
    compile: Duration,
    /// Writing the rows.
    write: Duration,
}

/// `name=number` pairs separated by `;` without one at the end, which clients could not parse.
///
/// Clients subtract lookup, load and write from the execution of the virtual machine, and expect the rest and the time
/// to compile to be positive: they are at least 0.01 ms.
fn metrics(metrics: &QueryMetrics, times: ApiTimes) -> String {
    let hundredths = |time: Duration| u64::try_from(time.as_micros().div_ceil(10)).unwrap_or(u64::MAX / 16);
    let [lookup, load, write] = [metrics.index_time, metrics.read_time, times.write].map(hundredths);
    let machine = lookup + load + write + hundredths(metrics.evaluation_time).max(1);
    let compile = hundredths(times.compile).max(1);
    let total = hundredths(metrics.total_time + times.compile + times.write).max(machine + compile);
    let ms = |hundredths: u64| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let ratio = match metrics.documents_read {
        0 => 1.0,
        read => metrics.rows.min(read) as f64 / read as f64,
    };
    let none = || "0.00".to_owned();
    let pairs = [
        ("totalExecutionTimeInMs", ms(total)),
        ("queryCompileTimeInMs", ms(compile)),
        ("queryLogicalPlanBuildTimeInMs", none()),
        ("queryPhysicalPlanBuildTimeInMs", none()),
        ("queryOptimizationTimeInMs", none()),
        ("VMExecutionTimeInMs", ms(machine)),
        ("indexLookupTimeInMs", ms(lookup)),
        ("documentLoadTimeInMs", ms(load)),
        ("systemFunctionExecuteTimeInMs", none()),
        ("userFunctionExecuteTimeInMs", none()),
        ("retrievedDocumentCount", metrics.documents_read.to_string()),
        ("retrievedDocumentSize", metrics.bytes_read.to_string()),
        ("outputDocumentCount", metrics.rows.to_string()),
        ("outputDocumentSize", metrics.bytes.to_string()),
        ("writeOutputTimeInMs", ms(write)),
        ("indexUtilizationRatio", format!("{ratio:.2}")),
    ];
    pairs.map(|(name, number)| format!("{name}={number}")).join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_a_name_and_a_number() {
        let measured = QueryMetrics {
            documents_read: 8,
            rows: 2,
            total_time: Duration::from_micros(1234),
            ..QueryMetrics::default()
        };
        let text = metrics(&measured, ApiTimes::default());
        for pair in text.split(';') {
            let (_, number) = pair.split_once('=').unwrap();
            number.parse::<f64>().unwrap();
        }
        assert!(text.starts_with("totalExecutionTimeInMs=1.24;"));
        assert!(text.ends_with(";indexUtilizationRatio=0.25"));
    }

    #[test]
    fn the_parts_of_a_time_are_never_more_than_the_whole() {
        let micros = Duration::from_micros;
        for (lookup, load, evaluation, compile, write) in
            [(0, 0, 0, 0, 0), (110, 14, 3, 0, 1), (1, 1, 1, 1, 1), (15, 25, 35, 45, 55)]
        {
            let measured = QueryMetrics {
                index_time: micros(lookup),
                read_time: micros(load),
                evaluation_time: micros(evaluation),
                total_time: micros(lookup + load + evaluation),
                ..QueryMetrics::default()
            };
            let text = metrics(&measured, ApiTimes { compile: micros(compile), write: micros(write) });
            let hundredths = |name: &str| {
                let pair = text.split(';').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
                pair.unwrap().replace('.', "").parse::<u64>().unwrap()
            };
            let inner =
                ["indexLookupTimeInMs", "documentLoadTimeInMs", "writeOutputTimeInMs"].map(hundredths);
            let machine = hundredths("VMExecutionTimeInMs");
            assert!(machine > inner.iter().sum(), "{text}");
            let compile = hundredths("queryCompileTimeInMs");
            assert!(compile > 0 && hundredths("totalExecutionTimeInMs") >= machine + compile, "{text}");
        }
    }
}
