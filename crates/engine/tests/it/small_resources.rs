//! Users, permissions, scripts and keys in the store: what survives a restart, what is deleted with its owner.

use crate::harness::{Harness, KEY, TestAmbient};
use engine::{
    AccountKey, Action, Annotation, CatalogPass, Container, Creation, KeyName, ListRequest, Permission,
    PermissionPart, PermissionResource, Permissions, Principal, Reach, Resource, Script, Scripts, Users,
    WantedPermission,
};
use kv::{CommitMode, Direction, ScanLimit, Store};
use model::{
    AccessFault, ClientEncryptionKeyDefinition, Fault, KeyComponent, MissingFault, Opaque,
    PermissionDefinition, PermissionMode, ScriptDefinition, ScriptKind, TokenLife, TriggerOperation,
    TriggerTime,
};
use partition::keyspace::{CATALOG, EntryKind, SPACES, entry_range};
use plan::Condition;
use std::sync::Arc;

const KINDS: [EntryKind; 7] = [
    EntryKind::User,
    EntryKind::Permission,
    EntryKind::StoredProcedure,
    EntryKind::Trigger,
    EntryKind::UserDefinedFunction,
    EntryKind::ClientEncryptionKey,
    EntryKind::Annotation,
];

/// Creates one resource of every kind in database `d` with container `c`.
async fn furnish(harness: &Harness) -> (Arc<Container>, Arc<Permission>) {
    let container = harness.container(|_| {}, 400).await;
    let database = container.database();
    let engine = &harness.engine;
    let user = engine.create_user(harness.admin(Users { database }), "u", &Creation::OnlyNew).await.unwrap();
    let user = user.resource;
    let pass = harness.admin(Permissions { database });
    let wanted = wanted("p", PermissionMode::All, "c", Some(vec!["a".into()]));
    let written = engine.create_permission(pass, &user, wanted, &Creation::OnlyNew).await.unwrap();
    for kind in ScriptKind::ALL {
        let trigger = (kind == ScriptKind::Trigger).then_some((TriggerTime::Pre, TriggerOperation::All));
        let definition = ScriptDefinition::new("s", "function () {}", trigger).unwrap();
        let creation = Creation::OnlyNew;
        let pass = harness.admin(Scripts { container: &container, kind });
        engine.create_script(pass, definition, &creation).await.unwrap();
    }
    let metadata = ["type", "name", "value", "algorithm"];
    let metadata = metadata.map(|name| (name.to_owned(), Opaque::Text("x".to_owned())));
    let metadata = metadata.into_iter().collect();
    let definition = ClientEncryptionKeyDefinition::new("k", "A", "AQ==", metadata).unwrap();
    engine.create_encryption_key(harness.admin(&**database), definition).await.unwrap();
    engine.annotate_database(harness.admin(&**database), "n", "of the database".to_owned()).await.unwrap();
    engine.annotate_container(harness.admin(&*container), "n", "of the container".to_owned()).await.unwrap();
    (container, written.resource)
}

/// A permission for all documents of a container of database `d`, or for those of a key.
fn wanted<'a>(
    id: &str,
    mode: PermissionMode,
    container: &'a str,
    key: Option<Vec<KeyComponent>>,
) -> WantedPermission<'a> {
    let resource = PermissionResource { database: "d", container, part: PermissionPart::Whole };
    let definition = PermissionDefinition::new(id, mode, container, None).unwrap();
    WantedPermission { definition, resource, key }
}

fn permissions<'a>(harness: &Harness, container: &'a Container) -> CatalogPass<Permissions<'a>> {
    harness.reader(Permissions { database: container.database() })
}

fn token(harness: &Harness, container: &Container, permission: &Permission) -> String {
    let pass = permissions(harness, container);
    harness.engine.permission_token(&pass, permission, TokenLife::DEFAULT).unwrap()
}

fn find_script(harness: &Harness, container: &Container, kind: ScriptKind) -> Result<Arc<Script>, Fault> {
    let named = harness.engine.named_script(container, kind, "s");
    harness.engine.find_script(&harness.reader(named))
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
    let resource = Resource::Container(container, Reach::LogicalPartition(&key));
    harness.engine.access().authorise(principal, Action::ListDocuments, resource).is_ok()
}

#[tokio::test]
async fn tokens_and_their_grants_survive_a_restart_but_not_a_change_of_keys() {
    let store = Store::memory(&SPACES, CommitMode::Thread);
    let ambient = TestAmbient::new();
    let harness = Harness::on(store.clone(), ambient.clone()).await;
    let (container, permission) = furnish(&harness).await;
    let token = token(&harness, &container, &permission);
    drop(harness);

    let harness = Harness::on(store.clone(), ambient.clone()).await;
    let container = harness.found().unwrap();
    let pass = permissions(&harness, &container);
    let user = harness.engine.find_user(&pass.users(), "u").unwrap();
    let found = harness.engine.find_permission(&pass, &user, "p").unwrap();
    assert_eq!(*found, *permission);
    for kind in ScriptKind::ALL {
        let script = find_script(&harness, &container, kind).unwrap();
        assert_eq!(script.definition().trigger().is_some(), kind == ScriptKind::Trigger);
    }
    let pass = harness.reader(&**container.database());
    assert!(harness.engine.find_encryption_key(&pass, "k").is_ok());
    let text = |annotation: Option<Arc<Annotation>>| annotation.unwrap().definition().text.clone();
    assert_eq!(text(harness.engine.database_annotation(&pass, "n")), "of the database");
    let pass = harness.reader(&*container);
    assert_eq!(text(harness.engine.container_annotation(&pass, "n")), "of the container");
    assert!(harness.engine.container_annotation(&pass, "m").is_none());
    let principal = harness.engine.verify_token(&token).unwrap();
    assert!(may_read(&harness, &principal, &container, r#"["a"]"#));
    assert!(!may_read(&harness, &principal, &container, r#"["b"]"#));
    ambient.advance_seconds(3600);
    let expired = harness.engine.verify_token(&token).unwrap_err();
    assert_eq!(expired, AccessFault::TokenExpired { seconds_ago: 0 });
    ambient.set_back_seconds(3600);
    // Numbers continue after those that were assigned before the restart.
    let pass = harness.admin(Users { database: container.database() });
    let second = harness.engine.create_user(pass, "v", &Creation::OnlyNew).await;
    assert!(second.unwrap().resource.number() > found.number());
    drop(harness);

    let rotated = Harness::with_keys(store, ambient, &[KEY, b"a second key"]).await;
    assert_eq!(rotated.engine.verify_token(&token).unwrap_err(), AccessFault::TokenInvalid);
}

#[tokio::test]
async fn a_replaced_key_ends_tokens_at_once_and_one_that_only_reads_does_not() {
    let harness = Harness::new().await;
    let (container, permission) = furnish(&harness).await;
    let first = token(&harness, &container, &permission);
    let access = harness.engine.access();
    access.replace_keys(vec![AccountKey::new(KEY), AccountKey::named(KeyName::PrimaryReadOnly, b"reader")]);
    assert!(harness.engine.verify_token(&first).is_ok());
    access.replace_keys(vec![AccountKey::new(b"another")]);
    assert_eq!(harness.engine.verify_token(&first).unwrap_err(), AccessFault::TokenInvalid);
    let fresh = token(&harness, &container, &permission);
    assert!(harness.engine.verify_token(&fresh).is_ok());
}

#[tokio::test]
async fn no_row_outlives_its_owner() {
    let harness = Harness::new().await;
    let (container, permission) = furnish(&harness).await;
    assert_eq!(rows(&harness.store).await, [1, 1, 1, 1, 1, 1, 2]);
    let token = token(&harness, &container, &permission);
    harness.drop_container(&container).await.unwrap();
    assert_eq!(rows(&harness.store).await, [1, 1, 0, 0, 0, 1, 1]);
    assert!(find_script(&harness, &container, ScriptKind::Trigger).is_err());
    let database = container.database();
    harness.engine.delete_database(harness.admin(&**database), &Condition::None).await.unwrap();
    assert_eq!(rows(&harness.store).await, [0; 7]);
    assert_eq!(harness.engine.verify_token(&token).unwrap_err(), AccessFault::TokenEnded);
}

#[tokio::test]
async fn a_refused_change_leaves_no_trace() {
    let harness = Harness::new().await;
    let (container, _) = furnish(&harness).await;
    let database = container.database();
    let user = harness.engine.find_user(&harness.reader(Users { database }), "u").unwrap();
    harness.database("other").await.unwrap();
    let mut wanted = wanted("q", PermissionMode::Read, "c", None);
    wanted.resource.database = "other";
    let pass = harness.admin(Permissions { database });
    let refused = harness.engine.create_permission(pass, &user, wanted, &Creation::OnlyNew).await;
    assert!(refused.is_err());
    let pass = harness.admin(Users { database });
    let twice = harness.engine.create_user(pass, "u", &Creation::OnlyNew).await;
    assert!(twice.is_err());
    assert_eq!(rows(&harness.store).await, [1, 1, 1, 1, 1, 1, 2]);
}

/// A pass for one database was accepted for every other: it contained no resource, and the resource was passed
/// separately.
#[tokio::test]
async fn a_pass_for_one_database_is_none_for_another() {
    let harness = Harness::new().await;
    let (container, permission) = furnish(&harness).await;
    let other = harness.database("other").await.unwrap();
    let missing = Fault::Missing(MissingFault::Resource);
    let engine = &harness.engine;
    let pass = permissions(&harness, &container);
    let user = engine.find_user(&pass.users(), "u").unwrap();
    let foreign = harness.reader(Permissions { database: &other });
    assert_eq!(engine.permission_token(&foreign, &permission, TokenLife::DEFAULT).unwrap_err(), missing);
    assert_eq!(engine.find_user(&foreign.users(), "u").unwrap_err(), missing);
    assert_eq!(engine.find_permission(&foreign, &user, "p").unwrap_err(), missing);
    let page = ListRequest { items_max: 10, continuation: None };
    assert_eq!(engine.list_permissions(&foreign, &user, &page).unwrap_err(), missing);
    let users = || harness.admin(Users { database: &other });
    let permissions = || harness.admin(Permissions { database: &other });
    let unconditional = &Condition::None;
    assert_eq!(engine.delete_user(users(), &user, unconditional).await.unwrap_err(), missing);
    assert_eq!(engine.replace_user(users(), &user, "v", unconditional).await.unwrap_err(), missing);
    let deleted = engine.delete_permission(permissions(), &permission, unconditional).await;
    assert_eq!(deleted.unwrap_err(), missing);
    let wanted = || wanted("q", PermissionMode::Read, "c", None);
    let created = engine.create_permission(permissions(), &user, wanted(), &Creation::OnlyNew).await;
    assert_eq!(created.unwrap_err(), missing);
    let replaced =
        engine.replace_permission(permissions(), &user, &permission, wanted(), unconditional).await;
    assert_eq!(replaced.unwrap_err(), missing);
    assert_eq!(rows(&harness.store).await, [1, 1, 1, 1, 1, 1, 2]);
    assert!(engine.permission_token(&pass, &permission, TokenLife::DEFAULT).is_ok());
}

#[tokio::test]
async fn an_annotation_is_replaced_and_its_size_is_limited() {
    let harness = Harness::new().await;
    let (container, _) = furnish(&harness).await;
    let engine = &harness.engine;
    let annotate =
        |bytes: usize| engine.annotate_container(harness.admin(&*container), "n", "x".repeat(bytes));
    annotate(64 * 1024).await.unwrap();
    assert!(matches!(annotate(64 * 1024 + 1).await, Err(Fault::Limit(_))));
    let stored = engine.container_annotation(&harness.reader(&*container), "n").unwrap();
    assert_eq!(stored.definition().text.len(), 64 * 1024);
}
