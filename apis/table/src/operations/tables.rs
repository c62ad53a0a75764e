//! Tables as containers: names, definitions, and how one is found.

use super::Call;
use crate::account::AccountStyle;
use crate::edm::{PARTITION_KEY, ROW_KEY};
use crate::faults::{Code, TableFault, request};
use crate::service::DATABASE;
use crate::wire::entity::MetadataLevel;
use engine::{Account, Action, Container, Database, Engine, ListRequest, Principal};
use model::policy::CompositeIndex;
use model::{
    ConflictFault, ContainerDefinition, ContainerDraft, Fault, MissingFault, PartitionKeyDefinition,
    PartitionKeyKind, RequestFault,
};
use std::sync::Arc;
use value::write_json_string;

/// Finds a table for a caller who may know of it. In accounts of Storage the case of its name does not matter: then
/// `signer` looks through all names, and the caller finds the one that is meant. If several are, which Storage does not
/// allow, only the exact name of one is its name.
pub(crate) fn find(
    engine: &Engine,
    (principal, signer): (&Principal, &Principal),
    action: Action,
    style: AccountStyle,
    name: &str,
) -> Result<Arc<Container>, TableFault> {
    check_name(style, name)?;
    let found = engine.find_container(principal, action, DATABASE, name);
    let found = match (found, style) {
        (Err(fault), AccountStyle::Storage) => match names_in_any_case(engine, signer, name)?.as_slice() {
            [other] if other != name => engine.find_container(principal, action, DATABASE, other),
            _ => Err(fault),
        },
        (found, AccountStyle::Storage | AccountStyle::Cosmos) => found,
    };
    match found {
        Ok(found) if is_table(&found.resource) => Ok(found.resource),
        Ok(_) | Err(Fault::Missing(_)) => Err(MissingFault::Owner.into()),
        Err(fault) => Err(fault.into()),
    }
}

/// Refuses a name that no table can have.
pub(crate) fn check_name(style: AccountStyle, name: &str) -> Result<(), TableFault> {
    match style.is_table_name(name) {
        true => Ok(()),
        false => Err(request(
            Code::InvalidResourceName,
            "The specified resource name contains invalid characters, is too short or too long.",
        )),
    }
}

/// Whether a container of the database is a table: it may have been created through another API. Its indexes do not
/// matter, because another API may replace them at any time: without the composite index pages are sorted.
pub(crate) fn is_table(container: &Container) -> bool {
    // The rules of Cosmos DB include the names that Storage allows.
    AccountStyle::Cosmos.is_table_name(container.id())
        && matches!(container.definition().partition_key.path_texts(), [path] if path == "/PartitionKey")
}

/// The fault of a table that was not created. A container that is no table may have its name: then a client must not
/// take the table for one that exists.
pub(super) fn not_created(call: &Call<'_>, name: &str, fault: Fault) -> TableFault {
    let is_other = |container: &Container| container.id() == name && !is_table(container);
    let found = call.engine.find_container(&call.signer, Action::ReadMetadata, DATABASE, name);
    match (&fault, found) {
        (Fault::Conflict(ConflictFault::Id), Ok(found)) if is_other(&found.resource) => request(
            Code::ResourceTypeMismatch,
            "The name is that of a container that is not a table: its partition key is not /PartitionKey.",
        ),
        (_, _) => TableFault::of_table(fault),
    }
}

/// The names of the tables that have this name, apart from case.
pub(crate) fn names_in_any_case(
    engine: &Engine,
    signer: &Principal,
    name: &str,
) -> Result<Vec<String>, TableFault> {
    let mut names = names(engine, signer)?;
    names.retain(|other| other.eq_ignore_ascii_case(name));
    Ok(names)
}

/// The names of all tables, in order.
pub(crate) fn names(engine: &Engine, principal: &Principal) -> Result<Vec<String>, TableFault> {
    let database = match engine.find_database(principal, Action::ReadMetadata, DATABASE) {
        Ok(database) => database,
        Err(Fault::Missing(_)) => return Ok(Vec::new()),
        Err(fault) => return Err(TableFault::of_table(fault)),
    };
    let pass = engine.access().read_catalog(principal, &*database)?;
    let page = engine.list_containers(&pass, &ListRequest { items_max: usize::MAX, continuation: None });
    let tables = page.map_err(TableFault::of_table)?.items;
    let mut names: Vec<String> =
        tables.iter().filter(|table| is_table(table)).map(|table| table.id().to_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// The database of all tables, which is created with the first one.
pub(super) async fn database(call: &Call<'_>) -> Result<Arc<Database>, TableFault> {
    let (engine, access) = (call.engine, call.engine.access());
    match engine.find_database(&call.principal, Action::ChangeMetadata, DATABASE) {
        Err(Fault::Missing(_)) => {}
        found => return found.map_err(TableFault::of_table),
    }
    access.check_action(&call.principal, Action::ChangeMetadata, None)?;
    let pass = access.change_catalog(&call.signer, Account)?;
    match engine.create_database(pass, DATABASE, None).await {
        Ok(database) => Ok(database),
        Err(Fault::Conflict(ConflictFault::Id)) => {
            let found = engine.find_database(&call.principal, Action::ChangeMetadata, DATABASE);
            found.map_err(TableFault::of_table)
        }
        Err(fault) => Err(TableFault::of_table(fault)),
    }
}

/// The definition of a table: everything is indexed, and pages in the order of the keys need no sorting.
pub(super) fn definition(name: &str) -> Result<ContainerDefinition, RequestFault> {
    let path = |property: &str| format!("/{property}");
    let partition_key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, [path(PARTITION_KEY)])?;
    let mut draft = ContainerDraft::new(name, partition_key);
    let order = CompositeIndex::over(&[(&path(PARTITION_KEY), false), (&path(ROW_KEY), false)])?;
    draft.policies.indexing.composite.push(order);
    draft.checked()
}

/// Appends a table as a member of a list, or as an answer of its own.
pub(super) fn push_table(level: MetadataLevel, base: &str, account: &str, name: &str, out: &mut Vec<u8>) {
    if level == MetadataLevel::Full {
        let text = |name: &str, text: &str, out: &mut Vec<u8>| {
            write_json_string(name, out);
            out.push(b':');
            write_json_string(text, out);
            out.push(b',');
        };
        text("odata.type", &format!("{account}.Tables"), out);
        text("odata.id", &format!("{base}/Tables('{name}')"), out);
        text("odata.editLink", &format!("Tables('{name}')"), out);
    }
    out.extend_from_slice(br#""TableName":"#);
    write_json_string(name, out);
}

/// The answer with one table.
pub(super) fn table_body(level: MetadataLevel, base: &str, account: &str, name: &str) -> Vec<u8> {
    let mut body = b"{".to_vec();
    if level >= MetadataLevel::Minimal {
        body.extend_from_slice(br#""odata.metadata":"#);
        write_json_string(&format!("{base}/$metadata#Tables/@Element"), &mut body);
        body.push(b',');
    }
    push_table(level, base, account, name, &mut body);
    body.push(b'}');
    body
}
