//! Users, permissions, scripts and keys on the store: what survives a restart, what goes with its owner.

use crate::harness::{Harness, KEY, TestAmbient};
use engine::{
    AccountKey, Action, Container, Creation, KeyName, Permission, PermissionPart, PermissionResource, Place,
    Principal, Reach, WantedPermission,
};
use kv::{CommitMode, Direction, ScanLimit, Store};
use model::{
    AccessFault, ClientEncryptionKeyDefinition, Opaque, PermissionDefinition, PermissionMode,
    ScriptDefinition, ScriptKind, TokenLife, TriggerOperation, TriggerTime,
};
use partition::keyspace::{CATALOG, EntryKind, SPACES, entry_range};
use plan::Condition;
use std::sync::Arc;

const KINDS: [EntryKind; 6] = [
    EntryKind::User,
    EntryKind::Permission,
    EntryKind::StoredProcedure,
    EntryKind::Trigger,
    EntryKind::UserDefinedFunction,
    EntryKind::ClientEncryptionKey,
];

/// Makes one resource of every kind in database `d` with container `c`.
async fn furnish(harness: &Harness) -> (Arc<Container>, Arc<Permission>) {
    let container = harness.container(|_| {}, 400).await;
    let database = container.database();
    let engine = &harness.engine;
    let user = engine.create_user(harness.admin(), database, "u", &Creation::OnlyNew).await.unwrap().resource;
    let key = Some(r#"["a"]"#.to_owned());
    let definition = PermissionDefinition::new("p", PermissionMode::All, "dbs/d/colls/c", key).unwrap();
    let resource = PermissionResource { database: "d", container: "c", part: PermissionPart::Whole };
    let wanted = WantedPermission { definition, resource, key: Some(vec!["a".into()]) };
    let written = engine.create_permission(harness.admin(), &user, wanted, &Creation::OnlyNew).await.unwrap();
    for kind in ScriptKind::ALL {
        let trigger = (kind == ScriptKind::Trigger).then_some((TriggerTime::Pre, TriggerOperation::All));
        let definition = ScriptDefinition::new("s", "function () {}", trigger).unwrap();
        let creation = Creation::OnlyNew;
        engine.create_script(harness.admin(), &container, kind, definition, &creation).await.unwrap();
    }
    let metadata = ["type", "name", "value", "algorithm"];
    let metadata = metadata.map(|name| (name.to_owned(), Opaque::Text("x".to_owned())));
    let metadata = metadata.into_iter().collect();
    let definition = ClientEncryptionKeyDefinition::new("k", "A", "AQ==", metadata).unwrap();
    engine.create_encryption_key(harness.admin(), database, definition).await.unwrap();
    (container, written.resource)
}

async fn rows(store: &Store) -> Vec<usize> {
    let view = store.view().await.unwrap();
    let mut counts = Vec::new();
    for kind in KINDS {
        let limit = ScanLimit { rows: 100, bytes: usize::MAX };
        let chunk = view.scan(CATALOG, entry_range(kind), Direction::Forward, limit).await.unwrap();
        counts.push(chunk.rows.len());
    }
    counts
}

fn may_read(harness: &Harness, principal: &Principal, container: &Container, key: &str) -> bool {
    let key = crate::harness::key(container, key);
    let place = Place::Container(container, Reach::LogicalPartition(&key));
    harness.engine.access().authorise(principal, Action::ListDocuments, place).is_ok()
}

#[tokio::test]
async fn tokens_and_their_grants_survive_a_restart_but_not_a_change_of_keys() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let ambient = TestAmbient::new();
    let harness = Harness::on(store.clone(), ambient.clone()).await;
    let (_, permission) = furnish(&harness).await;
    let token = harness.engine.permission_token(&permission, TokenLife::DEFAULT);
    drop(harness);

    let harness = Harness::on(store.clone(), ambient.clone()).await;
    let container = harness.engine.find_container("d", "c").unwrap().resource;
    let user = harness.engine.find_user(container.database(), "u").unwrap().resource;
    let found = harness.engine.find_permission(&user, "p").unwrap().resource;
    assert_eq!(*found, *permission);
    for kind in ScriptKind::ALL {
        let script = harness.engine.find_script(&container, kind, "s").unwrap().resource;
        assert_eq!(script.definition().trigger().is_some(), kind == ScriptKind::Trigger);
    }
    assert!(harness.engine.find_encryption_key(container.database(), "k").is_ok());
    let principal = harness.engine.verify_token(&token).unwrap();
    assert!(may_read(&harness, &principal, &container, r#"["a"]"#));
    assert!(!may_read(&harness, &principal, &container, r#"["b"]"#));
    ambient.advance_seconds(3600);
    let expired = harness.engine.verify_token(&token).unwrap_err();
    assert_eq!(expired, AccessFault::TokenExpired { seconds_ago: 0 });
    ambient.set_back_seconds(3600);
    // Numbers go on behind those that were given before the restart.
    let second =
        harness.engine.create_user(harness.admin(), container.database(), "v", &Creation::OnlyNew).await;
    assert!(second.unwrap().resource.number() > found.number());
    drop(harness);

    let rotated = Harness::with_keys(store, ambient, &[KEY, b"a second key"]).await;
    assert_eq!(rotated.engine.verify_token(&token).unwrap_err(), AccessFault::TokenInvalid);
}

#[tokio::test]
async fn a_replaced_key_ends_tokens_at_once_and_one_that_only_reads_does_not() {
    let harness = Harness::new().await;
    let (_, permission) = furnish(&harness).await;
    let token = harness.engine.permission_token(&permission, TokenLife::DEFAULT);
    let access = harness.engine.access();
    access.replace_keys(vec![AccountKey::new(KEY), AccountKey::named(KeyName::PrimaryReadOnly, b"reader")]);
    assert!(harness.engine.verify_token(&token).is_ok());
    access.replace_keys(vec![AccountKey::new(b"another")]);
    assert_eq!(harness.engine.verify_token(&token).unwrap_err(), AccessFault::TokenInvalid);
    let fresh = harness.engine.permission_token(&permission, TokenLife::DEFAULT);
    assert!(harness.engine.verify_token(&fresh).is_ok());
}

#[tokio::test]
async fn no_row_outlives_its_owner() {
    let harness = Harness::new().await;
    let (container, permission) = furnish(&harness).await;
    assert_eq!(rows(&harness.store).await, [1; 6]);
    let token = harness.engine.permission_token(&permission, TokenLife::DEFAULT);
    harness.engine.delete_container(harness.admin(), &container, &Condition::None).await.unwrap();
    assert_eq!(rows(&harness.store).await, [1, 1, 0, 0, 0, 1]);
    assert!(harness.engine.find_script(&container, ScriptKind::Trigger, "s").is_err());
    let database = container.database();
    harness.engine.delete_database(harness.admin(), database, &Condition::None).await.unwrap();
    assert_eq!(rows(&harness.store).await, [0; 6]);
    assert_eq!(harness.engine.verify_token(&token).unwrap_err(), AccessFault::TokenEnded);
}

#[tokio::test]
async fn a_refused_change_leaves_no_trace() {
    let harness = Harness::new().await;
    let (container, _) = furnish(&harness).await;
    let user = harness.engine.find_user(container.database(), "u").unwrap().resource;
    let definition =
        PermissionDefinition::new("q", PermissionMode::Read, "dbs/d/colls/absent", None).unwrap();
    let resource = PermissionResource { database: "d", container: "absent", part: PermissionPart::Whole };
    let wanted = WantedPermission { definition, resource, key: None };
    let refused = harness.engine.create_permission(harness.admin(), &user, wanted, &Creation::OnlyNew).await;
    assert!(refused.is_err());
    let twice =
        harness.engine.create_user(harness.admin(), container.database(), "u", &Creation::OnlyNew).await;
    assert!(twice.is_err());
    assert_eq!(rows(&harness.store).await, [1; 6]);
}
