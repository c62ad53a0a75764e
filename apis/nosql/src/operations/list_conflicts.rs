//! `GET …/conflicts`, or a query over them: always empty. With one writer per partition there are no conflicting
//! versions.

use super::Call;
use super::asked::List;
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use engine::{Action, ListPage, Reach, Resource};
use model::{ContinuationFault, RequestFault};
use serde_json::Value as Json;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let asked = call.asked().await?;
    let container = call.owner(path, Action::ReadConflicts)?.resource;
    call.authorise(Action::ReadConflicts, Resource::Container(&container, Reach::Whole))?;
    if asked.page().continuation.is_some() {
        return Err(RequestFault::BadContinuation(ContinuationFault::OnePage).into());
    }
    let page: ListPage<Json> = ListPage { items: Vec::new(), continuation: None };
    let rid = container.rid().text();
    let list = List { parent_rid: rid.as_str(), envelope: "Conflicts" };
    asked.answer(call, list, page, Json::clone).await
}
