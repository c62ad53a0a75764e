//! Annotations: texts that an API keeps with a database or a container, durably and until that is deleted. They are not
//! interpreted here.

use super::change::Change;
use super::entries::{Container, Database};
use super::shelf::Entry;
use super::small::{Creation, EntryDraft};
use crate::authorisation::{AdminPass, CatalogPass};
use crate::engine::Engine;
use model::{
    ContainerNumber, DatabaseNumber, DecodeFault, Decoder, Encoder, Fault, LimitFault, MissingFault, Rid,
};
use plan::Condition;
use std::sync::Arc;

/// Largest text of an annotation in bytes.
const ANNOTATION_BYTES_MAX: usize = 64 * 1024;

/// The beginning of the names of annotations that every caller may see.
const PUBLISHED: &str = "public.";

/// An annotation.
pub type Annotation = Entry<AnnotationDefinition>;

/// The content of an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationDefinition {
    /// The annotated container; `None` for an annotation of the database.
    container: Option<ContainerNumber>,
    /// The text.
    pub text: String,
}

impl AnnotationDefinition {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.number(self.container.map_or(0, |container| container.0));
        out.text(&self.text);
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<AnnotationDefinition, DecodeFault> {
        let container = ContainerNumber(input.number("annotated container")?);
        let text = input.text("text of an annotation")?;
        Ok(AnnotationDefinition { container: Some(container).filter(|container| container.0 != 0), text })
    }
}

/// The name of an annotation among all of its database.
fn stored_name(container: Option<ContainerNumber>, name: &str) -> String {
    match container {
        Some(container) => format!("{}/{name}", container.0),
        None => name.to_owned(),
    }
}

/// What is annotated.
type Place = (DatabaseNumber, Option<ContainerNumber>);

impl Engine {
    /// The annotation of a database with this name.
    pub fn database_annotation(&self, pass: &CatalogPass<&Database>, name: &str) -> Option<Arc<Annotation>> {
        self.annotation_at((pass.resource.number(), None), name)
    }

    /// The annotation of a container with this name.
    pub fn container_annotation(
        &self,
        pass: &CatalogPass<&Container>,
        name: &str,
    ) -> Option<Arc<Annotation>> {
        self.annotation_at((pass.resource.database().number(), Some(pass.resource.number())), name)
    }

    /// Stores an annotation of a database in place of the one with the same name.
    pub async fn annotate_database(
        &self,
        pass: AdminPass<&Database>,
        name: &str,
        text: String,
    ) -> Result<(), Fault> {
        self.annotate((pass.resource.number(), None), name, text).await
    }

    /// Stores an annotation of a container in place of the one with the same name.
    pub async fn annotate_container(
        &self,
        pass: AdminPass<&Container>,
        name: &str,
        text: String,
    ) -> Result<(), Fault> {
        let place = (pass.resource.database().number(), Some(pass.resource.number()));
        self.annotate(place, name, text).await
    }

    /// An annotation of a database that every caller may see, such as which web pages may use an API. Its name begins
    /// with `public.`.
    pub fn published_annotation(&self, database: &str, name: &str) -> Option<Arc<Annotation>> {
        let state = self.catalog.state();
        let database = state.find_database_by_name(database).filter(|_| name.starts_with(PUBLISHED))?;
        state.shelves.annotations.find_by_name(database.rid(), name).cloned()
    }

    fn annotation_at(&self, (database, container): Place, name: &str) -> Option<Arc<Annotation>> {
        let id = stored_name(container, name);
        self.catalog.state().shelves.annotations.find_by_name(Rid::Database(database), &id).cloned()
    }

    async fn annotate(&self, (database, container): Place, name: &str, text: String) -> Result<(), Fault> {
        if text.len() > ANNOTATION_BYTES_MAX {
            return Err(LimitFault::TooLarge { bytes: text.len(), limit: ANNOTATION_BYTES_MAX }.into());
        }
        let mut change = self.catalog.begin(self).await?;
        change.state.database(database).ok_or(MissingFault::Owner)?;
        if let Some(container) = container {
            change.state.container(container).ok_or(MissingFault::Resource)?;
        }
        let id = stored_name(container, name);
        let definition = AnnotationDefinition { container, text };
        let wanted = EntryDraft { parent: Rid::Database(database), id: &id, definition };
        let creation = Creation::OrReplace(Condition::None);
        let rid = |number| Rid::DatabaseChild(database, number);
        change.create_or_replace(|shelves| &mut shelves.annotations, &creation, wanted, rid)?;
        change.commit().await
    }
}

impl Change<'_> {
    /// Removes the annotations of a container.
    pub(super) fn drop_annotations(&mut self, container: &Container) {
        let all = self.state.shelves.annotations.children(container.database().rid());
        let is_own = |entry: &&Arc<Annotation>| entry.definition().container == Some(container.number());
        for entry in all.iter().filter(is_own) {
            self.drop_entry(|shelves| &mut shelves.annotations, entry);
        }
    }
}
