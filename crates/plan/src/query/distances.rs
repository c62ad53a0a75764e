//! The distance function of vectors: every `VectorDistance` without one gets that of the container's policy.

use model::policy::{DistanceFunction, VectorEmbedding};
use value::Value;

use super::{Expression, Function, Query, Source};

impl Query {
    /// The query with the distance functions of `embeddings` added to its calls.
    #[must_use]
    pub fn with_distances(&self, embeddings: &[VectorEmbedding]) -> Query {
        let mut query = self.clone();
        complete_query(&mut query, embeddings);
        query
    }
}

fn complete_query(query: &mut Query, embeddings: &[VectorEmbedding]) {
    for source in &mut query.sources {
        match source {
            Source::Container { .. } | Source::ContainerElements { .. } => {}
            Source::Value(expression) | Source::Elements(expression) => complete(expression, embeddings),
            Source::Rows(query) | Source::RowElements(query) => complete_query(query, embeddings),
        }
    }
    query.expressions_mut().into_iter().for_each(|expression| complete(expression, embeddings));
}

fn complete(expression: &mut Expression, embeddings: &[VectorEmbedding]) {
    if let Expression::Subquery(_, query) = expression {
        return complete_query(query, embeddings);
    }
    if let Expression::Call(Function::VectorDistance | Function::InternalVectorScore, arguments) = expression
        && let Some(distance) = distance_of(arguments, embeddings)
    {
        let exact = arguments.get(2).cloned().unwrap_or(Expression::Constant(Value::Bool(false)));
        let mut options = match arguments.get(3) {
            Some(Expression::Constant(Value::Object(members))) => members.clone(),
            Some(_) | None => Vec::new(),
        };
        options.push(("distanceFunction".to_owned(), Value::String(distance.to_owned())));
        arguments.truncate(2);
        arguments.extend([exact, Expression::Constant(Value::Object(options))]);
    }
    expression.children_mut().into_iter().for_each(|child| complete(child, embeddings));
}

/// The function for the path of a call that specifies none itself.
fn distance_of(arguments: &[Expression], embeddings: &[VectorEmbedding]) -> Option<&'static str> {
    let is_named = match arguments.get(3) {
        None => false,
        Some(Expression::Constant(Value::Object(members))) => {
            members.iter().any(|(name, _)| name.eq_ignore_ascii_case("distanceFunction"))
        }
        Some(_) => true,
    };
    if is_named {
        return None;
    }
    let operands = arguments.iter().take(2).filter_map(Expression::document_path);
    let embedding = operands.into_iter().find_map(|path| {
        embeddings.iter().find(|embedding| embedding.path.segments().eq(path.iter().copied()))
    })?;
    Some(match embedding.distance {
        DistanceFunction::Cosine => "cosine",
        DistanceFunction::DotProduct => "dotproduct",
        DistanceFunction::Euclidean => "euclidean",
    })
}
