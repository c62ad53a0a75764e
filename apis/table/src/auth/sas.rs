//! Shared access signatures: account signatures (`ss`, `srt`) and table signatures (`tn`), which become delegations.
//!
//! | permission | entities | tables, by an account signature for containers |
//! |---|---|---|
//! | `r` | read, query | |
//! | `a` | insert | |
//! | `u` | replace, merge | |
//! | `a` and `u` | insert or replace, insert or merge | |
//! | `d` | delete | delete |
//! | `c`, `w` | | create |
//! | `l` | | list, read |

use super::sas_fields::{Fields, check_time};
use super::{Caller, Claim, mismatch, verify};
use crate::account::AccountStyle;
use crate::edm::{PARTITION_KEY, ROW_KEY};
use crate::faults::{CredentialFault, TableFault};
use crate::operations::tables;
use crate::policies::{self, AccessPolicy};
use crate::route::{EntityPath, Operation};
use crate::service::DATABASE;
use engine::{Action, CatalogRights, Delegation, KeyBound, KeyInterval, Principal};

pub(super) fn authenticate(claim: &Claim<'_>) -> Result<Caller, TableFault> {
    let fields = Fields::of(claim);
    match (fields.table, fields.services) {
        ("", "") => Err(CredentialFault::SignatureField { field: "neither tn nor ss is given" }.into()),
        ("", _) => by_account(claim, &fields),
        (_, "") => by_table(claim, &fields),
        (_, _) => Err(CredentialFault::SignatureField { field: "both tn and ss are given" }.into()),
    }
}

fn signer(claim: &Claim<'_>, payloads: &[String], fields: &Fields<'_>) -> Result<Principal, CredentialFault> {
    // A plus sign that was not encoded arrives as a space.
    let signature = fields.signature.replace(' ', "+");
    let signer = payloads.iter().find_map(|payload| verify(claim, payload, &signature));
    signer.ok_or_else(|| mismatch(payloads.first().map_or("", String::as_str)))
}

/// An account signature.
fn by_account(claim: &Claim<'_>, fields: &Fields<'_>) -> Result<Caller, TableFault> {
    let signer = signer(claim, &fields.account_payloads(&claim.account.name), fields)?;
    check_time(fields.start, fields.expiry, claim.engine.ambient().now_seconds())?;
    fields.check_connection(claim)?;
    if !fields.services.contains('t') {
        return Err(CredentialFault::Service.into());
    }
    let (kinds, permissions) = (fields.resource_types, fields.permissions);
    let has = |kind: char, permission: char| kinds.contains(kind) && permissions.contains(permission);
    let (needed_kinds, is_permitted) = match claim.operation {
        Operation::ReadServiceProperties | Operation::ReadStatistics => ("s", has('s', 'r')),
        Operation::ReplaceServiceProperties => ("s", has('s', 'w')),
        Operation::ListTables | Operation::ReadTable(_) => ("cs", has('c', 'l') || has('s', 'l')),
        Operation::CreateTable => ("c", has('c', 'c') || has('c', 'w')),
        Operation::DeleteTable(_) => ("c", has('c', 'd')),
        // Only an account key reads and changes stored policies.
        Operation::ReadTableAcl(_) | Operation::ReplaceTableAcl(_) => {
            return Err(CredentialFault::Permission.into());
        }
        // Which permissions these need is decided for each entity.
        Operation::QueryEntities(_)
        | Operation::InsertEntity(_)
        | Operation::ReadEntity(_)
        | Operation::PutEntity(_)
        | Operation::MergeEntity(_)
        | Operation::DeleteEntity(_)
        | Operation::Batch => ("o", true),
    };
    if !needed_kinds.chars().any(|kind| kinds.contains(kind)) {
        return Err(CredentialFault::ResourceType.into());
    }
    if !is_permitted {
        return Err(CredentialFault::Permission.into());
    }
    let documents = if kinds.contains('o') { document_actions(permissions) } else { Vec::new() };
    let catalog = catalog_rights(claim.operation);
    let delegation =
        Delegation { database: DATABASE.to_owned(), container: None, documents, catalog, keys: None };
    Ok(Caller { principal: signer.delegate(delegation)?, signer })
}

/// What a permitted operation needs of the catalog.
fn catalog_rights(operation: &Operation) -> CatalogRights {
    let none = CatalogRights::default();
    match operation {
        Operation::ReadServiceProperties
        | Operation::ReadStatistics
        | Operation::ListTables
        | Operation::ReadTable(_) => CatalogRights { read: true, ..none },
        Operation::ReplaceServiceProperties | Operation::CreateTable => {
            CatalogRights { read: true, create: true, ..none }
        }
        Operation::DeleteTable(_) => CatalogRights { delete: true, ..none },
        Operation::ReadTableAcl(_)
        | Operation::ReplaceTableAcl(_)
        | Operation::QueryEntities(_)
        | Operation::InsertEntity(_)
        | Operation::ReadEntity(_)
        | Operation::PutEntity(_)
        | Operation::MergeEntity(_)
        | Operation::DeleteEntity(_)
        | Operation::Batch => none,
    }
}

/// A table signature, possibly with a stored policy of the table.
fn by_table(claim: &Claim<'_>, fields: &Fields<'_>) -> Result<Caller, TableFault> {
    let signer = signer(claim, &[fields.table_payload(&claim.account.name)], fields)?;
    let style = claim.account.style;
    let table =
        tables::find(claim.engine, (&signer, &signer), Action::ReadMetadata, style, fields.table).ok();
    let policy = match fields.policy {
        "" => AccessPolicy::default(),
        id => {
            let table = table.as_ref().ok_or(CredentialFault::UnknownPolicy)?;
            let pass = claim.engine.access().read_catalog(&signer, &**table)?;
            let policy = policies::stored(claim.engine, &pass).into_iter().find(|policy| policy.id == id);
            policy.ok_or(CredentialFault::UnknownPolicy)?.policy
        }
    };
    let start = either(fields.start, &policy.start)?;
    let expiry = either(fields.expiry, &policy.expiry)?;
    let permissions = either(fields.permissions, &policy.permission)?;
    check_time(start, expiry, claim.engine.ambient().now_seconds())?;
    fields.check_connection(claim)?;
    if !is_about(claim.operation, fields.table, style) {
        return Err(CredentialFault::Permission.into());
    }
    // The signature does not cover the case of the name: it must not choose between two tables.
    if tables::names_in_any_case(claim.engine, &signer, fields.table)?.len() > 1 {
        return Err(CredentialFault::Permission.into());
    }
    let container = table.map_or_else(|| fields.table.to_owned(), |table| table.id().to_owned());
    let delegation = Delegation {
        database: DATABASE.to_owned(),
        container: Some(container),
        documents: document_actions(permissions),
        catalog: CatalogRights::default(),
        keys: interval(fields)?,
    };
    Ok(Caller { principal: signer.delegate(delegation)?, signer })
}

/// A field of the signature or of its stored policy, which must not both have it.
fn either<'a>(own: &'a str, stored: &'a str) -> Result<&'a str, CredentialFault> {
    match (own, stored) {
        (own, "") => Ok(own),
        ("", stored) => Ok(stored),
        (_, _) => Err(CredentialFault::PolicyConflict),
    }
}

/// Whether an operation is about entities of this table, as far as its path says it.
fn is_about(operation: &Operation, table: &str, style: AccountStyle) -> bool {
    let is_same = |name: &str| style.is_same_table(name, table);
    match operation {
        Operation::QueryEntities(name) | Operation::InsertEntity(name) => is_same(name),
        Operation::ReadEntity(EntityPath { table: name, .. })
        | Operation::PutEntity(EntityPath { table: name, .. })
        | Operation::MergeEntity(EntityPath { table: name, .. })
        | Operation::DeleteEntity(EntityPath { table: name, .. }) => is_same(name),
        Operation::Batch => true,
        Operation::ReadServiceProperties
        | Operation::ReplaceServiceProperties
        | Operation::ReadStatistics
        | Operation::ListTables
        | Operation::CreateTable
        | Operation::ReadTable(_)
        | Operation::DeleteTable(_)
        | Operation::ReadTableAcl(_)
        | Operation::ReplaceTableAcl(_) => false,
    }
}

fn document_actions(permissions: &str) -> Vec<Action> {
    let has = |permission: char| permissions.contains(permission);
    let mut actions = Vec::new();
    if has('r') {
        actions.extend([Action::ReadDocument, Action::ListDocuments, Action::QueryDocuments]);
    }
    if has('a') {
        actions.push(Action::CreateDocument);
    }
    if has('u') {
        actions.push(Action::ReplaceDocument);
    }
    if has('a') && has('u') {
        actions.push(Action::UpsertDocument);
    }
    if has('d') {
        actions.push(Action::DeleteDocument);
    }
    actions
}

fn interval(fields: &Fields<'_>) -> Result<Option<KeyInterval>, CredentialFault> {
    let bound = |partition: Option<&str>, row: Option<&str>| match (partition, row) {
        (Some(partition), row) => {
            Ok(Some(KeyBound { partition: partition.to_owned(), row: row.map(str::to_owned) }))
        }
        (None, None) => Ok(None),
        (None, Some(_)) => {
            Err(CredentialFault::SignatureField { field: "a row key needs its partition key" })
        }
    };
    // The signature is the same without an empty bound, so its holder could omit it. Nothing precedes an empty key, so
    // as a first one it means none.
    if fields.last_partition == Some("") || fields.last_row == Some("") {
        return Err(CredentialFault::SignatureField { field: "epk and erk must not be empty" });
    }
    let first = bound(fields.first_partition, fields.first_row)?;
    let last = bound(fields.last_partition, fields.last_row)?;
    if first.is_none() && last.is_none() {
        return Ok(None);
    }
    let properties = [PARTITION_KEY.to_owned(), ROW_KEY.to_owned()];
    Ok(Some(KeyInterval { properties, first, last }))
}
