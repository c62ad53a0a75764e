"""Feeds of items: pages, continuations, order."""

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from support.expect import plain


@pytest.fixture
def filled(container):
    for number in range(25):
        container.create_item({"id": f"item-{number:02}", "pk": f"key-{number % 4}", "n": number})
    return container


def test_all_items_come_once(filled):
    items = list(filled.read_all_items())
    assert sorted(item["n"] for item in items) == list(range(25))
    assert all(item["_etag"] and item["_rid"] and item["_self"] for item in items)


def test_an_empty_container_has_an_empty_feed(container):
    assert list(container.read_all_items()) == []
    assert [item for page in container.read_all_items().by_page() for item in page] == []


@pytest.mark.parametrize("size", [1, 7, 24, 25, 26, 1000])
def test_pages_of_any_size_give_the_same_order(filled, size):
    whole = [item["id"] for item in filled.read_all_items(max_item_count=1000)]
    pages = [[item["id"] for item in page] for page in filled.read_all_items(max_item_count=size).by_page()]
    assert [id for page in pages for id in page] == whole
    assert all(len(page) <= size for page in pages)


def test_a_continuation_goes_on_where_it_was(filled):
    whole = [item["id"] for item in filled.read_all_items()]
    seen, token = [], None
    while True:
        pages = filled.read_all_items(max_item_count=4).by_page(token)
        seen += [item["id"] for item in next(pages)]
        token = pages.continuation_token
        if not token:
            break
    assert seen == whole


def test_a_continuation_can_be_used_twice(filled):
    pages = filled.read_all_items(max_item_count=10).by_page()
    list(next(pages))
    token = pages.continuation_token
    first = [item["id"] for item in next(filled.read_all_items(max_item_count=10).by_page(token))]
    second = [item["id"] for item in next(filled.read_all_items(max_item_count=10).by_page(token))]
    assert first == second and len(first) == 10


def test_writes_between_pages_do_not_disturb_the_rest(filled):
    whole = [item["id"] for item in filled.read_all_items()]
    pages = filled.read_all_items(max_item_count=5).by_page()
    seen = [item["id"] for item in next(pages)]
    keys = {item["id"]: item["pk"] for item in filled.read_all_items()}
    filled.delete_item(seen[-1], keys[seen[-1]])
    filled.delete_item(whole[10], keys[whole[10]])
    filled.upsert_item({"id": whole[12], "pk": keys[whole[12]], "n": "changed"})
    for page in pages:
        seen += [item["id"] for item in page]
    assert seen == [id for id in whole if id != whole[10]]


def test_a_made_up_continuation_is_refused(filled):
    for token in ("nonsense", "AAAA", "{}"):
        with pytest.raises(CosmosHttpResponseError) as raised:
            list(next(filled.read_all_items(max_item_count=4).by_page(token)))
        assert raised.value.status_code == 400


def test_a_continuation_belongs_to_its_container(filled, make_container):
    pages = filled.read_all_items(max_item_count=4).by_page()
    list(next(pages))
    other = make_container()
    with pytest.raises(CosmosHttpResponseError) as raised:
        list(next(other.read_all_items(max_item_count=4).by_page(pages.continuation_token)))
    assert raised.value.status_code == 400


def test_large_items_make_pages_of_few(container):
    for number in range(5):
        container.create_item({"id": str(number), "pk": "a", "t": "x" * 1_500_000})
    pages = [[plain(item)["id"] for item in page] for page in container.read_all_items(max_item_count=100).by_page()]
    assert sorted(id for page in pages for id in page) == ["0", "1", "2", "3", "4"]
    assert len(pages) > 1


def test_a_feed_over_several_ranges_is_complete_and_stable(make_container):
    container = make_container(offer_throughput=24000)
    for number in range(80):
        container.create_item({"id": str(number), "pk": f"key-{number}"})
    whole = [item["id"] for item in container.read_all_items()]
    assert sorted(map(int, whole)) == list(range(80))
    pages = [[item["id"] for item in page] for page in container.read_all_items(max_item_count=7).by_page()]
    assert [id for page in pages for id in page] == whole
