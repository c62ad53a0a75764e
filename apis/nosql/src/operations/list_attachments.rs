//! `GET …/docs/{id}/attachments`: always empty. Items carry the link, and old clients follow it.

use super::Call;
use super::document::{required_key, target};
use crate::faults::Refusal;
use crate::route::DocumentPath;
use crate::wire::reply::Reply;
use crate::wire::resources;
use engine::{Action, DocumentAddress, ReadOptions};
use http::StatusCode;
use model::Rid;
use plan::Outcome;

pub(super) async fn perform(call: &Call<'_>, path: DocumentPath<'_>) -> Result<Reply, Refusal> {
    let owner = call.owner(path.container, Action::ReadDocument)?;
    let container = &owner.resource;
    let address =
        DocumentAddress { key: required_key(call, container)?, target: target(&owner, path.document) };
    let pass = call.engine.access().read_document(&call.principal, container, address)?;
    let receipt = call.engine.read(pass, &ReadOptions::default()).await?;
    let rid = match &receipt.outcome {
        Outcome::Read(stored) | Outcome::Created(stored) | Outcome::Replaced(stored) => {
            Rid::Document(container.database().number(), container.number(), stored.number).to_string()
        }
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => String::new(),
    };
    let mut reply =
        Reply::json(StatusCode::OK, receipt.charge, resources::feed(&rid, "Attachments", Vec::new()));
    reply.session(container, receipt.session);
    Ok(reply)
}
