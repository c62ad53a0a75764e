//! A batch of several transactions that the store refuses because of one: the others are carried out.

use crate::HOOKS;
use sim::naive::{Body, DefaultTtl};
use sim::scenario::{DemandWish, Request, Scenario, Trouble, Want, Wave, Wish, WishKind, id_text};
use sim::simulation::{Planted, run_planted};

/// Clients that write at the same time.
const LANES: usize = 4;

fn creation(id: usize) -> Request {
    let mut body = Body::new();
    body.insert("id".to_owned(), id_text(id).into());
    body.insert("pk".to_owned(), "a".into());
    body.insert("w".to_owned(), id.into());
    let wish = Wish {
        kind: WishKind::Upsert,
        id,
        body,
        edits: Vec::new(),
        demand: DemandWish::None,
        by_number: false,
    };
    Request { pause: 0, want: Want::Single { key: 0, wish } }
}

fn scenario(spoil: u64, buffered: bool) -> Scenario {
    let lanes = (0..LANES).map(|id| vec![creation(id)]).collect();
    let trouble = Trouble { spoil: Some(spoil), ..Trouble::default() };
    Scenario {
        seed: 1,
        buffered,
        partitions: 1,
        unique: Vec::new(),
        default_ttl: DefaultTtl::Off,
        waves: vec![Wave::Clients { lanes, trouble, crash: None }],
    }
}

/// Each of the transactions in its turn is the one to blame. The judge counts the refusals, and finds the others done.
#[test]
fn a_transaction_that_the_store_refuses_harms_nobody_beside_it() {
    for spoil in 0..LANES as u64 {
        for buffered in [false, true] {
            let planted = Planted { hooks: Some(HOOKS), ..Planted::default() };
            if let Err(violation) = run_planted(&scenario(spoil, buffered), planted) {
                panic!("transaction {spoil}: {}\n{}", violation.complaint, violation.trace.join("\n"));
            }
        }
    }
}
