"""Queries: filters of every operator and type, select, pages, order."""

import datetime
import random
import uuid

import pytest

from support.table import DATA, answer, azurite_lacks
from support.table_expect import keys, refused
from support.table_values import entity
from conftest import unique


@pytest.fixture(scope="session")
def rows(client):
    """A table with the rows of the shared data."""
    table = client.create_table(unique("rows"))
    for row in reversed(DATA["rows"]):
        table.create_entity(entity(row))
    yield table
    client.delete_table(table.table_name)


@pytest.mark.parametrize("case", DATA["filters"], ids=[case["filter"] for case in DATA["filters"]])
def test_a_filter_finds_its_rows(rows, case):
    expected = answer(case["rows"], case.get("azurite", case["rows"]))
    found = "".join(row["RowKey"] for row in rows.query_entities(case["filter"]))
    assert found == expected


@pytest.mark.parametrize("text", DATA["bad_filters"] + answer(DATA["bad_filters_that_azurite_takes"], []))
def test_a_bad_filter_is_refused(rows, text):
    status, code = refused(lambda: list(rows.query_entities(text)))
    assert (status, code) in ((400, "InvalidInput"), (501, "NotImplemented"))


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("text", "O'Brien", "3"),
        ("small", 7, "2"),
        ("large", 9007199254740993, "2"),
        ("real", 5.5, "2"),
        ("flag", False, "2"),
        ("when", datetime.datetime(1999, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc), "3"),
        ("guid", uuid.UUID(int=1), "1"),
        ("bytes", b"\xff", "3"),
    ],
)
def test_parameters_of_every_type(rows, name, value, expected):
    found = rows.query_entities(f"{name} eq @value", parameters={"value": value})
    assert "".join(row["RowKey"] for row in found) == expected


def test_select(rows):
    found = list(rows.query_entities("PartitionKey eq 'p'", select=["RowKey", "small"]))
    assert found == [{"RowKey": "1", "small": 5}, {"RowKey": "2", "small": 7}, {"RowKey": "3", "small": -3}]
    found = list(rows.query_entities("PartitionKey eq 'q'", select=["RowKey", "small", "missing"]))
    present = [{name: value for name, value in row.items() if value is not None} for row in found]
    assert present == [{"RowKey": "4", "small": 0}, {"RowKey": "5", "small": "5"}, {"RowKey": "6"}]
    assert all(row.metadata["etag"] for row in found)


def test_order_is_by_partition_key_then_row_key_in_code_units(table):
    texts = ["", "A", "B", "Z", "a", "a b", "aa", "b", "10", "9", "é", "東", "\U0001f642", "~"]
    pairs = [(partition, row) for partition in texts[:5] for row in texts]
    shuffled = list(pairs)
    random.Random(7).shuffle(shuffled)
    for partition, row in shuffled:
        table.upsert_entity({"PartitionKey": partition, "RowKey": row})
    ordinal = lambda pair: tuple(text.encode("utf-16-be") for text in pair)
    assert keys(table.list_entities()) == sorted(pairs, key=ordinal)
    within = [pair for pair in sorted(pairs, key=ordinal) if pair[0] == "A" and ordinal((pair[1],)) > ordinal(("B",))]
    assert keys(table.query_entities("PartitionKey eq 'A' and RowKey gt 'B'")) == within


def many(table, count, partitions=1):
    """Inserts that many entities by transactions."""
    for partition in range(partitions):
        numbers = range(partition, count, partitions)
        for begin in range(0, len(numbers), 100):
            table.submit_transaction(
                [("create", {"PartitionKey": f"p{partition}", "RowKey": f"{number:05}", "n": number})
                 for number in numbers[begin : begin + 100]]
            )


def test_pages(table):
    many(table, 25, partitions=3)
    everything = keys(table.list_entities())
    assert everything == sorted(everything) and len(everything) == 25
    pages = [keys(page) for page in table.list_entities(results_per_page=4).by_page()]
    assert max(map(len, pages)) <= 4
    assert [key for page in pages for key in page] == everything
    # Every page can be the last of one client and the first of the next.
    for stop in range(1, len(pages)):
        pager = table.list_entities(results_per_page=4).by_page()
        begun = [key for _ in range(stop) for key in keys(next(pager))]
        rest = table.list_entities(results_per_page=4).by_page(continuation_token=pager.continuation_token)
        assert begun + [key for page in rest for key in keys(page)] == everything


def test_pages_of_a_filter(table):
    many(table, 40, partitions=2)
    found = [keys(page) for page in table.query_entities("n ge 10 and n lt 30", results_per_page=7).by_page()]
    flat = [key for page in found for key in page]
    assert max(map(len, found)) <= 7 and flat == sorted(flat) and len(flat) == 20


def test_a_page_has_at_most_a_thousand_rows(table):
    many(table, 1100)
    pages = [len(list(page)) for page in table.list_entities().by_page()]
    assert sum(pages) == 1100 and max(pages) == 1000
    assert len(list(table.query_entities("n lt 1050"))) == 1050


@pytest.mark.parametrize("size", [0, -1, 1001])
def test_a_page_of_a_bad_size_is_refused(rows, size):
    azurite_lacks("a check of sizes")
    assert refused(lambda: list(rows.list_entities(results_per_page=size))) == (400, "InvalidInput")


def test_results_that_are_empty(table):
    assert list(table.list_entities()) == []
    assert list(table.query_entities("n eq 1")) == []
    assert [list(page) for page in table.list_entities().by_page()] in ([], [[]])


def test_a_page_between_changes_neither_repeats_nor_skips(table):
    many(table, 20)
    pager = table.list_entities(results_per_page=5).by_page()
    first = keys(next(pager))
    table.delete_entity("p0", "00005")
    table.create_entity({"PartitionKey": "p0", "RowKey": "00000a"})
    rest = [key for page in pager for key in keys(page)]
    assert [row for _, row in first] == [f"{number:05}" for number in range(5)]
    assert [row for _, row in rest] == [f"{number:05}" for number in range(6, 20)]


def test_a_long_filter(rows):
    text = " or ".join(f"RowKey eq 'absent{number:04}'" for number in range(14)) + " or RowKey eq '6'"
    assert [row["RowKey"] for row in rows.query_entities(text)] == ["6"]
    long = "x" * 7000
    assert list(rows.query_entities(f"text eq '{long}'")) == []
