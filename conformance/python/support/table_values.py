"""Values of the shared data as the Python client has them, and comparison to the bit."""

import base64
import re
import struct
import uuid

from azure.data.tables import EdmType, EntityProperty


def to_client(kind, text):
    """What one gives to the client to store a value of a type."""
    match kind:
        case "Int32":
            return int(text)
        case "Int64":
            return EntityProperty(int(text), EdmType.INT64)
        case "Double":
            return float(text)
        case "Boolean":
            return text == "true"
        case "DateTime":
            # As text: the client's own dates have microseconds only.
            return EntityProperty(text, EdmType.DATETIME)
        case "Guid":
            return uuid.UUID(text)
        case "Binary":
            return base64.b64decode(text)
        case "String":
            return text
    raise ValueError(kind)


def normal(value):
    """Type and bits of a value that the client read; equal only for equal values."""
    if isinstance(value, bool):
        return "Boolean", value
    if isinstance(value, int):
        return "Int32", value
    if isinstance(value, EntityProperty):
        edm = EdmType(value.edm_type).value.removeprefix("Edm.")
        return (edm, ticks(value.value)) if edm == "DateTime" else (edm, value.value)
    if isinstance(value, float):
        return "Double", struct.pack(">d", value) if value == value else b"NaN"
    if hasattr(value, "tables_service_value"):
        return "DateTime", ticks(value.tables_service_value)
    if isinstance(value, uuid.UUID):
        return "Guid", value
    if isinstance(value, bytes):
        return "Binary", value
    if isinstance(value, str):
        return "String", value
    raise TypeError(type(value))


def ticks(text):
    """A date's text with all seven digits of its second."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,7}))?Z", text)
    assert found, text
    return f"{found[1]}.{found[2] or '':0<7}Z"


def entity(row):
    """An entity of the shared data for the client."""
    return {name: value if isinstance(value, str) else to_client(*value) for name, value in row.items()}
