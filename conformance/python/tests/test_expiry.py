"""Time to live: an item is gone when its time is over, for every way to look at it. Nothing here sleeps on trust."""

import time

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from conftest import KINDS
from support.expect import eventually, status_of

# Each test waits for seconds to pass, so two of the four kinds of clients have to do.
pytestmark = pytest.mark.parametrize("client", [KINDS[0], KINDS[3]], ids="-".join, indirect=True, scope="session")


def is_gone(container, id):
    def look():
        try:
            container.read_item(id, "a")
            return False
        except CosmosResourceNotFoundError:
            return True
    return look


def test_an_item_lives_its_own_time(make_container):
    container = make_container(default_ttl=-1)
    item = container.create_item({"id": "short", "pk": "a", "ttl": 1})
    container.create_item({"id": "long", "pk": "a", "ttl": 3600})
    container.create_item({"id": "ever", "pk": "a"})
    eventually(is_gone(container, "short"))
    # Never early: a second by the clock of the server, whose seconds are whole.
    assert time.time() >= item["_ts"] + 1
    assert sorted(found["id"] for found in container.read_all_items()) == ["ever", "long"]
    assert status_of(container.replace_item, "short", {"id": "short", "pk": "a"}) == (404, 0)
    assert status_of(container.delete_item, "short", "a") == (404, 0)
    again = container.create_item({"id": "short", "pk": "a"})
    assert again["_rid"] != item["_rid"]


def test_the_container_s_time_holds_for_items_without_one(make_container):
    container = make_container(default_ttl=1)
    container.create_item({"id": "default", "pk": "a"})
    container.create_item({"id": "ever", "pk": "a", "ttl": -1})
    container.create_item({"id": "long", "pk": "a", "ttl": 3600})
    eventually(is_gone(container, "default"))
    assert sorted(found["id"] for found in container.read_all_items()) == ["ever", "long"]


def test_without_a_default_nothing_expires(make_container):
    container = make_container()
    container.create_item({"id": "1", "pk": "a", "ttl": 1})
    marked = make_container(default_ttl=-1)
    marked.create_item({"id": "1", "pk": "a", "ttl": 1})
    # The marked container shows that the time is over.
    eventually(is_gone(marked, "1"))
    assert container.read_item("1", "a")["ttl"] == 1


def test_a_write_starts_the_time_again(make_container):
    container = make_container(default_ttl=-1)
    container.create_item({"id": "1", "pk": "a", "ttl": 2})
    container.create_item({"id": "witness", "pk": "a", "ttl": 2})
    rewritten = container.replace_item("1", {"id": "1", "pk": "a", "ttl": 3600})
    eventually(is_gone(container, "witness"))
    assert container.read_item("1", "a")["_etag"] == rewritten["_etag"]


def test_a_new_default_holds_for_old_items(database, make_container):
    container = make_container()
    container.create_item({"id": "1", "pk": "a"})
    database.replace_container(container, PartitionKey("/pk"), default_ttl=1)
    eventually(is_gone(container, "1"))
    assert list(container.read_all_items()) == []


def test_a_removed_default_keeps_what_is_left(database, make_container):
    container = make_container(default_ttl=3600)
    container.create_item({"id": "1", "pk": "a", "ttl": 2})
    witness = make_container(default_ttl=2)
    database.replace_container(container, PartitionKey("/pk"))
    witness.create_item({"id": "1", "pk": "a"})
    eventually(is_gone(witness, "1"))
    assert container.read_item("1", "a")["id"] == "1"


def test_an_expired_item_frees_its_unique_key(make_container):
    container = make_container(default_ttl=-1, unique_key_policy={"uniqueKeys": [{"paths": ["/u"]}]})
    container.create_item({"id": "1", "pk": "a", "u": 1, "ttl": 1})
    assert status_of(container.create_item, {"id": "2", "pk": "a", "u": 1}) == (409, 0)
    eventually(is_gone(container, "1"))
    container.create_item({"id": "2", "pk": "a", "u": 1})


@pytest.mark.parametrize("ttl", [0, -2, 1.5, "1", True, 2147483648])
def test_a_wrong_time_to_live_is_refused(make_container, ttl):
    container = make_container(default_ttl=-1)
    assert status_of(container.create_item, {"id": "1", "pk": "a", "ttl": ttl})[0] == 400
