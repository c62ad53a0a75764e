//! The native functions of the prelude.

use super::realm::PRELUDE_NAME;
use super::state::{State, size_bytes};
use crate::limits::{OPERATION_BYTES_MAX, RESPONSE_BYTES_MAX};
use crate::{DocumentLink, IndexAction, Links, Operation, PageOptions};
use bytes::Bytes;
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, FromJs, Function, Object, Value};
use std::rc::Rc;

/// Verdicts on an operation, as the prelude reads them.
const NOT_ACCEPTED: i32 = 0;
const ACCEPTED: i32 = 1;
const FOREIGN: i32 = 2;
const TOO_LARGE: i32 = 3;

/// The parts of the prelude that are compiled when a script first needs them.
const PARTS: [(&str, &str); 3] = [
    ("fluent", include_str!("../prelude/fluent.js")),
    ("seal", include_str!("../prelude/seal.js")),
    ("text", include_str!("../prelude/text.js")),
];

/// The object that the prelude gets.
pub(super) fn object<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> rquickjs::Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    let shared = Rc::clone(state);
    natives.set("now", Function::new(ctx.clone(), move || shared.now_ms())?)?;
    let shared = Rc::clone(state);
    natives.set("random", Function::new(ctx.clone(), move || unit(shared.random()))?)?;
    let shared = Rc::clone(state);
    natives.set("guid", Function::new(ctx.clone(), move || guid(shared.random(), shared.random()))?)?;
    let shared = Rc::clone(state);
    natives.set("logs", Function::new(ctx.clone(), move || shared.logs.get())?)?;
    let shared = Rc::clone(state);
    natives.set("log", Function::new(ctx.clone(), move |line: Text| shared.log(&line.0))?)?;
    let shared = Rc::clone(state);
    natives.set("notice", Function::new(ctx.clone(), move || shared.has_noticed.set(true))?)?;
    let shared = Rc::clone(state);
    natives.set("suspect", Function::new(ctx.clone(), move || shared.may_be_of_sealing.set(true))?)?;
    let shared = Rc::clone(state);
    natives.set("selfLink", Function::new(ctx.clone(), move || shared.links.borrow().self_link.clone())?)?;
    let shared = Rc::clone(state);
    natives.set("altLink", Function::new(ctx.clone(), move || shared.links.borrow().alt_link.clone())?)?;
    let shared = Rc::clone(state);
    natives.set("quotaMax", Function::new(ctx.clone(), move || shared.quota.borrow().max.clone())?)?;
    let shared = Rc::clone(state);
    natives.set("quotaUsage", Function::new(ctx.clone(), move || shared.quota.borrow().usage.clone())?)?;
    natives.set("byteLength", Function::new(ctx.clone(), |text: Text| text.0.len())?)?;
    natives.set("load", Function::new(ctx.clone(), load)?)?;
    natives.set("bodyMax", RESPONSE_BYTES_MAX)?;
    let shared = Rc::clone(state);
    let enqueue = move |operation: Object<'js>| enqueue(&shared, &operation);
    natives.set("enqueue", Function::new(ctx.clone(), enqueue)?)?;
    Ok(natives)
}

/// Compiles a part of the prelude to a function.
fn load<'js>(ctx: Ctx<'js>, name: String) -> rquickjs::Result<Function<'js>> {
    let part = PARTS.iter().find(|(part, _)| *part == name).map(|(_, text)| *text);
    let mut options = EvalOptions::default();
    options.filename = Some(PRELUDE_NAME.to_owned());
    ctx.eval_with_options(part.unwrap_or_default(), options)
}

/// Text of a script. Halves of surrogate pairs, which have no UTF-8 form, are replaced.
pub(super) struct Text(pub(super) String);

impl<'js> FromJs<'js> for Text {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Text> {
        let string = rquickjs::String::from_value(value)?;
        match string.to_string() {
            Ok(text) => Ok(Text(text)),
            Err(rquickjs::Error::Utf8(_)) => {
                let globals: Object = ctx.globals().get("String")?;
                let prototype: Object = globals.get("prototype")?;
                let repair: Function = prototype.get("toWellFormed")?;
                let repaired: rquickjs::String = repair.call((rquickjs::function::This(string),))?;
                Ok(Text(repaired.to_string()?))
            }
            Err(error) => Err(error),
        }
    }
}

/// A random number of the interval from 0 to below 1, with 53 bits.
fn unit(random: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)] // 53 bits are exact.
    let number = (random >> 11) as f64;
    number / (1_u64 << 53) as f64
}

/// A random UUID (version 4).
fn guid(high: u64, low: u64) -> String {
    let bits = (u128::from(high) << 64) | u128::from(low);
    let bits = bits & !(0xf << 76) | (0x4 << 76);
    let bits = bits & !(0x3 << 62) | (0x2 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        bits >> 96,
        (bits >> 80) & 0xffff,
        (bits >> 64) & 0xffff,
        (bits >> 48) & 0xffff,
        bits & 0xffff_ffff_ffff
    )
}

fn enqueue(state: &State, fields: &Object<'_>) -> rquickjs::Result<i32> {
    let Some(operation) = operation(&state.links.borrow(), fields)? else { return Ok(FOREIGN) };
    let bytes = size_bytes(&operation);
    Ok(if bytes > OPERATION_BYTES_MAX {
        TOO_LARGE
    } else if state.accept(operation, bytes) {
        ACCEPTED
    } else {
        NOT_ACCEPTED
    })
}

/// The operation that the prelude describes; `None` if its link leaves the container.
fn operation(links: &Links, fields: &Object<'_>) -> rquickjs::Result<Option<Operation>> {
    let link = text(fields, "link")?;
    let container = || is_container(links, &link).then_some(());
    let document = || document_link(links, &link);
    let json = || text(fields, "text").map(Bytes::from);
    let index_action = || index_action(fields);
    let etag = || optional_text(fields, "etag");
    let wants_document = fields.get::<_, bool>("wantsDocument")?;
    let kind: i32 = fields.get("kind")?;
    Ok(match kind {
        0 if container().is_some() => {
            Some(Operation::Create { document: json()?, index_action: index_action()?, wants_document })
        }
        1 if container().is_some() => Some(Operation::Upsert {
            document: json()?,
            index_action: index_action()?,
            if_match: etag()?,
            wants_document,
        }),
        2 => match document() {
            Some(document) => Some(Operation::Read { document, if_none_match: etag()? }),
            None => None,
        },
        3 => match document() {
            Some(document) => Some(Operation::Replace {
                document,
                content: json()?,
                index_action: index_action()?,
                if_match: etag()?,
                wants_document,
            }),
            None => None,
        },
        4 => match document() {
            Some(document) => Some(Operation::Delete { document, if_match: etag()? }),
            None => None,
        },
        5 => match document() {
            Some(document) => {
                Some(Operation::Patch { document, changes: json()?, if_match: etag()?, wants_document })
            }
            None => None,
        },
        6 if container().is_some() => Some(Operation::Query {
            text: text(fields, "text")?,
            parameters: optional_text(fields, "parameters")?.unwrap_or_default().into(),
            page: page(fields)?,
            enable_scan: fields.get("enableScan")?,
        }),
        7 if container().is_some() => Some(Operation::ReadAll { page: page(fields)? }),
        _ => None,
    })
}

fn text(fields: &Object<'_>, name: &str) -> rquickjs::Result<String> {
    Ok(fields.get::<_, Text>(name)?.0)
}

fn optional_text(fields: &Object<'_>, name: &str) -> rquickjs::Result<Option<String>> {
    Ok(fields.get::<_, Option<Text>>(name)?.map(|text| text.0))
}

fn index_action(fields: &Object<'_>) -> rquickjs::Result<IndexAction> {
    Ok(match fields.get::<_, i32>("indexAction")? {
        1 => IndexAction::Include,
        2 => IndexAction::Exclude,
        _ => IndexAction::Default,
    })
}

fn page(fields: &Object<'_>) -> rquickjs::Result<PageOptions> {
    let size: Option<f64> = fields.get("pageSize")?;
    #[expect(clippy::cast_possible_truncation, reason = "the prelude passes integers; larger ones saturate")]
    let size = size.map(|size| size as i64);
    Ok(PageOptions { size, continuation: optional_text(fields, "continuation")? })
}

fn is_container(links: &Links, link: &str) -> bool {
    let link = bare(link);
    [&links.self_link, &links.alt_link].iter().any(|own| bare(own) == link)
}

/// The document of a link below either link of the container.
fn document_link(links: &Links, link: &str) -> Option<DocumentLink> {
    let link = bare(link);
    let below = |own: &str| {
        let rest = link.strip_prefix(bare(own))?.strip_prefix("/docs/")?;
        (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
    };
    match below(&links.self_link) {
        Some(rid) => Some(DocumentLink::Rid(rid)),
        None => below(&links.alt_link).map(DocumentLink::Id),
    }
}

/// A link without slashes around it.
fn bare(link: &str) -> &str {
    link.trim_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> Links {
        Links { self_link: "a/RID=/b/RID2=/".to_owned(), alt_link: "a/name/b/other".to_owned() }
    }

    #[test]
    fn links_stay_in_the_container() {
        let links = links();
        for link in ["a/RID=/b/RID2=/", "a/RID=/b/RID2=", "/a/name/b/other/"] {
            assert!(is_container(&links, link), "{link}");
        }
        for link in ["", "a/name/b/others", "a/name/b", "a/NAME/b/other"] {
            assert!(!is_container(&links, link), "{link}");
        }
        let id = |text: &str| Some(DocumentLink::Id(text.to_owned()));
        assert_eq!(document_link(&links, "a/name/b/other/docs/1"), id("1"));
        assert_eq!(document_link(&links, "a/name/b/other/docs/ä b/"), id("ä b"));
        assert_eq!(
            document_link(&links, "a/RID=/b/RID2=/docs/RID3==/"),
            Some(DocumentLink::Rid("RID3==".to_owned()))
        );
        for link in
            ["a/name/b/other", "a/name/b/other/docs/", "a/name/b/others/docs/1", "a/name/b/other/docs/1/x"]
        {
            assert_eq!(document_link(&links, link), None, "{link}");
        }
    }

    #[test]
    fn random_ids_are_version_4() {
        assert_eq!(guid(0, 0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(guid(u64::MAX, u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert!(unit(u64::MAX) < 1.0);
        assert!(unit(0) >= 0.0);
    }
}
