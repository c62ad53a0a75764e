"""Entities one by one: insert, read, merge, replace, upsert, delete, and conditions on them."""

import datetime

import pytest
from azure.core import MatchConditions
from azure.data.tables import UpdateMode

from support.table import DATA, answer
from support.table_expect import keys, plain, refused

ENTITY = {"PartitionKey": "a", "RowKey": "b", "kept": 1, "changed": "old"}
CHANGE = {"PartitionKey": "a", "RowKey": "b", "changed": "new", "added": True}
KEY_LENGTH_MAX = 512
ABSENT = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""


def test_an_entity_is_inserted_read_and_deleted(table):
    answer = table.create_entity(ENTITY)
    assert answer["etag"].startswith("W/\"datetime'")
    read = table.get_entity("a", "b")
    assert dict(read) == ENTITY
    assert read.metadata["etag"] == answer["etag"]
    age = datetime.datetime.now(datetime.timezone.utc) - read.metadata["timestamp"]
    assert abs(age.total_seconds()) < 300
    table.delete_entity("a", "b")
    assert refused(table.get_entity, "a", "b") == (404, "ResourceNotFound")
    # The client takes an absent entity for a deleted one.
    table.delete_entity("a", "b")


def test_insert_answers_nothing_unless_it_is_asked(table):
    assert "content" not in table.create_entity(ENTITY) or table.get_entity("a", "b")
    other = {**ENTITY, "RowKey": "c"}
    answer = table.create_entity(other, headers={"Prefer": "return-content"})
    assert answer["preference_applied"] == "return-content"
    assert {name: answer["content"][name] for name in other} == other


def test_insert_twice_is_refused_and_changes_nothing(table):
    table.create_entity(ENTITY)
    before = table.get_entity("a", "b")
    assert refused(table.create_entity, CHANGE) == (409, "EntityAlreadyExists")
    after = table.get_entity("a", "b")
    assert dict(after) == dict(before) and after.metadata == before.metadata


def test_select_of_one_entity(table):
    table.create_entity(ENTITY)
    assert dict(table.get_entity("a", "b", select=["changed"])) == {"changed": "old"}
    assert table.get_entity("a", "b", select="kept,RowKey") == {"kept": 1, "RowKey": "b"}


def test_merge_keeps_and_replace_drops_what_is_not_sent(table):
    table.create_entity(ENTITY)
    table.update_entity(CHANGE, mode=UpdateMode.MERGE)
    assert dict(table.get_entity("a", "b")) == {**ENTITY, **CHANGE}
    table.update_entity({"PartitionKey": "a", "RowKey": "b", "only": 2}, mode=UpdateMode.REPLACE)
    assert plain(table.get_entity("a", "b")) == {"only": 2}


def test_merge_may_change_a_type(table):
    table.create_entity({**ENTITY, "x": 3})
    table.update_entity({**CHANGE, "x": 3.0})
    assert isinstance(table.get_entity("a", "b")["x"], float)


@pytest.mark.parametrize("mode", list(UpdateMode))
def test_update_of_an_absent_entity_is_refused(table, mode):
    assert refused(table.update_entity, CHANGE, mode=mode) == (404, "ResourceNotFound")
    assert list(table.list_entities()) == []


@pytest.mark.parametrize("mode, rest", [(UpdateMode.MERGE, {"kept": 1}), (UpdateMode.REPLACE, {})])
def test_upsert_inserts_then_changes(table, mode, rest):
    first = table.upsert_entity(ENTITY, mode=mode)
    assert dict(table.get_entity("a", "b")) == ENTITY
    second = table.upsert_entity(CHANGE, mode=mode)
    assert dict(table.get_entity("a", "b")) == {**CHANGE, **rest}
    assert first["etag"] != second["etag"]


def test_null_properties_are_not_stored_and_not_merged(table):
    table.create_entity({**ENTITY, "nothing": None})
    assert dict(table.get_entity("a", "b")) == ENTITY
    table.update_entity({"PartitionKey": "a", "RowKey": "b", "kept": None})
    assert dict(table.get_entity("a", "b")) == ENTITY


@pytest.mark.parametrize("mode", list(UpdateMode))
def test_update_if_the_etag_matches(table, mode):
    old = table.create_entity(ENTITY)["etag"]
    new = table.update_entity(CHANGE, mode=mode, etag=old, match_condition=MatchConditions.IfNotModified)["etag"]
    assert new != old
    stale = {"etag": old, "match_condition": MatchConditions.IfNotModified}
    assert refused(table.update_entity, ENTITY, mode=mode, **stale) == (412, "UpdateConditionNotSatisfied")
    assert refused(table.delete_entity, "a", "b", **stale) == (412, "UpdateConditionNotSatisfied")
    read = table.get_entity("a", "b")
    assert read["changed"] == "new" and read.metadata["etag"] == new
    table.delete_entity(read, etag=new, match_condition=MatchConditions.IfNotModified)
    assert list(table.list_entities()) == []


def test_a_condition_on_an_absent_entity_is_refused_as_absent(table):
    stale = {"etag": ABSENT, "match_condition": MatchConditions.IfNotModified}
    assert refused(table.update_entity, CHANGE, **stale) == (404, "ResourceNotFound")
    # The client takes an absent entity for a deleted one, whatever the condition.
    table.delete_entity("a", "b", **stale)


def test_every_write_has_its_own_etag(table):
    table.create_entity(ENTITY)
    tags = [table.upsert_entity(ENTITY)["etag"] for _ in range(50)]
    assert len(set(tags)) == 50
    assert table.get_entity("a", "b").metadata["etag"] == tags[-1]


@pytest.mark.parametrize("partition, row", DATA["keys"])
def test_keys_of_any_text(table, partition, row):
    entity = {"PartitionKey": partition, "RowKey": row, "v": 1}
    table.create_entity(entity)
    assert dict(table.get_entity(partition, row)) == entity
    assert keys(table.query_entities("PartitionKey eq @p and RowKey eq @r", parameters={"p": partition, "r": row})) == [
        (partition, row)
    ]
    table.update_entity({**entity, "v": 2}, mode=UpdateMode.REPLACE)
    table.upsert_entity({**entity, "w": 3})
    table.submit_transaction([("update", {**entity, "x": 4})])
    assert plain(table.get_entity(partition, row)) == {"v": 1, "w": 3, "x": 4}
    assert refused(table.create_entity, entity) == (409, "EntityAlreadyExists")
    table.delete_entity(partition, row)
    assert list(table.list_entities()) == []


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\x7fb", "a\u0085b", "k" * (KEY_LENGTH_MAX + 1)])
def test_keys_of_forbidden_text_are_refused(table, key):
    for entity in ({"PartitionKey": key, "RowKey": "r"}, {"PartitionKey": "p", "RowKey": key}):
        code = "KeyValueTooLarge" if len(key) > KEY_LENGTH_MAX else "OutOfRangeInput"
        assert refused(table.create_entity, entity) == (400, answer(code, "InvalidInput"))
    assert list(table.list_entities()) == []


def test_keys_of_the_longest_length(table):
    key = "k" * KEY_LENGTH_MAX
    table.create_entity({"PartitionKey": key, "RowKey": key})
    assert dict(table.get_entity(key, key)) == {"PartitionKey": key, "RowKey": key}
    assert keys(table.list_entities()) == [(key, key)]
