"""Databases and containers: create, read, replace, delete, list, and the definitions that come back."""

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import CosmosHttpResponseError

from conftest import unique
from support.expect import message_of, status_of

DEFAULT_INDEXING = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
}


def test_a_database_is_created_read_listed_and_deleted(client):
    name = unique("db")
    database = client.create_database(name)
    properties = database.read()
    assert properties["id"] == name
    assert properties["_self"] == f"dbs/{properties['_rid']}/"
    assert properties["_colls"] == "colls/" and properties["_users"] == "users/"
    assert properties["_etag"] and properties["_ts"] > 0
    assert name in [found["id"] for found in client.list_databases()]
    client.delete_database(name)
    assert status_of(database.read) == (404, 0)
    assert status_of(client.delete_database, name) == (404, 0)
    assert name not in [found["id"] for found in client.list_databases()]


def test_a_second_database_of_a_name_is_a_conflict(client, database):
    assert status_of(client.create_database, database.id) == (409, 0)
    again = client.create_database_if_not_exists(database.id)
    assert again.read()["_rid"] == database.read()["_rid"]


def test_create_if_not_exists_creates(client):
    name = unique("db")
    first = client.create_database_if_not_exists(name).read()
    second = client.create_database_if_not_exists(name).read()
    assert first["_rid"] == second["_rid"]
    client.delete_database(name)


def test_a_database_created_again_has_a_new_rid(client):
    name = unique("db")
    first = client.create_database(name).read()["_rid"]
    client.delete_database(name)
    second = client.create_database(name).read()["_rid"]
    client.delete_database(name)
    assert first != second


def test_databases_are_listed_in_pages(client):
    names = {unique("page") for _ in range(5)}
    for name in names:
        client.create_database(name)
    pages = [[found["id"] for found in page] for page in client.list_databases(max_item_count=2).by_page()]
    listed = [name for page in pages for name in page]
    assert all(len(page) <= 2 for page in pages)
    assert len(listed) == len(set(listed)) and names <= set(listed)
    for name in names:
        client.delete_database(name)


@pytest.mark.parametrize("name", ["ünïcödé 数据库", "with space", "a+b", "100%", "a&b=c", "n" * 255, "q'uote\"d", "dots.and~tildes"])
def test_names_may_have_unusual_characters(client, name):
    database = client.create_database(name)
    container = database.create_container(name, PartitionKey("/pk"))
    item = container.create_item({"id": "1", "pk": "a"})
    assert client.get_database_client(name).get_container_client(name).read_item("1", "a")["_rid"] == item["_rid"]
    assert [found["id"] for found in database.list_containers()] == [name]
    client.delete_database(name)


@pytest.mark.parametrize("name", ["a/b", "a\\b", "a?b", "a#b", "n" * 256, "space at the end "])
def test_forbidden_names_are_refused(client, name):
    with pytest.raises((CosmosHttpResponseError, ValueError)) as raised:
        client.create_database(name)
    assert getattr(raised.value, "status_code", 400) == 400


def test_a_container_is_created_with_the_defaults_of_the_service(database):
    name = unique("c")
    container = database.create_container(name, PartitionKey("/pk"))
    properties = container.read()
    assert properties["id"] == name
    assert properties["partitionKey"]["paths"] == ["/pk"]
    assert properties["partitionKey"]["kind"] == "Hash" and properties["partitionKey"]["version"] == 2
    assert properties["indexingPolicy"] == DEFAULT_INDEXING
    assert properties["conflictResolutionPolicy"]["mode"] == "LastWriterWins"
    assert properties["geospatialConfig"] == {"type": "Geography"}
    assert "defaultTtl" not in properties
    for child in ("docs", "sprocs", "triggers", "udfs", "conflicts"):
        assert properties[f"_{child}"] == f"{child}/"
    database_rid = database.read()["_rid"]
    assert properties["_self"] == f"dbs/{database_rid}/colls/{properties['_rid']}/"
    assert name in [found["id"] for found in database.list_containers()]
    database.delete_container(name)
    assert status_of(container.read) == (404, 0)
    assert status_of(database.delete_container, name) == (404, 0)


def test_a_second_container_of_a_name_is_a_conflict(database, container):
    assert status_of(database.create_container, container.id, PartitionKey("/other")) == (409, 0)
    again = database.create_container_if_not_exists(container.id, PartitionKey("/other"))
    assert again.read()["partitionKey"]["paths"] == ["/pk"]


def test_a_client_finds_a_container_again_that_another_one_recreated(client, database):
    """The SDK remembers the old RID and sends it along; the answer makes it look again."""
    name = unique("c")
    container = database.create_container(name, PartitionKey("/pk"))
    container.create_item({"id": "1", "pk": "a"})
    stale = client.get_database_client(database.id).get_container_client(name)
    stale.read_item("1", "a")
    database.delete_container(name)
    database.create_container(name, PartitionKey("/pk"))
    assert stale.create_item({"id": "2", "pk": "a"})["id"] == "2"
    database.delete_container(name)


def test_containers_are_listed_in_pages(database, make_container):
    names = {make_container().id for _ in range(5)}
    pages = [[found["id"] for found in page] for page in database.list_containers(max_item_count=2).by_page()]
    listed = [name for page in pages for name in page]
    assert all(len(page) <= 2 for page in pages)
    assert len(listed) == len(set(listed)) and names <= set(listed)


def test_policies_come_back_as_they_were_given(database, make_container):
    indexing = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/name/?"}, {"path": "/tags/[]/?"}],
        "excludedPaths": [{"path": "/*"}, {"path": '/"_etag"/?'}],
        "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
        "spatialIndexes": [{"path": "/location/*", "types": ["Point", "Polygon"]}],
    }
    unique_keys = {"uniqueKeys": [{"paths": ["/a", "/b/c"]}, {"paths": ["/d"]}]}
    resolution = {"mode": "LastWriterWins", "conflictResolutionPath": "/myts", "conflictResolutionProcedure": ""}
    container = make_container(
        indexing_policy=indexing, default_ttl=3600, unique_key_policy=unique_keys, conflict_resolution_policy=resolution)
    properties = container.read()
    assert properties["indexingPolicy"] == indexing
    assert properties["uniqueKeyPolicy"] == unique_keys
    assert properties["conflictResolutionPolicy"] == resolution
    assert properties["defaultTtl"] == 3600


def test_indexing_can_be_switched_off(make_container):
    container = make_container(indexing_policy={"indexingMode": "none", "automatic": False})
    assert container.read()["indexingPolicy"] == {
        "indexingMode": "none", "automatic": False, "includedPaths": [], "excludedPaths": []}


def test_replace_changes_ttl_and_indexing_and_keeps_the_items(database, make_container):
    container = make_container(default_ttl=3600)
    container.create_item({"id": "1", "pk": "a"})
    before = container.read()
    policy = {**DEFAULT_INDEXING, "excludedPaths": [{"path": "/big/*"}, {"path": '/"_etag"/?'}]}
    database.replace_container(container, PartitionKey("/pk"), indexing_policy=policy, default_ttl=-1)
    after = container.read()
    assert after["defaultTtl"] == -1 and after["indexingPolicy"] == policy
    assert after["_rid"] == before["_rid"] and after["_etag"] != before["_etag"]
    database.replace_container(container, PartitionKey("/pk"))
    assert "defaultTtl" not in container.read()
    assert container.read_item("1", "a")["id"] == "1"


def test_replace_cannot_change_the_partition_key(database, container):
    status, message = message_of(database.replace_container, container, PartitionKey("/other"))
    assert status == 400 and "partitionKey" in message
    assert container.read()["partitionKey"]["paths"] == ["/pk"]


def test_replace_of_an_absent_container_is_404(database):
    assert status_of(database.replace_container, "no-such-container", PartitionKey("/pk")) == (404, 0)


@pytest.mark.parametrize("ttl", [0, -2, 2147483648])
def test_a_time_to_live_out_of_bounds_is_refused(database, ttl):
    status, message = message_of(database.create_container, unique("c"), PartitionKey("/pk"), default_ttl=ttl)
    assert status == 400 and "defaultTtl" in message


@pytest.mark.parametrize("path", ["pk", "", "/a/", "//", "/a//b"])
def test_a_malformed_key_path_is_refused(database, path):
    assert status_of(database.create_container, unique("c"), PartitionKey(path))[0] == 400


def test_throughput_is_accepted_and_checked(database, make_container):
    make_container(offer_throughput=1000)
    make_container(offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000))
    assert status_of(database.create_container, unique("c"), PartitionKey("/pk"), offer_throughput=399)[0] == 400
    assert status_of(database.create_container, unique("c"), PartitionKey("/pk"), offer_throughput=450)[0] == 400


def test_more_throughput_makes_more_ranges(make_container):
    container = make_container(offer_throughput=18000)
    assert len(list(container.read_feed_ranges())) == 3
    for number in range(60):
        container.create_item({"id": str(number), "pk": f"key-{number}"})
    assert sorted(int(item["id"]) for item in container.read_all_items()) == list(range(60))


def test_a_small_container_has_one_range_that_covers_everything(container):
    assert len(list(container.read_feed_ranges())) == 1


def test_feed_ranges_of_keys_are_in_order_and_inside(make_container):
    container = make_container(offer_throughput=24000)
    whole = list(container.read_feed_ranges())
    assert len(whole) == 4
    for key in ("a", 1, None, True, "ü"):
        part = container.feed_range_from_partition_key(key)
        assert sum(container.is_feed_range_subset(parent, part) for parent in whole) == 1


def test_a_container_in_a_missing_database_is_404(client):
    missing = client.get_database_client("no-such-database")
    assert status_of(missing.read) == (404, 0)
    assert status_of(missing.create_container, "c", PartitionKey("/pk"))[0] == 404
    with pytest.raises(CosmosHttpResponseError) as raised:
        list(missing.list_containers())
    assert raised.value.status_code == 404


def test_the_account_says_where_it_is(client, server):
    # The asyncio client has it under a private name only.
    read = getattr(client, "get_database_account", None) or client._get_database_account
    account = read()
    assert account.ConsistencyPolicy["defaultConsistencyLevel"] == "Session"
    endpoints = [place["databaseAccountEndpoint"] for place in account._WritableLocations]
    assert all(f":{server.port}/" in endpoint for endpoint in endpoints) and len(endpoints) == 1
