"""The change feed: both modes, every start, every scope, as the SDK reads it and by hand."""

import datetime
import json
import time

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

INCREMENTAL = {"A-IM": "Incremental Feed"}
ALL_VERSIONS = {"A-IM": "Full-Fidelity Feed", "x-ms-cosmos-changefeed-wire-format-version": "2021-09-15"}


def read(container, **options):
    """The ids of all changes until there are no more, and the continuation."""
    items = list(container.query_items_change_feed(**options))
    return [item["id"] for item in items], container.client_connection.last_response_headers["etag"]


def versions(container, continuation):
    """All changes since, as (operation, id), and the continuation."""
    changes = list(container.query_items_change_feed(continuation=continuation))
    rows = [(row["metadata"]["operationType"], row.get("current", row["metadata"])["id"]) for row in changes]
    return rows, changes, container.client_connection.last_response_headers["etag"]


def test_the_last_version_of_each_item_comes_in_the_order_of_writes(container):
    for id in "abcd":
        container.create_item({"id": id, "pk": "k", "n": 1})
    container.upsert_item({"id": "b", "pk": "k", "n": 2})
    container.delete_item("c", "k")
    items = list(container.query_items_change_feed(start_time="Beginning"))
    assert [(item["id"], item["n"]) for item in items] == [("a", 1), ("d", 1), ("b", 2)]
    lsns = [item["_lsn"] for item in items]
    assert lsns == sorted(lsns) and len(set(lsns)) == 3
    assert all(item["_etag"] and item["_rid"] and item["_self"] and item["_ts"] for item in items)


def test_a_continuation_shows_what_was_written_since(container):
    container.create_item({"id": "a", "pk": "k"})
    seen, token = read(container, start_time="Beginning")
    assert seen == ["a"]
    seen, token = read(container, continuation=token)
    assert seen == []
    container.create_item({"id": "b", "pk": "k"})
    container.upsert_item({"id": "a", "pk": "k", "n": 2})
    seen, later = read(container, continuation=token)
    assert seen == ["b", "a"]
    assert read(container, continuation=later)[0] == []
    assert read(container, continuation=token)[0] == ["b", "a"], "a continuation can be used again"


def test_from_now_on_nothing_older_comes(container):
    container.create_item({"id": "a", "pk": "k"})
    seen, token = read(container, start_time="Now")
    assert seen == []
    container.create_item({"id": "b", "pk": "k"})
    assert read(container, continuation=token)[0] == ["b"]
    seen, _ = read(container)
    assert seen == [], "the default is now"


def test_a_start_time_is_exact_to_the_second(container):
    container.create_item({"id": "a", "pk": "k"})
    first = container.read_item("a", "k")["_ts"]
    while time.time() < first + 2:
        time.sleep(0.1)
    container.create_item({"id": "b", "pk": "k"})
    at = lambda seconds: datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    assert read(container, start_time=at(first))[0] == ["a", "b"]
    assert read(container, start_time=at(first + 1))[0] == ["b"]
    assert read(container, start_time=at(first - 3600))[0] == ["a", "b"]
    pages = container.query_items_change_feed(start_time=at(first), max_item_count=1).by_page()
    assert [[item["id"] for item in page] for page in pages] == [["a"], ["b"]]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_pages_of_any_size_give_the_same_changes(container, size):
    for number in range(10):
        container.create_item({"id": str(number), "pk": f"k{number % 3}"})
    pages = container.query_items_change_feed(start_time="Beginning", max_item_count=size).by_page()
    pages = [[item["id"] for item in page] for page in pages]
    assert [id for page in pages for id in page] == [str(number) for number in range(10)]
    assert all(len(page) <= size for page in pages)


def test_a_transaction_is_never_divided(container):
    container.create_item({"id": "before", "pk": "k"})
    container.execute_item_batch([("create", ({"id": str(n), "pk": "k"},)) for n in range(7)], "k")
    container.create_item({"id": "after", "pk": "k"})
    pages = container.query_items_change_feed(start_time="Beginning", max_item_count=2).by_page()
    pages = [[item["id"] for item in page] for page in pages]
    assert ["before"] + [str(n) for n in range(7)] in pages or [str(n) for n in range(7)] in pages
    assert sum(pages, []) == ["before"] + [str(n) for n in range(7)] + ["after"]


def test_a_partition_key_shows_its_own_changes_only(make_container):
    container = make_container(offer_throughput=24000)
    for number in range(12):
        container.create_item({"id": str(number), "pk": f"k{number % 3}"})
    seen, token = read(container, start_time="Beginning", partition_key="k1")
    assert seen == ["1", "4", "7", "10"]
    container.create_item({"id": "x", "pk": "k2"})
    container.create_item({"id": "y", "pk": "k1"})
    assert read(container, continuation=token)[0] == ["y"]


def test_a_prefix_of_a_hierarchical_key_shows_its_own_changes_only(make_container):
    key = PartitionKey(path=["/tenant", "/user"], kind="MultiHash")
    container = make_container(key, offer_throughput=24000)
    for number in range(12):
        container.create_item({"id": str(number), "tenant": f"t{number % 2}", "user": f"u{number % 4}"})
    assert read(container, start_time="Beginning", partition_key=["t1", "u3"])[0] == ["3", "7", "11"]
    assert sorted(map(int, read(container, start_time="Beginning", partition_key=["t1"])[0])) == [1, 3, 5, 7, 9, 11]


def test_feed_ranges_divide_the_changes(make_container):
    container = make_container(offer_throughput=24000)
    for number in range(40):
        container.create_item({"id": str(number), "pk": f"k{number}"})
    ranges = list(container.read_feed_ranges())
    assert len(ranges) == 4
    parts = [read(container, start_time="Beginning", feed_range=part) for part in ranges]
    assert sorted(int(id) for seen, _ in parts for id in seen) == list(range(40))
    assert all(seen for seen, _ in parts)
    container.create_item({"id": "new", "pk": "k7"})
    assert sum([read(container, continuation=token)[0] for _, token in parts], []) == ["new"]
    of_key = container.feed_range_from_partition_key("k7")
    assert read(container, start_time="Beginning", feed_range=of_key)[0] == ["7", "new"]
    whole, token = read(container, start_time="Beginning")
    assert sorted(whole) == sorted([str(number) for number in range(40)] + ["new"])
    assert read(container, continuation=token)[0] == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_older_arguments_work_too(container):
    container.create_item({"id": "a", "pk": "k"})
    seen, token = read(container, partition_key_range_id="0", is_start_from_beginning=True)
    assert seen == ["a"]
    container.create_item({"id": "b", "pk": "k"})
    assert read(container, partition_key_range_id="0", continuation=token)[0] == ["b"]
    assert read(container, is_start_from_beginning=True)[0] == ["a", "b"]


def test_all_versions_and_deletes_come_in_their_order(make_container):
    container = make_container(change_feed_policy={"retentionDuration": 10})
    container.create_item({"id": "a", "pk": "k", "n": 0})
    assert list(container.query_items_change_feed(mode="AllVersionsAndDeletes")) == []
    token = container.client_connection.last_response_headers["etag"]
    container.create_item({"id": "b", "pk": "k", "n": 1})
    container.upsert_item({"id": "b", "pk": "k", "n": 2})
    container.upsert_item({"id": "a", "pk": "k", "n": 3})
    container.delete_item("b", "k")
    rows, changes, token = versions(container, token)
    assert rows == [("create", "b"), ("replace", "b"), ("replace", "a"), ("delete", "b")]
    create, replace, older, delete = changes
    assert create["current"]["n"] == 1 and "previous" not in create
    assert (replace["current"]["n"], replace["previous"]["n"]) == (2, 1)
    assert replace["metadata"]["previousImageLSN"] == create["metadata"]["lsn"]
    assert replace["current"]["_etag"] != replace["previous"]["_etag"] == create["current"]["_etag"]
    assert (older["current"]["n"], older["previous"]["n"]) == (3, 0), "also if it was written before"
    assert "current" not in delete and delete["previous"]["n"] == 2
    metadata = delete["metadata"]
    assert (metadata["id"], metadata["partitionKey"], metadata["timeToLiveExpired"]) == ("b", {"pk": "k"}, False)
    assert all(abs(change["metadata"]["crts"] - time.time()) < 300 for change in changes)
    lsns = [change["metadata"]["lsn"] for change in changes]
    assert lsns == sorted(lsns) and len(set(lsns)) == 4
    rows, _, token = versions(container, token)
    assert rows == []
    container.execute_item_batch(
        [("create", ({"id": "c", "pk": "k"},)), ("upsert", ({"id": "c", "pk": "k"},)), ("delete", ("c",))], "k"
    )
    rows, changes, _ = versions(container, token)
    assert rows == [("create", "c"), ("replace", "c"), ("delete", "c")]
    assert len({change["metadata"]["lsn"] for change in changes}) == 1


def test_a_new_id_is_a_delete_and_a_create(make_container):
    container = make_container(change_feed_policy={"retentionDuration": 10})
    container.create_item({"id": "old", "pk": "k"})
    list(container.query_items_change_feed(mode="AllVersionsAndDeletes"))
    token = container.client_connection.last_response_headers["etag"]
    container.replace_item("old", {"id": "new", "pk": "k"})
    assert versions(container, token)[0] == [("delete", "old"), ("create", "new")]
    assert read(container, start_time="Beginning")[0] == ["new"]


def test_an_expired_item_is_a_delete(make_container):
    container = make_container(change_feed_policy={"retentionDuration": 10}, default_ttl=-1)
    list(container.query_items_change_feed(mode="AllVersionsAndDeletes"))
    token = container.client_connection.last_response_headers["etag"]
    container.create_item({"id": "a", "pk": "k", "ttl": 1})
    assert read(container, start_time="Beginning")[0] in (["a"], [])
    deadline = time.time() + 60
    rows = []
    while len(rows) < 2 and time.time() < deadline:
        time.sleep(0.2)
        rows, changes, _ = versions(container, token)
    assert rows == [("create", "a"), ("delete", "a")]
    assert changes[1]["metadata"]["timeToLiveExpired"] is True
    assert read(container, start_time="Beginning")[0] == []


def test_versions_of_feed_ranges_and_keys(make_container):
    container = make_container(change_feed_policy={"retentionDuration": 10}, offer_throughput=24000)
    scopes = [{"partition_key": "k1"}, {"feed_range": next(iter(container.read_feed_ranges()))}, {}]
    tokens = []
    for scope in scopes:
        assert list(container.query_items_change_feed(mode="AllVersionsAndDeletes", **scope)) == []
        tokens.append(container.client_connection.last_response_headers["etag"])
    for number in range(20):
        container.create_item({"id": str(number), "pk": f"k{number % 5}"})
    container.delete_item("1", "k1")
    of_key, of_range, of_all = [versions(container, token)[0] for token in tokens]
    assert of_key == [("create", "1"), ("create", "6"), ("create", "11"), ("create", "16"), ("delete", "1")]
    assert len(of_all) == 21 and set(of_range) < set(of_all)


def test_versions_need_a_retention(container):
    with pytest.raises(CosmosHttpResponseError) as raised:
        list(container.query_items_change_feed(mode="AllVersionsAndDeletes"))
    assert raised.value.status_code == 400


def test_the_feed_continues_after_a_restart(own_server):
    from azure.cosmos import CosmosClient
    from support.server import EMULATOR_KEY

    with CosmosClient(own_server.endpoint("http"), EMULATOR_KEY) as client:
        container = client.create_database("d").create_container(
            "c", PartitionKey("/pk"), change_feed_policy={"retentionDuration": 10}
        )
        container.create_item({"id": "a", "pk": "k"})
        _, latest = read(container, start_time="Beginning")
        list(container.query_items_change_feed(mode="AllVersionsAndDeletes"))
        every = container.client_connection.last_response_headers["etag"]
        container.create_item({"id": "b", "pk": "k"})
        container.delete_item("a", "k")
    own_server.kill()
    own_server.start()
    with CosmosClient(own_server.endpoint("http"), EMULATOR_KEY) as client:
        container = client.get_database_client("d").get_container_client("c")
        assert read(container, continuation=latest)[0] == ["b"]
        assert versions(container, every)[0] == [("create", "b"), ("delete", "a")]
        container.create_item({"id": "c", "pk": "k"})
        assert read(container, continuation=latest)[0] == ["b", "c"]
        assert versions(container, every)[0] == [("create", "b"), ("delete", "a"), ("create", "c")]


def test_answers_have_the_headers_that_clients_read(wire, wire_container):
    for id in "ab":
        assert wire.item("POST", wire_container, ["k"], body={"id": id, "pk": "k"}).status == 201
    answer = wire.send("GET", f"{wire_container}/docs", headers=INCREMENTAL)
    assert answer.status == 200 and answer.json["_count"] == 2 and answer.headers["x-ms-item-count"] == "2"
    first, second = answer.json["Documents"]
    assert answer.headers["etag"] == f'"{second["_lsn"]}"'
    assert answer.headers["x-ms-session-token"] == f"0:0#{second['_lsn']}", "estimators compare it with _lsn"
    assert "x-ms-continuation" not in answer.headers
    again = wire.send("GET", f"{wire_container}/docs", headers={**INCREMENTAL, "If-None-Match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == answer.headers["etag"]
    assert again.headers["x-ms-session-token"] == answer.headers["x-ms-session-token"]
    assert float(again.headers["x-ms-request-charge"]) == 1 and float(answer.headers["x-ms-request-charge"]) == 2
    after_first = wire.send(
        "GET", f"{wire_container}/docs", headers={**INCREMENTAL, "If-None-Match": f'"{first["_lsn"]}"'}
    )
    assert [item["id"] for item in after_first.json["Documents"]] == ["b"]


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"A-IM": "Decremental feed"}, 400),
        ({"A-IM": "Incremental feed, Full-Fidelity Feed"}, 400),
        ({**INCREMENTAL, "If-None-Match": '"x"'}, 400),
        ({**INCREMENTAL, "If-None-Match": '"00000000-0000-0000-0000-000000000000"'}, 400),
        ({**INCREMENTAL, "If-None-Match": '"18446744073709551615"'}, 400),
        ({**INCREMENTAL, "If-None-Match": '"1;7:99999999999"'}, 400),
        ({**INCREMENTAL, "If-Modified-Since": "yesterday"}, 400),
        ({**INCREMENTAL, "If-Modified-Since": "Tue, 31 Feb 2023 10:00:00 GMT"}, 400),
        ({**INCREMENTAL, "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}, 400),
        ({**INCREMENTAL, "If-Modified-Since": "Sun, 01 Jan 2023 00:00:00 GMT"}, 200),
        ({**INCREMENTAL, "If-Modified-Since": "Sun, 01 Jan 2023 00:00:00 UTC"}, 200),
        ({**INCREMENTAL, "x-ms-max-item-count": "many"}, 400),
        ({**INCREMENTAL, "x-ms-session-token": "nonsense"}, 400),
        ({**INCREMENTAL, "x-ms-session-token": "0:0#99999999999"}, 404),
        ({**INCREMENTAL, "x-ms-documentdb-partitionkeyrangeid": "7"}, 410),
        ({**INCREMENTAL, "x-ms-documentdb-partitionkeyrangeid": "x"}, 400),
        ({**INCREMENTAL, "x-ms-start-epk": "zz"}, 400),
        ({**INCREMENTAL, "x-ms-documentdb-partitionkey": "[1"}, 400),
        ({**ALL_VERSIONS}, 400),
        ({**ALL_VERSIONS, "If-None-Match": "*"}, 304),
        ({**ALL_VERSIONS, "If-None-Match": "*", "If-Modified-Since": "Sun, 01 Jan 2023 00:00:00 GMT"}, 304),
        ({**ALL_VERSIONS, "If-Modified-Since": "Sun, 01 Jan 2023 00:00:00 GMT"}, 400),
        ({**ALL_VERSIONS, "If-None-Match": '"0"'}, 400),
        ({**ALL_VERSIONS, "If-None-Match": "*", "x-ms-cosmos-changefeed-wire-format-version": "2020-01-01"}, 400),
    ],
)
def test_what_is_wrong_is_refused(wire, wire_container, headers, status):
    """The last container gets a retention after its first item, so its history has a beginning."""
    assert wire.item("POST", wire_container, ["k"], body={"id": "a", "pk": "k"}).status == 201
    definition = json.loads(wire.send("GET", wire_container).body)
    definition["changeFeedPolicy"] = {"retentionDuration": 10}
    assert wire.send("PUT", wire_container, definition).status == 200
    answer = wire.send("GET", f"{wire_container}/docs", headers=headers)
    assert answer.status == status, answer.body
    if status == 410:
        assert answer.substatus == 1002
    if status == 404:
        assert answer.substatus == 1002
