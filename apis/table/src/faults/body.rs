//! Bodies of refusals: JSON, or XML where the client reads that.

use super::Code;
use crate::wire::xml;
use value::write_json_string;

/// The form of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    Json,
    Xml,
}

/// Most bytes of a message: it may quote what the client sent.
const MESSAGE_BYTES_MAX: usize = 2048;

/// The body of a refusal. `trailer` has request id and time.
pub(crate) fn error_body(form: ErrorForm, code: Code, message: &str, trailer: &str) -> Vec<u8> {
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX.min(message.len()));
    let text = format!("{}\n{trailer}", message.get(..end).unwrap_or_default());
    match form {
        ErrorForm::Json => {
            let mut body = br#"{"odata.error":{"code":""#.to_vec();
            body.extend_from_slice(code.text().as_bytes());
            body.extend_from_slice(br#"","message":{"lang":"en-US","value":"#);
            write_json_string(&text, &mut body);
            body.extend_from_slice(b"}}}");
            body
        }
        ErrorForm::Xml => {
            let mut body = xml::DECLARATION.to_owned();
            body.push_str(
                r#"<error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><code>"#,
            );
            body.push_str(code.text());
            body.push_str(r#"</code><message xml:lang="en-US">"#);
            xml::push_text(&text, &mut body);
            body.push_str("</message></error>");
            body.into_bytes()
        }
    }
}
