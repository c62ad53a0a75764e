//! `GET …/docs/{id}`: the hot path of most applications.

use super::Call;
use super::document::{item_reply, required_key, target};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, DocumentAddress, ReadOptions};
use http::StatusCode;
use plan::Outcome;

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container, Action::ReadDocument)?;
    let container = &owner.resource;
    let key = required_key(call, container)?;
    let address = DocumentAddress { key, target: target(&owner, path.document) };
    let pass = call.engine.access().read_document(&call.principal, container, address)?;
    let options = ReadOptions {
        condition: headers::read_condition(call.headers())?,
        session: headers::session(call.headers())?,
    };
    let receipt = call.engine.read(pass, &options).await?;
    let mut reply = match &receipt.outcome {
        Outcome::NotModified(etag) => {
            let mut reply = Reply::empty(StatusCode::NOT_MODIFIED, receipt.charge);
            reply.etag(*etag);
            reply
        }
        Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => {
            item_reply(container, StatusCode::OK, stored, receipt.charge)
        }
        Outcome::Deleted | Outcome::Nothing => Reply::empty(StatusCode::NO_CONTENT, receipt.charge),
    };
    reply.session(container, receipt.session);
    call.add_location(&mut reply);
    Ok(reply)
}
