//! A store that has lost its last writes: an older copy that is used again, or one whose journal was cut.
//!
//! Clients remember what they have seen of the lost writes: session tokens, ETags, positions in the change feed, resource
//! ids, ids of ranges. If LSNs and numbers were assigned again from where the copy ends, a position of the lost part would
//! skip the changes that follow, an old ETag could match another version, and an id of a range that was split in the lost
//! part could be that of another one. So the store continues far after its end.

use crate::catalog::skip_numbers;
use kv::Store;
use model::Fault;

/// Lets a store that nobody has open continue far after its last write. May be repeated.
pub async fn skip_ahead(store: &Store) -> Result<(), Fault> {
    let skipped = partition::skip_ahead(store).await?;
    skip_numbers(store, skipped).await
}
