"""What a client that knew an earlier state meets: containers created again, old tokens and ETags, odd sizes."""

from azure.cosmos import PartitionKey
from conftest import unique
from support.expect import status_of


def test_a_container_created_again_is_empty_and_has_a_new_rid(database):
    name = unique("c")
    first = database.create_container(name, PartitionKey("/pk"))
    first.create_item({"id": "1", "pk": "a"})
    rid = first.read()["_rid"]
    database.delete_container(name)
    second = database.create_container(name, PartitionKey("/pk"))
    assert second.read()["_rid"] != rid
    assert list(second.read_all_items()) == []
    assert status_of(second.read_item, "1", "a") == (404, 0)
    database.delete_container(name)


def test_single_quotes_in_key_paths(make_container):
    container = make_container("/'department name'")
    container.create_item({"id": "x", "department name": "x", "v": 1})
    assert container.read_item("x", "x")["v"] == 1


def test_an_etag_of_a_dropped_container_matches_nothing(database):
    name = unique("c")
    first = database.create_container(name, PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})["_etag"]
    database.delete_container(name)
    container = database.create_container(name, PartitionKey("/pk"))
    second = container.create_item({"id": "1", "pk": "a"})["_etag"]
    assert first != second


def test_a_page_stays_below_four_megabytes(make_container):
    container = make_container()
    for number in range(5):
        container.create_item({"id": str(number), "pk": "a", "t": "x" * 1_500_000})
    pages = [[item["id"] for item in page] for page in container.read_all_items(max_item_count=100).by_page()]
    assert all(len(page) <= 2 for page in pages)


def test_a_body_far_over_the_limit_is_413(make_container):
    container = make_container()
    assert status_of(container.create_item, {"id": "1", "pk": "a", "t": "x" * 5 * 1024 * 1024})[0] == 413
