//! Delegations: the rights that the holder of an account key has signed away, narrower than its own.
//!
//! A delegation covers one database or one container of it, some actions on documents, and possibly an interval of
//! document keys. The key of a document has two parts: its partition key, which is one string, and its *row*, the
//! string that distinguishes the documents of a partition key. Denies by default.

use super::{Action, Reach, Resource, Sought};
use model::{KeyComponent, PartitionKey};
use plan::query::{BinaryOperator, Expression, SlotId};
use value::Value;

/// What is delegated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The database.
    pub database: String,
    /// The container; `None` for all of the database.
    pub container: Option<String>,
    /// Allowed actions on documents.
    pub documents: Vec<Action>,
    /// Allowed actions on the catalog.
    pub catalog: CatalogRights,
    /// The documents that can be reached; all without it.
    pub keys: Option<KeyInterval>,
}

/// Allowed actions on the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogRights {
    /// Read definitions of the database and its containers.
    pub read: bool,
    /// Create containers, and change what belongs to the database.
    pub create: bool,
    /// Delete containers.
    pub delete: bool,
}

/// An interval of document keys, ordered by partition key, then by row. Both ends are included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInterval {
    /// The properties with partition key and row.
    pub properties: [String; 2],
    /// The first key.
    pub first: Option<KeyBound>,
    /// The last key.
    pub last: Option<KeyBound>,
}

/// One end of an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBound {
    /// The partition key.
    pub partition: String,
    /// The row; without it the end includes all rows of the partition key.
    pub row: Option<String>,
}

impl Delegation {
    /// Whether the holder may perform `action` on `resource`.
    pub(super) fn allows(&self, action: Action, resource: Resource<'_>) -> bool {
        match resource {
            Resource::Account => false,
            Resource::Database(database) => {
                database.id() == self.database
                    && self.container.is_none()
                    && self.allows_in_catalog(action, self.catalog.create)
            }
            Resource::Container(container, reach) => {
                self.includes(container.database().id(), Some(container.id()))
                    && match reach {
                        Reach::Whole if self.allows_in_catalog(action, self.catalog.delete) => true,
                        Reach::Whole => self.keys.is_none() && self.documents.contains(&action),
                        Reach::LogicalPartition(key) => self.reaches(action, Some(key), None),
                        Reach::Row { key, row } => self.reaches(action, Some(key), Some(row)),
                        Reach::Document { key, .. } => self.reaches(action, key, None),
                        Reach::Scripts(_) | Reach::Script(..) => false,
                    }
            }
        }
    }

    /// Whether the holder may query the documents of `scope` as far as the interval of keys includes them.
    pub(super) fn allows_restricted(&self, action: Action, resource: Resource<'_>) -> bool {
        match resource {
            Resource::Container(container, Reach::Whole | Reach::LogicalPartition(_)) => {
                self.includes(container.database().id(), Some(container.id()))
                    && self.documents.contains(&action)
            }
            Resource::Container(..) | Resource::Account | Resource::Database(_) => false,
        }
    }

    /// Whether the holder may perform `action` somewhere.
    pub(super) fn allows_somewhere(&self, action: Action) -> bool {
        self.documents.contains(&action)
            || self.allows_in_catalog(action, self.catalog.create || self.catalog.delete)
    }

    /// Whether the holder may know whether this exists.
    pub(super) fn may_seek(&self, sought: Sought<'_>) -> bool {
        match sought.container {
            Some(container) => self.includes(sought.database, Some(container)),
            None => self.database == sought.database && self.container.is_none(),
        }
    }

    fn includes(&self, database: &str, container: Option<&str>) -> bool {
        self.database == database
            && self.container.as_deref().is_none_or(|own| container.is_some_and(|name| name == own))
    }

    fn allows_in_catalog(&self, action: Action, changes: bool) -> bool {
        match action {
            Action::ReadMetadata => self.catalog.read,
            Action::ChangeMetadata => changes,
            Action::ReadAccount
            | Action::ReadUsers
            | Action::ReadPermissions
            | Action::ChangePermissions
            | Action::ReadDocument
            | Action::ListDocuments
            | Action::QueryDocuments
            | Action::ReadChangeFeed
            | Action::CreateDocument
            | Action::UpsertDocument
            | Action::ReplaceDocument
            | Action::DeleteDocument
            | Action::ExecuteProcedure
            | Action::ReadConflicts
            | Action::DeleteConflicts => false,
        }
    }

    fn reaches(&self, action: Action, key: Option<&PartitionKey>, row: Option<&str>) -> bool {
        let is_inside = match (&self.keys, key.map(|key| &key.components[..])) {
            (None, _) => true,
            (Some(keys), Some([KeyComponent::String(partition)])) => keys.contains(partition, row),
            (Some(_), _) => false,
        };
        is_inside && self.documents.contains(&action)
    }
}

impl KeyInterval {
    /// Whether it contains this key; without a row, whether it contains all rows of the partition key.
    fn contains(&self, partition: &str, row: Option<&str>) -> bool {
        let after_first = self.first.as_ref().is_none_or(|first| {
            let is_row_inside = |bound: &String| row.map_or(bound.is_empty(), |row| row >= bound.as_str());
            partition > first.partition.as_str()
                || partition == first.partition && first.row.as_ref().is_none_or(is_row_inside)
        });
        let before_last = self.last.as_ref().is_none_or(|last| {
            let is_row_inside = |bound: &String| row.is_some_and(|row| row <= bound.as_str());
            partition < last.partition.as_str()
                || partition == last.partition && last.row.as_ref().is_none_or(is_row_inside)
        });
        after_first && before_last
    }

    /// The filter that only documents of the interval pass; `None` if all do.
    pub(crate) fn filter(&self) -> Option<Expression> {
        use BinaryOperator::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let first = self.first.as_ref().map(|bound| self.beyond(bound, Greater, GreaterOrEqual));
        let last = self.last.as_ref().map(|bound| self.beyond(bound, Less, LessOrEqual));
        match (first, last) {
            (Some(first), Some(last)) => Some(Expression::And(vec![first, last])),
            (Some(one), None) | (None, Some(one)) => Some(one),
            (None, None) => None,
        }
    }

    fn beyond(&self, bound: &KeyBound, strictly: BinaryOperator, or_equal: BinaryOperator) -> Expression {
        let [partition, row] = &self.properties;
        let compare = |operator, property: &String, text: &str| {
            let path = Expression::path(SlotId::DOCUMENT, [property.clone()]);
            Expression::Binary(operator, Box::new(path), Box::new(Expression::Constant(Value::from(text))))
        };
        match &bound.row {
            None => compare(or_equal, partition, &bound.partition),
            Some(row_bound) => {
                let same = compare(BinaryOperator::Equal, partition, &bound.partition);
                let inside = Expression::And(vec![same, compare(or_equal, row, row_bound)]);
                Expression::Or(vec![compare(strictly, partition, &bound.partition), inside].into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(first: Option<(&str, Option<&str>)>, last: Option<(&str, Option<&str>)>) -> KeyInterval {
        let bound = |(partition, row): (&str, Option<&str>)| KeyBound {
            partition: partition.to_owned(),
            row: row.map(str::to_owned),
        };
        let properties = ["p".to_owned(), "r".to_owned()];
        KeyInterval { properties, first: first.map(bound), last: last.map(bound) }
    }

    #[test]
    fn an_interval_includes_its_ends() {
        let both = interval(Some(("b", Some("2"))), Some(("d", Some("4"))));
        for (partition, row, inside) in [
            ("a", "9", false),
            ("b", "1", false),
            ("b", "2", true),
            ("c", "", true),
            ("d", "4", true),
            ("d", "41", false),
            ("e", "", false),
        ] {
            assert_eq!(both.contains(partition, Some(row)), inside, "{partition} {row}");
        }
        let whole = |partition| both.contains(partition, None);
        assert!(whole("c") && !whole("b") && !whole("d") && !whole("a"));
        let open = interval(Some(("b", None)), None);
        assert!(open.contains("b", None) && open.contains("z", Some("")) && !open.contains("a", Some("z")));
        let one = interval(Some(("b", None)), Some(("b", None)));
        assert!(one.contains("b", None) && !one.contains("ba", Some("")));
        assert!(interval(None, None).contains("", None));
    }
}
