//! Conversion between values and text.

use value::{Value, ValueRef};

use super::Call;
use super::strings::text_of;
use crate::budget::WeightSum;
use crate::expression::{EvalResult, defined};
use crate::number::double_value;
use crate::operators::{Class, class};

/// A string unchanged; the compact JSON text of anything else.
///
/// Own decision: numbers print as in JSON (a whole double without its point), infinities and NaN by their names. The
/// service's own form of large exponents is not copied.
pub(super) fn to_string(call: Call<'_>) -> EvalResult<'_> {
    let value = defined!(call.value(0));
    if let Some(number) = crate::number::Number::of(value.as_ref()) {
        return text_of(number_text(&number.into_value()));
    }
    match class(value.kind()) {
        Class::String => Ok(Some(value)),
        Class::Null | Class::Bool | Class::Number | Class::Array | Class::Object | Class::Foreign(_) => {
            let mut scale = WeightSum::default();
            scale.add_value(value.as_ref())?;
            text_of(json_text(value.as_ref()).trim_matches('"').to_owned())
        }
    }
}

/// JSON writes infinities and NaN in quotes; here they are text without quotes.
fn number_text(number: &Value) -> String {
    number.to_json().trim_matches('"').to_owned()
}

fn json_text(value: ValueRef<'_>) -> String {
    let mut text = Vec::new();
    value.write_json(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Parses a JSON text of the wanted class; surrounding white space is ignored.
pub(super) fn parse(call: Call<'_>, wanted: Class) -> EvalResult<'_> {
    let text = defined!(call.text(0));
    let parsed = Value::from_json(text.as_bytes()).ok().filter(|value| class(value.kind()) == wanted);
    let parsed =
        parsed.map(|value| if let Value::Double(double) = value { double_value(double) } else { value });
    Ok(parsed.map(Into::into))
}
