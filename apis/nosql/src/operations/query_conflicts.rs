//! `POST …/conflicts`: a query over them. Clients cannot create conflicts.

use super::{Call, list_conflicts, not_supported};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use engine::{Action, Reach, Resource};

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::ReadConflicts)?.resource;
    call.authorise(Action::ReadConflicts, Resource::Container(&container, Reach::Whole))?;
    if !call.is_query()? {
        return Err(not_supported("a POST to conflicts that is no query").into());
    }
    list_conflicts::perform(call, path).await
}
