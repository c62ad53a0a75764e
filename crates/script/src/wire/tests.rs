//! Messages are read as they were written, and nothing that a worker sends can be more than refused.

use super::{from_worker, operations, to_worker, values};
use crate::wire::bytes::{Fields, PutFields};
use crate::wire::from_worker::{BatchEnd, Failure, FromWorker};
use crate::wire::to_worker::{Allowance, ToWorker};
use crate::{
    Call, Clock, ContainerSize, DocumentLink, Finished, Function, FunctionBatch, IndexAction, Links,
    Operation, Outcome, PageOptions, Quota, Refusal, Replies, Reply, ResultFault, Role, SyntaxFault, Thrown,
    TriggerOperation,
};
use bytes::Bytes;
use proptest::prelude::*;
use std::time::Duration;
use value::{Value, ValueRef};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes.into()
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,20}"
}

fn json() -> impl Strategy<Value = Bytes> {
    text().prop_map(Bytes::from)
}

fn etag() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(text())
}

fn index_action() -> impl Strategy<Value = IndexAction> {
    prop_oneof![Just(IndexAction::Default), Just(IndexAction::Include), Just(IndexAction::Exclude)]
}

fn link() -> impl Strategy<Value = DocumentLink> {
    prop_oneof![text().prop_map(DocumentLink::Rid), text().prop_map(DocumentLink::Id)]
}

fn page() -> impl Strategy<Value = PageOptions> {
    (any::<Option<i64>>(), etag()).prop_map(|(size, continuation)| PageOptions { size, continuation })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        (json(), index_action(), any::<bool>()).prop_map(|(document, index_action, wants_document)| {
            Operation::Create { document, index_action, wants_document }
        }),
        (json(), index_action(), etag(), any::<bool>()).prop_map(
            |(document, index_action, if_match, wants_document)| Operation::Upsert {
                document,
                index_action,
                if_match,
                wants_document,
            }
        ),
        (link(), etag()).prop_map(|(document, if_none_match)| Operation::Read { document, if_none_match }),
        (link(), json(), index_action(), etag(), any::<bool>()).prop_map(
            |(document, content, index_action, if_match, wants_document)| Operation::Replace {
                document,
                content,
                index_action,
                if_match,
                wants_document,
            }
        ),
        (link(), etag()).prop_map(|(document, if_match)| Operation::Delete { document, if_match }),
        (link(), json(), etag(), any::<bool>()).prop_map(|(document, changes, if_match, wants_document)| {
            Operation::Patch { document, changes, if_match, wants_document }
        }),
        (text(), json(), page(), any::<bool>()).prop_map(|(text, parameters, page, enable_scan)| {
            Operation::Query { text, parameters, page, enable_scan }
        }),
        page().prop_map(|page| Operation::ReadAll { page }),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let size = proptest::option::of((0.0..1e9, 0.0..1e9))
        .prop_map(|size| size.map(|(current_mb, max_mb)| ContainerSize { current_mb, max_mb }));
    prop_oneof![
        (proptest::option::of(json()), any::<bool>(), etag(), size).prop_map(
            |(body, is_not_modified, continuation, container_size)| Reply::Done(Outcome {
                body,
                is_not_modified,
                continuation,
                container_size
            })
        ),
        (any::<u16>(), text()).prop_map(|(number, message)| Reply::Refused(Refusal { number, message })),
    ]
}

fn failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        (text(), any::<u32>(), any::<u32>())
            .prop_map(|(message, line, column)| Failure::Syntax(SyntaxFault { message, line, column })),
        (etag(), text(), text(), any::<Option<i32>>(), text()).prop_map(
            |(function, text, message, number, stack)| Failure::Thrown(Thrown {
                function,
                text,
                message,
                number,
                stack
            })
        ),
        Just(Failure::TimeExceeded),
        Just(Failure::MemoryExceeded),
        Just(Failure::Result(ResultFault::TooDeep { depth_max: 128 })),
        Just(Failure::Result(ResultFault::TooLarge { bytes_max: 5 })),
    ]
}

fn role() -> impl Strategy<Value = Role> {
    let operation = prop_oneof![
        Just(TriggerOperation::Create),
        Just(TriggerOperation::Replace),
        Just(TriggerOperation::Upsert),
        Just(TriggerOperation::Delete),
    ];
    prop_oneof![
        json().prop_map(|parameters| Role::Procedure { parameters }),
        (operation.clone(), json())
            .prop_map(|(operation, document)| Role::PreTrigger { operation, document }),
        (operation, json(), json()).prop_map(|(operation, request, document)| Role::PostTrigger {
            operation,
            request,
            document
        }),
    ]
}

proptest! {
    #[test]
    fn operations_are_read_as_written(operations in proptest::collection::vec(operation(), 1..10)) {
        let message = written(|out| from_worker::put_operate(out, &operations));
        let FromWorker::Operate(read) = from_worker::read(message).unwrap() else { panic!() };
        prop_assert_eq!(read, operations);
    }

    #[test]
    fn replies_are_read_as_written(
        replies in proptest::collection::vec(reply(), 0..10),
        is_budget_low in any::<bool>(),
    ) {
        let replies = Replies { replies, is_budget_low };
        let message = written(|out| to_worker::put_replies(out, &replies));
        let ToWorker::Replies(read) = to_worker::read(message).unwrap() else { panic!() };
        prop_assert_eq!(read, replies);
    }

    #[test]
    fn failures_are_read_as_written(failure in failure()) {
        let message = written(|out| from_worker::put_failed(out, &failure, "a line\n"));
        let FromWorker::Failed { failure: read, log } = from_worker::read(message).unwrap() else { panic!() };
        assert_eq!(log, "a line\n");
        prop_assert_eq!(read, failure);
    }

    #[test]
    fn calls_are_read_as_written(
        texts in proptest::collection::vec(text(), 6),
        role in role(),
        ms in any::<u64>(),
        seed in any::<u64>(),
        flags in any::<(bool, bool)>(),
    ) {
        let call = Call {
            name: texts[0].clone(),
            source: texts[1].as_str().into(),
            role,
            links: Links { self_link: texts[2].clone(), alt_link: texts[3].clone() },
            clock: if flags.0 { Clock::Running { start_ms: ms } } else { Clock::Fixed { at_ms: ms } },
            seed,
            logs: flags.1,
            quota: Quota { max: texts[4].clone(), usage: texts[5].clone() },
            needs_own_runtime: !flags.1,
        };
        let allowance = Allowance { time: Duration::from_micros(ms >> 1), memory_bytes: seed };
        let message = written(|out| to_worker::put_run(out, allowance, &call));
        let ToWorker::Run { allowance: read_allowance, call: read } = to_worker::read(message).unwrap() else { panic!() };
        prop_assert_eq!(read_allowance, allowance);
        prop_assert_eq!(format!("{read:?}"), format!("{call:?}"));
    }

    #[test]
    fn finished_is_read_as_written(
        body in proptest::option::of(json()),
        document in proptest::option::of(json()),
        log in text(),
    ) {
        let finished = Finished { body, document, log };
        let message = written(|out| from_worker::put_finished(out, &finished));
        let FromWorker::Finished(read) = from_worker::read(message).unwrap() else { panic!() };
        prop_assert_eq!(read, finished);
    }

    /// A worker that is out of control may send anything.
    #[test]
    fn arbitrary_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = from_worker::read(bytes.clone().into());
        let _ = to_worker::read(bytes.into());
    }

    #[test]
    fn changed_messages_are_refused_or_read(
        operations in proptest::collection::vec(operation(), 1..4),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        length in any::<prop::sample::Index>(),
    ) {
        let mut message = written(|out| from_worker::put_operate(out, &operations)).to_vec();
        let at = at.index(message.len());
        message[at] = byte;
        let _ = from_worker::read(message.clone().into());
        message.truncate(length.index(message.len()));
        prop_assert!(from_worker::read(message.into()).is_err() || operations.is_empty());
    }

    #[test]
    fn scalars_are_read_as_written(
        number in prop_oneof![any::<f64>(), (-1e6..1e6).prop_map(f64::trunc)],
        integer in any::<i32>(),
        text in text(),
    ) {
        for value in [
            Value::Null, Value::Bool(true), Value::Bool(false), Value::Int64(integer.into()), Value::String(text),
            Value::Double(if number.is_finite() { number } else { 0.5 }),
        ] {
            let bytes = written(|out| values::encode(Some(ValueRef::from(&value)), out));
            let read = values::result(&mut Fields::new(bytes)).unwrap();
            // A whole double comes back as an integer, which is the same number.
            let read = read.unwrap();
            prop_assert!(value::compare(ValueRef::from(&read), ValueRef::from(&value)).is_eq(), "{read:?} {value:?}");
        }
    }
}

#[test]
fn batches_are_read_as_written() {
    let function = Function { name: "f".to_owned(), source: "function () {}".into() };
    let mut batch = FunctionBatch::new(vec![function], Clock::Fixed { at_ms: 1 }, 2);
    batch.push(0, [None, Some(ValueRef::from(&Value::Null))].into_iter());
    let allowance = Allowance { time: Duration::from_secs(1), memory_bytes: 3 };
    let message = written(|out| to_worker::put_evaluate(out, allowance, &batch));
    let ToWorker::Evaluate { batch: read, .. } = to_worker::read(message).unwrap() else { panic!() };
    // Only the server needs to know where calls end.
    let batch = FunctionBatch { ends: Vec::new(), ..batch };
    assert_eq!(format!("{read:?}"), format!("{batch:?}"));
}

#[test]
fn the_end_of_a_batch_is_read_as_written() {
    for end in [BatchEnd::Reached, BatchEnd::Again, BatchEnd::Failed(Failure::TimeExceeded)] {
        let message = written(|out| from_worker::put_evaluated(out, 1, &[0], &end));
        let FromWorker::Evaluated { results, end: read, .. } = from_worker::read(message).unwrap() else {
            panic!()
        };
        assert_eq!((results.len(), read), (1, end));
    }
}

#[test]
fn lists_longer_than_their_message_are_refused() {
    let message = written(|out| {
        out.put_bool(true);
        out.put_u32(u32::MAX);
    });
    assert!(operations::replies(&mut Fields::new(message)).is_err());
    let none = written(|out| from_worker::put_operate(out, &[]));
    assert!(from_worker::read(none).is_err(), "a worker that asks for nothing");
}
