//! Every fault as a code and a text.

use super::{Code, CredentialFault, Subject, TableFault, text};
use crate::account::AccountStyle;
use crate::filter::FilterFault;
use crate::wire::entity::EntityFault;
use crate::wire::multipart::MultipartFault;
use api_http::body::BodyFault;
use model::{AccessFault, ConflictFault, Fault, LimitFault, MissingFault, RequestFault, StorageFault};

impl TableFault {
    /// The code of a fault.
    pub(crate) fn code(&self, style: AccountStyle) -> Code {
        match self {
            TableFault::Core(fault, subject) => core(fault, *subject, style),
            TableFault::Entity(fault) => entity(fault),
            TableFault::Filter(fault) => filter(fault),
            TableFault::Multipart(fault) => multipart(fault),
            TableFault::Body(BodyFault::Limit(_)) => Code::RequestBodyTooLarge,
            TableFault::Body(BodyFault::Late | BodyFault::BrokenOff) => Code::InvalidInput,
            TableFault::Credential(fault) => credential(fault),
            TableFault::Request { code, .. } => *code,
            TableFault::Step { fault, .. } => fault.code(style),
        }
    }

    /// The text of a fault.
    pub(crate) fn message(&self, style: AccountStyle) -> String {
        match self {
            TableFault::Step { index, fault } => format!("{index}:{}", fault.message(style)),
            TableFault::Core(fault, subject) => core_message(fault, *subject, style),
            TableFault::Entity(_) | TableFault::Filter(_) => {
                format!("{} {}", sentence(self.code(style)), capitalised(&self.to_string()))
            }
            TableFault::Credential(fault) => {
                let sentence = if credential(fault) == Code::AuthenticationFailed {
                    "Server failed to authenticate the request. Make sure the value of Authorization header is formed \
                     correctly including the signature."
                } else {
                    "This request is not authorized to perform this operation."
                };
                format!("{sentence} {}", capitalised(&fault.to_string()))
            }
            TableFault::Multipart(_) | TableFault::Body(_) => capitalised(&self.to_string()),
            TableFault::Request { message, .. } => message.clone(),
        }
    }
}

fn core(fault: &Fault, subject: Subject, style: AccountStyle) -> Code {
    match fault {
        Fault::Request(fault) => request(fault),
        Fault::Access(fault) => match fault {
            AccessFault::TokenInvalid
            | AccessFault::TokenExpired { .. }
            | AccessFault::TokenEnded
            | AccessFault::Bearer(_) => Code::AuthenticationFailed,
            AccessFault::RoleMissing { .. }
            | AccessFault::RoleImpossible { .. }
            | AccessFault::NotPermitted { .. } => Code::AuthorizationPermissionMismatch,
        },
        Fault::Missing(fault) => match fault {
            MissingFault::Owner => Code::TableNotFound,
            MissingFault::Resource => Code::ResourceNotFound,
            MissingFault::Range { .. } | MissingFault::Session => Code::InvalidInput,
        },
        Fault::Conflict(fault) => match fault {
            ConflictFault::Id | ConflictFault::Permission { .. } | ConflictFault::UniqueKey { .. } => {
                match subject {
                    Subject::Table => Code::TableAlreadyExists,
                    Subject::Entity => Code::EntityAlreadyExists,
                }
            }
            ConflictFault::ConcurrentChange
            | ConflictFault::Locked { .. }
            | ConflictFault::ThroughputPending => Code::ServerBusy,
        },
        Fault::Precondition(_) => Code::UpdateConditionNotSatisfied,
        Fault::Query(_) => Code::OperationTimedOut,
        Fault::Limit(fault) => limit(fault, style),
        Fault::Storage(fault) => match fault {
            StorageFault::Full { .. } => Code::InsufficientStorage,
            StorageFault::Unavailable { .. } => Code::ServerBusy,
            StorageFault::Uncertain { .. } => Code::OperationTimedOut,
            StorageFault::Damaged { .. } => Code::InternalError,
        },
        Fault::Internal(_) => Code::InternalError,
    }
}

fn request(fault: &RequestFault) -> Code {
    match fault {
        RequestFault::BadName { .. } => Code::InvalidResourceName,
        RequestFault::PartitionKeyTooLong { .. } => Code::KeyValueTooLarge,
        RequestFault::ManualThroughput { .. } | RequestFault::AutoscaleThroughput { .. } => {
            Code::InvalidHeaderValue
        }
        RequestFault::BadContinuation(_) => Code::InvalidQueryParameterValue,
        RequestFault::BadProperty { .. }
        | RequestFault::BadDefinition { .. }
        | RequestFault::BadPartitionKeyValue { .. }
        | RequestFault::PartitionKeyLength { .. }
        | RequestFault::Indivisible { .. }
        | RequestFault::PartitionKeyRequired
        | RequestFault::PartitionKeyMismatch
        | RequestFault::OutsideTransaction { .. }
        | RequestFault::ImmutableProperty { .. }
        | RequestFault::BadPatch { .. }
        | RequestFault::ChangeFeed(_) => Code::InvalidInput,
    }
}

fn limit(fault: &LimitFault, style: AccountStyle) -> Code {
    match fault {
        LimitFault::TooLarge { .. } => Code::EntityTooLarge,
        LimitFault::TooManyMembers { .. } => Code::TooManyProperties,
        LimitFault::KeyBytes { .. } => Code::KeyValueTooLarge,
        LimitFault::TransactionBytes { .. }
        | LimitFault::TransactionDocuments { .. }
        | LimitFault::AnswerBytes { .. } => Code::RequestBodyTooLarge,
        LimitFault::TooManyOperations { .. } => Code::InvalidInput,
        LimitFault::LogicalPartitionFull { .. }
        | LimitFault::TooManyResources { .. }
        | LimitFault::Exhausted { .. } => Code::PartitionFull,
        LimitFault::TransactionTime { .. } => Code::OperationTimedOut,
        LimitFault::Busy { .. }
        | LimitFault::Throughput { .. }
        | LimitFault::Overloaded { .. }
        | LimitFault::Stopping { .. } => match style {
            AccountStyle::Storage => Code::ServerBusy,
            AccountStyle::Cosmos => Code::TooManyRequests,
        },
    }
}

fn entity(fault: &EntityFault) -> Code {
    match fault {
        EntityFault::RepeatedProperty { .. } => Code::DuplicatePropertiesSpecified,
        EntityFault::KeyMissing { .. } => Code::PropertiesNeedValue,
        EntityFault::KeyTooLong { .. } => Code::KeyValueTooLarge,
        EntityFault::KeyCharacter { .. } => Code::OutOfRangeInput,
        EntityFault::NameInvalid { .. } => Code::PropertyNameInvalid,
        EntityFault::NameTooLong { .. } => Code::PropertyNameTooLong,
        EntityFault::ValueTooLarge { .. } => Code::PropertyValueTooLarge,
        EntityFault::TooManyProperties { .. } => Code::TooManyProperties,
        EntityFault::EntityTooLarge { .. } => Code::EntityTooLarge,
        EntityFault::Json(_)
        | EntityFault::KeyNotText { .. }
        | EntityFault::KeyDiffers { .. }
        | EntityFault::UnknownType { .. }
        | EntityFault::NotOfType { .. }
        | EntityFault::NotPrimitive { .. } => Code::InvalidInput,
    }
}

fn filter(fault: &FilterFault) -> Code {
    match fault {
        FilterFault::Function { .. } => Code::NotImplemented,
        FilterFault::TooLong { .. }
        | FilterFault::TooDeep { .. }
        | FilterFault::Unexpected { .. }
        | FilterFault::UnterminatedText { .. }
        | FilterFault::MalformedLiteral { .. }
        | FilterFault::NotPropertyAndLiteral { .. } => Code::InvalidInput,
    }
}

fn multipart(fault: &MultipartFault) -> Code {
    match fault {
        MultipartFault::TooLarge { .. } => Code::RequestBodyTooLarge,
        MultipartFault::ContentType
        | MultipartFault::Empty
        | MultipartFault::Unterminated
        | MultipartFault::MalformedBoundary { .. }
        | MultipartFault::SeveralParts
        | MultipartFault::TooManyOperations { .. }
        | MultipartFault::NestedChangeset { .. }
        | MultipartFault::PartContentType { .. }
        | MultipartFault::MalformedHeader { .. }
        | MultipartFault::TooManyHeaders { .. }
        | MultipartFault::MalformedRequestLine { .. }
        | MultipartFault::QueryInChangeset { .. }
        | MultipartFault::WriteOutsideChangeset => Code::InvalidInput,
    }
}

fn credential(fault: &CredentialFault) -> Code {
    match fault {
        CredentialFault::Missing
        | CredentialFault::Malformed { .. }
        | CredentialFault::UnknownAccount { .. }
        | CredentialFault::Date
        | CredentialFault::Skew { .. }
        | CredentialFault::Signature { .. }
        | CredentialFault::SignatureField { .. }
        | CredentialFault::Time
        | CredentialFault::UnknownPolicy
        | CredentialFault::PolicyConflict => Code::AuthenticationFailed,
        CredentialFault::Address => Code::AuthorizationSourceIpMismatch,
        CredentialFault::Protocol => Code::AuthorizationProtocolMismatch,
        CredentialFault::Service => Code::AuthorizationServiceMismatch,
        CredentialFault::ResourceType => Code::AuthorizationResourceTypeMismatch,
        CredentialFault::Permission => Code::AuthorizationPermissionMismatch,
    }
}

fn core_message(fault: &Fault, subject: Subject, style: AccountStyle) -> String {
    let code = core(fault, subject, style);
    if code == Code::InternalError {
        return "The server encountered an internal error; its log has the cause.".to_owned();
    }
    let sentence = sentence(code);
    let says_all = [
        Code::EntityAlreadyExists,
        Code::TableAlreadyExists,
        Code::ResourceNotFound,
        Code::TableNotFound,
        Code::UpdateConditionNotSatisfied,
    ];
    if says_all.contains(&code) {
        return sentence.to_owned();
    }
    format!("{sentence} {}", capitalised(&text::of_core(fault))).trim_start().to_owned()
}

/// The sentence of the service for a code.
fn sentence(code: Code) -> &'static str {
    match code {
        Code::EntityAlreadyExists => "The specified entity already exists.",
        Code::TableAlreadyExists => "The table specified already exists.",
        Code::TableNotFound => "The table specified does not exist.",
        Code::ResourceNotFound => "The specified resource does not exist.",
        Code::UpdateConditionNotSatisfied => {
            "The update condition specified in the request was not satisfied."
        }
        Code::InvalidInput => "One of the request inputs is not valid.",
        Code::OutOfRangeInput => "One of the request inputs is out of range.",
        Code::PropertiesNeedValue => "The values are not specified for all properties in the entity.",
        Code::PropertyNameInvalid => "The property name is invalid.",
        Code::PropertyNameTooLong => "The property name exceeds the maximum allowed length (255).",
        Code::PropertyValueTooLarge => {
            "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is \
             UTF-16 encoded and the maximum number of characters should be 32K or less."
        }
        Code::TooManyProperties => {
            "The entity contains more properties than allowed. Each entity can include up to 252 properties to store \
             data. Each entity also has 3 system properties."
        }
        Code::EntityTooLarge => "The entity is larger than the maximum size permitted.",
        Code::KeyValueTooLarge => "The key value exceeds the maximum allowed size.",
        Code::DuplicatePropertiesSpecified => "A property is specified more than one time.",
        Code::ServerBusy => "The server is currently unable to receive requests. Please retry your request.",
        Code::TooManyRequests => "The request rate is too large. Please retry your request.",
        Code::AuthorizationPermissionMismatch => {
            "This request is not authorized to perform this operation using this permission."
        }
        Code::NotImplemented => "The requested operation is not implemented on the specified resource.",
        Code::InvalidResourceName => "The specified resource name contains invalid characters.",
        Code::AtomFormatNotSupported
        | Code::AuthenticationFailed
        | Code::MediaTypeNotSupported
        | Code::AuthorizationProtocolMismatch
        | Code::AuthorizationResourceTypeMismatch
        | Code::AuthorizationServiceMismatch
        | Code::AuthorizationSourceIpMismatch
        | Code::CommandsInBatchActOnDifferentPartitions
        | Code::CorsPreflightFailure
        | Code::InsufficientStorage
        | Code::InternalError
        | Code::InvalidDuplicateRow
        | Code::InvalidHeaderValue
        | Code::InvalidQueryParameterValue
        | Code::InvalidUri
        | Code::InvalidXmlDocument
        | Code::MissingRequiredHeader
        | Code::OperationTimedOut
        | Code::PartitionFull
        | Code::RequestBodyTooLarge
        | Code::ResourceTypeMismatch
        | Code::UnsupportedHttpVerb => "",
    }
}

/// A fault's text as a sentence.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), characters.as_str().trim_end_matches('.')),
        None => String::new(),
    }
}
