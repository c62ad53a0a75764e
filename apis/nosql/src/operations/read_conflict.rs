//! `GET …/conflicts/{id}`: no conflict ever exists.

use super::Call;
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use engine::{Action, Reach, Resource};
use model::MissingFault;

pub(super) fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::ReadConflicts)?.resource;
    call.authorise(Action::ReadConflicts, Resource::Container(&container, Reach::Whole))?;
    Err(MissingFault::Resource.into())
}
