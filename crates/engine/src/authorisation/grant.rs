//! What a permission grants, resolved, and the decision whether an action is within it.
//!
//! Denies by default. A grant never extends beyond one container: no users, permissions, offers, databases or other
//! containers, whatever its mode. Changes of the container's definition are never granted; those of its scripts are, by
//! a permission with mode All for the whole container.

use super::{Action, Reach, Resource};
use model::{
    ContainerNumber, DecodeFault, Decoder, Encoder, PartitionKey, PermissionDefinition, PermissionMode,
    ScriptKind,
};
use plan::Target;

/// What a permission grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The permission as it was written.
    pub definition: PermissionDefinition,
    /// The container that it is for, or that contains its resource.
    pub(crate) container: ContainerNumber,
    pub(crate) scope: GrantScope,
    /// The key, or the prefix of a hierarchical key, to which it is restricted.
    pub(crate) key: Option<PartitionKey>,
}

/// How much of the container a grant covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrantScope {
    /// All items.
    Container,
    /// One item.
    Document(ItemReference),
    /// One script.
    Script(ScriptKind, String),
}

/// How an item is referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemReference {
    /// By its id.
    Id(String),
    /// By the number in its RID.
    Number(u64),
}

/// The kind of right that an action needs.
enum Need {
    ReadItems,
    ChangeItems,
    Execute,
    ReadContainer,
    ChangeScripts,
    ReadAccount,
    Never,
}

impl Grant {
    fn changes(&self) -> bool {
        match self.definition.mode {
            PermissionMode::Read => false,
            PermissionMode::All => true,
        }
    }

    /// Whether the holder of this grant may perform `action` on any resource.
    pub(super) fn allows_somewhere(&self, action: Action) -> bool {
        match need(action) {
            Need::ReadAccount | Need::ReadContainer | Need::ReadItems => true,
            Need::ChangeItems | Need::Execute => self.changes(),
            Need::ChangeScripts => self.covers_scripts(),
            Need::Never => false,
        }
    }

    /// Whether the holder of this grant may perform `action` on `resource`.
    pub(super) fn allows(&self, action: Action, resource: Resource<'_>) -> bool {
        let changes = self.changes();
        match need(action) {
            // Every client reads the account first, with whatever token it has.
            Need::ReadAccount => matches!(resource, Resource::Account),
            Need::ReadContainer => self.reads_metadata(resource),
            Need::ReadItems => self.reaches_items(resource),
            Need::ChangeItems => changes && self.reaches_items(resource),
            Need::Execute => changes && (self.reaches_script(resource) || self.reaches_scripts(resource)),
            Need::ChangeScripts => self.reaches_scripts(resource),
            Need::Never => false,
        }
    }

    /// Whether the grant is for everything in its container, which includes changes of the scripts.
    fn covers_scripts(&self) -> bool {
        self.changes() && self.scope == GrantScope::Container && self.key.is_none()
    }

    /// Whether `resource` is a script of the container, or all of a kind, and the grant covers them.
    fn reaches_scripts(&self, resource: Resource<'_>) -> bool {
        let is_script = match resource {
            Resource::Container(_, Reach::Scripts(_) | Reach::Script(..)) => self.is_in(resource),
            Resource::Container(
                _,
                Reach::Whole | Reach::LogicalPartition(_) | Reach::Row { .. } | Reach::Document { .. },
            )
            | Resource::Account
            | Resource::Database(_) => false,
        };
        is_script && self.covers_scripts()
    }

    /// Whether `resource` is in the container of this grant: its holder may know that the container exists.
    pub(super) fn is_in(&self, resource: Resource<'_>) -> bool {
        match resource {
            Resource::Container(container, _) => container.number() == self.container,
            Resource::Account | Resource::Database(_) => false,
        }
    }

    /// The grant of a permission for a resource that does not exist. No container has this number, so that one which is
    /// created later is not granted without anyone's decision.
    pub(crate) fn nothing(definition: PermissionDefinition) -> Grant {
        Grant { definition, container: ContainerNumber(0), scope: GrantScope::Container, key: None }
    }

    /// Whether another permission names the same resource and key. A link by names and one by RIDs are two, as in the
    /// service.
    pub(crate) fn covers_same_as(&self, other: &Grant) -> bool {
        let named = |grant: &Grant| {
            let PermissionDefinition { resource, key, .. } = &grant.definition;
            (resource.trim_matches('/').to_owned(), key.clone())
        };
        named(self) == named(other)
    }

    fn reads_metadata(&self, resource: Resource<'_>) -> bool {
        let reach = match resource {
            Resource::Container(_, reach) if self.is_in(resource) => reach,
            Resource::Container(..) | Resource::Account | Resource::Database(_) => return false,
        };
        match reach {
            // The container's definition and ranges: without them a client cannot send a request.
            Reach::Whole => true,
            Reach::Script(..) => self.reaches_script(resource) || self.reaches_scripts(resource),
            Reach::Scripts(_) => self.reaches_scripts(resource),
            Reach::LogicalPartition(_) | Reach::Row { .. } | Reach::Document { .. } => false,
        }
    }

    fn reaches_script(&self, resource: Resource<'_>) -> bool {
        match (&self.scope, resource) {
            (GrantScope::Script(kind, id), Resource::Container(_, Reach::Script(asked, name))) => {
                self.is_in(resource) && asked == *kind && name == id
            }
            (GrantScope::Script(..) | GrantScope::Container | GrantScope::Document(_), _) => false,
        }
    }

    fn reaches_items(&self, resource: Resource<'_>) -> bool {
        let reach = match resource {
            Resource::Container(_, reach) if self.is_in(resource) => reach,
            Resource::Container(..) | Resource::Account | Resource::Database(_) => return false,
        };
        match &self.scope {
            GrantScope::Script(..) => false,
            GrantScope::Container => match reach {
                Reach::Whole => self.key.is_none(),
                Reach::LogicalPartition(key) | Reach::Row { key, .. } => self.includes(Some(key)),
                Reach::Document { key, .. } => self.includes(key),
                Reach::Scripts(_) | Reach::Script(..) => false,
            },
            GrantScope::Document(item) => match reach {
                Reach::Document { key, target } => self.includes(key) && item.is(target),
                Reach::Whole
                | Reach::LogicalPartition(_)
                | Reach::Row { .. }
                | Reach::Scripts(_)
                | Reach::Script(..) => false,
            },
        }
    }

    /// Whether all items of `key` are covered; an unknown key is not.
    pub(super) fn includes(&self, key: Option<&PartitionKey>) -> bool {
        match (&self.key, key) {
            (None, _) => true,
            (Some(granted), Some(key)) => granted.includes(key),
            (Some(_), None) => false,
        }
    }
}

impl Grant {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        self.definition.encode(out);
        out.number(self.container.0);
        self.scope.encode(out);
        out.option(self.key.as_ref(), |out, key| key.encode(out));
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<Grant, DecodeFault> {
        Ok(Grant {
            definition: PermissionDefinition::decode(input)?,
            container: ContainerNumber(input.number("container of a grant")?),
            scope: GrantScope::decode(input)?,
            key: input.option("key of a grant", PartitionKey::decode)?,
        })
    }
}

impl GrantScope {
    fn encode(&self, out: &mut Encoder) {
        match self {
            GrantScope::Container => out.byte(0),
            GrantScope::Document(ItemReference::Id(id)) => {
                out.byte(1);
                out.text(id);
            }
            GrantScope::Document(ItemReference::Number(number)) => {
                out.byte(2);
                out.number(*number);
            }
            GrantScope::Script(kind, id) => {
                out.byte(3);
                out.byte(kind.tag());
                out.text(id);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<GrantScope, DecodeFault> {
        match input.byte("scope of a grant")? {
            0 => Ok(GrantScope::Container),
            1 => input.text("id of a document").map(|id| GrantScope::Document(ItemReference::Id(id))),
            2 => input
                .number("number of a document")
                .map(|number| GrantScope::Document(ItemReference::Number(number))),
            3 => {
                let kind = input.choice("script kind", ScriptKind::ALL, ScriptKind::tag)?;
                Ok(GrantScope::Script(kind, input.text("name of a script")?))
            }
            tag => Err(input.unknown("scope of a grant", tag)),
        }
    }
}

impl ItemReference {
    fn is(&self, target: &Target) -> bool {
        match (self, target) {
            (ItemReference::Id(id), Target::Id(asked)) => id == asked,
            (ItemReference::Number(number), Target::Number(asked)) => *number == asked.raw(),
            (ItemReference::Id(_), Target::Number(_)) | (ItemReference::Number(_), Target::Id(_)) => false,
        }
    }
}

fn need(action: Action) -> Need {
    match action {
        Action::ReadAccount => Need::ReadAccount,
        Action::ReadMetadata => Need::ReadContainer,
        Action::ReadDocument
        | Action::ListDocuments
        | Action::QueryDocuments
        | Action::ReadChangeFeed
        | Action::ReadConflicts => Need::ReadItems,
        Action::CreateDocument
        | Action::UpsertDocument
        | Action::ReplaceDocument
        | Action::DeleteDocument
        | Action::DeleteConflicts => Need::ChangeItems,
        Action::ExecuteProcedure => Need::Execute,
        Action::ChangeMetadata => Need::ChangeScripts,
        Action::ReadUsers | Action::ReadPermissions | Action::ChangePermissions => Need::Never,
    }
}
