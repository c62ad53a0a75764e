//! Values to text and back.

use value::{Value, ValueRef};

use super::Call;
use super::strings::text_of;
use crate::budget::Scale;
use crate::expression::{Outcome, defined};
use crate::operators::{Class, class};

/// A string as it is; of anything else the compact JSON text.
///
/// Decided here: numbers print as in JSON (a whole double without its point), infinities and NaN by their names. The
/// service prints large exponents in a form of its own, which is not copied.
pub(super) fn to_string(call: Call<'_>) -> Outcome<'_> {
    let value = defined!(call.value(0));
    if let Some(number) = crate::number::Number::of(value.as_ref()) {
        return text_of(number_text(&number.into_value()));
    }
    match class(value.kind()) {
        Class::String => Ok(Some(value)),
        Class::Null | Class::Bool | Class::Number | Class::Array | Class::Object | Class::Foreign(_) => {
            let mut scale = Scale::default();
            scale.add_value(value.as_ref())?;
            text_of(json_text(value.as_ref()).trim_matches('"').to_owned())
        }
    }
}

/// JSON names what it has no number for in quotes; here they are text anyway.
fn number_text(number: &Value) -> String {
    number.to_json().trim_matches('"').to_owned()
}

fn json_text(value: ValueRef<'_>) -> String {
    let mut text = Vec::new();
    value.write_json(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The value that a JSON text of the wanted class stands for; blanks around it do not matter.
pub(super) fn parse(call: Call<'_>, wanted: Class) -> Outcome<'_> {
    let text = defined!(call.text(0));
    let parsed = Value::from_json(text.as_bytes()).ok().filter(|value| class(value.kind()) == wanted);
    Ok(parsed.map(Into::into))
}
