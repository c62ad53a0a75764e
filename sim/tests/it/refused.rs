//! A batch of several transactions that the store refuses because of one: the others are executed.

use crate::HOOKS;
use sim::naive::{Body, DefaultTtl};
use sim::scenario::{
    PreconditionTemplate, Request, RequestKind, Scenario, StepKind, StepTemplate, Trouble, Wave, id_text,
};
use sim::simulation::{Planted, run_planted};

/// Concurrent writing clients.
const LANES: usize = 4;

fn creation(id: usize) -> Request {
    let mut body = Body::new();
    body.insert("id".to_owned(), id_text(id).into());
    body.insert("pk".to_owned(), "a".into());
    body.insert("w".to_owned(), id.into());
    let template = StepTemplate {
        kind: StepKind::Upsert,
        id,
        body,
        edits: Vec::new(),
        precondition: PreconditionTemplate::None,
        by_number: false,
    };
    Request { pause: 0, want: RequestKind::Single { key: 0, template } }
}

fn scenario(spoil: u64, buffered: bool) -> Scenario {
    let lanes = (0..LANES).map(|id| vec![creation(id)]).collect();
    let trouble = Trouble { spoil: Some(spoil), ..Trouble::default() };
    Scenario {
        kind: model::PartitionKeyKind::HashV2,
        seed: 1,
        buffered,
        partitions: 1,
        unique: Vec::new(),
        default_ttl: DefaultTtl::Off,
        waves: vec![Wave::Clients { lanes, trouble, crash: None }],
    }
}

/// Each of the transactions in turn is the refused one. The checker counts the refusals, and finds the others executed.
#[test]
fn a_transaction_that_the_store_refuses_affects_no_other() {
    for spoil in 0..LANES as u64 {
        for buffered in [false, true] {
            let planted = Planted { hooks: Some(HOOKS), ..Planted::default() };
            if let Err(violation) = run_planted(&scenario(spoil, buffered), planted) {
                panic!("transaction {spoil}: {}\n{}", violation.failure, violation.trace.join("\n"));
            }
        }
    }
}
