//! What near means for the vectors of a path: the container's policy, told to every `VectorDistance` that does not say
//! it itself.

use model::policy::{DistanceFunction, VectorEmbedding};
use plan::query::{Expression, Function, Query, Source};
use value::Value;

use crate::computed::is_document;

/// The query with the distance functions of `embeddings` in its calls.
pub fn with_policy(query: &Query, embeddings: &[VectorEmbedding]) -> Query {
    let mut query = query.clone();
    tell_query(&mut query, embeddings);
    query
}

fn tell_query(query: &mut Query, embeddings: &[VectorEmbedding]) {
    for source in &mut query.sources {
        match source {
            Source::Container { .. } | Source::ContainerElements { .. } => {}
            Source::Value(expression) | Source::Elements(expression) => tell(expression, embeddings),
            Source::Rows(query) | Source::RowElements(query) => tell_query(query, embeddings),
        }
    }
    query.expressions_mut().into_iter().for_each(|expression| tell(expression, embeddings));
}

fn tell(expression: &mut Expression, embeddings: &[VectorEmbedding]) {
    if let Expression::Subquery(_, query) = expression {
        return tell_query(query, embeddings);
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
    expression.children_mut().into_iter().for_each(|child| tell(child, embeddings));
}

/// The function of the path in a call that names none itself.
fn distance_of(arguments: &[Expression], embeddings: &[VectorEmbedding]) -> Option<&'static str> {
    let is_told = match arguments.get(3) {
        None => false,
        Some(Expression::Constant(Value::Object(members))) => {
            members.iter().any(|(name, _)| name.eq_ignore_ascii_case("distanceFunction"))
        }
        Some(_) => true,
    };
    if is_told {
        return None;
    }
    let operands = arguments.iter().take(2).filter_map(document_path);
    let embedding = operands.into_iter().find_map(|path| {
        embeddings.iter().find(|embedding| embedding.path.segments().eq(path.iter().copied()))
    })?;
    Some(match embedding.distance {
        DistanceFunction::Cosine => "cosine",
        DistanceFunction::DotProduct => "dotproduct",
        DistanceFunction::Euclidean => "euclidean",
    })
}

/// The names of a path in the document.
fn document_path(expression: &Expression) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut base = expression;
    while let Expression::Member(inner, name) = base {
        names.push(name.as_str());
        base = inner;
    }
    names.reverse();
    is_document(base).then_some(names)
}
