//! `GET …/conflicts`: always empty. A store with one writer for each partition has no conflicting versions.

use super::{Call, page_reply};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use engine::{Action, Page, Place, Reach};
use model::RequestFault;
use serde_json::Value as Json;

pub(super) fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let request = call.page_request()?;
    let container = call.owner(path, Action::ReadConflicts)?.resource;
    call.read_catalog(Action::ReadConflicts, Place::Container(&container, Reach::Whole))?;
    if request.continuation.is_some() {
        return Err(RequestFault::BadContinuation { reason: "this list never had a second page" }.into());
    }
    let page: Page<Json> = Page { items: Vec::new(), continuation: None };
    Ok(page_reply(container.rid().text().as_str(), "Conflicts", page, Json::clone))
}
