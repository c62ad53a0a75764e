"""Unique keys: once in a logical partition, whatever operation writes them."""

import pytest

from support.expect import status_of


@pytest.fixture
def container(make_container):
    return make_container(unique_key_policy={"uniqueKeys": [{"paths": ["/mail"]}, {"paths": ["/a", "/b/c"]}]})


def body(id, mail, pk="p", **others):
    return {"id": id, "pk": pk, "mail": mail, "a": id, **others}


def test_equal_values_collide_and_only_in_one_partition(container):
    container.create_item(body("1", "x@example.org"))
    assert status_of(container.create_item, body("2", "x@example.org")) == (409, 0)
    container.create_item(body("2", "X@example.org"))
    container.create_item(body("1", "x@example.org", pk="other"))
    assert len(list(container.read_all_items())) == 3


def test_replace_upsert_and_patch_are_held_to_it(container):
    container.create_item(body("1", "x"))
    container.create_item(body("2", "y"))
    assert status_of(container.replace_item, "2", body("2", "x")) == (409, 0)
    assert status_of(container.upsert_item, body("2", "x")) == (409, 0)
    assert status_of(container.upsert_item, body("3", "x")) == (409, 0)
    assert status_of(container.patch_item, "2", "p", [{"op": "set", "path": "/mail", "value": "x"}]) == (409, 0)
    assert container.read_item("2", "p")["mail"] == "y"


def test_a_value_is_free_again_when_its_item_changes_or_goes(container):
    container.create_item(body("1", "x"))
    container.replace_item("1", body("1", "z"))
    container.create_item(body("2", "x"))
    container.delete_item("2", "p")
    container.create_item(body("3", "x"))


def test_an_item_does_not_collide_with_itself(container):
    container.create_item(body("1", "x"))
    assert container.replace_item("1", body("1", "x", v=2))["v"] == 2
    assert container.upsert_item(body("1", "x", v=3))["v"] == 3


def test_several_paths_collide_only_together(container):
    container.create_item({"id": "1", "pk": "p", "mail": 1, "a": 1, "b": {"c": 1}})
    container.create_item({"id": "2", "pk": "p", "mail": 2, "a": 1, "b": {"c": 2}})
    container.create_item({"id": "3", "pk": "p", "mail": 3, "a": 2, "b": {"c": 1}})
    assert status_of(container.create_item, {"id": "4", "pk": "p", "mail": 4, "a": 1, "b": {"c": 1}}) == (409, 0)


def test_a_missing_value_counts_as_one_value(container):
    container.create_item({"id": "1", "pk": "p", "a": 1})
    assert status_of(container.create_item, {"id": "2", "pk": "p", "a": 2}) == (409, 0)


def test_values_of_different_types_differ(container):
    for number, mail in enumerate(["1", 1, True, None, "true"]):
        container.create_item(body(str(number), mail))
    assert status_of(container.create_item, body("x", 1.0)) == (409, 0)
