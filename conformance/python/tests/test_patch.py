"""Patch: six operations, arrays, refusals, all or nothing."""

import pytest

from support.expect import plain, status_of


@pytest.fixture
def item(container):
    """An item to patch, and a function that patches it."""
    container.create_item({"id": "1", "pk": "a", "n": 1, "s": "text", "o": {"x": 1, "y": [1, 2, 3]}, "l": [1, 2, 3]})

    def patch(*operations, **options):
        return plain(container.patch_item("1", "a", list(operations), **options))

    patch.container = container
    return patch


def op(op, path, value=None, **others):
    operation = {"op": op, "path": path, **others}
    return operation if op in ("remove", "move") else {**operation, "value": value}


CASES = {
    "add a member": ([op("add", "/new", 7)], {"new": 7}),
    "add over a member": ([op("add", "/n", 7)], {"n": 7}),
    "add an object": ([op("add", "/o/z", {"deep": [1]})], {"o": {"x": 1, "y": [1, 2, 3], "z": {"deep": [1]}}}),
    "add into an array": ([op("add", "/l/1", "new")], {"l": [1, "new", 2, 3]}),
    "add at an array's end": ([op("add", "/l/-", 4)], {"l": [1, 2, 3, 4]}),
    "add at an array's length": ([op("add", "/l/3", 4)], {"l": [1, 2, 3, 4]}),
    "add null": ([op("add", "/new", None)], {"new": None}),
    "set a member": ([op("set", "/new", True)], {"new": True}),
    "set over a member": ([op("set", "/s", {"a": 1})], {"s": {"a": 1}}),
    "set an array element": ([op("set", "/l/1", "new")], {"l": [1, "new", 3]}),
    "set deep": ([op("set", "/o/y/0", 9)], {"o": {"x": 1, "y": [9, 2, 3]}}),
    "replace a member": ([op("replace", "/n", None)], {"n": None}),
    "replace an array element": ([op("replace", "/l/0", 0)], {"l": [0, 2, 3]}),
    "remove an array element": ([op("remove", "/l/0")], {"l": [2, 3]}),
    "remove a deep member": ([op("remove", "/o/x")], {"o": {"y": [1, 2, 3]}}),
    "incr": ([op("incr", "/n", 5)], {"n": 6}),
    "incr by a fraction": ([op("incr", "/n", 0.5)], {"n": 1.5}),
    "incr down": ([op("incr", "/n", -3)], {"n": -2}),
    "incr what is missing": ([op("incr", "/new", 4)], {"new": 4}),
    "incr in an array": ([op("incr", "/l/2", 10)], {"l": [1, 2, 13]}),
    "several in order": ([op("add", "/k", 1), op("incr", "/k", 1), op("incr", "/k", 1)], {"k": 3}),
    "escaped names": ([op("add", "/a~1b~0c", 1)], {"a/b~c": 1}),
    "unicode names": ([op("add", "/schlüssel", "wört")], {"schlüssel": "wört"}),
}


@pytest.mark.parametrize("case", CASES)
def test_operations(item, case):
    operations, changed = CASES[case]
    before = plain(item.container.read_item("1", "a"))
    after = item(*operations)
    assert after == {**before, **changed}
    assert plain(item.container.read_item("1", "a")) == after


def test_remove_a_member(item):
    assert "s" not in item(op("remove", "/s"))


def test_move_a_member(item):
    after = item({"op": "move", "from": "/s", "path": "/o/moved"})
    assert "s" not in after and after["o"]["moved"] == "text"


def test_a_large_integer_is_incremented_exactly(item):
    item(op("set", "/n", 2**53 + 1))
    assert item(op("incr", "/n", 1))["n"] == 2**53 + 2


REFUSED = {
    "replace what is missing": op("replace", "/none", 1),
    "remove what is missing": op("remove", "/none"),
    "move what is missing": {"op": "move", "from": "/none", "path": "/x"},
    "add below nothing": op("add", "/none/deep", 1),
    "add beyond an array's end": op("add", "/l/4", 1),
    "remove beyond an array's end": op("remove", "/l/3"),
    "incr a string": op("incr", "/s", 1),
    "incr by a string": op("incr", "/n", "1"),
    "the id": op("set", "/id", "2"),
    "the partition key": op("set", "/pk", "b"),
    "a system property": op("set", "/_ts", 1),
    "the etag": op("remove", "/_etag"),
    "an unknown operation": op("test", "/n", 1),
    "a path without a slash": op("set", "n", 1),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_operations_change_nothing(item, case):
    before = item.container.read_item("1", "a")
    status, _ = status_of(item.container.patch_item, "1", "a", [op("set", "/first", 1), REFUSED[case]])
    assert status == 400
    assert dict(item.container.read_item("1", "a")) == dict(before)


def test_ten_operations_are_allowed_and_eleven_not(item):
    assert item(*[op("incr", "/n", 1)] * 10)["n"] == 11
    assert status_of(item.container.patch_item, "1", "a", [op("incr", "/n", 1)] * 11)[0] == 400
    assert status_of(item.container.patch_item, "1", "a", [])[0] == 400


def test_a_patch_of_an_absent_item_is_404(container):
    assert status_of(container.patch_item, "1", "a", [op("set", "/n", 1)]) == (404, 0)


def test_a_patch_is_done_if_its_condition_holds(item):
    patch = lambda condition: item.container.patch_item("1", "a", [op("incr", "/n", 1)], filter_predicate=condition)
    assert status_of(patch, "from c where c.n = 2") == (412, 0)
    assert patch("from c where c.n = 1 and c._ts > 0")["n"] == 2
    assert status_of(patch, "from c where c.n = 1") == (412, 0)
    assert status_of(patch, "where c.n = 2") == (400, 0)
    assert item.container.read_item("1", "a")["n"] == 2


def test_a_patch_changes_the_etag(item):
    before = item.container.read_item("1", "a")
    after = item.container.patch_item("1", "a", [op("set", "/n", 1)])
    assert after["_etag"] != before["_etag"] and after["_rid"] == before["_rid"]
