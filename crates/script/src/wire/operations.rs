//! Operations and replies as fields.

use super::Malformed;
use super::bytes::{Fields, PutFields};
use crate::{
    ContainerSize, DocumentLink, IndexAction, Operation, Outcome, PageOptions, Refusal, Replies, Reply,
};

const CREATE: u8 = 0;
const UPSERT: u8 = 1;
const READ: u8 = 2;
const REPLACE: u8 = 3;
const DELETE: u8 = 4;
const PATCH_DOCUMENT: u8 = 5;
const QUERY: u8 = 6;
const READ_ALL: u8 = 7;

pub(crate) fn put_operation(out: &mut Vec<u8>, operation: &Operation) {
    match operation {
        Operation::Create { document, index_action, wants_document } => {
            out.put_u8(CREATE);
            out.put_bytes(document);
            put_index_action(out, *index_action);
            out.put_bool(*wants_document);
        }
        Operation::Upsert { document, index_action, if_match, wants_document } => {
            out.put_u8(UPSERT);
            out.put_bytes(document);
            put_index_action(out, *index_action);
            put_text(out, if_match.as_deref());
            out.put_bool(*wants_document);
        }
        Operation::Read { document, if_none_match } => {
            out.put_u8(READ);
            put_link(out, document);
            put_text(out, if_none_match.as_deref());
        }
        Operation::Replace { document, content, index_action, if_match, wants_document } => {
            out.put_u8(REPLACE);
            put_link(out, document);
            out.put_bytes(content);
            put_index_action(out, *index_action);
            put_text(out, if_match.as_deref());
            out.put_bool(*wants_document);
        }
        Operation::Delete { document, if_match } => {
            out.put_u8(DELETE);
            put_link(out, document);
            put_text(out, if_match.as_deref());
        }
        Operation::Patch { document, changes, if_match, wants_document } => {
            out.put_u8(PATCH_DOCUMENT);
            put_link(out, document);
            out.put_bytes(changes);
            put_text(out, if_match.as_deref());
            out.put_bool(*wants_document);
        }
        Operation::Query { text, parameters, page, enable_scan } => {
            out.put_u8(QUERY);
            out.put_bytes(text.as_bytes());
            out.put_bytes(parameters);
            put_page(out, page);
            out.put_bool(*enable_scan);
        }
        Operation::ReadAll { page } => {
            out.put_u8(READ_ALL);
            put_page(out, page);
        }
    }
}

pub(crate) fn operation(fields: &mut Fields) -> Result<Operation, Malformed> {
    let operation = match fields.u8()? {
        CREATE => Operation::Create {
            document: fields.text_bytes()?,
            index_action: index_action(fields)?,
            wants_document: fields.bool()?,
        },
        UPSERT => Operation::Upsert {
            document: fields.text_bytes()?,
            index_action: index_action(fields)?,
            if_match: fields.optional(Fields::text)?,
            wants_document: fields.bool()?,
        },
        READ => Operation::Read { document: link(fields)?, if_none_match: fields.optional(Fields::text)? },
        REPLACE => Operation::Replace {
            document: link(fields)?,
            content: fields.text_bytes()?,
            index_action: index_action(fields)?,
            if_match: fields.optional(Fields::text)?,
            wants_document: fields.bool()?,
        },
        DELETE => Operation::Delete { document: link(fields)?, if_match: fields.optional(Fields::text)? },
        PATCH_DOCUMENT => Operation::Patch {
            document: link(fields)?,
            changes: fields.text_bytes()?,
            if_match: fields.optional(Fields::text)?,
            wants_document: fields.bool()?,
        },
        QUERY => Operation::Query {
            text: fields.text()?,
            parameters: fields.text_bytes()?,
            page: page(fields)?,
            enable_scan: fields.bool()?,
        },
        READ_ALL => Operation::ReadAll { page: page(fields)? },
        _ => return Err(Malformed),
    };
    Ok(operation)
}

pub(crate) fn put_replies(out: &mut Vec<u8>, replies: &Replies) {
    out.put_bool(replies.is_budget_low);
    out.put_u32(u32::try_from(replies.replies.len()).unwrap_or(u32::MAX));
    for reply in &replies.replies {
        match reply {
            Reply::Done(outcome) => {
                out.put_bool(true);
                out.put_optional(outcome.body.as_deref());
                out.put_bool(outcome.is_not_modified);
                put_text(out, outcome.continuation.as_deref());
                out.put_bool(outcome.container_size.is_some());
                if let Some(size) = outcome.container_size {
                    out.put_u64(size.current_mb.to_bits());
                    out.put_u64(size.max_mb.to_bits());
                }
            }
            Reply::Refused(refusal) => {
                out.put_bool(false);
                out.put_u16(refusal.number);
                out.put_bytes(refusal.message.as_bytes());
            }
        }
    }
}

pub(crate) fn replies(fields: &mut Fields) -> Result<Replies, Malformed> {
    let is_budget_low = fields.bool()?;
    Ok(Replies { is_budget_low, replies: fields.list(reply)? })
}

fn reply(fields: &mut Fields) -> Result<Reply, Malformed> {
    if !fields.bool()? {
        return Ok(Reply::Refused(Refusal { number: fields.u16()?, message: fields.text()? }));
    }
    Ok(Reply::Done(Outcome {
        body: fields.optional(Fields::bytes)?,
        is_not_modified: fields.bool()?,
        continuation: fields.optional(Fields::text)?,
        container_size: fields.optional(|fields| {
            let current_mb = f64::from_bits(fields.u64()?);
            Ok(ContainerSize { current_mb, max_mb: f64::from_bits(fields.u64()?) })
        })?,
    }))
}

fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.put_optional(text.map(str::as_bytes));
}

fn put_link(out: &mut Vec<u8>, link: &DocumentLink) {
    let (is_rid, text) = match link {
        DocumentLink::Rid(text) => (true, text),
        DocumentLink::Id(text) => (false, text),
    };
    out.put_bool(is_rid);
    out.put_bytes(text.as_bytes());
}

fn link(fields: &mut Fields) -> Result<DocumentLink, Malformed> {
    let is_rid = fields.bool()?;
    let text = fields.text()?;
    Ok(if is_rid { DocumentLink::Rid(text) } else { DocumentLink::Id(text) })
}

fn put_index_action(out: &mut Vec<u8>, action: IndexAction) {
    out.put_u8(match action {
        IndexAction::Default => 0,
        IndexAction::Include => 1,
        IndexAction::Exclude => 2,
    });
}

fn index_action(fields: &mut Fields) -> Result<IndexAction, Malformed> {
    match fields.u8()? {
        0 => Ok(IndexAction::Default),
        1 => Ok(IndexAction::Include),
        2 => Ok(IndexAction::Exclude),
        _ => Err(Malformed),
    }
}

fn put_page(out: &mut Vec<u8>, page: &PageOptions) {
    out.put_bool(page.size.is_some());
    if let Some(size) = page.size {
        out.put_u64(size.cast_unsigned());
    }
    put_text(out, page.continuation.as_deref());
}

fn page(fields: &mut Fields) -> Result<PageOptions, Malformed> {
    Ok(PageOptions {
        size: fields.optional(Fields::u64)?.map(u64::cast_signed),
        continuation: fields.optional(Fields::text)?,
    })
}
