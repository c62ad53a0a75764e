//! `GET /dbs/{database}`

use super::Call;
use crate::faults::Refusal;
use crate::wire::reply::Reply;
use crate::wire::resources;
use engine::{Action, Resource};

pub(super) fn perform(call: &Call<'_>, database: &str) -> Result<Reply, Refusal> {
    let database = call.database(database, Action::ReadMetadata)?;
    call.authorise(Action::ReadMetadata, Resource::Database(&database))?;
    Ok(call.read_reply(&resources::database(&database), database.etag())?)
}
