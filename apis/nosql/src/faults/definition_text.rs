//! Texts about names and definitions that violate a rule of the core. Fields have their names on the wire.

use crate::lower::check_computed_query;
use model::limits::NAME_CHARS_MAX;
use model::{
    ComputedRule, DefinitionList, DefinitionNumber, DefinitionPart, DefinitionRule, EncryptionRule,
    IndexRule, NameRule, PolicyPathError, ThroughputRule,
};

/// The text about a name.
pub(super) fn name_text(name: &str, rule: NameRule) -> String {
    let reason = match rule {
        NameRule::NotEmpty => "it is empty".to_owned(),
        NameRule::Length { chars_max } => format!("it has more than {chars_max} characters"),
        NameRule::Character(character) => format!("the character {character:?} is not allowed"),
        NameRule::FinalSpace => "it ends with a space".to_owned(),
    };
    let hint =
        format!("Ensure to provide a unique non-empty string less than '{NAME_CHARS_MAX}' characters.");
    format!("the name \"{name}\" is invalid: {reason}. {hint}")
}

/// The text about a definition.
pub(super) fn definition_text(part: DefinitionPart, rule: &DefinitionRule) -> String {
    let (field, reason) = (field(part), reason(part, rule));
    format!(
        "One of the specified inputs is invalid: the field \"{field}\" of the definition is invalid: {reason}"
    )
}

fn field(part: DefinitionPart) -> &'static str {
    match part {
        DefinitionPart::PartitionKey => "partitionKey",
        DefinitionPart::UniqueKeys => "uniqueKeyPolicy",
        DefinitionPart::Indexing => "indexingPolicy",
        DefinitionPart::Conflicts => "conflictResolutionPolicy",
        DefinitionPart::ChangeFeed => "changeFeedPolicy",
        DefinitionPart::ComputedProperties => "computedProperties",
        DefinitionPart::Vectors => "vectorEmbeddingPolicy",
        DefinitionPart::FullText => "fullTextPolicy",
        DefinitionPart::ClientEncryption => "clientEncryptionPolicy",
        DefinitionPart::DefaultTtl => "defaultTtl",
        DefinitionPart::AnalyticalTtl => "analyticalStorageTtl",
        DefinitionPart::ScriptBody => "body",
        DefinitionPart::EncryptionAlgorithm => "encryptionAlgorithm",
        DefinitionPart::WrappedKey => "wrappedDataEncryptionKey",
        DefinitionPart::WrapMetadata => "keyWrapMetadata",
        DefinitionPart::PermissionResource => "resource",
        DefinitionPart::Throughput => "content",
        DefinitionPart::ManualThroughput => "content.offerThroughput",
        DefinitionPart::AutoscaleThroughput => "content.offerAutopilotSettings.maxThroughput",
    }
}

fn reason(part: DefinitionPart, rule: &DefinitionRule) -> String {
    match rule {
        DefinitionRule::NotEmpty => "it is empty".to_owned(),
        DefinitionRule::Base64 => "it is not base64".to_owned(),
        DefinitionRule::Length { bytes, bytes_max } => {
            format!("it has {bytes} bytes, {bytes_max} are allowed")
        }
        DefinitionRule::MissingText { name } => format!("it needs a string \"{name}\""),
        DefinitionRule::Bounds { number, given, min, max } => bounds(*number, *given, *min, *max),
        DefinitionRule::Seconds { seconds_max } if part == DefinitionPart::AnalyticalTtl => {
            format!("it must be a whole number from -1 to {seconds_max}")
        }
        DefinitionRule::Seconds { seconds_max } => {
            format!("it must be -1 or a whole number from 1 to {seconds_max}")
        }
        DefinitionRule::Count { list, given, max } => {
            format!("{given} {} given, {max} allowed", list_name(*list))
        }
        DefinitionRule::PathCount { given, min, max } if part == DefinitionPart::Indexing => {
            format!("{given} paths in a composite index, {min} to {max} allowed")
        }
        DefinitionRule::PathCount { given, min, max } if part == DefinitionPart::UniqueKeys => {
            format!("{given} paths in a constraint, {min} to {max} allowed")
        }
        DefinitionRule::PathCount { given: given @ 1.., max, .. } if part == DefinitionPart::PartitionKey => {
            format!("Too many partition key paths ({given}) specified. A maximum of {max} is allowed.")
        }
        DefinitionRule::PathCount { given, min, max } => {
            format!("{given} paths given, {min} to {max} allowed")
        }
        DefinitionRule::KeyPath { path, position } => format!(
            "The partition key component definition path '{path}' could not be accepted, failed near position \
             '{position}'. Partition key paths must contain only valid characters and not contain a trailing slash \
             or wildcard character."
        ),
        DefinitionRule::Path { error, .. }
            if matches!(part, DefinitionPart::PartitionKey | DefinitionPart::UniqueKeys) =>
        {
            error.to_string()
        }
        DefinitionRule::Path { path, error } => format!("the path \"{path}\" is invalid: {error}"),
        DefinitionRule::PolicyPath { path, error } => {
            format!("the path \"{path}\" is invalid: {}", policy_path(*error))
        }
        DefinitionRule::RepeatedPath(path) if part == DefinitionPart::PartitionKey => {
            format!("path \"{path}\" is given twice")
        }
        DefinitionRule::RepeatedPath(path) => format!("the path \"{path}\" is given twice"),
        DefinitionRule::OtherDatabase => "it is in another database than the user".to_owned(),
        DefinitionRule::Index(rule) => index(rule),
        DefinitionRule::Computed(rule) => computed(rule),
        DefinitionRule::Encryption(rule) => encryption(rule),
        DefinitionRule::Throughput(rule) => throughput(*rule),
    }
}

/// The service's sentences about the numbers of vectors.
fn bounds(number: DefinitionNumber, given: i64, min: u32, max: u32) -> String {
    let parameter = |name: &str| {
        format!(
            "The Vector Indexing Policy parameter {name} value :: {given} is out of range. The allowed range is \
             between {min} and {max}."
        )
    };
    match number {
        DefinitionNumber::QuantizationBytes => parameter("QuantizationByteSize"),
        DefinitionNumber::SearchListSize => parameter("IndexingSearchListSize"),
        DefinitionNumber::Dimensions if given > i64::from(max) => format!(
            "The Vector Embedding Policy has Dimensions:{given} which is more than the maximum supported value {max}"
        ),
        DefinitionNumber::Dimensions => format!(
            "The Vector Embedding Policy has Dimensions:{given} which is less than the minimum supported value {min}"
        ),
        DefinitionNumber::RetentionMinutes | DefinitionNumber::EncryptionVersion => {
            format!("\"{}\" must be a whole number from {min} to {max}", number_name(number))
        }
    }
}

fn number_name(number: DefinitionNumber) -> &'static str {
    match number {
        DefinitionNumber::RetentionMinutes => "retentionDuration",
        DefinitionNumber::EncryptionVersion => "policyFormatVersion",
        DefinitionNumber::Dimensions => "dimensions",
        DefinitionNumber::QuantizationBytes => "quantizationByteSize",
        DefinitionNumber::SearchListSize => "indexingSearchListSize",
    }
}

fn list_name(list: DefinitionList) -> &'static str {
    match list {
        DefinitionList::UniqueKeys => "constraints",
        DefinitionList::ComputedProperties => "properties",
        DefinitionList::CompositeIndexes => "composite indexes",
        DefinitionList::IncludedPaths => "entries of \"includedPaths\"",
        DefinitionList::ExcludedPaths => "entries of \"excludedPaths\"",
        DefinitionList::SpatialIndexes => "entries of \"spatialIndexes\"",
        DefinitionList::VectorIndexes => "entries of \"vectorIndexes\"",
        DefinitionList::FullTextIndexes => "entries of \"fullTextIndexes\"",
    }
}

fn policy_path(error: PolicyPathError) -> &'static str {
    match error {
        PolicyPathError::MissingSlash => "a '/' is missing",
        PolicyPathError::MissingEnd => "it must end with \"/?\" or \"/*\"",
        PolicyPathError::ScalarRoot => "the root is no scalar, it must be \"/*\"",
        PolicyPathError::EmptyName => "a name is empty",
        PolicyPathError::Wildcard => "a wildcard stands at the end only",
        PolicyPathError::Unquoted => {
            "a name with other characters than letters, digits and '_' must be in double quotes"
        }
        PolicyPathError::UnclosedQuote => "a quote is not closed",
    }
}

fn index(rule: &IndexRule) -> String {
    match rule {
        IndexRule::RepeatedCompositePath(path) => {
            format!("the path \"{path}\" is twice in a composite index")
        }
        IndexRule::RepeatedComposite => "a composite index is given twice".to_owned(),
        IndexRule::RepeatedIndex(path) => format!("the path \"{path}\" has two indexes of one kind"),
        IndexRule::RepeatedSpatialType(twice) => format!("the spatial type {} is given twice", twice.name()),
        IndexRule::AutomaticWithoutIndexing => {
            "\"automatic\" must be false when the indexing mode is none".to_owned()
        }
        IndexRule::PathsWithoutIndexing => "there must be no paths when the indexing mode is none".to_owned(),
        IndexRule::MissingBox(path) => {
            format!("the spatial index \"{path}\" of a Geometry needs a \"boundingBox\"")
        }
        IndexRule::UnexpectedBox(path) => {
            format!("the spatial index \"{path}\" of a Geography has no \"boundingBox\"")
        }
        IndexRule::EmptyBox => "\"boundingBox\" must have its minimum below its maximum".to_owned(),
        IndexRule::QuantizedFlat => "a flat vector index is not quantized".to_owned(),
        IndexRule::SearchListWithoutGraph => {
            "only a diskANN index has an \"indexingSearchListSize\"".to_owned()
        }
        IndexRule::ShardedFlat => "a flat vector index has no \"vectorIndexShardKey\"".to_owned(),
        IndexRule::MissingEmbedding(path) => {
            format!("The Vector Indexing Policy's path::{path} not matching in Embedding's path.")
        }
        IndexRule::FlatDimensions { path, dimensions, max } => {
            format!("the flat index on \"{path}\" holds {max} dimensions, not {dimensions}")
        }
        IndexRule::ChangedVectorIndex => {
            "Paths in existing vector indexing policy cannot be modified in Collection Replace".to_owned()
        }
        IndexRule::MissingFullText(path) => {
            format!("the full-text index on \"{path}\" has no path in the full-text policy")
        }
    }
}

fn computed(rule: &ComputedRule) -> String {
    match rule {
        ComputedRule::RepeatedName(name) => format!("the name \"{name}\" is given twice"),
        ComputedRule::NameCharacters(name) => {
            format!("the name \"{name}\" must have letters, digits and '_' only")
        }
        ComputedRule::ReservedName(name) => {
            format!("the name \"{name}\" belongs to a property of the document")
        }
        ComputedRule::NotSelectValue(name) => {
            format!("the query of \"{name}\" must begin with SELECT VALUE")
        }
        // The core only knows that the text is invalid; it is parsed again for the reason.
        ComputedRule::Query { query } => match check_computed_query(query) {
            Ok(()) => "a query cannot be parsed".to_owned(),
            Err(fault) => fault.to_string(),
        },
    }
}

fn encryption(rule: &EncryptionRule) -> String {
    match rule {
        EncryptionRule::Nested(path) => format!("the path \"{path}\" must be of a top-level property"),
        EncryptionRule::Version(path) => {
            format!("\"{path}\" can be encrypted from \"policyFormatVersion\" 2 on only")
        }
        EncryptionRule::NotDeterministic(path) => format!("\"{path}\" must be encrypted deterministically"),
        EncryptionRule::UnknownKey(key) => format!("the database has no client encryption key \"{key}\""),
    }
}

fn throughput(rule: ThroughputRule) -> String {
    match rule {
        ThroughputRule::IsAutoscale => "the throughput is autoscale: migrate it to manual first".to_owned(),
        ThroughputRule::IsManual => "the throughput is manual: migrate it to autoscale first".to_owned(),
        ThroughputRule::AlreadyAutoscale => "the throughput is autoscale already".to_owned(),
        ThroughputRule::AlreadyManual => "the throughput is manual already".to_owned(),
        ThroughputRule::Bounds { rate, min, max, step } => {
            format!("it must be from {min} to {max} in steps of {step}, not {rate}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use value::PropertyPath;

    #[test]
    fn a_path_is_named_unless_its_fault_names_the_place() {
        let rule = |path: &str| {
            let error = PropertyPath::parse(path).unwrap_err();
            DefinitionRule::Path { path: path.to_owned(), error }
        };
        let text = |part| definition_text(part, &rule("a"));
        assert_eq!(
            text(DefinitionPart::PartitionKey),
            "One of the specified inputs is invalid: the field \"partitionKey\" of the definition is invalid: missing '/' at byte 0 of a path"
        );
        assert_eq!(
            text(DefinitionPart::Conflicts),
            "One of the specified inputs is invalid: the field \"conflictResolutionPolicy\" of the definition is invalid: the path \"a\" is invalid: missing \
             '/' at byte 0 of a path"
        );
    }

    #[test]
    fn an_invalid_query_has_the_reason_of_the_parser() {
        let rule = ComputedRule::Query { query: "SELECT VALUE".to_owned() };
        let text = definition_text(DefinitionPart::ComputedProperties, &rule.into());
        let beginning = "One of the specified inputs is invalid: the field \"computedProperties\" of the definition is invalid: the query text is invalid: ";
        assert!(text.starts_with(beginning) && text.len() > beginning.len(), "{text}");
    }

    #[test]
    fn names_and_counts() {
        assert_eq!(
            name_text("a/b", NameRule::Character('/')),
            "the name \"a/b\" is invalid: the character '/' is not allowed. Ensure to provide a unique non-empty \
             string less than '255' characters."
        );
        let rule = DefinitionRule::Count { list: DefinitionList::VectorIndexes, given: 9, max: 8 };
        assert_eq!(
            reason(DefinitionPart::Indexing, &rule),
            "9 entries of \"vectorIndexes\" given, 8 allowed"
        );
        let rule = DefinitionRule::PathCount { given: 9, min: 2, max: 8 };
        assert_eq!(reason(DefinitionPart::Indexing, &rule), "9 paths in a composite index, 2 to 8 allowed");
        let rule = DefinitionRule::Seconds { seconds_max: 7 };
        assert_eq!(reason(DefinitionPart::DefaultTtl, &rule), "it must be -1 or a whole number from 1 to 7");
    }
}
