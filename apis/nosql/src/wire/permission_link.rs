//! The link in a permission: the resource that it applies to.
//!
//! Clients write links as parts of a URL, by names or RIDs, with or without slashes around them.

use super::{key_header, links, percent};
use crate::faults::{NosqlFault, WireFault};
use engine::{PermissionPart, PermissionResource, WantedPermission};
use model::limits::KEY_PATHS_MAX;
use model::{PermissionDefinition, Rid, ScriptKind};
use std::borrow::Cow;

/// The decoded segments of the link in `definition`.
pub(crate) fn segments(definition: &PermissionDefinition) -> Result<Vec<Cow<'_, str>>, NosqlFault> {
    let link = definition.resource.as_str();
    let segments: Option<Vec<_>> = link.trim_matches('/').split('/').map(percent::decoded).collect();
    let segments = segments.ok_or_else(|| bad("its percent-encoding is broken"))?;
    if link.ends_with('/') && names_document(&segments) {
        return Err(bad("a slash that belongs to the id of an item must be percent-encoded"));
    }
    Ok(segments)
}

/// Whether this is the link of an item by its id, which may end with a slash. Links by RID end with one as clients know
/// them.
fn names_document(segments: &[Cow<'_, str>]) -> bool {
    let is_document = segments.get(4).is_some_and(|kind| kind == "docs");
    is_document && segments.last().is_some_and(|id| Rid::parse(id).is_none())
}

/// The requested grant of `definition`, with the `segments` of its link.
pub(crate) fn wanted<'a>(
    definition: &PermissionDefinition,
    segments: &'a [Cow<'a, str>],
) -> Result<WantedPermission<'a>, NosqlFault> {
    let key = definition.key.as_deref();
    let key = key.map(|text| key_header::components(text, KEY_PATHS_MAX)).transpose()?;
    Ok(WantedPermission { definition: definition.clone(), resource: resource(segments)?, key })
}

fn resource<'a>(segments: &'a [Cow<'a, str>]) -> Result<PermissionResource<'a>, NosqlFault> {
    let names: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    match names[..] {
        ["dbs", database, "colls", container] => {
            Ok(PermissionResource { database, container, part: PermissionPart::Whole })
        }
        ["dbs", database, "colls", container, kind, id] => {
            let part =
                part(kind, id).ok_or_else(|| bad("its last part names nothing that can be granted"))?;
            Ok(PermissionResource { database, container, part })
        }
        ["dbs", _, "colls", _, "docs", _, "attachments", ..] => {
            Err(WireFault::NotSupported { feature: "a permission for an attachment".to_owned() }.into())
        }
        _ => Err(bad("it must be the link of a container, an item or a script")),
    }
}

fn part<'a>(kind: &str, id: &'a str) -> Option<PermissionPart<'a>> {
    if id.is_empty() {
        return None;
    }
    if kind == "docs" {
        return Some(PermissionPart::Document(id));
    }
    let kind = ScriptKind::ALL.into_iter().find(|script| links::script_segment(*script) == kind)?;
    Some(PermissionPart::Script(kind, id))
}

fn bad(reason: &str) -> NosqlFault {
    WireFault::Definition { field: "resource".to_owned(), reason: reason.to_owned() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(link: &str) -> String {
        let definition = PermissionDefinition::new("p", model::PermissionMode::All, link, None).unwrap();
        let segments = match segments(&definition) {
            Ok(segments) => segments,
            Err(fault) => return fault.to_string(),
        };
        match wanted(&definition, &segments) {
            Ok(WantedPermission { resource: PermissionResource { database, container, part }, .. }) => {
                format!("{database}|{container}|{part:?}")
            }
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn a_link_names_a_container_an_item_or_a_script() {
        assert_eq!(shown("dbs/d/colls/c"), "d|c|Whole");
        assert_eq!(shown("/dbs/a%20b/colls/c/"), "a b|c|Whole");
        assert_eq!(shown("dbs/d/colls/c/docs/i%2F1"), "d|c|Document(\"i/1\")");
        let rid = "dbs/AQAAAA==/colls/AQAAAJ0fgTc=/docs/AQAAAJ0fgTcBAAAAAAAAAA==/";
        assert!(shown(rid).ends_with("Document(\"AQAAAJ0fgTcBAAAAAAAAAA==\")"), "{}", shown(rid));
        assert_eq!(shown("dbs/d/colls/c/sprocs/s"), "d|c|Script(StoredProcedure, \"s\")");
        assert_eq!(shown("dbs/d/colls/c/udfs/f"), "d|c|Script(UserDefinedFunction, \"f\")");
    }

    #[test]
    fn other_links_are_refused() {
        for (link, reason) in [
            ("dbs/%zz", "its percent-encoding is broken"),
            ("", "it must be the link of a container, an item or a script"),
            ("dbs/d/colls/c/docs/i/", "a slash that belongs to the id of an item must be percent-encoded"),
            ("dbs/d", "it must be the link of a container, an item or a script"),
            ("dbs/d/users/u", "it must be the link of a container, an item or a script"),
            ("dbs/d/colls/c/pkranges/0", "its last part names nothing that can be granted"),
            ("dbs/d/colls/c/docs/i/attachments/a", "a permission for an attachment is not supported"),
        ] {
            assert!(shown(link).ends_with(reason), "{link}: {}", shown(link));
        }
    }
}
