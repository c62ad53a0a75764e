"""Group transactions: all or nothing, with the index of what failed."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty, TableTransactionError, UpdateMode

from conftest import unique
from support.table import answer, azurite_lacks
from support.table_expect import keys, plain, refusal


def row(name, **properties):
    return {"PartitionKey": "p", "RowKey": name, **properties}


def failed(table, operations):
    """Status, code and index of a transaction that must be refused."""
    with pytest.raises(TableTransactionError) as raised:
        table.submit_transaction(operations)
    return (*refusal(raised.value), raised.value.index)


def test_every_operation(table):
    for name in ("merged", "replaced", "deleted", "upserted"):
        table.create_entity(row(name, old=1))
    answers = table.submit_transaction([
        ("create", row("created", new=2)),
        ("update", row("merged", new=2), {"mode": UpdateMode.MERGE}),
        ("update", row("replaced", new=2), {"mode": UpdateMode.REPLACE}),
        ("upsert", row("upserted", new=2), {"mode": "merge"}),
        ("upsert", row("inserted", new=2), {"mode": "replace"}),
        ("delete", row("deleted")),
    ])
    assert len(answers) == 6
    found = {entity["RowKey"]: entity for entity in table.list_entities()}
    assert {name: plain(entity) for name, entity in found.items()} == {
        "created": {"new": 2},
        "merged": {"old": 1, "new": 2},
        "replaced": {"new": 2},
        "upserted": {"old": 1, "new": 2},
        "inserted": {"new": 2},
    }
    tags = [answer["etag"] for answer in answers[:5]]
    assert tags == [found[name].metadata["etag"] for name in ("created", "merged", "replaced", "upserted", "inserted")]


@pytest.mark.parametrize("index", [0, 1, 4])
def test_the_operation_that_failed_is_named_and_nothing_is_written(table, index):
    table.create_entity(row("taken", old=1))
    before = table.get_entity("p", "taken")
    operations = [("upsert", row(f"new{number}")) for number in range(4)]
    operations.insert(index, ("create", row("taken", new=2)))
    assert failed(table, operations) == (409, "EntityAlreadyExists", index)
    after = list(table.list_entities())
    assert [dict(entity) for entity in after] == [dict(before)] and after[0].metadata == before.metadata


@pytest.mark.parametrize("mode", list(UpdateMode))
def test_an_update_of_an_absent_row_fails(table, mode):
    operations = [("create", row("new")), ("update", row("absent"), {"mode": mode})]
    assert failed(table, operations) == (404, "ResourceNotFound", 1)
    assert list(table.list_entities()) == []


def test_a_delete_of_an_absent_row_fails(table):
    assert failed(table, [("create", row("new")), ("delete", row("absent"))]) == (404, "ResourceNotFound", 1)
    assert list(table.list_entities()) == []


def test_conditions(table):
    tag = table.create_entity(row("a", v=1))["etag"]
    good = {"etag": tag, "match_condition": MatchConditions.IfNotModified}
    table.submit_transaction([("update", row("a", v=2), good), ("create", row("b"))])
    stale = [("create", row("c")), ("update", row("a", v=3), good)]
    assert failed(table, stale) == (412, "UpdateConditionNotSatisfied", 1)
    assert failed(table, [("delete", row("a"), good)]) == (412, "UpdateConditionNotSatisfied", 0)
    assert table.get_entity("p", "a")["v"] == 2 and len(list(table.list_entities())) == 2


def test_two_partition_keys_are_refused(table):
    # The client refuses them itself.
    with pytest.raises(ValueError):
        table.submit_transaction([("create", row("a")), ("create", {"PartitionKey": "q", "RowKey": "b"})])
    assert list(table.list_entities()) == []


def test_one_row_twice_is_refused(table):
    with pytest.raises(HttpResponseError) as raised:
        table.submit_transaction([("create", row("other")), ("upsert", row("a")), ("upsert", row("a", v=2))])
    assert refusal(raised.value) == (400, "InvalidDuplicateRow")
    assert list(table.list_entities()) == []


def test_a_hundred_operations_and_no_more(table):
    assert len(table.submit_transaction([("create", row(f"{number:03}")) for number in range(100)])) == 100
    assert keys(table.list_entities()) == [("p", f"{number:03}") for number in range(100)]
    # Azurite's answer to this has a body that the client cannot read.
    with pytest.raises(answer(HttpResponseError, Exception)) as raised:
        table.submit_transaction([("upsert", row(f"n{number:03}")) for number in range(101)])
    if answer(True, False):
        assert refusal(raised.value) == (400, "InvalidInput")
    assert len(list(table.list_entities())) == 100


def test_a_transaction_of_nothing_does_nothing(table):
    azurite_lacks("such transactions")
    assert table.submit_transaction([]) == []
    assert list(table.list_entities()) == []


def test_as_much_as_fits(table):
    operations = [("create", row(f"{number:02}", bytes=bytes([number]) * 30000)) for number in range(90)]
    table.submit_transaction(operations)
    assert [entity["bytes"] for entity in table.list_entities()] == [bytes([number]) * 30000 for number in range(90)]


def test_more_than_four_mebibytes_are_refused(table):
    azurite_lacks("a check of sizes")
    operations = [("create", row(f"{number:02}", bytes=bytes(65536))) for number in range(60)]
    with pytest.raises(HttpResponseError) as raised:
        table.submit_transaction(operations)
    assert raised.value.status_code == 413
    assert list(table.list_entities()) == []


def test_bad_input_in_a_transaction(table):
    operations = [("create", row("a")), ("create", row("b", v=EntityProperty("yesterday", EdmType.DATETIME)))]
    azurite_lacks("a check of values")
    status, code, index = failed(table, operations)
    assert (status, code, index) == (400, "InvalidInput", 1)
    assert list(table.list_entities()) == []


def test_values_and_keys_in_transactions(table):
    entity = {"PartitionKey": "O'Brien 100% 東京", "RowKey": "'", "text": "a\r\n\r\n--batch", "real": 3.0}
    table.submit_transaction([("create", entity)])
    assert dict(table.get_entity(entity["PartitionKey"], "'")) == entity
    table.submit_transaction([("update", {**entity, "text": "\U0001f642"})])
    assert table.get_entity(entity["PartitionKey"], "'")["text"] == "\U0001f642"
    table.submit_transaction([("delete", entity)])
    assert list(table.list_entities()) == []


def test_an_absent_table(client):
    table = client.get_table_client(unique())
    assert failed(table, [("create", row("a")), ("create", row("b"))])[:2] == (404, "TableNotFound")
