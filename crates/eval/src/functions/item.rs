//! Properties of the document of a row.

use value::Value;

use super::Call;
use crate::expression::{EvalResult, defined};

/// The number of the document; its argument only selects the source, and must be an object.
pub(super) fn document_id(call: Call<'_>) -> EvalResult<'_> {
    let item = defined!(call.value(0));
    if item.kind() != value::Kind::Object {
        return Ok(None);
    }
    let number = call.frame.row.document_number.and_then(|number| i64::try_from(number).ok());
    Ok(number.map(|number| Value::Int64(number).into()))
}
