"""Values of every Edm type come back with their type and bits."""

import datetime
import uuid

import pytest
from azure.data.tables import EdmType, EntityProperty

from support.table import DATA, answer
from support.table_values import normal, to_client

LOST = answer([], DATA["values_that_azurite_loses"])
CASES = [tuple(value) for value in DATA["values"] if value not in LOST]


@pytest.mark.parametrize("kind, text", CASES, ids=[f"{kind}-{text.encode('unicode_escape').decode()}" for kind, text in CASES])
def test_a_value_comes_back_to_the_bit(table, kind, text):
    value = to_client(kind, text)
    entity = {"PartitionKey": "a", "RowKey": "b", "v": value}
    table.create_entity(entity)
    expected = normal(value)
    read = table.get_entity("a", "b")
    assert normal(read["v"]) == expected
    # What was read can be written as it is, by every operation.
    table.update_entity(read, mode="replace")
    table.upsert_entity(table.get_entity("a", "b"), mode="replace")
    table.update_entity({**read, "other": 1}, mode="merge")
    table.submit_transaction([("upsert", {**read, "RowKey": "c"}, {"mode": "replace"})])
    assert [normal(entity["v"]) for entity in table.list_entities()] == [expected, expected]


def test_all_types_in_one_entity(table):
    entity = {f"v{index}": to_client(*value) for index, value in enumerate(CASES)}
    table.upsert_entity({"PartitionKey": "a", "RowKey": "b", **entity})
    read = table.get_entity("a", "b")
    assert {name: normal(read[name]) for name in entity} == {name: normal(value) for name, value in entity.items()}


def test_dates_of_python_have_microseconds(table):
    moment = datetime.datetime(2024, 2, 3, 4, 5, 6, 789123, datetime.timezone.utc)
    east = moment.astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
    table.create_entity({"PartitionKey": "a", "RowKey": "b", "v": moment, "east": east})
    read = table.get_entity("a", "b")
    assert read["v"] == read["east"] == moment


def test_named_types(table):
    entity = {
        "PartitionKey": "a",
        "RowKey": "b",
        "small": EntityProperty(3, EdmType.INT32),
        "large": EntityProperty(3, EdmType.INT64),
        "real": EntityProperty(3, EdmType.DOUBLE),
        "flag": EntityProperty(True, EdmType.BOOLEAN),
        "text": EntityProperty("3", EdmType.STRING),
        "guid": EntityProperty(str(uuid.UUID(int=7)), EdmType.GUID),
        "bytes": EntityProperty(b"\x00\xff", EdmType.BINARY),
    }
    table.create_entity(entity)
    read = table.get_entity("a", "b")
    kinds = {name: normal(read[name])[0] for name in entity if name not in ("PartitionKey", "RowKey")}
    assert kinds == {
        "small": "Int32", "large": "Int64", "real": "Double", "flag": "Boolean", "text": "String", "guid": "Guid", "bytes": "Binary"
    }


def test_long_values(table):
    entity = {"PartitionKey": "a", "RowKey": "b", "text": "x" * 32768, "bytes": b"\xab" * 65536}
    table.create_entity(entity)
    assert dict(table.get_entity("a", "b")) == entity


def test_names_of_properties(table):
    entity = {"PartitionKey": "a", "RowKey": "b", "_x": 1, "X1": 2, "straße": 3, "id": 4, "etag": 5, "n" * 255: 6}
    table.create_entity(entity)
    assert dict(table.get_entity("a", "b")) == entity


def test_as_many_properties_as_allowed(table):
    entity = {"PartitionKey": "a", "RowKey": "b"} | {f"p{index}": index for index in range(252)}
    table.create_entity(entity)
    assert dict(table.get_entity("a", "b")) == entity
