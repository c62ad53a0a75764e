"""Items: create, read, replace, upsert, delete, and what each answers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core import MatchConditions
from azure.cosmos import exceptions
from azure.cosmos.exceptions import CosmosHttpResponseError

from conftest import connected
from support.expect import plain, status_of


def test_create_answers_the_item_with_its_system_properties(container):
    body = {"id": "1", "pk": "a", "name": "Ann", "nested": {"list": [1, 2.5, None, True, "x"]}}
    item = container.create_item(body)
    assert plain(item) == body
    assert item["_etag"].startswith('"') and item["_etag"].endswith('"')
    assert item["_attachments"] == "attachments/"
    assert item["_self"].startswith("dbs/") and item["_self"].endswith(f"/docs/{item['_rid']}/")
    assert isinstance(item["_ts"], int)
    headers = item.get_response_headers()
    assert headers["etag"] == item["_etag"]
    assert float(headers["x-ms-request-charge"]) > 1
    assert dict(container.read_item("1", "a")) == dict(item)


def test_create_twice_is_a_conflict_and_changes_nothing(container):
    item = container.create_item({"id": "1", "pk": "a", "v": 1})
    assert status_of(container.create_item, {"id": "1", "pk": "a", "v": 2}) == (409, 0)
    assert dict(container.read_item("1", "a")) == dict(item)
    # The same id under another key is another item.
    container.create_item({"id": "1", "pk": "b", "v": 3})
    assert container.read_item("1", "b")["v"] == 3


def test_read_of_an_absent_item_is_404_without_substatus(container):
    assert status_of(container.read_item, "none", "a") == (404, 0)
    container.create_item({"id": "1", "pk": "a"})
    assert status_of(container.read_item, "1", "b") == (404, 0)


def test_replace_changes_the_body_and_the_etag_and_keeps_the_rid(container):
    item = container.create_item({"id": "1", "pk": "a", "v": 1, "gone": True})
    new = container.replace_item("1", {"id": "1", "pk": "a", "v": 2})
    assert plain(new) == {"id": "1", "pk": "a", "v": 2}
    assert new["_rid"] == item["_rid"] and new["_self"] == item["_self"]
    assert new["_etag"] != item["_etag"] and new["_ts"] >= item["_ts"]
    assert dict(container.read_item("1", "a")) == dict(new)


def test_old_system_properties_in_a_body_are_overwritten(container):
    item = dict(container.create_item({"id": "1", "pk": "a"}))
    item["_rid"], item["_ts"], item["_self"] = "made-up", 7, "made-up"
    new = container.replace_item("1", item)
    assert new["_rid"] != "made-up" and new["_ts"] > 7 and new["_self"] != "made-up"


def test_replace_of_an_absent_item_is_404(container):
    assert status_of(container.replace_item, "1", {"id": "1", "pk": "a"}) == (404, 0)


def test_replace_may_rename(container):
    created = container.create_item({"id": "1", "pk": "a"})
    container.create_item({"id": "taken", "pk": "a"})
    assert status_of(container.replace_item, "1", {"id": "taken", "pk": "a"})[0] == 409
    assert container.replace_item("1", {"id": "2", "pk": "a"})["_rid"] == created["_rid"]
    assert plain(container.read_item("2", "a")) == {"id": "2", "pk": "a"}
    assert status_of(container.read_item, "1", "a") == (404, 0)


def test_upsert_creates_then_replaces(container):
    created = container.upsert_item({"id": "1", "pk": "a", "v": 1})
    assert created["v"] == 1
    replaced = container.upsert_item({"id": "1", "pk": "a", "v": 2})
    assert replaced["_rid"] == created["_rid"] and replaced["_etag"] != created["_etag"]
    assert container.read_item("1", "a")["v"] == 2


def test_delete_removes_and_deletes_once(container):
    container.create_item({"id": "1", "pk": "a"})
    assert container.delete_item("1", "a") is None
    assert status_of(container.read_item, "1", "a") == (404, 0)
    assert status_of(container.delete_item, "1", "a") == (404, 0)
    assert list(container.read_all_items()) == []


def test_an_item_created_again_has_a_new_rid_and_etag(container):
    first = container.create_item({"id": "1", "pk": "a"})
    container.delete_item("1", "a")
    second = container.create_item({"id": "1", "pk": "a"})
    assert second["_rid"] != first["_rid"] and second["_etag"] != first["_etag"]


def test_if_match_guards_replace_upsert_delete_and_patch(container):
    old = container.create_item({"id": "1", "pk": "a", "v": 1})["_etag"]
    item = container.replace_item("1", {"id": "1", "pk": "a", "v": 2})
    stale = {"etag": old, "match_condition": MatchConditions.IfNotModified}
    fresh = {"etag": item["_etag"], "match_condition": MatchConditions.IfNotModified}
    body = {"id": "1", "pk": "a", "v": 3}
    patch = [{"op": "set", "path": "/v", "value": 3}]
    assert status_of(container.replace_item, "1", body, **stale) == (412, 0)
    assert status_of(container.upsert_item, body, **stale) == (412, 0)
    assert status_of(container.delete_item, "1", "a", **stale) == (412, 0)
    assert status_of(container.patch_item, "1", "a", patch, **stale) == (412, 0)
    assert container.read_item("1", "a")["v"] == 2
    item = container.replace_item("1", body, **fresh)
    item = container.upsert_item({**body, "v": 4}, etag=item["_etag"], match_condition=MatchConditions.IfNotModified)
    item = container.patch_item(
        "1", "a", [{"op": "incr", "path": "/v", "value": 1}],
        etag=item["_etag"], match_condition=MatchConditions.IfNotModified)
    assert item["v"] == 5
    container.delete_item("1", "a", etag=item["_etag"], match_condition=MatchConditions.IfNotModified)


def test_one_of_two_clients_wins_each_race(request, server, event_loop_thread, database, container):
    kind = request.node.callspec.params["client"]
    container.create_item({"id": "1", "pk": "a", "v": 0})
    with connected(kind, server, event_loop_thread) as other, ThreadPoolExecutor(2) as pool:
        racers = [container, other.get_database_client(database.id).get_container_client(container.id)]
        for turn in range(1, 21):
            etag = container.read_item("1", "a")["_etag"]

            def write(racer, body={"id": "1", "pk": "a", "v": turn}, etag=etag):
                try:
                    racer.replace_item("1", body, etag=etag, match_condition=MatchConditions.IfNotModified)
                    return 200
                except CosmosHttpResponseError as error:
                    return error.status_code

            assert sorted(pool.map(write, racers)) == [200, 412]
            assert container.read_item("1", "a")["v"] == turn


def test_a_failed_condition_raises_the_sdk_s_own_type(container):
    container.create_item({"id": "1", "pk": "a"})
    with pytest.raises(exceptions.CosmosAccessConditionFailedError):
        container.replace_item("1", {"id": "1", "pk": "a"}, etag='"0"', match_condition=MatchConditions.IfNotModified)
    with pytest.raises(exceptions.CosmosResourceExistsError):
        container.create_item({"id": "1", "pk": "a"})
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        container.read_item("2", "a")


def test_if_none_match_on_read_is_304_without_a_body(container):
    item = container.create_item({"id": "1", "pk": "a"})
    same = container.read_item("1", "a", etag=item["_etag"], match_condition=MatchConditions.IfModified)
    assert dict(same or {}) == {}
    other = container.read_item("1", "a", etag='"other"', match_condition=MatchConditions.IfModified)
    assert other["_etag"] == item["_etag"]


def test_no_response_leaves_out_the_body_and_keeps_the_etag(container):
    created = container.create_item({"id": "1", "pk": "a", "v": 1}, no_response=True)
    assert dict(created) == {}
    etag = created.get_response_headers()["etag"]
    assert container.read_item("1", "a")["_etag"] == etag
    replaced = container.replace_item("1", {"id": "1", "pk": "a", "v": 2}, no_response=True)
    upserted = container.upsert_item({"id": "1", "pk": "a", "v": 3}, no_response=True)
    patched = container.patch_item("1", "a", [{"op": "incr", "path": "/v", "value": 1}], no_response=True)
    assert dict(replaced) == dict(upserted) == dict(patched) == {}
    item = container.read_item("1", "a")
    assert item["v"] == 4 and item["_etag"] == patched.get_response_headers()["etag"]


def test_the_sdk_makes_ids_when_asked(container):
    item = container.create_item({"pk": "a"}, enable_automatic_id_generation=True)
    assert container.read_item(item["id"], "a")["_rid"] == item["_rid"]


@pytest.mark.parametrize("body", [{"pk": "a"}, {"id": "", "pk": "a"}, {"id": 7, "pk": "a"}, {"id": None, "pk": "a"}])
def test_an_item_needs_an_id_that_is_a_string(container, body):
    status = None
    try:
        container.create_item(body)
    except (TypeError, ValueError):
        status = "refused by the sdk"
    except CosmosHttpResponseError as error:
        status = error.status_code
    assert status in (400, "refused by the sdk")
    assert list(container.read_all_items()) == []


def test_a_missing_container_is_404_with_substatus_1003(database):
    missing = database.get_container_client("no-such-container")
    assert status_of(missing.read) == (404, 0)
    with pytest.raises(CosmosHttpResponseError) as raised:
        missing.read_item("1", "a")
    assert raised.value.status_code == 404


def test_the_clock_of_an_item_does_not_go_back(container):
    stamps = [container.upsert_item({"id": "1", "pk": "a", "v": v})["_ts"] for v in range(5)]
    assert stamps == sorted(stamps)
