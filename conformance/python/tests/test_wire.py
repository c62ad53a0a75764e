"""The protocol itself, by hand: headers, links by RID, ranges, credentials, sessions, what is not built."""

import email.utils
import json
import time
import uuid

import pytest

from support.server import EMULATOR_KEY
from support.wire import Wire, headers_for


def key(*values):
    return {"x-ms-documentdb-partitionkey": json.dumps(list(values))}


def test_the_account_document(wire, server):
    answer = wire.send("GET", "/")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    account = answer.json
    scheme = "https" if wire.context else "http"
    for list_name in ("writableLocations", "readableLocations"):
        assert [place["databaseAccountEndpoint"] for place in account[list_name]] == [f"{scheme}://127.0.0.1:{server.port}/"]
    assert account["enableMultipleWriteLocations"] is False
    assert account["userConsistencyPolicy"]["defaultConsistencyLevel"] == "Session"
    # A string that holds JSON, not an object: two SDKs parse it.
    assert isinstance(json.loads(account["queryEngineConfiguration"]), dict)
    assert "etag" not in answer.headers


def test_the_endpoint_told_is_the_one_that_was_called(wire, server):
    answer = wire.send("GET", "/", headers={"Host": "database.example:1234"})
    places = answer.json["writableLocations"]
    assert places[0]["databaseAccountEndpoint"].endswith("://database.example:1234/")


def test_every_answer_has_an_activity_id_and_a_charge(wire, wire_container):
    mine = str(uuid.uuid4())
    answer = wire.send("GET", wire_container, headers={"x-ms-activity-id": mine})
    assert answer.headers["x-ms-activity-id"] == mine
    for verb, path in (("GET", "/"), ("GET", "/dbs"), ("GET", f"{wire_container}/docs"), ("GET", "/dbs/none")):
        answer = wire.send(verb, path)
        uuid.UUID(answer.headers["x-ms-activity-id"])
        assert float(answer.headers["x-ms-request-charge"]) >= 0


def test_the_body_of_an_error_has_code_message_and_activity(wire):
    answer = wire.send("GET", "/dbs/none")
    assert answer.status == 404
    assert answer.json["code"] == "NotFound"
    assert answer.headers["x-ms-activity-id"] in answer.json["message"]


@pytest.mark.parametrize("path", ["/dbs/none/colls", "/dbs/none/colls/c", "/dbs/none/colls/c/docs", "/dbs/none/colls/c/pkranges"])
def test_an_absent_owner_has_substatus_1003(wire, path):
    answer = wire.send("GET", path)
    assert (answer.status, answer.substatus) == (404, 1003)


def test_items_of_an_absent_container_have_substatus_1003(wire, wire_container):
    database = wire_container.rsplit("/colls/", 1)[0]
    for verb, path, body in (("GET", "docs/1", None), ("POST", "docs", {"id": "1", "pk": "a"}), ("PUT", "docs/1", {"id": "1", "pk": "a"}),
                             ("DELETE", "docs/1", None), ("GET", "docs", None)):
        answer = wire.send(verb, f"{database}/colls/none/{path}", body, key("a"))
        assert (answer.status, answer.substatus) == (404, 1003), (verb, path)
    answer = wire.send("GET", f"{wire_container}/docs/none", headers=key("a"))
    assert (answer.status, answer.substatus) == (404, 0)


def test_statuses_of_writes(wire, wire_container):
    item = {"id": "1", "pk": "a"}
    upsert = {"x-ms-documentdb-is-upsert": "True"}
    assert wire.item("POST", wire_container, ["a"], body=item).status == 201
    assert wire.item("POST", wire_container, ["a"], body=item, headers=upsert).status == 200
    assert wire.item("POST", wire_container, ["a"], body={**item, "id": "2"}, headers=upsert).status == 201
    assert wire.item("PUT", wire_container, ["a"], "1", item).status == 200
    assert wire.item("PATCH", wire_container, ["a"], "1", [{"op": "set", "path": "/v", "value": 1}]).status == 200
    deleted = wire.item("DELETE", wire_container, ["a"], "1")
    assert deleted.status == 204 and deleted.body == b""


def test_feeds_have_envelope_count_and_owner(wire, wire_container):
    for number in range(3):
        wire.item("POST", wire_container, ["a"], body={"id": str(number), "pk": "a"})
    rid = wire.send("GET", wire_container).json["_rid"]
    answer = wire.send("GET", f"{wire_container}/docs")
    assert answer.json["_rid"] == rid and answer.json["_count"] == len(answer.json["Documents"]) == 3
    assert answer.headers["x-ms-item-count"] == "3" and "x-ms-continuation" not in answer.headers
    assert "Databases" in wire.send("GET", "/dbs").json
    assert "DocumentCollections" in wire.send("GET", wire_container.rsplit("/", 1)[0]).json
    assert "Offers" in wire.send("GET", "/offers").json


def test_a_trailing_slash_changes_nothing(wire, wire_container):
    wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"})
    assert wire.send("GET", f"{wire_container}/").status == 200
    assert wire.send("GET", f"{wire_container}/docs/").json["_count"] == 1
    assert wire.send("GET", f"{wire_container}/docs/1/", headers=key("a")).status == 200


def test_return_minimal_has_the_status_and_etag_and_no_body(wire, wire_container):
    minimal = {"Prefer": "return=minimal"}
    answer = wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"}, headers=minimal)
    assert answer.status == 201 and answer.body == b"" and answer.headers["etag"]
    answer = wire.item("PUT", wire_container, ["a"], "1", {"id": "1", "pk": "a"}, minimal)
    assert answer.status == 200 and answer.body == b"" and answer.headers["etag"]


def test_if_none_match_on_a_read_is_304(wire, wire_container):
    etag = wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"}).headers["etag"]
    answer = wire.item("GET", wire_container, ["a"], "1", headers={"If-None-Match": etag})
    assert answer.status == 304 and answer.body == b"" and answer.headers["etag"] == etag
    assert wire.item("GET", wire_container, ["a"], "1", headers={"If-None-Match": '"x"'}).status == 200


def test_star_conditions(wire, wire_container):
    upsert = {"x-ms-documentdb-is-upsert": "True"}
    item = {"id": "1", "pk": "a"}
    assert wire.item("PUT", wire_container, ["a"], "1", item, {"If-Match": "*"}).status in (404, 412)
    assert wire.item("POST", wire_container, ["a"], body=item, headers={**upsert, "If-None-Match": "*"}).status == 201
    assert wire.item("POST", wire_container, ["a"], body=item, headers={**upsert, "If-None-Match": "*"}).status == 412
    assert wire.item("PUT", wire_container, ["a"], "1", item, {"If-Match": "*"}).status == 200


def test_everything_can_be_addressed_by_rid(wire, wire_container):
    item = wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"}).json
    container = wire.send("GET", wire_container).json
    database = wire.send("GET", wire_container.rsplit("/colls/", 1)[0]).json
    for resource, headers in ((database, {}), (container, {}), (item, key("a"))):
        answer = wire.send("GET", "/" + resource["_self"], headers=headers, by_rid=True)
        assert answer.status == 200 and answer.json["_rid"] == resource["_rid"]
        answer = wire.send("GET", "/" + resource["_self"].rstrip("/"), headers=headers, by_rid=True)
        assert answer.status == 200
    by_rid = "/" + container["_self"]
    assert wire.send("GET", f"{by_rid}pkranges", by_rid=True).json["_rid"] == container["_rid"]
    assert wire.send("GET", f"{by_rid}docs", by_rid=True).json["_count"] == 1
    created = wire.send("POST", f"{by_rid}docs", {"id": "2", "pk": "a"}, key("a"), by_rid=True)
    assert created.status == 201
    assert wire.send("PUT", "/" + item["_self"], {"id": "1", "pk": "a", "v": 2}, key("a"), by_rid=True).json["v"] == 2
    assert wire.send("DELETE", "/" + item["_self"], headers=key("a"), by_rid=True).status == 204
    assert wire.send("GET", "/" + item["_self"], headers=key("a"), by_rid=True).status == 404
    assert [found["id"] for found in wire.feed(f"{wire_container}/docs")] == ["2"]


def test_offers_are_read_by_rid(wire, wire_container):
    container = wire.send("GET", wire_container).json
    offers = [offer for offer in wire.feed("/offers", "Offers") if offer["resource"] == container["_self"]]
    assert len(offers) == 1
    offer = offers[0]
    assert offer["offerResourceId"] == container["_rid"] and offer["content"]["offerThroughput"] == 400
    answer = wire.send("GET", f"/offers/{offer['_rid']}")
    assert answer.status == 200 and answer.json == offer


def test_ranges_are_a_feed_that_ends_with_304(wire, wire_container):
    for kind in ("Incremental feed", "Incremental Feed"):
        first = wire.send("GET", f"{wire_container}/pkranges", headers={"A-IM": kind, "x-ms-max-item-count": "-1"})
        assert first.status == 200
        ranges = first.json["PartitionKeyRanges"]
        assert [(one["id"], one["minInclusive"], one["maxExclusive"], one["parents"]) for one in ranges] == [("0", "", "FF", [])]
        second = wire.send("GET", f"{wire_container}/pkranges", headers={"A-IM": kind, "If-None-Match": first.headers["etag"]})
        assert second.status == 304 and second.body == b"" and second.headers["etag"] == first.headers["etag"]
    assert wire.send("GET", f"{wire_container}/pkranges").json["_count"] == 1


def test_ranges_have_no_gaps(wire, wire_container):
    database = wire_container.rsplit("/colls/", 1)[0]
    definition = {"id": "wide", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert wire.send("POST", f"{database}/colls", definition, {"x-ms-offer-throughput": "30000"}).status == 201
    ranges = wire.send("GET", f"{database}/colls/wide/pkranges").json["PartitionKeyRanges"]
    assert len(ranges) == 5
    bounds = sorted((one["minInclusive"], one["maxExclusive"]) for one in ranges)
    assert bounds[0][0] == "" and bounds[-1][1] == "FF"
    for left, right in zip(bounds, bounds[1:]):
        assert left[1] == right[0] and len(left[1]) == 32 and left[1] == left[1].upper()
    for number in range(40):
        wire.item("POST", f"{database}/colls/wide", [number], body={"id": str(number), "pk": number})
    # The ranges' own feeds add up to the whole.
    found = []
    for one in ranges:
        headers = {"x-ms-documentdb-partitionkeyrangeid": one["id"]}
        found += [item["id"] for item in wire.feed(f"{database}/colls/wide/docs", page=3, headers=headers)]
    assert sorted(map(int, found)) == list(range(40))
    answer = wire.send("GET", f"{database}/colls/wide/docs", headers={"x-ms-documentdb-partitionkeyrangeid": "99"})
    assert (answer.status, answer.substatus) == (410, 1002)


def test_a_feed_of_one_key(wire, wire_container):
    for number in range(10):
        wire.item("POST", wire_container, [f"k{number % 2}"], body={"id": str(number), "pk": f"k{number % 2}"})
    odd = [item["id"] for item in wire.feed(f"{wire_container}/docs", page=2, headers=key("k1"))]
    assert sorted(odd) == ["1", "3", "5", "7", "9"]


def test_session_tokens_are_present_and_grow(wire, wire_container):
    seen = []
    for number in range(5):
        answer = wire.item("POST", wire_container, ["a"], body={"id": str(number), "pk": "a"})
        range_id, token = answer.headers["x-ms-session-token"].split(":")
        version, lsn = token.split("#")
        assert range_id == answer.headers["x-ms-documentdb-partitionkeyrangeid"] == "0"
        int(version)
        seen.append(int(lsn))
        name = wire_container.strip("/")
        assert answer.headers["x-ms-alt-content-path"] == name
        assert answer.headers["x-ms-content-path"]
    assert seen == sorted(set(seen))
    read = wire.item("GET", wire_container, ["a"], "0")
    assert int(read.headers["x-ms-session-token"].split("#")[1]) >= seen[-1]
    assert int(read.headers["lsn"]) >= seen[-1]


def test_a_session_that_is_ahead_of_the_server_is_404_1002(wire, wire_container):
    wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"})
    token = wire.item("GET", wire_container, ["a"], "1").headers["x-ms-session-token"]
    assert wire.item("GET", wire_container, ["a"], "1", headers={"x-ms-session-token": token}).status == 200
    head, lsn = token.split("#")
    ahead = f"{head}#{int(lsn) + 1000}"
    answer = wire.item("GET", wire_container, ["a"], "1", headers={"x-ms-session-token": ahead})
    assert (answer.status, answer.substatus) == (404, 1002)
    assert wire.item("GET", wire_container, ["a"], "1", headers={"x-ms-session-token": "nonsense"}).status == 400


@pytest.mark.parametrize("level, status", [
    ("Eventual", 200), ("ConsistentPrefix", 200), ("Session", 200), ("BoundedStaleness", 400), ("Strong", 400), ("None", 400)])
def test_consistency_may_be_weakened_only(wire, wire_container, level, status):
    assert wire.send("GET", wire_container, headers={"x-ms-consistency-level": level}).status == status


def test_a_stale_container_rid_is_400_1024(wire, wire_container):
    wrong = {"x-ms-cosmos-intended-collection-rid": "AQAAAIAAAAE="}
    answer = wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"}, headers=wrong)
    assert (answer.status, answer.substatus) == (400, 1024)
    right = {"x-ms-cosmos-intended-collection-rid": wire.send("GET", wire_container).json["_rid"]}
    assert wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"}, headers=right).status == 201


def test_point_operations_need_a_key(wire, wire_container):
    wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"})
    for verb, body in (("GET", None), ("PUT", {"id": "1", "pk": "a"}), ("DELETE", None), ("PATCH", [{"op": "set", "path": "/v", "value": 1}])):
        answer = wire.send(verb, f"{wire_container}/docs/1", body)
        assert answer.status == 400, verb
    for bad in ("a", "[", "{}", '["a","b"]', '[["a"]]'):
        answer = wire.send("GET", f"{wire_container}/docs/1", headers={"x-ms-documentdb-partitionkey": bad})
        assert answer.status == 400, bad


def test_bulk_has_a_status_for_each_step(wire, wire_container):
    wire.item("POST", wire_container, ["a"], body={"id": "there", "pk": "a"})
    steps = [
        {"operationType": "Create", "partitionKey": '["a"]', "resourceBody": {"id": "1", "pk": "a"}},
        {"operationType": "Create", "partitionKey": '["a"]', "resourceBody": {"id": "there", "pk": "a"}},
        {"operationType": "Read", "partitionKey": '["b"]', "id": "none"},
        {"operationType": "Upsert", "partitionKey": '["b"]', "resourceBody": {"id": "2", "pk": "b"}},
        {"operationType": "Delete", "partitionKey": '["a"]', "id": "there"},
    ]
    headers = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "false",
               "x-ms-cosmos-batch-continue-on-error": "true", "x-ms-documentdb-partitionkeyrangeid": "0"}
    answer = wire.send("POST", f"{wire_container}/docs", steps, headers)
    assert answer.status in (200, 207)
    assert [step["statusCode"] for step in answer.json] == [201, 409, 404, 201, 204]
    assert sorted(item["id"] for item in wire.feed(f"{wire_container}/docs")) == ["1", "2"]


@pytest.mark.parametrize("text", [b"", b"{", b"nonsense", b"[]", b"7", b'{"id":"1","pk":"a"}x', b'{"id":"1","pk":"\xff"}', b'{"id":"1","pk":"a","x":NaN}',
                                  b'{"id":"1","pk":"a","x":01}', b'{"id":"1","pk":"a","x":1e999}', b'{"id":"1",}'])
def test_a_body_that_is_no_item_is_refused(wire, wire_container, text):
    answer = wire.send("POST", f"{wire_container}/docs", text, key("a"))
    assert answer.status == 400
    assert answer.json["code"] == "BadRequest"


def test_large_headers_are_refused(wire, wire_container):
    answer = wire.send("GET", wire_container, headers={"x-filler": "x" * 40_000})
    assert answer.status in (413, 431)
    assert wire.send("GET", wire_container).status == 200


class TestCredentials:
    """Who may ask at all."""

    def test_a_wrong_key_is_401(self, server):
        wrong = "A" * 86 + "=="
        with Wire(server.port, key=wrong) as wire:
            for verb, path in (("GET", "/"), ("GET", "/dbs"), ("POST", "/dbs"), ("GET", "/dbs/x/colls/y/docs/z"), ("GET", "/offers")):
                answer = wire.send(verb, path)
                assert answer.status == 401 and answer.json["code"] == "Unauthorized", path

    def test_no_credential_is_401(self, wire):
        assert wire.send("GET", "/dbs", sign=False).status == 401
        date = email.utils.formatdate(usegmt=True)
        for text in ("", "nonsense", "type%3Dmaster", "type%3Dmaster%26ver%3D1.0%26sig%3D", "type%3Dother%26ver%3D1.0%26sig%3DAAAA"):
            answer = wire.send("GET", "/dbs", headers={"authorization": text, "x-ms-date": date}, sign=False)
            assert answer.status == 401, text

    def test_a_signature_is_for_one_path_and_verb(self, wire, wire_container):
        headers = headers_for("GET", "/dbs")
        assert wire.send("GET", "/dbs", headers=headers, sign=False).status == 200
        assert wire.send("GET", wire_container, headers=headers, sign=False).status == 401
        assert wire.send("POST", "/dbs", {"id": "x"}, headers, sign=False).status == 401

    @pytest.mark.parametrize("skew", [-1000, 1000])
    def test_an_old_date_is_403(self, wire, skew):
        date = email.utils.formatdate(time.time() + skew, usegmt=True)
        answer = wire.send("GET", "/dbs", headers=headers_for("GET", "/dbs", key=EMULATOR_KEY, date=date), sign=False)
        assert answer.status == 403

    def test_the_sdk_raises_for_a_wrong_key(self, server):
        from azure.cosmos import CosmosClient
        from azure.cosmos.exceptions import CosmosHttpResponseError
        with pytest.raises(CosmosHttpResponseError) as raised:
            CosmosClient(server.endpoint(), "A" * 86 + "==")
        assert raised.value.status_code == 401


class TestNotBuilt:
    """What is not built says so: a clean 400, never a hang or a wrong answer."""

    def test_a_trigger_on_a_write(self, wire, wire_container):
        headers = {"x-ms-documentdb-pre-trigger-include": "t"}
        answer = wire.item("POST", wire_container, ["a"], body={"id": "1", "pk": "a"}, headers=headers)
        assert answer.status == 400
        assert list(wire.feed(f"{wire_container}/docs")) == []

    def test_unknown_paths_and_verbs(self, wire, wire_container):
        assert wire.send("GET", "/nothing/here").status == 404
        assert wire.send("PUT", wire_container.rsplit("/colls/", 1)[0], {"id": "x"}).status == 405
