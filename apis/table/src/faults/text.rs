//! Texts of faults of the core in the words of this API: tables, entities and PartitionKeys.

use model::{AccessFault, ConflictFault, Fault, LimitFault, RequestFault, ScopeName, StorageFault};

/// The text of a fault.
pub(super) fn of_core(fault: &Fault) -> String {
    match fault {
        Fault::Request(fault) => request(fault),
        Fault::Access(fault) => access(fault),
        Fault::Conflict(fault) => conflict(fault),
        Fault::Limit(fault) => limit(fault),
        // The cause is in the log: it names parts of the server that a client does not know.
        Fault::Storage(StorageFault::Unavailable { .. }) => "the store is not available".to_owned(),
        Fault::Missing(_)
        | Fault::Precondition(_)
        | Fault::Query(_)
        | Fault::Storage(
            StorageFault::Full { .. } | StorageFault::Uncertain { .. } | StorageFault::Damaged { .. },
        )
        | Fault::Internal(_) => fault.to_string(),
    }
}

fn request(fault: &RequestFault) -> String {
    match fault {
        RequestFault::PartitionKeyTooLong { bytes, limit } => {
            format!("a PartitionKey of {bytes} bytes exceeds the limit of {limit}")
        }
        RequestFault::PartitionKeyMismatch | RequestFault::OutsideTransaction { .. } => {
            "the PartitionKey of the entity is not the one that the request names".to_owned()
        }
        RequestFault::ImmutableProperty { property } => {
            format!("the property \"{property}\" of a stored entity cannot be changed")
        }
        RequestFault::BadProperty { .. }
        | RequestFault::BadName { .. }
        | RequestFault::BadDefinition { .. }
        | RequestFault::ManualThroughput { .. }
        | RequestFault::AutoscaleThroughput { .. }
        | RequestFault::BadPartitionKeyValue { .. }
        | RequestFault::PartitionKeyLength { .. }
        | RequestFault::Indivisible { .. }
        | RequestFault::PartitionKeyRequired
        | RequestFault::BadPatch { .. }
        | RequestFault::BadContinuation(_)
        | RequestFault::ChangeFeed(_) => fault.to_string(),
    }
}

fn access(fault: &AccessFault) -> String {
    match fault {
        AccessFault::RoleMissing { principal, action, scope } => {
            let scope = match &**scope {
                ScopeName::Account | ScopeName::Database(_) => "the tables of the account".to_owned(),
                ScopeName::Container { container, .. } => format!("the table \"{container}\""),
            };
            format!("no role of \"{principal}\" allows to {} on {scope}", worded(&action.to_string()))
        }
        AccessFault::RoleImpossible { needed } => {
            format!("no role can allow {}: it needs an account key", worded(needed))
        }
        AccessFault::NotPermitted { needed } => {
            format!("the given credential does not permit this operation: {}", worded(needed))
        }
        AccessFault::TokenInvalid
        | AccessFault::TokenExpired { .. }
        | AccessFault::TokenEnded
        | AccessFault::Bearer(_) => fault.to_string(),
    }
}

/// The name of an action in the words of this API. Contains nothing that a client has sent.
fn worded(action: &str) -> String {
    action
        .replace("databases, containers and their settings", "tables and their settings")
        .replace("documents", "entities")
        .replace("items", "entities")
        .replace("item", "entity")
}

fn conflict(fault: &ConflictFault) -> String {
    match fault {
        ConflictFault::ConcurrentChange => {
            "entities of the PartitionKey were changed at the same time: no changes were made".to_owned()
        }
        ConflictFault::Locked { waited } => {
            let waited_ms = waited.as_millis();
            format!("others have locked the PartitionKey for {waited_ms} ms: no changes were made")
        }
        ConflictFault::Id
        | ConflictFault::Permission { .. }
        | ConflictFault::UniqueKey { .. }
        | ConflictFault::ThroughputPending => fault.to_string(),
    }
}

fn limit(fault: &LimitFault) -> String {
    match fault {
        LimitFault::LogicalPartitionFull { bytes, limit } => {
            format!(
                "the entities of the PartitionKey have {bytes} bytes, {limit} allowed: no changes were made"
            )
        }
        LimitFault::KeyBytes { bytes, limit } => {
            format!("the keys of the entity have {bytes} bytes, {limit} allowed")
        }
        LimitFault::TransactionDocuments { documents, limit } => {
            format!("the batch changes {documents} entities, {limit} allowed: no changes were made")
        }
        LimitFault::AnswerBytes { bytes, limit } => {
            format!("the entities of the answer have {bytes} bytes, {limit} allowed")
        }
        LimitFault::TooManyMembers { given, limit } => {
            format!("{given} properties are too many, {limit} allowed")
        }
        LimitFault::TooManyResources { what, limit } => {
            format!("there are {limit} {what} already, which is the most there can be")
        }
        LimitFault::Exhausted { what } => format!("more {what} are needed than there can be"),
        LimitFault::TooLarge { .. }
        | LimitFault::TransactionBytes { .. }
        | LimitFault::TransactionTime { .. }
        | LimitFault::TooManyOperations { .. }
        | LimitFault::Busy { .. }
        | LimitFault::Throughput { .. }
        | LimitFault::Overloaded { .. }
        | LimitFault::Stopping { .. } => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DataAction;
    use std::time::Duration;

    #[test]
    fn texts_speak_of_tables_and_entities() {
        let (bytes, limit, documents) = (2, 1, 2);
        let container = ScopeName::Container { database: "TablesDB".to_owned(), container: "t".to_owned() };
        let role = |action, scope: &ScopeName| AccessFault::RoleMissing {
            principal: "p".to_owned(),
            action,
            scope: Box::new(scope.clone()),
        };
        let scopes = [ScopeName::Account, ScopeName::Database("d".to_owned()), container];
        let mut faults: Vec<Fault> = vec![
            RequestFault::PartitionKeyTooLong { bytes, limit }.into(),
            RequestFault::PartitionKeyMismatch.into(),
            RequestFault::ImmutableProperty { property: "x".to_owned() }.into(),
            AccessFault::RoleImpossible { needed: "changing databases, containers and their settings" }
                .into(),
            AccessFault::NotPermitted { needed: "upserting an item" }.into(),
            AccessFault::NotPermitted { needed: "querying items" }.into(),
            ConflictFault::ConcurrentChange.into(),
            ConflictFault::Locked { waited: Duration::from_secs(1) }.into(),
            LimitFault::LogicalPartitionFull { bytes: 2, limit: 1 }.into(),
            LimitFault::KeyBytes { bytes, limit }.into(),
            LimitFault::TransactionBytes { bytes, limit }.into(),
            LimitFault::TransactionDocuments { documents, limit }.into(),
            LimitFault::TransactionTime { limit: Duration::from_secs(1) }.into(),
            LimitFault::AnswerBytes { bytes, limit }.into(),
            LimitFault::TooManyMembers { given: 2, limit }.into(),
            LimitFault::TooManyResources { what: "tables", limit }.into(),
            LimitFault::Exhausted { what: "partitions" }.into(),
            LimitFault::Busy { retry_after_ms: 1 }.into(),
            LimitFault::Throughput { retry_after_ms: 1 }.into(),
            StorageFault::Unavailable { cause: "the container has no item".to_owned() }.into(),
        ];
        let roles = DataAction::ALL
            .into_iter()
            .flat_map(|action| scopes.iter().map(move |scope| role(action, scope).into()));
        faults.extend(roles);
        for fault in faults {
            let text = of_core(&fault);
            for word in ["item", "document", "container", "database", "partition key"] {
                assert!(!text.contains(word), "{text}");
            }
        }
        let text = of_core(&role(DataAction::Query, &scopes[2]).into());
        assert_eq!(text, "no role of \"p\" allows to query entities on the table \"t\"");
    }
}
