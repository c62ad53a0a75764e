//! Stored access policies of a table: their XML, and where they are stored.

use crate::edm::parse_date_time;
use crate::faults::{Code, TableFault, request};
use crate::wire::xml;
use engine::{CatalogPass, Container, Engine};

/// The annotation of a table with its policies.
pub(crate) const ANNOTATION: &str = "table-acl";

/// Most policies of a table.
pub(crate) const POLICIES_MAX: usize = 5;
/// Longest id of a policy in characters.
pub(crate) const POLICY_ID_CHARS_MAX: usize = 64;

/// A stored policy with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedIdentifier {
    pub(crate) id: String,
    pub(crate) policy: AccessPolicy,
}

/// What a policy says; empty texts say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessPolicy {
    pub(crate) start: String,
    pub(crate) expiry: String,
    pub(crate) permission: String,
}

/// The policies of a table.
pub(crate) fn stored(engine: &Engine, pass: &CatalogPass<&Container>) -> Vec<SignedIdentifier> {
    let annotation = engine.container_annotation(pass, ANNOTATION);
    annotation.and_then(|annotation| read(&annotation.definition().text).ok()).unwrap_or_default()
}

/// Reads the body of a request.
pub(crate) fn read(text: &str) -> Result<Vec<SignedIdentifier>, TableFault> {
    let invalid =
        |reason: &str| request(Code::InvalidXmlDocument, format!("XML specified is not valid: {reason}."));
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let root = xml::parse(text).filter(|root| root.name == "SignedIdentifiers");
    let root = root.ok_or_else(|| invalid("the document has no SignedIdentifiers"))?;
    if root.children.len() > POLICIES_MAX {
        return Err(invalid("a table has at most five stored access policies"));
    }
    let mut policies: Vec<SignedIdentifier> = Vec::new();
    for element in &root.children {
        let id = element.child_text("Id").filter(|_| element.name == "SignedIdentifier");
        let id = id.filter(|id| !id.is_empty() && id.chars().count() <= POLICY_ID_CHARS_MAX);
        let id = id.ok_or_else(|| invalid("a SignedIdentifier has an Id of at most 64 characters"))?;
        if policies.iter().any(|policy| policy.id == id) {
            return Err(invalid("an Id occurs twice"));
        }
        let field = |name| {
            let policy = element.child("AccessPolicy");
            policy.and_then(|policy| policy.child_text(name)).unwrap_or_default().to_owned()
        };
        let policy =
            AccessPolicy { start: field("Start"), expiry: field("Expiry"), permission: field("Permission") };
        for time in [&policy.start, &policy.expiry] {
            if !time.is_empty() && parse_date_time(time).is_none() {
                return Err(invalid("Start and Expiry are times"));
            }
        }
        if !policy.permission.chars().all(|permission| "raud".contains(permission)) {
            return Err(invalid("Permission has the letters r, a, u and d"));
        }
        policies.push(SignedIdentifier { id: id.to_owned(), policy });
    }
    Ok(policies)
}

/// The XML of policies.
pub(crate) fn write(policies: &[SignedIdentifier]) -> String {
    let mut text = format!("{}<SignedIdentifiers>", xml::DECLARATION);
    for SignedIdentifier { id, policy } in policies {
        text.push_str("<SignedIdentifier>");
        xml::push_element("Id", id, &mut text);
        text.push_str("<AccessPolicy>");
        for (name, value) in
            [("Start", &policy.start), ("Expiry", &policy.expiry), ("Permission", &policy.permission)]
        {
            if !value.is_empty() {
                xml::push_element(name, value, &mut text);
            }
        }
        text.push_str("</AccessPolicy></SignedIdentifier>");
    }
    text.push_str("</SignedIdentifiers>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(count: usize, id: &str, policy: &str) -> String {
        let one = |index: usize| {
            format!(
                "<SignedIdentifier><Id>{id}{index}</Id><AccessPolicy>{policy}</AccessPolicy></SignedIdentifier>"
            )
        };
        format!("<SignedIdentifiers>{}</SignedIdentifiers>", (0..count).map(one).collect::<String>())
    }

    #[test]
    fn policies_are_read_back() {
        let policy =
            "<Start>2024-01-01T00:00:00Z</Start><Expiry>2030-01-01</Expiry><Permission>raud</Permission>";
        let policies = read(&document(5, "&lt;p", policy)).unwrap();
        assert_eq!((policies.len(), policies[0].id.as_str()), (5, "<p0"));
        assert_eq!(read(&write(&policies)).unwrap(), policies);
        assert_eq!(read("").unwrap(), []);
        assert_eq!(read(&document(1, "a", "")).unwrap()[0].policy, AccessPolicy::default());
    }

    #[test]
    fn bad_policies_are_refused() {
        assert!(read(&document(6, "a", "")).is_err());
        assert!(
            read(&document(1, &"x".repeat(63), "")).is_ok()
                && read(&document(1, &"x".repeat(64), "")).is_err()
        );
        for policy in ["<Start>x</Start>", "<Expiry>1</Expiry>", "<Permission>rx</Permission>"] {
            assert!(read(&document(1, "a", policy)).is_err(), "{policy}");
        }
        for text in ["<a/>", "x", "<SignedIdentifiers><x/></SignedIdentifiers>"] {
            assert!(read(text).is_err(), "{text}");
        }
        let one = "<SignedIdentifier><Id>a</Id></SignedIdentifier>";
        assert!(read(&format!("<SignedIdentifiers>{one}{one}</SignedIdentifiers>")).is_err());
    }
}
