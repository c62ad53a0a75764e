//! Service properties: logging and metrics, which are stored and returned, and CORS rules, which are followed.

use crate::faults::{Code, TableFault, request};
use crate::wire::xml::{self, Element};

/// The annotation of the database with all properties but the CORS rules.
pub(crate) const ANNOTATION: &str = "table-service-properties";
/// The annotation of the database with the CORS rules. Browsers ask for them without a credential.
pub(crate) const CORS_ANNOTATION: &str = "public.table-cors";

/// Most CORS rules.
pub(crate) const CORS_RULES_MAX: usize = 5;
/// Longest list of a CORS rule in bytes.
pub(crate) const CORS_LIST_BYTES_MAX: usize = 2048;
/// Most days that logs and metrics are kept.
const RETENTION_DAYS_MAX: u32 = 365;

/// The sections besides the CORS rules, in the order in which they are written, with the fields of each.
const SECTIONS: [(&str, &[(&str, Kind)]); 3] = [
    (
        "Logging",
        &[
            ("Version", Kind::Text),
            ("Delete", Kind::Flag),
            ("Read", Kind::Flag),
            ("Write", Kind::Flag),
            ("RetentionPolicy", Kind::Retention),
        ],
    ),
    ("HourMetrics", METRICS),
    ("MinuteMetrics", METRICS),
];
const METRICS: &[(&str, Kind)] = &[
    ("Version", Kind::Text),
    ("Enabled", Kind::Flag),
    ("IncludeAPIs", Kind::OptionalFlag),
    ("RetentionPolicy", Kind::Retention),
];

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Flag,
    OptionalFlag,
    Retention,
}

/// A CORS rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CorsRule {
    pub(crate) origins: String,
    pub(crate) methods: String,
    pub(crate) allowed_headers: String,
    pub(crate) exposed_headers: String,
    pub(crate) max_age_seconds: u32,
}

/// A change: sections that are absent stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    sections: [Option<String>; 3],
    pub(crate) cors: Option<Vec<CorsRule>>,
}

fn invalid(reason: &str) -> TableFault {
    request(Code::InvalidXmlDocument, format!("XML specified is not valid: {reason}."))
}

/// Reads the body of a request.
pub(crate) fn read(text: &str) -> Result<Change, TableFault> {
    let root = xml::parse(text).filter(|root| root.name == "StorageServiceProperties");
    let root = root.ok_or_else(|| invalid("the document has no StorageServiceProperties"))?;
    let mut change = Change::default();
    for element in &root.children {
        if element.name == "Cors" {
            change.cors = Some(cors_rules(element)?);
            continue;
        }
        let place = SECTIONS.iter().position(|(name, _)| *name == element.name);
        let place = place.ok_or_else(|| invalid("a section is unknown"))?;
        change.sections[place] = Some(section(element, SECTIONS[place].1)?);
    }
    Ok(change)
}

impl Change {
    /// The text of the annotation after the change of a stored one.
    pub(crate) fn applied(&self, stored: Option<&str>) -> String {
        let stored = stored.and_then(|text| read(text).ok()).unwrap_or_default();
        let mut text = String::from("<StorageServiceProperties>");
        for (new, old) in self.sections.iter().zip(&stored.sections) {
            text.push_str(new.as_ref().or(old.as_ref()).map_or("", String::as_str));
        }
        text.push_str("</StorageServiceProperties>");
        text
    }
}

/// The XML of the properties, with the defaults of sections that were never set.
pub(crate) fn write(stored: Option<&str>, cors: &[CorsRule]) -> String {
    let stored = stored.and_then(|text| read(text).ok()).unwrap_or_default();
    let mut text = format!("{}<StorageServiceProperties>", xml::DECLARATION);
    for (index, section) in stored.sections.iter().enumerate() {
        text.push_str(section.as_deref().unwrap_or(match index {
            0 => {
                "<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>\
                 <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
            }
            1 => {
                "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>\
                 <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>"
            }
            _ => {
                "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>\
                 <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>"
            }
        }));
    }
    push_cors(cors, &mut text);
    text.push_str("</StorageServiceProperties>");
    text
}

/// The text of the annotation with CORS rules.
pub(crate) fn write_cors(rules: &[CorsRule]) -> String {
    let mut text = String::from("<StorageServiceProperties>");
    push_cors(rules, &mut text);
    text.push_str("</StorageServiceProperties>");
    text
}

/// The rules in the text of an annotation.
pub(crate) fn read_cors(text: &str) -> Vec<CorsRule> {
    read(text).ok().and_then(|change| change.cors).unwrap_or_default()
}

fn push_cors(rules: &[CorsRule], text: &mut String) {
    text.push_str("<Cors>");
    for rule in rules {
        text.push_str("<CorsRule>");
        xml::push_element("AllowedOrigins", &rule.origins, text);
        xml::push_element("AllowedMethods", &rule.methods, text);
        xml::push_element("MaxAgeInSeconds", &rule.max_age_seconds.to_string(), text);
        xml::push_element("ExposedHeaders", &rule.exposed_headers, text);
        xml::push_element("AllowedHeaders", &rule.allowed_headers, text);
        text.push_str("</CorsRule>");
    }
    text.push_str("</Cors>");
}

fn section(element: &Element, fields: &[(&str, Kind)]) -> Result<String, TableFault> {
    let mut text = format!("<{}>", element.name);
    if element.children.iter().any(|child| fields.iter().all(|(name, _)| *name != child.name)) {
        return Err(invalid("a field is unknown"));
    }
    for (name, kind) in fields {
        let value = element.child_text(name);
        match (kind, value) {
            (Kind::Text, Some(value)) if !value.is_empty() && value.len() <= 16 => {
                xml::push_element(name, value, &mut text);
            }
            (Kind::Flag | Kind::OptionalFlag, Some(value)) => {
                xml::push_element(name, flag(value)?, &mut text)
            }
            (Kind::OptionalFlag, None) => {}
            (Kind::Retention, Some(_)) => retention(element.child(name), &mut text)?,
            (Kind::Text | Kind::Flag | Kind::Retention, _) => {
                return Err(invalid("a required field is missing"));
            }
        }
    }
    text.push_str(&format!("</{}>", element.name));
    Ok(text)
}

fn flag(value: &str) -> Result<&'static str, TableFault> {
    match value {
        "true" | "True" | "1" => Ok("true"),
        "false" | "False" | "0" => Ok("false"),
        _ => Err(invalid("a field must be true or false")),
    }
}

fn retention(element: Option<&Element>, text: &mut String) -> Result<(), TableFault> {
    let element = element.ok_or_else(|| invalid("a required field is missing"))?;
    let enabled = flag(element.child_text("Enabled").unwrap_or_default())?;
    text.push_str("<RetentionPolicy>");
    xml::push_element("Enabled", enabled, text);
    let days = element.child_text("Days");
    let days =
        days.map(|days| days.parse::<u32>().ok().filter(|days| (1..=RETENTION_DAYS_MAX).contains(days)));
    match (enabled, days) {
        ("true", Some(Some(days))) => xml::push_element("Days", &days.to_string(), text),
        ("true", _) | (_, Some(None)) => return Err(invalid("Days is a number from 1 to 365")),
        (_, _) => {}
    }
    text.push_str("</RetentionPolicy>");
    Ok(())
}

fn cors_rules(element: &Element) -> Result<Vec<CorsRule>, TableFault> {
    if element.children.len() > CORS_RULES_MAX {
        return Err(invalid("there are at most five CORS rules"));
    }
    element.children.iter().map(cors_rule).collect()
}

fn cors_rule(element: &Element) -> Result<CorsRule, TableFault> {
    let list = |name| {
        let value = element.child_text(name).unwrap_or_default();
        match value.len() <= CORS_LIST_BYTES_MAX
            && value.chars().all(|character| (' '..='~').contains(&character))
        {
            true => Ok(value.to_owned()),
            false => Err(invalid("a list of a CORS rule is too long or has invalid characters")),
        }
    };
    let max_age = element.child_text("MaxAgeInSeconds").unwrap_or("0").parse().ok();
    let rule = CorsRule {
        origins: list("AllowedOrigins")?,
        methods: list("AllowedMethods")?,
        allowed_headers: list("AllowedHeaders")?,
        exposed_headers: list("ExposedHeaders")?,
        max_age_seconds: max_age.ok_or_else(|| invalid("MaxAgeInSeconds is a number of seconds"))?,
    };
    let is_method = |method: &str| {
        matches!(method.trim(), "DELETE" | "GET" | "HEAD" | "MERGE" | "PATCH" | "POST" | "OPTIONS" | "PUT")
    };
    if element.name != "CorsRule" || rule.origins.is_empty() || !rule.methods.split(',').all(is_method) {
        return Err(invalid("a CORS rule has origins and methods"));
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "<CorsRule><AllowedOrigins>http://a,http://b</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
                        <MaxAgeInSeconds>60</MaxAgeInSeconds><ExposedHeaders>x-*</ExposedHeaders>\
                        <AllowedHeaders>*</AllowedHeaders></CorsRule>";
    const LOGGING: &str = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>\
                           <RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>";

    fn document(inner: &str) -> String {
        format!("<StorageServiceProperties>{inner}</StorageServiceProperties>")
    }

    #[test]
    fn sections_that_are_absent_stay() {
        let first = read(&document(LOGGING)).unwrap().applied(None);
        let second = read(&document(&format!("<Cors>{RULE}</Cors>"))).unwrap();
        assert_eq!(second.cors.as_ref().map(Vec::len), Some(1));
        let text = second.applied(Some(&first));
        assert!(text.contains(LOGGING));
        let shown = write(Some(&text), &second.cors.clone().unwrap());
        assert!(shown.contains(LOGGING) && shown.contains("<HourMetrics>") && shown.contains("http://b"));
        assert_eq!(read_cors(&write_cors(&second.cors.clone().unwrap())), second.cors.unwrap());
    }

    #[test]
    fn bad_properties_are_refused() {
        assert!(read(&document(&format!("<Cors>{}</Cors>", RULE.repeat(5)))).is_ok());
        for inner in [
            format!("<Cors>{}</Cors>", RULE.repeat(6)),
            "<Cors><CorsRule/></Cors>".to_owned(),
            format!("<Cors>{}</Cors>", RULE.replace("GET", "BREW")),
            format!("<Cors>{}</Cors>", RULE.replace("60", "x")),
            "<Other/>".to_owned(),
            "<Logging/>".to_owned(),
            LOGGING.replace("true", "yes"),
            LOGGING.replace(">7<", ">0<"),
            LOGGING.replace(">7<", ">366<"),
            LOGGING.replace("<Days>7</Days>", ""),
            LOGGING.replace("Version", "Versions"),
        ] {
            assert!(read(&document(&inner)).is_err(), "{inner}");
        }
        assert!(read("<x/>").is_err() && read("").is_err());
        let origins = |bytes: usize| {
            let origins = format!(
                "<AllowedOrigins>{}</AllowedOrigins><AllowedMethods>GET</AllowedMethods>",
                "x".repeat(bytes)
            );
            read(&document(&format!("<Cors><CorsRule>{origins}</CorsRule></Cors>")))
        };
        assert!(origins(2048).is_ok() && origins(2049).is_err());
    }
}
