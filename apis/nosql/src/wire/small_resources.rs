//! Users, permissions, scripts and client encryption keys as JSON.

use super::{definition, links};
use engine::{ClientEncryptionKey, Container, Database, Entry, Permission, Script, User};
use model::ScriptKind;
use serde_json::{Map, Value as Json};

pub(crate) fn user(database: &Database, user: &User) -> Json {
    let mut members = Map::new();
    members.insert("id".to_owned(), user.id().into());
    add_system(&mut members, user, &user_link(database, user));
    members.insert("_permissions".to_owned(), "permissions/".into());
    Json::Object(members)
}

fn user_link(database: &Database, user: &User) -> String {
    format!("dbs/{}/users/{}/", database.rid(), user.rid())
}

/// A permission with a token for it.
pub(crate) fn permission(database: &Database, user: &User, permission: &Permission, token: &str) -> Json {
    let mut members = definition::permission::write(&permission.definition().definition);
    let link = format!("{}permissions/{}/", user_link(database, user), permission.rid());
    add_system(&mut members, permission, &link);
    members.insert("_token".to_owned(), format!("type=resource&ver=1&sig={token}").into());
    Json::Object(members)
}

pub(crate) fn script(container: &Container, kind: ScriptKind, script: &Script) -> Json {
    let mut members = definition::script::write(script.definition());
    let (database, owner) = (container.database().rid(), container.rid());
    let link = format!("dbs/{database}/colls/{owner}/{}/{}/", links::script_segment(kind), script.rid());
    add_system(&mut members, script, &link);
    Json::Object(members)
}

pub(crate) fn encryption_key(database: &Database, key: &ClientEncryptionKey) -> Json {
    let mut members = definition::encryption_key::write(key.definition());
    let link = format!("dbs/{}/clientencryptionkeys/{}/", database.rid(), key.rid());
    add_system(&mut members, key, &link);
    Json::Object(members)
}

/// Adds the system properties.
fn add_system<D>(members: &mut Map<String, Json>, entry: &Entry<D>, link: &str) {
    members.insert("_rid".to_owned(), entry.rid().to_string().into());
    members.insert("_self".to_owned(), link.into());
    members.insert("_etag".to_owned(), entry.etag().to_string().into());
    members.insert("_ts".to_owned(), entry.ts().into());
}
