//! `POST …/docs` as a query: a page of rows from a key, a range or the whole container.
//!
//! All merging across partitions is done here, so clients that query without a plan get the final rows. Clients that
//! merge themselves query range after range, in the forms of `query_plan`.

use super::{Call, scope};
use crate::faults::{NosqlFault, NosqlQueryFault, Refusal};
use crate::lower::advice;
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
use std::time::Duration;

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
    let query = call.query().await?;
    let scope = scope_of(call, &container, &query).await?;
    let pass = call.engine.access().query_documents(&call.principal, &container, scope)?;
    let request = QueryRequest {
        query,
        items_max: page.items_max,
        continuation: page.continuation.map(continuation::token).transpose()?,
        session,
        text_bytes: call.body.len(),
    };
    if headers::flag(call.headers(), &names::EXPLAIN)? {
        let text = Box::pin(call.engine.explain(pass, &request)).await?;
        let body = serde_json::json!({ "explain": text }).to_string().into_bytes();
        return Ok(Reply::json(StatusCode::OK, Charge::MINIMUM, body));
    }
    let indexes = match index_metrics {
        Some(form) => Some(form.text(Box::pin(call.engine.index_use(&pass, &request)).await?)),
        None => None,
    };
    let page = call.engine.query(pass, &request).await?;
    let mut reply = Reply::json(StatusCode::OK, page.charge, body(&container, &page.rows));
    reply.number(&names::ITEM_COUNT, page.rows.len());
    reply.fixed(&names::QUERY_EXECUTION_INFO, const { HeaderValue::from_static(EXECUTION_INFO) });
    if wants_metrics {
        reply.text(&names::QUERY_METRICS, metrics(&page.metrics));
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

/// Where the query runs: as the headers say, otherwise in the one key that its filter pins, otherwise everywhere.
async fn scope_of(
    call: &Call<'_>,
    container: &Arc<Container>,
    query: &Arc<Query>,
) -> Result<Scope, NosqlFault> {
    if let Some(scope) = scope::of_headers(call, container)? {
        return Ok(scope);
    }
    let pinned = {
        let (query, container) = (Arc::clone(query), Arc::clone(container));
        call.compute(move || Ok(pinned_keys(&query, &container.definition().partition_key))).await?
    };
    if let Some([key]) = pinned.as_deref() {
        return Ok(Scope::Key(key.clone()));
    }
    let definition = &container.definition().partition_key;
    let is_everywhere = headers::flag(call.headers(), &names::ENABLE_CROSS_PARTITION)?;
    // Containers of old clients have one key, and those clients know no other.
    if !is_everywhere && !definition.is_system_key() {
        return Err(NosqlQueryFault::CrossPartitionDisabled.into());
    }
    Ok(Scope::Container)
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

/// `name=number` pairs separated by `;` without one at the end, which clients could not parse.
fn metrics(metrics: &QueryMetrics) -> String {
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1000.0);
    let ratio = match metrics.documents_read {
        0 => 1.0,
        read => metrics.rows.min(read) as f64 / read as f64,
    };
    let none = || "0.00".to_owned();
    let pairs = [
        ("totalExecutionTimeInMs", ms(metrics.total_time)),
        ("queryCompileTimeInMs", none()),
        ("queryLogicalPlanBuildTimeInMs", none()),
        ("queryPhysicalPlanBuildTimeInMs", none()),
        ("queryOptimizationTimeInMs", none()),
        ("VMExecutionTimeInMs", ms(metrics.evaluation_time)),
        ("indexLookupTimeInMs", ms(metrics.index_time)),
        ("documentLoadTimeInMs", ms(metrics.read_time)),
        ("systemFunctionExecuteTimeInMs", none()),
        ("userFunctionExecuteTimeInMs", none()),
        ("retrievedDocumentCount", metrics.documents_read.to_string()),
        ("retrievedDocumentSize", metrics.bytes_read.to_string()),
        ("outputDocumentCount", metrics.rows.to_string()),
        ("outputDocumentSize", metrics.bytes.to_string()),
        ("writeOutputTimeInMs", none()),
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
        let text = metrics(&measured);
        for pair in text.split(';') {
            let (_, number) = pair.split_once('=').unwrap();
            number.parse::<f64>().unwrap();
        }
        assert!(text.starts_with("totalExecutionTimeInMs=1.23;"));
        assert!(text.ends_with(";indexUtilizationRatio=0.25"));
    }
}
