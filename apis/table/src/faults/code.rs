//! Codes of the service with their statuses and texts.

use crate::account::AccountStyle;
use http::StatusCode;

/// An error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the code of the same name
pub(crate) enum Code {
    AtomFormatNotSupported,
    AuthenticationFailed,
    AuthorizationPermissionMismatch,
    AuthorizationProtocolMismatch,
    AuthorizationResourceTypeMismatch,
    AuthorizationServiceMismatch,
    AuthorizationSourceIpMismatch,
    CommandsInBatchActOnDifferentPartitions,
    CorsPreflightFailure,
    DuplicatePropertiesSpecified,
    EntityAlreadyExists,
    EntityTooLarge,
    InsufficientStorage,
    InternalError,
    InvalidDuplicateRow,
    InvalidHeaderValue,
    InvalidInput,
    InvalidQueryParameterValue,
    InvalidResourceName,
    InvalidUri,
    InvalidXmlDocument,
    KeyValueTooLarge,
    MediaTypeNotSupported,
    MissingRequiredHeader,
    NotImplemented,
    OperationTimedOut,
    OutOfRangeInput,
    PartitionFull,
    PropertiesNeedValue,
    PropertyNameInvalid,
    PropertyNameTooLong,
    PropertyValueTooLarge,
    RequestBodyTooLarge,
    ResourceNotFound,
    ResourceTypeMismatch,
    ServerBusy,
    TableAlreadyExists,
    TableNotFound,
    TooManyProperties,
    TooManyRequests,
    UnsupportedHttpVerb,
    UpdateConditionNotSatisfied,
}

impl Code {
    /// The code as text.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Code::AtomFormatNotSupported => "AtomFormatNotSupported",
            Code::AuthenticationFailed => "AuthenticationFailed",
            Code::AuthorizationPermissionMismatch => "AuthorizationPermissionMismatch",
            Code::AuthorizationProtocolMismatch => "AuthorizationProtocolMismatch",
            Code::AuthorizationResourceTypeMismatch => "AuthorizationResourceTypeMismatch",
            Code::AuthorizationServiceMismatch => "AuthorizationServiceMismatch",
            Code::AuthorizationSourceIpMismatch => "AuthorizationSourceIPMismatch",
            Code::CommandsInBatchActOnDifferentPartitions => "CommandsInBatchActOnDifferentPartitions",
            Code::CorsPreflightFailure => "CorsPreflightFailure",
            Code::DuplicatePropertiesSpecified => "DuplicatePropertiesSpecified",
            Code::EntityAlreadyExists => "EntityAlreadyExists",
            Code::EntityTooLarge => "EntityTooLarge",
            Code::InsufficientStorage => "InsufficientStorage",
            Code::InternalError => "InternalError",
            Code::InvalidDuplicateRow => "InvalidDuplicateRow",
            Code::InvalidHeaderValue => "InvalidHeaderValue",
            Code::InvalidInput => "InvalidInput",
            Code::InvalidQueryParameterValue => "InvalidQueryParameterValue",
            Code::InvalidResourceName => "InvalidResourceName",
            Code::InvalidUri => "InvalidUri",
            Code::InvalidXmlDocument => "InvalidXmlDocument",
            Code::KeyValueTooLarge => "KeyValueTooLarge",
            Code::MediaTypeNotSupported => "MediaTypeNotSupported",
            Code::MissingRequiredHeader => "MissingRequiredHeader",
            Code::NotImplemented => "NotImplemented",
            Code::OperationTimedOut => "OperationTimedOut",
            Code::OutOfRangeInput => "OutOfRangeInput",
            Code::PartitionFull => "PartitionFull",
            Code::PropertiesNeedValue => "PropertiesNeedValue",
            Code::PropertyNameInvalid => "PropertyNameInvalid",
            Code::PropertyNameTooLong => "PropertyNameTooLong",
            Code::PropertyValueTooLarge => "PropertyValueTooLarge",
            Code::RequestBodyTooLarge => "RequestBodyTooLarge",
            Code::ResourceNotFound => "ResourceNotFound",
            Code::ResourceTypeMismatch => "ResourceTypeMismatch",
            Code::ServerBusy => "ServerBusy",
            Code::TableAlreadyExists => "TableAlreadyExists",
            Code::TableNotFound => "TableNotFound",
            Code::TooManyProperties => "TooManyProperties",
            Code::TooManyRequests => "TooManyRequests",
            Code::UnsupportedHttpVerb => "UnsupportedHttpVerb",
            Code::UpdateConditionNotSatisfied => "UpdateConditionNotSatisfied",
        }
    }

    /// The status of an answer with this code.
    pub(crate) fn status(self, style: AccountStyle) -> StatusCode {
        match self {
            Code::AuthenticationFailed => match style {
                AccountStyle::Storage => StatusCode::FORBIDDEN,
                AccountStyle::Cosmos => StatusCode::UNAUTHORIZED,
            },
            Code::AuthorizationPermissionMismatch
            | Code::AuthorizationProtocolMismatch
            | Code::AuthorizationResourceTypeMismatch
            | Code::AuthorizationServiceMismatch
            | Code::AuthorizationSourceIpMismatch
            | Code::CorsPreflightFailure
            | Code::PartitionFull => StatusCode::FORBIDDEN,
            Code::EntityAlreadyExists | Code::ResourceTypeMismatch | Code::TableAlreadyExists => {
                StatusCode::CONFLICT
            }
            Code::ResourceNotFound | Code::TableNotFound => StatusCode::NOT_FOUND,
            Code::UpdateConditionNotSatisfied => StatusCode::PRECONDITION_FAILED,
            Code::AtomFormatNotSupported | Code::MediaTypeNotSupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::UnsupportedHttpVerb => StatusCode::METHOD_NOT_ALLOWED,
            Code::RequestBodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Code::InternalError | Code::OperationTimedOut => StatusCode::INTERNAL_SERVER_ERROR,
            Code::InsufficientStorage => StatusCode::INSUFFICIENT_STORAGE,
            Code::ServerBusy => StatusCode::SERVICE_UNAVAILABLE,
            Code::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Code::CommandsInBatchActOnDifferentPartitions
            | Code::DuplicatePropertiesSpecified
            | Code::EntityTooLarge
            | Code::InvalidDuplicateRow
            | Code::InvalidHeaderValue
            | Code::InvalidInput
            | Code::InvalidQueryParameterValue
            | Code::InvalidResourceName
            | Code::InvalidUri
            | Code::InvalidXmlDocument
            | Code::KeyValueTooLarge
            | Code::MissingRequiredHeader
            | Code::OutOfRangeInput
            | Code::PropertiesNeedValue
            | Code::PropertyNameInvalid
            | Code::PropertyNameTooLong
            | Code::PropertyValueTooLarge
            | Code::TooManyProperties => StatusCode::BAD_REQUEST,
        }
    }
}
