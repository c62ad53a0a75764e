"""Partition keys: every kind of value and definition, and what happens when key and item disagree."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

from conftest import unique
from support.expect import plain, status_of
from support.wire import Wire

VALUES = ["a", "", "ünïcödé 🙂", 'quo"te\\d', "x" * 1500, 0, 1, -1, 1.5, -0.5, 1e300, 2**53 - 1, True, False]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_keys_of_every_scalar_kind(container, value):
    item = container.create_item({"id": "1", "pk": value})
    assert container.read_item("1", value)["_rid"] == item["_rid"]
    assert container.replace_item("1", {"id": "1", "pk": value, "v": 2})["v"] == 2
    assert [plain(found) for found in container.read_all_items()] == [{"id": "1", "pk": value, "v": 2}]
    container.delete_item("1", value)


def test_each_value_is_a_logical_partition_of_its_own(container):
    values = ["1", 1, True, "true", "null", "", 0, False]
    for value in values:
        container.create_item({"id": "same", "pk": value})
    container.create_item({"id": "same", "pk": None})
    container.create_item({"id": "same"})
    assert len(list(container.read_all_items())) == len(values) + 2
    for value in values:
        assert container.read_item("same", value)["pk"] == value


def test_one_and_one_point_zero_are_the_same_key(container):
    container.create_item({"id": "1", "pk": 1})
    assert container.read_item("1", 1.0)["id"] == "1"
    assert status_of(container.create_item, {"id": "1", "pk": 1.0}) == (409, 0)


def test_null_and_missing_keys_are_two_things(container):
    container.create_item({"id": "1", "pk": None, "v": "null"})
    container.create_item({"id": "1", "v": "missing"})
    assert container.read_item("1", NullPartitionKeyValue)["v"] == "null"
    assert container.read_item("1", NonePartitionKeyValue)["v"] == "missing"
    container.delete_item("1", NonePartitionKeyValue)
    assert container.read_item("1", NullPartitionKeyValue)["v"] == "null"
    assert status_of(container.read_item, "1", NonePartitionKeyValue) == (404, 0)


def test_a_nested_key_path(make_container):
    container = make_container("/address/city")
    container.create_item({"id": "1", "address": {"city": "Köln"}})
    container.create_item({"id": "2", "address": {}})
    container.create_item({"id": "3", "address": "no object"})
    assert container.read_item("1", "Köln")["id"] == "1"
    assert container.read_item("2", NonePartitionKeyValue)["id"] == "2"
    assert container.read_item("3", NonePartitionKeyValue)["id"] == "3"


@pytest.mark.parametrize("path, name", [
    ('/"department name"', "department name"),
    ('/"a/b"', "a/b"),
    ("/id", "id"),
    ("/schlüssel", "schlüssel"),
])
def test_quoted_and_unusual_key_paths(make_container, path, name):
    container = make_container(path)
    container.create_item({"id": "x", name: "x", "v": 1})
    assert container.read_item("x", "x")["v"] == 1
    assert container.read()["partitionKey"]["paths"] == [path]


def test_an_object_counts_as_no_key(container):
    # Of an array the client would send the elements as a key.
    for number, value in enumerate(({"a": 1}, {})):
        assert container.create_item({"id": str(number), "pk": value})["pk"] == value
        assert container.read_item(str(number), NonePartitionKeyValue)["pk"] == value


def test_the_old_hash_works_the_same(make_container):
    container = make_container(PartitionKey("/pk", version=1))
    assert container.read()["partitionKey"].get("version", 1) == 1
    for number, value in enumerate(["a", "é" * 50, 5, 5.5, True, False]):
        container.create_item({"id": str(number), "pk": value})
        assert container.read_item(str(number), value)["pk"] == value
    assert len(list(container.read_all_items())) == 6


def test_hierarchical_keys(make_container):
    container = make_container(PartitionKey(["/tenant", "/user", "/session"], kind="MultiHash"))
    assert container.read()["partitionKey"]["kind"] == "MultiHash"
    for tenant in ("t1", "t2"):
        for user in (1, 2):
            container.create_item({"id": "1", "tenant": tenant, "user": user, "session": True, "v": f"{tenant}{user}"})
    assert container.read_item("1", ["t1", 2, True])["v"] == "t12"
    assert status_of(container.read_item, "1", ["t1", 3, True]) == (404, 0)
    container.replace_item("1", {"id": "1", "tenant": "t2", "user": 1, "session": True, "v": "new"})
    assert container.read_item("1", ["t2", 1, True])["v"] == "new"
    container.delete_item("1", ["t1", 1, True])
    assert len(list(container.read_all_items())) == 3


def test_a_part_of_a_hierarchical_key_cannot_name_an_item(make_container):
    container = make_container(PartitionKey(["/tenant", "/user"], kind="MultiHash"))
    container.create_item({"id": "1", "tenant": "t", "user": "u"})
    assert status_of(container.read_item, "1", ["t"])[0] == 400
    assert container.read_item("1", ["t", "u"])["id"] == "1"


def test_a_replace_cannot_move_an_item_to_another_key(container, wire_send):
    container.create_item({"id": "1", "pk": "a"})
    answer = wire_send(container, "PUT", ["a"], "1", {"id": "1", "pk": "b"})
    assert answer.status == 400
    assert container.read_item("1", "a")["pk"] == "a"


def test_key_header_and_item_must_agree(container, wire_send):
    answer = wire_send(container, "POST", ["a"], None, {"id": "1", "pk": "b"})
    assert (answer.status, answer.substatus) == (400, 1001)
    assert list(container.read_all_items()) == []


def test_all_items_of_a_key_are_deleted_at_once(container):
    for number in range(30):
        container.create_item({"id": str(number), "pk": "full"})
    container.create_item({"id": "other", "pk": "other"})
    container.delete_all_items_by_partition_key("full")
    assert status_of(container.read_item, "0", "full") == (404, 0)
    assert [item["id"] for item in container.read_all_items()] == ["other"]
    container.create_item({"id": "0", "pk": "full"})
    assert container.read_item("0", "full")["id"] == "0"


@pytest.fixture
def wire_send(server, database):
    """A request by hand about an item of an SDK's container."""
    from support.wire import Wire

    with Wire(server.port) as wire:
        yield lambda container, verb, key, id, body: wire.item(
            verb, f"/dbs/{database.id}/colls/{container.id}", key, id, body)


def test_containers_of_old_clients_need_no_key(client, server, database):
    name = unique("c")
    with Wire(server.port) as wire:
        assert wire.send("POST", f"/dbs/{database.id}/colls", {"id": name}).status == 201
    container = client.get_database_client(database.id).get_container_client(name)
    none = NonePartitionKeyValue
    container.create_item({"id": "1", "v": 1})
    assert container.read_item("1", none)["v"] == 1
    assert container.replace_item("1", {"id": "1", "v": 2})["v"] == 2
    assert container.patch_item("1", none, [{"op": "incr", "path": "/v", "value": 1}])["v"] == 3
    # A newer client may give items of such a container a key.
    container.create_item({"id": "1", "_partitionKey": "a", "v": 9})
    assert container.read_item("1", "a")["v"] == 9
    assert sorted(item["v"] for item in container.read_all_items()) == [3, 9]
    container.delete_item("1", none)
    assert status_of(container.read_item, "1", none) == (404, 0)
    database.delete_container(name)
