"""Transactional batches: all or nothing, conditions, reads, limits."""

import pytest
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from support.expect import plain, status_of


def body(id, **others):
    return {"id": id, "pk": "a", **others}


def refused(container, operations, key="a"):
    """Runs a batch that must be refused; answers the statuses of its operations."""
    with pytest.raises(CosmosBatchOperationError) as raised:
        container.execute_item_batch(operations, key)
    assert raised.value.error_index == next(
        index for index, answer in enumerate(raised.value.operation_responses) if answer["statusCode"] != 424)
    return [answer["statusCode"] for answer in raised.value.operation_responses]


def test_every_operation_in_one_batch(container):
    old = container.create_item(body("old", v=1))
    container.create_item(body("dead"))
    answers = container.execute_item_batch([
        ("create", (body("new", v=1),)),
        ("upsert", (body("new", v=2),)),
        ("upsert", (body("other"),)),
        ("replace", ("old", body("old", v=2))),
        ("patch", ("old", [{"op": "incr", "path": "/v", "value": 5}])),
        ("read", ("old",)),
        ("delete", ("dead",)),
    ], "a")
    assert [answer["statusCode"] for answer in answers] == [201, 200, 201, 200, 200, 200, 204]
    assert answers[5]["resourceBody"]["v"] == 7
    assert answers[5]["resourceBody"]["_rid"] == old["_rid"]
    assert "resourceBody" not in answers[6] or answers[6]["resourceBody"] is None
    for answer in answers[:6]:
        assert answer["eTag"] == answer["resourceBody"]["_etag"]
        assert float(answer["requestCharge"]) > 0
    assert sorted(item["id"] for item in container.read_all_items()) == ["new", "old", "other"]
    assert plain(container.read_item("new", "a")) == body("new", v=2)


def test_a_conflict_rolls_everything_back(container):
    container.create_item(body("there", v=1))
    statuses = refused(container, [
        ("create", (body("one"),)), ("upsert", (body("there", v=2),)), ("create", (body("there"),)), ("delete", ("one",))])
    assert statuses == [424, 424, 409, 424]
    assert [plain(item) for item in container.read_all_items()] == [body("there", v=1)]


@pytest.mark.parametrize("operation, status", [
    (("read", ("none",)), 404),
    (("delete", ("none",)), 404),
    (("replace", ("none", body("none"))), 404),
    (("patch", ("none", [{"op": "set", "path": "/v", "value": 1}])), 404),
    (("patch", ("there", [{"op": "remove", "path": "/none"}])), 400),
    (("create", ({"id": "x", "pk": "b"},)), 400),
    (("create", ({"pk": "a"},)), 400),
    (("replace", ("there", body("one"))), 409),
], ids=lambda value: str(value)[:40])
def test_each_kind_of_failure_rolls_back(container, operation, status):
    there = container.create_item(body("there"))
    assert refused(container, [("create", (body("one"),)), operation]) == [424, status]
    assert [dict(item) for item in container.read_all_items()] == [dict(there)]


def test_etag_conditions(container):
    old = container.create_item(body("1", v=1))["_etag"]
    new = container.replace_item("1", body("1", v=2))["_etag"]
    # The SDK empties the options it is given, so each call gets its own.
    stale = lambda: {"if_match_etag": old}
    fresh = lambda: {"if_match_etag": new}
    assert refused(container, [("create", (body("x"),)), ("replace", ("1", body("1", v=3)), stale())]) == [424, 412]
    assert refused(container, [("create", (body("x"),)), ("delete", ("1",), stale())]) == [424, 412]
    answers = container.execute_item_batch([
        ("replace", ("1", body("1", v=3)), fresh()), ("create", (body("x"),))], "a")
    assert [answer["statusCode"] for answer in answers] == [200, 201]
    assert container.read_item("1", "a")["v"] == 3


def test_a_batch_sees_its_own_writes(container):
    answers = container.execute_item_batch([
        ("create", (body("1", v=1),)), ("patch", ("1", [{"op": "incr", "path": "/v", "value": 1}])),
        ("read", ("1",)), ("delete", ("1",)), ("create", (body("1", v=10),))], "a")
    assert answers[2]["resourceBody"]["v"] == 2
    assert container.read_item("1", "a")["v"] == 10


def test_a_hundred_operations_are_allowed_and_101_not(container):
    operations = [("create", (body(str(number)),)) for number in range(100)]
    assert len(container.execute_item_batch(operations, "a")) == 100
    assert len(list(container.read_all_items())) == 100
    more = [("upsert", (body(str(number)),)) for number in range(101)]
    assert status_of(container.execute_item_batch, more, "a")[0] == 400


def test_a_batch_over_two_megabytes_is_refused(container):
    operations = [("create", (body(str(number), t="x" * 300_000),)) for number in range(8)]
    with pytest.raises(CosmosHttpResponseError) as raised:
        container.execute_item_batch(operations, "a")
    assert raised.value.status_code == 413
    assert list(container.read_all_items()) == []


def test_batches_with_other_keys(make_container):
    from azure.cosmos import PartitionKey
    container = make_container(PartitionKey(["/a", "/b"], kind="MultiHash"))
    container.execute_item_batch([("create", ({"id": "1", "a": "x", "b": 1},)), ("read", ("1",))], ["x", 1])
    assert container.read_item("1", ["x", 1])["id"] == "1"


def test_unique_keys_hold_inside_a_batch(make_container):
    container = make_container(unique_key_policy={"uniqueKeys": [{"paths": ["/u"]}]})
    assert refused(container, [("create", (body("1", u=1),)), ("create", (body("2", u=1),))]) == [424, 409]
    container.execute_item_batch([
        ("create", (body("1", u=1),)), ("delete", ("1",)), ("create", (body("2", u=1),))], "a")
    assert [item["id"] for item in container.read_all_items()] == ["2"]
