"""Queries on items, in one partition and over several, in pages of any size."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from support.blocking import Blocking
from support.expect import message_of, plain, status_of
from tests.conftest import unique

TEAMS = ["red", "green", "blue"]
# The server merges what this SDK cannot.
RELAXED = {"headers": {"x-perihelion-compatibility": "relaxed"}}


def item(number):
    made = {
        "id": f"item-{number:02}",
        "pk": f"key-{number % 7}",
        "n": number,
        "team": TEAMS[number % 3],
        "tags": [f"t{number % 2}", f"t{number % 5}"],
        "place": {"x": number / 2, "y": -number},
    }
    if number % 10 == 0:
        del made["team"]
    return made


ITEMS = [item(number) for number in range(60)]


@pytest.fixture(scope="module", params=[400, 24000], ids=["one range", "four ranges"])
def filled(request, database):
    container = database.create_container(unique("c"), PartitionKey("/pk"), offer_throughput=request.param)
    for each in ITEMS:
        container.create_item(each)
    yield container
    database.delete_container(container.id)


def across(container):
    """Only the sync client wants to be told; the asyncio client does not know the option."""
    return {} if isinstance(container, Blocking) else {"enable_cross_partition_query": True}


def rows(container, query, size=None, parameters=None, **options):
    if not {"partition_key", "feed_range"} & options.keys():
        options = {**across(container), **options}
    found = container.query_items(query, parameters=parameters, max_item_count=size, **options)
    return [dict(row) if isinstance(row, dict) else row for row in found]


def ns(items):
    return [each["n"] for each in items]


def test_everything_comes_once_and_whole(filled):
    whole = rows(filled, "SELECT * FROM c")
    assert sorted(ns(whole)) == list(range(60))
    read = {each["id"]: dict(each) for each in filled.read_all_items()}
    assert all(read[each["id"]] == each for each in whole)
    assert [plain(each) for each in rows(filled, "SELECT * FROM c WHERE c.id = 'item-07'")] == [item(7)]


@pytest.mark.parametrize("size", [1, 7, 59, 60, 1000])
def test_pages_of_any_size_give_the_same_rows(filled, size):
    for query in ("SELECT * FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n DESC", "SELECT DISTINCT VALUE c.team FROM c"):
        assert rows(filled, query, size) == rows(filled, query), query


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("c.n = 5", [5]),
        ("c.n > 55", [56, 57, 58, 59]),
        ("c.n >= 10 AND c.n < 13", [10, 11, 12]),
        ("c.n IN (3, 99, 4)", [3, 4]),
        ("c.n BETWEEN 57 AND 58", [57, 58]),
        ("c.team = 'red' AND c.n < 10", [3, 6, 9]),
        ("NOT IS_DEFINED(c.team) AND c.n > 20", [30, 40, 50]),
        ("c.place.x = 1.5", [3]),
        ("c['place']['y'] = -4", [4]),
        ("ARRAY_CONTAINS(c.tags, 't4') AND c.n < 20", [4, 9, 14, 19]),
        ("STARTSWITH(c.id, 'item-5')", list(range(50, 60))),
        ("c.id LIKE '%-_9'", [9, 19, 29, 39, 49, 59]),
        ("c.team = 'red' OR c.n = 1", sorted({1, *(n for n in range(60) if n % 3 == 0 and n % 10)})),
        ("c.nothing = 1", []),
        ("c.n = '5'", []),
        ("true", list(range(60))),
        ("false", []),
    ],
)
def test_filters(filled, condition, expected):
    assert sorted(ns(rows(filled, f"SELECT * FROM c WHERE {condition}"))) == expected


def test_projections(filled):
    one = " FROM c WHERE c.n = 4"
    assert rows(filled, "SELECT c.id, c.n" + one) == [{"id": "item-04", "n": 4}]
    assert rows(filled, "SELECT c.n AS number, c.nothing" + one) == [{"number": 4}]
    assert rows(filled, "SELECT VALUE c.place" + one) == [{"x": 2, "y": -4}]
    assert rows(filled, "SELECT VALUE {'a': c.n, 'b': [c.n + 1, UPPER(c.team)]}" + one) == [{"a": 4, "b": [5, "GREEN"]}]
    assert rows(filled, "SELECT c.n * 2, c.n > 3" + one) == [{"$1": 8, "$2": True}]
    assert rows(filled, "SELECT VALUE c.nothing FROM c") == []
    assert rows(filled, "SELECT VALUE (c.n > 3 ? 'many' : 'few')" + one) == ["many"]


def test_joins_and_subqueries(filled):
    joined = rows(filled, "SELECT c.n, t FROM c JOIN t IN c.tags WHERE t = 't4' AND c.n < 10")
    assert sorted(ns(joined)) == [4, 9]
    assert sorted(rows(filled, "SELECT VALUE t FROM t IN c.tags")) == sorted(tag for each in ITEMS for tag in each["tags"])
    exists = "SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't3') AND c.n < 10"
    assert sorted(rows(filled, exists)) == [3, 8]
    counted = "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE t FROM t IN c.tags)) FROM c WHERE c.n = 10"
    assert rows(filled, counted) == [1]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_order_with_pages(filled, size):
    assert rows(filled, "SELECT VALUE c.n FROM c ORDER BY c.n", size) == list(range(60))
    assert rows(filled, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", size) == list(range(59, -1, -1))
    assert rows(filled, "SELECT VALUE c.n FROM c WHERE c.n > 50 ORDER BY c.place.y", size) == list(range(59, 50, -1))
    assert rows(filled, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n", size) == [0, 1, 2]
    assert rows(filled, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 5", size) == [10, 11, 12, 13, 14]
    # Values of different kinds, and none at all, have an order too; the SDK refuses to merge them.
    teams = rows(filled, "SELECT c.team FROM c ORDER BY c.team", size, **RELAXED)
    assert teams == sorted(teams, key=lambda row: row.get("team", ""))
    assert teams[:6] == [{}] * 6


@pytest.mark.parametrize(
    "query, expected",
    [
        ("SELECT VALUE COUNT(1) FROM c", [60]),
        ("SELECT VALUE COUNT(c.team) FROM c", [54]),
        ("SELECT VALUE SUM(c.n) FROM c", [1770]),
        ("SELECT VALUE AVG(c.n) FROM c", [29.5]),
        ("SELECT VALUE MIN(c.n) FROM c", [0]),
        ("SELECT VALUE MAX(c.id) FROM c", ["item-59"]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n > 100", [0]),
        ("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", [120]),
        ("SELECT VALUE COUNTIF(c.n < 3) FROM c", [3]),
    ],
)
def test_aggregates(filled, query, expected):
    for size in (1, 100):
        assert rows(filled, query, size) == expected
        assert rows(filled, query, size, **RELAXED) == expected


@pytest.mark.parametrize(
    "query, expected",
    [
        ("SELECT COUNT(1) AS n, MAX(c.n) AS most FROM c WHERE c.n < 10", [{"n": 10, "most": 9}]),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pk FROM c)", [7]),
        ("SELECT VALUE ROUND(AVG(c.n) * 2) FROM c", [59]),
        ("SELECT c.team, COUNT(1) AS n FROM c WHERE c.n = 3 GROUP BY c.team", [{"team": "red", "n": 1}]),
        ("SELECT VALUE MAX(c.nothing) FROM c", []),
    ],
)
def test_what_only_the_server_merges(filled, query, expected):
    for size in (1, 100):
        assert rows(filled, query, size, **RELAXED) == expected
    if "nothing" in query:
        # The SDK's own aggregate over nothing.
        assert rows(filled, query) == [None]
    else:
        assert status_of(rows, filled, query)[0] == 400


def test_several_sort_keys_need_a_composite_index(filled):
    query = "SELECT VALUE c.n FROM c WHERE c.n < 4 ORDER BY c.team, c.n"
    status, text = message_of(rows, filled, query)
    assert status == 400 and "does not have a corresponding composite index" in text
    assert rows(filled, query, **RELAXED) == [0, 2, 1, 3]


@pytest.mark.parametrize("size", [1, 100])
def test_groups(filled, size):
    grouped = "SELECT c.team, COUNT(1) AS count, SUM(c.n) AS sum FROM c GROUP BY c.team"
    groups = rows(filled, grouped, size, **RELAXED)
    expected = {}
    for each in ITEMS:
        group = expected.setdefault(each.get("team"), {"count": 0, "sum": 0})
        group["count"] += 1
        group["sum"] += each["n"]
    assert {group.pop("team", None): group for group in groups} == expected
    assert len(rows(filled, "SELECT VALUE MAX(c.n) FROM c GROUP BY c.pk", size, **RELAXED)) == 7


@pytest.mark.parametrize("size", [1, 100])
def test_distinct(filled, size):
    assert sorted(rows(filled, "SELECT DISTINCT VALUE c.team FROM c", size)) == ["blue", "green", "red"]
    assert rows(filled, "SELECT DISTINCT VALUE c.team FROM c ORDER BY c.team DESC", size) == ["red", "green", "blue"]
    assert len(rows(filled, "SELECT DISTINCT c.team FROM c", size)) == 4


def test_parameters(filled):
    parameters = [{"name": "@team", "value": "red"}, {"name": "@n", "value": 12}, {"name": "@top", "value": 2}]
    query = "SELECT TOP @top VALUE c.n FROM c WHERE c.team = @team AND c.n > @n ORDER BY c.n"
    assert rows(filled, query, parameters=parameters) == [15, 18]
    listed = [{"name": "@list", "value": [1, 2, 99]}]
    assert sorted(rows(filled, "SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(@list, c.n)", parameters=listed)) == [1, 2]


def test_one_partition(filled):
    assert sorted(ns(rows(filled, "SELECT * FROM c", partition_key="key-3"))) == list(range(3, 60, 7))
    newest = "SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC"
    assert rows(filled, newest, partition_key="key-3") == [59, 52]
    assert rows(filled, "SELECT VALUE COUNT(1) FROM c GROUP BY c.pk", partition_key="key-3") == [9]
    assert rows(filled, "SELECT * FROM c", partition_key="nothing") == []


def test_a_filter_on_the_key_needs_no_leave_to_cross_partitions(filled):
    found = filled.query_items("SELECT VALUE c.n FROM c WHERE c.pk = 'key-3' AND c.n < 20")
    assert sorted(found) == [3, 10, 17]
    if not isinstance(filled, Blocking):
        status, message = message_of(lambda: list(filled.query_items("SELECT * FROM c")))
        assert status == 400 and "Cross partition query is required but disabled" in message


def test_feed_ranges_have_everything_once(filled):
    seen = []
    for part in filled.read_feed_ranges():
        seen += rows(filled, "SELECT VALUE c.n FROM c ORDER BY c.n", 5, feed_range=part)
    assert sorted(seen) == list(range(60))


def test_read_many(filled):
    wanted = [(f"item-{number:02}", f"key-{number % 7}") for number in range(0, 60, 2)] + [("none", "key-1")]
    assert sorted(ns(filled.read_items(wanted))) == list(range(0, 60, 2))


def test_a_continuation_goes_on_where_it_was(filled):
    for query, key in (("SELECT VALUE c.n FROM c ORDER BY c.n DESC", "key-1"), ("SELECT VALUE c.n FROM c", "key-2")):
        whole, seen, token = rows(filled, query, partition_key=key), [], None
        while True:
            pages = filled.query_items(query, partition_key=key, max_item_count=2).by_page(token)
            seen += list(next(pages))
            token = pages.continuation_token
            if not token:
                break
        assert seen == whole and len(seen) > 6


def test_a_made_up_continuation_is_refused(filled):
    for token in ("nonsense", "AAAA"):
        with pytest.raises(CosmosHttpResponseError) as raised:
            list(next(filled.query_items("SELECT * FROM c", partition_key="key-1").by_page(token)))
        assert raised.value.status_code == 400


@pytest.mark.parametrize(
    "text, code",
    [
        ("SELECT", "SC1001"),
        ("SELECT * FROM c WHERE c.n >", "SC1001"),
        ("SELECT * FROM c ORDER BY c.n + 1", "2206"),
        ("SELECT NOSUCH(c.n) FROM c", "SC2005"),
        ("SELECT d.n FROM c", "SC2001"),
        ("SELECT * FROM c WHERE c.n = @absent", "@absent"),
        ("SELECT c.n, COUNT(1) FROM c", "SC2102"),
    ],
)
def test_what_is_wrong_with_a_query_is_told(filled, text, code):
    status, message = message_of(lambda: rows(filled, text))
    assert status == 400 and code in message


def test_hierarchical_keys_and_their_beginnings(make_container):
    container = make_container(PartitionKey(["/a", "/b", "/c"], kind="MultiHash"), offer_throughput=12000)
    for number in range(30):
        container.create_item({"id": str(number), "a": number % 2, "b": number % 3, "c": number % 5, "n": number})
    query = "SELECT VALUE c.n FROM c ORDER BY c.n"
    assert rows(container, query, partition_key=[1, 2, 3]) == [23]
    assert rows(container, query, partition_key=[1, 2]) == [n for n in range(30) if n % 2 == 1 and n % 3 == 2]
    assert rows(container, query, partition_key=[1]) == list(range(1, 30, 2))
    assert rows(container, "SELECT VALUE COUNT(1) FROM c", partition_key=[0]) == [15]
    assert rows(container, query) == list(range(30))


def test_rows_change_between_pages(make_container):
    container = make_container(offer_throughput=12000)
    for number in range(20):
        container.create_item({"id": f"{number:02}", "pk": f"key-{number}", "n": number})
    pages = container.query_items("SELECT * FROM c ORDER BY c.n", max_item_count=5, **across(container)).by_page()
    seen = ns(next(pages))
    container.delete_item("04", "key-4")
    container.delete_item("12", "key-12")
    container.upsert_item({"id": "17", "pk": "key-17", "n": 2.5})
    for page in pages:
        seen += ns(page)
    assert seen == [n for n in range(20) if n not in (12, 17)]


def test_system_properties_can_be_queried(filled):
    [read] = rows(filled, "SELECT * FROM c WHERE c.n = 9")
    for name in ("_rid", "_etag", "_ts", "_self"):
        found = rows(filled, f"SELECT VALUE c.id FROM c WHERE c.{name} = @v AND c.n = 9", parameters=[{"name": "@v", "value": read[name]}])
        assert found == ["item-09"], name


def test_ranks_are_fused(make_container):
    container = make_container(
        offer_throughput=12000,
        full_text_policy={"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]},
        vector_embedding_policy={
            "vectorEmbeddings": [{"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "cosine"}]
        },
    )
    texts = ["the swimmer swims", "a bicycle", "swimming and running", "running running", "nothing at all"]
    for number, text in enumerate(texts):
        container.create_item({"id": str(number), "pk": f"key-{number}", "text": text, "v": [1, number]})
    nearest = "SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])"
    assert rows(container, nearest) == ["0", "1"]
    best = rows(container, "SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'running')")
    assert [row["id"] for row in best] == ["3", "2"]
    fused = "SELECT TOP 1 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swim'), VectorDistance(c.v, [1, 0]))"
    assert [row["id"] for row in rows(container, fused)] == ["0"]


def test_a_query_costs_something_and_is_measured(filled):
    seen = {}
    options = {**across(filled), "populate_query_metrics": True}
    query = filled.query_items(
        "SELECT * FROM c WHERE c.n < 3", response_hook=lambda headers, _: seen.update(headers), **options
    )
    assert len(list(query)) == 3
    seen = {name.lower(): value for name, value in seen.items()}
    assert float(seen["x-ms-request-charge"]) >= 2
    metrics = dict(pair.split("=") for pair in seen["x-ms-documentdb-query-metrics"].split(";"))
    assert int(metrics["outputDocumentCount"]) <= int(metrics["retrievedDocumentCount"])


def headers_of(container, query, **options):
    """What the SDK made of the headers of each page."""
    pages = []
    hook = lambda headers, _: pages.append({name.lower(): value for name, value in headers.items()})  # noqa: E731
    list(container.query_items(query, response_hook=hook, **options))
    return pages


def single(path, impact="High"):
    return {
        "FilterExpression": "",
        "IndexSpec": path,
        "FilterPreciseSet": True,
        "IndexPreciseSet": True,
        "IndexImpactScore": impact,
    }


def composite(*paths):
    return {"IndexSpecs": list(paths), "IndexPreciseSet": False, "IndexImpactScore": "High"}


@pytest.mark.parametrize(
    "query, used, missing, used_composites, missing_composites",
    [
        ("SELECT * FROM c WHERE c.n > 2", [single("/n/?")], [], [], []),
        ("SELECT * FROM c WHERE c.n != 2", [single("/n/?", "Low")], [], [], []),
        ("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't1')", [single("/tags/[]/?")], [], [], []),
        ("SELECT * FROM c WHERE c.place.x = 1", [], [single("/place/x/?")], [], []),
        ("SELECT * FROM c ORDER BY c.team, c.n DESC", [], [], [composite("/team ASC", "/n DESC")], []),
        (
            "SELECT * FROM c WHERE c.team = 'red' AND c.n > 3 ORDER BY c.id",
            [single("/team/?"), single("/n/?"), single("/id/?")],
            [],
            [],
            [composite("/team ASC", "/id ASC")],
        ),
    ],
)
def test_indexes_that_a_query_uses_are_told(indexed, query, used, missing, used_composites, missing_composites):
    pages = headers_of(indexed, query, populate_index_metrics=True, **across(indexed))
    assert len(pages) >= 1
    for page in pages:
        assert page["x-ms-cosmos-index-utilization"] == {
            "UtilizedSingleIndexes": used,
            "PotentialSingleIndexes": missing,
            "UtilizedCompositeIndexes": used_composites,
            "PotentialCompositeIndexes": missing_composites,
        }


@pytest.fixture(scope="module")
def indexed(database):
    policy = {
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/place/*"}],
        "compositeIndexes": [[{"path": "/team", "order": "ascending"}, {"path": "/n", "order": "descending"}]],
    }
    container = database.create_container(unique("c"), PartitionKey("/pk"), indexing_policy=policy)
    for each in ITEMS:
        container.create_item(each)
    yield container
    database.delete_container(container.id)


def test_a_query_for_one_key_uses_the_key(indexed):
    [page] = headers_of(indexed, "SELECT * FROM c", partition_key="key-1", populate_index_metrics=True)
    assert page["x-ms-cosmos-index-utilization"]["UtilizedSingleIndexes"] == [single("/pk/?")]
    [page] = headers_of(indexed, "SELECT * FROM c", partition_key="key-1")
    assert "x-ms-cosmos-index-utilization" not in page


def test_advice_on_a_query_is_given(filled):
    query = "SELECT * FROM c WHERE CONTAINS(c.id, 'item') AND c.n < GetCurrentTicks()"
    first, *others = headers_of(filled, query, populate_query_advice=True, partition_key="key-1", max_item_count=2)
    advice = first["x-ms-cosmos-query-advice"].splitlines()
    assert [line.split(":")[0] for line in advice] == ["QA1002", "QA1008"]
    assert "consider using STARTSWITH" in advice[0]
    assert others and all("x-ms-cosmos-query-advice" not in page for page in others)
    [page] = headers_of(filled, "SELECT * FROM c WHERE c.n = 1", populate_query_advice=True, partition_key="key-1")
    assert "x-ms-cosmos-query-advice" not in page


def test_too_long_a_text_is_refused(filled):
    text = "SELECT * FROM c WHERE c.n = 1" + " " * 600_000
    assert status_of(lambda: rows(filled, text))[0] == 400
